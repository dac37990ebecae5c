// SPDX-License-Identifier: GPL-2.0-only
//! `doctor`: what works here, and why the rest does not.

use fasttrack_trace::bpf;
use fasttrack_trace::histograms::Histograms;
use fasttrack_trace::join::EVENTS;
use fasttrack_trace::source::{self, patched};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was found: it works, it is missing but not needed, or nothing can be recorded without it.
enum Finding {
    Good(String),
    Less(String),
    Bad(String),
}

use Finding::{Bad, Good, Less};

/// Prints all findings; the exit status is 1 if nothing can be recorded.
pub fn run(tracefs: &Path, sysfs: &Path) -> ExitCode {
    let mut findings = vec![mounted(tracefs)];
    if matches!(findings[0], Good(_)) {
        findings.push(instance(tracefs));
        findings.extend(events(tracefs));
    }
    findings.push(names());
    findings.push(others(tracefs));
    findings.extend(programs(tracefs, sysfs));
    findings.push(lockdown(sysfs));
    let mut code = ExitCode::SUCCESS;
    for finding in &findings {
        match finding {
            Good(text) => println!("ok       {text}"),
            Less(text) => println!("missing  {text}"),
            Bad(text) => {
                println!("FAILED   {text}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn mounted(tracefs: &Path) -> Finding {
    let shown = tracefs.display();
    match fs::read_dir(tracefs.join("events")) {
        Ok(_) => Good(format!("tracefs at {shown}")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Bad(format!("tracefs at {shown}: permission denied; run it as root"))
        }
        Err(_) => Bad(format!(
            "tracefs is not mounted at {shown}; mount -t tracefs tracefs {shown} (the kernel needs CONFIG_FTRACE \
             and a tracer), or say where with --tracefs"
        )),
    }
}

fn instance(tracefs: &Path) -> Finding {
    let path = probe(tracefs);
    match fs::create_dir(&path).and_then(|()| fs::remove_dir(&path)) {
        Ok(()) => Good("a ring buffer of its own".to_string()),
        Err(error) => Bad(format!("{}: {error}; run it as root", path.display())),
    }
}

/// Groups of events, and what is not known without them.
const GROUPS: [(&str, &str); 7] = [
    ("block", "nothing can be recorded (CONFIG_BLOCK)"),
    ("writeback", "nobody knows who dirtied a page"),
    ("task", "tasks that end soon have no names"),
    (
        "ext4",
        "files of ext4 are unknown (is it a module that is not loaded?)",
    ),
    (
        "f2fs",
        "files of f2fs are unknown (is it a module that is not loaded?)",
    ),
    ("jbd2", "nobody knows who pays for ext4's journal"),
    (
        "fasttrack",
        "class, cause and app are unknown: the kernel is not patched",
    ),
];

fn events(tracefs: &Path) -> Vec<Finding> {
    let there = |event: &&&str| tracefs.join("events").join(event).join("format").exists();
    GROUPS
        .iter()
        .map(|(group, without)| {
            let all: Vec<&&str> = EVENTS
                .iter()
                .filter(|event| event.split('/').next() == Some(group))
                .collect();
            let found = all.iter().filter(|event| there(&&***event)).count();
            let text = format!("events {group}: {found} of {}", all.len());
            match found {
                0 if *group == "block" => Bad(format!("{text}; {without}")),
                0 => Less(format!("{text}; {without}")),
                _ => Good(text),
            }
        })
        .collect()
}

/// `CAP_DAC_READ_SEARCH` of linux/capability.h.
const READ_SEARCH: u32 = 2;

/// `CAP_PERFMON` and `CAP_BPF`, which `CAP_SYS_ADMIN` has in it.
const PERFMON: u32 = 38;
const BPF: u32 = 39;
const SYS_ADMIN: u32 = 21;

fn capable(capability: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    set.is_some_and(|set| set >> capability & 1 == 1)
}

fn names() -> Finding {
    match capable(READ_SEARCH) {
        true => Good("paths of files, by their inodes".to_string()),
        false => Less(
            "CAP_DAC_READ_SEARCH: files have inode numbers and no paths; run it as root"
                .to_string(),
        ),
    }
}

/// Collectors have rings of their own; the patched kernel tells names once for all of them.
fn others(tracefs: &Path) -> Finding {
    let pids = match source::others(tracefs) {
        Ok(pids) => pids,
        Err(error) => {
            return Less(format!(
                "whether another fasttrack-trace records is not known: {error}; run it as root"
            ))
        }
    };
    if pids.is_empty() {
        return Good("no other fasttrack-trace records".to_string());
    }
    let text = format!(
        "fasttrack-trace records already (process {}): another one needs a directory of its own, -o",
        pids.join(", ")
    );
    match patched(tracefs) {
        true => Less(format!(
            "{text}; tasks and files that the first has met have no names in it"
        )),
        false => Good(text),
    }
}

/// A ring to try with, KiB for each processor.
const TRIED_KIB: u64 = 64;

/// The BPF programs: they are loaded, and what no kernel tells them is listed.
fn programs(tracefs: &Path, sysfs: &Path) -> Vec<Finding> {
    if patched(tracefs) {
        let text = "source: the patched kernel; BPF programs are not needed";
        return vec![Good(text.to_string()), sums(tracefs)];
    }
    let without = "record uses tracefs alone: files are known where the file system maps them, tasks while they live, and \
                   who writes to a dirty page of another app by a map, or not on ext4 or f2fs, is not told";
    let less = |text: String| vec![Less(format!("BPF source: {text}; {without}"))];
    let allowed = |one| capable(SYS_ADMIN) || capable(one);
    let could = bpf::built() && sysfs.join(bpf::BTF).exists();
    if could && !(allowed(BPF) && allowed(PERFMON)) {
        return less("CAP_BPF and CAP_PERFMON are needed; run it as root".to_string());
    }
    match bpf::load(sysfs, TRIED_KIB) {
        Err(why) => less(why),
        Ok(programs) => {
            let mut found = vec![Good(
                "source: BPF programs, with events of tracefs".to_string(),
            )];
            let missing = programs.missing().iter().map(String::as_str);
            found.extend(
                missing
                    .chain(bpf::GAPS)
                    .map(|gap| Less(format!("BPF source: {gap}"))),
            );
            found
        }
    }
}

/// A ring to try things in. It has a collector's name: should doctor be killed, the next collector removes it.
fn probe(tracefs: &Path) -> PathBuf {
    let name = format!("{}-{}", source::INSTANCE, std::process::id());
    tracefs.join("instances").join(name)
}

/// Histograms of the patched kernel's events: they are made and removed.
fn sums(tracefs: &Path) -> Finding {
    let path = probe(tracefs);
    let tried = fs::create_dir(&path).and_then(|()| Histograms::new(tracefs, &path).map(drop));
    let removed = fs::remove_dir(&path);
    match tried.and(removed) {
        Ok(()) => Good("sums of the kernel for top, by histograms".to_string()),
        Err(error) => Less(format!(
            "sums of the kernel for top: {error}; top reads each event (CONFIG_HIST_TRIGGERS)"
        )),
    }
}

fn lockdown(sysfs: &Path) -> Finding {
    let text = fs::read_to_string(sysfs.join("kernel/security/lockdown")).unwrap_or_default();
    match text.split(['[', ']']).nth(1) {
        Some("none") | None => Good("no lockdown".to_string()),
        Some("confidentiality") => Bad(
            "the kernel is locked down for confidentiality: tracefs and BPF programs cannot read; boot with \
             lockdown=integrity"
                .to_string(),
        ),
        Some(level) => Good(format!("lockdown is {level}: events are not affected")),
    }
}
