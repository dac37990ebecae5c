// SPDX-License-Identifier: GPL-2.0-only
//! The letters of block events: what is asked, and how.

use fasttrack_trace_log::Operation;

/// `enum req_op` of linux/blk_types.h, and what it is here.
const OPERATIONS: [(u64, Operation); 6] = [
    (0, Operation::READ),
    (1, Operation::WRITE),
    (2, Operation::FLUSH),
    (3, Operation::DISCARD),
    (5, Operation::SECURE_ERASE),
    (9, Operation::WRITE_ZEROES),
];

/// An operation by the kernel's number.
pub fn operation(number: Option<u64>) -> Operation {
    let known = OPERATIONS.iter().find(|(known, _)| Some(*known) == number);
    known.map_or(Operation::OTHER, |(_, operation)| *operation)
}

/// How it is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `F` in front.
    pub preflush: bool,
    /// `F` behind.
    pub fua: bool,
    /// `A`.
    pub read_ahead: bool,
    /// `S`.
    pub sync: bool,
    /// `M`.
    pub meta: bool,
}

/// The letters, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rwbs {
    /// What is asked.
    pub operation: Operation,
    /// How.
    pub flags: Flags,
}

impl Rwbs {
    /// Reads them as `blk_fill_rwbs()` writes them.
    pub fn parse(text: &str) -> Rwbs {
        let mut letters = text.chars().peekable();
        let mut flags = Flags::default();
        let first = letters.next();
        let asked = match (first, letters.peek()) {
            (Some('F'), Some('W' | 'R' | 'D' | 'F' | 'N' | 'Z')) => {
                flags.preflush = true;
                letters.next()
            }
            _ => first,
        };
        let operation = match asked {
            Some('R') => Operation::READ,
            Some('W') => Operation::WRITE,
            Some('F') => Operation::FLUSH,
            Some('D') if letters.peek() == Some(&'E') => Operation::SECURE_ERASE,
            Some('D') => Operation::DISCARD,
            Some('Z') => Operation::ZONE,
            _ => Operation::OTHER,
        };
        for letter in letters {
            match letter {
                'F' => flags.fua = true,
                'A' => flags.read_ahead = true,
                'S' => flags.sync = true,
                'M' => flags.meta = true,
                _ => {}
            }
        }
        Rwbs { operation, flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_the_kernels() {
        let known = [
            ("R", Operation::READ, ""),
            ("RAM", Operation::READ, "AM"),
            ("WS", Operation::WRITE, "S"),
            ("FWFSM", Operation::WRITE, "pFSM"),
            ("WFS", Operation::WRITE, "FS"),
            ("FF", Operation::FLUSH, "p"),
            ("F", Operation::FLUSH, ""),
            ("D", Operation::DISCARD, ""),
            ("DE", Operation::SECURE_ERASE, ""),
            ("N", Operation::OTHER, ""),
            ("", Operation::OTHER, ""),
        ];
        for (text, operation, flags) in known {
            let found = Rwbs::parse(text);
            let all = found.flags;
            let expected = Flags {
                preflush: flags.contains('p'),
                fua: flags.contains('F'),
                read_ahead: flags.contains('A'),
                sync: flags.contains('S'),
                meta: flags.contains('M'),
            };
            assert_eq!((found.operation, all), (operation, expected), "{text}");
        }
    }
}
