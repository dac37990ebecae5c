// SPDX-License-Identifier: GPL-2.0-only
//! Which sources run while others come, fail and go.

use super::*;
use crate::testing::FakePlace;
use fasttrack_detector::report::Report;
use std::collections::BTreeSet;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender};
use std::sync::{Arc, Mutex};

/// A source's name, and who ends it.
type Running = (&'static str, Sender<Result<(), Fault>>);

/// What a test says of its sources: which can tell, and which of those that run are to end, and how.
#[derive(Clone, Default)]
struct Stage {
    can: Arc<Mutex<BTreeSet<&'static str>>>,
    running: Arc<Mutex<Vec<Running>>>,
    env: Arc<Mutex<Env>>,
}

impl Stage {
    fn can(&self, names: &[&'static str]) {
        *self.can.lock().expect("no panic") = names.iter().copied().collect();
    }

    fn end(&self, name: &str, how: Result<(), Fault>) {
        let mut all = self.running.lock().expect("no panic");
        let at = all.iter().rposition(|(one, _)| *one == name);
        let (_, to) = all.remove(at.expect("it runs"));
        to.send(how).expect("it waits");
    }
}

/// A source that is told to end so panics.
const PANICS: &str = "panics";

struct One(&'static str, Stage);

impl Source for One {
    fn name(&self) -> &'static str {
        self.0
    }

    fn probe(&self) -> Probe {
        let panics = self.1.can.lock().expect("no panic").contains(PANICS);
        assert!(!panics || self.0 == cannot::NAME, "half a message");
        let can = self.1.can.lock().expect("no panic").contains(self.0);
        match can {
            true => Probe::Yes,
            false => Probe::No("not yet".into()),
        }
    }

    /// Says its name whenever it begins and once more after its end was ordered.
    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (to, from) = channel();
        self.1.running.lock().expect("no panic").push((self.0, to));
        out.cannot_tell(self.0)?;
        let how = from.recv().map_err(|_| Fault::new("the test is over"))?;
        assert_ne!(how, Err(Fault::new(PANICS)), "half a message");
        if how.is_ok() {
            out.cannot_tell(self.0)?;
        }
        how
    }

    fn tells_focus(&self) -> bool {
        self.0 != "sound"
    }
}

impl Sources for Stage {
    fn focus(&self, _: &Env) -> Vec<Box<dyn Source>> {
        let names = ["best", "good", cannot::NAME];
        names
            .map(|name| Box::new(One(name, self.clone())) as Box<dyn Source>)
            .into()
    }

    fn others(&self, _: &Env) -> Vec<Box<dyn Source>> {
        vec![Box::new(One("sound", self.clone()))]
    }

    fn env(&self) -> Env {
        self.env.lock().expect("no panic").clone()
    }
}

/// A conductor without a thread of its own: a test hands it what happens, and the time.
struct Play {
    stage: Stage,
    conductor: Conductor<Stage>,
    wake: Wake,
    signs: Signs,
    told: Receiver<Event>,
    now: Instant,
}

impl Play {
    fn new(wanted: Wanted) -> Play {
        let stage = Stage::default();
        let (to, told) = sync_channel(64);
        let wake = Wake::new().expect("an eventfd");
        let out = Out::new("agent", FakePlace::new().resolver(), to);
        Play {
            conductor: Conductor::new(stage.clone(), wanted, out, wake.clone()),
            signs: Signs::new(&Env::default(), wake.clone()).expect("signs"),
            stage,
            wake,
            told,
            now: Instant::now(),
        }
    }

    /// What comes next: a source's name, "nobody" or "fault".
    fn next(&self) -> String {
        let mut told = self.told.iter();
        let told =
            told.find(|event| !matches!(event, Event::Away { on: false, .. } | Event::Deaf { .. }));
        match told.expect("something") {
            Event::Focus(Report::CannotTell(name)) => name,
            Event::Focus(Report::Nobody(_)) => "nobody".into(),
            Event::Fault { .. } => "fault".into(),
            other => panic!("{other:?}"),
        }
    }

    fn sign(&mut self) {
        self.conductor.sign(self.now);
    }

    /// Takes the end of a source.
    fn ended(&mut self) {
        loop {
            let seen = self.signs.wait(None).expect("waited");
            for said in seen.said {
                if let Said::Ended(name, number, failed) = said {
                    self.conductor.ended(name, number, failed, self.now);
                    return;
                }
            }
        }
    }

    /// Lets time pass until nothing is left to do by time alone; says how long that was.
    fn pass(&mut self) -> Duration {
        let begin = self.now;
        while let Some(at) = self.conductor.deadline() {
            self.now = self.now.max(at);
            self.conductor.due(self.now);
        }
        self.now - begin
    }

    fn focus(&self) -> Option<&'static str> {
        self.conductor.running().map(|(_, name)| name)
    }
}

#[test]
fn a_compositor_that_comes_late_is_found_and_tells_more_than_nothing() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&[cannot::NAME]);
    play.sign();
    assert_eq!(play.next(), cannot::NAME);
    // What comes a moment after a sign is seen without another one.
    play.stage.can(&["best", cannot::NAME]);
    assert!(play.pass() <= LOOKS[3]);
    assert_eq!((play.focus(), play.next()), (Some("best"), "best".into()));
    assert_eq!(play.conductor.deadline(), None);
}

#[test]
fn many_signs_are_one_look_a_second() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&[cannot::NAME]);
    let begin = play.now;
    let mut looks = 0;
    for _ in 0..1000 {
        play.conductor.signs(play.now);
        looks += u32::from(play.conductor.signed == Some(play.now));
        play.now += Duration::from_millis(10);
    }
    assert_eq!((play.now - begin).as_secs(), 10);
    assert_eq!(looks, 10);
    // The last one is not lost.
    assert_eq!(play.conductor.merged, Some(play.now));
    play.conductor.due(play.now);
    assert_eq!(play.conductor.signed, Some(play.now));
    play.pass();
    assert_eq!(play.conductor.deadline(), None);
}

#[test]
fn one_that_works_is_replaced_only_where_the_environment_has_changed() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["good"]);
    play.sign();
    assert_eq!(play.next(), "good");
    // A compositor in a window.
    play.stage.can(&["best", "good"]);
    play.sign();
    assert_eq!(play.focus(), Some("good"));
    *play.stage.env.lock().expect("no panic") = Env::of([("WAYLAND_DISPLAY", "w")]);
    play.sign();
    assert_eq!((play.focus(), play.next()), (Some("best"), "best".into()));
    // What the old one says is not told, nor is its end one of the new one.
    play.stage.end("good", Ok(()));
    play.ended();
    assert_eq!(play.focus(), Some("best"));
    assert!(play.told.try_recv().is_err());
}

#[test]
fn a_source_that_fails_is_tried_again_and_given_up_until_there_is_a_sign() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["best", cannot::NAME]);
    play.sign();
    assert_eq!(play.next(), "best");
    play.pass();
    play.stage.end("best", Err(Fault::new("closed")));
    play.ended();
    assert_eq!(
        (play.next(), play.next()),
        ("fault".into(), "nobody".into())
    );
    // Not there for a while: nobody says at once that nobody can tell.
    play.stage.can(&[cannot::NAME]);
    let at = play.conductor.deadline().expect("another try");
    play.now = at;
    play.conductor.due(at);
    assert_eq!(play.focus(), None);
    assert!(play.pass() > Duration::from_secs(60));
    assert_eq!(
        (play.focus(), play.next()),
        (Some(cannot::NAME), cannot::NAME.into())
    );
    play.stage.can(&["best", cannot::NAME]);
    play.sign();
    assert_eq!(play.next(), "best");
}

#[test]
fn a_source_that_panics_has_failed_and_ends_no_other() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["best", cannot::NAME]);
    play.sign();
    assert_eq!(play.next(), "best");
    play.pass();
    play.stage.end("best", Err(Fault::new(PANICS)));
    play.ended();
    let mut told = play.told.iter();
    let why = told.find_map(|event| match event {
        Event::Fault { source, why } => Some(format!("{source}: {why}")),
        _ => None,
    });
    let why = why.expect("a fault");
    assert!(
        why.starts_with("best: it panicked, as where the other side breaks its protocol: "),
        "{why}"
    );
    assert_eq!(play.next(), "nobody");
    play.now = play.conductor.deadline().expect("another try");
    play.conductor.due(play.now);
    assert_eq!((play.focus(), play.next()), (Some("best"), "best".into()));
    // One that panics while it is asked whether it can tell cannot.
    let mut play = Play::new(Wanted::default());
    play.stage.can(&[PANICS, cannot::NAME]);
    play.sign();
    assert_eq!(play.next(), cannot::NAME);
}

#[test]
fn one_that_begins_and_fails_for_ever_does_not_keep_the_agent_awake() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["best", "good", cannot::NAME]);
    play.sign();
    let mut tries = 0;
    while play.next() == "best" {
        tries += 1;
        play.stage.end("best", Err(Fault::new("no")));
        play.ended();
        assert_eq!(
            (play.next(), play.next()),
            ("fault".into(), "nobody".into())
        );
        play.pass();
    }
    // Then the next one has its turn.
    assert!((10..20).contains(&tries), "{tries}");
    assert_eq!(play.focus(), Some("good"));
    assert_eq!(play.conductor.deadline(), None);
}

#[test]
fn others_come_and_go_besides() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["best"]);
    play.sign();
    assert_eq!(play.next(), "best");
    play.stage.can(&["best", "sound"]);
    play.sign();
    assert_eq!(play.next(), "sound");
    play.stage.end("sound", Err(Fault::new("closed")));
    play.ended();
    assert_eq!(play.next(), "fault");
    let deaf = |event| event == Event::Deaf { source: "sound" };
    assert!(play.told.try_iter().any(deaf));
    play.pass();
    assert_eq!((play.focus(), play.next()), (Some("best"), "sound".into()));
    let mut play = Play::new(Wanted {
        focus: None,
        without: vec!["sound".into(), "best".into()],
        ends: false,
    });
    play.stage.can(&["best", "good", "sound"]);
    play.sign();
    assert_eq!(play.next(), "good");
    assert!(!play.conductor.slots.contains_key("sound"));
}

#[test]
fn one_that_is_asked_for_needs_not_say_that_it_can_and_ends_the_agent_where_that_is_wanted() {
    for ends in [true, false] {
        let wanted = Wanted {
            focus: Some("good".into()),
            without: Vec::new(),
            ends,
        };
        let mut play = Play::new(wanted);
        play.sign();
        assert_eq!(play.next(), "good");
        assert!(!play.conductor.is_over());
        play.stage.end("good", Ok(()));
        play.ended();
        assert_eq!(play.conductor.is_over(), ends);
        // Another source that comes then is still begun.
        play.stage.can(&["sound"]);
        play.sign();
        assert!(play.conductor.slots.contains_key("sound"));
        drop(play.wake);
    }
}

#[test]
fn the_sources_in_use_are_those_that_run() {
    let mut play = Play::new(Wanted::default());
    play.stage.can(&["good", "sound"]);
    play.sign();
    let mut heard = [play.next(), play.next()];
    heard.sort_unstable();
    assert_eq!(heard, ["good", "sound"]);
    assert_eq!(play.conductor.in_use(), ["good", "sound"]);
    play.conductor.tell().expect("told");
    let mut told = play.told.iter();
    let is_of_sources = |event: &Event| matches!(event, Event::Sources(_));
    assert_eq!(
        told.find(is_of_sources),
        Some(Event::Sources(vec!["good", "sound"]))
    );
    play.stage.end("good", Err(Fault::new("closed")));
    play.ended();
    assert_eq!(play.conductor.in_use(), ["sound"]);
}
