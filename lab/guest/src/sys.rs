// SPDX-License-Identifier: GPL-2.0-only
//! The system calls that the standard library does not offer, each behind a safe function.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

/// Size of a page in the guest and of a block of the verifiable pattern, bytes.
pub const PAGE: usize = 4096;

/// Turns a system call's -1 into its errno.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A string for the kernel; a NUL inside is an error.
pub fn cstring(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// CLOCK_MONOTONIC in nanoseconds. A read costs 256 ns of virtual time in the lab.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

fn clock_sleep(flags: libc::c_int, ns: u64) {
    let mut time = timespec(ns);
    loop {
        let rest: *mut libc::timespec = &mut time;
        // SAFETY: `time` is valid for reading and writing; a relative sleep leaves the rest in it.
        let result =
            unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, flags, rest as *const _, rest) };
        if result != libc::EINTR {
            return;
        }
    }
}

/// Sleeps for so many nanoseconds.
pub fn sleep_ns(ns: u64) {
    if ns > 0 {
        clock_sleep(0, ns);
    }
}

/// Sleeps until CLOCK_MONOTONIC shows `ns`.
pub fn sleep_until_ns(ns: u64) {
    clock_sleep(libc::TIMER_ABSTIME, ns);
}

/// Sleeps while `word`, shared between processes, holds `value`. May wake early.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word outlives the call; no timeout is given.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    };
}

/// Wakes everyone who sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// mount(2). An empty `data` is none.
pub fn mount(
    source: &str,
    target: &str,
    kind: &str,
    flags: libc::c_ulong,
    data: &str,
) -> io::Result<()> {
    let (source, target) = (cstring(source)?, cstring(target)?);
    let (kind, data) = (cstring(kind)?, cstring(data)?);
    let data_pointer = if data.as_bytes().is_empty() {
        std::ptr::null()
    } else {
        data.as_ptr().cast()
    };
    // SAFETY: all strings live until the call returns.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            data_pointer,
        )
    })?;
    Ok(())
}

/// umount2(2).
pub fn umount(target: &str, flags: libc::c_int) -> io::Result<()> {
    let target = cstring(target)?;
    // SAFETY: the string lives until the call returns.
    check(unsafe { libc::umount2(target.as_ptr(), flags) })?;
    Ok(())
}

/// Forks: `None` in the child, its PID in the parent. The caller must be the only thread that
/// allocates or locks.
pub fn fork() -> io::Result<Option<libc::pid_t>> {
    // SAFETY: the only other thread of this program, the watchdog, sleeps and holds no lock.
    match check(unsafe { libc::fork() })? {
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Timer slack of what plays a part: sleeps end when they should, ns. 0 would mean the default.
pub const EXACT_NS: u64 = 1;
/// Timer slack of what runs as on the host: the kernel's default, ns.
pub const DEFAULT_SLACK_NS: u64 = 50_000;

/// Sets how late the calling thread and its children may wake from a sleep.
pub fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: a plain system call on this thread.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) })?;
    Ok(())
}

/// Sets how many files the process may have open.
pub fn raise_file_limit(files: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: files,
        rlim_max: files,
    };
    // SAFETY: `limit` is valid.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    Ok(())
}

/// ioprio_set(2).
pub fn ioprio_set(which: libc::c_int, who: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: a plain system call.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, which, who, value) };
    check(result as libc::c_int)?;
    Ok(())
}

/// The calling thread's ID.
pub fn thread_id() -> libc::pid_t {
    // SAFETY: a plain system call.
    unsafe { libc::gettid() }
}

/// Ends the process at once: no destructors, no handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns.
    unsafe { libc::_exit(code) }
}

/// Makes `to` another descriptor of what `from` is.
pub fn dup_over(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: dup2 checks both numbers.
    check(unsafe { libc::dup2(from, to) })?;
    Ok(())
}

/// An eventfd that never blocks.
pub fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Adds one to an eventfd.
pub fn eventfd_signal(fd: RawFd) {
    let one: u64 = 1;
    // SAFETY: eight valid bytes; the counter cannot overflow in a run's life.
    unsafe { libc::write(fd, (&one as *const u64).cast(), 8) };
}

/// Empties an eventfd or signalfd.
pub fn drain(fd: RawFd) {
    let mut buffer = [0u8; 512];
    // SAFETY: the buffer is valid; both kinds of descriptor are non-blocking.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

fn child_signal_set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        set
    }
}

/// SIGCHLD, blocked, with a descriptor that becomes readable when a child changes state.
///
/// A thread in which the signal is not blocked takes it, and the descriptor tells nobody. Who
/// starts a thread has one of these first: threads inherit the mask.
pub struct ChildSignal(OwnedFd);

impl ChildSignal {
    /// Blocks the signal in the calling thread.
    pub fn block() -> io::Result<ChildSignal> {
        let set = child_signal_set();
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised; the new descriptor is owned by nobody else.
        unsafe {
            check(libc::sigprocmask(
                libc::SIG_BLOCK,
                &set,
                std::ptr::null_mut(),
            ))?;
            let fd = check(libc::signalfd(-1, &set, flags))?;
            Ok(ChildSignal(OwnedFd::from_raw_fd(fd)))
        }
    }
}

impl AsRawFd for ChildSignal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Undoes [`ChildSignal::block`] in a child.
pub fn unblock_child_signal() {
    let set = child_signal_set();
    // SAFETY: the set is initialised.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
}

/// A timer that makes its descriptor readable. poll(2)'s own timeout may be 0.1 % late.
pub fn timerfd() -> io::Result<OwnedFd> {
    let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
    // SAFETY: the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sets a timer to go off when CLOCK_MONOTONIC shows `ns`, or at once if it is past.
pub fn timerfd_set(fd: RawFd, ns: u64) {
    let time = libc::itimerspec {
        it_interval: timespec(0),
        it_value: timespec(ns.max(1)),
    };
    // SAFETY: `time` is valid; nobody wants the old setting.
    unsafe {
        libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

/// Sleeps until one of `fds` is readable.
pub fn wait_readable(fds: &[RawFd]) {
    let mut polls: Vec<libc::pollfd> = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: the array is valid.
    unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, -1) };
}

/// Reaps one ended child, if there is one: its PID and raw wait status.
pub fn reap() -> Option<(libc::pid_t, i32)> {
    let mut status = 0;
    // SAFETY: `status` is valid.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// The PID of an ended child that has not been reaped, if there is one.
pub fn peek_ended() -> Option<libc::pid_t> {
    // SAFETY: `info` is valid; with WNOHANG a PID of 0 says that nobody has ended.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let result = libc::waitid(libc::P_ALL, 0, &mut info, flags);
        (result == 0 && info.si_pid() > 0).then(|| info.si_pid())
    }
}

/// Sends a signal to a process group.
pub fn kill_group(group: libc::pid_t, signal: libc::c_int) {
    // SAFETY: kill(2) takes any numbers; a group that is gone is no error here.
    unsafe { libc::kill(-group, signal) };
}

/// Asks a process to end.
pub fn terminate(pid: u32) {
    // SAFETY: kill(2) takes any numbers; a process that is gone is no error here.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGTERM) };
}

/// Kills every process but the caller.
pub fn kill_all() {
    // SAFETY: kill(2) takes any numbers.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Powers the machine off without a sync.
pub fn power_off_now() -> ! {
    // SAFETY: reboot(2) with a valid command; it does not return for PID 1 or another root task.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF) };
    loop {
        sleep_ns(1_000_000_000);
    }
}

/// Zeroed memory by mmap(2): page-aligned, and shared with later forks where asked.
pub struct Area {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the area is plain memory; users put atomics in a shared one and own a private one.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    fn map(bytes: usize, prot: i32, flags: i32, fd: RawFd, offset: u64) -> io::Result<Area> {
        let bytes = bytes.max(1);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                prot,
                flags,
                fd,
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Area {
            start: start.cast(),
            bytes,
        })
    }

    /// Memory that a fork shares.
    pub fn shared(bytes: usize) -> io::Result<Area> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        Area::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    }

    /// Memory of this process alone.
    pub fn private(bytes: usize) -> io::Result<Area> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Area::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    }

    /// A file, mapped for reading from its start.
    pub fn of_file(file: &impl AsRawFd, bytes: usize) -> io::Result<Area> {
        let flags = libc::MAP_PRIVATE;
        Area::map(bytes, libc::PROT_READ, flags, file.as_raw_fd(), 0)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Reads one byte, faulting its page in.
    pub fn touch(&self, offset: usize) -> u8 {
        assert!(offset < self.bytes, "touch outside the mapping");
        // SAFETY: inside the mapping; volatile, so that the read happens.
        unsafe { std::ptr::read_volatile(self.start.add(offset)) }
    }

    /// Start of the area.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// The bytes of a private area.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the area is mapped, writable (private or shared) and borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this area's own.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
