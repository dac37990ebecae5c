// SPDX-License-Identifier: GPL-2.0-only
//! What is background by a rule: services of the system that the configuration names, and users' own background work.
//!
//! None of it is ever frozen: others may wait for it, and it does little.

use crate::system::System;
use crate::tree::{app_slices, children};
use fasttrack_config::INDEXERS;
use fasttrack_detector::units;

/// The control groups that are there.
pub fn maintenance(system: &System, units: &[String]) -> Vec<String> {
    let services = units.iter().map(|unit| format!("/system.slice/{unit}"));
    let mut found: Vec<String> = services.filter(|path| is_there(system, path)).collect();
    for slice in app_slices(system) {
        let Some((manager, _)) = slice.rsplit_once('/') else {
            continue;
        };
        // systemd's own place for such work.
        let background = format!("{manager}/background.slice");
        if is_there(system, &background) {
            found.push(background);
        }
        for slice in [slice.clone(), format!("{manager}/session.slice")] {
            found.extend(
                children(system.cgroups(), &slice)
                    .into_iter()
                    .filter(|path| is_indexer(path)),
            );
        }
    }
    found
}

/// The same, down to groups that have tasks.
pub fn with_tasks(system: &System, units: &[String]) -> Vec<String> {
    let all = maintenance(system, units).into_iter();
    all.flat_map(|path| match path.ends_with(".slice") {
        true => children(system.cgroups(), &path),
        false => vec![path],
    })
    .collect()
}

/// Whether a group is that of a service which indexes files, by its name.
pub fn is_indexer(path: &str) -> bool {
    let name = units::leaf(path).to_lowercase();
    name.ends_with(".service") && INDEXERS.iter().any(|part| name.contains(part))
}

fn is_there(system: &System, path: &str) -> bool {
    system.cgroups().join(path.trim_start_matches('/')).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn services_and_users_background_work_are_found_and_apps_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let user = "user.slice/user-1000.slice/user@1000.service";
        for path in [
            "system.slice/packagekit.service".to_string(),
            "system.slice/cron.service".to_string(),
            format!("{user}/app.slice/app-issue-tracker-1.scope"),
            format!("{user}/app.slice/app-baloo_file@autostart.service"),
            format!("{user}/session.slice/localsearch-3.service"),
            format!("{user}/session.slice/pipewire.service"),
            format!("{user}/background.slice/kde-baloo.service"),
        ] {
            fs::create_dir_all(folder.path().join("sys/fs/cgroup").join(path)).expect("a group");
        }
        let system = System::new(folder.path());
        let units = ["packagekit.service", "snapd.service"].map(str::to_string);
        let user = format!("/{user}");
        let mut found = maintenance(&system, &units);
        found.sort();
        assert_eq!(
            found,
            [
                "/system.slice/packagekit.service".to_string(),
                format!("{user}/app.slice/app-baloo_file@autostart.service"),
                format!("{user}/background.slice"),
                format!("{user}/session.slice/localsearch-3.service"),
            ]
        );
        let leaf = format!("{user}/background.slice/kde-baloo.service");
        assert!(with_tasks(&system, &units).contains(&leaf));
    }
}
