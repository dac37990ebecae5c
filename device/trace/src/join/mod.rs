// SPDX-License-Identifier: GPL-2.0-only
//! Makes records of events: which file and which task a bio's blocks belong to.
//!
//! Events arrive in the order of time. Pages are owned by whom dirtied them, blocks by the file that the file system
//! mapped them for; a bio's segments are what both say of its blocks. What neither says is left out, never guessed.

mod blocks;
mod bpf;
mod carried;
mod clones;
mod event;
mod fasttrack;
mod journal;
mod loops;
mod names;
mod origin;
mod pages;
mod requests;
mod role;
mod rwbs;
mod segments;
mod sqlite;

pub use blocks::{Blocks, Mapped};
pub use event::Event;
#[cfg(test)]
pub(crate) use names::Nothing;
pub use names::{shown_id, FileFacts, Image, Lookup, Names, TaskFacts, Volume};
pub use pages::{Owner, Pages};
pub use rwbs::{Flags, Rwbs};
pub use segments::{dev_of, PAGE_BYTES};

#[cfg(test)]
use crate::tracefs::EventFormat;
use carried::Carried;
use clones::Clones;
use fasttrack_trace_log::{Call, CallKind, FileEvent, Own, Record, Time};
use journal::Journal;
use loops::Loops;
use requests::Requests;
use sqlite::Sqlite;
use std::collections::HashMap;

/// Events that the join understands, `SYSTEM/NAME`.
pub const EVENTS: [&str; 35] = [
    "block/block_bio_queue",
    "block/block_bio_remap",
    "block/block_rq_insert",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
    "writeback/writeback_dirty_folio",
    "writeback/balance_dirty_pages",
    "ext4/ext4_write_begin",
    "ext4/ext4_da_write_begin",
    "ext4/ext4_es_lookup_extent_exit",
    "ext4/ext4_ext_map_blocks_exit",
    "ext4/ext4_ind_map_blocks_exit",
    "ext4/ext4_free_blocks",
    "ext4/ext4_sync_file_enter",
    "ext4/ext4_sync_file_exit",
    "ext4/ext4_evict_inode",
    "f2fs/f2fs_write_begin",
    "f2fs/f2fs_map_blocks",
    "f2fs/f2fs_submit_page_write",
    "f2fs/f2fs_submit_page_bio",
    "f2fs/f2fs_sync_file_enter",
    "f2fs/f2fs_sync_file_exit",
    "f2fs/f2fs_evict_inode",
    "f2fs/f2fs_write_checkpoint",
    "jbd2/jbd2_handle_stats",
    "jbd2/jbd2_start_commit",
    "jbd2/jbd2_run_stats",
    "task/task_newtask",
    "task/task_rename",
    "fasttrack/fasttrack_bio",
    "fasttrack/fasttrack_hold",
    "fasttrack/fasttrack_promote",
    "fasttrack/fasttrack_pause",
    "fasttrack/fasttrack_protect",
];

/// Events of the patched kernel that has joined already.
pub const ORIGIN: [&str; 9] = [
    "io_origin/io_session",
    "io_origin/io_task",
    "io_origin/io_file",
    "io_origin/io_bio",
    "io_origin/io_segment",
    "io_origin/io_transaction",
    "io_origin/io_share",
    "io_origin/io_call",
    "io_origin/io_wait",
];

/// Events that those replace.
pub const REPLACED: [&str; 22] = [
    "block/block_bio_queue",
    "writeback/writeback_dirty_folio",
    "writeback/balance_dirty_pages",
    "ext4/ext4_write_begin",
    "ext4/ext4_da_write_begin",
    "ext4/ext4_es_lookup_extent_exit",
    "ext4/ext4_ext_map_blocks_exit",
    "ext4/ext4_ind_map_blocks_exit",
    "ext4/ext4_free_blocks",
    "ext4/ext4_sync_file_enter",
    "ext4/ext4_sync_file_exit",
    "f2fs/f2fs_sync_file_enter",
    "f2fs/f2fs_sync_file_exit",
    "f2fs/f2fs_write_begin",
    "f2fs/f2fs_map_blocks",
    "f2fs/f2fs_submit_page_write",
    "f2fs/f2fs_submit_page_bio",
    "f2fs/f2fs_write_checkpoint",
    "jbd2/jbd2_handle_stats",
    "jbd2/jbd2_start_commit",
    "jbd2/jbd2_run_stats",
    "fasttrack/fasttrack_pause",
];

/// Events that histograms of the patched kernel replace, for sums.
pub const REPLACED_BY_HISTOGRAMS: [&str; 6] = [
    "io_origin/io_bio",
    "io_origin/io_segment",
    "io_origin/io_call",
    "block/block_bio_remap",
    "block/block_rq_insert",
    "fasttrack/fasttrack_bio",
];

/// Events that the BPF programs replace.
pub const REPLACED_BY_BPF: [&str; 12] = [
    "block/block_bio_queue",
    "writeback/writeback_dirty_folio",
    "ext4/ext4_write_begin",
    "ext4/ext4_da_write_begin",
    "ext4/ext4_es_lookup_extent_exit",
    "ext4/ext4_ext_map_blocks_exit",
    "ext4/ext4_ind_map_blocks_exit",
    "ext4/ext4_free_blocks",
    "f2fs/f2fs_write_begin",
    "f2fs/f2fs_map_blocks",
    "f2fs/f2fs_submit_page_write",
    "f2fs/f2fs_submit_page_bio",
];

/// Events that sums of the BPF programs replace, besides those: nobody asks for the end of files that have no records.
pub const REPLACED_BY_SUMS: [&str; 11] = [
    "block/block_bio_remap",
    "block/block_rq_insert",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
    "ext4/ext4_sync_file_enter",
    "ext4/ext4_sync_file_exit",
    "ext4/ext4_evict_inode",
    "f2fs/f2fs_sync_file_enter",
    "f2fs/f2fs_sync_file_exit",
    "f2fs/f2fs_evict_inode",
];

/// What bios say besides their own event.
#[derive(Debug, Clone, Copy)]
struct Origin {
    class: u64,
    cause: u64,
    app_uid: i64,
}

/// The state between events.
pub struct Joiner {
    /// Tasks and files.
    pub names: Names,
    /// What is left out because it is the collector's own.
    pub own: Own,
    blocks: Blocks,
    pages: Pages,
    requests: Requests,
    carried: Carried,
    clones: Clones,
    loops: Loops,
    journal: Journal,
    calls: HashMap<u64, (u64, Option<bool>)>,
    origins: HashMap<(u64, u64), Origin>,
    begun: HashMap<u64, origin::Begun>,
    /// By processor: runs of the bio that comes next.
    runs: HashMap<u64, Vec<bpf::Run>>,
    bios: u64,
    /// Where all calls are told of.
    sqlite: Option<Sqlite>,
}

/// More bios than this do not wait for their event: it was lost.
const ORIGINS_KEPT: usize = 4096;

impl Joiner {
    /// A join that asks `lookup` for what events do not say, and leaves out the process `own`.
    pub fn new(lookup: Box<dyn Lookup>, own: u64) -> Joiner {
        Joiner {
            names: Names::new(lookup, own),
            own: Own::default(),
            blocks: Blocks::default(),
            pages: Pages::default(),
            requests: Requests::default(),
            carried: Carried::default(),
            clones: Clones::default(),
            loops: Loops::default(),
            journal: Journal::default(),
            calls: HashMap::new(),
            origins: HashMap::new(),
            begun: HashMap::new(),
            runs: HashMap::new(),
            bios: 0,
            sqlite: None,
        }
    }

    /// Derives transactions of SQLite, for which all calls must be told of.
    pub fn with_sqlite(self) -> Joiner {
        Joiner {
            sqlite: Some(Sqlite::default()),
            ..self
        }
    }

    /// Adds an event's records to `out`.
    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let name = event.format.name.as_str();
        if let Some(rest) = name.strip_prefix("io_") {
            self.io_origin(rest, event, out);
        } else if let Some(rest) = name.strip_prefix("block_") {
            self.block(rest, event, out);
        } else if let Some(rest) = name.strip_prefix("bpf_") {
            self.bpf(rest, event, out);
        } else if let Some(rest) = name.strip_prefix("f2fs_") {
            self.f2fs(rest, event, out);
        } else if let Some(rest) = name.strip_prefix("ext4_") {
            self.ext4(rest, event, out);
        } else if name.starts_with("jbd2_") {
            self.journal.event(name, event, &mut self.names, out);
        } else if let Some(rest) = name.strip_prefix("fasttrack_") {
            self.fasttrack(rest, event, out);
        } else {
            self.other(name, event, out);
        }
    }

    /// What it makes of events: of each its time, processor, description and bytes.
    #[cfg(test)]
    fn joined<'a>(
        &mut self,
        events: impl IntoIterator<Item = (u64, u64, &'a EventFormat, &'a [u8])>,
    ) -> Vec<Record> {
        let mut out = Vec::new();
        for (time, cpu, format, data) in events {
            let event = Event {
                time,
                cpu,
                format,
                data,
            };
            self.event(&event, &mut out);
        }
        out
    }

    /// Events were lost: what was kept of them may be wrong. Adds bios whose segments were among them.
    pub fn forget(&mut self, out: &mut Vec<Record>) {
        self.blocks = Blocks::default();
        self.pages = Pages::default();
        self.requests.forget();
        self.carried.forget();
        self.clones.forget();
        self.loops.forget();
        self.calls.clear();
        self.origins.clear();
        self.runs.clear();
        if let Some(sqlite) = &mut self.sqlite {
            sqlite.forget();
        }
        self.end(out);
    }

    /// No more events come. Adds bios whose segments have not.
    pub fn end(&mut self, out: &mut Vec<Record>) {
        let mut begun: Vec<_> = self.begun.drain().collect();
        begun.sort_by_key(|(cpu, _)| *cpu);
        for (_, bio) in begun {
            self.give(bio, out);
        }
    }

    /// Adds transactions of SQLite that have ended, and of which nothing more came.
    pub fn due(&mut self, now: u64, end: bool, out: &mut Vec<Record>) {
        if let Some(sqlite) = &mut self.sqlite {
            sqlite.due(now, end, out);
        }
    }

    /// What the collector itself did since the last time, if anything.
    pub fn take_own(&mut self, time: u64) -> Option<Record> {
        let own = std::mem::take(&mut self.own);
        let any = own.bios.is_some() || own.events.is_some();
        let time = Time(time);
        any.then(|| Record::from(Own { time, ..own }))
    }

    /// Whether an event is the collector's own; then it is counted.
    fn left_out_as_own(&mut self, task: u64) -> bool {
        let own = self.names.is_own(task);
        if own {
            self.own.events = Some(self.own.events.unwrap_or(0) + 1);
        }
        own
    }

    fn block(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "bio_queue" => self.bio(event, out),
            "bio_remap" => self.remapped(event),
            "rq_insert" => self.requests.insert(event),
            "rq_issue" => self.requests.issue(event),
            "rq_requeue" => self.requests.requeue(event),
            "rq_complete" => {
                self.requests.complete(event, &mut self.carried, out);
                self.loops.ended(event);
            }
            _ => {}
        }
    }

    fn ext4(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "write_begin" | "da_write_begin" => self.writes(event),
            "es_lookup_extent_exit" => self.ext4_lookup(event),
            "ext_map_blocks_exit" | "ind_map_blocks_exit" => self.ext4_map(event),
            "free_blocks" => {
                let place = (event.dev("dev"), event.place("block"), event.place("count"));
                if let (Some(dev), Some(block), Some(count)) = place {
                    let volume = self.names.volume(dev);
                    self.blocks.free(
                        volume.disk,
                        volume.sector(block),
                        count * volume.block_sectors,
                    );
                }
            }
            "sync_file_enter" => {
                let datasync = event.number("datasync").map(|flag| flag != 0);
                self.calls.insert(event.pid(), (event.time, datasync));
            }
            "sync_file_exit" => self.sync_ended(event, None, out),
            "evict_inode" => self.evicted(event, out),
            _ => {}
        }
    }

    fn f2fs(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "write_begin" => self.writes(event),
            "map_blocks" => self.f2fs_map(event),
            "submit_page_write" | "submit_page_bio" => self.f2fs_page(event),
            "sync_file_enter" => {
                self.calls.insert(event.pid(), (event.time, None));
            }
            "sync_file_exit" => {
                let datasync = event.number("datasync").map(|flag| flag != 0);
                self.sync_ended(event, datasync, out);
            }
            "evict_inode" => self.evicted(event, out),
            "write_checkpoint" => self.journal.checkpoint(event, &mut self.names, out),
            _ => {}
        }
    }

    fn other(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "writeback_dirty_folio" => self.dirtied(event),
            "task_newtask" => self.names.new_task(event),
            "task_rename" => self.names.renamed(event),
            "balance_dirty_pages" => self.throttled(event, out),
            _ => {}
        }
    }

    fn sync_ended(&mut self, event: &Event<'_>, datasync: Option<bool>, out: &mut Vec<Record>) {
        let Some((began, said)) = self.calls.remove(&event.pid()) else {
            return;
        };
        let task = self.names.task(event.pid(), event.time);
        if self.left_out_as_own(task) {
            return;
        }
        let kind = match datasync.or(said) {
            Some(true) => CallKind::FDATASYNC,
            _ => CallKind::FSYNC,
        };
        let inode = event.dev("dev").zip(event.number("ino"));
        let file = inode.and_then(|(dev, inode)| self.names.file(dev, inode, event.time));
        out.push(Record::from(Call {
            time: Time(event.time),
            task: Some(task),
            kind: Some(kind),
            file,
            duration_ns: Some(event.time.saturating_sub(began)),
            result: event.signed("ret"),
            sqlite: file.map(|file| self.names.is_sqlite(file)),
            thread: event.thread(),
            ..Call::default()
        }));
    }

    /// A file's end that comes later, and has happened: its inode's number may be another file's now.
    pub fn ahead(&mut self, event: &Event<'_>) {
        if let (Some(dev), Some(inode), Some(0)) =
            (event.dev("dev"), event.number("ino"), event.number("nlink"))
        {
            self.names.ends(dev, inode, event.time);
        }
    }

    fn evicted(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let (Some(dev), Some(inode)) = (event.dev("dev"), event.number("ino")) else {
            return;
        };
        let volume = self.names.volume(dev);
        self.pages.forget(volume.disk, inode);
        if event.number("nlink") == Some(0) {
            let size = event.number("size");
            if let Some(mut gone) = self.names.unlinked(dev, inode, event.time) {
                gone.time = Time(event.time);
                gone.event = Some(FileEvent::UNLINK);
                gone.bytes = size.or(gone.bytes);
                out.push(Record::from(gone));
            }
        }
    }
}
