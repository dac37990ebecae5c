// SPDX-License-Identifier: GPL-2.0-only
//! Dialogs of desktop portals count for the app that has asked for them. The window of a file chooser belongs to a
//! backend, `xdg-desktop-portal-gtk` and others, which serves all apps.
//!
//! Who asks is seen on the session's bus: the portal calls its backend with a handle that has the app's connection in it
//! (xdg-desktop-portal, "org.freedesktop.portal.Request"), and when the backend has answered, which it does when the dialog
//! is closed, the portal has the object of this name send `Response` to the app. A monitor of the bus sees both. It asks
//! for the portal's calls that open a window or give one up, for these signals, for changes of the owners of the names,
//! and for calls that set the environment: nothing else wakes it. Answers of backends would: the portal asks them for
//! settings, and what runs in the background, while nobody has asked for anything. A call counts only from the owner of
//! the portal's name to the owner of a backend's. On X11 and in KWin the dialog names its parent besides, and that is
//! followed there.

use crate::bus;
use crate::dialogs::Dialog;
use crate::fault::Fault;
use crate::resolve::Owner;
use crate::source::{Out, Probe, Source};
use crate::window::Window;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use zbus::message::Type;
use zbus::zvariant::{ObjectPath, Structure, Value};
use zbus::{Connection, MatchRule, Message, MessageStream};

/// Interfaces of backends begin with this.
const INTERFACES: &str = "org.freedesktop.impl.portal.";
/// Calls of backends that open a window, all with the handle first: the rest of the interface, and the member.
const DIALOGS: [(&str, &str); 16] = [
    ("Access", "AccessDialog"),
    ("Account", "GetUserInformation"),
    ("AppChooser", "ChooseApplication"),
    ("DynamicLauncher", "PrepareInstall"),
    ("Email", "ComposeEmail"),
    ("FileChooser", "OpenFile"),
    ("FileChooser", "SaveFile"),
    ("FileChooser", "SaveFiles"),
    ("GlobalShortcuts", "BindShortcuts"),
    ("Print", "PreparePrint"),
    ("Print", "Print"),
    ("RemoteDesktop", "Start"),
    ("ScreenCast", "Start"),
    ("Screenshot", "Screenshot"),
    ("Screenshot", "PickColor"),
    ("Wallpaper", "SetWallpaperURI"),
];
/// By which the portal gives a dialog up.
const CLOSE: (&str, &str) = ("Request", "Close");
/// By which the portal tells the app that it has what it has asked for, or not.
const RESPONSE: (&str, &str) = ("org.freedesktop.portal.Request", "Response");
/// The portal's name on the bus.
const PORTAL: &str = "org.freedesktop.portal.Desktop";
/// Calls that set the session's environment, as `dbus-update-activation-environment` does them. `systemctl` has a socket
/// of its own to the user manager.
const SETS: [(&str, &str); 3] = [
    ("org.freedesktop.DBus", "UpdateActivationEnvironment"),
    ("org.freedesktop.systemd1.Manager", "SetEnvironment"),
    ("org.freedesktop.systemd1.Manager", "UnsetAndSetEnvironment"),
];
/// Names of backends on the bus are below this one.
const BACKENDS: &str = "org.freedesktop.impl.portal.desktop";
/// The bus itself, and its signal of a name that has another owner.
const BUS: &str = "org.freedesktop.DBus";
const OWNER: &str = "NameOwnerChanged";
/// Before the connection, with underscores, in a handle.
const HANDLES: &str = "/org/freedesktop/portal/desktop/request/";

/// The connection that has asked, by a handle.
pub fn asker(handle: &str) -> Option<String> {
    let (name, _) = handle.strip_prefix(HANDLES)?.split_once('/')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (bus, number) = name.split_once('_')?;
    (digits(bus) && digits(number)).then(|| format!(":{bus}.{number}"))
}

/// Portals of the session.
pub struct Portals {
    bus: bool,
}

impl Portals {
    /// Where the session has a bus.
    pub fn new(env: &crate::env::Env) -> Portals {
        Portals {
            bus: bus::has_session(env),
        }
    }
}

impl Source for Portals {
    fn name(&self) -> &'static str {
        "portal"
    }

    fn probe(&self) -> Probe {
        match self.bus {
            true => Probe::Yes,
            false => Probe::No("this session has no bus".into()),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let result = bus::runtime()?.block_on(async {
            let asks = Connection::session().await?;
            follow(&asks, Connection::session().await?, out).await
        });
        out.dialogs().clear();
        result
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

/// Owners of the portal's name and of its backends', empty where there is none.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    /// All backends that the bus can start or that run, without their owners.
    async fn all(bus: &Connection) -> Result<Names, Fault> {
        let daemon = zbus::fdo::DBusProxy::new(bus).await?;
        let mut names = daemon.list_activatable_names().await?;
        names.extend(daemon.list_names().await?);
        let names = names.iter().map(ToString::to_string);
        let is_backend = |name: &String| {
            let rest = name.strip_prefix(BACKENDS);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let names = names.filter(is_backend).chain([PORTAL.to_string()]);
        Ok(Names(names.map(|name| (name, String::new())).collect()))
    }

    async fn ask(&mut self, bus: &Connection) -> Result<(), Fault> {
        for (name, owner) in &mut self.0 {
            *owner = bus::owner(bus, name).await?.unwrap_or_default();
        }
        Ok(())
    }

    fn backends(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter(|(name, _)| *name != PORTAL)
    }

    fn is_portal(&self, connection: &str) -> bool {
        self.0.get(PORTAL).is_some_and(|owner| owner == connection)
    }

    /// The connection of a backend, of that or of its name.
    fn backend(&self, to: &str) -> Option<&str> {
        let its = |(name, owner): &(&String, &String)| {
            !owner.is_empty() && (name.as_str() == to || owner.as_str() == to)
        };
        self.backends().find(its).map(|(_, owner)| owner.as_str())
    }
}

/// Follows dialogs by a connection that becomes a monitor; the other one asks whose connections are.
pub async fn follow(asks: &Connection, monitor: Connection, out: &Out) -> Result<(), Fault> {
    let mut names = Names::all(asks).await?;
    let rules = rules()?;
    let mut messages = MessageStream::from(&monitor);
    let proxy = zbus::fdo::MonitoringProxy::new(&monitor).await?;
    proxy.become_monitor(&rules, 0).await?;
    // What changes from here on is in the messages.
    names.ask(asks).await?;
    while let Some(message) = messages.next().await {
        take(asks, &message?, &mut names, out).await?;
    }
    Err(Fault::new("the session's bus has closed"))
}

fn rules() -> Result<Vec<MatchRule<'static>>, Fault> {
    let of = |kind| MatchRule::builder().msg_type(kind);
    let mut rules = Vec::new();
    for (interface, member) in DIALOGS.into_iter().chain([CLOSE]) {
        let rule = of(Type::MethodCall).sender(PORTAL)?;
        let rule = rule.interface(format!("{INTERFACES}{interface}"))?;
        rules.push(rule.member(member)?.build());
    }
    for (interface, member) in SETS {
        let rule = of(Type::MethodCall).interface(interface)?.member(member)?;
        rules.push(rule.build());
    }
    let owner = || of(Type::Signal).sender(BUS)?.interface(BUS)?.member(OWNER);
    rules.push(owner()?.arg(0, PORTAL)?.build());
    rules.push(owner()?.arg0ns(BACKENDS)?.build());
    let response = of(Type::Signal).sender(PORTAL)?.interface(RESPONSE.0)?;
    rules.push(response.member(RESPONSE.1)?.build());
    Ok(rules)
}

async fn take(
    asks: &Connection,
    message: &Message,
    names: &mut Names,
    out: &Out,
) -> Result<(), Fault> {
    let header = message.header();
    let from = header.sender().map_or("", |name| name.as_str());
    let interface = header.interface().map_or("", |name| name.as_str());
    let member = header.member().map_or("", |name| name.as_str());
    match header.message_type() {
        Type::MethodCall if SETS.contains(&(interface, member)) => out.environment(),
        Type::MethodCall if names.is_portal(from) => {
            let call = (interface.strip_prefix(INTERFACES).unwrap_or(""), member);
            if call == CLOSE {
                out.dialogs()
                    .closed(header.path().map_or("", |path| path.as_str()));
            } else if DIALOGS.contains(&call) {
                begin(asks, message, names, out).await;
            }
        }
        Type::Signal if (interface, member) == RESPONSE && names.is_portal(from) => {
            out.dialogs()
                .closed(header.path().map_or("", |path| path.as_str()));
        }
        Type::Signal if (from, interface, member) == (BUS, BUS, OWNER) => {
            let (name, old, new): (String, String, String) = message.body().deserialize()?;
            // A backend that has come since, and that the bus does not start, is not known.
            if let Some(owner) = names.0.get_mut(&name) {
                out.dialogs().left(&old);
                *owner = new;
            }
        }
        Type::MethodCall | Type::Signal | Type::MethodReturn | Type::Error => {}
    }
    Ok(())
}

/// A dialog opens. One of which nobody can tell who has asked stays its backend's.
async fn begin(asks: &Connection, message: &Message, names: &Names, out: &Out) {
    let header = message.header();
    let backend = header
        .destination()
        .and_then(|to| names.backend(to.as_str()));
    let (Some(from), Some(to), Some(handle)) = (header.sender(), backend, handle(message)) else {
        return;
    };
    let Some(asker) = asker(&handle) else {
        return;
    };
    // Any of them may have ended.
    let pids = (
        bus::process(asks, to).await,
        bus::process(asks, &asker).await,
    );
    let (Ok(backend), Ok(pid)) = pids else {
        return;
    };
    if let Owner::App(apps) = out.resolver().owner(&Window::of(pid, "")) {
        out.dialogs().open(Dialog {
            backend,
            to: to.to_string(),
            apps,
            from: from.to_string(),
            handle,
        });
    }
}

/// The first argument of all these calls.
fn handle(message: &Message) -> Option<String> {
    let body = message.body();
    let arguments: Structure<'_> = body.deserialize().ok()?;
    match arguments.fields().first()? {
        Value::ObjectPath(path) => Some(ObjectPath::as_str(path).to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "portal_tests.rs"]
mod tests;
