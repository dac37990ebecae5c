// SPDX-License-Identifier: GPL-2.0-only
//! Of all that the sources say, what the daemon has to know: a pure function of events.
//!
//! The compositor says who has the focus, others that nobody sits in front of the screen. While one of these holds, the
//! focus is remembered and not told; afterwards it holds again. Nobody is idle while an app keeps the screen awake or is a
//! registered game: videos are watched, and gamepads are no input to a compositor. What is already known is not told twice.

use crate::event::Event;
use fasttrack_detector::decision::same_app;
use fasttrack_detector::report::{AppRef, Nobody, Report, Sense};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Texts of faults that are remembered as logged already: a source that fails in ever new ways must not fill memory.
const LOGGED_MOST: usize = 64;
/// Launches that are remembered: two sources see most of them.
const LAUNCHES_MOST: usize = 32;

/// Senses that have ended and whose end the daemon has not taken: as many as it remembers of a session.
const ENDED_MOST: usize = fasttrack_detector::policy::APPS_MOST;

/// What follows from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The daemon is told.
    Tell(Report),
    /// The daemon is told what went wrong with a source, and how often.
    Trouble(Trouble),
    /// The daemon is told which sources are in use, first that of the focus.
    Sources(Vec<&'static str>),
    /// It is logged, for the first time.
    Log(String),
}

/// What went wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Which.
    pub source: &'static str,
    /// What the last trouble means.
    pub why: String,
    /// How often.
    pub counts: Counts,
}

/// How often a source has failed, and how often it could not tell whose a window is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Faults.
    pub faults: u64,
    /// Windows of nobody.
    pub unknown: u64,
}

/// Of which source, who can be noticed by what. A source that names an app again may name another process of it.
type Heard = (&'static str, AppRef, Sense);

/// The state of a session.
#[derive(Debug, Clone, Default)]
pub struct Merge {
    focus: Option<Report>,
    away: Vec<(&'static str, Nobody)>,
    told: Option<Report>,
    senses: Vec<Heard>,
    /// The daemon takes these for senses that hold.
    ended: VecDeque<(AppRef, Sense)>,
    launches: VecDeque<u64>,
    counts: BTreeMap<&'static str, Counts>,
    last: BTreeMap<&'static str, String>,
    logged: BTreeSet<(&'static str, String)>,
}

impl Merge {
    /// Takes an event.
    pub fn take(&mut self, event: Event) -> Vec<Step> {
        match event {
            Event::Focus(report) => {
                self.focus = Some(report);
                self.front()
            }
            Event::Away { source, why, on } => {
                self.away.retain(|one| *one != (source, why));
                if on {
                    self.away.push((source, why));
                }
                self.front()
            }
            Event::Other(report) => self.other(report),
            Event::Sense {
                source,
                app,
                sense,
                on,
            } => self.sense(source, app, sense, on),
            Event::Deaf { source } => self.deaf(source),
            Event::Unknown { source, why } => {
                self.counts.entry(source).or_default().unknown += 1;
                self.trouble(source, why)
            }
            Event::Fault { source, why } => {
                self.counts.entry(source).or_default().faults += 1;
                self.trouble(source, why)
            }
            Event::Sources(names) => vec![Step::Sources(names)],
            Event::Daemon => self.again(),
            // Nobody asks what comes after.
            Event::End(_) => Vec::new(),
        }
    }

    /// The daemon was not told this report, or anything else: it is counted as any fault is, and the line to log, if it
    /// is new.
    ///
    /// What holds, and which senses have ended, is told again after a while (see [`crate::again`]), and when the daemon
    /// comes: it then knows nothing.
    pub fn untold(&mut self, report: Option<Report>, why: String) -> Option<String> {
        if let Some(Report::Perceptible {
            app,
            sense,
            on: false,
        }) = report
        {
            if self.ended.len() >= ENDED_MOST {
                self.ended.pop_front();
            }
            self.ended.push_back((app, sense));
        }
        let steps = self.take(Event::Fault {
            source: "daemon",
            why,
        });
        steps.into_iter().find_map(|step| match step {
            Step::Log(line) => Some(line),
            // It would not arrive either.
            Step::Tell(_) | Step::Trouble(_) | Step::Sources(_) => None,
        })
    }

    /// What was counted of each source that has had trouble.
    pub fn counts(&self) -> &BTreeMap<&'static str, Counts> {
        &self.counts
    }

    /// The most telling reason first: a locked screen of a session that is not active is of no interest.
    fn effective(&self) -> Option<Report> {
        let order = [Nobody::Inactive, Nobody::Locked, Nobody::Idle];
        let watches = |(_, _, sense): &Heard| matches!(sense, Sense::Inhibitor | Sense::Game);
        let watched = self.senses.iter().any(watches);
        let away = order
            .into_iter()
            .filter(|why| *why != Nobody::Idle || !watched)
            .find(|why| self.away.iter().any(|(_, one)| one == why));
        match away {
            Some(why) => Some(Report::Nobody(why)),
            None => self.focus.clone(),
        }
    }

    fn front(&mut self) -> Vec<Step> {
        let now = self.effective();
        // The first thing that is heard of a session may be that it is used.
        if now == self.told {
            return Vec::new();
        }
        self.told = now.clone();
        now.map(Step::Tell).into_iter().collect()
    }

    /// The daemon is told when the first source says so, and when none says so any more.
    fn sense(&mut self, source: &'static str, app: AppRef, sense: Sense, on: bool) -> Vec<Step> {
        let is_it = |(_, one, other): &Heard| same_app(one, &app) && *other == sense;
        let is_own = |one: &Heard| one.0 == source && is_it(one);
        let before = self.senses.iter().any(is_it);
        match on {
            true if self.senses.iter().any(is_own) => {}
            true => self.senses.push((source, app.clone(), sense)),
            false => self.senses.retain(|one| !is_own(one)),
        }
        if self.senses.iter().any(is_it) == before {
            return Vec::new();
        }
        let same = |(one, other): &(AppRef, Sense)| same_app(one, &app) && *other == sense;
        self.ended.retain(|one| !same(one));
        let mut steps = vec![Step::Tell(Report::Perceptible { app, sense, on })];
        steps.extend(self.front());
        steps
    }

    fn deaf(&mut self, source: &'static str) -> Vec<Step> {
        let all = self.senses.iter().filter(|one| one.0 == source);
        let all: Vec<Heard> = all.cloned().collect();
        let over = |(source, app, sense)| self.sense(source, app, sense, false);
        all.into_iter().flat_map(over).collect()
    }

    fn other(&mut self, report: Report) -> Vec<Step> {
        if let Report::Launch(app) = &report {
            // A log of Android has no inodes.
            if app.inode > 0 && self.launches.contains(&app.inode) {
                return Vec::new();
            }
            self.launches.truncate(LAUNCHES_MOST - 1);
            self.launches.push_front(app.inode);
        }
        let mut steps = vec![Step::Tell(report)];
        steps.extend(self.front());
        steps
    }

    fn again(&mut self) -> Vec<Step> {
        let perceptible = |on| move |(app, sense)| Report::Perceptible { app, sense, on };
        // An end that is refused once more comes back by `untold`.
        let ended = std::mem::take(&mut self.ended).into_iter();
        let ended = ended.map(perceptible(false));
        let senses = self.senses.iter().cloned();
        let senses = senses.map(|(_, app, sense)| perceptible(true)((app, sense)));
        let troubles = self.last.keys().filter_map(|source| self.told_of(source));
        let troubles: Vec<Step> = troubles.map(Step::Trouble).collect();
        let reports = self.told.iter().cloned().chain(ended).chain(senses);
        reports.map(Step::Tell).chain(troubles).collect()
    }

    fn trouble(&mut self, source: &'static str, why: String) -> Vec<Step> {
        self.last.insert(source, why.clone());
        let mut steps = self.log(source, why);
        steps.extend(self.told_of(source).map(Step::Trouble));
        steps
    }

    fn told_of(&self, source: &'static str) -> Option<Trouble> {
        Some(Trouble {
            source,
            why: self.last.get(source)?.clone(),
            counts: *self.counts.get(source)?,
        })
    }

    fn log(&mut self, source: &'static str, why: String) -> Vec<Step> {
        let line = format!("{source}: {why}");
        let new = self.logged.len() < LOGGED_MOST && self.logged.insert((source, why));
        new.then_some(Step::Log(line)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str) -> AppRef {
        AppRef {
            cgroup: format!("/{name}"),
            inode: 1,
            id: name.into(),
            pid: 0,
        }
    }

    fn front(name: &str) -> Report {
        Report::Front(vec![app(name)])
    }

    fn heard(source: &'static str, name: &str, sense: Sense, on: bool) -> Event {
        let app = app(name);
        Event::Sense {
            source,
            app,
            sense,
            on,
        }
    }

    fn away(why: Nobody, on: bool) -> Event {
        Event::Away {
            source: "logind",
            why,
            on,
        }
    }

    #[test]
    fn what_is_known_is_not_told_twice() {
        let mut merge = Merge::default();
        assert_eq!(
            merge.take(Event::Focus(front("a"))),
            [Step::Tell(front("a"))]
        );
        assert_eq!(merge.take(Event::Focus(front("a"))), []);
        assert_eq!(
            merge.take(Event::Focus(front("b"))),
            [Step::Tell(front("b"))]
        );
    }

    #[test]
    fn a_lock_hides_the_focus_and_gives_it_back() {
        let mut merge = Merge::default();
        assert_eq!(merge.take(away(Nobody::Locked, false)), []);
        merge.take(Event::Focus(front("a")));
        let locked = Report::Nobody(Nobody::Locked);
        assert_eq!(merge.take(away(Nobody::Locked, true)), [Step::Tell(locked)]);
        assert_eq!(merge.take(Event::Focus(front("b"))), []);
        assert_eq!(merge.take(away(Nobody::Idle, true)), []);
        let idle = Report::Nobody(Nobody::Idle);
        assert_eq!(merge.take(away(Nobody::Locked, false)), [Step::Tell(idle)]);
        assert_eq!(
            merge.take(away(Nobody::Idle, false)),
            [Step::Tell(front("b"))]
        );
    }

    #[test]
    fn two_who_say_locked_must_both_say_unlocked() {
        let mut merge = Merge::default();
        let saver = |on| Event::Away {
            source: "screensaver",
            why: Nobody::Locked,
            on,
        };
        merge.take(Event::Focus(front("a")));
        merge.take(away(Nobody::Locked, true));
        assert_eq!(merge.take(saver(true)), []);
        assert_eq!(merge.take(away(Nobody::Locked, false)), []);
        assert_eq!(merge.take(saver(false)), [Step::Tell(front("a"))]);
    }

    #[test]
    fn nobody_is_idle_while_a_video_or_a_game_runs() {
        let mut merge = Merge::default();
        let game = |on| Report::Perceptible {
            app: app("g"),
            sense: Sense::Game,
            on,
        };
        let idle = || Step::Tell(Report::Nobody(Nobody::Idle));
        merge.take(Event::Focus(front("g")));
        assert_eq!(merge.take(away(Nobody::Idle, true)), [idle()]);
        let back = [Step::Tell(game(true)), Step::Tell(front("g"))];
        assert_eq!(merge.take(heard("gamemode", "g", Sense::Game, true)), back);
        assert_eq!(merge.take(away(Nobody::Locked, true)).len(), 1);
        merge.take(away(Nobody::Locked, false));
        let ends = [Step::Tell(game(false)), idle()];
        assert_eq!(merge.take(heard("gamemode", "g", Sense::Game, false)), ends);
    }

    #[test]
    fn a_new_daemon_is_told_all_that_holds() {
        let mut merge = Merge::default();
        let music = |on| Report::Perceptible {
            app: app("m"),
            sense: Sense::Audio,
            on,
        };
        merge.take(Event::Focus(front("a")));
        assert_eq!(
            merge.take(heard("pipewire", "m", Sense::Audio, true)),
            [Step::Tell(music(true))]
        );
        assert_eq!(merge.take(heard("pipewire", "m", Sense::Audio, true)), []);
        assert_eq!(
            merge.take(Event::Daemon),
            [Step::Tell(front("a")), Step::Tell(music(true))]
        );
        merge.take(heard("pipewire", "m", Sense::Audio, false));
        assert_eq!(merge.take(Event::Daemon), [Step::Tell(front("a"))]);
    }

    #[test]
    fn the_end_of_a_sense_is_told_until_it_is_taken() {
        let mut merge = Merge::default();
        let music = |name: &str, on| Report::Perceptible {
            app: app(name),
            sense: Sense::Audio,
            on,
        };
        let tell = |name: &str, on| Step::Tell(music(name, on));
        let refused = |merge: &mut Merge, name: &str| {
            merge.take(heard("pipewire", name, Sense::Audio, true));
            assert_eq!(
                merge.take(heard("pipewire", name, Sense::Audio, false)),
                [tell(name, false)]
            );
            merge.untold(Some(music(name, false)), "inactive".into());
        };
        let told = |merge: &mut Merge| {
            let mut steps = merge.take(Event::Daemon);
            steps.retain(|step| matches!(step, Step::Tell(_)));
            steps
        };
        refused(&mut merge, "m");
        assert_eq!(told(&mut merge), [tell("m", false)]);
        merge.untold(Some(music("m", false)), "inactive".into());
        assert_eq!(told(&mut merge), [tell("m", false)]);
        // It was taken.
        assert_eq!(told(&mut merge), []);
        // What is heard again has not ended.
        refused(&mut merge, "m");
        merge.take(heard("pipewire", "m", Sense::Audio, true));
        assert_eq!(told(&mut merge), [tell("m", true)]);
        merge.untold(Some(music("m", true)), "inactive".into());
        assert_eq!(told(&mut merge), [tell("m", true)]);
        (0..2 * ENDED_MOST).for_each(|number| refused(&mut merge, &number.to_string()));
        assert_eq!(merge.ended.len(), ENDED_MOST);
    }

    #[test]
    fn a_sense_ends_with_the_last_who_says_so_whichever_process_it_names() {
        let mut merge = Merge::default();
        let said = |source, pid, on| Event::Sense {
            source,
            app: AppRef { pid, ..app("v") },
            sense: Sense::Inhibitor,
            on,
        };
        let told = |steps: &[Step]| match steps {
            [] => None,
            [Step::Tell(Report::Perceptible { on, .. })] => Some(*on),
            other => panic!("{other:?}"),
        };
        for (event, expected) in [
            (said("logind", 5, true), Some(true)),
            // Another process of the app has taken the place of the first.
            (said("logind", 6, false), Some(false)),
            (said("logind", 5, true), Some(true)),
            (said("desktop", 0, true), None),
            (said("logind", 5, false), None),
            (said("logind", 5, true), None),
            (said("desktop", 0, false), None),
            (Event::Deaf { source: "desktop" }, None),
            (Event::Deaf { source: "logind" }, Some(false)),
            (said("logind", 5, false), None),
        ] {
            assert_eq!(told(&merge.take(event.clone())), expected, "{event:?}");
        }
        assert!(merge.senses.is_empty());
    }

    #[test]
    fn a_launch_that_two_see_is_told_once() {
        let mut merge = Merge::default();
        let launch = |inode| Event::Other(Report::Launch(AppRef { inode, ..app("a") }));
        assert_eq!(merge.take(launch(7)).len(), 1);
        assert_eq!(merge.take(launch(7)).len(), 0);
        (100..200).for_each(|inode| drop(merge.take(launch(inode))));
        assert_eq!(merge.launches.len(), LAUNCHES_MOST);
        assert_eq!(merge.take(launch(0)).len(), 1);
        assert_eq!(merge.take(launch(0)).len(), 1);
    }

    #[test]
    fn a_fault_is_logged_once_and_counted() {
        let mut merge = Merge::default();
        let fault = || Event::Fault {
            source: "sway",
            why: "closed".into(),
        };
        let trouble = |faults| {
            Step::Trouble(Trouble {
                source: "sway",
                why: "closed".into(),
                counts: Counts { faults, unknown: 0 },
            })
        };
        assert_eq!(
            merge.take(fault()),
            [Step::Log("sway: closed".into()), trouble(1)]
        );
        assert_eq!(merge.take(fault()), [trouble(2)]);
        // A new daemon hears of it, too.
        assert_eq!(merge.take(Event::Daemon), [trouble(2)]);
        // That it was not told is no news for the daemon that is not there.
        assert_eq!(
            merge.untold(None, "gone".into()),
            Some("daemon: gone".into())
        );
        assert_eq!(
            merge.counts()["sway"],
            Counts {
                faults: 2,
                unknown: 0
            }
        );
        for number in 0..1000 {
            merge.take(Event::Fault {
                source: "sway",
                why: number.to_string(),
            });
        }
        assert_eq!(merge.logged.len(), LOGGED_MOST);
    }
}
