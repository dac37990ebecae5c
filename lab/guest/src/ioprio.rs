// SPDX-License-Identifier: GPL-2.0-only
//! I/O priorities of tasks, as ionice(1) gives them. Numbers are from linux/ioprio.h.

use crate::sys;
use serde::Deserialize;
use std::io;

const CLASS_SHIFT: u32 = 13;
const WHO_PROCESS: libc::c_int = 1;
const WHO_USER: libc::c_int = 3;
const LEVELS: u16 = 8;
const REALTIME: u16 = 1;
const BEST_EFFORT: u16 = 2;
const IDLE: u16 = 3;

/// An I/O priority: "idle", "best-effort 0" to "best-effort 7", "realtime 0" to "realtime 7", where
/// 0 is first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("pattern" = r"^(idle|(best-effort|realtime) \+?0*[0-7])$")))]
pub struct IoPrio(u16);

impl TryFrom<String> for IoPrio {
    type Error = String;

    fn try_from(text: String) -> Result<IoPrio, String> {
        let level = |word: &str| word.parse::<u16>().ok().filter(|&level| level < LEVELS);
        let words: Vec<&str> = text.split(' ').collect();
        let found = match words[..] {
            ["idle"] => Some((IDLE, 0)),
            ["realtime", word] => level(word).map(|level| (REALTIME, level)),
            ["best-effort", word] => level(word).map(|level| (BEST_EFFORT, level)),
            _ => None,
        };
        let (class, level) = found.ok_or_else(|| {
            format!("{text:?} is no I/O priority; give idle, realtime 0 to 7 or best-effort 0 to 7")
        })?;
        Ok(IoPrio(class << CLASS_SHIFT | level))
    }
}

impl IoPrio {
    /// Gives it to the calling thread; what that starts from then on inherits it.
    pub fn take(self) -> io::Result<()> {
        sys::ioprio_set(WHO_PROCESS, 0, self.0.into())
    }

    /// Gives it to every thread of every process of a user. A user without any is an error.
    pub fn give_to_user(self, uid: u32) -> io::Result<()> {
        sys::ioprio_set(WHO_USER, uid as libc::c_int, self.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<IoPrio, String> {
        IoPrio::try_from(text.to_string())
    }

    #[test]
    fn names_are_the_kernels_numbers() {
        assert_eq!(parsed("realtime 4"), Ok(IoPrio(0x2004)));
        assert_eq!(parsed("best-effort 0"), Ok(IoPrio(0x4000)));
        assert_eq!(parsed("idle"), Ok(IoPrio(0x6000)));
    }

    #[test]
    fn other_names_are_refused_with_the_valid_ones() {
        for text in [
            "",
            "realtime",
            "realtime 8",
            "realtime -1",
            "idle 0",
            "rt 4",
            "best-effort  1",
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains("realtime 0 to 7"), "{error}");
        }
    }
}
