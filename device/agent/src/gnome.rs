// SPDX-License-Identifier: GPL-2.0-only
//! GNOME: Mutter writes `user.xdg.inactive-since` on the control group of each app: -1 while a window of it has the
//! focus, otherwise when it lost it. No extension is needed; Wayland and X11 are the same.
//!
//! The attribute is a claim of the user's own code. Two that claim the focus are an ambiguity, and nothing is boosted.

use crate::env::Env;
use crate::fault::Fault;
use crate::launch;
use crate::place::Place;
use crate::resolve::Owner;
use crate::source::{Out, Probe, Source};
use crate::watch::{Change, Tree};
use crate::window::Window;
use fasttrack_detector::group;
use fasttrack_detector::report::{AppRef, Nobody, Report};
use std::collections::BTreeSet;
use std::time::Duration;

const ATTRIBUTE: &str = "user.xdg.inactive-since";
/// At a switch Mutter writes two attributes, one after the other: for so long two in front are no ambiguity.
const SETTLE: Duration = Duration::from_millis(20);

/// Whether a value says that the app has the focus.
pub fn is_focused(value: &[u8]) -> bool {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    text.trim_ascii() == b"-1"
}

/// GNOME Shell, or Mutter alone.
pub struct Gnome {
    desktop: bool,
    place: Place,
    slice: String,
}

impl Gnome {
    /// Where the session says that it is GNOME, or an attribute is there already.
    pub fn new(env: &Env, place: &Place, slice: String) -> Gnome {
        let desktop = env.desktop("GNOME") || env.var("GNOME_SHELL_SESSION_MODE").is_some();
        Gnome {
            desktop,
            place: place.clone(),
            slice,
        }
    }
}

impl Source for Gnome {
    fn name(&self) -> &'static str {
        "gnome"
    }

    fn probe(&self) -> Probe {
        let Ok((_, there)) = Tree::new(&self.place, &self.slice) else {
            return Probe::No(format!(
                "there is no {}: no systemd user session",
                self.slice
            ));
        };
        let written = there
            .iter()
            .any(|group| value(&self.place, group).is_some());
        match self.desktop || written {
            true => Probe::Yes,
            false => Probe::No(format!(
                "no app has the attribute {ATTRIBUTE}, and this is not GNOME"
            )),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (mut tree, there) = Tree::new(&self.place, &self.slice)?;
        let mut state = State {
            place: self.place.clone(),
            focused: BTreeSet::new(),
        };
        there.into_iter().for_each(|group| state.look(group));
        loop {
            while state.focused.len() > 1 {
                let more = tree.wait(Some(SETTLE))?;
                if more.is_empty() {
                    break;
                }
                state.take(more, &mut tree);
            }
            if state.focused.is_empty() && !out.dialogs().backends().is_empty() {
                let more = tree.wait(Some(SETTLE))?;
                state.take(more, &mut tree);
            }
            out.focus(state.report(out))?;
            let mut changes = tree.wait(None)?;
            let is_tab =
                |change: &Change| matches!(change, Change::Made(group) if launch::is_tab(group));
            if changes.iter().any(is_tab) {
                changes.extend(tree.wait(Some(launch::TAB))?);
            }
            state.take(changes, &mut tree);
        }
    }
}

fn value(place: &Place, group: &str) -> Option<Vec<u8>> {
    let mut room = [0; 64];
    let read = rustix::fs::lgetxattr(place.directory(group), ATTRIBUTE, &mut room[..]).ok()?;
    Some(room[..read].to_vec())
}

struct State {
    place: Place,
    focused: BTreeSet<String>,
}

impl State {
    fn take(&mut self, changes: Vec<Change>, tree: &mut Tree) {
        for change in changes {
            match change {
                Change::Made(group) | Change::Attribute(group) => self.look(group),
                Change::Gone(group) => drop(self.focused.remove(&group)),
                Change::Lost => {
                    self.focused.clear();
                    tree.all().into_iter().for_each(|group| self.look(group));
                }
            }
        }
    }

    fn look(&mut self, group: String) {
        match value(&self.place, &group).is_some_and(|value| is_focused(&value)) {
            true => self.focused.insert(group),
            false => self.focused.remove(&group),
        };
    }

    /// Who has asked for the portal's dialog that has the focus. Its backend is outside of the slice of apps.
    fn dialog(&self, out: &Out) -> Option<Report> {
        let backends = out.dialogs().backends().into_iter();
        let focused = backends.filter(|pid| {
            let group = self.place.cgroup_of(*pid);
            let value = group.and_then(|group| value(&self.place, &group));
            value.is_some_and(|value| is_focused(&value))
        });
        let mut owners = focused.filter_map(|pid| out.dialogs().owner(&Window::of(pid, "")));
        match owners.next()? {
            Owner::App(apps) => Some(Report::Front(apps)),
            Owner::Ambiguous(apps) => Some(Report::Ambiguous(apps)),
            Owner::Unknown(_) => None,
        }
    }

    fn report(&self, out: &Out) -> Report {
        let mut apps: Vec<AppRef> = Vec::new();
        for group in &self.focused {
            let app = out.resolver().app(group::app_of(group), "", 0);
            apps.extend(app.filter(|app| !apps.contains(app)));
        }
        match apps.len() {
            0 => self
                .dialog(out)
                .unwrap_or(Report::Nobody(Nobody::Unfocused)),
            1 => {
                let apps = apps.into_iter();
                Report::Front(
                    apps.flat_map(|app| out.resolver().with_instances(app))
                        .take(fasttrack_bus::APPS_MOST)
                        .collect(),
                )
            }
            _ => {
                apps.truncate(fasttrack_bus::APPS_MOST);
                Report::Ambiguous(apps)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::testing::{mutate, FakePlace};
    use fasttrack_detector::units;
    use rustix::fs::XattrFlags;
    use std::sync::mpsc;

    #[test]
    fn only_minus_one_is_focused() {
        assert!(is_focused(b"-1") && is_focused(b"-1\n") && is_focused(b"-1\0"));
        assert!(!is_focused(b"1700000000") && !is_focused(b"") && !is_focused(b"-10"));
        mutate(b"-1\0", |value| {
            assert!(
                !is_focused(value)
                    || value.starts_with(b"-1")
                    || value.trim_ascii_start().starts_with(b"-1")
            )
        });
    }

    fn set(fake: &FakePlace, app: &AppRef, value: &str) -> bool {
        let path = fake.place().directory(&app.cgroup);
        rustix::fs::setxattr(path, ATTRIBUTE, value.as_bytes(), XattrFlags::empty()).is_ok()
    }

    #[test]
    fn the_attribute_is_followed() {
        let fake = FakePlace::new();
        let (one, two) = (
            fake.app("app-one-1.scope", 0),
            fake.app("app-two-2.scope", 0),
        );
        if !set(&fake, &one, "-1") {
            eprintln!("SKIPPED: the file system of temporary files has no user attributes");
            return;
        }
        let slice = units::app_slice_of_user(fake.user());
        let mut source = Gnome::new(&Env::default(), &fake.place(), slice);
        assert_eq!(source.probe(), Probe::Yes);
        let (to, from) = mpsc::sync_channel(64);
        let out = Out::new("gnome", fake.resolver(), to);
        let dialogs = out.dialogs().clone();
        let thread = std::thread::spawn(move || source.run(&out));
        let next = || match from.recv().expect("a report") {
            Event::Focus(report) => report,
            other => panic!("{other:?}"),
        };
        let until = |wanted: Report| while next() != wanted {};
        until(Report::Front(vec![one.clone()]));
        set(&fake, &two, "-1");
        until(Report::Ambiguous(vec![one.clone(), two.clone()]));
        set(&fake, &one, "1700000000");
        until(Report::Front(vec![two.clone()]));
        std::fs::remove_dir(fake.place().directory(&two.cgroup)).expect("a group");
        until(Report::Nobody(Nobody::Unfocused));
        // A dialog of a portal, whose backend is no app, is who has asked for it.
        let backend = fake.group("/user.slice/portal.service", 9);
        dialogs.open(crate::dialogs::Dialog {
            backend: 9,
            to: ":1.9".into(),
            apps: vec![one.clone()],
            from: ":1.1".into(),
            handle: "/h".into(),
        });
        set(&fake, &backend, "-1");
        set(&fake, &one, "1700000000");
        until(Report::Front(vec![one.clone()]));
        drop(from);
        set(&fake, &one, "-1");
        assert!(thread.join().expect("no panic").is_err());
    }
}
