// SPDX-License-Identifier: GPL-2.0-only
//! The headers of files and blocks. All numbers are little-endian.

use crc32c::crc32c;

/// Version of the file format.
pub const FORMAT: u16 = 1;

/// A log file begins so.
pub const FILE_MAGIC: [u8; 8] = *b"FTTRACE\n";

/// A block begins so.
pub const BLOCK_MAGIC: [u8; 4] = *b"FTBK";

/// A file that was closed ends with this, the place of the index, and a checksum.
pub const END_MAGIC: [u8; 4] = *b"FTEN";

/// Bytes of a file's header.
pub const FILE_HEADER: usize = 64;

/// Bytes of a block's header.
pub const BLOCK_HEADER: usize = 80;

/// Bytes of a closed file's end.
pub const END: usize = 16;

/// A block's records are no larger than this, compressed or not, in bytes: a reader trusts no length above it.
pub const BLOCK_MAX: usize = 16 << 20;

/// The block holds records.
pub const KIND_RECORDS: u8 = 0;

/// The block is the file's index.
pub const KIND_INDEX: u8 = 1;

/// What a log file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileHeader {
    /// Version of the file format.
    pub format: u16,
    /// Version of the schema that it was written by.
    pub schema_version: u16,
    /// Id of that schema.
    pub schema_id: u64,
    /// The collector's run.
    pub session: [u8; 16],
    /// The file's number in its directory.
    pub number: u64,
}

/// What a block says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockHeader {
    /// Version of the schema.
    pub schema_version: u16,
    /// Records or index.
    pub kind: u8,
    /// Bytes of the payload in the file.
    pub stored: u32,
    /// Bytes of the payload when it is decompressed.
    pub raw: u32,
    /// Records.
    pub records: u32,
    /// Id of the schema.
    pub schema_id: u64,
    /// The block's number in the session.
    pub sequence: u64,
    /// The earliest time of a record, ns.
    pub first: u64,
    /// The latest, ns.
    pub last: u64,
    /// What the block's loss records count together.
    pub lost: u64,
    /// Begin of the session's id.
    pub session: u64,
    /// CRC32C of the payload.
    pub payload_crc: u32,
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(&bytes[at..at + N]);
    found
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(part(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(part(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(part(bytes, at))
}

fn sealed(bytes: &[u8], size: usize) -> bool {
    bytes.len() >= size && u32_at(bytes, size - 4) == crc32c(&bytes[..size - 4])
}

fn seal(bytes: &mut Vec<u8>, size: usize) {
    bytes.resize(size - 4, 0);
    let crc = crc32c(bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
}

impl FileHeader {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = FILE_MAGIC.to_vec();
        out.extend_from_slice(&self.format.to_le_bytes());
        out.extend_from_slice(&(FILE_HEADER as u16).to_le_bytes());
        out.extend_from_slice(&self.schema_version.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.schema_id.to_le_bytes());
        out.extend_from_slice(&self.session);
        out.extend_from_slice(&self.number.to_le_bytes());
        seal(&mut out, FILE_HEADER);
        out
    }

    /// Whether `bytes` begin like a log file of any version.
    pub fn is_log(bytes: &[u8]) -> bool {
        bytes.starts_with(&FILE_MAGIC)
    }

    /// The format's version that a log file claims; the one field that every version keeps in its place.
    pub fn format_of(bytes: &[u8]) -> Option<u16> {
        (bytes.len() >= 10).then(|| u16_at(bytes, 8))
    }

    /// Reads one of this version.
    pub fn read(bytes: &[u8]) -> Option<FileHeader> {
        if !sealed(bytes, FILE_HEADER) || !FileHeader::is_log(bytes) {
            return None;
        }
        Some(FileHeader {
            format: u16_at(bytes, 8),
            schema_version: u16_at(bytes, 12),
            schema_id: u64_at(bytes, 16),
            session: part(bytes, 24),
            number: u64_at(bytes, 40),
        })
    }
}

impl BlockHeader {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = BLOCK_MAGIC.to_vec();
        out.extend_from_slice(&(BLOCK_HEADER as u16).to_le_bytes());
        out.extend_from_slice(&self.schema_version.to_le_bytes());
        out.extend_from_slice(&[self.kind, 0, 0, 0]);
        for number in [self.stored, self.raw, self.records] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [
            self.schema_id,
            self.sequence,
            self.first,
            self.last,
            self.lost,
            self.session,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.payload_crc.to_le_bytes());
        seal(&mut out, BLOCK_HEADER);
        out
    }

    /// Reads one; `None` if it is not whole.
    pub fn read(bytes: &[u8]) -> Option<BlockHeader> {
        if !bytes.starts_with(&BLOCK_MAGIC) || !sealed(bytes, BLOCK_HEADER) {
            return None;
        }
        let found = BlockHeader {
            schema_version: u16_at(bytes, 6),
            kind: bytes[8],
            stored: u32_at(bytes, 12),
            raw: u32_at(bytes, 16),
            records: u32_at(bytes, 20),
            schema_id: u64_at(bytes, 24),
            sequence: u64_at(bytes, 32),
            first: u64_at(bytes, 40),
            last: u64_at(bytes, 48),
            lost: u64_at(bytes, 56),
            session: u64_at(bytes, 64),
            payload_crc: u32_at(bytes, 72),
        };
        let largest = found.stored.max(found.raw) as usize;
        (largest <= BLOCK_MAX).then_some(found)
    }

    /// Bytes of the whole block in the file.
    pub fn size(&self) -> u64 {
        BLOCK_HEADER as u64 + u64::from(self.stored)
    }
}

/// The end of a file that was closed: where its index block begins.
pub fn end_bytes(index_at: u64) -> Vec<u8> {
    let mut out = END_MAGIC.to_vec();
    out.extend_from_slice(&index_at.to_le_bytes());
    seal(&mut out, END);
    out
}

/// Where the index begins, if `bytes` end like a closed file.
pub fn index_at(bytes: &[u8]) -> Option<u64> {
    let end = bytes.get(bytes.len().checked_sub(END)?..)?;
    (end.starts_with(&END_MAGIC) && sealed(end, END)).then(|| u64_at(end, 4))
}

/// Begin of a session's id, as blocks have it.
pub fn session_begin(session: &[u8; 16]) -> u64 {
    u64_at(session, 0)
}
