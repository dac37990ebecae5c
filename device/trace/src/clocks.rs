// SPDX-License-Identifier: GPL-2.0-only
//! The clocks, and whether one has jumped.

use fasttrack_trace_log::{Clock, ClockReason, Time};
use rustix::time::{clock_gettime, ClockId};

/// Real time may drift from boot time by so much between two looks before it is a jump, ns.
const JUMP_NS: i64 = 100_000_000;

/// Boot time may be ahead of monotonic time by so much more before it is a suspend, ns.
const SUSPEND_NS: u64 = 10_000_000;

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The boot-time clock, ns.
pub fn boot() -> u64 {
    read(ClockId::Boottime) as u64
}

/// All clocks now.
pub fn all(reason: ClockReason) -> Clock {
    let real = read(ClockId::Realtime);
    Clock {
        time: Time(boot()),
        reason: Some(reason),
        real_ns: Some(real),
        monotonic_ns: Some(read(ClockId::Monotonic) as u64),
        utc_offset_s: Some(utc_offset(real / 1_000_000_000)),
        ..Clock::default()
    }
}

/// Local time less UTC, s.
fn utc_offset(seconds: i64) -> i64 {
    // SAFETY: a zeroed `tm` is a valid one, and both pointers are of this call.
    unsafe {
        let mut broken: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut broken);
        broken.tm_gmtoff
    }
}

/// Why `now` must be written, if it must, after `before`.
pub fn changed(before: &Clock, now: &Clock) -> Option<ClockReason> {
    let real = |clock: &Clock| clock.real_ns.unwrap_or(0) - clock.time.0 as i64;
    let asleep = |clock: &Clock| clock.time.0.saturating_sub(clock.monotonic_ns.unwrap_or(0));
    if asleep(now) > asleep(before) + SUSPEND_NS {
        return Some(ClockReason::SUSPEND);
    }
    let jump = (real(now) - real(before)).abs() > JUMP_NS;
    (jump || now.utc_offset_s != before.utc_offset_s).then_some(ClockReason::JUMP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(time: u64, real: i64, monotonic: u64) -> Clock {
        Clock {
            time: Time(time),
            real_ns: Some(real),
            monotonic_ns: Some(monotonic),
            utc_offset_s: Some(0),
            ..Clock::default()
        }
    }

    #[test]
    fn jumps_and_suspends_are_seen() {
        let second = 1_000_000_000;
        let before = clock(second, 5, second);
        let later = clock(2 * second, 5 + second as i64, 2 * second);
        assert_eq!(changed(&before, &later), None);
        let jumped = clock(2 * second, 3600 * second as i64, 2 * second);
        assert_eq!(changed(&before, &jumped), Some(ClockReason::JUMP));
        let slept = clock(9 * second, 5 + 8 * second as i64, 2 * second);
        assert_eq!(changed(&before, &slept), Some(ClockReason::SUSPEND));
        let mut moved = later.clone();
        moved.utc_offset_s = Some(3600);
        assert_eq!(changed(&before, &moved), Some(ClockReason::JUMP));
    }
}
