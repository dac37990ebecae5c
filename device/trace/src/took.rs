// SPDX-License-Identifier: GPL-2.0-only
//! How long calls and waits took together, each ns of a thread counted once.

use fasttrack_trace_log::Wait;
use std::collections::{BTreeMap, HashMap};

/// Calls or waits of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// All together, ns.
    pub total_ns: u64,
}

impl Took {
    /// Adds one of `ns`.
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns += ns;
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// A wait that the next one of its thread may be around.
#[derive(Debug, Clone, Copy)]
struct Waited {
    kind: &'static str,
    ended: u64,
    took: u64,
}

/// Waits by kind; one within another of its thread is the outer one's.
#[derive(Debug, Default)]
pub struct Waits {
    /// Of no known thread.
    others: BTreeMap<&'static str, Took>,
    threads: HashMap<u64, Vec<Waited>>,
}

impl Waits {
    /// Adds one. Those of a thread come in the order in which they ended.
    pub fn add(&mut self, wait: &Wait, kind: &'static str) {
        let took = wait.duration_ns.unwrap_or(0);
        let Some(thread) = wait.thread else {
            return self.others.entry(kind).or_default().add(took);
        };
        let ended = wait.time.0;
        let began = ended.saturating_sub(took);
        let before = self.threads.entry(thread).or_default();
        while before.last().is_some_and(|inner| inner.ended > began) {
            before.pop();
        }
        before.push(Waited { kind, ended, took });
    }

    /// All by kind.
    pub fn by_kind(&self) -> BTreeMap<&'static str, Took> {
        let mut all = self.others.clone();
        for wait in self.threads.values().flatten() {
            all.entry(wait.kind).or_default().add(wait.took);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::Time;

    fn wait(began: u64, ended: u64, thread: Option<u64>) -> Wait {
        Wait {
            time: Time(ended),
            duration_ns: Some(ended - began),
            thread,
            ..Wait::default()
        }
    }

    fn took(count: u64, longest_ns: u64, total_ns: u64) -> Took {
        Took {
            count,
            longest_ns,
            total_ns,
        }
    }

    #[test]
    fn a_wait_within_another_is_the_outer_ones() {
        let mut waits = Waits::default();
        // Two bios of a flush, which ends with the second; then a wait by itself.
        waits.add(&wait(10, 20, Some(1)), "bio");
        waits.add(&wait(20, 30, Some(1)), "bio");
        waits.add(&wait(5, 30, Some(1)), "flush");
        waits.add(&wait(30, 35, Some(1)), "bio");
        assert_eq!(
            waits.by_kind(),
            BTreeMap::from([("bio", took(1, 5, 5)), ("flush", took(1, 25, 25))])
        );
    }

    #[test]
    fn waits_of_others_meanwhile_are_their_own() {
        let mut waits = Waits::default();
        waits.add(&wait(10, 20, Some(1)), "bio");
        waits.add(&wait(10, 20, None), "bio");
        waits.add(&wait(5, 30, Some(2)), "bio");
        waits.add(&wait(5, 30, None), "bio");
        assert_eq!(waits.by_kind()["bio"], took(4, 25, 70));
    }
}
