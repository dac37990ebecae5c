// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use clap::{Args, Parser, Subcommand};

/// Shows and changes what fasttrackd does.
///
/// fasttrackd keeps the app in front of the user fast. This program asks it over the system bus.
#[derive(Debug, Parser)]
#[command(name = "fasttrackctl", version, propagate_version = true)]
pub struct Cli {
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Be on this bus.
    #[arg(long, global = true, value_name = "ADDRESS", hide = true)]
    pub bus: Option<String>,
    /// The system's files are below this directory.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/",
        hide = true
    )]
    pub root: std::path::PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show who is in front, what is done for it, and what has no effect here and why.
    Status,
    /// Show apps with their class, I/O, freezes and pauses, until it is interrupted.
    ///
    /// On the patched kernel, pauses, holds and promotions are counted for the whole machine. Whose the pauses and
    /// holds are is shown to root alone, who may follow the kernel's tracepoints.
    Top(Top),
    /// Say which class an app has, since when, by which rule, what was set for it, and why it is not frozen.
    Explain {
        /// A process (PID), an application id or a part of it that no other has, the path of a control group, or a part of
        /// a window's title.
        ///
        /// Titles are known to the compositor, which the agent of your own session asks for this alone. Mutter tells it
        /// none.
        #[arg(value_name = "PID|WINDOW|PATH")]
        what: String,
    },
    /// Say by hand who is in front. Needs to be allowed by polkit.
    #[command(subcommand)]
    Foreground(Foreground),
    /// The configuration.
    #[command(subcommand)]
    Config(Config),
    /// Look for what is wrong, and say what to do about it.
    Doctor,
    /// Write man pages and completions of shells into a directory.
    #[command(hide = true)]
    Generate {
        /// The directory.
        folder: std::path::PathBuf,
    },
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
}

/// Who is in front, by hand.
#[derive(Debug, Subcommand)]
pub enum Foreground {
    /// These apps are in front, and nobody else.
    Set {
        /// Processes (PID) of the apps, or paths of their control groups.
        #[arg(required = true, value_name = "PID|PATH")]
        whom: Vec<String>,
    },
    /// These apps are in front, too.
    Add {
        /// Processes (PID) of the apps, or paths of their control groups.
        #[arg(required = true, value_name = "PID|PATH")]
        whom: Vec<String>,
    },
    /// Who has the focus is in front, as the sessions' agents say.
    Clear,
}

/// The configuration.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Look for errors in its files, and in those of your own agent. The exit status is 1 if there is one.
    Check,
}
