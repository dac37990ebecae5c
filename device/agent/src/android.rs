// SPDX-License-Identifier: GPL-2.0-only
//! Android, replayed: a log of the activity manager's events (`logcat -b events`), old names (`am_…`) and new
//! ones (`wm_…`, since Android 10).
//!
//! This is an input of the lab and of tests. A phone is not watched in this way: the log's format drifts between
//! releases, and only root and logd may read it. `uid_observer` is for that. The log among the tests is written by hand.

use crate::fault::Fault;
use crate::place::Place;
use crate::source::{Out, Probe, Source};
use crate::uids::{self, app_uid, kind, Kind};
use fasttrack_detector::report::{AppRef, Nobody, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// Most activities, packages or processes that are remembered.
const REMEMBERED_MOST: usize = 4096;
/// For what a process starts when an app is launched, as `am_proc_start` says.
const LAUNCHES: [&str; 4] = [
    "activity",
    "top-activity",
    "next-activity",
    "next-top-activity",
];

/// A line, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'a> {
    /// A process begins: user, PID, UID, process name, for what.
    Start(u32, u32, u32, &'a str, &'a str),
    /// A process has ended.
    Died(u32),
    /// An activity is resumed: user, token, package.
    Resume(u32, &'a str, &'a str),
    /// An activity is paused, stopped or destroyed: its token.
    Pause(&'a str),
    /// An app has drawn its first frame: user, package.
    Drawn(u32, &'a str),
    /// The screen is on or off.
    Screen(bool),
    /// The keyguard is shown or not.
    Keyguard(bool),
    /// Of no interest.
    Nothing,
}

/// Reads a line, in any of logcat's formats: what counts is `TAG: [FIELDS]`.
pub fn parse(line: &str) -> Line<'_> {
    tag(line).map_or(Line::Nothing, |(tag, fields)| {
        understand(tag, &fields).unwrap_or(Line::Nothing)
    })
}

fn tag(line: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = line.split_once(": ")?;
    let tag = head
        .split_whitespace()
        .rev()
        .find(|word| word.contains('_'))?;
    // The brief format has the tag after the level: I/am_proc_start( 123).
    let tag = tag.split('(').next()?.rsplit('/').next()?;
    let fields = rest.trim().trim_start_matches('[').trim_end_matches(']');
    Some((tag, fields.split(',').collect()))
}

fn understand<'a>(tag: &str, fields: &[&'a str]) -> Option<Line<'a>> {
    let number = |at: usize| fields.get(at)?.trim().parse::<u32>().ok();
    let text = |at: usize| fields.get(at).map(|text| text.trim());
    let package = |at: usize| text(at).map(|text| text.split('/').next().unwrap_or(text));
    let name = tag
        .strip_prefix("am_")
        .or_else(|| tag.strip_prefix("wm_"))
        .unwrap_or(tag);
    Some(match name {
        "proc_start" => Line::Start(number(0)?, number(1)?, number(2)?, text(3)?, text(4)?),
        "proc_died" | "kill" => Line::Died(number(1)?),
        "resume_activity" | "restart_activity" => Line::Resume(number(0)?, text(1)?, package(3)?),
        "pause_activity" | "stop_activity" | "destroy_activity" => Line::Pause(text(1)?),
        "activity_launch_time" => Line::Drawn(number(0)?, package(2)?),
        "screen_toggled" => Line::Screen(number(0)? != 0),
        "set_keyguard_shown" => Line::Keyguard(number(1)? != 0),
        _ => Line::Nothing,
    })
}

/// What a log says so far.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    resumed: BTreeMap<String, (u32, String)>,
    uids: BTreeMap<(u32, String), u32>,
    /// Isolated processes and sandboxes, and whose they are.
    isolated: BTreeMap<u32, (u32, String)>,
    processes: BTreeMap<u32, u32>,
}

/// What follows from a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Who is in front is another one, or may be.
    Front,
    /// A report as it is.
    Tell(Report),
    /// Nobody looks, or somebody does again.
    Away(bool),
}

impl Replay {
    /// Takes a line.
    pub fn take(&mut self, line: &Line) -> Option<Step> {
        match *line {
            Line::Start(user, pid, uid, name, why) => self.start(user, pid, uid, name, why),
            Line::Died(pid) => self.died(pid),
            Line::Resume(user, token, package) => {
                if self.resumed.len() < REMEMBERED_MOST {
                    self.resumed.insert(token.into(), (user, package.into()));
                }
                Some(Step::Front)
            }
            Line::Pause(token) => self.resumed.remove(token).map(|_| Step::Front),
            Line::Drawn(user, package) => {
                let app = self.app(user, package)?;
                Some(Step::Tell(Report::Window(app)))
            }
            Line::Screen(on) => Some(Step::Away(!on)),
            Line::Keyguard(shown) => Some(Step::Away(shown)),
            Line::Nothing => None,
        }
    }

    /// The apps in front: two of a split screen, one for packages that share a UID, isolated processes with their host.
    pub fn front(&self) -> Vec<AppRef> {
        let mut seen = BTreeSet::new();
        let mut apps = Vec::new();
        for (user, package) in self.resumed.values() {
            let own = self.app(*user, package);
            let isolated = self
                .isolated
                .iter()
                .filter(|(_, host)| **host == (*user, package.clone()));
            let isolated = isolated.map(|(uid, _)| app(*uid, package, 0));
            apps.extend(
                own.into_iter()
                    .chain(isolated)
                    .filter(|app| seen.insert(app.cgroup.clone())),
            );
        }
        apps
    }

    fn app(&self, user: u32, package: &str) -> Option<AppRef> {
        let uid = *self.uids.get(&(user, package.to_string()))?;
        Some(app(uid, package, 0))
    }

    fn start(&mut self, user: u32, pid: u32, uid: u32, name: &str, why: &str) -> Option<Step> {
        // A process is called like its package, with a colon and more for a further one.
        let package = name.split(':').next().unwrap_or(name);
        if self.uids.len() + self.processes.len() + self.isolated.len() >= REMEMBERED_MOST {
            return None;
        }
        self.processes.insert(pid, uid);
        match kind(uid) {
            Kind::App => {
                self.uids.insert((user, package.into()), uid);
            }
            Kind::Isolated => {
                self.isolated.insert(uid, (user, package.into()));
            }
            // A sandbox is its app's, whose UID is in its own.
            Kind::Sandbox => {
                let mut host = self
                    .uids
                    .iter()
                    .filter(|(_, host)| Some(**host) == app_uid(uid));
                if let Some((host, _)) = host.next() {
                    self.isolated.insert(uid, host.clone());
                }
            }
            Kind::System => {}
        }
        let begins = kind(uid) == Kind::App && LAUNCHES.contains(&why);
        match begins {
            true => Some(Step::Tell(Report::Launch(app(uid, package, pid)))),
            false => Some(Step::Front),
        }
    }

    fn died(&mut self, pid: u32) -> Option<Step> {
        let uid = self.processes.remove(&pid)?;
        // An isolated UID is of one process; an app's may have others.
        self.isolated.remove(&uid).map(|_| Step::Front)
    }
}

/// With the control group that the UID has here, if there is one: a log has no inodes.
fn placed(app: AppRef, place: &Place) -> AppRef {
    let uid = app
        .cgroup
        .strip_prefix("/uid_")
        .and_then(|uid| uid.parse().ok());
    let here = uid.map(|uid| uids::app(place, uid));
    match here {
        Some(here) => AppRef {
            id: app.id,
            pid: app.pid,
            ..here
        },
        None => app,
    }
}

/// An app by its UID: the group that init and libprocessgroup give it.
fn app(uid: u32, package: &str, pid: u32) -> AppRef {
    AppRef {
        cgroup: format!("/uid_{uid}"),
        inode: 0,
        id: package.to_string(),
        pid,
    }
}

/// A log on the standard input.
#[derive(Default)]
pub struct AndroidReplay;

impl Source for AndroidReplay {
    fn name(&self) -> &'static str {
        "android-replay"
    }

    fn probe(&self) -> Probe {
        Probe::No("replays a log, where it is asked for".into())
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        follow(&mut std::io::stdin().lock(), out)
    }
}

/// Says what a log says, until it ends.
pub fn follow(from: &mut impl BufRead, out: &Out) -> Result<(), Fault> {
    let (mut replay, mut room) = (Replay::default(), Vec::new());
    let place = out.resolver().place();
    while let Some(line) = crate::socket::line(from, &mut room)? {
        let text = String::from_utf8_lossy(line);
        match replay.take(&parse(&text)) {
            Some(Step::Front) => match replay.front() {
                none if none.is_empty() => out.nobody()?,
                apps => {
                    let apps = apps.into_iter().map(|app| placed(app, place));
                    out.focus(Report::Front(apps.collect()))?;
                }
            },
            Some(Step::Tell(report)) => {
                let report = match report {
                    Report::Launch(app) => Report::Launch(placed(app, place)),
                    Report::Window(app) => Report::Window(placed(app, place)),
                    other => other,
                };
                out.say(crate::event::Event::Other(report))?;
            }
            Some(Step::Away(on)) => out.away(Nobody::Locked, on)?,
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "android_tests.rs"]
mod tests;
