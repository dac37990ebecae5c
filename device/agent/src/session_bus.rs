// SPDX-License-Identifier: GPL-2.0-only
//! What the session's bus says: new units of the user manager, apps that it starts itself, screen savers and whether
//! Mutter has switched the screen off, input methods, the desktop's inhibitors, GameMode's games.
//! One thread for all; the bus wakes it for nothing else, but for who asks for titles of windows
//! ([`crate::titles`]).

use crate::activation::{self, Activation};
use crate::bus;
use crate::desktop::{self, Desktop, Named};
use crate::env::Env;
use crate::event::Event;
use crate::fault::Fault;
use crate::inhibit;
use crate::launch;
use crate::source::{Out, Probe, Source};
use crate::titles::{self, Sources};
use fasttrack_detector::report::{AppRef, Nobody, Sense};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use zbus::zvariant::OwnedObjectPath;
use zbus::{Connection, MatchRule, Message, MessageStream};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
/// Interfaces of screen savers, which all have `ActiveChanged`.
const SAVERS: [&str; 4] = [
    "org.gnome.ScreenSaver",
    "org.freedesktop.ScreenSaver",
    "org.cinnamon.ScreenSaver",
    "org.mate.ScreenSaver",
];
/// Connections of them that are remembered: anybody can send their signal.
const SAVERS_MOST: usize = 16;
/// Mutter's object with the property `PowerSaveMode`: 0 while the screen is on.
const MUTTER: &str = "org.gnome.Mutter.DisplayConfig";
const MUTTER_PATH: &str = "/org/gnome/Mutter/DisplayConfig";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// Names of input methods and of keyboards on the screen.
const INPUTS: [&str; 7] = [
    "org.fcitx.Fcitx5",
    "org.fcitx.Fcitx-0",
    "org.freedesktop.IBus",
    "org.freedesktop.portal.IBus",
    "org.maliit.server",
    "org.onboard.Onboard",
    "sm.puri.OSK0",
];

/// A session's bus.
pub struct SessionBus {
    env: Env,
    sources: Sources,
}

impl SessionBus {
    /// Of the environment; windows' titles are asked of these sources.
    pub fn new(env: &Env, sources: Sources) -> SessionBus {
        SessionBus {
            env: env.clone(),
            sources,
        }
    }
}

impl Source for SessionBus {
    fn name(&self) -> &'static str {
        "session-bus"
    }

    fn probe(&self) -> Probe {
        match bus::has_session(&self.env) {
            true => Probe::Yes,
            false => Probe::No("this session has no bus".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        bus::runtime()?.block_on(async {
            let listens = Connection::session().await?;
            let asks = Connection::session().await?;
            follow(&listens, &asks, self.sources, &self.env, out).await
        })
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

/// Follows what one connection hears, and asks by another. An answer would wait behind the signals that were not taken
/// yet, of which there is room for some: whoever took one could wait for its answer for ever.
async fn follow(
    listens: &Connection,
    asks: &Connection,
    sources: Sources,
    env: &Env,
    out: &Out,
) -> Result<(), Fault> {
    listen(listens).await?;
    let activation = Activation::listen(listens, env, out).await?;
    if let Err(Fault(why)) = titles::serve(listens, sources, env, out.resolver()).await {
        out.say(Event::Fault {
            source: "titles",
            why,
        })?;
    }
    // From here on nothing is asked by this connection. What was said until now is asked for.
    let mut messages = MessageStream::from(listens);
    let mut session = Session {
        bus: asks.clone(),
        inputs: BTreeMap::new(),
        savers: BTreeSet::new(),
        named: Named::default(),
        activation,
        folders: activation::folders(env),
        out,
    };
    session.units().await;
    for name in INPUTS {
        if let Some(owner) = bus::owner(asks, name).await? {
            session.input(name, &owner).await?;
        }
    }
    for desktop in desktop::ALL {
        session.names(desktop).await?;
    }
    session.screen().await?;
    while let Some(message) = messages.next().await {
        session.take(&message?).await?;
    }
    Err(Fault::new("the session's bus has closed"))
}

async fn listen(bus: &Connection) -> Result<(), Fault> {
    let daemon = zbus::fdo::DBusProxy::new(bus).await?;
    let signal = || MatchRule::builder().msg_type(zbus::message::Type::Signal);
    let unit = signal()
        .sender(SYSTEMD)?
        .interface(MANAGER)?
        .member("UnitNew")?
        .build();
    daemon.add_match_rule(unit).await?;
    for saver in SAVERS {
        daemon
            .add_match_rule(signal().interface(saver)?.member("ActiveChanged")?.build())
            .await?;
    }
    let screen = signal()
        .sender(MUTTER)?
        .path(MUTTER_PATH)?
        .interface(PROPERTIES)?;
    daemon.add_match_rule(screen.build()).await?;
    let changed = || {
        signal()
            .sender("org.freedesktop.DBus")?
            .member("NameOwnerChanged")
    };
    let desktops = desktop::ALL.map(Desktop::name);
    let names = INPUTS.iter().chain(&SAVERS).chain(&[SYSTEMD]);
    for name in names.chain(&desktops) {
        daemon
            .add_match_rule(changed()?.arg(0, *name)?.build())
            .await?;
    }
    for rule in desktop::ALL.into_iter().map(Desktop::rules) {
        for rule in rule? {
            daemon.add_match_rule(rule).await?;
        }
    }
    Ok(())
}

struct Session<'a> {
    /// By which others are asked.
    bus: Connection,
    inputs: BTreeMap<String, Vec<AppRef>>,
    /// Connections of screen savers that cover the screen.
    savers: BTreeSet<String>,
    named: Named,
    activation: Activation,
    /// Of applications.
    folders: Vec<PathBuf>,
    out: &'a Out,
}

impl Session<'_> {
    async fn take(&mut self, message: &Message) -> Result<(), Fault> {
        let header = message.header();
        let (interface, member) = (header.interface(), header.member());
        let interface = interface.map(|name| name.as_str()).unwrap_or_default();
        match (
            interface,
            member.map(|name| name.as_str()).unwrap_or_default(),
        ) {
            (MANAGER, "UnitNew") => {
                let (name, _): (String, OwnedObjectPath) = message.body().deserialize()?;
                self.unit(&name).await
            }
            (saver, "ActiveChanged") if SAVERS.contains(&saver) => {
                let sender = header.sender().map(ToString::to_string);
                self.saver(sender.unwrap_or_default(), message.body().deserialize()?)
            }
            (PROPERTIES, "PropertiesChanged") => self.screen().await,
            ("org.freedesktop.DBus", "NameOwnerChanged") => {
                let (name, before, owner): (String, String, String) =
                    message.body().deserialize()?;
                if let Some(one) = desktop::ALL.into_iter().find(|one| one.name() == name) {
                    return self.names(one).await;
                }
                match name.as_str() {
                    SYSTEMD if !owner.is_empty() => self.units().await,
                    SYSTEMD => {}
                    saver if SAVERS.contains(&saver) => self.saver(before, false)?,
                    input if INPUTS.contains(&input) => self.input(input, &owner).await?,
                    name => {
                        self.activation
                            .owned(&self.bus, name, &owner, self.out)
                            .await?
                    }
                }
                Ok(())
            }
            (interface, member) => match Desktop::of_signal(interface, member) {
                Some(one) => self.names(one).await,
                None => Ok(()),
            },
        }
    }

    /// A screen saver covers the screen, or does not. One that has ended does not, whatever it said last.
    fn saver(&mut self, sender: String, covers: bool) -> Result<(), Fault> {
        match covers {
            true if self.savers.len() < SAVERS_MOST => drop(self.savers.insert(sender)),
            true => {}
            false => drop(self.savers.remove(&sender)),
        }
        self.out.away(Nobody::Locked, !self.savers.is_empty())
    }

    /// Mutter's screen is off, and need not be locked. It does not say when it ends; then the session does, too.
    async fn screen(&mut self) -> Result<(), Fault> {
        if bus::owner(&self.bus, MUTTER).await?.is_none() {
            return Ok(());
        }
        let mutter = bus::proxy(&self.bus, MUTTER, MUTTER_PATH, MUTTER).await?;
        // -1 where it does not know.
        let mode: i32 = mutter.get_property("PowerSaveMode").await.unwrap_or(-1);
        self.out.renamed("screen").away(Nobody::Locked, mode > 0)
    }

    /// A service that answers wrongly is one source of many here: it is told of, and the others go on.
    async fn names(&mut self, of: Desktop) -> Result<(), Fault> {
        match self.named.look(of, &self.bus, self.out).await {
            Ok(()) => Ok(()),
            Err(Fault(why)) => self.out.say(Event::Fault {
                source: of.name(),
                why,
            }),
        }
    }

    /// The manager sends signals to those who have subscribed. Without one, there are no units to hear of.
    async fn units(&self) {
        if let Ok(manager) = bus::user_manager(&self.bus).await {
            let _: Result<(), Fault> = bus::call_running(&manager, "Subscribe", &()).await;
        }
    }

    /// A unit that has ended must not be asked for a property: the manager would load it anew for that, say that there
    /// is a new unit, and be asked again without end. `GetUnit` alone answers of what is loaded.
    async fn unit(&self, name: &str) -> Result<(), Fault> {
        if !launch::is_launch(name, &self.folders) {
            return Ok(());
        }
        let manager = bus::user_manager(&self.bus).await?;
        let Ok(path) = bus::call_running::<_, OwnedObjectPath>(&manager, "GetUnit", &name).await
        else {
            return Ok(());
        };
        let kind = match name.ends_with(".scope") {
            true => "org.freedesktop.systemd1.Scope",
            false => "org.freedesktop.systemd1.Service",
        };
        let unit = bus::proxy(&self.bus, SYSTEMD, path.as_str(), kind).await?;
        // Loaded and not started: it has none.
        match unit.get_property::<String>("ControlGroup").await {
            Ok(cgroup) if !cgroup.is_empty() => launch::begin(&cgroup, self.out),
            _ => Ok(()),
        }
    }

    async fn input(&mut self, name: &str, owner: &str) -> Result<(), Fault> {
        let before = self.inputs.remove(name).unwrap_or_default();
        let pid = match owner {
            "" => None,
            owner => bus::process(&self.bus, owner).await.ok(),
        };
        let pids: Vec<u32> = pid.into_iter().collect();
        let now = inhibit::apps(&pids, self.out);
        inhibit::tell(&before, &now, Sense::Input, self.out)?;
        self.inputs.insert(name.to_string(), now);
        Ok(())
    }
}

#[cfg(test)]
#[path = "session_bus_tests.rs"]
mod tests;
