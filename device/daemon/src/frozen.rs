// SPDX-License-Identifier: GPL-2.0-only
//! A control group that we have frozen: it bears a mark, by which whoever comes later knows to thaw it.

use crate::cgroup::Cgroup;
use crate::system::System;
use std::io;

/// The mark of a group that is frozen by us. No user can set or remove an attribute of this kind.
const MARK: &str = "trusted.fasttrack.frozen";

/// Freezes one group, unless somebody else has frozen it.
pub fn freeze(system: &System, inode: u64, path: &str) -> io::Result<Cgroup> {
    let group = Cgroup::open_below(system.cgroups(), path)?;
    if group.inode() != inode {
        return Err(io::ErrorKind::NotFound.into());
    }
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

/// Thaws a group that is marked as ours.
pub fn thaw(group: &Cgroup) -> io::Result<()> {
    group.write("cgroup.freeze", "0")?;
    group.remove_attribute(MARK)
}

/// Whether a group bears the mark.
pub fn is_ours(group: &Cgroup) -> bool {
    matches!(group.attribute(MARK), Ok(Some(_)))
}
