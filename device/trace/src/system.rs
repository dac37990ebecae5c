// SPDX-License-Identifier: GPL-2.0-only
//! What the running system says of tasks, files and devices.

use crate::file_type;
use crate::join::{FileFacts, Image, Lookup, TaskFacts, Volume, PAGE_BYTES};
use crate::leases::Leases;
use rustix::fs::{major, minor, AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Sectors of a block where nobody says otherwise: 4 KiB.
const BLOCK_SECTORS: u64 = 8;

/// Of loop devices, and of their partitions.
const LOOP_MAJOR: u64 = 7;

/// `FILEID_INO32_GEN` of linux/exportfs.h: inode and generation, 32 bits each.
const INODE_HANDLE: i32 = 1;

/// The first inode that may be a file's. f2fs takes a question after one of its own, 1 and 2, for damage and asks for
/// fsck.
const FIRST_INODE: u32 = 3;

/// The parent of the kernel's tasks.
const KTHREADD: u64 = 2;

/// A `struct file_handle` of that type. Generation 0 is any.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    inode: u32,
    generation: u32,
}

/// Asks /proc, /sys and the mounted file systems.
#[derive(Debug, Default)]
pub struct System {
    mounts: HashMap<u64, Mount>,
    leases: Leases,
}

/// Where a file system is mounted. It is open for a look alone: what is open cannot be unmounted.
#[derive(Debug)]
struct Mount {
    path: PathBuf,
    inode: u64,
    /// Not a part of it, as bind mounts are.
    whole: bool,
}

impl Lookup for System {
    fn task(&mut self, pid: u64) -> Option<TaskFacts> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let said = |key: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(key)?.split_whitespace().next())
        };
        let number = |key: &str| said(key).and_then(|text| text.parse::<u64>().ok());
        let name = text.lines().next()?.strip_prefix("Name:")?.trim();
        Some(TaskFacts {
            tgid: number("Tgid:")?,
            uid: number("Uid:")?,
            name: name.to_string(),
            kernel: pid == KTHREADD || number("PPid:") == Some(KTHREADD),
        })
    }

    fn file(&mut self, dev: u64, inode: u64, generation: Option<u64>) -> Option<FileFacts> {
        let found = self.open(dev, inode, generation)?;
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = rustix::fs::statx(&found, "", AtFlags::EMPTY_PATH, flags).ok()?;
        let born = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        let created = stat.stx_btime;
        let created = created.tv_sec * 1_000_000_000 + i64::from(created.tv_nsec);
        let path = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok();
        let path = path.filter(|path| same(path, inode));
        let directory = found.metadata().is_ok_and(|metadata| metadata.is_dir());
        let file_type = path
            .as_deref()
            .map(|path| file_type::of(path, directory, &mut self.leases));
        Some(FileFacts {
            path: path.map(|path| path.to_string_lossy().into_owned()),
            created_ns: born.then_some(created),
            bytes: Some(stat.stx_size),
            file_type,
        })
    }

    fn volume(&mut self, dev: u64) -> Volume {
        let name = kernel_name(dev);
        let folder = PathBuf::from(format!("/sys/dev/block/{name}"));
        let partition = folder.join("partition").exists();
        let number = |path: PathBuf| fs::read_to_string(path).ok();
        let disk = number(folder.join("../dev")).and_then(|text| crate::join::dev_of(text.trim()));
        let start = number(folder.join("start")).and_then(|text| text.trim().parse().ok());
        let block = self
            .mount(dev)
            .and_then(|(_, directory)| rustix::fs::fstatvfs(directory).ok())
            .map_or(BLOCK_SECTORS, |stat| (stat.f_bsize / 512).max(1));
        Volume {
            disk: disk.filter(|_| partition).unwrap_or(dev),
            start: start.filter(|_| partition).unwrap_or(0),
            block_sectors: block,
            stacked: stacked(&folder) || partition && stacked(&folder.join("..")),
        }
    }

    fn image(&mut self, dev: u64) -> Option<Image> {
        if dev >> 20 != LOOP_MAJOR {
            return None;
        }
        let folder = PathBuf::from(format!("/sys/dev/block/{}/loop", kernel_name(dev)));
        let said = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let path = said("backing_file")?;
        let file = stat(&remembered(path.trim_end_matches('\n').as_ref()).ok()?)?;
        let offset: u64 = said("offset")?.trim().parse().ok()?;
        (offset % PAGE_BYTES == 0).then(|| Image {
            dev: dev_of(&file),
            inode: file.stx_ino,
            first: offset / PAGE_BYTES,
        })
    }

    fn absolute(&mut self, dev: u64, path: &str) -> Option<String> {
        let (mount, _) = self.mount(dev).filter(|(mount, _)| mount.whole)?;
        let found = mount.path.join(path.trim_start_matches('/'));
        Some(found.to_string_lossy().into_owned())
    }
}

/// A device has others below it.
fn stacked(folder: &Path) -> bool {
    fs::read_dir(folder.join("slaves")).is_ok_and(|mut below| below.next().is_some())
}

/// The path leads to this inode: one of a file that is unlinked, or of an unconnected entry, does not.
fn same(path: &Path, inode: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.ino() == inode)
}

/// `MAJOR:MINOR` of a number as events have it.
pub fn kernel_name(dev: u64) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}

/// A number as events have it, from one as `stat` has it.
pub fn kernel_dev(dev: u64) -> u64 {
    u64::from(major(dev)) << 20 | u64::from(minor(dev))
}

impl System {
    /// Where a device is mounted, and the directory there by O_PATH.
    fn mount(&mut self, dev: u64) -> Option<(&Mount, File)> {
        let known = self.mounts.get(&dev);
        let directory = known.and_then(|mount| directory(&mount.path, dev, Some(mount.inode)));
        let directory = match directory {
            Some((directory, _)) => directory,
            None => {
                self.mounts.remove(&dev);
                let (mount, directory) = mounted(dev)?;
                self.mounts.insert(dev, mount);
                directory
            }
        };
        self.mounts.get(&dev).map(|mount| (mount, directory))
    }

    /// A file by its inode, without access to its content. Needs CAP_DAC_READ_SEARCH, but for where it is mounted: the
    /// first directory of ext4 has a number that is not asked for.
    fn open(&mut self, dev: u64, inode: u64, generation: Option<u64>) -> Option<File> {
        let (mount, directory) = self.mount(dev)?;
        if mount.inode == inode {
            return Some(directory);
        }
        let mut handle = Handle {
            bytes: 8,
            kind: INODE_HANDLE,
            inode: u32::try_from(inode)
                .ok()
                .filter(|inode| *inode >= FIRST_INODE)?,
            generation: u32::try_from(generation.unwrap_or(0)).ok()?,
        };
        // The call below takes no O_PATH.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(directory, ".", flags, Mode::empty()).ok()?;
        // SAFETY: the handle has the layout of `struct file_handle` with 8 bytes; the result is a new descriptor.
        unsafe {
            let found = libc::syscall(
                libc::SYS_open_by_handle_at,
                directory.as_raw_fd(),
                std::ptr::from_mut(&mut handle),
                libc::O_PATH | libc::O_CLOEXEC,
            );
            (found >= 0).then(|| File::from_raw_fd(found as i32))
        }
    }
}

/// The directory at `path` by O_PATH, and its inode, if it is of that device and inode. Whatever else is mounted there
/// now is asked nothing, for it may be a server that does not answer.
fn directory(path: &Path, dev: u64, inode: Option<u64>) -> Option<(File, u64)> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stat = stat(&found)?;
    let kind = FileType::from_raw_mode(stat.stx_mode.into());
    let same = dev_of(&stat) == dev && inode.is_none_or(|inode| inode == stat.stx_ino);
    (same && kind == FileType::Directory).then(|| (File::from(found), stat.stx_ino))
}

/// A file by O_PATH if the kernel has its path in memory, from where its file system is mounted, as it has of one that is
/// open. Its server is asked nothing. Before Linux 5.12 the path is walked.
pub(crate) fn remembered(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mounts = mounts().into_iter().map(|mount| mount.path);
    let mount = mounts
        .filter(|mount| path.starts_with(mount))
        .max_by_key(|mount| mount.components().count())
        .unwrap_or_else(|| PathBuf::from("/"));
    let mounted = rustix::fs::open(&mount, flags, Mode::empty())?;
    let rest = path.strip_prefix(&mount).unwrap_or(path);
    match rustix::fs::openat2(&mounted, rest, flags, Mode::empty(), ResolveFlags::CACHED) {
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::open(path, flags, Mode::empty()),
        found => found,
    }
}

/// Type, device and inode of an open file, without a question to a server.
fn stat(file: &OwnedFd) -> Option<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(file, "", flags, StatxFlags::TYPE | StatxFlags::INO).ok()
}

/// A file's device, as events have it.
fn dev_of(file: &Statx) -> u64 {
    u64::from(file.stx_dev_major) << 20 | u64::from(file.stx_dev_minor)
}

/// A line of mountinfo.
struct Mounted {
    device: String,
    path: PathBuf,
    whole: bool,
}

/// What is mounted where; nothing where that cannot be read.
fn mounts() -> Vec<Mounted> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        Some(Mounted {
            device: words.get(2)?.to_string(),
            path: PathBuf::from(words.get(4)?.replace("\\040", " ")),
            whole: words.get(3) == Some(&"/"),
        })
    });
    lines.collect()
}

/// Where a file system is mounted as a whole, or a part of it where none is.
fn mounted(dev: u64) -> Option<(Mount, File)> {
    let name = kernel_name(dev);
    let mut part = None;
    for Mounted { path, whole, .. } in mounts().into_iter().filter(|line| line.device == name) {
        // Another one may be mounted over it.
        let Some((directory, inode)) = directory(&path, dev, None) else {
            continue;
        };
        let mount = Mount { path, inode, whole };
        let found = (mount, directory);
        if whole {
            return Some(found);
        }
        part.get_or_insert(found);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::FileType;

    /// Also where another one is now at the path at which it was.
    #[test]
    fn a_file_system_is_found_where_it_is_mounted_and_not_held() {
        let there = fs::metadata("/proc").expect("a mounted file system");
        let (dev, inode) = (kernel_dev(there.dev()), there.ino());
        let mut system = System::default();
        for former in ["/proc", "/", "/proc/nowhere"] {
            let mount = Mount {
                path: PathBuf::from(former),
                inode,
                whole: true,
            };
            system.mounts.insert(dev, mount);
            let facts = system.file(dev, inode, None).expect("its first directory");
            assert_eq!(facts.file_type, Some(FileType::DIRECTORY), "{former}");
            // It opens none by its inode.
            assert_eq!(system.file(dev, inode + 1, None), None);
        }
        let open = fs::read_dir("/proc/self/fd").expect("descriptors");
        for link in open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()) {
            assert_ne!(link, Path::new("/proc"));
        }
    }

    #[test]
    fn what_the_kernel_does_not_have_in_memory_is_not_asked_for() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let file = dir.path().join("file");
        fs::write(&file, "written").expect("written");
        let found = stat(&remembered(&file).expect("open until now")).expect("facts");
        assert_eq!(found.stx_ino, fs::metadata(&file).expect("a file").ino());
        // Nobody knows yet that it is not there.
        let missing = remembered(&dir.path().join("none"));
        assert_eq!(missing.expect_err("no file"), Errno::AGAIN);
    }
}
