// SPDX-License-Identifier: GPL-2.0-only
//! Fuzzing within `cargo test`, on a stable compiler: a parser is handed thousands of spoilt versions of good input, and
//! must neither panic nor break what the test says of its result.
//!
//! `cargo test` does the same each time, and takes seconds. With `FASTTRACK_FUZZ_SECONDS=600` each parser is fuzzed for
//! so long and from another seed each time. Input that makes a parser fail is kept in a file whose path is printed; once
//! that is in `device/fuzz/corpus/`, in the folder with the name of the test's file, it is tried first for ever.
//!
//! It does not see which code an input reaches. Instead half of what is spoilt has been spoilt before, and pieces of one
//! input are put into others.
#![deny(missing_docs)]

use fastrand::Rng;
use std::fs;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe, Location};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Spoilt versions in a test.
const MUTATIONS: u32 = 10_000;
/// For how long instead, in seconds.
const SECONDS: &str = "FASTTRACK_FUZZ_SECONDS";
/// Inputs that are spoilt further, at most; and the longest of them, bytes.
const POOL_MOST: usize = 256;
const INPUT_MOST: usize = 1 << 20;
/// What parsers of numbers, of lengths and of texts get wrong.
const PIECES: [&[u8]; 10] = [
    b"4294967296",
    b"18446744073709551616",
    b"-1",
    b"1e999",
    b"\xff\xff\xff\xff",
    b"\0",
    b"\n",
    b"\"\\",
    b"{[",
    b"\xc3",
];

/// Hands a parser good input, what the corpus has, and spoilt versions of both.
#[track_caller]
pub fn mutate(good: &[u8], parse: impl FnMut(&[u8])) {
    mutate_all(&[good.to_vec()], parse);
}

/// The same with several good inputs.
#[track_caller]
pub fn mutate_all(good: &[Vec<u8>], parse: impl FnMut(&[u8])) {
    let name = Path::new(Location::caller().file()).file_stem();
    let name = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let seconds = std::env::var(SECONDS)
        .ok()
        .and_then(|text| text.parse().ok());
    match seconds.map(Duration::from_secs) {
        Some(time) => {
            let end = Instant::now() + time;
            fuzz(
                &name,
                good,
                fastrand::u64(..),
                |_| Instant::now() < end,
                parse,
            );
        }
        None => fuzz(
            &name,
            good,
            good.iter().map(Vec::len).sum::<usize>() as u64,
            |done| done < MUTATIONS,
            parse,
        ),
    }
}

fn fuzz(
    name: &str,
    good: &[Vec<u8>],
    seed: u64,
    mut goes_on: impl FnMut(u32) -> bool,
    mut parse: impl FnMut(&[u8]),
) {
    let mut pool = good.to_vec();
    pool.extend(corpus(name));
    pool.iter()
        .for_each(|input| try_one(name, input, &mut parse));
    let first = pool.len();
    let mut random = Rng::with_seed(seed);
    let mut done = 0;
    while goes_on(done) {
        let from = match random.bool() {
            true => random.usize(0..first),
            false => random.usize(0..pool.len()),
        };
        let mut input = pool[from].clone();
        for _ in 0..random.usize(1..8) {
            let other = random.usize(0..pool.len());
            spoil(&mut input, &pool[other], &mut random);
        }
        input.truncate(INPUT_MOST);
        try_one(name, &input, &mut parse);
        match pool.len() < POOL_MOST {
            true => pool.push(input),
            false if first < POOL_MOST => {
                let at = random.usize(first..POOL_MOST);
                pool[at] = input;
            }
            false => {}
        }
        done = done.saturating_add(1);
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .collect()
}

fn try_one(name: &str, input: &[u8], parse: &mut impl FnMut(&[u8])) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| parse(input))) else {
        return;
    };
    let path = std::env::temp_dir().join(format!("fasttrack-fuzz-{name}-{:016x}", hash(input)));
    match fs::write(&path, input) {
        Ok(()) => eprintln!("the input that fails is {}", path.display()),
        Err(error) => eprintln!("the input that fails cannot be kept, {error}: {input:?}"),
    }
    resume_unwind(panic)
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

fn spoil(bytes: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let part = |length: usize, random: &mut Rng| {
        let from = random.usize(0..=length);
        from..(from + random.usize(0..64)).min(length)
    };
    let at = part(bytes.len(), random);
    match random.u8(0..8) {
        0 => bytes.truncate(at.start),
        1 => drop(bytes.drain(at)),
        2 => bytes.insert(at.start, random.u8(..)),
        3 => {
            let twice = bytes[at.clone()].to_vec();
            bytes.splice(at.start..at.start, twice);
        }
        4 => {
            let piece = PIECES[random.usize(0..PIECES.len())];
            bytes.splice(at.start..at.start, piece.iter().copied());
        }
        5 => {
            let piece = other[part(other.len(), random)].to_vec();
            bytes.splice(at, piece);
        }
        6 => {
            if let Some(byte) = bytes.get_mut(at.start) {
                *byte = random.u8(..);
            }
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at.start) {
                *byte ^= 1 << random.u8(0..8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_that_fails_somewhere_is_found_out_and_its_input_is_kept() {
        let mut kept = None;
        let failed = catch_unwind(AssertUnwindSafe(|| {
            mutate(b"length 7", |bytes| {
                kept = Some(bytes.to_vec());
                let text = String::from_utf8_lossy(bytes);
                let number = text.split(' ').nth(1).map(|word| word.parse::<u32>());
                // Does not think of numbers that are too large.
                assert!(!number.is_some_and(|number| number
                    .is_err_and(|error| { *error.kind() == std::num::IntErrorKind::PosOverflow })));
            });
        }));
        assert!(failed.is_err());
        let kept = kept.expect("an input");
        let path = format!("fasttrack-fuzz-lib-{:016x}", hash(&kept));
        let path = std::env::temp_dir().join(path);
        assert_eq!(fs::read(&path).expect("a file"), kept);
        fs::remove_file(path).expect("a file");
    }

    #[test]
    fn the_same_seed_gives_the_same_input_and_another_gives_other() {
        let all = |seed| {
            let mut all = Vec::new();
            fuzz(
                "none",
                &[b"good".to_vec()],
                seed,
                |done| done < 50,
                |bytes| all.push(bytes.to_vec()),
            );
            all
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert_eq!((all(1).len(), &all(1)[0][..]), (51, &b"good"[..]));
    }
}
