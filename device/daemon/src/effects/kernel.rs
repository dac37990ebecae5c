// SPDX-License-Identifier: GPL-2.0-only
//! The patched kernel: its lists, its switch, and a lease that it believes us for.

use super::effect::Effect;
use super::rules::maintenance;
use crate::candidates::is_within;
use crate::cgroup::{user_of, Cgroup};
use crate::counters::Counters;
use crate::system::System;
use crate::tree::app_slices;
use fasttrack_bus::lease_ms;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::{Decision, Verdict};
use rustix::fs::XattrFlags;
use std::collections::BTreeMap;
use std::io;
use std::mem::take;

/// Where the kernel's files are.
pub const FOLDER: &str = "sys/kernel/fasttrack";

/// The attribute of that folder while the daemon has switched the kernel's part on.
const MARK: &str = "trusted.fasttrack.switched_on";

/// The attribute of a group that the daemon has added to `app_cgroups`.
const APP: &str = "trusted.fasttrack.app";

/// The lease of lists that nobody renews: who writes them by hand.
const LEASE_OFF: &str = "0";

/// Longest write that a list takes: it must be shorter than a page. Bytes.
const WRITE_MOST: usize = 4095;

/// Entries of a list at most.
const ENTRIES_MOST: usize = 512;

/// Looks whether the kernel has the files and takes what is written.
pub fn probe(system: &System) -> Result<(), String> {
    let lease = format!("{FOLDER}/lease_ms");
    let Ok(before) = system.read(&lease) else {
        return Err(format!("this kernel has no /{FOLDER}."));
    };
    let wanted = lease_ms();
    system
        .write(&lease, &wanted)
        .map_err(|error| format!("/{lease}: {error}."))?;
    let after = system.read(&lease).unwrap_or_default();
    if after != wanted {
        return Err(format!(
            "/{lease}: {wanted} was written and {after:?} read back."
        ));
    }
    let why = ejected(system);
    if why.is_empty() {
        return Ok(());
    }
    // The lease goes back to what it was: the kernel is not ours.
    let _ = system.write(&lease, &before);
    Err(format!(
        "FastTrack has switched itself off ({why}). 'echo 1 >/{FOLDER}/enabled' switches it on again."
    ))
}

/// Why the kernel's part has switched itself off; empty if it has not.
pub fn ejected(system: &System) -> String {
    let why = system.read(&format!("{FOLDER}/ejected"));
    why.unwrap_or_default()
}

/// Whether the kernel's part is switched on.
pub fn is_on(system: &System) -> bool {
    system
        .read(&format!("{FOLDER}/enabled"))
        .is_ok_and(|value| value == "1")
}

/// Takes back what a daemon that is gone has left there: nobody is in front or perceptible, what is written by hand
/// from now on stays, and it is off if the daemon has switched it on. What no daemon has written stays as it is.
///
/// Of a daemon that has found it switched on the lease alone tells.
pub fn clear(system: &System) {
    let (marked, leased) = (is_marked(system), is_leased(system));
    if marked || leased {
        for (file, value) in [
            ("foreground_cgroups", "\n"),
            ("perceptible_cgroups", "\n"),
            ("lease_ms", LEASE_OFF),
        ] {
            let _ = system.write(&format!("{FOLDER}/{file}"), value);
        }
    }
    if marked {
        let _ = system.write(&format!("{FOLDER}/enabled"), "0");
        set_mark(system, false);
    }
}

/// Takes a group out of `app_cgroups` if a daemon that is gone has added it. Says whether it has.
pub fn take_out(system: &System, group: &Cgroup) -> bool {
    if !matches!(group.attribute(APP), Ok(Some(_))) {
        return false;
    }
    let word = format!("-{}\n", group.path());
    let _ = system.write(&format!("{FOLDER}/app_cgroups"), &word);
    group.remove_attribute(APP).is_ok()
}

/// Whether the lease is a daemon's.
fn is_leased(system: &System) -> bool {
    let lease = system.read(&format!("{FOLDER}/lease_ms"));
    lease.is_ok_and(|lease| lease == lease_ms())
}

/// Whether a daemon has switched the kernel's part on: that outlives a daemon that is killed.
fn is_marked(system: &System) -> bool {
    rustix::fs::getxattr(system.path(FOLDER), MARK, &mut [0_u8; 1]).is_ok()
}

/// Without attributes, who takes over from a daemon that was killed leaves the switch on.
fn set_mark(system: &System, on: bool) {
    let folder = system.path(FOLDER);
    let _ = if on {
        rustix::fs::setxattr(folder, MARK, b"1", XattrFlags::empty())
    } else {
        rustix::fs::removexattr(folder, MARK)
    };
}

/// The pieces in which a list is written: the first replaces it, the others add to it.
pub fn pieces(words: &[&str]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in words.iter().take(ENTRIES_MOST) {
        if piece.len() + word.len() + 2 > WRITE_MOST && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
        if !piece.is_empty() {
            piece.push(' ');
        }
        if !pieces.is_empty() {
            piece.push('+');
        }
        piece.push_str(word);
    }
    piece.push('\n');
    pieces.push(piece);
    pieces
}

/// A group's path, and its inode: one that comes back under the path is not in the kernel's list.
type Group = (String, u64);

/// A list of the kernel's.
#[derive(Debug, Default)]
struct List {
    groups: Vec<Group>,
    /// Whether the kernel has taken all of it. Otherwise it is written again at the next occasion.
    taken: bool,
}

/// The rung of the patched kernel.
pub struct Kernel {
    system: System,
    was_enabled: bool,
    front: List,
    heard: List,
    /// Groups in `app_cgroups`, with their inodes: a service that runs again is another group.
    apps: BTreeMap<String, u64>,
    rules: Vec<String>,
    /// Users in front whose app slices have been looked for.
    users: Vec<u32>,
    broken: Option<String>,
}

impl Kernel {
    /// Switches the kernel's part on.
    pub fn new(system: &System, wanted: &Wanted, counters: &mut Counters) -> Kernel {
        let was_enabled = is_on(system) && !is_marked(system);
        set_mark(system, !was_enabled);
        let mut kernel = Kernel {
            system: system.clone(),
            was_enabled,
            front: List::default(),
            heard: List::default(),
            apps: BTreeMap::new(),
            rules: wanted.background.clone(),
            users: Vec::new(),
            broken: None,
        };
        kernel.write("enabled", "1", counters);
        kernel.write("lease_ms", &lease_ms(), counters);
        kernel.front.taken = kernel.write_list("foreground_cgroups", &[], counters);
        kernel.heard.taken = kernel.write_list("perceptible_cgroups", &[], counters);
        kernel.add_apps(counters);
        kernel
    }

    /// Tells the kernel which groups hold apps: users' app slices, and what is background by a rule.
    fn add_apps(&mut self, counters: &mut Counters) {
        let mut found: Vec<String> = app_slices(&self.system);
        found.extend(maintenance(&self.system, &self.rules));
        let mut there = BTreeMap::new();
        for path in found {
            let Ok(group) = Cgroup::open_path(&self.system, &path) else {
                continue;
            };
            // What was not taken is told again at the next occasion.
            if self.apps.get(&path) == Some(&group.inode()) || self.add_app(&group, counters) {
                there.insert(path, group.inode());
            }
        }
        self.apps = there;
        // A user whose manager has no app slice is not looked for again before the next beat.
        self.users = self
            .front
            .groups
            .iter()
            .filter_map(|(path, _)| user_of(path))
            .collect();
    }

    /// Whether the kernel has taken it. Without attributes a crash leaves it there.
    fn add_app(&mut self, group: &Cgroup, counters: &mut Counters) -> bool {
        let _ = group.set_attribute(APP, "1");
        let word = format!("+{}\n", group.path());
        let taken = self.write("app_cgroups", &word, counters);
        if !taken {
            let _ = group.remove_attribute(APP);
        }
        taken
    }

    fn write(&mut self, file: &str, value: &str, counters: &mut Counters) -> bool {
        let path = format!("{FOLDER}/{file}");
        match self.system.write(&path, value) {
            Ok(()) => {
                counters.forget(&format!("kernel {file}"));
                true
            }
            Err(error) => {
                counters.error(&format!("kernel {file}"), || meaning(&path, value, &error));
                false
            }
        }
    }

    /// Whether the kernel has taken all of it.
    fn write_list(&mut self, file: &str, groups: &[Group], counters: &mut Counters) -> bool {
        let words: Vec<&str> = groups.iter().map(|(path, _)| path.as_str()).collect();
        let mut taken = true;
        for (at, piece) in pieces(&words).into_iter().enumerate() {
            let path = format!("{FOLDER}/{file}");
            match self.system.write(&path, &piece) {
                Ok(()) => {}
                // All that it names has ended meanwhile. The first piece takes the place of the old list, which must
                // not stay; the others add to it.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) && self.is_there() => {
                    counters.count("groups that had ended");
                    if at == 0 {
                        taken &= self.write(file, "\n", counters);
                    }
                }
                Err(error) => {
                    counters.error(&format!("kernel {file}"), || meaning(&path, &piece, &error));
                    taken = false;
                }
            }
        }
        taken
    }

    fn is_there(&self) -> bool {
        self.system.path(FOLDER).is_dir()
    }

    fn look(&mut self, counters: &mut Counters) {
        let ejected = ejected(&self.system);
        let enabled = self
            .system
            .read(&format!("{FOLDER}/enabled"))
            .unwrap_or_default();
        if !ejected.is_empty() {
            let why = format!("FastTrack has switched itself off ({ejected}).");
            counters.error("ejected", || {
                format!("the kernel: {why} 'echo 1 >/{FOLDER}/enabled' switches it on again.")
            });
            self.broken = Some(why);
        } else if enabled != "1" {
            self.broken = Some(format!("somebody has switched /{FOLDER}/enabled off."));
        }
    }
}

fn meaning(path: &str, value: &str, error: &io::Error) -> String {
    let value = value.trim();
    let hint = match error.raw_os_error() {
        Some(libc::EROFS | libc::EACCES | libc::EPERM) => {
            "; the unit needs ReadWritePaths=/sys/kernel/fasttrack"
        }
        Some(libc::ENOSPC) => "; the list is full",
        _ => "",
    };
    format!("/{path} does not take {value:?}: {error}{hint}")
}

fn groups(list: &[Verdict]) -> Vec<Group> {
    list.iter()
        .map(|verdict| (verdict.app.cgroup.clone(), verdict.app.inode))
        .collect()
}

impl Effect for Kernel {
    fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        let front = groups(&decision.foreground);
        let heard = groups(&decision.perceptible);
        // The foreground first: a launch must not wait.
        if !self.front.taken || front != self.front.groups {
            let taken = self.write_list("foreground_cgroups", &front, counters);
            let groups = front;
            self.front = List { groups, taken };
        }
        if !self.heard.taken || heard != self.heard.groups {
            let taken = self.write_list("perceptible_cgroups", &heard, counters);
            let groups = heard;
            self.heard = List { groups, taken };
        }
        let known = |(path, _): &Group| user_of(path).is_none_or(|user| self.users.contains(&user));
        if !self.front.groups.iter().all(known) {
            self.add_apps(counters);
        }
    }

    fn renew(&mut self, _decision: &Decision, counters: &mut Counters) {
        let (mut front, mut heard) = (take(&mut self.front), take(&mut self.heard));
        for (file, list) in [
            ("foreground_cgroups", &mut front),
            ("perceptible_cgroups", &mut heard),
        ] {
            if !list.taken || !list.groups.is_empty() {
                list.taken = self.write_list(file, &list.groups, counters);
            }
        }
        (self.front, self.heard) = (front, heard);
        self.add_apps(counters);
        self.look(counters);
    }

    fn broken(&self) -> Option<String> {
        self.broken.clone()
    }

    fn explain(&self, cgroup: &str) -> Vec<String> {
        let paths = |list: &List| list.groups.iter().map(|(path, _)| path.clone()).collect();
        let lists: [(Vec<String>, &str); 3] = [
            (paths(&self.front), "foreground_cgroups"),
            (paths(&self.heard), "perceptible_cgroups"),
            (self.apps.keys().cloned().collect(), "app_cgroups"),
        ];
        let under = |path: &String| is_within(cgroup, path);
        lists
            .into_iter()
            .filter_map(|(list, file)| Some((list.into_iter().find(under)?, file)))
            .map(|(path, file)| format!("{path} is in /{FOLDER}/{file}."))
            .collect()
    }

    fn release(&mut self, counters: &mut Counters) {
        self.write_list("foreground_cgroups", &[], counters);
        self.write_list("perceptible_cgroups", &[], counters);
        for path in std::mem::take(&mut self.apps).into_keys() {
            self.write("app_cgroups", &format!("-{path}\n"), counters);
            if let Ok(group) = Cgroup::open_path(&self.system, &path) {
                let _ = group.remove_attribute(APP);
            }
        }
        self.write("lease_ms", LEASE_OFF, counters);
        if !self.was_enabled && self.broken.is_none() {
            self.write("enabled", "0", counters);
        }
        set_mark(&self.system, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_not_taken_is_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let place = |name: &str| folder.path().join(FOLDER).join(name);
        std::fs::create_dir_all(folder.path().join(FOLDER)).expect("a folder");
        let file = |name: &str| std::fs::write(place(name), "").expect("a file");
        let files = ["enabled", "lease_ms", "app_cgroups", "perceptible_cgroups"];
        files.into_iter().for_each(file);
        let list = place("foreground_cgroups");
        let full = || {
            let _ = std::fs::remove_file(&list);
            std::os::unix::fs::symlink("/dev/full", &list).expect("a link");
        };
        let works = || {
            std::fs::remove_file(&list).expect("removed");
            std::fs::write(&list, "/old").expect("a file");
        };
        let is = || std::fs::read_to_string(&list).expect("a list");
        let mut counters = Counters::silent();
        let front = Decision {
            foreground: vec![Verdict {
                app: fasttrack_detector::report::AppRef {
                    cgroup: "/a".to_string(),
                    inode: 1,
                    id: String::new(),
                    pid: 0,
                },
                rule: fasttrack_detector::Rule::Focus,
                since: std::time::Duration::ZERO,
                session: None,
            }],
            ..Decision::default()
        };
        full();
        let wanted = fasttrack_config::Config::default().effects;
        let mut kernel = Kernel::new(&system, &wanted, &mut counters);
        for (decision, expected) in [(&front, "/a\n"), (&Decision::default(), "\n")] {
            full();
            kernel.apply(decision, &mut counters);
            works();
            kernel.apply(decision, &mut counters);
            assert_eq!(is(), expected, "the next decision");
            full();
            // Two, since one that is as before is not written.
            kernel.apply(&front, &mut counters);
            kernel.apply(decision, &mut counters);
            works();
            kernel.renew(decision, &mut counters);
            assert_eq!(is(), expected, "the next beat");
        }
    }

    #[test]
    fn an_app_s_group_that_was_not_taken_is_told_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let slice = "user.slice/user-7.slice/user@7.service/app.slice";
        std::fs::create_dir_all(system.cgroups().join(slice)).expect("a group");
        std::fs::create_dir_all(folder.path().join(FOLDER)).expect("a folder");
        let list = folder.path().join(FOLDER).join("app_cgroups");
        std::os::unix::fs::symlink("/dev/full", &list).expect("a link");
        let wanted = fasttrack_config::Config::default().effects;
        let mut counters = Counters::silent();
        let mut kernel = Kernel::new(&system, &wanted, &mut counters);
        std::fs::remove_file(&list).expect("removed");
        for (before, expected) in [("", format!("+/{slice}\n")), ("told", "told".to_string())] {
            std::fs::write(&list, before).expect("a file");
            kernel.renew(&Decision::default(), &mut counters);
            assert_eq!(std::fs::read_to_string(&list).expect("a list"), expected);
        }
    }

    #[test]
    fn a_long_list_is_written_in_pieces_that_fit() {
        assert_eq!(pieces(&[]), ["\n"]);
        assert_eq!(pieces(&["/a", "/b"]), ["/a /b\n"]);
        let long: Vec<String> = (0..100).map(|number| format!("/{number:0>99}")).collect();
        let words: Vec<&str> = long.iter().map(String::as_str).collect();
        let pieces = pieces(&words);
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.len() <= WRITE_MOST));
        assert!(pieces[1].starts_with("+/") && !pieces[0].contains('+'));
        let all = pieces.join(" ");
        let back: Vec<&str> = all
            .split_whitespace()
            .map(|word| word.trim_start_matches('+'))
            .collect();
        assert_eq!(back, words);
    }
}
