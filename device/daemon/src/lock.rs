// SPDX-License-Identifier: GPL-2.0-only
//! Files in the runtime directory that say by their locks who runs: a lock ends with its process, however that ends.
//!
//! No process inherits one. The guard outlives a daemon that is killed, and the next one has not to wait for that to
//! begin.

use crate::system::System;
use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Below the root, without the leading slash.
const FOLDER: &str = "run/fasttrack";

/// Held by who sets anything, or takes back what another one has left.
const DAEMON: &str = "daemon.lock";

/// Longest PID, bytes.
const PID_BYTES: u64 = 20;

/// What became of a lock.
#[derive(Debug)]
pub enum Lock {
    /// It is this process's, as long as the file is open.
    Ours(File),
    /// It is another one's; what to say about it.
    Others(String),
    /// There can be none, and why.
    Nobodys(io::Error),
}

/// Opens a file of this name, which need not be there yet.
pub fn open(system: &System, name: &str) -> io::Result<File> {
    let folder = system.path(FOLDER);
    // It may be there, and where it cannot be made, opening fails.
    let _ = std::fs::create_dir(&folder);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(folder.join(name))
}

/// Takes the daemon's, without waiting for it.
pub fn of_daemon(system: &System) -> Lock {
    let mut file = match open(system, DAEMON) {
        Ok(file) => file,
        Err(error) => return Lock::Nobodys(error),
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // On a full disk there is the lock, and no PID to be told.
            let _ = file.set_len(0);
            let _ = write!(file, "{}", std::process::id());
            Lock::Ours(file)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Lock::Others(says(file)),
        Err(error) => Lock::Nobodys(error.into()),
    }
}

fn says(file: File) -> String {
    let mut text = String::new();
    let read = file.take(PID_BYTES).read_to_string(&mut text);
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(pid) => format!(
            "another fasttrackd runs (PID {pid}); 'systemctl stop fasttrackd' ends it, or 'kill {pid}'"
        ),
        None => "another fasttrackd runs; 'systemctl stop fasttrackd' ends it".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_ends_and_the_other_is_told_who() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        assert!(matches!(of_daemon(&system), Lock::Nobodys(_)));
        std::fs::create_dir(folder.path().join("run")).expect("a folder");
        let ours = of_daemon(&system);
        assert!(matches!(ours, Lock::Ours(_)));
        let Lock::Others(told) = of_daemon(&system) else {
            panic!("two have it");
        };
        let pid = format!("(PID {})", std::process::id());
        assert!(told.contains(&pid), "{told}");
        drop(ours);
        assert!(matches!(of_daemon(&system), Lock::Ours(_)));
    }
}
