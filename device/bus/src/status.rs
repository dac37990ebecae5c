// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon tells.

use crate::WireApp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zbus::zvariant::Type;

/// An app and why it has its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct AppStatus {
    /// Who.
    pub app: WireApp,
    /// `foreground`, `perceptible`, `neutral` or `background`.
    pub class: String,
    /// The rule, in one word.
    pub rule: String,
    /// The rule, as a clause.
    pub why: String,
    /// For how long the rule has held, ms.
    pub for_ms: u64,
    /// Session, as logind names it; empty for what was set by hand.
    pub session: String,
    /// UID of the session's user; zero for what was set by hand.
    pub user: u32,
}

/// A session that an agent has reported for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct SessionStatus {
    /// As logind names it.
    pub session: String,
    /// UID of its user.
    pub user: u32,
    /// Its seat, or empty.
    pub seat: String,
    /// Whether it is the active one of its seat.
    pub active: bool,
    /// Process of its agent.
    pub agent: u32,
    /// Reports taken from it.
    pub reports: u64,
    /// Why nobody is in front in it; empty where somebody is.
    pub quiet: String,
    /// The agent's sources that are in use: first that of the focus.
    pub sources: Vec<String>,
}

/// What the daemon does now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Status {
    /// Version of the daemon.
    pub version: String,
    /// What it does for the app in front: `kernel`, `freezer`, `weights`, `ioprio`, `memory`, `observe`.
    pub rung: String,
    /// Why this and no better one, and what has no effect here: whole sentences.
    pub notes: Vec<String>,
    /// Sessions with an agent.
    pub sessions: Vec<SessionStatus>,
    /// All apps that were spoken of: in front first.
    pub apps: Vec<AppStatus>,
    /// Control groups that are frozen now.
    pub frozen: Vec<String>,
    /// Counters since the daemon began, by name.
    pub counters: BTreeMap<String, u64>,
    /// Errors, each once, with its meaning.
    pub errors: Vec<String>,
}

/// Why an app has its class, and what was done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Explanation {
    /// The app.
    pub app: AppStatus,
    /// What was written for it: whole sentences.
    pub done: Vec<String>,
}

/// What an app has read and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Usage {
    /// Path of its control group.
    pub cgroup: String,
    /// Application id, or the last part of the path.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Bytes read from storage since it began; of its living processes where the group does not count them.
    pub read_bytes: u64,
    /// Bytes written to storage, likewise.
    pub written_bytes: u64,
    /// How often it was frozen.
    pub freezes: u64,
    /// For how long it was frozen in all, ms.
    pub frozen_ms: u64,
}
