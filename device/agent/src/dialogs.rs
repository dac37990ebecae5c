// SPDX-License-Identifier: GPL-2.0-only
//! The desktop portals' dialogs that are open, and for whom each is ([`crate::portal`] finds them).

use crate::resolve::Owner;
use crate::window::Window;
use fasttrack_bus::APPS_MOST;
use fasttrack_detector::report::AppRef;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Dialogs at once at most: an app can ask for more, and the oldest are forgotten.
pub const OPEN_MOST: usize = 32;

/// A dialog that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Process of the backend, which owns the window.
    pub backend: u32,
    /// The backend's connection.
    pub to: String,
    /// Who has asked.
    pub apps: Vec<AppRef>,
    /// The portal's connection, which waits for the answer.
    pub from: String,
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

    /// A connection has ended, or has given its name up: its dialogs are nobody's.
    pub fn left(&self, connection: &str) {
        self.all()
            .retain(|one| one.to != connection && one.from != connection);
    }

    /// One is over, or given up.
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
