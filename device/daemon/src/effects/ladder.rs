// SPDX-License-Identifier: GPL-2.0-only
//! The ladder: which of the means that work are used, by attribute and by user, and what is to be said about it. A pure
//! function of what was found.

use crate::cgroup::user_of;
use crate::disks::{self, Disk};
use fasttrack_config::Effects as Wanted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is done for the app in front, from nothing to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Nothing: who is in front is found out and told.
    Observe,
    /// Its memory is reclaimed last.
    Memory,
    /// Its own requests have a better priority.
    Ioprio,
    /// It has more weight.
    Weights,
    /// Background is frozen while it waits for storage, and its own requests have a better priority.
    Freezer,
    /// The kernel prefers it, down to the device.
    Kernel,
}

impl fmt::Display for Rung {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rung::Kernel => "kernel",
            Rung::Freezer => "freezer",
            Rung::Weights => "weights",
            Rung::Ioprio => "ioprio",
            Rung::Memory => "memory",
            Rung::Observe => "observe",
        })
    }
}

impl Rung {
    /// Whether background is frozen.
    pub fn freezes(self) -> bool {
        self == Rung::Freezer
    }

    /// Whether weights are set.
    pub fn weighs(self) -> bool {
        self == Rung::Weights
    }
}

/// The disks by which the means are judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// They.
    pub disks: BTreeSet<Disk>,
    /// Whether they are known to be those under the apps' files. All disks otherwise.
    pub known: bool,
}

/// What works for a user's apps; where it does not, a sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfUser {
    /// Who; none for those whose manager has no apps yet.
    pub user: Option<u32>,
    /// The disks under the apps' files.
    pub judged: Judged,
    /// Weights: the file that takes one.
    pub weights: Result<String, String>,
    /// `memory.low`.
    pub memory: Result<(), String>,
    /// Priorities of tasks.
    pub ioprio: Result<(), String>,
    /// What holds besides: whole sentences.
    pub facts: Vec<String>,
}

/// What works here; where it does not, a sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes {
    /// `/sys/kernel/fasttrack`.
    pub kernel: Result<(), String>,
    /// `cgroup.freeze`.
    pub freezer: Result<(), String>,
    /// For the apps of users who have a manager.
    pub users: Vec<OfUser>,
    /// For everybody else.
    pub rest: OfUser,
    /// What this kernel does not have: whole sentences.
    pub facts: Vec<String>,
}

impl Probes {
    /// The users, or everybody where there is none.
    fn each(&self) -> &[OfUser] {
        match self.users.is_empty() {
            true => std::slice::from_ref(&self.rest),
            false => &self.users,
        }
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The best that any user has.
    pub rung: Rung,
    /// What each user has.
    pub users: BTreeMap<u32, Rung>,
    /// What all others have.
    pub rest: Rung,
    /// Whose apps have `memory.low` while they are in front, whatever the rung.
    pub memory: BTreeSet<u32>,
    /// Why, and what has no effect here: whole sentences.
    pub notes: Vec<String>,
}

/// The users whom a means is used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    users: BTreeMap<u32, bool>,
    rest: bool,
}

impl Reach {
    /// Everybody.
    pub fn all() -> Reach {
        Reach {
            users: BTreeMap::new(),
            rest: true,
        }
    }

    /// Whether a group is one of theirs, or the system's.
    pub fn has(&self, path: &str) -> bool {
        user_of(path).is_none_or(|user| *self.users.get(&user).unwrap_or(&self.rest))
    }

    fn is_empty(&self) -> bool {
        !self.rest && !self.users.values().any(|has| *has)
    }
}

impl Choice {
    /// The users whom a means is used for; none where there is none.
    pub fn reach(&self, has: impl Fn(Option<u32>, Rung) -> bool) -> Option<Reach> {
        let users = self.users.iter();
        let reach = Reach {
            users: users
                .map(|(user, rung)| (*user, has(Some(*user), *rung)))
                .collect(),
            rest: has(None, self.rest),
        };
        (!reach.is_empty()).then_some(reach)
    }
}

/// The best rungs that work and are wanted, and what is to be said about it.
pub fn choose(probes: &Probes, wanted: &Wanted) -> Choice {
    let of = |user: &OfUser| rung(probes, user, wanted);
    let users = probes.users.iter();
    let users: BTreeMap<u32, Rung> = users
        .filter_map(|user| Some((user.user?, of(user))))
        .collect();
    let rest = of(&probes.rest);
    let best = users.values().max().copied().unwrap_or(rest);
    let kept = probes.users.iter();
    let kept = kept.filter(|user| keeps_memory(probes, user, wanted));
    Choice {
        rung: best,
        rest,
        memory: kept.filter_map(|user| user.user).collect(),
        notes: notes(probes, wanted, best),
        users,
    }
}

fn rung(probes: &Probes, user: &OfUser, wanted: &Wanted) -> Rung {
    if wanted.kernel && probes.kernel.is_ok() {
        Rung::Kernel
    } else if wanted.freezer && probes.freezer.is_ok() {
        Rung::Freezer
    } else if wanted.weights && user.weights.is_ok() {
        Rung::Weights
    } else if wanted.ioprio && user.ioprio.is_ok() {
        Rung::Ioprio
    } else if keeps_memory(probes, user, wanted) {
        Rung::Memory
    } else {
        Rung::Observe
    }
}

/// Whether `memory.low` is set. The patched kernel knows by itself whose memory it takes last.
fn keeps_memory(probes: &Probes, user: &OfUser, wanted: &Wanted) -> bool {
    let kernel = wanted.kernel && probes.kernel.is_ok();
    wanted.memory && user.memory.is_ok() && !kernel
}

/// Why one of the means is not used.
fn why(name: &str, wanted: bool, why: Option<&String>) -> Option<String> {
    match why {
        _ if !wanted => Some(format!(
            "{name}: switched off, by the configuration or beside another program."
        )),
        Some(why) => Some(format!("{name}: {why}")),
        None => None,
    }
}

fn notes(probes: &Probes, wanted: &Wanted, best: Rung) -> Vec<String> {
    let mut notes: Vec<String> = why("kernel", wanted.kernel, probes.kernel.as_ref().err())
        .into_iter()
        .collect();
    let each = probes.each();
    if best == Rung::Kernel {
        notes.extend(of_users(each, not_dispatched));
        notes.extend(of_users(each, |user| vec![judged(user)]));
        return notes;
    }
    notes.extend(of_users(each, |user| weighed(probes, user, wanted)));
    notes.extend(match wanted.freezer {
        true => why("freezer", true, probes.freezer.as_ref().err()),
        false => Some(
            "freezer: off until 'freezer = true' is in the section [effects] of the configuration."
                .to_string(),
        ),
    });
    notes.extend(of_users(each, |user| ranked(probes, user, wanted)));
    notes.extend(of_users(each, |user| vec![kept(user, wanted)]));
    notes.extend(of_users(each, |user| user.facts.clone()));
    notes.extend(probes.facts.clone());
    notes.extend(of_users(each, |user| vec![judged(user)]));
    notes.extend(of_users(each, |user| match rung(probes, user, wanted) {
        rung if rung == best => Vec::new(),
        rung => vec![format!("rung: '{rung}'.")],
    }));
    notes
}

/// Sentences about users: those that hold for all once, the others with the user.
fn of_users(each: &[OfUser], say: impl Fn(&OfUser) -> Vec<String>) -> Vec<String> {
    let all: Vec<(Option<u32>, Vec<String>)> =
        each.iter().map(|user| (user.user, say(user))).collect();
    let mut notes = Vec::new();
    for (user, said) in &all {
        for sentence in said {
            let common = all.iter().all(|(_, said)| said.contains(sentence));
            let sentence = match (common, user, sentence.split_once(": ")) {
                (false, Some(user), Some((name, rest))) => format!("{name} (user {user}): {rest}"),
                _ => sentence.clone(),
            };
            if !notes.contains(&sentence) {
                notes.push(sentence);
            }
        }
    }
    notes
}

/// Why no weights are set where apps are frozen: measured, docs/MEASUREMENTS.md.
const BESIDE_FREEZER: &str =
    "weights: not set beside the freezer, with which the app in front is faster without them.";

fn weighed(probes: &Probes, user: &OfUser, wanted: &Wanted) -> Vec<String> {
    if wanted.weights && rung(probes, user, wanted).freezes() {
        return vec![BESIDE_FREEZER.to_string()];
    }
    let mut notes: Vec<String> = why("weights", wanted.weights, user.weights.as_ref().err())
        .into_iter()
        .collect();
    let by_bfq = user.weights.as_deref() == Ok("io.bfq.weight");
    if by_bfq && rung(probes, user, wanted).weighs() {
        notes.extend(inert("weights", user, |elevator| elevator == "bfq"));
    }
    notes
}

fn kept(user: &OfUser, wanted: &Wanted) -> String {
    why("memory.low", wanted.memory, user.memory.as_ref().err()).unwrap_or_else(|| {
        let mib = wanted.memory_low_mib;
        format!("memory.low: {mib} MiB of the app in front, and of the groups above it, are reclaimed last.")
    })
}

fn ranked(probes: &Probes, user: &OfUser, wanted: &Wanted) -> Vec<String> {
    let mut notes: Vec<String> = why("ioprio", wanted.ioprio, user.ioprio.as_ref().err())
        .into_iter()
        .collect();
    if rung(probes, user, wanted) == Rung::Ioprio {
        notes.push(
            "ioprio: reaches what tasks send themselves; no write-back and no journal.".to_string(),
        );
        notes.extend(inert("ioprio", user, looks_at_priority));
    }
    notes
}

/// I/O schedulers that look at a task's priority.
pub fn looks_at_priority(elevator: &str) -> bool {
    ["bfq", "mq-deadline", "fasttrack"].contains(&elevator)
}

/// That a means does nothing on some of the disks.
fn inert(name: &str, user: &OfUser, knows: impl Fn(&str) -> bool) -> Option<String> {
    let disks = user.judged.disks.iter();
    let others: Vec<&Disk> = disks.filter(|disk| !knows(&disk.elevator)).collect();
    let part = match user.judged.known {
        true => ", where a part of the apps' files is",
        false => "",
    };
    let listed = disks::list(others.iter().copied());
    (!others.is_empty()).then(|| format!("{name}: changes nothing on {listed}{part}."))
}

/// Disks where the patched kernel holds no request back.
fn not_dispatched(user: &OfUser) -> Vec<String> {
    let disks = user.judged.disks.iter();
    let others = disks.filter(|disk| disk.elevator != "fasttrack");
    others
        .map(|disk| {
            format!(
                "kernel: requests to {} are not held back, because its I/O scheduler is {}; \
                 'echo fasttrack >/sys/block/{}/queue/scheduler' changes that.",
                disk.name, disk.elevator, disk.name
            )
        })
        .collect()
}

/// By which disks was judged.
fn judged(user: &OfUser) -> String {
    let listed = disks::list(&user.judged.disks);
    match user.judged.known {
        true => format!("disks: the apps' files are on {listed}; the rung was judged by that."),
        false => format!(
            "disks: those under /usr, /var and the homes are not known; the rung was judged by all ({listed})."
        ),
    }
}
