// SPDX-License-Identifier: GPL-2.0-only
//! Counts the instructions that I/O paths take, in a guest whose time stamp counter counts instructions.
//!
//! It is the guest's init. `cost_states` in the kernel's parameters names the states to measure, with commas. What it
//! finds goes to `counts` in the run's directory, a line each:
//!
//! ```text
//! check LOOPS TICKS TICKS ...             a loop of two instructions a turn
//! count STATE PATH OPS SLEEPS TICKS ...   OPS operations a batch, in all batches together SLEEPS times asleep
//! write STATE PATTERN BYTES TICKS         with `cost_writes`: a file written on the emulated phone, and synced
//! lost STATE EVENTS                       that a trace had no room for
//! done
//! ```
#![deny(missing_docs)]
#![warn(unsafe_op_in_unsafe_fn)]

mod paths;
mod state;
mod sys;
mod trace;
mod writes;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use paths::Ground;
use state::State;

/// Turns of the loop of the check: short beside the 10 ms between two ticks of the kernel's timer.
const LOOPS: [u64; 2] = [10_000, 110_000];
const CHECKS: usize = 9;

/// The two null_blk, and their sizes in MiB: one that keeps what is written, for a file system, and a larger one that does not.
const DISKS: [&str; 2] = ["disk", "raw"];
const DISK_MIB: u32 = 96;
const RAW_MIB: u32 = 1024;

fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "fasttrack-counter: only a guest of ./fasttrack cost can start this, as its init"
        );
        std::process::exit(2);
    }
    std::panic::set_hook(Box::new(|panic| {
        println!("fasttrack-counter: error: {panic}");
        sys::reset();
    }));
    if let Err(error) = run() {
        println!("fasttrack-counter: error: {error}");
    }
    sys::reset();
}

fn run() -> Result<(), String> {
    mount_all().map_err(|error| format!("mount: {error}"))?;
    let names = std::env::var("cost_states").map_err(|_| "no cost_states=")?;
    let states = names
        .split(',')
        .map(State::named)
        .collect::<Result<Vec<_>, _>>()?;
    let mut text = check();
    text += &if std::env::var_os("cost_writes").is_some() {
        writes::measure(&states)?
    } else {
        paths(&states)?
    };
    text += "done\n";
    fs::write("/run/out/counts", text).map_err(|error| format!("counts: {error}"))
}

/// All paths in all states.
fn paths(states: &[State]) -> Result<String, String> {
    disks()?;
    let ground = Ground::prepare().map_err(|error| format!("files: {error}"))?;
    let mut text = String::new();
    for state in states {
        text += &state.measure(&DISKS, &|name, elevator| {
            state.as_app(|| Ok(ground.measure(name, elevator)))
        })?;
    }
    Ok(text)
}

fn check() -> String {
    let mut text = String::new();
    for loops in LOOPS {
        let _ = write!(text, "check {loops}");
        for _ in 0..CHECKS {
            let _ = write!(text, " {}", sys::turns(loops));
        }
        text.push('\n');
    }
    text
}

fn mount_all() -> io::Result<()> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("tmpfs", "/run"),
        ("debugfs", "/sys/kernel/debug"),
        ("configfs", "/sys/kernel/config"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
    ] {
        sys::mount("none", target, kind, "")?;
    }
    fs::create_dir("/run/out")?;
    let options = "trans=virtio,version=9p2000.L,msize=262144,cache=none";
    sys::mount("run", "/run/out", "9p", options)
}

/// Makes both null_blk. They end a request at once, in the call that sends it: nobody sleeps.
fn disks() -> Result<(), String> {
    let [disk, raw] = DISKS;
    for (name, mib, keeps) in [(disk, DISK_MIB, "1"), (raw, RAW_MIB, "0")] {
        let place = Path::new("/sys/kernel/config/nullb").join(name);
        fs::create_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        for (knob, value) in [
            ("size", mib.to_string().as_str()),
            ("memory_backed", keeps),
            ("queue_mode", "2"),
            ("irqmode", "0"),
            ("blocksize", "4096"),
            ("power", "1"),
        ] {
            sys::write(&place.join(knob), value)?;
        }
    }
    file_system(&format!("/dev/{disk}"))
}

/// Makes a file system on a device and mounts it at /run/data.
fn file_system(device: &str) -> Result<(), String> {
    tool("mkfs.ext4", &["-q", "-F", "-b", "4096", device])?;
    fs::create_dir("/run/data").map_err(|error| format!("/run/data: {error}"))?;
    sys::mount(device, "/run/data", "ext4", "").map_err(|error| format!("ext4: {error}"))
}

fn tool(name: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(name)
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr)))
    }
}
