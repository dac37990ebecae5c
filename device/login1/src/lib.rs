// SPDX-License-Identifier: GPL-2.0-only
//! logind, as far as the daemon and the agent ask it: sessions of one seat, in tests and in the lab.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zbus::object_server::SignalEmitter;
use zbus::zvariant::OwnedObjectPath;
use zbus::{fdo, Connection};

const LOGIN: &str = "org.freedesktop.login1";
const MANAGER: &str = "/org/freedesktop/login1";
const SEAT: &str = "seat0";

/// Session, user, name of the user, seat, object.
type Listed = (String, u32, String, String, OwnedObjectPath);

/// The sessions that there are, in the order in which they began.
#[derive(Debug, Clone, Default)]
struct Sessions(Arc<Mutex<Vec<Listed>>>);

impl Sessions {
    fn all(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers for logind on a bus.
#[derive(Debug)]
pub struct Login1 {
    bus: Connection,
    sessions: Sessions,
}

struct Manager {
    sessions: Sessions,
}

#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.freedesktop.login1")]
enum NoSession {
    #[zbus(error)]
    Bus(zbus::Error),
    NoSuchSession(String),
}

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    fn list_sessions(&self) -> Vec<Listed> {
        self.sessions.all().clone()
    }

    fn get_session(&self, id: &str) -> Result<OwnedObjectPath, NoSession> {
        let all = self.sessions.all();
        let found = all.iter().find(|session| session.0 == id);
        let none = || NoSession::NoSuchSession(format!("no session {id}"));
        found.map(|session| session.4.clone()).ok_or_else(none)
    }

    fn get_user(&self, user: u32) -> fdo::Result<OwnedObjectPath> {
        path("user", &user.to_string())
    }

    fn list_inhibitors(&self) -> Vec<(String, String, String, String, u32, u32)> {
        Vec::new()
    }

    #[zbus(property)]
    fn block_inhibited(&self) -> &str {
        ""
    }

    #[zbus(signal)]
    async fn session_removed(
        emitter: &SignalEmitter<'_>,
        id: &str,
        path: OwnedObjectPath,
    ) -> zbus::Result<()>;
}

struct Person {
    user: u32,
    sessions: Sessions,
}

#[zbus::interface(name = "org.freedesktop.login1.User")]
impl Person {
    /// The first session.
    #[zbus(property)]
    fn display(&self) -> fdo::Result<(String, OwnedObjectPath)> {
        let all = self.sessions.all();
        let own = all.iter().find(|session| session.1 == self.user);
        match own {
            Some((id, _, _, _, path)) => Ok((id.clone(), path.clone())),
            None => Err(fdo::Error::Failed("no session".to_string())),
        }
    }
}

struct Session {
    active: bool,
    remote: bool,
}

#[zbus::interface(name = "org.freedesktop.login1.Session")]
impl Session {
    #[zbus(property)]
    fn active(&self) -> bool {
        self.active
    }

    #[zbus(property)]
    fn remote(&self) -> bool {
        self.remote
    }

    #[zbus(property)]
    fn locked_hint(&self) -> bool {
        false
    }

    #[zbus(property)]
    fn idle_hint(&self) -> bool {
        false
    }

    #[zbus(property)]
    fn class(&self) -> &str {
        "user"
    }

    #[zbus(property, name = "Type")]
    fn kind(&self) -> &str {
        "wayland"
    }
}

fn path(kind: &str, name: &str) -> fdo::Result<OwnedObjectPath> {
    OwnedObjectPath::try_from(format!("{MANAGER}/{kind}/{name}"))
        .map_err(|error| fdo::Error::Failed(error.to_string()))
}

impl Login1 {
    /// Answers on this bus. There is no session yet.
    pub async fn serve(bus: &Connection) -> zbus::Result<Login1> {
        let sessions = Sessions::default();
        let manager = Manager {
            sessions: sessions.clone(),
        };
        bus.object_server().at(MANAGER, manager).await?;
        bus.request_name(LOGIN).await?;
        Ok(Login1 {
            bus: bus.clone(),
            sessions,
        })
    }

    /// A session begins.
    pub async fn add(&self, id: &str, user: u32, active: bool, remote: bool) -> zbus::Result<()> {
        let server = self.bus.object_server();
        let at = path("session", id)?;
        server.at(&at, Session { active, remote }).await?;
        let sessions = self.sessions.clone();
        // There already where the user has another session.
        server
            .at(path("user", &user.to_string())?, Person { user, sessions })
            .await?;
        let (name, seat) = (String::new(), SEAT.to_string());
        self.sessions
            .all()
            .push((id.to_string(), user, name, seat, at));
        Ok(())
    }

    /// A session becomes the active one of its seat, or another one does.
    pub async fn set_active(&self, id: &str, active: bool) -> zbus::Result<()> {
        let server = self.bus.object_server();
        let session = server.interface::<_, Session>(path("session", id)?).await?;
        session.get_mut().await.active = active;
        let now = session.get().await;
        now.active_changed(session.signal_emitter()).await
    }

    /// A session ends.
    pub async fn remove(&self, id: &str) -> zbus::Result<()> {
        self.sessions.all().retain(|session| session.0 != id);
        let at = path("session", id)?;
        let server = self.bus.object_server();
        server.remove::<Session, _>(&at).await?;
        let manager = server.interface::<_, Manager>(MANAGER).await?;
        Manager::session_removed(manager.signal_emitter(), id, at).await
    }
}
