// SPDX-License-Identifier: GPL-2.0-only
//! What a file of a control group said before us, kept on the group itself.
//!
//! The attribute `trusted.fasttrack.was.FILE` holds the value before and ours. It ends with the group, survives us, and
//! no user can forge it: that kind of attribute is for the administrator alone. A value is restored only if ours still
//! stands; who has changed it since keeps theirs.

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
}

impl Kept {
    /// Of a group, if it has one.
    pub fn of(group: &Cgroup, name: &str) -> io::Result<Option<Kept>> {
        Ok(group.attribute(name)?.and_then(|text| {
            let (before, ours) = text.split_once('\n')?;
            Some(Kept {
                before: before.to_string(),
                ours: ours.to_string(),
            })
        }))
    }

    /// On a group.
    pub fn keep(&self, group: &Cgroup, name: &str) -> io::Result<()> {
        group.set_attribute(name, &format!("{}\n{}", self.before, self.ours))
    }
}

/// What is to come back: what was there before us, or what somebody has set since.
pub fn before(known: Option<Kept>, current: &str) -> String {
    match known {
        Some(known) if known.ours == current => known.before,
        _ => current.to_string(),
    }
}

/// Sets a value, remembers the one before, and reads back.
pub fn set(group: &Cgroup, file: &str, value: &str) -> io::Result<Outcome> {
    let name = format!("{PREFIX}{file}");
    let current = plain(&group.read(file)?);
    if current == value {
        return Ok(Outcome::Same);
    }
    let kept = Kept {
        before: before(Kept::of(group, &name)?, &current),
        ours: value.to_string(),
    };
    kept.keep(group, &name)?;
    group.write(file, value)?;
    let after = plain(&group.read(file)?);
    if after == value {
        return Ok(Outcome::Set);
    }
    group.remove_attribute(&name)?;
    Ok(Outcome::NotTaken(after))
}

/// Restores the value before, if ours still stands. Says whether it has.
pub fn restore(group: &Cgroup, file: &str) -> io::Result<bool> {
    let name = format!("{PREFIX}{file}");
    let Some(kept) = Kept::of(group, &name)? else {
        return Ok(false);
    };
    let stands = plain(&group.read(file)?) == kept.ours;
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
}
