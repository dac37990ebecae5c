// SPDX-License-Identifier: GPL-2.0-only
//! Control groups below a slice, as they come, go and change an attribute: by inotify on the slices, whose events carry
//! the names of the groups in them.

use crate::fault::Fault;
use crate::place::Place;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Room for one read of events, bytes: about 60 of them.
const BUFFER: usize = 4096;

/// What has happened to a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Made(String),
    /// It is gone.
    Gone(String),
    /// One of its attributes was set.
    Attribute(String),
    /// Events were lost: everything has to be looked at again.
    Lost,
}

/// A slice and the slices in it.
pub struct Tree {
    place: Place,
    inotify: OwnedFd,
    slices: BTreeMap<i32, String>,
    top: String,
    buffer: Box<[MaybeUninit<u8>; BUFFER]>,
}

impl Tree {
    /// Watches a slice; tells what is in it already.
    pub fn new(place: &Place, top: &str) -> Result<(Tree, Vec<String>), Fault> {
        let mut tree = Tree {
            place: place.clone(),
            inotify: inotify::init(CreateFlags::CLOEXEC)?,
            slices: BTreeMap::new(),
            top: top.to_string(),
            buffer: Box::new([MaybeUninit::uninit(); BUFFER]),
        };
        tree.watch(top)
            .map_err(|_| Fault(format!("there is no {top}: no systemd user session")))?;
        let there = tree.below(top);
        Ok((tree, there))
    }

    /// All groups that are there now; slices that are new are watched from now on.
    pub fn all(&mut self) -> Vec<String> {
        let top = self.top.clone();
        self.below(&top)
    }

    /// Waits for changes; for so long at most, where a bound is given.
    pub fn wait(&mut self, most: Option<Duration>) -> Result<Vec<Change>, Fault> {
        if let Some(most) = most {
            let most = Timespec {
                tv_sec: most.as_secs() as i64,
                tv_nsec: most.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.inotify, PollFlags::IN)];
            if poll(&mut fds, Some(&most))? == 0 {
                return Ok(Vec::new());
            }
        }
        let mut seen = Vec::new();
        let mut reader = Reader::new(&self.inotify, &mut self.buffer[..]);
        loop {
            let event = reader.next()?;
            let name = event.file_name().and_then(|name| name.to_str().ok());
            seen.push((event.wd(), event.events(), name.map(str::to_string)));
            if reader.is_buffer_empty() {
                break;
            }
        }
        seen.into_iter()
            .try_fold(Vec::new(), |mut all, (slice, flags, name)| {
                all.extend(self.change(slice, flags, name)?);
                Ok(all)
            })
    }

    fn change(
        &mut self,
        slice: i32,
        flags: ReadFlags,
        name: Option<String>,
    ) -> Result<Vec<Change>, Fault> {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Ok(vec![Change::Lost]);
        }
        if flags.contains(ReadFlags::IGNORED) {
            let gone = self.slices.remove(&slice);
            return match gone {
                Some(path) if path == self.top => {
                    Err(Fault(format!("{path} is gone: the user manager has ended")))
                }
                _ => Ok(Vec::new()),
            };
        }
        let (Some(path), Some(name)) = (self.slices.get(&slice), name) else {
            return Ok(Vec::new());
        };
        if !flags.contains(ReadFlags::ISDIR) {
            return Ok(Vec::new());
        }
        let path = format!("{path}/{name}");
        Ok(match flags {
            _ if flags.contains(ReadFlags::CREATE) => self.made(path),
            _ if flags.contains(ReadFlags::DELETE) => vec![Change::Gone(path)],
            _ if flags.contains(ReadFlags::ATTRIB) => vec![Change::Attribute(path)],
            _ => Vec::new(),
        })
    }

    fn made(&mut self, path: String) -> Vec<Change> {
        let mut all = vec![path];
        if all[0].ends_with(".slice") && self.watch(&all[0]).is_ok() {
            let below = self.below(&all[0].clone());
            all.extend(below);
        }
        all.into_iter().map(Change::Made).collect()
    }

    fn watch(&mut self, slice: &str) -> Result<(), Fault> {
        let flags =
            WatchFlags::ATTRIB | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        let number = inotify::add_watch(&self.inotify, self.place.directory(slice), flags)?;
        self.slices.insert(number, slice.to_string());
        Ok(())
    }

    fn below(&mut self, slice: &str) -> Vec<String> {
        let mut all = Vec::new();
        for name in self.place.children(slice) {
            let path = format!("{slice}/{name}");
            if name.ends_with(".slice") && self.watch(&path).is_ok() {
                all.extend(self.below(&path));
            }
            all.push(path);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakePlace;
    use fasttrack_detector::units;

    #[test]
    fn groups_are_seen_to_come_and_go_also_in_new_slices() {
        let fake = FakePlace::new();
        let old = fake.app("app-old-1.scope", 0).cgroup;
        let top = units::app_slice_of_user(fake.user());
        let (mut tree, there) = Tree::new(&fake.place(), &top).expect("a watch");
        assert_eq!(there, std::slice::from_ref(&old));
        let new = fake.app("app-x.slice/app-new-2.scope", 0).cgroup;
        std::fs::remove_dir(fake.place().directory(&old)).expect("a group");
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.extend(tree.wait(None).expect("events"));
        }
        assert!(seen.contains(&Change::Made(new)));
        assert!(seen.contains(&Change::Gone(old)));
        assert_eq!(tree.wait(Some(Duration::from_millis(1))), Ok(Vec::new()));
    }

    #[test]
    fn the_end_of_the_slice_is_a_fault() {
        let fake = FakePlace::new();
        let top = units::app_slice_of_user(fake.user());
        let (mut tree, _) = Tree::new(&fake.place(), &top).expect("a watch");
        std::fs::remove_dir(fake.place().directory(&top)).expect("the slice");
        assert!(tree.wait(None).is_err());
        assert!(Tree::new(&fake.place(), &top).is_err());
    }
}
