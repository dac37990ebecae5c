// SPDX-License-Identifier: GPL-2.0-only
//! Apps, live.

use crate::cli::{Cli, Top};
use crate::stops::{Stopped, Stops};
use crate::{meaning, write_out, Failure};
use fasttrack_bus::{ManagerProxy, Usage};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{signal, SignalKind};

/// Clears the screen of a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Counters of the kernel's part for the whole machine, with what they are called above the table.
const OF_KERNEL: [(&str, &str); 3] = [
    ("kernel: pauses", "pauses"),
    ("kernel: dispatch_held", "holds"),
    ("kernel: promoted", "promotions"),
];

/// What is shown of one moment.
struct Moment {
    usage: Vec<Usage>,
    /// Of the whole machine, by their names.
    kernel: BTreeMap<String, u64>,
    /// Of apps, by control group; or why they are not known.
    stopped: Result<BTreeMap<String, Stopped>, String>,
    /// How many pauses and holds were lost.
    lost: u64,
}

/// An app as JSON: what the daemon tells, and what the kernel does.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    usage: &'a Usage,
    /// Since `top` has begun; null where that is not known.
    pauses: Option<u64>,
    paused_ms: Option<u64>,
    holds: Option<u64>,
    /// Of all apps: how many pauses and holds are in none of these numbers, because they came faster than they were read.
    stops_lost: u64,
}

/// Shows pictures until there are enough.
pub async fn run(daemon: &ManagerProxy<'_>, how: &Top, cli: &Cli) -> Result<(), Failure> {
    let end = end().map_err(|error| error.to_string())?;
    // From here on the kernel writes for it, which it has to stop however it ends.
    let mut stops = Stops::follow(&cli.root);
    tokio::select! {
        done = pictures(daemon, how, cli, &mut stops) => done,
        () = end => Ok(()),
    }
}

/// Waits for a signal that ends a program; one that comes between the call and the wait counts.
fn end() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

async fn pictures(
    daemon: &ManagerProxy<'_>,
    how: &Top,
    cli: &Cli,
    stops: &mut Result<Stops, String>,
) -> Result<(), Failure> {
    let mut before: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut shown = 0;
    loop {
        let usage = daemon.usage().await.map_err(meaning)?;
        let counters = daemon.status().await.map_err(meaning)?.counters;
        let now = Moment {
            usage,
            kernel: counters,
            stopped: match stops {
                Ok(stops) => Ok(stops.until_now().clone()),
                Err(why) => Err(why.clone()),
            },
            lost: stops.as_ref().map_or(0, Stops::lost),
        };
        let text = if cli.json {
            serde_json::to_string(&rows(&now)).map_err(|error| error.to_string())? + "\n"
        } else {
            let clear = if how.count == 1 { "" } else { CLEAR };
            format!("{clear}{}", picture(&now, &before, how.interval))
        };
        write_out(&text)?;
        let each = now.usage.into_iter();
        before = each
            .map(|one| (one.cgroup, (one.read_bytes, one.written_bytes)))
            .collect();
        shown += 1;
        if how.count > 0 && shown >= how.count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(how.interval)).await;
    }
}

fn rows(now: &Moment) -> Vec<Row<'_>> {
    let row = |usage| {
        let stopped = of_app(now, usage);
        Row {
            usage,
            pauses: stopped.map(|stopped| stopped.pauses),
            paused_ms: stopped.map(|stopped| stopped.paused_ns / 1_000_000),
            holds: stopped.map(|stopped| stopped.holds),
            stops_lost: now.lost,
        }
    };
    now.usage.iter().map(row).collect()
}

/// Pauses and holds of an app, with those of the groups below its own.
fn of_app(now: &Moment, app: &Usage) -> Option<Stopped> {
    let groups = now.stopped.as_ref().ok()?;
    let below = |path: &str| {
        let rest = path.strip_prefix(app.cgroup.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut sum = Stopped::default();
    for (_, stopped) in groups.iter().filter(|(path, _)| below(path)) {
        sum += *stopped;
    }
    Some(sum)
}

/// A table: those that move most first, within their class. Above it what the kernel has done on the whole machine.
fn picture(now: &Moment, before: &BTreeMap<String, (u64, u64)>, seconds: u64) -> String {
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
    let all = now.usage.iter();
    let mut rows: Vec<(&Usage, (u64, u64))> = all.map(|one| (one, rate(one))).collect();
    rows.sort_by_key(|(one, (read, written))| (rank(one), std::cmp::Reverse(read + written)));
    let mut text = above(now);
    let _ = writeln!(
        text,
        "{:<12} {:>10} {:>10} {:>8} {:>10} {:>8} {:>10} {:>7}  APP",
        "CLASS", "READ KiB/s", "WRIT KiB/s", "FREEZES", "FROZEN ms", "PAUSES", "PAUSED ms", "HOLDS"
    );
    for (one, (read, written)) in rows {
        let stopped = of_app(now, one);
        let number = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
        let _ = writeln!(
            text,
            "{:<12} {read:>10} {written:>10} {:>8} {:>10} {:>8} {:>10} {:>7}  {}",
            one.class,
            one.freezes,
            one.frozen_ms,
            number(stopped.map(|stopped| stopped.pauses)),
            number(stopped.map(|stopped| stopped.paused_ns / 1_000_000)),
            number(stopped.map(|stopped| stopped.holds)),
            one.name
        );
    }
    text
}

/// What holds for the whole machine; nothing where its kernel has no part in this.
fn above(now: &Moment) -> String {
    let counted = OF_KERNEL.iter().filter_map(|(name, called)| {
        let number = now.kernel.get(*name)?;
        Some(format!("{number} {called}"))
    });
    let counted: Vec<String> = counted.collect();
    if counted.is_empty() {
        return String::new();
    }
    let why = match &now.stopped {
        Ok(_) if now.lost > 0 => format!(
            "those of apps since top has begun, without {} or more that were lost",
            now.lost
        ),
        Ok(_) => "those of apps since top has begun".to_string(),
        Err(why) => format!("those of apps are not known: {why}"),
    };
    format!("kernel, all apps: {}; {why}\n", counted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(class: &str, read_bytes: u64) -> Usage {
        Usage {
            cgroup: format!("/{class}"),
            name: class.to_string(),
            class: class.to_string(),
            read_bytes,
            written_bytes: 0,
            freezes: 0,
            frozen_ms: 0,
        }
    }

    fn words(text: &str) -> Vec<Vec<&str>> {
        let lines = text.lines();
        lines
            .map(|line| line.split_whitespace().collect())
            .collect()
    }

    #[test]
    fn the_foreground_is_first_and_rates_are_per_second() {
        let before = BTreeMap::from([("/background".to_string(), (0, 0))]);
        let now = Moment {
            usage: vec![one("background", 40_960), one("foreground", 1)],
            kernel: BTreeMap::new(),
            stopped: Err("this kernel has no tracepoint".to_string()),
            lost: 0,
        };
        let text = picture(&now, &before, 2);
        let words = words(&text);
        assert_eq!(words[1].join(" "), "foreground 0 0 0 0 - - - foreground");
        assert_eq!(words[2].join(" "), "background 20 0 0 0 - - - background");
    }

    #[tokio::test]
    async fn each_signal_that_ends_a_program_is_waited_for_from_the_call_on() {
        for name in ["INT", "TERM", "HUP"] {
            let end = end().expect("signals");
            let kill = format!("kill -{name} {}", std::process::id());
            let sent = std::process::Command::new("sh")
                .args(["-c", &kill])
                .status();
            assert!(sent.expect("a shell").success());
            let told = tokio::time::timeout(Duration::from_secs(10), end).await;
            assert!(told.is_ok(), "{name}");
        }
    }

    #[test]
    fn what_the_kernel_does_is_shown_by_app_and_for_the_machine() {
        let stopped = |pauses, paused_ns, holds| Stopped {
            pauses,
            paused_ns,
            holds,
        };
        let mut now = Moment {
            usage: vec![one("background", 0)],
            kernel: BTreeMap::from([
                ("kernel: pauses".to_string(), 9),
                ("kernel: dispatch_held".to_string(), 4),
            ]),
            stopped: Ok(BTreeMap::from([
                ("/background".to_string(), stopped(2, 3_000_000, 1)),
                ("/background/job".to_string(), stopped(1, 4_000_000, 2)),
                ("/background-2".to_string(), stopped(8, 1, 4)),
            ])),
            lost: 0,
        };
        let text = picture(&now, &BTreeMap::new(), 1);
        let first = "kernel, all apps: 9 pauses, 4 holds; those of apps since top has begun";
        assert_eq!(text.lines().next(), Some(first));
        assert_eq!(words(&text)[2][5..8], ["3", "7", "3"]);
        let json = serde_json::to_value(rows(&now)).expect("JSON");
        assert_eq!(
            (&json[0]["pauses"], &json[0]["holds"], &json[0]["name"]),
            (&3.into(), &3.into(), &"background".into())
        );
        now.lost = 5;
        let text = picture(&now, &BTreeMap::new(), 1);
        assert!(text.contains("without 5 or more that were lost"), "{text}");
        now.stopped = Err("root alone may".to_string());
        let text = picture(&now, &BTreeMap::new(), 1);
        assert!(text.contains("not known: root alone may"), "{text}");
    }
}
