// SPDX-License-Identifier: GPL-2.0-only
//! Compositors with `zwlr_foreign_toplevel_management_v1` (labwc, Wayfire, river): windows with
//! an application id and a state, and no PID. The id finds the app's unit; where several have it, that is shown. Since
//! version 3 of the protocol a dialog names its parent, and counts for it.

use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::window::{Titled, Window};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
/// Longest chain of parents: windows may name each other in a ring.
const PARENTS_MOST: usize = 8;
/// Most windows that are remembered: a compositor that says that there are more is not believed.
const WINDOWS_MOST: usize = 4096;

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
pub struct Toplevel {
    /// Application id.
    pub id: String,
    /// Whether it has the focus.
    pub active: bool,
    /// Number of the window that it is a dialog of.
    pub parent: Option<u32>,
    shown: bool,
}

/// Whether an array of states, four bytes each, says that a window has the focus.
pub fn is_active(states: &[u8]) -> bool {
    let mut words = states.chunks_exact(4);
    words.any(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]) == ACTIVATED)
}

/// The windows of a compositor.
#[derive(Debug, Default)]
pub struct Windows {
    /// By their numbers in the protocol.
    pub all: BTreeMap<u32, Toplevel>,
    opened: Vec<Window>,
    /// Titles by the windows' numbers, for who has asked for them alone.
    titles: Option<BTreeMap<u32, String>>,
    /// Whether another window may have the focus.
    pub changed: bool,
    /// Whether nothing more is said, or believed.
    pub finished: bool,
}

impl Windows {
    /// That keeps titles, too.
    pub fn with_titles() -> Windows {
        Windows {
            titles: Some(BTreeMap::new()),
            ..Windows::default()
        }
    }

    /// There is a window with this number.
    pub fn add(&mut self, number: u32) {
        match self.all.len() < WINDOWS_MOST {
            true => drop(self.all.insert(number, Toplevel::default())),
            false => self.finished = true,
        }
    }

    /// A window's title is this.
    pub fn title(&mut self, number: u32, title: String) {
        if let Some(titles) = &mut self.titles {
            titles.insert(number, title);
        }
    }

    /// The windows, each with its title.
    pub fn titled(&self) -> Vec<Titled> {
        let titles = self.titles.iter().flatten();
        let titled = |(number, title): (&u32, &String)| {
            let window = self.all.get(number)?;
            Some((title.clone(), Window::of(0, self.root(window).id.clone())))
        };
        titles.filter_map(titled).collect()
    }

    fn done(&mut self, number: u32) {
        self.show(number);
        self.changed = true;
    }

    /// All that belongs to a window has been said for the first time.
    pub fn show(&mut self, number: u32) {
        if let Some(window) = self.all.get_mut(&number) {
            if !window.shown {
                window.shown = true;
                self.opened.push(Window::of(0, window.id.clone()));
            }
        }
    }

    fn front(&self) -> Vec<Window> {
        let active = self
            .all
            .values()
            .filter(|window| window.active && window.shown);
        active
            .map(|window| Window::of(0, self.root(window).id.clone()))
            .collect()
    }

    /// Up from a dialog to the window that it belongs to.
    fn root<'a>(&'a self, window: &'a Toplevel) -> &'a Toplevel {
        let mut at = window;
        for _ in 0..PARENTS_MOST {
            match at.parent.and_then(|number| self.all.get(&number)) {
                Some(up) => at = up,
                None => break,
            }
        }
        at
    }

    /// A window has gone. Its number may be another one's later.
    pub fn close(&mut self, number: u32) {
        self.all.remove(&number);
        let children = self.all.values_mut();
        children
            .filter(|window| window.parent == Some(number))
            .for_each(|window| window.parent = None);
        self.changed = true;
    }

    /// Tells which windows have opened.
    pub fn tell_opened(&mut self, out: &Out) -> Result<(), Fault> {
        for window in self.opened.drain(..) {
            out.window(&window)?;
        }
        Ok(())
    }

    /// Tells that, and who has the focus.
    pub fn tell(&mut self, out: &Out) -> Result<(), Fault> {
        self.tell_opened(out)?;
        if std::mem::take(&mut self.changed) {
            match self.front() {
                none if none.is_empty() => out.nobody()?,
                some => out.front(&some)?,
            }
        }
        Ok(())
    }
}

/// A window's number.
pub fn number(id: &ObjectId) -> u32 {
    id.protocol_id()
}

impl Dispatch<WlRegistry, GlobalListContents> for Windows {
    fn event(
        _: &mut Windows,
        _: &WlRegistry,
        _: <WlRegistry as Proxy>::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Windows>,
    ) {
    }
}

impl Dispatch<Manager, ()> for Windows {
    fn event(
        state: &mut Windows,
        _: &Manager,
        event: manager::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Windows>,
    ) {
        match event {
            manager::Event::Toplevel { toplevel } => state.add(number(&toplevel.id())),
            manager::Event::Finished => state.finished = true,
            _ => {}
        }
    }

    event_created_child!(Windows, Manager, [manager::EVT_TOPLEVEL_OPCODE => (Handle, ())]);
}

impl Dispatch<Handle, ()> for Windows {
    fn event(
        state: &mut Windows,
        from: &Handle,
        event: handle::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Windows>,
    ) {
        let number = number(&from.id());
        let Some(window) = state.all.get_mut(&number) else {
            return;
        };
        match event {
            handle::Event::AppId { app_id } => window.id = app_id,
            handle::Event::Title { title } => state.title(number, title),
            handle::Event::State { state } => window.active = is_active(&state),
            handle::Event::Done => state.done(number),
            handle::Event::Parent { parent } => {
                window.parent = parent.map(|parent| self::number(&parent.id()));
            }
            handle::Event::Closed => {
                state.close(number);
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

    fn bind(&self) -> Result<(Manager, EventQueue<Windows>), Fault> {
        let (globals, queue) = connect::<Windows>(self.socket.as_deref())?;
        let manager = globals.bind::<Manager, Windows, ()>(&queue.handle(), 1..=3, ())?;
        Ok((manager, queue))
    }
}

/// Connects, and asks what the compositor has.
pub fn connect<S>(socket: Option<&Path>) -> Result<(GlobalList, EventQueue<S>), Fault>
where
    S: Dispatch<WlRegistry, GlobalListContents> + 'static,
{
    let path = socket.ok_or_else(|| Fault::new("this is not a Wayland session"))?;
    let stream = crate::socket::connect(path)?;
    let connection = Connection::from_socket(stream)
        .map_err(|error| Fault(format!("the compositor cannot be reached: {error}")))?;
    Ok(registry_queue_init::<S>(&connection)?)
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

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        let (_manager, mut queue) = self.bind()?;
        let mut state = Windows::with_titles();
        queue.roundtrip(&mut state)?;
        Ok(state.titled())
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (_manager, mut queue) = self.bind()?;
        let mut state = Windows {
            changed: true,
            ..Windows::default()
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
    use crate::conduct::caught;
    use crate::testing::{mutate, wayland, FakePlace};

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
        let mut state = Windows::default();
        state.all.insert(
            3,
            Toplevel {
                id: "foot".into(),
                active: true,
                ..Toplevel::default()
            },
        );
        assert!(state.front().is_empty());
        state.done(3);
        state.done(3);
        assert_eq!(state.front(), [Window::of(0, "foot")]);
        assert_eq!(state.opened.len(), 1);
    }

    /// Reads a stream to its end: the windows, and who had the focus last.
    fn read(source: &Toplevels) -> (usize, Vec<Window>) {
        let (_manager, mut queue) = source.bind().expect("what it has is said rightly");
        let mut state = Windows::default();
        let mut ends = false;
        while !ends {
            ends = queue.blocking_dispatch(&mut state).is_err();
            // What came with the end has been read, too.
            let _ = queue.dispatch_pending(&mut state);
        }
        (state.all.len(), state.front())
    }

    #[test]
    fn a_stream_is_read_and_a_spoilt_one_does_no_harm() {
        // The manager is the client's fourth object; the windows are the compositor's.
        let (one, two) = (0xff00_0000_u32, 0xff00_0001_u32);
        let words = |all: &[u32]| {
            all.iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        let event = wayland::event;
        let stream = [
            event(4, 0, &words(&[one])),
            event(one, 1, &wayland::text("editor")),
            event(one, 5, &[]),
            event(4, 0, &words(&[two])),
            event(two, 1, &wayland::text("dialog")),
            event(two, 7, &words(&[one])),
            event(two, 4, &words(&[4, ACTIVATED])),
            event(two, 5, &[]),
        ]
        .concat();
        let globals = wayland::globals(&[("zwlr_foreign_toplevel_manager_v1", 3)]);
        let now = std::sync::Arc::new(std::sync::Mutex::new(stream.clone()));
        let said = now.clone();
        let (env, _runtime) = wayland::play(globals, move || {
            (said.lock().expect("no panic").clone(), true)
        });
        let source = Toplevels::new(&env);
        assert_eq!(read(&source), (2, vec![Window::of(0, "editor")]));
        // A compositor that breaks the protocol is a fault of this source, where the library panics, too.
        let resolver = FakePlace::new().resolver();
        let is_fault = |bytes: &[u8]| {
            *now.lock().expect("no panic") = bytes.to_vec();
            let (to, _from) = std::sync::mpsc::sync_channel(1024);
            let out = Out::new("toplevel", resolver.clone(), to);
            caught(|| Toplevels::new(&env).run(&out)).is_err()
        };
        let twice = event(4, 0, &words(&[one])).repeat(2);
        let rubbish = [twice, event(one, 99, &[]), vec![0xff; 64], vec![0; 64]];
        assert!(rubbish.iter().all(|bytes| is_fault(bytes)));
        mutate(&stream, |bytes| assert!(is_fault(bytes)));
    }

    #[test]
    fn more_windows_than_any_desktop_has_are_not_believed() {
        let mut state = Windows::default();
        (0..WINDOWS_MOST as u32).for_each(|number| state.add(number));
        assert!(!state.finished);
        (0..9).for_each(|number| state.add(u32::MAX - number));
        assert_eq!((state.all.len(), state.finished), (WINDOWS_MOST, true));
    }

    #[test]
    fn a_dialog_counts_for_its_parent_and_a_ring_ends() {
        let mut state = Windows::default();
        for (number, id, parent, active) in [
            (1, "editor", None, false),
            (2, "portal", Some(1), false),
            (3, "dialog", Some(2), true),
        ] {
            let window = Toplevel {
                id: id.into(),
                active,
                parent,
                shown: false,
            };
            state.all.insert(number, window);
            state.done(number);
        }
        assert_eq!(state.front(), [Window::of(0, "editor")]);
        state.close(1);
        assert_eq!(state.front(), [Window::of(0, "portal")]);
        state.all.entry(2).or_default().parent = Some(3);
        assert_eq!(state.front().len(), 1);
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
