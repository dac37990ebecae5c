// SPDX-License-Identifier: GPL-2.0-only
//! What a detector decides, and why.

use crate::event::{SessionKey, Time};
use crate::report::{AppRef, Nobody, Sense};
use std::fmt;

/// The rule by which an app has its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// An administrator has said so.
    ByHand,
    /// It has the focus.
    Focus,
    /// It had the focus a moment ago, and nobody has it now.
    Kept,
    /// It begins, and the user waits for it.
    Launching,
    /// It had the focus a moment ago, and another has it now.
    Lingering,
    /// It can be noticed though it is not in front.
    Sense(Sense),
    /// None of the others.
    Behind,
}

impl Rule {
    /// Which rule wins where several give an app the same class: the lowest.
    fn rank(self) -> u8 {
        match self {
            Rule::ByHand => 0,
            Rule::Focus => 1,
            Rule::Kept => 2,
            Rule::Launching => 3,
            Rule::Sense(_) => 4,
            Rule::Lingering => 5,
            Rule::Behind => 6,
        }
    }

    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Rule::ByHand => "by-hand",
            Rule::Focus => "focus",
            Rule::Kept => "kept",
            Rule::Launching => "launching",
            Rule::Lingering => "lingering",
            Rule::Sense(sense) => sense.word(),
            Rule::Behind => "behind",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rule::ByHand => "an administrator has set it by hand",
            Rule::Focus => "it has the focus",
            Rule::Kept => "it had the focus a moment ago, and no window has it now",
            Rule::Launching => "it is being launched",
            Rule::Lingering => "it had the focus less than a second ago",
            Rule::Sense(Sense::Audio) => "it plays or records sound",
            Rule::Sense(Sense::Camera) => "it uses the camera",
            Rule::Sense(Sense::ScreenCast) => "it shows the screen to others",
            Rule::Sense(Sense::Inhibitor) => "it keeps the session from idling",
            Rule::Sense(Sense::Input) => "it is an input method",
            Rule::Sense(Sense::Game) => "GameMode has it as a game",
            Rule::Behind => "another app is in front",
        })
    }
}

/// An app and its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Who.
    pub app: AppRef,
    /// By which rule.
    pub rule: Rule,
    /// Since when the rule holds.
    pub since: Time,
    /// In which session; none for what was set by hand.
    pub session: Option<SessionKey>,
}

/// Why nobody is in front in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quiet {
    /// Nobody has the focus.
    Nobody(Nobody),
    /// Several apps say that they have the focus.
    Ambiguous(Vec<AppRef>),
    /// The compositor named here cannot tell.
    CannotTell(String),
    /// Its agent has not reported who has the focus.
    Silent,
}

impl fmt::Display for Quiet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quiet::Nobody(Nobody::Unfocused) => out.write_str("no window has the focus"),
            Quiet::Nobody(Nobody::Locked) => out.write_str("the screen is locked or off"),
            Quiet::Nobody(Nobody::Idle) => out.write_str("the user is idle"),
            Quiet::Nobody(Nobody::Inactive) => {
                out.write_str("the session is not the active one of its seat")
            }
            Quiet::Ambiguous(apps) => {
                let names: Vec<&str> = apps.iter().map(AppRef::name).collect();
                let who = match names[..] {
                    [] => "several apps".to_string(),
                    // They have ended since, or are known to nobody.
                    [one] => format!("{one} and others"),
                    _ => names.join(", "),
                };
                write!(out, "more than one has the focus: {who}")
            }
            Quiet::CannotTell(who) => write!(out, "{who} cannot tell which app has the focus"),
            Quiet::Silent => out.write_str("its agent has not said who has the focus"),
        }
    }
}

/// Who has which class. Each app is in one list, once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Apps in front.
    pub foreground: Vec<Verdict>,
    /// Apps that are neither preferred nor held back.
    pub perceptible: Vec<Verdict>,
    /// Apps that were spoken of and are neither: candidates for being held back.
    pub background: Vec<Verdict>,
    /// Games that are registered with GameMode, in front or not: their I/O priority is GameMode's.
    pub games: Vec<AppRef>,
    /// Sessions in which nobody is in front, and why.
    pub quiet: Vec<(SessionKey, Quiet)>,
}

impl Decision {
    /// Whether the effects of two decisions are the same: who has which class, whatever the reason.
    pub fn same_sets(&self, other: &Decision) -> bool {
        same_apps(&self.foreground, &other.foreground)
            && same_apps(&self.perceptible, &other.perceptible)
            && self.games == other.games
    }

    /// All verdicts, each with the name of its class: in front first, who is behind last. While nobody is in front that
    /// is neutral.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, &Verdict)> {
        let behind = match self.foreground.is_empty() {
            true => "neutral",
            false => "background",
        };
        let lists = [
            ("foreground", &self.foreground),
            ("perceptible", &self.perceptible),
            (behind, &self.background),
        ];
        lists
            .into_iter()
            .flat_map(|(class, list)| list.iter().map(move |verdict| (class, verdict)))
    }

    /// The verdict on the app with this control group.
    pub fn of(&self, cgroup: &str) -> Option<(&'static str, &Verdict)> {
        self.verdicts()
            .find(|(_, verdict)| verdict.app.cgroup == cgroup)
    }

    /// Puts every app into the first of the lists that has it, and there once, by its strongest rule.
    pub(crate) fn settle(&mut self) {
        once(&mut self.foreground);
        once(&mut self.perceptible);
        once(&mut self.background);
        let front = &self.foreground;
        self.perceptible.retain(|verdict| !has(front, verdict));
        let heard = &self.perceptible;
        self.background
            .retain(|verdict| !has(front, verdict) && !has(heard, verdict));
    }
}

/// Whether two references mean the same control group.
pub fn same_app(one: &AppRef, other: &AppRef) -> bool {
    one.inode == other.inode && one.cgroup == other.cgroup
}

fn has(list: &[Verdict], wanted: &Verdict) -> bool {
    list.iter()
        .any(|verdict| same_app(&verdict.app, &wanted.app))
}

fn same_apps(one: &[Verdict], other: &[Verdict]) -> bool {
    one.len() == other.len() && one.iter().all(|verdict| has(other, verdict))
}

/// Sorts a list by control group and keeps one verdict of each, that of the strongest rule, then the oldest.
fn once(list: &mut Vec<Verdict>) {
    list.sort_by(|one, other| {
        let key = |verdict: &Verdict| (verdict.app.inode, verdict.rule.rank(), verdict.since);
        one.app
            .cgroup
            .cmp(&other.app.cgroup)
            .then_with(|| key(one).cmp(&key(other)))
    });
    list.dedup_by(|one, other| same_app(&one.app, &other.app));
}
