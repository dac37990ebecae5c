// SPDX-License-Identifier: GPL-2.0-only
//! Who writes and reads a loop device: its worker writes and reads the file behind it for them, now or, as the page
//! cache of that file has it, much later. The worker's blocks of the file are those of who had their place last.

use super::event::Event;
use super::names::{Image, Names};
use super::pages::{Owner, Pages};
use super::rwbs::Rwbs;
use super::segments::PAGE_BYTES;
use fasttrack_trace_log::{Operation, Segment};
use std::collections::HashMap;

/// For so long what is behind a device is not asked for again, ns.
const ASKED_NS: u64 = 1_000_000_000;

impl Image {
    /// The pages of the file, first and count, that have these bytes of the device.
    fn pages(self, begin: u64, bytes: u64) -> (u64, u64) {
        let first = begin / PAGE_BYTES;
        let end = begin.saturating_add(bytes).div_ceil(PAGE_BYTES);
        (self.first + first, end - first)
    }
}

/// What was sent to loop devices, and not yet by their workers.
#[derive(Debug, Default)]
pub struct Loops {
    images: HashMap<u64, (u64, Option<Image>)>,
    read: Pages,
    written: Pages,
}

impl Loops {
    fn image(&mut self, dev: u64, time: u64, names: &mut Names) -> Option<Image> {
        match self.images.get(&dev) {
            Some((asked, image)) if time < asked + ASKED_NS => *image,
            _ => {
                let image = names.image(dev);
                self.images.insert(dev, (time, image));
                image
            }
        }
    }

    fn of(&mut self, operation: Operation) -> &mut Pages {
        match operation {
            Operation::READ => &mut self.read,
            _ => &mut self.written,
        }
    }

    /// A bio is sent to a device: to a loop device, what follows in its file is its owners', or nobody's.
    pub fn sent(
        &mut self,
        (dev, operation): (u64, Operation),
        sector: u64,
        segments: &[Segment],
        names: &mut Names,
    ) {
        let Some(time) = segments.first().map(|one| one.time.0) else {
            return;
        };
        let Some(image) = self.image(dev, time, names) else {
            return;
        };
        for one in segments {
            let Some((offset, bytes)) = one.offset.zip(one.bytes) else {
                continue;
            };
            let (at, pages) = image.pages((sector * 512).saturating_add(offset), bytes);
            let kept = self.of(operation);
            match one.owner {
                Some(task) => {
                    let owner = Owner { task, time };
                    kept.dirty(image.dev, image.inode, at, pages, owner);
                }
                None => drop(kept.take(image.dev, image.inode, at, pages)),
            }
        }
    }

    /// A request has ended. Of a read of a loop device nothing follows: its file's page cache may have had all of it.
    pub fn ended(&mut self, event: &Event<'_>) {
        let asked = event.dev("dev").and_then(|dev| self.images.get(&dev));
        let Some(&(_, Some(image))) = asked else {
            return;
        };
        let place = event.place("sector").zip(event.place("nr_sector"));
        let Some((sector, sectors)) = place else {
            return;
        };
        let rwbs = Rwbs::parse(&event.text("rwbs").unwrap_or_default());
        if rwbs.operation == Operation::READ && sectors > 0 {
            let (at, pages) = image.pages(sector * 512, sectors * 512);
            self.read.take(image.dev, image.inode, at, pages);
        }
    }

    /// What a worker sends of a file that is behind a device has the owners of what was sent there.
    pub fn owned(
        &mut self,
        operation: Operation,
        segments: Vec<Segment>,
        names: &Names,
    ) -> Vec<Segment> {
        if !self.images.values().any(|(_, image)| image.is_some()) {
            return segments;
        }
        let mut found = Vec::with_capacity(segments.len());
        for one in segments {
            let workers = one.owner.is_none_or(|owner| names.is_kernel(owner));
            let behind = one.file.and_then(|file| names.inode(file));
            let place = (one.index, one.offset, one.bytes);
            let ((Some(dev), Some(inode)), (Some(index), Some(offset), Some(bytes)), true) =
                (behind.unzip(), place, workers)
            else {
                found.push(one);
                continue;
            };
            let pages = bytes.div_ceil(PAGE_BYTES);
            let mut at = 0;
            for (count, owner) in self.of(operation).take(dev, inode, index, pages) {
                let end = ((at + count) * PAGE_BYTES).min(bytes);
                found.push(Segment {
                    offset: Some(offset.saturating_add(at * PAGE_BYTES)),
                    bytes: Some(end - at * PAGE_BYTES),
                    index: Some(index + at),
                    owner: owner.map(|owner| owner.task).or(one.owner),
                    ..one.clone()
                });
                at += count;
            }
        }
        found
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        *self = Loops::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::event::WideEvent;
    use crate::join::names::{FileFacts, Lookup, TaskFacts, Volume};
    use crate::join::Nothing;
    use fasttrack_trace_log::Time;

    const LOOP: u64 = 7 << 20;
    const DISK: u64 = 8 << 20;
    const INODE: u64 = 77;
    const WORKER: u64 = 50;

    /// An image of which the device leaves out the first four pages.
    struct Image4;

    impl Lookup for Image4 {
        fn task(&mut self, pid: u64) -> Option<TaskFacts> {
            Some(TaskFacts {
                kernel: pid == WORKER,
                ..TaskFacts::default()
            })
        }
        fn file(&mut self, _: u64, _: u64, _: Option<u64>) -> Option<FileFacts> {
            Some(FileFacts::default())
        }
        fn volume(&mut self, dev: u64) -> Volume {
            Nothing.volume(dev)
        }
        fn image(&mut self, dev: u64) -> Option<Image> {
            (dev == LOOP).then_some(Image {
                dev: DISK,
                inode: INODE,
                first: 4,
            })
        }
    }

    struct Seen {
        loops: Loops,
        names: Names,
        worker: u64,
        file: u64,
    }

    impl Seen {
        fn new() -> Seen {
            let mut names = Names::new(Box::new(Image4), 1);
            let worker = names.task(WORKER, 0);
            let file = names.file(DISK, INODE, 0).expect("a file");
            Seen {
                loops: Loops::default(),
                names,
                worker,
                file,
            }
        }

        fn sent(
            &mut self,
            operation: Operation,
            sector: u64,
            owner: impl Into<Option<u64>>,
            bytes: u64,
        ) {
            let segment = Segment {
                time: Time(5),
                owner: owner.into(),
                offset: Some(0),
                bytes: Some(bytes),
                ..Segment::default()
            };
            let names = &mut self.names;
            self.loops
                .sent((LOOP, operation), sector, &[segment], names);
        }

        /// Offset, bytes, index and owner of each part.
        fn owned(
            &mut self,
            operation: Operation,
            owner: u64,
            index: u64,
            bytes: u64,
        ) -> Vec<[u64; 4]> {
            let segment = Segment {
                file: Some(self.file),
                owner: Some(owner),
                index: Some(index),
                offset: Some(8192),
                bytes: Some(bytes),
                ..Segment::default()
            };
            let found = self.loops.owned(operation, vec![segment], &self.names);
            let numbers = |one: Segment| {
                [one.offset, one.bytes, one.index, one.owner].map(|one| one.unwrap_or(0))
            };
            found.into_iter().map(numbers).collect()
        }
    }

    #[test]
    fn a_worker_s_blocks_are_who_has_sent_them() {
        let mut seen = Seen::new();
        let worker = seen.worker;
        seen.sent(Operation::WRITE, 0, 101, 8192);
        seen.sent(Operation::WRITE, 16, 103, 4096);
        seen.sent(Operation::READ, 0, 105, 4096);
        let expected = [
            [8192, 8192, 4, 101],
            [16384, 4096, 6, 103],
            [20480, 4096, 7, worker],
        ];
        assert_eq!(seen.owned(Operation::WRITE, worker, 4, 16384), expected);
        // Once. And another's own blocks stay its own.
        let once = [[8192, 4096, 4, worker]];
        assert_eq!(seen.owned(Operation::WRITE, worker, 4, 4096), once);
        assert_eq!(
            seen.owned(Operation::READ, 201, 4, 4096),
            [[8192, 4096, 4, 201]]
        );
        assert_eq!(
            seen.owned(Operation::READ, worker, 4, 4096),
            [[8192, 4096, 4, 105]]
        );
    }

    #[test]
    fn what_names_nobody_ends_what_was_there() {
        let mut seen = Seen::new();
        let worker = seen.worker;
        seen.sent(Operation::WRITE, 0, 101, 8192);
        seen.sent(Operation::WRITE, 8, None, 4096);
        let expected = [[8192, 4096, 4, 101], [12288, 4096, 5, worker]];
        assert_eq!(seen.owned(Operation::WRITE, worker, 4, 8192), expected);
    }

    /// It was in the page cache: what is read ahead there later is not who has read it before.
    #[test]
    fn a_read_that_has_ended_leaves_nothing() {
        let read = u64::from(b'R');
        let fields = [
            ("dev", LOOP),
            ("sector", 8),
            ("nr_sector", 8),
            ("rwbs", read),
        ];
        let event = WideEvent::new("block_rq_complete", &fields);
        let mut seen = Seen::new();
        let worker = seen.worker;
        seen.sent(Operation::READ, 0, 101, 8192);
        seen.loops.ended(&event.at(9));
        let expected = [[8192, 4096, 4, 101], [12288, 4096, 5, worker]];
        assert_eq!(seen.owned(Operation::READ, worker, 4, 8192), expected);
    }

    #[test]
    fn other_devices_and_what_was_lost_change_nothing() {
        let mut seen = Seen::new();
        let worker = seen.worker;
        seen.sent(Operation::WRITE, 0, 101, 4096);
        seen.loops.forget();
        let before = [[8192, 4096, 4, worker]];
        assert_eq!(seen.owned(Operation::WRITE, worker, 4, 4096), before);
        let none: [Segment; 0] = [];
        seen.loops
            .sent((DISK, Operation::WRITE), 0, &none, &mut seen.names);
        assert!(seen.loops.images.is_empty());
    }
}
