// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon tells of apps: why one has its class, and what it reads and writes.

mod common;

use common::owner::{a_daemon, app, says, secs, status, USER};
use common::Tree;
use fasttrack_bus::WireApp;
use fasttrack_detector::report::{AppRef, Nobody, Report};
use fasttrackd::daemon::Daemon;

#[test]
fn an_app_is_explained_by_a_part_of_its_name_that_no_other_has() {
    let tree = Tree::with_kernel();
    let named = |name: &str, id: &str| AppRef {
        id: id.to_string(),
        ..app(&tree.app(USER, name))
    };
    let files = named("app-nautilus-7.scope", "org.gnome.Nautilus");
    let (one, other) = (named("app-foot-1.scope", ""), named("app-foot-2.scope", ""));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Launch(one)).expect("taken");
    says(&mut daemon, 2, Report::Launch(other)).expect("taken");
    says(&mut daemon, 3, Report::Front(vec![files.clone()])).expect("taken");
    let explain = |what: &str| daemon.explain(secs(4), what);
    for what in [
        "org.gnome.Nautilus",
        "nautilus",
        "app-nautilus-7.scope",
        &files.cgroup,
    ] {
        let found = explain(what).map(|found| found.app.app.cgroup);
        assert_eq!(found.as_deref(), Ok(files.cgroup.as_str()), "{what}");
    }
    assert!(explain("app-foot-1.scope").is_ok());
    let several = explain("foot").expect_err("two");
    assert_eq!(
        several,
        "\"foot\" may be any of app-foot-1.scope, app-foot-2.scope: name one of them"
    );
    let title = explain("Inbox (3) - Mail").expect_err("none");
    assert!(
        title.contains("titles of windows") && title.contains("fasttrackctl top"),
        "{title}"
    );
    assert!(explain("").is_err());
    tree.put("sys/kernel/fasttrack/stats/dispatch_held", "4");
    let behind = tree.app(USER, "app-behind-3.scope");
    let done = daemon.explain(secs(4), &behind.cgroup).expect("told").done;
    let begin =
        "The kernel has paused background tasks 7 times and held their requests back 4 times";
    assert!(done.iter().any(|line| line.starts_with(begin)), "{done:?}");
}

#[test]
fn apps_are_neutral_while_nobody_is_in_front_whether_they_were_spoken_of_or_not() {
    let tree = Tree::with_kernel();
    let groups = ["app-a-1.scope", "app-b-2.scope", "app-c-3.scope"].map(|one| tree.app(USER, one));
    let mut daemon = a_daemon(&tree);
    let told = |daemon: &mut Daemon, at| {
        let usage = daemon.recent_usage(secs(at));
        let explained = groups.iter().map(|group| {
            let app = daemon.explain(secs(at), &group.cgroup).expect("told").app;
            let top = usage.iter().find(|one| one.cgroup == group.cgroup);
            assert!(top.is_none_or(|one| one.class == app.class));
            (app.class, app.why)
        });
        explained.collect::<Vec<_>>()
    };
    let is = |class: &str, why: &str| (class.to_string(), why.to_string());
    says(&mut daemon, 2, Report::Front(vec![app(&groups[0])])).expect("taken");
    says(&mut daemon, 3, Report::Front(vec![app(&groups[1])])).expect("taken");
    daemon.tick(secs(10));
    let expected = [
        is("background", "another app is in front, or it has no window"),
        is("foreground", "it has the focus"),
        is("background", "another app is in front"),
    ];
    assert_eq!(told(&mut daemon, 10), expected);
    says(&mut daemon, 20, Report::Nobody(Nobody::Locked)).expect("taken");
    let neutral = is("neutral", "nobody is in front");
    assert_eq!(told(&mut daemon, 20), [&neutral; 3].map(Clone::clone));
}

#[test]
fn who_is_behind_and_not_frozen_is_told_why_by_name() {
    let tree = Tree::new();
    let configured = "[effects]\nfreezer = true\nnever_freeze = [\"renderer\"]\n";
    tree.put("etc/fasttrack/fasttrackd.toml", configured);
    tree.put("sys/fs/cgroup/user.slice/cgroup.freeze", "0");
    let front = tree.app(USER, "app-front-1.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&front)])).expect("taken");
    assert_eq!(status(&mut daemon, 2).rung, "freezer");
    let not_frozen = |group: &WireApp| {
        let done = daemon.explain(secs(3), &group.cgroup).expect("told").done;
        let mut lines = done.into_iter();
        lines.find(|line| line.contains("not frozen"))
    };
    for (name, why) in [
        (
            "app-ibus-1.scope",
            "it has the name of one that others need to answer",
        ),
        (
            "app-renderer-1.scope",
            "the configuration has its name in never_freeze",
        ),
    ] {
        let said = not_frozen(&tree.app(USER, name));
        assert_eq!(said, Some(format!("It is not frozen: {why}.")));
    }
    // What runs in it was not looked at yet.
    assert_eq!(not_frozen(&tree.app(USER, "app-other-1.scope")), None);
    assert_eq!(not_frozen(&front), None);
}

/// Each answer reads a file of each process where the group does not count, and anybody may have many.
#[test]
fn the_bytes_of_an_app_with_very_many_processes_are_not_added_up() {
    let tree = Tree::with_kernel();
    let (one, crowd) = (tree.app(USER, "a.scope"), tree.app(USER, "crowd.scope"));
    let processes = |app: &WireApp, pids: std::ops::Range<u32>| {
        let lines: String = pids.clone().map(|pid| format!("{pid}\n")).collect();
        tree.put(&format!("sys/fs/cgroup{}/cgroup.procs", app.cgroup), &lines);
        for pid in pids {
            tree.put(
                &format!("proc/{pid}/io"),
                "read_bytes: 4096\nwrite_bytes: 0\n",
            );
        }
    };
    processes(&one, 100..102);
    processes(&crowd, 1000..2000);
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Launch(app(&crowd))).expect("taken");
    says(&mut daemon, 2, Report::Launch(app(&one))).expect("taken");
    let told = daemon.recent_usage(secs(3));
    let of = |app: &WireApp| {
        let mut found = told.iter().filter(|usage| usage.cgroup == app.cgroup);
        found.next().map(|usage| usage.read_bytes)
    };
    assert_eq!((of(&one), of(&crowd)), (Some(2 * 4096), Some(0)));
}
