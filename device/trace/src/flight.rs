// SPDX-License-Identifier: GPL-2.0-only
//! A flight recorder: the last seconds, written when something happens.

use fasttrack_trace_log::{Call, CallKind, Class, Loss, LossReason, Mark, Record, Time};
use std::collections::VecDeque;

/// So many records are kept whatever the seconds: some 12 MB.
const KEPT: usize = 50_000;

/// What makes it write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Triggers {
    /// An fsync or fdatasync that takes so long, ns.
    pub fsync_ns: Option<u64>,
    /// A wait that takes so long, ns, but of those in the background.
    pub wait_ns: Option<u64>,
}

impl Triggers {
    /// Why this record makes it write, if it does.
    pub fn reason(&self, record: &Record) -> Option<&'static str> {
        let over = |bound: Option<u64>, took: Option<u64>| {
            bound.zip(took).is_some_and(|(bound, took)| took >= bound)
        };
        let syncs = |call: &Call| matches!(call.kind, Some(CallKind::FSYNC | CallKind::FDATASYNC));
        match record {
            Record::Call(call) if syncs(call) && over(self.fsync_ns, call.duration_ns) => {
                Some("fsync")
            }
            // Who is behind is made to wait.
            Record::Wait(wait) if wait.class == Some(Class::BACKGROUND) => None,
            Record::Wait(wait) if over(self.wait_ns, wait.duration_ns) => Some("wait"),
            _ => None,
        }
    }
}

/// The last seconds.
#[derive(Debug)]
pub struct Flight {
    keep_ns: u64,
    records: VecDeque<Record>,
    dropped: Option<(u64, u64)>,
}

impl Flight {
    /// Keeps `keep_ns`.
    pub fn new(keep_ns: u64) -> Flight {
        Flight {
            keep_ns,
            records: VecDeque::new(),
            dropped: None,
        }
    }

    /// Keeps a record, and forgets what is too old; a bio goes with its segments, which follow it.
    pub fn keep(&mut self, record: Record) {
        let now = record.time().0;
        self.records.push_back(record);
        while let Some(first) = self.records.front() {
            let old = first.time().0.saturating_add(self.keep_ns) < now;
            if !old && self.records.len() <= KEPT {
                break;
            }
            let time = first.time().0;
            let count = self.forget_first();
            if !old {
                let before = self.dropped.map_or(0, |(_, count)| count);
                self.dropped = Some((time, before + count));
            }
        }
    }

    /// Says how many go.
    fn forget_first(&mut self) -> u64 {
        let mut count = 0;
        while self.records.pop_front().is_some() {
            count += 1;
            if !matches!(self.records.front(), Some(Record::Segment(_))) {
                break;
            }
        }
        count
    }

    /// What it has, to be written because of `reason`; it is empty then.
    pub fn take(&mut self, now: u64, reason: &str) -> impl Iterator<Item = Record> {
        let since = self.records.front().map(Record::time);
        let mut taken = vec![Record::from(Mark {
            time: Time(now),
            reason: Some(reason.to_string()),
            since,
            ..Mark::default()
        })];
        if let Some((time, count)) = self.dropped.take() {
            taken.push(Record::from(Loss {
                time: Time(time),
                reason: Some(LossReason::FLIGHT_MEMORY),
                count: Some(count),
                ..Loss::default()
            }));
        }
        taken.into_iter().chain(std::mem::take(&mut self.records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::{Bio, Segment, Wait, WaitKind};

    fn wait(time: u64, took: u64) -> Record {
        Record::from(Wait {
            time: Time(time),
            kind: Some(WaitKind::PAUSE),
            duration_ns: Some(took),
            ..Wait::default()
        })
    }

    #[test]
    fn the_last_seconds_are_kept() {
        let mut flight = Flight::new(100);
        for time in 0..300 {
            flight.keep(wait(time, 1));
        }
        let taken: Vec<_> = flight.take(300, "signal").collect();
        assert_eq!(taken.len(), 102);
        let Record::Mark(mark) = &taken[0] else {
            panic!("{:?}", taken[0]);
        };
        assert_eq!(
            (mark.since, mark.reason.as_deref()),
            (Some(Time(199)), Some("signal"))
        );
        assert_eq!(flight.take(300, "signal").count(), 1);
    }

    #[test]
    fn who_is_behind_may_wait() {
        let triggers = Triggers {
            fsync_ns: None,
            wait_ns: Some(100),
        };
        let of = |class, took| {
            let Record::Wait(wait) = wait(1, took) else {
                panic!("a wait")
            };
            triggers.reason(&Record::from(Wait { class, ..wait }))
        };
        assert_eq!(of(Some(Class::BACKGROUND), 100), None);
        assert_eq!(of(Some(Class::FOREGROUND), 100), Some("wait"));
        assert_eq!(of(None, 100), Some("wait"));
        assert_eq!(of(None, 99), None);
    }

    #[test]
    fn memory_is_bounded_and_what_it_costs_is_said() {
        let mut flight = Flight::new(u64::MAX / 2);
        for time in 0..KEPT as u64 + 10 {
            flight.keep(wait(time, 1));
        }
        let taken: Vec<_> = flight.take(0, "signal").collect();
        assert_eq!(taken.len(), KEPT + 2);
        assert!(matches!(&taken[1], Record::Loss(loss) if loss.count == Some(10)));
    }

    #[test]
    fn a_bio_goes_with_its_segments() {
        let mut flight = Flight::new(u64::MAX);
        for _ in 0..KEPT / 3 + 2 {
            flight.keep(Record::from(Bio::default()));
            flight.keep(Record::from(Segment::default()));
            flight.keep(Record::from(Segment::default()));
            assert!(flight.records.len() <= KEPT);
        }
        let taken: Vec<_> = flight.take(0, "signal").collect();
        assert!(matches!(&taken[1], Record::Loss(loss) if loss.count == Some(6)));
        assert!(matches!(&taken[2], Record::Bio(_)));
    }

    #[test]
    fn bounds_trigger() {
        let triggers = Triggers {
            fsync_ns: Some(100),
            wait_ns: None,
        };
        let call = |kind, took| {
            Record::from(Call {
                kind: Some(kind),
                duration_ns: Some(took),
                ..Call::default()
            })
        };
        assert_eq!(
            triggers.reason(&call(CallKind::FDATASYNC, 100)),
            Some("fsync")
        );
        assert_eq!(triggers.reason(&call(CallKind::FSYNC, 99)), None);
        assert_eq!(triggers.reason(&call(CallKind::READ, 1000)), None);
        assert_eq!(triggers.reason(&wait(0, 1000)), None);
    }
}
