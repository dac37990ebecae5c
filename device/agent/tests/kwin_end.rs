// SPDX-License-Identifier: GPL-2.0-only
//! What the agent leaves in KWin when it ends: nothing. With a stand-in for KWin on a bus of the test's own.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

#[path = "../../daemon/tests/common/bus.rs"]
mod bus;

use bus::{wait_for, Bus, Running};
use rustix::process::{kill_process, Pid, Signal};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Remembers what it was asked for, in order.
#[derive(Clone, Default)]
struct Scripting(Arc<Mutex<Vec<&'static str>>>);

impl Scripting {
    fn note(&self, what: &'static str) {
        self.0.lock().expect("no panic").push(what);
    }
}

#[zbus::interface(name = "org.kde.kwin.Scripting")]
impl Scripting {
    #[zbus(name = "unloadScript")]
    fn unload_script(&self, _name: &str) -> bool {
        self.note("unload");
        true
    }

    #[zbus(name = "loadScript")]
    fn load_script(&self, _path: &str, _name: &str) -> i32 {
        self.note("load");
        0
    }

    #[zbus(name = "start")]
    fn start(&self) {
        self.note("start");
    }
}

#[test]
fn an_agent_that_ends_takes_its_script_out_of_kwin() {
    let Some(bus) = Bus::start() else {
        return;
    };
    // By its name the agent knows KWin's process.
    let own = format!("/proc/{}/comm", std::process::id());
    std::fs::write(own, "kwin_mock").expect("its own name");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let scripting = Scripting::default();
    let _served = runtime.block_on(async {
        let connection = bus.connect().await;
        let server = connection.object_server();
        let served = server.at("/Scripting", scripting.clone()).await;
        served.expect("served");
        connection
            .request_name("org.kde.KWin")
            .await
            .expect("a name");
        connection
    });
    let directory = tempfile::tempdir().expect("a directory");
    let agent = Command::new(env!("CARGO_BIN_EXE_fasttrack-agent"))
        .args(["--source", "kde"])
        .env_clear()
        .env("DBUS_SYSTEM_BUS_ADDRESS", &bus.address)
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .env("XDG_RUNTIME_DIR", directory.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut agent = Running(agent.expect("the agent"));
    let asked = || scripting.0.lock().expect("no panic").clone();
    wait_for("the script", || asked() == ["unload", "load", "start"]);
    let scripts = || {
        std::fs::read_dir(directory.path())
            .expect("a directory")
            .count()
    };
    assert_eq!(scripts(), 1);
    let pid = i32::try_from(agent.0.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::TERM).expect("sent");
    let status = agent.0.wait().expect("a child");
    assert!(status.success(), "{status}");
    assert_eq!(asked(), ["unload", "load", "start", "unload"]);
    assert_eq!(scripts(), 0);
}
