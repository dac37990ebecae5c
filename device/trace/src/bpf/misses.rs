// SPDX-License-Identifier: GPL-2.0-only
//! How often the kernel did not run a program, because that program was running on the processor already.

use std::mem::size_of_val;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `BPF_OBJ_GET_INFO_BY_FD` of linux/bpf.h.
const GET_INFO: libc::c_int = 15;

/// Place of `recursion_misses` in `struct bpf_prog_info`, in words of 64 bits.
const MISSES: usize = 26;

/// What that call takes.
#[repr(C)]
struct Asked {
    fd: u32,
    bytes: u32,
    info: u64,
}

/// Misses of a program since it was loaded. The kernel counts them whether statistics are on or not.
pub fn of(program: BorrowedFd<'_>) -> Option<u64> {
    let mut info = [0_u64; MISSES + 1];
    let whole = size_of_val(&info) as u32;
    let mut asked = Asked {
        fd: program.as_raw_fd() as u32,
        bytes: whole,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes `bytes` bytes at `info` at most, and both live until the call has returned.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            GET_INFO,
            std::ptr::from_mut(&mut asked),
            size_of_val(&asked),
        )
    };
    (result == 0 && asked.bytes >= whole).then(|| info[MISSES])
}

/// What a count that only grows has grown by since the last time.
#[derive(Debug, Default)]
pub struct Grown(u64);

impl Grown {
    /// By how much, if at all.
    pub fn by(&mut self, now: u64) -> Option<u64> {
        let grown = now.saturating_sub(self.0);
        self.0 = self.0.max(now);
        (grown > 0).then_some(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn each_miss_is_told_once() {
        let mut misses = Grown::default();
        let told: Vec<_> = [0, 3, 3, 2, 10].map(|now| misses.by(now)).to_vec();
        assert_eq!(told, [None, Some(3), None, None, Some(7)]);
    }

    /// What is no program has none, whatever the privileges.
    #[test]
    fn a_file_has_no_misses() {
        let file = File::open("/dev/null").expect("a file");
        assert_eq!(of(file.as_fd()), None);
    }
}
