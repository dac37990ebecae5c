// SPDX-License-Identifier: GPL-2.0-only
//! Who keeps the session from idling: logind's inhibitors. It has no signal for each, but a file; that one has come or
//! gone is seen by inotify, and who they are is asked on the bus.

use crate::bus;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::window::Window;
use fasttrack_detector::report::{AppRef, Sense};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;
use zbus::Connection;

/// Where logind keeps a file of each inhibitor.
const DIRECTORY: &str = "/run/systemd/inhibit";
/// A file comes with several events, and before the inhibitor is on the bus.
const SETTLE: Duration = Duration::from_millis(50);

/// An inhibitor: what, who, why, how, user, process.
type Inhibitor = (String, String, String, String, u32, u32);

/// Processes of this user that keep the session from idling.
pub fn idle_blockers(all: &[Inhibitor], user: u32) -> Vec<u32> {
    let blocks = |one: &&Inhibitor| {
        one.3.starts_with("block") && one.4 == user && one.0.split(':').any(|what| what == "idle")
    };
    all.iter().filter(blocks).map(|one| one.5).collect()
}

/// logind's inhibitors.
#[derive(Default)]
pub struct Inhibitors;

impl Source for Inhibitors {
    fn name(&self) -> &'static str {
        "inhibitors"
    }

    fn probe(&self) -> Probe {
        match Path::new(DIRECTORY).is_dir() {
            true => Probe::Yes,
            false => Probe::No(format!("there is no {DIRECTORY}: logind does not run")),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let runtime = bus::runtime()?;
        let bus = runtime.block_on(Connection::system())?;
        let watch = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(
            &watch,
            DIRECTORY,
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO,
        )?;
        let mut room = [MaybeUninit::uninit(); 1024];
        let mut known = Vec::new();
        loop {
            let all = runtime.block_on(list(&bus))?;
            let now = apps(&idle_blockers(&all, out.resolver().user()), out);
            tell(&known, &now, Sense::Inhibitor, out)?;
            known = now;
            let mut reader = Reader::new(&watch, &mut room[..]);
            reader.next()?;
            std::thread::sleep(SETTLE);
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

async fn list(bus: &Connection) -> Result<Vec<Inhibitor>, Fault> {
    let manager = bus::proxy(
        bus,
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
    );
    Ok(manager.await?.call("ListInhibitors", &()).await?)
}

/// The apps of processes, each once. A process of no app is left out.
pub fn apps(pids: &[u32], out: &Out) -> Vec<AppRef> {
    let mut apps: Vec<AppRef> = Vec::new();
    for pid in pids {
        if let crate::resolve::Owner::App(more) = out.resolver().owner(&Window::of(*pid, "")) {
            let new = more
                .into_iter()
                .filter(|app| !apps.iter().any(|one| one.inode == app.inode));
            apps.extend(new.collect::<Vec<_>>());
        }
    }
    apps
}

/// Tells who is no longer, and who is now, to be noticed.
pub fn tell(before: &[AppRef], now: &[AppRef], sense: Sense, out: &Out) -> Result<(), Fault> {
    let in_list = |list: &[AppRef], app: &AppRef| {
        list.iter()
            .any(|one| one.inode == app.inode && one.cgroup == app.cgroup)
    };
    for app in before.iter().filter(|app| !in_list(now, app)) {
        out.perceptible(app.clone(), sense, false)?;
    }
    for app in now.iter().filter(|app| !in_list(before, app)) {
        out.perceptible(app.clone(), sense, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(what: &str, mode: &str, user: u32, pid: u32) -> Inhibitor {
        (
            what.into(),
            "who".into(),
            "why".into(),
            mode.into(),
            user,
            pid,
        )
    }

    #[test]
    fn only_own_blocks_of_idling_count() {
        let all = [
            one("idle", "block", 1000, 1),
            one("sleep:idle", "block", 1000, 2),
            one("sleep", "block", 1000, 3),
            one("idle", "delay", 1000, 4),
            one("idle", "block", 0, 5),
        ];
        assert_eq!(idle_blockers(&all, 1000), [1, 2]);
    }
}
