// SPDX-License-Identifier: GPL-2.0-only
//! logind: whether somebody sits in front of this session. Its hints, and whether it is the active one of its seat.
//!
//! When the session is over, and the user has no other one on this machine, the agent ends: the user's systemd may live
//! longer, and has a target that ends with the session in some desktops alone.

use crate::bus;
use crate::env::Env;
use crate::event::Event;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use fasttrack_detector::report::Nobody;
use futures_util::StreamExt;
use std::path::Path;
use zbus::zvariant::OwnedObjectPath;
use zbus::{Connection, Proxy};

const LOGIN: &str = "org.freedesktop.login1";
const LOGIN_PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const SESSION: &str = "org.freedesktop.login1.Session";
const USER: &str = "org.freedesktop.login1.User";
/// The error that there is no such session, and the state of one that waits for its last processes.
const NO_SESSION: &str = "org.freedesktop.login1.NoSuchSession";
const CLOSING: &str = "closing";
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
        bus::runtime()?.block_on(async {
            let bus = Connection::system().await?;
            follow(&bus, self.session.as_deref(), out).await
        })
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

/// Follows a session until it is over, and the agent with it unless the user has another one.
async fn follow(bus: &Connection, id: Option<&str>, out: &Out) -> Result<(), Fault> {
    let manager = bus::proxy(bus, LOGIN, LOGIN_PATH, MANAGER).await?;
    let user = out.resolver().user();
    let (id, path) = session(bus, &manager, id, user).await?;
    let end = watch(bus, &manager, &id, &path, out).await;
    if is_over(bus, &manager, &id).await && !has_another(bus, &manager, user).await {
        out.say(Event::End(None))?;
    }
    end
}

/// Tells of a session until that fails, or it has ended.
async fn watch(
    bus: &Connection,
    manager: &Proxy<'_>,
    id: &str,
    path: &OwnedObjectPath,
    out: &Out,
) -> Result<(), Fault> {
    let mut owners = bus::owners(bus, LOGIN).await?;
    let mut removed = manager
        .receive_signal_with_args("SessionRemoved", &[(0, id)])
        .await?;
    let session = bus::proxy(bus, LOGIN, path.as_str(), SESSION).await?;
    let properties =
        bus::proxy(bus, LOGIN, path.as_str(), "org.freedesktop.DBus.Properties").await?;
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
        if is_closing(&session).await {
            return Err(Fault::new("the session has ended"));
        }
        tokio::select! {
            change = changes.next() => change.map(drop).ok_or_else(|| Fault::new("the system bus has closed"))?,
            _ = removed.next() => return Err(Fault::new("the session has ended")),
            _ = owners.next() => return Err(Fault::new("logind has ended or restarts")),
        }
    }
}

/// Its processes may outlive a session, and logind keeps it for them.
async fn is_closing(session: &Proxy<'_>) -> bool {
    let state: Result<String, zbus::Error> = session.get_property("State").await;
    state.is_ok_and(|state| state == CLOSING)
}

async fn is_over(bus: &Connection, manager: &Proxy<'_>, id: &str) -> bool {
    let path: Result<OwnedObjectPath, zbus::Error> = manager.call("GetSession", &id).await;
    match path {
        Ok(path) => match bus::proxy(bus, LOGIN, path.as_str(), SESSION).await {
            Ok(session) => is_closing(&session).await,
            Err(_) => false,
        },
        Err(error) => {
            matches!(&error, zbus::Error::MethodError(name, ..) if name.as_str() == NO_SESSION)
        }
    }
}

/// Whether the user still has a session on this machine.
async fn has_another(bus: &Connection, manager: &Proxy<'_>, user: u32) -> bool {
    let Ok((_, path)) = displayed(bus, manager, user).await else {
        return false;
    };
    let remote: Result<bool, Fault> = async {
        let session = bus::proxy(bus, LOGIN, path.as_str(), SESSION).await?;
        Ok(session.get_property("Remote").await?)
    }
    .await;
    remote == Ok(false)
}

/// A user's service is in no session itself: by the environment, or the one that has the user's display.
async fn session(
    bus: &Connection,
    manager: &Proxy<'_>,
    id: Option<&str>,
    user: u32,
) -> Result<(String, OwnedObjectPath), Fault> {
    if let Some(id) = id {
        // The environment of the user's systemd may have one that is over.
        if let Ok(path) = manager.call("GetSession", &id).await {
            if !is_over(bus, manager, id).await {
                return Ok((id.to_string(), path));
            }
        }
    }
    displayed(bus, manager, user).await
}

/// The session that has the user's display, as logind chooses it: none that is over.
async fn displayed(
    bus: &Connection,
    manager: &Proxy<'_>,
    user: u32,
) -> Result<(String, OwnedObjectPath), Fault> {
    let path: OwnedObjectPath = manager.call("GetUser", &user).await?;
    let user = bus::proxy(bus, LOGIN, path.as_str(), USER).await?;
    let (id, path): (String, OwnedObjectPath) = user.get_property("Display").await?;
    match id.is_empty() {
        true => Err(Fault::new(
            "logind knows no session with a display of this user",
        )),
        false => Ok((id, path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bus::Bus;
    use crate::testing::FakePlace;
    use fasttrack_login1::Login1;
    use std::sync::mpsc::{sync_channel, Receiver};
    use std::time::Duration;

    /// What is said next, not waited for without end.
    async fn next(from: &Receiver<Event>) -> Event {
        for _ in 0..6000 {
            match from.try_recv() {
                Ok(event) => return event,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        panic!("nothing is said");
    }

    /// What is said of a session whose Active is this, in order.
    async fn told(from: &Receiver<Event>, active: bool) {
        for (why, on) in [
            (Nobody::Inactive, !active),
            (Nobody::Locked, false),
            (Nobody::Idle, false),
        ] {
            let source = "logind";
            assert_eq!(next(from).await, Event::Away { source, why, on });
        }
    }

    #[test]
    fn the_agent_ends_with_the_last_session_of_its_user_here() {
        let Some(bus) = Bus::start() else {
            return;
        };
        let (to, from) = sync_channel(64);
        let fake = FakePlace::new();
        let out = Out::new("logind", fake.resolver(), to);
        bus::runtime().expect("a runtime").block_on(async {
            let login = Login1::serve(&bus.connect().await).await.expect("served");
            for (id, active, remote) in [("1", true, false), ("2", false, false), ("3", true, true)]
            {
                let begun = login.add(id, fake.user(), active, remote).await;
                begun.expect("begun");
            }
            let asks = bus.connect().await;
            let follow = || follow(&asks, Some("1"), &out);
            let ends = async |id: &str, active: bool| {
                told(&from, active).await;
                login.set_active(id, !active).await.expect("told");
                told(&from, !active).await;
                login.remove(id).await.expect("ended");
            };
            // The user has another session: that is the next one.
            let (end, ()) = tokio::join!(follow(), ends("1", true));
            assert_eq!(end, Err(Fault::new("the session has ended")));
            // The one that is left is used from elsewhere.
            let (end, ()) = tokio::join!(follow(), ends("2", false));
            assert!(end.is_err());
            assert_eq!(next(&from).await, Event::End(None));
        });
    }
}
