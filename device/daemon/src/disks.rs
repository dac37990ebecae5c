// SPDX-License-Identifier: GPL-2.0-only
//! The disks under a directory, and their I/O schedulers.
//!
//! A mount has the number of a block device or, where its file system has numbers of its own (btrfs, overlay), a source.
//! What is no disk itself (a partition, dm, md, a loop device) leads to what is below it, until nothing is.
//!
//! Mounts are those of the first process: the unit hides `/home` and `/dev` from this one. No file of a user is opened.

use crate::system::System;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What is below what, at most this often: LVM on LUKS on md on a loop device in an overlay is six.
const DEPTH_MOST: usize = 12;

/// File systems of servers. One that is gone is waited for by whoever looks at a path there; none is on a disk of ours.
const SERVED: [&str; 9] = [
    "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "autofs", "lustre",
];

/// Where apps are installed, besides what lies in the homes.
pub const SHARED: [&str; 2] = ["/usr", "/var"];

/// Where homes are if nothing says where a user's is.
pub const HOMES: &str = "/home";

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disk {
    /// As it is called in `/sys/block`.
    pub name: String,
    /// Its device number, `major:minor`.
    pub number: String,
    /// Its I/O scheduler.
    pub elevator: String,
}

/// `sda: bfq, nvme0n1: none`.
pub fn list<'a>(disks: impl IntoIterator<Item = &'a Disk>) -> String {
    let each = disks
        .into_iter()
        .map(|disk| format!("{}: {}", disk.name, disk.elevator));
    let all: Vec<String> = each.collect();
    match all.is_empty() {
        true => "no disk".to_string(),
        false => all.join(", "),
    }
}

/// A line of `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    number: String,
    place: PathBuf,
    kind: String,
    source: String,
    options: String,
}

impl Mount {
    fn is_served(&self) -> bool {
        SERVED.contains(&self.kind.as_str()) || self.kind.starts_with("fuse.")
    }
}

/// What a search has found, and which mounts it has been to: layers of an overlay may lead back to it.
#[derive(Default)]
struct Search {
    disks: BTreeSet<Disk>,
    mounts: BTreeSet<usize>,
}

/// What is mounted where.
pub struct Mounts {
    system: System,
    all: Vec<Mount>,
}

impl Mounts {
    /// As it is now.
    pub fn new(system: &System) -> Mounts {
        let text = system.read("proc/1/mountinfo");
        let text = text
            .or_else(|_| system.read("proc/self/mountinfo"))
            .unwrap_or_default();
        Mounts {
            system: system.clone(),
            all: text.lines().filter_map(mount).collect(),
        }
    }

    /// The disks under a user's home and where apps are installed; without a user, under all homes.
    pub fn of_apps(&self, user: Option<u32>) -> BTreeSet<Disk> {
        let home = user.and_then(|user| home(&self.system, user));
        let home = home.unwrap_or_else(|| HOMES.to_string());
        let places = SHARED.into_iter().chain([home.as_str()]);
        places.flat_map(|place| self.under(place)).collect()
    }

    /// The disks under a directory.
    pub fn under(&self, path: &str) -> BTreeSet<Disk> {
        let mut found = Search::default();
        let at = self.at(Path::new(path));
        if !at.is_some_and(|(_, mount)| mount.is_served()) {
            self.add_under(&resolved(&self.system, path), DEPTH_MOST, &mut found);
        }
        found.disks
    }

    /// The mount of a path, and which one it is. Of two at the same place the later one hides the earlier.
    fn at(&self, path: &Path) -> Option<(usize, &Mount)> {
        self.all
            .iter()
            .enumerate()
            .filter(|(_, mount)| path.starts_with(&mount.place))
            .max_by_key(|(index, mount)| (mount.place.components().count(), *index))
    }

    fn add_under(&self, path: &Path, depth: usize, found: &mut Search) {
        if depth == 0 {
            return;
        }
        let Some((index, mount)) = self.at(path) else {
            return;
        };
        if !found.mounts.insert(index) {
            return;
        }
        if mount.kind == "overlay" {
            for layer in layers(&mount.options) {
                self.add_under(Path::new(layer), depth - 1, found);
            }
        } else if let Some(device) = self.device(&mount.number) {
            self.add_below(&device, depth - 1, found);
        } else {
            // bcachefs names all of its devices, with colons between them.
            for source in mount.source.split(':') {
                for device in self.of_source(source) {
                    self.add_below(&device, depth - 1, found);
                }
            }
        }
    }

    /// The directory of a device number.
    fn device(&self, number: &str) -> Option<PathBuf> {
        fs::canonicalize(self.system.path(&format!("sys/dev/block/{number}"))).ok()
    }

    /// The directories of the devices of a file system, of which a mount names one: btrfs has several.
    fn of_source(&self, source: &str) -> Vec<PathBuf> {
        let Some(name) = source.strip_prefix("/dev/") else {
            return Vec::new();
        };
        let name = match name.strip_prefix("mapper/") {
            Some(mapped) => self.mapped(mapped),
            None => name.rsplit('/').next().map(str::to_string),
        };
        let Some(name) = name else { return Vec::new() };
        let all = entries(&self.system.path("sys/fs/btrfs"));
        let of_btrfs = all
            .iter()
            .map(|one| entries(&one.join("devices")))
            .find(|devices| devices.iter().any(|device| device.ends_with(&name)));
        let one = || vec![self.system.path(&format!("sys/class/block/{name}"))];
        let paths = of_btrfs.unwrap_or_else(one).into_iter();
        paths
            .filter_map(|path| fs::canonicalize(path).ok())
            .collect()
    }

    /// The device of this name in `/dev/mapper`.
    fn mapped(&self, name: &str) -> Option<String> {
        let all = entries(&self.system.path("sys/class/block"));
        let device = all.into_iter().find(|device| {
            crate::system::read(&device.join("dm/name")).is_ok_and(|is| is == name)
        })?;
        Some(device.file_name()?.to_str()?.to_string())
    }

    fn add_below(&self, device: &Path, depth: usize, found: &mut Search) {
        if depth == 0 {
            return;
        }
        let whole = match device.join("partition").exists() {
            true => device.parent().unwrap_or(device),
            false => device,
        };
        let below = entries(&whole.join("slaves"));
        if let Ok(file) = crate::system::read(&whole.join("loop/backing_file")) {
            self.add_under(Path::new(&file), depth - 1, found);
        } else if below.is_empty() {
            found.disks.extend(disk(whole));
        }
        for device in below {
            if let Ok(device) = fs::canonicalize(device) {
                self.add_below(&device, depth - 1, found);
            }
        }
    }
}

/// All disks; what is only memory, or on another disk, is none.
pub fn all(system: &System) -> BTreeSet<Disk> {
    const NOT: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
    let each = entries(&system.path("sys/block")).into_iter();
    let each = each.filter(|path| path.join("queue/scheduler").exists());
    each.filter_map(|path| disk(&path))
        .filter(|disk| !NOT.iter().any(|kind| disk.name.starts_with(kind)))
        .collect()
}

fn disk(folder: &Path) -> Option<Disk> {
    let schedulers = crate::system::read(&folder.join("queue/scheduler"));
    // Who has no such file has no scheduler.
    let schedulers = schedulers.unwrap_or_else(|_| "none".to_string());
    let elevator = schedulers.split(['[', ']']).nth(1).unwrap_or(&schedulers);
    Some(Disk {
        name: folder.file_name()?.to_str()?.to_string(),
        number: crate::system::read(&folder.join("dev")).unwrap_or_default(),
        elevator: elevator.to_string(),
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = all.map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// A path without symbolic links, as far as it can be seen from here.
fn resolved(system: &System, path: &str) -> PathBuf {
    let Ok(root) = fs::canonicalize(system.path("")) else {
        return PathBuf::from(path);
    };
    for there in Path::new(path).ancestors() {
        let below = there.to_str().unwrap_or("/").trim_start_matches('/');
        let Ok(real) = fs::canonicalize(system.path(below)) else {
            continue;
        };
        let (Ok(real), Ok(rest)) = (
            real.strip_prefix(&root),
            Path::new(path).strip_prefix(there),
        ) else {
            break;
        };
        return Path::new("/").join(real).join(rest);
    }
    PathBuf::from(path)
}

/// The home of a user whom `/etc/passwd` knows.
fn home(system: &System, user: u32) -> Option<String> {
    let text = system.read("etc/passwd").ok()?;
    let mut users = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = users.find(|fields| fields.get(2) == Some(&user.to_string().as_str()))?;
    let home = fields.get(5).filter(|home| home.starts_with('/'))?;
    Some((*home).to_string())
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.split(' ');
    Some(Mount {
        number: before.get(2)?.to_string(),
        place: PathBuf::from(plain(before.get(4)?)),
        kind: after.next()?.to_string(),
        source: plain(after.next()?),
        options: plain(after.next().unwrap_or("")),
    })
}

/// A field of `mountinfo`, which writes spaces, tabs, line ends and backslashes as octal numbers.
fn plain(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or("").to_string();
    for part in parts {
        let number = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match number {
            Some(byte) => {
                text.push(char::from(byte));
                text.push_str(&part[3..]);
            }
            None => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text
}

/// The directories that an overlay lays over each other.
fn layers(options: &str) -> impl Iterator<Item = &str> {
    let values = options.split(',').filter_map(|option| {
        let (key, value) = option.split_once('=')?;
        key.starts_with("lowerdir")
            .then_some(value)
            .or_else(|| (key == "upperdir").then_some(value))
    });
    values
        .flat_map(|value| value.split(':'))
        .filter(|path| !path.is_empty())
}

#[cfg(test)]
#[path = "disks_tests.rs"]
mod tests;
