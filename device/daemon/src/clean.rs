// SPDX-License-Identifier: GPL-2.0-only
//! Takes back what a daemon that is gone has left: frozen groups, values of files, the kernel's foreground.

use crate::baseline;
use crate::cgroup::Cgroup;
use crate::effects::{ioprio, kernel};
use crate::guard;
use crate::system::System;
use std::fs;
use std::path::Path;

/// Depth at which an app's group is at most: user.slice, user's slice, manager, app.slice, a slice of the desktop, the
/// app, and groups of its own.
const DEPTH_MOST: usize = 8;

/// Takes everything back. Says how many groups had something of ours.
pub fn restore(system: &System) -> usize {
    kernel::clear(system);
    restore_groups(system)
}

/// Thaws, and restores values, wherever a mark of ours is.
pub fn restore_groups(system: &System) -> usize {
    let mut found = 0;
    for top in ["/user.slice", "/system.slice", "/machine.slice"] {
        found += walk(system.cgroups(), top, DEPTH_MOST);
    }
    found
}

fn walk(root: &Path, path: &str, depth: usize) -> usize {
    let Ok(group) = Cgroup::open_below(root, path) else {
        return 0;
    };
    let mut found = usize::from(restore_group(&group));
    if depth > 0 {
        for child in children(root, path) {
            found += walk(root, &child, depth - 1);
        }
    }
    found
}

/// The groups below one, by their paths.
pub fn children(root: &Path, path: &str) -> Vec<String> {
    let folder = root.join(path.trim_start_matches('/'));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| format!("{}/{name}", path.trim_end_matches('/')))
        .collect();
    found.sort();
    found
}

fn restore_group(group: &Cgroup) -> bool {
    let mut ours = false;
    if matches!(group.attribute(guard::MARK), Ok(Some(_))) {
        ours = guard::thaw(group).is_ok();
    }
    for file in baseline::FILES {
        ours |= baseline::restore(group, file).unwrap_or(false);
    }
    ours | ioprio::restore_group(group)
}
