// SPDX-License-Identifier: GPL-2.0-only
//! Ends a guest that is stuck, in virtual time, and shows where it is.
//!
//! A thread of PID 1 that only sleeps. While the apps run, PID 1 minds `limit_s` itself; the
//! watchdog is for what it cannot mind: a mkfs, a sync or an unmount that never returns.

use crate::console::say;
use crate::outcome::Outcome;
use crate::sys::{self, ChildSignal};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What PID 1 gets beyond `limit_s` to end the apps and unmount, ns of virtual time.
pub const MARGIN_NS: u64 = 300_000_000_000;

static DEADLINE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Moves the deadline: CLOCK_MONOTONIC, ns.
pub fn set_deadline(ns: u64) {
    DEADLINE.store(ns, Relaxed);
}

/// Starts the watchdog with a deadline. The blocked signal is its caller's, not the thread's.
pub fn start(_: &ChildSignal, deadline: u64) -> std::io::Result<()> {
    set_deadline(deadline);
    std::thread::Builder::new()
        .name("watchdog".to_string())
        .spawn(watch)
        .map(drop)
}

fn watch() {
    loop {
        let deadline = DEADLINE.load(Relaxed);
        if sys::monotonic_ns() >= deadline {
            bite();
        }
        sys::sleep_until_ns(deadline);
    }
}

fn bite() -> ! {
    let error = "the guest is stuck outside its apps (mkfs, sync or unmount); see its log";
    say(error);
    dump_all();
    // A result that is there tells what happened before; this is worse.
    if let Err(error) = Outcome::failed(error.to_string()).write() {
        say(&format!("cannot write result.json: {error}"));
    }
    sys::power_off_now()
}

/// Prints where each thread of a process is.
pub fn dump_process(pid: libc::pid_t) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let id = task.file_name();
        let stat = read("stat");
        let state = stat.rsplit(") ").next().and_then(|rest| rest.get(..1));
        say(&format!(
            "task {} ({}) state {} syscall {}",
            id.to_string_lossy(),
            read("comm").trim(),
            state.unwrap_or("?"),
            Some(read("syscall").trim())
                .filter(|text| !text.is_empty())
                .unwrap_or("?"),
        ));
        read("stack").lines().for_each(say);
    }
}

/// What the block layer and the device tell of the requests that they have.
const DISK: [&str; 6] = [
    "block/sda/state",
    "block/sda/hctx0/state",
    "block/sda/hctx0/dispatch",
    "block/sda/hctx0/busy",
    "block/sda/sched/state",
    "mflash/stats",
];

/// Prints which requests are where.
fn dump_disk() {
    for name in DISK {
        let text = fs::read_to_string(Path::new("/sys/kernel/debug").join(name));
        say(&format!("{name}:"));
        text.unwrap_or_default().lines().for_each(say);
    }
}

/// Prints where every task is, and has the kernel print the blocked ones.
///
/// Not by sysrq-t: it faults in User-Mode Linux.
pub fn dump_all() {
    let mut pids: Vec<libc::pid_t> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.into_iter().for_each(dump_process);
    dump_disk();
    if let Err(error) = fs::write("/proc/sysrq-trigger", "w") {
        say(&format!("sysrq w: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The blocked signals of a thread of this process, by its name.
    fn blocked(name: &str) -> Option<u64> {
        let tasks = fs::read_dir("/proc/self/task").expect("procfs").flatten();
        let read = |path: &Path, file: &str| fs::read_to_string(path.join(file));
        let task = tasks
            .map(|task| task.path())
            .find(|path| read(path, "comm").is_ok_and(|comm| comm.trim() == name))?;
        let status = read(&task, "status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(mask?.trim(), 16).ok()
    }

    #[test]
    fn the_watchdog_takes_no_signal_of_a_childs_end() {
        // Not in the test's own thread, whose mask others may inherit.
        let started = std::thread::spawn(|| {
            let signal = ChildSignal::block().expect("a descriptor");
            start(&signal, u64::MAX).expect("a thread");
        });
        started.join().expect("started");
        // It names itself when it runs first.
        let mask = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            blocked("watchdog")
        });
        let bit = 1 << (libc::SIGCHLD - 1);
        assert_eq!(mask.map(|mask| mask & bit), Some(bit));
    }
}
