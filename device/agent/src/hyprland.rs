// SPDX-License-Identifier: GPL-2.0-only
//! Hyprland: events from its second socket, answers from its first (hyprland wiki, "IPC").
//!
//! The first one is synchronous: the compositor stands still until a connection is closed, up to five seconds. So it is
//! opened, asked and closed at once, and never kept.

use crate::env::Env;
use crate::fault::Fault;
use crate::socket;
use crate::source::{Out, Probe, Source};
use crate::window::{pid, Titled, Window};
use serde::Deserialize;
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};

/// Longest answer, bytes: one window's description is about 1 KiB.
const ANSWER_MOST: u64 = 1 << 20;

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another window has the focus, or the layout says so: it is asked.
    Ask,
    /// No window has the focus.
    Nobody,
    /// A window has opened: its address.
    Opened(String),
    /// Of no interest.
    Nothing,
}

/// Reads a line of events: `NAME>>DATA`.
pub fn parse(line: &[u8]) -> Result<Step, Fault> {
    let text = String::from_utf8_lossy(line);
    let Some((name, data)) = text.split_once(">>") else {
        return Err(Fault::new(
            "it sent what is not its protocol: a line without a name",
        ));
    };
    Ok(match name {
        // The older event carries a title, of any text.
        "activewindowv2" if data.trim_matches([',', ' ']).is_empty() => Step::Nobody,
        "activewindowv2" => Step::Ask,
        "openwindow" => Step::Opened(data.split(',').next().unwrap_or_default().to_string()),
        _ => Step::Nothing,
    })
}

#[derive(Deserialize)]
struct Client {
    #[serde(default)]
    address: String,
    pid: Option<i64>,
    #[serde(default)]
    class: String,
    #[serde(default)]
    title: String,
}

impl Client {
    fn window(self) -> Option<Window> {
        let window = Window::of(pid(self.pid.unwrap_or(0)), self.class);
        (window != Window::default()).then_some(window)
    }
}

/// Reads the answer to `j/activewindow`: an empty object where there is none.
pub fn active(answer: &[u8]) -> Result<Option<Window>, Fault> {
    Ok(serde_json::from_slice::<Client>(answer)?.window())
}

/// Reads the answer to `j/clients`: the window of an address.
pub fn client(answer: &[u8], address: &str) -> Result<Option<Window>, Fault> {
    let all: Vec<Client> = serde_json::from_slice(answer)?;
    let one = all
        .into_iter()
        .find(|one| one.address.trim_start_matches("0x") == address);
    Ok(one.and_then(Client::window))
}

/// Reads the answer to `j/clients`: all windows with their titles.
pub fn titles(answer: &[u8]) -> Result<Vec<Titled>, Fault> {
    let all: Vec<Client> = serde_json::from_slice(answer)?;
    let titled = |mut one: Client| Some((std::mem::take(&mut one.title), one.window()?));
    Ok(all.into_iter().filter_map(titled).collect())
}

/// A running Hyprland.
pub struct Hyprland {
    directories: Vec<PathBuf>,
}

impl Hyprland {
    /// At its instance's directory.
    pub fn new(env: &Env) -> Hyprland {
        let instance = env.var("HYPRLAND_INSTANCE_SIGNATURE");
        let named = instance.and_then(|name| env.runtime(&format!("hypr/{name}")));
        let mut directories: Vec<PathBuf> = named.into_iter().collect();
        if instance.is_some() {
            // After a restart it has another name.
            directories.extend(env.sockets_in("hypr", |_| true));
        }
        Hyprland { directories }
    }

    fn directory(&self) -> Result<&Path, Fault> {
        let there = self
            .directories
            .iter()
            .find(|path| socket::connect(&path.join(".socket2.sock")).is_ok());
        there
            .map(PathBuf::as_path)
            .ok_or_else(|| Fault::new("Hyprland does not run here"))
    }
}

impl Source for Hyprland {
    fn name(&self) -> &'static str {
        "hyprland"
    }

    fn probe(&self) -> Probe {
        match self.directory() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        titles(&ask(self.directory()?, "j/clients")?)
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let directory = self.directory()?.to_path_buf();
        let mut events = BufReader::new(socket::connect(&directory.join(".socket2.sock"))?);
        let mut room = Vec::new();
        front(&directory, out)?;
        while let Some(line) = socket::line(&mut events, &mut room)? {
            match parse(line)? {
                Step::Ask => front(&directory, out)?,
                Step::Nobody => out.nobody()?,
                Step::Opened(address) => {
                    let answer = ask(&directory, "j/clients")?;
                    client(&answer, &address)?.map_or(Ok(()), |window| out.window(&window))?;
                }
                Step::Nothing => {}
            }
        }
        Err(Fault::new(
            "it has closed the connection: it has ended or restarts",
        ))
    }
}

fn front(directory: &Path, out: &Out) -> Result<(), Fault> {
    match active(&ask(directory, "j/activewindow")?)? {
        Some(window) => out.front(&[window]),
        None => out.nobody(),
    }
}

fn ask(directory: &Path, question: &str) -> Result<Vec<u8>, Fault> {
    let mut stream = socket::connect_for_answers(&directory.join(".socket.sock"))?;
    stream.write_all(question.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MOST).read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
#[path = "hyprland_tests.rs"]
mod tests;
