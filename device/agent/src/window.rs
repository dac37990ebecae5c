// SPDX-License-Identifier: GPL-2.0-only
//! A window as a compositor names it, before it is known which app it belongs to.

/// What a source says of a window. At least one of the two is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Process that owns it; zero where the source cannot tell.
    pub pid: u32,
    /// Wayland application id or X11 class; empty where nobody has said it.
    pub id: String,
}

/// A window and its title.
pub type Titled = (String, Window);

impl Window {
    /// Of a process, with the id where it is said.
    pub fn of(pid: u32, id: impl Into<String>) -> Window {
        Window { pid, id: id.into() }
    }
}

/// A PID as protocols carry it: signed, zero or negative where it is not known.
pub fn pid(number: i64) -> u32 {
    u32::try_from(number)
        .ok()
        .filter(|pid| *pid <= i32::MAX as u32)
        .unwrap_or(0)
}
