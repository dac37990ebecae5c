// SPDX-License-Identifier: GPL-2.0-only
//! The tree of control groups: what is below what.

use crate::cgroup::{Cgroup, DEPTH_MOST};
use crate::system::System;
use std::fs;
use std::path::Path;

/// Groups below one that are looked at, at most: a user makes as many as they like below one of their own.
const CHILDREN_MOST: usize = 4096;

/// All groups but the root that may be set, each before those below it; of what `enter` refuses none that is below.
///
/// However many they are: a user may name any of them as an app. None is kept, but what is open.
pub fn all<'a>(
    system: &'a System,
    enter: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> + 'a {
    let mut open = vec![below(system.cgroups(), "")];
    std::iter::from_fn(move || {
        while let Some(groups) = open.last_mut() {
            let Some(path) = groups.next() else {
                open.pop();
                continue;
            };
            if open.len() < DEPTH_MOST && enter(&path) {
                open.push(below(system.cgroups(), &path));
            }
            return Some(path);
        }
        None
    })
}

/// The groups below one by their paths, in order; of very many some.
pub fn children(root: &Path, path: &str) -> Vec<String> {
    let mut found: Vec<String> = below(root, path).take(CHILDREN_MOST).collect();
    found.sort();
    found
}

/// The groups below one by their paths, as they are read; none where it has ended.
pub fn below(root: &Path, path: &str) -> impl Iterator<Item = String> {
    let path = path.trim_end_matches('/').to_string();
    let entries = fs::read_dir(root.join(path.trim_start_matches('/')));
    let groups = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = groups.filter_map(|entry| entry.file_name().into_string().ok());
    names.map(move |name| format!("{path}/{name}"))
}

/// The slices of the users' apps, as their managers have made them.
pub fn app_slices(system: &System) -> Vec<String> {
    let users = children(system.cgroups(), "/user.slice");
    let managers = users
        .iter()
        .flat_map(|user| children(system.cgroups(), user));
    let managers = managers.filter(|path| path.contains("/user@"));
    managers
        .map(|manager| format!("{manager}/app.slice"))
        .filter(|path| Cgroup::open_path(system, path).is_ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_groups_are_found_each_before_those_below_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let deep = format!("/a{}", "/b".repeat(20));
        for path in [deep.as_str(), "/a/c", "/d"] {
            fs::create_dir_all(system.cgroups().join(&path[1..])).expect("a group");
        }
        let found: Vec<String> = all(&system, |_| true).collect();
        assert_eq!(found.len(), 23);
        let at = |path: &str| found.iter().position(|one| one == path);
        let found_before = |path: &str| {
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            above.is_empty() || at(above) < at(path)
        };
        assert!(found.iter().all(|path| found_before(path)), "{found:?}");
        assert!(at(&deep).is_some() && at("/a/c").is_some() && at("/d").is_some());
    }

    #[test]
    fn nothing_is_entered_that_is_too_deep_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        for name in ["a", "c"] {
            let deep = format!("{name}{}", "/b".repeat(2 * DEPTH_MOST));
            fs::create_dir_all(system.cgroups().join(deep)).expect("a group");
        }
        let found = all(&system, |path| path != "/c").collect::<Vec<_>>();
        assert_eq!(found.len(), DEPTH_MOST + 1);
        let deepest = found.iter().max_by_key(|path| path.len()).expect("some");
        assert!(Cgroup::open_path(&system, deepest).is_ok());
        let deeper = Cgroup::open_path(&system, &format!("{deepest}/b"));
        assert!(matches!(deeper, Err(crate::cgroup::Refusal::TooDeep)));
    }

    #[test]
    fn of_very_many_groups_below_one_some_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..CHILDREN_MOST + 100 {
            fs::create_dir(folder.path().join(number.to_string())).expect("a group");
        }
        assert_eq!(children(folder.path(), "/").len(), CHILDREN_MOST);
        let system = System::new(folder.path());
        fs::create_dir_all(system.cgroups().parent().expect("above")).expect("folders");
        std::os::unix::fs::symlink(folder.path(), system.cgroups()).expect("a link");
        assert!(all(&system, |_| true).count() > CHILDREN_MOST);
    }
}
