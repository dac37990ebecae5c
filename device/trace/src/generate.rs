// SPDX-License-Identifier: GPL-2.0-only
//! Man pages and completions, from the command line's own description.

use crate::cli::Cli;
use crate::Ended;
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Shells that get completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Writes them all.
pub fn all(folder: &Path) -> Ended {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(told)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Cli::command(), "fasttrack-trace", folder)
            .map_err(told)?;
    }
    Ok(ExitCode::SUCCESS)
}
