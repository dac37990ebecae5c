// SPDX-License-Identifier: GPL-2.0-only
//! logind, as far as the daemon and the agent ask it.

use super::Bus;
use std::sync::{Arc, Mutex};
use zbus::object_server::SignalEmitter;
use zbus::zvariant::OwnedObjectPath;
use zbus::Connection;

const MANAGER: &str = "/org/freedesktop/login1";

type Listed = (String, u32, String, String, OwnedObjectPath);

/// The mock.
pub struct Login1 {
    connection: Connection,
    list: Arc<Mutex<Vec<Listed>>>,
}

struct Manager {
    list: Arc<Mutex<Vec<Listed>>>,
}

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    fn list_sessions(&self) -> Vec<Listed> {
        self.list.lock().expect("no panic").clone()
    }

    fn get_session(&self, id: &str) -> OwnedObjectPath {
        path(id)
    }

    fn list_inhibitors(&self) -> Vec<(String, String, String, String, u32, u32)> {
        Vec::new()
    }

    #[zbus(signal)]
    async fn session_removed(
        emitter: &SignalEmitter<'_>,
        id: &str,
        path: OwnedObjectPath,
    ) -> zbus::Result<()>;
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

fn path(id: &str) -> OwnedObjectPath {
    OwnedObjectPath::try_from(format!("{MANAGER}/session/{id}")).expect("a path")
}

impl Login1 {
    pub async fn start(bus: &Bus) -> Login1 {
        let list = Arc::new(Mutex::new(Vec::new()));
        let connection = bus.connect().await;
        let manager = Manager { list: list.clone() };
        connection
            .object_server()
            .at(MANAGER, manager)
            .await
            .expect("an object");
        connection
            .request_name("org.freedesktop.login1")
            .await
            .expect("a name");
        Login1 { connection, list }
    }

    pub async fn add(&self, id: &str, user: u32, active: bool, remote: bool) {
        let session = Session { active, remote };
        self.connection
            .object_server()
            .at(path(id), session)
            .await
            .expect("an object");
        let listed = (
            id.to_string(),
            user,
            String::new(),
            "seat0".to_string(),
            path(id),
        );
        self.list.lock().expect("no panic").push(listed);
    }

    pub async fn set_active(&self, id: &str, active: bool) {
        let server = self.connection.object_server();
        let session = server
            .interface::<_, Session>(path(id))
            .await
            .expect("a session");
        session.get_mut().await.active = active;
        let emitter = session.signal_emitter();
        session
            .get()
            .await
            .active_changed(emitter)
            .await
            .expect("told");
    }

    pub async fn remove(&self, id: &str) {
        self.list
            .lock()
            .expect("no panic")
            .retain(|session| session.0 != id);
        let server = self.connection.object_server();
        server
            .remove::<Session, _>(path(id))
            .await
            .expect("removed");
        let manager = server
            .interface::<_, Manager>(MANAGER)
            .await
            .expect("a manager");
        Manager::session_removed(manager.signal_emitter(), id, path(id))
            .await
            .expect("told");
    }
}
