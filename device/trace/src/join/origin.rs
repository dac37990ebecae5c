// SPDX-License-Identifier: GPL-2.0-only
//! Events of the patched kernel's I/O origin: it has joined already.
//!
//! A bio is followed by its segments on the same processor, and is given together with them. The kernel's ids of tasks
//! and files are even here, the collector's own are odd.

use super::event::Event;
use super::names::shown_id;
use super::rwbs::operation;
use super::Joiner;
use fasttrack_trace_log::{
    Bio, BlockType, Call, CallInterface, CallKind, Cause, Class, FileEvent, Operation, Record,
    Segment, Share, Time, Transaction, TransactionKind, Wait, WaitKind,
};

/// A bio whose segments are not all there.
#[derive(Debug)]
pub(super) struct Begun {
    bio: Bio,
    segments: Vec<Segment>,
    left: u64,
}

fn flag(event: &Event<'_>, name: &str) -> Option<bool> {
    event.number(name).map(|flag| flag != 0)
}

/// An id of the kernel's; 0 is unknown.
fn id(event: &Event<'_>, name: &str) -> Option<u64> {
    event.number(name).filter(|id| *id != 0).map(shown_id)
}

/// A call; "other" is unknown.
fn call(event: &Event<'_>, name: &str) -> Option<CallKind> {
    let call = event.number(name).map(CallKind);
    call.filter(|call| *call != CallKind::OTHER)
}

fn transaction(event: &Event<'_>) -> Record {
    let trigger = id(event, "trigger");
    let took = event.number("took_ns").filter(|took| *took != 0);
    Record::from(Transaction {
        time: Time(event.time),
        transaction: event.number("transaction"),
        kind: event.number("kind").map(TransactionKind),
        dev: event.dev("dev"),
        began: took.map(|took| Time(event.time.saturating_sub(took))),
        trigger,
        trigger_call: trigger.and_then(|_| call(event, "trigger_call")),
        carrier: id(event, "carrier"),
        handles: event.number("handles"),
        blocks: event.number("blocks"),
        logged: event.number("logged"),
        ..Transaction::default()
    })
}

fn share(event: &Event<'_>) -> Record {
    Record::from(Share {
        time: Time(event.time),
        transaction: event.number("transaction"),
        dev: event.dev("dev"),
        task: id(event, "task"),
        handles: event.number("handles"),
        blocks: event.number("blocks"),
        through_flusher: flag(event, "through_flusher"),
        ..Share::default()
    })
}

impl Joiner {
    pub(super) fn io_origin(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        match name {
            "task" => self.names.told_task(event),
            "file" => self.described(event, out),
            "bio" => self.begun(event, out),
            "segment" => self.continued(event, out),
            "transaction" => out.push(transaction(event)),
            "share" => out.push(share(event)),
            "call" => self.called(event, out),
            "wait" => self.waited(event, out),
            _ => {}
        }
    }

    /// The task of a call or a wait; none where it is the collector's own, which is counted.
    fn theirs(&mut self, event: &Event<'_>) -> Option<u64> {
        let task = id(event, "task")?;
        (!self.left_out_as_own(task)).then_some(task)
    }

    fn described(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let Some(file) = self.names.told_file(event) else {
            return;
        };
        if let (Some(sqlite), Some(FileEvent::UNLINK)) = (&mut self.sqlite, file.event) {
            let (gone, thread) = (file.file.unwrap_or(0), event.thread());
            sqlite.removed(gone, thread, event.time, &self.names, out);
        }
        out.push(Record::from(file));
    }

    fn called(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let Some(task) = self.theirs(event) else {
            return;
        };
        let file = id(event, "file");
        let call = Call {
            time: Time(event.time),
            task: Some(task),
            kind: event.number("call").map(CallKind),
            file,
            offset: event.number("offset").filter(|_| file.is_some()),
            bytes: event.number("bytes"),
            duration_ns: event.number("took_ns"),
            result: event.signed("result"),
            sqlite: file.map(|file| self.names.is_sqlite(file)),
            thread: event.number("thread").or_else(|| event.thread()),
            interface: event.number("interface").map(CallInterface),
            ..Call::default()
        };
        // SQLite has no other: and of these the order of their ends is no thread's.
        let in_turn = matches!(call.interface, None | Some(CallInterface::SYSTEM_CALL));
        if let (true, Some(sqlite)) = (in_turn, &mut self.sqlite) {
            sqlite.call(&call, &self.names, out);
        }
        out.push(Record::from(call));
    }

    fn waited(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let Some(task) = self.theirs(event) else {
            return;
        };
        let kind = event.number("kind").map(WaitKind);
        let is = |one| kind == Some(one);
        let number = event.number("number");
        let file = id(event, "file");
        out.push(Record::from(Wait {
            time: Time(event.time),
            task: Some(task),
            kind,
            duration_ns: event.number("took_ns"),
            dev: event.dev("dev"),
            file,
            index: number.filter(|_| is(WaitKind::FOLIO) && file.is_some()),
            sector: number.filter(|_| is(WaitKind::BUFFER)),
            transaction: number.filter(|tid| is(WaitKind::TRANSACTION) && *tid != 0),
            class: event.number("class").map(Class),
            thread: event.thread(),
            ..Wait::default()
        }));
    }

    fn begun(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        // Its segments were lost.
        if let Some(before) = self.begun.remove(&event.cpu) {
            self.give(before, out);
        }
        let operation = operation(event.number("operation"));
        let bytes = event.number("bytes").unwrap_or(0);
        let bio = Bio {
            time: Time(event.time),
            bio: event.number("bio"),
            dev: event.dev("dev"),
            operation: Some(operation),
            sector: event.place("sector").filter(|_| bytes > 0),
            bytes: Some(bytes),
            sync: flag(event, "sync"),
            fua: flag(event, "fua"),
            preflush: flag(event, "preflush"),
            meta: flag(event, "meta"),
            read_ahead: flag(event, "read_ahead"),
            carrier: id(event, "carrier"),
            class: event.number("class").map(Class),
            cause: event.number("cause").map(Cause),
            transaction: event.number("transaction").filter(|number| *number != 0),
            thread: event.thread(),
            ..Bio::default()
        };
        let holds = matches!(operation, Operation::READ | Operation::WRITE);
        let begun = Begun {
            bio,
            segments: Vec::new(),
            left: if holds { bytes } else { 0 },
        };
        match begun.left {
            0 => self.give(begun, out),
            _ => {
                self.begun.insert(event.cpu, begun);
            }
        }
    }

    fn continued(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        let Some(mut begun) = self.begun.remove(&event.cpu) else {
            return;
        };
        if begun.bio.bio == event.number("bio") {
            let bytes = event.number("bytes").unwrap_or(0);
            let file = id(event, "file");
            begun.left = begun.left.saturating_sub(bytes);
            begun.segments.push(Segment {
                time: begun.bio.time,
                bio: begun.bio.bio,
                offset: event.number("offset"),
                bytes: Some(bytes),
                block_type: event.number("block_type").map(BlockType),
                file,
                index: event.place("index").filter(|_| file.is_some()),
                owner: id(event, "owner"),
                call: call(event, "call"),
                ..Segment::default()
            });
        }
        match begun.left {
            0 => self.give(begun, out),
            _ => {
                self.begun.insert(event.cpu, begun);
            }
        }
    }

    pub(super) fn give(&mut self, mut begun: Begun, out: &mut Vec<Record>) {
        let bytes = begun.bio.bytes.unwrap_or(0);
        let carrier = begun.bio.carrier.unwrap_or(0);
        let operation = begun.bio.operation.unwrap_or_default();
        if let Some((dev, sector)) = begun.bio.dev.zip(begun.bio.sector) {
            let (of, place) = ((begun.bio.time, begun.bio.bio), (sector, bytes / 512));
            begun.segments = self.followed(of, (dev, operation), place, begun.segments);
        }
        let left_out = self.left_out(carrier, operation, &begun.segments, bytes);
        if let (Some(dev), Some(sector)) = (begun.bio.dev, begun.bio.sector) {
            let number = begun.bio.bio.filter(|_| !left_out);
            let time = begun.bio.time.0;
            self.carried
                .queued((dev, operation.0), (sector, bytes / 512), time, number);
        }
        if !left_out {
            out.push(Record::from(begun.bio));
            out.extend(begun.segments.into_iter().map(Record::from));
        }
    }
}
