// SPDX-License-Identifier: GPL-2.0-only
//! Any records come back; any bytes are read without a panic, and give nothing that was not written.

use fasttrack_trace_log::{
    decode, encode, log_files, Bio, Call, CallKind, Extra, LogFile, LogWriter, Operation, Options,
    Record, Task, Time, Unknown,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn record() -> impl Strategy<Value = Record> {
    let bio = (
        any::<u64>(),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(any::<bool>()),
        option::of(any::<i64>()),
        option::of(0..20_u64),
    )
        .prop_map(|(time, sector, bytes, sync, app_uid, operation)| {
            Record::from(Bio {
                time: Time(time),
                sector,
                bytes,
                sync,
                app_uid,
                operation: operation.map(Operation),
                ..Bio::default()
            })
        });
    let task = (any::<u64>(), option::of(".{0,20}")).prop_map(|(time, name)| {
        Record::from(Task {
            time: Time(time),
            name,
            ..Task::default()
        })
    });
    // A call of a schema with two fields more.
    let newer = (any::<u64>(), vec(any::<u8>(), 0..20)).prop_map(|(time, bytes)| {
        let bits = 3 << 40;
        Record::from(Call {
            time: Time(time),
            kind: Some(CallKind::FSYNC),
            extra: Extra { bits, bytes },
            ..Call::default()
        })
    });
    let unknown =
        (100..200_u64, any::<u64>(), vec(any::<u8>(), 0..20)).prop_map(|(id, time, bytes)| {
            let extra = Extra { bits: 6, bytes };
            Record::Unknown(Unknown {
                id,
                time: Time(time),
                extra,
            })
        });
    prop_oneof![bio, task, newer, unknown]
}

/// A log file's bytes of these records.
fn file_of(records: &[Record]) -> Vec<u8> {
    let dir = tempfile::TempDir::new().expect("a directory");
    let options = Options {
        block_bytes: 100,
        sync: fasttrack_trace_log::Sync::Never,
        ..Options::default()
    };
    let mut writer = LogWriter::new(dir.path(), [7; 16], options).expect("a directory");
    for record in records {
        writer.push(std::slice::from_ref(record)).expect("written");
    }
    writer.close().expect("closed");
    std::fs::read(&log_files(dir.path()).expect("files")[0].1).expect("bytes")
}

proptest! {
    // Files must not be left beside the sources by a run in CI.
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_come_back(records in vec(record(), 0..50)) {
        prop_assert_eq!(decode(&encode(&records)).expect("records"), records);
    }

    #[test]
    fn any_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..400)) {
        if let Ok(records) = decode(&bytes) {
            // Whatever is read can be written.
            prop_assert_eq!(decode(&encode(&records)).expect("records"), records);
        }
        let _ = LogFile::parse(bytes);
    }

    #[test]
    fn damage_gives_nothing_new(
        records in vec(record(), 1..40),
        wrong in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = file_of(&records);
        for (at, with) in &wrong {
            let at = at.index(bytes.len());
            bytes[at] ^= *with;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(file) = LogFile::parse(bytes) {
            for block in file.blocks(0, u64::MAX).flatten() {
                for record in &block.records {
                    prop_assert!(records.contains(record));
                }
            }
        }
    }
}
