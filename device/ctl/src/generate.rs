// SPDX-License-Identifier: GPL-2.0-only
//! Man pages and completions, from the command line's own description, and completions of the agent, which has none.

use crate::cli::Cli;
use crate::Failure;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use fasttrack_config::agent::FOCUS;
use std::fs;
use std::path::Path;

/// Shells that get completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Options of the agent that take no value, as its manual page has them.
const AGENT: [(&str, &str); 6] = [
    ("kernel", "Tell the patched kernel UIDs, without a daemon"),
    ("print", "Write each report as a line of JSON"),
    ("list", "Say of each source whether it can tell here"),
    ("start", "Have the user's systemd start it"),
    ("version", "Print the version"),
    ("help", "Print a summary"),
];

/// Writes them all.
pub fn all(folder: &Path) -> Result<(), Failure> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(told)?;
    for shell in SHELLS {
        for mut command in [Cli::command(), agent()] {
            let name = command.get_name().to_string();
            clap_complete::generate_to(shell, &mut command, name, folder).map_err(told)?;
        }
    }
    Ok(())
}

/// The agent's command line. It reads it itself: what is linked into it stays in the memory of each session.
fn agent() -> Command {
    let source = Arg::new("source")
        .long("source")
        .help("Take this source of focus")
        .value_parser(PossibleValuesParser::new(FOCUS));
    let flag = |(name, help)| Arg::new(name).long(name).help(help).num_args(0);
    Command::new("fasttrack-agent")
        .disable_help_flag(true)
        .arg(source)
        .args(AGENT.map(flag))
}
