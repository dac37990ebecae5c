// SPDX-License-Identifier: GPL-2.0-only
//! Signals: end, and write what the flight recorder has.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static ENDED: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_end(_: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

extern "C" fn on_ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Takes SIGINT, SIGTERM and SIGUSR1. They interrupt a wait.
///
/// # Errors
/// The system says no.
pub fn take() -> io::Result<()> {
    let handlers: [(libc::c_int, extern "C" fn(libc::c_int)); 3] = [
        (libc::SIGINT, on_end),
        (libc::SIGTERM, on_end),
        (libc::SIGUSR1, on_ask),
    ];
    for (signal, handler) in handlers {
        // SAFETY: the handlers only store to atomics; a zeroed `sigaction` has no flags and an empty mask.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// It should end.
pub fn ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

/// It was asked to write; once for each time.
pub fn asked() -> bool {
    ASKED.swap(false, Ordering::Relaxed)
}
