// SPDX-License-Identifier: GPL-2.0-only
//! Records of I/O origin and the files that hold them.
//!
//! A log file is a header and blocks. A block stands alone: a header with its times, counts and checksums, and records
//! that are compressed together. A file is only ever appended to, a block by one write; so whatever was written before
//! the collector or the machine died is read, and what was being written is not.
//!
//! The records are those of `contract/trace.toml`. A reader keeps fields and records that it does not know, and refuses
//! a file format that is newer than its own.

mod codec;
mod directory;
mod format;
mod reader;
#[rustfmt::skip]
mod schema;
mod writer;

pub use codec::{Extra, Malformed, Shown, Time, Unknown};
pub use directory::{log_files, read_directory, read_directory_by, Found, SUFFIX};
pub use format::{BlockHeader, FileHeader, FORMAT};
pub use reader::{Block, Damage, LogError, LogFile};
pub use schema::*;
pub use writer::{LogWriter, Options, Sync, WriteError};

/// Encodes records as a block's payload; for tests and tools.
pub fn encode(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut last = 0;
    for record in records {
        record.put(&mut bytes, &mut last);
    }
    bytes
}

/// Decodes a block's payload.
///
/// # Errors
/// The bytes are not records.
pub fn decode(bytes: &[u8]) -> Result<Vec<Record>, Malformed> {
    let mut input = codec::Input::new(bytes);
    let mut last = 0;
    let mut records = Vec::new();
    while !input.is_empty() {
        records.push(Record::get(&mut input, &mut last)?);
    }
    Ok(records)
}
