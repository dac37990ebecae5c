// SPDX-License-Identifier: GPL-2.0-only
//! Kernel stacks of threads, by /proc/TID/stack.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest stack that is read, bytes: the kernel gives 64 entries at most.
pub const STACK_BYTES: usize = 8192;

/// Where kernel threads sleep when they have nothing to do.
const IDLE: [&str; 7] = [
    "worker_thread",
    "rescuer_thread",
    "kswapd",
    "kswapd_try_to_sleep",
    "gc_thread_func",
    "issue_discard_thread",
    "issue_flush_thread",
];
/// Where a command's threads sleep, or wait for each other: nothing of the kernel's holds them up.
/// What is static may be part of its caller, which is named as well.
const RESTS: [&str; 26] = [
    "__do_semtimedop",
    "__futex_wait",
    "do_epoll_wait",
    "do_nanosleep",
    "do_select",
    "do_signal_stop",
    "do_sigtimedwait",
    "do_sys_poll",
    "do_wait",
    "ep_poll",
    "eventfd_read",
    "fifo_open",
    "futex_wait_queue",
    "hrtimer_nanosleep",
    "kernel_wait4",
    "kernel_waitid",
    "pipe_read",
    "pipe_write",
    "poll_schedule_timeout",
    "sigsuspend",
    "sys_pause",
    "sys_rt_sigsuspend",
    "timerfd_read_iter",
    "unix_stream_read_generic",
    "wait_for_partner",
    "wait_woken",
];
/// The scheduler's own functions, the innermost of every sleeping stack.
const SCHEDULER: [&str; 6] = [
    "__switch_to",
    "__schedule",
    "schedule",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
];

/// The number of a stack among [`Stacks`].
pub type StackId = usize;

/// Stacks seen, each once, by the text of /proc/TID/stack.
#[derive(Default)]
pub struct Stacks(BTreeMap<Vec<u8>, StackId>);

impl Stacks {
    /// The number of a stack.
    pub fn id(&mut self, text: &[u8]) -> StackId {
        let new = self.0.len();
        if let Some(&id) = self.0.get(text) {
            return id;
        }
        self.0.insert(text.to_vec(), new);
        new
    }

    /// All stacks, by their numbers.
    pub fn list(&self) -> Vec<Vec<String>> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, &id)| id);
        all.into_iter().map(|(text, _)| places(text)).collect()
    }
}

/// The places of a stack, innermost first: `[<0>] name+0x1e/0x50` is `name+0x1e`.
fn places(text: &[u8]) -> Vec<String> {
    let place = |line: &str| {
        let symbol = line.split_whitespace().nth(1)?;
        symbol.split('/').next().map(str::to_string)
    };
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(place).collect()
}

/// The function of a place: `name.isra.0+0x1e` is in `name`.
fn function(place: &str) -> &str {
    place.split(['+', '.']).next().unwrap_or(place)
}

/// Whether the innermost function that is not the scheduler's is one of these; none: `without`.
fn sleeps_in(text: &[u8], functions: &[&str], without: bool) -> bool {
    let places = places(text);
    let mut found = places.iter().map(|place| function(place));
    found
        .find(|name| !SCHEDULER.contains(name))
        .map_or(without, |name| functions.contains(&name))
}

/// Whether a kernel thread with this stack has nothing to do.
pub fn idle(text: &[u8]) -> bool {
    sleeps_in(text, &IDLE, true)
}

/// Whether a command's thread with this stack sleeps, or waits for another. One that runs does not.
pub fn rests(text: &[u8]) -> bool {
    sleeps_in(text, &RESTS, false)
}

/// An open file of a thread in procfs.
pub struct Probe(File);

impl Probe {
    /// The stack of a thread, with procfs at `proc`.
    pub fn stack(proc: &Path, tid: libc::pid_t) -> Option<Probe> {
        Probe::open(&proc.join(format!("{tid}/stack")))
    }

    /// Any file; none if it cannot be opened.
    pub fn open(path: &Path) -> Option<Probe> {
        File::open(path).ok().map(Probe)
    }

    /// The file's text, into `buffer`; none of a thread that is gone.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = self.0.read_at(buffer, 0).ok()?;
        Some(&buffer[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: &str = "[<0>] __switch_to+0x3e/0x90\n[<0>] io_schedule+0x1e/0x50\n[<0>] filemap_read.part.0+0x2/0x9\n";
    const IDLES: &str =
        "[<0>] schedule+0x2/0x9\n[<0>] worker_thread+0x2/0x9\n[<0>] kthread+0x2/0x9\n";

    #[test]
    fn a_stack_is_its_places() {
        let expected = [
            "__switch_to+0x3e",
            "io_schedule+0x1e",
            "filemap_read.part.0+0x2",
        ];
        assert_eq!(places(READS.as_bytes()), expected);
        assert_eq!(function("filemap_read.part.0+0x2"), "filemap_read");
        assert!(places(b"").is_empty());
        let mut stacks = Stacks::default();
        let ids = [READS, "", READS].map(|text| stacks.id(text.as_bytes()));
        assert_eq!(ids, [0, 1, 0]);
        assert_eq!(stacks.list()[1], Vec::<String>::new());
    }

    #[test]
    fn idle_workers_are_known_by_their_innermost_function() {
        assert!(idle(IDLES.as_bytes()) && idle(b""));
        assert!(!idle(READS.as_bytes()));
        assert!(idle(
            b"[<0>] schedule_timeout+0x2/0x9\n[<0>] kswapd+0x2/0x9\n"
        ));
    }

    #[test]
    fn a_command_rests_where_it_waits_for_no_storage() {
        assert!(rests(b"[<0>] schedule+0x2/0x9\n[<0>] do_wait+0x2/0x9\n"));
        assert!(rests(
            b"[<0>] schedule_hrtimeout_range_clock+0x2/0x9\n[<0>] poll_schedule_timeout.constprop.0+0x2/0x9\n"
        ));
        assert!(!rests(READS.as_bytes()) && !rests(b""));
        // A pipe's page may have to wait for memory.
        assert!(!rests(
            b"[<0>] schedule+0x2/0x9\n[<0>] __alloc_pages_slowpath+0x2/0x9\n[<0>] pipe_write+0x2/0x9\n"
        ));
    }
}
