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

    /// This connection has closed: the sessions that it spoke for, each while it was active.
    pub fn forget(&self, name: &str) -> Vec<SessionKey> {
        let mut forgotten = Vec::new();
        self.all().retain(|session, agent| {
            let stays = agent != name;
            if !stays {
                forgotten.push(session.clone());
            }
            stays
        });
        forgotten
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionKey, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_agent_frees_all_its_sessions_and_no_other() {
        let session = |id: &str| SessionKey {
            user: 1000,
            seat: "seat0".to_string(),
            id: id.to_string(),
        };
        let agents = Agents::default();
        assert!(agents.hears(&session("12"), ":1.5") && agents.hears(&session("3"), ":1.5"));
        assert!(agents.hears(&session("4"), ":1.6") && !agents.hears(&session("3"), ":1.6"));
        assert_eq!(agents.forget(":1.5"), [session("12"), session("3")]);
        assert!(agents.forget(":1.5").is_empty());
        assert!(agents.hears(&session("3"), ":1.6") && !agents.hears(&session("4"), ":1.5"));
    }
}
