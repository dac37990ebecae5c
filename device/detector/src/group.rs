// SPDX-License-Identifier: GPL-2.0-only
//! Which control group is one app's, by its path alone: systemd's names of slices and managers.

use crate::units;

/// Where the system has containers and virtual machines.
pub const MACHINES: &str = "/machine.slice/";

/// Where a user's manager has apps: its own slice for them, and the one for containers (podman's and docker's, rootless).
const APP_SLICES: [&str; 2] = [".service/app.slice/", ".service/user.slice/"];

/// Slices that hold many apps though they are called like one app's: a session manager's.
const SHARED_SLICES: [&str; 1] = ["app-graphical.slice"];

/// The group that is the app: a terminal's tabs are scopes beside it in a slice of its own, and what runs in a container
/// or a virtual machine is in groups below its scope.
pub fn app_of(cgroup: &str) -> &str {
    first_app(cgroup).unwrap_or(cgroup)
}

/// Whether a group holds many apps: a slice that is not one app's, or a user's manager.
pub fn is_wide(cgroup: &str) -> bool {
    let last = units::leaf(cgroup);
    match last.ends_with(".slice") {
        true => first_app(cgroup) != Some(cgroup),
        false => last.starts_with("user@") && last.ends_with(".service"),
    }
}

/// The first group in a path that is one app's, where the path leads through a slice for apps.
fn first_app(cgroup: &str) -> Option<&str> {
    let below = |slice: &str| Some(cgroup.find(slice)? + slice.len());
    let machine = cgroup.starts_with(MACHINES).then_some(MACHINES.len());
    let mut part = APP_SLICES.into_iter().find_map(below).or(machine)?;
    loop {
        let end = cgroup[part..]
            .find('/')
            .map_or(cgroup.len(), |to| part + to);
        if !SHARED_SLICES.contains(&&cgroup[part..end]) {
            // A service with groups of its own below it is one app too.
            return Some(&cgroup[..end]);
        }
        part = end + 1;
        if part > cgroup.len() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";

    #[test]
    fn a_terminal_is_its_slice_and_a_shared_slice_is_nobody() {
        let terminal = format!("{SLICE}/app-org.gnome.Terminal.slice");
        let files = format!("{SLICE}/app-dbus\\x2d:1.2\\x2dorg.gnome.Nautilus.slice");
        let scope = format!("{SLICE}/app-foot-1.scope");
        let shared = format!("{SLICE}/app-graphical.slice/app-foot-1.scope");
        let podman = "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a1b.scope";
        for (cgroup, app) in [
            (format!("{terminal}/vte-spawn-1.scope"), terminal.as_str()),
            (
                format!("{files}/dbus-:1.2-org.gnome.Nautilus@0.service"),
                files.as_str(),
            ),
            (scope.clone(), scope.as_str()),
            (shared.clone(), shared.as_str()),
            (format!("{scope}/inner"), scope.as_str()),
            (format!("{podman}/container"), podman),
            (
                "/machine.slice/machine-debian.scope/payload/x.service".into(),
                "/machine.slice/machine-debian.scope",
            ),
            (
                "/user.slice/user-1.slice/session-2.scope".into(),
                "/user.slice/user-1.slice/session-2.scope",
            ),
        ] {
            assert_eq!(app_of(&cgroup), app);
            assert!(!is_wide(app), "{app}");
        }
    }

    #[test]
    fn slices_of_many_and_managers_are_wide() {
        let nested = format!("{SLICE}/app-org.gnome.Terminal.slice/inner.slice");
        for cgroup in [
            "/user.slice",
            "/user.slice/user-1000.slice",
            "/user.slice/user-1000.slice/user@1000.service",
            SLICE,
            &format!("{SLICE}/app-graphical.slice"),
            "/user.slice/user-1000.slice/user@1000.service/session.slice",
            "/user.slice/user-1000.slice/app-x.slice",
            "/machine.slice",
            &nested,
        ] {
            assert!(is_wide(cgroup), "{cgroup}");
        }
    }
}
