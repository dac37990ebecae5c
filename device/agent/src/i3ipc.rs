// SPDX-License-Identifier: GPL-2.0-only
//! sway and i3, by their IPC (i3 manual, "IPC interface"; sway-ipc(7)).
//!
//! sway's events carry the PID of the window's client, right for Xwayland too. i3's carry the X11 window alone, whose
//! PID the X server knows. A container without a window, and the end of the focused window, are asked of the tree.

use crate::env::Env;
use crate::fault::Fault;
use crate::socket;
use crate::source::{Out, Probe, Source};
use crate::window::{pid, Titled, Window};
use crate::x11::Clients;
use serde::Deserialize;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 6] = b"i3-ipc";
/// Longest message, bytes: a tree of a thousand windows is about 1 MiB.
const MESSAGE_MOST: u32 = 16 << 20;
const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;
/// Set in the kinds of events.
pub const EVENT: u32 = 1 << 31;
const EVENT_WORKSPACE: u32 = EVENT;
const EVENT_WINDOW: u32 = EVENT | 3;
const EVENT_SHUTDOWN: u32 = EVENT | 6;
const EVENTS: &str = r#"["window","workspace","shutdown"]"#;

/// What an event means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// This window has the focus.
    Front(Found),
    /// No window has it.
    Nobody,
    /// A window has opened.
    Opened(Found),
    /// The tree has to be asked.
    Ask,
    /// The window manager ends.
    Ended,
    /// Of no interest.
    Nothing,
}

/// A window in a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What is known of it.
    pub window: Window,
    /// Its X11 number, zero for Wayland's.
    pub x11: u32,
}

#[derive(Deserialize)]
struct Message {
    change: Option<String>,
    container: Option<Node>,
    current: Option<Node>,
}

#[derive(Deserialize)]
struct Properties {
    class: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    id: Option<i64>,
    name: Option<String>,
    focused: Option<bool>,
    #[serde(default)]
    focus: Vec<i64>,
    pid: Option<i64>,
    window: Option<u32>,
    app_id: Option<String>,
    window_properties: Option<Properties>,
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    floating_nodes: Vec<Node>,
}

impl Node {
    fn found(&self) -> Option<Found> {
        let class = self
            .window_properties
            .as_ref()
            .and_then(|all| all.class.as_ref());
        let id = self.app_id.as_ref().or(class).cloned().unwrap_or_default();
        let found = Found {
            window: Window::of(pid(self.pid.unwrap_or(0)), id),
            x11: self.window.unwrap_or(0),
        };
        (found.window.pid > 0 || found.x11 > 0).then_some(found)
    }

    fn children(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().chain(&self.floating_nodes)
    }

    fn focused(&self) -> Option<&Node> {
        match self.focused {
            Some(true) => Some(self),
            _ => self.children().find_map(Node::focused),
        }
    }

    /// Where the focus would go, down from a container that has it.
    fn leaf(&self) -> Option<Found> {
        self.found().or_else(|| {
            let first = self.focus.first()?;
            self.children().find(|node| node.id == Some(*first))?.leaf()
        })
    }
}

/// Reads an event.
pub fn event(kind: u32, payload: &[u8]) -> Result<Step, Fault> {
    if ![EVENT_WORKSPACE, EVENT_WINDOW, EVENT_SHUTDOWN].contains(&kind) {
        return Ok(Step::Nothing);
    }
    let message: Message = serde_json::from_slice(payload)?;
    let change = message.change.as_deref().unwrap_or_default();
    Ok(match (kind, change) {
        (EVENT_WINDOW, change) => window(change, message.container.as_ref()),
        (EVENT_WORKSPACE, "focus") => match &message.current {
            Some(current) if current.focus.is_empty() && current.focused == Some(true) => {
                Step::Nobody
            }
            _ => Step::Ask,
        },
        (EVENT_SHUTDOWN, _) => Step::Ended,
        _ => Step::Nothing,
    })
}

fn window(change: &str, container: Option<&Node>) -> Step {
    let found = container.and_then(Node::found);
    let focused = container.is_some_and(|node| node.focused == Some(true));
    match (change, found) {
        ("focus", Some(found)) => Step::Front(found),
        ("new", Some(found)) => Step::Opened(found),
        ("focus", None) => Step::Ask,
        ("close", _) if focused => Step::Ask,
        _ => Step::Nothing,
    }
}

/// The window that has the focus, in a tree.
pub fn focused(tree: &[u8]) -> Result<Option<Found>, Fault> {
    let root: Node = serde_json::from_slice(tree)?;
    Ok(root.focused().and_then(Node::leaf))
}

/// The windows in a tree, with their titles.
pub fn titles(tree: &[u8]) -> Result<Vec<(String, Found)>, Fault> {
    fn add(node: &Node, into: &mut Vec<(String, Found)>) {
        if let (Some(name), Some(found)) = (&node.name, node.found()) {
            into.push((name.clone(), found));
        }
        node.children().for_each(|child| add(child, into));
    }
    let mut all = Vec::new();
    add(&serde_json::from_slice(tree)?, &mut all);
    Ok(all)
}

/// Reads a message: its kind and its text.
pub fn read(from: &mut impl Read) -> Result<(u32, Vec<u8>), Fault> {
    let mut head = [0; 14];
    from.read_exact(&mut head)?;
    let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, kind) = (word(6), word(10));
    if !head.starts_with(MAGIC) || length > MESSAGE_MOST {
        return Err(Fault::new(
            "it sent what is not its protocol: a bad head of a message",
        ));
    }
    let mut text = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut text)?;
    match text.len() == length as usize {
        true => Ok((kind, text)),
        false => Err(Fault::new(
            "it closed the connection in the middle of a message",
        )),
    }
}

fn write(to: &mut impl Write, kind: u32, text: &str) -> Result<(), Fault> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((text.len() as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(text.as_bytes());
    Ok(to.write_all(&bytes)?)
}

/// Asks for events.
pub fn subscribe(to: &mut impl Write, events: &str) -> Result<(), Fault> {
    write(to, SUBSCRIBE, events)
}

/// sway or i3.
pub struct I3Ipc {
    name: &'static str,
    sockets: Vec<PathBuf>,
    display: Option<String>,
}

impl I3Ipc {
    /// sway, at `SWAYSOCK` or, after a restart, where the newest socket of this user is.
    pub fn sway(env: &Env) -> I3Ipc {
        let mut sockets: Vec<PathBuf> =
            env.var("SWAYSOCK").map(PathBuf::from).into_iter().collect();
        sockets
            .extend(env.sockets(|name| name.starts_with("sway-ipc.") && name.ends_with(".sock")));
        I3Ipc {
            name: "sway",
            sockets,
            display: None,
        }
    }

    /// i3, at `I3SOCK`.
    pub fn i3(env: &Env) -> I3Ipc {
        let mut sockets: Vec<PathBuf> = env.var("I3SOCK").map(PathBuf::from).into_iter().collect();
        sockets.extend(env.sockets_in("i3", |name| name.starts_with("ipc-socket.")));
        I3Ipc {
            name: "i3",
            sockets,
            display: env.var("DISPLAY").map(str::to_string),
        }
    }

    /// Where it answers.
    pub fn socket(&self) -> Result<&PathBuf, Fault> {
        let there = self
            .sockets
            .iter()
            .find(|path| socket::connect(path).is_ok());
        there.ok_or_else(|| Fault(format!("no socket of {} answers", self.name)))
    }

    /// Who knows whose an X11 window is, where the events do not say it.
    fn clients(&self) -> Result<Option<Clients>, Fault> {
        self.display.as_deref().map(Clients::connect).transpose()
    }
}

impl Source for I3Ipc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Probe {
        match self.socket() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        let clients = self.clients()?;
        let all = titles(&tree(self.socket()?)?)?.into_iter();
        let each = all.map(|(title, found)| Ok((title, window_of(clients.as_ref(), found)?)));
        each.collect()
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let path = self.socket()?.clone();
        let mut events = socket::connect(&path)?;
        subscribe(&mut events, EVENTS)?;
        let mut session = Session {
            path,
            clients: self.clients()?,
            out,
        };
        session.step(Step::Ask)?;
        loop {
            let (kind, text) = read(&mut events)?;
            match event(kind, &text)? {
                Step::Ended => return Err(Fault::new("the window manager ends or restarts")),
                step => session.step(step)?,
            }
        }
    }
}

struct Session<'a> {
    path: PathBuf,
    clients: Option<Clients>,
    out: &'a Out,
}

impl Session<'_> {
    fn step(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Front(found) => self.out.front(&[self.window(found)?]),
            Step::Opened(found) => self.out.window(&self.window(found)?),
            Step::Nobody => self.out.nobody(),
            Step::Ask => match self.ask()? {
                Some(found) => self.out.front(&[self.window(found)?]),
                None => self.out.nobody(),
            },
            Step::Ended | Step::Nothing => Ok(()),
        }
    }

    fn ask(&self) -> Result<Option<Found>, Fault> {
        focused(&tree(&self.path)?)
    }

    fn window(&self, found: Found) -> Result<Window, Fault> {
        window_of(self.clients.as_ref(), found)
    }
}

/// Asks for the tree.
fn tree(socket: &Path) -> Result<Vec<u8>, Fault> {
    let mut stream = socket::connect_for_answers(socket)?;
    write(&mut stream, GET_TREE, "")?;
    Ok(read(&mut stream)?.1)
}

fn window_of(clients: Option<&Clients>, found: Found) -> Result<Window, Fault> {
    match clients {
        Some(clients) if found.window.pid == 0 => clients.window(found.x11),
        _ => Ok(found.window),
    }
}

#[cfg(test)]
#[path = "i3ipc_tests.rs"]
mod tests;
