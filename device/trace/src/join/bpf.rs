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
        let (page, pages) = (self.page(event), event.place("pages"));
        if let (Some((disk, inode, index)), Some(pages)) = (page, pages) {
            let time = event.time;
            self.dirty(disk, inode, index, pages, Owner { task, time });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::layout;
    use crate::join::names::Nothing;
    use fasttrack_trace_log::Segment;

    const DISK: u32 = 8 << 20;

    /// A record of `type` by a process, and what follows its head.
    fn record(kind: u16, runs: u16, pid: u32, numbers: &[u64]) -> Vec<u8> {
        let mut record = [kind.to_le_bytes(), runs.to_le_bytes()].concat();
        record.extend([0; 4]);
        record.extend(5_u64.to_le_bytes());
        for number in [pid, pid, 10_000 + pid, 0] {
            record.extend(number.to_le_bytes());
        }
        record.extend([0; 24]);
        for number in numbers {
            record.extend(number.to_le_bytes());
        }
        record
    }

    fn pair(low: u32, high: u64) -> u64 {
        u64::from(low) | high << 32
    }

    /// Of pages of a file: dirtied (1), mapped (2) or written to (6).
    fn page(kind: u16, pid: u32, inode: u64, index: u64) -> Vec<u8> {
        record(kind, 0, pid, &[inode, index, pair(DISK, FILE), 1])
    }

    /// A write of so many bytes by the kernel's task 9, with runs of inode, index, bytes and kind.
    fn write(bytes: u64, runs: &[(u64, u64, u64, u64)]) -> Vec<u8> {
        let mut numbers = vec![800, pair(DISK, bytes), pair(1, SYNC)];
        for (inode, index, bytes, kind) in runs {
            numbers.extend([*inode, *index, pair(DISK, *bytes), *kind]);
        }
        record(0xff04, runs.len() as u16, 9, &numbers)
    }

    /// Bytes, file and the owner's process of each segment.
    fn joined(records: &[Vec<u8>]) -> Vec<(u64, bool, Option<u64>)> {
        let mut joiner = Joiner::new(Box::new(Nothing), 1);
        let formats = layout::formats();
        let mut events = Vec::new();
        for record in records {
            layout::events(record, &mut events).expect("a record");
        }
        let out = joiner.joined(events.iter().map(|(time, cpu, data)| {
            let id = u16::from_le_bytes([data[0], data[1]]);
            let format = formats.iter().find(|format| format.id == id);
            (*time, *cpu, format.expect("its format"), data.as_slice())
        }));
        let pid = |segment: &Segment| joiner.names.uid(segment.owner?).map(|uid| uid - 10_000);
        out.iter()
            .filter_map(|record| match record {
                Record::Segment(one) => Some((one.bytes?, one.file.is_some(), pid(one))),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn each_file_of_a_bio_has_its_owners() {
        let found = joined(&[
            page(0xff01, 3, 12, 0),
            page(0xff01, 4, 12, 1),
            page(0xff01, 4, 13, 7),
            write(
                16_384,
                &[(12, 0, 8192, FILE), (13, 7, 4096, FILE), (0, 0, 4096, 0)],
            ),
        ]);
        let of = |pid| (4096, true, Some(pid));
        assert_eq!(found, [of(3), of(4), of(4), (4096, false, None)]);
    }

    #[test]
    fn what_is_dirty_is_written_over_or_mapped_by_another() {
        let found = joined(&[
            page(0xff01, 3, 12, 0),
            page(0xff06, 4, 12, 0),
            page(0xff01, 3, 12, 1),
            page(0xff02, 4, 12, 1),
            page(0xff01, 3, 12, 2),
            page(0xff02, 3, 12, 2),
            write(12_288, &[(12, 0, 12_288, FILE)]),
        ]);
        let by = |pid| (4096, true, pid);
        assert_eq!(found, [by(Some(4)), by(None), by(Some(3))]);
    }

    #[test]
    fn who_sends_a_direct_bio_has_written_it() {
        assert_eq!(
            joined(&[write(8192, &[(12, 4, 8192, DIRECT)])]),
            [(8192, true, Some(9))]
        );
    }

    #[test]
    fn a_bio_whose_runs_are_lost_is_unknown() {
        let found = joined(&[page(0xff01, 3, 12, 0), write(8192, &[(12, 0, 4096, FILE)])]);
        assert_eq!(found, [(8192, false, None)]);
    }
}
