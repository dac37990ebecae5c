// SPDX-License-Identifier: GPL-2.0-only
//! Where the foreground waits: samples of its threads' kernel stacks at a fixed virtual interval.
//!
//! A thread of PID 1, from the touch to the end of the response. At every tick it looks at each
//! foreground thread: unless it thinks, its kernel stack says where it sleeps. That need not be in
//! an I/O call: a page fault may wait for memory. Samples are counted by that stack and the one of
//! the journal's thread, and beside them who else was at work at that moment: kernel threads that
//! write back or reclaim, and background threads that do not think. What holds the foreground up
//! is among them.
//!
//! A tick stands for the interval around it, so that a thread's ticks times the interval are its
//! time. Nothing is written down before the end, and the processor is infinitely fast: what a
//! sample costs is a few clock reads. Commands have no slot in the shared memory and are not seen.

use crate::cast::Cast;
use crate::job::Role;
use crate::stats::{Shared, Slot};
use crate::sys;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Longest stack that is read, bytes: the kernel gives 64 entries at most.
const STACK_BYTES: usize = 8192;
/// Ticks between two looks for new kernel threads. Workers live for minutes.
const SCAN_TICKS: u64 = 10;

/// How the names of kernel threads begin that commit the journal, or write the checkpoint.
const JOURNALS: [&str; 2] = ["jbd2/", "f2fs_ckpt"];
/// How the names of other kernel threads begin that an app may wait for.
const WORKERS: [&str; 3] = ["kswapd", "kworker/", "f2fs_"];
/// Where those sleep when they have nothing to do.
const IDLE: [&str; 7] = [
    "worker_thread",
    "rescuer_thread",
    "kswapd",
    "kswapd_try_to_sleep",
    "gc_thread_func",
    "issue_discard_thread",
    "issue_flush_thread",
];
/// The scheduler's own functions, the innermost of every sleeping stack.
const SCHEDULER: [&str; 4] = ["__switch_to", "__schedule", "schedule", "schedule_timeout"];

type StackId = usize;
type WhoId = usize;

/// Stacks seen, each once, by the text of /proc/PID/stack.
#[derive(Default)]
struct Stacks(BTreeMap<Vec<u8>, StackId>);

impl Stacks {
    fn id(&mut self, text: &[u8]) -> StackId {
        let new = self.0.len();
        if let Some(&id) = self.0.get(text) {
            return id;
        }
        self.0.insert(text.to_vec(), new);
        new
    }

    /// All stacks, by their numbers.
    fn list(&self) -> Vec<Vec<String>> {
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

fn idle(text: &[u8]) -> bool {
    let places = places(text);
    let mut functions = places.iter().map(|place| function(place));
    functions
        .find(|name| !SCHEDULER.contains(name))
        .map_or(true, |name| IDLE.contains(&name))
}

/// The open stack file of a thread.
struct Probe(File);

impl Probe {
    fn open(proc: &Path, tid: libc::pid_t) -> Option<Probe> {
        File::open(proc.join(format!("{tid}/stack")))
            .ok()
            .map(Probe)
    }

    /// The stack's text, into `buffer`; none of a thread that is gone.
    fn read<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = self.0.read_at(buffer, 0).ok()?;
        Some(&buffer[..length])
    }
}

/// A thread of an app.
struct Seat<'a> {
    slot: &'a Slot,
    probe: Option<Probe>,
}

impl Seat<'_> {
    /// Its stack, unless it thinks. One that runs has none: the empty text.
    fn stack<'b>(&mut self, proc: &Path, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let tid = self.slot.tid()?;
        if self.slot.thinks() || self.slot.finished_ns().is_some() {
            return None;
        }
        if self.probe.is_none() {
            self.probe = Probe::open(proc, tid);
        }
        let text = self.probe.as_ref().and_then(|probe| probe.read(buffer));
        Some(text.unwrap_or_default())
    }
}

/// Ticks of a foreground thread in one place, and who was at work at the same ticks.
#[derive(Default)]
struct Wait {
    count: u64,
    beside: BTreeMap<(WhoId, StackId), u64>,
}

/// Who else is at work at a tick.
#[derive(Default)]
struct Others {
    /// Where the journal's thread is, idle or not.
    journal: Option<StackId>,
    rest: Vec<(WhoId, StackId)>,
}

/// A foreground thread.
struct Front<'a> {
    app: &'a str,
    thread: &'a str,
    seat: Seat<'a>,
    thinking: u64,
    /// By its stack and the journal's.
    waits: BTreeMap<(StackId, Option<StackId>), Wait>,
}

/// A kernel thread.
struct Worker {
    pid: libc::pid_t,
    /// None is the journal's.
    who: Option<WhoId>,
    probe: Probe,
}

/// Takes the samples and counts them.
pub struct Sampler<'a> {
    proc: PathBuf,
    front: Vec<Front<'a>>,
    behind: Vec<(WhoId, Seat<'a>)>,
    workers: Vec<Worker>,
    known: BTreeSet<libc::pid_t>,
    people: Vec<(&'static str, String)>,
    stacks: Stacks,
    buffer: Vec<u8>,
    samples: u64,
    missed: u64,
}

impl<'a> Sampler<'a> {
    /// A sampler of the apps of a run, with procfs at `proc`.
    pub fn new(proc: &Path, casts: &[Cast<'a>]) -> Result<Sampler<'a>, String> {
        let own = proc.join("self/stack");
        fs::read(&own).map_err(|error| {
            let own = own.display();
            format!("why: cannot read {own}: {error}; the kernel needs CONFIG_STACKTRACE")
        })?;
        let mut sampler = Sampler {
            proc: proc.to_path_buf(),
            front: Vec::new(),
            behind: Vec::new(),
            workers: Vec::new(),
            known: BTreeSet::new(),
            people: Vec::new(),
            stacks: Stacks::default(),
            buffer: vec![0; STACK_BYTES],
            samples: 0,
            missed: 0,
        };
        for cast in casts {
            for index in 0..cast.threads() {
                sampler.seat(*cast, index);
            }
        }
        Ok(sampler)
    }

    fn seat(&mut self, cast: Cast<'a>, index: usize) {
        let (app, thread) = (cast.app.name.as_str(), cast.thread_name(index));
        let seat = Seat {
            slot: cast.shared.slot(cast.thread_slot(index)),
            probe: None,
        };
        if cast.app.role != Role::Foreground {
            let who = self.who(cast.app.role.name(), format!("{app}/{thread}"));
            self.behind.push((who, seat));
            return;
        }
        self.front.push(Front {
            app,
            thread,
            seat,
            thinking: 0,
            waits: BTreeMap::new(),
        });
    }

    fn who(&mut self, role: &'static str, name: String) -> WhoId {
        let who = (role, name);
        let known = self.people.iter().position(|one| *one == who);
        known.unwrap_or_else(|| {
            self.people.push(who);
            self.people.len() - 1
        })
    }

    /// Samples every `interval` ns from half an interval after the touch, until every foreground
    /// thread has ended or `stop` is set.
    pub fn watch(&mut self, shared: &Shared, touch_at: u64, interval: u64, stop: &AtomicBool) {
        self.scan();
        let mut next = shared.start() + touch_at + interval / 2;
        loop {
            sys::sleep_until_ns(next);
            if stop.load(Relaxed) || self.front.iter().all(|front| front.ended()) {
                return;
            }
            if shared.touch_ns().is_some() {
                self.sample();
            }
            next += interval;
            // This thread may sleep for memory itself.
            let late = sys::monotonic_ns().saturating_sub(next) / interval;
            self.missed += late;
            next += late * interval;
        }
    }

    /// One tick.
    fn sample(&mut self) {
        let mut waits: Vec<(usize, StackId)> = Vec::new();
        for (index, front) in self.front.iter_mut().enumerate() {
            if front.ended() {
                continue;
            }
            match front.seat.stack(&self.proc, &mut self.buffer) {
                Some(text) => waits.push((index, self.stacks.id(text))),
                None => front.thinking += 1,
            }
        }
        self.samples += 1;
        if waits.is_empty() {
            return;
        }
        if self.samples % SCAN_TICKS == 0 {
            self.scan();
        }
        let others = self.others();
        for (index, stack) in waits {
            let key = (stack, others.journal);
            let wait = self.front[index].waits.entry(key).or_default();
            wait.count += 1;
            for &other in &others.rest {
                *wait.beside.entry(other).or_default() += 1;
            }
        }
    }

    fn others(&mut self) -> Others {
        let mut found = Others::default();
        let (stacks, buffer, known) = (&mut self.stacks, &mut self.buffer, &mut self.known);
        self.workers.retain(|worker| {
            let Some(text) = worker.probe.read(buffer) else {
                known.remove(&worker.pid);
                return false;
            };
            match worker.who {
                None => found.journal = Some(stacks.id(text)),
                Some(who) if !idle(text) => found.rest.push((who, stacks.id(text))),
                Some(_) => {}
            }
            true
        });
        for (who, seat) in &mut self.behind {
            if let Some(text) = seat.stack(&self.proc, buffer) {
                found.rest.push((*who, stacks.id(text)));
            }
        }
        found
    }

    /// Finds new kernel threads.
    fn scan(&mut self) {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let pids: Vec<libc::pid_t> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        for pid in pids {
            if self.known.insert(pid) {
                self.meet(pid);
            }
        }
    }

    fn meet(&mut self, pid: libc::pid_t) {
        let comm = self.proc.join(format!("{pid}/comm"));
        let name = fs::read_to_string(comm).unwrap_or_default();
        let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
        let journal = begins(&JOURNALS);
        if !journal && !begins(&WORKERS) {
            return;
        }
        let Some(probe) = Probe::open(&self.proc, pid) else {
            return;
        };
        // A worker's number and queue change; its stack says what it does.
        let name = match name.starts_with("kworker/") {
            true => "kworker",
            false => name.trim(),
        };
        let who = (!journal).then(|| self.who("kernel", name.to_string()));
        self.workers.push(Worker { pid, who, probe });
    }

    /// The part `why` of the result.
    pub fn json(&self, interval: u64) -> Value {
        let threads: Vec<Value> = self.front.iter().map(|front| self.thread(front)).collect();
        json!({
            "interval_ns": interval,
            "samples": self.samples,
            "missed": self.missed,
            "stacks": self.stacks.list(),
            "threads": threads,
        })
    }

    fn thread(&self, front: &Front) -> Value {
        let beside = |wait: &Wait| -> Vec<Value> {
            let one = |(&(who, stack), count): (&(WhoId, StackId), &u64)| {
                let (role, name) = &self.people[who];
                json!({"role": role, "name": name, "stack": stack, "count": count})
            };
            wait.beside.iter().map(one).collect()
        };
        let waits: Vec<Value> = front
            .waits
            .iter()
            .map(|((stack, journal), wait)| {
                json!({
                    "stack": stack,
                    "journal": journal,
                    "count": wait.count,
                    "beside": beside(wait),
                })
            })
            .collect();
        json!({
            "app": front.app,
            "thread": front.thread,
            "finished_ns": front.seat.slot.finished_ns(),
            "thinking": front.thinking,
            "waits": waits,
        })
    }
}

impl Front<'_> {
    fn ended(&self) -> bool {
        self.seat.slot.finished_ns().is_some()
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
