// SPDX-License-Identifier: GPL-2.0-only
//! What is counted, and errors: each is logged once, with what it means, and counted from then on.

use std::collections::BTreeMap;

/// Different errors that are remembered at most; of later ones only the number is kept.
const ERRORS_MOST: usize = 64;

/// Counters and errors since the daemon began.
#[derive(Debug, Default)]
pub struct Counters {
    counts: BTreeMap<String, u64>,
    errors: Vec<(String, String)>,
    silent: bool,
}

impl Counters {
    /// Counters that print nothing: for tests.
    pub fn silent() -> Counters {
        Counters {
            silent: true,
            ..Counters::default()
        }
    }

    /// One more.
    pub fn count(&mut self, name: &str) {
        self.add(name, 1);
    }

    /// Some more.
    pub fn add(&mut self, name: &str, number: u64) {
        match self.counts.get_mut(name) {
            Some(count) => *count += number,
            None => drop(self.counts.insert(name.to_string(), number)),
        }
    }

    /// Keeps the largest.
    pub fn most(&mut self, name: &str, number: u64) {
        let count = self.counts.entry(name.to_string()).or_default();
        *count = number.max(*count);
    }

    /// An error: `name` tells errors apart, `meaning` says what was wrong, where, and what to do.
    pub fn error(&mut self, name: &str, meaning: impl FnOnce() -> String) {
        self.errors_of(name, 1, meaning);
    }

    /// So many errors of one kind.
    pub fn errors_of(&mut self, name: &str, number: u64, meaning: impl FnOnce() -> String) {
        self.add(name, number);
        if self.errors.iter().any(|(known, _)| known == name) {
            return;
        }
        let meaning = meaning();
        self.say(&meaning);
        if self.errors.len() < ERRORS_MOST {
            self.errors.push((name.to_string(), meaning));
        }
    }

    /// An error that has ended: when it comes again, it is news.
    pub fn forget(&mut self, name: &str) {
        self.errors.retain(|(known, _)| known != name);
    }

    /// A line for the journal. A log that cannot be written, on a full disk, is no reason to stop.
    pub fn say(&self, line: &str) {
        use std::io::Write;
        if !self.silent {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// All counters.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }

    /// One counter.
    pub fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// The errors, with how often each has come.
    pub fn errors(&self) -> Vec<String> {
        let line = |(name, meaning): &(String, String)| match self.get(name) {
            0 | 1 => meaning.clone(),
            often => format!("{meaning} ({often} times)"),
        };
        self.errors.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_once_and_counted() {
        let mut counters = Counters::silent();
        for number in 0..3 {
            counters.error("write", || format!("write {number} failed"));
        }
        assert_eq!(counters.errors(), ["write 0 failed (3 times)"]);
        counters.forget("write");
        counters.error("write", || "again".to_string());
        assert_eq!((counters.errors().len(), counters.get("write")), (1, 4));
    }

    #[test]
    fn errors_are_bounded() {
        let mut counters = Counters::silent();
        for number in 0..1000 {
            counters.error(&number.to_string(), String::new);
        }
        assert_eq!(counters.errors().len(), ERRORS_MOST);
    }
}
