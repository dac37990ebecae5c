// SPDX-License-Identifier: GPL-2.0-only
//! Apps, live.

use crate::cli::Top;
use crate::{meaning, write_out, Failure};
use fasttrack_bus::{ManagerProxy, Usage};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Clears the screen of a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows pictures until there are enough.
pub async fn run(daemon: &ManagerProxy<'_>, how: &Top, json: bool) -> Result<(), Failure> {
    let mut before: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut shown = 0;
    loop {
        let usage = daemon.usage().await.map_err(meaning)?;
        let text = if json {
            serde_json::to_string(&usage).map_err(|error| error.to_string())? + "\n"
        } else {
            let clear = if how.count == 1 { "" } else { CLEAR };
            format!("{clear}{}", picture(&usage, &before, how.interval))
        };
        write_out(&text)?;
        before = usage
            .into_iter()
            .map(|one| (one.cgroup, (one.read_bytes, one.written_bytes)))
            .collect();
        shown += 1;
        if how.count > 0 && shown >= how.count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(how.interval)).await;
    }
}

/// A table: those that move most first, within their class.
fn picture(usage: &[Usage], before: &BTreeMap<String, (u64, u64)>, seconds: u64) -> String {
    let rate = |one: &Usage| {
        let old = before
            .get(&one.cgroup)
            .copied()
            .unwrap_or((one.read_bytes, one.written_bytes));
        let per_second = |new: u64, old: u64| new.saturating_sub(old) / seconds.max(1) / 1024;
        (
            per_second(one.read_bytes, old.0),
            per_second(one.written_bytes, old.1),
        )
    };
    let rank = |one: &Usage| match one.class.as_str() {
        "foreground" => 0,
        "perceptible" => 1,
        _ => 2,
    };
    let mut rows: Vec<(&Usage, (u64, u64))> = usage.iter().map(|one| (one, rate(one))).collect();
    rows.sort_by_key(|(one, (read, written))| (rank(one), std::cmp::Reverse(read + written)));
    let mut text = format!(
        "{:<12} {:>10} {:>10} {:>8} {:>10}  {}\n",
        "CLASS", "READ KiB/s", "WRIT KiB/s", "FREEZES", "FROZEN ms", "APP"
    );
    for (one, (read, written)) in rows {
        let _ = writeln!(
            text,
            "{:<12} {read:>10} {written:>10} {:>8} {:>10}  {}",
            one.class, one.freezes, one.frozen_ms, one.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foreground_is_first_and_rates_are_per_second() {
        let one = |class: &str, read_bytes| Usage {
            cgroup: format!("/{class}"),
            name: class.to_string(),
            class: class.to_string(),
            read_bytes,
            written_bytes: 0,
            freezes: 0,
            frozen_ms: 0,
        };
        let before = BTreeMap::from([("/background".to_string(), (0, 0))]);
        let text = picture(
            &[one("background", 40_960), one("foreground", 1)],
            &before,
            2,
        );
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[1], ["foreground", "0", "0", "0", "0", "foreground"]);
        assert_eq!(words[2], ["background", "20", "0", "0", "0", "background"]);
    }
}
