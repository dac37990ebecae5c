// SPDX-License-Identifier: GPL-2.0-only
//! `cat` and `explain`: what is in log files.

use crate::cli;
use crate::Ended;
use fasttrack_trace::summary::Summary;
use fasttrack_trace_log::{log_files, read_directory, FileHeader, Found, Record, Shown, SUFFIX};
use serde_json::{Map, Value};
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status after damage.
const DAMAGED: u8 = 3;

/// An error of reading or of printing.
pub type Failure = Box<dyn Error>;

/// What could not be read, and where.
pub struct Problem {
    pub path: PathBuf,
    pub at: u64,
    pub bytes: u64,
    pub records: Option<u64>,
    pub what: String,
    /// Of the file, if that is readable.
    pub header: Option<FileHeader>,
}

impl<T> From<Found<T>> for Problem {
    /// Of a part of a file, or of a whole one.
    fn from(found: Found<T>) -> Problem {
        match found {
            Found::Damage(path, header, damage) => Problem {
                path,
                header: Some(header),
                at: damage.at,
                bytes: damage.bytes,
                records: damage.records,
                what: damage.what.to_string(),
            },
            Found::File(path, error) => Problem {
                bytes: path.metadata().map_or(0, |file| file.len()),
                path,
                at: 0,
                records: None,
                what: error.to_string(),
                header: None,
            },
            Found::Block(..) => unreachable!("a block is whole"),
        }
    }
}

impl Problem {
    /// On standard error.
    pub fn tell(&self) {
        let records = match self.records {
            Some(count) => format!("{count} records"),
            None => "nobody knows how many records".to_string(),
        };
        eprintln!(
            "{}: {} at byte {}: {} bytes, {records}",
            self.path.display(),
            self.what,
            self.at,
            self.bytes
        );
    }
}

/// Gives each record between two times to `show`; says whether something was unreadable.
fn each(
    paths: &[PathBuf],
    since: u64,
    until: u64,
    mut show: impl FnMut(&Record) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut damaged = false;
    are_there(paths)?;
    read_directory(paths, since, until, |found| {
        match found {
            Found::Block(_, block) => {
                for record in &block.records {
                    show(record)?;
                }
            }
            problem => {
                damaged = true;
                Problem::from(problem).tell();
            }
        }
        Ok::<(), Failure>(())
    })?;
    Ok(damaged)
}

/// A file that is not there is an error before anything is printed.
pub fn are_there(paths: &[PathBuf]) -> Result<(), Failure> {
    for path in paths {
        path.metadata()
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Directories without log files are an error: a sum over nothing would look like a device that did nothing.
fn have_logs(paths: &[PathBuf]) -> Result<(), Failure> {
    for path in paths {
        if path.is_dir() && log_files(path)?.is_empty() {
            return Err(format!("{}: no log file (*{SUFFIX}) is there", path.display()).into());
        }
    }
    Ok(())
}

/// The exit status of a program that has read.
pub fn status(damaged: bool) -> ExitCode {
    match damaged {
        true => ExitCode::from(DAMAGED),
        false => ExitCode::SUCCESS,
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// A reader that closes the pipe early, as `head`, is no error.
fn quiet(result: Result<bool, Failure>) -> Result<bool, Failure> {
    match result {
        Err(error)
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            Ok(false)
        }
        other => other,
    }
}

/// Prints records.
pub fn cat(options: &cli::Cat) -> Ended {
    let mut out = BufWriter::new(io::stdout().lock());
    let (since, until) = (ns(options.since), options.until.map_or(u64::MAX, ns));
    let wanted = |record: &Record| {
        let name = record.name().unwrap_or("unknown");
        let typed = options.types.is_empty() || options.types.iter().any(|one| one == name);
        typed && (since..=until).contains(&record.time().0)
    };
    let result = each(&options.paths, since, until, |record| {
        if wanted(record) {
            let line = match options.json {
                true => json(record),
                false => text(record),
            };
            writeln!(out, "{line}")?;
        }
        Ok(())
    });
    let damaged = quiet(result)?;
    quiet(out.flush().map(|()| false).map_err(Failure::from))?;
    Ok(status(damaged))
}

fn json(record: &Record) -> String {
    let mut map = Map::new();
    let name = record.name().unwrap_or("unknown");
    map.insert("record".to_string(), Value::from(name));
    if let Record::Unknown(unknown) = record {
        map.insert("id".to_string(), Value::from(unknown.id));
    }
    for (field, shown) in record.fields() {
        let value = match shown {
            Shown::Number(number) => Value::from(number),
            Shown::Signed(number) => Value::from(number),
            Shown::Flag(flag) => Value::from(flag),
            Shown::Text(text) => Value::from(text),
        };
        map.insert(field.to_string(), value);
    }
    Value::Object(map).to_string()
}

fn text(record: &Record) -> String {
    let time = record.time().0;
    let name = record.name().unwrap_or("unknown");
    let mut line = format!(
        "{}.{:09} {name}",
        time / 1_000_000_000,
        time % 1_000_000_000
    );
    for (field, shown) in record.fields().into_iter().skip(1) {
        line.push_str(&match shown {
            Shown::Number(number) => format!(" {field}={number}"),
            Shown::Signed(number) => format!(" {field}={number}"),
            Shown::Flag(flag) => format!(" {field}={}", u8::from(flag)),
            Shown::Text(text) => format!(" {field}={text:?}"),
        });
    }
    line
}

/// Sums up the last part.
pub fn explain(options: &cli::Explain) -> Ended {
    let mut last = 0;
    have_logs(&options.paths)?;
    each(&options.paths, 0, u64::MAX, |record| {
        last = last.max(record.time().0);
        Ok(())
    })?;
    let since = last.saturating_sub(ns(options.last));
    let mut summary = Summary::default();
    let damaged = each(&options.paths, 0, u64::MAX, |record| {
        match record.time().0 >= since {
            true => summary.add(record),
            // A name may be older than what it is used for.
            false => summary.name(record),
        }
        Ok(())
    })?;
    print!("{}", summary.text(options.rows));
    Ok(status(damaged))
}
