// SPDX-License-Identifier: GPL-2.0-only
//! From events to log files and back: what comes in is read again, or is in a sum or a loss.

use crate::join_fuzz::{drawn, join, known, split};
use crate::recorded::{joined as joined_ring, recorded, NOBODY, RINGS};
use crate::ring_file::joiner_of;
use fasttrack_trace::budget::Budget;
use fasttrack_trace::join::Event;
use fasttrack_trace::output::Output;
use fasttrack_trace::privacy::Privacy;
use fasttrack_trace::recorder::{record, Limits};
use fasttrack_trace::sample::Sample;
use fasttrack_trace::source::{Delivered, Source};
use fasttrack_trace::tracefs::{InstanceError, Missing};
use fasttrack_trace_log::{
    read_directory, Found, LogWriter, LossReason, Options, Record, Request, Session, Sync,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// So many events are lost at a time.
const LOST: u64 = 7;

/// A source that delivers all at its end.
struct Fed(Vec<u8>);

impl Source for Fed {
    fn names(&self) -> String {
        "ftrace".to_string()
    }

    fn events(&self) -> String {
        String::new()
    }

    fn wait(&mut self, _: u64) {}

    fn read(&mut self, _: bool, sink: &mut dyn FnMut(Delivered<'_>)) -> Result<(), InstanceError> {
        let mut time = 1;
        for event in split(&self.0) {
            time += u64::from(u16::from_le_bytes([event[2], event[3]]));
            sink(match known().0.get(usize::from(event[0])) {
                Some(format) => Delivered::Event(Event {
                    time,
                    cpu: u64::from(event[1]),
                    format,
                    data: &event[5..],
                }),
                None => Delivered::Loss(Missing {
                    cpu: Some(0),
                    since: time,
                    until: time,
                    count: Some(LOST),
                    reason: LossReason::RING_OVERRUN,
                }),
            });
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), InstanceError> {
        Ok(())
    }
}

/// All records of a directory; nothing in it is damaged.
fn read(directory: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    read_directory(&[directory.to_path_buf()], 0, u64::MAX, |found| {
        match found {
            Found::Block(_, block) => records.extend(block.records),
            _ => panic!("damage in {}", directory.display()),
        }
        Ok::<(), io::Error>(())
    })
    .expect("read");
    records
}

/// Records of the device's work: those that a budget can leave out.
fn work(records: &[Record]) -> u64 {
    let is_work = |record: &&Record| {
        matches!(
            record,
            Record::Bio(_) | Record::Segment(_) | Record::Request(_)
        )
    };
    records.iter().filter(is_work).count() as u64
}

/// Numbers of the bios of a request: each goes on where the one before it ends.
fn bios_of(request: &Request, all: &[Record]) -> Vec<u64> {
    let queued = all.iter().filter_map(|record| match record {
        Record::Bio(bio) if bio.time <= request.time => Some(bio),
        _ => None,
    });
    let mut bios: Vec<u64> = request.first_bio.into_iter().collect();
    let mut at = request.sector;
    while let Some(last) = bios.last() {
        let found = queued.clone().find(|bio| bio.bio == Some(*last));
        at = at
            .zip(found.and_then(|bio| bio.bytes))
            .map(|(at, bytes)| at + bytes / 512);
        if bios.len() as u64 >= request.bios.unwrap_or(1) {
            break;
        }
        let mut next = queued
            .clone()
            .filter(|bio| bio.sector == at && bio.operation == request.operation);
        match next.next_back().and_then(|bio| bio.bio) {
            Some(next) => bios.push(next),
            None => break,
        }
    }
    bios
}

/// A sample of a recorded ring, as it is read.
fn sampled(name: &str, of: u64) -> (Vec<Record>, Vec<Record>) {
    let mut joiner = joiner_of(NOBODY);
    let all = joined_ring(&recorded(name), &mut joiner);
    let dir = tempfile::TempDir::new().expect("a directory");
    let writer = LogWriter::new(dir.path(), [7; 16], Options::default()).expect("a directory");
    let mut output = Output::new(writer, Privacy::clear(), Budget::new(0), Session::default())
        .with_sample(Sample::new(of));
    output.take(&mut joiner, &mut all.clone()).expect("taken");
    output.tick(&mut joiner, true).expect("counted");
    output.close().expect("closed");
    (all, read(dir.path()))
}

/// Of real requests all bios, segments and the request itself are there, or none; what is not is counted.
///
/// Returns how many bios are there, and how many requests have several.
fn has_whole_requests(name: &str, of: u64) -> (usize, usize) {
    let (all, found) = sampled(name, of);
    let (mut taken, mut requests, mut left) = (BTreeSet::new(), BTreeSet::new(), 0);
    for record in &found {
        let weight = match record {
            Record::Session(session) => session.sample,
            Record::Bio(bio) => {
                taken.extend(bio.bio);
                bio.weight
            }
            Record::Segment(one) => one
                .weight
                .filter(|_| one.bio.is_some_and(|bio| taken.contains(&bio))),
            Record::Request(request) => {
                requests.insert((request.time, request.sector));
                request.weight
            }
            Record::Loss(loss) => {
                left += loss.count.unwrap_or(0);
                continue;
            }
            _ => continue,
        };
        assert_eq!(weight, Some(of), "{name}: {record:?}");
    }
    assert_eq!(work(&all), work(&found) + left, "{name}");
    assert!(left > 0, "{name}");
    let mut merged = 0;
    for record in &all {
        let Record::Request(request) = record else {
            continue;
        };
        let whole = requests.contains(&(request.time, request.sector));
        let bios = bios_of(request, &all);
        merged += usize::from(bios.len() > 1);
        let together = bios.iter().all(|bio| taken.contains(bio) == whole);
        assert!(together, "{name}: {request:?} of {bios:?}");
    }
    (taken.len(), merged)
}

#[test]
fn a_sample_has_whole_requests() {
    let mut merged = 0;
    for name in RINGS {
        // One of them can have nothing.
        let samples = [2, 3, 4, 5].map(|of| has_whole_requests(name, of));
        assert!(samples.iter().any(|(taken, _)| *taken > 0), "{name}");
        merged += samples.iter().map(|(_, merged)| merged).sum::<usize>();
    }
    assert!(merged > 0, "no request has several bios");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_are_read_or_counted(
        chosen in vec((any::<Index>(), 0..2_u8, any::<u16>()), 0..200),
        budget in prop_oneof![Just(0_u64), 1..100_u64],
        sample in prop_oneof![Just(1_u64), 2..5_u64],
    ) {
        let (input, losses) = drawn(&chosen);
        let lost = losses * LOST;
        let (_, joined) = join(&input, &mut joiner_of(1));
        let dir = tempfile::TempDir::new().expect("a directory");
        let options = Options { file_bytes: 3000, block_bytes: 300, sync: Sync::Never, ..Options::default() };
        let writer = LogWriter::new(dir.path(), [7; 16], options).expect("a directory");
        let output = Output::new(writer, Privacy::clear(), Budget::new(budget), Session::default())
            .with_sample(Sample::new(sample));
        let limits = Limits { duration_ns: Some(0), block_ns: 1 };
        let sum = record(&mut Fed(input), &mut joiner_of(1), output, limits).expect("recorded");
        let found = read(dir.path());
        prop_assert_eq!(sum.records, found.len() as u64);
        prop_assert_eq!(sum.lost, lost);
        let (mut left_out, mut told, mut untimed) = (0, 0, 0);
        for record in &found {
            match record {
                Record::Aggregate(one) => {
                    let times = one.calls.unwrap_or(0) + one.waits.unwrap_or(0);
                    untimed += times;
                    left_out += one.records.unwrap_or(0) - times;
                }
                Record::Loss(loss) if loss.reason == Some(LossReason::SAMPLED) => left_out += loss.count.unwrap_or(0),
                Record::Loss(loss) => told += loss.count.unwrap_or(0),
                _ => {}
            }
        }
        prop_assert_eq!(work(&joined), work(&found) + left_out);
        prop_assert_eq!(told, lost);
        let calls = |records: &[Record]| records.iter().filter(|one| matches!(one, Record::Call(_) | Record::Wait(_))).count() as u64;
        prop_assert_eq!(calls(&joined), calls(&found) + untimed);
    }
}
