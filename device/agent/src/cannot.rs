// SPDX-License-Identifier: GPL-2.0-only
//! A session in which nobody can tell: the compositor is named, once, and nothing costs a wake-up afterwards.

use crate::env::Env;
use crate::fault::Fault;
use crate::place::Place;
use crate::socket;
use crate::source::{Out, Probe, Source};
use crate::toplevel::wayland_socket;
use std::path::PathBuf;

/// Its name.
pub const NAME: &str = "none";

/// The last resort.
pub struct Cannot {
    socket: Option<PathBuf>,
    place: Place,
    desktop: Option<String>,
}

impl Cannot {
    /// Names who listens at `WAYLAND_DISPLAY`, or the desktop.
    pub fn new(env: &Env, place: &Place) -> Cannot {
        Cannot {
            socket: wayland_socket(env),
            place: place.clone(),
            desktop: env.var("XDG_CURRENT_DESKTOP").map(str::to_string),
        }
    }

    /// The compositor's name.
    pub fn compositor(&self) -> String {
        let listener = self.socket.as_deref().and_then(socket::listener);
        let program = listener.and_then(|pid| self.place.program(pid));
        program
            .or_else(|| self.desktop.clone())
            .unwrap_or_else(|| "no compositor".into())
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
        out.cannot_tell(&self.compositor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compositor_is_named_by_its_process_or_its_desktop() {
        let place = Place::default();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("wayland-9");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let env = Env::of([("WAYLAND_DISPLAY", path.to_str().expect("a path"))]);
        let own = place.program(std::process::id()).expect("this process");
        assert_eq!(Cannot::new(&env, &place).compositor(), own);
        let env = Env::of([("XDG_CURRENT_DESKTOP", "weston")]);
        assert_eq!(Cannot::new(&env, &place).compositor(), "weston");
        assert_eq!(
            Cannot::new(&Env::default(), &place).compositor(),
            "no compositor"
        );
    }
}
