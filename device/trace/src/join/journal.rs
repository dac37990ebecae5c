// SPDX-License-Identifier: GPL-2.0-only
//! Transactions of jbd2 and checkpoints of f2fs, and who pays for them.

use super::event::Event;
use super::names::Names;
use fasttrack_trace_log::{Record, Share, Time, Transaction, TransactionKind};
use std::collections::{BTreeMap, HashMap};

/// What a task did in a transaction.
#[derive(Debug, Clone, Copy, Default)]
struct Paid {
    handles: u64,
    blocks: u64,
}

/// More transactions than this are not open: the end of some was lost.
const KEPT: usize = 64;

/// A transaction that has not ended.
#[derive(Debug, Default)]
struct Open {
    began: Option<u64>,
    carrier: Option<u64>,
    payers: BTreeMap<u64, Paid>,
}

/// Transactions by device and number.
#[derive(Debug, Default)]
pub struct Journal {
    open: HashMap<(u64, u64), Open>,
    /// What a journal's task commits now, by that task.
    committing: HashMap<u64, u64>,
    /// f2fs does not number its checkpoints in events.
    checkpoints: HashMap<u64, u64>,
}

impl Journal {
    fn of(&mut self, at: (u64, u64)) -> &mut Open {
        if self.open.len() >= KEPT {
            self.open.clear();
        }
        self.open.entry(at).or_default()
    }

    /// An event of jbd2.
    pub fn event(
        &mut self,
        name: &str,
        event: &Event<'_>,
        names: &mut Names,
        out: &mut Vec<Record>,
    ) {
        let number = event.number("tid").or(event.number("transaction"));
        let (Some(dev), Some(number)) = (event.dev("dev"), number) else {
            return;
        };
        let at = (dev, number);
        match name {
            "jbd2_handle_stats" => {
                let task = names.task(event.pid(), event.time);
                let paid = self.of(at).payers.entry(task).or_default();
                paid.handles += 1;
                paid.blocks += event.place("dirtied_blocks").unwrap_or(0);
            }
            "jbd2_start_commit" => {
                let carrier = names.task(event.pid(), event.time);
                self.committing.insert(carrier, number);
                let open = self.of(at);
                open.began = Some(event.time);
                open.carrier = Some(carrier);
            }
            "jbd2_run_stats" => self.ended(at, event, out),
            _ => {}
        }
    }

    /// The transaction that this task commits.
    pub fn committing(&self, carrier: u64) -> Option<u64> {
        self.committing.get(&carrier).copied()
    }

    fn ended(&mut self, at: (u64, u64), event: &Event<'_>, out: &mut Vec<Record>) {
        let open = self.open.remove(&at).unwrap_or_default();
        if let Some(carrier) = open.carrier {
            self.committing.remove(&carrier);
        }
        let time = Time(event.time);
        let (dev, number) = (Some(at.0), Some(at.1));
        let handles = event.number("handle_count");
        out.push(Record::from(Transaction {
            time,
            transaction: number,
            kind: Some(TransactionKind::JBD2),
            dev,
            began: open.began.map(Time),
            carrier: open.carrier,
            handles,
            blocks: event.number("blocks"),
            logged: event.number("blocks_logged"),
            ..Transaction::default()
        }));
        let known: u64 = open.payers.values().map(|paid| paid.handles).sum();
        let unknown = Paid {
            handles: handles.unwrap_or(known).saturating_sub(known),
            blocks: 0,
        };
        let payers = open.payers.iter().map(|(task, paid)| (Some(*task), *paid));
        let rest = (unknown.handles > 0).then_some((None, unknown));
        for (task, paid) in payers.chain(rest) {
            out.push(Record::from(Share {
                time,
                transaction: number,
                dev,
                task,
                handles: Some(paid.handles),
                blocks: Some(paid.blocks),
                ..Share::default()
            }));
        }
    }

    /// A step of a checkpoint of f2fs.
    pub fn checkpoint(&mut self, event: &Event<'_>, names: &mut Names, out: &mut Vec<Record>) {
        let Some(dev) = event.dev("dev") else {
            return;
        };
        let step = event.text("dest_msg").unwrap_or_default();
        let number = *self.checkpoints.entry(dev).or_insert(1);
        let carrier = names.task(event.pid(), event.time);
        if step.starts_with("start") {
            self.committing.insert(carrier, number);
            self.of((dev, number)).began = Some(event.time);
        } else if step.starts_with("finish checkpoint") {
            self.checkpoints.insert(dev, number + 1);
            self.committing.remove(&carrier);
            let open = self.open.remove(&(dev, number)).unwrap_or_default();
            out.push(Record::from(Transaction {
                time: Time(event.time),
                transaction: Some(number),
                kind: Some(TransactionKind::CHECKPOINT),
                dev: Some(dev),
                began: open.began.map(Time),
                carrier: Some(carrier),
                ..Transaction::default()
            }));
        }
    }
}
