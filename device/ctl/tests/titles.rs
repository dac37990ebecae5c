// SPDX-License-Identifier: GPL-2.0-only
//! `explain` by the title of a window, with stand-ins for the daemon and for the session's agent on one bus.
#![allow(missing_docs)] // what the macros make has no documentation of its own

#[path = "../../daemon/tests/common/bus.rs"]
mod bus;

use bus::Bus;
use fasttrack_bus::{AppStatus, Explanation, WireApp, AGENT_NAME, AGENT_PATH, NAME, PATH};
use std::process::Command;
use zbus::fdo;

struct Daemon;

#[zbus::interface(name = "org.fasttrack1.Manager")]
impl Daemon {
    fn explain(&self, what: &str) -> fdo::Result<Explanation> {
        if !what.starts_with('/') {
            return Err(fdo::Error::InvalidArgs(format!(
                "no app is called {what:?}"
            )));
        }
        let app = WireApp {
            cgroup: what.to_string(),
            inode: 1,
            id: "editor".to_string(),
            pid: 0,
        };
        Ok(Explanation {
            app: AppStatus {
                app,
                class: "foreground".to_string(),
                rule: "focus".to_string(),
                why: "it has the focus".to_string(),
                for_ms: 0,
                session: String::new(),
                user: 0,
            },
            done: Vec::new(),
        })
    }
}

struct Agent;

#[zbus::interface(name = "org.fasttrack1.Agent")]
impl Agent {
    fn groups_of_title(&self, part: &str) -> fdo::Result<Vec<String>> {
        match part {
            "Letter" => Ok(vec!["/editor.scope".to_string()]),
            "Inbox" => Ok(vec!["/mail.scope".to_string(), "/web.scope".to_string()]),
            "None" => Ok(Vec::new()),
            _ => Err(fdo::Error::Failed("gnome tells no titles".to_string())),
        }
    }
}

#[test]
fn a_title_is_asked_of_the_agent_and_the_daemon_of_its_app() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let connect = || runtime.block_on(bus.connect());
    let (daemon, agent) = (connect(), connect());
    let explain = |what: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_fasttrackctl"))
            .args(["--bus", &bus.address, "explain", what])
            .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
            .output()
            .expect("run");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    runtime.block_on(async {
        let server = daemon.object_server();
        server.at(PATH, Daemon).await.expect("served");
        daemon.request_name(NAME).await.expect("a name");
    });
    let (code, text) = explain("Letter");
    assert_eq!(code, Some(2));
    assert!(
        text.contains("no app is called") && text.contains("no agent answers"),
        "{text}"
    );
    runtime.block_on(async {
        let server = agent.object_server();
        server.at(AGENT_PATH, Agent).await.expect("served");
        agent.request_name(AGENT_NAME).await.expect("a name");
    });
    let (code, text) = explain("Letter");
    assert!(
        code == Some(0) && text.contains("foreground because it has the focus"),
        "{text}"
    );
    for (what, expected) in [
        (
            "Inbox",
            "2 apps; name one of them:\n/mail.scope\n/web.scope",
        ),
        ("None", "no window has this in its title"),
        ("Other", "gnome tells no titles"),
    ] {
        let (code, text) = explain(what);
        assert!(code == Some(2) && text.contains(expected), "{text}");
    }
}
