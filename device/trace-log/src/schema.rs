// SPDX-License-Identifier: GPL-2.0-only
//! The schema's types, made from `contract/trace.toml` by `tests/schema.rs`.

use crate::codec::{enums, records, Time};

/// Version of the schema.
pub const SCHEMA_VERSION: u16 = 9;

/// Tells schemas of one version apart.
pub const SCHEMA_ID: u64 = 0xbb584ce0d2540d7b;

enums! {
    /// What blocks hold (A9): f2fs has data, node, metadata and checkpoint.
    BlockType {
        /// `unknown`.
        UNKNOWN = 0 "unknown",
        /// `data`.
        DATA = 1 "data",
        /// `journal`.
        JOURNAL = 2 "journal",
        /// `metadata`.
        METADATA = 3 "metadata",
        /// `node`.
        NODE = 4 "node",
        /// `checkpoint`.
        CHECKPOINT = 5 "checkpoint",
    }
    /// How a call is asked for.
    CallInterface {
        /// `system_call`.
        SYSTEM_CALL = 0 "system_call",
        /// `io_uring`.
        IO_URING = 1 "io_uring",
        /// `aio`.
        AIO = 2 "aio",
    }
    /// The call of an app.
    CallKind {
        /// `other`.
        OTHER = 0 "other",
        /// `read`.
        READ = 1 "read",
        /// `write`.
        WRITE = 2 "write",
        /// `fsync`.
        FSYNC = 3 "fsync",
        /// `fdatasync`.
        FDATASYNC = 4 "fdatasync",
        /// `fault`.
        FAULT = 5 "fault",
        /// `sync`.
        SYNC = 6 "sync",
        /// `syncfs`.
        SYNCFS = 7 "syncfs",
        /// `mmap_write`.
        MMAP_WRITE = 8 "mmap_write",
        /// `direct_read`.
        DIRECT_READ = 9 "direct_read",
        /// `direct_write`.
        DIRECT_WRITE = 10 "direct_write",
        /// `msync`.
        MSYNC = 11 "msync",
        /// `io_uring`.
        IO_URING = 12 "io_uring",
        /// `splice`.
        SPLICE = 13 "splice",
        /// `splice_read`.
        SPLICE_READ = 14 "splice_read",
        /// `splice_write`.
        SPLICE_WRITE = 15 "splice_write",
    }
    /// Why I/O was sent, numbered as in the kernel.
    Cause {
        /// `none`.
        NONE = 0 "none",
        /// `read`.
        READ = 1 "read",
        /// `writeback`.
        WRITEBACK = 2 "writeback",
        /// `fsync`.
        FSYNC = 3 "fsync",
        /// `fdatasync`.
        FDATASYNC = 4 "fdatasync",
        /// `sync_write`.
        SYNC_WRITE = 5 "sync_write",
        /// `journal`.
        JOURNAL = 6 "journal",
        /// `metadata`.
        METADATA = 7 "metadata",
        /// `other`.
        OTHER = 8 "other",
    }
    /// FastTrack's class.
    Class {
        /// `neutral`.
        NEUTRAL = 0 "neutral",
        /// `background`.
        BACKGROUND = 1 "background",
        /// `foreground`.
        FOREGROUND = 2 "foreground",
    }
    /// Why clocks are compared.
    ClockReason {
        /// `file_start`.
        FILE_START = 0 "file_start",
        /// `jump`.
        JUMP = 1 "jump",
        /// `suspend`.
        SUSPEND = 2 "suspend",
    }
    /// Why a file is described.
    FileEvent {
        /// `first_use`.
        FIRST_USE = 0 "first_use",
        /// `rename`.
        RENAME = 1 "rename",
        /// `unlink`.
        UNLINK = 2 "unlink",
    }
    /// Type of a file (A8).
    FileType {
        /// `other`.
        OTHER = 0 "other",
        /// `sqlite_db`.
        SQLITE_DB = 1 "sqlite_db",
        /// `sqlite_journal`.
        SQLITE_JOURNAL = 2 "sqlite_journal",
        /// `sqlite_wal`.
        SQLITE_WAL = 3 "sqlite_wal",
        /// `sqlite_temp`.
        SQLITE_TEMP = 4 "sqlite_temp",
        /// `multimedia`.
        MULTIMEDIA = 5 "multimedia",
        /// `executable`.
        EXECUTABLE = 6 "executable",
        /// `cache`.
        CACHE = 7 "cache",
        /// `temp`.
        TEMP = 8 "temp",
        /// `directory`.
        DIRECTORY = 9 "directory",
    }
    /// Why records are missing.
    LossReason {
        /// `ring_overrun`.
        RING_OVERRUN = 0 "ring_overrun",
        /// `disk_cap`.
        DISK_CAP = 1 "disk_cap",
        /// `disk_error`.
        DISK_ERROR = 2 "disk_error",
        /// `budget`.
        BUDGET = 3 "budget",
        /// `unreadable`.
        UNREADABLE = 4 "unreadable",
        /// `flight_memory`.
        FLIGHT_MEMORY = 5 "flight_memory",
        /// `recursion`.
        RECURSION = 6 "recursion",
        /// `sampled`.
        SAMPLED = 7 "sampled",
        /// `payers`.
        PAYERS = 8 "payers",
    }
    /// What a request or bio asks of the device.
    Operation {
        /// `other`.
        OTHER = 0 "other",
        /// `read`.
        READ = 1 "read",
        /// `write`.
        WRITE = 2 "write",
        /// `flush`.
        FLUSH = 3 "flush",
        /// `discard`.
        DISCARD = 4 "discard",
        /// `zone`.
        ZONE = 5 "zone",
        /// `secure_erase`.
        SECURE_ERASE = 6 "secure_erase",
        /// `write_zeroes`.
        WRITE_ZEROES = 7 "write_zeroes",
    }
    /// How SQLite makes a transaction atomic.
    SqliteMode {
        /// `unknown`.
        UNKNOWN = 0 "unknown",
        /// `rollback`.
        ROLLBACK = 1 "rollback",
        /// `wal`.
        WAL = 2 "wal",
    }
    /// What makes file systems' changes durable together.
    TransactionKind {
        /// `jbd2`.
        JBD2 = 0 "jbd2",
        /// `checkpoint`.
        CHECKPOINT = 1 "checkpoint",
    }
    /// What a task waited for.
    WaitKind {
        /// `other`.
        OTHER = 0 "other",
        /// `folio`.
        FOLIO = 1 "folio",
        /// `dirty_throttle`.
        DIRTY_THROTTLE = 2 "dirty_throttle",
        /// `transaction`.
        TRANSACTION = 3 "transaction",
        /// `tag`.
        TAG = 4 "tag",
        /// `hold`.
        HOLD = 5 "hold",
        /// `pause`.
        PAUSE = 6 "pause",
        /// `promote`.
        PROMOTE = 7 "promote",
        /// `protect`.
        PROTECT = 8 "protect",
        /// `checkpoint`.
        CHECKPOINT = 9 "checkpoint",
        /// `bio`.
        BIO = 10 "bio",
        /// `buffer`.
        BUFFER = 11 "buffer",
        /// `flush`.
        FLUSH = 12 "flush",
        /// `writeback`.
        WRITEBACK = 13 "writeback",
    }
}

records! {
    /// Who records, where, and from what; at the start of each file.
    Session = 1 "session" {
        /// Random id of this run of the collector.
        session: String,
        /// Random id of this installation.
        install: String,
        /// The kernel's boot id.
        boot: String,
        /// Release of the kernel.
        kernel: String,
        /// Version of fasttrack-trace.
        collector: String,
        /// Sources in use, separated by spaces.
        sources: String,
        /// Events in use, separated by spaces.
        events: String,
        /// Names are clear text, not keyed hashes.
        clear_names: bool,
        /// Id of the key that hashes names.
        key: String,
        /// Size of a page. Unit: bytes.
        page_bytes: u64,
        /// Calls that took less are left out, syncs excepted; absent: fsync and fdatasync alone are recorded. Unit: us.
        calls_over_us: u64,
        /// One bio of so many is recorded, with its segments and requests; absent: all are.
        sample: u64,
    }
    /// The clocks at one moment; in each file, at jumps and after suspends.
    Clock = 2 "clock" {
        /// Why.
        reason: ClockReason,
        /// Real time since 1970. Unit: ns.
        real_ns: i64,
        /// Monotonic time. Unit: ns.
        monotonic_ns: u64,
        /// Local time less UTC. Unit: s.
        utc_offset_s: i64,
    }
    /// Records that are missing: how many, between when and when.
    Loss = 3 "loss" {
        /// Why.
        reason: LossReason,
        /// The ring's processor.
        cpu: u64,
        /// Begin of the interval. Unit: ns.
        since: Time,
        /// How many; absent if nobody counted. Unit: events or records.
        count: u64,
        /// Number of the log file that was removed.
        file: u64,
    }
    /// A task, at its first use in a file, as it was then.
    Task = 4 "task" {
        /// Id that other records refer to.
        task: u64,
        /// Thread id.
        pid: u64,
        /// Process id.
        tgid: u64,
        /// User id.
        uid: u64,
        /// The thread's name then.
        name: String,
        /// Inode of its control group.
        cgroup: u64,
        /// It is the kernel's.
        kernel_thread: bool,
    }
    /// A file, at its first use in a log file, on rename and on unlink.
    File = 5 "file" {
        /// Id that other records refer to.
        file: u64,
        /// Why.
        event: FileEvent,
        /// Device of the file system. Unit: major << 20 | minor.
        dev: u64,
        /// Inode number.
        inode: u64,
        /// The inode's generation.
        generation: u64,
        /// Creation, real time since 1970. Unit: ns.
        created_ns: i64,
        /// Absolute path; segments hashed unless clear.
        path: String,
        /// Type, SQLite by content and siblings.
        file_type: FileType,
        /// Size then. Unit: bytes.
        bytes: u64,
    }
    /// A bio: the unit that is sent to the block layer.
    Bio = 6 "bio" {
        /// Sequence number in the session.
        bio: u64,
        /// Device. Unit: major << 20 | minor.
        dev: u64,
        /// What it asks.
        operation: Operation,
        /// First sector on the device. Unit: 512 bytes.
        sector: u64,
        /// Size. Unit: bytes.
        bytes: u64,
        /// Somebody waits (REQ_SYNC).
        sync: bool,
        /// Forced to the medium (REQ_FUA).
        fua: bool,
        /// The cache is flushed first (REQ_PREFLUSH).
        preflush: bool,
        /// The file system's own (REQ_META).
        meta: bool,
        /// Read-ahead (REQ_RAHEAD).
        read_ahead: bool,
        /// Task that sent it; kworker for write-back.
        carrier: u64,
        /// FastTrack's class.
        class: Class,
        /// Why it was sent.
        cause: Cause,
        /// User id of the app that the kernel charges; -1: nobody.
        app_uid: i64,
        /// Transaction that it makes durable.
        transaction: u64,
        /// Thread id of who sent it: carrier may be its process.
        thread: u64,
        /// How many this one stands for; absent: itself. Unit: bios.
        weight: u64,
    }
    /// A run of a bio's blocks with one file, one owner and one type; a bio's segments cover it.
    Segment = 7 "segment" {
        /// The bio.
        bio: u64,
        /// Place in the bio. Unit: bytes.
        offset: u64,
        /// Size. Unit: bytes.
        bytes: u64,
        /// What the blocks hold.
        block_type: BlockType,
        /// File; absent if unknown.
        file: u64,
        /// First page in the file. Unit: pages.
        index: u64,
        /// Task that dirtied or reads it; absent if unknown.
        owner: u64,
        /// When it was dirtied. Unit: ns.
        dirtied: Time,
        /// The owner's call.
        call: CallKind,
        /// How many this one stands for; absent: itself. Unit: segments.
        weight: u64,
    }
    /// A request's way through the device, when it has ended.
    Request = 8 "request" {
        /// Device. Unit: major << 20 | minor.
        dev: u64,
        /// What it asked.
        operation: Operation,
        /// First sector. Unit: 512 bytes.
        sector: u64,
        /// Size. Unit: bytes.
        bytes: u64,
        /// Time from insertion to the device; absent if it was not queued. Unit: ns.
        queued_ns: u64,
        /// Time in the device; absent if its begin is lost. Unit: ns.
        device_ns: u64,
        /// Error, 0 if none. Unit: errno.
        error: i64,
        /// First bio in it, by device, operation and sectors; absent where several can be it.
        first_bio: u64,
        /// Bios in it, or parts of bios; absent where one is not known.
        bios: u64,
        /// How many this one stands for; absent: itself. Unit: requests.
        weight: u64,
    }
    /// A transaction of the journal, or a checkpoint of f2fs, when it has ended.
    Transaction = 9 "transaction" {
        /// Its number in the file system's journal; a checkpoint's: in the session.
        transaction: u64,
        /// Of which kind.
        kind: TransactionKind,
        /// Device of the file system. Unit: major << 20 | minor.
        dev: u64,
        /// When its commit began. Unit: ns.
        began: Time,
        /// Task that asks for it first; absent: the timer, or unknown.
        trigger: u64,
        /// By which call.
        trigger_call: CallKind,
        /// Task that commits.
        carrier: u64,
        /// Handles in it.
        handles: u64,
        /// Blocks that changed; of a checkpoint: of directories and nodes. Unit: blocks.
        blocks: u64,
        /// Blocks written to the journal, or for the checkpoint. Unit: blocks.
        logged: u64,
    }
    /// A payer of a transaction; the shares of one sum to its handles and blocks.
    Share = 10 "share" {
        /// The transaction.
        transaction: u64,
        /// Device of the file system. Unit: major << 20 | minor.
        dev: u64,
        /// Payer; absent if unknown.
        task: u64,
        /// Its handles.
        handles: u64,
        /// Blocks that it changed, or reserved where the source is ftrace. Unit: blocks.
        blocks: u64,
        /// Handles of the flusher, charged to the file's owner.
        through_flusher: bool,
    }
    /// A call of an app, when it has ended.
    Call = 11 "call" {
        /// Who.
        task: u64,
        /// Which call.
        kind: CallKind,
        /// On which file.
        file: u64,
        /// Place in the file. Unit: bytes.
        offset: u64,
        /// Size. Unit: bytes.
        bytes: u64,
        /// How long it took. Unit: ns.
        duration_ns: u64,
        /// What it returned.
        result: i64,
        /// The file is a database's.
        sqlite: bool,
        /// Thread id: task may be its process.
        thread: u64,
        /// How it was asked for; of io_uring and aio its end is the I/O's, for which its thread need not wait.
        interface: CallInterface,
    }
    /// A wait of a task, when it has ended; FastTrack's holds, pauses, promotions and protected folios too.
    Wait = 12 "wait" {
        /// Who.
        task: u64,
        /// For what.
        kind: WaitKind,
        /// How long. Unit: ns.
        duration_ns: u64,
        /// Device. Unit: major << 20 | minor.
        dev: u64,
        /// File of the folio.
        file: u64,
        /// Folio. Unit: pages.
        index: u64,
        /// Request that was waited for. Unit: 512 bytes.
        sector: u64,
        /// Transaction that was waited for.
        transaction: u64,
        /// User id of the app that waits.
        uid: i64,
        /// FastTrack's class.
        class: Class,
        /// Thread id: task may be its process; absent where none slept, as for a hold.
        thread: u64,
    }
    /// What an app did above its budget of records in an interval; it is not there one by one.
    Aggregate = 13 "aggregate" {
        /// Begin of the interval. Unit: ns.
        since: Time,
        /// The app's user id; absent: unknown.
        uid: u64,
        /// Records that were left out. Unit: records.
        records: u64,
        /// Bios among them.
        bios: u64,
        /// Bytes that these read. Unit: bytes.
        read_bytes: u64,
        /// Bytes that these wrote. Unit: bytes.
        written_bytes: u64,
        /// How many times the sums of bios stand for; absent: once.
        weight: u64,
        /// Calls among them.
        calls: u64,
        /// How long these took together. Unit: ns.
        calls_ns: u64,
        /// Waits among them.
        waits: u64,
        /// How long these took together. Unit: ns.
        waits_ns: u64,
    }
    /// The collector's own I/O, which is left out, since the last such record.
    Own = 14 "own" {
        /// Bios.
        bios: u64,
        /// Bytes read. Unit: bytes.
        read_bytes: u64,
        /// Bytes written. Unit: bytes.
        written_bytes: u64,
        /// Events that were left out.
        events: u64,
    }
    /// A flight recorder wrote what it had.
    Mark = 15 "mark" {
        /// Signal, fsync or wait.
        reason: String,
        /// The oldest record that it had. Unit: ns.
        since: Time,
    }
    /// A transaction of SQLite, derived from its thread's calls; where all calls are recorded (calls_over_us = 0).
    SqliteTransaction = 16 "sqlite_transaction" {
        /// Who.
        task: u64,
        /// Thread id: task may be its process.
        thread: u64,
        /// The database.
        file: u64,
        /// By which log.
        mode: SqliteMode,
        /// From the begin of its first write to that end; absent: it can be several transactions. Unit: ns.
        duration_ns: u64,
        /// Writes to the database and its log.
        writes: u64,
        /// Bytes of these. Unit: bytes.
        bytes: u64,
        /// Syncs of both.
        syncs: u64,
        /// How long these took together. Unit: ns.
        syncs_ns: u64,
        /// True: made of calls, and not told by SQLite.
        derived: bool,
        /// True: its end was seen; absent: its database is synced, but who then was killed has left it to be rolled back.
        ended: bool,
    }
}
