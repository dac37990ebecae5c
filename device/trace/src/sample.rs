// SPDX-License-Identifier: GPL-2.0-only
//! One bio of so many, with its segments and its requests, chosen by a hash.
//!
//! The block layer merges bios that continue one another into a request. So a run of them is taken or left as a whole, by
//! the hash of its first one's device, place and time: the same events give the same sample. Each record stands for as
//! many as its weight says, and sums of weights have no bias, for each run is taken once in so many. What is left is a
//! loss in the stream, with its count.

use crate::recent::Recent;
use fasttrack_trace_log::{Bio, Loss, LossReason, Record, Request, Segment, Time};

/// A run has no more bytes: a multiple of the largest requests that devices are given, 128 KiB to 1 MiB and 1280 KiB, so
/// that none reaches over its end.
const RUN: u64 = 5 << 20;

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Bios that a request may begin with, or another bio continue: as many are in flight at most.
const KEPT: usize = 16_384;

/// What is left is told after so long, ns.
const INTERVAL: u64 = 1_000_000_000;

/// Bios that continue one another.
#[derive(Debug, Clone, Copy)]
struct Run {
    taken: bool,
    bytes: u64,
}

/// Takes one bio of so many.
#[derive(Debug)]
pub struct Sample {
    of: u64,
    /// By device, operation and the sector after them.
    runs: Recent<(u64, Option<u64>, u64), Run>,
    /// Whether a bio was taken.
    bios: Recent<u64, bool>,
    left: u64,
    /// Time of the first record that was left since that was told, ns.
    since: u64,
}

/// As good as a random number, by the device, the place and the time: SplitMix64 (Steele and others, 2014).
fn mixed(dev: u64, sector: u64, time: u64) -> u64 {
    [dev, sector, time].iter().fold(0, |state: u64, number| {
        let mut z = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

impl Sample {
    /// One bio of `of`; 1 takes all.
    pub fn new(of: u64) -> Sample {
        Sample {
            of,
            runs: Recent::new(KEPT),
            bios: Recent::new(KEPT),
            left: 0,
            since: 0,
        }
    }

    /// How many a record stands for, unless all are taken.
    pub fn weight(&self) -> Option<u64> {
        (self.of > 1).then_some(self.of)
    }

    /// Takes a bio with its segments and gives them their weight, or leaves it.
    pub fn takes(&mut self, bio: &mut Bio, segments: &mut [Segment]) -> bool {
        let Some(weight) = self.weight() else {
            return true;
        };
        let taken = self.run(bio);
        if let Some(number) = bio.bio {
            self.bios.put(number, taken);
        }
        if !taken {
            self.leave(bio.time, 1 + segments.len() as u64);
            return false;
        }
        bio.weight = Some(weight);
        for segment in segments {
            segment.weight = Some(weight);
        }
        true
    }

    /// Takes a request with its first bio; one whose first bio nobody knows is chosen by itself.
    pub fn takes_request(&mut self, request: &mut Request) -> bool {
        let Some(weight) = self.weight() else {
            return true;
        };
        let by_bio = request.first_bio.and_then(|bio| self.bios.get(&bio));
        let taken =
            by_bio.unwrap_or_else(|| self.chosen(request.dev, request.sector, request.time));
        match taken {
            true => request.weight = Some(weight),
            false => self.leave(request.time, 1),
        }
        taken
    }

    fn leave(&mut self, time: Time, records: u64) {
        if self.left == 0 {
            self.since = time.0;
        }
        self.left += records;
    }

    fn chosen(&self, dev: Option<u64>, sector: Option<u64>, time: Time) -> bool {
        mixed(dev.unwrap_or(0), sector.unwrap_or(0), time.0) % self.of == 0
    }

    /// Whether a bio's run is taken.
    fn run(&mut self, bio: &Bio) -> bool {
        let alone = self.chosen(bio.dev, bio.sector, bio.time);
        let bytes = bio.bytes.unwrap_or(0);
        let (Some(dev), Some(sector), 1..) = (bio.dev, bio.sector, bytes) else {
            return alone;
        };
        let operation = bio.operation.map(|operation| operation.0);
        let before = self.runs.take(&(dev, operation, sector));
        let run = match before.filter(|run| run.bytes.saturating_add(bytes) <= RUN) {
            Some(run) => Run {
                bytes: run.bytes + bytes,
                ..run
            },
            None => Run {
                taken: alone,
                bytes,
            },
        };
        let end = sector.saturating_add(bytes / SECTOR);
        self.runs.put((dev, operation, end), run);
        run.taken
    }

    /// What was left since the last time, if that began long ago at `now`, or all ends.
    pub fn ended(&mut self, now: u64, end: bool) -> Option<Record> {
        if self.left == 0 || (!end && now < self.since + INTERVAL) {
            return None;
        }
        Some(Record::from(Loss {
            time: Time(now),
            reason: Some(LossReason::SAMPLED),
            since: Some(Time(self.since)),
            count: Some(std::mem::take(&mut self.left)),
            ..Loss::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::Operation;

    fn write(number: u64, sector: u64, bytes: u64) -> Bio {
        Bio {
            time: Time(number * 1_000_003),
            bio: Some(number),
            dev: Some(8 << 20),
            operation: Some(Operation::WRITE),
            sector: Some(sector),
            bytes: Some(bytes),
            ..Bio::default()
        }
    }

    /// Places that continue no other one.
    fn scattered(number: u64) -> u64 {
        number * 10_000
    }

    fn takes(sample: &mut Sample, mut bio: Bio) -> Option<Bio> {
        sample.takes(&mut bio, &mut []).then_some(bio)
    }

    /// The mean of many samples' estimates is the sum, within 4 standard errors; and so is each one within 5 deviations.
    #[test]
    fn sums_of_weights_have_no_bias() {
        const SAMPLES: u64 = 100;
        const BIOS: u64 = 1000;
        for of in [2, 10, 97] {
            let size = |number: u64| 4096 << (number % 8);
            let sum: u64 = (0..BIOS).map(size).sum();
            // Of one estimate: each bio is taken by itself, with the chance 1 in `of`.
            let squares: f64 = (0..BIOS).map(|number| (size(number) as f64).powi(2)).sum();
            let deviation = ((of - 1) as f64 * squares).sqrt();
            let mut total = 0.0;
            for round in 0..SAMPLES {
                let mut sample = Sample::new(of);
                let bios = (0..BIOS).map(|number| Bio {
                    time: Time(round * 1_000_000_007 + number),
                    ..write(number, scattered(number), size(number))
                });
                let taken = bios.filter_map(|bio| takes(&mut sample, bio));
                let estimate: u64 = taken
                    .map(|bio| bio.bytes.unwrap_or(0) * bio.weight.unwrap_or(0))
                    .sum();
                let off = estimate as f64 - sum as f64;
                assert!(off.abs() < 5.0 * deviation, "1 in {of}: {off}");
                total += off;
            }
            let mean = total / SAMPLES as f64;
            let error = deviation / (SAMPLES as f64).sqrt();
            assert!(mean.abs() < 4.0 * error, "1 in {of}: {mean} of {sum}");
        }
    }

    #[test]
    fn the_same_events_give_the_same_sample() {
        let sampled = |skipped: u64| -> Vec<u64> {
            let mut sample = Sample::new(5);
            // Numbers are a collector's own; time and place are not.
            let bios = (skipped..1000).map(|number| Bio {
                bio: Some(number - skipped),
                ..write(number, scattered(number), 4096)
            });
            let taken = bios.filter_map(|bio| takes(&mut sample, bio));
            taken.map(|bio| bio.time.0).collect()
        };
        let all = sampled(0);
        assert!(all.ends_with(&sampled(500)) && !sampled(500).is_empty());
    }

    /// What the block layer may merge is taken or left together, whichever requests it makes of it.
    #[test]
    fn a_request_is_taken_with_its_bios() {
        for kib in [128, 256, 512, 1024, 1280] {
            let mut sample = Sample::new(3);
            let (mut both, bios_each) = ([0, 0], kib / 64);
            let taken: Vec<bool> = (0..2000)
                .map(|number| takes(&mut sample, write(number, number * 128, 64 << 10)).is_some())
                .collect();
            for (at, bios) in taken.chunks(bios_each).enumerate() {
                let mut request = Request {
                    first_bio: Some((at * bios_each) as u64),
                    ..Request::default()
                };
                let whole = sample.takes_request(&mut request);
                assert!(bios.iter().all(|bio| *bio == whole), "{kib} KiB");
                assert_eq!(request.weight, whole.then_some(3));
                both[usize::from(whole)] += 1;
            }
            assert!(both[0] > 0 && both[1] > 0, "{both:?}");
        }
    }

    #[test]
    fn what_is_left_is_counted() {
        let mut sample = Sample::new(4);
        let mut left = 0;
        for number in 0..1000 {
            let mut bio = write(number, scattered(number), 4096);
            let mut segments = [Segment::default(), Segment::default()];
            match sample.takes(&mut bio, &mut segments) {
                true => assert!(segments.iter().all(|one| one.weight == Some(4))),
                false => left += 3,
            }
        }
        let since = sample.since;
        assert!(sample.ended(since + INTERVAL - 1, false).is_none());
        let Some(Record::Loss(loss)) = sample.ended(since + INTERVAL, false) else {
            panic!("no loss");
        };
        assert_eq!(
            (loss.reason, loss.since, loss.count),
            (Some(LossReason::SAMPLED), Some(Time(since)), Some(left))
        );
        assert!(sample.ended(9 * INTERVAL, true).is_none());
    }

    #[test]
    fn all_is_all() {
        let mut sample = Sample::new(1);
        let bio = takes(&mut sample, write(1, 8, 4096)).expect("taken");
        let mut request = Request::default();
        assert!(sample.takes_request(&mut request) && sample.ended(u64::MAX, true).is_none());
        assert_eq!(
            (bio.weight, request.weight, sample.weight()),
            (None, None, None)
        );
    }
}
