// SPDX-License-Identifier: GPL-2.0-only
//! What the join makes of recorded rings.

mod common;

use common::{joiner, Ring, RINGS};
use fasttrack_trace_log::{Call, CallKind, Record};

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
        let ring = Ring::recorded(name);
        let mut joiner = joiner();
        let records = ring.joined(&mut joiner);
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
