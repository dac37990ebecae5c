// SPDX-License-Identifier: GPL-2.0-only
//! Who has sent a message: the bus's word for the user and the process, and the kernel's for where it runs.
//!
//! A unique name of the bus is never used twice, so what was found of one stays true. The process is held by a pidfd:
//! while it lives nobody else can have its number.

use crate::cgroup;
use crate::rate::Bucket;
use crate::system::System;
use fasttrack_config::Reports;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Senders that are remembered at most. The bus gives a user 256 connections.
const SENDERS_MOST: usize = 512;

/// A process that has sent something.
#[derive(Debug)]
pub struct Sender {
    /// UID of the connection, by the bus.
    pub user: u32,
    /// The process that has connected.
    pub pid: u32,
    /// The control group that it was in when it was first seen.
    pub cgroup: String,
    pidfd: OwnedFd,
}

/// Why a sender is not believed.
pub type Refusal = (&'static str, String);

impl Sender {
    /// Looks at the process. `pidfd` is the bus's own, where it has one.
    pub fn find(
        system: &System,
        user: u32,
        pid: u32,
        pidfd: Option<OwnedFd>,
    ) -> Result<Sender, Refusal> {
        let gone = || {
            (
                "senders that had ended",
                format!("the sender, process {pid}, has ended"),
            )
        };
        let pidfd = match pidfd {
            Some(pidfd) => pidfd,
            None => {
                let number = i32::try_from(pid)
                    .ok()
                    .and_then(Pid::from_raw)
                    .ok_or_else(gone)?;
                rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(|_| gone())?
            }
        };
        let cgroup = cgroup::of_process(system, pid).ok_or_else(gone)?;
        let owner = real_user(system, pid);
        let sender = Sender {
            user,
            pid,
            cgroup,
            pidfd,
        };
        // What was read is true of this process only if it lives still.
        if !sender.lives() {
            return Err(gone());
        }
        if owner != Some(user) {
            let what = format!("process {pid} is not of the user {user} whose connection it is");
            return Err(("senders that are another user's", what));
        }
        Ok(sender)
    }

    /// Whether its process lives.
    pub fn lives(&self) -> bool {
        let mut wait = [PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut wait, Some(&now)) == Ok(0)
    }
}

fn real_user(system: &System, pid: u32) -> Option<u32> {
    let text = system.read(&format!("proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Senders by their names on the bus, and what users may still say.
#[derive(Debug)]
pub struct Senders {
    known: HashMap<String, Arc<Sender>>,
    refused: HashMap<String, Refusal>,
    buckets: HashMap<u32, Bucket>,
    limits: Reports,
}

impl Senders {
    /// Nobody is known.
    pub fn new(limits: Reports) -> Senders {
        Senders {
            known: HashMap::new(),
            refused: HashMap::new(),
            buckets: HashMap::new(),
            limits,
        }
    }

    /// What is known of a name.
    pub fn get(&self, name: &str) -> Option<Result<Arc<Sender>, Refusal>> {
        let known = self.known.get(name).map(|sender| Ok(sender.clone()));
        known.or_else(|| self.refused.get(name).map(|why| Err(why.clone())))
    }

    /// Remembers what was found of a name.
    pub fn learn(
        &mut self,
        name: &str,
        found: Result<Sender, Refusal>,
    ) -> Result<Arc<Sender>, Refusal> {
        if self.known.len() + self.refused.len() >= SENDERS_MOST {
            self.known.retain(|_, sender| sender.lives());
            self.refused.clear();
        }
        match found {
            Ok(sender) => {
                let sender = Arc::new(sender);
                self.known.insert(name.to_string(), sender.clone());
                Ok(sender)
            }
            Err(why) => {
                self.refused.insert(name.to_string(), why.clone());
                Err(why)
            }
        }
    }

    /// Forgets a name that has left the bus.
    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
        self.refused.remove(name);
    }

    /// Whether a user may say one more thing now.
    pub fn may_speak(&mut self, user: u32, now: Duration) -> bool {
        let fresh = self.bucket();
        if self.buckets.len() >= SENDERS_MOST {
            self.buckets.clear();
        }
        self.buckets.entry(user).or_insert(fresh).take(now)
    }

    fn bucket(&self) -> Bucket {
        Bucket::new(
            Duration::from_secs(1) / self.limits.per_second.max(1),
            self.limits.burst,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn fake(pid: u32, user: u32) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).expect("folders");
        fs::write(
            folder.join("cgroup"),
            "0::/user.slice/user-1000.slice/session-1.scope\n",
        )
        .expect("a file");
        fs::write(
            folder.join("status"),
            format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\n"),
        )
        .expect("a file");
        let system = System::new(root.path());
        (root, system)
    }

    #[test]
    fn a_living_process_of_its_user_is_believed() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        let (_root, system) = fake(child.id(), 1000);
        let sender = Sender::find(&system, 1000, child.id(), None).expect("believed");
        assert_eq!(sender.cgroup, "/user.slice/user-1000.slice/session-1.scope");
        let other = Sender::find(&system, 1001, child.id(), None);
        assert_eq!(
            other.err().map(|why| why.0),
            Some("senders that are another user's")
        );
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(!sender.lives());
    }

    #[test]
    fn a_process_that_has_ended_is_not_believed_whatever_its_number_is_now() {
        let mut child = Command::new("true").spawn().expect("a process");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).expect("a pidfd");
        child.wait().expect("ended");
        // Its number, in the file system of this test, is another's now.
        let (_root, system) = fake(child.id(), 1000);
        let found = Sender::find(&system, 1000, child.id(), Some(pidfd));
        assert_eq!(found.err().map(|why| why.0), Some("senders that had ended"));
    }

    #[test]
    fn the_table_and_the_rate_are_bounded() {
        let mut senders = Senders::new(Reports {
            per_second: 10,
            burst: 5,
        });
        for number in 0..3 * SENDERS_MOST {
            let why = ("no", String::new());
            assert!(senders.learn(&format!(":1.{number}"), Err(why)).is_err());
        }
        assert!(senders.known.len() + senders.refused.len() <= SENDERS_MOST);
        let taken = (0..100)
            .filter(|_| senders.may_speak(1000, Duration::ZERO))
            .count();
        assert_eq!(taken, 5);
        assert!(senders.may_speak(1001, Duration::ZERO));
    }
}
