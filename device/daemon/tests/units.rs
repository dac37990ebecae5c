// SPDX-License-Identifier: GPL-2.0-only
//! systemd: it is told the values of its units, and who starts and ends.

mod common;

use common::systemd1::Systemd1;
use common::{apps, block_on, user, Bus, Stage, Tree};
use fasttrackd::cgroup::Cgroup;
use fasttrackd::system::System;
use fasttrackd::units::{restore, tell, unit, Told};
use std::time::{Duration, Instant};

/// None, with the reason printed, where no attribute can be set.
fn with_attributes(tree: &Tree) -> Option<()> {
    let group = Cgroup::open_below(&tree.root().join("sys/fs/cgroup"), "/").expect("the root");
    match group.set_attribute("trusted.fasttrack.try", "1") {
        Ok(()) => Some(()),
        Err(error) => {
            eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
            None
        }
    }
}

/// A tree in which weights work.
fn with_weights() -> Option<Tree> {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "mq-deadline [bfq] none");
    let slice = apps(user());
    let above = slice.trim_end_matches("/app.slice");
    let above_that = above.rsplit_once('/').expect("a slice").0;
    for group in ["/user.slice", above_that, above, &slice] {
        tree.put(&format!("sys/fs/cgroup{group}/memory.low"), "0");
        tree.put(
            &format!("sys/fs/cgroup{group}/io.bfq.weight"),
            "default 100",
        );
    }
    tree.put(
        "sys/fs/cgroup/system.slice/packagekit.service/io.bfq.weight",
        "default 100",
    );
    with_attributes(&tree).map(|()| tree)
}

/// Waits until something holds, and lets others on this thread answer meanwhile.
async fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{what}: waited for in vain"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn only_what_the_systems_manager_has_made_is_a_unit_of_its() {
    let user = "/user.slice/user-7.slice/user@7.service";
    assert_eq!(unit("/user.slice"), Some("user.slice"));
    assert_eq!(unit(user), Some("user@7.service"));
    assert_eq!(
        unit("/user.slice/user-7.slice/session-1.scope"),
        Some("session-1.scope")
    );
    assert_eq!(unit("/system.slice/_cpu.service"), Some("cpu.service"));
    for other in [
        &format!("{user}/app.slice"),
        &format!("{user}/app.slice/a.scope"),
        "/init",
        "/lxc/a",
    ] {
        assert_eq!(unit(other), None, "{other}");
    }
}

#[test]
fn a_weight_of_bfq_is_on_systemds_scale() {
    let tree = Tree::new();
    tree.group("/system.slice/a.service", "");
    let group =
        Cgroup::open_path(&System::new(tree.root()), "/system.slice/a.service").expect("there");
    let told =
        |file, value| Told::of(&group, file, Some(value)).map(|told| (told.property, told.value));
    assert_eq!(
        told("io.bfq.weight", "1000"),
        Some(("IOWeight", Some(10_000)))
    );
    assert_eq!(told("io.bfq.weight", "1"), Some(("IOWeight", Some(1))));
    assert_eq!(told("io.weight", "1000"), Some(("IOWeight", Some(1000))));
    assert_eq!(
        told("memory.low", "536870912"),
        Some(("MemoryLow", Some(536_870_912)))
    );
    assert_eq!(told("cgroup.freeze", "1"), None);
}

#[test]
fn values_of_units_are_systemds_while_an_app_is_in_front_and_come_back() {
    block_on(async {
        let (Some(bus), Some(tree)) = (Bus::start(), with_weights()) else {
            return;
        };
        let systemd = Systemd1::start(&bus).await;
        let (slice, manager) = (
            format!("user-{}.slice", user()),
            format!("user@{}.service", user()),
        );
        for (unit, value) in [("user.slice", 5), (&slice, 0), (&manager, 0)] {
            systemd.add(unit, &[("MemoryLow", value)]).await;
        }
        systemd
            .add("packagekit.service", &[("IOWeight", u64::MAX)])
            .await;
        let stage = Stage::on(bus, tree).await;
        let app = stage.tree.app(user(), "app-a-1.scope");
        stage.tree.put(
            &format!("sys/fs/cgroup{}/io.bfq.weight", app.cgroup),
            "default 100",
        );
        stage
            .tree
            .put(&format!("sys/fs/cgroup{}/memory.low", app.cgroup), "0");
        stage.report("front", &[&app], "").await.expect("taken");
        let low = 512 << 20;
        wait_for("systemd is told", || {
            systemd.value(&manager, "MemoryLow") == low
        })
        .await;
        for unit in ["user.slice", &slice] {
            assert_eq!(systemd.value(unit, "MemoryLow"), low, "{unit}");
        }
        wait_for("the service's weight", || {
            systemd.value("packagekit.service", "IOWeight") == 1
        })
        .await;
        assert!(systemd.sets().iter().all(|(.., runtime)| *runtime));
        // Somebody sets another value meanwhile, and keeps it.
        systemd.change(&slice, "MemoryLow", 77);
        stage.report("nobody", &[], "locked").await.expect("taken");
        wait_for("the weight before", || {
            systemd.value("packagekit.service", "IOWeight") == u64::MAX
        })
        .await;
        wait_for("the value before", || {
            systemd.value("user.slice", "MemoryLow") == 5
        })
        .await;
        wait_for("the value before", || {
            systemd.value(&manager, "MemoryLow") == 0
        })
        .await;
        assert_eq!(systemd.value(&slice, "MemoryLow"), 77);
        let status = stage.status().await;
        assert_eq!(status.errors, Vec::<String>::new());
    });
}

#[test]
fn what_a_daemon_that_was_killed_had_told_systemd_is_taken_back() {
    block_on(async {
        let (Some(bus), Some(tree)) = (Bus::start(), with_weights()) else {
            return;
        };
        let systemd = Systemd1::start(&bus).await;
        systemd.add("user.slice", &[("MemoryLow", 5)]).await;
        let system = System::new(tree.root());
        let group = Cgroup::open_path(&system, "/user.slice").expect("there");
        let connection = bus.connect().await;
        let told = Told::of(&group, "memory.low", Some("99")).expect("a unit");
        tell(&connection, &system, &told).await.expect("told");
        assert_eq!(systemd.value("user.slice", "MemoryLow"), 99);
        restore(&connection, &system).await;
        assert_eq!(systemd.value("user.slice", "MemoryLow"), 5);
        // One that was killed before it could tell another value.
        tell(&connection, &system, &told).await.expect("told");
        let name = "trusted.fasttrack.unit.MemoryLow";
        let replacing = group.set_attribute(name, "5\n7\n99");
        replacing.expect("kept");
        restore(&connection, &system).await;
        assert_eq!(systemd.value("user.slice", "MemoryLow"), 5);
        // Once is enough: what comes later is somebody else's.
        systemd.change("user.slice", "MemoryLow", 99);
        restore(&connection, &system).await;
        assert_eq!(systemd.value("user.slice", "MemoryLow"), 99);
    });
}

#[test]
fn way_is_given_to_who_starts_later_and_taken_again_when_it_ends() {
    block_on(async {
        let (Some(bus), Some(tree)) = (Bus::start(), with_weights()) else {
            return;
        };
        let systemd = Systemd1::start(&bus).await;
        for unit in ["ananicy.service", "uresourced.service"] {
            systemd.add(unit, &[("MemoryLow", 0)]).await;
        }
        let stage = Stage::on(bus, tree).await;
        let says = |word: &'static str| {
            move |status: &fasttrack_bus::Status| {
                status.notes.iter().any(|note| note.starts_with(word))
            }
        };
        assert_eq!(stage.status().await.rung, "weights");
        systemd.set_active("ananicy.service", true).await;
        let status = stage.until("Ananicy is named", says("Ananicy runs")).await;
        assert_eq!(status.rung, "weights", "weights are not its business");
        systemd.set_active("uresourced.service", true).await;
        stage
            .until("uresourced is named", says("uresourced runs"))
            .await;
        stage
            .until("weights are left to it", |status| status.rung == "observe")
            .await;
        systemd.set_active("uresourced.service", false).await;
        stage
            .until("weights again", |status| status.rung == "weights")
            .await;
        systemd.set_active("ananicy.service", false).await;
        stage
            .until("nobody", |status| !says("Ananicy runs")(status))
            .await;
        // One with a name on the bus, which needs no systemd.
        let other = stage.bus.connect().await;
        other
            .request_name("org.freedesktop.UResourced")
            .await
            .expect("a name");
        stage
            .until("weights are left to it", |status| status.rung == "ioprio")
            .await;
        drop(other);
        stage
            .until("weights again", |status| status.rung == "weights")
            .await;
    });
}
