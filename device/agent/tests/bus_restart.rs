// SPDX-License-Identifier: GPL-2.0-only
//! The agent and a system bus that is restarted, with a stand-in for the daemon on a bus of the test's own.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

#[path = "../../daemon/tests/common/bus.rs"]
mod bus;

use bus::{wait_for, Bus, Running};
use fasttrack_bus::{WireReport, NAME, PATH};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use zbus::Connection;

/// Remembers why nobody was in front, report by report.
#[derive(Clone, Default)]
struct Daemon(Arc<Mutex<Vec<String>>>);

#[zbus::interface(name = "org.fasttrack1.Manager")]
impl Daemon {
    fn report(&self, report: WireReport) {
        self.0.lock().expect("no panic").push(report.detail);
    }

    fn sources(&self, _names: Vec<String>) {}
}

async fn serve(bus: &Bus, daemon: &Daemon) -> Connection {
    let connection = bus.connect().await;
    let server = connection.object_server();
    server.at(PATH, daemon.clone()).await.expect("served");
    connection.request_name(NAME).await.expect("a name");
    connection
}

#[test]
fn the_daemon_is_told_again_after_the_bus_was_restarted() {
    let Some(mut bus) = Bus::start() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let daemon = Daemon::default();
    let last = || daemon.0.lock().expect("no panic").last().cloned();
    let served = runtime.block_on(serve(&bus, &daemon));
    let agent = Command::new(env!("CARGO_BIN_EXE_fasttrack-agent"))
        .args(["--source", "manual"])
        .env_clear()
        .env("DBUS_SYSTEM_BUS_ADDRESS", &bus.address)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut agent = Running(agent.expect("the agent"));
    let mut lines = agent.0.stdin.take().expect("a pipe");
    lines.write_all(b"away locked on\n").expect("it reads");
    wait_for("the first report", || last().as_deref() == Some("locked"));
    drop(served);
    bus.restart();
    let _served = runtime.block_on(serve(&bus, &daemon));
    let more = b"away locked off\naway idle on\n";
    lines.write_all(more).expect("it reads");
    wait_for("the next report", || last().as_deref() == Some("idle"));
}
