// SPDX-License-Identifier: GPL-2.0-only
//! What the owner of the state marks as its own on control groups: weights and memory that it sets and takes back.

mod common;

use common::owner::{a_daemon, app, replace, says, secs, status, USER};
use common::{apps, Tree};
use fasttrack_bus::{WireApp, BEAT};
use fasttrack_detector::report::Report;
use fasttrack_detector::SessionKey;
use fasttrackd::cgroup::Cgroup;
use fasttrackd::clean;
use fasttrackd::daemon::Daemon;
use fasttrackd::input::Input;
use fasttrackd::system::System;
use tokio::sync::oneshot;

#[test]
fn weights_reach_users_background_work_that_begins_later() {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "[bfq] none");
    let one = tree.app(USER, "a.scope");
    let weight = |group: &str| format!("sys/fs/cgroup{group}/io.bfq.weight");
    for group in [apps(USER), one.cgroup.clone()] {
        tree.put(&weight(&group), "100");
    }
    let mut daemon = a_daemon(&tree);
    assert_eq!(status(&mut daemon, 1).rung, "weights");
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(tree.get(&weight(&one.cgroup)), "1000");
    let slice = apps(USER).replace("app.slice", "background.slice");
    tree.put(&weight(&slice), "100");
    daemon.tick(secs(3) + BEAT);
    if tree.get(&weight(&slice)) != "1" {
        let errors = status(&mut daemon, 5).errors;
        assert!(
            errors.iter().any(|error| error.contains("not permitted")),
            "{errors:?}"
        );
        eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here");
    }
}

#[test]
fn who_takes_over_from_a_daemon_that_was_killed_switches_off_what_that_had_switched_on() {
    let tree = Tree::with_kernel();
    if !takes_marks(&tree) {
        return;
    }
    drop(a_daemon(&tree));
    let mut daemon = a_daemon(&tree);
    assert_eq!(tree.kernel("enabled"), "1");
    daemon.release(secs(2));
    assert_eq!(tree.kernel("enabled"), "0");
    // What a person has switched on stays.
    tree.put("sys/kernel/fasttrack/enabled", "1");
    let mut daemon = a_daemon(&tree);
    daemon.release(secs(3));
    assert_eq!(tree.kernel("enabled"), "1");
    // And without another daemon the guard does it.
    tree.put("sys/kernel/fasttrack/enabled", "0");
    drop(a_daemon(&tree));
    clean::restore(&System::new(tree.root()));
    assert_eq!(tree.kernel("enabled"), "0");
}

/// Whether marks can be set on the tree's files.
fn takes_marks(tree: &Tree) -> bool {
    let path = tree.group(&apps(USER), "").cgroup;
    let group = Cgroup::open_path(&System::new(tree.root()), &path).expect("a group");
    let taken = group.set_attribute("trusted.fasttrack.try", "1");
    if let Err(error) = &taken {
        eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
    }
    taken.is_ok()
}

/// An app whose group has weights.
fn weighed(tree: &Tree, name: &str) -> WireApp {
    let one = tree.app(USER, name);
    let group = format!("sys/fs/cgroup{}", one.cgroup);
    tree.put(&format!("{group}/io.bfq.weight"), "default 100\n");
    tree.put(&format!("{group}/memory.low"), "0\n");
    one
}

/// The weight that an app's group has.
fn weight(tree: &Tree, one: &WireApp) -> String {
    tree.get(&format!("sys/fs/cgroup{}/io.bfq.weight", one.cgroup))
}

/// A tree with bfq, and a user who may set weights.
fn with_weights() -> Option<Tree> {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "[bfq] none");
    tree.put(
        &format!("sys/fs/cgroup{}/io.bfq.weight", apps(USER)),
        "default 100\n",
    );
    tree.put(&format!("sys/fs/cgroup{}/memory.low", apps(USER)), "0\n");
    takes_marks(&tree).then_some(tree)
}

#[test]
fn who_asks_is_told_the_value_before() {
    let Some(tree) = with_weights() else {
        return;
    };
    let one = weighed(&tree, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    let done = daemon.explain(secs(3), &one.cgroup).expect("told").done;
    let weight = format!("{}/io.bfq.weight is 1000 (was 100).", one.cgroup);
    assert!(done.contains(&weight), "{done:?}");
}

#[test]
fn an_app_that_nobody_has_spoken_of_is_behind_and_what_others_need_is_not() {
    let Some(tree) = with_weights() else {
        return;
    };
    let [one, before, needed] =
        ["app-x-1.scope", "app-y-2.scope", "pipewire.service"].map(|name| weighed(&tree, name));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 1, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(weight(&tree, &before), "1");
    assert_eq!(weight(&tree, &needed), "default 100");
    // One that has begun since then, before it is spoken of.
    let later = weighed(&tree, "app-z-3.scope");
    daemon.tick(secs(2) + BEAT);
    assert_eq!(weight(&tree, &later), "1");
    daemon.release(secs(60));
    assert_eq!(weight(&tree, &before), "100");
}

#[test]
fn memory_is_kept_for_the_front_where_nothing_else_works() {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "[none] mq-deadline");
    tree.put(&format!("sys/fs/cgroup{}/memory.low", apps(USER)), "0\n");
    if !takes_marks(&tree) {
        return;
    }
    let one = weighed(&tree, "a.scope");
    let file = |name: &str| tree.get(&format!("sys/fs/cgroup{}/{name}", one.cgroup));
    let mut daemon = a_daemon(&tree);
    assert_eq!(status(&mut daemon, 1).rung, "memory");
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(file("memory.low"), "536870912");
    let slice = format!("sys/fs/cgroup{}/memory.low", apps(USER));
    assert_eq!(tree.get(&slice), "536870912");
    assert_eq!(file("io.bfq.weight"), "default 100");
    daemon.release(secs(3));
    assert_eq!(
        (file("memory.low"), tree.get(&slice)),
        ("0".into(), "0".into())
    );
}

#[test]
fn a_group_that_comes_back_under_its_path_is_weighed_anew() {
    let Some(tree) = with_weights() else { return };
    let (one, other) = (weighed(&tree, "a.scope"), weighed(&tree, "b.scope"));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    says(&mut daemon, 9, Report::Front(vec![app(&other)])).expect("taken");
    daemon.tick(secs(20));
    assert_eq!(weight(&tree, &one), "1");
    let again = replace(&tree, &one, weighed(&tree, "new.scope"));
    // What was said of the one that has ended is not done to the other.
    says(&mut daemon, 21, Report::Window(app(&other))).expect("taken");
    assert_eq!(weight(&tree, &again), "default 100");
    says(&mut daemon, 22, Report::Front(vec![app(&again)])).expect("taken");
    assert_eq!(weight(&tree, &again), "1000");
}

#[test]
fn weights_follow_the_front_and_are_taken_back() {
    let Some(tree) = with_weights() else { return };
    let all = ["a.scope", "b.scope"].map(|name| weighed(&tree, name));
    let mut daemon = a_daemon(&tree);
    assert_eq!(status(&mut daemon, 1).rung, "weights");
    says(&mut daemon, 2, Report::Front(vec![app(&all[0])])).expect("taken");
    assert_eq!(
        (
            weight(&tree, &all[0]).as_str(),
            weight(&tree, &all[1]).as_str()
        ),
        ("1000", "default 100")
    );
    assert_eq!(
        tree.get(&format!("sys/fs/cgroup{}/memory.low", all[0].cgroup)),
        "536870912"
    );
    says(&mut daemon, 9, Report::Front(vec![app(&all[1])])).expect("taken");
    daemon.tick(secs(20));
    assert_eq!(
        (
            weight(&tree, &all[0]).as_str(),
            weight(&tree, &all[1]).as_str()
        ),
        ("1", "1000")
    );
    // Another program has its own idea meanwhile.
    tree.put(
        &format!("sys/fs/cgroup{}/io.bfq.weight", all[0].cgroup),
        "default 50\n",
    );
    daemon.release(secs(21));
    assert_eq!(
        (
            weight(&tree, &all[0]).as_str(),
            weight(&tree, &all[1]).as_str()
        ),
        ("default 50", "100")
    );
    assert_eq!(
        tree.get(&format!("sys/fs/cgroup{}/memory.low", all[1].cgroup)),
        "0"
    );
}

#[test]
fn what_was_taken_back_while_it_was_stopped_is_set_again() {
    let taken_back = |tree: &Tree, daemon: &mut Daemon| {
        fasttrackd::clean::restore(&System::new(tree.root()));
        daemon.guard_said(secs(5), Some(fasttrackd::guard::Answer::TakenBack));
        let status = status(daemon, 6);
        assert!(status
            .errors
            .iter()
            .any(|error| error.contains("was stopped")));
        assert_eq!(
            status.counters.get("values that somebody else had changed"),
            None
        );
    };
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    taken_back(&tree, &mut daemon);
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
    assert_eq!(status(&mut daemon, 7).rung, "kernel");
    let Some(tree) = with_weights() else { return };
    let one = weighed(&tree, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    taken_back(&tree, &mut daemon);
    assert_eq!(weight(&tree, &one), "1000");
    daemon.release(secs(7));
    assert_eq!(weight(&tree, &one), "100");
}

#[test]
fn who_logs_in_changes_nothing_for_who_is_in_front() {
    let Some(tree) = with_weights() else { return };
    let one = weighed(&tree, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(weight(&tree, &one), "1000");
    // Another user, whose apps have no file: a rung of their own.
    let theirs = tree.app(USER + 1, "b.scope");
    let (reply, mut answer) = oneshot::channel();
    let second = SessionKey {
        user: USER + 1,
        seat: "seat1".to_string(),
        id: "c2".to_string(),
    };
    daemon.handle(
        secs(3),
        Input::Report {
            session: second,
            agent: 8,
            received: secs(3),
            report: Report::Front(vec![app(&theirs)]),
            reply,
        },
    );
    answer.try_recv().expect("answered").expect("taken");
    assert_eq!(weight(&tree, &one), "1000");
    let notes = status(&mut daemon, 4).notes;
    let own = format!("rung (user {}): 'ioprio'.", USER + 1);
    assert!(notes.contains(&own), "{notes:?}");
    daemon.release(secs(5));
    assert_eq!(weight(&tree, &one), "100");
}
