// SPDX-License-Identifier: GPL-2.0-only
//! What every source is: it says whether it can tell here, and then speaks until it ends.
//!
//! A source runs in a thread of its own and blocks: a compositor that hangs or sends half a message holds up its own
//! source and nobody else, and a source with nothing to say costs no wake-up.

use crate::dialogs::Dialogs;
use crate::event::Event;
use crate::fault::Fault;
use crate::resolve::{Owner, Resolver};
use crate::scope::Scoper;
use crate::signs::{Said, Wake};
use crate::window::{Titled, Window};
use fasttrack_bus::APPS_MOST;
use fasttrack_detector::report::{AppRef, Nobody, Report, Sense};
use fasttrack_detector::units;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// First pause before a source that has failed is tried again. A compositor is back within a second.
const PAUSE_LEAST: Duration = Duration::from_millis(100);
/// Longest pause, and how often it is tried: for more than two minutes, then not before a sign ([`crate::signs`]).
const PAUSE_MOST: Duration = Duration::from_secs(30);
const TRIES: u32 = 12;
/// A source that has run for this long was well: the next pause is the first one again.
const WELL: Duration = Duration::from_secs(10);

/// Whether a source can tell, in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It can.
    Yes,
    /// It cannot, and why.
    No(String),
}

/// One source of focus, launch or perceptibility.
pub trait Source: Send {
    /// Its name, as `--source` takes it.
    fn name(&self) -> &'static str;
    /// Whether it can tell here.
    fn probe(&self) -> Probe;
    /// Speaks until it has nothing more to say, or fails.
    fn run(&mut self, out: &Out) -> Result<(), Fault>;
    /// The windows that are open, each with its title, asked for anew: no source keeps titles.
    fn titled(&self) -> Result<Vec<Titled>, Fault> {
        Err(Fault(format!("{} tells no titles of windows", self.name())))
    }
    /// Whether its failure leaves nobody in front.
    fn tells_focus(&self) -> bool {
        true
    }
}

/// Where a source speaks to.
#[derive(Clone)]
pub struct Out {
    name: &'static str,
    resolver: Resolver,
    scoper: Option<Arc<dyn Scoper>>,
    dialogs: Dialogs,
    wake: Option<Wake>,
    /// The windows that have the focus, where a source has told windows. Who tells the focus has it while it does.
    front: Arc<Mutex<Vec<Window>>>,
    /// The number of the source that may tell the focus, and this one's; zero for all others.
    alone: Arc<Mutex<u64>>,
    number: u64,
    to: SyncSender<Event>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Out {
    /// For the source of this name.
    pub fn new(name: &'static str, resolver: Resolver, to: SyncSender<Event>) -> Out {
        Out {
            name,
            resolver,
            scoper: None,
            dialogs: Dialogs::default(),
            wake: None,
            front: Arc::default(),
            alone: Arc::default(),
            number: 0,
            to,
        }
    }

    /// With somebody who splits a session's scope.
    pub fn with_scoper(mut self, scoper: Option<Arc<dyn Scoper>>) -> Out {
        self.scoper = scoper;
        self
    }

    /// With somebody who waits for signs.
    pub fn with_wake(mut self, wake: Wake) -> Out {
        self.wake = Some(wake);
        self
    }

    /// For a source of focus with this number, not zero. One that had it so far tells nothing more.
    pub fn alone(mut self, number: u64) -> Out {
        *self.turn() = number;
        self.number = number;
        self
    }

    fn turn(&self) -> MutexGuard<'_, u64> {
        lock(&self.alone)
    }

    /// The session's environment was set.
    pub fn environment(&self) {
        if let Some(wake) = &self.wake {
            wake.say(Said::Environment);
        }
    }

    /// For another source.
    pub fn renamed(&self, name: &'static str) -> Out {
        Out {
            name,
            ..self.clone()
        }
    }

    /// Finds owners of windows.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The portals' dialogs that are open.
    pub fn dialogs(&self) -> &Dialogs {
        &self.dialogs
    }

    /// These windows have the focus; more than one where the screen is shared.
    pub fn front(&self, windows: &[Window]) -> Result<(), Fault> {
        let mut front = lock(&self.front);
        self.owners(windows)?;
        *front = windows.to_vec();
        Ok(())
    }

    /// The same windows have it, and their apps have got another group.
    pub fn front_again(&self) -> Result<(), Fault> {
        let front = lock(&self.front);
        match front.is_empty() {
            true => Ok(()),
            false => self.owners(&front),
        }
    }

    fn owners(&self, windows: &[Window]) -> Result<(), Fault> {
        let mut apps: Vec<AppRef> = Vec::new();
        let mut parts = Vec::new();
        let mut unknown = Vec::new();
        for window in windows {
            match self.owner(window) {
                Owner::App(more) => {
                    let mut more = more.into_iter();
                    apps.extend(more.next());
                    parts.extend(more);
                }
                Owner::Ambiguous(mut many) => {
                    many.truncate(APPS_MOST);
                    return self.say(Event::Focus(Report::Ambiguous(many)));
                }
                Owner::Unknown(why) => unknown.push(why),
            }
        }
        for why in unknown {
            self.say(Event::Unknown {
                source: self.name,
                why,
            })?;
        }
        // More, and the daemon takes none. The first are the windows' own.
        apps.extend(parts);
        apps.truncate(APPS_MOST);
        self.say(Event::Focus(match apps.is_empty() {
            true => Report::Nobody(Nobody::Unfocused),
            false => Report::Front(apps),
        }))
    }

    /// No window has the focus.
    pub fn nobody(&self) -> Result<(), Fault> {
        self.focus(Report::Nobody(Nobody::Unfocused))
    }

    /// The compositor cannot tell.
    pub fn cannot_tell(&self, compositor: &str) -> Result<(), Fault> {
        self.focus(Report::CannotTell(compositor.to_string()))
    }

    /// Who has the focus, already resolved.
    pub fn focus(&self, report: Report) -> Result<(), Fault> {
        let mut front = lock(&self.front);
        self.say(Event::Focus(report))?;
        front.clear();
        Ok(())
    }

    /// A window has opened.
    pub fn window(&self, window: &Window) -> Result<(), Fault> {
        match self.owner(window) {
            Owner::App(apps) => apps
                .into_iter()
                .try_for_each(|app| self.say(Event::Other(Report::Window(app)))),
            // It is asked again when the window gets the focus, and that says as much.
            Owner::Ambiguous(_) | Owner::Unknown(_) => Ok(()),
        }
    }

    /// An app begins.
    pub fn launch(&self, app: AppRef) -> Result<(), Fault> {
        self.say(Event::Other(Report::Launch(app)))
    }

    /// An app can, or can no longer, be noticed.
    pub fn perceptible(&self, app: AppRef, sense: Sense, on: bool) -> Result<(), Fault> {
        let source = self.name;
        self.say(Event::Sense {
            source,
            app,
            sense,
            on,
        })
    }

    /// Of nothing that this source has said can be noticed the end will be said.
    pub fn deaf(&self) -> Result<(), Fault> {
        self.say(Event::Deaf { source: self.name })
    }

    /// Nobody uses the session, or somebody does again.
    pub fn away(&self, why: Nobody, on: bool) -> Result<(), Fault> {
        self.say(Event::Away {
            source: self.name,
            why,
            on,
        })
    }

    /// Anything else.
    pub fn say(&self, event: Event) -> Result<(), Fault> {
        let gone = |_| Fault::new("the agent ends");
        // Kept while it is sent: or the last word of one that is replaced could come after the first of the next.
        let turn = (self.number > 0).then(|| self.turn());
        if turn.as_ref().is_some_and(|turn| **turn != self.number) {
            return Err(Fault::new("another source tells who has the focus"));
        }
        self.to.send(event).map_err(gone)
    }

    /// An app begins with this process. Where that is in the group of the window manager, which is named, it gets a scope
    /// of its own: that there is a new scope tells the launch. Says whether it has got one.
    pub fn begins(&self, window: &Window, shared: &str) -> Result<bool, Fault> {
        let cgroup = self.resolver.place().cgroup_of(window.pid);
        match cgroup.as_deref() == Some(shared) {
            true => self.split(window),
            false => Ok(false),
        }
    }

    /// The owner, in a scope of its own where a plain window manager has all apps in one.
    /// A dialog of a portal is who has asked for it.
    fn owner(&self, window: &Window) -> Owner {
        if let Some(owner) = self.dialogs.owner(window) {
            return owner;
        }
        let owner = self.resolver.owner(window);
        let shared = match &owner {
            Owner::App(apps) => apps
                .first()
                .is_some_and(|app| units::is_session(&app.cgroup)),
            Owner::Ambiguous(_) | Owner::Unknown(_) => false,
        };
        match shared && window.pid > 0 && self.split(window) == Ok(true) {
            true => self.resolver.owner(window),
            // Its PID still tells the daemon which task it is.
            false => owner,
        }
    }

    fn split(&self, window: &Window) -> Result<bool, Fault> {
        let Some(scoper) = &self.scoper else {
            return Ok(false);
        };
        let Err(why) = scoper.split(&self.resolver, window) else {
            return Ok(true);
        };
        self.say(Event::Unknown {
            source: self.name,
            why: format!("no scope for process {}: {why}", window.pid),
        })?;
        Ok(false)
    }
}

/// How long to wait before a source is tried again.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after a run that lasted so long; none where it is given up.
    pub fn pause(&mut self, ran: Duration) -> Option<Duration> {
        if ran >= WELL {
            self.failures = 0;
        }
        let pause = PAUSE_LEAST.saturating_mul(1 << self.failures.min(16));
        self.failures = (self.failures + 1).min(TRIES + 1);
        (!self.is_over()).then_some(pause.min(PAUSE_MOST))
    }

    /// Whether it is given up.
    pub fn is_over(&self) -> bool {
        self.failures > TRIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_its_bound_and_falls_after_a_good_run() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..40)
            .map_while(|_| backoff.pause(Duration::ZERO))
            .collect();
        assert_eq!(pauses[0], PAUSE_LEAST);
        assert!(pauses.windows(2).all(|two| two[0] <= two[1]));
        assert_eq!(pauses[TRIES as usize - 1..], [PAUSE_MOST]);
        assert!(backoff.is_over());
        assert_eq!(backoff.pause(WELL), Some(PAUSE_LEAST));
    }
}
