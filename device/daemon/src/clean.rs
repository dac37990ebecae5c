// SPDX-License-Identifier: GPL-2.0-only
//! Takes back what a daemon that is gone has left: frozen groups, values of files, the kernel's foreground.

use crate::baseline;
use crate::cgroup::Cgroup;
use crate::effects::{delegate, ioprio, kernel};
use crate::frozen;
use crate::system::System;
use crate::tree;

/// Takes everything back. Says how many groups had something of ours. The front is over first: all who are behind wait
/// for that.
pub fn restore(system: &System) -> usize {
    kernel::clear(system);
    restore_groups(system)
}

/// Thaws, and restores values, wherever a mark of ours is.
pub fn restore_groups(system: &System) -> usize {
    let open = |path: String| Cgroup::open_below(system.cgroups(), &path).ok();
    let all = tree::all(system, |_| true).filter_map(open);
    let found = all.filter(|group| restore_group(system, group)).count();
    // Last: what was set by the controller counts as its use.
    found + delegate::take_back(system)
}

fn restore_group(system: &System, group: &Cgroup) -> bool {
    let mut ours = false;
    if frozen::is_ours(group) {
        ours = frozen::thaw(group).is_ok();
    }
    for file in baseline::FILES {
        ours |= baseline::restore(group, file).unwrap_or(false);
    }
    ours |= kernel::take_out(system, group);
    ours | ioprio::restore_group(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn values_come_back_wherever_a_group_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let manager = "/user.slice/user-1000.slice/user@1000.service";
        let deep = format!("{manager}/app.slice/a.scope{}", "/b".repeat(20));
        let groups = [deep.as_str(), "/containers/c.scope"].map(|path| {
            let place = system.cgroups().join(&path[1..]);
            fs::create_dir_all(&place).expect("a group");
            fs::write(place.join("io.weight"), "default 100\n").expect("a file");
            Cgroup::open_path(&system, path).expect("a group")
        });
        for group in &groups {
            if let Err(error) = baseline::set(group, "io.weight", "1000") {
                eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
                return;
            }
        }
        assert_eq!(restore_groups(&system), 2);
        for group in &groups {
            assert_eq!(group.read("io.weight").expect("read"), "100");
        }
    }
}
