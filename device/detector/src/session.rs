// SPDX-License-Identifier: GPL-2.0-only
//! What one session has said.

use crate::decision::{same_app, Decision, Quiet, Rule, Verdict};
use crate::event::{SessionKey, Time};
use crate::launch::Launch;
use crate::policy::{APPS_MOST, DEBOUNCE, LAUNCHES_IN_FRONT, LINGER, LINGERING_MOST};
use crate::report::{AppRef, Nobody, Report, Sense};

/// Who has the focus, as the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Focus {
    /// Nothing was said yet.
    Silent,
    Apps(Vec<AppRef>),
    Nobody(Nobody),
    Ambiguous(Vec<AppRef>),
    CannotTell(String),
}

/// An app that was spoken of, and when last.
#[derive(Debug, Clone)]
struct Known {
    app: AppRef,
    said: Time,
    behind_since: Time,
}

/// One session. Its owner says whether it is the active one of its seat.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    key: SessionKey,
    active: bool,
    focus: Focus,
    focus_since: Time,
    /// The apps that had the focus, while "nobody" is not believed yet, and when it will be.
    kept: Option<(Vec<AppRef>, Time, Time)>,
    launches: Vec<Launch>,
    lingering: Vec<(AppRef, Time)>,
    senses: Vec<(AppRef, Sense, Time)>,
    known: Vec<Known>,
}

impl Session {
    /// A session that has not said anything.
    pub fn new(key: SessionKey, now: Time) -> Session {
        Session {
            key,
            active: true,
            focus: Focus::Silent,
            focus_since: now,
            kept: None,
            launches: Vec::new(),
            lingering: Vec::new(),
            senses: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Takes what its agent says.
    pub fn report(&mut self, now: Time, report: Report) {
        match report {
            Report::Front(apps) => self.set_focus(now, Focus::Apps(apps)),
            Report::Nobody(why) => self.set_focus(now, Focus::Nobody(why)),
            Report::Ambiguous(apps) => self.set_focus(now, Focus::Ambiguous(apps)),
            Report::CannotTell(who) => self.set_focus(now, Focus::CannotTell(who)),
            Report::Launch(app) => self.launch(now, app),
            Report::Window(app) => self.window(now, &app),
            Report::Perceptible { app, sense, on } => self.sense(now, app, sense, on),
        }
    }

    /// Whether it is the active one of its seat.
    pub fn set_active(&mut self, now: Time, active: bool) {
        if self.active != active {
            self.active = active;
            self.drop_front(now);
        }
    }

    /// A launching app waits for storage.
    pub fn wait(&mut self, now: Time, app: &AppRef) {
        self.launches
            .iter_mut()
            .filter(|launch| same_app(&launch.app, app))
            .for_each(|launch| launch.wait(now));
    }

    /// Forgets a control group.
    pub fn gone(&mut self, now: Time, app: &AppRef) {
        let other = |one: &AppRef| !same_app(one, app);
        self.launches.retain(|launch| other(&launch.app));
        self.lingering.retain(|(one, _)| other(one));
        self.senses.retain(|(one, _, _)| other(one));
        self.known.retain(|known| other(&known.app));
        if let Some((apps, _, _)) = &mut self.kept {
            apps.retain(other);
        }
        if let Focus::Apps(apps) | Focus::Ambiguous(apps) = &mut self.focus {
            let before = apps.len();
            apps.retain(other);
            if apps.is_empty() && before > 0 {
                self.focus = Focus::Nobody(Nobody::Unfocused);
                self.focus_since = now;
            }
        }
    }

    /// Ends what is over at this time.
    pub fn pass(&mut self, now: Time) {
        if let Some((apps, _, until)) = self.kept.take_if(|(_, _, until)| *until <= now) {
            // Nobody sees them linger before another app has the focus: a switcher of apps may have it meanwhile.
            self.linger(until, apps);
        }
        self.launches.retain(|launch| launch.end() > now);
        self.lingering.retain(|(_, until)| *until > now);
    }

    /// When the next of these ends.
    pub fn deadline(&self) -> Option<Time> {
        let kept = self.kept.iter().map(|(_, _, until)| *until);
        let launches = self.launches.iter().map(Launch::end);
        let lingering = self.lingering.iter().map(|(_, until)| *until);
        kept.chain(launches).chain(lingering).min()
    }

    /// Launching apps in front that have shown a window: their next waits say how long they launch.
    pub fn settling(&self) -> impl Iterator<Item = &AppRef> {
        let newest = self.launches.iter().rev().take(LAUNCHES_IN_FRONT);
        newest
            .filter(|launch| self.active && launch.is_settling())
            .map(|launch| &launch.app)
    }

    /// Adds its part to a decision.
    pub fn decide(&self, into: &mut Decision) {
        match self.quiet() {
            Some(why) => into.quiet.push((self.key.clone(), why)),
            None => self.decide_front(into),
        }
        let games = self.senses.iter();
        let games = games.filter(|(_, sense, _)| *sense == Sense::Game);
        into.games.extend(games.map(|(app, _, _)| app.clone()));
        for (app, sense, since) in &self.senses {
            into.perceptible
                .push(self.verdict(app, Rule::Sense(*sense), *since));
        }
        for known in &self.known {
            into.background
                .push(self.verdict(&known.app, Rule::Behind, known.behind_since));
        }
    }

    /// Why nobody is in front; none where somebody may be.
    fn quiet(&self) -> Option<Quiet> {
        if !self.active {
            return Some(Quiet::Nobody(Nobody::Inactive));
        }
        match &self.focus {
            Focus::Apps(_) => None,
            Focus::Nobody(Nobody::Unfocused) if self.kept.is_some() => None,
            // A launch is known without the compositor: whoever cannot tell the focus does not hide it.
            Focus::Nobody(Nobody::Unfocused) | Focus::CannotTell(_) | Focus::Silent
                if !self.launches.is_empty() =>
            {
                None
            }
            Focus::Nobody(why) => Some(Quiet::Nobody(*why)),
            Focus::Ambiguous(apps) => Some(Quiet::Ambiguous(apps.clone())),
            Focus::CannotTell(who) => Some(Quiet::CannotTell(who.clone())),
            Focus::Silent => Some(Quiet::Silent),
        }
    }

    fn decide_front(&self, into: &mut Decision) {
        if let Focus::Apps(apps) = &self.focus {
            let front = apps
                .iter()
                .map(|app| self.verdict(app, Rule::Focus, self.focus_since));
            into.foreground.extend(front);
        }
        if let Some((apps, since, _)) = &self.kept {
            let front = apps.iter().map(|app| self.verdict(app, Rule::Kept, *since));
            into.foreground.extend(front);
        }
        for launch in self.launches.iter().rev().take(LAUNCHES_IN_FRONT) {
            into.foreground
                .push(self.verdict(&launch.app, Rule::Launching, launch.since));
        }
        for (app, until) in &self.lingering {
            into.perceptible
                .push(self.verdict(app, Rule::Lingering, until.saturating_sub(LINGER)));
        }
    }

    fn verdict(&self, app: &AppRef, rule: Rule, since: Time) -> Verdict {
        Verdict {
            app: app.clone(),
            rule,
            since,
            session: Some(self.key.clone()),
        }
    }

    /// Remembers that an app was spoken of.
    fn note(&mut self, now: Time, app: &AppRef) {
        if let Some(known) = self
            .known
            .iter_mut()
            .find(|known| same_app(&known.app, app))
        {
            known.said = now;
            known.app = app.clone();
            return;
        }
        if self.known.len() >= APPS_MOST {
            let oldest = (0..self.known.len()).min_by_key(|index| self.known[*index].said);
            oldest.map(|index| self.known.swap_remove(index));
        }
        self.known.push(Known {
            app: app.clone(),
            said: now,
            behind_since: now,
        });
    }

    /// An app has a window.
    fn window(&mut self, now: Time, app: &AppRef) {
        self.note(now, app);
        self.launches
            .iter_mut()
            .filter(|launch| same_app(&launch.app, app))
            .for_each(|launch| launch.window(now));
    }

    fn set_focus(&mut self, now: Time, focus: Focus) {
        match &focus {
            // Who has the focus has a window. Some sources, GNOME's for one, say nothing else of windows.
            Focus::Apps(apps) => apps.iter().for_each(|app| self.window(now, app)),
            Focus::Ambiguous(apps) => apps.iter().for_each(|app| self.note(now, app)),
            _ => {}
        }
        if focus == self.focus {
            return;
        }
        let before = std::mem::replace(&mut self.focus, focus);
        let since = std::mem::replace(&mut self.focus_since, now);
        match (&self.focus, before) {
            (Focus::Nobody(Nobody::Unfocused), Focus::Apps(apps)) => {
                self.kept = Some((apps, since, now + DEBOUNCE))
            }
            (Focus::Apps(_), Focus::Apps(apps)) => self.leave(now, apps, since),
            (Focus::Apps(_), _) => {
                if let Some((apps, since, _)) = self.kept.take() {
                    self.leave(now, apps, since);
                }
            }
            _ => self.drop_front(now),
        }
    }

    /// Apps lose the focus to others: those that do not have it again linger.
    fn leave(&mut self, now: Time, apps: Vec<AppRef>, since: Time) {
        let Focus::Apps(front) = &self.focus else {
            return;
        };
        let in_front = |app: &AppRef| front.iter().any(|one| same_app(one, app));
        if apps.len() == front.len() && apps.iter().all(in_front) {
            self.focus_since = since;
        }
        self.lingering.retain(|(one, _)| !in_front(one));
        let left = apps.into_iter().filter(|app| !in_front(app)).collect();
        self.linger(now, left);
    }

    /// Apps are behind from this time on, and linger for a while.
    fn linger(&mut self, at: Time, apps: Vec<AppRef>) {
        for app in apps {
            self.behind(at, &app);
            self.lingering.retain(|(one, _)| !same_app(one, &app));
            self.lingering.push((app, at + LINGER));
        }
        let surplus = self.lingering.len().saturating_sub(LINGERING_MOST);
        self.lingering.drain(..surplus);
    }

    /// Nobody is in front any more, and at once.
    fn drop_front(&mut self, now: Time) {
        self.kept = None;
        self.lingering.clear();
        self.known
            .iter_mut()
            .for_each(|known| known.behind_since = now);
    }

    fn behind(&mut self, now: Time, app: &AppRef) {
        if let Some(known) = self
            .known
            .iter_mut()
            .find(|known| same_app(&known.app, app))
        {
            known.behind_since = now;
        }
    }

    fn launch(&mut self, now: Time, app: AppRef) {
        self.note(now, &app);
        if self
            .launches
            .iter()
            .any(|launch| same_app(&launch.app, &app))
        {
            return;
        }
        if self.launches.len() >= APPS_MOST {
            self.launches.remove(0);
        }
        self.launches.push(Launch::new(app, now));
    }

    fn sense(&mut self, now: Time, app: AppRef, sense: Sense, on: bool) {
        let index = self
            .senses
            .iter()
            .position(|(one, what, _)| same_app(one, &app) && *what == sense);
        // What was never heard and is heard no longer says nothing of an app.
        if on || index.is_some() {
            self.note(now, &app);
        }
        match index {
            Some(index) if !on => drop(self.senses.remove(index)),
            None if on => {
                if self.senses.len() >= APPS_MOST {
                    self.senses.remove(0);
                }
                self.senses.push((app, sense, now));
            }
            _ => {}
        }
    }
}
