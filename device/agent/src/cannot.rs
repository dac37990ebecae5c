// SPDX-License-Identifier: GPL-2.0-only
//! A session in which nobody can tell: the compositor is named, once, and nothing costs a wake-up afterwards. Where there
//! is no compositor, or none any more, there is no window, and nobody is in front.

use crate::env::Env;
use crate::fault::Fault;
use crate::place::Place;
use crate::socket;
use crate::source::{Out, Probe, Source};
use crate::toplevel::wayland_socket;
use crate::x11;
use std::path::PathBuf;

/// Its name.
pub const NAME: &str = "none";

/// The last resort.
pub struct Cannot {
    socket: Option<PathBuf>,
    display: Option<String>,
    place: Place,
    desktop: Option<String>,
}

impl Cannot {
    /// Names who listens at `WAYLAND_DISPLAY`, or the desktop of an X server.
    pub fn new(env: &Env, place: &Place) -> Cannot {
        Cannot {
            socket: wayland_socket(env),
            display: x11::display(env),
            place: place.clone(),
            desktop: env.var("XDG_CURRENT_DESKTOP").map(str::to_string),
        }
    }

    /// Says so.
    pub fn tell(&self, out: &Out) -> Result<(), Fault> {
        match self.compositor() {
            Some(compositor) => out.cannot_tell(&compositor),
            None => out.nobody(),
        }
    }

    /// The compositor's name; none where there is no compositor.
    fn compositor(&self) -> Option<String> {
        let listener = self.socket.as_deref().and_then(socket::listener);
        if let Some(program) = listener.and_then(|pid| self.place.program(pid)) {
            return Some(program);
        }
        let server = self.display.as_deref().map(x11::is_there);
        let desktop = || self.desktop.clone();
        let there = listener.is_some() || server == Some(true);
        there.then(|| desktop().unwrap_or_else(|| "the window manager".into()))
    }
}

impl Source for Cannot {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Probe {
        Probe::Yes
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        self.tell(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use fasttrack_detector::report::{Nobody, Report};

    #[test]
    fn the_compositor_is_named_by_its_process_and_none_is_where_nobody_listens() {
        let place = Place::default();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("wayland-9");
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        // That stays in the environment of the user's systemd after the compositor.
        let env = Env::of([
            ("WAYLAND_DISPLAY", path.to_str().expect("a path")),
            ("XDG_CURRENT_DESKTOP", "weston"),
        ]);
        let own = place.program(std::process::id());
        let named = || Cannot::new(&env, &place).compositor();
        assert!(own.is_some());
        assert_eq!(named(), own);
        drop(socket);
        assert_eq!(named(), None);
        assert_eq!(Cannot::new(&Env::default(), &place).compositor(), None);
    }

    #[test]
    fn without_a_compositor_nobody_is_in_front() {
        let fake = crate::testing::FakePlace::new();
        let (to, from) = std::sync::mpsc::sync_channel(1);
        let out = Out::new(NAME, fake.resolver(), to);
        let env = Env::of([("XDG_CURRENT_DESKTOP", "sway")]);
        let ended = Cannot::new(&env, &fake.place()).run(&out);
        assert_eq!(ended, Ok(()));
        let nobody = Report::Nobody(Nobody::Unfocused);
        assert_eq!(from.recv(), Ok(Event::Focus(nobody)));
    }
}
