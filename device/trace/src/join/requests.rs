// SPDX-License-Identifier: GPL-2.0-only
//! Requests: how long they were queued and how long the device took.

use super::carried::{Carried, Ended};
use super::event::Event;
use super::rwbs::Rwbs;
use fasttrack_trace_log::{Operation, Record, Request, Time};
use std::collections::HashMap;

/// More requests than this are not in flight: the end of some was lost.
const KEPT: usize = 65_536;

/// When a request came and went, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    inserted: Option<u64>,
    issued: Option<u64>,
    /// Sectors that are not done.
    left: u64,
}

/// Requests that have not ended, by device, operation and first sector.
#[derive(Debug, Default)]
pub struct Requests {
    waiting: HashMap<(u64, u64, u64), Times>,
}

fn key(event: &Event<'_>) -> ((u64, u64, u64), Rwbs) {
    let rwbs = Rwbs::parse(&event.text("rwbs").unwrap_or_default());
    let dev = event.number("dev").unwrap_or(0);
    let sector = event.place("sector").unwrap_or(0);
    ((dev, rwbs.operation.0, sector), rwbs)
}

impl Requests {
    fn of(&mut self, event: &Event<'_>) -> &mut Times {
        if self.waiting.len() >= KEPT {
            self.waiting.clear();
        }
        self.waiting.entry(key(event).0).or_default()
    }

    /// It came to the elevator.
    pub fn insert(&mut self, event: &Event<'_>) {
        let time = event.time;
        *self.of(event) = Times {
            inserted: Some(time),
            ..Times::default()
        };
    }

    /// It went to the device.
    pub fn issue(&mut self, event: &Event<'_>) {
        let sectors = event.place("nr_sector").unwrap_or(0);
        let time = event.time;
        let times = self.of(event);
        times.issued = Some(time);
        times.left = sectors;
    }

    /// It came back undone.
    pub fn requeue(&mut self, event: &Event<'_>) {
        self.of(event).issued = None;
    }

    /// A part of it, mostly all, is done.
    pub fn complete(&mut self, event: &Event<'_>, carried: &mut Carried, out: &mut Vec<Record>) {
        let (at, rwbs) = key(event);
        let sectors = event.place("nr_sector").unwrap_or(0);
        let times = self.waiting.remove(&at).unwrap_or_default();
        // One with a flush around it ends a second time, with the flush; it had no data, or has ended with that.
        if sectors == 0 && matches!(rwbs.operation, Operation::READ | Operation::WRITE) {
            return;
        }
        if times.left > sectors {
            let rest = (at.0, at.1, at.2 + sectors);
            let left = times.left - sectors;
            self.waiting.insert(rest, Times { left, ..times });
        }
        let data = rwbs.operation != Operation::FLUSH;
        let (first_bio, bios) = carried.ended(Ended {
            dev: at.0,
            operation: at.1,
            sector: at.2,
            sectors,
            issued: times.issued,
        });
        let between = |from: Option<u64>, to: u64| from.map(|from| to.saturating_sub(from));
        out.push(Record::from(Request {
            time: Time(event.time),
            dev: Some(at.0),
            operation: Some(rwbs.operation),
            // A flush has no place.
            sector: data.then_some(at.2),
            bytes: Some(sectors * 512),
            queued_ns: times
                .issued
                .and_then(|issued| between(times.inserted, issued)),
            device_ns: between(times.issued, event.time),
            error: event.signed("error"),
            first_bio,
            bios,
            ..Request::default()
        }));
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }
}
