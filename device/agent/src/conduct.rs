// SPDX-License-Identifier: GPL-2.0-only
//! Which sources run, from the agent's start to its end. The source of focus is the first, in the order of
//! [`crate::choose`], that can tell; the others run besides.
//!
//! What can tell changes: a compositor starts later or restarts, its environment is imported after its start, PipeWire
//! comes. So each sign ([`crate::signs`]) has all looked at again that do not run, at once and a few times after it, and
//! a source of focus that tells more takes the place of one that tells less. Of one that works only where the session's
//! environment has changed: a compositor in a window of another is not the session's. A source that fails is tried again,
//! later and later, then not before the next sign: an agent that waits for a compositor sleeps. One that panics has failed.

use crate::cannot;
use crate::env::Env;
use crate::event::Event;
use crate::fault::Fault;
use crate::signs::{Said, Signs, Wake};
use crate::source::{Backoff, Out, Probe, Source};
use fasttrack_detector::report::Nobody;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// How long after a sign everything is looked at again: a compositor imports its environment, and opens its sockets, in
/// its first seconds.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// A sign that comes this soon after one before waits until then: who makes many wakes nobody more often.
const APART: Duration = Duration::from_secs(1);

/// What may be changed about the choice.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// This source of focus, whatever it says of itself.
    pub focus: Option<String>,
    /// Not these sources.
    pub without: Vec<String>,
    /// Whether the agent ends with that source: who replays something and reads what is printed waits for it.
    pub ends: bool,
}

/// How a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It speaks; its number.
    Runs(u64, Instant),
    /// It has failed, and is begun again then.
    Again(Instant),
    /// It is begun again after a sign.
    Rests,
}

#[derive(Debug, Clone)]
struct Slot {
    state: State,
    backoff: Backoff,
}

impl Slot {
    fn is_due(&self, now: Instant, sign: bool) -> bool {
        match self.state {
            State::Runs(..) => false,
            State::Again(at) => sign || at <= now,
            State::Rests => sign && !self.backoff.is_over(),
        }
    }

    fn ended(&mut self, began: Instant, failed: bool, now: Instant) {
        if !failed {
            self.backoff = Backoff::default();
            self.state = State::Rests;
            return;
        }
        let pause = self.backoff.pause(now.saturating_duration_since(began));
        self.state = pause.map_or(State::Rests, |pause| State::Again(now + pause));
    }
}

/// Makes the sources for an environment; by name, so that a test has its own.
pub trait Sources: Send {
    /// Those of focus, the most telling first.
    fn focus(&self, env: &Env) -> Vec<Box<dyn Source>>;
    /// All others.
    fn others(&self, env: &Env) -> Vec<Box<dyn Source>>;
    /// The session's environment now.
    fn env(&self) -> Env;
}

/// Runs them.
pub struct Conductor<S: Sources> {
    sources: S,
    wanted: Wanted,
    out: Out,
    wake: Wake,
    /// The source of focus, and its place in the order.
    focus: Option<(usize, &'static str)>,
    /// The environment in which it was begun.
    env: Env,
    slots: BTreeMap<&'static str, Slot>,
    numbers: u64,
    /// Those that were last said to be in use.
    told: Vec<&'static str>,
    /// Names of those that were begun for the first time, or that tell the focus in place of another, and not logged yet.
    begun: Vec<&'static str>,
    looks: Vec<Instant>,
    /// The last sign that was looked at, and when the next one is that has come since.
    signed: Option<Instant>,
    merged: Option<Instant>,
}

impl<S: Sources> Conductor<S> {
    /// Nothing runs yet. OUT is for all sources.
    pub fn new(sources: S, wanted: Wanted, out: Out, wake: Wake) -> Conductor<S> {
        Conductor {
            sources,
            wanted,
            out,
            wake,
            focus: None,
            env: Env::default(),
            slots: BTreeMap::new(),
            numbers: 0,
            told: Vec::new(),
            begun: Vec::new(),
            looks: Vec::new(),
            signed: None,
            merged: None,
        }
    }

    /// Runs them: until a source that was asked for has nothing more to say where the agent ends with it, else for ever.
    pub fn run(mut self, mut signs: Signs) -> Result<(), Fault> {
        self.sign(Instant::now());
        self.tell()?;
        while !self.is_over() {
            let now = Instant::now();
            let most = self.deadline().map(|at| at.saturating_duration_since(now));
            let seen = signs.wait(most)?;
            let now = Instant::now();
            let mut sign = seen.socket;
            for said in seen.said {
                match said {
                    Said::Environment => sign = true,
                    Said::Ended(name, number, failed) => self.ended(name, number, failed, now),
                }
            }
            match sign {
                true => self.signs(now),
                false => self.due(now),
            }
            self.tell()?;
        }
        Ok(())
    }

    /// Something has appeared: it is looked at, or waits where that was done just before.
    fn signs(&mut self, now: Instant) {
        match self.signed.map(|at| at + APART) {
            Some(next) if now < next => {
                self.merged = Some(next);
                self.due(now);
            }
            _ => self.sign(now),
        }
    }

    /// Tells which sources are in use, if others are than when this was told last.
    fn tell(&mut self) -> Result<(), Fault> {
        let names = self.in_use();
        if names != self.told {
            self.told.clone_from(&names);
            self.out.say(Event::Sources(names))?;
        }
        Ok(())
    }

    /// The sources that run: that of the focus, and the others as they were begun.
    fn in_use(&self) -> Vec<&'static str> {
        let focus = self.running().map(|(_, name)| name);
        let mut others: Vec<(u64, &'static str)> = Vec::new();
        for (name, slot) in &self.slots {
            if let State::Runs(number, _) = slot.state {
                if Some(*name) != focus {
                    others.push((number, name));
                }
            }
        }
        others.sort_unstable();
        let others = others.into_iter().map(|(_, name)| name);
        focus.into_iter().chain(others).collect()
    }

    /// Looks at everything, and again a few times.
    fn sign(&mut self, now: Instant) {
        (self.signed, self.merged) = (Some(now), None);
        self.looks = LOOKS.iter().map(|after| now + *after).collect();
        for slot in self.slots.values_mut() {
            if !matches!(slot.state, State::Runs(..)) {
                slot.backoff = Backoff::default();
            }
        }
        self.look(now, true);
    }

    /// What is due by time alone.
    fn due(&mut self, now: Instant) {
        if self.merged.is_some_and(|at| at <= now) {
            return self.sign(now);
        }
        let before = self.looks.len();
        self.looks.retain(|at| *at > now);
        self.look(now, self.looks.len() < before);
    }

    fn deadline(&self) -> Option<Instant> {
        let again = self.slots.values().filter_map(|slot| match slot.state {
            State::Again(at) => Some(at),
            State::Runs(..) | State::Rests => None,
        });
        let looks = self.looks.iter().copied().chain(self.merged);
        looks.chain(again).min()
    }

    /// A source that reads what was written for it alone, and has come to its end.
    fn is_over(&self) -> bool {
        let asked = self.wanted.focus.as_deref().filter(|_| self.wanted.ends);
        let slot = asked.and_then(|name| self.slots.get(name));
        slot.is_some_and(|slot| slot.state == State::Rests && !slot.backoff.is_over())
    }

    fn ended(&mut self, name: &'static str, number: u64, failed: bool, now: Instant) {
        let Some(slot) = self.slots.get_mut(name) else {
            return;
        };
        // One that another has taken the place of ends late.
        if let State::Runs(its, began) = slot.state {
            if its == number {
                slot.ended(began, failed, now);
                // It is given up: another one may tell less, and more than nothing.
                if slot.state == State::Rests && slot.backoff.is_over() {
                    self.looks.push(now);
                }
            }
        }
    }

    fn look(&mut self, now: Instant, sign: bool) {
        if !sign && !self.slots.values().any(|slot| slot.is_due(now, false)) {
            return;
        }
        let env = self.sources.env();
        self.look_for_focus(&env, now, sign);
        for source in self.sources.others(&env) {
            let wanted = !self.wanted.without.iter().any(|one| one == source.name());
            if wanted && self.is_due(source.name(), now, sign) {
                match probe(source.as_ref()) {
                    Probe::Yes => self.begin(source, false, now),
                    Probe::No(_) => self.rests(source.name()),
                }
            }
        }
        if !self.begun.is_empty() {
            eprintln!("sources: {}", self.begun.join(", "));
            self.begun.clear();
        }
    }

    fn is_due(&self, name: &str, now: Instant, sign: bool) -> bool {
        self.slots
            .get(name)
            .map_or(sign, |slot| slot.is_due(now, sign))
    }

    fn rests(&mut self, name: &'static str) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.state = State::Rests;
        }
    }

    /// Begins the source of focus, or one that tells more than the one that runs.
    fn look_for_focus(&mut self, env: &Env, now: Instant, sign: bool) {
        let running = self.running();
        let settled = running.is_some_and(|(_, name)| name != cannot::NAME && *env == self.env);
        if settled {
            return;
        }
        if !sign
            && self
                .focus
                .is_some_and(|(_, name)| !self.is_due(name, now, false))
        {
            return;
        }
        let all = self.sources.focus(env).into_iter().enumerate();
        for (place, source) in all.take(running.map_or(usize::MAX, |(place, _)| place)) {
            let name = source.name();
            let fits = match &self.wanted.focus {
                Some(wanted) => name == wanted && self.may_begin(name),
                None => {
                    let wanted = !self.wanted.without.iter().any(|one| one == name);
                    wanted && self.may_begin(name) && probe(source.as_ref()) == Probe::Yes
                }
            };
            if fits {
                if let Some((_, before)) = running {
                    self.rests(before);
                }
                if self.focus.is_none_or(|(_, before)| before != name) {
                    self.begun.push(name);
                }
                self.focus = Some((place, name));
                self.env = env.clone();
                self.begin(source, true, now);
                return;
            }
        }
        // It is not there: its next try is later, if there is one.
        if let (None, Some((_, name))) = (running, self.focus) {
            let slot = self.slots.get_mut(name);
            if let Some(slot) = slot.filter(|slot| matches!(slot.state, State::Again(_))) {
                slot.ended(now, true, now);
                if slot.state == State::Rests {
                    self.looks.push(now);
                }
            }
        }
    }

    /// Not one that was given up; and who only says that nobody can tell waits until one that has failed is.
    fn may_begin(&self, name: &str) -> bool {
        let over = self.slots.get(name);
        if over.is_some_and(|slot| slot.backoff.is_over()) {
            return false;
        }
        let again = |(_, focus): (usize, &str)| {
            self.slots
                .get(focus)
                .is_some_and(|slot| matches!(slot.state, State::Again(_)))
        };
        name != cannot::NAME || !self.focus.is_some_and(again)
    }

    fn running(&self) -> Option<(usize, &'static str)> {
        self.focus.filter(|(_, name)| {
            let slot = self.slots.get(name);
            slot.is_some_and(|slot| matches!(slot.state, State::Runs(..)))
        })
    }

    fn begin(&mut self, mut source: Box<dyn Source>, focus: bool, now: Instant) {
        self.numbers += 1;
        let (name, number) = (source.name(), self.numbers);
        if !focus && !self.slots.contains_key(name) {
            self.begun.push(name);
        }
        let slot = self.slots.entry(name).or_insert_with(|| Slot {
            state: State::Rests,
            backoff: Backoff::default(),
        });
        slot.state = State::Runs(number, now);
        let out = match focus {
            true => self.out.renamed(name).alone(number),
            false => self.out.renamed(name),
        };
        let wake = self.wake.clone();
        std::thread::spawn(move || {
            let failed = once(source.as_mut(), &out).is_err();
            // The agent may end because of this.
            drop((out, source));
            wake.say(Said::Ended(name, number, failed));
        });
    }
}

/// Runs a source until it ends. Its failure is told, and leaves nobody in front if it is one of focus.
fn once(source: &mut dyn Source, out: &Out) -> Result<(), Fault> {
    let Err(fault) = caught(|| source.run(out)) else {
        return Ok(());
    };
    let told = out.say(Event::Fault {
        source: source.name(),
        why: fault.0.clone(),
    });
    if told.is_ok() && source.tells_focus() {
        out.nobody()?;
    }
    // Nobody would say that somebody is there again.
    for why in [Nobody::Inactive, Nobody::Locked, Nobody::Idle] {
        out.away(why, false)?;
    }
    out.deaf()?;
    Err(fault)
}

thread_local! {
    /// Whether this thread is within [`caught`].
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Has a panic that nobody catches end the process, for its unit to start it again, whichever thread it is in. What is
/// caught becomes a fault, which is logged once.
pub fn end_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |why| {
        if !CATCHES.get() {
            say(why);
            std::process::abort();
        }
    }));
}

/// Asks a source whether it can tell. One that panics cannot.
fn probe(source: &dyn Source) -> Probe {
    caught(|| Ok(source.probe())).unwrap_or_else(|Fault(why)| Probe::No(why))
}

/// Does something with a source. Libraries panic where the other side breaks its protocol, the Wayland client's among
/// them: that is this source's fault, and ends no other. What it leaves half done is its own, and is dropped with it.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let before = CATCHES.replace(true);
    let done = std::panic::catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(before);
    done.unwrap_or_else(|thrown| {
        let text = thrown.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| thrown.downcast_ref::<&str>().copied());
        let text = text.and_then(|text| text.lines().next());
        Err(Fault(format!(
            "it panicked, as where the other side breaks its protocol: {}",
            text.unwrap_or("no reason is known")
        )))
    })
}

#[cfg(test)]
#[path = "conduct_tests.rs"]
mod tests;
