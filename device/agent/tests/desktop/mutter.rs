// SPDX-License-Identifier: GPL-2.0-only
//! Mutter, headless, alone and in GNOME Shell.

use crate::groups::{self, Groups};
use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;
use zbus::fdo::PropertiesProxy;
use zbus::names::InterfaceName;
use zbus::zvariant::Value;
use zbus::Connection;

const SHELL: &str = "org.gnome.Shell";
const SHELL_PATH: &str = "/org/gnome/Shell";

/// Asks for GNOME Shell's overview, or sets it: windows that open behind it have no focus.
async fn overview(bus: &Connection, to: Option<bool>) -> Option<bool> {
    let properties = PropertiesProxy::new(bus, SHELL, SHELL_PATH).await.ok()?;
    let interface = InterfaceName::from_static_str(SHELL).ok()?;
    if let Some(on) = to {
        let value = Value::from(on);
        let set = properties.set(interface.clone(), "OverviewActive", value);
        set.await.ok()?;
    }
    let value = properties.get(interface, "OverviewActive").await.ok()?;
    value.try_into().ok()
}

/// Starts Mutter, or a program that it is a library of.
fn mutter(session: &mut Session, program: &str) {
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
            &[program, "--headless", "--wayland", "--no-x11"],
            &display[..],
        ]
        .concat(),
    );
    let socket = session.path("wayland-mutter");
    harness::until("Mutter", || UnixStream::connect(&socket).ok());
    session.set("WAYLAND_DISPLAY", "wayland-mutter");
    if program == "gnome-shell" {
        // It begins with it.
        harness::until("overview", || {
            runtime.block_on(overview(&bus, None)).filter(|on| *on)
        });
        harness::until("end of the overview", || {
            runtime
                .block_on(overview(&bus, Some(false)))
                .filter(|on| !on)
        });
    }
}

fn window(session: &mut Session, scope: &Path) -> u32 {
    groups::start(session, scope, "weston-eventdemo")
}

fn switched(session: &mut Session, groups: &Groups, program: &str) {
    mutter(session, program);
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
    let name = format!("{program} (and as many by windows that open)");
    harness::print(&name, times, &agent);
    // No look at wake-ups: the stand-in of logind answers with an error, and is asked again with back-off.
}

fn alone(session: &mut Session, groups: &Groups) {
    switched(session, groups, "mutter");
}

fn shell(session: &mut Session, groups: &Groups) {
    switched(session, groups, "gnome-shell");
}

fn skipped(program: &str) -> bool {
    harness::skipped(&[
        program,
        "dbus-daemon",
        "weston-eventdemo",
        "python3",
        "unshare",
    ])
}

#[test]
#[ignore = "needs Mutter and root"]
fn each_switch_is_reported_by_the_attribute() {
    if !skipped("mutter") {
        groups::unified("mutter::each_switch_is_reported_by_the_attribute", alone);
    }
}

#[test]
#[ignore = "needs GNOME Shell and root"]
fn gnome_shell_is_as_mutter_alone() {
    if !skipped("gnome-shell") {
        groups::unified("mutter::gnome_shell_is_as_mutter_alone", shell);
    }
}
