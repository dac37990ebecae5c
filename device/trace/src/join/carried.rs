// SPDX-License-Identifier: GPL-2.0-only
//! Which bios a request carries: no event says it, but a request is its bios end to end.
//!
//! A bio is in flight from when it is queued until requests have ended for all of it; one that was split has several. A
//! place is a bio's if it is the only one in flight that covers it and was queued before the device had the request.
//! Where there are more, as after two direct writes of one block, or none, nobody knows.

use std::collections::{BTreeMap, HashMap};

/// More bios of a device and operation than this are not in flight: it has no requests, or the end of some was lost.
const KEPT: usize = 8192;

/// A bio in flight. Places are sectors.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// Its number; none if there is no record of it.
    bio: Option<u64>,
    queued: u64,
    begin: u64,
    end: u64,
    left: u64,
}

/// Bios in flight of a device and operation.
#[derive(Debug, Default)]
struct Kind {
    at: BTreeMap<u64, Vec<Sent>>,
    count: usize,
    /// The largest that there was: no other one begins further before a place that it covers.
    largest: u64,
}

/// A request that has ended, or a part of it.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its device.
    pub dev: u64,
    /// What it does.
    pub operation: u64,
    /// Its first sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
    /// When the device got it, if that is known, ns.
    pub issued: Option<u64>,
}

/// All bios in flight.
#[derive(Debug, Default)]
pub struct Carried {
    kinds: HashMap<(u64, u64), Kind>,
}

impl Kind {
    fn add(&mut self, sent: Sent) {
        if self.count >= KEPT {
            *self = Kind::default();
        }
        self.largest = self.largest.max(sent.left);
        self.at.entry(sent.begin).or_default().push(sent);
        self.count += 1;
    }

    /// The first sectors of the bios that can have this place, one for each.
    fn covering(&self, place: u64, issued: Option<u64>) -> Vec<Sent> {
        let from = place.saturating_sub(self.largest);
        let near = self.at.range(from..=place).flat_map(|(_, there)| there);
        near.filter(|sent| sent.end > place && issued.is_none_or(|issued| sent.queued <= issued))
            .copied()
            .collect()
    }

    /// Takes sectors of a bio; all of them, and it is in flight no longer.
    fn take(&mut self, taken: &Sent, sectors: u64) {
        let Some(there) = self.at.get_mut(&taken.begin) else {
            return;
        };
        let same = |sent: &Sent| (sent.bio, sent.queued) == (taken.bio, taken.queued);
        let Some(at) = there.iter().position(same) else {
            return;
        };
        there[at].left = there[at].left.saturating_sub(sectors);
        if there[at].left == 0 {
            there.remove(at);
            self.count -= 1;
        }
        if there.is_empty() {
            self.at.remove(&taken.begin);
        }
    }
}

impl Carried {
    /// A bio was queued; `bio` is none if there is no record of it.
    pub fn queued(
        &mut self,
        (dev, operation): (u64, u64),
        (sector, sectors): (u64, u64),
        time: u64,
        bio: Option<u64>,
    ) {
        let Some(end) = sector.checked_add(sectors) else {
            return;
        };
        if sectors > 0 {
            self.kinds.entry((dev, operation)).or_default().add(Sent {
                bio,
                queued: time,
                begin: sector,
                end,
                left: sectors,
            });
        }
    }

    /// A request has ended: its first bio, and how many it has, where that is known.
    pub fn ended(&mut self, request: Ended) -> (Option<u64>, Option<u64>) {
        let Some(kind) = self.kinds.get_mut(&(request.dev, request.operation)) else {
            return (None, None);
        };
        let (mut first, mut bios) = (None, 0);
        let (mut at, mut left) = (request.sector, request.sectors);
        while left > 0 {
            let found = kind.covering(at, request.issued);
            let [only] = found[..] else {
                // Whichever it was: none of them is in flight alone any longer.
                found.iter().for_each(|sent| kind.take(sent, sent.left));
                return (first, None);
            };
            let sectors = left.min(only.end - at);
            kind.take(&only, sectors);
            if bios == 0 {
                first = only.bio;
            }
            bios += 1;
            at += sectors;
            left -= sectors;
        }
        // Without knowing when the device got it, any bio since can have been taken for its own.
        match request.issued {
            Some(_) if bios > 0 => (first, Some(bios)),
            _ => (None, None),
        }
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        self.kinds.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: (u64, u64) = (8 << 20, 2);

    fn ended(
        carried: &mut Carried,
        sector: u64,
        sectors: u64,
        issued: u64,
    ) -> (Option<u64>, Option<u64>) {
        carried.ended(Ended {
            dev: DISK.0,
            operation: DISK.1,
            sector,
            sectors,
            issued: Some(issued),
        })
    }

    #[test]
    fn a_request_has_bios_end_to_end() {
        let mut carried = Carried::default();
        carried.queued(DISK, (108, 8), 1, Some(2));
        carried.queued(DISK, (100, 8), 2, Some(1));
        carried.queued(DISK, (200, 8), 2, Some(3));
        assert_eq!(ended(&mut carried, 100, 16, 5), (Some(1), Some(2)));
        // Once: they are in flight no longer.
        assert_eq!(ended(&mut carried, 100, 16, 5), (None, None));
        assert_eq!(ended(&mut carried, 200, 8, 5), (Some(3), Some(1)));
        assert!(carried.kinds[&DISK].at.is_empty() && carried.kinds[&DISK].count == 0);
    }

    #[test]
    fn a_bio_that_was_split_is_each_parts() {
        let mut carried = Carried::default();
        carried.queued(DISK, (100, 32), 1, Some(1));
        carried.queued(DISK, (132, 8), 1, Some(2));
        assert_eq!(ended(&mut carried, 116, 24, 5), (Some(1), Some(2)));
        assert_eq!(ended(&mut carried, 100, 16, 5), (Some(1), Some(1)));
        assert_eq!(carried.kinds[&DISK].count, 0);
    }

    #[test]
    fn of_two_at_one_place_nobody_knows_and_later_ones_are_known_again() {
        let mut carried = Carried::default();
        carried.queued(DISK, (100, 8), 1, Some(1));
        carried.queued(DISK, (96, 8), 2, Some(2));
        assert_eq!(ended(&mut carried, 100, 8, 5), (None, None));
        assert_eq!(ended(&mut carried, 96, 8, 5), (None, None));
        carried.queued(DISK, (100, 8), 6, Some(3));
        assert_eq!(ended(&mut carried, 100, 8, 7), (Some(3), Some(1)));
    }

    #[test]
    fn what_was_queued_later_is_another_requests() {
        let mut carried = Carried::default();
        carried.queued(DISK, (100, 8), 1, Some(1));
        carried.queued(DISK, (100, 8), 4, Some(2));
        assert_eq!(ended(&mut carried, 100, 8, 3), (Some(1), Some(1)));
        assert_eq!(ended(&mut carried, 100, 8, 5), (Some(2), Some(1)));
    }

    #[test]
    fn what_has_no_record_or_no_begin_is_unknown() {
        let mut carried = Carried::default();
        carried.queued(DISK, (100, 8), 1, None);
        assert_eq!(ended(&mut carried, 100, 8, 3), (None, Some(1)));
        carried.queued(DISK, (100, 8), 4, Some(2));
        let unknown = Ended {
            dev: DISK.0,
            operation: DISK.1,
            sector: 100,
            sectors: 8,
            issued: None,
        };
        assert_eq!(carried.ended(unknown), (None, None));
        // Only a part of it is known.
        carried.queued(DISK, (100, 8), 6, Some(3));
        assert_eq!(ended(&mut carried, 100, 16, 7), (Some(3), None));
    }

    #[test]
    fn a_device_without_requests_costs_no_memory() {
        let mut carried = Carried::default();
        for number in 0..3 * KEPT as u64 {
            carried.queued(DISK, (number * 8, 8), number, Some(number));
        }
        assert!(carried.kinds[&DISK].count <= KEPT);
        assert!(carried.kinds[&DISK].at.len() <= KEPT);
    }
}
