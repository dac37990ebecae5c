// SPDX-License-Identifier: GPL-2.0-only
//! Whether the screen of an X11 session is on: what switches it off by DPMS or blanks it by the server's screen saver
//! need not lock it. The server tells both (DPMS 1.2 of X.Org 21.1, MIT-SCREEN-SAVER).

use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use fasttrack_detector::report::Nobody;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::dpms::{self, ConnectionExt as _, DPMSMode};
use x11rb::protocol::screensaver::{self, ConnectionExt as _, State};
use x11rb::protocol::Event;
use x11rb::rust_connection::RustConnection;

/// What is asked for; servers before 21.1 have 1.1, without events.
const DPMS: (u16, u16) = (1, 2);

/// What switches a screen off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Screen {
    off: bool,
    saved: bool,
}

impl Screen {
    fn take(&mut self, event: &Event) {
        match event {
            Event::DpmsInfoNotify(info) => {
                self.off = info.state && info.power_level != DPMSMode::ON
            }
            Event::ScreensaverNotify(info) => self.saved = is_on(info.state),
            _ => {}
        }
    }

    fn is_dark(self) -> bool {
        self.off || self.saved
    }
}

/// The saver covers the screen, by its timer or by order.
fn is_on(state: State) -> bool {
    state == State::ON || state == State::CYCLE
}

/// The screen of an X server.
pub struct X11Screen {
    display: Option<String>,
}

impl X11Screen {
    /// At `DISPLAY`, unless that is the Xwayland of a Wayland session.
    pub fn new(env: &Env) -> X11Screen {
        X11Screen {
            display: crate::x11::display(env),
        }
    }

    fn connect(&self) -> Result<(RustConnection, u32), Fault> {
        let display = self.display.as_deref();
        let display = display.ok_or_else(|| Fault::new("this is not an X11 session"))?;
        let (connection, screen) = x11rb::connect(Some(display))?;
        let root = connection.setup().roots[screen].root;
        Ok((connection, root))
    }
}

/// Asks for what a server has of both, and how it is now.
fn listen(connection: &RustConnection, root: u32) -> Result<Screen, Fault> {
    let mut screen = Screen::default();
    if connection
        .extension_information(dpms::X11_EXTENSION_NAME)?
        .is_some()
    {
        let version = connection.dpms_get_version(DPMS.0, DPMS.1)?.reply()?;
        if (version.server_major_version, version.server_minor_version) >= DPMS {
            let wanted = dpms::EventMask::INFO_NOTIFY;
            connection.dpms_select_input(wanted)?.check()?;
        }
        let info = connection.dpms_info()?.reply()?;
        screen.off = info.state && info.power_level != DPMSMode::ON;
    }
    if connection
        .extension_information(screensaver::X11_EXTENSION_NAME)?
        .is_some()
    {
        let wanted = screensaver::Event::NOTIFY_MASK | screensaver::Event::CYCLE_MASK;
        connection.screensaver_select_input(root, wanted)?.check()?;
        let info = connection.screensaver_query_info(root)?.reply()?;
        screen.saved = is_on(State::from(info.state));
    }
    Ok(screen)
}

impl Source for X11Screen {
    fn name(&self) -> &'static str {
        "x11-screen"
    }

    fn probe(&self) -> Probe {
        match self.connect() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (connection, root) = self.connect()?;
        let mut screen = listen(&connection, root)?;
        loop {
            out.away(Nobody::Locked, screen.is_dark())?;
            let before = screen;
            while screen.is_dark() == before.is_dark() {
                screen.take(&connection.wait_for_event()?);
            }
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "x11_screen_tests.rs"]
mod tests;
