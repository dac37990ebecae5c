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
use ladder::{Choice, Probes, Reach, Rung};
use probe::Signs;
use std::collections::{BTreeMap, BTreeSet};

/// What is set, for whom: while it is the same, nothing has to be set anew.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// The kernel serves all users alike.
    kernel: bool,
    /// The files of users' weights.
    files: BTreeMap<u32, String>,
    /// Whose apps have `memory.low`.
    memory: BTreeSet<u32>,
    /// Whose tasks have priorities.
    ranked: Option<Reach>,
}

/// Why nothing is frozen by a machine that is on its battery.
const SAVER: &str = "off while the battery is to be saved.";

/// The rungs in use, and why.
pub struct Effects {
    system: System,
    wanted: Wanted,
    choice: Choice,
    plan: Plan,
    /// What there was at the last probe.
    signs: Signs,
    active: Vec<Box<dyn Effect>>,
    /// Why the kernel's part is left alone: it was switched off while we used it.
    kernel_off: Option<String>,
    /// Whether the battery is to be saved: nothing is frozen then.
    saver: bool,
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
            plan: Plan::default(),
            signs: Signs::default(),
            active: Vec::new(),
            kernel_off: None,
            saver: false,
            told: Vec::new(),
        };
        effects.choose(counters);
        if !effects.plan.kernel {
            // An earlier daemon may have used it, and nobody has cleaned up since.
            kernel::clear(system);
        }
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

    /// Whether a means that is in use works no longer.
    fn is_broken(&self) -> bool {
        self.active.iter().any(|effect| effect.broken().is_some())
    }

    /// Makes the system fit a decision. Falls to a lower rung where this one has broken.
    pub fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        if self.is_broken() {
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
        if self.is_broken() {
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

    /// The battery is to be saved from now on, or no longer.
    pub fn set_saver(&mut self, saver: bool, counters: &mut Counters) {
        if self.saver != saver {
            self.saver = saver;
            self.choose(counters);
        }
    }

    /// Probes again for a decision: a user who logs in brings files, and somebody may have done what a note asks for.
    /// What is set stays, unless it is set otherwise now.
    pub fn look_again(&mut self, decision: &Decision, counters: &mut Counters) {
        if self.is_broken() {
            return self.apply(decision, counters);
        }
        let (choice, plan) = self.best();
        if choice.rung == self.choice.rung && plan == self.plan {
            self.choice = choice;
            self.take_back_io();
        } else {
            self.release_effects(counters);
            self.take(choice, plan, counters);
            self.apply(decision, counters);
        }
    }

    /// The same, if anything is not as it was at the last probe. Otherwise it writes nothing.
    pub fn look_at_signs(&mut self, decision: &Decision, counters: &mut Counters) {
        if self.signs() != self.signs {
            self.look_again(decision, counters);
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
        if broken.is_some() {
            self.kernel_off = broken;
        }
        let (choice, plan) = self.best();
        self.take(choice, plan, counters);
    }

    /// Probes, and says what is best. What is set stays.
    fn best(&mut self) -> (Choice, Plan) {
        let probes = self.probe();
        let choice = ladder::choose(&probes, &self.wanted);
        let plan = self.plan(&probes, &choice);
        (choice, plan)
    }

    /// Sets what was chosen, where nothing is set.
    fn take(&mut self, choice: Choice, plan: Plan, counters: &mut Counters) {
        counters.say(&format!("rung: {}", choice.rung));
        (self.choice, self.plan) = (choice, plan);
        self.active = self.build(counters);
        self.take_back_io();
    }

    /// To give users' apps the io controller belongs to the probe of weights.
    fn take_back_io(&self) {
        if !self.choice.users.values().any(|rung| rung.weighs()) {
            delegate::take_back(&self.system);
        }
    }

    fn signs(&self) -> Signs {
        let on_again = self.kernel_off.is_some() && kernel::is_on(&self.system);
        Signs::new(&self.system, on_again)
    }

    /// What works. The kernel's part, once it is off, does not until somebody has switched it on again.
    fn probe(&mut self) -> Probes {
        if kernel::is_on(&self.system) {
            self.kernel_off = None;
        }
        // Before: what changes meanwhile is seen the next time.
        self.signs = self.signs();
        let wanted = Wanted {
            kernel: self.wanted.kernel && self.kernel_off.is_none(),
            freezer: self.wanted.freezer && !self.saver,
            ..self.wanted.clone()
        };
        let mut probes = probe::probe(&self.system, &wanted);
        if let Some(why) = &self.kernel_off {
            probes.kernel = Err(why.clone());
        }
        if self.saver {
            probes.freezer = Err(SAVER.to_string());
        }
        probes
    }

    fn plan(&self, probes: &Probes, choice: &Choice) -> Plan {
        if choice.rung == Rung::Kernel {
            return Plan {
                kernel: true,
                ..Plan::default()
            };
        }
        let weighs = |user: &u32| choice.users.get(user).is_some_and(|rung| rung.weighs());
        let files = probes.users.iter();
        let files = files
            .filter_map(|user| Some((user.user?, user.weights.clone().ok()?)))
            .filter(|(user, _)| weighs(user))
            .collect();
        // Who waits for a thaw has still to share the disk with what is not frozen.
        let ranked = choice.reach(|user, rung| {
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
        Plan {
            kernel: false,
            files,
            memory: choice.memory.clone(),
            ranked,
        }
    }

    fn build(&self, counters: &mut Counters) -> Vec<Box<dyn Effect>> {
        let (system, wanted, plan) = (&self.system, &self.wanted, &self.plan);
        let mut active: Vec<Box<dyn Effect>> = Vec::new();
        if plan.kernel {
            active.push(Box::new(kernel::Kernel::new(system, wanted, counters)));
        }
        if !plan.files.is_empty() || !plan.memory.is_empty() {
            let files = plan.files.clone();
            let weights = weights::Weights::new(system, wanted, files, &plan.memory);
            active.push(Box::new(weights));
        }
        if let Some(reach) = plan.ranked.clone() {
            active.push(Box::new(ioprio::Ioprio::new(system, wanted, reach)));
        }
        active
    }
}
