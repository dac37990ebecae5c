// SPDX-License-Identifier: GPL-2.0-only
//! Which apps are in front: a pure function of events and time.
//!
//! A [`Detector`] owns the state of all sessions. Whoever drives it hands it [`Event`]s with the time at which they came,
//! asks it for a [`Decision`], and asks again when [`Detector::deadline`] is over. It reads no clock, no file and no
//! bus, so a test can replay any stream of events.
//!
//! An app's life, as one session sees it:
//!
//! 1. *launching*: it begins and has no window yet. It is in front, beside the app that has the focus.
//! 2. *front*: it has the focus.
//! 3. *lingering*: it has just lost the focus. It is perceptible, so that switching back costs nothing.
//! 4. *behind*: background, as all that nobody speaks of.
//!
//! An app that can be heard or noticed is perceptible whatever it does. Where a session is not the active one of its
//! seat, is locked or idle, nobody is in front in it; where it cannot say who has the focus, nobody but apps that are
//! launching. The foreground is the union over sessions: two seats have two.
//!
//! What it does not do: find out who has the focus (the agent), decide whom to believe, or change anything (the daemon).

pub mod decision;
pub mod detector;
pub mod event;
pub mod group;
mod launch;
pub mod policy;
pub mod report;
mod session;
pub mod units;

pub use decision::{Decision, Quiet, Rule, Verdict};
pub use detector::Detector;
pub use event::{Event, SessionKey, Time};
