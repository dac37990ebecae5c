// SPDX-License-Identifier: GPL-2.0-only
//! Plays the steps of one thread.

use crate::job::{self, Flag, Order, Repeat, Sqlite, Step, Transfer};
use crate::pattern::Pattern;
use crate::place::Place;
use crate::rng::Rng;
use crate::sqlite::Db;
use crate::stats::Meter;
use crate::sys::{Area, PAGE};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Mode of a file that an app makes: other apps may read it, as they may an APK.
pub const FILE_MODE: u32 = 0o644;

/// Which path a renamed file's content was made from. Shared by the threads of an app.
#[derive(Debug, Default)]
pub struct Origins(Mutex<BTreeMap<String, String>>);

impl Origins {
    fn pattern(&self, path: &str) -> Pattern {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pattern::of(map.get(path).map_or(path, String::as_str))
    }

    fn renamed(&self, from: &str, to: &str) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = map.remove(from).unwrap_or_else(|| from.to_string());
        map.insert(to.to_string(), origin);
    }

    fn forget(&self, path: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(path);
    }
}

struct Open {
    file: File,
    write: bool,
    flags: i32,
    map: Option<Area>,
}

/// One thread of an app, at work.
pub struct Player<'a> {
    meter: Meter<'a>,
    data: &'a Path,
    app: &'a str,
    verify: bool,
    origins: &'a Origins,
    rng: Rng,
    open: BTreeMap<String, Open>,
    databases: BTreeMap<String, Db>,
    memory: Vec<Area>,
    buffer: Area,
}

type Done = Result<(), String>;

fn failed(op: &str, file: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{op} {file}: {error}, errno {number}"),
        None => format!("{op} {file}: {error}"),
    }
}

fn short(got: usize, wanted: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("short: {got} of {wanted} bytes"),
    )
}

/// Writes a block by one call. After a short one, another says why.
fn write_block(file: &File, buffer: &[u8], at: u64) -> io::Result<()> {
    let put = file.write_at(buffer, at)?;
    if put < buffer.len() {
        file.write_at(&buffer[put..], at + put as u64)?;
        return Err(short(put, buffer.len()));
    }
    Ok(())
}

/// Offsets and lengths of the blocks of a transfer, in their order.
fn blocks(t: &Transfer, offset: u64, bytes: u64, rng: &mut Rng) -> Vec<(u64, usize)> {
    let block = t.block_bytes();
    let mut list: Vec<(u64, usize)> = (0..bytes.div_ceil(block))
        .map(|index| {
            let at = index * block;
            (offset + at, block.min(bytes - at) as usize)
        })
        .collect();
    if t.order == Order::Random {
        rng.shuffle(&mut list);
    }
    list
}

impl<'a> Player<'a> {
    /// A player of the thread `thread` of `app`, with the phone's /data at `data`.
    pub fn new(
        meter: Meter<'a>,
        data: &'a Path,
        app: &'a str,
        thread: &str,
        seed: i64,
        verify: bool,
        origins: &'a Origins,
    ) -> io::Result<Player<'a>> {
        Ok(Player {
            meter,
            data,
            app,
            verify,
            origins,
            rng: Rng::new(seed, app, thread),
            open: BTreeMap::new(),
            databases: BTreeMap::new(),
            memory: Vec::new(),
            buffer: Area::private(PAGE)?,
        })
    }

    /// Plays steps in order. `count` is what `{i}` stands for.
    pub fn run(&mut self, steps: &[Step], count: Option<u64>) -> Done {
        steps.iter().try_for_each(|step| self.step(step, count))
    }

    fn step(&mut self, step: &Step, count: Option<u64>) -> Done {
        match step {
            Step::Read(t) => self.read(t, count),
            Step::Mmap(t) => self.mmap(t, count),
            Step::Write(t) => self.write(t, count),
            Step::Fsync(f) => self.sync("fsync", &f.file, count, File::sync_all),
            Step::Fdatasync(f) => self.sync("fdatasync", &f.file, count, File::sync_data),
            Step::Close(f) => self.close(&f.file, count),
            Step::Unlink(f) => self.unlink(&f.file, count),
            Step::Mkdir(f) => self.mkdir(&f.file, count),
            Step::Rename(r) => self.rename(&r.file, &r.to, count),
            Step::Stat(f) => {
                let place = self.place(&f.file, count)?;
                self.call("stat", &place, || fs::metadata(&place.real).map(drop))
            }
            Step::Sqlite(s) => self.sqlite(s, count),
            Step::Think(t) => {
                self.meter.think(job::ns(t.s));
                Ok(())
            }
            Step::Memory(m) => self.take_memory(m.bytes),
            Step::Repeat(r) => self.repeat(r),
            Step::Touch(_) => {
                self.meter.wait_touch_and_forget();
                Ok(())
            }
        }
    }

    fn repeat(&mut self, repeat: &Repeat) -> Done {
        let mut done = 0_u64;
        while repeat.times == 0 || done < repeat.times {
            let shown = match repeat.cycle {
                0 => done,
                cycle => done % cycle,
            };
            self.run(&repeat.steps, Some(shown))?;
            done += 1;
        }
        Ok(())
    }

    fn place(&self, file: &str, count: Option<u64>) -> Result<Place, String> {
        match count {
            Some(count) if file.contains("{i}") => Place::of(
                self.data,
                self.app,
                &file.replace("{i}", &count.to_string()),
            ),
            _ => Place::of(self.data, self.app, file),
        }
    }

    fn call<T>(
        &self,
        op: &str,
        place: &Place,
        work: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, String> {
        self.meter
            .call(op, &place.logical, work)
            .map_err(|error| failed(op, &place.logical, &error))
    }

    /// Opens a file unless it is open in a way that serves.
    fn opened(&mut self, place: &Place, write: bool, create: bool, flags: i32) -> Done {
        if let Some(open) = self.open.get(&place.logical) {
            let fits = if write {
                open.write && open.flags == flags
            } else {
                open.flags & libc::O_DIRECT == 0 || flags & libc::O_DIRECT != 0
            };
            if fits {
                return Ok(());
            }
            self.close_place(place);
        }
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(write)
            .create(create)
            .mode(FILE_MODE)
            .custom_flags(flags);
        let file = self.call("open", place, || options.open(&place.real))?;
        let open = Open {
            file,
            write,
            flags,
            map: None,
        };
        self.open.insert(place.logical.clone(), open);
        Ok(())
    }

    fn file(&self, place: &Place) -> &File {
        &self.open[&place.logical].file
    }

    fn size(&self, place: &Place) -> Result<u64, String> {
        self.file(place)
            .metadata()
            .map(|metadata| metadata.len())
            .map_err(|error| failed("fstat", &place.logical, &error))
    }

    fn grow_buffer(&mut self, t: &Transfer) -> Done {
        let bytes = t.block_bytes() as usize;
        if self.buffer.len() < bytes {
            self.buffer = Area::private(bytes)
                .map_err(|error| failed("mmap of a buffer for", &t.file, &error))?;
        }
        Ok(())
    }

    fn length(&self, t: &Transfer, place: &Place) -> Result<u64, String> {
        if t.bytes > 0 {
            return Ok(t.bytes);
        }
        let size = self.size(place)?;
        size.checked_sub(t.offset).ok_or_else(|| {
            format!(
                "read {}: offset {} is behind the end, {size}",
                place.logical, t.offset
            )
        })
    }

    fn read(&mut self, t: &Transfer, count: Option<u64>) -> Done {
        let place = self.place(&t.file, count)?;
        self.opened(&place, false, false, 0)?;
        self.grow_buffer(t)?;
        let bytes = self.length(t, &place)?;
        let pattern = self.origins.pattern(&place.logical);
        for (at, length) in blocks(t, t.offset, bytes, &mut self.rng) {
            let file = &self.open[&place.logical].file;
            let buffer = &mut self.buffer.bytes_mut()[..length];
            self.meter
                .call("read", &place.logical, || {
                    match file.read_at(buffer, at)? {
                        got if got == length => Ok(()),
                        got => Err(short(got, length)),
                    }
                })
                .map_err(|error| failed("read", &place.logical, &error))?;
            self.meter.read(length as u64);
            if self.verify {
                self.meter.mismatched(pattern.mismatches(buffer, at));
            }
            self.meter.think(job::ns(t.think_s));
        }
        Ok(())
    }

    fn mmap(&mut self, t: &Transfer, count: Option<u64>) -> Done {
        let place = self.place(&t.file, count)?;
        self.opened(&place, false, false, 0)?;
        let size = self.size(&place)?;
        let bytes = self.length(t, &place)?;
        if t.offset + bytes > size {
            let end = t.offset + bytes;
            return Err(format!(
                "mmap {}: {end} bytes are wanted, the file has {size}",
                place.logical
            ));
        }
        if bytes == 0 {
            return Ok(());
        }
        let pattern = self.origins.pattern(&place.logical);
        let open = self
            .open
            .get_mut(&place.logical)
            .ok_or("mmap: the file is not open")?;
        if open.map.as_ref().map_or(0, Area::len) < size as usize {
            let map = Area::of_file(&open.file, size as usize);
            open.map = Some(map.map_err(|error| failed("mmap", &place.logical, &error))?);
        }
        for (at, length) in blocks(t, t.offset, bytes, &mut self.rng) {
            let Some(map) = &self.open[&place.logical].map else {
                break;
            };
            let wrong = self.meter.call("mmap", &place.logical, || {
                touch_pages(map, at, length, &pattern)
            });
            self.meter.read(length as u64);
            if self.verify {
                self.meter.mismatched(wrong);
            }
            self.meter.think(job::ns(t.think_s));
        }
        Ok(())
    }

    fn write(&mut self, t: &Transfer, count: Option<u64>) -> Done {
        let place = self.place(&t.file, count)?;
        let mut flags = 0;
        for (flag, bits) in [
            (Flag::Direct, libc::O_DIRECT),
            (Flag::Sync, libc::O_SYNC),
            (Flag::Dsync, libc::O_DSYNC),
        ] {
            flags |= if t.has(flag) { bits } else { 0 };
        }
        self.opened(&place, true, t.has(Flag::Create), flags)?;
        self.grow_buffer(t)?;
        if t.has(Flag::Truncate) {
            self.origins.forget(&place.logical);
            self.call("truncate", &place, || self.file(&place).set_len(0))?;
        }
        let offset = match t.has(Flag::Append) {
            true => self.size(&place)?,
            false => t.offset,
        };
        let pattern = self.origins.pattern(&place.logical);
        for (at, length) in blocks(t, offset, t.bytes, &mut self.rng) {
            let file = &self.open[&place.logical].file;
            let buffer = &mut self.buffer.bytes_mut()[..length];
            pattern.fill(buffer, at);
            self.meter
                .call("write", &place.logical, || write_block(file, buffer, at))
                .map_err(|error| failed("write", &place.logical, &error))?;
            self.meter.wrote(length as u64);
            self.meter.think(job::ns(t.think_s));
        }
        Ok(())
    }

    fn sync(
        &mut self,
        op: &str,
        file: &str,
        count: Option<u64>,
        work: fn(&File) -> io::Result<()>,
    ) -> Done {
        let place = self.place(file, count)?;
        if !self.open.contains_key(&place.logical) {
            self.opened(&place, false, false, 0)?;
        }
        self.call(op, &place, || work(self.file(&place)))
    }

    fn close_place(&mut self, place: &Place) {
        if let Some(open) = self.open.remove(&place.logical) {
            self.meter.call("close", &place.logical, || drop(open));
        }
    }

    fn close(&mut self, file: &str, count: Option<u64>) -> Done {
        let place = self.place(file, count)?;
        self.close_place(&place);
        if let Some(db) = self.databases.remove(&place.logical) {
            self.meter
                .call("sqlite close", &place.logical, || db.close())
                .map_err(|error| format!("sqlite close {}: {error}", place.logical))?;
        }
        Ok(())
    }

    fn unlink(&mut self, file: &str, count: Option<u64>) -> Done {
        let place = self.place(file, count)?;
        self.call("unlink", &place, || fs::remove_file(&place.real))?;
        self.origins.forget(&place.logical);
        // A later step with this name means a new file.
        self.close(file, count)
    }

    fn mkdir(&mut self, file: &str, count: Option<u64>) -> Done {
        let place = self.place(file, count)?;
        self.call("mkdir", &place, || match fs::create_dir(&place.real) {
            // A repeated step finds its directory there.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        })
    }

    fn rename(&mut self, file: &str, to: &str, count: Option<u64>) -> Done {
        let (from, to) = (self.place(file, count)?, self.place(to, count)?);
        self.call("rename", &from, || fs::rename(&from.real, &to.real))?;
        self.origins.renamed(&from.logical, &to.logical);
        if let Some(replaced) = self.open.remove(&to.logical) {
            self.meter.call("close", &to.logical, || drop(replaced));
        }
        if let Some(open) = self.open.remove(&from.logical) {
            self.open.insert(to.logical, open);
        }
        Ok(())
    }

    fn sqlite(&mut self, s: &Sqlite, count: Option<u64>) -> Done {
        let place = self.place(&s.file, count)?;
        let name = place.logical.as_str();
        if !self.databases.contains_key(name) {
            let db = self
                .meter
                .call("sqlite open", name, || Db::open(&place.real, s.journal))
                .map_err(|error| format!("sqlite open {name}: {error}"))?;
            self.databases.insert(place.logical.clone(), db);
        }
        let db = self
            .databases
            .get_mut(name)
            .ok_or("sqlite: the database is not open")?;
        let op = format!("sqlite {}", s.kind.name());
        if !db.has_journal(s.journal) {
            self.meter
                .call("sqlite journal", name, || db.set_journal(s.journal))
                .map_err(|error| format!("sqlite journal {name}: {error}"))?;
        }
        for _ in 0..s.transactions {
            let moved = self
                .meter
                .call(&op, name, || db.transaction(s, &mut self.rng))
                .map_err(|error| format!("{op} {name}: {error}"))?;
            self.meter.read(moved.read);
            self.meter.wrote(moved.written);
            if self.verify {
                self.meter.mismatched(moved.wrong);
            }
            self.meter.think(job::ns(s.think_s));
        }
        Ok(())
    }

    fn take_memory(&mut self, bytes: u64) -> Done {
        let take = || -> io::Result<Area> {
            let mut area = Area::private(bytes as usize)?;
            let first_bytes = area.bytes_mut().iter_mut().step_by(PAGE);
            first_bytes.for_each(|byte| *byte = 1);
            Ok(area)
        };
        // Where memory is short, taking it waits for storage.
        let area = self.meter.call("memory", "", take);
        self.memory
            .push(area.map_err(|error| failed("memory", &format!("{bytes} bytes"), &error))?);
        Ok(())
    }
}

/// Touches one byte of every page of a block and says how many are wrong.
fn touch_pages(map: &Area, at: u64, length: usize, pattern: &Pattern) -> u64 {
    let end = at + length as u64;
    let mut offset = at;
    let mut wrong = 0;
    while offset < end {
        wrong += u64::from(map.touch(offset as usize) != pattern.byte(offset));
        offset = (offset / PAGE as u64 + 1) * PAGE as u64;
    }
    wrong
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
