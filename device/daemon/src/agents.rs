// SPDX-License-Identifier: GPL-2.0-only
//! Which connection of the bus speaks for which session.

use fasttrack_detector::SessionKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Agents by session: who has spoken for it last.
#[derive(Debug, Clone, Default)]
pub struct Agents(Arc<Mutex<BTreeMap<SessionKey, String>>>);

impl Agents {
    /// This connection has spoken for a session.
    pub fn heard(&self, session: &SessionKey, name: &str) {
        self.all().insert(session.clone(), name.to_string());
    }

    /// Whether this connection has spoken for a session last.
    pub fn has(&self, name: &str) -> bool {
        self.all().values().any(|agent| agent == name)
    }

    /// This connection has closed: its session, if it was an agent.
    pub fn forget(&self, name: &str) -> Option<SessionKey> {
        let mut all = self.all();
        let session = all.iter().find(|(_, agent)| *agent == name);
        let session = session.map(|(session, _)| session.clone())?;
        all.remove(&session);
        Some(session)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionKey, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
