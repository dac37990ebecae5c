// SPDX-License-Identifier: GPL-2.0-only
//! A ring buffer of our own, below `instances/`: other users of tracefs are not disturbed.

use super::format::EventFormat;
use super::hist;
use super::page::{Layout, Missed, Page};
use fasttrack_trace_log::LossReason;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted.
pub const TRACEFS: &str = "/sys/kernel/tracing";

/// Pages of a processor that are read at once: 256 KiB, so that a full ring is never in memory as a whole.
const PAGES: usize = 64;

/// How the buffer is made.
#[derive(Debug, Clone)]
pub struct Setup {
    /// A ring that is there already, as from boot on, instead of one of our own. It stays.
    pub ring: Option<String>,
    /// Where tracefs is mounted.
    pub root: PathBuf,
    /// Begin of the instance's name; the process's number follows.
    pub name: String,
    /// Size for each processor, KiB.
    pub buffer_kib: u64,
    /// The reader is woken when the buffer is so full, per cent.
    pub wake_percent: u64,
    /// Events, `SYSTEM/NAME`.
    pub events: Vec<String>,
}

/// Why there is no buffer.
#[derive(Debug)]
pub struct InstanceError {
    /// Which file.
    pub path: PathBuf,
    /// What it says.
    pub error: io::Error,
}

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = match self.error.kind() {
            io::ErrorKind::PermissionDenied => ": run it as root, or see fasttrack-trace doctor",
            io::ErrorKind::NotFound => ": is tracefs mounted? See fasttrack-trace doctor",
            _ => "",
        };
        write!(f, "{}: {}{hint}", self.path.display(), self.error)
    }
}

impl std::error::Error for InstanceError {}

/// One processor's part.
struct Ring {
    cpu: u64,
    file: File,
    /// The processor was not online since the buffer was made: the kernel gives it a part when it comes.
    absent: bool,
    stats: PathBuf,
    /// Events lost, as its pages have said.
    told: u64,
    /// A page said that it does not know how many.
    unsure: bool,
    /// Time of the last event that was read, ns.
    last: u64,
}

/// What a read of a processor's part has found.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Page(usize),
    Empty,
    Absent,
    Interrupted,
}

/// A part stays, with what is in it, when its processor goes.
fn part(read: io::Result<usize>) -> io::Result<Part> {
    match read {
        Ok(0) => Ok(Part::Empty),
        Ok(count) => Ok(Part::Page(count)),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(Part::Absent),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => Ok(Part::Empty),
            io::ErrorKind::Interrupted => Ok(Part::Interrupted),
            _ => Err(error),
        },
    }
}

/// Events that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Of which processor, if it is known.
    pub cpu: Option<u64>,
    /// From when, ns.
    pub since: u64,
    /// To when, ns.
    pub until: u64,
    /// How many, if it is known.
    pub count: Option<u64>,
    /// Why.
    pub reason: LossReason,
}

/// Events that were read in one pass.
#[derive(Debug, Default)]
pub struct Batch {
    /// Time, processor, bytes: in the order of each processor.
    pub events: Vec<(u64, u64, Vec<u8>)>,
    /// Losses.
    pub losses: Vec<Missing>,
}

/// A ring buffer, which is removed when this is dropped.
pub struct Instance {
    path: PathBuf,
    rings: Vec<Ring>,
    layout: Layout,
    page: Vec<u8>,
    formats: BTreeMap<u16, EventFormat>,
    missing: Vec<String>,
    /// It is removed at the end.
    own: bool,
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, InstanceError> {
    result.map_err(|error| InstanceError {
        path: path.to_path_buf(),
        error,
    })
}

fn set(path: &Path, value: &str) -> Result<(), InstanceError> {
    at(path, fs::write(path, value))
}

impl Instance {
    /// Makes the buffer and begins to record.
    ///
    /// # Errors
    /// A file of tracefs says no. Events that this kernel does not have are no error: see [`Instance::missing`].
    pub fn new(setup: &Setup) -> Result<Instance, InstanceError> {
        let instances = setup.root.join("instances");
        remove_orphans(&setup.root, &instances, &setup.name);
        let path = match &setup.ring {
            Some(name) => instances.join(name),
            None => {
                let path = instances.join(format!("{}-{}", setup.name, std::process::id()));
                at(&path, fs::create_dir(&path))?;
                path
            }
        };
        let mut instance = Instance {
            path,
            rings: Vec::new(),
            layout: Layout {
                commit: 8,
                data: 16,
            },
            page: Vec::new(),
            formats: BTreeMap::new(),
            missing: Vec::new(),
            own: setup.ring.is_none(),
        };
        instance.set_up(setup)?;
        Ok(instance)
    }

    fn set_up(&mut self, setup: &Setup) -> Result<(), InstanceError> {
        let header = self.path.join("events/header_page");
        let text = at(&header, whole(&header))?;
        let unknown =
            || io::Error::other(format!("pages are laid out in an unknown way: {text:?}"));
        self.layout = at(&header, Layout::parse(&text).ok_or_else(unknown))?;
        if self.own {
            set(&self.path.join("trace_clock"), "boot")?;
            set(
                &self.path.join("buffer_size_kb"),
                &setup.buffer_kib.to_string(),
            )?;
        } else {
            self.has_our_clock()?;
        }
        // Kernels before 5.0 wake for each event.
        let _ = fs::write(
            self.path.join("buffer_percent"),
            setup.wake_percent.to_string(),
        );
        let subbuf = fs::read_to_string(self.path.join("buffer_subbuf_size_kb"));
        let kib = subbuf
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok());
        self.page = vec![0; kib.unwrap_or(4) << 10];
        self.open_rings()?;
        for event in &setup.events {
            self.enable(event)?;
        }
        set(&self.path.join("tracing_on"), "1")
    }

    /// A ring that is there keeps what it has only if its clock is not set.
    fn has_our_clock(&self) -> Result<(), InstanceError> {
        let path = self.path.join("trace_clock");
        let clocks = at(&path, fs::read_to_string(&path))?;
        let other = || {
            io::Error::other(format!(
                "its times are not of the boot-time clock ({}): say trace_clock = boot where the ring is made",
                clocks.trim()
            ))
        };
        at(
            &path,
            clocks.contains("[boot]").then_some(()).ok_or_else(other),
        )
    }

    fn open_rings(&mut self) -> Result<(), InstanceError> {
        let folder = self.path.join("per_cpu");
        for entry in at(&folder, fs::read_dir(&folder))? {
            let path = at(&folder, entry)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let cpu = name.and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            let Some(cpu) = cpu else { continue };
            let pipe = path.join("trace_pipe_raw");
            let mut opened = OpenOptions::new();
            opened.read(true).custom_flags(libc::O_NONBLOCK);
            self.rings.push(Ring {
                cpu,
                file: at(&pipe, opened.open(&pipe))?,
                absent: false,
                stats: path.join("stats"),
                told: 0,
                unsure: false,
                last: 0,
            });
        }
        self.rings.sort_by_key(|ring| ring.cpu);
        Ok(())
    }

    fn enable(&mut self, event: &str) -> Result<(), InstanceError> {
        let folder = self.path.join("events").join(event);
        let format = folder.join("format");
        if !format.exists() {
            self.missing.push(event.to_string());
            return Ok(());
        }
        let text = at(&format, fs::read_to_string(&format))?;
        let parsed = EventFormat::parse(&text).map_err(io::Error::other);
        let parsed = at(&format, parsed)?;
        self.formats.insert(parsed.id, parsed);
        set(&folder.join("enable"), "1")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enables more events, `SYSTEM/NAME`.
    ///
    /// # Errors
    /// As [`Instance::new`].
    pub fn add(&mut self, events: &[&str]) -> Result<(), InstanceError> {
        events.iter().try_for_each(|event| self.enable(event))
    }

    /// Descriptions of the enabled events by their ids.
    pub fn formats(&self) -> &BTreeMap<u16, EventFormat> {
        &self.formats
    }

    /// Events that this kernel does not have.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Waits until a buffer is full enough or `other` can be read, for `timeout_ns` at most, or until a signal.
    pub fn wait(&self, timeout_ns: u64, other: Option<BorrowedFd<'_>>) {
        let mut polled: Vec<PollFd<'_>> = self
            .rings
            .iter()
            // One that is absent is an error at once, and is read whenever the others are.
            .filter(|ring| !ring.absent)
            .map(|ring| PollFd::new(&ring.file, PollFlags::IN))
            .chain(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)))
            .collect();
        let timeout = Timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as i64,
            tv_nsec: (timeout_ns % 1_000_000_000) as _,
        };
        // A signal, or a buffer that went: the next read says so.
        let _ = poll(&mut polled, Some(&timeout));
    }

    /// Reads a part of what there is up to the time `until`, ns. Gives the time up to which all is there, if there is
    /// more.
    ///
    /// # Errors
    /// The instance was taken away.
    pub fn read(&mut self, until: u64, batch: &mut Batch) -> Result<Option<u64>, InstanceError> {
        let mut more = None;
        for ring in &mut self.rings {
            let read = ring.read(&mut self.page, self.layout, batch);
            let empty = at(&self.path, read)?;
            if !empty && ring.last < until {
                more = Some(more.map_or(ring.last, |time: u64| time.min(ring.last)));
            }
        }
        match self.path.exists() {
            true => Ok(more),
            false => at(
                &self.path,
                Err(io::Error::other(
                    "the ring was taken away: somebody has removed it or unmounted tracefs; what was read is written. \
                     See fasttrack-trace doctor, and record again",
                )),
            ),
        }
    }

    /// Ends recording; what is in the buffer can still be read.
    ///
    /// # Errors
    /// The instance was taken away.
    pub fn stop(&self) -> Result<(), InstanceError> {
        set(&self.path.join("tracing_on"), "0")
    }
}

impl Ring {
    /// Reads some pages; says whether there are no more.
    fn read(&mut self, page: &mut [u8], layout: Layout, batch: &mut Batch) -> io::Result<bool> {
        for _ in 0..PAGES {
            let found = part(self.file.read(page))?;
            self.absent = found == Part::Absent;
            match found {
                Part::Page(count) => self.take(&page[..count], layout, batch),
                Part::Empty | Part::Absent => return Ok(self.settle(batch)),
                Part::Interrupted => {}
            }
        }
        Ok(false)
    }

    fn take(&mut self, bytes: &[u8], layout: Layout, batch: &mut Batch) {
        let Ok(mut page) = Page::new(bytes, layout) else {
            batch
                .losses
                .push(self.missing(self.last, None, LossReason::UNREADABLE));
            return;
        };
        let missed = page.missed;
        let before = self.last;
        let mut first = None;
        loop {
            match page.event() {
                Ok(Some(event)) => {
                    first.get_or_insert(event.time);
                    self.last = event.time;
                    batch
                        .events
                        .push((event.time, self.cpu, event.data.to_vec()));
                }
                Ok(None) => break,
                Err(_) => {
                    batch
                        .losses
                        .push(self.missing(self.last, None, LossReason::UNREADABLE));
                    break;
                }
            }
        }
        let until = first.unwrap_or(self.last);
        match missed {
            Missed::None => {}
            Missed::Some => self.unsure = true,
            Missed::Count(count) => {
                self.told += count;
                let missing = Missing {
                    until,
                    ..self.missing(before, Some(count), LossReason::RING_OVERRUN)
                };
                batch.losses.push(missing);
            }
        }
    }

    /// Events that are missing from `since` to the last one that was read.
    fn missing(&self, since: u64, count: Option<u64>, reason: LossReason) -> Missing {
        Missing {
            cpu: Some(self.cpu),
            since,
            until: self.last,
            count,
            reason,
        }
    }

    /// Counts what pages could not, when all are read: the buffer's own count is exact.
    fn settle(&mut self, batch: &mut Batch) -> bool {
        if !self.unsure {
            return true;
        }
        self.unsure = false;
        let overrun = fs::read_to_string(&self.stats)
            .ok()
            .and_then(|text| said(&text, "overrun"));
        let count = overrun.map(|total| total.saturating_sub(self.told));
        self.told += count.unwrap_or(0);
        if count != Some(0) {
            batch
                .losses
                .push(self.missing(self.last, count, LossReason::RING_OVERRUN));
        }
        true
    }
}

/// Removes buffers of collectors that were killed.
fn remove_orphans(root: &Path, instances: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(instances) else {
        return;
    };
    let own = std::process::id().to_string();
    for path in entries.flatten().map(|entry| entry.path()) {
        let pid = path
            .file_name()
            .and_then(|found| found.to_str()?.strip_prefix(name)?.strip_prefix('-'));
        let ended = |pid: &str| pid == own || !Path::new("/proc").join(pid).exists();
        if pid.is_some_and(ended) {
            if let Some(pid) = pid.and_then(|pid| pid.parse().ok()) {
                hist::remove(root, &path, pid);
            }
            // What cannot be removed costs memory and no more.
            let _ = fs::remove_dir(&path);
        }
    }
}

/// A small file by one read: tracefs gives some files no second one.
fn whole(path: &Path) -> io::Result<String> {
    let mut bytes = vec![0; 16 << 10];
    let count = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(count);
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// A number of `per_cpu/cpuN/stats`.
fn said(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(": ")?
            .trim()
            .parse()
            .ok()
    })
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.rings.clear();
        // One that was taken away is gone already.
        let _ = fs::write(self.path.join("tracing_on"), "0");
        if self.own {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot without a processor is no error, nor one whose processor went; a buffer that was taken away is.
    #[test]
    fn processors_come_and_go() {
        let failed = |code| part(Err(io::Error::from_raw_os_error(code)));
        assert_eq!(failed(libc::ENODEV).ok(), Some(Part::Absent));
        assert_eq!(failed(libc::EAGAIN).ok(), Some(Part::Empty));
        assert_eq!(failed(libc::EINTR).ok(), Some(Part::Interrupted));
        assert_eq!(part(Ok(0)).ok(), Some(Part::Empty));
        assert_eq!(part(Ok(4096)).ok(), Some(Part::Page(4096)));
        assert!(failed(libc::EIO).is_err());
    }

    #[test]
    fn a_page_that_is_torn_is_a_loss() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let path = dir.path().join("trace_pipe_raw");
        // An event of 8 bytes at 1,005; then one that says it is longer than its page. Then a page that is none.
        let entries: Vec<u8> = [1 | 5 << 5, 0xa1, 20 | 1 << 5]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        let mut bytes = [1000_u64.to_le_bytes(), 12_u64.to_le_bytes()].concat();
        bytes.extend(entries);
        bytes.resize(4096, 0);
        bytes.extend([0xff; 4096]);
        fs::write(&path, bytes).expect("written");
        let mut ring = Ring {
            cpu: 3,
            file: File::open(&path).expect("a file"),
            absent: true,
            stats: dir.path().join("stats"),
            told: 0,
            unsure: false,
            last: 0,
        };
        let layout = Layout {
            commit: 8,
            data: 16,
        };
        let mut batch = Batch::default();
        let empty = ring.read(&mut [0; 4096], layout, &mut batch);
        assert!(empty.expect("read"));
        assert_eq!(batch.events.len(), 1);
        // Its processor has come.
        assert!(!ring.absent);
        let missing = Missing {
            cpu: Some(3),
            since: 1005,
            until: 1005,
            count: None,
            reason: LossReason::UNREADABLE,
        };
        assert_eq!(batch.losses, [missing, missing]);
    }
}
