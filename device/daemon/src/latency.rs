// SPDX-License-Identifier: GPL-2.0-only
//! How long the last reports have taken, from their receipt to their last write.

use std::time::Duration;

/// Reports that are remembered: enough for a hundredth of them to be more than a few.
const KEPT: usize = 1000;

/// The last times, and the longest of all.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    last_us: Vec<u32>,
    next: usize,
    longest_us: u32,
}

impl Latencies {
    /// One more.
    pub fn add(&mut self, took: Duration) {
        let us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.longest_us = self.longest_us.max(us);
        match self.last_us.get_mut(self.next) {
            Some(oldest) => *oldest = us,
            None => self.last_us.push(us),
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// The longest of all, microseconds; none before the first.
    pub fn longest_us(&self) -> Option<u32> {
        (!self.last_us.is_empty()).then_some(self.longest_us)
    }

    /// The time that this many of a hundred of the last ones did not exceed, microseconds; none before the first.
    pub fn percentile_us(&self, of_hundred: usize) -> Option<u32> {
        let mut sorted = self.last_us.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * of_hundred).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_last_thousand() {
        let mut latencies = Latencies::default();
        assert_eq!(
            (latencies.percentile_us(99), latencies.longest_us()),
            (None, None)
        );
        latencies.add(Duration::from_secs(5000));
        assert_eq!(latencies.percentile_us(99), Some(u32::MAX));
        for us in 1..=1000 {
            latencies.add(Duration::from_micros(us));
        }
        let all = [50, 99, 100].map(|part| latencies.percentile_us(part));
        assert_eq!(all, [Some(500), Some(990), Some(1000)]);
        assert_eq!(latencies.longest_us(), Some(u32::MAX));
    }
}
