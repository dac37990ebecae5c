// SPDX-License-Identifier: GPL-2.0-only
//! A directory of log files, as one trace.

use crate::format::FileHeader;
use crate::reader::{Block, Damage, LogError, LogFile};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of log files end so.
pub const SUFFIX: &str = ".ftlog";

/// A block, or what is unreadable.
#[derive(Debug)]
pub enum Found {
    /// Records, and the header of their file.
    Block(FileHeader, Block),
    /// A part of a file, with the file's header.
    Damage(PathBuf, FileHeader, Damage),
    /// A whole file.
    File(PathBuf, LogError),
}

/// The log files of a directory by their numbers.
///
/// # Errors
/// The directory cannot be read.
pub fn log_files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let number = name
            .strip_suffix(SUFFIX)
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Gives each block of `paths`, files or directories, from `since` to `until`, ns, to `show`, none twice.
///
/// # Errors
/// A directory cannot be read; or what `show` says.
pub fn read_directory<E: From<io::Error>>(
    paths: &[PathBuf],
    since: u64,
    until: u64,
    mut show: impl FnMut(Found) -> Result<(), E>,
) -> Result<(), E> {
    let mut seen = BTreeSet::new();
    for path in all_files(paths)? {
        let file = match LogFile::open(&path) {
            Ok(file) => file,
            Err(error) => {
                show(Found::File(path, error))?;
                continue;
            }
        };
        for block in file.blocks(since, until) {
            match block {
                Ok(block) => {
                    if seen.insert((file.header.session, block.header.sequence)) {
                        show(Found::Block(file.header, block))?;
                    }
                }
                Err(damage) => show(Found::Damage(path.clone(), file.header, damage))?,
            }
        }
        for damage in file.damages() {
            show(Found::Damage(path.clone(), file.header, damage.clone()))?;
        }
    }
    Ok(())
}

fn all_files(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(log_files(path)?.into_iter().map(|(_, path)| path));
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}
