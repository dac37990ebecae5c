// SPDX-License-Identifier: GPL-2.0-only
//! Payers of transactions that the patched kernel had no room for: their handles and blocks are in the share of nobody.

use fasttrack_trace_log::{Loss, LossReason, Record, Time};
use std::fs;
use std::path::PathBuf;

/// The kernel's count since it booted.
pub const LEFT_OUT: &str = "/sys/module/io_origin/parameters/payers_left_out";

/// The count, as it grows.
#[derive(Debug)]
pub struct Payers {
    path: PathBuf,
    told: Option<u32>,
    since: u64,
}

impl Payers {
    /// From now on, ns; a kernel that does not count has no such file.
    pub fn new(path: PathBuf, now: u64) -> Payers {
        let mut payers = Payers {
            path,
            told: None,
            since: now,
        };
        payers.told = payers.count();
        payers
    }

    fn count(&self) -> Option<u32> {
        fs::read_to_string(&self.path).ok()?.trim().parse().ok()
    }

    /// What was left out since the last time, if anything.
    pub fn grown(&mut self, now: u64) -> Option<Record> {
        let count = self.count()?;
        let before = self.told.replace(count).unwrap_or(count);
        let since = std::mem::replace(&mut self.since, now);
        // The kernel's count has 32 bits, and begins anew.
        let grown = count.wrapping_sub(before);
        (grown > 0).then(|| {
            Record::from(Loss {
                time: Time(now),
                reason: Some(LossReason::PAYERS),
                since: Some(Time(since)),
                count: Some(u64::from(grown)),
                ..Loss::default()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_grows_by_is_a_loss() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let path = dir.path().join("count");
        let none = Payers::new(path.clone(), 1).grown(2);
        assert!(none.is_none());
        fs::write(&path, "4294967290\n").expect("written");
        let mut payers = Payers::new(path.clone(), 10);
        assert!(payers.grown(20).is_none());
        fs::write(&path, "3\n").expect("written");
        let Some(Record::Loss(loss)) = payers.grown(30) else {
            panic!("no loss");
        };
        assert_eq!((loss.count, loss.since), (Some(9), Some(Time(20))));
        assert!(payers.grown(40).is_none());
    }
}
