// SPDX-License-Identifier: GPL-2.0-only
//! The reader of log files, fuzzed from the files that each version has written. What makes it fail is kept in
//! device/fuzz/corpus/reader_fuzz.

use fasttrack_trace_log::{decode, encode, LogFile, Record};
use std::path::Path;

/// The files of all versions.
fn golden() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("golden files")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("bytes");
    paths.into_iter().map(read).collect()
}

fn records(file: &LogFile) -> Vec<Record> {
    let blocks = file.blocks(0, u64::MAX).flatten();
    blocks.flat_map(|block| block.records).collect()
}

fn parsed(bytes: &[u8]) -> Vec<Record> {
    records(&LogFile::parse(bytes.to_vec()).expect("a log"))
}

/// Checksums keep out what was not written; damage is within the file.
#[test]
fn spoilt_files_give_nothing_that_was_not_written() {
    let good = golden();
    let written: Vec<Record> = good.iter().flat_map(|bytes| parsed(bytes)).collect();
    assert!(good.len() >= 9 && written.len() > good.len());
    fasttrack_fuzz::mutate_all(&good, |bytes| {
        let Ok(file) = LogFile::parse(bytes.to_vec()) else {
            return;
        };
        for record in records(&file) {
            assert!(written.contains(&record), "{record:?}");
        }
        let blocks = file.blocks(0, u64::MAX).filter_map(Result::err);
        for damage in file.damages().iter().cloned().chain(blocks) {
            assert!(damage.at + damage.bytes <= bytes.len() as u64, "{damage:?}");
        }
    });
}

/// What is behind the checksums: any bytes are records or malformed, and records can be written again.
#[test]
fn spoilt_records_are_no_panic() {
    let good = golden();
    let good: Vec<Vec<u8>> = good.iter().map(|bytes| encode(&parsed(bytes))).collect();
    fasttrack_fuzz::mutate_all(&good, |bytes| {
        if let Ok(records) = decode(bytes) {
            assert_eq!(decode(&encode(&records)).expect("records"), records);
        }
    });
}
