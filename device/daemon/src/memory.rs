// SPDX-License-Identifier: GPL-2.0-only
//! Keeps a process in memory: while the disk is saturated a page of ours may take seconds to come back.
//!
//! Without the right to do so, or the room (`LimitMEMLOCK=`), it is as slow as others.

use std::ops::Range;

/// Libraries that the guard never calls, by how their names begin: it computes with no fractions.
const UNUSED: [&str; 1] = ["libm."];

/// Keeps what has been touched, from now on.
pub fn keep_touched() {
    // What another thread allocates would be in 64 MiB of addresses of its own, which all count as kept: more than there
    // is room for.
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes numbers and changes how memory is had from now on.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: the call takes a number and changes no memory.
    let _ = unsafe { libc::mlockall(flags) };
}

/// Keeps all that the guard may need, though it has not touched it: what it does last it has never done before.
pub fn keep_all() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for range in needed(&maps) {
        // SAFETY: the call changes no memory, and refuses what is not there.
        let _ = unsafe { libc::mlock(range.start as *const libc::c_void, range.len()) };
    }
}

/// The parts of a process' memory that are kept, by `/proc/PID/maps`: all that it may touch but libraries that are unused.
fn needed(maps: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let name = rest.rsplit('/').next().unwrap_or("");
        let touched = !rest.starts_with("---");
        let used = !UNUSED.iter().any(|library| name.starts_with(library));
        let address = |text| usize::from_str_radix(text, 16).ok();
        (touched && used).then_some(address(begin)?..address(end)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_kept_but_what_is_never_touched() {
        let maps = "\
1000-3000 r-xp 00000000 fe:00 7    /usr/bin/fasttrackd
3000-4000 ---p 00000000 00:00 0
5000-6000 rw-p 00000000 00:00 0    [heap]
7000-8000 r-xp 00000000 fe:00 8    /usr/lib/x86_64-linux-gnu/libm.so.6
8000-9000 r--p 00000000 fe:00 9    /usr/lib/x86_64-linux-gnu/libc.so.6
9000-a000 rw-p 00000000 00:00 0
nonsense
";
        let kept: Vec<Range<usize>> = needed(maps).collect();
        let all = [(0x1, 0x3), (0x5, 0x6), (0x8, 0x9), (0x9, 0xa)];
        assert_eq!(kept, all.map(|(begin, end)| begin << 12..end << 12));
    }

    #[test]
    fn this_process_has_parts_that_are_kept() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let here = std::ptr::from_ref(&UNUSED) as usize;
        assert!(needed(&maps).any(|range| range.contains(&here)));
    }
}
