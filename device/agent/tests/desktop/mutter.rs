// SPDX-License-Identifier: GPL-2.0-only
//! Mutter, headless.

use crate::groups::{self, Groups};
use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

const TEST: &str = "mutter::each_switch_is_reported_by_the_attribute";

fn mutter(session: &mut Session) {
    let address = session.bus();
    session.set("DBUS_SYSTEM_BUS_ADDRESS", &address);
    session.set("LIBGL_ALWAYS_SOFTWARE", "1");
    session.start(&["python3", "-m", "dbusmock", "--template", "logind"]);
    let runtime = harness::runtime();
    let bus = harness::connect(&runtime, &address);
    harness::until("logind", || {
        runtime.block_on(harness::owned(&bus, "org.freedesktop.login1"))
    });
    let display = [
        "--virtual-monitor",
        "800x600",
        "--wayland-display",
        "wayland-mutter",
    ];
    session.start(
        &[
            &["mutter", "--headless", "--wayland", "--no-x11"],
            &display[..],
        ]
        .concat(),
    );
    let socket = session.path("wayland-mutter");
    harness::until("Mutter", || UnixStream::connect(&socket).ok());
    session.set("WAYLAND_DISPLAY", "wayland-mutter");
}

fn window(session: &mut Session, scope: &Path) -> u32 {
    groups::start(session, scope, "weston-eventdemo")
}

fn inside(session: &mut Session, groups: &Groups) {
    mutter(session);
    let scopes = ["one", "two"].map(|name| groups.scope(name, session.user()));
    let agent = session.agent(&["--source", "gnome"]);
    window(session, &scopes[0]);
    agent.front_app("one");
    let mut times = Vec::new();
    for _ in 0..harness::switches() / 2 {
        let pid = window(session, &scopes[1]);
        agent.front_app("two");
        let begin = Instant::now();
        session.end(pid);
        times.push(agent.front_app("one").saturating_duration_since(begin));
    }
    harness::print("mutter (and as many by windows that open)", times, &agent);
    // No look at wake-ups: the stand-in of logind answers with an error, and is asked again with back-off.
}

#[test]
#[ignore = "needs Mutter and root"]
fn each_switch_is_reported_by_the_attribute() {
    if harness::skipped(&[
        "mutter",
        "dbus-daemon",
        "weston-eventdemo",
        "python3",
        "unshare",
    ]) {
        return;
    }
    groups::unified(TEST, inside);
}
