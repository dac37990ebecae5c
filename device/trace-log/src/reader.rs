// SPDX-License-Identifier: GPL-2.0-only
//! Reads a log file, whatever has happened to it.

use crate::codec::{put_number, Input};
use crate::format::{
    index_at, session_begin, BlockHeader, FileHeader, BLOCK_HEADER, BLOCK_MAGIC, END, FILE_HEADER,
    FORMAT, KIND_INDEX, KIND_RECORDS,
};
use crate::schema::Record;
use crc32c::crc32c;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Why a file cannot be read at all.
#[derive(Debug)]
pub enum LogError {
    /// The system says no.
    Io(io::Error),
    /// It is no log file.
    Foreign,
    /// It ends within its header: nothing was finished.
    Empty,
    /// Its header is damaged.
    Header,
    /// Its format is newer than this program's.
    Newer(u16),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io(error) => write!(f, "{error}"),
            LogError::Foreign => f.write_str("not a log file of fasttrack-trace"),
            LogError::Empty => f.write_str("ends within its header: nothing in it was finished"),
            LogError::Header => f.write_str("its header is damaged"),
            LogError::Newer(found) => write!(
                f,
                "format {found}, and this program knows {FORMAT}: read it with a newer fasttrack-trace"
            ),
        }
    }
}

impl std::error::Error for LogError {}

/// A part of a file that is not readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, bytes.
    pub at: u64,
    /// Bytes.
    pub bytes: u64,
    /// Records that a whole header says were in it; `None`: nobody knows.
    pub records: Option<u64>,
    /// What is wrong.
    pub what: &'static str,
}

/// A block that is whole.
#[derive(Debug, Clone)]
pub struct Block {
    /// What it says about itself.
    pub header: BlockHeader,
    /// Where it begins in the file, bytes.
    pub at: u64,
    /// Its records, in the order in which they were written.
    pub records: Vec<Record>,
}

/// A log file in memory.
#[derive(Debug)]
pub struct LogFile {
    /// What it says about itself.
    pub header: FileHeader,
    /// It has an index, as every file that was closed.
    pub closed: bool,
    bytes: Vec<u8>,
    places: Vec<(u64, BlockHeader)>,
    damages: Vec<Damage>,
}

impl LogFile {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`LogError`]. A file that is whole up to a point is no error: see [`LogFile::damages`].
    pub fn open(path: &Path) -> Result<LogFile, LogError> {
        LogFile::parse(fs::read(path).map_err(LogError::Io)?)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// See [`LogError`].
    pub fn parse(bytes: Vec<u8>) -> Result<LogFile, LogError> {
        let whole = bytes.len() >= FILE_HEADER;
        if !FileHeader::is_log(&bytes) {
            let begun = crate::format::FILE_MAGIC.starts_with(&bytes);
            return Err(if begun {
                LogError::Empty
            } else {
                LogError::Foreign
            });
        }
        match FileHeader::format_of(&bytes) {
            None => return Err(LogError::Empty),
            Some(format) if format > FORMAT => return Err(LogError::Newer(format)),
            Some(_) if !whole => return Err(LogError::Empty),
            Some(_) => {}
        }
        let header = FileHeader::read(&bytes).ok_or(LogError::Header)?;
        let (closed, places, damages) = match indexed(&bytes, &header) {
            Some(places) => (true, places, Vec::new()),
            None => {
                let (places, damages) = scanned(&bytes, &header);
                (false, places, damages)
            }
        };
        Ok(LogFile {
            header,
            closed,
            bytes,
            places,
            damages,
        })
    }

    /// The headers of the blocks of records.
    pub fn headers(&self) -> impl Iterator<Item = &BlockHeader> {
        self.places.iter().map(|(_, header)| header)
    }

    /// What is damaged outside of blocks that have a whole header.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The blocks with records from `since` to `until`, ns, each whole or damaged.
    pub fn blocks(
        &self,
        since: u64,
        until: u64,
    ) -> impl Iterator<Item = Result<Block, Damage>> + '_ {
        self.places(since, until)
            .map(|(at, header)| self.block(*at, header))
    }

    /// Where the blocks with records from `since` to `until`, ns, begin, with what they say about themselves.
    pub(crate) fn places(
        &self,
        since: u64,
        until: u64,
    ) -> impl Iterator<Item = &(u64, BlockHeader)> + '_ {
        self.places
            .iter()
            .filter(move |(_, header)| header.last >= since && header.first <= until)
    }

    /// The block that begins at `at`, bytes.
    pub(crate) fn block(&self, at: u64, header: &BlockHeader) -> Result<Block, Damage> {
        let damage = |what| Damage {
            at,
            bytes: header.size(),
            records: Some(u64::from(header.records)),
            what,
        };
        let begin = at as usize + BLOCK_HEADER;
        let payload = self.bytes.get(begin..begin + header.stored as usize);
        let payload = payload.ok_or_else(|| damage("the file ends within a block"))?;
        let raw = unpack(payload, header).map_err(damage)?;
        let records = crate::decode(&raw).map_err(|_| damage("its records are malformed"))?;
        if records.len() != header.records as usize {
            return Err(damage("it has another number of records than it says"));
        }
        Ok(Block {
            header: *header,
            at,
            records,
        })
    }
}

/// A block's payload as it was before it was compressed.
fn unpack(payload: &[u8], header: &BlockHeader) -> Result<Vec<u8>, &'static str> {
    if crc32c(payload) != header.payload_crc {
        return Err("its checksum does not match");
    }
    let raw = zstd::bulk::decompress(payload, header.raw as usize)
        .map_err(|_| "it does not decompress")?;
    match raw.len() == header.raw as usize {
        true => Ok(raw),
        false => Err("it has another size than it says"),
    }
}

/// Whether a block is this file's: one of an earlier life of the disk's blocks is not.
fn own(block: &BlockHeader, file: &FileHeader) -> bool {
    block.session == session_begin(&file.session)
}

/// The index's payload: where each block begins.
pub fn index_payload(places: &[(u64, BlockHeader)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, places.len() as u64);
    for (at, _) in places {
        put_number(&mut out, *at);
    }
    out
}

/// The blocks by the index of a file that was closed; `None` if there is none, or it is not true of the file.
fn indexed(bytes: &[u8], file: &FileHeader) -> Option<Vec<(u64, BlockHeader)>> {
    let at = usize::try_from(index_at(bytes)?).ok()?;
    let header = BlockHeader::read(bytes.get(at..)?)?;
    let end = at.checked_add(BLOCK_HEADER + header.stored as usize)?;
    if header.kind != KIND_INDEX || !own(&header, file) || end + END != bytes.len() {
        return None;
    }
    let raw = unpack(bytes.get(at + BLOCK_HEADER..end)?, &header).ok()?;
    let mut input = Input::new(&raw);
    let count = input.number().ok()?;
    let mut places = Vec::new();
    let mut next = FILE_HEADER as u64;
    for _ in 0..count {
        let place = input.number().ok()?;
        let block = BlockHeader::read(bytes.get(usize::try_from(place).ok()?..)?)?;
        // Without gaps: a file that was written after is none that the index knows.
        if place != next || block.kind != KIND_RECORDS || !own(&block, file) {
            return None;
        }
        next += block.size();
        places.push((place, block));
    }
    (next == at as u64).then_some(places)
}

/// The blocks one after another; after damage, from the next header that is whole.
fn scanned(bytes: &[u8], file: &FileHeader) -> (Vec<(u64, BlockHeader)>, Vec<Damage>) {
    let (mut places, mut damages) = (Vec::new(), Vec::new());
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match BlockHeader::read(rest).filter(|header| own(header, file)) {
            Some(header) if header.size() <= rest.len() as u64 => {
                if header.kind == KIND_RECORDS {
                    places.push((at as u64, header));
                }
                at += header.size() as usize;
                continue;
            }
            Some(header) if header.kind == KIND_RECORDS => damages.push(Damage {
                at: at as u64,
                bytes: rest.len() as u64,
                records: Some(u64::from(header.records)),
                what: "the file ends within a block",
            }),
            _ if index_at(rest).is_some() && rest.len() == END => break,
            _ => damages.push(Damage {
                at: at as u64,
                bytes: (next_block(bytes, at + 1, file) - at) as u64,
                records: None,
                what: "no block begins here",
            }),
        }
        at = next_block(bytes, at + 1, file);
    }
    (places, damages)
}

/// Where the next whole header begins; the end of the file if there is none.
fn next_block(bytes: &[u8], from: usize, file: &FileHeader) -> usize {
    let mut at = from;
    while at + BLOCK_HEADER <= bytes.len() {
        let found = bytes[at] == BLOCK_MAGIC[0]
            && BlockHeader::read(&bytes[at..]).is_some_and(|header| own(&header, file));
        if found {
            return at;
        }
        at += 1;
    }
    bytes.len()
}
