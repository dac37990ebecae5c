// SPDX-License-Identifier: GPL-2.0-only
//! The one seam to `/proc` and `/sys/fs/cgroup`: a test puts another root in front of both.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Longest chain of parents that is followed: a table of processes that changes meanwhile could hold a ring.
const PARENTS_MOST: usize = 64;

/// Ticks in a second, of /proc, on all of Linux.
pub const TICKS: f64 = 100.0;

/// Where the process table and the control groups are.
#[derive(Debug, Clone)]
pub struct Place {
    root: PathBuf,
    cgroups: PathBuf,
}

impl Default for Place {
    fn default() -> Place {
        Place::below("/")
    }
}

impl Place {
    /// Everything below this directory.
    pub fn below(root: impl Into<PathBuf>) -> Place {
        let root = root.into();
        let unified = root.join("sys/fs/cgroup");
        // With the old hierarchies beside it, the one hierarchy is a folder deeper.
        let cgroups = if unified.join("cgroup.procs").exists() {
            unified
        } else {
            unified.join("unified")
        };
        Place { root, cgroups }
    }

    /// The directory of a control group given as in `/proc/PID/cgroup`.
    pub fn directory(&self, cgroup: &str) -> PathBuf {
        self.cgroups.join(cgroup.trim_start_matches('/'))
    }

    /// The control group of a directory, if it is one.
    pub fn cgroup(&self, directory: &Path) -> Option<String> {
        let below = directory.strip_prefix(&self.cgroups).ok()?.to_str()?;
        Some(format!("/{below}"))
    }

    /// Inode of a control group's directory.
    pub fn inode(&self, cgroup: &str) -> Option<u64> {
        fs::symlink_metadata(self.directory(cgroup))
            .ok()
            .filter(fs::Metadata::is_dir)
            .map(|data| data.ino())
    }

    /// Control group of a process.
    pub fn cgroup_of(&self, pid: u32) -> Option<String> {
        cgroup_line(&self.read(pid, "cgroup")?).map(str::to_string)
    }

    /// User of a process.
    pub fn user_of(&self, pid: u32) -> Option<u32> {
        fs::metadata(self.process(pid)).ok().map(|data| data.uid())
    }

    /// Short name of a process's program.
    pub fn program(&self, pid: u32) -> Option<String> {
        Some(self.read(pid, "comm")?.trim_end().to_string())
    }

    /// Parent of a process.
    pub fn parent(&self, pid: u32) -> Option<u32> {
        parent_field(&self.read(pid, "stat")?)
    }

    /// When a process has begun, in ticks since boot.
    pub fn started(&self, pid: u32) -> Option<u64> {
        started_field(&self.read(pid, "stat")?)
    }

    /// Now, in the same ticks.
    pub fn now(&self) -> Option<u64> {
        let text = fs::read_to_string(self.root.join("proc/uptime")).ok()?;
        let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some((seconds * TICKS) as u64)
    }

    /// Whether one of these variables of a process's environment, as it began, has this value.
    pub fn has_variable(&self, pid: u32, names: &[&str], value: &str) -> bool {
        let environment = fs::read(self.process(pid).join("environ")).unwrap_or_default();
        let is = |variable: &[u8]| {
            names
                .iter()
                .any(|name| variable == format!("{name}={value}").as_bytes())
        };
        environment.split(|byte| *byte == 0).any(is)
    }

    /// Processes of a control group, without those of the groups below it.
    pub fn processes(&self, cgroup: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.directory(cgroup).join("cgroup.procs"));
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Whether one process is, or descends from, another.
    pub fn descends(&self, pid: u32, from: u32) -> bool {
        std::iter::successors(Some(pid), |one| self.parent(*one))
            .take(PARENTS_MOST)
            .any(|one| one == from)
    }

    /// Names of the groups directly below one.
    pub fn children(&self, cgroup: &str) -> Vec<String> {
        let entries = fs::read_dir(self.directory(cgroup));
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn process(&self, pid: u32) -> PathBuf {
        self.root.join("proc").join(pid.to_string())
    }

    fn read(&self, pid: u32, file: &str) -> Option<String> {
        // A program's name may be any bytes.
        let bytes = fs::read(self.process(pid).join(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The line of the one hierarchy in `/proc/PID/cgroup`.
pub fn cgroup_line(text: &str) -> Option<&str> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    // The kernel says so of a group that is gone.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    (path.starts_with('/') && !path.split('/').any(|part| part == "..")).then_some(path)
}

/// The parent in `/proc/PID/stat`.
pub fn parent_field(text: &str) -> Option<u32> {
    field(text, 4)
}

/// When a process has begun, in `/proc/PID/stat`.
pub fn started_field(text: &str) -> Option<u64> {
    field(text, 22)
}

/// A field of `/proc/PID/stat`, as proc(5) counts them. The name, the second, may hold spaces and brackets.
fn field<T: std::str::FromStr>(text: &str, number: usize) -> Option<T> {
    let after = &text[text.rfind(')')? + 1..];
    after.split_whitespace().nth(number - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_one_hierarchy_is_taken() {
        let hybrid = "3:blkio:/x\n1:name=systemd:/y\n0::/user.slice/a.scope\n";
        assert_eq!(cgroup_line(hybrid), Some("/user.slice/a.scope"));
        assert_eq!(cgroup_line("0::/a.scope (deleted)\n"), Some("/a.scope"));
        // Outside the namespace's root: nothing that the daemon could find.
        assert_eq!(cgroup_line("0::/../../a\n"), None);
        assert_eq!(cgroup_line("1:cpu:/x\n"), None);
    }

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent_field("7 (a) S (b) R 42 7 7 0"), Some(42));
        assert_eq!(parent_field("7 (a"), None);
        assert_eq!(parent_field("7 (a) R"), None);
        let text = "7 (a) S (b) R 42 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23";
        assert_eq!(started_field(text), Some(4711));
    }
}
