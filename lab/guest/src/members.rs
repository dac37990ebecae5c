// SPDX-License-Identifier: GPL-2.0-only
//! The threads of a command's processes, which come and go: its control group knows them.

use crate::exec;
use crate::stack::Probe;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest name of a thread, bytes, with its line end.
const COMM_BYTES: usize = 64;

/// A thread.
struct Member {
    stack: Probe,
    comm: Probe,
}

impl Member {
    /// None of a thread that is gone.
    fn of(proc: &Path, tid: libc::pid_t) -> Option<Member> {
        Some(Member {
            stack: Probe::stack(proc, tid)?,
            comm: Probe::open(&proc.join(format!("{tid}/comm")))?,
        })
    }
}

/// All threads of a command.
pub struct Members {
    list: PathBuf,
    found: BTreeMap<libc::pid_t, Member>,
}

impl Members {
    /// The threads of an app, with control groups at `groups`.
    pub fn of(groups: &Path, app: &str) -> Result<Members, String> {
        let list = exec::group(groups, app).join("cgroup.threads");
        fs::read(&list).map_err(|error| {
            let list = list.display();
            format!("why: cannot read {list}: {error}; a command needs control groups")
        })?;
        let found = BTreeMap::new();
        Ok(Members { list, found })
    }

    /// Shows each thread that there is by its name and its stack, with procfs at `proc`.
    pub fn each(&mut self, proc: &Path, buffer: &mut [u8], mut show: impl FnMut(&str, &[u8])) {
        let text = fs::read_to_string(&self.list).unwrap_or_default();
        let now: Vec<libc::pid_t> = text.lines().flat_map(str::parse).collect();
        self.found.retain(|tid, _| now.contains(tid));
        for tid in now {
            let member = match self.found.entry(tid) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => match Member::of(proc, tid) {
                    Some(member) => new.insert(member),
                    None => continue,
                },
            };
            // A program that is started gives its thread another name.
            let mut name = [0; COMM_BYTES];
            let name = member.comm.read(&mut name).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            if let Some(stack) = member.stack.read(buffer) {
                show(name.trim_end(), stack);
            }
        }
    }
}
