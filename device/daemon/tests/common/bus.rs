// SPDX-License-Identifier: GPL-2.0-only
//! A bus of a test's own. The agent's tests take it, too.
#![allow(dead_code)] // each test file takes some of it

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use zbus::Connection;

const RULES: &str = include_str!("../../../data/org.fasttrack1.conf");

/// A process that is killed in the end.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A bus that lets everybody do everything, but for what the daemon's own rules say of its name. Who runs the test
/// stands for root in them.
pub struct Bus {
    daemon: Running,
    folder: TempDir,
    pub address: String,
}

/// The bus that a folder has the configuration of.
fn spawn(folder: &Path) -> std::io::Result<Running> {
    let config = folder.join("bus.conf");
    let mut command = Command::new("dbus-daemon");
    command
        .arg("--nofork")
        .arg(format!("--config-file={}", config.display()));
    command.stdout(Stdio::null()).spawn().map(Running)
}

fn wait_for_socket(folder: &Path) {
    let socket = folder.join("bus");
    wait_for("the bus", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
}

impl Bus {
    /// None, with the reason printed, where there is no dbus-daemon.
    pub fn start() -> Option<Bus> {
        Bus::with("")
    }

    /// The same, where nobody may have the daemon's name, as without its rules.
    pub fn without_the_name() -> Option<Bus> {
        Bus::with("<policy context=\"mandatory\"><deny own=\"org.fasttrack1\"/></policy>")
    }

    fn with(policy: &str) -> Option<Bus> {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("bus");
        let address = format!("unix:path={}", socket.display());
        let config = folder.path().join("bus.conf");
        let rules = folder.path().join("rules.conf");
        let user = format!("user=\"{}\"", rustix::process::geteuid().as_raw());
        fs::write(&rules, RULES.replace("user=\"root\"", &user)).expect("a file");
        let text = format!(
            "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>\
             <include>{}</include>{policy}</busconfig>",
            rules.display()
        );
        fs::write(&config, text).expect("a file");
        let daemon = match spawn(folder.path()) {
            Ok(daemon) => daemon,
            Err(error) => {
                eprintln!("SKIPPED: dbus-daemon cannot be started: {error}");
                return None;
            }
        };
        wait_for_socket(folder.path());
        Some(Bus {
            daemon,
            folder,
            address,
        })
    }

    /// Ends, and starts at the same address. Nobody is connected any more.
    pub fn restart(&mut self) {
        let _ = self.daemon.0.kill();
        let _ = self.daemon.0.wait();
        self.daemon = spawn(self.folder.path()).expect("it was started before");
        wait_for_socket(self.folder.path());
    }

    pub async fn connect(&self) -> Connection {
        let builder =
            zbus::connection::Builder::address(self.address.as_str()).expect("an address");
        builder.build().await.expect("a connection")
    }
}

/// Waits until something holds. The limit is for a test that fails.
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{what}: waited for in vain"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
