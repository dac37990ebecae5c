// SPDX-License-Identifier: GPL-2.0-only
//! A ring in a file: descriptions of events with a zero between, two zeros, then pages. And a join of it beside which
//! nothing else is known.

use fasttrack_trace::join::{Image, Joiner, Lookup, TaskFacts, Volume};
use fasttrack_trace::tracefs::{EventFormat, Layout, Page};

/// Bytes of a page of the ring.
const PAGE: usize = 4096;

/// An event: time, processor, number of its format, bytes.
pub type Raw = (u64, u64, usize, Vec<u8>);

/// Events and what their bytes mean.
pub struct Ring {
    /// What their bytes mean.
    pub formats: Vec<EventFormat>,
    /// In the order of time.
    pub events: Vec<Raw>,
}

impl Ring {
    /// Reads a file's bytes.
    pub fn parse(bytes: &[u8]) -> Ring {
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

    fn volume(&mut self, dev: u64) -> Volume {
        Volume {
            disk: dev,
            start: 0,
            block_sectors: 8,
            stacked: false,
        }
    }

    /// Of devices as only spoilt events have them.
    fn image(&mut self, dev: u64) -> Option<Image> {
        (dev % 2 == 1).then_some(Image {
            dev: 8 << 20,
            inode: 12,
            first: 1,
        })
    }
}

/// A join of the collector with this process, beside which nothing else is known.
pub fn joiner_of(own: u64) -> Joiner {
    Joiner::new(Box::new(Simple), own).with_sqlite()
}
