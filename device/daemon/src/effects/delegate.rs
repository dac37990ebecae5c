// SPDX-License-Identifier: GPL-2.0-only
//! The io controller for users' apps, which systemd does not delegate: given, recorded on the groups, and taken back.

use crate::cgroup::Cgroup;
use crate::system::System;
use crate::tree::below;

/// The mark of a group that has io in its `cgroup.subtree_control` from us.
pub const MARK: &str = "trusted.fasttrack.io";

/// Groups below `/user.slice` on the way to a user's apps: the user's slice, the manager, `app.slice`.
const DEPTH: usize = 3;

/// Files by which a group uses the controller, with what they say if nobody has set them.
const UNUSED: [(&str, &str); 5] = [
    ("io.weight", "default 100"),
    ("io.bfq.weight", "default 100"),
    ("io.max", ""),
    ("io.latency", ""),
    ("io.prio.class", "no-change"),
];

/// A group and all above it but the root.
pub fn chain(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(index, _)| index).skip(1);
    ends.chain([path.len()]).map(|end| &path[..end])
}

fn has_io(group: &Cgroup, file: &str) -> bool {
    group
        .read(file)
        .is_ok_and(|text| text.split(' ').any(|word| word == "io"))
}

/// Gives the controller to the apps of a user, where this gives the user nothing that could hurt others.
///
/// A group that a user's manager makes later belongs to the user, with all its files. Of these `io.prio.class` lets
/// anybody have real-time priority: where it appears, the controller is taken back at once. Below the root it is there
/// only once the root gives the controller. False where it was not given for this reason.
pub fn give(system: &System, slice: &str) -> bool {
    let groups: Vec<&str> = std::iter::once("/").chain(chain(slice)).collect();
    for (index, path) in groups.iter().enumerate() {
        let Ok(group) = Cgroup::open_below(system.cgroups(), path) else {
            return true;
        };
        let gives =
            has_io(&group, "cgroup.controllers") && !has_io(&group, "cgroup.subtree_control");
        if gives && !give_to(&group) {
            return true;
        }
        // The apps' own groups are below the last one, and have the same files as that.
        let below = groups
            .get(index + 1)
            .map(|path| Cgroup::open_path(system, path));
        if below.is_some_and(|group| group.is_ok_and(|group| group.has("io.prio.class"))) {
            if gives && group.write("cgroup.subtree_control", "-io").is_ok() {
                let _ = group.remove_attribute(MARK);
            }
            return false;
        }
    }
    true
}

/// Gives what is below a group the controller. Without the mark it would never be taken back.
fn give_to(group: &Cgroup) -> bool {
    if group.set_attribute(MARK, "1").is_err() {
        return false;
    }
    let given = group.write("cgroup.subtree_control", "+io").is_ok();
    if !given {
        let _ = group.remove_attribute(MARK);
    }
    given
}

/// Takes the controller back wherever it is from us.
pub fn take_back(system: &System) -> usize {
    let below = take_back_below(system, "/user.slice", DEPTH);
    below + usize::from(take_back_from(system, "/"))
}

/// The kernel refuses while a group below gives the controller on: these come first.
fn take_back_below(system: &System, path: &str, depth: usize) -> usize {
    let mut found = 0;
    if depth > 0 {
        for child in below(system.cgroups(), path) {
            found += take_back_below(system, &child, depth - 1);
        }
    }
    found + usize::from(take_back_from(system, path))
}

/// Takes the controller back that is from us, unless somebody has taken it already or uses it: then it is theirs.
fn take_back_from(system: &System, path: &str) -> bool {
    let Ok(group) = Cgroup::open_below(system.cgroups(), path) else {
        return false;
    };
    if !matches!(group.attribute(MARK), Ok(Some(_))) {
        return false;
    }
    let used = below(system.cgroups(), path)
        .any(|child| Cgroup::open_path(system, &child).is_ok_and(|child| uses(&child)));
    let stands = has_io(&group, "cgroup.subtree_control");
    let taken = stands && !used && group.write("cgroup.subtree_control", "-io").is_ok();
    group.remove_attribute(MARK).is_ok() && taken
}

/// Whether somebody has set something by the controller in a group.
fn uses(group: &Cgroup) -> bool {
    let set = |(file, unused): &(&str, &str)| group.read(file).is_ok_and(|text| text != *unused);
    UNUSED.iter().any(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const SLICE: &str = "/user.slice/user-1.slice/user@1.service/app.slice";

    /// Groups that have the controller and give it to nobody.
    struct Groups {
        _folder: tempfile::TempDir,
        system: System,
    }

    impl Groups {
        /// None where attributes of the kind cannot be set.
        fn new() -> Option<Groups> {
            let folder = tempfile::tempdir().expect("a folder");
            let system = System::new(folder.path());
            let groups = Groups {
                _folder: folder,
                system,
            };
            for group in Groups::all() {
                groups.put(&group, "cgroup.controllers", "io memory");
                groups.put(&group, "cgroup.subtree_control", "memory");
            }
            let root = Cgroup::open_below(groups.system.cgroups(), "/").expect("the root");
            if let Err(error) = root.set_attribute("trusted.fasttrack.try", "1") {
                eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
                return None;
            }
            Some(groups)
        }

        fn all() -> Vec<String> {
            let all = std::iter::once("/").chain(chain(SLICE));
            all.map(str::to_string).collect()
        }

        fn file(&self, group: &str, name: &str) -> PathBuf {
            self.system
                .cgroups()
                .join(group.trim_start_matches('/'))
                .join(name)
        }

        fn put(&self, group: &str, name: &str, text: &str) {
            let file = self.file(group, name);
            fs::create_dir_all(file.parent().expect("a group")).expect("a group");
            fs::write(file, text).expect("a file");
        }

        /// What each gives in the end.
        fn given(&self) -> Vec<String> {
            let read =
                |group: &String| fs::read_to_string(self.file(group, "cgroup.subtree_control"));
            Groups::all()
                .iter()
                .map(|group| read(group).expect("read"))
                .collect()
        }

        /// The kernel takes `+io` for what is there then.
        fn given_on(&self) {
            for group in Groups::all() {
                if self.given_by(&group) == "+io" {
                    self.put(&group, "cgroup.subtree_control", "io memory");
                }
            }
        }

        fn given_by(&self, group: &str) -> String {
            fs::read_to_string(self.file(group, "cgroup.subtree_control")).expect("read")
        }
    }

    #[test]
    fn users_get_the_controller_only_without_what_hurts_others() {
        let given = |prio_below: Option<&str>| {
            let groups = Groups::new()?;
            if let Some(group) = prio_below {
                groups.put(group, "io.prio.class", "");
            }
            Some((give(&groups.system, SLICE), groups.given()))
        };
        let Some(without) = given(None) else { return };
        assert_eq!(without, (true, vec!["+io".to_string(); 5]));
        // The file is there as soon as the group above gives the controller: that is taken back.
        let (safe, below_root) = given(Some("/user.slice")).expect("attributes");
        assert!(!safe);
        assert_eq!(below_root, ["-io", "memory", "memory", "memory", "memory"]);
        let (_, deeper) =
            given(Some("/user.slice/user-1.slice/user@1.service")).expect("attributes");
        assert_eq!(deeper, ["+io", "+io", "-io", "memory", "memory"]);
    }

    #[test]
    fn what_was_given_is_taken_back_and_nothing_else() {
        let Some(groups) = Groups::new() else { return };
        groups.put("/user.slice", "cgroup.subtree_control", "io memory");
        assert!(give(&groups.system, SLICE));
        groups.given_on();
        assert_eq!(take_back(&groups.system), 4);
        assert_eq!(groups.given(), ["-io", "io memory", "-io", "-io", "-io"]);
        assert_eq!(take_back(&groups.system), 0);
    }

    #[test]
    fn what_is_used_or_was_taken_by_somebody_stays_as_it_is() {
        let Some(groups) = Groups::new() else { return };
        assert!(give(&groups.system, SLICE));
        groups.given_on();
        groups.put("/", "cgroup.subtree_control", "memory");
        groups.put(&format!("{SLICE}/a.scope"), "io.weight", "default 50");
        groups.put(&format!("{SLICE}/b.scope"), "io.weight", "default 100");
        assert_eq!(take_back(&groups.system), 3);
        assert_eq!(groups.given(), ["memory", "-io", "-io", "-io", "io memory"]);
    }
}
