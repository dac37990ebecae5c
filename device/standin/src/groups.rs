// SPDX-License-Identifier: GPL-2.0-only
//! Control groups as systemd makes them for a user: a scope for each app, a service for the agent.

use crate::told;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

/// Who uses the session.
pub const USER: u32 = 1000;

const ROOT: &str = "/sys/fs/cgroup";

/// The groups of a run.
#[derive(Debug)]
pub struct Groups {
    root: PathBuf,
    apps: BTreeMap<u32, String>,
}

fn manager() -> String {
    format!("/user.slice/user-{USER}.slice/user@{USER}.service")
}

/// The group of an app: what stands behind the last dash of a scope's name is no part of the app's.
fn scope(name: &str) -> String {
    format!(
        "{}/app.slice/app-lab-{}-1.scope",
        manager(),
        name.replace('-', "\\x2d")
    )
}

impl Groups {
    /// Makes them, and moves each app's processes. The controllers are given to all on the way.
    pub fn make(controllers: &str, apps: &BTreeMap<u32, String>) -> Result<Groups, String> {
        Groups::below(Path::new(ROOT), controllers, apps)
    }

    fn below(
        root: &Path,
        controllers: &str,
        apps: &BTreeMap<u32, String>,
    ) -> Result<Groups, String> {
        let groups = Groups {
            root: root.to_path_buf(),
            apps: apps.iter().map(|(uid, name)| (*uid, scope(name))).collect(),
        };
        groups.enable("", controllers)?;
        let mut path = String::new();
        for part in format!("{}/app.slice", manager()).split('/').skip(1) {
            path = format!("{path}/{part}");
            groups.create(&path)?;
            groups.enable(&path, controllers)?;
        }
        for (uid, name) in apps {
            groups.create(&groups.apps[uid])?;
            groups.move_all(&format!("/app-{name}"), &groups.apps[uid])?;
        }
        groups.create(&format!("{}/session.slice", manager()))?;
        fs::create_dir_all(groups.agent()).map_err(told(groups.agent().display()))?;
        Ok(groups)
    }

    /// The paths of the apps' groups below the root, by UID.
    pub fn apps(&self) -> &BTreeMap<u32, String> {
        &self.apps
    }

    /// The folder of the agent's group.
    pub fn agent(&self) -> PathBuf {
        self.folder(&format!(
            "{}/session.slice/fasttrack-agent.service",
            manager()
        ))
    }

    fn folder(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn create(&self, path: &str) -> Result<(), String> {
        let folder = self.folder(path);
        fs::create_dir_all(&folder).map_err(told(folder.display()))?;
        if path.starts_with(&manager()) {
            // As systemd does: what is the user's.
            chown(&folder, Some(USER), Some(USER)).map_err(told(folder.display()))?;
        }
        Ok(())
    }

    fn enable(&self, path: &str, controllers: &str) -> Result<(), String> {
        let file = self.folder(path).join("cgroup.subtree_control");
        controllers.split_whitespace().try_for_each(|name| {
            fs::write(&file, format!("+{name}"))
                .map_err(told(format!("{}: +{name}", file.display())))
        })
    }

    /// Moves processes until none is left: one may be starting another.
    fn move_all(&self, from: &str, to: &str) -> Result<(), String> {
        let (from, to) = (
            self.folder(from).join("cgroup.procs"),
            self.folder(to).join("cgroup.procs"),
        );
        loop {
            let text = fs::read_to_string(&from).map_err(told(from.display()))?;
            if text.trim().is_empty() {
                return Ok(());
            }
            for pid in text.lines() {
                // One that has ended need not move.
                match fs::write(&to, pid) {
                    Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                        return Err(format!("{}: {pid}: {error}", to.display()));
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_named_by_systemds_conventions() {
        let path = scope("photo-upload");
        assert!(
            path.ends_with("/user@1000.service/app.slice/app-lab-photo\\x2dupload-1.scope"),
            "{path}"
        );
    }
}
