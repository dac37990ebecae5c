// SPDX-License-Identifier: GPL-2.0-only
//! What a file of a control group said before us, kept on the group itself.
//!
//! The attribute `trusted.fasttrack.was.FILE` holds the value before and ours, a line each. It ends with the group,
//! survives us, and no user can forge it: that kind of attribute is for the administrator alone. A value is restored
//! only if ours still stands; who has changed it since keeps theirs.
//!
//! While one of ours replaces another, a third line holds the one that stands until then: who is killed between the
//! attribute and the file leaves that.

use crate::cgroup::Cgroup;
use std::io;

/// How the attributes begin.
pub const PREFIX: &str = "trusted.fasttrack.was.";

/// Files of control groups that we ever write, besides `cgroup.freeze`.
pub const FILES: [&str; 3] = ["io.bfq.weight", "io.weight", "memory.low"];

/// What became of a value that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is there now.
    Set,
    /// It was there.
    Same,
    /// It was written, and another one was read back.
    NotTaken(String),
}

/// What an attribute keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The value before.
    pub before: String,
    /// Ours.
    pub ours: String,
    /// Ours that may still stand, while it is replaced.
    pub replaced: Option<String>,
}

impl Kept {
    /// Of a group, if it has one.
    pub fn of(group: &Cgroup, name: &str) -> io::Result<Option<Kept>> {
        Ok(group.attribute(name)?.and_then(|text| {
            let mut lines = text.split('\n').map(str::to_string);
            Some(Kept {
                before: lines.next()?,
                ours: lines.next()?,
                replaced: lines.next(),
            })
        }))
    }

    /// What is to be kept while a value is written where this one is now, with what was kept until now.
    pub fn next(known: Option<Kept>, current: &str, ours: &str) -> Kept {
        let known = known.filter(|known| known.stands(current));
        Kept {
            replaced: known.as_ref().map(|_| current.to_string()),
            before: known.map_or_else(|| current.to_string(), |known| known.before),
            ours: ours.to_string(),
        }
    }

    /// Whether the value that is there now is one of ours.
    pub fn stands(&self, current: &str) -> bool {
        self.ours == current || self.replaced.as_deref() == Some(current)
    }

    /// On a group.
    pub fn keep(&self, group: &Cgroup, name: &str) -> io::Result<()> {
        let replaced = self.replaced.iter().map(|value| format!("\n{value}"));
        let replaced: String = replaced.collect();
        group.set_attribute(name, &format!("{}\n{}{replaced}", self.before, self.ours))
    }

    /// The same, once a value of ours is there: another one would be somebody else's.
    pub fn settle(self, group: &Cgroup, name: &str, ours: &str) -> io::Result<()> {
        let settled = Kept {
            before: self.before,
            ours: ours.to_string(),
            replaced: None,
        };
        settled.keep(group, name)
    }
}

/// Sets a value, remembers the one before, and reads back.
pub fn set(group: &Cgroup, file: &str, value: &str) -> io::Result<Outcome> {
    let name = format!("{PREFIX}{file}");
    let current = plain(&group.read(file)?);
    if current == value {
        return Ok(Outcome::Same);
    }
    let kept = Kept::next(Kept::of(group, &name)?, &current, value);
    kept.keep(group, &name)?;
    group.write(file, value)?;
    let after = plain(&group.read(file)?);
    let taken = after == value;
    match kept.stands(&after) {
        true if kept.replaced.is_some() => kept.settle(group, &name, &after)?,
        true => {}
        false => group.remove_attribute(&name)?,
    }
    Ok(match taken {
        true => Outcome::Set,
        false => Outcome::NotTaken(after),
    })
}

/// The value before ours, where one of ours was set.
pub fn before(group: &Cgroup, file: &str) -> io::Result<Option<String>> {
    let kept = Kept::of(group, &format!("{PREFIX}{file}"))?;
    Ok(kept.map(|kept| kept.before))
}

/// Restores the value before, if ours still stands. Says whether it has.
pub fn restore(group: &Cgroup, file: &str) -> io::Result<bool> {
    let name = format!("{PREFIX}{file}");
    let Some(kept) = Kept::of(group, &name)? else {
        return Ok(false);
    };
    let stands = kept.stands(&plain(&group.read(file)?));
    if stands {
        group.write(file, &kept.before)?;
    }
    group.remove_attribute(&name)?;
    Ok(stands)
}

/// The value of a file that may say `default 100` and go on with devices.
fn plain(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    line.strip_prefix("default ").unwrap_or(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn group(folder: &Path) -> Option<Cgroup> {
        fs::create_dir(folder.join("g")).expect("a group");
        fs::write(folder.join("g/io.weight"), "default 100\n").expect("a file");
        let group = Cgroup::open_below(folder, "/g").expect("open");
        if let Err(error) = group.set_attribute("trusted.fasttrack.try", "1") {
            eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
            return None;
        }
        Some(group)
    }

    #[test]
    fn the_value_before_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(group) = group(folder.path()) else {
            return;
        };
        assert_eq!(set(&group, "io.weight", "1000").expect("set"), Outcome::Set);
        assert_eq!(
            set(&group, "io.weight", "1000").expect("set"),
            Outcome::Same
        );
        assert_eq!(set(&group, "io.weight", "1").expect("set"), Outcome::Set);
        assert!(restore(&group, "io.weight").expect("restored"));
        assert_eq!(group.read("io.weight").expect("read"), "100");
        assert!(!restore(&group, "io.weight").expect("nothing to do"));
    }

    #[test]
    fn who_has_changed_it_since_keeps_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(group) = group(folder.path()) else {
            return;
        };
        set(&group, "io.weight", "1000").expect("set");
        group.write("io.weight", "default 250\n").expect("theirs");
        assert!(!restore(&group, "io.weight").expect("looked at"));
        assert_eq!(group.read("io.weight").expect("read"), "default 250");
        let name = format!("{PREFIX}io.weight");
        assert_eq!(group.attribute(&name).expect("read"), None);
    }

    /// As who is killed between the attribute and the file leaves it.
    fn keep_without_write(group: &Cgroup, value: &str) {
        let name = format!("{PREFIX}io.weight");
        let known = Kept::of(group, &name).expect("read");
        let current = plain(&group.read("io.weight").expect("read"));
        let kept = Kept::next(known, &current, value);
        kept.keep(group, &name).expect("kept");
    }

    #[test]
    fn who_is_killed_before_the_write_leaves_what_can_be_restored() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(group) = group(folder.path()) else {
            return;
        };
        let is = || group.read("io.weight").expect("read");
        keep_without_write(&group, "1000");
        assert!(!restore(&group, "io.weight").expect("nothing was set"));
        assert_eq!(is(), "default 100");
        set(&group, "io.weight", "1000").expect("set");
        keep_without_write(&group, "1");
        assert!(restore(&group, "io.weight").expect("restored"));
        assert_eq!(is(), "100");
        // Twice, and by one that goes on.
        set(&group, "io.weight", "1000").expect("set");
        keep_without_write(&group, "1");
        keep_without_write(&group, "500");
        set(&group, "io.weight", "1").expect("set");
        assert!(restore(&group, "io.weight").expect("restored"));
        assert_eq!(is(), "100");
    }

    #[test]
    fn a_value_of_ours_that_was_replaced_is_somebody_s_when_it_comes_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(group) = group(folder.path()) else {
            return;
        };
        set(&group, "io.weight", "1000").expect("set");
        set(&group, "io.weight", "1").expect("set");
        group.write("io.weight", "default 1000\n").expect("theirs");
        assert!(!restore(&group, "io.weight").expect("looked at"));
        assert_eq!(group.read("io.weight").expect("read"), "default 1000");
    }

    #[test]
    fn attributes_of_two_lines_are_understood() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(group) = group(folder.path()) else {
            return;
        };
        let name = format!("{PREFIX}io.weight");
        group.set_attribute(&name, "70\n1000").expect("kept");
        group.write("io.weight", "default 1000\n").expect("ours");
        assert!(restore(&group, "io.weight").expect("restored"));
        assert_eq!(group.read("io.weight").expect("read"), "70");
    }
}
