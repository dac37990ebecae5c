// SPDX-License-Identifier: GPL-2.0-only
//! Rings of the lab's kernel, recorded by test_guest_trace.py while two apps write, sync and read.

use crate::ring_file::Ring;
use fasttrack_trace::join::{Event, Joiner};
use fasttrack_trace_log::Record;
use std::fs;
use std::path::Path;

/// All rings that are there.
pub const RINGS: [&str; 4] = ["ext4-patched", "ext4-stock", "f2fs-patched", "f2fs-stock"];

/// No process: nobody is the collector.
pub const NOBODY: u64 = u64::MAX;

/// Bytes of a ring's file when it is unpacked, at most.
const UNPACKED_MOST: usize = 16 << 20;

/// One of them.
pub fn recorded(name: &str) -> Ring {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/rings/{name}.zst"));
    let packed = fs::read(&path).expect("a recorded ring");
    Ring::parse(&zstd::bulk::decompress(&packed, UNPACKED_MOST).expect("zstd"))
}

/// What a join makes of a ring.
pub fn joined(ring: &Ring, joiner: &mut Joiner) -> Vec<Record> {
    let mut records = Vec::new();
    for (time, cpu, format, data) in &ring.events {
        let event = Event {
            time: *time,
            cpu: *cpu,
            format: &ring.formats[*format],
            data,
        };
        joiner.event(&event, &mut records);
    }
    records
}
