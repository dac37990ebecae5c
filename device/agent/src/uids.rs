// SPDX-License-Identifier: GPL-2.0-only
//! Android's UIDs: whose each is, and, of their processes' states, which are in front and which can be noticed.
//! Pure functions.
//!
//! A UID's own state counts. Several apps have `TOP` on a split screen, and of each user that is shown; packages that
//! share a UID are one app. An SDK's sandbox and an isolated process have UIDs of their own, and are in front while they
//! work for what is: their state is then `BOUND_TOP`. A service in the foreground is perceptible.

use crate::binder::{Call, State};
use crate::place::Place;
use fasttrack_detector::report::AppRef;
use std::collections::BTreeMap;

/// UIDs of one user: a user's number is what is left of a UID divided by this.
const PER_USER: u32 = 100_000;
/// UIDs at most: a phone has some hundred apps.
const UIDS_MOST: usize = 4096;
/// Where control groups of UIDs are below the root: since Android 15 those of apps are in a folder of their own.
const PLACES: [&str; 2] = ["/apps/uid_", "/uid_"];

/// Whose a UID is, within its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An app's; several packages may share it.
    App,
    /// The sandbox of an app's SDKs: the app's UID, and 10,000 more.
    Sandbox,
    /// An isolated process: it belongs to the app that started it, whose UID is not in its own.
    Isolated,
    /// The system's.
    System,
}

/// The kind of a UID.
pub fn kind(uid: u32) -> Kind {
    match uid % PER_USER {
        10_000..=19_999 => Kind::App,
        20_000..=29_999 => Kind::Sandbox,
        90_000..=99_999 => Kind::Isolated,
        _ => Kind::System,
    }
}

/// The app's UID behind its own or its sandbox's.
pub fn app_uid(uid: u32) -> Option<u32> {
    match kind(uid) {
        Kind::App => Some(uid),
        Kind::Sandbox => Some(uid - 10_000),
        Kind::Isolated | Kind::System => None,
    }
}

/// The UIDs that are not behind.
#[derive(Debug, Clone, Default)]
pub struct Uids(BTreeMap<u32, State>);

impl Uids {
    /// Takes a call. Says whether anything has changed.
    pub fn take(&mut self, call: Call) -> bool {
        match call {
            Call::State(uid, state) if kind(uid) != Kind::System && state != State::Behind => {
                let room = self.0.len() < UIDS_MOST || self.0.contains_key(&uid);
                room && self.0.insert(uid, state) != Some(state)
            }
            Call::State(uid, _) | Call::Gone(uid) => self.0.remove(&uid).is_some(),
            Call::Nothing => false,
        }
    }

    /// Those in front.
    pub fn front(&self) -> Vec<u32> {
        let front = |(uid, state): (&u32, &State)| is_front(*uid, *state).then_some(*uid);
        self.0.iter().filter_map(front).collect()
    }

    /// Those that can be noticed besides.
    pub fn noticed(&self) -> Vec<u32> {
        let other = |(uid, state): (&u32, &State)| (!is_front(*uid, *state)).then_some(*uid);
        self.0.iter().filter_map(other).collect()
    }
}

fn is_front(uid: u32, state: State) -> bool {
    let helps = matches!(kind(uid), Kind::Sandbox | Kind::Isolated);
    state == State::Top || (helps && state == State::BoundTop)
}

/// A UID as an app: its control group, with an inode where it is there.
pub fn app(place: &Place, uid: u32) -> AppRef {
    let groups = PLACES.map(|begin| format!("{begin}{uid}"));
    let there = groups
        .iter()
        .find_map(|group| Some((group, place.inode(group)?)));
    let (cgroup, inode) = there.unwrap_or((&groups[1], 0));
    AppRef {
        cgroup: cgroup.clone(),
        inode,
        id: uid.to_string(),
        pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakePlace;

    #[test]
    fn split_screen_users_sandboxes_and_isolated_processes() {
        let mut uids = Uids::default();
        for (uid, state) in [
            (10_123, State::Top),
            (1_010_200, State::Top),
            // The sandbox of the first one's SDKs, and a process of a browser's page.
            (20_123, State::BoundTop),
            (99_001, State::BoundTop),
            // An app that the first one is bound to is perceptible, as one that plays music is.
            (10_150, State::BoundTop),
            (10_160, State::Noticed),
            (1000, State::Top),
        ] {
            assert_eq!(uids.take(Call::State(uid, state)), uid != 1000, "{uid}");
            assert!(!uids.take(Call::State(uid, state)));
        }
        assert_eq!(uids.front(), [10_123, 20_123, 99_001, 1_010_200]);
        assert_eq!(uids.noticed(), [10_150, 10_160]);
        assert!(uids.take(Call::State(10_123, State::Behind)));
        assert!(uids.take(Call::State(20_123, State::Noticed)));
        assert!(uids.take(Call::Gone(99_001)));
        assert!(!uids.take(Call::Gone(99_001)));
        assert_eq!(uids.front(), [1_010_200]);
        for uid in 10_000..19_999 {
            uids.take(Call::State(uid, State::Top));
        }
        assert!(uids.0.len() <= UIDS_MOST);
    }

    #[test]
    fn a_uid_is_its_control_group_where_that_is() {
        let fake = FakePlace::new();
        let old = fake.group("/uid_10123", 0);
        let app = |uid| app(&fake.place(), uid);
        assert_eq!(
            (app(10_123).cgroup, app(10_123).inode),
            ("/uid_10123".into(), old.inode)
        );
        let new = fake.group("/apps/uid_10123", 0);
        assert_eq!(app(10_123).inode, new.inode);
        assert_eq!(
            (app(10_124).cgroup, app(10_124).inode),
            ("/uid_10124".into(), 0)
        );
    }
}
