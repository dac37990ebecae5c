// SPDX-License-Identifier: GPL-2.0-only
//! What tests share: a process table and control groups in a directory.

use crate::place::Place;
use crate::resolve::Resolver;
use fasttrack_detector::report::AppRef;
use fasttrack_detector::units;
pub use fasttrack_fuzz::mutate;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use tempfile::TempDir;

#[path = "testing_wayland.rs"]
pub mod wayland;

#[allow(missing_docs)] // the daemon's
#[path = "../../daemon/tests/common/bus.rs"]
pub mod bus;

/// A process table and control groups that a test owns.
pub struct FakePlace {
    root: TempDir,
    user: u32,
}

impl FakePlace {
    /// Empty, but for the slice of apps.
    pub fn new() -> FakePlace {
        let root = tempfile::tempdir().expect("a directory");
        let user = fs::metadata(root.path()).expect("the directory").uid();
        let slice = units::app_slice_of_user(user);
        let groups = root.path().join("sys/fs/cgroup");
        fs::create_dir_all(groups.join(&slice[1..])).expect("a slice");
        fs::write(groups.join("cgroup.procs"), "").expect("a file");
        FakePlace { root, user }
    }

    /// Owner of all its processes.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The seam to it.
    pub fn place(&self) -> Place {
        Place::below(self.root.path())
    }

    /// A resolver over it.
    pub fn resolver(&self) -> Resolver {
        Resolver::new(self.place(), self.user)
    }

    /// An app in the slice of apps; with a process where the PID is not zero.
    pub fn app(&self, unit: &str, pid: u32) -> AppRef {
        self.group(
            &format!("{}/{unit}", units::app_slice_of_user(self.user)),
            pid,
        )
    }

    /// A control group anywhere.
    pub fn group(&self, cgroup: &str, pid: u32) -> AppRef {
        let directory = self.place().directory(cgroup);
        fs::create_dir_all(&directory).expect("a group");
        if pid > 0 {
            self.process(pid, cgroup, 1);
        }
        let leaf = units::leaf(cgroup);
        AppRef {
            cgroup: cgroup.to_string(),
            inode: fs::metadata(&directory).expect("the group").ino(),
            id: units::id_of(leaf).unwrap_or_default(),
            pid,
        }
    }

    /// A process in a group.
    pub fn process(&self, pid: u32, cgroup: &str, parent: u32) {
        let directory = self.root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&directory).expect("a process");
        fs::write(directory.join("cgroup"), format!("0::{cgroup}\n")).expect("a file");
        fs::write(
            directory.join("stat"),
            format!("{pid} (a b) S {parent} 1 1"),
        )
        .expect("a file");
        self.program(pid, "app");
        let group = self.place().directory(cgroup);
        fs::create_dir_all(&group).expect("a group");
        let list = group.join("cgroup.procs");
        let before = fs::read_to_string(&list).unwrap_or_default();
        fs::write(list, format!("{before}{pid}\n")).expect("a file");
    }

    /// A process in a group that has begun at this time, in ticks.
    pub fn process_of(&self, pid: u32, cgroup: &str, parent: u32, started: u64) {
        self.process(pid, cgroup, parent);
        let before = "1 ".repeat(17);
        let text = format!("{pid} (a b) S {parent} {before}{started}");
        fs::write(self.file(pid, "stat"), text).expect("a file");
    }

    /// A process's environment.
    pub fn environment(&self, pid: u32, text: &str) {
        fs::write(self.file(pid, "environ"), text).expect("a file");
    }

    /// Counts, from now on, how often a file of a process is opened to be read.
    pub fn opened(&self, pid: u32, name: &str) -> impl FnMut() -> usize {
        let inotify = inotify::init(CreateFlags::NONBLOCK).expect("inotify");
        // Two that are equal and follow each other would be one.
        let wanted = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&inotify, self.file(pid, name), wanted).expect("a watch");
        move || {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&inotify, &mut buffer);
            std::iter::from_fn(|| reader.next().ok().map(|event| event.events()))
                .filter(|events| events.contains(ReadFlags::OPEN))
                .count()
        }
    }

    /// What /proc/uptime has.
    pub fn uptime(&self, text: &str) {
        let proc = self.root.path().join("proc");
        fs::create_dir_all(&proc).expect("a folder");
        fs::write(proc.join("uptime"), text).expect("a file");
    }

    fn file(&self, pid: u32, name: &str) -> std::path::PathBuf {
        self.root.path().join(format!("proc/{pid}/{name}"))
    }

    /// Names a process's program.
    pub fn program(&self, pid: u32, name: &str) {
        fs::write(self.file(pid, "comm"), format!("{name}\n")).expect("a file");
    }
}

/// Remembers for which windows it was asked, and does nothing.
#[derive(Default)]
pub struct Asked(pub std::sync::Mutex<Vec<crate::window::Window>>);

impl crate::scope::Scoper for Asked {
    fn split(
        &self,
        _: &Resolver,
        window: &crate::window::Window,
    ) -> Result<(), crate::fault::Fault> {
        self.0.lock().expect("no panic").push(window.clone());
        Ok(())
    }
}
