// SPDX-License-Identifier: GPL-2.0-only
//! A table of kernels and configurations: the rung, and what `status` says about it.

mod common;

use common::{apps, Tree};
use fasttrack_config::{Config, Effects};
use fasttrack_detector::Decision;
use fasttrackd::counters::Counters;
use fasttrackd::effects::ladder::{choose, Rung};
use fasttrackd::effects::probe::probe;
use fasttrackd::effects::Effects as InUse;
use fasttrackd::system::System;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::mem::MaybeUninit;

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
    // Whom the tree has may be another user.
    std::fs::remove_dir_all(tree.root().join("sys/fs/cgroup/user.slice")).expect("removed");
    let slice = tree.group(&apps(USER), "").cgroup;
    for (name, value) in machine.files {
        tree.put(&format!("sys/fs/cgroup{slice}/{name}"), value);
    }
    tree.put("sys/block/sda/queue/scheduler", machine.elevator);
    tree.put("sys/block/sda/dev", "8:0\n");
    tree.put("sys/block/loop0/queue/scheduler", "[bfq] none");
    for (path, value) in machine.system {
        tree.put(path, value);
    }
    let mut wanted = Config::default().effects;
    change(&mut wanted);
    let system = System::new(tree.root());
    let choice = choose(&probe(&system, &wanted), &wanted);
    (choice.rung, choice.notes)
}

const FREEZE: (&str, &str) = ("cgroup.freeze", "0");
const BFQ: (&str, &str) = ("io.bfq.weight", "default 100");
const LOW: (&str, &str) = ("memory.low", "0");
/// The sentence about disks where nothing is mounted.
fn all(elevator: &str) -> String {
    format!(
        "disks: those under /usr, /var and the homes are not known; the rung was judged by all (sda: {elevator})."
    )
}

const NO_KERNEL: &str = "kernel: this kernel has no /sys/kernel/fasttrack.";
/// The sentences about `memory.low`, where it works and where it does not.
const KEPT: &str =
    "memory.low: 512 MiB of the app in front, and of the groups above it, are reclaimed last.";
const NOT_KEPT: &str = "memory.low: the memory controller is not given to users' apps.";
const BESIDE_FREEZER: &str =
    "weights: not set beside the freezer, with which the app in front is faster without them.";
const FREEZER_OFF: &str =
    "freezer: off until 'freezer = true' is in the section [effects] of the configuration.";

/// How often a file is written meanwhile.
fn writes(path: &std::path::Path, meanwhile: impl FnOnce()) -> usize {
    let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
    let watch = inotify::init(flags).expect("inotify");
    // An event that is the same as the last one is told once, so each write must have two.
    let both = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE;
    inotify::add_watch(&watch, path, both).expect("watched");
    meanwhile();
    let mut room = [MaybeUninit::uninit(); 4096];
    let (mut events, mut written) = (Reader::new(&watch, &mut room), 0);
    while let Ok(event) = events.next() {
        written += usize::from(event.events().contains(ReadFlags::CLOSE_WRITE));
    }
    written
}

/// A probe writes, and takes its time while the disk is busy.
#[test]
fn a_change_of_the_rung_probes_once() {
    let tree = Tree::with_kernel();
    tree.put("sys/kernel/fasttrack/ejected", "stuck");
    let (system, mut counters) = (System::new(tree.root()), Counters::silent());
    let wanted = Config::default().effects;
    let mut effects = InUse::new(&system, &wanted, &mut counters);
    assert_ne!(effects.rung(), Rung::Kernel);
    tree.put("sys/kernel/fasttrack/ejected", "");
    let lease = tree.root().join("sys/kernel/fasttrack/lease_ms");
    let written = writes(&lease, || {
        effects.look_again(&Decision::default(), &mut counters)
    });
    assert_eq!(effects.rung(), Rung::Kernel);
    // By the probe, and by who uses it from now on.
    assert_eq!(written, 2);
}

#[test]
fn the_patched_kernel_is_the_best_rung() {
    let machine = Machine {
        kernel: true,
        elevator: "[bfq] none",
        files: &[FREEZE, BFQ, LOW],
        ..Machine::default()
    };
    let held = "kernel: requests to sda are not held back, because its I/O scheduler is bfq; \
        'echo fasttrack >/sys/block/sda/queue/scheduler' changes that.";
    assert_eq!(
        look(&machine, |wanted| wanted.freezer = true),
        (Rung::Kernel, vec![held.to_string(), all("bfq")])
    );
    let whole = Machine {
        elevator: "[fasttrack] none",
        ..machine
    };
    assert_eq!(look(&whole, |_| {}), (Rung::Kernel, vec![all("fasttrack")]));
    let machine = Machine {
        elevator: "[bfq] none",
        ..whole
    };
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
fn weights_with_bfq_and_delegation_give_way_to_the_freezer() {
    let machine = Machine {
        elevator: "mq-deadline [bfq] none",
        files: &[FREEZE, BFQ, LOW],
        ..Machine::default()
    };
    let freezer = look(&machine, |wanted| wanted.freezer = true);
    assert_eq!(
        freezer,
        (
            Rung::Freezer,
            vec![
                NO_KERNEL.to_string(),
                BESIDE_FREEZER.to_string(),
                KEPT.to_string(),
                all("bfq")
            ],
        )
    );
    let weights = look(&machine, |_| {});
    assert_eq!(
        weights,
        (
            Rung::Weights,
            vec![
                NO_KERNEL.to_string(),
                FREEZER_OFF.to_string(),
                KEPT.to_string(),
                all("bfq")
            ]
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
    let (rung, notes) = look(&machine, |wanted| wanted.enable_io = false);
    assert_eq!(rung, Rung::Ioprio);
    let expected = "weights: systemd delegates no io controller to users, so IOWeight of a scope succeeds and does nothing.";
    assert_eq!(notes[1], expected);
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
    let deadline = all("mq-deadline");
    assert_eq!(notes, [NO_KERNEL, BESIDE_FREEZER, NOT_KEPT, &deadline]);
    let (rung, notes) = look(&machine, |_| {});
    assert_eq!(rung, Rung::Ioprio);
    let expected = "weights: no disk has the I/O scheduler bfq (sda: mq-deadline), and io.cost is off, so a weight changes nothing.";
    assert_eq!(notes[1], expected);
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
    assert!(notes.contains(&NOT_KEPT.to_string()), "{notes:?}");
}

#[test]
fn memory_low_is_used_by_itself() {
    let machine = Machine {
        elevator: "[none] mq-deadline",
        files: &[FREEZE, LOW],
        ..Machine::default()
    };
    let off = "memory.low: switched off, by the configuration or beside another program.";
    for (freezer, memory, rung, said) in [
        (false, true, Rung::Memory, KEPT),
        (true, true, Rung::Freezer, KEPT),
        (false, false, Rung::Observe, off),
        (true, false, Rung::Freezer, off),
    ] {
        let (found, notes) = look(&machine, |wanted| {
            (wanted.freezer, wanted.memory) = (freezer, memory);
        });
        assert_eq!(found, rung);
        assert!(notes.contains(&said.to_string()), "{notes:?}");
    }
    let deadline = Machine {
        elevator: "none [mq-deadline]",
        ..machine
    };
    let (rung, notes) = look(&deadline, |_| {});
    assert_eq!(rung, Rung::Ioprio);
    assert!(notes.contains(&KEPT.to_string()), "{notes:?}");
}

/// A disk, with its number and its I/O schedulers.
fn disk(tree: &Tree, name: &str, number: &str, elevator: &str) {
    let place = format!("sys/block/{name}");
    tree.put(&format!("{place}/queue/scheduler"), elevator);
    tree.put(&format!("{place}/dev"), number);
    let link = tree.root().join(format!("sys/dev/block/{number}"));
    std::fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
    std::os::unix::fs::symlink(tree.root().join(place), link).expect("a link");
}

/// A user whose apps have all files.
fn user(tree: &Tree, user: u32) {
    let slice = tree.group(&apps(user), "").cgroup;
    for (name, value) in [FREEZE, BFQ, LOW] {
        tree.put(&format!("sys/fs/cgroup{slice}/{name}"), value);
    }
}

#[test]
fn a_card_with_bfq_that_holds_no_app_does_not_give_an_inert_rung() {
    let tree = Tree::new();
    tree.put(
        "proc/1/mountinfo",
        "21 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n22 21 179:0 / /media/card rw - vfat /dev/mmcblk0 rw\n",
    );
    disk(&tree, "nvme0n1", "259:0", "[none] mq-deadline");
    disk(&tree, "mmcblk0", "179:0", "mq-deadline [bfq]");
    std::fs::remove_dir_all(tree.root().join("sys/fs/cgroup/user.slice")).expect("the first user");
    user(&tree, USER);
    let mut wanted = Config::default().effects;
    let look = |wanted: &Effects| choose(&probe(&System::new(tree.root()), wanted), wanted);
    let choice = look(&wanted);
    assert_eq!(choice.rung, Rung::Memory);
    let notes = [
        NO_KERNEL,
        "weights: no disk under the apps' files has the I/O scheduler bfq (nvme0n1: none), and io.cost is off, so a \
            weight changes nothing.",
        FREEZER_OFF,
        "ioprio: inert, because no disk under the apps' files has an I/O scheduler that looks at priorities \
            (nvme0n1: none).",
        KEPT,
        "disks: the apps' files are on nvme0n1: none; the rung was judged by that.",
    ];
    assert_eq!(choice.notes, notes);
    // io.cost of another disk is as little use.
    tree.put("sys/fs/cgroup/io.cost.qos", "179:0 enable=1\n");
    assert_eq!(look(&wanted).rung, Rung::Memory);
    tree.put("sys/fs/cgroup/io.cost.qos", "259:0 enable=1\n");
    tree.put(
        &format!("sys/fs/cgroup{}/io.weight", apps(USER)),
        "default 100",
    );
    assert_eq!(look(&wanted).rung, Rung::Weights);
    wanted.freezer = true;
    assert_eq!(look(&wanted).rung, Rung::Freezer);
}

#[test]
fn users_whose_homes_lie_on_different_disks_have_rungs_of_their_own() {
    let tree = Tree::new();
    tree.put(
        "proc/1/mountinfo",
        "21 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n22 21 8:0 / /home/ann rw - ext4 /dev/sda rw\n",
    );
    tree.put(
        "etc/passwd",
        "ann:x:4000:1::/home/ann:\nbob:x:4001:1::/home/bob:\n",
    );
    disk(&tree, "nvme0n1", "259:0", "[mq-deadline] none");
    disk(&tree, "sda", "8:0", "mq-deadline [bfq]");
    std::fs::remove_dir_all(tree.root().join("sys/fs/cgroup/user.slice")).expect("the first user");
    user(&tree, 4000);
    user(&tree, 4001);
    let wanted = Config::default().effects;
    let choice = choose(&probe(&System::new(tree.root()), &wanted), &wanted);
    assert_eq!(choice.rung, Rung::Weights);
    assert_eq!(
        choice.users.into_iter().collect::<Vec<_>>(),
        [(4000, Rung::Weights), (4001, Rung::Ioprio)]
    );
    let notes = [
        NO_KERNEL,
        "weights (user 4000): changes nothing on nvme0n1: mq-deadline, where a part of the apps' files is.",
        "weights (user 4001): no disk under the apps' files has the I/O scheduler bfq (nvme0n1: mq-deadline), and \
            io.cost is off, so a weight changes nothing.",
        FREEZER_OFF,
        "ioprio (user 4001): reaches what tasks send themselves; no write-back and no journal.",
        KEPT,
        "disks (user 4000): the apps' files are on nvme0n1: mq-deadline, sda: bfq; the rung was judged by that.",
        "disks (user 4001): the apps' files are on nvme0n1: mq-deadline; the rung was judged by that.",
        "rung (user 4001): 'ioprio'.",
    ];
    assert_eq!(choice.notes, notes);
}

const ROOT: (&str, &str) = (
    "sys/fs/cgroup/cgroup.controllers",
    "cpuset cpu io memory pids",
);
const STAT: (&str, &str) = ("sys/fs/cgroup/system.slice/io.stat", "");

#[test]
fn what_the_kernel_has_not_and_systemd_does_not_delegate_is_said() {
    let debian = Machine {
        elevator: "none [mq-deadline]",
        files: &[FREEZE, LOW],
        system: &[ROOT, STAT],
        ..Machine::default()
    };
    let io = "io: systemd delegates no io controller to users, so IOWeight of a scope succeeds and does nothing.";
    let prio = "io.prio.class: this kernel has no such file (CONFIG_BLK_CGROUP_IOPRIO is not set); fasttrackd does \
        without it.";
    let latency = "io.latency: this kernel has no such file (CONFIG_BLK_CGROUP_IOLATENCY is not set); fasttrackd \
        does without it.";
    let notes = look(&debian, |_| {}).1;
    let rest = [io, prio, latency, &all("mq-deadline")];
    assert_eq!(notes[notes.len() - 4..], rest);
    let phone = Machine {
        system: &[
            ROOT,
            STAT,
            ("sys/fs/cgroup/io.prio.class", "no-change"),
            ("sys/fs/cgroup/system.slice/io.latency", ""),
        ],
        files: &[FREEZE, LOW, ("io.stat", ""), ("io.latency", "")],
        ..debian
    };
    let notes = look(&phone, |_| {}).1;
    let unsaid = |note: &String| !note.starts_with("io");
    assert_eq!(
        notes.iter().filter(|note| !unsaid(note)).count(),
        1,
        "ioprio alone: {notes:?}"
    );
    let hybrid = Machine {
        system: &[("sys/fs/cgroup/cgroup.controllers", "hugetlb")],
        ..phone
    };
    let none =
        "io: the control groups of version 2 have no io controller here, so there are no weights.";
    assert!(look(&hybrid, |_| {}).1.contains(&none.to_string()));
}

#[test]
fn a_kernel_whose_priorities_would_harm_others_gets_no_delegation_and_says_why() {
    let machine = Machine {
        elevator: "mq-deadline [bfq] none",
        files: &[FREEZE, LOW, ("io.prio.class", "no-change")],
        system: &[
            ("sys/fs/cgroup/cgroup.controllers", "io memory"),
            ("sys/fs/cgroup/cgroup.subtree_control", "memory"),
            ("sys/fs/cgroup/user.slice/io.prio.class", "no-change"),
            ("sys/fs/cgroup/io.prio.class", "no-change"),
        ],
        ..Machine::default()
    };
    let expected = "weights: systemd delegates no io controller to users, so IOWeight of a scope succeeds and does \
        nothing. It is not given to them here: io.prio.class of this kernel would let any user have real-time priority.";
    let notes = look(&machine, |_| {}).1;
    assert!(notes.contains(&expected.to_string()), "{notes:?}");
}
