// SPDX-License-Identifier: GPL-2.0-only
//! What a detector is told.

use crate::report::{AppRef, Report};
use std::time::Duration;

/// A point of time: since boot, as `CLOCK_BOOTTIME` has it. A change of the date does not move it.
pub type Time = Duration;

/// Names a session: its user, its seat and logind's number of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// UID of the user.
    pub user: u32,
    /// Seat, as logind names it; empty where there is none.
    pub seat: String,
    /// Session, as logind names it.
    pub id: String,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The agent of a session reports.
    Report {
        /// Of which session.
        session: SessionKey,
        /// What it says.
        report: Report,
    },
    /// logind says that a session is, or is no longer, the active one of its seat.
    Active {
        /// Which session.
        session: SessionKey,
        /// Whether it is.
        active: bool,
    },
    /// A session, or its agent, has ended: all that it has said is void.
    SessionGone(SessionKey),
    /// A control group has ended, or is another one now.
    Gone(AppRef),
    /// A task of a launching app waits for storage, or has done so a moment ago.
    Wait(AppRef),
    /// An administrator says who is in front.
    ByHand {
        /// Nobody else is in front; otherwise these are in front too.
        only: bool,
        /// Who; none, and not `only`, means that sessions alone decide.
        apps: Vec<AppRef>,
    },
    /// Nothing but time has passed.
    Tick,
}
