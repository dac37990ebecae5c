// SPDX-License-Identifier: GPL-2.0-only
//! System calls and the processor's counter, each behind a safe function.

use std::ffi::CString;
use std::io;
use std::path::Path;

/// Size of a page and of an operation, bytes.
pub const PAGE: usize = 4096;

/// Instructions that the guest has executed, in its counting mode.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has it, and the kernel forbids it to nobody.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ticks of a loop of so many turns, of two instructions each.
pub fn turns(loops: u64) -> u64 {
    let begin = ticks();
    // SAFETY: changes a register and the flags alone.
    unsafe {
        core::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) loops => _, options(nomem, nostack));
    }
    ticks() - begin
}

/// Turns a system call's -1 into its errno.
pub fn check(result: i64) -> io::Result<i64> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// mount(2).
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> io::Result<()> {
    let words = [source, target, kind, options].map(|word| CString::new(word).expect("no NUL"));
    let [source, target, kind, options] = &words;
    // SAFETY: four strings that live as long as the call.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        )
    };
    check(done.into()).map(drop)
}

/// Writes a file of the kernel's by one write(2); an error names it.
pub fn write(path: &Path, value: &str) -> Result<(), String> {
    std::fs::write(path, value).map_err(|error| format!("{} = {value}: {error}", path.display()))
}

/// New memory, of whole pages and aligned to them, that is filled and stays for good.
pub fn memory(bytes: usize) -> io::Result<&'static mut [u8]> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, where the kernel likes.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has so many bytes, all zero, and nobody else knows it.
    let memory = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), bytes) };
    memory.fill(b'y');
    Ok(memory)
}

/// How often this task has gone to sleep.
pub fn sleeps() -> i64 {
    // SAFETY: all zeros is a valid rusage, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nvcsw
    }
}

/// Ends the guest. Without ACPI a reset is the only way out; QEMU does not boot again.
pub fn reset() -> ! {
    // SAFETY: no arguments.
    unsafe { libc::sync() };
    let _ = std::fs::write("/proc/sysrq-trigger", "b");
    loop {
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
}
