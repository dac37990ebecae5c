// SPDX-License-Identifier: GPL-2.0-only
//! Randomness: a generator a thread, seeded by the job alone.

use crate::pattern::{hash, mix};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

/// A thread's generator.
pub struct Rng(fastrand::Rng);

impl Rng {
    /// The generator of `thread` of `app`.
    pub fn new(seed: i64, app: &str, thread: &str) -> Rng {
        let key = hash(&[&seed.to_le_bytes(), app.as_bytes(), thread.as_bytes()]);
        Rng(fastrand::Rng::with_seed(key))
    }

    /// A number from 0 up to but not including `limit`, which is above 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(0..limit)
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

static SQLITE_STATE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn sqlite_randomness(
    _vfs: *mut rusqlite::ffi::sqlite3_vfs,
    length: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite gives a buffer of `length` bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), length.max(0) as usize) };
    for chunk in out.chunks_mut(8) {
        let word = mix(SQLITE_STATE.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    length
}

/// Makes SQLite in this process draw its randomness (journal nonces, WAL salts) from the job.
///
/// SQLite's own source is /dev/urandom, the time and the PID. To be called while the process has
/// one thread.
pub fn seed_sqlite(seed: i64, app: &str) {
    let key = hash(&[&seed.to_le_bytes(), app.as_bytes(), b"sqlite"]);
    SQLITE_STATE.store(key, Ordering::Relaxed);
    // SAFETY: the default VFS is static and nobody else uses SQLite yet; a call with length 0
    // makes it draw again.
    unsafe {
        rusqlite::ffi::sqlite3_initialize();
        let vfs = rusqlite::ffi::sqlite3_vfs_find(std::ptr::null());
        if !vfs.is_null() {
            (*vfs).xRandomness = Some(sqlite_randomness);
        }
        rusqlite::ffi::sqlite3_randomness(0, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: i64, app: &str, thread: &str) -> Vec<u64> {
        let mut rng = Rng::new(seed, app, thread);
        (0..8).map(|_| rng.below(1000)).collect()
    }

    #[test]
    fn the_same_names_give_the_same_numbers() {
        assert_eq!(draw(1, "gallery", "ui"), draw(1, "gallery", "ui"));
    }

    #[test]
    fn every_name_matters() {
        let base = draw(1, "gallery", "ui");
        assert_ne!(base, draw(2, "gallery", "ui"));
        assert_ne!(base, draw(1, "galler", "yui"));
        assert_ne!(base, draw(1, "gallery", "decoder"));
    }

    #[test]
    fn the_sequence_never_changes() {
        // Published results name a seed: the numbers behind it must not move.
        assert_eq!(
            draw(1, "gallery", "ui"),
            [741, 910, 696, 433, 460, 478, 568, 3]
        );
    }

    #[test]
    fn shuffle_keeps_all_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(7, "a", "t").shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }
}
