// SPDX-License-Identifier: GPL-2.0-only
//! Compositors with `zwlr_foreign_toplevel_management_v1` (labwc, Wayfire, river, COSMIC before its own): windows with
//! an application id and a state, and no PID. The id finds the app's unit; where several have it, that is shown.
//! `ext_foreign_toplevel_list_v1` has no state: a compositor with nothing else cannot tell.

use crate::env::Env;
use crate::source::{Fault, Out, Probe, Source};
use crate::window::Window;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wayland_client::backend::ObjectId;
use wayland_client::globals::{
    registry_queue_init, BindError, GlobalError, GlobalList, GlobalListContents,
};
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::{
    event_created_child, Connection, Dispatch, DispatchError, EventQueue, Proxy, QueueHandle,
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::{
    zwlr_foreign_toplevel_handle_v1::{self as handle, ZwlrForeignToplevelHandleV1 as Handle},
    zwlr_foreign_toplevel_manager_v1::{self as manager, ZwlrForeignToplevelManagerV1 as Manager},
};

/// Value of `activated` in the array of states.
const ACTIVATED: u32 = 2;

impl From<DispatchError> for Fault {
    fn from(error: DispatchError) -> Fault {
        Fault(format!(
            "the compositor has closed the connection or broken the protocol: {error}"
        ))
    }
}

impl From<GlobalError> for Fault {
    fn from(error: GlobalError) -> Fault {
        Fault(format!("the compositor cannot be asked: {error}"))
    }
}

impl From<BindError> for Fault {
    fn from(_: BindError) -> Fault {
        Fault::new("the compositor does not tell who has the focus")
    }
}

/// What is known of a window, and what was said of it since its last `done`.
#[derive(Debug, Clone, Default)]
struct Toplevel {
    id: String,
    active: bool,
    shown: bool,
}

/// Whether an array of states, four bytes each, says that a window has the focus.
pub fn is_active(states: &[u8]) -> bool {
    let mut words = states.chunks_exact(4);
    words.any(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]) == ACTIVATED)
}

/// The windows of a compositor.
#[derive(Debug, Default)]
struct State {
    windows: BTreeMap<u32, Toplevel>,
    opened: Vec<Window>,
    changed: bool,
    finished: bool,
}

impl State {
    fn done(&mut self, number: u32) {
        if let Some(window) = self.windows.get_mut(&number) {
            if !window.shown {
                window.shown = true;
                self.opened.push(Window::of(0, window.id.clone()));
            }
        }
        self.changed = true;
    }

    fn front(&self) -> Vec<Window> {
        let active = self
            .windows
            .values()
            .filter(|window| window.active && window.shown);
        active
            .map(|window| Window::of(0, window.id.clone()))
            .collect()
    }

    fn tell(&mut self, out: &Out) -> Result<(), Fault> {
        for window in self.opened.drain(..) {
            out.window(&window)?;
        }
        if std::mem::take(&mut self.changed) {
            match self.front() {
                none if none.is_empty() => out.nobody()?,
                some => out.front(&some)?,
            }
        }
        Ok(())
    }
}

fn number(id: &ObjectId) -> u32 {
    id.protocol_id()
}

impl Dispatch<WlRegistry, GlobalListContents> for State {
    fn event(
        _: &mut State,
        _: &WlRegistry,
        _: <WlRegistry as Proxy>::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<State>,
    ) {
    }
}

impl Dispatch<Manager, ()> for State {
    fn event(
        state: &mut State,
        _: &Manager,
        event: manager::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<State>,
    ) {
        match event {
            manager::Event::Toplevel { toplevel } => {
                state
                    .windows
                    .insert(number(&toplevel.id()), Toplevel::default());
            }
            manager::Event::Finished => state.finished = true,
            _ => {}
        }
    }

    event_created_child!(State, Manager, [manager::EVT_TOPLEVEL_OPCODE => (Handle, ())]);
}

impl Dispatch<Handle, ()> for State {
    fn event(
        state: &mut State,
        from: &Handle,
        event: handle::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<State>,
    ) {
        let number = number(&from.id());
        let window = state.windows.entry(number).or_default();
        match event {
            handle::Event::AppId { app_id } => window.id = app_id,
            handle::Event::State { state } => window.active = is_active(&state),
            handle::Event::Done => state.done(number),
            handle::Event::Closed => {
                state.windows.remove(&number);
                state.changed = true;
                from.destroy();
            }
            _ => {}
        }
    }
}

/// A Wayland compositor with the protocol.
pub struct Toplevels {
    socket: Option<PathBuf>,
}

impl Toplevels {
    /// At `WAYLAND_DISPLAY`.
    pub fn new(env: &Env) -> Toplevels {
        Toplevels {
            socket: wayland_socket(env),
        }
    }

    fn connect(&self) -> Result<(GlobalList, EventQueue<State>), Fault> {
        let path = self
            .socket
            .as_ref()
            .ok_or_else(|| Fault::new("this is not a Wayland session"))?;
        let stream = crate::socket::connect(path)?;
        let connection = Connection::from_socket(stream)
            .map_err(|error| Fault(format!("the compositor cannot be reached: {error}")))?;
        Ok(registry_queue_init::<State>(&connection)?)
    }

    fn bind(&self) -> Result<(Manager, EventQueue<State>), Fault> {
        let (globals, queue) = self.connect()?;
        let manager = globals.bind::<Manager, State, ()>(&queue.handle(), 1..=3, ())?;
        Ok((manager, queue))
    }
}

/// The compositor's socket.
pub fn wayland_socket(env: &Env) -> Option<PathBuf> {
    let display = env.var("WAYLAND_DISPLAY")?;
    match display.starts_with('/') {
        true => Some(PathBuf::from(display)),
        false => env.runtime(display),
    }
}

impl Source for Toplevels {
    fn name(&self) -> &'static str {
        "toplevel"
    }

    fn probe(&self) -> Probe {
        match self.bind() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (_manager, mut queue) = self.bind()?;
        let mut state = State {
            changed: true,
            ..State::default()
        };
        queue.roundtrip(&mut state)?;
        while !state.finished {
            state.tell(out)?;
            queue.blocking_dispatch(&mut state)?;
        }
        Err(Fault::new("the compositor tells no more who has the focus"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mutate;

    #[test]
    fn states_are_words() {
        let words = |all: &[u32]| {
            all.iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        assert!(is_active(&words(&[0, ACTIVATED])));
        assert!(!is_active(&words(&[0, 1, 3])));
        assert!(!is_active(&[2]));
        mutate(&words(&[0, ACTIVATED, 3]), |bytes| {
            assert!(!is_active(bytes) || bytes.contains(&2))
        });
    }

    #[test]
    fn a_window_counts_from_its_first_done_on() {
        let mut state = State::default();
        state.windows.insert(
            3,
            Toplevel {
                id: "foot".into(),
                active: true,
                shown: false,
            },
        );
        assert!(state.front().is_empty());
        state.done(3);
        state.done(3);
        assert_eq!(state.front(), [Window::of(0, "foot")]);
        assert_eq!(state.opened.len(), 1);
    }

    #[test]
    fn a_display_is_a_name_or_a_path() {
        let at = |display| {
            wayland_socket(&Env::of([
                ("XDG_RUNTIME_DIR", "/run/x"),
                ("WAYLAND_DISPLAY", display),
            ]))
        };
        assert_eq!(at("wayland-1"), Some(PathBuf::from("/run/x/wayland-1")));
        assert_eq!(at("/tmp/w"), Some(PathBuf::from("/tmp/w")));
        assert_eq!(at(""), None);
    }
}
