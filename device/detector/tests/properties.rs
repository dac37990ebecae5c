// SPDX-License-Identifier: GPL-2.0-only
//! What holds after any stream of events.

mod common;

use common::{app, ms, session, Play};
use fasttrack_detector::policy::{LAUNCH_MOST, LINGER};
use fasttrack_detector::report::{AppRef, Nobody, Report, Sense};
use fasttrack_detector::{Decision, Detector, Event, Rule, Time};
use std::collections::HashSet;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn some_apps(random: &mut fastrand::Rng) -> Vec<AppRef> {
    (0..random.usize(0..3)).map(|_| one_app(random)).collect()
}

fn one_app(random: &mut fastrand::Rng) -> AppRef {
    app(random.choice(NAMES).expect("names"))
}

fn report(random: &mut fastrand::Rng) -> Report {
    match random.u32(0..8) {
        0..=2 => Report::Front(some_apps(random)),
        3 => {
            let reasons = [
                Nobody::Unfocused,
                Nobody::Locked,
                Nobody::Idle,
                Nobody::Inactive,
            ];
            Report::Nobody(*random.choice(&reasons).expect("reasons"))
        }
        4 => Report::Launch(one_app(random)),
        5 => Report::Window(one_app(random)),
        6 => Report::Perceptible {
            app: one_app(random),
            sense: Sense::Audio,
            on: random.bool(),
        },
        _ if random.bool() => Report::Ambiguous(some_apps(random)),
        _ => Report::CannotTell("weston".to_string()),
    }
}

fn event(random: &mut fastrand::Rng) -> Event {
    let session = session(1000 + random.u32(0..2));
    match random.u32(0..20) {
        0 => Event::SessionGone(session),
        1 => Event::Active {
            session,
            active: random.bool(),
        },
        2 => Event::Gone(one_app(random)),
        3 => Event::Wait(one_app(random)),
        4 => Event::ByHand {
            only: random.u32(0..4) == 0,
            apps: some_apps(random),
        },
        5 => Event::Tick,
        _ => Event::Report {
            session,
            report: report(random),
        },
    }
}

fn each_app_has_one_class(decision: &Decision) {
    let all = [
        &decision.foreground,
        &decision.perceptible,
        &decision.background,
    ];
    let apps: Vec<&str> = all
        .iter()
        .flat_map(|list| list.iter())
        .map(|verdict| verdict.app.cgroup.as_str())
        .collect();
    let once: HashSet<&str> = apps.iter().copied().collect();
    assert_eq!(once.len(), apps.len(), "{decision:?}");
}

fn rules_fit_their_lists(decision: &Decision, now: Time) {
    for verdict in &decision.foreground {
        let fits = matches!(
            verdict.rule,
            Rule::ByHand | Rule::Focus | Rule::Kept | Rule::Launching
        );
        assert!(fits, "{verdict:?}");
        assert!(verdict.since <= now);
        let launching = verdict.rule == Rule::Launching;
        assert!(
            !launching || now < verdict.since + LAUNCH_MOST,
            "{verdict:?} at {now:?}"
        );
    }
    for verdict in &decision.perceptible {
        assert!(
            matches!(verdict.rule, Rule::Sense(_) | Rule::Lingering),
            "{verdict:?}"
        );
        let lingering = verdict.rule == Rule::Lingering;
        assert!(
            !lingering || now < verdict.since + LINGER,
            "{verdict:?} at {now:?}"
        );
    }
    assert!(decision
        .background
        .iter()
        .all(|verdict| verdict.rule == Rule::Behind));
}

fn quiet_sessions_have_nobody_in_front(decision: &Decision) {
    for (session, _) in &decision.quiet {
        let of_it =
            |verdict: &&fasttrack_detector::Verdict| verdict.session.as_ref() == Some(session);
        assert_eq!(decision.foreground.iter().find(of_it), None);
    }
}

/// A detector that is driven by deadlines alone decides as one that is asked all the time.
fn nothing_changes_before_the_deadline(detector: &Detector, now: Time) {
    let before = detector.decide();
    let Some(deadline) = detector.deadline() else {
        let mut later = detector.clone();
        later.handle(now + ms(3_600_000), Event::Tick);
        assert_eq!(later.decide(), before);
        return;
    };
    assert!(deadline > now);
    let mut later = detector.clone();
    later.handle(deadline - ms(1).min(deadline - now), Event::Tick);
    assert_eq!(later.decide(), before);
}

#[test]
fn a_random_stream_keeps_what_must_hold() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut play = Play::default();
        let mut at = 0;
        for _ in 0..200 {
            at += random.u64(0..400);
            play.event(at, event(&mut random));
            let decision = play.0.decide();
            each_app_has_one_class(&decision);
            rules_fit_their_lists(&decision, ms(at));
            quiet_sessions_have_nobody_in_front(&decision);
            nothing_changes_before_the_deadline(&play.0, ms(at));
        }
    }
}

#[test]
fn the_same_stream_gives_the_same_decisions() {
    let run = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut play = Play::default();
        (0..300)
            .map(|step| {
                play.event(step * 50, event(&mut random));
                format!("{:?}", play.0.decide())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
}
