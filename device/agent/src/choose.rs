// SPDX-License-Identifier: GPL-2.0-only
//! Which source of focus a session has: the first, in this order, that says that it can tell.

use crate::android::AndroidReplay;
use crate::cannot::Cannot;
use crate::env::Env;
use crate::execs::Execs;
use crate::ext_toplevel::{Cosmic, Listed};
use crate::gnome::Gnome;
use crate::hyprland::Hyprland;
use crate::i3ipc::I3Ipc;
use crate::idle::Idle;
use crate::inhibit::Inhibitors;
use crate::kde::Kde;
use crate::launch::Launches;
use crate::logind::Logind;
use crate::manual::Manual;
use crate::niri::Niri;
use crate::pipewire::PipeWire;
use crate::portal::Portals;
use crate::resolve::Resolver;
use crate::session_bus::SessionBus;
use crate::source::Source;
use crate::startup::Startup;
use crate::toplevel::Toplevels;
use crate::uid_observer::UidObserver;
use crate::x11::X11;
use crate::x11_screen::X11Screen;

/// All sources of focus, the most telling first: those that name a PID, then those that name an app, then X11, which
/// a Wayland session has too, then those that name no focus.
pub fn all(env: &Env, resolver: &Resolver) -> Vec<Box<dyn Source>> {
    vec![
        Box::new(I3Ipc::sway(env)),
        Box::new(I3Ipc::i3(env)),
        Box::new(Hyprland::new(env)),
        Box::new(Niri::new(env)),
        Box::new(Kde::new(env, resolver.place())),
        Box::new(Gnome::new(env, resolver.place(), resolver.app_slice())),
        Box::new(Cosmic::new(env)),
        Box::new(Toplevels::new(env)),
        Box::new(X11::new(env)),
        Box::new(Listed::new(env, resolver.place())),
        Box::new(UidObserver),
        Box::new(Manual),
        Box::new(AndroidReplay),
        Box::new(Cannot::new(env, resolver.place())),
    ]
}

/// All other sources: launches, who can be noticed, whether somebody is there.
pub fn others(env: &Env, resolver: &Resolver) -> Vec<Box<dyn Source>> {
    vec![
        Box::new(Launches::new(env, resolver.place(), resolver.app_slice())),
        Box::new(Execs::new(env)),
        Box::new(Startup::new(env)),
        Box::new(SessionBus::new(env, all)),
        Box::new(Portals::new(env)),
        Box::new(Logind::new(env)),
        Box::new(Idle::new(env)),
        Box::new(X11Screen::new(env)),
        Box::new(Inhibitors),
        Box::new(PipeWire::new(env)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Probe;
    use crate::testing::FakePlace;

    /// The first that can tell.
    fn first(env: &Env) -> Option<&'static str> {
        let fake = FakePlace::new();
        let all = all(env, &fake.resolver()).into_iter();
        let mut can = all.filter(|source| source.probe() == Probe::Yes);
        can.next().map(|source| source.name())
    }

    #[test]
    fn a_session_without_anything_has_the_last_resort() {
        assert_eq!(first(&Env::default()), Some("none"));
    }

    #[test]
    fn names_are_unique() {
        let (fake, env) = (FakePlace::new(), Env::default());
        let sources = all(&env, &fake.resolver()).into_iter();
        let sources = sources.chain(others(&env, &fake.resolver()));
        let names: Vec<&str> = sources.map(|source| source.name()).collect();
        let unique: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        let known = fasttrack_config::agent::FOCUS.into_iter();
        let known: Vec<&str> = known.chain(fasttrack_config::agent::OTHERS).collect();
        assert_eq!(names, known);
    }

    #[test]
    fn gnome_is_chosen_where_the_session_says_so() {
        let env = Env::of([("XDG_CURRENT_DESKTOP", "ubuntu:GNOME")]);
        assert_eq!(first(&env), Some("gnome"));
    }
}
