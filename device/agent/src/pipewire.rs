// SPDX-License-Identifier: GPL-2.0-only
//! Who plays or records: PipeWire's streams that run, read from `pw-dump --monitor`.
//!
//! That program comes with PipeWire and speaks the server's own version of the protocol, which is not stable; its
//! library would need a C compiler's headers where this is built, and the maintained bindings link it. It sleeps until
//! something changes, so it costs no polling.

use crate::env::Env;
use crate::fault::Fault;
use crate::inhibit;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use fasttrack_detector::report::{AppRef, Sense};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "pw-dump";
/// Speaks for clients of PulseAudio's protocol, whose PIDs they say themselves.
const PULSE: &str = "pipewire-pulse";
/// Most objects that are remembered.
const OBJECTS_MOST: usize = 4096;

#[derive(Deserialize)]
struct Object {
    id: u32,
    #[serde(rename = "type", default)]
    kind: String,
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    props: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(rename = "output-node-id")]
    output: Option<u32>,
    #[serde(rename = "input-node-id")]
    input: Option<u32>,
}

/// What of an object matters.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// A client: its PID as the server knows it, and as it says.
    Client(u32, u32),
    Node(Node),
    /// A link: from this node to that one.
    Link(u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    client: u32,
    class: String,
    camera: bool,
    running: bool,
    said: u32,
}

/// A process that can be noticed, and by what; the second PID is what a client of PulseAudio's protocol says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noticed {
    /// By the server.
    pub pid: u32,
    /// By the client.
    pub said: u32,
    /// By what.
    pub sense: Sense,
}

/// The objects of a server.
#[derive(Debug, Default)]
pub struct Graph(BTreeMap<u32, Known>);

impl Graph {
    /// Takes one array of changes.
    fn take(&mut self, changes: Vec<Object>) {
        for object in changes {
            let room = self.0.len() < OBJECTS_MOST || self.0.contains_key(&object.id);
            match object.info.and_then(|info| known(&object.kind, info)) {
                Some(known) if room => drop(self.0.insert(object.id, known)),
                Some(_) => {}
                None => drop(self.0.remove(&object.id)),
            }
        }
    }

    /// Who can be noticed now.
    pub fn noticed(&self) -> Vec<Noticed> {
        let nodes = self.0.iter().filter_map(|(id, known)| match known {
            Known::Node(node) if node.running => Some((*id, node)),
            _ => None,
        });
        nodes
            .filter_map(|(id, node)| self.notice(id, node))
            .collect()
    }

    fn notice(&self, id: u32, node: &Node) -> Option<Noticed> {
        let sense = match node.class.as_str() {
            "Stream/Output/Audio" | "Stream/Input/Audio" => Sense::Audio,
            "Stream/Input/Video" if self.sees_camera(id) => Sense::Camera,
            "Stream/Input/Video" => Sense::ScreenCast,
            _ => return None,
        };
        let (pid, said) = match self.0.get(&node.client) {
            Some(Known::Client(pid, said)) => (*pid, *said),
            _ => (0, 0),
        };
        let said = if node.said > 0 { node.said } else { said };
        Some(Noticed { pid, said, sense })
    }

    fn sees_camera(&self, id: u32) -> bool {
        let sources = self.0.values().filter_map(|known| match known {
            Known::Link(from, to) if *to == id => self.0.get(from),
            _ => None,
        });
        sources
            .into_iter()
            .any(|source| matches!(source, Known::Node(node) if node.camera))
    }
}

fn known(kind: &str, info: Info) -> Option<Known> {
    let props = info.props.unwrap_or_default();
    let text = |name: &str| {
        props
            .get(name)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
            .to_string()
    };
    match kind.rsplit(':').next()? {
        "Client" => Some(Known::Client(
            number(&props, "pipewire.sec.pid"),
            number(&props, "application.process.id"),
        )),
        "Node" => Some(Known::Node(Node {
            client: number(&props, "client.id"),
            camera: text("media.role") == "Camera",
            class: text("media.class"),
            running: info.state.as_deref() == Some("running"),
            said: number(&props, "application.process.id"),
        })),
        "Link" => Some(Known::Link(info.output?, info.input?)),
        _ => None,
    }
}

/// A number, which is text in some versions.
fn number(props: &BTreeMap<String, serde_json::Value>, name: &str) -> u32 {
    let value = props.get(name);
    let number = value.and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
    crate::window::pid(number.unwrap_or(0))
}

/// Reads arrays of changes, one after the other, and hands over who can be noticed after each.
pub fn read(
    from: impl Read,
    graph: &mut Graph,
    mut then: impl FnMut(Vec<Noticed>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for changes in serde_json::Deserializer::from_reader(from).into_iter::<Vec<Object>>() {
        graph.take(changes?);
        then(graph.noticed())?;
    }
    Ok(())
}

/// A session with PipeWire.
pub struct PipeWire {
    there: bool,
}

impl PipeWire {
    /// Where its socket is in the runtime directory.
    pub fn new(env: &Env) -> PipeWire {
        PipeWire {
            there: env.runtime("pipewire-0").is_some_and(|path| path.exists()),
        }
    }
}

impl Source for PipeWire {
    fn name(&self) -> &'static str {
        "pipewire"
    }

    fn probe(&self) -> Probe {
        match self.there {
            true => Probe::Yes,
            false => Probe::No("PipeWire does not run here".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let mut dump = Dump(start()?);
        let from = dump
            .0
            .stdout
            .take()
            .ok_or_else(|| Fault::new("pw-dump has no output"))?;
        let mut before: Vec<(Sense, Vec<AppRef>)> = Vec::new();
        let from = std::io::BufReader::new(from);
        let result = read(from, &mut Graph::default(), |noticed| {
            before = tell(&before, &noticed, out)?;
            Ok(())
        });
        tell(&before, &[], out)?;
        result.and(Err(Fault::new(
            "pw-dump has ended: PipeWire has ended or restarts",
        )))
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

/// Ends with its owner.
struct Dump(Child);

impl Drop for Dump {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> Result<Child, Fault> {
    let mut command = Command::new(PROGRAM);
    command
        .args(["--monitor", "--no-colors"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().map_err(|error| {
        Fault(format!(
            "{PROGRAM} cannot be started (package pipewire-bin): {error}"
        ))
    })
}

fn tell(
    before: &[(Sense, Vec<AppRef>)],
    noticed: &[Noticed],
    out: &Out,
) -> Result<Vec<(Sense, Vec<AppRef>)>, Fault> {
    let mut now = Vec::new();
    for sense in [Sense::Audio, Sense::Camera, Sense::ScreenCast] {
        let some = noticed.iter().filter(|one| one.sense == sense);
        let pids: Vec<u32> = some
            .map(|one| process(one, out.resolver().place()))
            .collect();
        let apps = inhibit::apps(&pids, out);
        let old = before.iter().find(|(one, _)| *one == sense);
        inhibit::tell(old.map_or(&[], |(_, apps)| apps), &apps, sense, out)?;
        now.push((sense, apps));
    }
    Ok(now)
}

/// What a client says itself is taken where the server knows only PulseAudio's.
fn process(one: &Noticed, place: &Place) -> u32 {
    let pulse = place.program(one.pid).is_some_and(|name| name == PULSE);
    match one.pid == 0 || pulse {
        true => one.said,
        false => one.pid,
    }
}

#[cfg(test)]
#[path = "pipewire_tests.rs"]
mod tests;
