// SPDX-License-Identifier: GPL-2.0-only
//! A map that forgets what was put into it long ago, so that its memory is bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem::take;

/// Knows the last entries: at least as many as it was made for, twice as many at most.
#[derive(Debug)]
pub struct Recent<K, V> {
    least: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    /// Knows the last `least` entries.
    pub fn new(least: usize) -> Recent<K, V> {
        Recent {
            least,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// Puts an entry in.
    pub fn put(&mut self, key: K, value: V) {
        if self.young.len() >= self.least {
            self.old = take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// The newest entry of a key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// The newest entry of a key, which goes with all older ones.
    pub fn take(&mut self, key: &K) -> Option<V> {
        let (young, old) = (self.young.remove(key), self.old.remove(key));
        young.or(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_known() {
        let mut recent = Recent::new(3);
        for key in 0..10 {
            recent.put(key, key * key);
            assert!(recent.young.len() + recent.old.len() <= 6);
            for known in (key - 2).max(0)..=key {
                assert_eq!(recent.get(&known), Some(known * known));
            }
        }
        assert_eq!(recent.get(&0), None);
        recent.put(9, 1);
        assert_eq!((recent.take(&9), recent.take(&9)), (Some(1), None));
    }
}
