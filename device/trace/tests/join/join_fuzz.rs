// SPDX-License-Identifier: GPL-2.0-only
//! The join of any events: it does not panic, and each of them is a record or is counted.
//!
//! Input is events: number of the format, processor, time since the one before (2 bytes), length, bytes. A number of no
//! format says that events were lost.

use crate::recorded::{recorded, NOBODY, RINGS};
use crate::ring_file::joiner_of;
use fasttrack_trace::join::{Event, Joiner};
use fasttrack_trace::tracefs::EventFormat;
use fasttrack_trace_log::{decode, encode, Own, Record};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::OnceLock;

/// Events of each kind at the begin of the good input.
const OF_A_KIND: usize = 3;

/// Formats of all events, and some events of each.
pub fn known() -> &'static (Vec<EventFormat>, Vec<u8>) {
    static KNOWN: OnceLock<(Vec<EventFormat>, Vec<u8>)> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let (mut formats, mut bytes) = (Vec::<EventFormat>::new(), Vec::new());
        for name in RINGS {
            let ring = recorded(name);
            let mut count = vec![0; ring.formats.len()];
            let mut before = ring.events[0].0;
            for (time, cpu, at, data) in ring.events {
                count[at] += 1;
                if count[at] > OF_A_KIND {
                    continue;
                }
                let format = &ring.formats[at];
                let same = |one: &EventFormat| one.name == format.name;
                let number = formats.iter().position(same).unwrap_or_else(|| {
                    formats.push(format.clone());
                    formats.len() - 1
                });
                let since = (time - before).min(u64::from(u16::MAX)) as u16;
                before = time;
                bytes.extend([number as u8, cpu as u8]);
                bytes.extend(since.to_le_bytes());
                bytes.push(data.len() as u8);
                bytes.extend(&data[..data.len().min(255)]);
            }
        }
        (formats, bytes)
    })
}

/// What must be somewhere.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Count {
    bios: u64,
    calls_and_waits: u64,
    transactions: u64,
}

impl Count {
    /// An event that says what its record needs.
    fn event(&mut self, event: &Event<'_>) {
        match event.format.name.as_str() {
            "io_bio" => self.bios += 1,
            "block_bio_queue" => {
                self.bios += u64::from(event.dev("dev").is_some());
            }
            "io_call" | "io_wait" => {
                let task = event.number("task").filter(|task| *task != 0);
                self.calls_and_waits += u64::from(task.is_some());
            }
            "io_transaction" => self.transactions += 1,
            _ => {}
        }
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::Bio(_) => self.bios += 1,
            Record::Own(own) => {
                self.bios += own.bios.unwrap_or(0);
                self.calls_and_waits += own.events.unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// Joins events; gives what they must become, and what they have become.
pub fn join(input: &[u8], joiner: &mut Joiner) -> (Count, Vec<Record>) {
    let (formats, _) = known();
    let (mut count, mut records, mut time) = (Count::default(), Vec::new(), 1_u64);
    let mut rest = input;
    while let [format, cpu, low, high, length, tail @ ..] = rest {
        let (data, after) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = after;
        time += u64::from(u16::from_le_bytes([*low, *high]));
        match formats.get(usize::from(*format)) {
            Some(format) => {
                let event = Event {
                    time,
                    cpu: u64::from(*cpu),
                    format,
                    data,
                };
                count.event(&event);
                joiner.event(&event, &mut records);
            }
            None => joiner.forget(&mut records),
        }
    }
    joiner.end(&mut records);
    (count, records)
}

/// Whether all that came in is a record or counted.
fn nothing_is_lost(input: &[u8], own: u64) {
    let mut joiner = joiner_of(own);
    let (came, records) = join(input, &mut joiner);
    let mut went = Count::default();
    let other = |record: &&Record| !matches!(record, Record::Call(_) | Record::Wait(_));
    records
        .iter()
        .filter(other)
        .for_each(|record| went.record(record));
    let Own { bios, events, .. } = joiner.own.clone();
    went.bios += bios.unwrap_or(0);
    assert_eq!(came.bios, went.bios);
    // Calls and waits come from other events, too.
    let told = records.len() - records.iter().filter(other).count();
    assert!(came.calls_and_waits <= told as u64 + events.unwrap_or(0));
    let transactions = records
        .iter()
        .filter(|one| matches!(one, Record::Transaction(_)));
    assert!(came.transactions <= transactions.count() as u64);
    // And whatever it is, it can be written and read.
    assert_eq!(decode(&encode(&records)).expect("records"), records);
}

#[test]
fn spoilt_events_are_no_panic_and_none_is_lost() {
    let (_, good) = known();
    let (_, records) = join(good, &mut joiner_of(NOBODY));
    let kinds: std::collections::BTreeSet<_> = records.iter().map(Record::name).collect();
    assert!(kinds.len() >= 7, "the good input is too poor: {kinds:?}");
    fasttrack_fuzz::mutate(good, |bytes| nothing_is_lost(bytes, NOBODY));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_loses_none(
        chosen in vec((any::<Index>(), 0..3_u8, any::<u16>()), 0..200),
        own in prop_oneof![Just(1_u64), Just(NOBODY)],
    ) {
        nothing_is_lost(&drawn(&chosen).0, own);
    }
}

/// Known events, each with its processor and time since the one before, and losses here and there: how many.
pub fn drawn(chosen: &[(Index, u8, u16)]) -> (Vec<u8>, u64) {
    let events = split(&known().1);
    let (mut input, mut losses) = (Vec::new(), 0);
    for (at, cpu, since) in chosen {
        let mut event = events[at.index(events.len())].to_vec();
        event[1] = *cpu;
        event[2..4].copy_from_slice(&since.to_le_bytes());
        input.extend(event);
        if since % 50 == 0 {
            input.extend([255, 0, 0, 0, 0]);
            losses += 1;
        }
    }
    (input, losses)
}

/// Each event of an input.
pub fn split(input: &[u8]) -> Vec<&[u8]> {
    let (mut events, mut rest) = (Vec::new(), input);
    while rest.len() >= 5 {
        let (event, after) = rest.split_at((5 + usize::from(rest[4])).min(rest.len()));
        events.push(event);
        rest = after;
    }
    events
}
