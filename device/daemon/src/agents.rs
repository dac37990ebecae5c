// SPDX-License-Identifier: GPL-2.0-only
//! Which connection of the bus speaks for which session.

use fasttrack_detector::SessionKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Agents by session: who has spoken for it first, of those that are there.
#[derive(Debug, Clone, Default)]
pub struct Agents(Arc<Mutex<BTreeMap<SessionKey, String>>>);

impl Agents {
    /// This connection speaks for a session. Whether it is the one that does: another one has to end before.
    pub fn hears(&self, session: &SessionKey, name: &str) -> bool {
        let mut all = self.all();
        all.entry(session.clone())
            .or_insert_with(|| name.to_string())
            == name
    }

    /// Whether this connection speaks for a session.
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
