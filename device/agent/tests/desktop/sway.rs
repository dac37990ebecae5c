// SPDX-License-Identifier: GPL-2.0-only
//! sway, headless.

use crate::groups::{self, Groups};
use crate::harness::{self, Agent, Session};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const APPS: [&str; 3] = ["one", "two", "three"];

fn sway(session: &mut Session) -> u32 {
    let socket = session.path("sway.sock");
    let _ = std::fs::remove_file(&socket);
    let pid = session.start(&["sway", "--config", "/dev/null"]);
    harness::until("sway", || UnixStream::connect(&socket).ok());
    pid
}

fn prepare(session: &mut Session) {
    let socket = session.path("sway.sock");
    for (name, value) in [
        ("WLR_BACKENDS", "headless"),
        ("WLR_RENDERER", "pixman"),
        ("WLR_LIBINPUT_NO_DEVICES", "1"),
        ("SWAYSOCK", socket.to_str().expect("a path")),
        ("WAYLAND_DISPLAY", "wayland-1"),
    ] {
        session.set(name, value);
    }
}

fn session() -> Session {
    let mut session = Session::new();
    prepare(&mut session);
    session
}

fn order(socket: &Path, command: &str) {
    let mut stream = UnixStream::connect(socket).expect("sway");
    let mut message = b"i3-ipc".to_vec();
    message.extend((command.len() as u32).to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(command.as_bytes());
    stream.write_all(&message).expect("sway");
    let mut answer = [0; 16];
    stream.read_exact(&mut answer).expect("an answer");
}

/// Windows of a terminal each, in the order in which they come to the front.
fn windows(session: &mut Session, agent: &Agent) -> Vec<u32> {
    let open = |name: &&str| {
        let pid = session.start(&["foot", "--app-id", name, "sleep", "1000"]);
        agent.settle(pid);
        pid
    };
    APPS.iter().map(open).collect()
}

#[test]
#[ignore = "needs sway"]
fn each_switch_is_reported_and_a_restart_is_survived() {
    if harness::skipped(&["sway", "foot"]) {
        return;
    }
    let mut session = session();
    let first = sway(&mut session);
    let agent = session.agent(&[]);
    let pids = windows(&mut session, &agent);
    let socket = session.path("sway.sock");
    let mut times = Vec::new();
    for switch in 0..harness::switches() {
        let which = switch % APPS.len();
        let begin = Instant::now();
        order(&socket, &format!("[app_id={}] focus", APPS[which]));
        times.push(agent.front(pids[which]).saturating_duration_since(begin));
    }
    harness::print("sway", times, &agent);
    harness::idles(&agent, Duration::from_secs(10));

    order(&socket, "workspace 2");
    assert_eq!(agent.next().1["why"], "unfocused");
    session.end(first);
    sway(&mut session);
    let pid = session.start(&["foot", "--app-id", "new", "sleep", "1000"]);
    agent.settle(pid);
}

#[test]
#[ignore = "needs sway"]
fn sway_is_found_though_it_starts_after_the_agent() {
    if harness::skipped(&["sway", "foot"]) {
        return;
    }
    let mut session = session();
    let agent = session.agent(&[]);
    assert_eq!(agent.next().1["why"], "unfocused");
    harness::idles(&agent, Duration::from_secs(10));
    sway(&mut session);
    let pid = session.start(&["foot", "--app-id", "new", "sleep", "1000"]);
    agent.settle(pid);
}

#[test]
#[ignore = "needs sway with Xwayland"]
fn an_x11_client_has_its_own_pid_and_not_xwaylands() {
    if harness::skipped(&["sway", "foot", "Xwayland", "xterm"]) {
        return;
    }
    let mut session = session();
    sway(&mut session);
    let agent = session.agent(&["--source", "sway"]);
    let display = session.path("display");
    let config = format!("exec sh -c 'echo $DISPLAY > {}'", display.display());
    order(&session.path("sway.sock"), &config);
    let name = harness::until("display", || {
        std::fs::read_to_string(&display)
            .ok()
            .filter(|text| text.ends_with('\n'))
    });
    if name.trim().is_empty() {
        eprintln!("SKIPPED: sway has no Xwayland here: is /tmp/.X11-unix root's?");
        return;
    }
    session.set("DISPLAY", name.trim());
    let wayland = session.start(&["foot", "--app-id", "one", "sleep", "1000"]);
    agent.settle(wayland);
    let x11 = session.start(&["xterm", "-e", "sleep", "1000"]);
    agent.settle(x11);
    order(&session.path("sway.sock"), "[app_id=one] focus");
    agent.front(wayland);
    order(&session.path("sway.sock"), "[class=XTerm] focus");
    agent.front(x11);
}

/// The protocol of labwc, Wayfire and river, which sway has, too: without PIDs.
fn by_application_ids(session: &mut Session, groups: &Groups) {
    prepare(session);
    let first = sway(session);
    let agent = session.agent(&["--source", "toplevel"]);
    for name in APPS {
        let scope = groups.scope(name, session.user());
        groups::start(session, &scope, &format!("foot --app-id {name} sleep 1000"));
        agent.front_app(name);
    }
    let socket = session.path("sway.sock");
    let mut times = Vec::new();
    for switch in 0..harness::switches() {
        let name = APPS[switch % APPS.len()];
        let begin = Instant::now();
        order(&socket, &format!("[app_id={name}] focus"));
        times.push(agent.front_app(name).saturating_duration_since(begin));
    }
    harness::print("wlr-foreign-toplevel", times, &agent);

    session.end(first);
    assert_eq!(agent.next().1["report"], "nobody");
    sway(session);
    let scope = groups.scope("new", session.user());
    groups::start(session, &scope, "foot --app-id new sleep 1000");
    agent.front_app("new");
}

#[test]
#[ignore = "needs sway and root"]
fn an_application_id_finds_its_app_and_a_restart_is_survived() {
    if harness::skipped(&["sway", "foot", "unshare"]) {
        return;
    }
    groups::unified(
        "sway::an_application_id_finds_its_app_and_a_restart_is_survived",
        by_application_ids,
    );
}
