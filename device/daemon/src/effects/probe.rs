// SPDX-License-Identifier: GPL-2.0-only
//! The ladder: which means work here, and which of them are used. Choosing is a pure function of what was found.

use super::kernel;
use crate::cgroup::Cgroup;
use crate::clean::children;
use crate::system::System;
use fasttrack_config::Effects as Wanted;
use std::fmt;
use std::fs;

/// What is done for the app in front, from the best to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// The kernel prefers it, down to the device.
    Kernel,
    /// It has more weight, and background is frozen while it waits for storage.
    WeightsAndFreezer,
    /// Background is frozen while it waits for storage.
    Freezer,
    /// It has more weight.
    Weights,
    /// Its own requests have a better priority.
    Ioprio,
    /// Nothing: who is in front is found out and told.
    Observe,
}

impl fmt::Display for Rung {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rung::Kernel => "kernel",
            Rung::WeightsAndFreezer => "weights and freezer",
            Rung::Freezer => "freezer",
            Rung::Weights => "weights",
            Rung::Ioprio => "ioprio",
            Rung::Observe => "observe",
        })
    }
}

impl Rung {
    /// Whether background is frozen.
    pub fn freezes(self) -> bool {
        matches!(self, Rung::WeightsAndFreezer | Rung::Freezer)
    }
}

/// What works here; where it does not, a sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes {
    /// `/sys/kernel/fasttrack`.
    pub kernel: Result<(), String>,
    /// Weights: the file that takes one.
    pub weights: Result<String, String>,
    /// `memory.low`.
    pub memory: Result<(), String>,
    /// `cgroup.freeze`.
    pub freezer: Result<(), String>,
    /// Priorities of tasks.
    pub ioprio: Result<(), String>,
}

/// The best rung that works and is wanted, and what is to be said about it.
pub fn choose(probes: &Probes, wanted: &Wanted) -> (Rung, Vec<String>) {
    let freezer = wanted.freezer && probes.freezer.is_ok();
    let weights = wanted.weights && probes.weights.is_ok();
    let rung = if wanted.kernel && probes.kernel.is_ok() {
        Rung::Kernel
    } else if weights && freezer {
        Rung::WeightsAndFreezer
    } else if freezer {
        Rung::Freezer
    } else if weights {
        Rung::Weights
    } else if wanted.ioprio && probes.ioprio.is_ok() {
        Rung::Ioprio
    } else {
        Rung::Observe
    };
    (rung, notes(probes, wanted, rung))
}

fn notes(probes: &Probes, wanted: &Wanted, rung: Rung) -> Vec<String> {
    let note = |wanted: bool, name: &str, why: Option<&String>| match why {
        _ if !wanted => Some(format!(
            "{name}: switched off, by the configuration or beside another program."
        )),
        Some(why) => Some(format!("{name}: {why}")),
        None => None,
    };
    let kernel = note(wanted.kernel, "kernel", probes.kernel.as_ref().err());
    if rung == Rung::Kernel {
        return kernel.into_iter().collect();
    }
    let weighs = matches!(rung, Rung::Weights | Rung::WeightsAndFreezer);
    let off =
        "freezer: off until 'freezer = true' is in the section [effects] of the configuration.";
    let reach = "ioprio: reaches what tasks send themselves; no write-back and no journal.";
    let all = [
        kernel,
        note(wanted.weights, "weights", probes.weights.as_ref().err()),
        weighs
            .then(|| note(wanted.memory, "memory.low", probes.memory.as_ref().err()))
            .flatten(),
        if wanted.freezer {
            note(true, "freezer", probes.freezer.as_ref().err())
        } else {
            Some(off.to_string())
        },
        note(wanted.ioprio, "ioprio", probes.ioprio.as_ref().err()),
        (rung == Rung::Ioprio).then(|| reach.to_string()),
    ];
    all.into_iter().flatten().collect()
}

/// Looks at what works here.
pub fn probe(system: &System, wanted: &Wanted) -> Probes {
    let elevators = elevators(system);
    let apps = app_slices(system);
    Probes {
        kernel: if wanted.kernel {
            kernel::probe(system)
        } else {
            Err("not probed.".to_string())
        },
        weights: weights(system, wanted, &elevators, &apps),
        memory: memory(system, &apps),
        freezer: freezer(system, &apps),
        ioprio: ioprio(&elevators),
    }
}

/// The slices of the users' apps, as their managers have made them.
pub fn app_slices(system: &System) -> Vec<String> {
    let users = children(system.cgroups(), "/user.slice");
    let managers = users
        .iter()
        .flat_map(|user| children(system.cgroups(), user));
    let managers = managers.filter(|path| path.contains("/user@"));
    managers
        .map(|manager| format!("{manager}/app.slice"))
        .filter(|path| Cgroup::open_path(system, path).is_ok())
        .collect()
}

/// The disks and their I/O schedulers; what is only memory, or another disk's, is none.
pub fn elevators(system: &System) -> Vec<(String, String)> {
    let disks = fs::read_dir(system.path("sys/block"))
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<(String, String)> = disks
        .filter_map(|disk| disk.file_name().into_string().ok())
        .filter(|disk| {
            !["loop", "ram", "zram", "dm-", "md", "sr", "fd"]
                .iter()
                .any(|kind| disk.starts_with(kind))
        })
        .filter_map(|disk| {
            let all = system
                .read(&format!("sys/block/{disk}/queue/scheduler"))
                .ok()?;
            let chosen = all.split(['[', ']']).nth(1).unwrap_or(&all).to_string();
            Some((disk, chosen))
        })
        .collect();
    found.sort();
    found
}

fn weights(
    system: &System,
    wanted: &Wanted,
    elevators: &[(String, String)],
    apps: &[String],
) -> Result<String, String> {
    let bfq = elevators.iter().any(|(_, elevator)| elevator == "bfq");
    let cost = system
        .cgroups()
        .join("io.cost.qos")
        .to_str()
        .and_then(|path| fs::read_to_string(path).ok())
        .is_some_and(|text| text.contains("enable=1"));
    if !bfq && !cost {
        let names: Vec<String> = elevators
            .iter()
            .map(|(disk, name)| format!("{disk}: {name}"))
            .collect();
        return Err(format!(
            "no disk has the I/O scheduler bfq ({}), and io.cost is off, so a weight changes nothing.",
            if names.is_empty() { "no disk".to_string() } else { names.join(", ") }
        ));
    }
    if apps.is_empty() {
        return Err(NO_SLICE.to_string());
    }
    if wanted.weights && wanted.enable_io {
        apps.iter()
            .for_each(|slice| super::weights::enable_io(system, slice));
    }
    let best = if bfq { "io.bfq.weight" } else { "io.weight" };
    let usable = [best, "io.weight"]
        .into_iter()
        .find_map(|file| Some((file, with_file(system, apps, file)?)));
    match usable {
        Some((file, group)) => taken(&group, file).map(|()| file.to_string()),
        None => Err(
            "systemd delegates no io controller to users, so IOWeight of a scope succeeds and does nothing.".to_string(),
        ),
    }
}

const NO_SLICE: &str = "no user's manager has an app.slice yet.";

/// The first group that has a file: a greeter's user has fewer than others.
fn with_file(system: &System, groups: &[String], file: &str) -> Option<Cgroup> {
    let mut open = groups
        .iter()
        .filter_map(|path| Cgroup::open_path(system, path).ok());
    open.find(|group| group.has(file))
}

fn memory(system: &System, apps: &[String]) -> Result<(), String> {
    if apps.is_empty() {
        return Err(NO_SLICE.to_string());
    }
    match with_file(system, apps, "memory.low") {
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

/// I/O schedulers that look at a task's priority.
const LOOK_AT_PRIORITY: [&str; 3] = ["bfq", "mq-deadline", "fasttrack"];

fn ioprio(elevators: &[(String, String)]) -> Result<(), String> {
    if elevators
        .iter()
        .any(|(_, name)| LOOK_AT_PRIORITY.contains(&name.as_str()))
    {
        return Ok(());
    }
    let names: Vec<String> = elevators
        .iter()
        .map(|(disk, name)| format!("{disk}: {name}"))
        .collect();
    let names = if names.is_empty() {
        "no disk".to_string()
    } else {
        names.join(", ")
    };
    Err(format!(
        "inert, because no disk has an I/O scheduler that looks at priorities ({names})."
    ))
}
