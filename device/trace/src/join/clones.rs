// SPDX-License-Identifier: GPL-2.0-only
//! Bios that a device made of those that were sent to it, as device-mapper and md do: `block_bio_remap` says of each
//! from where it comes, before it is queued. What it carries is what the one above it carried, whatever its pages are.
//!
//! A bio above is kept for as long as there is room: those of one place follow each other, and the last one counts.

use fasttrack_trace_log::Segment;
use std::collections::{HashMap, VecDeque};

/// So many segments of bios above are kept.
const KEPT: usize = 4096;

/// More places than this do not wait for their bio: it was lost.
const WAITING: usize = 4096;

/// A place: device and sector.
pub type Place = (u64, u64);

/// A bio that was sent to a device that makes others of it. Places are sectors.
#[derive(Debug)]
struct Above {
    disk: u64,
    operation: u64,
    begin: u64,
    end: u64,
    segments: Vec<Segment>,
}

/// Bios above, and the places to which others of them go.
#[derive(Debug, Default)]
pub struct Clones {
    above: VecDeque<Above>,
    segments: usize,
    waiting: HashMap<Place, Place>,
}

impl Clones {
    /// What is sent to `to` next comes from `from`, both places of disks: of one disk where a partition's begin is added.
    pub fn remapped(&mut self, to: Place, from: Place) {
        let first = self.waiting.remove(&from);
        let from = match (to.0 == from.0, first) {
            (_, Some(first)) => first,
            (false, None) => from,
            (true, None) => return,
        };
        if self.waiting.len() >= WAITING {
            self.waiting.clear();
        }
        self.waiting.insert(to, from);
    }

    /// From where a bio comes that is queued at this place, if it is another's.
    pub fn origin(&mut self, place: Place) -> Option<Place> {
        self.waiting.remove(&place)
    }

    /// A bio was sent to a device that makes others of it.
    pub fn sent(
        &mut self,
        (disk, operation): (u64, u64),
        (sector, sectors): (u64, u64),
        segments: &[Segment],
    ) {
        let Some(end) = sector.checked_add(sectors) else {
            return;
        };
        self.above.push_back(Above {
            disk,
            operation,
            begin: sector,
            end,
            segments: segments.to_vec(),
        });
        self.segments += segments.len();
        while self.segments > KEPT {
            let oldest = self.above.pop_front();
            self.segments -= oldest.map_or(self.segments, |oldest| oldest.segments.len());
        }
    }

    /// The segments of a part of a bio above, with offsets in that part; none if it is not known.
    pub fn part(
        &self,
        (disk, operation): (u64, u64),
        (sector, sectors): (u64, u64),
    ) -> Option<Vec<Segment>> {
        let end = sector.checked_add(sectors)?;
        let covers = |one: &&Above| {
            (one.disk, one.operation) == (disk, operation) && one.begin <= sector && one.end >= end
        };
        let above = self.above.iter().rev().find(covers)?;
        let (from, to) = ((sector - above.begin) * 512, (end - above.begin) * 512);
        let cut = |one: &Segment| {
            let (begin, bytes) = one.offset.zip(one.bytes)?;
            let (first, last) = (begin.max(from), (begin + bytes).min(to));
            (first < last).then(|| Segment {
                offset: Some(first - from),
                bytes: Some(last - first),
                index: one.index.map(|index| index + (first - begin) / 4096),
                ..one.clone()
            })
        };
        Some(above.segments.iter().filter_map(cut).collect())
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        *self = Clones::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::names::{Lookup, Volume};
    use crate::join::{Joiner, Nothing};
    use crate::tracefs::EventFormat;
    use fasttrack_trace_log::Record;

    const DM: u64 = 254 << 20;
    const DISK: u64 = 8 << 20;
    const PART: u64 = DISK + 1;
    const WRITE: u64 = 2;

    fn segment(file: u64, index: u64, offset: u64, bytes: u64) -> Segment {
        Segment {
            file: Some(file),
            index: Some(index),
            offset: Some(offset),
            bytes: Some(bytes),
            owner: Some(file + 100),
            ..Segment::default()
        }
    }

    /// File, index, offset and bytes of each.
    fn shown(segments: &[Segment]) -> Vec<[Option<u64>; 4]> {
        segments
            .iter()
            .map(|one| [one.file, one.index, one.offset, one.bytes])
            .collect()
    }

    #[test]
    fn a_part_has_its_part_of_the_segments() {
        let mut clones = Clones::default();
        let all = [segment(1, 10, 0, 8192), segment(2, 0, 8192, 4096)];
        clones.sent((DM, WRITE), (100, 24), &all);
        let found = clones.part((DM, WRITE), (108, 16)).expect("a part");
        let of = |numbers: [u64; 4]| numbers.map(Some);
        assert_eq!(
            shown(&found),
            [of([1, 11, 0, 4096]), of([2, 0, 4096, 4096])]
        );
        assert_eq!(found[1].owner, Some(102));
        for (disk, operation, sector, sectors) in [
            (DM, 1, 108, 16),
            (DISK, WRITE, 108, 16),
            (DM, WRITE, 92, 16),
            (DM, WRITE, 108, 24),
            (DM, WRITE, u64::MAX, 24),
        ] {
            assert!(clones.part((disk, operation), (sector, sectors)).is_none());
        }
    }

    #[test]
    fn the_last_one_at_a_place_counts() {
        let mut clones = Clones::default();
        clones.sent((DM, WRITE), (100, 8), &[segment(1, 0, 0, 4096)]);
        clones.sent((DM, WRITE), (100, 8), &[segment(2, 0, 0, 4096)]);
        let found = clones.part((DM, WRITE), (100, 8)).expect("a part");
        assert_eq!(found[0].file, Some(2));
    }

    #[test]
    fn a_place_is_followed_through_a_partition() {
        let mut clones = Clones::default();
        clones.remapped((DISK, 8), (DM, 100));
        clones.remapped((DISK, 2056), (DISK, 8));
        assert_eq!(clones.origin((DISK, 8)), None);
        assert_eq!(clones.origin((DISK, 2056)), Some((DM, 100)));
        assert_eq!(clones.origin((DISK, 2056)), None);
        // What was sent to a partition itself comes from nowhere else.
        clones.remapped((DISK, 2056), (DISK, 8));
        assert_eq!(clones.origin((DISK, 2056)), None);
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let mut clones = Clones::default();
        for number in 0..3 * KEPT as u64 {
            clones.sent((DM, WRITE), (number * 8, 8), &[segment(1, number, 0, 4096)]);
            clones.remapped((DISK, number), (DM, number));
        }
        assert!(clones.above.len() <= KEPT && clones.segments <= KEPT);
        assert!(clones.waiting.len() <= WAITING);
        assert!(clones.part((DM, WRITE), (0, 8)).is_none());
        clones.forget();
        assert_eq!(clones.segments, 0);
    }

    /// A disk has a partition.
    struct Partitioned;

    impl Lookup for Partitioned {
        fn volume(&mut self, dev: u64) -> Volume {
            Nothing.volume(if dev == PART { DISK } else { dev })
        }
    }

    /// Bytes of an event by a task: each number at its place.
    fn event(pid: u32, numbers: &[(usize, u64)]) -> Vec<u8> {
        let mut data = vec![0; 56];
        data[4..8].copy_from_slice(&pid.to_le_bytes());
        for (at, number) in numbers {
            data[*at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        data
    }

    /// dm-crypt's worker sends other pages, later: the blocks are still the app's that has read them above.
    #[test]
    fn what_a_worker_sends_below_is_the_apps_above() {
        let queue = include_str!("../../tests/formats/block_bio_queue");
        let remap = include_str!("../../tests/formats/block_bio_remap");
        let [queue, remap] = [queue, remap].map(|text| EventFormat::parse(text).expect("a format"));
        let read = u64::from(b'R') << 32;
        let sent = |pid, dev, sector| {
            let data = event(pid, &[(8, dev), (16, sector), (24, 8 | read)]);
            (&queue, data)
        };
        // As the kernel tells them: a bio's device is its disk, and the partition is the place before its begin is added.
        let remapped =
            |sector, from, at| event(9, &[(8, DISK), (16, sector), (24, 8), (28, from), (32, at)]);
        let mut joiner = Joiner::new(Box::new(Partitioned), 1);
        let events = [
            sent(7, DM, 100),
            sent(8, DM, 200),
            (&remap, remapped(8, DM, 100)),
            (&remap, remapped(2056, PART, 8)),
            sent(9, DISK, 2056),
            sent(9, DISK, 2056),
        ];
        let events = (1..).zip(&events);
        let out =
            joiner.joined(events.map(|(time, (format, data))| (time, 0, *format, data.as_slice())));
        let found: Vec<_> = out
            .iter()
            .filter_map(|record| match record {
                Record::Segment(one) => Some((one.bio?, one.time.0, one.owner?)),
                _ => None,
            })
            .collect();
        let mut task = |pid| joiner.names.task(pid, 9);
        let [seven, eight, nine] = [7, 8, 9].map(&mut task);
        let expected = [(1, 1, seven), (2, 2, eight), (3, 5, seven), (4, 6, nine)];
        assert_eq!(found, expected);
    }
}
