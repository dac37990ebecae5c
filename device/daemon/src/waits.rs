// SPDX-License-Identifier: GPL-2.0-only
//! Whether a task of the app in front waits for storage: is in uninterruptible sleep.
//!
//! Others sleep so, too: who waits for a child of vfork(2), or for a server that is gone. One sleep that has lasted for
//! [`HOPELESS`] counts no longer: to freeze others has not ended it.
//!
//! [`Waits`] keeps descriptors: opening `/proc/TID/stat` costs more than reading it. Who waited last is looked at first, and
//! the first that waits ends the look.

use crate::system::System;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Threads that are looked at, at most: a browser has some hundred.
const THREADS_MOST: usize = 512;

/// How long a list of threads is believed. A launch makes threads all the time; those that wait live longer.
const LIST_FOR: Duration = Duration::from_millis(50);

/// Groups below an app's own that are looked at.
const GROUPS_MOST: usize = 32;

/// How long one sleep is believed to be one for storage.
const HOPELESS: Duration = Duration::from_secs(10);

/// How long one that has lasted for longer is believed to be the same.
const STILL: Duration = Duration::from_millis(100);

/// A thread that is in uninterruptible sleep, since then at least.
struct Sleep {
    since: Duration,
    /// How often it had slept then.
    number: Option<u64>,
    /// When it was last found to be no sleep for storage.
    hopeless: Option<Duration>,
}

struct Thread {
    tid: u32,
    stat: File,
    sleep: Option<Sleep>,
}

impl Thread {
    /// Whether it waits for storage.
    fn waits(&mut self, system: &System, now: Duration) -> bool {
        if !is_waiting(&self.stat).unwrap_or(false) {
            self.sleep = None;
            return false;
        }
        let lasted = |from: Duration| now.saturating_sub(from);
        let number = match &mut self.sleep {
            Some(sleep) if lasted(sleep.since) < HOPELESS => return true,
            Some(sleep) if sleep.hopeless.is_some_and(|at| lasted(at) < STILL) => return false,
            Some(sleep) => {
                let number = sleeps(system, self.tid);
                if number == sleep.number {
                    sleep.hopeless = Some(now);
                    return false;
                }
                number
            }
            None => sleeps(system, self.tid),
        };
        self.sleep = Some(Sleep {
            since: now,
            number,
            hopeless: None,
        });
        true
    }
}

/// The threads of some control groups.
pub struct Waits {
    system: System,
    groups: Vec<String>,
    threads: Vec<Thread>,
    listed: Option<Duration>,
}

impl Waits {
    /// Of nobody.
    pub fn new(system: &System) -> Waits {
        Waits {
            system: system.clone(),
            groups: Vec::new(),
            threads: Vec::new(),
            listed: None,
        }
    }

    /// Of these groups from now on.
    pub fn set_groups(&mut self, groups: Vec<String>) {
        if self.groups != groups {
            self.groups = groups;
            self.threads.clear();
            self.listed = None;
        }
    }

    /// Whether a thread of the groups waits.
    pub fn look(&mut self, now: Duration) -> bool {
        if self
            .listed
            .is_none_or(|listed| now.saturating_sub(listed) >= LIST_FOR)
        {
            self.list();
            self.listed = Some(now);
        }
        let waits = self
            .threads
            .iter_mut()
            .position(|thread| thread.waits(&self.system, now));
        if let Some(index) = waits {
            self.threads[..=index].rotate_right(1);
        }
        waits.is_some()
    }

    /// Opens what is new and closes what has ended.
    fn list(&mut self) {
        let tids = tids(&self.system, &self.groups);
        self.threads.retain(|thread| tids.contains(&thread.tid));
        for tid in tids {
            if self.threads.iter().all(|thread| thread.tid != tid) {
                if let Ok(stat) = stat(&self.system, tid) {
                    let sleep = None;
                    self.threads.push(Thread { tid, stat, sleep });
                }
            }
        }
    }
}

/// Whether a thread of a group waits; for who asks so seldom that descriptors are not worth their number.
pub fn waits(system: &System, group: &str) -> bool {
    let tids = tids(system, [group]);
    let mut stats = tids.into_iter().filter_map(|tid| stat(system, tid).ok());
    stats.any(|stat| is_waiting(&stat).unwrap_or(false))
}

/// The threads of groups and of those below them, [`THREADS_MOST`] of them. The groups take turns: one that has very many
/// hides no other.
fn tids(system: &System, groups: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<u32> {
    let of_one = |group: &str| {
        let folder = system.cgroups().join(group.trim_start_matches('/'));
        let mut tids = Vec::new();
        for folder in below(&folder, GROUPS_MOST) {
            let text = fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default();
            tids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        tids
    };
    let groups = groups.into_iter();
    let lists: Vec<Vec<u32>> = groups.map(|group| of_one(group.as_ref())).collect();
    let turns = lists.iter().map(Vec::len).max().unwrap_or(0);
    let of_turn = |turn: usize| lists.iter().filter_map(move |tids| tids.get(turn).copied());
    (0..turns).flat_map(of_turn).take(THREADS_MOST).collect()
}

fn stat(system: &System, tid: u32) -> io::Result<File> {
    File::open(system.path(&format!("proc/{tid}/stat")))
}

/// How often a thread has gone to sleep.
fn sleeps(system: &System, tid: u32) -> Option<u64> {
    let text = system.read(&format!("proc/{tid}/status")).ok()?;
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    number.trim().parse().ok()
}

/// A group and those below it, so many of them at most.
pub fn below(folder: &Path, most: usize) -> Vec<PathBuf> {
    let mut found = vec![folder.to_path_buf()];
    let mut next = 0;
    while next < found.len() && found.len() < most {
        let entries = fs::read_dir(&found[next]).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let room = most - found.len();
        found.extend(folders.map(|entry| entry.path()).take(room));
        next += 1;
    }
    found
}

fn is_waiting(stat: &File) -> io::Result<bool> {
    let mut buffer = [0_u8; 128];
    let length = stat.read_at(&mut buffer, 0)?;
    Ok(state(&buffer[..length]) == Some(b'D'))
}

/// The state in a line of `/proc/PID/stat`: the letter after the last bracket. A name can have brackets, and is short.
fn state(line: &[u8]) -> Option<u8> {
    let bracket = line.iter().rposition(|byte| *byte == b')')?;
    line.get(bracket + 2).copied()
}

/// Whether a line of `/proc/PID/stat` is of a process that is stopped, by a signal or by who traces it.
pub fn is_stopped(line: &str) -> bool {
    matches!(state(line.as_bytes()), Some(b'T' | b't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert_eq!(state(b"12 (cat) S 1"), Some(b'S'));
        assert_eq!(state(b"12 (a) D (b) R 1"), Some(b'R'));
        assert_eq!(state(b"12 (cat"), None);
        assert_eq!(state(b"12 (cat)"), None);
    }

    #[test]
    fn an_app_with_many_groups_is_looked_at_for_no_longer() {
        let root = tempfile::tempdir().expect("a folder");
        for number in 0..3 * GROUPS_MOST {
            fs::create_dir(root.path().join(number.to_string())).expect("a group");
        }
        assert_eq!(below(root.path(), GROUPS_MOST).len(), GROUPS_MOST);
    }

    #[test]
    fn one_sleep_that_does_not_end_counts_no_longer() {
        let root = tempfile::tempdir().expect("a folder");
        let sleeps = |number: u32| {
            let text = format!("Name:\tx\nvoluntary_ctxt_switches:\t{number}\n");
            put(root.path(), "proc/10/status", &text);
        };
        put(root.path(), "sys/fs/cgroup/a/cgroup.threads", "10\n");
        put(root.path(), "proc/10/stat", "10 (x) D 1");
        sleeps(1);
        let mut waits = Waits::new(&System::new(root.path()));
        waits.set_groups(vec!["/a".to_string()]);
        let at = Duration::from_secs;
        assert!(waits.look(at(0)));
        assert!(waits.look(at(9)));
        assert!(!waits.look(at(10)));
        assert!(!waits.look(at(100)));
        // It was awake between two looks.
        sleeps(2);
        assert!(waits.look(at(101)));
        assert!(waits.look(at(110)));
        assert!(!waits.look(at(111)));
        put(root.path(), "proc/10/stat", "10 (x) S 1");
        assert!(!waits.look(at(112)));
        put(root.path(), "proc/10/stat", "10 (x) D 1");
        assert!(waits.look(at(113)));
    }

    #[test]
    fn an_app_with_many_threads_hides_no_other() {
        let root = tempfile::tempdir().expect("a folder");
        let many: Vec<String> = (1000..1600).map(|tid: u32| tid.to_string()).collect();
        put(
            root.path(),
            "sys/fs/cgroup/a/cgroup.threads",
            &many.join("\n"),
        );
        for tid in many {
            put(root.path(), &format!("proc/{tid}/stat"), "1 (x) S 1");
        }
        put(root.path(), "sys/fs/cgroup/b/cgroup.threads", "10\n");
        put(root.path(), "proc/10/stat", "10 (x) D 1");
        let mut waits = Waits::new(&System::new(root.path()));
        waits.set_groups(["/a", "/b"].map(str::to_string).to_vec());
        assert!(waits.look(Duration::ZERO));
        assert_eq!(waits.threads.len(), THREADS_MOST);
    }

    #[test]
    fn who_waits_in_a_group_or_below_it_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        put(root.path(), "sys/fs/cgroup/a/cgroup.threads", "10\n11\n");
        put(root.path(), "sys/fs/cgroup/a/b/cgroup.threads", "12\n");
        for tid in 10..13 {
            put(
                root.path(),
                &format!("proc/{tid}/stat"),
                &format!("{tid} (x) S 1"),
            );
        }
        let mut waits = Waits::new(&System::new(root.path()));
        waits.set_groups(vec!["/a".to_string()]);
        let at = Duration::from_millis;
        assert!(!waits.look(at(0)));
        put(root.path(), "proc/12/stat", "12 (x) D 1");
        assert!(waits.look(at(5)));
        assert_eq!(waits.threads[0].tid, 12);
        put(root.path(), "sys/fs/cgroup/a/b/cgroup.threads", "");
        assert!(waits.look(at(10)));
        assert!(!waits.look(at(60)));
    }
}
