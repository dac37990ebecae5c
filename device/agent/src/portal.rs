// SPDX-License-Identifier: GPL-2.0-only
//! Dialogs of desktop portals count for the app that has asked for them. The window of a file chooser belongs to a
//! backend, `xdg-desktop-portal-gtk` and others, which serves all apps.
//!
//! Who asks is seen on the session's bus: the portal calls its backend with a handle that has the app's connection in it
//! (xdg-desktop-portal, "org.freedesktop.portal.Request"), and the backend answers when the dialog is closed. Both are
//! seen by a monitor of the bus that asks for these few messages alone, so nothing else wakes it. On X11 and in KWin the
//! dialog names its parent besides, and that is followed there.

use crate::bus;
use crate::resolve::Owner;
use crate::source::{Fault, Out, Probe, Source};
use crate::window::Window;
use fasttrack_bus::APPS_MOST;
use fasttrack_detector::report::AppRef;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zbus::message::Type;
use zbus::zvariant::{ObjectPath, Structure, Value};
use zbus::{Connection, MatchRule, Message, MessageStream};

/// Interfaces of backends whose calls open a window.
const DIALOGS: [&str; 12] = [
    "org.freedesktop.impl.portal.Access",
    "org.freedesktop.impl.portal.Account",
    "org.freedesktop.impl.portal.AppChooser",
    "org.freedesktop.impl.portal.DynamicLauncher",
    "org.freedesktop.impl.portal.Email",
    "org.freedesktop.impl.portal.FileChooser",
    "org.freedesktop.impl.portal.GlobalShortcuts",
    "org.freedesktop.impl.portal.Print",
    "org.freedesktop.impl.portal.RemoteDesktop",
    "org.freedesktop.impl.portal.ScreenCast",
    "org.freedesktop.impl.portal.Screenshot",
    "org.freedesktop.impl.portal.Wallpaper",
];
/// By which the portal gives a dialog up.
const REQUEST: &str = "org.freedesktop.impl.portal.Request";
/// Calls that set the session's environment, as `dbus-update-activation-environment` does them. `systemctl` has a socket
/// of its own to the user manager.
const SETS: [(&str, &str); 3] = [
    ("org.freedesktop.DBus", "UpdateActivationEnvironment"),
    ("org.freedesktop.systemd1.Manager", "SetEnvironment"),
    ("org.freedesktop.systemd1.Manager", "UnsetAndSetEnvironment"),
];
/// Names of backends on the bus begin with this.
const BACKENDS: &str = "org.freedesktop.impl.portal.desktop.";
/// Before the connection, with underscores, in a handle.
const HANDLES: &str = "/org/freedesktop/portal/desktop/request/";
/// Dialogs at once at most: an app can ask for more, and the oldest are forgotten.
const OPEN_MOST: usize = 32;

/// The connection that has asked, by a handle.
pub fn asker(handle: &str) -> Option<String> {
    let (name, _) = handle.strip_prefix(HANDLES)?.split_once('/')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (bus, number) = name.split_once('_')?;
    (digits(bus) && digits(number)).then(|| format!(":{bus}.{number}"))
}

/// A dialog that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Process of the backend, which owns the window.
    pub backend: u32,
    /// Who has asked.
    pub apps: Vec<AppRef>,
    /// The connection that waits for the answer, and the number of its call.
    pub call: (String, u32),
    /// The portal's name of it.
    pub handle: String,
}

/// All dialogs that are open. Sources of focus ask here.
#[derive(Debug, Clone, Default)]
pub struct Dialogs(Arc<Mutex<Vec<Dialog>>>);

impl Dialogs {
    /// One opens.
    pub fn open(&self, dialog: Dialog) {
        let mut all = self.all();
        if all.len() >= OPEN_MOST {
            all.remove(0);
        }
        all.push(dialog);
    }

    /// The call of one was answered.
    pub fn answered(&self, to: &str, number: u32) {
        let other = |one: &Dialog| one.call.0 != to || one.call.1 != number;
        self.all().retain(other);
    }

    /// One is given up.
    pub fn closed(&self, handle: &str) {
        self.all().retain(|one| one.handle != handle);
    }

    /// Nothing is known any more.
    pub fn clear(&self) {
        self.all().clear();
    }

    /// The backends that have one open.
    pub fn backends(&self) -> Vec<u32> {
        self.all().iter().map(|one| one.backend).collect()
    }

    /// For whom a window of a backend is; none where it is no dialog. Several who ask at once cannot be told apart.
    pub fn owner(&self, window: &Window) -> Option<Owner> {
        let portal = |id: &str| id.contains("desktop-portal") || id.contains("desktop.portal");
        let mut found: Vec<Vec<AppRef>> = Vec::new();
        for dialog in self.all().iter() {
            let its = match window.pid {
                0 => portal(&window.id),
                pid => pid == dialog.backend,
            };
            if its && !found.contains(&dialog.apps) {
                found.push(dialog.apps.clone());
            }
        }
        match found.len() {
            0 => None,
            1 => found.pop().map(Owner::App),
            _ => {
                let mut all = found.concat();
                all.truncate(APPS_MOST);
                Some(Owner::Ambiguous(all))
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Dialog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Follows dialogs by a connection that becomes a monitor; the other one asks whose connections are.
pub async fn follow(asks: &Connection, monitor: Connection, out: &Out) -> Result<(), Fault> {
    let rules = rules(asks).await?;
    let mut messages = MessageStream::from(&monitor);
    let proxy = zbus::fdo::MonitoringProxy::new(&monitor).await?;
    proxy.become_monitor(&rules, 0).await?;
    while let Some(message) = messages.next().await {
        take(asks, &message?, out).await?;
    }
    Err(Fault::new("the session's bus has closed"))
}

async fn rules(bus: &Connection) -> Result<Vec<MatchRule<'static>>, Fault> {
    let of = |kind| MatchRule::builder().msg_type(kind);
    let mut rules = Vec::new();
    for interface in DIALOGS.iter().chain(&[REQUEST]) {
        rules.push(of(Type::MethodCall).interface(*interface)?.build());
    }
    for (interface, member) in SETS {
        let rule = of(Type::MethodCall).interface(interface)?.member(member)?;
        rules.push(rule.build());
    }
    let daemon = zbus::fdo::DBusProxy::new(bus).await?;
    let mut names = daemon.list_activatable_names().await?;
    names.extend(daemon.list_names().await?);
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.retain(|name| name.starts_with(BACKENDS));
    names.sort();
    names.dedup();
    for name in names {
        for kind in [Type::MethodReturn, Type::Error] {
            rules.push(of(kind).sender(name.clone())?.build());
        }
    }
    Ok(rules)
}

async fn take(asks: &Connection, message: &Message, out: &Out) -> Result<(), Fault> {
    let header = message.header();
    let text = |name: Option<&str>| name.unwrap_or_default().to_string();
    match header.message_type() {
        Type::MethodCall => {
            let interface = text(header.interface().map(|name| name.as_str()));
            if interface == REQUEST {
                out.dialogs()
                    .closed(header.path().map_or("", |path| path.as_str()));
            } else if SETS.iter().any(|(one, _)| *one == interface) {
                out.environment();
            } else if DIALOGS.contains(&interface.as_str()) {
                begin(asks, message, out).await?;
            }
        }
        Type::MethodReturn | Type::Error => {
            let to = text(header.destination().map(|name| name.as_str()));
            if let Some(number) = header.reply_serial() {
                out.dialogs().answered(&to, number.get());
            }
        }
        Type::Signal => {}
    }
    Ok(())
}

/// A dialog opens. One of which nobody can tell who has asked stays its backend's.
async fn begin(asks: &Connection, message: &Message, out: &Out) -> Result<(), Fault> {
    let header = message.header();
    let handle = handle(message);
    let (Some(from), Some(to), Some(handle)) = (header.sender(), header.destination(), handle)
    else {
        return Ok(());
    };
    let Some(asker) = asker(&handle) else {
        return Ok(());
    };
    // Any of them may have ended.
    let pids = (
        bus::process(asks, to.as_str()).await,
        bus::process(asks, &asker).await,
    );
    let (Ok(backend), Ok(pid)) = pids else {
        return Ok(());
    };
    if let Owner::App(apps) = out.resolver().owner(&Window::of(pid, "")) {
        out.dialogs().open(Dialog {
            backend,
            apps,
            call: (
                from.to_string(),
                message.primary_header().serial_num().get(),
            ),
            handle,
        });
    }
    Ok(())
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
