// SPDX-License-Identifier: GPL-2.0-only
//! The proxies. What the macro makes has no documentation of its own.
#![allow(missing_docs)]

use crate::{Explanation, Status, Usage, WireReport, WireTrouble};

/// The daemon, for those who call it.
#[zbus::proxy(
    interface = "org.fasttrack1.Manager",
    default_service = "org.fasttrack1",
    default_path = "/org/fasttrack1",
    gen_blocking = false
)]
pub trait Manager {
    /// For agents alone: who is in front, who starts, who can be noticed. A daemon that was stopped stays so.
    #[zbus(no_autostart)]
    fn report(&self, report: &WireReport) -> zbus::Result<()>;

    /// For agents alone: what went wrong with one of their sources, and how often.
    #[zbus(no_autostart)]
    fn trouble(&self, trouble: &WireTrouble) -> zbus::Result<()>;

    /// For agents alone: the names of the sources that are in use, first that of the focus.
    #[zbus(no_autostart)]
    fn sources(&self, names: &[&str]) -> zbus::Result<()>;

    /// What the daemon does now.
    fn status(&self) -> zbus::Result<Status>;

    /// Why an app has its class: a PID, a control group's path, or an application id.
    fn explain(&self, what: &str) -> zbus::Result<Explanation>;

    /// All apps that the daemon knows, and what they have read and written.
    fn usage(&self) -> zbus::Result<Vec<Usage>>;

    /// Says by hand who is in front: `set` (nobody else), `add` (these too) or `clear` (as the sessions say).
    fn set_foreground(&self, mode: &str, whom: &[&str]) -> zbus::Result<()>;

    /// Who has which class has changed for the time with this number.
    #[zbus(signal)]
    fn changed(&self, number: u64) -> zbus::Result<()>;
}

/// The agent of a session, on the session's bus.
#[zbus::proxy(
    interface = "org.fasttrack1.Agent",
    default_service = "org.fasttrack1.Agent",
    default_path = "/org/fasttrack1/Agent",
    gen_blocking = false
)]
pub trait Agent {
    /// The control groups of the apps that have a window with this in its title, whatever the case of its letters.
    fn groups_of_title(&self, part: &str) -> zbus::Result<Vec<String>>;
}
