// SPDX-License-Identifier: GPL-2.0-only
//! Events of the BPF programs: the pages of bios by file, and who dirties pages.

use super::blocks::Mapped;
use super::event::Event;
use super::pages::Owner;
use super::rwbs::{operation, Flags, Rwbs};
use super::segments::PAGE_SECTORS;
use super::Joiner;
use fasttrack_trace_log::{BlockType, Record, Task, Time};

/// Whose pages are, as the programs number it.
const FILE: u64 = 1;
const DEVICE: u64 = 2;
const NODE: u64 = 3;
const CHECKPOINT: u64 = 4;
const DIRECT: u64 = 5;

/// How a bio is sent, as the programs number it.
const SYNC: u64 = 1;
const FUA: u64 = 2;
const PREFLUSH: u64 = 4;
const META: u64 = 8;
const READ_AHEAD: u64 = 16;

/// Sectors of a bio in one file, and the file if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    sectors: u64,
    mapped: Option<Mapped>,
    direct: bool,
}

/// A page of a file as pages are kept: disk, inode, index.
type Page = (u64, u64, u64);

impl Joiner {
    pub(super) fn bpf(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "run" => self.run(event),
            "bio" => self.bpf_bio(event, out),
            "dirty" => self.bpf_dirty(event),
            "fault" => self.bpf_fault(event),
            "written" => self.bpf_written(event),
            "task" => {
                self.told(event);
            }
            _ => {}
        }
    }

    /// The task of an event, which tells all of it.
    fn told(&mut self, event: &Event<'_>) -> u64 {
        self.names.task_told(Task {
            time: Time(event.time),
            pid: Some(event.pid()),
            tgid: event.number("tgid"),
            uid: event.number("uid"),
            name: event.text("comm"),
            cgroup: event.number("cgroup"),
            kernel_thread: event.number("kernel_thread").map(|flag| flag != 0),
            ..Task::default()
        })
    }

    /// A page that is a file's or a disk's own.
    fn page(&mut self, event: &Event<'_>) -> Option<Page> {
        let (dev, index) = (event.dev("dev")?, event.place("index")?);
        let volume = self.names.volume(dev);
        match event.number("kind")? {
            FILE => Some((volume.disk, event.number("ino")?, index)),
            DEVICE => Some((
                volume.disk,
                volume.disk,
                index + volume.start / PAGE_SECTORS,
            )),
            _ => None,
        }
    }

    fn bpf_dirty(&mut self, event: &Event<'_>) {
        let task = self.told(event);
        if let Some((disk, inode, index)) = self.page(event) {
            let time = event.time;
            self.pages.dirty(disk, inode, index, Owner { task, time });
        }
    }

    /// Somebody maps a page to write to it, perhaps. If another app has dirtied it, nobody knows whose it is then.
    fn bpf_fault(&mut self, event: &Event<'_>) {
        let task = self.told(event);
        let Some((disk, inode, index)) = self.page(event) else {
            return;
        };
        let before = self.pages.owner(disk, inode, index);
        if before.is_some_and(|before| !self.names.same_app(before.task, task)) {
            self.pages.take(disk, inode, index, 1);
        }
    }

    /// Somebody writes to pages of a file. Those that are dirty already are not dirtied again.
    fn bpf_written(&mut self, event: &Event<'_>) {
        let task = self.told(event);
        let (page, pages) = (self.page(event), event.place("pages"));
        if let (Some((disk, inode, index)), Some(pages)) = (page, pages) {
            let time = event.time;
            self.pages
                .write_over(disk, inode, index, pages, Owner { task, time });
        }
    }

    /// A run of the bio that comes next on this processor.
    fn run(&mut self, event: &Event<'_>) {
        let kind = event.number("kind").unwrap_or(0);
        let block_type = match kind {
            FILE | DIRECT => BlockType::DATA,
            NODE => BlockType::NODE,
            CHECKPOINT => BlockType::CHECKPOINT,
            _ => BlockType::UNKNOWN,
        };
        let dev = event
            .dev("dev")
            .filter(|_| block_type != BlockType::UNKNOWN);
        let inode = event.number("ino").unwrap_or(0);
        let data = block_type == BlockType::DATA;
        if let (Some(dev), true) = (dev, data) {
            self.names
                .file_of(dev, inode, event.number("generation"), event.time);
        }
        let mapped = dev.map(|dev| Mapped {
            dev,
            inode: if data { inode } else { 0 },
            index: event.place("index").unwrap_or(0),
            block_type,
        });
        self.runs.entry(event.cpu).or_default().push(Run {
            sectors: event.number("bytes").unwrap_or(0) / 512,
            mapped,
            direct: kind == DIRECT,
        });
    }

    fn bpf_bio(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let runs = self.runs.remove(&event.cpu).unwrap_or_default();
        let Some(dev) = event.dev("dev") else {
            return;
        };
        let carrier = self.told(event);
        let flags = event.number("flags").unwrap_or(0);
        let is = |bit: u64| flags & bit != 0;
        let rwbs = Rwbs {
            operation: operation(event.number("operation")),
            flags: Flags {
                preflush: is(PREFLUSH),
                fua: is(FUA),
                read_ahead: is(READ_AHEAD),
                sync: is(SYNC),
                meta: is(META),
            },
        };
        let sectors = event.number("bytes").unwrap_or(0) / 512;
        let mut sent = self.sent(event, dev, rwbs, carrier);
        sent.direct = runs.iter().any(|run| run.direct);
        // A part of them was lost, or the pages are smaller than a sector.
        let whole = runs.iter().map(|run| run.sectors).sum::<u64>() == sectors;
        let places = match whole {
            true => runs.iter().map(|run| (run.sectors, run.mapped)).collect(),
            false => vec![(sectors, None)],
        };
        self.give_bio(
            event,
            &sent,
            event.place("sector"),
            sectors,
            Some(places),
            out,
        );
    }
}
