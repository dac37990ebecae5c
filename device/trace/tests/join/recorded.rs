// SPDX-License-Identifier: GPL-2.0-only
//! Rings of the lab's kernel, recorded by test_guest_trace.py while two apps write, sync and read.

use fasttrack_trace::join::{Event, FileFacts, Joiner, Lookup, TaskFacts, Volume};
use fasttrack_trace::tracefs::{EventFormat, Layout, Page};
use fasttrack_trace_log::Record;
use std::fs;
use std::path::Path;

/// All rings that are there.
pub const RINGS: [&str; 4] = ["ext4-patched", "ext4-stock", "f2fs-patched", "f2fs-stock"];

/// Bytes of a page of the ring, and of a ring's file when it is unpacked.
const PAGE: usize = 4096;
const UNPACKED_MOST: usize = 16 << 20;

/// An event: time, processor, number of its format, bytes.
pub type Raw = (u64, u64, usize, Vec<u8>);

/// Events and what their bytes mean.
pub struct Ring {
    pub formats: Vec<EventFormat>,
    pub events: Vec<Raw>,
}

impl Ring {
    pub fn recorded(name: &str) -> Ring {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/rings/{name}.zst"));
        let packed = fs::read(&path).expect("a recorded ring");
        let bytes = zstd::bulk::decompress(&packed, UNPACKED_MOST).expect("zstd");
        let end = bytes.windows(2).position(|two| two == [0, 0]);
        let end = end.expect("formats end with two zeros");
        let formats: Vec<EventFormat> = bytes[..end]
            .split(|byte| *byte == 0)
            .map(|text| EventFormat::parse(&String::from_utf8_lossy(text)).expect("a format"))
            .collect();
        let layout = Layout {
            commit: 8,
            data: 16,
        };
        let mut events = Vec::new();
        for page in bytes[end + 2..].chunks(PAGE) {
            let mut page = Page::new(page, layout).expect("a page");
            while let Some(event) = page.event().expect("whole") {
                let known = |format: &EventFormat| event.id() == Some(format.id);
                let format = formats.iter().position(known).expect("its format");
                events.push((event.time, 0, format, event.data.to_vec()));
            }
        }
        Ring { formats, events }
    }

    /// What a join makes of these events.
    pub fn joined(&self, joiner: &mut Joiner) -> Vec<Record> {
        let mut records = Vec::new();
        for (time, cpu, format, data) in &self.events {
            let event = Event {
                time: *time,
                cpu: *cpu,
                format: &self.formats[*format],
                data,
            };
            joiner.event(&event, &mut records);
        }
        records
    }
}

/// Every process has one thread, and file systems have the whole disk.
pub struct Simple;

impl Lookup for Simple {
    fn task(&mut self, pid: u64) -> Option<TaskFacts> {
        Some(TaskFacts {
            tgid: pid,
            uid: 1,
            ..TaskFacts::default()
        })
    }

    fn file(&mut self, _: u64, _: u64) -> Option<FileFacts> {
        None
    }

    fn volume(&mut self, dev: u64) -> Volume {
        Volume {
            disk: dev,
            start: 0,
            block_sectors: 8,
        }
    }
}

/// A join beside which nothing else is known; nobody is the collector.
pub fn joiner() -> Joiner {
    joiner_of(u64::MAX)
}

/// The same, of the collector with this process.
pub fn joiner_of(own: u64) -> Joiner {
    Joiner::new(Box::new(Simple), own)
}
