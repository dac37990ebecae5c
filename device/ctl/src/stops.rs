// SPDX-License-Identifier: GPL-2.0-only
//! How the patched kernel stops apps, app by app: pauses of their tasks, holds of their requests.
//!
//! The kernel counts both for the whole machine; whose each one was is told by its tracepoints alone, which root may
//! follow. They are followed while `top` runs, in an instance of tracefs of its own.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// What names of instances begin with, before the PID.
const PREFIX: &str = "fasttrackctl-";
const EVENTS: [&str; 2] = [
    "events/fasttrack/fasttrack_pause",
    "events/fasttrack/fasttrack_hold",
];

/// Room of each processor, KiB: some four thousand events between two pictures.
const BUFFER_KIB: &str = "256";

/// How often an app was stopped since that is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Pauses of its tasks.
    pub pauses: u64,
    /// How long these were in all, ns.
    pub paused_ns: u64,
    /// Holds of a disk's background while a request of its tasks would have gone next.
    pub holds: u64,
}

impl std::ops::AddAssign for Stopped {
    fn add_assign(&mut self, other: Stopped) {
        self.pauses += other.pauses;
        self.paused_ns += other.paused_ns;
        self.holds += other.holds;
    }
}

/// Follows them.
pub struct Stops {
    root: PathBuf,
    instance: PathBuf,
    /// Until the end: an instance that is read is busy.
    pipe: Option<File>,
    /// The beginning of a line whose end has not come yet.
    begun: String,
    /// Where tasks are that were stopped since the last picture, and where those were that had been before it: a PID is
    /// given again, and who was stopped may have ended.
    groups: BTreeMap<u32, String>,
    groups_before: BTreeMap<u32, String>,
    by_group: BTreeMap<String, Stopped>,
    lost: u64,
}

impl Stops {
    /// Begins to follow them. An error says why it cannot be done.
    pub fn follow(root: &Path) -> Result<Stops, String> {
        let places = TRACEFS.iter().map(|place| root.join(place));
        let Some(tracefs) = places
            .into_iter()
            .find(|place| place.join("instances").is_dir())
        else {
            return Err("no tracefs that may be read is mounted: root alone may".to_string());
        };
        if let Some(event) = EVENTS.iter().find(|event| !tracefs.join(event).is_dir()) {
            let name = event.rsplit('/').next().unwrap_or(event);
            return Err(format!("this kernel has no tracepoint {name}"));
        }
        let instances = tracefs.join("instances");
        remove_left(root, &instances);
        let format = fs::read_to_string(tracefs.join(EVENTS[1]).join("format")).unwrap_or_default();
        if !format.contains(" pid;") {
            return Err("this kernel's fasttrack_hold names no task".to_string());
        }
        let instance = instances.join(format!("{PREFIX}{}", std::process::id()));
        let begun = fs::create_dir(&instance).and_then(|()| begin(&instance));
        match begun {
            Ok(pipe) => Ok(Stops {
                root: root.to_path_buf(),
                instance,
                pipe: Some(pipe),
                begun: String::new(),
                groups: BTreeMap::new(),
                groups_before: BTreeMap::new(),
                by_group: BTreeMap::new(),
                lost: 0,
            }),
            Err(error) => {
                // It may not be there.
                let _ = fs::remove_dir(&instance);
                Err(format!("{}: {error}", instance.display()))
            }
        }
    }

    /// Those until now, by control group.
    pub fn until_now(&mut self) -> &BTreeMap<String, Stopped> {
        self.groups_before = std::mem::take(&mut self.groups);
        let mut bytes = vec![0; 64 << 10];
        // It ends where nothing is left, which is an error of a pipe that does not block.
        while let Some(Ok(count @ 1..)) = self.pipe.as_mut().map(|pipe| pipe.read(&mut bytes)) {
            self.begun
                .push_str(&String::from_utf8_lossy(&bytes[..count]));
            let end = self.begun.rfind('\n').map_or(0, |at| at + 1);
            let whole: String = self.begun.drain(..end).collect();
            whole.lines().for_each(|line| self.take(line));
        }
        &self.by_group
    }

    /// How many were lost because they came faster than they were read; at least, where the kernel does not know.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn take(&mut self, line: &str) {
        self.lost += lost(line);
        let Some((pid, once)) = pause(line).or_else(|| hold(line)) else {
            return;
        };
        let group = match self.groups.get(&pid) {
            Some(group) => group.clone(),
            None => {
                let before = || self.groups_before.get(&pid).cloned();
                let group = group_of(&self.root, pid).or_else(before);
                let group = group.unwrap_or_default();
                self.groups.insert(pid, group.clone());
                group
            }
        };
        *self.by_group.entry(group).or_default() += once;
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        drop(self.pipe.take());
        remove(&self.instance);
    }
}

/// Ends what the kernel writes into an instance. Who cannot leaves it to the next that begins, or to the next boot.
fn remove(instance: &Path) {
    for event in EVENTS {
        let _ = fs::write(instance.join(event).join("enable"), "0");
    }
    let _ = fs::remove_dir(instance);
}

/// Removes instances of processes that were killed.
fn remove_left(root: &Path, instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() || !root.join(format!("proc/{pid}")).exists() {
            remove(&entry.path());
        }
    }
}

fn begin(instance: &Path) -> io::Result<File> {
    fs::write(instance.join("buffer_size_kb"), BUFFER_KIB)?;
    for event in EVENTS {
        fs::write(instance.join(event).join("enable"), "1")?;
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK);
    options.open(instance.join("trace_pipe"))
}

/// Of asm-generic/fcntl.h, which all architectures have that Debian's package is built for.
const O_NONBLOCK: i32 = 0o4000;

/// Who has paused, and that it has, where a line tells of a pause.
fn pause(line: &str) -> Option<(u32, Stopped)> {
    let told = line.split_once(" fasttrack_pause: ")?.1;
    let once = Stopped {
        pauses: 1,
        paused_ns: field(told, "paused_ns=")?.parse().ok()?,
        holds: 0,
    };
    Some((field(told, "pid=")?.parse().ok()?, once))
}

/// Whose request would have gone next, where a line tells of a hold.
fn hold(line: &str) -> Option<(u32, Stopped)> {
    let told = line.split_once(" fasttrack_hold: ")?.1;
    let once = Stopped {
        holds: 1,
        ..Stopped::default()
    };
    Some((field(told, "pid=")?.parse().ok()?, once))
}

fn field<'a>(told: &'a str, name: &str) -> Option<&'a str> {
    told.split(' ').find_map(|word| word.strip_prefix(name))
}

/// How many events a line says were lost. Where the kernel has not counted them, one.
fn lost(line: &str) -> u64 {
    let told = line
        .strip_prefix("CPU:")
        .and_then(|line| line.split_once(" [LOST "));
    told.and_then(|(_, told)| told.strip_suffix("EVENTS]"))
        .map_or(0, |number| number.trim().parse().unwrap_or(1))
}

/// The control group of a process, unless it has ended.
fn group_of(root: &Path, pid: u32) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_and_holds_are_booked_on_the_groups_of_their_tasks() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        put("proc/7/cgroup", "0::/user.slice/a.scope\n");
        let pipe = root.path().join("pipe");
        let line = |pid, ns| {
            format!("  tar-7 [001] ..... 12.345678: fasttrack_pause: uid=1000 pid={pid} paused_ns={ns}\n")
        };
        let hold = |pid| {
            format!("  <idle>-0 [000] d.s.. 12.345679: fasttrack_hold: dev=8:0 uid=1000 pid={pid} queued=1 in_flight=0 wake_ns=9\n")
        };
        let text = format!(
            "{}{}{}CPU:0 [LOST 3 EVENTS]\n{}{}  tar-7 [0",
            line(7, 5),
            line(8, 3),
            hold(7),
            line(7, 2),
            hold(9)
        );
        put("pipe", &text);
        let mut stops = Stops {
            root: root.path().to_path_buf(),
            instance: root.path().join("instance"),
            pipe: Some(File::open(&pipe).expect("a file")),
            begun: String::new(),
            groups: BTreeMap::new(),
            groups_before: BTreeMap::new(),
            by_group: BTreeMap::new(),
            lost: 0,
        };
        let stopped = |pauses, paused_ns, holds| Stopped {
            pauses,
            paused_ns,
            holds,
        };
        let found = stops.until_now().clone();
        assert_eq!(found["/user.slice/a.scope"], stopped(2, 7, 1));
        assert_eq!(found[""], stopped(1, 3, 1));
        assert_eq!(stops.begun, "  tar-7 [0");
        assert_eq!(stops.lost(), 3);
        assert_eq!(lost("CPU:1 [LOST EVENTS]"), 1);
        // It has ended: it was where it was. Then its PID is another's.
        let more = |text: &str| {
            let mut file = OpenOptions::new().append(true).open(&pipe).expect("a file");
            io::Write::write_all(&mut file, text.as_bytes()).expect("written");
        };
        fs::remove_file(root.path().join("proc/7/cgroup")).expect("removed");
        more(&format!("\n{}", line(7, 1)));
        assert_eq!(stops.until_now()["/user.slice/a.scope"].pauses, 3);
        put("proc/7/cgroup", "0::/user.slice/b.scope\n");
        more(&line(7, 4));
        let found = stops.until_now();
        assert_eq!(found["/user.slice/a.scope"].pauses, 3);
        assert_eq!(found["/user.slice/b.scope"], stopped(1, 4, 0));
    }

    #[test]
    fn instances_of_the_dead_are_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let instances = root.path().join("sys/kernel/tracing/instances");
        for name in ["fasttrackctl-7", "fasttrackctl-8", "fasttrackctl-x", "mine"] {
            fs::create_dir_all(instances.join(name)).expect("folders");
        }
        fs::create_dir_all(root.path().join("proc/8")).expect("folders");
        for event in EVENTS {
            fs::create_dir_all(root.path().join("sys/kernel/tracing").join(event))
                .expect("folders");
        }
        let _ = Stops::follow(root.path());
        let left = fs::read_dir(&instances).expect("instances").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.retain(|name| *name != *format!("{PREFIX}{}", std::process::id()));
        left.sort();
        assert_eq!(left, ["fasttrackctl-8", "fasttrackctl-x", "mine"]);
    }

    #[test]
    fn it_says_why_it_cannot() {
        let root = tempfile::tempdir().expect("a folder");
        let why = Stops::follow(root.path()).err().expect("no tracefs");
        assert!(why.contains("root alone may"), "{why}");
        fs::create_dir_all(root.path().join("sys/kernel/tracing/instances")).expect("folders");
        let why = Stops::follow(root.path()).err().expect("no event");
        assert!(why.contains("no tracepoint"), "{why}");
    }
}
