// SPDX-License-Identifier: GPL-2.0-only
//! Records which app, file and call caused each block of I/O.

mod cat;
mod cli;
mod doctor;
mod export;
mod generate;
mod live;

use clap::Parser;
use cli::{Cli, Command};
use std::error::Error;
use std::process::ExitCode;

/// An error that ends the program, or its exit status.
type Ended = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fasttrack-trace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Ended {
    match &cli.command {
        Command::Record(options) => live::record(options),
        Command::Top(options) => live::top(options),
        Command::Explain(options) => cat::explain(options),
        Command::Doctor(places) => Ok(doctor::run(&places.tracefs, &places.sysfs)),
        Command::Cat(options) => cat::cat(options),
        Command::Export(options) => export::export(options),
        Command::Generate { folder } => generate::all(folder),
    }
}
