// SPDX-License-Identifier: GPL-2.0-only
//! Asks polkit whether somebody may say by hand who is in front.
//!
//! polkit may ask a person, who may never answer. The bus lets a connection have a bounded number of calls without an
//! answer, and then refuses all of them, those to logind too: so few questions are open at a time, and none for ever.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zbus::zvariant::Value;
use zbus::Connection;

const POLKIT: &str = "org.freedesktop.PolicyKit1";
const PATH: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";
const ALLOW_INTERACTION: u32 = 1;

/// How long a person may take to answer: to find a password, and to type it twice.
const PATIENCE: Duration = Duration::from_secs(120);

/// Questions that are open at a time, at most: of each user one. The bus allows 128 calls without an answer.
const OPEN_MOST: usize = 8;

/// Questions to polkit.
#[derive(Debug)]
pub struct Polkit {
    patience: Duration,
    /// Users with an open question.
    open: Mutex<HashSet<u32>>,
    asked: AtomicU64,
}

impl Default for Polkit {
    fn default() -> Polkit {
        Polkit::new(PATIENCE)
    }
}

/// An open question of a user's.
struct Question<'a>(&'a Polkit, u32);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.open().remove(&self.1);
    }
}

impl Polkit {
    /// Questions that may be open for so long.
    pub fn new(patience: Duration) -> Polkit {
        Polkit {
            patience,
            open: Mutex::default(),
            asked: AtomicU64::default(),
        }
    }

    /// Whether the owner of a name on the bus may do this. Root may without being asked.
    pub async fn may(
        &self,
        bus: &Connection,
        name: &str,
        user: u32,
        action: &str,
    ) -> Result<(), String> {
        if user == 0 {
            return Ok(());
        }
        let Some(_question) = self.begin(user) else {
            return Err("polkit is busy: answer its question, or try again later".to_string());
        };
        let id = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        match tokio::time::timeout(self.patience, ask(bus, name, action, &id)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(format!(
                "polkit does not allow you the action {action}: try it as an administrator"
            )),
            Ok(Err(error)) => Err(format!(
                "polkit cannot be asked, so root alone may do this: {error}"
            )),
            Err(_) => {
                // Otherwise the call stays without an answer. Until polkit has taken this, the question counts as open.
                let cancel = "CancelCheckAuthorization";
                let _ = bus
                    .call_method(Some(POLKIT), PATH, Some(INTERFACE), cancel, &(id,))
                    .await;
                Err("nobody has answered polkit's question: try again".to_string())
            }
        }
    }

    fn begin(&self, user: u32) -> Option<Question<'_>> {
        let mut open = self.open();
        (open.len() < OPEN_MOST && open.insert(user)).then(|| Question(self, user))
    }

    fn open(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(bus: &Connection, name: &str, action: &str, id: &str) -> zbus::Result<bool> {
    let subject = (
        "system-bus-name",
        HashMap::from([("name", Value::from(name))]),
    );
    let details: HashMap<&str, &str> = HashMap::new();
    let reply = bus
        .call_method(
            Some(POLKIT),
            PATH,
            Some(INTERFACE),
            "CheckAuthorization",
            &(subject, action, details, ALLOW_INTERACTION, id),
        )
        .await?;
    let (allowed, _, _): (bool, bool, HashMap<String, String>) = reply.body().deserialize()?;
    Ok(allowed)
}
