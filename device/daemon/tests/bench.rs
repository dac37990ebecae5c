// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon and the agent cost, in real time: `make bench-device`. Each prints its numbers; none is judged.

mod common;

use common::{block_on, user, Running, Stage, Tree};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Until a source that has nothing here is tried twice a minute at most.
const SETTLE: Duration = Duration::from_secs(45);
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(60);
/// Switches between two apps.
const SWITCHES: usize = 1000;
/// Messages of the attacker in a second, and for how long.
const FLOOD: (u32, u32) = (10_000, 10);

/// Processes that are made in a second, and for how long.
const FORKS: (u32, u32) = (2_000, 10);

/// Of `/proc/PID/stat`, in a second: on all of Linux.
const TICKS: u64 = 100;

/// Reports are as many as are sent: what a report costs is measured here, not how many are taken.
const UNBOUND: &str = "[reports]\nper_second = 1000\nburst = 10000\n";

fn field(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Memory that is resident, and of it what belongs to no file, KiB.
fn memory(pid: u32) -> (u64, u64) {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    (field(&path, "VmRSS:"), field(&path, "RssAnon:"))
}

/// How often all threads of a process have been scheduled.
fn wakeups(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let each = threads.flatten().map(|thread| thread.path().join("status"));
    each.map(|path| {
        field(&path, "voluntary_ctxt_switches:") + field(&path, "nonvoluntary_ctxt_switches:")
    })
    .sum()
}

/// Processor time of a process, ms.
fn cpu_ms(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let after = text.rsplit_once(')').expect("a name").1;
    let words: Vec<&str> = after.split_whitespace().collect();
    let ticks = |index: usize| words[index].parse::<u64>().expect("ticks");
    (ticks(11) + ticks(12)) * 1000 / TICKS
}

fn child(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).expect("children");
    children.trim().parse().expect("one child: the guard")
}

/// All of it with an agent, and an app in front.
async fn set() -> Option<(Stage, Running)> {
    let stage = Stage::set(Tree::with_kernel()).await?;
    let agent = agent(&stage)?;
    let app = stage.tree.app(user(), "app-a-1.scope");
    stage.report("front", &[&app], "").await.expect("taken");
    Some((stage, agent))
}

/// An agent with the sources that this bus and this environment have. Its standard input stays open.
fn agent(stage: &Stage) -> Option<Running> {
    let program = Path::new(env!("CARGO_BIN_EXE_fasttrackd")).with_file_name("fasttrack-agent");
    let mut command = Command::new(&program);
    command.args(["--source", "manual"]).stdin(Stdio::piped());
    for name in ["DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"] {
        command.env(name, &stage.bus.address);
    }
    command.env("XDG_SESSION_ID", "c1");
    match command.spawn() {
        Ok(child) => {
            stage.tree.runs_in(child.id(), &common::agent(user()));
            Some(Running(child))
        }
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", program.display());
            None
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn memory_and_wakeups_while_nothing_happens() {
    block_on(async {
        let Some((stage, agent)) = set().await else {
            return;
        };
        stage.report("nobody", &[], "locked").await.expect("taken");
        tokio::time::sleep(SETTLE).await;
        println!("troubles of the agent: {:?}", stage.status().await.errors);
        // Until it sleeps again after the answer.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let daemon = stage.daemon.0.id();
        let all = [
            ("fasttrackd", daemon),
            ("its guard", child(daemon)),
            ("fasttrack-agent", agent.0.id()),
        ];
        let before = all.map(|(_, pid)| wakeups(pid));
        tokio::time::sleep(IDLE).await;
        for ((name, pid), before) in all.into_iter().zip(before) {
            let (rss, own) = memory(pid);
            println!(
                "{name}: {} wake-ups in {} s, {rss} KiB resident, {own} KiB of it not of files",
                wakeups(pid) - before,
                IDLE.as_secs()
            );
        }
    });
}

/// Makes so many processes in a second, which end at once.
fn forks(per_second: u32, seconds: u32) {
    let begin = Instant::now();
    for number in 1..=per_second * seconds {
        // SAFETY: the child ends without touching anything.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: leaves without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of this process, whose status is not asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        let due = Duration::from_secs(1) * number / per_second;
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}

#[test]
#[ignore = "a measurement"]
fn processes_that_come_and_go() {
    block_on(async {
        let Some((stage, agent)) = set().await else {
            return;
        };
        tokio::time::sleep(SETTLE).await;
        let all = [
            ("fasttrackd", stage.daemon.0.id()),
            ("fasttrack-agent", agent.0.id()),
        ];
        let (before, begin) = (all.map(|(_, pid)| cpu_ms(pid)), Instant::now());
        let (rate, seconds) = FORKS;
        forks(rate, seconds);
        let took = begin.elapsed().as_secs_f64();
        for ((name, pid), before) in all.into_iter().zip(before) {
            println!(
                "{} forks in {took:.1} s: {name} used {} ms of processor time",
                rate * seconds,
                cpu_ms(pid) - before
            );
        }
    });
}

async fn switches(stage: &Stage, what: &str) {
    let apps = [1, 2].map(|number| stage.tree.app(user(), &format!("app-{number}.scope")));
    let mut trips = Vec::new();
    for number in 0..SWITCHES {
        let begin = Instant::now();
        let told = stage.report("front", &[&apps[number % 2]], "").await;
        told.expect("taken");
        trips.push(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    trips.sort();
    let counters = stage.status().await.counters;
    let us = |part: &str| {
        let name = format!("time from a report to its last write, {part}, us");
        counters.get(&name).copied().unwrap_or(0)
    };
    println!(
        "{what}: receipt to last write p50 {} us, p99 {} us, most {} us; there and back over the bus p99 {} us",
        us("p50 of the last 1000"),
        us("p99 of the last 1000"),
        us("longest"),
        trips[SWITCHES * 99 / 100].as_micros()
    );
}

#[test]
#[ignore = "a measurement"]
fn reports_while_all_cores_and_the_disk_are_busy() {
    block_on(async {
        let tree = Tree::with_kernel();
        tree.put("etc/fasttrack/fasttrackd.toml", UNBOUND);
        let Some(stage) = Stage::set(tree).await else {
            return;
        };
        switches(&stage, "as this machine is").await;
        let end = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut busy: Vec<std::thread::JoinHandle<()>> = Vec::new();
        for _ in 0..cores {
            let end = end.clone();
            busy.push(std::thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }));
        }
        let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        for number in 0..4 {
            let (end, path) = (end.clone(), disk.path().join(number.to_string()));
            busy.push(std::thread::spawn(move || write(&path, &end)));
        }
        switches(&stage, "every core spins and 4 writers fsync").await;
        end.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|one| one.join().expect("ended"));
    });
}

/// Writes and syncs until the end.
fn write(path: &Path, end: &AtomicBool) {
    let block = vec![7; 1 << 20];
    while !end.load(Ordering::Relaxed) {
        let mut file = fs::File::create(path).expect("a file");
        for _ in 0..8 {
            file.write_all(&block).expect("written");
        }
        file.sync_all().expect("synced");
    }
}

#[test]
#[ignore = "a measurement"]
fn an_attacker_who_floods() {
    block_on(async {
        let Some(stage) = Stage::set(Tree::with_kernel()).await else {
            return;
        };
        let app = stage.tree.app(user(), "app-a-1.scope");
        let report = common::wire("front", &[&app], "");
        let connection = stage.bus.connect().await;
        let pid = stage.daemon.0.id();
        let (before, begin) = (cpu_ms(pid), Instant::now());
        let (rate, seconds) = FLOOD;
        // A hundredth of a second's messages at a time.
        for batch in 1..=100 * seconds {
            for _ in 0..rate / 100 {
                let message = zbus::Message::method_call(fasttrack_bus::PATH, "Report")
                    .and_then(|builder| builder.destination(fasttrack_bus::NAME))
                    .and_then(|builder| builder.interface("org.fasttrack1.Manager"))
                    .and_then(|builder| builder.with_flags(zbus::message::Flags::NoReplyExpected))
                    .and_then(|builder| builder.build(&(&report,)))
                    .expect("a message");
                connection.send(&message).await.expect("sent");
            }
            let due = Duration::from_millis(10) * batch;
            tokio::time::sleep(due.saturating_sub(begin.elapsed())).await;
        }
        let counters = stage.status().await.counters;
        let (took, cpu) = (begin.elapsed(), cpu_ms(pid) - before);
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        let sent = rate * seconds;
        println!(
            "{sent} reports without replies in {:.1} s: {} taken, {} refused, {} dropped unread; fasttrackd used {cpu} ms, {:.1} % of a core, {} us a message",
            took.as_secs_f64(),
            count("reports"),
            count("reports beyond the rate"),
            count("messages dropped unread"),
            f64::from(u32::try_from(cpu).unwrap_or(u32::MAX)) / took.as_secs_f64() / 10.0,
            cpu * 1000 / u64::from(sent)
        );
    });
}
