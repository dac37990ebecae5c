// SPDX-License-Identifier: GPL-2.0-only
//! From a window to the app that owns it: a control group and its inode.
//!
//! By PID where the source knows it: the group of the process is the app, children inherit it, so a terminal's job, a
//! container's engine or a virtual machine come with it. By application id where it does not: the names of systemd's
//! units hold it, and several units of one name are an ambiguity that is shown.

use crate::place::Place;
use crate::window::Window;
use fasttrack_bus::ID_BYTES_MOST;
use fasttrack_detector::group;
use fasttrack_detector::report::AppRef;
use fasttrack_detector::units;

/// Programs that draw for many clients, none of which is known here; the kernel keeps 15 letters.
const SERVERS: [&str; 2] = ["Xwayland", "xwayland-satell"];

/// The processes of a terminal's tab that are looked at: the oldest come first.
const FIRST_OF_TAB: usize = 4;

/// A tab may be started from another: a pane of tmux, whose server is in one.
const TABS_IN_TABS: u32 = 1;

/// Which app owns a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// These groups are the app.
    App(Vec<AppRef>),
    /// It is one of these.
    Ambiguous(Vec<AppRef>),
    /// Nobody can tell, and why.
    Unknown(String),
}

/// Finds owners.
#[derive(Debug, Clone)]
pub struct Resolver {
    place: Place,
    user: u32,
}

impl Resolver {
    /// For the session of a user.
    pub fn new(place: Place, user: u32) -> Resolver {
        Resolver { place, user }
    }

    /// The process table and the control groups.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// User of the session.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The slice of apps of this user's manager.
    pub fn app_slice(&self) -> String {
        let own = self.place.cgroup_of(std::process::id());
        own.and_then(|own| units::app_slice(&own))
            .unwrap_or_else(|| units::app_slice_of_user(self.user))
    }

    /// Owner of a window.
    pub fn owner(&self, window: &Window) -> Owner {
        match window.pid {
            0 if window.id.is_empty() => Owner::Unknown("it has neither PID nor id".into()),
            0 => self.by_id(&window.id),
            _ => self.by_pid(window),
        }
    }

    /// A control group as an app, if it is there.
    pub fn app(&self, cgroup: &str, id: &str, pid: u32) -> Option<AppRef> {
        let inode = self.place.inode(cgroup)?;
        let leaf = units::leaf(cgroup);
        let id = match id {
            "" => clean(&units::id_of(leaf).unwrap_or_default()),
            _ => clean(id),
        };
        Some(AppRef {
            cgroup: cgroup.to_string(),
            inode,
            id,
            pid,
        })
    }

    /// Whether a group is among this user's own. In a container their processes have other UIDs.
    fn is_own(&self, cgroup: &str) -> bool {
        cgroup.starts_with(&format!("/user.slice/user-{}.slice/", self.user))
    }

    fn by_pid(&self, window: &Window) -> Owner {
        let pid = window.pid;
        let Some(user) = self.place.user_of(pid) else {
            return Owner::Unknown(format!("process {pid} has ended"));
        };
        let program = self.place.program(pid).unwrap_or_default();
        if SERVERS.contains(&program.as_str()) {
            return Owner::Unknown(format!("the compositor names {program} and not its client"));
        }
        let Some(cgroup) = self.place.cgroup_of(pid) else {
            return Owner::Unknown(format!("process {pid} has no control group here"));
        };
        let cgroup = group::app_of(&cgroup);
        // The daemon takes groups of the session's user alone: a machine of the system belongs to nobody here.
        if cgroup.starts_with(group::MACHINES) {
            return Owner::Unknown(format!(
                "process {pid} is in {cgroup}, a container or machine of the system"
            ));
        }
        if user != self.user && !self.is_own(cgroup) {
            return Owner::Unknown(format!("process {pid} belongs to user {user}"));
        }
        match self.app(cgroup, &window.id, pid) {
            Some(app) => Owner::App(self.with_instances(app)),
            None => Owner::Unknown(format!("control group {cgroup} is gone")),
        }
    }

    /// A Flatpak's helpers that its portal starts are in scopes of their own, and so are the jobs in a terminal's tabs,
    /// which many terminals have beside their own.
    pub fn with_instances(&self, app: AppRef) -> Vec<AppRef> {
        let Some((slice, leaf)) = app.cgroup.rsplit_once('/') else {
            return vec![app];
        };
        let flatpak = units::flatpak(leaf);
        let is_part = |name: &str| {
            (flatpak.is_some() && units::flatpak(name) == flatpak)
                || (units::is_tab(name)
                    && self.is_tab_of(&format!("{slice}/{name}"), &app.cgroup, TABS_IN_TABS))
        };
        let others = self.place.children(slice);
        let others = others
            .iter()
            .filter(|name| *name != leaf && is_part(name))
            .filter_map(|name| self.app(&format!("{slice}/{name}"), &app.id, 0));
        let mut all: Vec<AppRef> = others.collect();
        all.insert(0, app);
        all
    }

    /// Whether a process of the terminal has started the tab's first ones; or one in another tab of it, as tmux does.
    fn is_tab_of(&self, tab: &str, terminal: &str, deep: u32) -> bool {
        let first = self.place.processes(tab).into_iter().take(FIRST_OF_TAB);
        let mut parents = first.filter_map(|pid| self.place.parent(pid));
        parents.any(|pid| {
            let group = self.place.cgroup_of(pid).unwrap_or_default();
            let group = group::app_of(&group);
            let leaf = units::leaf(group);
            let in_tab = deep > 0 && group != tab && units::is_tab(leaf);
            group == terminal || (in_tab && self.is_tab_of(group, terminal, deep - 1))
        })
    }

    fn by_id(&self, id: &str) -> Owner {
        let slice = self.app_slice();
        let mut found = Vec::new();
        self.find(&slice, id, &mut found);
        let flatpaks = |app: &AppRef| units::flatpak(units::leaf(&app.cgroup)).is_some();
        match found.len() {
            0 => Owner::Unknown(format!("no unit of an app is called {id}")),
            1 => Owner::App(
                found
                    .into_iter()
                    .flat_map(|app| self.with_instances(app))
                    .collect(),
            ),
            _ if found.iter().all(flatpaks) => Owner::App(found),
            _ => Owner::Ambiguous(found),
        }
    }

    fn find(&self, slice: &str, id: &str, found: &mut Vec<AppRef>) {
        for name in self.place.children(slice) {
            let path = format!("{slice}/{name}");
            if name.ends_with(".slice") {
                self.find(&path, id, found);
            } else if units::id_of(&name).is_some_and(|one| same_id(&one, id)) {
                let app = self.app(group::app_of(&path), id, 0);
                let app = app.filter(|app| !found.iter().any(|one| one.inode == app.inode));
                found.extend(app);
            }
        }
    }
}

/// An id as the daemon takes it: a client may call itself anything.
fn clean(id: &str) -> String {
    let mut id: String = id.chars().filter(|one| !one.is_control()).collect();
    let end = (0..=ID_BYTES_MOST.min(id.len()))
        .rev()
        .find(|at| id.is_char_boundary(*at));
    id.truncate(end.unwrap_or(0));
    id
}

/// X11 classes are written with a capital, and a program's id may be its desktop file's last word.
fn same_id(unit: &str, window: &str) -> bool {
    let plain = |id: &str| id.trim_end_matches(".desktop").to_ascii_lowercase();
    let (unit, window) = (plain(unit), plain(window));
    unit == window || unit.rsplit('.').next() == Some(&window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakePlace;

    #[test]
    fn a_process_is_its_group_and_inode() {
        let fake = FakePlace::new();
        let app = fake.app("app-foot-7.scope", 7);
        let resolver = fake.resolver();
        assert_eq!(resolver.owner(&Window::of(7, "")), Owner::App(vec![app]));
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let fake = FakePlace::new();
        fake.app("app-Xwayland-9.scope", 9);
        fake.program(9, "Xwayland");
        fake.app("xwayland-satellite.service", 10);
        fake.program(10, "xwayland-satell");
        let resolver = fake.resolver();
        let why = |window| match resolver.owner(&window) {
            Owner::Unknown(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(Window::of(8, "")).contains("has ended"));
        assert!(why(Window::of(9, "")).contains("Xwayland"));
        assert!(why(Window::of(10, "")).contains("xwayland-satell"));
        assert!(why(Window::of(0, "gimp")).contains("gimp"));
        assert!(why(Window::default()).contains("neither"));
    }

    #[test]
    fn a_container_is_its_scope_whatever_uid_its_process_has() {
        let fake = FakePlace::new();
        // The process is of this user, the session of the next one: as root's in a container is, and another's is not.
        let user = fake.user() + 1;
        let resolver = Resolver::new(fake.place(), user);
        let manager = format!("/user.slice/user-{user}.slice/user@{user}.service");
        let scope = format!("{manager}/user.slice/libpod-0a1b.scope");
        fake.group(&format!("{scope}/container"), 7);
        assert!(
            matches!(resolver.owner(&Window::of(7, "")), Owner::App(all) if all[0].cgroup == scope)
        );
        fake.group("/machine.slice/machine-debian.scope/payload", 8);
        assert!(
            matches!(resolver.owner(&Window::of(8, "")), Owner::Unknown(why) if why.contains("machine-debian"))
        );
    }

    #[test]
    fn another_users_process_is_nobody() {
        let fake = FakePlace::new();
        fake.app("app-foot-7.scope", 7);
        let resolver = Resolver::new(fake.place(), fake.user() + 1);
        assert!(
            matches!(resolver.owner(&Window::of(7, "")), Owner::Unknown(why) if why.contains("belongs"))
        );
    }

    #[test]
    fn an_id_finds_its_unit_and_two_are_ambiguous() {
        let fake = FakePlace::new();
        let mut one = fake.app("app-gnome-org.gnome.Evince-1.scope", 0);
        let resolver = fake.resolver();
        one.id = "org.gnome.Evince".into();
        assert_eq!(
            resolver.owner(&Window::of(0, "org.gnome.Evince")),
            Owner::App(vec![one.clone()])
        );
        one.id = "evince".into();
        assert_eq!(
            resolver.owner(&Window::of(0, "evince")),
            Owner::App(vec![one])
        );
        fake.app("app-gnome-org.gnome.Evince-2.scope", 0);
        assert!(
            matches!(resolver.owner(&Window::of(0, "evince")), Owner::Ambiguous(two) if two.len() == 2)
        );
    }

    #[test]
    fn a_flatpak_comes_with_its_helpers() {
        let fake = FakePlace::new();
        fake.app("app-flatpak-org.x.Y-1.scope", 5);
        fake.app("app-flatpak-org.x.Y-2.scope", 0);
        fake.app("app-flatpak-org.x.Z-3.scope", 0);
        let owner = fake.resolver().owner(&Window::of(5, ""));
        assert!(matches!(owner, Owner::App(all) if all.len() == 2 && all[0].pid == 5));
    }

    #[test]
    fn an_id_is_made_to_fit() {
        assert_eq!(clean("a\n\u{1b}b"), "ab");
        let long = "é".repeat(200);
        assert_eq!(clean(&long).len(), 254);
        assert_eq!(clean(""), "");
    }

    #[test]
    fn a_terminal_with_its_tabs_beside_it_has_them_in_front_and_no_others() {
        let fake = FakePlace::new();
        let slice = units::app_slice_of_user(fake.user());
        fake.app("app-xfce4\\x2dterminal-3.scope", 3);
        fake.process(4, &format!("{slice}/vte-spawn-a.scope"), 3);
        fake.process(6, &format!("{slice}/vte-spawn-b.scope"), 5);
        fake.process(7, &format!("{slice}/app-editor-7.scope"), 3);
        fake.process(8, &format!("{slice}/tmux-spawn-c.scope"), 4);
        let owner = fake.resolver().owner(&Window::of(3, ""));
        let Owner::App(all) = owner else {
            panic!("{owner:?}")
        };
        let leaves: Vec<_> = all
            .iter()
            .skip(1)
            .map(|app| units::leaf(&app.cgroup))
            .collect();
        assert_eq!(leaves, ["tmux-spawn-c.scope", "vte-spawn-a.scope"]);
    }

    #[test]
    fn a_terminal_with_its_tabs_is_one_app() {
        let fake = FakePlace::new();
        fake.app("app-org.gnome.Terminal.slice/vte-spawn-1.scope", 3);
        let owner = fake.resolver().owner(&Window::of(3, ""));
        assert!(
            matches!(owner, Owner::App(all) if all[0].cgroup.ends_with("/app-org.gnome.Terminal.slice"))
        );
    }
}
