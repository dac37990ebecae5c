// SPDX-License-Identifier: GPL-2.0-only
//! What the tests of the policy share.
#![allow(dead_code)] // each test file takes some of it

use fasttrack_detector::report::{AppRef, Report};
use fasttrack_detector::{Decision, Detector, Event, SessionKey, Time, Verdict};
use std::time::Duration;

/// An app by one letter.
pub fn app(name: &str) -> AppRef {
    AppRef {
        cgroup: format!("/user.slice/user-1000.slice/{name}.scope"),
        inode: name.bytes().map(u64::from).sum(),
        id: name.to_string(),
        pid: 0,
    }
}

/// Milliseconds since boot.
pub fn ms(number: u64) -> Time {
    Duration::from_millis(number)
}

/// A session of a user on a seat.
pub fn session(user: u32) -> SessionKey {
    SessionKey {
        user,
        seat: format!("seat{user}"),
        id: format!("c{user}"),
    }
}

/// A detector and its events by short names.
#[derive(Default)]
pub struct Play(pub Detector);

impl Play {
    pub fn says(&mut self, at: u64, report: Report) -> &mut Play {
        self.of(1000, at, report)
    }

    pub fn of(&mut self, user: u32, at: u64, report: Report) -> &mut Play {
        let session = session(user);
        self.event(at, Event::Report { session, report })
    }

    pub fn event(&mut self, at: u64, event: Event) -> &mut Play {
        self.0.handle(ms(at), event);
        self
    }

    pub fn at(&mut self, at: u64) -> Decision {
        self.0.handle(ms(at), Event::Tick);
        self.0.decide()
    }

    /// Who is in front at this time, by letters.
    pub fn front(&mut self, at: u64) -> String {
        names(&self.at(at).foreground)
    }

    pub fn perceptible(&mut self, at: u64) -> String {
        names(&self.at(at).perceptible)
    }

    pub fn background(&mut self, at: u64) -> String {
        names(&self.at(at).background)
    }
}

/// Ids of apps, in one word.
pub fn names(list: &[Verdict]) -> String {
    list.iter().map(|verdict| verdict.app.id.as_str()).collect()
}

/// These apps have the focus.
pub fn front(names: &[&str]) -> Report {
    Report::Front(names.iter().copied().map(app).collect())
}
