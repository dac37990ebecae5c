// SPDX-License-Identifier: GPL-2.0-only
//! The one thing that the daemon does by itself: now and then it says that it lives.

use fasttrack_bus::BEAT;
use std::time::Duration;

/// When the next beat is due.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Half the time after which systemd takes the daemon for hung; none where it does not look.
    watchdog: Option<Duration>,
    last: Duration,
}

impl Heartbeat {
    /// Begins now. systemd's `WATCHDOG_USEC`, if any, in microseconds.
    pub fn new(now: Duration, watchdog_us: Option<u64>) -> Heartbeat {
        Heartbeat {
            watchdog: watchdog_us.map(|us| Duration::from_micros(us / 2)),
            last: now,
        }
    }

    /// When it is due; none while nobody needs one.
    pub fn deadline(&self, somebody_in_front: bool) -> Option<Duration> {
        let lease = somebody_in_front.then_some(BEAT);
        let every = lease.into_iter().chain(self.watchdog).min()?;
        Some(self.last + every)
    }

    /// Whether it is due, and then it is done.
    pub fn beat(&mut self, now: Duration, somebody_in_front: bool) -> bool {
        let due = self.deadline(somebody_in_front).is_some_and(|at| at <= now);
        if due {
            self.last = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_it_while_nobody_is_in_front() {
        let heart = Heartbeat::new(Duration::ZERO, None);
        assert_eq!(heart.deadline(false), None);
        assert_eq!(heart.deadline(true), Some(BEAT));
    }

    #[test]
    fn the_watchdog_is_in_time() {
        let mut heart = Heartbeat::new(Duration::ZERO, Some(20_000_000));
        assert_eq!(heart.deadline(false), Some(Duration::from_secs(10)));
        assert!(!heart.beat(Duration::from_secs(9), true));
        assert!(heart.beat(Duration::from_secs(10), true));
        assert_eq!(heart.deadline(true), Some(Duration::from_secs(20)));
    }
}
