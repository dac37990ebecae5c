// SPDX-License-Identifier: GPL-2.0-only
//! When background apps are frozen: while a task of the foreground waits for storage, and within bounds.
//!
//! A pure state machine. It is asked to look every [`POLL`] while it is armed, is told each time whether a task of the
//! foreground is in uninterruptible sleep, and says what to do. Who waits for a frozen app by a pipe or a socket sleeps
//! interruptibly, so such a freeze ends by itself after [`LINGER`]. Who waits for files or a disk that an app serves does
//! not: such apps are never frozen ([`crate::candidates`]).

use crate::guard::FREEZE_MOST;
use std::time::Duration;

/// How often it looks. Measured in the lab: 5 ms and 20 ms differ by 4 % of response time; it costs 2 % of a core for
/// 100 threads.
pub const POLL: Duration = Duration::from_millis(5);

/// How long after the last wait it thaws: an app that reads computes for some milliseconds between two waits.
pub const LINGER: Duration = Duration::from_millis(50);

/// Longest freeze that it orders; the guard's own bound comes after it.
pub const LONGEST: Duration = FREEZE_MOST.saturating_sub(LINGER);

/// How long nothing is frozen after a freeze: background keeps a twentieth of the time, as with the kernel's share.
pub const REST: Duration = Duration::from_millis(50);

/// How long it looks after an event. Most of a launch's reads are done by then, or they arm it again.
pub const ARMED: Duration = Duration::from_secs(2);

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// Freeze background.
    Freeze,
    /// Thaw it.
    Thaw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Thawed,
    Frozen { since: Duration, waited: Duration },
    Resting { until: Duration },
}

/// The state machine. It begins disarmed.
#[derive(Debug, Clone)]
pub struct Freezer {
    state: State,
    armed_until: Duration,
    polled: Duration,
}

impl Default for Freezer {
    fn default() -> Freezer {
        Freezer {
            state: State::Thawed,
            armed_until: Duration::ZERO,
            polled: Duration::ZERO,
        }
    }
}

impl Freezer {
    /// Somebody comes to the front, begins, or its I/O pressure grows.
    pub fn arm(&mut self, now: Duration) {
        if now >= self.armed_until && self.state == State::Thawed {
            // It looks at once: a launch does not wait.
            self.polled = now.saturating_sub(POLL);
        }
        self.armed_until = now + ARMED;
    }

    /// Nobody is in front, or freezing is off: thaw and stop.
    pub fn disarm(&mut self) -> Act {
        self.armed_until = Duration::ZERO;
        match std::mem::replace(&mut self.state, State::Thawed) {
            State::Frozen { .. } => Act::Thaw,
            _ => Act::Nothing,
        }
    }

    /// Somebody else has thawed: the guard, by its own clock.
    pub fn thawed(&mut self, now: Duration) {
        if matches!(self.state, State::Frozen { .. }) {
            self.state = State::Resting { until: now + REST };
        }
    }

    /// Whether it believes that background is frozen.
    pub fn is_frozen(&self) -> bool {
        matches!(self.state, State::Frozen { .. })
    }

    /// When to look next; none while it is disarmed and nothing is frozen.
    pub fn deadline(&self) -> Option<Duration> {
        let next = self.polled + POLL;
        match self.state {
            State::Frozen { .. } => Some(next),
            _ if next >= self.armed_until => None,
            State::Resting { until } => Some(until),
            State::Thawed => Some(next),
        }
    }

    /// It has looked: whether a task of the foreground waits.
    pub fn poll(&mut self, now: Duration, waits: bool) -> Act {
        self.polled = now;
        if waits {
            self.armed_until = self.armed_until.max(now + ARMED);
        }
        match &mut self.state {
            State::Frozen { since, waited } => {
                if waits {
                    *waited = now;
                }
                if now - *since < LONGEST && now - *waited < LINGER {
                    return Act::Nothing;
                }
                self.state = State::Resting { until: now + REST };
                Act::Thaw
            }
            State::Resting { until } if now < *until => Act::Nothing,
            _ if waits => {
                self.state = State::Frozen {
                    since: now,
                    waited: now,
                };
                Act::Freeze
            }
            _ => {
                self.state = State::Thawed;
                Act::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// Runs it by its own deadlines; says when it froze and thawed.
    fn play(freezer: &mut Freezer, until: u64, waits: impl Fn(u64) -> bool) -> Vec<(u64, Act)> {
        let mut acts = Vec::new();
        while let Some(at) = freezer.deadline().filter(|at| *at < ms(until)) {
            let now = u64::try_from(at.as_millis()).expect("short");
            match freezer.poll(at, waits(now)) {
                Act::Nothing => {}
                act => acts.push((now, act)),
            }
        }
        acts
    }

    #[test]
    fn it_looks_only_within_two_seconds_of_an_event() {
        let mut freezer = Freezer::default();
        assert_eq!(freezer.deadline(), None);
        freezer.arm(ms(1000));
        assert_eq!(freezer.deadline(), Some(ms(1000)));
        assert_eq!(play(&mut freezer, 100_000, |_| false), []);
        assert_eq!(freezer.deadline(), None);
    }

    #[test]
    fn a_wait_freezes_and_its_end_thaws() {
        let mut freezer = Freezer::default();
        freezer.arm(ms(1000));
        let acts = play(&mut freezer, 2000, |now| (1100..1200).contains(&now));
        assert_eq!(acts, [(1100, Act::Freeze), (1245, Act::Thaw)]);
    }

    #[test]
    fn a_freeze_is_bounded_and_rests() {
        let mut freezer = Freezer::default();
        freezer.arm(ms(1000));
        let acts = play(&mut freezer, 3100, |_| true);
        let times: Vec<u64> = acts.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1000, 1950, 2000, 2950, 3000]);
        assert!(acts.chunks(2).all(|pair| pair[0].1 == Act::Freeze));
    }

    #[test]
    fn waiting_keeps_it_awake_and_disarming_thaws() {
        let mut freezer = Freezer::default();
        freezer.arm(ms(0));
        play(&mut freezer, 60_000, |_| true);
        assert!(freezer.deadline().is_some());
        let frozen = freezer.is_frozen();
        let act = freezer.disarm();
        assert_eq!(act == Act::Thaw, frozen);
        assert_eq!(freezer.deadline(), None);
    }

    #[test]
    fn what_the_guard_thaws_is_not_thawed_again() {
        let mut freezer = Freezer::default();
        freezer.arm(ms(0));
        assert_eq!(freezer.poll(ms(0), true), Act::Freeze);
        freezer.thawed(ms(10));
        assert_eq!(freezer.poll(ms(15), true), Act::Nothing);
        assert_eq!(freezer.poll(ms(60), true), Act::Freeze);
    }

    #[test]
    fn no_stream_of_looks_keeps_anything_frozen_longer() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut freezer = Freezer::default();
            let (mut now, mut since) = (Duration::ZERO, None::<Duration>);
            for _ in 0..2000 {
                now += Duration::from_micros(random.u64(0..5000));
                if random.u32(0..50) == 0 {
                    freezer.arm(now);
                }
                let act = freezer.poll(now, random.u32(0..10) > 0);
                match act {
                    Act::Freeze => assert!(since.replace(now).is_none()),
                    Act::Thaw => assert!(since.take().is_some()),
                    Act::Nothing => {}
                }
                assert!(since.is_none_or(|since| now - since <= LONGEST));
                assert_eq!(freezer.is_frozen(), since.is_some());
            }
        }
    }
}
