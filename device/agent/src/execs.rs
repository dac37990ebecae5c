// SPDX-License-Identifier: GPL-2.0-only
//! Launches that sway or i3 is told by a key: their event `binding` has the command, and an `exec` in it is a launch,
//! long before its window. What it starts is in the window manager's own control group, and gets a scope.
//!
//! A launcher that is started in this way has the scope, and so what it starts. `swaymsg exec` has no event.

use crate::begin::{self, By};
use crate::env::Env;
use crate::fault::Fault;
use crate::i3ipc::{self, I3Ipc};
use crate::socket;
use crate::source::{Out, Probe, Source};
use serde::Deserialize;

const EVENT_BINDING: u32 = i3ipc::EVENT | 5;
const EVENTS: &str = r#"["binding"]"#;

#[derive(Deserialize)]
struct Message {
    binding: Option<Binding>,
}

#[derive(Deserialize)]
struct Binding {
    command: Option<String>,
}

/// The name of the program that a binding has started, if it has.
pub fn started(text: &[u8]) -> Result<Option<String>, Fault> {
    let message: Message = serde_json::from_slice(text)?;
    let command = message.binding.and_then(|binding| binding.command);
    Ok(command.and_then(|command| program(&command)))
}

/// The program of the first `exec` in a list of commands.
fn program(commands: &str) -> Option<String> {
    commands.split([';', ',']).find_map(|command| {
        let command = command.trim_start();
        // [app_id=x] exec …
        let command = match command.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.1,
            None => command,
        };
        let mut words = command.split_whitespace();
        words
            .next()
            .filter(|word| matches!(*word, "exec" | "exec_always"))?;
        let word = words.find(|word| !word.starts_with("--"))?;
        let word = word.trim_matches(['"', '\'']);
        word.rsplit('/').next().map(str::to_string)
    })
}

/// sway's or i3's bindings.
pub struct Execs {
    managers: [I3Ipc; 2],
}

impl Execs {
    /// Where one of the two runs.
    pub fn new(env: &Env) -> Execs {
        Execs {
            managers: [I3Ipc::sway(env), I3Ipc::i3(env)],
        }
    }

    fn manager(&self) -> Option<&I3Ipc> {
        self.managers.iter().find(|one| one.probe() == Probe::Yes)
    }
}

impl Source for Execs {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn probe(&self) -> Probe {
        match self.manager() {
            Some(_) => Probe::Yes,
            None => Probe::No("neither sway nor i3 answers".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let manager = self
            .manager()
            .ok_or_else(|| Fault::new("neither sway nor i3 answers"))?;
        let path = manager.socket()?;
        let pid =
            socket::listener(path).ok_or_else(|| Fault::new("nobody listens at its socket"))?;
        let mut events = socket::connect(path)?;
        i3ipc::subscribe(&mut events, EVENTS)?;
        loop {
            let (kind, text) = i3ipc::read(&mut events)?;
            if kind != EVENT_BINDING {
                continue;
            }
            let group = out.resolver().place().cgroup_of(pid);
            if let (Some(id), Some(group)) = (started(&text)?, group) {
                begin::begin(out, &group, By::Parent(pid), &id)?;
            }
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{mutate, Asked, FakePlace};
    use crate::window::Window;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;

    const EVENT: &[u8] =
        br#"{"change":"run","binding":{"command":"exec foot -e sh","symbol":"t"}}"#;

    #[test]
    fn an_exec_is_found_in_a_list_of_commands() {
        for (commands, name) in [
            ("exec foot", Some("foot")),
            ("exec --no-startup-id /usr/bin/foot -e x", Some("foot")),
            ("workspace 2; exec \"firefox\"", Some("firefox")),
            ("[app_id=x] focus, [class=y] exec_always a", Some("a")),
            ("executive x", None),
            ("focus left; [app_id=x", None),
            ("exec", None),
            ("", None),
        ] {
            assert_eq!(program(commands).as_deref(), name, "{commands:?}");
        }
    }

    #[test]
    fn spoilt_events_do_no_harm() {
        assert_eq!(started(EVENT), Ok(Some("foot".to_string())));
        assert_eq!(started(br#"{"change":"run"}"#), Ok(None));
        mutate(EVENT, |bytes| drop(started(bytes)));
    }

    #[test]
    fn what_a_binding_starts_gets_a_scope() {
        let fake = FakePlace::new();
        fake.uptime("1000.00 0.00");
        let session = "/user.slice/user-1.slice/session-2.scope";
        let own = std::process::id();
        fake.process_of(own, session, 1, 100);
        fake.process_of(own + 1, session, 1, 99_990);
        let runtime = tempfile::tempdir().expect("a directory");
        let path = runtime.path().join("sway.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            let mut message = b"i3-ipc".to_vec();
            message.extend((EVENT.len() as u32).to_ne_bytes());
            message.extend(EVENT_BINDING.to_ne_bytes());
            message.extend(EVENT);
            // Whoever connects: some only look whether somebody listens. Who asks is not hung up on before.
            for stream in listener.incoming() {
                let mut stream = stream.expect("a reader");
                let _ = stream.write_all(&message);
                let _ = stream.read(&mut [0; 256]);
            }
        });
        let env = Env::of([("SWAYSOCK", path.to_str().expect("a path"))]);
        let asked = Arc::new(Asked::default());
        let (to, _from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("exec", fake.resolver(), to).with_scoper(Some(asked.clone()));
        let mut source = Execs::new(&env);
        assert_eq!(source.probe(), Probe::Yes);
        assert!(source.run(&out).is_err());
        let asked = asked.0.lock().expect("no panic");
        assert_eq!(*asked, [Window::of(own + 1, "foot")]);
    }
}
