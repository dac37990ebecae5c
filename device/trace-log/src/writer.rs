// SPDX-License-Identifier: GPL-2.0-only
//! Writes log files.
//!
//! Records gather in memory and become a block by one write at the file's end. If that fails the file is cut back to
//! where it was, and the block's records are lost and counted. A file that has its size is closed with an index, and
//! the next begins; while none can be made, as on a full disk, records are lost and counted, and it is tried again with
//! each block. When all files together reach the cap, the oldest goes, and what was in it is a loss in the stream.

use crate::codec::Time;
use crate::directory::{log_files, SUFFIX};
use crate::format::{
    end_bytes, session_begin, BlockHeader, FileHeader, BLOCK_MAX, FORMAT, KIND_INDEX, KIND_RECORDS,
};
use crate::reader::{index_payload, LogFile};
use crate::schema::{Loss, LossReason, Record, SCHEMA_ID, SCHEMA_VERSION};
use crc32c::crc32c;
use rustix::fs::{flock, FlockOperation};
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// When a file's blocks are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// When the kernel likes.
    Never,
    /// When the file is closed: a power cut may take the whole file that is open.
    File,
    /// After each block.
    Block,
}

/// How files are written.
#[derive(Debug, Clone)]
pub struct Options {
    /// A file is closed when it has so many bytes.
    pub file_bytes: u64,
    /// A block is written when its records have so many bytes.
    pub block_bytes: usize,
    /// All files together have at most so many bytes, but for the one that is written.
    pub cap_bytes: u64,
    /// When blocks are made durable.
    pub sync: Sync,
    /// zstd's level.
    pub level: i32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // A10.
            file_bytes: 1 << 20,
            // Larger ones compress 5 % better, and a power cut takes more.
            block_bytes: 64 << 10,
            // 8 million I/Os.
            cap_bytes: 64 << 20,
            sync: Sync::File,
            level: 3,
        }
    }
}

/// Why nothing can be written.
#[derive(Debug)]
pub enum WriteError {
    /// Another collector writes here.
    Busy(PathBuf),
    /// The system says no.
    Io(PathBuf, io::Error),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Busy(path) => write!(
                f,
                "{}: another fasttrack-trace writes there: end it, or take another directory",
                path.display()
            ),
            WriteError::Io(path, error) => {
                let hint = match error.kind() {
                    io::ErrorKind::StorageFull => "; make room there, or take another directory",
                    io::ErrorKind::ReadOnlyFilesystem => {
                        "; mount it writable again (dmesg says why it is not), or take another directory"
                    }
                    io::ErrorKind::PermissionDenied => "; take another directory",
                    io::ErrorKind::NotFound => "; make its directory again, or take another",
                    _ => "",
                };
                write!(f, "{}: {error}{hint}", path.display())
            }
        }
    }
}

impl std::error::Error for WriteError {}

/// A file that is written.
struct Open {
    file: File,
    path: PathBuf,
    number: u64,
    bytes: u64,
    places: Vec<(u64, BlockHeader)>,
}

/// A file that is closed.
struct Closed {
    number: u64,
    bytes: u64,
    /// Nothing of an earlier session's: it is read when it goes.
    content: Option<Content>,
}

/// What is lost with a file.
#[derive(Debug, Clone, Copy, Default)]
struct Content {
    /// Records, and the losses that they tell of, so that none is forgotten.
    count: u64,
    since: Option<Time>,
}

impl Content {
    fn of<'a>(headers: impl Iterator<Item = &'a BlockHeader>) -> Content {
        headers.fold(Content::default(), |content, header| {
            let first = Time(header.first);
            Content {
                count: content.count + u64::from(header.records) + header.lost,
                since: Some(content.since.map_or(first, |since| since.min(first))),
            }
        })
    }
}

/// A block in the making.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    records: u32,
    time: u64,
    first: u64,
    last: u64,
    /// What its loss records count together, how many these are, and the earliest time that they tell of.
    lost: u64,
    told: u32,
    since: u64,
}

/// Writes records to the files of a directory.
pub struct LogWriter {
    directory: PathBuf,
    _lock: File,
    options: Options,
    session: [u8; 16],
    sequence: u64,
    open: Option<Open>,
    pending: Pending,
    closed: VecDeque<Closed>,
    losses: Vec<Record>,
    /// No file can be made: these are lost.
    refused: Option<Pending>,
    written: u64,
    failed: Option<WriteError>,
    /// The last write has failed.
    failing: bool,
    /// [`durable`], in whose place tests have another.
    durable: fn(&File, Sync) -> io::Result<()>,
}

/// Makes a file durable, and its name: ext4, f2fs, XFS and btrfs do so for a new file without a sync of the directory,
/// for which f2fs would write a checkpoint.
fn durable(file: &File, sync: Sync) -> io::Result<()> {
    match sync {
        Sync::Never => Ok(()),
        Sync::File => file.sync_all(),
        Sync::Block => file.sync_data(),
    }
}

fn told<T>(path: &Path, result: io::Result<T>) -> Result<T, WriteError> {
    result.map_err(|error| WriteError::Io(path.to_path_buf(), error))
}

impl LogWriter {
    /// Writes to `directory`, which is made if it is not there, under the id `session`.
    ///
    /// # Errors
    /// It cannot be written to, or another collector writes there.
    pub fn new(
        directory: &Path,
        session: [u8; 16],
        options: Options,
    ) -> Result<LogWriter, WriteError> {
        told(directory, fs::create_dir_all(directory))?;
        let name = directory.join("lock");
        let mut opened = OpenOptions::new();
        opened.create(true).write(true).truncate(false).mode(0o600);
        let lock = told(&name, opened.open(&name))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(WriteError::Busy(directory.to_path_buf()));
        }
        let mut closed = VecDeque::new();
        for (number, path) in told(directory, log_files(directory))? {
            closed.push_back(Closed {
                number,
                bytes: told(&path, fs::metadata(&path))?.len(),
                content: None,
            });
        }
        Ok(LogWriter {
            directory: directory.to_path_buf(),
            _lock: lock,
            options,
            session,
            sequence: 0,
            open: None,
            pending: Pending::default(),
            closed,
            losses: Vec::new(),
            refused: None,
            written: 0,
            failed: None,
            failing: false,
            durable,
        })
    }

    /// Number of the file that the next records go to; 0 while none can be made. A name that it does not have yet must
    /// be given with them.
    ///
    /// # Errors
    /// The session's first file cannot be made.
    pub fn file_number(&mut self) -> Result<u64, WriteError> {
        if self.refused.is_some() {
            return Ok(0);
        }
        let full = self
            .open
            .as_ref()
            .is_some_and(|open| open.bytes >= self.options.file_bytes);
        if full && self.pending.records == 0 {
            self.close_file()?;
        }
        if self.open.is_none() {
            match self.begin_file() {
                Err(error) if self.written > 0 => self.fail(error),
                other => other?,
            }
        }
        if self.open.is_none() {
            self.refused = Some(Pending::default());
        }
        Ok(self.open.as_ref().map_or(0, |open| open.number))
    }

    fn fail(&mut self, error: WriteError) {
        self.failed = Some(error);
        self.failing = true;
    }

    /// Adds records that stay together in one block of the file that [`LogWriter::file_number`] has named.
    ///
    /// # Errors
    /// The session's first file cannot be made. What cannot be written later is no error, but a loss.
    pub fn push(&mut self, records: &[Record]) -> Result<(), WriteError> {
        self.file_number()?;
        if let Some(refused) = &mut self.refused {
            for record in records {
                refused.count(record);
            }
            return Ok(());
        }
        for record in std::mem::take(&mut self.losses).iter().chain(records) {
            self.pending.add(record);
        }
        if self.pending.bytes.len() >= self.options.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes what has gathered, as after some time without much to write.
    ///
    /// # Errors
    /// As [`LogWriter::push`].
    pub fn end_block(&mut self) -> Result<(), WriteError> {
        if let Some(refused) = self.refused.take() {
            self.file_number()?;
            match &mut self.refused {
                Some(again) => *again = refused,
                None => self.losses.extend(refused.as_loss()),
            }
            return Ok(());
        }
        if self.pending.records == 0 {
            return Ok(());
        }
        self.file_number()?;
        let pending = std::mem::take(&mut self.pending);
        let header = BlockHeader {
            kind: KIND_RECORDS,
            records: pending.records,
            sequence: self.sequence,
            first: pending.first,
            last: pending.last,
            lost: pending.lost,
            ..BlockHeader::default()
        };
        self.sequence += 1;
        if let Err(error) = self.append(header, &pending.bytes) {
            self.fail(WriteError::Io(self.directory.clone(), error));
            self.losses.extend(pending.as_loss());
        }
        self.keep_cap();
        Ok(())
    }

    /// Ends the block and the file.
    ///
    /// # Errors
    /// As [`LogWriter::push`]; and what could not be made durable.
    pub fn close(mut self) -> Result<(), WriteError> {
        self.end_block()?;
        if !self.losses.is_empty() {
            self.push(&[])?;
            self.end_block()?;
        }
        self.close_file()?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Bytes written in this session.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What a write has failed with last, once.
    pub fn take_failure(&mut self) -> Option<WriteError> {
        self.failed.take()
    }

    /// Whether the last write has failed.
    pub fn is_failing(&self) -> bool {
        self.failing
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:08}{SUFFIX}"))
    }

    fn begin_file(&mut self) -> Result<(), WriteError> {
        let (number, path, mut file) = self.new_file()?;
        let header = FileHeader {
            format: FORMAT,
            schema_version: SCHEMA_VERSION,
            schema_id: SCHEMA_ID,
            session: self.session,
            number,
        };
        let bytes = header.bytes();
        if let Err(error) = file.write_all(&bytes) {
            // An empty file would be damage to whoever reads.
            let _ = fs::remove_file(&path);
            return Err(WriteError::Io(path, error));
        }
        self.written += bytes.len() as u64;
        self.failing = false;
        self.open = Some(Open {
            file,
            path,
            number,
            bytes: bytes.len() as u64,
            places: Vec::new(),
        });
        Ok(())
    }

    /// A file that was not there, after all others: one that is in its place is not ours.
    fn new_file(&self) -> Result<(u64, PathBuf, File), WriteError> {
        let mut opened = OpenOptions::new();
        opened.append(true).create_new(true).mode(0o600);
        let mut number = self.closed.back().map_or(1, |last| last.number + 1);
        loop {
            let path = self.path(number);
            match opened.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                other => return told(&path, other).map(|file| (number, path, file)),
            }
        }
    }

    /// One block by one write; a file that has taken a part of it is cut back.
    fn append(&mut self, header: BlockHeader, raw: &[u8]) -> io::Result<()> {
        let payload = zstd::bulk::compress(raw, self.options.level)?;
        if raw.len() > BLOCK_MAX || payload.len() > BLOCK_MAX {
            return Err(io::Error::other("a block is larger than readers take"));
        }
        let header = BlockHeader {
            schema_version: SCHEMA_VERSION,
            schema_id: SCHEMA_ID,
            session: session_begin(&self.session),
            stored: payload.len() as u32,
            raw: raw.len() as u32,
            payload_crc: crc32c(&payload),
            ..header
        };
        let Some(open) = self.open.as_mut() else {
            return Err(io::Error::other("no file is open"));
        };
        let mut bytes = header.bytes();
        bytes.extend_from_slice(&payload);
        if let Err(error) = open.file.write_all(&bytes) {
            // Readers find their way over the rest of a block that cannot be cut off.
            let _ = open.file.set_len(open.bytes);
            return Err(error);
        }
        if header.kind == KIND_RECORDS {
            open.places.push((open.bytes, header));
        }
        open.bytes += bytes.len() as u64;
        self.written += bytes.len() as u64;
        self.failing = false;
        match self.options.sync {
            Sync::Block => (self.durable)(&open.file, Sync::Block),
            Sync::File | Sync::Never => Ok(()),
        }
    }

    fn close_file(&mut self) -> Result<(), WriteError> {
        let Some(open) = self.open.as_ref() else {
            return Ok(());
        };
        let (at, path) = (open.bytes, open.path.clone());
        let index = index_payload(&open.places);
        let header = BlockHeader {
            kind: KIND_INDEX,
            ..BlockHeader::default()
        };
        let mut ended = self.append(header, &index);
        if let Some(mut open) = self.open.take() {
            if ended.is_ok() {
                ended = open.file.write_all(&end_bytes(at));
                open.bytes += crate::format::END as u64;
            }
            if self.options.sync != Sync::Never {
                ended = ended.and((self.durable)(&open.file, Sync::File));
            }
            self.closed.push_back(Closed {
                number: open.number,
                bytes: open.bytes,
                content: Some(Content::of(open.places.iter().map(|(_, header)| header))),
            });
        }
        // Without an index a file is scanned: no record is lost.
        if let Err(error) = ended {
            self.fail(WriteError::Io(path, error));
        }
        Ok(())
    }

    /// Removes the oldest files while there are too many bytes; one that cannot go is tried again after the next block.
    fn keep_cap(&mut self) {
        let now = self.open.as_ref().map_or(0, |open| open.bytes);
        while self.closed.iter().map(|file| file.bytes).sum::<u64>() + now > self.options.cap_bytes
        {
            let Some(oldest) = self.closed.front() else {
                break;
            };
            let path = self.path(oldest.number);
            let lost = evicted(oldest, &path, self.pending_time());
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return self.fail(WriteError::Io(path, error));
                }
                _ => self.losses.push(lost),
            }
            self.closed.pop_front();
        }
    }

    fn pending_time(&self) -> u64 {
        let open = self.open.as_ref().and_then(|open| open.places.last());
        open.map_or(0, |(_, header)| header.last)
    }
}

/// The loss of a file that goes. Its times are those of its boot, so the loss is of `now`.
fn evicted(oldest: &Closed, path: &Path, now: u64) -> Record {
    let content = oldest.content.or_else(|| {
        let file = LogFile::open(path).ok()?;
        Some(Content::of(file.headers()))
    });
    let content = content.unwrap_or_default();
    Record::from(Loss {
        time: Time(now),
        reason: Some(LossReason::DISK_CAP),
        since: content.since,
        count: Some(content.count),
        file: Some(oldest.number),
        ..Loss::default()
    })
}

impl Pending {
    fn add(&mut self, record: &Record) {
        self.count(record);
        record.put(&mut self.bytes, &mut self.time);
    }

    fn count(&mut self, record: &Record) {
        let time = record.time().0;
        if self.records == 0 {
            (self.first, self.last, self.since) = (time, time, time);
        }
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        self.since = self.since.min(time);
        self.records += 1;
        if let Record::Loss(Loss {
            count: Some(count),
            since,
            reason,
            ..
        }) = record
        {
            self.lost += count;
            self.told += 1;
            // Another boot's times are in what went because of the cap.
            if *reason != Some(LossReason::DISK_CAP) {
                self.since = self.since.min(since.map_or(time, |since| since.0));
            }
        }
    }

    /// As a loss, with the losses that it tells of in place of the records that do.
    fn as_loss(&self) -> Option<Record> {
        (self.records > 0).then(|| {
            Record::from(Loss {
                time: Time(self.last),
                reason: Some(LossReason::DISK_ERROR),
                since: Some(Time(self.since)),
                count: Some(u64::from(self.records - self.told) + self.lost),
                ..Loss::default()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Bio;
    use std::cell::RefCell;
    use tempfile::TempDir;

    thread_local! {
        /// What was made durable: whether it was a directory, and when.
        static SYNCED: RefCell<Vec<(bool, Sync)>> = const { RefCell::new(Vec::new()) };
    }

    fn counted(file: &File, sync: Sync) -> io::Result<()> {
        let directory = file.metadata()?.is_dir();
        SYNCED.with_borrow_mut(|synced| synced.push((directory, sync)));
        Ok(())
    }

    #[test]
    fn a_file_is_made_durable_once_and_its_directory_never() {
        for sync in [Sync::Never, Sync::File, Sync::Block] {
            SYNCED.with_borrow_mut(Vec::clear);
            let dir = TempDir::new().expect("a directory");
            let options = Options {
                file_bytes: 200,
                sync,
                ..Options::default()
            };
            let mut writer = LogWriter::new(dir.path(), [7; 16], options).expect("a directory");
            writer.durable = counted;
            for time in 0..20 {
                let bio = Bio {
                    time: Time(time),
                    ..Bio::default()
                };
                writer.push(&[Record::from(bio)]).expect("written");
                writer.end_block().expect("written");
            }
            writer.close().expect("closed");
            let files = log_files(dir.path()).expect("files").len();
            let synced = SYNCED.take();
            let count = |sync| synced.iter().filter(|one| **one == (false, sync)).count();
            let of_files = if sync == Sync::Never { 0 } else { files };
            // With a block's, that of the index is one more in each file.
            let of_blocks = if sync == Sync::Block { 20 + files } else { 0 };
            assert!(files > 2);
            assert_eq!(
                (count(Sync::File), count(Sync::Block)),
                (of_files, of_blocks)
            );
            assert_eq!(synced.len(), of_files + of_blocks);
        }
    }
}
