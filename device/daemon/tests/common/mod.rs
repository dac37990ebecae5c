// SPDX-License-Identifier: GPL-2.0-only
//! A system of its own for each test: a tree of files, a bus, logind, and the daemon itself.
#![allow(dead_code, unused_imports)] // each test file takes some of it

pub mod bus;
pub mod owner;
pub mod systemd1;

pub use bus::{wait_for, Bus, Running};

use fasttrack_bus::{ManagerProxy, Status, WireApp, WireReport};
use fasttrack_login1::Login1;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use zbus::Connection;

/// UID of the user of tests: of this process, which has the only connections.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Files of the kernel's part, with their values.
const KERNEL: [(&str, &str); 9] = [
    ("enabled", "0"),
    ("ejected", ""),
    ("lease_ms", "0"),
    ("generation", "0"),
    ("foreground_cgroups", ""),
    ("perceptible_cgroups", ""),
    ("app_cgroups", ""),
    ("neutral_cgroups", ""),
    ("stats/pauses", "7"),
];

/// A tree of files in place of the system's.
pub struct Tree {
    pub folder: TempDir,
}

impl Tree {
    /// A tree with one user's app slice.
    pub fn new() -> Tree {
        let tree = Tree {
            folder: tempfile::tempdir().expect("a folder"),
        };
        tree.put(
            &format!("{}/cgroup.threads", tree.in_cgroups(&apps(user()))),
            "",
        );
        tree.put("proc/self/mounts", "");
        tree.put("run/.here", "");
        tree
    }

    /// The same, with the files of the patched kernel.
    pub fn with_kernel() -> Tree {
        let tree = Tree::new();
        for (name, value) in KERNEL {
            tree.put(&format!("sys/kernel/fasttrack/{name}"), value);
        }
        tree
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    pub fn get(&self, path: &str) -> String {
        let text = fs::read_to_string(self.root().join(path)).expect("a file");
        text.trim().to_string()
    }

    pub fn kernel(&self, name: &str) -> String {
        self.get(&format!("sys/kernel/fasttrack/{name}"))
    }

    fn in_cgroups(&self, path: &str) -> String {
        format!("sys/fs/cgroup{path}")
    }

    /// Makes a control group of a user's app.
    pub fn app(&self, user: u32, name: &str) -> WireApp {
        self.group(&format!("{}/{name}", apps(user)), name)
    }

    /// Makes a control group.
    pub fn group(&self, path: &str, id: &str) -> WireApp {
        let folder = self.root().join(self.in_cgroups(path));
        fs::create_dir_all(&folder).expect("a group");
        WireApp {
            cgroup: path.to_string(),
            inode: fs::metadata(&folder).expect("a group").ino(),
            id: id.to_string(),
            pid: 0,
        }
    }

    pub fn end(&self, app: &WireApp) {
        fs::remove_dir_all(self.root().join(self.in_cgroups(&app.cgroup))).expect("ended");
    }

    /// Where this process runs, in the daemon's eyes.
    pub fn we_run_in(&self, cgroup: &str) {
        self.runs_in(std::process::id(), cgroup);
    }

    /// Where a process of this user runs, in the daemon's eyes.
    pub fn runs_in(&self, pid: u32, cgroup: &str) {
        let user = user();
        self.put(&format!("proc/{pid}/cgroup"), &format!("0::{cgroup}\n"));
        self.put(
            &format!("proc/{pid}/status"),
            &format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\n"),
        );
    }
}

/// A report as it is on the bus.
pub fn wire(kind: &str, apps: &[&WireApp], detail: &str) -> WireReport {
    WireReport {
        kind: kind.to_string(),
        apps: apps.iter().map(|app| (*app).clone()).collect(),
        detail: detail.to_string(),
        on: true,
    }
}

/// The app slice of a user.
pub fn apps(user: u32) -> String {
    format!("/user.slice/user-{user}.slice/user@{user}.service/app.slice")
}

/// Where an agent runs.
pub fn agent(user: u32) -> String {
    format!(
        "/user.slice/user-{user}.slice/user@{user}.service/session.slice/fasttrack-agent.service"
    )
}

/// The daemon, as it is installed.
pub fn daemon(root: &Path, address: &str) -> Running {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fasttrackd"));
    let mut command = Command::new(program);
    command.arg("--root").arg(root).arg("--bus").arg(address);
    Running(command.spawn().expect("fasttrackd"))
}

/// All of it: a tree, a bus with logind, a daemon, and a connection to it.
pub struct Stage {
    pub proxy: ManagerProxy<'static>,
    pub connection: Connection,
    pub login: Login1,
    pub daemon: Running,
    pub tree: Tree,
    pub bus: Bus,
}

impl Stage {
    /// This process runs where an agent does, and its user's session is the active one.
    pub async fn set(tree: Tree) -> Option<Stage> {
        Some(Stage::on(Bus::start()?, tree).await)
    }

    /// The same, on a bus that may have others.
    pub async fn on(bus: Bus, tree: Tree) -> Stage {
        tree.we_run_in(&agent(user()));
        let login = Login1::serve(&bus.connect().await).await.expect("logind");
        let begun = login.add("c1", user(), true, false).await;
        begun.expect("a session");
        let daemon = daemon(tree.root(), &bus.address);
        let connection = bus.connect().await;
        let proxy = ManagerProxy::new(&connection).await.expect("a proxy");
        until_there(&connection).await;
        Stage {
            proxy,
            connection,
            login,
            daemon,
            tree,
            bus,
        }
    }

    pub async fn report(&self, kind: &str, apps: &[&WireApp], detail: &str) -> zbus::Result<()> {
        self.proxy.report(&wire(kind, apps, detail)).await
    }

    pub async fn status(&self) -> Status {
        self.proxy.status().await.expect("a status")
    }

    /// Asks until the status is as expected.
    pub async fn until(&self, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let begin = Instant::now();
        loop {
            let status = self.status().await;
            if holds(&status) {
                return status;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "{what}: {status:#?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits until the daemon has its name.
pub async fn until_there(connection: &Connection) {
    let bus = zbus::fdo::DBusProxy::new(connection)
        .await
        .expect("the bus");
    let begin = Instant::now();
    let name = || fasttrack_bus::NAME.try_into().expect("a name");
    while !bus.name_has_owner(name()).await.unwrap_or(false) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "fasttrackd is not on the bus"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The paths of apps of a class.
pub fn of_class(status: &Status, class: &str) -> Vec<String> {
    let of_it = status.apps.iter().filter(|app| app.class == class);
    of_it.map(|app| app.app.cgroup.clone()).collect()
}

/// Longest test: a bus that does not answer makes one fail, not hang.
const TEST_MOST: Duration = Duration::from_secs(300);

/// Runs a test in a runtime of one thread.
pub fn block_on<T>(future: impl std::future::Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let bounded = async { tokio::time::timeout(TEST_MOST, future).await };
    let done = runtime.expect("a runtime").block_on(bounded);
    done.expect("the test hangs: the bus, or who is asked on it, does not answer")
}
