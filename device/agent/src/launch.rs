// SPDX-License-Identifier: GPL-2.0-only
//! Launches, before there is a window: an app's unit gets its control group when the user manager starts it, or when
//! the desktop puts a process that it has just started into a scope.
//!
//! Seen by inotify on the slice of apps: the directory is there before the manager's `UnitNew` has gone over the bus,
//! and it is what the daemon needs. `session_bus` listens to `UnitNew` as well, for units outside of that slice.

use crate::fault::Fault;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use crate::units;
use crate::watch::{Change, Tree};
use fasttrack_detector::group;

/// New units of apps in a slice.
pub struct Launches {
    place: Place,
    slice: String,
}

impl Launches {
    /// In this slice of apps.
    pub fn new(place: &Place, slice: String) -> Launches {
        Launches {
            place: place.clone(),
            slice,
        }
    }
}

/// Whether a new group is an app that begins: not the part of one, as a terminal's tab.
pub fn is_launch(cgroup: &str) -> bool {
    let leaf = cgroup.rsplit('/').next().unwrap_or_default();
    units::is_app(leaf)
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
        loop {
            for change in tree.wait(None)? {
                match change {
                    Change::Made(cgroup) if is_launch(&cgroup) => begin(&cgroup, out)?,
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
    let leaf = cgroup.rsplit('/').next().unwrap_or_default();
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
    use fasttrack_detector::report::Report;

    #[test]
    fn a_new_scope_is_a_launch_and_an_old_one_is_not() {
        let fake = FakePlace::new();
        fake.app("app-old-1.scope", 0);
        let slice = units::app_slice_of_user(fake.user());
        let mut source = Launches::new(&fake.place(), slice);
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
