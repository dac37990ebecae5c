// SPDX-License-Identifier: GPL-2.0-only
//! Weights of the I/O scheduler, and memory that reclaim takes last: either, or both, as the ladder says for each user.

use super::delegate::chain;
use super::effect::Effect;
use super::rules::maintenance;
use crate::baseline::{self, Outcome};
use crate::candidates;
use crate::cgroup::{user_of, Cgroup};
use crate::counters::Counters;
use crate::system::System;
use crate::units::Told;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::report::AppRef;
use fasttrack_detector::Decision;
use std::collections::{BTreeMap, BTreeSet};

/// Weight in front: the most that the schedulers know.
const FRONT: &str = "1000";

/// Weight behind: the least.
const BEHIND: &str = "1";

/// A group's path and a file of it.
type Key = (String, String);

/// The inode of a group that somebody has named, and a value for a file of it.
type Value = (Option<u64>, String);

/// Weights, and `memory.low` along the whole chain of ancestors: one ancestor without it makes it void.
pub struct Weights {
    system: System,
    /// The file of each user's groups.
    files: BTreeMap<u32, String>,
    /// The value of `memory.low`, and the users whose apps get it.
    memory: (String, BTreeSet<u32>),
    rules: Vec<String>,
    /// What is background by a rule, as far as it was there at the last look.
    maintenance: Vec<String>,
    /// Likewise, users' apps, of which an agent may not have spoken to this daemon.
    behind: Vec<String>,
    /// The groups with a value of ours, by path and file, and what it is.
    set: BTreeMap<Key, (AppRef, String)>,
    /// What systemd is to be told.
    told: Vec<Told>,
}

impl Weights {
    /// Weights of these users' groups, by these files, and of the system's, and memory of those users' apps.
    pub fn new(
        system: &System,
        wanted: &Wanted,
        files: BTreeMap<u32, String>,
        memory: &BTreeSet<u32>,
    ) -> Weights {
        Weights {
            system: system.clone(),
            files,
            memory: ((wanted.memory_low_mib << 20).to_string(), memory.clone()),
            rules: wanted.background.clone(),
            maintenance: maintenance(system, &wanted.background),
            behind: candidates::behind(system),
            set: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// The file by which a group is weighed: the system's by that which any user's has, bfq's before io.cost's.
    fn file(&self, path: &str) -> Option<&String> {
        match user_of(path) {
            Some(user) => self.files.get(&user),
            None => self.files.values().min(),
        }
    }

    /// What a decision asks for, by group and file.
    fn wanted(&self, decision: &Decision) -> BTreeMap<Key, Value> {
        let mut wanted = BTreeMap::new();
        if decision.foreground.is_empty() {
            return wanted;
        }
        let mut want = |path: &str, file: &str, inode, value: &str| {
            wanted.insert(
                (path.to_string(), file.to_string()),
                (inode, value.to_string()),
            );
        };
        let unused = |path: &&String| candidates::by_decision(path, decision).is_ok();
        for path in self
            .maintenance
            .iter()
            .chain(self.behind.iter().filter(unused))
        {
            if let Some(file) = self.file(path) {
                want(path, file, None, BEHIND);
            }
        }
        for app in decision.background.iter().map(|verdict| &verdict.app) {
            if let Some(file) = self.file(&app.cgroup) {
                want(&app.cgroup, file, Some(app.inode), BEHIND);
            }
        }
        for app in decision.foreground.iter().map(|verdict| &verdict.app) {
            if let Some(file) = self.file(&app.cgroup) {
                want(&app.cgroup, file, Some(app.inode), FRONT);
            }
            let (low, users) = &self.memory;
            if !user_of(&app.cgroup).is_some_and(|user| users.contains(&user)) {
                continue;
            }
            for path in chain(&app.cgroup) {
                let inode = (path == app.cgroup).then_some(app.inode);
                want(path, "memory.low", inode, low);
            }
        }
        wanted
    }

    /// What has ended has taken its values along, and another group may have its path.
    fn forget_ended(&mut self) {
        let system = &self.system;
        self.set.retain(|_, (app, _)| !Cgroup::is_gone(system, app));
    }

    fn set(&mut self, key: Key, (inode, value): Value, counters: &mut Counters) {
        let group = Cgroup::open_path(&self.system, &key.0);
        let meant = |group: &Cgroup| inode.is_none_or(|inode| inode == group.inode());
        // Of those that nobody has named, some end, and some have no such file: that is no news.
        let count = |counters: &mut Counters, what| {
            if inode.is_some() {
                counters.count(what);
            }
        };
        let Some(group) = group.ok().filter(meant) else {
            return count(counters, "groups that had ended");
        };
        if !group.has(&key.1) {
            return count(counters, "files that are not there");
        }
        match baseline::set(&group, &key.1, &value) {
            Ok(Outcome::NotTaken(after)) => counters.error(&format!("{} not taken", key.1), || {
                format!(
                    "{}/{}: {value} was written and {after:?} read back",
                    key.0, key.1
                )
            }),
            Ok(_) => {
                self.told.extend(Told::of(&group, &key.1, Some(&value)));
                self.set.insert(key, (group.app(), value));
            }
            Err(error) => counters.error(&format!("write of {}", key.1), || {
                format!("{}/{} does not take {value}: {error}", key.0, key.1)
            }),
        }
    }

    /// What a file of a group said before ours.
    fn before(&self, app: &AppRef, file: &str) -> Option<String> {
        let group = Cgroup::open(&self.system, app).ok()?;
        baseline::before(&group, file).ok()?
    }

    fn restore(&mut self, key: &Key, counters: &mut Counters) {
        let Some((app, _)) = self.set.remove(key) else {
            return;
        };
        // A group that has ended has taken its values along.
        let Ok(group) = Cgroup::open(&self.system, &app) else {
            return;
        };
        self.told.extend(Told::of(&group, &key.1, None));
        match baseline::restore(&group, &key.1) {
            Ok(true) => {}
            Ok(false) => counters.count("values that somebody else had changed"),
            Err(error) => counters.error(&format!("restore of {}", key.1), || {
                format!("{}/{} could not be restored: {error}", key.0, key.1)
            }),
        }
    }
}

impl Effect for Weights {
    fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        self.forget_ended();
        let wanted = self.wanted(decision);
        let over: Vec<Key> = self
            .set
            .keys()
            .filter(|key| !wanted.contains_key(key))
            .cloned()
            .collect();
        // Who waits is in front.
        let (first, others): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|(_, value)| value.1 != BEHIND);
        for (key, value) in first.into_iter().chain(others) {
            if self.set.get(&key).is_none_or(|(_, is)| *is != value.1) {
                self.set(key, value, counters);
            }
        }
        over.iter().for_each(|key| self.restore(key, counters));
    }

    /// Services and apps begin and end without a word: those that are there now are weighed, those that have ended
    /// forgotten.
    fn renew(&mut self, decision: &Decision, counters: &mut Counters) {
        self.maintenance = maintenance(&self.system, &self.rules);
        self.behind = candidates::behind(&self.system);
        self.apply(decision, counters);
    }

    fn explain(&self, cgroup: &str) -> Vec<String> {
        let set = self.set.iter().filter(|((path, _), _)| path == cgroup);
        set.map(|((path, file), (app, value))| {
            let was = self.before(app, file);
            let was = was.map_or_else(String::new, |was| format!(" (was {was})"));
            format!("{path}/{file} is {value}{was}.")
        })
        .collect()
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    fn release(&mut self, counters: &mut Counters) {
        let all: Vec<Key> = self.set.keys().cloned().collect();
        all.iter().for_each(|key| self.restore(key, counters));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_all_above_but_the_root() {
        let all: Vec<&str> = chain("/user.slice/user-1.slice/a.scope").collect();
        assert_eq!(
            all,
            [
                "/user.slice",
                "/user.slice/user-1.slice",
                "/user.slice/user-1.slice/a.scope"
            ]
        );
    }
}
