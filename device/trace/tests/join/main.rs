// SPDX-License-Identifier: GPL-2.0-only
//! What the join makes of recorded rings.

mod join_fuzz;
mod recorded;
mod ring_file;
mod whole;

use fasttrack_trace_log::{Bio, Call, CallKind, Operation, Record};
use recorded::{joined, recorded, NOBODY, RINGS};
use ring_file::joiner_of;
use std::collections::BTreeMap;

/// The one fsync of the recorded apps, which a thread makes that is not its process's first.
fn fsync(records: &[Record]) -> &Call {
    let mut found = records.iter().filter_map(|record| match record {
        Record::Call(call) if call.kind == Some(CallKind::FSYNC) => Some(call),
        _ => None,
    });
    let only = found.next().expect("an fsync");
    assert!(found.next().is_none());
    only
}

#[test]
fn calls_and_waits_are_those_of_a_thread() {
    for name in RINGS {
        let mut joiner = joiner_of(NOBODY);
        let records = joined(&recorded(name), &mut joiner);
        let call = fsync(&records);
        let began = call.time.0 - call.duration_ns.expect("a duration");
        let mut named = Vec::new();
        joiner
            .names
            .needed(&Record::from(call.clone()), 1, &mut named);
        let Some(Record::Task(task)) = named.first() else {
            panic!("{name}: its task has no name");
        };
        let (mut waits, mut bios) = (0, 0);
        for record in &records {
            match record {
                Record::Wait(wait) if wait.time <= call.time && wait.time.0 > began => {
                    waits += u64::from(wait.thread == call.thread);
                }
                Record::Bio(bio) => bios += u64::from(bio.thread == call.thread),
                _ => {}
            }
        }
        assert!(bios > 0, "{name}");
        if name.ends_with("patched") {
            // The kernel's tasks are processes.
            assert!(
                task.tgid < call.thread && waits > 0,
                "{name}: {task:?}, {call:?}"
            );
        } else {
            assert_eq!(task.pid, call.thread, "{name}");
        }
    }
}

/// Every request with data has its first bio, which is of its place, and as many as are end to end in it.
#[test]
fn requests_have_their_bios() {
    for name in RINGS {
        let records = joined(&recorded(name), &mut joiner_of(NOBODY));
        let bios: BTreeMap<u64, &Bio> = records
            .iter()
            .filter_map(|record| match record {
                Record::Bio(bio) => bio.bio.map(|number| (number, bio)),
                _ => None,
            })
            .collect();
        let (mut requests, mut carried, mut most) = (0, 0, 0);
        for record in &records {
            let Record::Request(request) = record else {
                continue;
            };
            if request.operation == Some(Operation::FLUSH) {
                assert_eq!((request.first_bio, request.bios), (None, None), "{name}");
                assert!(request.device_ns.is_some(), "{name}: {request:?}");
                continue;
            }
            let number = request
                .first_bio
                .unwrap_or_else(|| panic!("{name}: {request:?}"));
            let bio = bios[&number];
            assert_eq!((bio.dev, bio.operation), (request.dev, request.operation));
            let begin = bio.sector.expect("a place");
            let end = begin + bio.bytes.expect("a size") / 512;
            assert!((begin..end).contains(&request.sector.expect("a place")));
            let sent = request.device_ns.expect("a begin") + bio.time.0;
            assert!(
                sent <= request.time.0,
                "{name}: it was queued after the device had it"
            );
            requests += 1;
            let parts = request.bios.expect("all of it is known");
            carried += parts;
            most = most.max(parts);
        }
        let with_data = bios.values().filter(|bio| bio.bytes > Some(0)).count() as u64;
        assert!(requests > 10, "{name}: {requests} requests");
        // The blocks of ext4's journal are merged.
        assert!(!name.starts_with("ext4") || most > 5, "{name}: {most} bios");
        // Some bios are in flight when the ring ends, others were split.
        assert!(carried + 4 >= with_data, "{name}: {carried} of {with_data}");
    }
}
