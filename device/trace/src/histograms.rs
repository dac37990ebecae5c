// SPDX-License-Identifier: GPL-2.0-only
//! Sums that the patched kernel makes of its events by histograms, without a program.
//!
//! A histogram is never emptied between two pictures, which are its growth: what is counted while it is read is in the
//! next one. One that is nearly full is emptied, and what was counted between its last reading and that is lost, and
//! told: a second count, which is never emptied, has it, as it has what found no room.

use crate::clocks;
use crate::join::shown_id;
use crate::sums::{On, Sum, Summing, What, Who};
use crate::tracefs::{Histogram, Missing, Row, Triggers, ROOM, TYPES};
use fasttrack_trace_log::{BlockType, CallKind, LossReason};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

/// A histogram that is so full is emptied, rows.
const FULL: usize = ROOM / 4 * 3;

/// What a bio asks.
const READ: u64 = 0;
const WRITE: u64 = 1;

/// A histogram, and what was told of it.
#[derive(Debug, Default)]
struct Grows {
    rows: HashMap<Vec<u64>, Vec<u64>>,
    /// Hits before it was emptied.
    emptied: u64,
    /// Hits that were told as lost.
    lost: u64,
}

impl Grows {
    /// What has come since the last time, and how many of `all` are in no row that was read.
    fn by(&mut self, all: u64, now: &Histogram) -> (Vec<Row>, u64) {
        let mut grown = Vec::new();
        for row in &now.rows {
            let before = self.rows.insert(row.keys.clone(), row.values.clone());
            let before = before.unwrap_or_default();
            let was = |at: usize| before.get(at).copied().unwrap_or(0);
            let values = row.values.iter().enumerate();
            let values: Vec<u64> = values
                .map(|(at, value)| value.saturating_sub(was(at)))
                .collect();
            if values.iter().any(|value| *value > 0) {
                grown.push(Row {
                    keys: row.keys.clone(),
                    values,
                });
            }
        }
        // All was read first: it has no more than there were when the rows were read.
        let lost = all.saturating_sub(self.emptied.saturating_add(now.hits));
        let more = lost.saturating_sub(self.lost);
        self.lost += more;
        (grown, more)
    }

    /// It was emptied after it had `hits`.
    fn emptied(&mut self, hits: u64) {
        self.rows.clear();
        self.emptied = self.emptied.saturating_add(hits);
    }
}

/// Sums of the blocks of a row, and how many runs have none: their bio's own event is not the last one.
fn of_blocks(row: &Row) -> Result<Sum, u64> {
    let (&[owner, file, asked], &[count, bytes]) = (&row.keys[..], &row.values[..]) else {
        return Err(row.values.first().copied().unwrap_or(0));
    };
    let kind = BlockType(file % TYPES);
    let what = match asked {
        READ => What::Read(kind),
        WRITE => What::Written(kind),
        _ => return Err(count),
    };
    let file = file / TYPES;
    Ok(Sum {
        who: (owner != 0).then(|| Who::Known(shown_id(owner))),
        file: (file != 0).then(|| On::Known(shown_id(file))),
        what,
        count,
        bytes,
        ns: 0,
        longest_ns: 0,
    })
}

/// The longest of calls that took at most 2^`power` ns each, and more than half of that: exact if it is one, at most so
/// much otherwise.
fn longest(power: u64, count: u64, ns: u64) -> u64 {
    let most = 1_u64.checked_shl(power as u32).unwrap_or(u64::MAX);
    let others = (most / 2).saturating_mul(count.saturating_sub(1));
    ns.saturating_sub(others).min(most)
}

/// Sums of calls, by task and call.
fn of_calls(rows: &[Row]) -> Vec<Sum> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let (&[task, call, power], &[count, ns]) = (&row.keys[..], &row.values[..]) else {
            continue;
        };
        let sum = sums.entry((task, call)).or_insert_with(|| Sum {
            who: (task != 0).then(|| Who::Known(shown_id(task))),
            file: None,
            what: What::Call(CallKind(call)),
            count: 0,
            bytes: 0,
            ns: 0,
            longest_ns: 0,
        });
        sum.count += count;
        sum.ns = sum.ns.saturating_add(ns);
        sum.longest_ns = sum.longest_ns.max(longest(power, count, ns));
    }
    sums.into_values().collect()
}

/// Histograms at work, which end when this is dropped.
pub struct Histograms {
    triggers: Triggers,
    blocks: Grows,
    calls: Grows,
    since: u64,
}

impl Histograms {
    /// Begins them for the events of a ring.
    ///
    /// # Errors
    /// The kernel has none, or refuses: which file, and what it says.
    pub fn new(tracefs: &Path, ring: &Path) -> io::Result<Histograms> {
        let triggers = Triggers::new(tracefs, ring)?;
        let told = |(all, found): (u64, Histogram)| Grows {
            lost: all.saturating_sub(found.hits),
            ..Grows::default()
        };
        // Calls are counted before they are summed up.
        let calls = triggers.calls().map(told).map_err(io::Error::other)?;
        Ok(Histograms {
            triggers,
            blocks: Grows::default(),
            calls,
            since: clocks::boot(),
        })
    }
}

impl Summing for Histograms {
    fn take(&mut self) -> Result<(Vec<Sum>, Vec<Missing>), String> {
        let told = |error: io::Error| error.to_string();
        let (all, found) = self.triggers.blocks()?;
        let (rows, mut lost) = self.blocks.by(all, &found);
        if found.rows.len() >= FULL {
            self.triggers.clear_blocks().map_err(told)?;
            self.blocks.emptied(found.hits);
        }
        let mut sums = Vec::new();
        for row in &rows {
            match of_blocks(row) {
                Ok(sum) => sums.push(sum),
                Err(count) => lost += count,
            }
        }
        let (all, found) = self.triggers.calls()?;
        let (rows, more) = self.calls.by(all, &found);
        if found.rows.len() >= FULL {
            self.triggers.clear_calls().map_err(told)?;
            self.calls.emptied(found.hits);
        }
        sums.extend(of_calls(&rows));
        let until = clocks::boot();
        let since = std::mem::replace(&mut self.since, until);
        let lost = lost + more;
        let missing = (lost > 0).then_some(Missing {
            cpu: None,
            since,
            until,
            count: Some(lost),
            reason: LossReason::RING_OVERRUN,
        });
        Ok((sums, missing.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(keys: &[u64], values: &[u64]) -> Row {
        Row {
            keys: keys.to_vec(),
            values: values.to_vec(),
        }
    }

    fn histogram(rows: Vec<Row>) -> Histogram {
        Histogram {
            hits: rows.iter().map(|row| row.values[0]).sum(),
            rows,
            dropped: 0,
        }
    }

    #[test]
    fn a_picture_is_the_growth() {
        let mut grows = Grows::default();
        let first = histogram(vec![row(&[1], &[2, 20])]);
        assert_eq!(grows.by(2, &first), (vec![row(&[1], &[2, 20])], 0));
        assert_eq!(grows.by(2, &first), (vec![], 0));
        let second = histogram(vec![row(&[1], &[5, 50]), row(&[2], &[1, 7])]);
        let grown = vec![row(&[1], &[3, 30]), row(&[2], &[1, 7])];
        assert_eq!(grows.by(6, &second), (grown, 0));
    }

    /// What comes between the reading and the emptying, and what finds no room, is told once, and exactly.
    #[test]
    fn what_is_in_no_row_is_lost() {
        let mut grows = Grows::default();
        let full = histogram(vec![row(&[1], &[8, 80])]);
        assert_eq!(grows.by(8, &full).1, 0);
        grows.emptied(full.hits);
        let next = histogram(vec![row(&[1], &[4, 40])]);
        assert_eq!(grows.by(15, &next), (vec![row(&[1], &[4, 40])], 3));
        assert_eq!(grows.by(15, &next), (vec![], 0));
        // Rows that were read later than the count are no loss.
        let later = histogram(vec![row(&[1], &[6, 60])]);
        assert_eq!(grows.by(15, &later).1, 0);
        assert_eq!(grows.by(17, &later).1, 0);
    }

    #[test]
    fn blocks_have_an_owner_a_file_a_type_and_a_direction() {
        let sum = of_blocks(&row(&[3, 5 * TYPES + 1, WRITE], &[2, 8192])).expect("a sum");
        assert_eq!(sum.who, Some(Who::Known(6)));
        assert_eq!(sum.file, Some(On::Known(10)));
        assert_eq!(sum.what, What::Written(BlockType::DATA));
        assert_eq!((sum.count, sum.bytes), (2, 8192));
        let nobody = of_blocks(&row(&[0, 3, READ], &[1, 4096])).expect("a sum");
        assert_eq!((nobody.who, nobody.file), (None, None));
        assert_eq!(nobody.what, What::Read(BlockType::METADATA));
        // Another bio came between on its processor: nobody knows the direction.
        assert_eq!(of_blocks(&row(&[3, 9, 65], &[4, 4096])), Err(4));
    }

    #[test]
    fn the_longest_call_is_known_by_its_power_of_two() {
        // Alone it is exact.
        assert_eq!(longest(12, 1, 3000), 3000);
        // Two of more than 2048 and at most 4096.
        assert_eq!(longest(12, 2, 6000), 3952);
        assert_eq!(longest(12, 10, 40_960), 4096);
        assert_eq!(longest(64, 1, u64::MAX), u64::MAX);
        let rows = [
            row(&[3, 1, 10], &[4, 3000]),
            row(&[3, 1, 12], &[1, 4000]),
            row(&[3, 3, 12], &[1, 2100]),
        ];
        let sums = of_calls(&rows);
        assert_eq!(sums.len(), 2);
        assert_eq!(sums[0].what, What::Call(CallKind::READ));
        let first = (sums[0].count, sums[0].ns, sums[0].longest_ns);
        assert_eq!(first, (5, 7000, 4000));
        assert_eq!(sums[1].who, Some(Who::Known(6)));
    }
}
