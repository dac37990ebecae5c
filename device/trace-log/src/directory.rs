// SPDX-License-Identifier: GPL-2.0-only
//! A directory of log files, as one trace.

use crate::format::{BlockHeader, FileHeader};
use crate::reader::{Block, Damage, LogError, LogFile};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::thread;

/// Names of log files end so.
pub const SUFFIX: &str = ".ftlog";

/// Blocks that wait for a thread of [`read_directory_by`], and as many that it has made something of: what bounds the
/// memory.
const AHEAD: usize = 4;

/// A block or what was made of it, or what is unreadable.
#[derive(Debug)]
pub enum Found<T = Block> {
    /// Records, and the header of their file.
    Block(FileHeader, T),
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
    let mut seen = Seen::default();
    each_part(all_files(paths)?, since, until, |part| {
        seen.once(part.read(|_, block| block), &mut show)
    })
}

/// Gives what `make` makes of each block of `paths` to `show`: as [`read_directory`], in the same order, but blocks are
/// read and made something of by `threads` threads. Of a block that is there twice something is made twice.
///
/// # Errors
/// As [`read_directory`].
pub fn read_directory_by<T: Send, E: From<io::Error>>(
    paths: &[PathBuf],
    threads: usize,
    make: impl Fn(&FileHeader, Block) -> T + Sync,
    mut show: impl FnMut(Found<T>) -> Result<(), E>,
) -> Result<(), E> {
    let (files, make, mut seen) = (all_files(paths)?, &make, Seen::default());
    if threads < 2 {
        return each_part(files, 0, u64::MAX, |part| {
            seen.once(part.read(make), &mut show)
        });
    }
    thread::scope(|scope| {
        let (mut inlets, mut outlets) = (Vec::new(), Vec::new());
        for _ in 0..threads {
            let (inlet, parts) = sync_channel::<Part>(AHEAD);
            let (made, outlet) = sync_channel(AHEAD);
            // Nobody listens: `show` has ended the reading.
            scope.spawn(move || parts.iter().all(|part| made.send(part.read(make)).is_ok()));
            inlets.push(inlet);
            outlets.push(outlet);
        }
        scope.spawn(move || {
            let mut turn = inlets.iter().cycle();
            let _ended = each_part(files, 0, u64::MAX, |part| {
                turn.next()
                    .map_or(Err(()), |next| next.send(part).map_err(drop))
            });
        });
        // Each thread's turn comes in the order in which it got parts: the first that has none follows the last part.
        for outlet in outlets.iter().cycle() {
            match outlet.recv() {
                Ok(found) => seen.once(found, &mut show)?,
                Err(_) => break,
            }
        }
        Ok(())
    })
}

/// A part of a trace that is not read yet, or cannot be.
enum Part {
    /// Where a block begins in a file.
    Block(Arc<(PathBuf, LogFile)>, u64, BlockHeader),
    Damage(PathBuf, FileHeader, Damage),
    File(PathBuf, LogError),
}

impl Part {
    /// What is made of its records, with the block's number in the session.
    fn read<T>(self, make: impl Fn(&FileHeader, Block) -> T) -> Found<(u64, T)> {
        match self {
            Part::Block(opened, at, block) => {
                let (path, file) = &*opened;
                match file.block(at, &block) {
                    Ok(found) => {
                        Found::Block(file.header, (block.sequence, make(&file.header, found)))
                    }
                    Err(damage) => Found::Damage(path.clone(), file.header, damage),
                }
            }
            Part::Damage(path, header, damage) => Found::Damage(path, header, damage),
            Part::File(path, error) => Found::File(path, error),
        }
    }
}

/// Gives each part of files, in their order, with blocks from `since` to `until`, ns, alone.
fn each_part<E>(
    files: Vec<PathBuf>,
    since: u64,
    until: u64,
    mut give: impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    for path in files {
        let opened = match LogFile::open(&path) {
            Ok(file) => Arc::new((path, file)),
            Err(error) => {
                give(Part::File(path, error))?;
                continue;
            }
        };
        let (path, file) = &*opened;
        for (at, block) in file.places(since, until) {
            give(Part::Block(opened.clone(), *at, *block))?;
        }
        for damage in file.damages() {
            give(Part::Damage(path.clone(), file.header, damage.clone()))?;
        }
    }
    Ok(())
}

/// The blocks that were shown, by session and number.
#[derive(Default)]
struct Seen(BTreeSet<([u8; 16], u64)>);

impl Seen {
    /// Shows what is found, unless it was shown before.
    fn once<T, E>(
        &mut self,
        found: Found<(u64, T)>,
        show: &mut impl FnMut(Found<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        match found {
            Found::Block(header, (sequence, made)) => {
                match self.0.insert((header.session, sequence)) {
                    true => show(Found::Block(header, made)),
                    false => Ok(()),
                }
            }
            Found::Damage(path, header, damage) => show(Found::Damage(path, header, damage)),
            Found::File(path, error) => show(Found::File(path, error)),
        }
    }
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
