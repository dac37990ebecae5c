// SPDX-License-Identifier: GPL-2.0-only
//! Weights of the I/O scheduler, and memory that reclaim takes last.

use super::rules::maintenance;
use super::Effect;
use crate::baseline::{self, Outcome};
use crate::cgroup::Cgroup;
use crate::counters::Counters;
use crate::system::System;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::report::AppRef;
use fasttrack_detector::Decision;
use std::collections::BTreeMap;

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
    file: String,
    memory: Option<String>,
    rules: Vec<String>,
    /// What is background by a rule, as far as it was there at the last look.
    maintenance: Vec<String>,
    /// Somebody is in front.
    weighs: bool,
    /// The groups with a value of ours, by path and file, and what it is.
    set: BTreeMap<Key, (AppRef, String)>,
}

impl Weights {
    /// Weights by this file.
    pub fn new(system: &System, wanted: &Wanted, file: &str) -> Weights {
        Weights {
            system: system.clone(),
            file: file.to_string(),
            memory: wanted
                .memory
                .then(|| (wanted.memory_low_mib << 20).to_string()),
            rules: wanted.background.clone(),
            maintenance: maintenance(system, &wanted.background),
            weighs: false,
            set: BTreeMap::new(),
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
        for path in &self.maintenance {
            want(path, &self.file, None, BEHIND);
        }
        for app in decision.background.iter().map(|verdict| &verdict.app) {
            want(&app.cgroup, &self.file, Some(app.inode), BEHIND);
        }
        for app in decision.foreground.iter().map(|verdict| &verdict.app) {
            want(&app.cgroup, &self.file, Some(app.inode), FRONT);
            let Some(low) = &self.memory else { continue };
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
        self.set
            .retain(|_, (app, _)| Cgroup::open(system, app).is_ok());
    }

    fn set(&mut self, key: Key, (inode, value): Value, counters: &mut Counters) {
        let group = Cgroup::open_path(&self.system, &key.0);
        let meant = |group: &Cgroup| inode.is_none_or(|inode| inode == group.inode());
        let Some(group) = group.ok().filter(meant) else {
            counters.count("groups that had ended");
            return;
        };
        if !group.has(&key.1) {
            counters.count("files that are not there");
            return;
        }
        match baseline::set(&group, &key.1, &value) {
            Ok(Outcome::NotTaken(after)) => counters.error(&format!("{} not taken", key.1), || {
                format!(
                    "{}/{}: {value} was written and {after:?} read back",
                    key.0, key.1
                )
            }),
            Ok(_) => drop(self.set.insert(key, (group.app(), value))),
            Err(error) => counters.error(&format!("write of {}", key.1), || {
                format!("{}/{} does not take {value}: {error}", key.0, key.1)
            }),
        }
    }

    fn restore(&mut self, key: &Key, counters: &mut Counters) {
        let Some((app, _)) = self.set.remove(key) else {
            return;
        };
        // A group that has ended has taken its values along.
        let Ok(group) = Cgroup::open(&self.system, &app) else {
            return;
        };
        match baseline::restore(&group, &key.1) {
            Ok(true) => {}
            Ok(false) => counters.count("values that somebody else had changed"),
            Err(error) => counters.error(&format!("restore of {}", key.1), || {
                format!("{}/{} could not be restored: {error}", key.0, key.1)
            }),
        }
    }
}

/// A group and all above it but the root.
fn chain(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(index, _)| index).skip(1);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// Gives the io controller to the apps of a user, where this gives the user nothing that could hurt others.
///
/// A group that a user's manager makes later belongs to the user, with all its files. Of these `io.prio.class` lets
/// anybody have real-time priority: where it appears, the controller is taken back at once. Below the root it is there
/// only once the root gives the controller.
pub fn enable_io(system: &System, slice: &str) {
    let has = |group: &Cgroup, file: &str| {
        group
            .read(file)
            .is_ok_and(|text| text.split(' ').any(|word| word == "io"))
    };
    let groups: Vec<&str> = std::iter::once("/").chain(chain(slice)).collect();
    for (index, path) in groups.iter().enumerate() {
        let Ok(group) = Cgroup::open_below(system.cgroups(), path) else {
            return;
        };
        let gives = has(&group, "cgroup.controllers") && !has(&group, "cgroup.subtree_control");
        if gives && group.write("cgroup.subtree_control", "+io").is_err() {
            return;
        }
        // The apps' own groups are below the last one, and have the same files as that.
        let below = groups
            .get(index + 1)
            .map(|path| Cgroup::open_path(system, path));
        if below.is_some_and(|group| group.is_ok_and(|group| group.has("io.prio.class"))) {
            if gives {
                let _ = group.write("cgroup.subtree_control", "-io");
            }
            return;
        }
    }
}

impl Effect for Weights {
    fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        self.weighs = !decision.foreground.is_empty();
        self.forget_ended();
        let wanted = self.wanted(decision);
        let over: Vec<Key> = self
            .set
            .keys()
            .filter(|key| !wanted.contains_key(key))
            .cloned()
            .collect();
        for (key, value) in wanted {
            if self.set.get(&key).is_none_or(|(_, is)| *is != value.1) {
                self.set(key, value, counters);
            }
        }
        over.iter().for_each(|key| self.restore(key, counters));
    }

    /// Services begin and end without a word: those that are there now are weighed, those that have ended forgotten.
    fn renew(&mut self, counters: &mut Counters) {
        self.forget_ended();
        self.maintenance = maintenance(&self.system, &self.rules);
        for path in self.maintenance.clone() {
            let key = (path, self.file.clone());
            if self.weighs && !self.set.contains_key(&key) {
                self.set(key, (None, BEHIND.to_string()), counters);
            }
        }
    }

    fn explain(&self, cgroup: &str) -> Vec<String> {
        let set = self.set.iter().filter(|((path, _), _)| path == cgroup);
        set.map(|((path, file), (_, value))| format!("{path}/{file} is {value}."))
            .collect()
    }

    fn release(&mut self, counters: &mut Counters) {
        let all: Vec<Key> = self.set.keys().cloned().collect();
        all.iter().for_each(|key| self.restore(key, counters));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups that have the controller and give it to nobody, and what each gives in the end.
    fn given(prio_below: Option<&str>) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let slice = "/user.slice/user-1.slice/user@1.service/app.slice";
        let groups: Vec<String> = std::iter::once("/")
            .chain(chain(slice))
            .map(str::to_string)
            .collect();
        let file = |group: &str, name: &str| {
            system
                .cgroups()
                .join(group.trim_start_matches('/'))
                .join(name)
        };
        for group in &groups {
            std::fs::create_dir_all(file(group, "")).expect("a group");
            std::fs::write(file(group, "cgroup.controllers"), "io memory").expect("a file");
            std::fs::write(file(group, "cgroup.subtree_control"), "memory").expect("a file");
        }
        if let Some(group) = prio_below {
            std::fs::write(file(group, "io.prio.class"), "").expect("a file");
        }
        enable_io(&system, slice);
        let gives = |group: &String| std::fs::read_to_string(file(group, "cgroup.subtree_control"));
        groups
            .iter()
            .map(|group| gives(group).expect("read"))
            .collect()
    }

    #[test]
    fn users_get_the_controller_only_without_what_hurts_others() {
        assert_eq!(given(None), ["+io"; 5]);
        // The file is there as soon as the group above gives the controller: that is taken back.
        let below_root = given(Some("/user.slice"));
        assert_eq!(below_root, ["-io", "memory", "memory", "memory", "memory"]);
        let deeper = given(Some("/user.slice/user-1.slice/user@1.service"));
        assert_eq!(deeper, ["+io", "+io", "-io", "memory", "memory"]);
    }

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
