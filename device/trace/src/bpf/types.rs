// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's types, without those that the programs do not name: a kernel has 150,000, of which they need some tens.
//!
//! Numbers of types stay: those that are not needed become forward declarations without a name. The form is that of
//! Documentation/bpf/btf.rst.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Kinds of types.
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const ENUM64: u32 = 19;

/// Bytes of the header that are looked at, of a type's own, and of a member.
const HEADER: usize = 24;
const TYPE: usize = 12;
const MEMBER: usize = 12;

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    four.try_into().ok().map(u32::from_ne_bytes)
}

/// Types of a kernel or of an object, as they are in its BTF.
struct Types<'a> {
    bytes: &'a [u8],
    /// Where each begins; the first, which is number 1, is at 0.
    places: Vec<u32>,
    strings: Range<usize>,
}

impl<'a> Types<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Types<'a>> {
        let part = |at: usize| {
            let head = number(bytes, 4)? as usize;
            let begin = head.checked_add(number(bytes, at)? as usize)?;
            let end = begin.checked_add(number(bytes, at + 4)? as usize)?;
            (end <= bytes.len()).then_some(begin..end)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut places = Vec::new();
        let mut at = types.start;
        while at < types.end {
            places.push(at as u32);
            at = at.checked_add(TYPE + extra(number(bytes, at + 4)?)?)?;
        }
        (at == types.end).then_some(Types {
            bytes,
            places,
            strings,
        })
    }

    /// Bytes of a type.
    fn of(&self, id: u32) -> Option<&'a [u8]> {
        let at = *self.places.get(id.checked_sub(1)? as usize)? as usize;
        let size = TYPE + extra(number(self.bytes, at + 4)?)?;
        self.bytes.get(at..at + size)
    }

    fn text(&self, offset: u32) -> Option<&'a [u8]> {
        let strings = &self.bytes[self.strings.clone()];
        let rest = strings.get(offset as usize..)?;
        rest.split(|byte| *byte == 0).next()
    }

    fn ids(&self) -> Range<u32> {
        1..self.places.len() as u32 + 1
    }
}

fn kind(one: &[u8]) -> u32 {
    number(one, 4).unwrap_or(0) >> 24 & 0x1f
}

/// Bytes after a type's own, by its `info`.
fn extra(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    Some(match info >> 24 & 0x1f {
        INT | VARIABLE | DECLARATION_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | SECTION | ENUM64 => count * MEMBER,
        ENUM | PROTOTYPE => count * 8,
        POINTER | FORWARD | 8..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

/// Where in a type names are.
fn names(one: &[u8]) -> Vec<usize> {
    let each = |size: usize| (TYPE..one.len()).step_by(size).collect();
    let mut found: Vec<usize> = match kind(one) {
        STRUCT | UNION | ENUM64 => each(MEMBER),
        ENUM | PROTOTYPE => each(8),
        _ => Vec::new(),
    };
    found.push(0);
    found
}

/// Types that one is made of: what is behind a pointer is not.
fn parts(one: &[u8]) -> Vec<u32> {
    let at: Vec<usize> = match kind(one) {
        STRUCT | UNION => (TYPE + 4..one.len()).step_by(MEMBER).collect(),
        ARRAY => vec![TYPE, TYPE + 4],
        // Typedef, volatile, const, restrict, a tag.
        8..=11 | 18 => vec![8],
        _ => Vec::new(),
    };
    at.into_iter().filter_map(|at| number(one, at)).collect()
}

/// A name without what distinguishes forms of one type: `bio___old` is `bio`.
fn plain(name: &[u8]) -> &[u8] {
    let at = name.windows(3).position(|three| three == b"___");
    &name[..at.unwrap_or(name.len())]
}

/// The kernel's types, of which those that OBJECT's BTF names, and typedefs of MORE, are whole.
pub fn needed(kernel: &[u8], object: &[u8], more: &[String]) -> Option<Vec<u8>> {
    let (types, asked) = (Types::parse(kernel)?, Types::parse(object)?);
    let named = asked
        .ids()
        .filter_map(|id| asked.text(number(asked.of(id)?, 0)?));
    let mut wanted: HashSet<&[u8]> = named.map(plain).collect();
    wanted.extend(more.iter().map(String::as_bytes));
    wanted.remove(&b""[..]);
    let mut kept = HashSet::new();
    for id in types.ids() {
        let name = types.text(number(types.of(id)?, 0)?)?;
        if wanted.contains(plain(name)) {
            keep(&types, id, &mut kept)?;
        }
    }
    written(&types, &kept)
}

fn keep(types: &Types<'_>, first: u32, kept: &mut HashSet<u32>) -> Option<()> {
    let mut next = vec![first];
    while let Some(id) = next.pop() {
        if id != 0 && kept.insert(id) {
            next.extend(parts(types.of(id)?));
        }
    }
    Some(())
}

fn written(types: &Types<'_>, kept: &HashSet<u32>) -> Option<Vec<u8>> {
    let mut strings = vec![0];
    let mut known: HashMap<&[u8], u32> = HashMap::from([(&b""[..], 0)]);
    let mut out = types.bytes.get(..HEADER)?.to_vec();
    for id in types.ids() {
        if !kept.contains(&id) {
            for word in [0, FORWARD << 24, 0] {
                out.extend(word.to_ne_bytes());
            }
            continue;
        }
        let mut one = types.of(id)?.to_vec();
        for at in names(&one) {
            let name = types.text(number(&one, at)?)?;
            let offset = *known.entry(name).or_insert_with(|| {
                let offset = strings.len() as u32;
                strings.extend(name);
                strings.push(0);
                offset
            });
            one[at..at + 4].copy_from_slice(&offset.to_ne_bytes());
        }
        out.extend(one);
    }
    let size = (out.len() - HEADER) as u32;
    for (at, word) in [
        (4, HEADER as u32),
        (8, 0),
        (12, size),
        (16, size),
        (20, strings.len() as u32),
    ] {
        out[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    out.extend(strings);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of words, with their strings.
    fn btf(types: &[&[u32]], strings: &[u8]) -> Vec<u8> {
        let words: Vec<u32> = types.concat();
        let size = 4 * words.len() as u32;
        let head = [
            0x0001_eb9f,
            HEADER as u32,
            0,
            size,
            size,
            strings.len() as u32,
        ];
        let mut bytes: Vec<u8> = head
            .into_iter()
            .chain(words)
            .flat_map(u32::to_ne_bytes)
            .collect();
        bytes.extend(strings);
        bytes
    }

    const NAMES: &[u8] = b"\0bio\0x\0other\0int\0bio___old\0";
    const BIO: u32 = 1;
    const X: u32 = 5;
    const OTHER: u32 = 7;
    const INTEGER: u32 = 13;
    const OLD: u32 = 17;

    #[test]
    fn what_is_named_is_whole_and_numbers_stay() {
        let kernel = btf(
            &[
                &[OTHER, STRUCT << 24 | 1, 8, X, 4, 0],
                &[BIO, STRUCT << 24 | 2, 16, X, 3, 0, X, 4, 64],
                &[INTEGER, INT << 24, 4, 32],
                &[0, POINTER << 24, 1],
            ],
            NAMES,
        );
        let object = btf(&[&[OLD, STRUCT << 24, 0]], NAMES);
        let made = needed(&kernel, &object, &[]).expect("types");
        let types = Types::parse(&made).expect("whole");
        let of = |id| types.of(id).expect("a type");
        let name = |id, at| {
            types
                .text(number(of(id), at).expect("a number"))
                .expect("a name")
        };
        assert_eq!(types.places.len(), 4);
        assert_eq!((kind(of(1)), name(1, 0)), (FORWARD, &b""[..]));
        assert_eq!((kind(of(2)), name(2, 0)), (STRUCT, &b"bio"[..]));
        assert_eq!(
            (name(2, TYPE), number(of(2), TYPE + 4)),
            (&b"x"[..], Some(3))
        );
        assert_eq!((kind(of(3)), name(3, 0)), (INT, &b"int"[..]));
        // What it points to is not needed.
        assert_eq!(kind(of(4)), POINTER);
        assert!(made.len() < kernel.len());
    }

    #[test]
    fn what_is_cut_is_nothing() {
        let kernel = btf(
            &[
                &[BIO, STRUCT << 24 | 1, 8, X, 2, 0],
                &[INTEGER, INT << 24, 4, 32],
            ],
            NAMES,
        );
        for end in 0..kernel.len() {
            let _ = needed(&kernel[..end], &kernel, &[]);
            let _ = needed(&kernel, &kernel[..end], &[]);
        }
        assert!(needed(&kernel, &kernel, &[]).is_some());
        assert!(needed(&kernel[..kernel.len() - NAMES.len() - 1], &kernel, &[]).is_none());
    }
}
