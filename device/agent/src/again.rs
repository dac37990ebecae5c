// SPDX-License-Identifier: GPL-2.0-only
//! When what the daemon was not told is told again: a report that it refused or lost would else hold until the next.
//!
//! Coming back to a session is such a case: the agent may know of it before the daemon does, and is refused.

use crate::event::Event;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// After how long first; then after twice as long each time.
const FIRST: Duration = Duration::from_secs(2);
/// How often: two minutes in all. A session that nobody sits at is refused for as long as that lasts.
const TRIES: u32 = 6;

/// What is to be told again.
#[derive(Debug, Default)]
pub struct Again {
    tries: u32,
    at: Option<Instant>,
}

impl Again {
    /// Waits for an event; `RecvTimeoutError::Timeout` when all is to be told again.
    pub fn wait(&mut self, from: &Receiver<Event>) -> Result<Event, RecvTimeoutError> {
        let Some(at) = self.at else {
            return from.recv().map_err(|_| RecvTimeoutError::Disconnected);
        };
        let event = from.recv_timeout(at.saturating_duration_since(Instant::now()));
        if event == Err(RecvTimeoutError::Timeout) {
            self.at = None;
        }
        event
    }

    /// The daemon was told something, or was not. WHOLE: it was all that holds.
    pub fn told(&mut self, whole: bool, taken: bool, now: Instant) {
        match (taken, self.at) {
            (true, _) if whole => *self = Again::default(),
            (true, None) => self.tries = 0,
            // What was not taken before is told yet.
            (true, Some(_)) | (false, Some(_)) => {}
            (false, None) if self.tries < TRIES => {
                self.at = Some(now + FIRST * 2_u32.pow(self.tries));
                self.tries += 1;
            }
            (false, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_again_later_and_later_and_not_for_ever() {
        let now = Instant::now();
        let mut again = Again::default();
        let mut after = Vec::new();
        for _ in 0..TRIES + 2 {
            again.told(false, false, now);
            after.extend(again.at.take().map(|at| (at - now).as_secs()));
        }
        assert_eq!(after, [2, 4, 8, 16, 32, 64]);
        again.told(true, true, now);
        again.told(false, false, now);
        assert_eq!(again.at, Some(now + FIRST));
    }

    #[test]
    fn a_report_that_is_taken_does_not_stand_for_one_that_was_not() {
        let now = Instant::now();
        let mut again = Again::default();
        again.told(false, false, now);
        again.told(false, true, now);
        assert_eq!(again.at, Some(now + FIRST));
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
