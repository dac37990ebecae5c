// SPDX-License-Identifier: GPL-2.0-only
//! logind, as far as the daemon and the agent ask it: one user, one session, which is active and local.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use zbus::zvariant::OwnedObjectPath;
use zbus::Connection;

const LOGIN: &str = "org.freedesktop.login1";
const MANAGER: &str = "/org/freedesktop/login1";
const SESSION: &str = "/org/freedesktop/login1/session/c1";
const PERSON: &str = "/org/freedesktop/login1/user/user";

type Listed = (String, u32, String, String, OwnedObjectPath);

fn path(text: &str) -> zbus::fdo::Result<OwnedObjectPath> {
    OwnedObjectPath::try_from(text).map_err(|error| zbus::fdo::Error::Failed(error.to_string()))
}

struct Manager {
    user: u32,
}

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    fn list_sessions(&self) -> zbus::fdo::Result<Vec<Listed>> {
        Ok(vec![(
            "c1".into(),
            self.user,
            "user".into(),
            "seat0".into(),
            path(SESSION)?,
        )])
    }

    fn get_user(&self, _user: u32) -> zbus::fdo::Result<OwnedObjectPath> {
        path(PERSON)
    }

    #[zbus(property)]
    fn block_inhibited(&self) -> &str {
        ""
    }

    fn list_inhibitors(&self) -> Vec<(String, String, String, String, u32, u32)> {
        Vec::new()
    }
}

struct Person;

#[zbus::interface(name = "org.freedesktop.login1.User")]
impl Person {
    #[zbus(property)]
    fn display(&self) -> zbus::fdo::Result<(String, OwnedObjectPath)> {
        Ok(("c1".into(), path(SESSION)?))
    }
}

struct Session;

#[zbus::interface(name = "org.freedesktop.login1.Session")]
impl Session {
    #[zbus(property)]
    fn active(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn remote(&self) -> bool {
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

    #[zbus(property)]
    fn locked_hint(&self) -> bool {
        false
    }

    #[zbus(property)]
    fn idle_hint(&self) -> bool {
        false
    }
}

/// Answers on this bus.
pub async fn serve(bus: &Connection, user: u32) -> zbus::Result<()> {
    let server = bus.object_server();
    server.at(MANAGER, Manager { user }).await?;
    server.at(SESSION, Session).await?;
    server.at(PERSON, Person).await?;
    bus.request_name(LOGIN).await
}
