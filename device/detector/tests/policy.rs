// SPDX-License-Identifier: GPL-2.0-only
//! Each rule of the policy, by short stories.

mod common;

use common::{app, front, ms, names, session, Play};
use fasttrack_detector::policy::{APPS_MOST, DEBOUNCE, LAUNCH_MOST, LINGER, LINGERING_MOST};
use fasttrack_detector::report::{Nobody, Report, Sense};
use fasttrack_detector::{Event, Quiet, Rule};

fn heard(name: &str, on: bool) -> Report {
    Report::Perceptible {
        app: app(name),
        sense: Sense::Audio,
        on,
    }
}

#[test]
fn who_has_the_focus_is_in_front_and_the_last_one_lingers() {
    let mut play = Play::default();
    play.says(0, front(&["a"])).says(1000, front(&["b"]));
    assert_eq!(play.front(1000), "b");
    assert_eq!(play.perceptible(1999), "a");
    assert_eq!(play.perceptible(2000), "");
    assert_eq!(play.background(2000), "a");
    assert_eq!(play.at(2000).background[0].since, ms(1000));
}

#[test]
fn none_between_two_windows_is_not_believed() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(1000, Report::Nobody(Nobody::Unfocused));
    let decision = play.at(1099);
    assert_eq!(names(&decision.foreground), "a");
    assert_eq!(decision.foreground[0].rule, Rule::Kept);
    play.says(1099, front(&["b"]));
    assert_eq!(play.front(1099), "b");
    assert_eq!(play.perceptible(1500), "a");
}

#[test]
fn none_is_believed_after_a_while() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(1000, Report::Nobody(Nobody::Unfocused));
    assert_eq!(play.0.deadline(), Some(ms(1000) + DEBOUNCE));
    assert_eq!(play.front(1100), "");
    assert_eq!(
        play.at(1100).quiet,
        [(session(1000), Quiet::Nobody(Nobody::Unfocused))]
    );
    assert_eq!(play.0.deadline(), Some(ms(1100) + LINGER));
    assert_eq!(play.perceptible(1101), "");
    assert_eq!((play.front(2100), play.0.deadline()), ("".into(), None));
}

#[test]
fn who_had_the_focus_before_nobody_lingers_beside_the_next_one() {
    let mut play = Play::default();
    let nobody = || Report::Nobody(Nobody::Unfocused);
    play.says(0, front(&["a"])).says(1000, nobody());
    play.says(1500, front(&["b"]));
    let lingers = play.at(2099).perceptible;
    assert_eq!((names(&lingers), lingers[0].since), ("a".into(), ms(1100)));
    assert_eq!(play.perceptible(2100), "");
    // Nobody lingers for longer because it had the focus in between.
    play.says(3000, front(&["a"])).says(3100, nobody());
    play.says(3300, front(&["a"])).says(3400, nobody());
    play.says(3600, front(&["b"]));
    assert_eq!(play.perceptible(3600), "a");
    assert_eq!(play.perceptible(4500), "");
}

#[test]
fn who_had_the_focus_before_nobody_is_behind_since_then() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(1000, Report::Nobody(Nobody::Unfocused));
    // The next thing that is heard is of much later.
    play.says(60_000, front(&["b"]));
    assert_eq!(
        (play.front(60_000), play.perceptible(60_000)),
        ("b".into(), "".into())
    );
    assert_eq!(play.at(60_000).background[0].since, ms(1000) + DEBOUNCE);
}

#[test]
fn the_same_focus_again_keeps_its_beginning() {
    let mut play = Play::default();
    play.says(5, front(&["a"])).says(700, front(&["a"]));
    assert_eq!(play.at(800).foreground[0].since, ms(5));
}

#[test]
fn two_are_in_front_while_one_launches() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(100, Report::Launch(app("b")));
    assert_eq!(play.front(101), "ab");
    play.says(900, Report::Window(app("b")))
        .says(901, front(&["b"]));
    assert_eq!(play.front(902), "b");
    assert_eq!(play.at(902).foreground[0].rule, Rule::Focus);
}

#[test]
fn a_launch_is_in_front_where_nobody_can_tell_the_focus() {
    let mut play = Play::default();
    play.says(0, Report::Launch(app("a")));
    assert_eq!(play.front(1), "a");
    let weston = || Report::CannotTell("weston".to_string());
    play.says(2, weston());
    assert_eq!((play.front(3), play.at(3).quiet), ("a".into(), vec![]));
    play.says(1000, Report::Window(app("a")));
    assert_eq!(play.front(2999), "a");
    assert_eq!(play.front(3000), "");
    let quiet = Quiet::CannotTell("weston".to_string());
    assert_eq!(play.at(3000).quiet, [(session(1000), quiet)]);
    // Who is not there waits for nothing.
    play.says(4000, Report::Launch(app("b")));
    play.says(4001, Report::Nobody(Nobody::Locked));
    assert_eq!(play.front(4002), "");
}

#[test]
fn a_launch_without_a_window_ends() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(100, Report::Launch(app("b")));
    assert_eq!(play.0.deadline(), Some(ms(100) + LAUNCH_MOST));
    assert_eq!(play.front(10_099), "ab");
    assert_eq!(play.front(10_100), "a");
}

#[test]
fn the_focus_is_a_window() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(100, Report::Launch(app("b")))
        .says(1000, front(&["b"]))
        .says(1500, front(&["a"]));
    assert_eq!(play.front(2999), "ab");
    assert_eq!(play.front(3000), "a");
}

#[test]
fn a_launch_that_waits_for_storage_stays_in_front_after_its_window() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(100, Report::Launch(app("b")));
    play.says(1000, Report::Window(app("b")));
    play.event(2500, Event::Wait(app("b")));
    assert_eq!(play.front(4499), "ab");
    assert_eq!(play.front(4500), "a");
}

#[test]
fn of_many_launches_the_newest_two_are_in_front() {
    let mut play = Play::default();
    play.says(0, Report::Nobody(Nobody::Unfocused));
    for (at, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        play.says(at, Report::Launch(app(name)));
    }
    assert_eq!(play.front(5), "cd");
    assert_eq!(play.background(5), "ab");
}

#[test]
fn a_registered_game_is_perceptible_behind_and_known_in_front_too() {
    let mut play = Play::default();
    let game = |on| Report::Perceptible {
        app: app("g"),
        sense: Sense::Game,
        on,
    };
    play.says(0, front(&["g"])).says(1, game(true));
    assert_eq!(
        (play.front(2), play.at(2).games),
        ("g".into(), vec![app("g")])
    );
    play.says(3, front(&["a"]));
    assert_eq!(play.at(2000).perceptible[0].rule, Rule::Sense(Sense::Game));
    play.says(2001, game(false));
    assert_eq!(
        (play.background(2002), play.at(2002).games),
        ("g".into(), vec![])
    );
}

#[test]
fn one_that_can_be_heard_is_perceptible_until_it_cannot() {
    let mut play = Play::default();
    play.says(0, front(&["a"])).says(1, heard("m", true));
    assert_eq!(play.perceptible(2), "m");
    assert_eq!(play.at(2).perceptible[0].rule, Rule::Sense(Sense::Audio));
    play.says(3, front(&["m"]));
    assert_eq!(
        (play.front(4), play.perceptible(4)),
        ("m".into(), "a".into())
    );
    play.says(5, front(&["a"])).says(6, heard("m", false));
    assert_eq!(play.perceptible(1500), "");
}

#[test]
fn nobody_is_in_front_of_a_locked_idle_or_inactive_session() {
    for why in [Nobody::Locked, Nobody::Idle, Nobody::Inactive] {
        let mut play = Play::default();
        play.says(0, front(&["a"]))
            .says(1, Report::Launch(app("b")))
            .says(2, heard("m", true))
            .says(3, Report::Nobody(why));
        assert_eq!(
            (play.front(3), play.perceptible(3)),
            (String::new(), "m".into())
        );
        assert_eq!(play.at(3).quiet, [(session(1000), Quiet::Nobody(why))]);
    }
}

#[test]
fn a_session_that_is_not_active_has_nobody_in_front() {
    let mut play = Play::default();
    play.says(0, front(&["a"]));
    let active = |active| Event::Active {
        session: session(1000),
        active,
    };
    play.event(5, active(false));
    assert_eq!(play.front(5), "");
    play.event(9, active(true));
    assert_eq!(play.front(9), "a");
}

#[test]
fn ambiguity_and_ignorance_boost_nothing() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(1, Report::Launch(app("c")))
        .says(2, Report::Ambiguous(vec![app("a"), app("b")]));
    assert_eq!(play.front(2), "");
    let why = |play: &mut Play, at| play.at(at).quiet[0].1.to_string();
    assert_eq!(why(&mut play, 2), "more than one has the focus: a, b");
    play.event(2, Event::Gone(app("a")));
    assert_eq!(
        why(&mut play, 2),
        "more than one has the focus: b and others"
    );
    play.says(2, Report::Ambiguous(Vec::new()));
    assert_eq!(
        why(&mut play, 2),
        "more than one has the focus: several apps"
    );
    play.says(3, Report::CannotTell("weston".to_string()));
    play.event(4, Event::Gone(app("c")));
    assert_eq!(play.front(4), "");
    assert_eq!(
        play.at(4).quiet[0].1.to_string(),
        "weston cannot tell which app has the focus"
    );
}

#[test]
fn the_foreground_is_the_union_over_seats() {
    let mut play = Play::default();
    play.of(1000, 0, front(&["a"])).of(1001, 1, front(&["b"]));
    assert_eq!(play.front(2), "ab");
    play.event(3, Event::SessionGone(session(1000)));
    assert_eq!(play.front(4), "b");
}

#[test]
fn what_is_set_by_hand_replaces_or_joins_what_sessions_say() {
    let mut play = Play::default();
    let by_hand = |only, names: &[&str]| Event::ByHand {
        only,
        apps: names.iter().copied().map(app).collect(),
    };
    play.says(0, front(&["a"])).event(1, by_hand(false, &["x"]));
    assert_eq!(play.front(1), "ax");
    play.event(2, by_hand(true, &["x"]));
    assert_eq!(
        (play.front(2), play.background(2)),
        ("x".into(), "a".into())
    );
    play.event(3, by_hand(false, &[]));
    assert_eq!(play.front(3), "a");
}

#[test]
fn a_control_group_that_ends_is_forgotten() {
    let mut play = Play::default();
    play.says(0, front(&["a"]))
        .says(1, heard("m", true))
        .says(2, Report::Launch(app("b")));
    for name in ["a", "m", "b"] {
        play.event(3, Event::Gone(app(name)));
    }
    let decision = play.at(3);
    assert!(
        decision.foreground.is_empty()
            && decision.perceptible.is_empty()
            && decision.background.is_empty()
    );
    assert_eq!(play.0.deadline(), None);
}

#[test]
fn a_group_of_the_same_path_and_another_inode_is_another_app() {
    let mut play = Play::default();
    play.says(0, front(&["a"]));
    let mut other = app("a");
    other.inode += 1;
    play.event(1, Event::Gone(other));
    assert_eq!(play.front(1), "a");
}

#[test]
fn time_that_steps_back_stands_still() {
    let mut play = Play::default();
    play.says(5000, front(&["a"])).says(1000, front(&["b"]));
    assert_eq!(play.0.deadline(), Some(ms(5000) + LINGER));
    assert_eq!(play.front(5999), "b");
}

#[test]
fn the_number_of_apps_is_bounded() {
    let mut play = Play::default();
    for number in 0..2 * APPS_MOST {
        let name = format!("a{number}");
        play.says(number as u64, front(&[&name]));
        play.says(number as u64, heard(&name, true));
        play.says(number as u64, Report::Launch(app(&name)));
    }
    let decision = play.at(2 * APPS_MOST as u64);
    assert!(decision.background.len() <= APPS_MOST);
    assert!(decision.perceptible.len() <= APPS_MOST + LINGERING_MOST);
}

#[test]
fn the_decision_names_the_class_of_a_group() {
    let mut play = Play::default();
    play.says(0, front(&["a"])).says(2000, front(&["b"]));
    let decision = play.at(4000);
    let (class, verdict) = decision.of(&app("a").cgroup).expect("known");
    assert_eq!((class, verdict.rule.word()), ("background", "behind"));
    assert!(decision.of("/nowhere").is_none());
    play.says(5000, Report::Nobody(Nobody::Locked));
    let decision = play.at(5000);
    let (class, _) = decision.of(&app("a").cgroup).expect("known");
    assert_eq!(class, "neutral");
}
