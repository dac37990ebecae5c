// SPDX-License-Identifier: GPL-2.0-only
//! Who has no privilege gains nothing.

mod common;

use common::{agent, apps, block_on, of_class, user, Stage, Tree};
use fasttrack_bus::{Status, WireApp};
use fasttrackd::clean;
use fasttrackd::system::System;
use futures_util::StreamExt;
use rustix::fs::XattrFlags;
use std::fs::{self, File};
use zbus::zvariant::serialized::Context;
use zbus::zvariant::{to_bytes, OwnedFd, LE};
use zbus::{Connection, Message, MessageStream};

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
        refused(&stage, &linked, "no control group").await;
    });
}

/// An app may write `user.*` on its own group, as Mutter does for GNOME's focus: its agent sees two that claim it.
#[test]
fn an_app_that_forges_the_mark_of_the_focus_is_not_in_front() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let [one, forger] =
            ["app-a-1.scope", "app-forger-2.scope"].map(|name| stage.tree.app(user(), name));
        stage.report("front", &[&one], "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), one.cgroup);
        let both = [&one, &forger];
        stage.report("ambiguous", &both, "").await.expect("taken");
        assert_eq!(stage.tree.kernel("foreground_cgroups"), "");
        assert_eq!(stage.tree.kernel("perceptible_cgroups"), "");
        let quiet = &stage.status().await.sessions[0].quiet;
        assert!(quiet.contains("more than one has the focus"), "{quiet}");
    });
}

/// What the daemon keeps on groups is `trusted.*`: no user can write that, and what a user can write is not taken for it.
#[test]
fn attributes_that_a_user_can_forge_set_nothing_back() {
    let tree = Tree::with_kernel();
    let app = tree.app(user(), "app-forger-1.scope");
    let file = |name: &str| format!("sys/fs/cgroup{}/{name}", app.cgroup);
    let folder = tree.root().join(file(""));
    tree.put(&file("io.weight"), "default 1\n");
    tree.put(&file("cgroup.freeze"), "1");
    tree.put("sys/kernel/fasttrack/app_cgroups", &app.cgroup);
    for (name, value) in [
        ("was.io.weight", "10000\n1"),
        ("frozen", "1"),
        ("app", "1"),
        ("ioprio", "1"),
    ] {
        let name = format!("user.fasttrack.{name}");
        let set = rustix::fs::setxattr(&folder, name, value.as_bytes(), XattrFlags::empty());
        if let Err(error) = set {
            eprintln!(
                "SKIPPED: the file system of temporary files has no user attributes: {error}"
            );
            return;
        }
    }
    assert_eq!(clean::restore(&System::new(tree.root())), 0);
    assert_eq!(tree.get(&file("io.weight")), "default 1");
    assert_eq!(tree.get(&file("cgroup.freeze")), "1");
    assert_eq!(tree.kernel("app_cgroups"), app.cgroup);
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

/// The body of a report that says nothing at great length: 60 KiB.
fn long_body() -> Vec<u8> {
    let nobody = WireApp {
        cgroup: String::new(),
        inode: 0,
        id: String::new(),
        pid: 0,
    };
    let report = common::wire("front", &vec![&nobody; 1950], "");
    let body = to_bytes(Context::new_dbus(LE, 0), &report).expect("bytes");
    assert!((60 << 10..64 << 10).contains(&body.len()), "{}", body.len());
    body.to_vec()
}

/// A report with this body, and with descriptors that it does not speak of.
fn report_with(body: &[u8], descriptors: Vec<OwnedFd>) -> Message {
    let call = Message::method_call(fasttrack_bus::PATH, "Report")
        .and_then(|call| call.destination(fasttrack_bus::NAME))
        .and_then(|call| call.interface("org.fasttrack1.Manager"))
        .expect("names");
    // SAFETY: the body has no descriptors that could be taken for others.
    let call = unsafe { call.build_raw_body(body, "((sa(stsu)sb))", descriptors) };
    call.expect("a message")
}

/// Sends, and waits until the bus has taken all.
async fn send_all(connection: &Connection, messages: impl Iterator<Item = Message>) {
    for message in messages {
        connection.send(&message).await.expect("sent");
    }
    let bus = zbus::fdo::DBusProxy::new(connection).await;
    let asked = bus.expect("the bus").get_id().await;
    asked.expect("it has read what came before");
}

impl Stage {
    /// The most memory that the daemon has had, KiB.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.daemon.0.id());
        let text = fs::read_to_string(path).expect("a status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).expect("KiB")
    }

    fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.daemon.0.id());
        fs::read_dir(path).expect("descriptors").count()
    }
}

#[test]
fn long_calls_that_are_refused_cost_little_memory() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.report("front", &[&app], "").await.expect("taken");
        let (before, body) = (stage.memory(), long_body());
        let mut others = Vec::new();
        for _ in 0..8 {
            let other = stage.bus.connect().await;
            let calls = (0..120).map(|_| report_with(&body, Vec::new()));
            send_all(&other, calls).await;
            others.push(other);
        }
        stage.report("launch", &[&app], "").await.expect("taken");
        let grown = stage.memory() - before;
        assert!(grown < 20 << 10, "{grown} KiB");
    });
}

#[test]
fn calls_with_descriptors_leave_none_open() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.report("front", &[&app], "").await.expect("taken");
        let body = to_bytes(
            Context::new_dbus(LE, 0),
            &common::wire("front", &[&app], ""),
        );
        let (before, body) = (stage.descriptors(), body.expect("bytes").to_vec());
        let null = || {
            OwnedFd::from(std::os::fd::OwnedFd::from(
                File::open("/dev/null").expect("a file"),
            ))
        };
        let mut others = Vec::new();
        for _ in 0..3 {
            let other = stage.bus.connect().await;
            let calls = (0..20).map(|_| report_with(&body, (0..16).map(|_| null()).collect()));
            send_all(&other, calls).await;
            others.push(other);
        }
        stage.report("launch", &[&app], "").await.expect("taken");
        let more = stage.descriptors().saturating_sub(before);
        assert!(more < 64, "{more} descriptors more");
        assert!(stage.status().await.counters["messages dropped unread"] > 0);
    });
}

#[test]
fn who_is_refused_waits_only_while_few_do() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.report("front", &[&app], "").await.expect("taken");
        let other = stage.bus.connect().await;
        let mut answers = MessageStream::from(&other);
        let body = to_bytes(
            Context::new_dbus(LE, 0),
            &common::wire("front", &[&app], ""),
        );
        let body = body.expect("bytes");
        // The first that were refused wait still when one after them has its answer, if this test is given a processor
        // for as long as they wait: not always on a busy machine.
        for _ in 0..20 {
            let mut calls = Vec::new();
            for _ in 0..100 {
                let call = report_with(&body, Vec::new());
                other.send(&call).await.expect("sent");
                calls.push(call.primary_header().serial_num());
            }
            let mut answered = Vec::new();
            while answered.len() < calls.len() {
                let message = answers.next().await.expect("open").expect("a message");
                if message.message_type() == zbus::message::Type::Error {
                    answered.push(message.header().reply_serial().expect("an answer"));
                }
            }
            if calls[32..].contains(&answered[0]) {
                return;
            }
        }
        panic!("in 20 tries the first to be answered was one of those that wait");
    });
}
