// SPDX-License-Identifier: GPL-2.0-only
//! What `result.json` holds. `contract/result.schema.json` is made from these types.

use crate::job::Role;
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What came of a job. An error of any app, and content that does not verify, fail the run: a
/// background app that died would make the foreground look good.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "result.json"))]
pub struct Report {
    /// Of the contract: 1.
    pub version: u32,
    /// Whether the run is good.
    pub ok: bool,
    /// All that went wrong; null if nothing did.
    pub error: Option<String>,
    /// The kernel's release, as `uname -r` shows it.
    pub kernel: String,
    /// When the user touched, ns of virtual time from the start of the apps; null: never.
    pub touch_ns: Option<u64>,
    /// When the last foreground app ended; null: not before the limit.
    pub end_ns: Option<u64>,
    /// The apps, in the job's order.
    pub apps: Vec<AppReport>,
    /// The files of /sys/kernel/fasttrack/stats, if there.
    pub counters: Numbers,
    /// The elevator's knobs and counters: the files of /sys/block/sda/queue/iosched.
    pub elevator: Numbers,
    /// The emulated phone's counters: /sys/kernel/debug/mflash/stats, lines "name value".
    pub device: Numbers,
    /// /proc/meminfo at the end, bytes.
    pub memory: Numbers,
    /// Of mode exec: the foreground command. Absent if it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Exec>,
    /// Where the foreground waited, if the job has `why_interval_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Numbers by their names.
pub type Numbers = BTreeMap<String, i64>;

/// What came of an app.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AppReport {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: u32,
    /// Its role.
    pub role: Role,
    /// Its exit status, a signal as 128 + its number; null: the run ended it.
    pub exit_code: Option<i32>,
    /// What its threads did. Of a command only bytes are known: what it and its children moved
    /// from and to storage.
    #[serde(flatten)]
    pub counts: Counts,
    /// When its last thread ended; null: it has not.
    pub finished_ns: Option<u64>,
    /// Why it failed; null if it did not.
    pub error: Option<String>,
}

/// The sum of an app's threads.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Counts {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Calls.
    pub ops: u64,
    /// Time inside I/O calls, from the touch on.
    pub io_ns: u64,
    /// The longest time that one call took. A call that moves or syncs much makes progress
    /// meanwhile: how long FastTrack holds an app is in `counters`: `pause_max_us`,
    /// `dispatch_wait_max_us` and `dispatch_sync_wait_max_us`.
    pub longest_call_ns: u64,
    /// Which call that was, with "(not ended)" where it was under way at the end.
    pub longest_call: String,
    /// Time slept in think steps and think times.
    pub think_ns: u64,
    /// Pages or rows whose content was wrong.
    pub verify_errors: u64,
    /// Of the calls that ended after the touch.
    pub since_touch: SinceTouch,
    /// Of an app that replays a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// What an app did after the touch.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SinceTouch {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Calls.
    pub ops: u64,
    /// The longest time that one call took.
    pub longest_call_ns: u64,
}

/// What came of a trace's calls.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Replay {
    /// Calls that were made.
    pub calls: u64,
    /// Calls on a descriptor that was not open: left out.
    pub skipped: u64,
    /// Calls that moved fewer bytes than recorded.
    pub short: u64,
    /// How many calls failed, by their name.
    pub errors: BTreeMap<String, u64>,
}

/// The foreground command's end.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Exec {
    /// Its exit status, a signal as 128 + its number.
    pub exit_code: i32,
    /// From the touch, when it starts, to its end.
    pub response_ns: u64,
}

/// Samples of where the foreground waited: from the touch to the end of the response, every
/// `interval_ns`, of each foreground thread that has not ended. A tick stands for the interval
/// around it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Why {
    /// Time between two ticks.
    pub interval_ns: u64,
    /// Ticks.
    pub samples: u64,
    /// Ticks at which the sampler itself waited.
    pub missed: u64,
    /// Kernel stacks, each once: places `function+0xoffset`, innermost first. None: the thread ran.
    pub stacks: Vec<Vec<String>>,
    /// The foreground's threads.
    pub threads: Vec<WhyThread>,
    /// The foreground's commands.
    pub commands: Vec<WhyCommand>,
}

/// A foreground thread. Those of a command come and go: its threads of one name are one here, found
/// by the app's control group.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WhyThread {
    /// Its app.
    pub app: String,
    /// Its name.
    pub thread: String,
    /// When it ended; null: it has not, or is a command's.
    pub finished_ns: Option<u64>,
    /// Ticks asleep in a think step or think time, or not begun; of a command, asleep or waiting
    /// for another thread.
    pub thinking: u64,
    /// Where it was at the other ticks.
    pub waits: Vec<WhyWait>,
}

/// Ticks of a thread in one place while the journal's thread was in one place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WhyWait {
    /// Where: the index of a stack.
    pub stack: usize,
    /// Where the journal's or the checkpoint's thread was, idle or not; null: there is none.
    pub journal: Option<usize>,
    /// How many ticks.
    pub count: u64,
    /// Of a command, else null: its part of these ticks, which are shared among the threads that
    /// neither sleep nor wait for each other. With `idle` the parts add up to the command's time.
    pub share_ns: Option<u64>,
    /// Who else was at work at the same ticks.
    pub beside: Vec<WhyBeside>,
}

/// Somebody at work while the foreground waited.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WhyBeside {
    /// "kernel" for kworkers, kswapd and threads of f2fs unless idle; else the app's role, for a
    /// thread that does not think or rest.
    pub role: &'static str,
    /// The kernel thread's name, or `APP/THREAD`.
    pub name: String,
    /// Where: the index of a stack.
    pub stack: usize,
    /// How many ticks.
    pub count: u64,
}

/// A foreground command.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WhyCommand {
    /// Its app.
    pub app: String,
    /// Ticks at which none of its threads was busy.
    pub idle: u64,
}
