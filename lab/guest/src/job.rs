// SPDX-License-Identifier: GPL-2.0-only
//! The job: what the lab asks of the guest. `contract/job.schema.json` is made from these types:
//! their comments are the descriptions of its fields.

use crate::ioprio::IoPrio;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// What the guest does with the job.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Format, make directories and files.
    Prepare,
    /// Play the apps.
    Play,
    /// Run programs of the host's as apps.
    Exec,
    /// A shell on the console.
    Shell,
}

/// File system of the phone's storage.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fs {
    /// ext4.
    Ext4,
    /// f2fs.
    F2fs,
}

impl Fs {
    /// Its name for mount(2).
    pub fn name(self) -> &'static str {
        match self {
            Fs::Ext4 => "ext4",
            Fs::F2fs => "f2fs",
        }
    }
}

/// A value to write to a file of the kernel's, or of an app's control group
/// /sys/fs/cgroup/app-NAME, which is made before settings are written.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Absolute path in the guest.
    pub path: String,
    /// What to write, without a line end.
    pub value: String,
}

/// What a prepared file holds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// The verifiable pattern.
    #[default]
    Data,
    /// A SQLite database with rows.
    Sqlite,
}

/// A file to prepare.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// The app that owns it.
    pub app: String,
    /// Path, relative to the app's directory /data/app/NAME, which the app's UID owns.
    pub path: String,
    /// Size of a data file, bytes.
    #[serde(default, deserialize_with = "nullable")]
    pub bytes: u64,
    /// What it holds.
    #[serde(default, deserialize_with = "nullable")]
    pub kind: FileKind,
    /// Rows of a database.
    #[serde(default, deserialize_with = "nullable")]
    pub rows: u64,
    /// Size of a row's value, bytes.
    #[serde(default, deserialize_with = "nullable")]
    pub row_bytes: u64,
}

/// What an app is to the user.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// In front; the response is over when every thread of every foreground app has ended.
    Foreground,
    /// Behind; ended with the run.
    Background,
    /// A system service; ended with the run.
    Service,
}

impl Role {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Role::Foreground => "foreground",
            Role::Background => "background",
            Role::Service => "service",
        }
    }
}

/// An app.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Its name, also of its directory and its control group.
    pub name: String,
    /// UID and GID.
    pub uid: u32,
    /// What it is to the user.
    pub role: Role,
    /// When it starts, seconds from the start of the apps; backgrounds start before the touch.
    #[serde(default, deserialize_with = "nullable")]
    pub start_s: f64,
    /// What it does, one of three: steps.
    #[serde(default, deserialize_with = "nullable")]
    pub threads: Vec<Thread>,
    /// What it does, one of three: a program of the host's. One in front starts at the touch.
    #[serde(default, deserialize_with = "nullable")]
    pub argv: Vec<String>,
    /// Directory of the command, relative to the app's.
    #[serde(default)]
    pub cwd: Option<String>,
    /// More environment for the command.
    #[serde(default, deserialize_with = "nullable")]
    pub env: BTreeMap<String, String>,
    /// What it does, one of three: the name of a normalised trace in the run's directory.
    #[serde(default)]
    pub trace: Option<String>,
    /// I/O priority of all its tasks from its start on, by ioprio_set(2); none: the kernel's
    /// default.
    #[serde(default)]
    pub ioprio: Option<IoPrio>,
    /// I/O priority that all its tasks get at the touch; its UID must be its own. None: they keep
    /// what they have.
    #[serde(default)]
    pub ioprio_touch: Option<IoPrio>,
}

/// A thread of an app.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Its name: part of its generator's seed.
    pub name: String,
    /// Waits for the touch.
    #[serde(default, deserialize_with = "nullable")]
    pub after_touch: bool,
    /// Starts over until the run ends it.
    #[serde(default, deserialize_with = "nullable")]
    pub repeat: bool,
    /// What it does.
    pub steps: Vec<Step>,
}

/// Order of the blocks of a transfer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// From the first to the last.
    #[default]
    Sequential,
    /// Each once, in an order drawn from a generator that is seeded by seed, app and thread.
    Random,
}

/// How a written file is opened.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Flag {
    /// Made if it is not there.
    Create,
    /// Written from its end on.
    Append,
    /// Emptied first.
    Truncate,
    /// O_DIRECT.
    Direct,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// Size of a block where a transfer names none: the readahead window of Android and Linux, bytes.
pub const DEFAULT_BLOCK: u64 = 128 * 1024;

/// A read, write or mmap step. What is written is verifiable: every aligned 4 KiB is one 64-bit
/// word repeated, a hash of the file's path and the block's number.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Which file.
    pub file: String,
    /// How many bytes; 0 reads to the end.
    #[serde(default, deserialize_with = "nullable")]
    pub bytes: u64,
    /// From which byte on.
    #[serde(default, deserialize_with = "nullable")]
    pub offset: u64,
    /// In blocks of so many bytes; 0 is 131072.
    #[serde(default, deserialize_with = "nullable")]
    pub block: u64,
    /// In which order.
    #[serde(default, deserialize_with = "nullable")]
    pub order: Order,
    /// Sleep after each block, seconds.
    #[serde(default, deserialize_with = "nullable")]
    pub think_s: f64,
    /// Of a write only.
    #[serde(default, deserialize_with = "nullable")]
    pub flags: Vec<Flag>,
}

impl Transfer {
    /// The block size that holds.
    pub fn block_bytes(&self) -> u64 {
        if self.block == 0 {
            DEFAULT_BLOCK
        } else {
            self.block
        }
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

/// A step on one file.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OnFile {
    /// Which file.
    pub file: String,
}

/// A rename step.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Old path.
    pub file: String,
    /// New path.
    pub to: String,
}

/// What a SQLite transaction does.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SqlKind {
    /// New rows.
    Insert,
    /// New values in rows found by random keys.
    Update,
    /// Reads rows by random keys.
    Select,
}

/// Journal of a SQLite database.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Journal {
    /// Write-ahead log.
    Wal,
    /// Rollback journal, unlinked at the commit. SQLite's default.
    #[default]
    Delete,
    /// Rollback journal, truncated at the commit. Android's default.
    Truncate,
    /// Rollback journal, its header zeroed at the commit.
    Persist,
}

impl Journal {
    /// Its name for PRAGMA journal_mode.
    pub fn name(self) -> &'static str {
        match self {
            Journal::Wal => "wal",
            Journal::Delete => "delete",
            Journal::Truncate => "truncate",
            Journal::Persist => "persist",
        }
    }
}

/// A SQLite step: by the SQLite library, full synchronous.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sqlite {
    /// Which database.
    pub file: String,
    /// What a transaction does.
    pub kind: SqlKind,
    /// How many.
    pub transactions: u64,
    /// Rows in each.
    pub rows: u64,
    /// Size of a new row's value, bytes.
    #[serde(default, deserialize_with = "nullable")]
    pub row_bytes: u64,
    /// Its journal.
    #[serde(default, deserialize_with = "nullable")]
    pub journal: Journal,
    /// Sleep after each transaction, seconds.
    #[serde(default, deserialize_with = "nullable")]
    pub think_s: f64,
}

/// A think step.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Think {
    /// How long, seconds.
    pub s: f64,
}

/// A memory step.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// How much.
    pub bytes: u64,
}

/// A repeat step.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often; 0 is for ever.
    pub times: u64,
    /// `{i}` is the count modulo this; 0 is the count itself.
    #[serde(default, deserialize_with = "nullable")]
    pub cycle: u64,
    /// What. `{i}` in a file's name is the innermost repeat's count.
    pub steps: Vec<Step>,
}

/// A step without fields.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// One operation of a thread.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Step {
    /// pread in blocks, with a think time after each.
    Read(Transfer),
    /// Map the file, and touch one byte of every page of each block.
    Mmap(Transfer),
    /// pwrite in blocks.
    Write(Transfer),
    /// fsync of a file, which is opened if it is not.
    Fsync(OnFile),
    /// fdatasync, likewise.
    Fdatasync(OnFile),
    /// Close. Files stay open otherwise.
    Close(OnFile),
    /// Unlink, and close.
    Unlink(OnFile),
    /// Make a directory, if it is not there.
    Mkdir(OnFile),
    /// Rename.
    Rename(Rename),
    /// stat.
    Stat(OnFile),
    /// SQLite transactions.
    Sqlite(Sqlite),
    /// Sleep: the app's own computing, or network.
    Think(Think),
    /// Take anonymous memory, touch it and keep it.
    Memory(Memory),
    /// Do steps again.
    Repeat(Repeat),
    /// Wait for the touch. What the thread did before does not count.
    Touch(Nothing),
}

/// Shortest time between two samples of where the foreground waits, ns: a tick's own clock reads, 256 ns each, must stay small beside it.
pub const SHORTEST_WHY_NS: u64 = 10_000;

/// What the lab asks of the guest. Sizes are bytes; times are virtual seconds unless a name ends in
/// `_ns`. Every field that may be left out may be null.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "job.json"))]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Of the contract: 1.
    pub version: u32,
    /// What to do with it.
    pub mode: Mode,
    /// Of the generators.
    pub seed: i64,
    /// Block device of the phone's storage, below /dev.
    pub device: String,
    /// Its file system.
    pub fs: Fs,
    /// argv of mkfs; none: the file system is there already.
    #[serde(default)]
    pub format: Option<Vec<String>>,
    /// As mount(8) takes them.
    #[serde(default, deserialize_with = "nullable")]
    pub mount_options: String,
    /// Virtual seconds after which the guest gives up and says so: a run that is over only then
    /// has failed.
    pub limit_s: f64,
    /// Written in their order before any app starts; one that fails fails the run. The last name
    /// the app in front before the touch, if the scenario has one.
    #[serde(default, deserialize_with = "nullable")]
    pub settings: Vec<Setting>,
    /// Written at the touch, as the app status detector does; one value names all foreground apps.
    #[serde(default, deserialize_with = "nullable")]
    pub foreground: Vec<Setting>,
    /// When the user touches, seconds from the start of the apps.
    #[serde(default, deserialize_with = "nullable")]
    pub touch_s: f64,
    /// Mode prepare: the files to make.
    #[serde(default, deserialize_with = "nullable")]
    pub files: Vec<FileSpec>,
    /// The apps.
    #[serde(default, deserialize_with = "nullable")]
    pub apps: Vec<App>,
    /// Check the content of what is read, and count what is wrong.
    #[serde(default, deserialize_with = "nullable")]
    pub verify: bool,
    /// Modes play and exec: virtual time between two samples of where the foreground waits, 10000
    /// or more; 0: none are taken.
    #[serde(default, deserialize_with = "nullable")]
    pub why_interval_ns: u64,
    /// Mode exec: directory of the run whose content goes into the foreground app's.
    #[serde(default)]
    pub files_from: Option<String>,
    /// Modes play and exec: the collector of traces, a program of the run's directory. It records
    /// into the directory `trace` of the run from before the apps start to their end; none: nobody
    /// records.
    #[serde(default)]
    pub collector: Option<String>,
}

fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Seconds as nanoseconds, rounded.
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Job {
    /// Reads a job's text. Errors say which element is wrong, and where.
    pub fn parse(text: &str) -> Result<Job, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let job: Job = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| format!("{}: {}", error.path(), error.inner()))?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(job)
    }

    /// The app of that name.
    pub fn app(&self, name: &str) -> Option<&App> {
        self.apps.iter().find(|app| app.name == name)
    }
}
