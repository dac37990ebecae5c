// SPDX-License-Identifier: GPL-2.0-only
//! Records that an app may have in a second, so that one cannot fill the trace: what is above is summed up.

use crate::recent::Recent;
use fasttrack_trace_log::{Aggregate, Bio, Operation, Record, Segment, Time};
use std::collections::BTreeMap;

/// An interval, ns.
const INTERVAL: u64 = 1_000_000_000;

/// Ends of bios that were left out are waited for; more than this are not in flight.
const KEPT: usize = 32_768;

/// What an app did in this interval.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    records: u64,
    over: u64,
    bios: u64,
    read: u64,
    written: u64,
    calls: u64,
    calls_ns: u64,
    waits: u64,
    waits_ns: u64,
}

impl Used {
    /// Whether so many records are within the limit; if not they are in the sum.
    fn takes(&mut self, records: u64, limit: u64) -> bool {
        let within = self.records + records <= limit;
        match within {
            true => self.records += records,
            false => self.over += records,
        }
        within
    }
}

/// The budget of all apps.
#[derive(Debug)]
pub struct Budget {
    /// Records in a second; 0 is without end.
    limit: u64,
    began: u64,
    apps: BTreeMap<Option<u64>, Used>,
    /// Numbers of bios that are left out, and whose they are.
    left_out: Recent<u64, Option<u64>>,
}

impl Budget {
    /// `limit` records in a second; 0 is without end.
    pub fn new(limit: u64) -> Budget {
        Budget {
            limit,
            began: 0,
            apps: BTreeMap::new(),
            left_out: Recent::new(KEPT),
        }
    }

    /// Takes a bio with its segments, of the app `uid`, or leaves it to its sum.
    pub fn takes(&mut self, bio: &Bio, segments: &[Segment], uid: Option<u64>) -> bool {
        if self.limit == 0 {
            return true;
        }
        let used = self.apps.entry(uid).or_default();
        if used.takes(1 + segments.len() as u64, self.limit) {
            return true;
        }
        used.bios += 1;
        let bytes = bio.bytes.unwrap_or(0);
        match bio.operation {
            Some(Operation::READ) => used.read += bytes,
            _ => used.written += bytes,
        }
        if let Some(number) = bio.bio {
            self.left_out.put(number, uid);
        }
        false
    }

    /// Takes a call or a wait of the app `uid`, or leaves it to its sum. Other records are taken.
    pub fn takes_time(&mut self, record: &Record, uid: Option<u64>) -> bool {
        let took = match record {
            Record::Call(call) => call.duration_ns,
            Record::Wait(wait) => wait.duration_ns,
            _ => return true,
        };
        if self.limit == 0 {
            return true;
        }
        let used = self.apps.entry(uid).or_default();
        if used.takes(1, self.limit) {
            return true;
        }
        let (count, sum) = match record {
            Record::Call(_) => (&mut used.calls, &mut used.calls_ns),
            _ => (&mut used.waits, &mut used.waits_ns),
        };
        *count += 1;
        *sum = sum.saturating_add(took.unwrap_or(0));
        false
    }

    /// Takes a request, unless it begins with a bio that was left out: then it is in the sum, too. A bio that was split
    /// has several.
    pub fn takes_request(&mut self, first_bio: Option<u64>) -> bool {
        let left_out = first_bio.and_then(|bio| self.left_out.get(&bio));
        if let Some(uid) = left_out {
            self.apps.entry(uid).or_default().over += 1;
        }
        left_out.is_none()
    }

    /// The sums of the interval, if it has ended at `now`, or all ends.
    pub fn ended(&mut self, now: u64, end: bool, out: &mut Vec<Record>) {
        if !end && now < self.began + INTERVAL {
            return;
        }
        for (uid, used) in std::mem::take(&mut self.apps) {
            if used.over > 0 {
                out.push(Record::from(Aggregate {
                    time: Time(now),
                    since: Some(Time(self.began)),
                    uid,
                    records: Some(used.over),
                    bios: Some(used.bios),
                    read_bytes: Some(used.read),
                    written_bytes: Some(used.written),
                    calls: Some(used.calls),
                    calls_ns: Some(used.calls_ns),
                    waits: Some(used.waits),
                    waits_ns: Some(used.waits_ns),
                    ..Aggregate::default()
                }));
            }
        }
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::{Call, Share, Wait};

    fn write(number: u64) -> Bio {
        Bio {
            bio: Some(number),
            bytes: Some(4096),
            operation: Some(Operation::WRITE),
            ..Bio::default()
        }
    }

    #[test]
    fn one_app_does_not_use_the_others() {
        let mut budget = Budget::new(4);
        let mut out = Vec::new();
        budget.ended(5 * INTERVAL, false, &mut out);
        let segment = [Segment::default()];
        let taken = (0..10)
            .filter(|at| budget.takes(&write(*at), &segment, Some(1)))
            .count();
        assert_eq!(taken, 2);
        assert!(budget.takes(&write(100), &segment, Some(2)));
        assert!(!budget.takes_request(Some(5)) && budget.takes_request(Some(1)));
        assert!(budget.takes_request(None));
        budget.ended(5 * INTERVAL + 1, false, &mut out);
        assert!(out.is_empty());
        budget.ended(6 * INTERVAL, false, &mut out);
        let Record::Aggregate(sum) = &out[0] else {
            panic!("{out:?}");
        };
        assert_eq!((out.len(), sum.uid, sum.bios), (1, Some(1), Some(8)));
        // With the request.
        assert_eq!((sum.records, sum.written_bytes), (Some(17), Some(8 * 4096)));
        // The next interval has its own.
        assert!(budget.takes(&write(0), &segment, Some(1)));
    }

    #[test]
    fn calls_and_waits_are_of_the_same_budget() {
        let mut budget = Budget::new(4);
        let mut out = Vec::new();
        budget.ended(5 * INTERVAL, false, &mut out);
        assert!(budget.takes(&write(1), &[], Some(1)));
        let call = Record::from(Call {
            duration_ns: Some(10),
            ..Call::default()
        });
        let wait = Record::from(Wait {
            duration_ns: Some(7),
            ..Wait::default()
        });
        let taken = (0..5)
            .flat_map(|_| [&call, &wait])
            .filter(|one| budget.takes_time(one, Some(1)));
        assert_eq!(taken.count(), 3);
        assert!(budget.takes_time(&Record::from(Share::default()), Some(1)));
        assert!(budget.takes_time(&call, None));
        budget.ended(6 * INTERVAL, false, &mut out);
        let [Record::Aggregate(sum)] = &out[..] else {
            panic!("{out:?}");
        };
        assert_eq!((sum.records, sum.bios), (Some(7), Some(0)));
        assert_eq!((sum.calls, sum.calls_ns), (Some(3), Some(30)));
        assert_eq!((sum.waits, sum.waits_ns), (Some(4), Some(28)));
    }
}
