// SPDX-License-Identifier: GPL-2.0-only
//! Transactions of SQLite, derived from the calls of a thread on a database and its log.
//!
//! With a rollback journal (delete, truncate, persist) a thread writes the journal and syncs it, writes the database and
//! syncs it, and ends the journal: it removes it, cuts it or zeroes its header. With a write-ahead log it appends frames
//! and syncs them; that sync is the end. So one transaction is one record, but for `synchronous=normal` with a
//! write-ahead log: only a checkpoint syncs it, by any thread, and what a thread has appended since the last one is a
//! record without a duration. `synchronous=full` is known by a checkpoint's sync after that of the commit. A transaction
//! that is rolled back before the database was written has none. One whose database is synced, and whose journal's end is
//! not seen within a second, is told without `ended`: its thread cut the journal, or was killed and has left it to be
//! rolled back. sqlite.org/atomiccommit.html and sqlite.org/wal.html
//! say what is written when.

use super::names::Names;
use super::role::Role;
use fasttrack_trace_log::{Call, CallKind, Record, SqliteMode, SqliteTransaction, Time};
use std::collections::HashMap;

/// Bytes of zero over a persistent journal's header, at its begin.
const ENDED_HEADER: u64 = 28;

/// The least bytes of a journal's header as it is first written: a sector.
const HEADER: u64 = 512;

/// Bytes of a write-ahead log's header, at its begin: it holds no frame.
const WAL_HEADER: u64 = 32;

/// One that has ended waits for the end of its journal no longer, ns.
const OVERDUE: u64 = 1_000_000_000;

/// More than these are not open: their end was lost.
const KEPT: usize = 4096;

/// A transaction that is not told of.
#[derive(Debug, Clone, Copy)]
struct Open {
    task: Option<u64>,
    mode: SqliteMode,
    began: u64,
    ended: u64,
    writes: u64,
    bytes: u64,
    syncs: u64,
    syncs_ns: u64,
    /// Writes to the database, or frames of the log.
    changes: u64,
    /// The database, or the log, is synced: it is durable.
    durable: bool,
    /// A checkpoint has synced the log: it can be several.
    several: bool,
    /// Its journal has ended, or its log is synced.
    end_seen: bool,
}

/// Transactions by thread and database.
#[derive(Debug, Default)]
pub struct Sqlite {
    open: HashMap<(u64, u64), Open>,
    roles: HashMap<u64, (u64, Role)>,
}

impl Open {
    fn begun(call: &Call, mode: SqliteMode) -> Open {
        Open {
            task: call.task,
            mode,
            began: call.time.0.saturating_sub(call.duration_ns.unwrap_or(0)),
            ended: call.time.0,
            writes: 0,
            bytes: 0,
            syncs: 0,
            syncs_ns: 0,
            changes: 0,
            durable: false,
            several: false,
            end_seen: false,
        }
    }

    /// The same, of which the end is seen.
    fn seen(self) -> Open {
        Open {
            end_seen: true,
            ..self
        }
    }

    fn wrote(&mut self, call: &Call) {
        self.writes += 1;
        self.bytes = self.bytes.saturating_add(call.bytes.unwrap_or(0));
        self.ended = call.time.0;
    }

    fn synced(&mut self, call: &Call) {
        self.syncs += 1;
        self.syncs_ns = self.syncs_ns.saturating_add(call.duration_ns.unwrap_or(0));
        self.ended = call.time.0;
    }

    fn record(&self, (thread, database): (u64, u64)) -> Record {
        Record::from(SqliteTransaction {
            time: Time(self.ended),
            task: self.task,
            thread: Some(thread),
            file: Some(database),
            mode: Some(self.mode),
            duration_ns: (!self.several).then(|| self.ended.saturating_sub(self.began)),
            writes: Some(self.writes),
            bytes: Some(self.bytes),
            syncs: Some(self.syncs),
            syncs_ns: Some(self.syncs_ns),
            derived: Some(true),
            ended: self.end_seen.then_some(true),
            ..SqliteTransaction::default()
        })
    }
}

/// Whether a write has so many bytes at the file's begin.
fn begins_with(call: &Call, bytes: u64) -> bool {
    call.offset == Some(0) && call.bytes == Some(bytes)
}

impl Sqlite {
    /// A call has ended. Adds what it ends.
    pub fn call(&mut self, call: &Call, names: &Names, out: &mut Vec<Record>) {
        let (Some(thread), Some(file)) = (call.thread, call.file) else {
            return;
        };
        let Some((database, role)) = self.role(file, names) else {
            return;
        };
        let at = (thread, database);
        match (call.kind, role) {
            (Some(CallKind::WRITE | CallKind::DIRECT_WRITE), Role::Journal) => {
                self.journal(at, call, out);
            }
            (Some(CallKind::WRITE | CallKind::DIRECT_WRITE), Role::Wal) => {
                self.synced_log(at, false, out);
                let open = self.of(at, call, SqliteMode::WAL);
                open.wrote(call);
                open.changes += u64::from(!begins_with(call, WAL_HEADER));
            }
            (Some(CallKind::WRITE | CallKind::DIRECT_WRITE), Role::Database) => {
                self.synced_log(at, true, out);
                if let Some(open) = self.rollback(at).filter(|open| !open.durable) {
                    open.wrote(call);
                    open.changes += 1;
                }
            }
            (Some(CallKind::FSYNC | CallKind::FDATASYNC), Role::Wal) => {
                self.sync_log(at, call, out)
            }
            (Some(CallKind::FSYNC | CallKind::FDATASYNC), role) => self.sync(at, call, role, out),
            _ => {}
        }
    }

    /// THREAD removes a file: a journal's transaction ends with it. Those of other threads have no end: they were killed.
    pub fn removed(
        &mut self,
        file: u64,
        thread: Option<u64>,
        time: u64,
        names: &Names,
        out: &mut Vec<Record>,
    ) {
        let Some((database, Role::Journal)) = self.role(file, names) else {
            return;
        };
        self.roles.remove(&file);
        self.open.retain(|at, open| {
            if at.1 != database {
                return true;
            }
            // Without a change it was rolled back.
            if Some(at.0) == thread && open.changes > 0 {
                open.ended = open.ended.max(time);
                out.push(open.seen().record(*at));
            }
            false
        });
    }

    /// Adds those that have ended some time ago; at the `end` all that are durable.
    pub fn due(&mut self, now: u64, end: bool, out: &mut Vec<Record>) {
        self.open.retain(|at, open| {
            let due = open.durable && (end || open.ended.saturating_add(OVERDUE) <= now);
            out.extend(due.then(|| open.record(*at)));
            !due
        });
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        self.open.clear();
    }

    fn role(&mut self, file: u64, names: &Names) -> Option<(u64, Role)> {
        if let Some(known) = self.roles.get(&file) {
            return Some(*known);
        }
        let found = names.sqlite_role(file)?;
        if self.roles.len() >= KEPT {
            self.roles.clear();
        }
        self.roles.insert(file, found);
        Some(found)
    }

    fn of(&mut self, at: (u64, u64), call: &Call, mode: SqliteMode) -> &mut Open {
        if self.open.len() >= KEPT {
            self.open.clear();
        }
        self.open
            .entry(at)
            .or_insert_with(|| Open::begun(call, mode))
    }

    fn rollback(&mut self, at: (u64, u64)) -> Option<&mut Open> {
        let open = self.open.get_mut(&at);
        open.filter(|open| open.mode == SqliteMode::ROLLBACK)
    }

    /// A write to the journal: of this transaction, its end, or the begin of the next, which has a header of its own.
    fn journal(&mut self, at: (u64, u64), call: &Call, out: &mut Vec<Record>) {
        let ended = begins_with(call, ENDED_HEADER);
        let header = call.offset == Some(0) && call.bytes >= Some(HEADER);
        let durable = self.open.get(&at).is_some_and(|open| open.durable);
        if header || (ended && !durable) {
            // What is not durable was rolled back.
            let before = self.open.remove(&at);
            // Its thread begins the next one.
            let told = before
                .filter(|_| durable)
                .map(|open| open.seen().record(at));
            out.extend(told);
        }
        if header || self.open.contains_key(&at) {
            let open = self.of(at, call, SqliteMode::ROLLBACK);
            open.wrote(call);
            open.end_seen |= ended && durable;
        }
    }

    /// Ends what AT has synced to its log; by a `checkpoint` if the next that is written is the database.
    fn synced_log(&mut self, at: (u64, u64), checkpoint: bool, out: &mut Vec<Record>) {
        let synced = |open: &Open| open.mode == SqliteMode::WAL && open.durable;
        if !self.open.get(&at).is_some_and(synced) {
            return;
        }
        if let Some(mut open) = self.open.remove(&at) {
            open.several = checkpoint;
            out.push(open.seen().record(at));
        }
    }

    /// A sync of the log: all that was appended to it is durable. What this thread does next says whose sync it was.
    fn sync_log(&mut self, at: (u64, u64), call: &Call, out: &mut Vec<Record>) {
        self.synced_log(at, false, out);
        self.open.retain(|key, open| {
            // The log's own header may be synced before.
            let others = key.0 != at.0 && open.changes > 0 && !open.durable;
            let ends = others && key.1 == at.1 && open.mode == SqliteMode::WAL;
            if ends {
                open.several = true;
                out.push(open.seen().record(*key));
            }
            !ends
        });
        let open = self.open.get_mut(&at);
        if let Some(open) = open.filter(|open| open.mode == SqliteMode::WAL) {
            open.synced(call);
            open.durable = open.changes > 0;
            open.end_seen = open.durable;
        }
    }

    /// A sync of the database or its journal. That of a checkpoint is no part of the transaction.
    fn sync(&mut self, at: (u64, u64), call: &Call, role: Role, out: &mut Vec<Record>) {
        let Some(open) = self.rollback(at) else {
            return;
        };
        open.synced(call);
        let ends = role == Role::Journal && open.durable;
        open.durable |= role == Role::Database && open.changes > 0;
        if ends {
            out.extend(self.open.remove(&at).map(|open| open.seen().record(at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::names::Nothing;

    const DATABASE: u64 = 1;
    const JOURNAL: u64 = 2;
    const WAL: u64 = 3;

    struct Made {
        sqlite: Sqlite,
        names: Names,
        out: Vec<Record>,
        now: u64,
        thread: u64,
    }

    impl Made {
        fn new() -> Made {
            let mut sqlite = Sqlite::default();
            for (file, role) in [
                (DATABASE, Role::Database),
                (JOURNAL, Role::Journal),
                (WAL, Role::Wal),
            ] {
                sqlite.roles.insert(file, (DATABASE, role));
            }
            Made {
                sqlite,
                names: Names::new(Box::new(Nothing), 1),
                out: Vec::new(),
                now: 0,
                thread: 7,
            }
        }

        fn call(&mut self, kind: CallKind, file: u64, offset: u64, bytes: u64) {
            self.now += 10;
            let call = Call {
                time: Time(self.now),
                kind: Some(kind),
                file: Some(file),
                offset: Some(offset),
                bytes: Some(bytes),
                duration_ns: Some(10),
                thread: Some(self.thread),
                ..Call::default()
            };
            self.sqlite.call(&call, &self.names, &mut self.out);
        }

        fn write(&mut self, file: u64, offset: u64, bytes: u64) {
            self.call(CallKind::WRITE, file, offset, bytes);
        }

        fn removed(&mut self, thread: u64, time: u64) {
            let (names, out) = (&self.names, &mut self.out);
            self.sqlite.removed(JOURNAL, Some(thread), time, names, out);
        }

        fn sync(&mut self, file: u64) {
            self.call(CallKind::FDATASYNC, file, 0, 0);
        }

        /// Begin and end, writes and syncs of each.
        fn told(&mut self) -> Vec<(u64, u64, u64, u64)> {
            self.out
                .drain(..)
                .map(|record| match record {
                    Record::SqliteTransaction(one) => (
                        one.time.0 - one.duration_ns.unwrap_or(0),
                        one.time.0,
                        one.writes.unwrap_or(0),
                        one.syncs.unwrap_or(0),
                    ),
                    other => panic!("{other:?}"),
                })
                .collect()
        }

        fn rollback(&mut self) {
            self.write(JOURNAL, 0, 512);
            self.write(JOURNAL, 512, 4096);
            self.sync(JOURNAL);
            self.write(JOURNAL, 0, 12);
            self.sync(JOURNAL);
            self.write(DATABASE, 0, 4096);
            self.sync(DATABASE);
        }
    }

    #[test]
    fn a_journal_is_removed() {
        let mut made = Made::new();
        made.rollback();
        assert_eq!(made.told(), []);
        made.removed(7, 75);
        assert_eq!(made.told(), [(0, 75, 4, 3)]);
        // One that changed nothing.
        made.sqlite.roles.insert(JOURNAL, (DATABASE, Role::Journal));
        made.write(JOURNAL, 0, 512);
        made.removed(7, 90);
        assert_eq!(made.told(), []);
    }

    #[test]
    fn a_journal_is_removed_by_another() {
        let mut made = Made::new();
        made.write(JOURNAL, 0, 512);
        made.sync(JOURNAL);
        made.write(DATABASE, 0, 4096);
        // Its thread was killed: who opens the database next rolls back, and removes the journal.
        made.removed(8, 3_600_000_000_000);
        assert_eq!(made.told(), []);
        made.sqlite.roles.insert(JOURNAL, (DATABASE, Role::Journal));
        made.rollback();
        made.removed(7, 150);
        assert_eq!(made.told(), [(30, 150, 4, 3)]);
    }

    /// Killed between its sync and the journal's end: who opens the database next rolls it back.
    #[test]
    fn a_thread_that_is_killed_has_no_end() {
        let mut made = Made::new();
        let ended = |out: &[Record]| match out {
            [Record::SqliteTransaction(one)] => one.ended,
            other => panic!("{other:?}"),
        };
        made.rollback();
        made.sqlite.due(made.now + OVERDUE, false, &mut made.out);
        assert_eq!(ended(&made.out), None);
        made.out.clear();
        // The next one of its thread says that it had ended, and its own removal that it has.
        made.rollback();
        made.write(JOURNAL, 0, 512);
        assert_eq!(ended(&made.out), Some(true));
        made.out.clear();
        made.sync(JOURNAL);
        made.write(DATABASE, 0, 4096);
        made.sync(DATABASE);
        made.removed(7, made.now);
        assert_eq!(ended(&made.out), Some(true));
        made.out.clear();
        // A header of zeros ends it, and a sync ends what is in a log.
        made.sqlite.roles.insert(JOURNAL, (DATABASE, Role::Journal));
        made.rollback();
        made.write(JOURNAL, 0, ENDED_HEADER);
        made.sqlite.due(made.now + OVERDUE, false, &mut made.out);
        assert_eq!(ended(&made.out), Some(true));
        made.out.clear();
        made.write(WAL, 32, 4120);
        made.sync(WAL);
        made.sqlite.due(made.now + OVERDUE, false, &mut made.out);
        assert_eq!(ended(&made.out), Some(true));
    }

    #[test]
    fn a_journal_stays() {
        let mut made = Made::new();
        made.rollback();
        made.write(JOURNAL, 0, ENDED_HEADER);
        made.sync(JOURNAL);
        made.rollback();
        // Cut, and not synced: the next one's begin tells.
        made.rollback();
        // Rolled back, by a cut and by a header of zeros.
        made.write(JOURNAL, 0, 512);
        made.write(JOURNAL, 0, 512);
        made.write(JOURNAL, 512, 4096);
        made.write(JOURNAL, 0, ENDED_HEADER);
        made.sync(JOURNAL);
        made.rollback();
        made.sqlite.due(made.now + OVERDUE, false, &mut made.out);
        let expected = [
            (0, 90, 5, 4),
            (90, 160, 4, 3),
            (160, 230, 4, 3),
            (280, 350, 4, 3),
        ];
        assert_eq!(made.told(), expected);
    }

    /// `synchronous=normal`: a checkpoint alone syncs the log, and how many commits there were is not known.
    #[test]
    fn a_log_is_synced_by_a_checkpoint() {
        let mut made = Made::new();
        made.write(WAL, 0, WAL_HEADER);
        made.sync(WAL);
        for commit in 0..3 {
            made.write(WAL, 32 + 4120 * commit, 4120);
        }
        made.thread = 8;
        made.write(WAL, 32 + 4120 * 3, 4120);
        assert_eq!(made.told(), []);
        // One of the other thread's.
        made.sync(WAL);
        made.write(DATABASE, 0, 4096);
        made.sync(DATABASE);
        made.sqlite.due(made.now + OVERDUE, true, &mut made.out);
        assert!(made.out.iter().all(|record| matches!(
            record,
            Record::SqliteTransaction(one) if one.duration_ns.is_none()
        )));
        assert_eq!(made.told(), [(50, 50, 4, 1), (70, 70, 1, 1)]);
    }

    #[test]
    fn a_log_is_appended_to() {
        let mut made = Made::new();
        made.write(WAL, 0, WAL_HEADER);
        made.sync(WAL);
        made.write(WAL, 32, 24);
        made.write(WAL, 56, 4096);
        made.sync(WAL);
        // A checkpoint.
        made.sync(WAL);
        made.write(DATABASE, 0, 4096);
        made.sync(DATABASE);
        made.write(WAL, 4152, 4120);
        made.sync(WAL);
        made.sqlite.due(made.now + OVERDUE, false, &mut made.out);
        assert_eq!(made.told(), [(0, 50, 3, 2), (80, 100, 1, 1)]);
    }
}
