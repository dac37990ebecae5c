// SPDX-License-Identifier: GPL-2.0-only
//! The guest's init: a root of its own, the job, the result, the end.

use crate::check;
use crate::console::say;
use crate::exec::{PATH, RUN};
use crate::job::{App, Job, Mode};
use crate::outcome::Outcome;
use crate::place::DATA;
use crate::player;
use crate::prepare;
use crate::run;
use crate::sys::{self, ChildSignal};
use crate::watchdog;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Where the host's own root stays visible, read-only.
const HOST: &str = "/host";
/// Host directory that the new root is first mounted on: every host has it.
const FIRST: &str = "/tmp";
/// Top-level directories that are the guest's own.
const OWN: [&str; 8] = ["proc", "sys", "dev", "tmp", "run", "data", "mnt", "host"];
/// Directories of the guest that start empty: what a command names below them is the host's.
const EMPTY: [&str; 3] = ["/tmp", "/run", "/mnt"];
/// Permissions of a directory for everybody's temporary files.
const STICKY: &str = "mode=1777";
/// How often a busy /data is tried again, and how long to wait between, ns of virtual time.
const UMOUNT_TRIES: u32 = 50;
const UMOUNT_STEP_NS: u64 = 100_000_000;

/// PID 1.
pub fn main() -> ! {
    std::panic::set_hook(Box::new(|info| panicked(&info.to_string())));
    // Before there is a thread.
    let signal = ChildSignal::block().map_err(|error| format!("SIGCHLD: {error}"));
    match signal.and_then(|signal| Ok((enter()?, signal))) {
        Ok((run, signal)) => serve(&run, &signal),
        Err(error) => {
            say(&error);
            sys::power_off_now()
        }
    }
}

fn panicked(what: &str) {
    let text = format!("the guest program failed: {what}");
    say(&text);
    if std::process::id() != 1 {
        sys::exit_now(player::FAILED);
    }
    if let Err(error) = Outcome::failed(text).write() {
        say(&format!("cannot write result.json: {error}"));
    }
    sys::power_off_now()
}

/// Runs the job of the mounted run directory, and powers off.
fn serve(run: &str, signal: &ChildSignal) -> ! {
    let job = check::load(&Path::new(RUN).join("job.json"));
    let outcome = match &job {
        Ok(job) => perform(job, signal),
        Err(error) => Outcome::failed(error.replace(RUN, run)),
    };
    for error in &outcome.errors {
        say(error);
    }
    let prepares = matches!(&job, Ok(job) if job.mode == Mode::Prepare);
    let mut outcome = outcome;
    if prepares {
        // A prepared image is good only when it is whole on the storage.
        outcome.errors.extend(leave().err());
    }
    if let Err(error) = outcome.write() {
        say(&format!("cannot write {run}/result.json: {error}"));
    }
    if !prepares {
        if let Err(error) = leave() {
            say(&error);
        }
    }
    sys::power_off_now()
}

fn perform(job: &Job, signal: &ChildSignal) -> Outcome {
    let result = || -> Result<Outcome, String> {
        if job.mode != Mode::Shell {
            let deadline = sys::monotonic_ns() + crate::job::ns(job.limit_s) + watchdog::MARGIN_NS;
            watchdog::start(signal, deadline).map_err(|error| format!("watchdog: {error}"))?;
        }
        show_named(job)?;
        match job.mode {
            Mode::Prepare => {
                run::set_up(job)?;
                prepare::make_files(job)?;
                prepare::sync()?;
                Ok(Outcome::default())
            }
            Mode::Play | Mode::Exec => Ok(run::play(job, signal)),
            Mode::Shell => {
                run::set_up(job)?;
                shell()?;
                Ok(Outcome::default())
            }
        }
    };
    result().unwrap_or_else(Outcome::failed)
}

/// Ends every process and unmounts the phone.
fn leave() -> Result<(), String> {
    sys::kill_all();
    while sys::reap().is_some() {}
    if !mounted(DATA) {
        return Ok(());
    }
    // After a power cut the sync fails, and the unmount may still work.
    let synced = prepare::sync();
    unmount().and(synced)
}

fn unmount() -> Result<(), String> {
    for _ in 0..UMOUNT_TRIES {
        match sys::umount(DATA, 0) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                sys::sleep_ns(UMOUNT_STEP_NS);
                while sys::reap().is_some() {}
            }
            other => return other.map_err(|error| format!("cannot unmount {DATA}: {error}")),
        }
    }
    Err(format!("cannot unmount {DATA}: it stays busy"))
}

fn mounted(target: &str) -> bool {
    let text = fs::read_to_string("/proc/mounts").unwrap_or_default();
    text.lines()
        .any(|line| line.split(' ').nth(1) == Some(target))
}

/// Makes the guest's root; gives the host directory of the run.
fn enter() -> Result<String, String> {
    mount("proc", "/proc", "proc", 0, "")?;
    let cmdline = fs::read_to_string("/proc/cmdline")
        .map_err(|error| format!("cannot read /proc/cmdline: {error}"))?;
    let run = parameter(&cmdline, "fasttrack_run");
    let host = parameter(&cmdline, "fasttrack_host");
    mount("root", FIRST, "tmpfs", 0, "mode=755")?;
    pivot()?;
    for name in OWN {
        make_dir(&format!("/{name}"))?;
    }
    // The root that the guest began with has this program only.
    sys::umount(HOST, libc::MNT_DETACH)
        .map_err(|error| format!("cannot leave the first root: {error}"))?;
    if let Some(host) = host {
        mount("none", HOST, "hostfs", libc::MS_RDONLY, &host)?;
        bind_host()?;
    }
    mount_kernel_file_systems()?;
    open_console();
    name_machine();
    panic_without_memory()?;
    let run = run.ok_or("fasttrack_run=DIR is missing on the kernel's command line")?;
    make_dir(RUN)?;
    mount(
        "none",
        RUN,
        "hostfs",
        libc::MS_NOSUID | libc::MS_NODEV,
        &run,
    )
    .map_err(|error| format!("{error}; fasttrack_run={run} must be a host directory"))?;
    Ok(run)
}

fn pivot() -> Result<(), String> {
    let old = format!("{FIRST}{HOST}");
    make_dir(&old)?;
    let (new, old) = (FIRST, old);
    let say = |error: io::Error| format!("cannot change the root: {error}");
    let new = sys::cstring(new).map_err(say)?;
    let old = sys::cstring(&old).map_err(say)?;
    // SAFETY: both strings are valid.
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) };
    sys::check(result as libc::c_int).map_err(say)?;
    std::env::set_current_dir("/").map_err(say)
}

fn mount(
    source: &str,
    target: &str,
    kind: &str,
    flags: libc::c_ulong,
    data: &str,
) -> Result<(), String> {
    sys::mount(source, target, kind, flags, data)
        .map_err(|error| format!("cannot mount {kind} {source} on {target}: {error}"))
}

fn make_dir(path: &str) -> Result<(), String> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|error| format!("cannot make {path}: {error}")),
    }
}

/// Shows the host's top-level directories, so that its programs run as on the host.
fn bind_host() -> Result<(), String> {
    let say = |error: io::Error| format!("cannot read the host's root: {error}");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(HOST).map_err(say)? {
        names.insert(entry.map_err(say)?.file_name());
    }
    for name in names.iter().filter_map(|name| name.to_str()) {
        if OWN.contains(&name) {
            continue;
        }
        let (source, target) = (format!("{HOST}/{name}"), format!("/{name}"));
        let path = Path::new(&source);
        if let Ok(link) = fs::read_link(path) {
            std::os::unix::fs::symlink(&link, &target)
                .map_err(|error| format!("cannot link {target}: {error}"))?;
        } else if path.is_dir() {
            make_dir(&target)?;
            mount(&source, &target, "bind", libc::MS_BIND, "")?;
        }
    }
    Ok(())
}

fn mount_kernel_file_systems() -> Result<(), String> {
    let safe = libc::MS_NOSUID | libc::MS_NODEV;
    mount("proc", "/proc", "proc", safe | libc::MS_NOEXEC, "")?;
    mount("sysfs", "/sys", "sysfs", safe | libc::MS_NOEXEC, "")?;
    mount("devtmpfs", "/dev", "devtmpfs", libc::MS_NOSUID, "mode=755")?;
    make_dir("/dev/pts")?;
    make_dir("/dev/shm")?;
    mount(
        "devpts",
        "/dev/pts",
        "devpts",
        libc::MS_NOSUID,
        "mode=620,ptmxmode=666",
    )?;
    mount("shm", "/dev/shm", "tmpfs", safe, STICKY)?;
    mount("tmp", "/tmp", "tmpfs", safe, STICKY)?;
    mount("run", "/run", "tmpfs", safe, "mode=755")?;
    if Path::new("/var/tmp").is_dir() {
        mount("tmp", "/var/tmp", "tmpfs", safe, STICKY)?;
    }
    for (name, target) in [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ] {
        std::os::unix::fs::symlink(name, target)
            .map_err(|error| format!("cannot link {target}: {error}"))?;
    }
    for (kind, target) in [
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
    ] {
        // Kernels are built without these; what needs one then fails by its path.
        if Path::new(target).is_dir() {
            mount(kind, target, kind, safe | libc::MS_NOEXEC, "")?;
        }
    }
    Ok(())
}

/// Uses the guest's console for input and output: the host's root may have given none.
fn open_console() {
    let console = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/console");
    if let Ok(console) = console {
        for number in 0..3 {
            // Without a console there is nobody to tell.
            let _ = sys::dup_over(console.as_raw_fd(), number);
        }
    }
}

/// Ends the guest when it runs out of memory, a failed run in any case.
///
/// With time standing still while nobody sleeps, the task that wants memory would keep the
/// processor from the killed one that gives it back.
fn panic_without_memory() -> Result<(), String> {
    let knob = "/proc/sys/vm/panic_on_oom";
    fs::write(knob, "1").map_err(|error| format!("setting {knob}: {error}"))
}

/// Gives the guest the same name on every host.
fn name_machine() {
    let name = b"phone";
    // SAFETY: the name is valid; root may set it.
    unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) };
}

/// The value of `name=value` on a kernel command line; quotes are the kernel's.
fn parameter(cmdline: &str, name: &str) -> Option<String> {
    let mut quoted = false;
    let words = cmdline.trim().split(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    words.map(|word| word.replace('"', "")).find_map(|word| {
        word.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_string)
    })
}

/// Shows the entries of the host's /tmp, /run and /mnt that an app's command names.
fn show_named(job: &Job) -> Result<(), String> {
    let names: BTreeSet<String> = job.apps.iter().flat_map(named).collect();
    for target in names {
        let source = format!("{HOST}{target}");
        let path = Path::new(&source);
        if Path::new(&target).exists() || !path.exists() {
            continue;
        }
        if path.is_dir() {
            make_dir(&target)?;
        } else {
            fs::write(&target, "").map_err(|error| format!("cannot make {target}: {error}"))?;
        }
        mount(&source, &target, "bind", libc::MS_BIND, "")?;
    }
    Ok(())
}

/// The entries of the guest's empty directories that an app's command names.
fn named(app: &App) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in app.argv.iter().chain(app.env.values()) {
        for dir in EMPTY {
            for (at, _) in text.match_indices(&format!("{dir}/")) {
                let before = text[..at].chars().next_back();
                let name: String = text[at + dir.len() + 1..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || "._-+@%".contains(*c))
                    .collect();
                let starts = !before.is_some_and(|c| c.is_alphanumeric() || "._-/".contains(c));
                if starts && !name.is_empty() && name != "." && name != ".." {
                    found.insert(format!("{dir}/{name}"));
                }
            }
        }
    }
    found
}

/// An interactive shell on the console.
fn shell() -> Result<(), String> {
    // The host's start files would hide the prompt.
    let bash = ("/bin/bash", ["--norc", "-i"].as_slice());
    let (program, args) = match Path::new(bash.0).exists() {
        true => bash,
        false => ("/bin/sh", ["-i"].as_slice()),
    };
    let term = std::env::var("TERM").unwrap_or_else(|_| "linux".to_string());
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(DATA)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", DATA)
        .env("TERM", term)
        .env("LANG", "C.UTF-8")
        .env("PS1", "phone:\\w# ");
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            sys::check(libc::setsid())?;
            // Without a terminal the shell works all the same, without job control.
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    say(&format!("the shell has ended ({status})"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found() {
        let line = "root=/dev/root fasttrack_run=/a/b \"x=1 2\" y=\"c d\" yy=3\n";
        assert_eq!(parameter(line, "fasttrack_run").as_deref(), Some("/a/b"));
        assert_eq!(parameter(line, "x").as_deref(), Some("1 2"));
        assert_eq!(parameter(line, "y").as_deref(), Some("c d"));
        assert_eq!(parameter(line, "fasttrack"), None);
    }

    #[test]
    fn a_commands_host_paths_are_found() {
        let text = r#"{"name":"a","uid":10101,"role":"foreground",
            "argv":["sh","-c","cat /tmp/x.1/y </mnt/z; ls /usr/tmp/no a/tmp/no /tmp/"],
            "env":{"LIB":"/run/lib:/tmp/x.2"}}"#;
        let app: App = serde_json::from_str(text).expect("an app");
        let found: Vec<String> = named(&app).into_iter().collect();
        assert_eq!(found, ["/mnt/z", "/run/lib", "/tmp/x.1", "/tmp/x.2"]);
    }
}
