// SPDX-License-Identifier: GPL-2.0-only
//! What the rungs have in common.

use crate::counters::Counters;
use crate::units::Told;
use fasttrack_detector::Decision;

/// What writes for one rung.
pub trait Effect {
    /// Makes the system fit a decision.
    fn apply(&mut self, decision: &Decision, counters: &mut Counters);

    /// Says again what lapses by itself, and does to groups that have begun without a word what the last decision asks
    /// for.
    fn renew(&mut self, _decision: &Decision, _counters: &mut Counters) {}

    /// Whether it no longer works, and why.
    fn broken(&self) -> Option<String> {
        None
    }

    /// What was written for a control group: whole sentences.
    fn explain(&self, cgroup: &str) -> Vec<String>;

    /// What systemd is to be told since this was last asked.
    fn told(&mut self) -> Vec<Told> {
        Vec::new()
    }

    /// Takes everything back.
    fn release(&mut self, counters: &mut Counters);
}
