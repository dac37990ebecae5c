// SPDX-License-Identifier: GPL-2.0-only
//! How long the kernel believes who tells it who is in front: the daemon, or an agent without one.

use std::time::Duration;

/// How often the lease is renewed while an app is in front. Two wake-ups a minute cost nothing that can be measured.
pub const BEAT: Duration = Duration::from_secs(30);

/// How long the kernel believes it: two beats and a half, so one that is late, or lost, ends nothing. A daemon that is
/// killed is cleaned up after by its guard at once; the lease is for one that hangs, and for both being killed.
pub const LEASE: Duration = Duration::from_secs(75);

/// The lease as the kernel's file has it, ms.
pub fn lease_ms() -> String {
    LEASE.as_millis().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_outlives_a_lost_beat() {
        assert!(LEASE > BEAT * 2);
        assert_eq!(lease_ms(), "75000");
    }
}
