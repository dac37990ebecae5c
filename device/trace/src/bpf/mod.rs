// SPDX-License-Identifier: GPL-2.0-only
//! The BPF source: programs on tracepoints of any kernel with BTF, and their ring.
//!
//! They send who dirties which page and the pages of each bio; the rest is events of tracefs. Without clang at build
//! time there are none, and [`load`] says so.

pub(crate) mod layout;
mod misses;
mod sums;
mod types;

use crate::clocks;
use crate::tracefs::{Batch, EventFormat, Missing};
use aya::maps::{MapData, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader, Endianness};
use fasttrack_trace_log::LossReason;
use misses::Grown;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

pub use sums::{load as load_sums, Sums};

#[cfg(bpf_object)]
static OBJECT: Option<&[u8]> = Some(aya::include_bytes_aligned!(concat!(
    env!("OUT_DIR"),
    "/origin.bpf.o"
)));
#[cfg(not(bpf_object))]
static OBJECT: Option<&[u8]> = None;

/// The kernel's types, below sysfs.
pub const BTF: &str = "kernel/btf/vmlinux";

/// Programs on tracepoints of the kernel itself, and whether all is useless without them.
const PROGRAMS: [(&str, &str, bool); 3] = [
    ("dirty", "writeback_dirty_folio", true),
    ("bio_queue", "block_bio_queue", true),
    ("fault", "mm_filemap_fault", false),
];

/// The program that tells of tasks of which other events have the thread alone.
const TELLS_TASKS: &str = "task";

/// Programs on tracepoints of file systems, which are modules, mostly.
const OF_MODULES: [(&str, &[&str]); 2] = [
    (
        "written",
        &[
            "ext4_write_begin",
            "ext4_da_write_begin",
            "f2fs_write_begin",
        ],
    ),
    (
        TELLS_TASKS,
        &[
            "jbd2_handle_start",
            "ext4_sync_file_enter",
            "f2fs_sync_file_enter",
        ],
    ),
];

/// What ends a bio of direct I/O: the program knows such bios by it.
const DIRECT_ENDED: &str = "iomap_dio_bio_end_io";

/// The reader is woken when a fourth of the ring is full, as with the rings of tracefs.
const WAKE_PART: u64 = 4;

/// The ring has so small a part of each processor's ring of tracefs: an I/O of one run has 120 bytes here, and its three
/// events of tracefs 195. A page that becomes dirty has 96 bytes more.
const RING_PART: u64 = 2;

/// The ring, one for all processors, grows with them no further, bytes. All of it counts as resident twice, for it is
/// mapped twice: with the collector's own 4 MiB that is 12 MiB, and with the next power of two 20 of at most 16.
const RING_CAP: u64 = 4 << 20;

/// What the programs take for a page, bytes.
const PAGE: usize = 4096;

/// The largest ring that the kernel makes, bytes.
const RING_MAX: u64 = 1 << 30;

const HINT: &str = "; see fasttrack-trace doctor";

/// What is unknown on any kernel that is not patched.
pub const GAPS: [&str; 6] = [
    "who triggers a transaction, and who pays for handles of the flusher",
    "who has changed a node of f2fs",
    "new names of files that are renamed while it records: each has the name of its first use",
    "class and cause of bios, and all calls and waits but syncs and throttling",
    "owners of pages that an app maps and writes to while they are dirty from another one; XFS's and btrfs's are the \
     first one's, whoever writes over them",
    "files and owners below fscrypt, whose bios carry other pages; owners of what is written through a loop device: \
     they are its worker",
];

/// Counts of a processor, as the program has them: how many records found no room, and the time of the last, ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    count: u64,
    until: u64,
}

// SAFETY: two numbers without padding: any bytes are valid.
unsafe impl aya::Pod for Lost {}

/// The programs at work, which end when this is dropped.
pub struct Programs {
    /// Detached when it is dropped.
    ebpf: Option<Ebpf>,
    ring: RingBuf<MapData>,
    lost: PerCpuArray<MapData, Lost>,
    /// Of each processor: what was told already.
    told: Vec<Grown>,
    missed: Grown,
    checked: u64,
    formats: BTreeMap<u16, EventFormat>,
    missing: Vec<String>,
}

/// The address of a function; none if there is none, or addresses are hidden.
fn address(name: &str) -> Option<u64> {
    let file = BufReader::new(File::open("/proc/kallsyms").ok()?);
    file.split(b'\n').map_while(Result::ok).find_map(|line| {
        let line = std::str::from_utf8(&line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (at, _, found) = (words.next()?, words.next()?, words.next()?);
        let at = u64::from_str_radix(at, 16).ok()?;
        (found == name && at != 0).then_some(at)
    })
}

/// A line of an error and of what is behind it. The verifier says much, and at the end why.
fn told(error: &dyn std::error::Error) -> String {
    let mut parts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let (said, log) = text.split_once("Verifier output:").unwrap_or((&text, ""));
        let why = |line: &&str| !line.trim().is_empty() && !line.starts_with("processed ");
        let lines = said.lines().next().into_iter();
        let last = log
            .lines()
            .rfind(why)
            .filter(|line| !line.contains("verification time"));
        parts.extend(
            lines
                .chain(last)
                .map(|line| line.trim().trim_end_matches('.').to_string()),
        );
        next = error.source();
    }
    parts.dedup();
    parts.join(": ")
}

/// Whether the programs are in this build.
pub fn built() -> bool {
    OBJECT.is_some()
}

/// A loader without types. By itself it takes all of the kernel's, before it can be given others; so it finds no file
/// that it can open.
fn loader<'a>() -> EbpfLoader<'a> {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    // If this is refused all are taken, which costs memory alone.
    let closed = setrlimit(Resource::Nofile, none);
    let loader = EbpfLoader::new();
    if closed.is_ok() {
        // What was allowed before is allowed again.
        let _ = setrlimit(Resource::Nofile, before);
    }
    loader
}

/// The kernel's types, as far as the programs need them: all of them are 20 MiB of memory.
fn types_of(path: &Path, object: &[u8]) -> Result<Btf, String> {
    let failed = |error: &dyn std::error::Error| format!("{}: {}", path.display(), told(error));
    let all = std::fs::read(path).map_err(|error| failed(&error))?;
    let own = object::File::parse(object).map_err(|error| failed(&error))?;
    let own = own.section_by_name(".BTF").map(|section| section.data());
    let own = own.transpose().map_err(|error| failed(&error))?;
    let traced: Vec<String> = PROGRAMS
        .iter()
        .chain(&sums::PROGRAMS)
        .map(|(_, tracepoint, _)| format!("btf_trace_{tracepoint}"))
        .collect();
    let needed = types::needed(&all, own.unwrap_or_default(), &traced).ok_or_else(|| {
        let form = std::io::Error::other("its types have a form that is not known");
        failed(&form)
    })?;
    drop(all);
    Btf::parse(&needed, Endianness::default()).map_err(|error| failed(&error))
}

/// Bytes of the ring: a part of `buffer_kib` for each processor up to the cap, and that part of it where it is more.
fn ring_bytes(buffer_kib: u64, processors: u64) -> u64 {
    let part = (buffer_kib << 10) / RING_PART;
    let grown = part.saturating_mul(processors).min(RING_CAP);
    let bytes = grown.max(part).clamp(PAGE as u64, RING_MAX);
    bytes.next_power_of_two()
}

/// The programs, attached.
struct Loaded {
    ebpf: Ebpf,
    /// What this kernel does not tell, in words.
    missing: Vec<String>,
}

/// Loads and attaches the programs, with a ring of so many bytes; for `sums` with maps of these sizes, and those programs
/// that they need.
///
/// # Errors
/// What is missing, in words.
fn loaded(sysfs: &Path, ring: u64, sums: Option<&[(&str, u32)]>) -> Result<Loaded, String> {
    let types = sysfs.join(BTF);
    if !types.exists() {
        return Err("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)".to_string());
    }
    let page = rustix::param::page_size();
    if page != PAGE {
        return Err(format!(
            "this kernel has pages of {page} bytes, and the BPF programs know those of {PAGE}"
        ));
    }
    let object = OBJECT.ok_or(
        "this fasttrack-trace was built without BPF: install clang and build it again (FASTTRACK_BPF=yes)",
    )?;
    let types = types_of(&types, object)?;
    let (wake, ended) = (ring / WAKE_PART, address(DIRECT_ENDED).unwrap_or(0));
    let summing = u64::from(sums.is_some());
    let mut loader = loader();
    loader
        .btf(Some(&types))
        .set_global("wake_bytes", &wake, true)
        .set_global("direct_ended", &ended, true)
        .set_global("summing", &summing, true)
        .set_max_entries("ring", ring as u32);
    for (map, entries) in sums.unwrap_or_default() {
        loader.set_max_entries(map, *entries);
    }
    let loaded = loader.load(object);
    let mut ebpf = loaded.map_err(|error| format!("{}{HINT}", told(&error)))?;
    let mut missing = Vec::new();
    if ended == 0 {
        missing.push(format!(
            "files of direct I/O: {DIRECT_ENDED} is not in /proc/kallsyms, or hidden without CAP_SYSLOG"
        ));
    }
    let more = sums.map_or(&[][..], |_| &sums::PROGRAMS);
    for (name, tracepoint, needed) in PROGRAMS.iter().chain(more) {
        match attach(&mut ebpf, name, tracepoint, &types) {
            Err(error) if *needed => return Err(format!("{error}{HINT}")),
            Err(error) => missing.push(error),
            Ok(()) => {}
        }
    }
    let more = sums.map_or(&[][..], |_| &sums::OF_MODULES);
    for (name, tracepoints) in OF_MODULES.iter().chain(more) {
        // Nobody reads what is sent of tasks.
        if *name != TELLS_TASKS || sums.is_none() {
            attach_raw(&mut ebpf, name, tracepoints)?;
        }
    }
    drop(types);
    give_back();
    Ok(Loaded { ebpf, missing })
}

/// Loads and attaches the programs that send records, with a ring of a part of `buffer_kib` a processor.
///
/// # Errors
/// What is missing, in words.
pub fn load(sysfs: &Path, buffer_kib: u64) -> Result<Programs, String> {
    let processors = aya::util::online_cpus().map_or(1, |online| online.len());
    let bytes = ring_bytes(buffer_kib, processors as u64);
    let Loaded { mut ebpf, missing } = loaded(sysfs, bytes, None)?;
    let mut map = |name: &str| ebpf.take_map(name).ok_or(format!("there is no map {name}"));
    let ring = RingBuf::try_from(map("ring")?).map_err(|error| told(&error))?;
    let lost = PerCpuArray::try_from(map("lost")?).map_err(|error| told(&error))?;
    Ok(Programs {
        ebpf: Some(ebpf),
        ring,
        lost,
        told: Vec::new(),
        missed: Grown::default(),
        checked: clocks::boot(),
        formats: layout::formats()
            .into_iter()
            .map(|format| (format.id, format))
            .collect(),
        missing,
    })
}

/// The kernel's types are 8 MiB of memory while they are in use; the allocator would keep it.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no conditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn attach(ebpf: &mut Ebpf, name: &str, tracepoint: &str, types: &Btf) -> Result<(), String> {
    let failed =
        |error: &dyn std::error::Error| format!("tracepoint {tracepoint}: {}", told(error));
    let program = ebpf.program_mut(name).ok_or(format!("no program {name}"))?;
    let program: &mut BtfTracePoint = program.try_into().map_err(|error| failed(&error))?;
    program
        .load(tracepoint, types)
        .map_err(|error| failed(&error))?;
    program.attach().map_err(|error| failed(&error))?;
    Ok(())
}

/// A tracepoint that is not there is one of a file system that is not there.
fn attach_raw(ebpf: &mut Ebpf, name: &str, tracepoints: &[&str]) -> Result<(), String> {
    let failed = |error: &dyn std::error::Error| format!("program {name}: {}", told(error));
    let program = ebpf.program_mut(name).ok_or(format!("no program {name}"))?;
    let program: &mut RawTracePoint = program.try_into().map_err(|error| failed(&error))?;
    program.load().map_err(|error| failed(&error))?;
    for tracepoint in tracepoints {
        let _ = program.attach(tracepoint);
    }
    Ok(())
}

impl Programs {
    /// Descriptions of their events by number.
    pub fn formats(&self) -> &BTreeMap<u16, EventFormat> {
        &self.formats
    }

    /// What this kernel does not tell, in words.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Can be read when much is in the ring.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring has the descriptor open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Reads what is in the ring, and what was lost.
    pub fn read(&mut self, batch: &mut Batch) {
        let now = clocks::boot();
        let mut last = self.checked;
        while let Some(record) = self.ring.next() {
            if layout::events(&record, &mut batch.events).is_none() {
                batch.losses.push(Missing {
                    cpu: None,
                    since: last,
                    until: now,
                    count: Some(1),
                    reason: LossReason::UNREADABLE,
                });
            }
            last = batch.events.last().map_or(last, |event| event.0);
        }
        self.settle(now, batch);
    }

    /// Counts what found no room since the last time, and what no program ran for.
    fn settle(&mut self, now: u64, batch: &mut Batch) {
        if let Ok(counts) = self.lost.get(&0, 0) {
            self.told.resize_with(counts.len(), Grown::default);
            for (cpu, lost) in counts.iter().enumerate() {
                if let Some(count) = self.told[cpu].by(lost.count) {
                    batch.losses.push(Missing {
                        cpu: Some(cpu as u64),
                        since: self.checked,
                        until: lost.until,
                        count: Some(count),
                        reason: LossReason::RING_OVERRUN,
                    });
                }
            }
        }
        self.count_misses(now, batch);
        self.checked = now;
    }

    /// The kernel tells them of all processors together.
    fn count_misses(&mut self, now: u64, batch: &mut Batch) {
        let programs = self.ebpf.iter().flat_map(Ebpf::programs);
        let misses = programs.filter_map(|(_, program)| misses::of(program.fd().ok()?.as_fd()));
        if let Some(count) = self.missed.by(misses.sum()) {
            batch.losses.push(Missing {
                cpu: None,
                since: self.checked,
                until: now,
                count: Some(count),
                reason: LossReason::RECURSION,
            });
        }
    }

    /// No more records are made.
    pub fn stop(&mut self, batch: &mut Batch) {
        // The count goes with the programs.
        self.count_misses(clocks::boot(), batch);
        self.ebpf = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_grows_with_processors_up_to_the_goal() {
        let sizes = [(512, 1), (512, 4), (512, 64), (8192, 1), (8192, 64)];
        let kib = sizes.map(|(buffer, processors)| ring_bytes(buffer, processors) >> 10);
        assert_eq!(kib, [256, 1024, 4096, 4096, 4096]);
        // What is asked for is there, whatever it takes, if the kernel makes it.
        assert_eq!(ring_bytes(32 << 10, 64), 16 << 20);
        assert_eq!(ring_bytes(u64::MAX >> 10, 64), RING_MAX);
    }

    /// Where programs may be loaded: whoever may not, or has no clang, sees why.
    #[test]
    fn the_kernel_tells_each_programs_misses() {
        let programs = match load(Path::new("/sys"), 64) {
            Ok(programs) => programs,
            Err(why) => return println!("SKIPPED ({why})"),
        };
        let ebpf = programs.ebpf.as_ref().expect("it is not stopped");
        let loaded = ebpf.programs().filter_map(|(_, program)| program.fd().ok());
        let misses: Vec<_> = loaded.map(|fd| misses::of(fd.as_fd())).collect();
        assert!(
            misses.len() >= PROGRAMS.len() - 1 + OF_MODULES.len(),
            "{misses:?}"
        );
        assert!(misses.iter().all(Option::is_some), "{misses:?}");
    }
}
