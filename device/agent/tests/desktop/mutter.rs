// SPDX-License-Identifier: GPL-2.0-only
//! Mutter, headless.

use crate::groups::{self, Groups};
use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

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

fn inside() {
    let mut session = Session::new();
    let groups = Groups::new(session.user());
    mutter(&mut session);
    let scopes = ["one", "two"].map(|name| groups.scope(name, session.user()));
    let agent = session.agent(&["--source", "gnome"]);
    window(&mut session, &scopes[0]);
    groups::front(&agent, "one");
    let mut times = Vec::new();
    for _ in 0..harness::switches() / 2 {
        let pid = window(&mut session, &scopes[1]);
        groups::front(&agent, "two");
        let begin = Instant::now();
        session.end(pid);
        times.push(groups::front(&agent, "one").saturating_duration_since(begin));
    }
    harness::print("mutter (and as many by windows that open)", times, &agent);
    // No look at wake-ups: the stand-in of logind answers with an error, and is asked again with back-off.
    drop(session);
    std::thread::sleep(Duration::from_millis(200));
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
