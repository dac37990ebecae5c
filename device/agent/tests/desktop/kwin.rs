// SPDX-License-Identifier: GPL-2.0-only
//! KWin on a virtual screen; windows are activated as its runner does. KWin 5 has a file capability that execve refuses
//! where the capability is out of bounds: a copy without it is started there. A copy of KWin 6 has no plug-in.

use crate::harness::{self, Agent, Session};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use zbus::zvariant::OwnedValue;
use zbus::Connection;

const TITLES: [&str; 3] = ["fasttrack-one", "fasttrack-two", "fasttrack-three"];
type Match = (
    String,
    String,
    String,
    i32,
    f64,
    HashMap<String, OwnedValue>,
);

/// What is started as KWin.
fn program(session: &Session) -> PathBuf {
    let from = ["/usr/bin/kwin_wayland", "/usr/local/bin/kwin_wayland"];
    let mut from = from.map(PathBuf::from).into_iter();
    let from = from.find(|path| path.exists()).expect("KWin");
    let mut version = session.command(&[from.to_str().expect("a path"), "--version"]);
    if version.status().is_ok() {
        return from;
    }
    let copy = session.path("kwin_wayland");
    std::fs::copy(from, &copy).expect("a copy");
    copy
}

fn kwin(session: &mut Session) -> u32 {
    let program = program(session);
    for (name, value) in [
        ("KWIN_COMPOSE", "Q"),
        ("LIBGL_ALWAYS_SOFTWARE", "1"),
        ("WAYLAND_DISPLAY", "wayland-kwin"),
    ] {
        session.set(name, value);
    }
    let program = program.to_str().expect("a path").to_string();
    let pid = session.start(&[
        &program,
        "--virtual",
        "--no-lockscreen",
        "--socket",
        "wayland-kwin",
    ]);
    let socket = session.path("wayland-kwin");
    harness::until("KWin", || UnixStream::connect(&socket).ok());
    pid
}

/// What KWin's runner finds: a window's number by its title.
async fn number(bus: &Connection, title: &str) -> Option<String> {
    let runner = Some("org.kde.krunner1");
    let reply = bus
        .call_method(
            Some("org.kde.KWin"),
            "/WindowsRunner",
            runner,
            "Match",
            &title,
        )
        .await
        .ok()?;
    let matches: Vec<Match> = reply.body().deserialize().ok()?;
    matches
        .into_iter()
        .map(|one| one.0)
        .find(|id| id.starts_with("0_"))
}

async fn activate(bus: &Connection, id: &str) {
    let runner = Some("org.kde.krunner1");
    bus.call_method(
        Some("org.kde.KWin"),
        "/WindowsRunner",
        runner,
        "Run",
        &(id, ""),
    )
    .await
    .expect("KWin");
}

fn windows(session: &mut Session, agent: &Agent) -> Vec<u32> {
    let open = |title: &&str| {
        let pid = session.start(&["weston-eventdemo", &format!("--title={title}")]);
        agent.settle(pid);
        pid
    };
    TITLES.iter().map(open).collect()
}

/// The groups of apps that have a window with this in its title, by the agent.
async fn groups(bus: &Connection, part: &str) -> zbus::Result<Vec<String>> {
    let agent = fasttrack_bus::AgentProxy::new(bus).await?;
    agent.groups_of_title(part).await
}

#[test]
#[ignore = "needs KWin"]
fn each_switch_is_reported_with_nobody_in_between_at_most() {
    if harness::skipped(&["kwin_wayland", "dbus-daemon", "weston-eventdemo"]) {
        return;
    }
    let mut session = Session::new();
    let address = session.bus();
    kwin(&mut session);
    let agent = session.agent(&["--source", "kde"]);
    let pids = windows(&mut session, &agent);
    let runtime = harness::runtime();
    let bus = harness::connect(&runtime, &address);
    let ids =
        TITLES.map(|title| harness::until("window", || runtime.block_on(number(&bus, title))));
    // The second time what the first has left would be in the way.
    for _ in 0..2 {
        let groups = |part| runtime.block_on(groups(&bus, part)).expect("asked");
        assert_eq!(groups("TTRACK-TWO").len(), 1);
        assert_eq!(groups("fasttrack-four"), [""; 0]);
    }
    let mut times = Vec::new();
    for switch in 0..harness::switches() {
        let which = switch % pids.len();
        let begin = Instant::now();
        runtime.block_on(activate(&bus, &ids[which]));
        times.push(agent.front(pids[which]).saturating_duration_since(begin));
    }
    harness::print("kwin", times, &agent);
    harness::idles(&agent, Duration::from_secs(10));
}
