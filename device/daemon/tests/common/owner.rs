// SPDX-License-Identifier: GPL-2.0-only
//! The owner of the daemon's state, without bus and clock.

use super::Tree;
use fasttrack_bus::{Status, WireApp};
use fasttrack_detector::report::{AppRef, Report};
use fasttrack_detector::SessionKey;
use fasttrackd::counters::Counters;
use fasttrackd::daemon::Daemon;
use fasttrackd::input::{Input, Mode};
use fasttrackd::notify::Notify;
use fasttrackd::system::System;
use std::time::Duration;
use tokio::sync::oneshot;

/// UID of the user in front.
pub const USER: u32 = 1000;

/// A time of the daemon's clock.
pub fn secs(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// The owner of the state, on a tree.
pub fn a_daemon(tree: &Tree) -> Daemon {
    let counters = Counters::silent();
    Daemon::new(
        &System::new(tree.root()),
        secs(1),
        Notify::from_environment(),
        None,
        counters,
    )
}

/// An app as agents name it.
pub fn app(wire: &WireApp) -> AppRef {
    AppRef {
        cgroup: wire.cgroup.clone(),
        inode: wire.inode,
        id: wire.id.clone(),
        pid: 0,
    }
}

/// The session of the tests' agent.
pub fn session() -> SessionKey {
    SessionKey {
        user: USER,
        seat: "seat0".to_string(),
        id: "c1".to_string(),
    }
}

/// Ends a group and gives its path to another one, made before, so that its inode is another.
pub fn replace(tree: &Tree, old: &WireApp, new: WireApp) -> WireApp {
    let place = |group: &WireApp| tree.root().join(format!("sys/fs/cgroup{}", group.cgroup));
    tree.end(old);
    std::fs::rename(place(&new), place(old)).expect("renamed");
    WireApp {
        cgroup: old.cgroup.clone(),
        ..new
    }
}

/// The agent's report at a time in s, and the answer.
pub fn says(daemon: &mut Daemon, at: u64, report: Report) -> Result<(), String> {
    says_of(daemon, session(), at, report)
}

/// The same of another session.
pub fn says_of(
    daemon: &mut Daemon,
    session: SessionKey,
    at: u64,
    report: Report,
) -> Result<(), String> {
    let (reply, mut answer) = oneshot::channel();
    let input = Input::Report {
        session,
        agent: 7,
        received: secs(at),
        report,
        reply,
    };
    daemon.handle(secs(at), input);
    answer.try_recv().expect("answered at once")
}

/// What the daemon says of itself at a time in s.
pub fn status(daemon: &mut Daemon, at: u64) -> Status {
    let (reply, mut answer) = oneshot::channel();
    daemon.handle(secs(at), Input::Status(reply));
    answer.try_recv().expect("answered at once")
}

/// A change by hand, and the answer.
pub fn by_hand(daemon: &mut Daemon, mode: Mode, whom: &[&str]) -> Result<(), String> {
    let (reply, mut answer) = oneshot::channel();
    let whom = whom.iter().map(ToString::to_string).collect();
    daemon.handle(secs(2), Input::ByHand(mode, whom, reply));
    answer.try_recv().expect("answered at once")
}
