// SPDX-License-Identifier: GPL-2.0-only
//! A bus that is not there, and one that comes.

mod common;

use common::owner::{a_daemon, app, says, secs, USER};
use common::{block_on, wait_for, Running, Tree};
use fasttrack_detector::report::Report;
use fasttrackd::guard::Answer;
use futures_util::StreamExt;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn without_a_bus_it_runs_tells_systemd_and_ends_when_told() {
    runs_without_a_bus_at(&Tree::with_kernel(), Path::new("/nowhere/bus"));
}

#[test]
fn behind_a_bus_that_is_silent_it_runs_tells_systemd_and_ends_when_told() {
    let tree = Tree::with_kernel();
    let path = tree.root().join("bus");
    let _bus = UnixListener::bind(&path).expect("a socket");
    runs_without_a_bus_at(&tree, &path);
}

fn runs_without_a_bus_at(tree: &Tree, bus: &Path) {
    let path = tree.root().join("notify");
    let systemd = UnixDatagram::bind(&path).expect("a socket");
    let patience = Some(Duration::from_secs(60));
    systemd.set_read_timeout(patience).expect("set");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fasttrackd"));
    command
        .arg("--root")
        .arg(tree.root())
        .arg("--bus")
        .arg(format!("unix:path={}", bus.display()));
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000")
        .env_remove("WATCHDOG_PID");
    let mut daemon = Running(command.spawn().expect("fasttrackd"));
    let mut told = Vec::new();
    let mut buffer = [0; 64];
    while !told.iter().any(|word| word == "WATCHDOG=1") {
        let length = systemd.recv(&mut buffer).expect("told");
        told.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    assert_eq!(told[0], "READY=1");
    let pid = rustix::process::Pid::from_child(&daemon.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    assert!(daemon.0.wait().expect("ended").success());
    assert_eq!(tree.kernel("enabled"), "0");
}

#[test]
fn a_second_daemon_says_so_and_changes_nothing() {
    let tree = Tree::with_kernel();
    let mut first = common::daemon(tree.root(), "unix:path=/nowhere/bus");
    wait_for("it has begun", || !tree.kernel("app_cgroups").is_empty());
    tree.put("sys/kernel/fasttrack/foreground_cgroups", "/as/it/was");
    let run = |restore: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fasttrackd"));
        command.arg("--root").arg(tree.root());
        command.arg("--bus").arg("unix:path=/nowhere/bus");
        command.args(restore.then_some("--restore"));
        command.output().expect("run")
    };
    for restore in [false, true] {
        let output = run(restore);
        let told = String::from_utf8_lossy(&output.stderr);
        let who = format!("another fasttrackd runs (PID {})", first.0.id());
        assert!(told.contains(&who), "{told}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let is = ["foreground_cgroups", "enabled", "lease_ms"].map(|file| tree.kernel(file));
        assert_eq!(is, ["/as/it/was", "1", "75000"]);
    }
    // However it ends: its guard has not the lock.
    first.0.kill().expect("killed");
    first.0.wait().expect("ended");
    assert!(run(true).status.success());
    assert_eq!(tree.kernel("foreground_cgroups"), "");
}

/// Has somebody wait for storage until something holds.
fn wait_for_while_somebody_writes(what: &str, folder: &Path, holds: impl Fn() -> bool) {
    let path = folder.join("written");
    wait_for(what, || {
        let file = File::create(&path).expect("a file");
        (&file).write_all(&[1; 1 << 20]).expect("written");
        file.sync_all().expect("on the disk");
        holds()
    });
}

#[test]
fn a_daemon_that_is_stopped_leaves_nothing_to_wait_for_and_sets_it_again() {
    block_on(async {
        let tree = Tree::with_kernel();
        for name in ["io", "memory"] {
            let (real, its) = (
                format!("/proc/pressure/{name}"),
                format!("proc/pressure/{name}"),
            );
            let link = tree.root().join(its);
            std::fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
            std::os::unix::fs::symlink(real, link).expect("a link");
        }
        let window = Duration::from_millis(500);
        if let Err(error) = fasttrackd::pressure::trigger(Path::new("/proc/pressure/io"), window) {
            eprintln!("SKIPPED: no trigger of pressure can be set here: {error}");
            return;
        }
        let app = tree.app(common::user(), "app-a-1.scope");
        let Some(stage) = common::Stage::set(tree).await else {
            return;
        };
        let told = || stage.tree.kernel("foreground_cgroups");
        let pid = rustix::process::Pid::from_child(&stage.daemon.0);
        for _ in 0..2 {
            stage.report("front", &[&app], "").await.expect("taken");
            wait_for("in front", || told() == app.cgroup);
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("sent");
            let (begin, nobody) = (Instant::now(), || told().is_empty());
            wait_for_while_somebody_writes("taken back", stage.tree.root(), nobody);
            println!("taken back after {} ms", begin.elapsed().as_millis());
            rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("sent");
            wait_for("set again", || told() == app.cgroup);
        }
    });
}

/// With nobody who waits it is seen by the next beat.
#[test]
fn an_agent_that_is_stopped_is_seen_as_soon_as_somebody_waits() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    for (at, state, front) in [(3, "S", one.cgroup.as_str()), (4, "T", "")] {
        tree.put("proc/7/stat", &format!("7 (an agent) {state} 1 7"));
        daemon.guard_said(secs(at), Some(Answer::Waits));
        assert_eq!(tree.kernel("foreground_cgroups"), front, "{state}");
    }
}

#[test]
fn a_bus_that_comes_later_is_found() {
    block_on(async {
        let Some(bus) = common::Bus::start() else {
            return;
        };
        let tree = Tree::with_kernel();
        let link = tree.root().join("bus");
        let _daemon = common::daemon(tree.root(), &format!("unix:path={}", link.display()));
        wait_for("it has begun", || tree.kernel("enabled") == "1");
        let socket = bus.address.trim_start_matches("unix:path=");
        std::os::unix::fs::symlink(socket, &link).expect("a link");
        let connection = bus.connect().await;
        common::until_there(&connection).await;
    });
}

#[test]
fn a_bus_that_closes_is_connected_to_again() {
    block_on(async {
        let (Some(first), Some(second)) = (common::Bus::start(), common::Bus::start()) else {
            return;
        };
        let tree = Tree::with_kernel();
        let link = tree.root().join("bus");
        let leads_to = |bus: &common::Bus| {
            let _ = std::fs::remove_file(&link);
            let socket = bus.address.trim_start_matches("unix:path=");
            std::os::unix::fs::symlink(socket, &link).expect("a link");
        };
        // One that lists sessions; without logind nothing is followed.
        let login = fasttrack_login1::Login1::serve(&first.connect().await).await;
        let _login = login.expect("logind");
        leads_to(&first);
        let _daemon = common::daemon(tree.root(), &format!("unix:path={}", link.display()));
        common::until_there(&first.connect().await).await;
        leads_to(&second);
        drop(first);
        common::until_there(&second.connect().await).await;
    });
}

/// Connections that have come and gone, of which nobody else makes any meanwhile.
async fn come_and_gone(changes: &mut zbus::fdo::NameOwnerChangedStream, number: usize) {
    let (mut come, mut gone) = (0, 0);
    while come < number || gone < number {
        let signal = changes.next().await.expect("a signal");
        let change = signal.args().expect("what it says");
        if change.name().as_str().starts_with(':') {
            come += usize::from(change.old_owner().is_none());
            gone += usize::from(change.new_owner().is_none());
        }
    }
}

#[test]
fn where_the_name_is_refused_no_connection_is_left() {
    block_on(async {
        let Some(bus) = common::Bus::without_the_name() else {
            return;
        };
        let tree = Tree::with_kernel();
        let other = bus.connect().await;
        let login = fasttrack_login1::Login1::serve(&bus.connect().await).await;
        let _login = login.expect("logind");
        let names = zbus::fdo::DBusProxy::new(&other).await.expect("the bus");
        let mut changes = names.receive_name_owner_changed().await.expect("told");
        let daemon = common::daemon(tree.root(), &bus.address);
        let open = || {
            let all = std::fs::read_dir(format!("/proc/{}/fd", daemon.0.id()));
            all.expect("a process").count()
        };
        come_and_gone(&mut changes, 1).await;
        // One may be about to be closed.
        let before = open();
        come_and_gone(&mut changes, 2).await;
        wait_for("no more are open", || open() <= before);
    });
}

#[test]
fn a_name_that_is_taken_is_tried_for_again_and_then_kept() {
    block_on(async {
        let Some(bus) = common::Bus::start() else {
            return;
        };
        let tree = Tree::with_kernel();
        let (name, other) = (fasttrack_bus::NAME, bus.connect().await);
        let kept = zbus::fdo::RequestNameFlags::DoNotQueue.into();
        let taken = other.request_name_with_flags(name, kept).await;
        taken.expect("taken");
        let path = tree.root().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fasttrackd"));
        command.arg("--root").arg(tree.root());
        command.arg("--bus").arg(&bus.address);
        command.stderr(File::create(&path).expect("a log"));
        let _daemon = Running(command.spawn().expect("fasttrackd"));
        wait_for("it says so", || {
            let log = std::fs::read_to_string(&path).expect("a log");
            log.contains("the bus cannot be used")
        });
        other.release_name(name).await.expect("free");
        common::until_there(&other).await;
        // This asks to replace who allows it.
        other.request_name(name).await.expect_err("kept");
    });
}

#[test]
fn a_full_disk_costs_the_log_and_nothing_else() {
    block_on(async {
        let Some(bus) = common::Bus::start() else {
            return;
        };
        let tree = Tree::with_kernel();
        // What it keeps in files and what it logs: both say that no space is left.
        for full in [
            "run/fasttrack/guard.lock",
            "sys/kernel/fasttrack/perceptible_cgroups",
        ] {
            let path = tree.root().join(full);
            let _ = std::fs::remove_file(&path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::os::unix::fs::symlink("/dev/full", path).expect("a link");
        }
        tree.we_run_in(&common::agent(common::user()));
        let log = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fasttrackd"));
        command
            .arg("--root")
            .arg(tree.root())
            .arg("--bus")
            .arg(&bus.address);
        let mut daemon = Running(command.stderr(log).spawn().expect("fasttrackd"));
        let connection = bus.connect().await;
        common::until_there(&connection).await;
        let proxy = fasttrack_bus::ManagerProxy::new(&connection)
            .await
            .expect("a proxy");
        let status = proxy.status().await.expect("a status");
        assert_eq!(status.rung, "kernel");
        let full = |error: &&String| {
            error.contains("perceptible_cgroups") && error.contains("the list is full")
        };
        assert_eq!(status.errors.iter().filter(full).count(), 1, "{status:#?}");
        if rustix::process::getuid().is_root() {
            let app = tree.app(common::user(), "app-a-1.scope");
            proxy
                .set_foreground("set", &[&app.cgroup])
                .await
                .expect("set");
            assert_eq!(tree.kernel("foreground_cgroups"), app.cgroup);
        }
        let pid = rustix::process::Pid::from_child(&daemon.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
        assert!(daemon.0.wait().expect("ended").success());
        assert_eq!(tree.kernel("foreground_cgroups"), "");
    });
}

#[test]
fn a_command_line_that_is_wrong_is_told_of() {
    let run = |word: &str| {
        Command::new(env!("CARGO_BIN_EXE_fasttrackd"))
            .arg(word)
            .output()
            .expect("run")
    };
    let wrong = run("--nonsense");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("\"--nonsense\" is no option"));
    let help = run("--help");
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--restore"));
}
