// SPDX-License-Identifier: GPL-2.0-only
//! logind: whether somebody sits in front of this session. Its hints, and whether it is the active one of its seat.

use crate::bus;
use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use fasttrack_detector::report::Nobody;
use futures_util::StreamExt;
use std::path::Path;
use zbus::zvariant::OwnedObjectPath;
use zbus::{Connection, Proxy};

const LOGIN: &str = "org.freedesktop.login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const SESSION: &str = "org.freedesktop.login1.Session";
const USER: &str = "org.freedesktop.login1.User";
/// The system bus, where nothing else is said.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";

/// A session of logind.
pub struct Logind {
    session: Option<String>,
    bus: bool,
}

impl Logind {
    /// The session of the environment, or the one that the user looks at.
    pub fn new(env: &Env) -> Logind {
        Logind {
            session: env.var("XDG_SESSION_ID").map(str::to_string),
            bus: env.var("DBUS_SYSTEM_BUS_ADDRESS").is_some() || Path::new(SYSTEM_BUS).exists(),
        }
    }
}

impl Source for Logind {
    fn name(&self) -> &'static str {
        "logind"
    }

    fn probe(&self) -> Probe {
        match self.bus {
            true => Probe::Yes,
            false => Probe::No("there is no system bus".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        bus::runtime()?.block_on(follow(self.session.as_deref(), out))
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

async fn follow(id: Option<&str>, out: &Out) -> Result<(), Fault> {
    let bus = Connection::system().await?;
    let mut owners = bus::owners(&bus, LOGIN).await?;
    let path = session(&bus, id, out.resolver().user()).await?;
    let session = bus::proxy(&bus, LOGIN, path.as_str(), SESSION).await?;
    let properties = bus::proxy(
        &bus,
        LOGIN,
        path.as_str(),
        "org.freedesktop.DBus.Properties",
    )
    .await?;
    let mut changes = properties.receive_signal("PropertiesChanged").await?;
    loop {
        // A change may carry the value or only say that there is a new one: it is asked in both cases.
        for (property, why, wanted) in [
            ("Active", Nobody::Inactive, false),
            ("LockedHint", Nobody::Locked, true),
            ("IdleHint", Nobody::Idle, true),
        ] {
            let value: bool = session.get_property(property).await?;
            out.away(why, value == wanted)?;
        }
        tokio::select! {
            change = changes.next() => change.map(drop).ok_or_else(|| Fault::new("the system bus has closed"))?,
            _ = owners.next() => return Err(Fault::new("logind has ended or restarts")),
        }
    }
}

/// A user's service is in no session itself: by the environment, or the one that has the user's display.
async fn session(bus: &Connection, id: Option<&str>, user: u32) -> Result<OwnedObjectPath, Fault> {
    let manager: Proxy = bus::proxy(bus, LOGIN, "/org/freedesktop/login1", MANAGER).await?;
    if let Some(id) = id {
        if let Ok(path) = manager.call("GetSession", &id).await {
            return Ok(path);
        }
    }
    let path: OwnedObjectPath = manager.call("GetUser", &user).await?;
    let user = bus::proxy(bus, LOGIN, path.as_str(), USER).await?;
    let (id, path): (String, OwnedObjectPath) = user.get_property("Display").await?;
    match id.is_empty() {
        true => Err(Fault::new(
            "logind knows no session with a display of this user",
        )),
        false => Ok(path),
    }
}
