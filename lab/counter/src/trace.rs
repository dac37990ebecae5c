// SPDX-License-Identifier: GPL-2.0-only
//! What traces block I/O meanwhile. Nobody reads it: what is counted is what the traced task pays.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::sys;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Room for all events of a state, KiB.
const RING_KIB: u32 = 32 << 10;

/// blktrace's own buffers: as many of so many bytes.
const BUFFERS: u32 = 64;
const BUFFER_BYTES: u32 = 512 << 10;

/// struct blk_user_trace_setup.
#[repr(C)]
struct Setup {
    name: [u8; 32],
    act_mask: u16,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
}

const BLKTRACESETUP: libc::c_ulong = 0xc048_1273;
const BLKTRACESTART: libc::c_ulong = 0x1274;
const BLKTRACESTOP: libc::c_ulong = 0x1275;
const BLKTRACETEARDOWN: libc::c_ulong = 0x1276;

/// A way to trace.
pub enum Trace {
    /// None.
    None,
    /// The events of io_origin, as the collector takes them.
    Origin,
    /// Two events of ftrace's: a request is issued, and ends.
    BlockEvents,
    /// The calls of blktrace(8).
    Blktrace,
}

/// A trace that has begun.
pub enum Tracing {
    /// None.
    None,
    /// By events of tracefs.
    Events(&'static [&'static str]),
    /// Of these disks.
    Blktrace(Vec<(&'static str, File)>),
}

impl Trace {
    /// Begins; a trace that loses something would be too cheap.
    pub fn begin(&self, disks: &[&'static str]) -> Result<Tracing, String> {
        match self {
            Trace::None => Ok(Tracing::None),
            Trace::Origin => events(&["io_origin"]),
            Trace::BlockEvents => events(&["block/block_rq_issue", "block/block_rq_complete"]),
            Trace::Blktrace => blktrace(disks),
        }
    }
}

fn events(names: &'static [&'static str]) -> Result<Tracing, String> {
    let root = Path::new(TRACEFS);
    sys::write(&root.join("buffer_size_kb"), &RING_KIB.to_string())?;
    sys::write(&root.join("options/overwrite"), "0")?;
    sys::write(&root.join("trace"), "\n")?;
    for name in names {
        sys::write(&root.join("events").join(name).join("enable"), "1")?;
    }
    // Probes of io_origin are registered by a worker.
    sleep(Duration::from_millis(100));
    Ok(Tracing::Events(names))
}

fn blktrace(names: &[&'static str]) -> Result<Tracing, String> {
    let mut disks = Vec::new();
    for name in names {
        let path = format!("/dev/{name}");
        let disk = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let mut setup = Setup {
            name: [0; 32],
            act_mask: u16::MAX,
            buf_size: BUFFER_BYTES,
            buf_nr: BUFFERS,
            start_lba: 0,
            end_lba: u64::MAX,
            pid: 0,
        };
        let argument = std::ptr::addr_of_mut!(setup).cast::<libc::c_void>();
        control(&disk, BLKTRACESETUP, argument)?;
        control(&disk, BLKTRACESTART, std::ptr::null_mut())?;
        disks.push((*name, disk));
    }
    Ok(Tracing::Blktrace(disks))
}

fn control(disk: &File, request: libc::c_ulong, argument: *mut libc::c_void) -> Result<(), String> {
    // SAFETY: the argument is what the request takes: the setup, or nothing.
    let done = unsafe { libc::ioctl(disk.as_raw_fd(), request, argument) };
    sys::check(done.into())
        .map(drop)
        .map_err(|error| format!("blktrace, ioctl {request:#x}: {error}"))
}

impl Tracing {
    /// Ends; how many events it has lost.
    pub fn end(self) -> Result<Option<u64>, String> {
        match self {
            Tracing::None => Ok(None),
            Tracing::Events(names) => {
                let root = Path::new(TRACEFS);
                for name in names {
                    sys::write(&root.join("events").join(name).join("enable"), "0")?;
                }
                let text = read(&root.join("per_cpu/cpu0/stats"))?;
                let entries = field(&text, "entries")?;
                if entries == 0 {
                    return Err("the trace is empty".into());
                }
                sys::write(&root.join("trace"), "\n")?;
                Ok(Some(
                    field(&text, "dropped events")? + field(&text, "overrun")?,
                ))
            }
            Tracing::Blktrace(disks) => {
                let mut lost = 0;
                for (name, disk) in &disks {
                    let place = Path::new("/sys/kernel/debug/block").join(name);
                    lost += read(&place.join("dropped"))?.trim().parse().unwrap_or(1);
                    let traced = read_bytes(&place.join("trace0"))?;
                    if traced == 0 {
                        return Err(format!("blktrace has nothing of {name}"));
                    }
                    control(disk, BLKTRACESTOP, std::ptr::null_mut())?;
                    control(disk, BLKTRACETEARDOWN, std::ptr::null_mut())?;
                }
                Ok(Some(lost))
            }
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read_bytes(path: &Path) -> Result<usize, String> {
    fs::read(path)
        .map(|bytes| bytes.len())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// A number of per_cpu/cpuN/stats.
fn field(text: &str, name: &str) -> Result<u64, String> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| format!("stats of the ring have no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_ring_are_found_by_their_whole_names() {
        let text = "entries: 12\noverrun: 3\ncommit overrun: 9\ndropped events: 4\n";
        assert_eq!(field(text, "overrun"), Ok(3));
        assert_eq!(field(text, "dropped events"), Ok(4));
        assert!(field(text, "entrie").is_err());
    }

    #[test]
    fn the_setup_of_blktrace_is_as_large_as_its_request_says() {
        let size = u64::try_from(std::mem::size_of::<Setup>()).expect("small");
        assert_eq!(size, (BLKTRACESETUP >> 16) & 0x3fff);
    }
}
