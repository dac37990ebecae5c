// SPDX-License-Identifier: GPL-2.0-only
//! What is done for the app in front, by the best means that works here.
//!
//! Each means is probed by a write that is read back; a file that is there proves nothing. What cannot work is said in
//! a sentence, because a setting that does nothing looks like one that works.

pub mod ioprio;
pub mod kernel;
pub mod probe;
pub mod rules;
pub mod weights;

use crate::counters::Counters;
use crate::system::System;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::Decision;
use probe::{Probes, Rung};

/// What writes for one rung.
pub trait Effect {
    /// Makes the system fit a decision.
    fn apply(&mut self, decision: &Decision, counters: &mut Counters);

    /// Says again what lapses by itself.
    fn renew(&mut self, _counters: &mut Counters) {}

    /// Whether it no longer works, and why.
    fn broken(&self) -> Option<String> {
        None
    }

    /// What was written for a control group: whole sentences.
    fn explain(&self, cgroup: &str) -> Vec<String>;

    /// Takes everything back.
    fn release(&mut self, counters: &mut Counters);
}

/// The rung in use, and why.
pub struct Effects {
    system: System,
    wanted: Wanted,
    rung: Rung,
    notes: Vec<String>,
    active: Vec<Box<dyn Effect>>,
    /// Why the kernel's part is left alone: it was switched off while we used it.
    kernel_off: Option<String>,
}

impl Effects {
    /// Probes the system and takes the best rung.
    pub fn new(system: &System, wanted: &Wanted, counters: &mut Counters) -> Effects {
        let mut effects = Effects {
            system: system.clone(),
            wanted: wanted.clone(),
            rung: Rung::Observe,
            notes: Vec::new(),
            active: Vec::new(),
            kernel_off: None,
        };
        effects.choose(counters);
        effects
    }

    /// The rung in use.
    pub fn rung(&self) -> Rung {
        self.rung
    }

    /// Why this rung, and what has no effect here.
    pub fn notes(&self) -> &[String] {
        &self.notes
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
            .for_each(|effect| effect.renew(counters));
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

    /// Looks again at what works: a user who logs in brings files to probe.
    pub fn look_again(&mut self, counters: &mut Counters) {
        let probes = self.probe();
        if probe::choose(&probes, &self.wanted).0 != self.rung {
            self.choose(counters);
        }
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
        self.active
            .drain(..)
            .for_each(|mut effect| effect.release(counters));
    }

    fn choose(&mut self, counters: &mut Counters) {
        let broken = self.active.iter().find_map(|effect| effect.broken());
        self.release(counters);
        let mut probes = self.probe();
        if let Some(why) = broken {
            self.kernel_off = Some(why.clone());
            probes.kernel = Err(why);
        }
        (self.rung, self.notes) = probe::choose(&probes, &self.wanted);
        counters.say(&format!("rung: {}", self.rung));
        self.active = self.build(&probes, counters);
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
        let ioprio =
            || Box::new(ioprio::Ioprio::new(&self.system, &self.wanted)) as Box<dyn Effect>;
        match self.rung {
            Rung::Kernel => vec![Box::new(kernel::Kernel::new(
                &self.system,
                &self.wanted,
                counters,
            ))],
            Rung::WeightsAndFreezer | Rung::Weights => {
                let file = probes.weights.clone().unwrap_or_default();
                vec![Box::new(weights::Weights::new(
                    &self.system,
                    &self.wanted,
                    &file,
                ))]
            }
            Rung::Ioprio => vec![ioprio()],
            Rung::Freezer if probes.ioprio.is_ok() && self.wanted.ioprio => vec![ioprio()],
            Rung::Freezer | Rung::Observe => Vec::new(),
        }
    }
}
