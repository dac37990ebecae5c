// SPDX-License-Identifier: GPL-2.0-only
//! What sources tell the agent, which has one owner of state: whoever takes these.

use crate::fault::Fault;
use fasttrack_detector::report::{AppRef, Nobody, Report, Sense};

/// Something that a source has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Who has the focus, as the compositor says.
    Focus(Report),
    /// Nobody uses the session for this reason, or does again.
    Away {
        /// Who says so.
        source: &'static str,
        /// The reason.
        why: Nobody,
        /// Whether it begins or ends.
        on: bool,
    },
    /// A launch or a first window.
    Other(Report),
    /// An app can, or can no longer, be noticed.
    Sense {
        /// Who says so.
        source: &'static str,
        /// The app.
        app: AppRef,
        /// By what.
        sense: Sense,
        /// Whether it begins or ends.
        on: bool,
    },
    /// A source has ended: of what it has said can be noticed, it will not say the end.
    Deaf {
        /// Which.
        source: &'static str,
    },
    /// A window of which nobody can tell whose it is.
    Unknown {
        /// Who says so.
        source: &'static str,
        /// Why.
        why: String,
    },
    /// A source has failed and will be tried again.
    Fault {
        /// Which.
        source: &'static str,
        /// What it means.
        why: String,
    },
    /// Which sources are in use from now on, first that of the focus.
    Sources(Vec<&'static str>),
    /// The daemon has come, or come again: it knows nothing.
    Daemon,
    /// The agent is to end, for this reason if it is a bad one.
    End(Option<Fault>),
}
