// SPDX-License-Identifier: GPL-2.0-only
//! The verifiable content of files: every aligned 4 KiB is one 64-bit word repeated.
//!
//! The word is a hash of the file's path on the phone and the block's number, so that a page that
//! went to the wrong file, the wrong place or nowhere is noticed. Pages of one repeated word cost
//! the emulated phone no memory.

use crate::sys::PAGE;

/// FNV-1a, 64 bits: offset basis and prime of the algorithm's definition.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over several byte strings, each ended by a 0xff that no UTF-8 text holds.
pub fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = FNV_BASIS;
    for part in parts {
        for &byte in part.iter().chain(&[0xff]) {
            state = (state ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
    state
}

/// The finalizer of SplitMix64: spreads every input bit over the whole word.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a file's pages hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    key: u64,
}

impl Pattern {
    /// The pattern of the file at `path`, its full path on the phone.
    pub fn of(path: &str) -> Pattern {
        Pattern {
            key: hash(&[path.as_bytes()]),
        }
    }

    /// The word that block `number` repeats.
    pub fn word(&self, number: u64) -> u64 {
        mix(self.key ^ mix(number))
    }

    /// The byte at `offset` of the file.
    pub fn byte(&self, offset: u64) -> u8 {
        self.word(offset / PAGE as u64).to_le_bytes()[(offset % 8) as usize]
    }

    fn bytes_at(&self, offset: u64) -> [u8; 8] {
        let shift = (offset % 8) as u32;
        self.word(offset / PAGE as u64)
            .rotate_right(shift * 8)
            .to_le_bytes()
    }

    /// Fills `buffer` with what belongs at `offset`.
    pub fn fill(&self, buffer: &mut [u8], offset: u64) {
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let length = page_rest(at).min(rest.len());
            let (page, next) = rest.split_at_mut(length);
            let word = self.bytes_at(at);
            let mut words = page.chunks_exact_mut(8);
            for chunk in &mut words {
                chunk.copy_from_slice(&word);
            }
            let tail = words.into_remainder();
            let tail_length = tail.len();
            tail.copy_from_slice(&word[..tail_length]);
            at += length as u64;
            rest = next;
        }
    }

    /// How many pages of `buffer`, read at `offset`, differ from what belongs there.
    pub fn mismatches(&self, buffer: &[u8], offset: u64) -> u64 {
        let mut at = offset;
        let mut rest = buffer;
        let mut wrong = 0;
        while !rest.is_empty() {
            let length = page_rest(at).min(rest.len());
            let word = self.bytes_at(at);
            let good = rest[..length]
                .chunks(8)
                .all(|chunk| chunk == &word[..chunk.len()]);
            wrong += u64::from(!good);
            at += length as u64;
            rest = &rest[length..];
        }
        wrong
    }
}

fn page_rest(offset: u64) -> usize {
    PAGE - (offset % PAGE as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_word_repeated() {
        let pattern = Pattern::of("/data/app/a/f");
        let mut buffer = vec![0; 3 * PAGE];
        pattern.fill(&mut buffer, 7 * PAGE as u64);
        for (index, page) in buffer.chunks(PAGE).enumerate() {
            let word = pattern.word(7 + index as u64).to_le_bytes();
            assert!(page.chunks(8).all(|chunk| chunk == word));
        }
    }

    #[test]
    fn any_cut_gives_the_same_bytes() {
        let pattern = Pattern::of("/data/app/a/f");
        let mut whole = vec![0; 4 * PAGE];
        pattern.fill(&mut whole, 0);
        for (from, length) in [(0, 1), (3, 4099), (4095, 2), (4097, 8000), (8191, 4097)] {
            let mut part = vec![0; length];
            pattern.fill(&mut part, from as u64);
            assert_eq!(part, whole[from..from + length], "{length} bytes at {from}");
            assert_eq!(pattern.byte(from as u64), whole[from]);
            assert_eq!(pattern.mismatches(&part, from as u64), 0);
        }
    }

    #[test]
    fn a_changed_byte_is_one_bad_page() {
        let pattern = Pattern::of("/data/app/a/f");
        let mut buffer = vec![0; 3 * PAGE];
        pattern.fill(&mut buffer, 0);
        buffer[PAGE + 17] ^= 1;
        assert_eq!(pattern.mismatches(&buffer, 0), 1);
        assert_eq!(pattern.mismatches(&buffer, PAGE as u64), 3);
    }

    #[test]
    fn files_and_blocks_differ() {
        let (a, b) = (Pattern::of("/data/app/a/f"), Pattern::of("/data/app/a/g"));
        assert_ne!(a.word(0), b.word(0));
        assert_ne!(a.word(0), a.word(1));
    }

    #[test]
    fn the_pattern_is_fixed_for_ever() {
        // Prepared images outlive a build of this program.
        assert_eq!(hash(&[b""]), 0xaf64_724c_8602_eb6e);
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }
}
