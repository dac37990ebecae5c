// SPDX-License-Identifier: GPL-2.0-only
//! niri, by the stream of events of its IPC (niri wiki, "IPC, niri msg"): JSON, a line each. Windows have a PID unless
//! the compositor could not learn it.

use crate::env::Env;
use crate::fault::Fault;
use crate::socket;
use crate::source::{Out, Probe, Source};
use crate::window::{pid, Titled, Window};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Most windows that are remembered.
const WINDOWS_MOST: usize = 4096;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    err: Option<String>,
    windows_changed: Option<Windows>,
    window_opened_or_changed: Option<Opened>,
    window_closed: Option<Closed>,
    window_focus_changed: Option<Focus>,
}

#[derive(Deserialize)]
struct Windows {
    windows: Vec<One>,
}

#[derive(Deserialize)]
struct Opened {
    window: One,
}

#[derive(Deserialize)]
struct Closed {
    id: u64,
}

#[derive(Deserialize)]
struct Focus {
    id: Option<u64>,
}

#[derive(Deserialize)]
struct One {
    id: u64,
    title: Option<String>,
    app_id: Option<String>,
    pid: Option<i64>,
    #[serde(default)]
    is_focused: bool,
}

impl One {
    fn window(self) -> Window {
        Window::of(pid(self.pid.unwrap_or(0)), self.app_id.unwrap_or_default())
    }
}

/// Reads a line: all windows with their titles, if it tells them.
pub fn titles(line: &[u8]) -> Result<Option<Vec<Titled>>, Fault> {
    let message: Message = serde_json::from_slice(line)?;
    let titled = |mut one: One| (one.title.take().unwrap_or_default(), one.window());
    let all = message.windows_changed;
    Ok(all.map(|all| all.windows.into_iter().map(titled).collect()))
}

/// What follows from a line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Step {
    /// The focus may be another one.
    pub focus: bool,
    /// A window that has opened.
    pub opened: Option<Window>,
}

/// The windows of a niri.
#[derive(Debug, Default, Clone)]
pub struct State {
    windows: BTreeMap<u64, Window>,
    focused: Option<u64>,
}

impl State {
    /// Takes a line.
    pub fn take(&mut self, line: &[u8]) -> Result<Step, Fault> {
        // A word alone is an answer; an object is an answer or an event, of which new ones may come.
        let message: Message = serde_json::from_slice(line)?;
        let mut step = Step::default();
        if let Some(why) = message.err {
            return Err(Fault(format!("niri refuses: {why}")));
        }
        if let Some(all) = message.windows_changed {
            self.windows.clear();
            self.focused = None;
            all.windows.into_iter().for_each(|one| drop(self.add(one)));
            step.focus = true;
        }
        if let Some(opened) = message.window_opened_or_changed {
            step.opened = self.add(opened.window);
            step.focus = true;
        }
        if let Some(closed) = message.window_closed {
            self.windows.remove(&closed.id);
            self.focused = self.focused.filter(|id| *id != closed.id);
            step.focus = true;
        }
        if let Some(focus) = message.window_focus_changed {
            self.focused = focus.id;
            step.focus = true;
        }
        Ok(step)
    }

    /// The window that has the focus.
    pub fn focused(&self) -> Option<&Window> {
        self.windows.get(&self.focused?)
    }

    /// Adds or changes a window; tells one that is new.
    fn add(&mut self, one: One) -> Option<Window> {
        if one.is_focused {
            self.focused = Some(one.id);
        } else if self.focused == Some(one.id) {
            self.focused = None;
        }
        if self.windows.len() >= WINDOWS_MOST && !self.windows.contains_key(&one.id) {
            return None;
        }
        let (id, window) = (one.id, one.window());
        let before = self.windows.insert(id, window.clone());
        before.is_none().then_some(window)
    }
}

/// Asks for the stream of events. The first of them tell what there is.
fn events(mut stream: UnixStream) -> Result<BufReader<UnixStream>, Fault> {
    stream.write_all(b"\"EventStream\"\n")?;
    Ok(BufReader::new(stream))
}

/// A running niri.
pub struct Niri {
    sockets: Vec<PathBuf>,
}

impl Niri {
    /// At `NIRI_SOCKET` or, after a restart, where the newest socket of this user is.
    pub fn new(env: &Env) -> Niri {
        let mut sockets: Vec<PathBuf> = env
            .var("NIRI_SOCKET")
            .map(PathBuf::from)
            .into_iter()
            .collect();
        sockets.extend(env.sockets(|name| name.starts_with("niri.") && name.ends_with(".sock")));
        Niri { sockets }
    }

    fn socket(&self) -> Result<&PathBuf, Fault> {
        let there = self
            .sockets
            .iter()
            .find(|path| socket::connect(path).is_ok());
        there.ok_or_else(|| Fault::new("niri does not run here"))
    }
}

impl Source for Niri {
    fn name(&self) -> &'static str {
        "niri"
    }

    fn probe(&self) -> Probe {
        match self.socket() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        let mut lines = events(socket::connect_for_answers(self.socket()?)?)?;
        let mut room = Vec::new();
        while let Some(line) = socket::line(&mut lines, &mut room)? {
            if let Some(all) = titles(line)? {
                return Ok(all);
            }
        }
        Err(Fault::new("niri does not say which windows there are"))
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let mut lines = events(socket::connect(self.socket()?)?)?;
        let (mut room, mut state) = (Vec::new(), State::default());
        while let Some(line) = socket::line(&mut lines, &mut room)? {
            let step = state.take(line)?;
            if let Some(window) = step.opened {
                out.window(&window)?;
            }
            match (step.focus, state.focused()) {
                (true, Some(window)) => out.front(std::slice::from_ref(window))?,
                (true, None) => out.nobody()?,
                (false, _) => {}
            }
        }
        Err(Fault::new(
            "it has closed the connection: it has ended or restarts",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::testing::{mutate, FakePlace};
    use fasttrack_detector::report::Report;
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    /// Written by the documented protocol, not recorded.
    const EVENTS: &[u8] = include_bytes!("../tests/streams/niri-events.txt");

    fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
    }

    #[test]
    fn the_focus_is_followed() {
        let mut state = State::default();
        let mut fronts = Vec::new();
        let mut opened = Vec::new();
        for line in lines(EVENTS) {
            let step = state.take(line).expect("a line");
            opened.extend(step.opened);
            if step.focus {
                fronts.push(
                    state
                        .focused()
                        .map(|window| window.id.clone())
                        .unwrap_or_default(),
                );
            }
        }
        let file = "org.gnome.Nautilus";
        assert_eq!(fronts, ["foot", "firefox", file, file, "foot", "", ""]);
        assert_eq!(opened, [Window::of(0, file)]);
        assert!(state.take(br#"{"Err":"no"}"#).is_err());
        assert!(state.take(br#"{"Windo"#).is_err());
    }

    #[test]
    fn titles_are_those_of_the_first_list() {
        let all = lines(EVENTS).find_map(|line| titles(line).expect("a line"));
        let one = |title: &str, pid, id| (title.to_string(), Window::of(pid, id));
        let expected = [one("foot", 7, "foot"), one("Firefox", 8, "firefox")];
        assert_eq!(all.expect("a list"), expected);
    }

    #[test]
    fn spoilt_streams_do_no_harm() {
        mutate(EVENTS, |bytes| {
            let mut state = State::default();
            lines(bytes).for_each(|line| drop(state.take(line)));
        });
    }

    #[test]
    fn a_compositor_that_closes_half_way_is_a_fault_after_what_it_said() {
        let fake = FakePlace::new();
        let app = fake.app("app-foot-7.scope", 7);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("niri.sock");
        let server = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            drop(server.accept());
            let (mut stream, _) = server.accept().expect("a reader");
            let mut request = [0; 14];
            stream.read_exact(&mut request).expect("a request");
            let half = EVENTS.len() * 2 / 3;
            stream
                .write_all(&EVENTS[..half])
                .expect("some lines and a half");
        });
        let (to, from) = std::sync::mpsc::sync_channel(64);
        let env = Env::of([("NIRI_SOCKET", path.to_str().expect("a path"))]);
        let out = Out::new("niri", fake.resolver(), to);
        let fault = Niri::new(&env).run(&out).expect_err("half a line");
        assert!(fault.0.contains("middle"), "{fault}");
        assert_eq!(from.recv(), Ok(Event::Focus(Report::Front(vec![app]))));
    }
}
