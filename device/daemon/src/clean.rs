// SPDX-License-Identifier: GPL-2.0-only
//! Takes back what a daemon that is gone has left: frozen groups, values of files, the kernel's foreground.

use crate::baseline;
use crate::cgroup::Cgroup;
use crate::effects::{delegate, ioprio, kernel};
use crate::guard;
use crate::system::System;
use std::fs;
use std::path::Path;

/// Depth at which an app's group is at most: user.slice, user's slice, manager, app.slice, a slice of the desktop, the
/// app, and groups of its own.
const DEPTH_MOST: usize = 8;

/// Below these are all units.
const TOPS: [&str; 3] = ["/user.slice", "/system.slice", "/machine.slice"];

/// Takes everything back. Says how many groups had something of ours.
pub fn restore(system: &System) -> usize {
    kernel::clear(system);
    restore_groups(system)
}

/// Thaws, and restores values, wherever a mark of ours is.
pub fn restore_groups(system: &System) -> usize {
    let open = |path: &String| Cgroup::open_below(system.cgroups(), path).ok();
    let all = groups(system);
    let found = all.iter().filter_map(open).filter(restore_group).count();
    // Last: what was set by the controller counts as its use.
    found + delegate::take_back(system)
}

/// The groups in which anything may be set, each before those below it.
pub fn groups(system: &System) -> Vec<String> {
    let mut all: Vec<String> = TOPS.iter().map(|top| (*top).to_string()).collect();
    let mut begin = 0;
    for _ in 0..DEPTH_MOST {
        let end = all.len();
        for index in begin..end {
            all.extend(children(system.cgroups(), &all[index]));
        }
        begin = end;
    }
    all
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
