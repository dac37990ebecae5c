// SPDX-License-Identifier: GPL-2.0-only
//! `doctor`, with a stand-in for the daemon on a bus of the test's own and a system's files in a folder.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

#[path = "../../daemon/tests/common/bus.rs"]
mod bus;

use bus::Bus;
use fasttrack_bus::{SessionStatus, Status, NAME, PATH};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use zbus::Connection;

/// Answers what it was told to answer.
#[derive(Clone)]
struct Daemon(Arc<Mutex<Status>>);

#[zbus::interface(name = "org.fasttrack1.Manager")]
impl Daemon {
    fn status(&self) -> Status {
        self.0.lock().expect("no panic").clone()
    }
}

fn well() -> Status {
    Status {
        version: "1".to_string(),
        rung: "weights".to_string(),
        notes: Vec::new(),
        sessions: vec![session("", &["sway"])],
        apps: Vec::new(),
        frozen: Vec::new(),
        counters: [].into(),
        errors: Vec::new(),
    }
}

fn session(quiet: &str, sources: &[&str]) -> SessionStatus {
    SessionStatus {
        session: "c1".to_string(),
        user: 1000,
        seat: "seat0".to_string(),
        active: true,
        agent: 7,
        reports: 3,
        quiet: quiet.to_string(),
        sources: sources.iter().map(ToString::to_string).collect(),
    }
}

struct Stage {
    bus: Bus,
    runtime: Runtime,
    daemon: Daemon,
    root: TempDir,
    _served: Connection,
}

impl Stage {
    fn new() -> Option<Stage> {
        let bus = Bus::start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let daemon = Daemon(Arc::new(Mutex::new(well())));
        let served = runtime.block_on(async {
            let connection = bus.connect().await;
            let server = connection.object_server();
            server.at(PATH, daemon.clone()).await.expect("served");
            connection.request_name(NAME).await.expect("a name");
            connection
        });
        let stage = Stage {
            bus,
            runtime,
            daemon,
            root: tempfile::tempdir().expect("a folder"),
            _served: served,
        };
        stage.put(
            "proc/self/mounts",
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        );
        Some(stage)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn says(&self, change: impl FnOnce(&mut Status)) {
        let mut status = well();
        change(&mut status);
        *self.daemon.0.lock().expect("no panic") = status;
    }

    /// What doctor says of something.
    fn of(&self, what: &str) -> String {
        self.of_on(&self.bus.address, what)
    }

    fn of_on(&self, bus: &str, what: &str) -> String {
        let root = self.root.path().to_str().expect("text");
        let output = Command::new(env!("CARGO_BIN_EXE_fasttrackctl"))
            .args(["--bus", bus, "--root", root, "doctor"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin")
            .output()
            .expect("run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_it = |line: &&str| line[4..].trim_start().starts_with(&format!("{what}:"));
        let found: Vec<&str> = text.lines().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(output.status.success(), !text.contains("BAD "), "{text}");
        found[0].to_string()
    }
}

fn good(line: &str, words: &str) {
    assert!(line.starts_with("ok ") && line.contains(words), "{line}");
}

fn bad(line: &str, words: &str) {
    assert!(line.starts_with("BAD ") && line.contains(words), "{line}");
}

#[test]
fn a_session_is_well_while_somebody_tells_who_is_in_front() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let of = |quiet: &str, sources: &[&str]| {
        stage.says(|status| status.sessions = vec![session(quiet, sources)]);
        stage.of("agent")
    };
    good(&of("", &["sway", "launch"]), "the focus is told by sway");
    good(&of("the screen is locked or off", &["x11"]), "locked");
    good(
        &of("no window has the focus", &["x11"]),
        "nobody is in front",
    );
    let cannot = "weston cannot tell which app has the focus";
    bad(&of(cannot, &["none"]), "fasttrack-agent --list");
    bad(
        &of("2 apps say that they have the focus", &["gnome"]),
        "2 apps",
    );
    bad(
        &of("its agent has not said who has the focus", &[]),
        "journalctl",
    );
    stage.says(|status| status.sessions.clear());
    bad(&stage.of("agent"), "fasttrack-agent --start");
}

#[test]
fn a_kernel_that_is_off_may_be_meant_to_be() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let folder = "sys/kernel/fasttrack";
    good(&stage.of("kernel"), "no FastTrack");
    stage.put(&format!("{folder}/enabled"), "1\n");
    good(&stage.of("kernel"), "switched on");
    stage.put(&format!("{folder}/enabled"), "0\n");
    bad(&stage.of("kernel"), "by somebody: 'echo 1");
    let note = "kernel: /sys/kernel/fasttrack/lease_ms: permission denied.";
    stage.says(|status| status.notes = vec![note.to_string()]);
    bad(&stage.of("kernel"), note);
    bad(
        &stage.of_on("unix:path=/nowhere", "kernel"),
        "when it starts",
    );
    stage.put(
        "etc/fasttrack/fasttrackd.toml",
        "[effects]\nkernel = false\n",
    );
    good(&stage.of("kernel"), "kernel = false");
    good(
        &stage.of_on("unix:path=/nowhere", "kernel"),
        "kernel = false",
    );
    stage.put(&format!("{folder}/ejected"), "stuck\n");
    bad(&stage.of("kernel"), "switched itself off (stuck): 'echo 1");
}

#[test]
fn programs_that_are_missing_are_named() {
    let Some(stage) = Stage::new() else {
        return;
    };
    good(&stage.of("sound"), "no PipeWire");
    stage.put("usr/bin/pipewire", "");
    bad(&stage.of("sound"), "pw-dump is missing");
    stage.put("etc/xdg/fasttrack/agent.toml", "without = [\"pipewire\"]\n");
    good(&stage.of("sound"), "configuration");
    stage.put("etc/xdg/fasttrack/agent.toml", "");
    stage.put("usr/local/bin/pw-dump", "");
    good(&stage.of("sound"), "pw-dump");

    bad(&stage.of("polkit"), "install");
    let polkit = stage.runtime.block_on(async {
        let polkit = stage.bus.connect().await;
        let name = polkit.request_name("org.freedesktop.PolicyKit1");
        name.await.expect("a name");
        polkit
    });
    good(&stage.of("polkit"), "by hand");
    drop(polkit);
}
