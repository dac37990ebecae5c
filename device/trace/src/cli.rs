// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use fasttrack_trace::source::Wanted;
use std::path::PathBuf;

/// Records which app, file and call caused each block of I/O.
///
/// Records are written to log files of 1 MB that can be read whatever happens to the machine. Names are keyed hashes
/// unless --clear-names is given. It needs root: tracefs, and CAP_DAC_READ_SEARCH for the names of files.
#[derive(Debug, Parser)]
#[command(name = "fasttrack-trace", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Where the kernel is asked.
#[derive(Debug, Args)]
pub struct Places {
    /// tracefs is mounted here.
    #[arg(long, value_name = "DIR", default_value = fasttrack_trace::tracefs::TRACEFS)]
    pub tracefs: PathBuf,
    /// sysfs is mounted here.
    #[arg(long, hide = true, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
}

/// What is read from the kernel.
#[derive(Debug, Args)]
pub struct Reading {
    /// What says what each bio carries, and who dirtied it.
    #[arg(long, value_enum, default_value_t = Wanted::Auto)]
    pub source: Wanted,
    /// Buffer for each processor, KiB, 64 to 1048576. 8 MiB hold a second of 20,000 I/Os while nobody reads. BPF programs
    /// have half of it for each processor, up to 4 MiB for all together, or half of it if that is more: 35,000 direct
    /// I/Os, or 170 MiB of buffered writes.
    #[arg(long, value_name = "KIB", default_value_t = 8192,
        value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    pub buffer: u64,
    /// Where.
    #[command(flatten)]
    pub places: Places,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record until it is interrupted (SIGINT, SIGTERM).
    Record(Box<Record>),
    /// Show apps and files with their I/O, until it is interrupted.
    Top(Top),
    /// Say who made the device busy, and through which transactions, in the last part of a trace.
    Explain(Explain),
    /// Say what works here, what is missing, why, and what to do about it. The exit status is 1 if nothing can be
    /// recorded.
    Doctor(Places),
    /// Print records. Damage is told on standard error, with exit status 3 after all that is whole was printed.
    Cat(Cat),
    /// Write records as tables: one CSV file for each kind of record, and damage.csv. Damage is told as by cat.
    Export(Export),
    /// Write man pages and completions of shells into a directory.
    #[command(hide = true)]
    Generate {
        /// The directory.
        folder: PathBuf,
    },
}

/// When blocks are made durable.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Sync {
    /// When the kernel likes.
    Never,
    /// When a file is full: a power cut may take the one that is being written.
    File,
    /// After each block.
    Block,
}

/// How to record.
#[derive(Debug, Args)]
pub struct Record {
    /// Directory of the log files. It is made if it is not there.
    #[arg(
        short,
        long,
        value_name = "DIR",
        default_value = "/var/log/fasttrack-trace"
    )]
    pub output: PathBuf,
    /// Go on with this ring below tracefs's instances, as one that the kernel has filled since it booted. It stays.
    #[arg(long, value_name = "NAME")]
    pub ring: Option<String>,
    /// End after so many seconds.
    #[arg(long, value_name = "S", value_parser = positive)]
    pub duration: Option<f64>,
    /// Size of a log file, KiB, 16 to 1048576.
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    pub file_size: u64,
    /// All log files together, MiB, 1 or more. The oldest goes first, and that is recorded as loss.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub disk_cap: u64,
    /// When blocks are made durable. What is not may be lost in a power cut; a SIGKILL loses nothing.
    #[arg(long, value_enum, default_value_t = Sync::File)]
    pub sync: Sync,
    /// Records become a block after so many seconds at the latest.
    #[arg(long, value_name = "S", default_value = "5", value_parser = positive)]
    pub block_time: f64,
    /// Records of bios, calls and waits that an app may have in a second; above, they are summed up. 0 is without end.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub budget: u64,
    /// Record one bio of N, with its segments and requests, chosen by a hash: each stands for N, and what is left out is
    /// counted. Calls, waits and transactions are all recorded. 1 to 1000000.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub sample: u64,
    /// Leave out calls that took less, us; syncs are always recorded. Without it, what the kernel is set to (100).
    #[arg(long, value_name = "US")]
    pub calls_over: Option<u32>,
    /// Write names of files and tasks as they are. Whoever reads the trace then reads what they tell of a person.
    #[arg(long)]
    pub clear_names: bool,
    /// Make a new installation id and a new key of names before recording.
    #[arg(long)]
    pub rotate_key: bool,
    /// Directory of the installation id and the key of names.
    #[arg(long, value_name = "DIR", default_value = fasttrack_trace::identity::STATE)]
    pub state: PathBuf,
    /// Flight recorder: keep the last S seconds in memory, and write them on SIGUSR1 or a bound below.
    #[arg(long, value_name = "S", value_parser = positive)]
    pub flight: Option<f64>,
    /// Bound of an fsync or fdatasync, ms: a longer one makes the flight recorder write.
    #[arg(long, value_name = "MS", value_parser = positive, requires = "flight")]
    pub fsync_over: Option<f64>,
    /// Bound of a wait, ms: a longer one makes the flight recorder write.
    #[arg(long, value_name = "MS", value_parser = positive, requires = "flight")]
    pub wait_over: Option<f64>,
    /// What is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// What to print.
#[derive(Debug, Args)]
pub struct Cat {
    /// Log files, and directories of log files.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print a JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Print records of these types alone: bio, segment, request and so on.
    #[arg(short = 't', long = "type", value_name = "NAME", value_delimiter = ',')]
    pub types: Vec<String>,
    /// From this boot time on, seconds.
    #[arg(long, value_name = "S", default_value = "0")]
    pub since: f64,
    /// Up to this boot time, seconds. Without it, to the end.
    #[arg(long, value_name = "S")]
    pub until: Option<f64>,
}

/// What to export.
#[derive(Debug, Args)]
pub struct Export {
    /// Log files, and directories of log files.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Directory of the tables. It is made if it is not there; tables in it are replaced.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Of records of this kind write these columns and `log` alone. May be given for each kind.
    #[arg(long, value_name = "KIND=NAME,...", value_parser = columns)]
    pub columns: Vec<Columns>,
    /// Put each session's tables into a directory with its id as name, and leave out the column `session`.
    #[arg(long)]
    pub by_session: bool,
    /// Threads that read records and make rows of them, 1 to 64. Without it, as many as it has processors, up to 8. Rows
    /// are the same, in the same order.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: Option<u8>,
}

/// Columns of a kind of record.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The kind's name.
    pub kind: String,
    /// Names of its fields.
    pub names: Vec<String>,
}

/// What to explain.
#[derive(Debug, Args)]
pub struct Explain {
    /// Log files, and directories of log files.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// How long before the trace's end, seconds.
    #[arg(long, value_name = "S", default_value = "60", value_parser = positive)]
    pub last: f64,
    /// Rows of a table.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rows: usize,
}

/// How `top` is shown.
#[derive(Debug, Args)]
pub struct Top {
    /// Time between two pictures, seconds, 1 to 3600.
    #[arg(short, long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// Number of pictures; 0 is without end.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub count: u64,
    /// Rows of a table.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rows: usize,
    /// What is read.
    #[command(flatten)]
    pub reading: Reading,
}

fn columns(text: &str) -> Result<Columns, String> {
    let (kind, names) = text.split_once('=').ok_or("it must be KIND=NAME,...")?;
    let Some((_, fields)) = fasttrack_trace_log::Record::TABLES
        .iter()
        .find(|(name, _)| *name == kind)
    else {
        return Err(format!("there is no record '{kind}'"));
    };
    let names: Vec<String> = names.split(',').map(String::from).collect();
    match names.iter().find(|name| !fields.contains(&name.as_str())) {
        Some(unknown) => Err(format!("{kind} has no field '{unknown}'")),
        None => Ok(Columns {
            kind: kind.to_string(),
            names,
        }),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("it must be a number above 0".to_string()),
    }
}
