// SPDX-License-Identifier: GPL-2.0-only
//! All that reaches the owner of the state, in one type.

use crate::coexist::Found;
use crate::freezable;
use fasttrack_bus::{Explanation, Status, Usage, WireTrouble};
use fasttrack_detector::report::Report;
use fasttrack_detector::SessionKey;
use std::time::Duration;
use tokio::sync::oneshot;

/// How an administrator says who is in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// These and nobody else.
    Set,
    /// These, too.
    Add,
    /// As the sessions say.
    Clear,
}

impl Mode {
    /// Of its word on the bus.
    pub fn parse(word: &str) -> Option<Mode> {
        match word {
            "set" => Some(Mode::Set),
            "add" => Some(Mode::Add),
            "clear" => Some(Mode::Clear),
            _ => None,
        }
    }
}

/// Something that has happened. Whoever sends one has checked who says it.
#[derive(Debug)]
pub enum Input {
    /// The agent of a session reports.
    Report {
        /// Of which session.
        session: SessionKey,
        /// The agent's process.
        agent: u32,
        /// When the message came.
        received: Duration,
        /// What it says.
        report: Report,
        /// Gets why it was refused.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// A source of a session's agent has had trouble.
    Source(SessionKey, u32, WireTrouble),
    /// The sources that a session's agent uses.
    Sources(SessionKey, u32, Vec<String>),
    /// A message was refused before it was a report: a short name, and what it means.
    Refused(&'static str, String),
    /// So many messages were dropped before they were read.
    Unread(u64),
    /// logind says which session is the active one of its seat.
    Active(SessionKey, bool),
    /// A session, or its agent, has ended.
    SessionGone(SessionKey),
    /// An administrator says who is in front: PIDs or paths of control groups.
    ByHand(Mode, Vec<String>, oneshot::Sender<Result<(), String>>),
    /// Somebody asks what the daemon does.
    Status(oneshot::Sender<Status>),
    /// Somebody asks why an app has its class.
    Explain(String, oneshot::Sender<Result<Explanation, String>>),
    /// Somebody asks what apps have read and written.
    Usage(oneshot::Sender<Vec<Usage>>),
    /// The I/O pressure of an app in front has grown.
    Pressure,
    /// A look for groups that may be frozen was made.
    Freezable(freezable::Found),
    /// The battery is to be saved, or no longer.
    Saver(bool),
    /// Programs that do similar things were found.
    Coexist(Vec<Found>),
    /// The connection to the bus has ended.
    BusGone,
    /// A bus or a service of the system cannot be used: a short name, and what it means.
    Trouble(&'static str, String),
}
