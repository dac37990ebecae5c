// SPDX-License-Identifier: GPL-2.0-only
//! The owner of the state.

use crate::decision::{same_app, Decision, Rule, Verdict};
use crate::event::{Event, SessionKey, Time};
use crate::report::AppRef;
use crate::session::Session;
use std::collections::BTreeMap;

/// Decides who is in front, of what it was told.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    sessions: BTreeMap<SessionKey, Session>,
    by_hand: Vec<AppRef>,
    by_hand_only: bool,
    by_hand_since: Time,
    now: Time,
}

impl Detector {
    /// A detector that knows nobody.
    pub fn new() -> Detector {
        Detector::default()
    }

    /// Takes an event. A time before that of an earlier event counts as that one.
    pub fn handle(&mut self, at: Time, event: Event) {
        let now = self.pass(at);
        match event {
            Event::Report { session, report } => self.session(session).report(now, report),
            Event::Active { session, active } => self.session(session).set_active(now, active),
            Event::SessionGone(session) => drop(self.sessions.remove(&session)),
            Event::Gone(app) => {
                self.by_hand.retain(|one| !same_app(one, &app));
                self.sessions
                    .values_mut()
                    .for_each(|session| session.gone(now, &app));
            }
            Event::Wait(app) => self
                .sessions
                .values_mut()
                .for_each(|session| session.wait(now, &app)),
            Event::ByHand { only, apps } => {
                self.by_hand = apps;
                self.by_hand_only = only;
                self.by_hand_since = now;
            }
            Event::Tick => {}
        }
    }

    /// Who has which class now.
    pub fn decide(&self) -> Decision {
        let mut decision = Decision::default();
        self.sessions
            .values()
            .for_each(|session| session.decide(&mut decision));
        if self.by_hand_only {
            let front = std::mem::take(&mut decision.foreground);
            let behind = front.into_iter().map(|verdict| Verdict {
                rule: Rule::Behind,
                since: self.by_hand_since,
                ..verdict
            });
            decision.background.extend(behind);
        }
        let by_hand = self.by_hand.iter().map(|app| Verdict {
            app: app.clone(),
            rule: Rule::ByHand,
            since: self.by_hand_since,
            session: None,
        });
        decision.foreground.extend(by_hand);
        decision.settle();
        decision
    }

    /// When the decision changes though nothing happens.
    pub fn deadline(&self) -> Option<Time> {
        self.sessions.values().filter_map(Session::deadline).min()
    }

    /// Launching apps that have shown a window: of these the detector wants to be told each [`Event::Wait`].
    pub fn settling(&self) -> Vec<AppRef> {
        let each = self.sessions.values().flat_map(Session::settling);
        each.cloned().collect()
    }

    /// What was set by hand, and whether sessions do not count beside it.
    pub fn by_hand(&self) -> (&[AppRef], bool) {
        (&self.by_hand, self.by_hand_only)
    }

    fn session(&mut self, key: SessionKey) -> &mut Session {
        let now = self.now;
        self.sessions
            .entry(key)
            .or_insert_with_key(|key| Session::new(key.clone(), now))
    }

    fn pass(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        let now = self.now;
        self.sessions
            .values_mut()
            .for_each(|session| session.pass(now));
        now
    }
}
