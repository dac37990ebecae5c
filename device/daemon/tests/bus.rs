// SPDX-License-Identifier: GPL-2.0-only
//! The daemon under a bus of its own, with logind and a kernel of files.

mod common;

use common::{apps, block_on, of_class, user, Stage, Tree};

#[test]
fn what_is_set_by_hand_is_written_to_the_kernel() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        if user() != 0 {
            let refused = stage.proxy.set_foreground("set", &[&app.cgroup]).await;
            assert!(refused
                .expect_err("no polkit")
                .to_string()
                .contains("polkit"));
            return;
        }
        assert_eq!(stage.status().await.rung, "kernel");
        assert_eq!(stage.tree.kernel("enabled"), "1");
        assert_eq!(stage.tree.kernel("lease_ms"), "75000");
        stage
            .proxy
            .set_foreground("set", &[&app.cgroup])
            .await
            .expect("set");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), app.cgroup);
        assert_eq!(
            stage.tree.kernel("app_cgroups"),
            format!("+{}", apps(user()))
        );
        let explained = stage.proxy.explain(&app.cgroup).await.expect("explained");
        assert_eq!(
            (explained.app.class.as_str(), explained.app.rule.as_str()),
            ("foreground", "by-hand")
        );
        assert!(
            explained.done[0].contains("foreground_cgroups"),
            "{explained:?}"
        );
        stage
            .proxy
            .set_foreground("clear", &[])
            .await
            .expect("cleared");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
        let wrong = stage
            .proxy
            .set_foreground("set", &["/nowhere/a.scope"])
            .await;
        assert!(wrong
            .expect_err("refused")
            .to_string()
            .contains("not there"));
    });
}

#[test]
fn troubles_of_an_agent_s_sources_are_in_the_status() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let trouble = |source: &str, faults, unknown| fasttrack_bus::WireTrouble {
            source: source.to_string(),
            meaning: "the other side has closed the connection".to_string(),
            faults,
            unknown,
        };
        for faults in 1..4 {
            let told = stage.proxy.trouble(&trouble("sway", faults, 2)).await;
            told.expect("taken");
        }
        let status = stage.status().await;
        assert_eq!(status.counters["agent of c1: sway: faults"], 3);
        assert_eq!(status.counters["agent of c1: sway: windows of nobody"], 2);
        assert_eq!(
            status.errors,
            ["agent of c1: sway: the other side has closed the connection (5 times)"]
        );
        // However many it names, and whatever their names are.
        for number in 0..100 {
            let one = trouble(&format!("s{number}"), 1, 0);
            stage.proxy.trouble(&one).await.expect("taken");
        }
        assert_eq!(stage.status().await.errors.len(), 32);
        let wrong = trouble("a\nb", 1, 0);
        assert!(stage.proxy.trouble(&wrong).await.is_err());
        assert_eq!(stage.status().await.counters["malformed reports"], 1);
    });
}

#[test]
fn an_agent_says_who_is_in_front() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let (a, b) = (
            stage.tree.app(user(), "app-a-1.scope"),
            stage.tree.app(user(), "app-b-2.scope"),
        );
        stage.report("front", &[&a], "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), a.cgroup);
        stage.report("launch", &[&b], "").await.expect("taken");
        assert_eq!(
            stage.tree.kernel("foreground_cgroups"),
            format!("{} {}", a.cgroup, b.cgroup)
        );
        stage.report("front", &[&b], "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), b.cgroup);
        assert_eq!(stage.tree.kernel("perceptible_cgroups"), a.cgroup);
        let status = stage
            .until("lingering ends", |status| {
                of_class(status, "perceptible").is_empty()
            })
            .await;
        assert_eq!(of_class(&status, "background"), [a.cgroup]);
        assert_eq!(status.sessions[0].session, "c1");
        assert_eq!(stage.tree.kernel("perceptible_cgroups"), "");
        stage.report("nobody", &[], "locked").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
        assert_eq!(
            stage.status().await.sessions[0].quiet,
            "the screen is locked or off"
        );
    });
}

#[test]
fn a_session_that_is_left_has_nobody_in_front() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.report("front", &[&app], "").await.expect("taken");
        stage.login.set_active("c1", false).await.expect("told");
        stage
            .until("nobody in front", |status| {
                of_class(status, "foreground").is_empty()
            })
            .await;
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
        let refused = stage.report("front", &[&app], "").await;
        assert!(refused
            .expect_err("refused")
            .to_string()
            .contains("active and local"));
        stage.login.set_active("c1", true).await.expect("told");
        stage
            .until("in front again", |status| {
                !of_class(status, "foreground").is_empty()
            })
            .await;
        stage.login.remove("c1").await.expect("told");
        stage
            .until("the session is gone", |status| status.sessions.is_empty())
            .await;
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
    });
}

#[test]
fn a_second_agent_is_refused_and_its_end_changes_nothing() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.report("front", &[&app], "").await.expect("taken");
        let other = stage.bus.connect().await;
        let second = fasttrack_bus::ManagerProxy::new(&other)
            .await
            .expect("a proxy");
        let report = common::wire("nobody", &[], "locked");
        let refused = second.report(&report).await.expect_err("refused");
        assert!(
            refused.to_string().contains("another agent speaks"),
            "{refused}"
        );
        drop(second);
        other.close().await.expect("closed");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(stage.tree.kernel("foreground_cgroups"), app.cgroup);
        assert_eq!(stage.status().await.sessions.len(), 1);
    });
}

#[test]
fn an_agent_that_leaves_the_bus_leaves_nobody_in_front() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        let other = stage.bus.connect().await;
        let agent = fasttrack_bus::ManagerProxy::new(&other)
            .await
            .expect("a proxy");
        let report = common::wire("front", &[&app], "");
        agent.report(&report).await.expect("taken");
        assert_eq!(of_class(&stage.status().await, "foreground").len(), 1);
        drop(agent);
        other.close().await.expect("closed");
        stage
            .until("nobody is in front", |status| status.sessions.is_empty())
            .await;
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
    });
}

#[test]
fn a_control_group_that_ends_is_taken_out() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let (a, b) = (
            stage.tree.app(user(), "app-a-1.scope"),
            stage.tree.app(user(), "app-b-2.scope"),
        );
        stage.report("front", &[&a, &b], "").await.expect("taken");
        stage.tree.end(&a);
        // Who reports could not know that it has ended.
        stage.report("front", &[&a], "").await.expect("taken");
        assert_eq!(
            stage.status().await.counters["reports of apps that had ended"],
            1
        );
        stage.report("launch", &[&b], "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), b.cgroup);
        assert!(stage.status().await.counters["groups that had ended"] >= 1);
    });
}

#[test]
fn the_end_of_the_daemon_takes_everything_back() {
    block_on(async {
        for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
            let Some(mut stage) = Stage::set(Tree::with_kernel()).await else {
                return;
            };
            let app = stage.tree.app(user(), "app-a-1.scope");
            stage.report("front", &[&app], "").await.expect("taken");
            let pid = rustix::process::Pid::from_child(&stage.daemon.0);
            rustix::process::kill_process(pid, signal).expect("sent");
            stage.daemon.0.wait().expect("ended");
            common::wait_for("nobody is in front", || {
                stage.tree.kernel("foreground_cgroups").is_empty()
            });
        }
    });
}
