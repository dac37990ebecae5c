// SPDX-License-Identifier: GPL-2.0-only
//! `--start`, with a stand-in for the user's systemd on a bus of the test's own.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

#[path = "../../daemon/tests/common/bus.rs"]
mod bus;

use bus::Bus;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use zbus::fdo;
use zbus::zvariant::OwnedObjectPath;

/// Remembers what it was asked for, in order.
#[derive(Clone, Default)]
struct Manager(Arc<Mutex<Vec<String>>>);

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn set_environment(&self, set: Vec<String>) {
        self.0.lock().expect("no panic").extend(set);
    }

    fn start_unit(&self, name: &str, mode: &str) -> fdo::Result<OwnedObjectPath> {
        let asked = format!("start {name} {mode}");
        self.0.lock().expect("no panic").push(asked);
        OwnedObjectPath::try_from("/job/1").map_err(|error| fdo::Error::Failed(error.to_string()))
    }
}

fn start(bus: &Bus, env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fasttrack-agent"))
        .arg("--start")
        .env_clear()
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .envs(env.iter().copied())
        .output()
        .expect("the agent")
}

#[test]
fn the_users_systemd_is_told_of_the_compositor_and_then_starts_the_agent() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let session = [
        ("DISPLAY", ":7"),
        ("SWAYSOCK", "/run/sway"),
        ("WAYLAND_DISPLAY", "wayland-7"),
        ("XDG_CURRENT_DESKTOP", "sway"),
        ("XDG_SESSION_ID", "7"),
        ("HOME", "/nowhere"),
    ];
    let alone = start(&bus, &session);
    let why = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(1), "{why}");
    assert!(
        why.contains("without systemd, run fasttrack-agent"),
        "{why}"
    );

    let manager = Manager::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let connection = runtime.block_on(bus.connect());
    runtime.block_on(async {
        let server = connection.object_server();
        let served = server.at("/org/freedesktop/systemd1", manager.clone());
        served.await.expect("served");
        let name = connection.request_name("org.freedesktop.systemd1");
        name.await.expect("its name");
    });
    let elsewhere = start(&bus, &[("XDG_CURRENT_DESKTOP", "sway")]);
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(manager.0.lock().expect("no panic").is_empty());

    let started = start(&bus, &session);
    let why = String::from_utf8_lossy(&started.stderr).into_owned();
    assert_eq!(started.status.code(), Some(0), "{why}");
    let asked = manager.0.lock().expect("no panic");
    let expected = [
        "DISPLAY=:7",
        "SWAYSOCK=/run/sway",
        "WAYLAND_DISPLAY=wayland-7",
        "XDG_CURRENT_DESKTOP=sway",
        "start fasttrack-agent.service replace",
    ];
    assert_eq!(*asked, expected);
}
