// SPDX-License-Identifier: GPL-2.0-only
//! Compositors with `ext_foreign_toplevel_list_v1`: it tells which windows there are, with an application id, and neither
//! a PID nor who has the focus. So far it says that an app's first window has opened, which ends its launch.
//!
//! COSMIC adds the state of each window (`zcosmic_toplevel_info_v1`, since version 2 beside that list), `activated` among
//! them, and says when all states are of one moment. The id finds the app's unit, as with `toplevel`.

use crate::cannot::Cannot;
use crate::cosmic_protocol::zcosmic_toplevel_handle_v1::{self as cosmic, ZcosmicToplevelHandleV1};
use crate::cosmic_protocol::zcosmic_toplevel_info_v1::{
    self as info, ZcosmicToplevelInfoV1 as Info,
};
use crate::env::Env;
use crate::fault::Fault;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use crate::toplevel::{connect, is_active, number, wayland_socket, Windows};
use crate::window::Titled;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wayland_client::globals::GlobalListContents;
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::{event_created_child, Connection, Dispatch, EventQueue, Proxy, QueueHandle};
use wayland_protocols::ext::foreign_toplevel_list::v1::client::{
    ext_foreign_toplevel_handle_v1::{self as handle, ExtForeignToplevelHandleV1 as Handle},
    ext_foreign_toplevel_list_v1::{self as list, ExtForeignToplevelListV1 as List},
};

/// Version of COSMIC's protocol that stands beside the list.
const COSMIC_VERSION: u32 = 2;

#[derive(Default)]
struct State {
    windows: Windows,
    info: Option<Info>,
    states: BTreeMap<u32, ZcosmicToplevelHandleV1>,
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

impl Dispatch<List, ()> for State {
    fn event(
        state: &mut State,
        _: &List,
        event: list::Event,
        _: &(),
        _: &Connection,
        queue: &QueueHandle<State>,
    ) {
        match event {
            list::Event::Toplevel { toplevel } => {
                let number = number(&toplevel.id());
                state.windows.add(number);
                if let (Some(info), false) = (&state.info, state.windows.finished) {
                    let states = info.get_cosmic_toplevel(&toplevel, queue, number);
                    state.states.insert(number, states);
                }
            }
            list::Event::Finished => state.windows.finished = true,
            _ => {}
        }
    }

    event_created_child!(State, List, [list::EVT_TOPLEVEL_OPCODE => (Handle, ())]);
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
        match event {
            handle::Event::AppId { app_id } => {
                if let Some(window) = state.windows.all.get_mut(&number) {
                    window.id = app_id;
                }
            }
            handle::Event::Title { title } => state.windows.title(number, title),
            handle::Event::Done => state.windows.show(number),
            handle::Event::Closed => {
                state.windows.close(number);
                if let Some(states) = state.states.remove(&number) {
                    states.destroy();
                }
                from.destroy();
            }
            _ => {}
        }
    }
}

impl Dispatch<Info, ()> for State {
    fn event(
        state: &mut State,
        _: &Info,
        event: info::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<State>,
    ) {
        match event {
            info::Event::Done => state.windows.changed = true,
            info::Event::Finished => state.windows.finished = true,
            _ => {}
        }
    }

    event_created_child!(State, Info, [info::EVT_TOPLEVEL_OPCODE => (ZcosmicToplevelHandleV1, 0)]);
}

impl Dispatch<ZcosmicToplevelHandleV1, u32> for State {
    fn event(
        state: &mut State,
        _: &ZcosmicToplevelHandleV1,
        event: cosmic::Event,
        window: &u32,
        _: &Connection,
        _: &QueueHandle<State>,
    ) {
        if let (cosmic::Event::State { state: words }, Some(window)) =
            (event, state.windows.all.get_mut(window))
        {
            window.active = is_active(&words);
        }
    }
}

/// Asks for the windows and their titles, which the list alone has.
fn titled(socket: Option<&Path>) -> Result<Vec<Titled>, Fault> {
    let (_list, mut queue) = bind_list(socket)?;
    let mut state = State {
        windows: Windows::with_titles(),
        ..State::default()
    };
    queue.roundtrip(&mut state)?;
    Ok(state.windows.titled())
}

fn bind_list(socket: Option<&Path>) -> Result<(List, EventQueue<State>), Fault> {
    let (globals, queue) = connect::<State>(socket)?;
    Ok((globals.bind(&queue.handle(), 1..=1, ())?, queue))
}

/// COSMIC's compositor.
pub struct Cosmic {
    socket: Option<PathBuf>,
}

impl Cosmic {
    /// At `WAYLAND_DISPLAY`.
    pub fn new(env: &Env) -> Cosmic {
        Cosmic {
            socket: wayland_socket(env),
        }
    }

    fn bind(&self) -> Result<(List, State, EventQueue<State>), Fault> {
        let (globals, queue) = connect::<State>(self.socket.as_deref())?;
        let asked = COSMIC_VERSION..=COSMIC_VERSION;
        let state = State {
            info: Some(globals.bind(&queue.handle(), asked, ())?),
            ..State::default()
        };
        Ok((globals.bind(&queue.handle(), 1..=1, ())?, state, queue))
    }
}

impl Source for Cosmic {
    fn name(&self) -> &'static str {
        "cosmic"
    }

    fn probe(&self) -> Probe {
        match self.bind() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        titled(self.socket.as_deref())
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (_list, mut state, mut queue) = self.bind()?;
        queue.roundtrip(&mut state)?;
        // The windows' states were asked for meanwhile.
        queue.roundtrip(&mut state)?;
        state.windows.changed = true;
        while !state.windows.finished {
            state.windows.tell(out)?;
            queue.blocking_dispatch(&mut state)?;
        }
        Err(Fault::new("the compositor tells no more who has the focus"))
    }
}

/// A compositor that has the list and nothing else.
pub struct Listed {
    socket: Option<PathBuf>,
    cannot: Cannot,
}

impl Listed {
    /// At `WAYLAND_DISPLAY`.
    pub fn new(env: &Env, place: &Place) -> Listed {
        Listed {
            socket: wayland_socket(env),
            cannot: Cannot::new(env, place),
        }
    }
}

impl Source for Listed {
    fn name(&self) -> &'static str {
        "toplevel-list"
    }

    fn probe(&self) -> Probe {
        match bind_list(self.socket.as_deref()) {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        titled(self.socket.as_deref())
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (_list, mut queue) = bind_list(self.socket.as_deref())?;
        let mut state = State::default();
        self.cannot.tell(out)?;
        while !state.windows.finished {
            queue.blocking_dispatch(&mut state)?;
            state.windows.tell_opened(out)?;
        }
        Err(Fault::new("the compositor tells no more of its windows"))
    }
}

#[cfg(test)]
#[path = "ext_toplevel_tests.rs"]
mod tests;
