// SPDX-License-Identifier: GPL-2.0-only
//! A control group that is what it was said to be: opened once, below the hierarchy, its inode checked.

use crate::system::System;
use fasttrack_detector::group::is_wide;
use fasttrack_detector::report::AppRef;
use rustix::fs::{Mode, OFlags, ResolveFlags, XattrFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

/// Longest value of an attribute that is ours, bytes.
const ATTRIBUTE_BYTES: usize = 512;

/// Why a control group is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The path does not name a group below the hierarchy's root in the one way that it can be named.
    Path,
    /// It is not below the slice of the user who names it.
    NotTheirs,
    /// It holds many apps, not one.
    TooWide,
    /// It is below more groups than any app's is.
    TooDeep,
    /// It is not there.
    Missing,
    /// What has its path is a link or a file, or is below one.
    NoGroup,
    /// It cannot be opened, and why: nothing that the user has done.
    NotOpened(String),
    /// Another group has its path now.
    OtherInode,
}

impl Refusal {
    /// Whether the group that was meant has ended. Who cannot open one does not know.
    pub fn is_gone(&self) -> bool {
        matches!(
            self,
            Refusal::Missing | Refusal::NoGroup | Refusal::OtherInode
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Refusal::NotOpened(why) => return write!(out, "it cannot be opened: {why}"),
            Refusal::Path => {
                "it is not an absolute path without white space, empty parts, '.' and '..'"
            }
            Refusal::NotTheirs => "it is not below the slice of the user who names it",
            Refusal::TooWide => "it is a slice or a user's manager, which holds many apps",
            Refusal::TooDeep => "it is below more groups than are looked at",
            Refusal::Missing => "it is not there",
            Refusal::NoGroup => "it is no control group",
            Refusal::OtherInode => "another control group has this path now",
        })
    }
}

/// Groups above and with one, at most: nothing deeper is set, so nothing deeper has to be set back.
pub const DEPTH_MOST: usize = 32;

/// Whether a path is in the one form that the kernel takes and shows.
pub fn is_proper(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    let proper = |part: &str| !matches!(part, "" | "." | "..");
    rest.split('/').all(proper)
        && !path
            .chars()
            .any(|character| character.is_whitespace() || character.is_control())
}

/// The slice of a user.
pub fn slice_of(user: u32) -> String {
    format!("/user.slice/user-{user}.slice/")
}

/// The user in whose slice a group is.
pub fn user_of(path: &str) -> Option<u32> {
    let rest = path.strip_prefix("/user.slice/user-")?;
    rest.split_once(".slice/")?.0.parse().ok()
}

/// Whether a user may say that this group is an app of theirs; its inode is checked when it is opened.
pub fn may_name(user: u32, path: &str) -> Result<(), Refusal> {
    if !is_proper(path) {
        return Err(Refusal::Path);
    }
    if !path.starts_with(&slice_of(user)) {
        return Err(Refusal::NotTheirs);
    }
    if is_wide(path) {
        return Err(Refusal::TooWide);
    }
    Ok(())
}

/// An open control group.
#[derive(Debug)]
pub struct Cgroup {
    folder: OwnedFd,
    inode: u64,
    path: String,
}

impl Cgroup {
    /// Opens the group that is meant.
    pub fn open(system: &System, app: &AppRef) -> Result<Cgroup, Refusal> {
        let group = Cgroup::open_path(system, &app.cgroup)?;
        if group.inode == app.inode {
            Ok(group)
        } else {
            Err(Refusal::OtherInode)
        }
    }

    /// Whether the group that is meant has ended.
    pub fn is_gone(system: &System, app: &AppRef) -> bool {
        Cgroup::open(system, app).is_err_and(|why| why.is_gone())
    }

    /// Opens the group that has a path now.
    pub fn open_path(system: &System, path: &str) -> Result<Cgroup, Refusal> {
        if !is_proper(path) {
            return Err(Refusal::Path);
        }
        if path.matches('/').count() > DEPTH_MOST {
            return Err(Refusal::TooDeep);
        }
        Cgroup::open_below(system.cgroups(), path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => Refusal::Missing,
            // Groups are no links and no files: who names one means no group.
            Some(libc::ELOOP | libc::ENOTDIR) => Refusal::NoGroup,
            _ => Refusal::NotOpened(error.to_string()),
        })
    }

    /// Opens a group below a mount of the hierarchy. No symbolic link and no `..` leads elsewhere.
    pub fn open_below(root: &std::path::Path, path: &str) -> io::Result<Cgroup> {
        let root = File::open(root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inside =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let below = path.trim_start_matches('/');
        let below = if below.is_empty() { "." } else { below };
        let folder = rustix::fs::openat2(&root, below, flags, Mode::empty(), inside)?;
        let inode = File::from(folder.try_clone()?).metadata()?.ino();
        Ok(Cgroup {
            folder,
            inode,
            path: path.to_string(),
        })
    }

    /// Its inode.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Its path below the hierarchy's root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// It, as an app without a name.
    pub fn app(&self) -> AppRef {
        AppRef {
            cgroup: self.path.clone(),
            inode: self.inode,
            id: String::new(),
            pid: 0,
        }
    }

    /// One of its files.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let file = rustix::fs::openat(
            &self.folder,
            name,
            flags | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(File::from(file))
    }

    /// What one of its files says, without white space at its ends.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(name, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text.trim().to_string())
    }

    /// Writes one of its files in one piece.
    pub fn write(&self, name: &str, value: &str) -> io::Result<()> {
        let mut file = self.file(name, OFlags::WRONLY | OFlags::TRUNC)?;
        file.write_all(value.as_bytes())
    }

    /// Whether it has this file.
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::accessat(
            &self.folder,
            name,
            rustix::fs::Access::EXISTS,
            rustix::fs::AtFlags::empty(),
        )
        .is_ok()
    }

    /// The processes or threads that a file of numbers names.
    pub fn numbers(&self, name: &str) -> Vec<u32> {
        let text = self.read(name).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// An attribute of the group, if it is there.
    pub fn attribute(&self, name: &str) -> io::Result<Option<String>> {
        let mut value = [0_u8; ATTRIBUTE_BYTES];
        match rustix::fs::fgetxattr(&self.folder, name, &mut value) {
            Ok(length) => Ok(Some(String::from_utf8_lossy(&value[..length]).into_owned())),
            Err(rustix::io::Errno::NODATA) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets an attribute of the group.
    pub fn set_attribute(&self, name: &str, value: &str) -> io::Result<()> {
        Ok(rustix::fs::fsetxattr(
            &self.folder,
            name,
            value.as_bytes(),
            XattrFlags::empty(),
        )?)
    }

    /// Takes an attribute away; that it is not there is no error.
    pub fn remove_attribute(&self, name: &str) -> io::Result<()> {
        match rustix::fs::fremovexattr(&self.folder, name) {
            Ok(()) | Err(rustix::io::Errno::NODATA) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The group of a process, by the kernel's word.
pub fn of_process(system: &System, pid: u32) -> Option<String> {
    let text = system.read(&format!("proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_open_a_group_does_not_say_that_it_is_not_there() {
        let root = tempfile::tempdir().expect("a folder");
        let system = System::new(root.path());
        std::fs::create_dir_all(system.cgroups()).expect("folders");
        let refusal = |path: &str| Cgroup::open_path(&system, path).err();
        assert_eq!(refusal("/none"), Some(Refusal::Missing));
        let long = format!("/{}", "x".repeat(300));
        assert!(matches!(refusal(&long), Some(Refusal::NotOpened(_))));
    }

    #[test]
    fn a_user_names_apps_of_their_own_alone() {
        let ours = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope";
        assert_eq!(may_name(1000, ours), Ok(()));
        assert_eq!(
            may_name(1000, "/user.slice/user-1000.slice/session-3.scope"),
            Ok(())
        );
        let terminal = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.x.slice";
        assert_eq!(may_name(1000, terminal), Ok(()));
        for (path, why) in [
            (
                "/user.slice/user-1001.slice/session-3.scope",
                Refusal::NotTheirs,
            ),
            ("/user.slice/user-10000.slice/a.scope", Refusal::NotTheirs),
            ("/system.slice/sshd.service", Refusal::NotTheirs),
            ("/user.slice/user-1000.slice", Refusal::NotTheirs),
            ("/", Refusal::Path),
            (
                "/user.slice/user-1000.slice/../user-1001.slice/a.scope",
                Refusal::Path,
            ),
            ("/user.slice/user-1000.slice//a.scope", Refusal::Path),
            ("/user.slice/user-1000.slice/a.scope/", Refusal::Path),
            ("user.slice/user-1000.slice/a.scope", Refusal::Path),
            ("/user.slice/user-1000.slice/a\nb.scope", Refusal::Path),
            ("/user.slice/user-1000.slice/a b.scope", Refusal::Path),
            (
                "/user.slice/user-1000.slice/user@1000.service",
                Refusal::TooWide,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice",
                Refusal::TooWide,
            ),
        ] {
            assert_eq!(may_name(1000, path), Err(why), "{path}");
        }
    }

    #[test]
    fn the_user_is_in_the_path() {
        assert_eq!(
            user_of("/user.slice/user-1000.slice/session-3.scope"),
            Some(1000)
        );
        assert_eq!(user_of("/user.slice/user-x.slice/session-3.scope"), None);
        assert_eq!(user_of("/system.slice/a.service"), None);
    }

    #[test]
    fn a_forged_inode_and_a_symbolic_link_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("sys/fs/cgroup");
        std::fs::create_dir_all(root.join("user.slice/a.scope")).expect("a group");
        std::os::unix::fs::symlink("/etc", root.join("user.slice/link")).expect("a link");
        let system = System::new(folder.path());
        let good = Cgroup::open_path(&system, "/user.slice/a.scope")
            .expect("there")
            .app();
        assert!(Cgroup::open(&system, &good).is_ok());
        let forged = AppRef {
            inode: good.inode + 1,
            ..good
        };
        assert_eq!(
            Cgroup::open(&system, &forged).err(),
            Some(Refusal::OtherInode)
        );
        let linked = Cgroup::open_path(&system, "/user.slice/link");
        assert_eq!(linked.err(), Some(Refusal::NoGroup));
    }
}
