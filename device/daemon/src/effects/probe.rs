// SPDX-License-Identifier: GPL-2.0-only
//! Which means work here: each is tried by a write that is read back, for each user's apps and the disks under them.

use super::delegate;
use super::kernel;
use super::ladder::{looks_at_priority, Judged, OfUser, Probes};
use crate::cgroup::{user_of, Cgroup};
use crate::disks::{self, Mounts};
use crate::system::System;
use crate::tree::app_slices;
use fasttrack_config::Effects as Wanted;

/// What decides what works, as far as it changes while the machine runs. It is read, and nothing is tried.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Why the kernel's part has switched itself off.
    ejected: String,
    /// Whether somebody has switched it on again that had been off.
    on_again: bool,
    /// Users' app slices, with the files that they have, and the disks under the apps.
    users: Vec<(String, Vec<&'static str>, OfDisks)>,
    /// For everybody else.
    rest: OfDisks,
}

/// Disks, and whether they know weights by bfq and by io.cost.
type OfDisks = (Judged, (bool, bool));

/// Files of an app slice that come and go with its controllers.
const OF_CONTROLLERS: [&str; 4] = ["io.bfq.weight", "io.stat", "io.weight", "memory.low"];

impl Signs {
    /// As they are now.
    pub fn new(system: &System, on_again: bool) -> Signs {
        let mounts = Mounts::new(system);
        let of_disks = |user| {
            let judged = judged(system, &mounts, user);
            let weights = know_weights(system, &judged);
            (judged, weights)
        };
        let of_user = |slice: String| {
            let group = Cgroup::open_path(system, &slice);
            let has = |file: &&str| group.as_ref().is_ok_and(|group| group.has(file));
            let files = OF_CONTROLLERS.into_iter().filter(has).collect();
            let disks = of_disks(user_of(&slice));
            (slice, files, disks)
        };
        Signs {
            ejected: kernel::ejected(system),
            on_again,
            users: app_slices(system).into_iter().map(of_user).collect(),
            rest: of_disks(None),
        }
    }
}

/// Looks at what works here.
pub fn probe(system: &System, wanted: &Wanted) -> Probes {
    let mounts = Mounts::new(system);
    let slices = app_slices(system);
    let kernel = match wanted.kernel {
        true => kernel::probe(system),
        false => Err("not probed.".to_string()),
    };
    let freezer = freezer(system, &slices);
    // Where the kernel does it, or the freezer, weights are not used, and no controller is given for a moment.
    let better = kernel.is_ok() || wanted.freezer && freezer.is_ok();
    let gives = wanted.weights && wanted.enable_io && !better;
    let users = slices
        .iter()
        .map(|slice| of_user(system, gives, &mounts, Some(slice)));
    Probes {
        kernel,
        freezer,
        users: users.collect(),
        rest: of_user(system, gives, &mounts, None),
        facts: facts(system, &slices),
    }
}

fn of_user(system: &System, gives: bool, mounts: &Mounts, slice: Option<&String>) -> OfUser {
    let user = slice.and_then(|slice| user_of(slice));
    let judged = judged(system, mounts, user);
    OfUser {
        user,
        weights: weights(system, gives, &judged, slice),
        memory: memory(system, slice),
        ioprio: ioprio(&judged),
        facts: slice
            .and_then(|slice| undelegated(system, &judged, slice))
            .into_iter()
            .collect(),
        judged,
    }
}

/// The disks under a user's apps; all disks where these are not known, as with a network's home.
fn judged(system: &System, mounts: &Mounts, user: Option<u32>) -> Judged {
    let disks = mounts.of_apps(user);
    let known = !disks.is_empty();
    Judged {
        disks: if known { disks } else { disks::all(system) },
        known,
    }
}

fn weights(
    system: &System,
    gives: bool,
    judged: &Judged,
    slice: Option<&String>,
) -> Result<String, String> {
    let (bfq, cost) = know_weights(system, judged);
    if !bfq && !cost {
        return Err(format!(
            "no disk {}has the I/O scheduler bfq ({}), and io.cost is off, so a weight changes nothing.",
            under(judged),
            disks::list(&judged.disks)
        ));
    }
    let Some(slice) = slice else {
        return Err(NO_SLICE.to_string());
    };
    let mut harm = false;
    if gives {
        harm = !delegate::give(system, slice);
    }
    let best = if bfq { "io.bfq.weight" } else { "io.weight" };
    let slice = std::slice::from_ref(slice);
    let usable = [best, "io.weight"]
        .into_iter()
        .find_map(|file| Some((file, with_file(system, slice, file)?)));
    match usable {
        Some((file, group)) => taken(&group, file).map(|()| file.to_string()),
        None if harm => Err(format!("{UNDELEGATED} It is not given to them here: io.prio.class of this kernel would let any user have real-time priority.")),
        None => Err(UNDELEGATED.to_string()),
    }
}

/// Whether a disk under the apps has bfq, and whether io.cost is on for one.
fn know_weights(system: &System, judged: &Judged) -> (bool, bool) {
    let bfq = judged.disks.iter().any(|disk| disk.elevator == "bfq");
    let qos = crate::system::read(&system.cgroups().join("io.cost.qos")).unwrap_or_default();
    let on = |number: &str| {
        let mut lines = qos.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.any(|words| words.first() == Some(&number) && words.contains(&"enable=1"))
    };
    (bfq, judged.disks.iter().any(|disk| on(&disk.number)))
}

fn under(judged: &Judged) -> &'static str {
    if judged.known {
        "under the apps' files "
    } else {
        ""
    }
}

const UNDELEGATED: &str =
    "systemd delegates no io controller to users, so IOWeight of a scope succeeds and does nothing.";

/// That a user's apps have no io controller, where this is not the reason why no weight is set.
fn undelegated(system: &System, judged: &Judged, slice: &str) -> Option<String> {
    let knows = know_weights(system, judged);
    let bare = Cgroup::open_path(system, slice).is_ok_and(|group| !group.has("io.stat"));
    (has_io(system) && knows == (false, false) && bare).then(|| format!("io: {UNDELEGATED}"))
}

/// Whether control groups of version 2 have the io controller.
fn has_io(system: &System) -> bool {
    let all = crate::system::read(&system.cgroups().join("cgroup.controllers"));
    all.is_ok_and(|all| all.split(' ').any(|one| one == "io"))
}

/// What this kernel has not.
fn facts(system: &System, slices: &[String]) -> Vec<String> {
    let root = system.cgroups();
    if !root.join("cgroup.controllers").exists() {
        return Vec::new();
    }
    if !has_io(system) {
        return vec!["io: the control groups of version 2 have no io controller here, so there are no weights.".to_string()];
    }
    let lacks = |file: &str, option: &str| {
        format!("{file}: this kernel has no such file ({option} is not set); fasttrackd does without it.")
    };
    let mut facts = Vec::new();
    if !root.join("io.prio.class").exists() {
        facts.push(lacks("io.prio.class", "CONFIG_BLK_CGROUP_IOPRIO"));
    }
    // The root never has this one: any other group with the controller shows it.
    let mut groups = slices.to_vec();
    groups.extend(["/user.slice", "/system.slice"].map(str::to_string));
    if with_file(system, &groups, "io.stat").is_some_and(|group| !group.has("io.latency")) {
        facts.push(lacks("io.latency", "CONFIG_BLK_CGROUP_IOLATENCY"));
    }
    facts
}

const NO_SLICE: &str = "no user's manager has an app.slice yet.";

/// The first group that has a file: a greeter's user has fewer than others.
fn with_file(system: &System, groups: &[String], file: &str) -> Option<Cgroup> {
    let mut open = groups
        .iter()
        .filter_map(|path| Cgroup::open_path(system, path).ok());
    open.find(|group| group.has(file))
}

fn memory(system: &System, slice: Option<&String>) -> Result<(), String> {
    let Some(slice) = slice else {
        return Err(NO_SLICE.to_string());
    };
    match with_file(system, std::slice::from_ref(slice), "memory.low") {
        Some(group) => taken(&group, "memory.low"),
        None => Err("the memory controller is not given to users' apps.".to_string()),
    }
}

/// Writes what a file says back to it, and reads it again.
fn taken(group: &Cgroup, file: &str) -> Result<(), String> {
    let path = group.path();
    let told = |error: std::io::Error| format!("{path}/{file}: {error}.");
    let before = group.read(file).map_err(told)?;
    let value = before.lines().next().unwrap_or("").to_string();
    group.write(file, &value).map_err(told)?;
    let after = group.read(file).map_err(told)?;
    if after.lines().next() == Some(value.as_str()) {
        Ok(())
    } else {
        Err(format!(
            "{path}/{file}: {value:?} was written and {after:?} read back."
        ))
    }
}

fn freezer(system: &System, apps: &[String]) -> Result<(), String> {
    // The root has none of these files: any other group shows whether they work.
    let mut groups = apps.to_vec();
    groups.extend(["/user.slice", "/system.slice"].map(str::to_string));
    match with_file(system, &groups, "cgroup.freeze") {
        Some(group) => taken(&group, "cgroup.freeze"),
        None => Err(
            "no control group of version 2 below /user.slice or /system.slice can be frozen."
                .to_string(),
        ),
    }
}

fn ioprio(judged: &Judged) -> Result<(), String> {
    let mut disks = judged.disks.iter();
    if disks.any(|disk| looks_at_priority(&disk.elevator)) {
        return Ok(());
    }
    Err(format!(
        "inert, because no disk {}has an I/O scheduler that looks at priorities ({}).",
        under(judged),
        disks::list(&judged.disks)
    ))
}
