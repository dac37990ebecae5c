// SPDX-License-Identifier: GPL-2.0-only
//! A table of kernels and configurations: the rung, and what `status` says about it.

mod common;

use common::{apps, Tree};
use fasttrack_config::{Config, Effects};
use fasttrackd::effects::probe::{choose, probe, Rung};
use fasttrackd::system::System;

const USER: u32 = 1000;

/// What a machine has.
#[derive(Default)]
struct Machine {
    elevator: &'static str,
    /// Files of the user's app slice.
    files: &'static [(&'static str, &'static str)],
    /// Files of the system.
    system: &'static [(&'static str, &'static str)],
    kernel: bool,
}

fn look(machine: &Machine, change: impl Fn(&mut Effects)) -> (Rung, Vec<String>) {
    let tree = if machine.kernel {
        Tree::with_kernel()
    } else {
        Tree::new()
    };
    let slice = tree.group(&apps(USER), "").cgroup;
    for (name, value) in machine.files {
        tree.put(&format!("sys/fs/cgroup{slice}/{name}"), value);
    }
    tree.put("sys/block/sda/queue/scheduler", machine.elevator);
    tree.put("sys/block/loop0/queue/scheduler", "[bfq] none");
    for (path, value) in machine.system {
        tree.put(path, value);
    }
    let mut wanted = Config::default().effects;
    change(&mut wanted);
    let system = System::new(tree.root());
    choose(&probe(&system, &wanted), &wanted)
}

const FREEZE: (&str, &str) = ("cgroup.freeze", "0");
const BFQ: (&str, &str) = ("io.bfq.weight", "default 100");
const LOW: (&str, &str) = ("memory.low", "0");
const NO_KERNEL: &str = "kernel: this kernel has no /sys/kernel/fasttrack.";
const FREEZER_OFF: &str =
    "freezer: off until 'freezer = true' is in the section [effects] of the configuration.";

#[test]
fn the_patched_kernel_is_the_best_rung() {
    let machine = Machine {
        kernel: true,
        elevator: "[bfq] none",
        files: &[FREEZE, BFQ, LOW],
        ..Machine::default()
    };
    assert_eq!(
        look(&machine, |wanted| wanted.freezer = true),
        (Rung::Kernel, vec![])
    );
    let without = look(&machine, |wanted| wanted.kernel = false);
    assert_eq!(without.0, Rung::Weights);
    assert_eq!(
        without.1[0],
        "kernel: switched off, by the configuration or beside another program."
    );
}

#[test]
fn a_kernel_that_has_ejected_itself_is_not_used_and_says_so() {
    let machine = Machine {
        kernel: true,
        elevator: "none [mq-deadline]",
        system: &[("sys/kernel/fasttrack/ejected", "pause: tar 1234 30012 ms\n")],
        ..Machine::default()
    };
    let (rung, notes) = look(&machine, |_| {});
    assert_eq!(rung, Rung::Ioprio);
    let expected = "kernel: FastTrack has switched itself off (pause: tar 1234 30012 ms). \
        'echo 1 >/sys/kernel/fasttrack/enabled' switches it on again.";
    assert_eq!(notes[0], expected);
}

#[test]
fn weights_and_freezer_with_bfq_and_delegation() {
    let machine = Machine {
        elevator: "mq-deadline [bfq] none",
        files: &[FREEZE, BFQ, LOW],
        ..Machine::default()
    };
    let both = look(&machine, |wanted| wanted.freezer = true);
    assert_eq!(both, (Rung::WeightsAndFreezer, vec![NO_KERNEL.to_string()]));
    let weights = look(&machine, |_| {});
    assert_eq!(
        weights,
        (
            Rung::Weights,
            vec![NO_KERNEL.to_string(), FREEZER_OFF.to_string()]
        )
    );
}

#[test]
fn systemd_delegates_no_io_and_that_is_said() {
    let machine = Machine {
        elevator: "mq-deadline [bfq] none",
        files: &[FREEZE, LOW],
        ..Machine::default()
    };
    let (rung, notes) = look(&machine, |wanted| wanted.freezer = true);
    assert_eq!(rung, Rung::Freezer);
    let expected = "weights: systemd delegates no io controller to users, so IOWeight of a scope succeeds and does nothing.";
    assert_eq!(notes, [NO_KERNEL, expected]);
}

#[test]
fn debians_stock_kernel_has_the_freezer() {
    let machine = Machine {
        elevator: "none [mq-deadline]",
        files: &[FREEZE],
        ..Machine::default()
    };
    let (rung, notes) = look(&machine, |wanted| wanted.freezer = true);
    assert_eq!(rung, Rung::Freezer);
    let expected = "weights: no disk has the I/O scheduler bfq (sda: mq-deadline), and io.cost is off, so a weight changes nothing.";
    assert_eq!(notes, [NO_KERNEL, expected]);
    let (rung, notes) = look(&machine, |_| {});
    assert_eq!(rung, Rung::Ioprio);
    assert_eq!(notes[2], FREEZER_OFF);
    assert_eq!(
        notes[3],
        "ioprio: reaches what tasks send themselves; no write-back and no journal."
    );
}

#[test]
fn without_a_scheduler_nothing_is_left_but_io_cost() {
    let machine = Machine {
        elevator: "[none] mq-deadline",
        ..Machine::default()
    };
    let (rung, notes) = look(&machine, |_| {});
    assert_eq!(rung, Rung::Observe);
    let inert =
        "ioprio: inert, because no disk has an I/O scheduler that looks at priorities (sda: none).";
    assert!(notes.contains(&inert.to_string()), "{notes:?}");
    let cost = Machine {
        elevator: "[none] mq-deadline",
        files: &[("io.weight", "default 100\n")],
        system: &[("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto\n")],
        ..Machine::default()
    };
    assert_eq!(look(&cost, |_| {}).0, Rung::Weights);
}

#[test]
fn memory_low_is_told_of_where_it_is_missing() {
    let machine = Machine {
        elevator: "[bfq] none",
        files: &[BFQ],
        ..Machine::default()
    };
    let (rung, notes) = look(&machine, |_| {});
    assert_eq!(rung, Rung::Weights);
    assert!(
        notes.contains(
            &"memory.low: the memory controller is not given to users' apps.".to_string()
        ),
        "{notes:?}"
    );
}
