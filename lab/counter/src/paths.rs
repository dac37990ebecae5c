// SPDX-License-Identifier: GPL-2.0-only
//! The paths that are measured, in batches of the same operation many times.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys::{self, PAGE};

/// Pages of the file. Half of them are an ordinary batch.
const PAGES: usize = 1024;
const BATCH: usize = 256;

/// Batches that count, after those that warm up. An odd number: their median is one of them.
const BATCHES: usize = 15;
const WARM: usize = 3;

/// Pages that a fault maps by default (fault_around_bytes, 64 KiB).
const AROUND: usize = 16;

/// What is open, so that a task without any right can use it.
pub struct Ground {
    file: File,
    direct: File,
    raw: File,
    around: File,
    elevators: [File; 2],
    buffer: *mut u8,
    mapped: *mut u8,
}

/// An I/O path.
struct Path {
    name: &'static str,
    /// Operations of a batch.
    ops: usize,
    /// Whether the elevator is in it: else there is none.
    elevator: bool,
    prepare: fn(&Ground),
    run: fn(&Ground),
}

/// Nothing to prepare.
fn ready(_: &Ground) {}

const PATHS: [Path; 13] = [
    Path {
        name: "read-cached",
        ops: BATCH,
        elevator: false,
        prepare: ready,
        run: |on| pages(|page| on.read(&on.file, page)),
    },
    Path {
        name: "write-cached",
        ops: BATCH,
        elevator: false,
        prepare: ready,
        run: |on| pages(|page| on.write(&on.file, page)),
    },
    Path {
        name: "write-clean",
        ops: BATCH,
        elevator: false,
        prepare: Ground::clean,
        run: |on| pages(|page| on.write(&on.file, page)),
    },
    Path {
        name: "fault-around",
        ops: PAGES / AROUND,
        elevator: false,
        prepare: |on| on.advise(libc::MADV_DONTNEED),
        run: |on| (0..PAGES / AROUND).for_each(|part| on.touch(part * AROUND)),
    },
    Path {
        name: "fault",
        ops: BATCH,
        elevator: false,
        prepare: |on| {
            on.advise(libc::MADV_DONTNEED);
            on.set_around(PAGE);
        },
        run: |on| pages(|page| on.touch(page)),
    },
    Path {
        name: "direct-read",
        ops: BATCH,
        elevator: false,
        prepare: ready,
        run: |on| pages(|page| on.read(&on.raw, page)),
    },
    Path {
        name: "direct-read-elevator",
        ops: BATCH,
        elevator: true,
        prepare: ready,
        run: |on| pages(|page| on.read(&on.raw, page)),
    },
    Path {
        name: "direct-write",
        ops: BATCH,
        elevator: false,
        prepare: ready,
        run: |on| pages(|page| on.write(&on.raw, page)),
    },
    Path {
        name: "direct-write-elevator",
        ops: BATCH,
        elevator: true,
        prepare: ready,
        run: |on| pages(|page| on.write(&on.raw, page)),
    },
    Path {
        name: "direct-write-file",
        ops: BATCH,
        elevator: true,
        prepare: ready,
        run: |on| pages(|page| on.write(&on.direct, page)),
    },
    Path {
        name: "read-uncached",
        ops: BATCH,
        elevator: true,
        prepare: Ground::drop_cached,
        run: |on| pages(|page| on.read(&on.file, page)),
    },
    Path {
        name: "write-back",
        ops: BATCH,
        elevator: true,
        prepare: Ground::clean,
        run: |on| {
            pages(|page| on.write(&on.file, page));
            on.write_back(0);
        },
    },
    Path {
        name: "write-back-apart",
        ops: BATCH,
        elevator: true,
        prepare: Ground::clean,
        run: |on| {
            pages(|page| on.write(&on.file, 2 * page));
            on.write_back(0);
        },
    },
];

/// An operation on each page of a batch.
fn pages(operation: impl Fn(usize)) {
    (0..BATCH).for_each(operation);
}

impl Ground {
    /// Makes the file, and opens everything.
    pub fn prepare() -> io::Result<Self> {
        let place = "/run/data/file";
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let mut file = options.clone().create(true).truncate(true).open(place)?;
        file.write_all(&vec![b'x'; PAGES * PAGE])?;
        file.sync_all()?;
        let direct = options.clone().custom_flags(libc::O_DIRECT).open(place)?;
        let raw = options.custom_flags(libc::O_DIRECT).open("/dev/raw")?;
        let write = |path: &str| OpenOptions::new().write(true).open(path);
        Ok(Self {
            around: write("/sys/kernel/debug/fault_around_bytes")?,
            elevators: [
                write("/sys/block/disk/queue/scheduler")?,
                write("/sys/block/raw/queue/scheduler")?,
            ],
            buffer: sys::memory(PAGE)?.as_mut_ptr(),
            mapped: map(PAGES * PAGE, file.as_raw_fd())?,
            file,
            direct,
            raw,
        })
    }

    /// All paths, each a line for every batch's ticks.
    pub fn measure(&self, state: &str, elevator: &str) -> String {
        PATHS
            .iter()
            .map(|path| self.measure_path(path, state, elevator))
            .collect()
    }

    fn measure_path(&self, path: &Path, state: &str, elevator: &str) -> String {
        self.set_elevator(if path.elevator { elevator } else { "none" });
        self.set_around(AROUND * PAGE);
        let (mut text, mut slept) = (String::new(), 0);
        for batch in 0..WARM + BATCHES {
            (path.prepare)(self);
            let sleeps = sys::sleeps();
            let begin = sys::ticks();
            (path.run)(self);
            let ticks = sys::ticks() - begin;
            if batch >= WARM {
                slept += sys::sleeps() - sleeps;
                let _ = write!(text, " {ticks}");
            }
        }
        format!("count {state} {} {} {slept}{text}\n", path.name, path.ops)
    }

    fn read(&self, file: &File, page: usize) {
        let at = (page * PAGE) as libc::off_t;
        // SAFETY: the buffer is a page.
        let done = unsafe { libc::pread(file.as_raw_fd(), self.buffer.cast(), PAGE, at) };
        assert_eq!(done, PAGE as isize, "pread: {}", io::Error::last_os_error());
    }

    fn write(&self, file: &File, page: usize) {
        let at = (page * PAGE) as libc::off_t;
        // SAFETY: the buffer is a page.
        let done = unsafe { libc::pwrite(file.as_raw_fd(), self.buffer.cast(), PAGE, at) };
        assert_eq!(
            done,
            PAGE as isize,
            "pwrite: {}",
            io::Error::last_os_error()
        );
    }

    /// Has all pages from PAGE on written back, and waits.
    fn write_back(&self, page: usize) {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let at = (page * PAGE) as libc::off64_t;
        // SAFETY: no memory is passed.
        let done = unsafe { libc::sync_file_range(self.file.as_raw_fd(), at, 0, flags) };
        sys::check(done.into()).expect("sync_file_range");
    }

    /// No page of the file is dirty, and its times are of now: only the first write of a tick changes them.
    fn clean(&self) {
        self.write(&self.file, PAGES - 1);
        self.write_back(0);
    }

    /// No page of the file is in the page cache, nor read ahead.
    fn drop_cached(&self) {
        self.advise(libc::MADV_DONTNEED);
        self.file.sync_all().expect("fsync");
        for advice in [libc::POSIX_FADV_DONTNEED, libc::POSIX_FADV_RANDOM] {
            // SAFETY: no memory is passed.
            let done = unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, advice) };
            assert_eq!(done, 0, "posix_fadvise");
        }
    }

    fn advise(&self, advice: libc::c_int) {
        // SAFETY: the mapping is this process's own, of a file.
        let done = unsafe { libc::madvise(self.mapped.cast(), PAGES * PAGE, advice) };
        sys::check(done.into()).expect("madvise");
    }

    fn touch(&self, page: usize) {
        // SAFETY: the mapping has so many pages, all of the file.
        unsafe { self.mapped.add(page * PAGE).read_volatile() };
    }

    fn set_around(&self, bytes: usize) {
        put(&self.around, &bytes.to_string());
    }

    fn set_elevator(&self, name: &str) {
        for elevator in &self.elevators {
            put(elevator, name);
        }
    }
}

fn put(mut file: &File, value: &str) {
    file.write_all(value.as_bytes())
        .unwrap_or_else(|error| panic!("{value}: {error}"));
}

/// Maps a file for reading alone: its pages stay clean.
fn map(bytes: usize, file: RawFd) -> io::Result<*mut u8> {
    let (access, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping, where the kernel likes.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(place.cast())
}
