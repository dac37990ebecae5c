// SPDX-License-Identifier: GPL-2.0-only
//! Launches, before there is a window: an app's unit gets its control group when the user manager starts it, or when
//! the desktop puts a process that it has just started into a scope.
//!
//! Seen by inotify on the slice of apps: the directory is there before the manager's `UnitNew` has gone over the bus,
//! and it is what the daemon needs. `session_bus` listens to `UnitNew` as well, for units outside of that slice.

use crate::activation;
use crate::env::Env;
use crate::fault::Fault;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use crate::watch::{Change, Tree};
use fasttrack_detector::group;
use fasttrack_detector::units;
use std::path::PathBuf;
use std::time::Duration;

/// A new tab's group gets its processes so long after it was made, at most.
pub const TAB: Duration = Duration::from_millis(50);

/// New units of apps in a slice.
pub struct Launches {
    place: Place,
    slice: String,
    folders: Vec<PathBuf>,
}

impl Launches {
    /// In this slice of apps.
    pub fn new(env: &Env, place: &Place, slice: String) -> Launches {
        Launches {
            place: place.clone(),
            slice,
            folders: activation::folders(env),
        }
    }
}

/// Whether a new group is a terminal's tab.
pub fn is_tab(cgroup: &str) -> bool {
    units::is_tab(units::leaf(cgroup))
}

/// Whether a new group is an app that begins: not the part of one, as a terminal's tab, nor a service of the desktop
/// that a bus starts as it starts apps. FOLDERS: of applications.
pub fn is_launch(cgroup: &str, folders: &[PathBuf]) -> bool {
    let leaf = units::leaf(cgroup);
    let name = || units::id_of(leaf).unwrap_or_default();
    units::is_app(leaf) && (!leaf.starts_with("dbus-") || activation::is_app(&name(), folders))
}

impl Source for Launches {
    fn name(&self) -> &'static str {
        "launch"
    }

    fn probe(&self) -> Probe {
        match Tree::new(&self.place, &self.slice) {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (mut tree, _) = Tree::new(&self.place, &self.slice)?;
        let mut tabs = false;
        loop {
            let changes = tree.wait(tabs.then_some(TAB))?;
            if tabs && changes.is_empty() {
                tabs = false;
                out.front_again()?;
            }
            for change in changes {
                match change {
                    Change::Made(cgroup) if is_tab(&cgroup) => tabs = true,
                    Change::Made(cgroup) if is_launch(&cgroup, &self.folders) => {
                        begin(&cgroup, out)?
                    }
                    _ => {}
                }
            }
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

/// Tells the launch of a unit, under the name of its app.
pub fn begin(cgroup: &str, out: &Out) -> Result<(), Fault> {
    let leaf = units::leaf(cgroup);
    let id = units::id_of(leaf).unwrap_or_default();
    match out.resolver().app(group::app_of(cgroup), &id, 0) {
        Some(app) => out.launch(app),
        // It has ended already.
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::testing::FakePlace;
    use crate::window::Window;
    use fasttrack_detector::report::{Nobody, Report};

    #[test]
    fn a_service_that_a_bus_starts_is_no_launch_unless_it_is_an_app() {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::write(folder.path().join("org.x.Editor.desktop"), "").expect("a file");
        let folders = [folder.path().to_path_buf()];
        for (unit, is) in [
            ("dbus-:1.2-org.x.Editor@0.service", true),
            ("dbus-:1.2-org.kde.kwalletd5@0.service", false),
            ("app-org.x.Other-1.scope", true),
            ("vte-spawn-1.scope", false),
            ("app-ghostty-surface-transient-1.scope", false),
        ] {
            assert_eq!(
                is_launch(&format!("/app.slice/{unit}"), &folders),
                is,
                "{unit}"
            );
        }
    }

    #[test]
    fn the_focus_is_told_again_when_a_terminal_has_a_new_tab() {
        let fake = FakePlace::new();
        let slice = units::app_slice_of_user(fake.user());
        fake.app("app-x-terminal-3.scope", 3);
        let mut source = Launches::new(&Env::default(), &fake.place(), slice.clone());
        let (to, from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("launch", fake.resolver(), to);
        let fronts = |event| match event {
            Event::Focus(Report::Front(apps)) => apps.len(),
            other => panic!("{other:?}"),
        };
        out.front(&[Window::of(3, "")]).expect("told");
        assert_eq!(from.recv().map(fronts), Ok(1));
        let other = out.renamed("x");
        let thread = std::thread::spawn(move || source.run(&other));
        // Until the watch is there, groups may come unseen.
        let mut number = 10;
        let told = loop {
            number += 1;
            fake.process(number, &format!("{slice}/vte-spawn-{number}.scope"), 3);
            if let Ok(event) = from.recv_timeout(4 * TAB) {
                break fronts(event);
            }
        };
        assert_eq!(told, 1 + (number - 10) as usize);
        // Who has the focus by another source's word has no windows here.
        out.nobody().expect("told");
        out.front_again().expect("nothing is told");
        let nobody = Event::Focus(Report::Nobody(Nobody::Unfocused));
        assert_eq!(from.try_recv().map(|event| event == nobody), Ok(true));
        assert!(from.try_recv().is_err());
        drop(from);
        while !thread.is_finished() {
            number += 1;
            fake.app(&format!("app-new-{number}.scope"), 0);
        }
        assert!(thread.join().expect("no panic").is_err());
    }

    #[test]
    fn a_new_scope_is_a_launch_and_an_old_one_is_not() {
        let fake = FakePlace::new();
        fake.app("app-old-1.scope", 0);
        let slice = units::app_slice_of_user(fake.user());
        let mut source = Launches::new(&Env::default(), &fake.place(), slice);
        assert_eq!(source.probe(), Probe::Yes);
        let (to, from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("launch", fake.resolver(), to);
        let thread = std::thread::spawn(move || source.run(&out));
        // Until the watch is there, groups may come unseen.
        let mut number = 0;
        let app = loop {
            number += 1;
            fake.app(&format!("noise-{number}.scope"), 0);
            fake.app(&format!("app-new-{number}.scope"), 0);
            if let Ok(event) = from.recv_timeout(std::time::Duration::from_millis(20)) {
                break event;
            }
        };
        assert!(
            matches!(app, Event::Other(Report::Launch(app)) if app.id == "new" && app.inode > 0)
        );
        drop(from);
        while !thread.is_finished() {
            number += 1;
            fake.app(&format!("app-new-{number}.scope"), 0);
        }
        assert!(thread.join().expect("no panic").is_err());
    }
}
