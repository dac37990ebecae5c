// SPDX-License-Identifier: GPL-2.0-only
//! How long calls and waits took together, each ns of a thread counted once.

use fasttrack_trace_log::Wait;
use std::collections::{BTreeMap, HashMap};

/// So many waits are kept for one that may be around them: 2 MiB.
const KEPT: usize = 65_536;

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

    /// Adds so many, of `ns` together.
    pub fn add_many(&mut self, count: u64, ns: u64, longest_ns: u64) {
        self.count += count;
        self.total_ns += ns;
        self.longest_ns = self.longest_ns.max(longest_ns);
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
    /// Those that none can be around any more: of no known thread, or before `settled`.
    over: BTreeMap<&'static str, Took>,
    threads: HashMap<u64, Vec<Waited>>,
    /// In all threads.
    kept: usize,
    /// What ended up to then, ns, is summed up.
    settled: u64,
    doubtful: u64,
}

impl Waits {
    /// Adds one. Those of a thread come in the order in which they ended.
    pub fn add(&mut self, wait: &Wait, kind: &'static str) {
        let took = wait.duration_ns.unwrap_or(0);
        let Some(thread) = wait.thread else {
            return self.over.entry(kind).or_default().add(took);
        };
        let ended = wait.time.0;
        let began = ended.saturating_sub(took);
        let before = self.threads.entry(thread).or_default();
        while before.last().is_some_and(|inner| inner.ended > began) {
            before.pop();
            self.kept -= 1;
        }
        if before.is_empty() && began < self.settled {
            self.doubtful += 1;
        }
        before.push(Waited { kind, ended, took });
        self.kept += 1;
        if self.kept > KEPT {
            self.settle();
        }
    }

    /// Sums up the older half of what is kept.
    fn settle(&mut self) {
        let mut ends: Vec<u64> = self.threads.values().flatten().map(|w| w.ended).collect();
        let (_, middle, _) = ends.select_nth_unstable(KEPT / 2);
        let (until, over) = (*middle, &mut self.over);
        self.threads.retain(|_, waits| {
            let count = waits.partition_point(|wait| wait.ended <= until);
            for wait in waits.drain(..count) {
                over.entry(wait.kind).or_default().add(wait.took);
            }
            waits.shrink_to_fit();
            !waits.is_empty()
        });
        self.kept = self.threads.values().map(Vec::len).sum();
        self.settled = until;
    }

    /// Waits that began before others were summed up: those of them that were around some are counted with these.
    pub fn doubtful(&self) -> u64 {
        self.doubtful
    }

    /// All by kind.
    pub fn by_kind(&self) -> BTreeMap<&'static str, Took> {
        let mut all = self.over.clone();
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

    #[test]
    fn memory_is_bounded_and_what_it_costs_is_counted() {
        let mut waits = Waits::default();
        let all = 3 * KEPT as u64;
        for at in 0..all {
            waits.add(&wait(10 * at, 10 * at + 10, Some(at % 1000)), "bio");
            assert!(waits.kept <= KEPT);
        }
        assert_eq!(waits.by_kind()["bio"], took(all, 10, 10 * all));
        assert_eq!(waits.doubtful(), 0);
        // Around all of its thread: those that are kept are its own, those that are summed up already are not.
        waits.add(&wait(0, 10 * all, Some(1)), "flush");
        assert_eq!(waits.doubtful(), 1);
        let inner = waits.by_kind()["bio"].count;
        assert!(inner < all && inner >= all - KEPT as u64, "{inner}");
        // One that began later is not in doubt.
        waits.add(&wait(10 * all, 10 * all + 5, Some(1)), "flush");
        assert_eq!(waits.doubtful(), 1);
    }
}
