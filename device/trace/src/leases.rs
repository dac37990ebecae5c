// SPDX-License-Identifier: GPL-2.0-only
//! Leases and delegations of files, as Samba and nfsd have them for their clients. Whoever opens such a file breaks
//! them: the holder is told to write back what it has cached, and loses the lease.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

/// For so long /proc/locks is not read again: the kernel stops all changes of locks meanwhile, and it may be long.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The inodes of which somebody has one.
#[derive(Debug, Default)]
pub struct Leases {
    inodes: HashSet<u64>,
    read: Option<Instant>,
}

impl Leases {
    /// Whether somebody has one of such an inode, of whichever file system: btrfs has other devices here than for stat.
    pub fn has(&mut self, inode: u64) -> bool {
        if self.read.is_none_or(|read| read.elapsed() >= READ_EVERY) {
            let text = fs::read_to_string("/proc/locks").unwrap_or_default();
            self.inodes = text.lines().filter_map(leased).collect();
            self.read = Some(Instant::now());
        }
        self.inodes.contains(&inode)
    }
}

/// The inode of a line of /proc/locks that tells of a lease or a delegation.
fn leased(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.find(|word| matches!(*word, "LEASE" | "DELEG"))?;
    words.find_map(|word| word.rsplit_once(':')?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_leases_have_inodes() {
        let lines = [
            (
                "1: LEASE  ACTIVE    WRITE 2408 fe:00:1063 0 EOF",
                Some(1063),
            ),
            ("12: DELEG  ACTIVE    READ 17 00:2a:9 0 EOF", Some(9)),
            ("2: LEASE  BREAKING  READ 2408 fe:00:11 0 EOF", Some(11)),
            ("2: -> LEASE  BREAKER   READ 99 <none>:0 0 EOF", Some(0)),
            ("3: FLOCK  ADVISORY  WRITE 2408 fe:00:1063 0 EOF", None),
            ("4: POSIX  ADVISORY  READ 2408 fe:00:1063 1 2", None),
        ];
        for (line, inode) in lines {
            assert_eq!(leased(line), inode, "{line}");
        }
    }
}
