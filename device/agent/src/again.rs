// SPDX-License-Identifier: GPL-2.0-only
//! When what the daemon was not told is told again: a report that it refused or lost would else hold until the next.
//!
//! Coming back to a session is such a case: the agent may know of it before the daemon does, and is refused.

use crate::event::Event;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// After how long first: a daemon that learns of a session at the same moment knows it by then.
const SOON: Duration = Duration::from_millis(200);
/// After how long then; and after twice as long each time.
const LATER: Duration = Duration::from_secs(2);
/// How often: two minutes in all. A session that nobody sits at is refused for as long as that lasts.
const TRIES: u32 = 7;

/// The pause before this try, from 0 on.
fn pause(tries: u32) -> Duration {
    match tries {
        0 => SOON,
        more => LATER * 2_u32.pow(more - 1),
    }
}

/// What is to be told again.
#[derive(Debug, Default)]
pub struct Again {
    tries: u32,
    at: Option<Instant>,
}

impl Again {
    /// Waits for an event; `RecvTimeoutError::Timeout` when all is to be told again.
    pub fn wait(&mut self, from: &Receiver<Event>) -> Result<Event, RecvTimeoutError> {
        let event = match self.at {
            None => from.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => from.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match event {
            Err(RecvTimeoutError::Timeout) => self.at = None,
            // It refuses all until it knows the sessions.
            Ok(Event::Daemon) => self.tries = 0,
            _ => {}
        }
        event
    }

    /// The daemon was told something, or was not. WHOLE: it was all that holds.
    pub fn told(&mut self, whole: bool, taken: bool, now: Instant) {
        if taken {
            // What was not taken before is told yet.
            if whole {
                *self = Again::default();
            }
            return;
        }
        // That others were refused for long says nothing of a new report: the session may be active again.
        if !whole {
            self.tries = 0;
        }
        if self.tries < TRIES {
            let at = now + pause(self.tries);
            self.at = Some(self.at.map_or(at, |before| before.min(at)));
            self.tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES_MS: [u128; 7] = [200, 2000, 4000, 8000, 16_000, 32_000, 64_000];

    /// All the pauses before it is told again, ms, after something new was refused.
    fn pauses(again: &mut Again, now: Instant) -> Vec<u128> {
        let mut after = Vec::new();
        again.told(false, false, now);
        for _ in 0..TRIES + 2 {
            after.extend(again.at.take().map(|at| (at - now).as_millis()));
            again.told(true, false, now);
        }
        after
    }

    #[test]
    fn what_was_refused_is_told_again_later_and_later_and_not_for_ever() {
        let now = Instant::now();
        let mut again = Again::default();
        assert_eq!(pauses(&mut again, now), PAUSES_MS);
        again.told(true, true, now);
        assert_eq!(pauses(&mut again, now), PAUSES_MS);
    }

    #[test]
    fn what_is_refused_anew_is_told_again_as_soon_as_what_was_refused_first() {
        let now = Instant::now();
        let mut again = Again::default();
        pauses(&mut again, now);
        assert_eq!((again.at, again.tries), (None, TRIES));
        again.told(false, false, now);
        assert_eq!(again.at, Some(now + SOON));
        // Nor does it wait for what is told again late.
        again.at = Some(now + LATER * 32);
        again.told(false, false, now);
        assert_eq!((again.at, again.tries), (Some(now + SOON), 1));
        // Another that is refused later does not put it off.
        again.told(false, false, now + SOON / 2);
        assert_eq!(again.at, Some(now + SOON));
    }

    #[test]
    fn a_daemon_that_comes_is_told_again_from_the_start() {
        let now = Instant::now();
        let mut again = Again::default();
        pauses(&mut again, now);
        let (to, from) = std::sync::mpsc::channel();
        assert!(to.send(Event::Daemon).is_ok());
        assert_eq!(again.wait(&from), Ok(Event::Daemon));
        again.told(true, false, now);
        assert_eq!(again.at, Some(now + SOON));
    }

    #[test]
    fn a_report_that_is_taken_does_not_stand_for_one_that_was_not() {
        let now = Instant::now();
        let mut again = Again::default();
        again.told(false, false, now);
        again.told(false, true, now);
        assert_eq!(again.at, Some(now + SOON));
        again.told(true, true, now);
        assert_eq!(again.at, None);
    }

    #[test]
    fn it_wakes_up_for_that_alone() {
        let (to, from) = std::sync::mpsc::channel();
        let mut again = Again {
            tries: 1,
            at: Some(Instant::now()),
        };
        assert_eq!(again.wait(&from), Err(RecvTimeoutError::Timeout));
        assert!(to.send(Event::Daemon).is_ok());
        assert_eq!(again.wait(&from), Ok(Event::Daemon));
        drop(to);
        assert_eq!(again.wait(&from), Err(RecvTimeoutError::Disconnected));
    }
}
