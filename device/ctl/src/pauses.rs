// SPDX-License-Identifier: GPL-2.0-only
//! Pauses by the patched kernel, app by app.
//!
//! The kernel counts them for the whole machine; whose each one was is told by its tracepoint alone, which root may
//! follow. They are followed while `top` runs, in an instance of tracefs of its own.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
const EVENT: &str = "events/fasttrack/fasttrack_pause";

/// Room of each processor, KiB: some two thousand pauses between two pictures.
const BUFFER_KIB: &str = "256";

/// Pauses of an app since they are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paused {
    /// Times.
    pub times: u64,
    /// In all, ns.
    pub ns: u64,
}

/// Follows them.
pub struct Pauses {
    root: PathBuf,
    instance: PathBuf,
    /// Until the end: an instance that is read is busy.
    pipe: Option<File>,
    /// The beginning of a line whose end has not come yet.
    begun: String,
    groups: BTreeMap<u32, String>,
    by_group: BTreeMap<String, Paused>,
}

impl Pauses {
    /// Begins to follow them. An error says why it cannot be done.
    pub fn follow(root: &Path) -> Result<Pauses, String> {
        let places = TRACEFS.iter().map(|place| root.join(place));
        let Some(tracefs) = places
            .into_iter()
            .find(|place| place.join("instances").is_dir())
        else {
            return Err("no tracefs that may be read is mounted: root alone may".to_string());
        };
        if !tracefs.join(EVENT).is_dir() {
            return Err("this kernel has no tracepoint fasttrack_pause".to_string());
        }
        let instance = tracefs.join(format!("instances/fasttrackctl-{}", std::process::id()));
        let begun = fs::create_dir(&instance).and_then(|()| begin(&instance));
        match begun {
            Ok(pipe) => Ok(Pauses {
                root: root.to_path_buf(),
                instance,
                pipe: Some(pipe),
                begun: String::new(),
                groups: BTreeMap::new(),
                by_group: BTreeMap::new(),
            }),
            Err(error) => {
                // It may not be there.
                let _ = fs::remove_dir(&instance);
                Err(format!("{}: {error}", instance.display()))
            }
        }
    }

    /// Those until now, by control group.
    pub fn until_now(&mut self) -> &BTreeMap<String, Paused> {
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

    fn take(&mut self, line: &str) {
        let Some((pid, ns)) = pause(line) else { return };
        let group = match self.groups.get(&pid) {
            Some(group) => group.clone(),
            None => {
                let group = group_of(&self.root, pid);
                self.groups.insert(pid, group.clone());
                group
            }
        };
        let paused = self.by_group.entry(group).or_default();
        paused.times += 1;
        paused.ns += ns;
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // Whoever cannot stop what it has begun leaves it to the next start of the machine.
        let _ = fs::write(self.instance.join(EVENT).join("enable"), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

fn begin(instance: &Path) -> io::Result<File> {
    fs::write(instance.join("buffer_size_kb"), BUFFER_KIB)?;
    fs::write(instance.join(EVENT).join("enable"), "1")?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NONBLOCK);
    options.open(instance.join("trace_pipe"))
}

/// Of asm-generic/fcntl.h, which all architectures have that Debian's package is built for.
const O_NONBLOCK: i32 = 0o4000;

/// Who has paused and for how long, ns, where a line tells of a pause.
fn pause(line: &str) -> Option<(u32, u64)> {
    let told = line.split_once(" fasttrack_pause: ")?.1;
    let field = |name: &str| told.split(' ').find_map(|word| word.strip_prefix(name));
    Some((
        field("pid=")?.parse().ok()?,
        field("paused_ns=")?.parse().ok()?,
    ))
}

/// The control group of a process; empty where it has ended.
fn group_of(root: &Path, pid: u32) -> String {
    let text = fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).unwrap_or_default();
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    path.unwrap_or("").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_booked_on_the_groups_of_their_tasks() {
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
        let text = format!(
            "{}{}CPU:0 [LOST 3 EVENTS]\n{}  tar-7 [0",
            line(7, 5),
            line(8, 3),
            line(7, 2)
        );
        put("pipe", &text);
        let mut pauses = Pauses {
            root: root.path().to_path_buf(),
            instance: root.path().join("instance"),
            pipe: Some(File::open(&pipe).expect("a file")),
            begun: String::new(),
            groups: BTreeMap::new(),
            by_group: BTreeMap::new(),
        };
        let found = pauses.until_now().clone();
        assert_eq!(found["/user.slice/a.scope"], Paused { times: 2, ns: 7 });
        assert_eq!(found[""], Paused { times: 1, ns: 3 });
        assert_eq!(pauses.begun, "  tar-7 [0");
    }

    #[test]
    fn it_says_why_it_cannot() {
        let root = tempfile::tempdir().expect("a folder");
        let why = Pauses::follow(root.path()).err().expect("no tracefs");
        assert!(why.contains("root alone may"), "{why}");
        fs::create_dir_all(root.path().join("sys/kernel/tracing/instances")).expect("folders");
        let why = Pauses::follow(root.path()).err().expect("no event");
        assert!(why.contains("no tracepoint"), "{why}");
    }
}
