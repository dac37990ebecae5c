// SPDX-License-Identifier: GPL-2.0-only
//! A recorded trace: its grammar, its order, and the files that must be there before it.

use crate::stats::CALLS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The file that recorded block I/O goes to.
pub const BLOCKS: &str = "blocks";
/// Largest request of recorded block I/O: bounds its buffer, bytes.
const MAX_REQUEST: u64 = 64 << 20;

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Path, flags, the descriptor's number.
    Open(String, i32, u64),
    /// Descriptor, bytes.
    Read(u64, u64),
    /// Descriptor, bytes, offset.
    Pread(u64, u64, u64),
    /// Descriptor, bytes.
    Write(u64, u64),
    /// Descriptor, bytes, offset.
    Pwrite(u64, u64, u64),
    /// Descriptor.
    Fsync(u64),
    /// Descriptor.
    Fdatasync(u64),
    /// Descriptor.
    Close(u64),
    /// Path.
    Unlink(String),
    /// Old and new path.
    Rename(String, String),
    /// Path.
    Mkdir(String),
    /// Path.
    Stat(String),
    /// Descriptor, offset, whence.
    Lseek(u64, i64, i32),
    /// Path, bytes.
    Truncate(String, u64),
    /// Descriptor, bytes.
    Ftruncate(u64, u64),
    /// Offset, bytes.
    Bread(u64, u64),
    /// Offset, bytes.
    Bwrite(u64, u64),
    /// Flush.
    Bflush,
}

impl Call {
    /// Its place among the replay's counters.
    pub fn index(&self) -> usize {
        match self {
            Call::Open(..) => 0,
            Call::Read(..) => 1,
            Call::Pread(..) => 2,
            Call::Write(..) => 3,
            Call::Pwrite(..) => 4,
            Call::Fsync(_) => 5,
            Call::Fdatasync(_) => 6,
            Call::Close(_) => 7,
            Call::Unlink(_) => 8,
            Call::Rename(..) => 9,
            Call::Mkdir(_) => 10,
            Call::Stat(_) => 11,
            Call::Lseek(..) => 12,
            Call::Truncate(..) => 13,
            Call::Ftruncate(..) => 14,
            Call::Bread(..) => 15,
            Call::Bwrite(..) => 16,
            Call::Bflush => 17,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        CALLS[self.index()]
    }

    /// The open descriptor that it uses.
    pub fn uses(&self) -> Option<u64> {
        match *self {
            Call::Read(fd, _)
            | Call::Pread(fd, ..)
            | Call::Write(fd, _)
            | Call::Pwrite(fd, ..)
            | Call::Fsync(fd)
            | Call::Fdatasync(fd)
            | Call::Close(fd)
            | Call::Lseek(fd, ..)
            | Call::Ftruncate(fd, _) => Some(fd),
            _ => None,
        }
    }

    fn paths(&self) -> Vec<&str> {
        match self {
            Call::Open(path, ..)
            | Call::Unlink(path)
            | Call::Mkdir(path)
            | Call::Stat(path)
            | Call::Truncate(path, _) => vec![path],
            Call::Rename(from, to) => vec![from, to],
            _ => Vec::new(),
        }
    }

    /// The end of what it reads or writes of the block file.
    fn block_end(&self) -> Option<u64> {
        match *self {
            Call::Bread(offset, bytes) | Call::Bwrite(offset, bytes) => Some(offset + bytes),
            Call::Bflush => Some(0),
            _ => None,
        }
    }
}

/// A call and when it was made, microseconds from the recording's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub us: u64,
    /// What.
    pub call: Call,
}

/// A recorded thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its name in the recording.
    pub name: String,
    /// Its calls, in time's order.
    pub events: Vec<Event>,
}

/// The life of a descriptor in the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdLife {
    /// Uses between its open and its close, by any thread.
    pub uses: u64,
}

/// A recorded trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Its threads.
    pub threads: Vec<Recorded>,
    /// Its descriptors.
    pub fds: BTreeMap<u64, FdLife>,
    /// Thread and number of the calls that use a descriptor before its open or after its close.
    pub stray: BTreeSet<(usize, usize)>,
}

/// A path of the recording as one below the app's directory.
pub fn own_path(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."))
        .collect();
    parts.join("/")
}

struct Fields<'a> {
    call: &'a str,
    rest: std::str::Split<'a, char>,
}

impl<'a> Fields<'a> {
    fn text(&mut self, name: &str) -> Result<&'a str, String> {
        self.rest
            .next()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| format!("{} lacks its {name}", self.call))
    }

    fn path(&mut self) -> Result<String, String> {
        let text = self.text("path")?;
        let path = own_path(text);
        if path.is_empty() || path.contains('\0') {
            return Err(format!("{}: {text:?} names no file", self.call));
        }
        Ok(path)
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Result<T, String> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| format!("{}: {name} {text:?} is not a number that fits", self.call))
    }

    fn bytes(&mut self) -> Result<u64, String> {
        let bytes: u64 = self.number("bytes")?;
        if bytes > i64::MAX as u64 / 2 {
            return Err(format!("{}: {bytes} bytes are too many", self.call));
        }
        Ok(bytes)
    }

    fn offset(&mut self) -> Result<u64, String> {
        let offset: u64 = self.number("offset")?;
        if offset > i64::MAX as u64 / 2 {
            return Err(format!("{}: offset {offset} is too large", self.call));
        }
        Ok(offset)
    }

    fn request(&mut self) -> Result<(u64, u64), String> {
        let (offset, bytes) = (self.offset()?, self.bytes()?);
        if bytes > MAX_REQUEST {
            return Err(format!(
                "{}: {bytes} bytes are above {MAX_REQUEST}; split the request",
                self.call
            ));
        }
        Ok((offset, bytes))
    }

    fn end(mut self) -> Result<(), String> {
        match self.rest.next() {
            Some(more) => Err(format!("{}: {more:?} is one field too many", self.call)),
            None => Ok(()),
        }
    }
}

fn parse_call<'a>(name: &'a str, rest: std::str::Split<'a, char>) -> Result<Call, String> {
    let mut f = Fields { call: name, rest };
    let call = match name {
        "open" => Call::Open(f.path()?, f.number("flags")?, f.number("descriptor")?),
        "read" => Call::Read(f.number("descriptor")?, f.bytes()?),
        "pread" => Call::Pread(f.number("descriptor")?, f.bytes()?, f.offset()?),
        "write" => Call::Write(f.number("descriptor")?, f.bytes()?),
        "pwrite" => Call::Pwrite(f.number("descriptor")?, f.bytes()?, f.offset()?),
        "fsync" => Call::Fsync(f.number("descriptor")?),
        "fdatasync" => Call::Fdatasync(f.number("descriptor")?),
        "close" => Call::Close(f.number("descriptor")?),
        "unlink" => Call::Unlink(f.path()?),
        "rename" => Call::Rename(f.path()?, f.path()?),
        "mkdir" => Call::Mkdir(f.path()?),
        "stat" => Call::Stat(f.path()?),
        "lseek" => Call::Lseek(
            f.number("descriptor")?,
            f.number("offset")?,
            f.number("whence")?,
        ),
        "truncate" => Call::Truncate(f.path()?, f.bytes()?),
        "ftruncate" => Call::Ftruncate(f.number("descriptor")?, f.bytes()?),
        "bread" => {
            let (offset, bytes) = f.request()?;
            Call::Bread(offset, bytes)
        }
        "bwrite" => {
            let (offset, bytes) = f.request()?;
            Call::Bwrite(offset, bytes)
        }
        "bflush" => Call::Bflush,
        _ => {
            return Err(format!(
                "unknown call {name:?}; the calls are {}",
                CALLS.join(" ")
            ))
        }
    };
    f.end()?;
    Ok(call)
}

impl Trace {
    /// Reads a normalised trace. Errors name the line.
    pub fn parse(text: &str) -> Result<Trace, String> {
        let mut trace = Trace::default();
        let mut seen = BTreeSet::new();
        for (index, line) in text.lines().enumerate() {
            if !line.is_empty() {
                trace
                    .line(line, &mut seen)
                    .map_err(|error| format!("line {}: {error}", index + 1))?;
            }
        }
        trace.find_lives()?;
        Ok(trace)
    }

    /// Reads a trace file.
    pub fn load(path: &Path) -> Result<Trace, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read trace {shown}: {error}"))?;
        Trace::parse(&text).map_err(|error| format!("trace {shown}: {error}"))
    }

    fn line(&mut self, line: &str, seen: &mut BTreeSet<String>) -> Result<(), String> {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let us: u64 = fields
            .next()
            .and_then(|text| text.parse().ok())
            .ok_or("needs tab-separated fields: thread, microseconds, call, arguments")?;
        let call = parse_call(fields.next().unwrap_or_default(), fields)?;
        if self.threads.last().map(|thread| thread.name.as_str()) != Some(name) {
            if !seen.insert(name.to_string()) {
                return Err(format!(
                    "thread {name} comes again; sort by thread, then time"
                ));
            }
            self.threads.push(Recorded {
                name: name.to_string(),
                events: Vec::new(),
            });
        }
        let events = match self.threads.last_mut() {
            Some(thread) => &mut thread.events,
            None => return Err("has no thread".to_string()),
        };
        if events.last().is_some_and(|last| last.us > us) {
            return Err("is earlier than the line before; sort by thread, then time".to_string());
        }
        events.push(Event { us, call });
        Ok(())
    }

    /// All calls in the recording's order: thread, number in the thread, event.
    pub fn in_order(&self) -> Vec<(usize, usize, &Event)> {
        let mut all: Vec<(usize, usize, &Event)> = Vec::new();
        for (thread, recorded) in self.threads.iter().enumerate() {
            let events = recorded.events.iter().enumerate();
            all.extend(events.map(|(number, event)| (thread, number, event)));
        }
        all.sort_by_key(|&(thread, number, event)| (event.us, thread, number));
        all
    }

    /// Counts each descriptor's uses, and finds the calls on one that is not open.
    fn find_lives(&mut self) -> Result<(), String> {
        let mut fds: BTreeMap<u64, FdLife> = BTreeMap::new();
        let mut open = BTreeSet::new();
        let mut stray = BTreeSet::new();
        for (thread, number, event) in self.in_order() {
            if let Call::Open(path, _, fd) = &event.call {
                if fds.insert(*fd, FdLife::default()).is_some() {
                    return Err(format!(
                        "descriptor {fd} is opened again, for {path}; give each open its own number"
                    ));
                }
                open.insert(*fd);
            }
            let Some(fd) = event.call.uses() else {
                continue;
            };
            if !open.contains(&fd) {
                stray.insert((thread, number));
            } else if matches!(event.call, Call::Close(_)) {
                open.remove(&fd);
            } else if let Some(life) = fds.get_mut(&fd) {
                life.uses += 1;
            }
        }
        (self.fds, self.stray) = (fds, stray);
        Ok(())
    }

    /// Whether the trace has block I/O.
    pub fn has_blocks(&self) -> bool {
        self.events().any(|event| event.call.block_end().is_some())
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.threads.iter().flat_map(|thread| &thread.events)
    }

    /// Directories that the trace's files are in, parents first.
    pub fn folders(&self) -> BTreeSet<String> {
        let mut folders = BTreeSet::new();
        for path in self.events().flat_map(|event| event.call.paths()) {
            for (at, _) in path.match_indices('/') {
                folders.insert(path[..at].to_string());
            }
        }
        folders
    }

    /// Files that must be there before the replay, with their least size in bytes.
    pub fn files(&self) -> BTreeMap<String, u64> {
        let mut world = World::default();
        for (thread, number, event) in self.in_order() {
            if !self.stray.contains(&(thread, number)) {
                world.apply(&event.call);
            }
        }
        let folders = self.folders();
        let mut needed = world.needed;
        needed.retain(|path, _| !folders.contains(path));
        if self.has_blocks() {
            let end = self.events().filter_map(|event| event.call.block_end());
            let page = crate::sys::PAGE as u64;
            let bytes = end.max().unwrap_or(0).div_ceil(page).max(1) * page;
            needed.insert(BLOCKS.to_string(), bytes);
        }
        needed
    }
}

/// A file while the trace is followed.
#[derive(Default)]
struct Node {
    /// The path under which it may have been there before the recording.
    origin: Option<String>,
    size: u64,
    /// Whether the trace has made it, or has already asked for it.
    there: bool,
}

/// What the recording must have found, followed call by call.
#[derive(Default)]
struct World {
    nodes: Vec<Node>,
    paths: BTreeMap<String, usize>,
    fds: BTreeMap<u64, (usize, u64)>,
    needed: BTreeMap<String, u64>,
}

impl World {
    fn node(&mut self, path: &str) -> usize {
        match self.paths.get(path) {
            Some(&index) => index,
            None => self.put(path, Some(path.to_string())),
        }
    }

    /// Puts a file that nobody has written under a path.
    fn put(&mut self, path: &str, origin: Option<String>) -> usize {
        self.nodes.push(Node {
            origin,
            ..Node::default()
        });
        let index = self.nodes.len() - 1;
        self.paths.insert(path.to_string(), index);
        index
    }

    fn need(&mut self, index: usize, bytes: u64) {
        if let Some(origin) = &self.nodes[index].origin {
            let least = self.needed.entry(origin.clone()).or_insert(0);
            *least = bytes.max(*least);
        }
    }

    fn need_there(&mut self, index: usize) {
        if !std::mem::replace(&mut self.nodes[index].there, true) {
            self.need(index, 0);
        }
    }

    fn read(&mut self, index: usize, end: u64) {
        if end > self.nodes[index].size {
            self.need(index, end);
            self.nodes[index].size = end;
        }
    }

    fn wrote(&mut self, index: usize, end: u64) {
        let node = &mut self.nodes[index];
        node.size = node.size.max(end);
    }

    fn cut(&mut self, index: usize, bytes: u64) {
        if bytes == 0 {
            self.nodes[index].origin = None;
        }
        self.nodes[index].size = bytes;
    }

    fn apply(&mut self, call: &Call) {
        match call {
            Call::Open(path, flags, fd) => self.open(path, *flags, *fd),
            Call::Rename(from, to) => {
                let index = self.node(from);
                self.need_there(index);
                self.paths.remove(from);
                self.paths.insert(to.clone(), index);
                self.put(from, None);
            }
            // What comes next under this name is new.
            Call::Unlink(path) => {
                self.put(path, None);
            }
            Call::Truncate(path, bytes) => {
                let index = self.node(path);
                self.need_there(index);
                self.cut(index, *bytes);
            }
            other => self.on_fd(other),
        }
    }

    fn open(&mut self, path: &str, flags: i32, fd: u64) {
        let creates = flags & libc::O_CREAT != 0;
        let index = if creates && flags & libc::O_EXCL != 0 {
            // The open worked, so the file was not there.
            self.put(path, None)
        } else {
            self.node(path)
        };
        if creates {
            self.nodes[index].there = true;
        } else {
            self.need_there(index);
        }
        if flags & libc::O_TRUNC != 0 {
            self.cut(index, 0);
        }
        self.fds.insert(fd, (index, 0));
    }

    fn on_fd(&mut self, call: &Call) {
        let Some((index, at)) = call.uses().and_then(|fd| self.fds.get(&fd).copied()) else {
            return;
        };
        let mut next = at;
        match *call {
            Call::Read(_, bytes) => {
                next = at + bytes;
                self.read(index, next);
            }
            Call::Pread(_, bytes, offset) => self.read(index, offset + bytes),
            Call::Write(_, bytes) => {
                next = at + bytes;
                self.wrote(index, next);
            }
            Call::Pwrite(_, bytes, offset) => self.wrote(index, offset + bytes),
            Call::Ftruncate(_, bytes) => self.cut(index, bytes),
            Call::Lseek(_, offset, whence) => {
                let base = match whence {
                    libc::SEEK_SET => 0,
                    libc::SEEK_CUR => at,
                    _ => self.nodes[index].size,
                };
                next = base.saturating_add_signed(offset);
            }
            _ => {}
        }
        if let Some((_, position)) = call.uses().and_then(|fd| self.fds.get_mut(&fd)) {
            *position = next;
        }
    }
}

impl FdLife {
    /// Whether so many uses are all.
    pub fn complete(&self, uses: u64) -> bool {
        uses >= self.uses
    }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
