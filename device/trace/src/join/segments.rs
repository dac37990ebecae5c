// SPDX-License-Identifier: GPL-2.0-only
//! Bios and their segments, and the maps from which they are made.

use super::blocks::Mapped;
use super::event::Event;
use super::pages::Owner;
use super::rwbs::Rwbs;
use super::Joiner;
use fasttrack_trace_log::{Bio, BlockType, Cause, Class, Operation, Record, Segment, Time};

/// Sectors of a page.
pub(super) const PAGE_SECTORS: u64 = 8;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = PAGE_SECTORS * 512;

/// `status` of an extent of ext4: written or unwritten. Others have no place on the disk.
const ON_DISK: u64 = 3;

/// ext4's inode of its journal, which it maps as a file's.
const EXT4_JOURNAL: u64 = 8;

/// f2fs's addresses of what has no place yet.
const NEW_ADDR: u64 = 0xffff_ffff;

/// A device from `MAJOR:MINOR`, as the names of backing devices are.
pub fn dev_of(name: &str) -> Option<u64> {
    let (major, minor) = name.split_once(':')?;
    Some(major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?)
}

/// What a bio is, for its segments.
pub(super) struct Sent {
    time: u64,
    bio: u64,
    dev: u64,
    disk: u64,
    rwbs: Rwbs,
    carrier: u64,
    /// It carries an app's own pages, not the page cache's.
    pub(super) direct: bool,
}

/// Sectors, and what they hold if that is known.
type Places = Vec<(u64, Option<Mapped>)>;

impl Joiner {
    pub(super) fn dirtied(&mut self, event: &Event<'_>) {
        let disk = event.text("name").and_then(|name| dev_of(&name));
        let page = (disk, event.number("ino"), event.place("index"));
        if let (Some(disk), Some(inode), Some(index)) = page {
            let task = self.names.task(event.pid(), event.time);
            let owner = Owner {
                task,
                time: event.time,
            };
            self.dirty(disk, inode, index, 1, owner);
        }
    }

    /// Whoever writes back may make a page dirty again: it stays its owner's.
    pub(super) fn dirty(&mut self, disk: u64, inode: u64, index: u64, pages: u64, owner: Owner) {
        let mut at = index;
        let again = match self.names.is_kernel(owner.task) {
            true => self.pages.take(disk, inode, index, pages),
            false => vec![(pages, None)],
        };
        for (count, before) in again {
            self.pages
                .dirty(disk, inode, at, count, before.unwrap_or(owner));
            at += count;
        }
    }

    /// Somebody writes to pages of a file. Those that are dirty already are not dirtied again.
    pub(super) fn writes(&mut self, event: &Event<'_>) {
        let place = event.place("pos").zip(event.place("len"));
        let file = event.dev("dev").zip(event.number("ino"));
        let (Some((dev, inode)), Some((at, bytes))) = (file, place) else {
            return;
        };
        let disk = self.names.volume(dev).disk;
        let first = at / PAGE_BYTES;
        let pages = (at + bytes).div_ceil(PAGE_BYTES) - first;
        let task = self.names.task(event.pid(), event.time);
        let time = event.time;
        self.pages
            .write_over(disk, inode, first, pages, Owner { task, time });
    }

    pub(super) fn ext4_lookup(&mut self, event: &Event<'_>) {
        let found = event.number("found").unwrap_or(0) != 0;
        if found && event.number("status").unwrap_or(0) & ON_DISK != 0 {
            self.ext4_run(event, event.place("len"));
        }
    }

    pub(super) fn ext4_map(&mut self, event: &Event<'_>) {
        let blocks = event.place("ret").filter(|blocks| *blocks > 0);
        self.ext4_run(event, blocks);
    }

    fn ext4_run(&mut self, event: &Event<'_>, blocks: Option<u64>) {
        let at = event.place("pblk").filter(|block| *block != 0);
        let place = (event.dev("dev"), event.number("ino"), event.place("lblk"));
        if let ((Some(dev), Some(inode), Some(first)), Some(at), Some(count)) = (place, at, blocks)
        {
            let run = match inode {
                EXT4_JOURNAL => self.mapped(dev, 0, 0, BlockType::JOURNAL),
                inode => self.mapped(dev, inode, first, BlockType::DATA),
            };
            self.map(dev, at, count, run);
        }
    }

    pub(super) fn f2fs_map(&mut self, event: &Event<'_>) {
        let at = event
            .place("m_pblk")
            .filter(|block| *block != 0 && *block != NEW_ADDR);
        let place = (event.dev("dev"), event.number("ino"), event.place("m_lblk"));
        let count = event.place("m_len");
        if let ((Some(dev), Some(inode), Some(first)), Some(at), Some(count)) = (place, at, count) {
            if event.signed("ret") == Some(0) {
                let run = self.mapped(dev, inode, first, BlockType::DATA);
                self.map(dev, at, count, run);
            }
        }
    }

    /// A page of f2fs and its place, exactly.
    pub(super) fn f2fs_page(&mut self, event: &Event<'_>) {
        let at = event
            .place("new_blkaddr")
            .filter(|block| *block != 0 && *block != NEW_ADDR);
        let (Some(dev), Some(at)) = (event.dev("dev"), at) else {
            return;
        };
        // enum page_type.
        let block_type = match event.number("type") {
            Some(0) => BlockType::DATA,
            Some(1) => BlockType::NODE,
            Some(2 | 3) => BlockType::CHECKPOINT,
            _ => BlockType::DATA,
        };
        // Nodes and checkpoints are in pages of inodes that are no files.
        let data = block_type == BlockType::DATA;
        let inode = event.number("ino").filter(|_| data).unwrap_or(0);
        let index = event.place("index").unwrap_or(0);
        let run = self.mapped(dev, inode, index, block_type);
        self.map(dev, at, 1, run);
    }

    /// A run in pages of a file, from blocks of it.
    fn mapped(&mut self, dev: u64, inode: u64, block: u64, block_type: BlockType) -> Mapped {
        let sectors = self.names.volume(dev).block_sectors;
        let index = block * sectors / PAGE_SECTORS;
        Mapped {
            dev,
            inode,
            index,
            block_type,
        }
    }

    fn map(&mut self, dev: u64, block: u64, count: u64, mapped: Mapped) {
        let volume = self.names.volume(dev);
        let sectors = count * volume.block_sectors;
        self.blocks
            .map(volume.disk, volume.sector(block), sectors, mapped);
    }

    pub(super) fn bio(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let Some(dev) = event.dev("dev") else {
            return;
        };
        let rwbs = Rwbs::parse(&event.text("rwbs").unwrap_or_default());
        let carrier = self
            .names
            .task_named(event.pid(), event.text("comm"), event.time);
        let sent = self.sent(event, dev, rwbs, carrier);
        let sectors = event.place("nr_sector").unwrap_or(0);
        self.give_bio(event, &sent, event.place("sector"), sectors, None, out);
    }

    /// A bio goes to another place, before it is queued there.
    pub(super) fn remapped(&mut self, event: &Event<'_>) {
        let to = event.dev("dev").zip(event.place("sector"));
        let from = event.dev("old_dev").zip(event.place("old_sector"));
        if let (Some(to), Some((above, at))) = (to, from) {
            // A bio's device is told as its disk, but the one that a partition's begin is added for as the partition.
            let disk = self.names.volume(above).disk;
            self.clones.remapped(to, (disk, at));
        }
    }

    /// A bio's segments: those of the one above, where it was made of another, or what a loop device was sent. They are
    /// kept if others are made of it.
    pub(super) fn followed(
        &mut self,
        of: (Time, Option<u64>),
        (dev, operation): (u64, Operation),
        (sector, sectors): (u64, u64),
        segments: Vec<Segment>,
    ) -> Vec<Segment> {
        let origin = self.clones.origin((dev, sector));
        let above =
            origin.and_then(|(disk, at)| self.clones.part((disk, operation.0), (at, sectors)));
        let (time, bio) = of;
        let of_this = |one| Segment { time, bio, ..one };
        let segments = match above {
            Some(above) => above.into_iter().map(of_this).collect(),
            None => self.loops.owned(operation, segments, &self.names),
        };
        self.loops
            .sent((dev, operation), sector, &segments, &mut self.names);
        let volume = self.names.volume(dev);
        if volume.stacked && !segments.is_empty() {
            let (of, place) = ((volume.disk, operation.0), (sector, sectors));
            self.clones.sent(of, place, &segments);
        }
        segments
    }

    /// A bio with its number.
    pub(super) fn sent(&mut self, event: &Event<'_>, dev: u64, rwbs: Rwbs, carrier: u64) -> Sent {
        self.bios += 1;
        Sent {
            time: event.time,
            bio: self.bios,
            dev,
            disk: self.names.volume(dev).disk,
            rwbs,
            carrier,
            direct: false,
        }
    }

    /// The records of a bio; `places` are what its pages say, otherwise what was mapped is looked up.
    pub(super) fn give_bio(
        &mut self,
        event: &Event<'_>,
        sent: &Sent,
        sector: Option<u64>,
        sectors: u64,
        places: Option<Places>,
        out: &mut Vec<Record>,
    ) {
        let (dev, rwbs, carrier) = (sent.dev, sent.rwbs, sent.carrier);
        let holds = matches!(rwbs.operation, Operation::READ | Operation::WRITE) && sectors > 0;
        let segments = match sector.filter(|_| holds) {
            Some(sector) => {
                let places =
                    places.unwrap_or_else(|| self.blocks.look_up(sent.disk, sector, sectors));
                let segments = self.segments(sent, sector, places);
                let of = (Time(event.time), Some(sent.bio));
                self.followed(of, (dev, rwbs.operation), (sector, sectors), segments)
            }
            None => Vec::new(),
        };
        let origin = sector.and_then(|sector| self.origins.remove(&(dev, sector)));
        let left_out = self.left_out(carrier, rwbs.operation, &segments, sectors * 512);
        if let Some(sector) = sector {
            let number = (!left_out).then_some(sent.bio);
            self.carried.queued(
                (sent.disk, rwbs.operation.0),
                (sector, sectors),
                event.time,
                number,
            );
        }
        if left_out {
            return;
        }
        let flags = rwbs.flags;
        out.push(Record::from(Bio {
            time: Time(event.time),
            bio: Some(sent.bio),
            dev: Some(dev),
            operation: Some(rwbs.operation),
            sector: sector.filter(|_| sectors > 0),
            bytes: Some(sectors * 512),
            sync: Some(flags.sync),
            fua: Some(flags.fua),
            preflush: Some(flags.preflush),
            meta: Some(flags.meta),
            read_ahead: Some(flags.read_ahead),
            carrier: Some(carrier),
            class: origin.map(|origin| Class(origin.class)),
            cause: origin.map(|origin| Cause(origin.cause)),
            app_uid: origin.map(|origin| origin.app_uid),
            transaction: self.journal.committing(carrier),
            thread: event.thread(),
            ..Bio::default()
        }));
        out.extend(segments.into_iter().map(Record::from));
    }

    /// Counts a bio that is the collector's own: all that it holds is.
    pub(super) fn left_out(
        &mut self,
        carrier: u64,
        operation: Operation,
        segments: &[Segment],
        bytes: u64,
    ) -> bool {
        let names = &self.names;
        let own = match segments {
            [] => names.is_own(carrier),
            some => some
                .iter()
                .all(|segment| segment.owner.is_some_and(|owner| names.is_own(owner))),
        };
        if own {
            let add = |sum: &mut Option<u64>, more| *sum = Some(sum.unwrap_or(0) + more);
            add(&mut self.own.bios, 1);
            match operation {
                Operation::READ => add(&mut self.own.read_bytes, bytes),
                _ => add(&mut self.own.written_bytes, bytes),
            }
        }
        own
    }

    fn segments(&mut self, sent: &Sent, sector: u64, places: Places) -> Vec<Segment> {
        let mut found = Vec::new();
        let mut at = sector;
        for (length, mapped) in places {
            match mapped {
                Some(mapped) => {
                    self.known(sent, at, at - sector, length, mapped, &mut found);
                }
                None => self.unmapped(sent, at, at - sector, length, &mut found),
            }
            at += length;
        }
        found
    }

    /// Blocks of a file, or of a directory.
    fn known(
        &mut self,
        sent: &Sent,
        sector: u64,
        offset: u64,
        sectors: u64,
        run: Mapped,
        out: &mut Vec<Segment>,
    ) {
        let file = match run.inode {
            0 => None,
            inode => self.names.file(run.dev, inode, sent.time),
        };
        let pages = sectors.div_ceil(PAGE_SECTORS);
        let directory = file.is_some_and(|file| self.names.is_directory(file));
        let block_type = match directory {
            true => BlockType::METADATA,
            false => run.block_type,
        };
        let data = block_type == BlockType::DATA;
        let owners = match sent.rwbs.operation {
            Operation::WRITE if data || directory => {
                let disk = self.names.volume(run.dev).disk;
                let mut dirtied = self.pages.take(disk, run.inode, run.index, pages);
                // ext4 has them in the disk's own pages, f2fs in pages of the directory.
                if directory && dirtied.iter().all(|(_, owner)| owner.is_none()) {
                    let first = sector / PAGE_SECTORS;
                    dirtied = self.pages.take(sent.disk, sent.disk, first, pages);
                }
                match sent.direct {
                    true => vec![(pages, self.sender(sent))],
                    false => dirtied,
                }
            }
            Operation::READ => vec![(pages, self.sender(sent))],
            _ => vec![(pages, None)],
        };
        let (mut page, mut at, end) = (0, offset, offset + sectors);
        for (count, owner) in owners {
            let until = end.min(at + count * PAGE_SECTORS);
            out.push(Segment {
                block_type: Some(block_type),
                file,
                index: data.then_some(run.index + page),
                ..self.segment(sent, at, until - at, owner)
            });
            (page, at) = (page + count, until);
        }
    }

    /// Blocks of which no file is known: metadata in the disk's own pages, the journal, or nothing that is known.
    fn unmapped(
        &mut self,
        sent: &Sent,
        sector: u64,
        offset: u64,
        sectors: u64,
        out: &mut Vec<Segment>,
    ) {
        let write = sent.rwbs.operation == Operation::WRITE;
        let pages = sectors.div_ceil(PAGE_SECTORS);
        // The inode of a disk's own pages has the disk's number.
        let owners = match write {
            true => self
                .pages
                .take(sent.disk, sent.disk, sector / PAGE_SECTORS, pages),
            false => vec![(pages, self.sender(sent))],
        };
        let (mut at, end) = (offset, offset + sectors);
        for (count, owner) in owners {
            let until = end.min(at + count * PAGE_SECTORS);
            let block_type = match owner {
                Some(_) if write => BlockType::METADATA,
                _ if sent.rwbs.flags.meta && !write => BlockType::METADATA,
                _ if write && self.names.is_journal(sent.carrier) => BlockType::JOURNAL,
                _ if sent.rwbs.flags.meta => BlockType::METADATA,
                _ => BlockType::UNKNOWN,
            };
            out.push(Segment {
                block_type: Some(block_type),
                ..self.segment(sent, at, until - at, owner)
            });
            at = until;
        }
    }

    fn segment(&self, sent: &Sent, offset: u64, sectors: u64, owner: Option<Owner>) -> Segment {
        let write = sent.rwbs.operation == Operation::WRITE;
        Segment {
            time: Time(sent.time),
            bio: Some(sent.bio),
            offset: Some(offset * 512),
            bytes: Some(sectors * 512),
            owner: owner.map(|owner| owner.task),
            dirtied: owner
                .filter(|_| write && !sent.direct)
                .map(|owner| Time(owner.time)),
            ..Segment::default()
        }
    }

    /// Who reads, or writes directly: the task that sends it, unless it is the kernel's.
    fn sender(&self, sent: &Sent) -> Option<Owner> {
        let (task, time) = (sent.carrier, sent.time);
        (!self.names.is_kernel(task)).then_some(Owner { task, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::event::WideEvent;
    use crate::join::names::{FileFacts, Lookup, Volume};
    use crate::join::Nothing;
    use fasttrack_trace_log::{FileType, Task};

    /// Without BPF, too: a page that another app writes over while it is dirty is that app's.
    #[test]
    fn who_writes_over_a_dirty_page_owns_it() {
        let (dev, inode) = (8 << 20, 12);
        let fields = [
            ("common_pid", 4),
            ("dev", dev),
            ("ino", inode),
            ("pos", 4096 + 100),
            ("len", 4096),
        ];
        let begin = WideEvent::new("ext4_da_write_begin", &fields);
        let mut joiner = Joiner::new(Box::new(Nothing), 1);
        let task = joiner.names.task(3, 1);
        for index in 0..3 {
            let owner = super::Owner { task, time: 1 };
            joiner.pages.dirty(dev, inode, index, 1, owner);
        }
        joiner.joined([(2, 0, &begin.format, begin.data.as_slice())]);
        let other = joiner.names.task(4, 2);
        let owners = [0, 1, 2, 3].map(|index| joiner.pages.owner(dev, inode, index));
        let tasks = owners.map(|owner| owner.map(|owner| owner.task));
        assert_eq!(tasks, [Some(task), Some(other), Some(other), None]);
    }

    /// Each inode is a directory.
    struct Directories;

    impl Lookup for Directories {
        fn file(&mut self, _: u64, _: u64, _: Option<u64>) -> Option<FileFacts> {
            Some(FileFacts {
                file_type: Some(FileType::DIRECTORY),
                ..FileFacts::default()
            })
        }

        fn volume(&mut self, disk: u64) -> Volume {
            Nothing.volume(disk)
        }
    }

    /// ext4 dirties them as pages of the disk, f2fs as the directory's own.
    #[test]
    fn directories_are_metadata() {
        let (dev, inode, sector) = (8 << 20, 12, 80);
        for dirtied in [(dev, sector / PAGE_SECTORS), (inode, 0)] {
            let mut joiner = Joiner::new(Box::new(Directories), 1);
            let task = joiner.names.task(3, 1);
            let owner = Owner { task, time: 1 };
            joiner.pages.dirty(dev, dirtied.0, dirtied.1, 1, owner);
            let event = WideEvent::new("block_bio_queue", &[("common_pid", 7)]);
            let sent = joiner.sent(&event.at(2), dev, Rwbs::parse("WM"), task);
            let mapped = joiner.mapped(dev, inode, 0, BlockType::DATA);
            let found = joiner.segments(&sent, sector, vec![(PAGE_SECTORS, Some(mapped))]);
            let [only] = found.as_slice() else {
                panic!("{found:?}");
            };
            assert_eq!(only.block_type, Some(BlockType::METADATA));
            assert_eq!((only.owner, only.index), (Some(task), None));
            assert_eq!(only.file, joiner.names.file(dev, inode, 3));
            assert_eq!(joiner.pages.owner(dev, dirtied.0, dirtied.1), None);
        }
    }

    /// So does a journal's thread that finds no place for a page yet.
    #[test]
    fn who_writes_back_does_not_own_what_it_dirties_again() {
        let (dev, inode) = (8 << 20, 12);
        let mut joiner = Joiner::new(Box::new(Nothing), 1);
        let app = joiner.names.task(3, 1);
        let journal = joiner.names.task_told(Task {
            pid: Some(4),
            kernel_thread: Some(true),
            ..Task::default()
        });
        joiner.dirty(dev, inode, 1, 1, Owner { task: app, time: 1 });
        let again = Owner {
            task: journal,
            time: 2,
        };
        joiner.dirty(dev, inode, 0, 3, again);
        let owners = [0, 1, 2, 3].map(|index| joiner.pages.owner(dev, inode, index));
        let tasks = owners.map(|owner| owner.map(|owner| owner.task));
        assert_eq!(tasks, [Some(journal), Some(app), Some(journal), None]);
    }
}
