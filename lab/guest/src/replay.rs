// SPDX-License-Identifier: GPL-2.0-only
//! Replays one thread of a recorded trace.
//!
//! Threads share descriptors. A call waits until the descriptor that it uses has been opened, and
//! a close until the uses that were recorded before it are done. Both waits point backwards in the
//! recording's order, so that they cannot form a circle.

use crate::pattern::Pattern;
use crate::place::Place;
use crate::stats::Meter;
use crate::steps::FILE_MODE;
use crate::sys::Area;
use crate::trace::{Call, Event, Trace, BLOCKS};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Flags of a recorded open that are kept besides the access mode, O_CREAT, O_EXCL and O_TRUNC.
const KEPT_FLAGS: i32 = libc::O_APPEND | libc::O_SYNC | libc::O_DSYNC;

enum Fd {
    Open(Arc<Recorded>, u64),
    Failed,
}

struct Recorded {
    file: File,
    path: String,
    append: bool,
}

/// The descriptors of a replayed app.
pub struct Fds {
    table: Mutex<BTreeMap<u64, Fd>>,
    changed: Condvar,
}

impl Fds {
    /// None open yet.
    pub fn new() -> Fds {
        Fds {
            table: Mutex::new(BTreeMap::new()),
            changed: Condvar::new(),
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Fd>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, fd: u64, state: Fd) {
        self.table().insert(fd, state);
        self.changed.notify_all();
    }

    /// The file of a descriptor, once it is opened; none if the open failed.
    fn wait_open(&self, fd: u64) -> Option<Arc<Recorded>> {
        let table = self
            .changed
            .wait_while(self.table(), |table| !table.contains_key(&fd))
            .unwrap_or_else(PoisonError::into_inner);
        match table.get(&fd) {
            Some(Fd::Open(recorded, _)) => Some(Arc::clone(recorded)),
            _ => None,
        }
    }

    fn used(&self, fd: u64) {
        if let Some(Fd::Open(_, uses)) = self.table().get_mut(&fd) {
            *uses += 1;
        }
        self.changed.notify_all();
    }

    /// Takes a descriptor out, once its recorded uses are done.
    fn wait_done(&self, fd: u64, trace: &Trace) -> Option<Arc<Recorded>> {
        let under_way = |table: &mut BTreeMap<u64, Fd>| match table.get(&fd) {
            None => true,
            Some(Fd::Failed) => false,
            Some(Fd::Open(_, uses)) => !trace.fds.get(&fd).map_or(true, |l| l.complete(*uses)),
        };
        let mut table = self
            .changed
            .wait_while(self.table(), under_way)
            .unwrap_or_else(PoisonError::into_inner);
        match table.insert(fd, Fd::Failed) {
            Some(Fd::Open(recorded, _)) => Some(recorded),
            _ => None,
        }
    }
}

/// Makes the directories that a trace's files are in.
pub fn make_folders(trace: &Trace, data: &Path, app: &str) -> Result<(), String> {
    for folder in trace.folders() {
        let place = Place::of(data, app, &folder)?;
        match fs::create_dir(&place.real) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("mkdir {}: {error}", place.logical));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says so if the trace's block file is missing: without it nothing would be measured.
pub fn need_blocks(trace: &Trace, data: &Path, app: &str) -> Result<(), String> {
    let place = Place::of(data, app, BLOCKS)?;
    if trace.has_blocks() && !place.real.exists() {
        return Err(format!(
            "{} is missing; prepare what `--trace-files` lists",
            place.logical
        ));
    }
    Ok(())
}

/// One recorded thread, at work.
pub struct Replayer<'a> {
    meter: Meter<'a>,
    data: &'a Path,
    app: &'a str,
    trace: &'a Trace,
    fds: &'a Fds,
    buffer: Area,
    blocks: Option<File>,
}

/// How a call went: it was made and moved so many bytes of so many, or its descriptor is not open.
enum Outcome {
    Moved(u64, u64),
    NotOpen,
}

type Made = io::Result<Outcome>;

impl<'a> Replayer<'a> {
    /// A replayer of a thread of `trace`, with the phone's /data at `data`.
    pub fn new(
        meter: Meter<'a>,
        data: &'a Path,
        app: &'a str,
        trace: &'a Trace,
        fds: &'a Fds,
    ) -> io::Result<Replayer<'a>> {
        Ok(Replayer {
            meter,
            data,
            app,
            trace,
            fds,
            buffer: Area::private(crate::sys::PAGE)?,
            blocks: None,
        })
    }

    /// Replays the thread `thread` with its think times.
    pub fn run(&mut self, thread: usize) -> Result<(), String> {
        let trace = self.trace;
        let mut last_us = 0;
        for (number, event) in trace.threads[thread].events.iter().enumerate() {
            self.meter.think((event.us - last_us) * 1000);
            last_us = event.us;
            self.event(event, trace.stray.contains(&(thread, number)))?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, stray: bool) -> Result<(), String> {
        let outcome = if stray {
            Ok(Outcome::NotOpen)
        } else {
            self.make(&event.call)
        };
        let counts = &self.meter.slot().replayed;
        match outcome {
            Ok(Outcome::NotOpen) => counts.skipped.fetch_add(1, Relaxed),
            Ok(Outcome::Moved(moved, wanted)) => {
                counts.short.fetch_add(u64::from(moved < wanted), Relaxed);
                counts.calls.fetch_add(1, Relaxed)
            }
            Err(error) if lost_storage(&error) => {
                return Err(format!("{}: {error}", event.call.name()));
            }
            Err(_) => {
                counts.calls.fetch_add(1, Relaxed);
                counts.errors[event.call.index()].fetch_add(1, Relaxed)
            }
        };
        Ok(())
    }

    fn make(&mut self, call: &Call) -> Made {
        match call {
            Call::Open(path, flags, fd) => self.open(path, *flags, *fd),
            Call::Close(fd) => Ok(self.close(*fd)),
            Call::Unlink(path) => self.on_path("unlink", path, |real| fs::remove_file(real)),
            Call::Mkdir(path) => self.on_path("mkdir", path, |real| fs::create_dir(real)),
            Call::Stat(path) => self.on_path("stat", path, |real| fs::metadata(real).map(drop)),
            Call::Rename(from, to) => {
                let to = self.place(to)?;
                self.on_path("rename", from, |real| fs::rename(real, &to.real))
            }
            Call::Truncate(path, bytes) => self.on_path("truncate", path, |real| {
                OpenOptions::new().write(true).open(real)?.set_len(*bytes)
            }),
            Call::Bread(..) | Call::Bwrite(..) | Call::Bflush => self.block(call),
            other => self.on_fd(other),
        }
    }

    fn place(&self, path: &str) -> io::Result<Place> {
        Place::of(self.data, self.app, path).map_err(io::Error::other)
    }

    fn on_path(&self, op: &str, path: &str, work: impl FnOnce(&Path) -> io::Result<()>) -> Made {
        let place = self.place(path)?;
        self.meter.call(op, path, || work(&place.real))?;
        Ok(Outcome::Moved(0, 0))
    }

    fn open(&self, path: &str, flags: i32, fd: u64) -> Made {
        let access = flags & libc::O_ACCMODE;
        let create = flags & libc::O_CREAT != 0;
        let mut options = OpenOptions::new();
        options
            .read(access != libc::O_WRONLY)
            .write(access != libc::O_RDONLY)
            .mode(FILE_MODE);
        // A read-only open may create, which the library's own option refuses.
        let mut custom = flags & KEPT_FLAGS;
        for flag in [libc::O_CREAT, libc::O_EXCL, libc::O_TRUNC] {
            custom |= flags & flag;
        }
        if !create {
            custom &= !libc::O_EXCL;
        }
        options.custom_flags(custom);
        let place = self.place(path)?;
        let result = self.meter.call("open", path, || options.open(&place.real));
        match result {
            Ok(file) => {
                let recorded = Recorded {
                    file,
                    path: place.logical,
                    append: flags & libc::O_APPEND != 0,
                };
                self.fds.put(fd, Fd::Open(Arc::new(recorded), 0));
                Ok(Outcome::Moved(0, 0))
            }
            Err(error) => {
                self.fds.put(fd, Fd::Failed);
                Err(error)
            }
        }
    }

    fn close(&self, fd: u64) -> Outcome {
        let Some(recorded) = self.fds.wait_done(fd, self.trace) else {
            return Outcome::NotOpen;
        };
        let path = recorded.path.clone();
        self.meter.call("close", &path, || drop(recorded));
        Outcome::Moved(0, 0)
    }

    fn on_fd(&mut self, call: &Call) -> Made {
        let Some(fd) = call.uses() else {
            return Ok(Outcome::NotOpen);
        };
        let Some(recorded) = self.fds.wait_open(fd) else {
            return Ok(Outcome::NotOpen);
        };
        let result = self.transfer(call, &recorded);
        drop(recorded);
        self.fds.used(fd);
        result
    }

    fn transfer(&mut self, call: &Call, recorded: &Recorded) -> Made {
        let file = &recorded.file;
        let meter = self.meter;
        let (op, path) = (call.name(), recorded.path.as_str());
        match *call {
            Call::Read(_, bytes) => {
                let buffer = self.buffer(bytes)?;
                let got = meter.call(op, path, || (&*file).read(buffer))? as u64;
                meter.read(got);
                Ok(Outcome::Moved(got, bytes))
            }
            Call::Pread(_, bytes, offset) => {
                let buffer = self.buffer(bytes)?;
                let got = meter.call(op, path, || file.read_at(buffer, offset))? as u64;
                meter.read(got);
                Ok(Outcome::Moved(got, bytes))
            }
            Call::Write(_, bytes) => {
                let at = match recorded.append {
                    true => file.metadata()?.len(),
                    false => (&*file).stream_position()?,
                };
                let buffer = self.buffer(bytes)?;
                Pattern::of(path).fill(buffer, at);
                let put = meter.call(op, path, || (&*file).write(buffer))? as u64;
                meter.wrote(put);
                Ok(Outcome::Moved(put, bytes))
            }
            Call::Pwrite(_, bytes, offset) => {
                let buffer = self.buffer(bytes)?;
                Pattern::of(path).fill(buffer, offset);
                let put = meter.call(op, path, || file.write_at(buffer, offset))? as u64;
                meter.wrote(put);
                Ok(Outcome::Moved(put, bytes))
            }
            Call::Fsync(_) => done(meter.call(op, path, || file.sync_all())),
            Call::Fdatasync(_) => done(meter.call(op, path, || file.sync_data())),
            Call::Ftruncate(_, bytes) => done(meter.call(op, path, || file.set_len(bytes))),
            Call::Lseek(_, offset, whence) => {
                let to = match whence {
                    libc::SEEK_SET => SeekFrom::Start(offset.max(0) as u64),
                    libc::SEEK_CUR => SeekFrom::Current(offset),
                    _ => SeekFrom::End(offset),
                };
                done(meter.call(op, path, || (&*file).seek(to).map(drop)))
            }
            _ => Ok(Outcome::NotOpen),
        }
    }

    fn buffer(&mut self, bytes: u64) -> io::Result<&mut [u8]> {
        if (self.buffer.len() as u64) < bytes {
            self.buffer = Area::private(bytes as usize)?;
        }
        Ok(&mut self.buffer.bytes_mut()[..bytes as usize])
    }

    fn block(&mut self, call: &Call) -> Made {
        let place = self.place(BLOCKS)?;
        let file = match self.blocks.take() {
            Some(file) => file,
            None => OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_DIRECT)
                .open(&place.real)?,
        };
        let result = self.block_on(call, &file, &place.logical);
        self.blocks = Some(file);
        result
    }

    fn block_on(&mut self, call: &Call, file: &File, path: &str) -> Made {
        let meter = self.meter;
        match *call {
            Call::Bread(offset, bytes) => {
                let buffer = self.buffer(bytes)?;
                let got = meter.call("bread", path, || file.read_at(buffer, offset))? as u64;
                meter.read(got);
                Ok(Outcome::Moved(got, bytes))
            }
            Call::Bwrite(offset, bytes) => {
                let buffer = self.buffer(bytes)?;
                Pattern::of(path).fill(buffer, offset);
                let put = meter.call("bwrite", path, || file.write_at(buffer, offset))? as u64;
                meter.wrote(put);
                Ok(Outcome::Moved(put, bytes))
            }
            _ => done(meter.call("bflush", path, || file.sync_data())),
        }
    }
}

fn done(result: io::Result<()>) -> Made {
    result.map(|()| Outcome::Moved(0, 0))
}

/// Errors that no recording explains: the device failed, or the phone is full.
fn lost_storage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::ENOSPC | libc::EROFS)
    )
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
