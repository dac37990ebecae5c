// SPDX-License-Identifier: GPL-2.0-only
//! Services of the session that say which apps can be noticed. Who keeps the screen awake through the desktop, and not
//! through logind: GNOME's session manager (Cinnamon's and MATE's, too) and KDE's power management. The portal's
//! inhibitions end in one of the two. Both name apps and no processes. And which games are registered with GameMode
//! (gamemoded(8), "D-BUS"), by process.

use crate::bus;
use crate::fault::Fault;
use crate::inhibit;
use crate::resolve::Owner;
use crate::source::Out;
use crate::window::{self, Window};
use fasttrack_detector::report::{AppRef, Sense};
use zbus::zvariant::OwnedObjectPath;
use zbus::{Connection, MatchRule};

/// A service that names apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desktop {
    /// `org.gnome.SessionManager`.
    Gnome,
    /// `org.kde.Solid.PowerManagement.PolicyAgent`.
    Kde,
    /// `com.feralinteractive.GameMode`.
    GameMode,
}

/// All of them.
pub const ALL: [Desktop; 3] = [Desktop::Gnome, Desktop::Kde, Desktop::GameMode];

/// Of GNOME's flags the one that keeps the session from idling.
const IDLE: u32 = 8;
/// Inhibitors that are asked about at most: anybody can make more.
const MOST: usize = 32;

impl Desktop {
    /// Its name on the session's bus.
    pub fn name(self) -> &'static str {
        match self {
            Desktop::Gnome => "org.gnome.SessionManager",
            Desktop::Kde => "org.kde.Solid.PowerManagement.PolicyAgent",
            Desktop::GameMode => "com.feralinteractive.GameMode",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Desktop::Gnome => "/org/gnome/SessionManager",
            Desktop::Kde => "/org/kde/Solid/PowerManagement/PolicyAgent",
            Desktop::GameMode => "/com/feralinteractive/GameMode",
        }
    }

    fn signals(self) -> &'static [&'static str] {
        match self {
            Desktop::Gnome => &["InhibitorAdded", "InhibitorRemoved"],
            Desktop::Kde => &["InhibitionsChanged"],
            Desktop::GameMode => &["GameRegistered", "GameUnregistered"],
        }
    }

    /// By what the apps that it names can be noticed.
    fn sense(self) -> Sense {
        match self {
            Desktop::Gnome | Desktop::Kde => Sense::Inhibitor,
            Desktop::GameMode => Sense::Game,
        }
    }

    /// The one that a signal is of.
    pub fn of_signal(interface: &str, member: &str) -> Option<Desktop> {
        ALL.into_iter()
            .find(|one| one.name() == interface && one.signals().contains(&member))
    }

    /// What the bus has to send for it. No name but its own can send its signals.
    pub fn rules(self) -> Result<Vec<MatchRule<'static>>, Fault> {
        let mut rules = Vec::new();
        for signal in self.signals() {
            let rule = MatchRule::builder()
                .msg_type(zbus::message::Type::Signal)
                .sender(self.name())?
                .interface(self.name())?
                .member(*signal)?;
            rules.push(rule.build());
        }
        Ok(rules)
    }

    /// The apps that it names now.
    pub async fn apps(self, bus: &Connection, out: &Out) -> Result<Vec<AppRef>, Fault> {
        let proxy = bus::proxy(bus, self.name(), self.path(), self.name()).await?;
        let ids = match self {
            Desktop::Gnome => gnome(bus, &proxy).await?,
            Desktop::Kde => {
                let all: Vec<(String, String)> =
                    bus::call_running(&proxy, "ListInhibitions", &()).await?;
                all.into_iter().take(MOST).map(|(who, _)| who).collect()
            }
            Desktop::GameMode => {
                let all: Vec<(i32, OwnedObjectPath)> =
                    bus::call_running(&proxy, "ListGames", &()).await?;
                let pids = all.iter().take(MOST);
                let pids: Vec<u32> = pids.map(|(pid, _)| window::pid((*pid).into())).collect();
                return Ok(inhibit::apps(&pids, out));
            }
        };
        Ok(apps(&ids, out))
    }
}

async fn gnome(bus: &Connection, manager: &zbus::Proxy<'_>) -> Result<Vec<String>, Fault> {
    let all: Vec<OwnedObjectPath> = bus::call_running(manager, "GetInhibitors", &()).await?;
    let mut ids = Vec::new();
    for path in all.iter().take(MOST) {
        let interface = "org.gnome.SessionManager.Inhibitor";
        let one = bus::proxy(bus, Desktop::Gnome.name(), path.as_str(), interface).await?;
        // One that has ended meanwhile has no flags.
        let flags: Result<u32, Fault> = bus::call_running(&one, "GetFlags", &()).await;
        if flags.is_ok_and(|flags| flags & IDLE != 0) {
            ids.extend(bus::call_running::<_, String>(&one, "GetAppId", &()).await);
        }
    }
    Ok(ids)
}

/// The apps of these ids, each once. An id that no app or several have is left out.
fn apps(ids: &[String], out: &Out) -> Vec<AppRef> {
    let mut found: Vec<AppRef> = Vec::new();
    for id in ids {
        // Some say their desktop file's name.
        let id = id.trim_end_matches(".desktop");
        if let Owner::App(more) = out.resolver().owner(&Window::of(0, id)) {
            let new = |app: &AppRef| !found.iter().any(|one| one.inode == app.inode);
            let more: Vec<AppRef> = more.into_iter().filter(new).collect();
            found.extend(more);
        }
    }
    found
}

/// What is known of all.
#[derive(Debug, Default)]
pub struct Named {
    known: [Vec<AppRef>; ALL.len()],
}

impl Named {
    /// Asks one of them, and tells what has changed. One that does not run names nobody.
    pub async fn look(&mut self, of: Desktop, bus: &Connection, out: &Out) -> Result<(), Fault> {
        let now = match bus::owner(bus, of.name()).await? {
            Some(_) => of.apps(bus, out).await?,
            None => Vec::new(),
        };
        let known = &mut self.known[of as usize];
        let before = std::mem::replace(known, now);
        inhibit::tell(&before, known, of.sense(), out)
    }
}

#[cfg(test)]
#[path = "desktop_tests.rs"]
mod tests;
