// SPDX-License-Identifier: GPL-2.0-only
//! Pages of `trace_pipe_raw`, as `events/header_page` and `events/header_event` describe them.

use std::fmt;

/// Bits of the page's length, and what the ring buffer says with the others.
const LENGTH: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// Types of an entry above the lengths of data.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// An entry's delta has so many bits.
const DELTA_BITS: u32 = 27;

/// An absolute time stamp lacks these bits.
const TOP: u64 = 0xf8 << 56;

/// Where a page has what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Where the length is, bytes.
    pub commit: usize,
    /// Where entries begin, bytes.
    pub data: usize,
}

impl Layout {
    /// Reads `events/header_page`; `None` if it says something else than is known.
    pub fn parse(text: &str) -> Option<Layout> {
        let offset = |name: &str| {
            let line = text.lines().find(|line| {
                line.split(';')
                    .next()
                    .is_some_and(|d| d.trim_end().ends_with(name))
            })?;
            let said = line.split("offset:").nth(1)?;
            said.split(';').next()?.trim().parse().ok()
        };
        let (commit, data) = (offset(" commit")?, offset(" data")?);
        (data > commit).then_some(Layout { commit, data })
    }
}

/// What the ring buffer says it has lost before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Nothing.
    None,
    /// So many events.
    Count(u64),
    /// Some, and the page had no room to say how many.
    Some,
}

/// An event of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    /// When, by the buffer's clock, ns.
    pub time: u64,
    /// Its bytes, from its common fields on.
    pub data: &'a [u8],
}

impl Raw<'_> {
    /// Its event's id.
    pub fn id(&self) -> Option<u16> {
        Some(u16::from_le_bytes(self.data.get(..2)?.try_into().ok()?))
    }
}

/// A page is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageError(pub &'static str);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A page that is read entry by entry.
#[derive(Debug)]
pub struct Page<'a> {
    /// What was lost before it.
    pub missed: Missed,
    time: u64,
    rest: &'a [u8],
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(part.try_into().ok()?))
}

impl<'a> Page<'a> {
    /// A page's header.
    ///
    /// # Errors
    /// It is shorter than it says.
    pub fn new(bytes: &'a [u8], layout: Layout) -> Result<Page<'a>, PageError> {
        let short = PageError("a page is shorter than it says");
        let time = u64_at(bytes, 0).ok_or(short)?;
        let commit = u64_at(bytes, layout.commit).ok_or(short)?;
        let end = layout.data + (commit & LENGTH) as usize;
        let rest = bytes.get(layout.data..end).ok_or(short)?;
        let missed = match (commit & MISSED, commit & MISSED_STORED) {
            (0, _) => Missed::None,
            (_, 0) => Missed::Some,
            _ => u64_at(bytes, end).map_or(Missed::Some, Missed::Count),
        };
        Ok(Page { missed, time, rest })
    }

    fn word(&self, at: usize) -> Option<u32> {
        let part = self.rest.get(at..at + 4)?;
        Some(u32::from_le_bytes(part.try_into().ok()?))
    }

    /// The next event; `None` at the page's end.
    ///
    /// # Errors
    /// An entry reaches over the page's end.
    pub fn event(&mut self) -> Result<Option<Raw<'a>>, PageError> {
        let torn = PageError("an entry reaches over its page");
        while !self.rest.is_empty() {
            let head = self.word(0).ok_or(torn)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let argument = || self.word(4).ok_or(torn);
            let (begin, end) = match kind {
                PADDING if delta == 0 => {
                    self.rest = &[];
                    return Ok(None);
                }
                PADDING => (0, 4 + argument()? as usize),
                TIME_EXTEND | TIME_STAMP => {
                    let wide = (u64::from(argument()?) << DELTA_BITS) + delta;
                    self.time = match kind {
                        TIME_EXTEND => self.time.wrapping_add(wide),
                        _ => wide | (self.time & TOP),
                    };
                    self.rest = self.rest.get(8..).ok_or(torn)?;
                    continue;
                }
                // The length counts its own word.
                0 => (8, 4 + argument()? as usize),
                words => (4, 4 + 4 * words as usize),
            };
            // A length that is no multiple of words is rounded up by the ring buffer.
            let next = end.next_multiple_of(4);
            let data = self.rest.get(begin..end).ok_or(torn)?;
            self.time = self.time.wrapping_add(delta);
            self.rest = self.rest.get(next..).unwrap_or(&[]);
            if kind != PADDING {
                let time = self.time;
                return Ok(Some(Raw { time, data }));
            }
        }
        Ok(None)
    }
}
