// SPDX-License-Identifier: GPL-2.0-only
//! A token bucket: how often somebody may do something.

use std::time::Duration;

/// Tokens come at a rate, and as many as a burst are kept.
#[derive(Debug, Clone)]
pub struct Bucket {
    every: Duration,
    burst: u32,
    /// When the bucket is full again.
    full_at: Duration,
}

impl Bucket {
    /// A full bucket that gains one token in each `every`.
    pub fn new(every: Duration, burst: u32) -> Bucket {
        Bucket {
            every,
            burst,
            full_at: Duration::ZERO,
        }
    }

    /// Takes a token, if there is one at this time.
    pub fn take(&mut self, now: Duration) -> bool {
        self.take_many(now, 1)
    }

    /// Takes so many tokens, if there are as many at this time; none otherwise.
    pub fn take_many(&mut self, now: Duration, tokens: u32) -> bool {
        let full_at = self.full_at.max(now) + self.every * tokens;
        let enough = full_at - now <= self.every * self.burst;
        if enough {
            self.full_at = full_at;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut Bucket, from_ms: u64, number: u64, apart_us: u64) -> usize {
        let from = Duration::from_millis(from_ms);
        (0..number)
            .filter(|step| bucket.take(from + Duration::from_micros(step * apart_us)))
            .count()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut bucket = Bucket::new(Duration::from_millis(20), 100);
        assert_eq!(taken(&mut bucket, 0, 1000, 0), 100);
        // Ten thousand in a second: fifty of them.
        assert_eq!(taken(&mut bucket, 0, 10_000, 100), 49);
        assert_eq!(taken(&mut bucket, 60_000, 1000, 0), 100);
    }

    #[test]
    fn many_at_once_are_taken_or_none() {
        let mut bucket = Bucket::new(Duration::from_millis(20), 100);
        let at = Duration::from_secs(1);
        assert!(!bucket.take_many(at, 101));
        assert!(bucket.take_many(at, 60) && !bucket.take_many(at, 60));
        assert!(bucket.take_many(at, 40) && !bucket.take(at));
    }
}
