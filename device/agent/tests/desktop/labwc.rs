// SPDX-License-Identifier: GPL-2.0-only
//! labwc, headless: windows are activated by another client of its.

use crate::groups::{self, Groups};
use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const APPS: [&str; 3] = ["one", "two", "three"];

fn labwc(session: &mut Session) -> u32 {
    let socket = session.path("wayland-0");
    let _ = std::fs::remove_file(&socket);
    let pid = session.start(&["labwc"]);
    harness::until("labwc", || UnixStream::connect(&socket).ok());
    pid
}

fn order(session: &Session, name: &str) {
    let window = format!("app_id:{name}");
    let status = session
        .command(&["wlrctl", "toplevel", "focus", &window])
        .status();
    assert!(status.expect("wlrctl").success());
}

fn open(session: &mut Session, groups: &Groups, name: &str) {
    let scope = groups.scope(name, session.user());
    groups::start(session, &scope, &format!("foot --app-id {name} sleep 1000"));
}

fn inside(session: &mut Session, groups: &Groups) {
    for (name, value) in [
        ("WLR_BACKENDS", "headless"),
        ("WLR_RENDERER", "pixman"),
        ("WLR_LIBINPUT_NO_DEVICES", "1"),
        ("WAYLAND_DISPLAY", "wayland-0"),
    ] {
        session.set(name, value);
    }
    let first = labwc(session);
    let agent = session.agent(&[]);
    for name in APPS {
        open(session, groups, name);
        agent.front_app(name);
    }
    let mut times = Vec::new();
    for switch in 0..harness::switches() {
        let name = APPS[switch % APPS.len()];
        let begin = Instant::now();
        order(session, name);
        times.push(agent.front_app(name).saturating_duration_since(begin));
    }
    harness::print("labwc (and a program that is started)", times, &agent);
    harness::idles(&agent, Duration::from_secs(10));

    session.end(first);
    assert_eq!(agent.next().1["report"], "nobody");
    labwc(session);
    open(session, groups, "new");
    agent.front_app("new");
}

#[test]
#[ignore = "needs labwc and root"]
fn each_switch_is_reported_and_a_restart_is_survived() {
    if harness::skipped(&["labwc", "wlrctl", "foot", "unshare"]) {
        return;
    }
    groups::unified(
        "labwc::each_switch_is_reported_and_a_restart_is_survived",
        inside,
    );
}
