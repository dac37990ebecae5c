// SPDX-License-Identifier: GPL-2.0-only
//! The one seam to the files of the system.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the control groups are mounted if nothing says otherwise.
const CGROUPS: &str = "sys/fs/cgroup";

/// The system's files, all below one directory.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
    cgroups: PathBuf,
}

impl System {
    /// The system whose files are below this directory; `/` for the real one.
    pub fn new(root: &Path) -> System {
        let mounts = fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
        let cgroups = cgroup_mount(&mounts).unwrap_or_else(|| CGROUPS.to_string());
        System {
            root: root.to_path_buf(),
            cgroups: root.join(cgroups),
        }
    }

    /// A file, by its path from the root without the leading slash.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The root of the control groups, version 2.
    pub fn cgroups(&self) -> &Path {
        &self.cgroups
    }

    /// What a small file says, without white space at its ends.
    pub fn read(&self, path: &str) -> io::Result<String> {
        read(&self.path(path))
    }

    /// Writes a value in one piece.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        write(&self.path(path), value)
    }
}

/// What a small file says, without white space at its ends.
pub fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_string())
}

/// Writes a value in one piece to a file that is there: half a value would be another one.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?;
    if file.write(value.as_bytes())? == value.len() {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::WriteZero,
            "only a part was written",
        ))
    }
}

/// Time since boot with suspends, which no change of the date moves.
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Where `/proc/self/mounts` has the control groups of version 2, without the leading slash.
fn cgroup_mount(mounts: &str) -> Option<String> {
    let mut lines = mounts.lines().map(|line| line.split(' '));
    let mount = lines.find_map(|mut words| {
        let place = words.nth(1)?;
        (words.next()? == "cgroup2").then_some(place)
    })?;
    Some(mount.trim_start_matches('/').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_version_is_found_beside_the_first() {
        let mounts = "proc /proc proc rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(
            cgroup_mount(mounts).as_deref(),
            Some("sys/fs/cgroup/unified")
        );
        assert_eq!(cgroup_mount("tmpfs /tmp tmpfs rw 0 0\n"), None);
    }

    #[test]
    fn nothing_is_created_by_a_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("knob");
        assert!(write(&path, "1").is_err());
        fs::write(&path, "old value").expect("a file");
        write(&path, "1").expect("written");
        assert_eq!(read(&path).expect("read"), "1");
    }
}
