// SPDX-License-Identifier: GPL-2.0-only
//! `fasttrackd`: sets up the daemon, its guard and its place on the bus, and runs until it is told to end.

use fasttrackd::counters::Counters;
use fasttrackd::run::{self, Options};
use fasttrackd::system::System;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
fasttrackd keeps the app in front of the user fast. systemd starts it; see fasttrackd(8).

Usage: fasttrackd [OPTIONS]

  --root DIR      the system's files are below DIR (default /); for tests
  --bus ADDRESS   the bus to be on (default: the system bus); for tests
  --restore       thaw and restore what an earlier one has left, and end
  --version       print the version
  --help          print this
";

/// What the command line asks for.
enum Asked {
    Run,
    Guard,
    Restore,
    Print(String),
}

fn main() -> ExitCode {
    end_on_panic();
    let (asked, options) = match parse(std::env::args_os().skip(1)) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("fasttrackd: {error}; see fasttrackd --help");
            return ExitCode::from(2);
        }
    };
    let system = System::new(&options.root);
    let result = match asked {
        Asked::Run => run::run(&system, &options),
        Asked::Guard => guard(&system),
        Asked::Restore => run::restore(&system, &options)
            .map(|found| println!("{found} control groups had something of fasttrackd")),
        Asked::Print(text) => {
            print!("{text}");
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Counters::default().say(&format!("fasttrackd: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A task that panics ends the process, not itself alone: systemd starts it again, and the guard takes back what was set.
fn end_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |why| {
        say(why);
        std::process::abort();
    }));
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<(Asked, Options), String> {
    let mut asked = Asked::Run;
    let mut options = Options {
        root: PathBuf::from("/"),
        bus: None,
        notify: fasttrackd::notify::Notify::from_environment(),
    };
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let mut value = || words.next().ok_or_else(|| format!("{text} needs a value"));
        match text.as_str() {
            "--root" => options.root = PathBuf::from(value()?),
            "--bus" => options.bus = Some(value()?.to_string_lossy().into_owned()),
            "--restore" => asked = Asked::Restore,
            "--version" => {
                asked = Asked::Print(format!("fasttrackd {}\n", env!("CARGO_PKG_VERSION")))
            }
            "--help" => asked = Asked::Print(HELP.to_string()),
            run::GUARD => asked = Asked::Guard,
            _ => return Err(format!("{text:?} is no option")),
        }
    }
    Ok((asked, options))
}

fn guard(system: &System) -> Result<(), String> {
    run::outlive_the_daemon();
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| format!("the guard has no socket: {error}"))?;
    fasttrackd::memory::keep_all();
    fasttrackd::guard::run(system, &socket).map_err(|error| format!("the guard: {error}"))
}
