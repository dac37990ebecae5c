// SPDX-License-Identifier: GPL-2.0-only
//! Statistics in memory that the apps share with PID 1, so that those of a killed app survive it.
//!
//! One slot a thread, written by that thread alone and read by PID 1. Slot 0 of an app is its main
//! thread's, which plays nothing and holds the app's own failures.

use crate::report::{Counts, Replay, SinceTouch};
use crate::sys::{self, Area};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};

/// Longest text that is kept of a call or an error, bytes.
const TEXT_BYTES: usize = 256;
/// `touch_ns` before the touch.
const NOT_TOUCHED: u64 = u64::MAX;

/// Short text in shared memory.
#[repr(C)]
pub struct Text {
    length: AtomicU32,
    bytes: [AtomicU8; TEXT_BYTES],
}

impl Text {
    /// Replaces the text, cut to what fits.
    pub fn set(&self, parts: &[&str]) {
        let all = parts.iter().flat_map(|part| part.bytes());
        let mut length = 0;
        for (cell, byte) in self.bytes.iter().zip(all) {
            cell.store(byte, Relaxed);
            length += 1;
        }
        self.length.store(length, Relaxed);
    }

    /// The text, if there is one.
    pub fn get(&self) -> Option<String> {
        let length = self.length.load(Relaxed) as usize;
        let bytes: Vec<u8> = self
            .bytes
            .iter()
            .take(length)
            .map(|b| b.load(Relaxed))
            .collect();
        (length > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Sums of a thread over a span of the run.
#[repr(C)]
pub struct Sums {
    /// Bytes read.
    pub bytes_read: AtomicU64,
    /// Bytes written.
    pub bytes_written: AtomicU64,
    /// Calls.
    pub ops: AtomicU64,
    /// Longest time that one call took.
    pub longest_ns: AtomicU64,
}

impl Sums {
    fn call(&self, took: u64) -> bool {
        self.ops.fetch_add(1, Relaxed);
        let longest = took > self.longest_ns.load(Relaxed);
        if longest {
            self.longest_ns.store(took, Relaxed);
        }
        longest
    }

    fn reset(&self) {
        for cell in [
            &self.bytes_read,
            &self.bytes_written,
            &self.ops,
            &self.longest_ns,
        ] {
            cell.store(0, Relaxed);
        }
    }
}

/// Calls of a trace, in the order of the replay's counters.
pub const CALLS: [&str; 18] = [
    "open",
    "read",
    "pread",
    "write",
    "pwrite",
    "fsync",
    "fdatasync",
    "close",
    "unlink",
    "rename",
    "mkdir",
    "stat",
    "lseek",
    "truncate",
    "ftruncate",
    "bread",
    "bwrite",
    "bflush",
];

/// What a thread of a replayed trace counts.
#[repr(C)]
pub struct Replayed {
    /// Calls that were made.
    pub calls: AtomicU64,
    /// Calls on a descriptor that is not open.
    pub skipped: AtomicU64,
    /// Calls that moved fewer bytes than recorded.
    pub short: AtomicU64,
    /// Calls that failed, by [`CALLS`].
    pub errors: [AtomicU64; CALLS.len()],
}

/// A thread's statistics.
#[repr(C)]
pub struct Slot {
    /// Over the whole run, less what came before a `touch` step.
    pub total: Sums,
    /// Of the calls that ended after the touch.
    pub since_touch: Sums,
    io_ns: AtomicU64,
    think_ns: AtomicU64,
    verify_errors: AtomicU64,
    finished_ns: AtomicU64,
    call_start_ns: AtomicU64,
    tid: AtomicU32,
    thinks: AtomicU32,
    call: Text,
    longest_call: Text,
    /// Why the thread failed.
    pub error: Text,
    /// Of a replayed trace.
    pub replayed: Replayed,
}

impl Slot {
    /// The thread's ID, once it has begun.
    pub fn tid(&self) -> Option<libc::pid_t> {
        Some(self.tid.load(Relaxed) as libc::pid_t).filter(|&tid| tid != 0)
    }

    /// Whether the thread sleeps because it thinks.
    pub fn thinks(&self) -> bool {
        self.thinks.load(Relaxed) != 0
    }

    /// When the thread ended, if it has.
    pub fn finished_ns(&self) -> Option<u64> {
        Some(self.finished_ns.load(Relaxed)).filter(|&ns| ns != 0)
    }
}

/// What all processes of a run share besides the slots.
#[repr(C)]
pub struct Header {
    /// CLOCK_MONOTONIC at the start of the apps.
    start_ns: AtomicU64,
    touch_ns: AtomicU64,
    /// How many apps are ready to start.
    pub ready: AtomicU32,
    /// 1: the apps may start.
    pub go: AtomicU32,
    /// 1: the user has touched.
    pub touched: AtomicU32,
}

/// The shared memory of a run.
pub struct Shared {
    area: Area,
    slots: usize,
}

impl Shared {
    /// Memory for so many slots, all zero.
    pub fn new(slots: usize) -> io::Result<Shared> {
        let bytes = std::mem::size_of::<Header>() + slots * std::mem::size_of::<Slot>();
        let shared = Shared {
            area: Area::shared(bytes)?,
            slots,
        };
        shared.header().touch_ns.store(NOT_TOUCHED, Relaxed);
        Ok(shared)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        // SAFETY: the area is page-aligned, zeroed and larger than a header; zeros are a valid one.
        unsafe { &*self.area.as_ptr().cast::<Header>() }
    }

    /// A slot.
    pub fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.slots, "no slot {index}");
        // SAFETY: the slots follow the header, whose size is a multiple of their alignment, 8.
        unsafe {
            let first = self.area.as_ptr().add(std::mem::size_of::<Header>());
            &*first.cast::<Slot>().add(index)
        }
    }

    /// Nanoseconds since the start of the apps.
    pub fn now(&self) -> u64 {
        sys::monotonic_ns().saturating_sub(self.start())
    }

    /// CLOCK_MONOTONIC at the start of the apps.
    pub fn start(&self) -> u64 {
        self.header().start_ns.load(Relaxed)
    }

    /// Starts the apps.
    pub fn go(&self) {
        self.header().start_ns.store(sys::monotonic_ns(), Relaxed);
        self.header().go.store(1, Relaxed);
        sys::futex_wake(&self.header().go);
    }

    /// Time of the touch, if it was.
    pub fn touch_ns(&self) -> Option<u64> {
        Some(self.header().touch_ns.load(Relaxed)).filter(|&ns| ns != NOT_TOUCHED)
    }

    /// Notes the time of the touch; what ends from now on counts as after it.
    pub fn set_touch(&self, now: u64) {
        self.header().touch_ns.store(now, Relaxed);
    }

    /// Releases who waits for the touch.
    pub fn release_touch(&self) {
        self.header().touched.store(1, Relaxed);
        sys::futex_wake(&self.header().touched);
    }
}

/// Sleeps until `word` is not 0.
pub fn wait_for(word: &AtomicU32) {
    while word.load(Relaxed) == 0 {
        sys::futex_wait(word, 0);
    }
}

/// A thread's pen: times its calls into its slot.
#[derive(Clone, Copy)]
pub struct Meter<'a> {
    shared: &'a Shared,
    slot: &'a Slot,
}

impl<'a> Meter<'a> {
    /// The pen of the thread with that slot.
    pub fn new(shared: &'a Shared, slot: usize) -> Meter<'a> {
        Meter {
            shared,
            slot: shared.slot(slot),
        }
    }

    /// The thread's slot.
    pub fn slot(&self) -> &'a Slot {
        self.slot
    }

    /// Notes who the thread is.
    pub fn begin(&self) {
        self.slot.tid.store(sys::thread_id() as u32, Relaxed);
    }

    /// Makes a call and counts it and its time.
    pub fn call<T>(&self, op: &str, file: &str, work: impl FnOnce() -> T) -> T {
        self.slot.call.set(&[op, " ", file]);
        let start = self.shared.now();
        // Never 0, which says that no call is under way.
        self.slot.call_start_ns.store(start.max(1), Relaxed);
        let result = work();
        self.ended(start, self.shared.now(), op, file);
        result
    }

    fn ended(&self, start: u64, end: u64, op: &str, file: &str) {
        self.slot.call_start_ns.store(0, Relaxed);
        let took = end.saturating_sub(start);
        if self.slot.total.call(took) {
            self.slot.longest_call.set(&[op, " ", file]);
        }
        if let Some(touch) = self.shared.touch_ns() {
            self.slot.since_touch.call(took);
            let after = end.saturating_sub(start.max(touch));
            self.slot.io_ns.fetch_add(after, Relaxed);
        }
    }

    fn spans(&self) -> impl Iterator<Item = &'a Sums> {
        let touched = self.shared.touch_ns().is_some();
        [
            Some(&self.slot.total),
            touched.then_some(&self.slot.since_touch),
        ]
        .into_iter()
        .flatten()
    }

    /// Counts bytes read.
    pub fn read(&self, bytes: u64) {
        for sums in self.spans() {
            sums.bytes_read.fetch_add(bytes, Relaxed);
        }
    }

    /// Counts bytes written.
    pub fn wrote(&self, bytes: u64) {
        for sums in self.spans() {
            sums.bytes_written.fetch_add(bytes, Relaxed);
        }
    }

    /// Counts pages whose content was wrong.
    pub fn mismatched(&self, pages: u64) {
        self.slot.verify_errors.fetch_add(pages, Relaxed);
    }

    /// Sleeps, and counts it as think time.
    pub fn think(&self, ns: u64) {
        self.thinking(|| sys::sleep_ns(ns));
        self.slot.think_ns.fetch_add(ns, Relaxed);
    }

    /// Does what is thinking, for who looks at the thread meanwhile.
    pub fn thinking(&self, sleep: impl FnOnce()) {
        self.slot.thinks.store(1, Relaxed);
        sleep();
        self.slot.thinks.store(0, Relaxed);
    }

    /// Sleeps until the touch; forgets what came before it.
    pub fn wait_touch_and_forget(&self) {
        wait_for(&self.shared.header().touched);
        self.slot.total.reset();
        self.slot.think_ns.store(0, Relaxed);
        self.slot.longest_call.set(&[]);
    }

    /// Notes that the thread has ended.
    pub fn finish(&self) {
        self.slot
            .finished_ns
            .store(self.shared.now().max(1), Relaxed);
    }
}

/// An app's statistics: the sum of its threads'.
#[derive(Debug, Default)]
pub struct AppStats {
    /// For the app's result.
    pub counts: Counts,
    /// The first failure of a thread.
    pub error: Option<String>,
    /// The call that was under way.
    pub in_call: Option<String>,
}

/// When the last of the slots ended; none if one has not.
pub fn finished_ns(shared: &Shared, slots: std::ops::Range<usize>) -> Option<u64> {
    let mut last = None;
    for index in slots {
        last = last.max(Some(shared.slot(index).finished_ns()?));
    }
    last
}

/// Adds up the slots of an app as they are at `now`. A call under way counts for the longest.
pub fn collect(shared: &Shared, slots: std::ops::Range<usize>, now: u64, replay: bool) -> AppStats {
    let all: Vec<&Slot> = slots.map(|index| shared.slot(index)).collect();
    let sum =
        |cell: fn(&Slot) -> &AtomicU64| -> u64 { all.iter().map(|s| cell(s).load(Relaxed)).sum() };
    let mut stats = AppStats {
        error: all.iter().find_map(|slot| slot.error.get()),
        ..AppStats::default()
    };
    let mut longest = (0, None);
    let mut longest_since = 0;
    let mut waiting_ns = 0;
    for slot in &all {
        let ended = slot.total.longest_ns.load(Relaxed);
        if ended > longest.0 {
            longest = (ended, slot.longest_call.get());
        }
        longest_since = longest_since.max(slot.since_touch.longest_ns.load(Relaxed));
        let start = slot.call_start_ns.load(Relaxed);
        if start == 0 {
            continue;
        }
        let call = slot.call.get().unwrap_or_default();
        let took = now.saturating_sub(start);
        if took > longest.0 {
            longest = (took, Some(format!("{call} (not ended)")));
        }
        if let Some(touch) = shared.touch_ns() {
            longest_since = longest_since.max(took);
            waiting_ns += now.saturating_sub(start.max(touch));
        }
        stats.in_call.get_or_insert(call);
    }
    stats.counts = Counts {
        bytes_read: sum(|s| &s.total.bytes_read),
        bytes_written: sum(|s| &s.total.bytes_written),
        ops: sum(|s| &s.total.ops),
        io_ns: sum(|s| &s.io_ns) + waiting_ns,
        longest_call_ns: longest.0,
        longest_call: longest.1.unwrap_or_default(),
        think_ns: sum(|s| &s.think_ns),
        verify_errors: sum(|s| &s.verify_errors),
        since_touch: SinceTouch {
            bytes_read: sum(|s| &s.since_touch.bytes_read),
            bytes_written: sum(|s| &s.since_touch.bytes_written),
            ops: sum(|s| &s.since_touch.ops),
            longest_call_ns: longest_since,
        },
        replay: replay.then(|| replayed(&all)),
    };
    stats
}

fn replayed(slots: &[&Slot]) -> Replay {
    let sum = |cell: &dyn Fn(&Replayed) -> &AtomicU64| -> u64 {
        slots
            .iter()
            .map(|slot| cell(&slot.replayed).load(Relaxed))
            .sum()
    };
    let errors = CALLS.iter().enumerate().map(|(index, call)| {
        let count = sum(&|r| &r.errors[index]);
        ((*call).to_string(), count)
    });
    Replay {
        calls: sum(&|r| &r.calls),
        skipped: sum(&|r| &r.skipped),
        short: sum(&|r| &r.short),
        errors: errors.filter(|(_, count)| *count > 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_bytes_add_up() {
        let shared = Shared::new(3).expect("memory");
        let (a, b) = (Meter::new(&shared, 1), Meter::new(&shared, 2));
        a.call("read", "f", || a.read(10));
        shared.set_touch(shared.now());
        b.call("write", "g", || b.wrote(7));
        let stats = collect(&shared, 0..3, shared.now(), false);
        assert_eq!(stats.counts.bytes_read, 10);
        assert_eq!(stats.counts.bytes_written, 7);
        assert_eq!(stats.counts.ops, 2);
        assert_eq!(stats.counts.since_touch.ops, 1);
        assert_eq!(stats.counts.since_touch.bytes_read, 0);
        assert!(stats.counts.replay.is_none());
    }

    #[test]
    fn a_call_under_way_is_the_longest() {
        let shared = Shared::new(1).expect("memory");
        let slot = shared.slot(0);
        slot.call.set(&["fsync", " ", "db"]);
        slot.call_start_ns.store(100, Relaxed);
        let stats = collect(&shared, 0..1, 5_000_000_100, false);
        assert_eq!(stats.counts.longest_call_ns, 5_000_000_000_u64);
        assert_eq!(stats.counts.longest_call, "fsync db (not ended)");
        assert_eq!(stats.in_call.as_deref(), Some("fsync db"));
    }

    #[test]
    fn io_time_counts_from_the_touch() {
        let shared = Shared::new(1).expect("memory");
        let meter = Meter::new(&shared, 0);
        meter.ended(0, 50, "read", "f");
        shared.set_touch(100);
        meter.ended(60, 130, "read", "f");
        meter.ended(200, 210, "read", "f");
        let stats = collect(&shared, 0..1, 300, false);
        assert_eq!(stats.counts.io_ns, 40);
        assert_eq!(stats.counts.longest_call_ns, 70);
        assert_eq!(stats.counts.since_touch.ops, 2);
    }

    #[test]
    fn the_touch_step_forgets() {
        let shared = Shared::new(1).expect("memory");
        let meter = Meter::new(&shared, 0);
        meter.wrote(1000);
        meter.think(1000);
        meter.call("fsync", "f", || ());
        shared.set_touch(1);
        shared.release_touch();
        meter.wait_touch_and_forget();
        meter.wrote(5);
        meter.think(7);
        let stats = collect(&shared, 0..1, 10, false);
        assert_eq!(stats.counts.bytes_written, 5);
        assert_eq!(stats.counts.think_ns, 7);
        assert_eq!(stats.counts.ops, 0);
    }

    #[test]
    fn long_text_is_cut() {
        let shared = Shared::new(1).expect("memory");
        shared.slot(0).error.set(&[&"x".repeat(1000)]);
        assert_eq!(
            shared.slot(0).error.get().map(|t| t.len()),
            Some(TEXT_BYTES)
        );
    }

    #[test]
    fn an_app_has_finished_when_all_its_threads_have() {
        let shared = Shared::new(2).expect("memory");
        Meter::new(&shared, 0).finish();
        assert_eq!(finished_ns(&shared, 0..2), None);
        Meter::new(&shared, 1).finish();
        assert!(finished_ns(&shared, 0..2).is_some());
    }
}
