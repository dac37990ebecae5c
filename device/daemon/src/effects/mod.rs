// SPDX-License-Identifier: GPL-2.0-only
//! What is done for the app in front, by the best means that works here.
//!
//! Each means is probed by a write that is read back; a file that is there proves nothing. What cannot work is said in
//! a sentence, because a setting that does nothing looks like one that works.

pub mod delegate;
pub mod effect;
pub mod ioprio;
pub mod kernel;
pub mod ladder;
pub mod probe;
pub mod rules;
pub mod weights;

use crate::counters::Counters;
use crate::system::System;
use crate::units::Told;
use effect::Effect;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::Decision;
use ladder::{Choice, Probes, Rung};
use std::collections::{BTreeMap, BTreeSet};

/// The rungs in use, and why.
pub struct Effects {
    system: System,
    wanted: Wanted,
    choice: Choice,
    active: Vec<Box<dyn Effect>>,
    /// Why the kernel's part is left alone: it was switched off while we used it.
    kernel_off: Option<String>,
    /// What effects that are over had for systemd.
    told: Vec<Told>,
}

impl Effects {
    /// Probes the system and takes the best rung.
    pub fn new(system: &System, wanted: &Wanted, counters: &mut Counters) -> Effects {
        let mut effects = Effects {
            system: system.clone(),
            wanted: wanted.clone(),
            choice: Choice {
                rung: Rung::Observe,
                users: BTreeMap::new(),
                rest: Rung::Observe,
                memory: BTreeSet::new(),
                notes: Vec::new(),
            },
            active: Vec::new(),
            kernel_off: None,
            told: Vec::new(),
        };
        effects.choose(counters);
        effects
    }

    /// The best rung that is in use.
    pub fn rung(&self) -> Rung {
        self.choice.rung
    }

    /// Why this rung, and what has no effect here.
    pub fn notes(&self) -> &[String] {
        &self.choice.notes
    }

    /// Makes the system fit a decision. Falls to a lower rung where this one has broken.
    pub fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        if self.active.iter().any(|effect| effect.broken().is_some()) {
            self.choose(counters);
        }
        for effect in &mut self.active {
            effect.apply(decision, counters);
        }
    }

    /// Says again what lapses by itself, and looks whether all still works.
    pub fn renew(&mut self, decision: &Decision, counters: &mut Counters) {
        self.active
            .iter_mut()
            .for_each(|effect| effect.renew(decision, counters));
        if self.active.iter().any(|effect| effect.broken().is_some()) {
            self.apply(decision, counters);
        }
    }

    /// Changes what is wanted: the configuration, or programs that have come or gone.
    pub fn set_wanted(&mut self, wanted: &Wanted, counters: &mut Counters) {
        if self.wanted != *wanted {
            self.wanted = wanted.clone();
            self.choose(counters);
        }
    }

    /// Looks again at what works for a decision: a user who logs in brings files to probe.
    pub fn look_again(&mut self, decision: &Decision, counters: &mut Counters) {
        let probes = self.probe();
        let choice = ladder::choose(&probes, &self.wanted);
        let rungs = |one: &Choice| (one.rung, one.users.clone(), one.rest, one.memory.clone());
        let both = [&choice, &self.choice];
        // The kernel serves all users alike.
        let kernel = both.iter().all(|choice| choice.rung == Rung::Kernel);
        if kernel {
            self.choice = choice;
        } else if rungs(&choice) != rungs(&self.choice) {
            self.choose(counters);
            self.apply(decision, counters);
        }
    }

    /// Sets everything anew: what was set is there no longer.
    pub fn set_again(&mut self, decision: &Decision, counters: &mut Counters) {
        for mut effect in self.active.drain(..) {
            self.told.extend(effect.told());
        }
        self.choose(counters);
        self.apply(decision, counters);
    }

    /// What was written for a control group.
    pub fn explain(&self, cgroup: &str) -> Vec<String> {
        self.active
            .iter()
            .flat_map(|effect| effect.explain(cgroup))
            .collect()
    }

    /// Takes everything back.
    pub fn release(&mut self, counters: &mut Counters) {
        self.release_effects(counters);
        delegate::take_back(&self.system);
    }

    fn release_effects(&mut self, counters: &mut Counters) {
        for mut effect in self.active.drain(..) {
            effect.release(counters);
            self.told.extend(effect.told());
        }
    }

    /// What systemd is to be told since this was last asked.
    pub fn told(&mut self) -> Vec<Told> {
        let mut told = std::mem::take(&mut self.told);
        told.extend(self.active.iter_mut().flat_map(|effect| effect.told()));
        told
    }

    fn choose(&mut self, counters: &mut Counters) {
        let broken = self.active.iter().find_map(|effect| effect.broken());
        self.release_effects(counters);
        let mut probes = self.probe();
        if let Some(why) = broken {
            self.kernel_off = Some(why.clone());
            probes.kernel = Err(why);
        }
        self.choice = ladder::choose(&probes, &self.wanted);
        counters.say(&format!("rung: {}", self.choice.rung));
        self.active = self.build(&probes, counters);
        if !self.choice.users.values().any(|rung| rung.weighs()) {
            delegate::take_back(&self.system);
        }
    }

    /// What works. The kernel's part, once it is off, does not until somebody has switched it on again.
    fn probe(&mut self) -> Probes {
        if kernel::is_on(&self.system) {
            self.kernel_off = None;
        }
        match &self.kernel_off {
            Some(why) => {
                let wanted = Wanted {
                    kernel: false,
                    ..self.wanted.clone()
                };
                Probes {
                    kernel: Err(why.clone()),
                    ..probe::probe(&self.system, &wanted)
                }
            }
            None => probe::probe(&self.system, &self.wanted),
        }
    }

    fn build(&self, probes: &Probes, counters: &mut Counters) -> Vec<Box<dyn Effect>> {
        if self.choice.rung == Rung::Kernel {
            let kernel = kernel::Kernel::new(&self.system, &self.wanted, counters);
            return vec![Box::new(kernel)];
        }
        let mut active: Vec<Box<dyn Effect>> = Vec::new();
        let files: BTreeMap<u32, String> = probes
            .users
            .iter()
            .filter_map(|user| Some((user.user?, user.weights.clone().ok()?)))
            .filter(|(user, _)| {
                self.choice
                    .users
                    .get(user)
                    .is_some_and(|rung| rung.weighs())
            })
            .collect();
        let memory = &self.choice.memory;
        if !files.is_empty() || !memory.is_empty() {
            let weights = weights::Weights::new(&self.system, &self.wanted, files, memory);
            active.push(Box::new(weights));
        }
        // Who waits for a thaw has still to share the disk with what is not frozen.
        let ranked = self.choice.reach(|user, rung| {
            let of = |one: &&ladder::OfUser| one.user == user;
            let inert = probes
                .users
                .iter()
                .find(of)
                .unwrap_or(&probes.rest)
                .ioprio
                .is_err();
            self.wanted.ioprio && !inert && matches!(rung, Rung::Ioprio | Rung::Freezer)
        });
        if let Some(reach) = ranked {
            active.push(Box::new(ioprio::Ioprio::new(
                &self.system,
                &self.wanted,
                reach,
            )));
        }
        active
    }
}
