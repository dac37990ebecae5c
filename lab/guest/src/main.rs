// SPDX-License-Identifier: GPL-2.0-only
//! The lab's guest program: init and player in the guest, checker on the host.
#![deny(missing_docs)]
#![warn(unsafe_op_in_unsafe_fn)]

mod cast;
mod check;
mod collector;
mod console;
mod exec;
mod init;
mod ioprio;
mod job;
mod members;
mod outcome;
mod pattern;
mod place;
mod player;
mod prepare;
mod replay;
mod report;
mod rng;
mod run;
#[cfg(test)]
mod schema_tests;
mod sqlite;
mod stack;
mod stats;
mod steps;
mod sys;
#[cfg(test)]
mod tempdir;
mod trace;
mod watchdog;
mod why;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
fasttrack-guest: init and player of the FastTrack lab's guest

In the guest it is started by the kernel (init=PATH fasttrack_run=DIR).
On the host:
  fasttrack-guest --check JOB          checks a job file
  fasttrack-guest --trace-files TRACE  prints, as JSON, the files that a normalised trace needs
                                       before its replay: [{\"path\", \"bytes\"}]
  fasttrack-guest --version | --help
Exit status: 0 good, 1 the file is bad, 2 the command line is bad.
";

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::main();
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--check", file] => check::load(Path::new(file)).map(|_| format!("{file}: ok\n")),
        ["--trace-files", file] => trace_files(Path::new(file)),
        ["--help"] => Ok(HELP.to_string()),
        ["--version"] => Ok(format!("fasttrack-guest {}\n", env!("CARGO_PKG_VERSION"))),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn trace_files(path: &Path) -> Result<String, String> {
    let trace = trace::Trace::load(path)?;
    let list: Vec<serde_json::Value> = trace
        .files()
        .into_iter()
        .map(|(path, bytes)| serde_json::json!({"path": path, "bytes": bytes}))
        .collect();
    Ok(format!("{}\n", serde_json::Value::from(list)))
}
