// SPDX-License-Identifier: GPL-2.0-only
//! Gives up what recording does not need: capabilities, new privileges, and all system calls but a few.
//!
//! All that asks for more comes before: the ring, the programs, the directory. What is left reads events, asks for names
//! of files and tasks, and writes log files.

use rustix::io::Errno;
use rustix::thread::{
    clear_ambient_capability_set, set_capabilities, set_no_new_privs, CapabilitySet, CapabilitySets,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is needed beside what each recording needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Maps of BPF programs are read.
    pub programs: bool,
    /// Files are made in a directory of another user's.
    pub others_directory: bool,
}

impl Needs {
    /// For log files in `directory`.
    pub fn of(directory: &Path, programs: bool) -> Needs {
        let me = rustix::process::geteuid().as_raw();
        Needs {
            programs,
            others_directory: fs::metadata(directory).is_ok_and(|found| found.uid() != me),
        }
    }

    /// DAC_READ_SEARCH opens files by their inodes, for their names; FOWNER looks at their first bytes without a time of
    /// access. Tracefs is its user's, and needs none.
    fn capabilities(self) -> CapabilitySet {
        let mut kept = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER;
        if self.programs {
            kept |= CapabilitySet::BPF | CapabilitySet::PERFMON;
        }
        if self.others_directory {
            kept |= CapabilitySet::DAC_OVERRIDE;
        }
        kept
    }
}

/// What the kernel has refused.
#[derive(Debug)]
pub struct ConfineError {
    what: &'static str,
    why: String,
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it cannot give up {}: {}", self.what, self.why)
    }
}

impl std::error::Error for ConfineError {}

fn told<T, E: fmt::Display>(what: &'static str, result: Result<T, E>) -> Result<T, ConfineError> {
    result.map_err(|error| ConfineError {
        what,
        why: error.to_string(),
    })
}

/// Gives up all but NEEDS, for this thread: others must not have begun. Says whether system calls are filtered.
///
/// # Errors
/// The kernel refuses. One that cannot filter system calls is no error.
pub fn confine(needs: Needs) -> Result<bool, ConfineError> {
    let had = told("capabilities", rustix::thread::capabilities(None))?;
    let kept = had.permitted & needs.capabilities();
    // What runs another program has none of them: this one never does, and the filter has no execve.
    told("ambient capabilities", clear_ambient_capability_set())?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    told("capabilities", set_capabilities(None, sets))?;
    told("new privileges", set_no_new_privs(true))?;
    let filters = filters();
    if filters {
        let program = told("system calls", filter())?;
        told("system calls", seccompiler::apply_filter(&program))?;
    }
    Ok(filters)
}

/// Whether this kernel filters system calls: CONFIG_SECCOMP_FILTER, and a processor for which there is a filter.
fn filters() -> bool {
    // It has refused the pointer, not the operation.
    // SAFETY: nothing is read at the null pointer.
    let refused = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            std::ptr::null::<libc::sock_fprog>(),
        )
    };
    let error = std::io::Error::last_os_error().raw_os_error();
    refused < 0 && error == Some(Errno::FAULT.raw_os_error()) && target().is_some()
}

fn target() -> Option<seccompiler::TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// What recording calls; all else fails with EPERM. There are no sockets, and no new programs and processes.
fn filter() -> Result<BpfProgram, String> {
    let arch = target().ok_or("no filter is known for this processor")?;
    let rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch);
    filter
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// Which these are, those of the C library's start, end and memory with them.
const ALLOWED: &[libc::c_long] = &[
    // Files and directories.
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_unlinkat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ioctl,
    // Waiting, and clocks.
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    // This process.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Maps of BPF programs.
    libc::SYS_bpf,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given up is this thread's alone.
    #[test]
    fn what_is_not_needed_is_refused() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let file = dir.path().join("file");
        let confined = std::thread::spawn(move || {
            confine(Needs::of(dir.path(), false)).expect("given up");
            fs::write(&file, "written").expect("as before");
            assert_eq!(fs::read_to_string(&file).expect("as before"), "written");
            crate::system::remembered(&file).expect("as before");
            fs::remove_file(&file).expect("as before");
            // What asks for it otherwise is refused, too.
            let status = fs::read_to_string("/proc/thread-self/status").expect("as before");
            assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
            let held = status
                .lines()
                .find_map(|line| line.strip_prefix("CapPrm:\t"));
            let held = u64::from_str_radix(held.expect("a line"), 16).expect("a number");
            assert_eq!(held & !Needs::default().capabilities().bits(), 0);
            if status.contains("Seccomp:\t2\n") {
                let socket = std::net::UdpSocket::bind("127.0.0.1:0");
                let error = socket.expect_err("no network").kind();
                assert_eq!(error, std::io::ErrorKind::PermissionDenied);
                std::process::Command::new("/bin/true")
                    .status()
                    .expect_err("no programs");
            }
            std::mem::forget(dir);
        });
        confined.join().expect("as it should be");
    }
}
