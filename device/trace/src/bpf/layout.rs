// SPDX-License-Identifier: GPL-2.0-only
//! The records of `bpf/origin.bpf.c`, as events.

use crate::tracefs::{EventFormat, FieldFormat, Place};

/// Numbers of records, as the program has them.
const DIRTY: u16 = 0xff01;
const FAULT: u16 = 0xff02;
const RUNS: u16 = 0xff03;
const BIO: u16 = 0xff04;
/// A run of a bio's pages: it is sent as a part of another record.
const RUN: u16 = 0xff05;
const WRITTEN: u16 = 0xff06;
const TOLD: u16 = 0xff07;

/// Bytes of what all records begin with, of what pages and a bio have beside it, and of a run.
const HEAD: usize = 56;
const PAGE_BYTES: usize = 32;
const BIO_BYTES: usize = 24;
const RUN_BYTES: usize = 32;
/// Bytes in front of a run that is an event by itself.
const RUN_HEAD: usize = 8;

/// Name, place and bytes of a field.
type Field = (&'static str, usize, usize);

const TASK: [Field; 6] = [
    ("common_pid", 16, 4),
    ("tgid", 20, 4),
    ("uid", 24, 4),
    ("kernel_thread", 28, 4),
    ("cgroup", 32, 8),
    ("comm", 40, 16),
];
const PAGE: [Field; 5] = [
    ("ino", HEAD, 8),
    ("index", HEAD + 8, 8),
    ("dev", HEAD + 16, 4),
    ("kind", HEAD + 20, 4),
    ("pages", HEAD + 24, 8),
];
const SENT: [Field; 5] = [
    ("sector", HEAD, 8),
    ("dev", HEAD + 8, 4),
    ("bytes", HEAD + 12, 4),
    ("operation", HEAD + 16, 4),
    ("flags", HEAD + 20, 4),
];
const OF_RUN: [Field; 6] = [
    ("ino", RUN_HEAD, 8),
    ("index", RUN_HEAD + 8, 8),
    ("dev", RUN_HEAD + 16, 4),
    ("bytes", RUN_HEAD + 20, 4),
    ("kind", RUN_HEAD + 24, 4),
    ("generation", RUN_HEAD + 28, 4),
];

fn format(name: &str, id: u16, fields: &[&[Field]]) -> EventFormat {
    let field = |(name, offset, size): &Field| FieldFormat {
        name: name.to_string(),
        offset: *offset,
        size: *size,
        signed: false,
        place: Place::Fixed,
    };
    EventFormat {
        name: name.to_string(),
        id,
        fields: fields.concat().iter().map(field).collect(),
    }
}

/// Descriptions of the events.
pub fn formats() -> [EventFormat; 6] {
    [
        format("bpf_dirty", DIRTY, &[&TASK, &PAGE]),
        format("bpf_fault", FAULT, &[&TASK, &PAGE]),
        format("bpf_bio", BIO, &[&TASK, &SENT]),
        format("bpf_run", RUN, &[&OF_RUN]),
        format("bpf_written", WRITTEN, &[&TASK, &PAGE]),
        format("bpf_task", TOLD, &[&TASK]),
    ]
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Makes events of a record: runs, then what they belong to. None if it is no record.
pub fn events(record: &[u8], events: &mut Vec<(u64, u64, Vec<u8>)>) -> Option<()> {
    let (id, runs) = (half(record, 0)?, usize::from(half(record, 2)?));
    let cpu = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
    let time = u64::from_le_bytes(record.get(8..16)?.try_into().ok()?);
    let end = match id {
        TOLD => return whole(record, HEAD, time, cpu, events),
        DIRTY | FAULT | WRITTEN => return whole(record, HEAD + PAGE_BYTES, time, cpu, events),
        RUNS | BIO => HEAD + BIO_BYTES,
        _ => return None,
    };
    let all = record.get(end..end + runs * RUN_BYTES)?;
    for run in all.chunks(RUN_BYTES) {
        let mut data = vec![0; RUN_HEAD];
        data[..2].copy_from_slice(&RUN.to_le_bytes());
        data.extend_from_slice(run);
        events.push((time, u64::from(cpu), data));
    }
    match id {
        BIO => whole(record, end, time, cpu, events),
        _ => Some(()),
    }
}

fn whole(
    record: &[u8],
    end: usize,
    time: u64,
    cpu: u32,
    events: &mut Vec<(u64, u64, Vec<u8>)>,
) -> Option<()> {
    events.push((time, u64::from(cpu), record.get(..end)?.to_vec()));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bio(id: u16, runs: u16) -> Vec<u8> {
        let mut record = vec![0; HEAD + BIO_BYTES];
        record[..2].copy_from_slice(&id.to_le_bytes());
        record[2..4].copy_from_slice(&runs.to_le_bytes());
        record[4] = 3;
        record[8] = 77;
        record[HEAD] = 9;
        for run in 0..runs {
            let mut bytes = [0; RUN_BYTES];
            bytes[0] = run as u8 + 1;
            record.extend(bytes);
        }
        record
    }

    #[test]
    fn runs_come_before_their_bio() {
        let mut found = Vec::new();
        assert!(events(&bio(RUNS, 2), &mut found).is_some());
        assert!(events(&bio(BIO, 1), &mut found).is_some());
        let ids: Vec<_> = found.iter().map(|one| half(&one.2, 0)).collect();
        assert_eq!(ids, [Some(RUN), Some(RUN), Some(RUN), Some(BIO)]);
        assert!(found.iter().all(|one| (one.0, one.1) == (77, 3)));
        let formats = formats();
        let inodes: Vec<_> = found[..3]
            .iter()
            .map(|one| formats[3].number(&one.2, "ino"))
            .collect();
        assert_eq!(inodes, [Some(1), Some(2), Some(1)]);
        assert_eq!(formats[2].number(&found[3].2, "sector"), Some(9));
    }

    #[test]
    fn what_is_cut_is_no_record() {
        let whole = bio(BIO, 2);
        for end in 0..whole.len() {
            assert!(events(&whole[..end], &mut Vec::new()).is_none(), "{end}");
        }
        assert!(events(&bio(1, 0), &mut Vec::new()).is_none());
    }
}
