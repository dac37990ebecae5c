// SPDX-License-Identifier: GPL-2.0-only
//! The list of groups that may be frozen: when it is made, and how long it is believed.
//!
//! To make it takes tens of milliseconds where users have many descriptors. So a thread beside the loop makes it
//! ([`Look::find`]), as soon as the freezer is armed: at the first wait it is there.

use crate::candidates::{self, is_within, Kept, Sorted};
use crate::peers::Unknown;
use crate::system::System;
use fasttrack_detector::Decision;
use std::time::Duration;

/// How long a list is believed: so long a process may have what forbids to freeze it, and be frozen.
const BELIEVED: Duration = Duration::from_secs(2);

/// How old a list is when the next is made. That has the rest of the time to come.
const RENEWED: Duration = Duration::from_secs(1);

/// A list to be made.
#[derive(Debug)]
pub struct Look {
    number: u64,
    at: Duration,
    system: System,
    decision: Decision,
    never: Vec<String>,
}

impl Look {
    /// Makes it.
    pub fn find(self) -> Found {
        Found {
            number: self.number,
            at: self.at,
            sorted: candidates::find(&self.system, &self.decision, &self.never),
        }
    }
}

/// A list that was made.
#[derive(Debug)]
pub struct Found {
    number: u64,
    at: Duration,
    sorted: Result<Sorted, Unknown>,
}

/// The list, and whether there is to be another one.
#[derive(Debug, Default)]
pub struct Freezable {
    /// Counts what forgets the list: a list that was asked for before is of no use.
    number: u64,
    known: Option<(Duration, Result<Sorted, Unknown>)>,
    wanted: bool,
    running: bool,
}

impl Freezable {
    /// Somebody else is in front, or the configuration is another.
    pub fn forget(&mut self) {
        self.number += 1;
        self.known = None;
        self.wanted = false;
    }

    /// The freezer is armed.
    pub fn want(&mut self, now: Duration) {
        self.wanted = self.age(now).is_none_or(|age| age >= RENEWED);
    }

    /// The list to be made now, for this decision and configuration. One is made at a time.
    pub fn look(
        &mut self,
        now: Duration,
        system: &System,
        decision: &Decision,
        never: &[String],
    ) -> Option<Look> {
        if !self.wanted || self.running {
            return None;
        }
        (self.wanted, self.running) = (false, true);
        Some(Look {
            number: self.number,
            at: now,
            system: system.clone(),
            decision: decision.clone(),
            never: never.to_vec(),
        })
    }

    /// A list was made. Says why nobody may be frozen by it, if so.
    pub fn take(&mut self, found: Found) -> Result<(), Unknown> {
        self.running = false;
        if found.number != self.number {
            return Ok(());
        }
        let unknown = found.sorted.as_ref().err().copied();
        self.known = Some((found.at, found.sorted));
        unknown.map_or(Ok(()), Err)
    }

    /// The groups that may be frozen; none as long as that is not known.
    pub fn groups(&self, now: Duration) -> Option<&[(u64, String)]> {
        let (_, sorted) = self.known.as_ref()?;
        let fresh = self.age(now).is_some_and(|age| age < BELIEVED);
        let groups: &[_] = match sorted {
            Ok(sorted) => &sorted.groups,
            Err(_) => &[],
        };
        fresh.then_some(groups)
    }

    /// Which group of an app is not frozen and why, by the last list for who is in front, however old.
    pub fn kept<'a>(&'a self, app: &'a str) -> Option<(&'a str, Kept)> {
        let (_, sorted) = self.known.as_ref()?;
        let kept = match sorted {
            Ok(sorted) => &sorted.kept,
            Err(unknown) => return Some((app, Kept::Unknown(*unknown))),
        };
        let of_it = |path: &str| is_within(app, path) || is_within(path, app);
        let (path, why) = kept.iter().find(|(path, _)| of_it(path))?;
        Some((path, *why))
    }

    fn age(&self, now: Duration) -> Option<Duration> {
        let (at, _) = self.known.as_ref()?;
        Some(now.saturating_sub(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    fn look(freezable: &mut Freezable, at: u64) -> Option<Look> {
        let system = System::new(std::path::Path::new("/nowhere"));
        freezable.look(ms(at), &system, &Decision::default(), &[])
    }

    /// What a look has found.
    fn found(look: &Look, groups: Result<&str, Unknown>) -> Found {
        Found {
            number: look.number,
            at: look.at,
            sorted: groups.map(|path| Sorted {
                groups: vec![(1, path.to_string())],
                kept: vec![("/s.slice/k".to_string(), Kept::Peer)],
            }),
        }
    }

    #[test]
    fn a_list_is_made_when_it_is_wanted_and_renewed_before_it_is_too_old() {
        let mut freezable = Freezable::default();
        assert!(look(&mut freezable, 0).is_none());
        freezable.want(ms(0));
        let first = look(&mut freezable, 0).expect("a look");
        freezable.want(ms(5));
        assert!(look(&mut freezable, 5).is_none(), "one runs");
        freezable.take(found(&first, Ok("/a"))).expect("known");
        let groups = [(1, "/a".to_string())];
        assert_eq!(freezable.groups(ms(1999)), Some(&groups[..]));
        assert_eq!(freezable.groups(ms(2000)), None);
        freezable.want(ms(999));
        assert!(look(&mut freezable, 999).is_none());
        freezable.want(ms(1000));
        assert!(look(&mut freezable, 1000).is_some());
    }

    #[test]
    fn a_list_for_who_was_in_front_before_is_dropped_and_another_is_made() {
        let mut freezable = Freezable::default();
        freezable.want(ms(0));
        let old = look(&mut freezable, 0).expect("a look");
        freezable.forget();
        freezable.want(ms(5));
        assert!(look(&mut freezable, 5).is_none(), "one runs");
        freezable.take(found(&old, Ok("/a"))).expect("dropped");
        assert_eq!(freezable.groups(ms(10)), None);
        let new = look(&mut freezable, 10).expect("a look");
        freezable.take(found(&new, Ok("/b"))).expect("known");
        for app in ["/s.slice", "/s.slice/k", "/s.slice/k/below"] {
            assert_eq!(freezable.kept(app), Some(("/s.slice/k", Kept::Peer)));
        }
        assert_eq!(freezable.kept("/b"), None);
        let groups = [(1, "/b".to_string())];
        assert_eq!(freezable.groups(ms(15)), Some(&groups[..]));
        freezable.forget();
        assert_eq!(
            (freezable.groups(ms(15)), freezable.kept("/s.slice/k")),
            (None, None)
        );
    }

    #[test]
    fn what_is_not_known_freezes_nobody_and_is_told() {
        let mut freezable = Freezable::default();
        freezable.want(ms(0));
        let first = look(&mut freezable, 0).expect("a look");
        let told = freezable.take(found(&first, Err(Unknown::TooMany)));
        assert_eq!(told, Err(Unknown::TooMany));
        assert_eq!(freezable.groups(ms(5)), Some(&[][..]));
        let why = Kept::Unknown(Unknown::TooMany);
        assert_eq!(freezable.kept("/a"), Some(("/a", why)));
    }
}
