// SPDX-License-Identifier: GPL-2.0-only
//! The owner of the state without bus and clock: what it writes, and what it survives.

mod common;

use common::owner::{a_daemon, app, by_hand, replace, says, says_of, secs, session, status, USER};
use common::{apps, Tree};
use fasttrack_bus::{Status, WireApp, WireTrouble, BEAT};
use fasttrack_detector::group::app_of;
use fasttrack_detector::report::{Nobody, Report, Sense};
use fasttrack_detector::SessionKey;
use fasttrackd::cgroup::Cgroup;
use fasttrackd::clean;
use fasttrackd::daemon::Daemon;
use fasttrackd::input::{Input, Mode};
use fasttrackd::system::System;
use std::time::Duration;

#[test]
fn the_lease_is_renewed_while_somebody_is_in_front_and_nobody_is_woken_otherwise() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    assert_eq!(daemon.deadline(), None);
    says(&mut daemon, 10, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(daemon.deadline(), Some(secs(1) + BEAT));
    tree.put("sys/kernel/fasttrack/foreground_cgroups", "lapsed");
    daemon.tick(secs(1) + BEAT);
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
    says(&mut daemon, 40, Report::Nobody(Nobody::Locked)).expect("taken");
    assert_eq!(
        (daemon.deadline(), tree.kernel("foreground_cgroups")),
        (None, String::new())
    );
}

/// It cannot tell who comes to the front next, and would be held back with all who are behind.
#[test]
fn nobody_is_in_front_for_an_agent_that_is_stopped() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    let front = |tree: &Tree| tree.kernel("foreground_cgroups");
    for (at, state, there) in [(32, "S", true), (63, "T", false), (94, "T", false)] {
        tree.put("proc/7/stat", &format!("7 (an agent) {state} 1 7"));
        daemon.tick(secs(at));
        assert_eq!(front(&tree) == one.cgroup, there, "{state}");
    }
    assert!(status(&mut daemon, 95)
        .errors
        .iter()
        .any(|error| error.contains("is stopped")));
    // It goes on, and says nothing new.
    tree.put("proc/7/stat", "7 (an agent) S 1 7");
    says(&mut daemon, 96, Report::Launch(app(&one))).expect("taken");
    assert_eq!(front(&tree), one.cgroup);
    assert!(status(&mut daemon, 97).errors.is_empty());
}

#[test]
fn what_is_written_by_hand_after_the_daemon_stays() {
    let tree = Tree::with_kernel();
    let mut daemon = a_daemon(&tree);
    assert_eq!(tree.kernel("lease_ms"), "75000");
    daemon.release(secs(2));
    assert_eq!(tree.kernel("lease_ms"), "0");
    tree.put("sys/kernel/fasttrack/lease_ms", "75000");
    clean::restore(&System::new(tree.root()));
    assert_eq!(tree.kernel("lease_ms"), "0");
}

#[test]
fn what_no_daemon_has_written_stays_and_what_one_has_left_does_not() {
    let tree = Tree::with_kernel();
    let system = System::new(tree.root());
    let lists = || ["foreground_cgroups", "lease_ms", "enabled"].map(|file| tree.kernel(file));
    let by_hand = ["/a", "5000", "1"];
    let put = |values: [&str; 3]| {
        for (file, value) in ["foreground_cgroups", "lease_ms", "enabled"]
            .iter()
            .zip(values)
        {
            tree.put(&format!("sys/kernel/fasttrack/{file}"), value);
        }
    };
    put(by_hand);
    clean::restore(&system);
    assert_eq!(lists(), by_hand);
    let off = "[effects]\nkernel = false\n";
    tree.put("etc/fasttrack/fasttrackd.toml", off);
    let mut daemon = a_daemon(&tree);
    daemon.release(secs(2));
    assert_eq!(lists(), by_hand);
    // One that has found it switched on, and was killed. The next one has not to use it.
    std::fs::remove_file(tree.root().join("etc/fasttrack/fasttrackd.toml")).expect("removed");
    for by_next in [false, true] {
        put(by_hand);
        drop(a_daemon(&tree));
        assert_eq!(tree.kernel("lease_ms"), "75000");
        tree.put("sys/kernel/fasttrack/foreground_cgroups", "/a");
        match by_next {
            false => drop(clean::restore(&system)),
            true => {
                tree.put("etc/fasttrack/fasttrackd.toml", off);
                drop(a_daemon(&tree));
            }
        }
        assert_eq!(lists(), ["", "0", "1"], "{by_next}");
    }
}

#[test]
fn groups_of_apps_that_one_that_was_killed_has_told_are_taken_out() {
    let tree = Tree::with_kernel();
    let system = System::new(tree.root());
    let slice = Cgroup::open_path(&system, &apps(common::user())).expect("there");
    if let Err(error) = slice.set_attribute("trusted.fasttrack.try", "1") {
        eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
        return;
    }
    for killed in [true, false] {
        let mut daemon = a_daemon(&tree);
        assert_eq!(tree.kernel("app_cgroups"), format!("+{}", slice.path()));
        match killed {
            true => assert_eq!(clean::restore(&system), 1),
            false => daemon.release(secs(2)),
        }
        assert_eq!(tree.kernel("app_cgroups"), format!("-{}", slice.path()));
        assert_eq!(tree.kernel("enabled"), "0");
        // Once is enough.
        tree.put("sys/kernel/fasttrack/app_cgroups", "somebody's");
        assert_eq!(clean::restore(&system), 0);
        assert_eq!(tree.kernel("app_cgroups"), "somebody's");
    }
}

/// As GNOME has them: a terminal's tabs, and what the session's bus has started, are in slices of their own.
#[test]
fn an_app_may_be_a_slice_of_its_own() {
    let tree = Tree::with_kernel();
    let slice = apps(USER);
    let mut daemon = a_daemon(&tree);
    for (name, leaf) in [
        ("app-org.gnome.Terminal.slice", "vte-spawn-1.scope"),
        (
            "app-dbus\\x2d:1.2\\x2dorg.gnome.Nautilus.slice",
            "dbus-:1.2-org.gnome.Nautilus@0.service",
        ),
    ] {
        let inside = tree.group(&format!("{slice}/{name}/{leaf}"), "");
        let whole = tree.group(app_of(&inside.cgroup), "");
        assert!(whole.cgroup.ends_with(name));
        tree.runs_in(7, &inside.cgroup);
        by_hand(&mut daemon, Mode::Set, &["7"]).expect("taken");
        assert_eq!(tree.kernel("foreground_cgroups"), whole.cgroup);
        by_hand(&mut daemon, Mode::Clear, &[]).expect("taken");
        assert_ne!(tree.kernel("foreground_cgroups"), whole.cgroup);
        says(&mut daemon, 2, Report::Front(vec![app(&whole)])).expect("taken");
        assert_eq!(tree.kernel("foreground_cgroups"), whole.cgroup);
    }
    let shared = tree.group(&format!("{slice}/app-graphical.slice"), "");
    says(&mut daemon, 4, Report::Front(vec![app(&shared)])).expect_err("it holds many apps");
}

#[test]
fn a_helper_that_ends_takes_no_report_with_it() {
    let tree = Tree::with_kernel();
    let (one, helper) = (tree.app(USER, "a.scope"), tree.app(USER, "b.scope"));
    let mut daemon = a_daemon(&tree);
    tree.end(&helper);
    let both = vec![app(&one), app(&helper)];
    says(&mut daemon, 2, Report::Front(both.clone())).expect("taken");
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
    tree.end(&one);
    // Who reports could not know: it is no error, nor does it change anything.
    says(&mut daemon, 3, Report::Front(both)).expect("all have ended");
    says(&mut daemon, 3, Report::Launch(app(&helper))).expect("it has ended");
    let told = status(&mut daemon, 3);
    assert_eq!(told.counters["reports of apps that had ended"], 3);
    assert_eq!(told.errors, [""; 0]);
    let other = tree.app(USER + 1, "c.scope");
    let mixed = vec![app(&tree.app(USER, "d.scope")), app(&other)];
    says(&mut daemon, 4, Report::Front(mixed)).expect_err("another user's");
}

#[test]
fn on_any_rung_a_launch_ends_by_its_own_waits_and_not_by_another_s() {
    let tree = Tree::with_kernel();
    let (one, two) = (tree.app(USER, "a.scope"), tree.app(USER, "b.scope"));
    let waited = |number: u32| {
        let path = format!("sys/fs/cgroup{}/io.pressure", one.cgroup);
        tree.put(&path, &format!("some avg10=0.00 total={number}\n"));
    };
    waited(0);
    let mut daemon = a_daemon(&tree);
    for report in [
        Report::Nobody(Nobody::Unfocused),
        Report::Launch(app(&one)),
        Report::Launch(app(&two)),
    ] {
        says(&mut daemon, 10, report).expect("taken");
    }
    // Nothing has to be looked at before there is a window.
    assert_eq!(daemon.deadline(), Some(secs(1) + BEAT).min(Some(secs(20))));
    says(&mut daemon, 11, Report::Window(app(&one))).expect("taken");
    says(&mut daemon, 11, Report::Window(app(&two))).expect("taken");
    let mut fronts = Vec::new();
    while let Some(at) = daemon.deadline().filter(|at| *at < secs(19)) {
        // One reads for three seconds after its window.
        if at < secs(14) {
            waited(u32::try_from(at.as_millis()).expect("short"));
        }
        daemon.tick(at);
        let front = tree.kernel("foreground_cgroups");
        if fronts.last().is_none_or(|(last, _)| *last != front) {
            fronts.push((front, at));
        }
    }
    let ends: Vec<Duration> = fronts[1..].iter().map(|(_, at)| *at).collect();
    assert_eq!(fronts[1].0, one.cgroup);
    assert_eq!(fronts[2].0, "");
    assert_eq!(ends[0], secs(13));
    assert!(ends[1] > secs(15) && ends[1] <= secs(16), "{ends:?}");
    assert_eq!(daemon.deadline(), None);
}

#[test]
fn two_seats_have_an_app_in_front_each() {
    let tree = Tree::with_kernel();
    let (one, two) = (tree.app(USER, "a.scope"), tree.app(USER + 1, "b.scope"));
    let mut daemon = a_daemon(&tree);
    let second = || SessionKey {
        user: USER + 1,
        seat: "seat1".to_string(),
        id: "c2".to_string(),
    };
    let fronts = || {
        let text = tree.kernel("foreground_cgroups");
        [&one, &two].map(|app| text.split_whitespace().any(|path| path == app.cgroup))
    };
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    says_of(&mut daemon, second(), 2, Report::Front(vec![app(&two)])).expect("taken");
    assert_eq!(fronts(), [true, true]);
    says(&mut daemon, 3, Report::Nobody(Nobody::Locked)).expect("taken");
    assert_eq!(fronts(), [false, true]);
    let theirs = says_of(&mut daemon, second(), 4, Report::Front(vec![app(&one)]));
    theirs.expect_err("another user's");
    assert_eq!(fronts(), [false, true]);
    daemon.handle(secs(5), Input::SessionGone(second()));
    assert_eq!(fronts(), [false, false]);
}

#[test]
fn gamemode_is_named_while_an_agent_tells_of_its_games() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    let mut noted = |at, on| {
        let report = Report::Perceptible {
            app: app(&one),
            sense: Sense::Game,
            on,
        };
        says(&mut daemon, at, report).expect("taken");
        let notes = status(&mut daemon, at).notes;
        notes.iter().any(|note| note.contains("GameMode runs"))
    };
    assert!(noted(2, true));
    assert!(!noted(3, false));
}

#[test]
fn a_kernel_that_ejects_itself_is_given_up_and_told_of() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(status(&mut daemon, 3).rung, "kernel");
    tree.put("sys/kernel/fasttrack/ejected", "SysRq\n");
    daemon.tick(secs(40));
    let status = status(&mut daemon, 41);
    assert_eq!(status.rung, "observe");
    assert!(
        status
            .errors
            .iter()
            .any(|error| error.contains("switched itself off (SysRq)")),
        "{status:#?}"
    );
}

#[test]
fn who_switches_the_kernel_s_part_off_is_obeyed_until_it_is_on_again() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    tree.put("sys/kernel/fasttrack/enabled", "0");
    daemon.tick(secs(40));
    assert_eq!(status(&mut daemon, 41).rung, "observe");
    // The first report of a session has the daemon look again at what works.
    daemon.handle(secs(42), Input::SessionGone(session()));
    says(&mut daemon, 43, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(status(&mut daemon, 44).rung, "observe");
    assert_eq!(tree.kernel("enabled"), "0");
    tree.put("sys/kernel/fasttrack/enabled", "1");
    daemon.handle(secs(45), Input::SessionGone(session()));
    says(&mut daemon, 46, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(status(&mut daemon, 47).rung, "kernel");
}

#[test]
fn who_switches_an_ejected_kernel_on_again_has_it_used_with_the_next_beat() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    tree.put("sys/kernel/fasttrack/ejected", "SysRq\n");
    tree.put("sys/kernel/fasttrack/enabled", "0");
    daemon.tick(secs(2) + BEAT);
    daemon.tick(secs(3) + 2 * BEAT);
    assert_eq!(status(&mut daemon, 70).rung, "observe");
    // As the kernel does when somebody writes 1.
    tree.put("sys/kernel/fasttrack/enabled", "1");
    tree.put("sys/kernel/fasttrack/ejected", "");
    daemon.tick(secs(4) + 3 * BEAT);
    assert_eq!(status(&mut daemon, 100).rung, "kernel");
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
}

/// Whether the status asks for another I/O scheduler.
fn asks(daemon: &mut Daemon) -> bool {
    let notes = status(daemon, 2).notes;
    notes.iter().any(|note| note.contains("'echo fasttrack"))
}

#[test]
fn who_does_what_a_note_asks_for_sees_it_gone_after_a_reload_and_after_a_beat() {
    let scheduler = "sys/block/sda/queue/scheduler";
    for by_reload in [true, false] {
        let tree = Tree::with_kernel();
        tree.put(scheduler, "[mq-deadline] fasttrack");
        let one = tree.app(USER, "a.scope");
        let mut daemon = a_daemon(&tree);
        says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
        assert!(asks(&mut daemon));
        tree.put(scheduler, "mq-deadline [fasttrack]");
        // Nothing is taken back meanwhile.
        tree.put("sys/kernel/fasttrack/foreground_cgroups", "as it was");
        match by_reload {
            true => {
                daemon.reload(secs(3));
                assert_eq!(tree.kernel("foreground_cgroups"), "as it was");
            }
            false => daemon.tick(secs(3) + BEAT),
        }
        assert!(!asks(&mut daemon), "{by_reload}");
    }
}

#[test]
fn a_beat_at_which_nothing_has_changed_probes_nothing() {
    let tree = Tree::with_kernel();
    tree.put("sys/block/sda/queue/scheduler", "[bfq] fasttrack");
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    // The probe of the kernel would write it.
    tree.put("sys/kernel/fasttrack/lease_ms", "1");
    daemon.tick(secs(3) + BEAT);
    assert_eq!(tree.kernel("lease_ms"), "1");
    tree.put("sys/block/sda/queue/scheduler", "bfq [fasttrack]");
    daemon.tick(secs(4) + 2 * BEAT);
    assert_eq!(tree.kernel("lease_ms"), "75000");
}

#[test]
fn a_group_that_is_no_app_of_the_user_s_cannot_be_said_to_be_silent() {
    let tree = Tree::with_kernel();
    let mut daemon = a_daemon(&tree);
    let service = tree.group("/system.slice/a.service", "");
    let other = tree.app(USER + 1, "a.scope");
    let mut climbing = other.clone();
    climbing.cgroup = "/../../../dev/shm/a".into();
    for group in [&service, &other, &climbing] {
        let report = Report::Perceptible {
            app: app(group),
            sense: Sense::Audio,
            on: false,
        };
        says(&mut daemon, 2, report).expect_err("refused");
    }
    let seen = status(&mut daemon, 3);
    assert!(seen.apps.is_empty(), "{seen:#?}");
    assert!(!seen.errors.is_empty());
}

#[test]
fn a_maintenance_service_that_runs_again_is_background_again() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let service = tree.group("/system.slice/packagekit.service", "");
    let mut daemon = a_daemon(&tree);
    let word = format!("+{}", service.cgroup);
    assert_eq!(tree.kernel("app_cgroups"), word);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    tree.put("sys/kernel/fasttrack/app_cgroups", "");
    daemon.tick(secs(3) + BEAT);
    assert_eq!(tree.kernel("app_cgroups"), "");
    let new = tree.group("/system.slice/new.service", "");
    replace(&tree, &service, new);
    daemon.tick(secs(4) + 2 * BEAT);
    assert_eq!(tree.kernel("app_cgroups"), word);
}

#[test]
fn an_agent_that_tells_of_its_sources_first_has_its_user_s_files_probed() {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "[bfq] none");
    let mut daemon = a_daemon(&tree);
    assert_ne!(status(&mut daemon, 1).rung, "weights");
    let sources = vec!["sway".to_string()];
    daemon.handle(secs(2), Input::Sources(session(), 7, sources));
    let trouble = WireTrouble {
        source: "pipewire".into(),
        meaning: "there is none".into(),
        faults: 1,
        unknown: 0,
    };
    daemon.handle(secs(2), Input::Source(session(), 7, trouble));
    let one = tree.app(USER, "a.scope");
    let weight = |group: &str| format!("sys/fs/cgroup{group}/io.bfq.weight");
    for group in [apps(USER), one.cgroup.clone()] {
        tree.put(&weight(&group), "100");
    }
    says(&mut daemon, 3, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(tree.get(&weight(&one.cgroup)), "1000");
}

#[test]
fn a_flood_of_reloads_is_one_each_second_and_the_last_one_counts() {
    let tree = Tree::with_kernel();
    let mut daemon = a_daemon(&tree);
    for _ in 0..1000 {
        daemon.reload(secs(5));
    }
    assert_eq!(daemon.counters().get("reloads"), 1);
    tree.put("etc/fasttrack/fasttrackd.toml", "[reports]\nburst = 7\n");
    assert_eq!(daemon.deadline(), Some(secs(6)));
    daemon.tick(secs(6));
    assert_eq!(daemon.config().reports.burst, 7);
    assert_eq!(daemon.counters().get("reloads"), 2);
    assert_eq!(daemon.counters().get("reloads asked for"), 1000);
    assert_eq!(daemon.deadline(), None);
    daemon.reload(secs(60));
    assert_eq!(daemon.counters().get("reloads"), 3);
}

#[test]
fn a_knob_that_refuses_is_told_once_counted_and_survived() {
    let tree = Tree::with_kernel();
    let all: Vec<WireApp> = (0..3)
        .map(|number| tree.app(USER, &format!("{number}.scope")))
        .collect();
    let mut daemon = a_daemon(&tree);
    let knob = tree.root().join("sys/kernel/fasttrack/foreground_cgroups");
    std::fs::remove_file(&knob).expect("removed");
    std::fs::create_dir(&knob).expect("no file");
    for (at, one) in all.iter().enumerate() {
        says(&mut daemon, 2 + at as u64, Report::Front(vec![app(one)])).expect("taken");
    }
    let status = status(&mut daemon, 9);
    assert_eq!(status.counters["kernel foreground_cgroups"], 3);
    assert_eq!(status.errors.len(), 1, "{:?}", status.errors);
    assert!(
        status.errors[0].contains("does not take"),
        "{:?}",
        status.errors
    );
}

#[test]
fn who_is_heard_is_said_again_and_who_has_ended_behind_is_forgotten() {
    let tree = Tree::with_kernel();
    let [one, other, music] = ["a", "b", "c"].map(|name| tree.app(USER, &format!("{name}.scope")));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&other)])).expect("taken");
    says(&mut daemon, 3, Report::Front(vec![app(&one)])).expect("taken");
    let heard = Report::Perceptible {
        app: app(&music),
        sense: Sense::Audio,
        on: true,
    };
    says(&mut daemon, 4, heard).expect("taken");
    daemon.tick(secs(20));
    tree.put("sys/kernel/fasttrack/perceptible_cgroups", "lapsed");
    tree.end(&other);
    daemon.tick(secs(40));
    assert_eq!(tree.kernel("perceptible_cgroups"), music.cgroup);
    let status = status(&mut daemon, 41);
    assert!(status
        .apps
        .iter()
        .all(|known| known.app.cgroup != other.cgroup));
}

#[test]
fn who_is_in_front_stays_while_no_group_can_be_opened() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    let place = tree.root().join("sys/fs/cgroup");
    let aside = tree.root().join("aside");
    std::fs::rename(&place, &aside).expect("renamed");
    // As with no descriptor left, the error is none of those that say that the group has ended.
    std::os::unix::fs::symlink("x".repeat(300), &place).expect("a link");
    daemon.tick(secs(3) + BEAT);
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
    std::fs::remove_file(&place).expect("removed");
    std::fs::rename(&aside, &place).expect("renamed");
    tree.end(&one);
    daemon.tick(secs(4) + 2 * BEAT);
    assert_eq!(tree.kernel("foreground_cgroups"), "");
}

#[test]
fn a_bus_that_closes_takes_along_what_was_said_on_it() {
    let tree = Tree::with_kernel();
    let one = tree.app(USER, "a.scope");
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    daemon.handle(secs(3), Input::BusGone);
    assert_eq!(tree.kernel("foreground_cgroups"), "");
    assert!(status(&mut daemon, 4).sessions.is_empty());
    says(&mut daemon, 5, Report::Front(vec![app(&one)])).expect("taken");
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
}

#[test]
fn what_is_set_by_hand_and_what_sessions_say_are_united() {
    let tree = Tree::with_kernel();
    let (one, other) = (tree.app(USER, "a.scope"), tree.app(USER, "b.scope"));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
    by_hand(&mut daemon, Mode::Add, &[&other.cgroup]).expect("added");
    assert_eq!(
        tree.kernel("foreground_cgroups"),
        format!("{} {}", one.cgroup, other.cgroup)
    );
    by_hand(&mut daemon, Mode::Set, &[&other.cgroup]).expect("set");
    assert_eq!(tree.kernel("foreground_cgroups"), other.cgroup);
    assert!(status(&mut daemon, 3)
        .notes
        .iter()
        .any(|note| note.contains("set by hand, alone")));
    let wrong = by_hand(&mut daemon, Mode::Set, &[&apps(USER)]).expect_err("refused");
    assert!(wrong.contains("no app's control group"), "{wrong}");
    assert!(by_hand(&mut daemon, Mode::Set, &["4194999"])
        .expect_err("refused")
        .contains("no process"));
    assert_eq!(tree.kernel("foreground_cgroups"), other.cgroup);
    by_hand(&mut daemon, Mode::Clear, &[]).expect("cleared");
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
}

#[test]
fn a_wrong_configuration_is_told_with_its_line_and_read_again() {
    let tree = Tree::with_kernel();
    tree.put("etc/fasttrack/fasttrackd.toml", "[effects]\nkernel = 7\n");
    let mut daemon = a_daemon(&tree);
    let notes = status(&mut daemon, 2).notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("fasttrackd.toml:2: invalid type")),
        "{notes:?}"
    );
    tree.put(
        "etc/fasttrack/fasttrackd.toml",
        "[effects]\nkernel = false\n",
    );
    daemon.reload(secs(3));
    let good = status(&mut daemon, 4);
    assert_eq!(good.rung, "observe");
    let told = |status: &Status| {
        let mut notes = status.notes.iter();
        notes.any(|note| note.starts_with("configuration"))
    };
    assert!(!told(&good), "{:?}", good.notes);
    assert_eq!(tree.kernel("enabled"), "0");
    // Of one that is no TOML what it last said stays.
    tree.put("etc/fasttrack/fasttrackd.toml", "x ==\n");
    daemon.reload(secs(5));
    let spoilt = status(&mut daemon, 6);
    assert_eq!((spoilt.rung.as_str(), told(&spoilt)), ("observe", true));
    assert_eq!(tree.kernel("enabled"), "0");
}

#[test]
fn a_night_of_suspend_ends_what_was_short_and_renews_what_lapsed() {
    let tree = Tree::with_kernel();
    let (one, other) = (tree.app(USER, "a.scope"), tree.app(USER, "b.scope"));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 10, Report::Front(vec![app(&one)])).expect("taken");
    says(&mut daemon, 11, Report::Launch(app(&other))).expect("taken");
    let both = format!("{} {}", one.cgroup, other.cgroup);
    assert_eq!(tree.kernel("foreground_cgroups").len(), both.len());
    // The lease has lapsed meanwhile, and nobody was asked for eight hours.
    tree.put("sys/kernel/fasttrack/foreground_cgroups", "");
    let awake = 12 + 8 * 3600;
    daemon.tick(secs(awake));
    assert_eq!(tree.kernel("foreground_cgroups"), one.cgroup);
    let due = daemon.deadline().expect("the lease is to be renewed");
    assert!(
        due > secs(awake),
        "it is not woken again and again: {due:?}"
    );
    let status = status(&mut daemon, awake);
    assert_eq!(status.errors, Vec::<String>::new());
}

#[test]
fn a_battery_saver_is_told_of_until_it_is_off() {
    let tree = Tree::new();
    tree.put(
        "etc/fasttrack/fasttrackd.toml",
        "[effects]\nfreezer = true\n",
    );
    tree.put(&format!("sys/fs/cgroup{}/cgroup.freeze", apps(USER)), "0");
    let mut daemon = a_daemon(&tree);
    assert!(status(&mut daemon, 2).rung.contains("freezer"));
    let said = |daemon: &mut Daemon| {
        let notes = status(daemon, 3).notes;
        notes.contains(&"freezer: off while the battery is to be saved.".to_string())
    };
    assert!(!said(&mut daemon));
    daemon.handle(secs(3), Input::Saver(true));
    assert!(said(&mut daemon));
    daemon.handle(secs(4), Input::Saver(false));
    assert!(!said(&mut daemon));
}

#[test]
fn while_the_battery_is_saved_weights_do_what_the_freezer_does_not() {
    let tree = Tree::new();
    tree.put(
        "etc/fasttrack/fasttrackd.toml",
        "[effects]\nfreezer = true\n",
    );
    tree.put("sys/block/sda/queue/scheduler", "[bfq] none");
    let file = |name: &str| format!("sys/fs/cgroup{}/{name}", apps(USER));
    tree.put(&file("cgroup.freeze"), "0");
    tree.put(&file("io.bfq.weight"), "default 100");
    let mut daemon = a_daemon(&tree);
    for (saver, rung) in [(true, "weights"), (false, "freezer")] {
        daemon.handle(secs(2), Input::Saver(saver));
        assert_eq!(status(&mut daemon, 3).rung, rung);
    }
}

/// Who is watched for waits is looked at again when the changes have moved.
#[test]
fn whether_groups_may_be_frozen_is_a_change() {
    common::block_on(async {
        let tree = Tree::new();
        tree.put(&format!("sys/fs/cgroup{}/cgroup.freeze", apps(USER)), "0");
        let one = tree.app(USER, "a.scope");
        let mut daemon = a_daemon(&tree);
        let launcher = fasttrackd::guard_link::Launcher {
            program: "cat".into(),
            arguments: Vec::new(),
        };
        let guard = fasttrackd::guard_link::Guard::start(&System::new(tree.root()), launcher);
        daemon.guard = Some(guard.expect("a process"));
        says(&mut daemon, 2, Report::Front(vec![app(&one)])).expect("taken");
        daemon.tick(secs(2));
        let mut changes = daemon.changes;
        let mut moved = |daemon: &mut Daemon| {
            daemon.tick(secs(3));
            std::mem::replace(&mut changes, daemon.changes) != daemon.changes
        };
        tree.put(
            "etc/fasttrack/fasttrackd.toml",
            "[effects]\nfreezer = true\n",
        );
        daemon.reload(secs(3));
        assert!(moved(&mut daemon) && daemon.watched() == [one.cgroup.clone()]);
        for (saver, watched) in [(true, 0), (false, 1)] {
            daemon.handle(secs(3), Input::Saver(saver));
            assert!(moved(&mut daemon));
            assert_eq!(daemon.watched().len(), watched);
        }
        assert!(!moved(&mut daemon));
    });
}

#[test]
fn a_clock_that_steps_back_does_no_harm() {
    let tree = Tree::with_kernel();
    let (one, other) = (tree.app(USER, "a.scope"), tree.app(USER, "b.scope"));
    let mut daemon = a_daemon(&tree);
    says(&mut daemon, 1000, Report::Front(vec![app(&one)])).expect("taken");
    says(&mut daemon, 5, Report::Front(vec![app(&other)])).expect("taken");
    daemon.tick(secs(0));
    assert_eq!(tree.kernel("foreground_cgroups"), other.cgroup);
    status(&mut daemon, 0);
}
