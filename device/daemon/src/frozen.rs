// SPDX-License-Identifier: GPL-2.0-only
//! A control group that we have frozen: it bears a mark, by which whoever comes later knows to thaw it.

use crate::cgroup::Cgroup;
use crate::system::System;
use std::io;

/// The mark of a group that is frozen by us. No user can set or remove an attribute of this kind.
const MARK: &str = "trusted.fasttrack.frozen";

/// Freezes one group, unless somebody else has frozen it.
pub fn freeze(system: &System, inode: u64, path: &str) -> io::Result<Cgroup> {
    let group = open(system, inode, path)?;
    if group.read("cgroup.freeze")? != "0" {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    // The mark comes first: whoever is killed between the two leaves a mark on what is not frozen.
    group.set_attribute(MARK, "1")?;
    if let Err(error) = group.write("cgroup.freeze", "1") {
        let _ = group.remove_attribute(MARK);
        return Err(error);
    }
    Ok(group)
}

/// The group that is meant, not another one that has its path now.
fn open(system: &System, inode: u64, path: &str) -> io::Result<Cgroup> {
    let group = Cgroup::open_below(system.cgroups(), path)?;
    match group.inode() == inode {
        true => Ok(group),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Thaws the group that is meant, if it is there and marked as ours.
pub fn thaw_ours(system: &System, inode: u64, path: &str) {
    let group = open(system, inode, path);
    if let Some(group) = group.ok().filter(is_ours) {
        // Fails where the group has ended, and nothing is frozen then.
        let _ = thaw(&group);
    }
}

/// Thaws a group that is marked as ours.
pub fn thaw(group: &Cgroup) -> io::Result<()> {
    group.write("cgroup.freeze", "0")?;
    group.remove_attribute(MARK)
}

/// Whether a group bears the mark.
pub fn is_ours(group: &Cgroup) -> bool {
    matches!(group.attribute(MARK), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_meant_is_frozen_and_thawed_and_no_other_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let place = system.cgroups().join("a.scope");
        fs::create_dir_all(&place).expect("a group");
        fs::write(place.join("cgroup.freeze"), "0\n").expect("a file");
        let group = Cgroup::open_path(&system, "/a.scope").expect("a group");
        let is = || group.read("cgroup.freeze").expect("read");
        let inode = group.inode();
        assert!(freeze(&system, inode + 1, "/a.scope").is_err());
        assert_eq!(is(), "0");
        if let Err(error) = freeze(&system, inode, "/a.scope") {
            eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}");
            return;
        }
        assert_eq!(is(), "1");
        thaw_ours(&system, inode + 1, "/a.scope");
        assert_eq!(is(), "1");
        thaw_ours(&system, inode, "/a.scope");
        assert_eq!(is(), "0");
        // What somebody else has frozen stays.
        group.write("cgroup.freeze", "1").expect("theirs");
        thaw_ours(&system, inode, "/a.scope");
        assert_eq!(is(), "1");
    }
}
