// SPDX-License-Identifier: GPL-2.0-only
//! Who has no privilege gains nothing.

mod common;

use common::{agent, apps, block_on, of_class, user, Stage, Tree};
use fasttrack_bus::{Status, WireApp};

async fn refused(stage: &Stage, app: &WireApp, why: &str) {
    let error = stage
        .report("front", &[app], "")
        .await
        .expect_err("refused")
        .to_string();
    assert!(error.contains(why), "{error}");
    assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
}

#[test]
fn groups_that_are_not_the_users_are_refused() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let ours = stage.tree.app(user(), "app-a-1.scope");
        let others = stage.tree.app(user() + 1, "app-a-1.scope");
        refused(&stage, &others, "not below the slice").await;
        let service = stage.tree.group("/system.slice/a.service", "a");
        refused(&stage, &service, "not below the slice").await;
        let forged = WireApp {
            inode: ours.inode + 1,
            ..ours.clone()
        };
        refused(&stage, &forged, "another control group").await;
        let climbing = WireApp {
            cgroup: format!("{}/../../../user-{}.slice/a", apps(user()), user() + 1),
            ..ours.clone()
        };
        refused(&stage, &climbing, "'..'").await;
        let all = stage.tree.group(&apps(user()), "all");
        refused(&stage, &all, "many apps").await;
        let errors = stage.status().await.errors;
        assert!(errors.len() >= 3, "{errors:?}");
    });
}

#[test]
fn a_symbolic_link_leads_nowhere() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let others = stage.tree.app(user() + 1, "app-a-1.scope");
        let root = stage.tree.root().join("sys/fs/cgroup");
        let link = format!("{}/link.scope", apps(user()));
        std::os::unix::fs::symlink(root.join(&others.cgroup[1..]), root.join(&link[1..]))
            .expect("a link");
        let linked = WireApp {
            cgroup: link,
            ..others
        };
        refused(&stage, &linked, "not there").await;
    });
}

#[test]
fn a_process_that_is_no_agent_of_an_active_session_is_refused() {
    block_on(async {
        for (place, why) in [
            ("/system.slice/cron.service".to_string(), "in no session"),
            (agent(user() + 1), "in no session"),
            (
                format!("/user.slice/user-{}.slice/session-c7.scope", user()),
                "active and local",
            ),
            ("/".to_string(), "in no session"),
        ] {
            let tree = Tree::with_kernel();
            let Some(mut stage) = Stage::set(tree).await else {
                return;
            };
            stage.tree.we_run_in(&place);
            // Another connection: of this one it may be known already where it runs.
            stage.connection = stage.bus.connect().await;
            stage.proxy = fasttrack_bus::ManagerProxy::new(&stage.connection)
                .await
                .expect("a proxy");
            let app = stage.tree.app(user(), "app-a-1.scope");
            refused(&stage, &app, why).await;
        }
    });
}

#[test]
fn a_process_of_another_user_is_refused_whatever_the_bus_says() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let other = user() + 1;
        stage.tree.put(
            &format!("proc/{}/status", std::process::id()),
            &format!("Uid:\t{other}\t{other}\t{other}\t{other}\n"),
        );
        let app = stage.tree.app(user(), "app-a-1.scope");
        refused(&stage, &app, "not of the user").await;
    });
}

#[test]
fn a_remote_session_is_refused() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let begun = stage.login.add("c2", user(), true, true).await;
        begun.expect("a session");
        stage.login.remove("c1").await.expect("ended");
        let app = stage.tree.app(user(), "app-a-1.scope");
        // Until the daemon has heard that the local session has ended.
        while stage.report("front", &[&app], "").await.is_ok() {}
        refused(&stage, &app, "active and local").await;
    });
}

#[test]
fn ten_thousand_reports_are_bounded_and_others_are_served() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let all: Vec<WireApp> = (0..2)
            .map(|number| stage.tree.app(user(), &format!("app-{number}.scope")))
            .collect();
        let connection = stage.bus.connect().await;
        for number in 0..10_000 {
            let report = common::wire("front", &[&all[number % 2]], "");
            let message = zbus::Message::method_call(fasttrack_bus::PATH, "Report")
                .and_then(|builder| builder.destination(fasttrack_bus::NAME))
                .and_then(|builder| builder.interface("org.fasttrack1.Manager"))
                .and_then(|builder| builder.with_flags(zbus::message::Flags::NoReplyExpected))
                .and_then(|builder| builder.build(&(report,)))
                .expect("a message");
            connection.send(&message).await.expect("sent");
        }
        let status = stage.status().await;
        // None of them wants an answer, so none was read.
        assert_eq!(status.counters.get("reports"), None);
        let told =
            |status: &Status| status.counters.get("messages dropped unread") == Some(&10_000);
        stage.until("the number of messages dropped", told).await;
        stage.report("front", &[&all[0]], "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), all[0].cgroup);
    });
}

#[test]
fn reports_that_want_an_answer_are_taken_at_the_rate() {
    block_on(async {
        let tree = Tree::with_kernel();
        tree.put(
            "etc/fasttrack/fasttrackd.toml",
            "[reports]\nper_second = 1\nburst = 10\n",
        );
        let Some(stage) = Stage::set(tree).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        let front = [&app];
        // Twice the burst would be dropped unread; on a slow machine some more are taken meanwhile.
        let all = (0..18).map(|_| stage.report("front", &front, ""));
        let answers = futures_util::future::join_all(all).await;
        let refused = answers.iter().filter(|answer| answer.is_err()).count();
        assert!((1..=8).contains(&refused), "{answers:?}");
        let status = stage.status().await;
        assert_eq!(status.counters["reports beyond the rate"], refused as u64);
    });
}

#[test]
fn malformed_reports_are_refused_counted_and_survived() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        assert!(stage.report("smell", &[&app], "").await.is_err());
        assert!(stage.report("nobody", &[], "bored").await.is_err());
        let wrong = stage
            .connection
            .call_method(
                Some(fasttrack_bus::NAME),
                fasttrack_bus::PATH,
                Some("org.fasttrack1.Manager"),
                "Report",
                &("front", 7_u32),
            )
            .await;
        assert!(wrong.is_err());
        stage.report("front", &[&app], "").await.expect("taken");
        let status = stage.status().await;
        assert_eq!(status.counters["malformed reports"], 2);
        assert_eq!(of_class(&status, "foreground"), [app.cgroup]);
    });
}
