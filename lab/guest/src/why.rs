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
//! sample costs is a few clock reads.
//!
//! A command has any number of threads without a slot in the shared memory. Those of one name are
//! counted together. A tick is shared among the threads that do not rest, or is the command's idle
//! time, so that the parts of a command add up to its time, too.

use crate::cast::Cast;
use crate::job::Role;
use crate::members::Members;
use crate::report::{Why, WhyBeside, WhyCommand, WhyThread, WhyWait};
use crate::stack::{idle, rests, Probe, StackId, Stacks, STACK_BYTES};
use crate::stats::{Shared, Slot};
use crate::sys;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Ticks between two looks for new kernel threads. Workers live for minutes.
const SCAN_TICKS: u64 = 10;

/// How the names of kernel threads begin that commit the journal, or write the checkpoint.
const JOURNALS: [&str; 2] = ["jbd2/", "f2fs_ckpt"];
/// How the names of other kernel threads begin that an app may wait for.
const WORKERS: [&str; 3] = ["kswapd", "kworker/", "f2fs_"];
type WhoId = usize;

/// A thread of an app.
struct Seat<'a> {
    slot: &'a Slot,
    probe: Option<Probe>,
}

impl Seat<'_> {
    fn ended(&self) -> bool {
        self.slot.finished_ns().is_some()
    }

    /// Its stack, unless it thinks. One that runs has none: the empty text.
    fn stack<'b>(&mut self, proc: &Path, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let tid = self.slot.tid()?;
        if self.slot.thinks() || self.ended() {
            return None;
        }
        if self.probe.is_none() {
            self.probe = Probe::stack(proc, tid);
        }
        let text = self.probe.as_ref().and_then(|probe| probe.read(buffer));
        Some(text.unwrap_or_default())
    }
}

/// Ticks of a foreground thread in one place, and who was at work at the same ticks.
#[derive(Default)]
struct Wait {
    count: u64,
    /// Of a command: its part of these ticks, ns.
    share_ns: Option<u64>,
    beside: BTreeMap<(WhoId, StackId), u64>,
}

/// Who else is at work at a tick.
#[derive(Default)]
struct Others {
    /// Where the journal's thread is, idle or not.
    journal: Option<StackId>,
    rest: Vec<(WhoId, StackId)>,
}

/// A foreground thread, or those of a command that have one name.
struct Front<'a> {
    app: &'a str,
    thread: String,
    /// None of a command.
    seat: Option<Seat<'a>>,
    thinking: u64,
    /// By its stack and the journal's.
    waits: BTreeMap<(StackId, Option<StackId>), Wait>,
}

/// A foreground thread at a tick: where it is, and which part of the tick is a command's.
struct Sample {
    front: usize,
    stack: StackId,
    share_ns: Option<u64>,
}

/// An app that is a command.
struct Command<'a> {
    app: &'a str,
    role: Role,
    members: Members,
    /// Ticks at which all its threads rested.
    idle: u64,
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
    interval: u64,
    front: Vec<Front<'a>>,
    behind: Vec<(WhoId, Seat<'a>)>,
    commands: Vec<Command<'a>>,
    workers: Vec<Worker>,
    known: BTreeSet<libc::pid_t>,
    people: Vec<(&'static str, String)>,
    stacks: Stacks,
    buffer: Vec<u8>,
    samples: u64,
    missed: u64,
}

impl<'a> Sampler<'a> {
    /// A sampler of the apps of a run every `interval` ns, with procfs at `proc` and control groups
    /// at `groups`.
    pub fn new(
        proc: &Path,
        groups: &Path,
        casts: &[Cast<'a>],
        interval: u64,
    ) -> Result<Sampler<'a>, String> {
        let own = proc.join("self/stack");
        fs::read(&own).map_err(|error| {
            let own = own.display();
            format!("why: cannot read {own}: {error}; the kernel needs CONFIG_STACKTRACE")
        })?;
        let mut sampler = Sampler {
            proc: proc.to_path_buf(),
            interval,
            front: Vec::new(),
            behind: Vec::new(),
            commands: Vec::new(),
            workers: Vec::new(),
            known: BTreeSet::new(),
            people: Vec::new(),
            stacks: Stacks::default(),
            buffer: vec![0; STACK_BYTES],
            samples: 0,
            missed: 0,
        };
        for cast in casts {
            if !cast.app.argv.is_empty() {
                sampler.commands.push(Command {
                    app: &cast.app.name,
                    role: cast.app.role,
                    members: Members::of(groups, &cast.app.name)?,
                    idle: 0,
                });
            }
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
        self.front.push(Front::new(app, thread, Some(seat)));
    }

    /// The place of a command's threads of one name.
    fn named(front: &mut Vec<Front<'a>>, app: &'a str, thread: &str) -> usize {
        let known = front
            .iter()
            .position(|one| one.app == app && one.thread == thread);
        known.unwrap_or_else(|| {
            front.push(Front::new(app, thread, None));
            front.len() - 1
        })
    }

    fn who(&mut self, role: &'static str, name: String) -> WhoId {
        let who = (role, name);
        let known = self.people.iter().position(|one| *one == who);
        known.unwrap_or_else(|| {
            self.people.push(who);
            self.people.len() - 1
        })
    }

    /// Samples from half an interval after the touch, until every foreground thread has ended or
    /// `stop` is set.
    pub fn watch(&mut self, shared: &Shared, touch_at: u64, stop: &AtomicBool) {
        let interval = self.interval;
        self.scan();
        let mut next = shared.start() + touch_at + interval / 2;
        loop {
            sys::sleep_until_ns(next);
            if stop.load(Relaxed) || self.ended() {
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

    /// Whether every foreground thread has ended. A command's end is told by who waits for it.
    fn ended(&self) -> bool {
        let command = self.commands.iter().any(|one| one.role == Role::Foreground);
        !command && self.front.iter().all(Front::ended)
    }

    /// One tick.
    fn sample(&mut self) {
        let mut waits = self.players();
        waits.extend(self.commanded());
        self.samples += 1;
        if waits.is_empty() {
            return;
        }
        if self.samples % SCAN_TICKS == 0 {
            self.scan();
        }
        let others = self.others();
        for sample in waits {
            let key = (sample.stack, others.journal);
            let wait = self.front[sample.front].waits.entry(key).or_default();
            wait.count += 1;
            if let Some(share_ns) = sample.share_ns {
                *wait.share_ns.get_or_insert(0) += share_ns;
            }
            for &other in &others.rest {
                *wait.beside.entry(other).or_default() += 1;
            }
        }
    }

    /// Where foreground threads are that do not think.
    fn players(&mut self) -> Vec<Sample> {
        let mut waits = Vec::new();
        for (index, front) in self.front.iter_mut().enumerate() {
            let Some(seat) = front.seat.as_mut().filter(|seat| !seat.ended()) else {
                continue;
            };
            match seat.stack(&self.proc, &mut self.buffer) {
                Some(text) => waits.push(Sample {
                    front: index,
                    stack: self.stacks.id(text),
                    share_ns: None,
                }),
                None => front.thinking += 1,
            }
        }
        waits
    }

    /// Where threads of foreground commands are that do not rest. They share the tick.
    fn commanded(&mut self) -> Vec<Sample> {
        let (front, stacks, buffer) = (&mut self.front, &mut self.stacks, &mut self.buffer);
        let mut waits = Vec::new();
        let commands = self.commands.iter_mut();
        for command in commands.filter(|command| command.role == Role::Foreground) {
            let mut busy: Vec<(usize, StackId)> = Vec::new();
            command.members.each(&self.proc, buffer, |name, text| {
                let index = Sampler::named(front, command.app, name);
                match rests(text) {
                    true => front[index].thinking += 1,
                    false => busy.push((index, stacks.id(text))),
                }
            });
            command.idle += u64::from(busy.is_empty());
            let shares = shares(self.interval, busy.len() as u64);
            let samples = busy.into_iter().zip(shares);
            waits.extend(samples.map(|((front, stack), share_ns)| Sample {
                front,
                stack,
                share_ns: Some(share_ns),
            }));
        }
        waits
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
        self.commands_behind(&mut found);
        found
    }

    fn commands_behind(&mut self, found: &mut Others) {
        let mut busy: Vec<(&'static str, String, StackId)> = Vec::new();
        let (stacks, buffer) = (&mut self.stacks, &mut self.buffer);
        let commands = self.commands.iter_mut();
        for command in commands.filter(|command| command.role != Role::Foreground) {
            command.members.each(&self.proc, buffer, |name, text| {
                if !rests(text) {
                    let name = format!("{}/{name}", command.app);
                    busy.push((command.role.name(), name, stacks.id(text)));
                }
            });
        }
        for (role, name, stack) in busy {
            found.rest.push((self.who(role, name), stack));
        }
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
        let Some(probe) = Probe::stack(&self.proc, pid) else {
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
    pub fn report(&self) -> Why {
        let commands = self.commands.iter();
        Why {
            interval_ns: self.interval,
            samples: self.samples,
            missed: self.missed,
            stacks: self.stacks.list(),
            threads: self.front.iter().map(|front| self.thread(front)).collect(),
            commands: commands
                .filter(|one| one.role == Role::Foreground)
                .map(|one| WhyCommand {
                    app: one.app.to_string(),
                    idle: one.idle,
                })
                .collect(),
        }
    }

    fn thread(&self, front: &Front) -> WhyThread {
        let waits = front.waits.iter();
        WhyThread {
            app: front.app.to_string(),
            thread: front.thread.clone(),
            finished_ns: front.seat.as_ref().and_then(|seat| seat.slot.finished_ns()),
            thinking: front.thinking,
            waits: waits
                .map(|(&(stack, journal), wait)| WhyWait {
                    stack,
                    journal,
                    count: wait.count,
                    share_ns: wait.share_ns,
                    beside: self.beside(wait),
                })
                .collect(),
        }
    }

    fn beside(&self, wait: &Wait) -> Vec<WhyBeside> {
        let one = |(&(who, stack), &count): (&(WhoId, StackId), &u64)| {
            let (role, name) = &self.people[who];
            WhyBeside {
                role,
                name: name.clone(),
                stack,
                count,
            }
        };
        wait.beside.iter().map(one).collect()
    }
}

/// Equal parts of a tick; the first has what is left.
fn shares(interval: u64, parts: u64) -> impl Iterator<Item = u64> {
    let rest = interval.checked_rem(parts).unwrap_or(0);
    (0..parts).map(move |index| interval / parts + if index == 0 { rest } else { 0 })
}

impl<'a> Front<'a> {
    fn new(app: &'a str, thread: &str, seat: Option<Seat<'a>>) -> Front<'a> {
        Front {
            app,
            thread: thread.to_string(),
            seat,
            thinking: 0,
            waits: BTreeMap::new(),
        }
    }

    fn ended(&self) -> bool {
        self.seat.as_ref().is_some_and(Seat::ended)
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
