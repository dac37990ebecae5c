// SPDX-License-Identifier: GPL-2.0-only
//! `export`: log files as one CSV file for each kind of record, for programs that analyse them.
//!
//! Each row begins with the session and the number of its log file: ids of bios, tasks and files are a session's, and
//! names are those of a log file. An absent field is empty, an empty text is `""`; numbers are signed, of 64 bits.
//!
//! `--columns` and `--by-session` leave out what a reader has no use for: the text of a session's id is a third of a
//! row.

use crate::cat::{are_there, status, Failure, Problem};
use crate::cli;
use crate::Ended;
use fasttrack_trace::identity::hex;
use fasttrack_trace_log::{read_directory_by, Block, FileHeader, Found, Record, Shown};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::thread::available_parallelism;

/// Columns before those of the schema. The first is left out where the directory says it.
const PLACE: [&str; 2] = ["session", "log"];

/// The table of what could not be read.
const DAMAGE: (&str, &[&str]) = (
    "damage",
    &["path", "at", "bytes", "records", "what", "session", "log"],
);

/// Bytes that a table keeps until it writes them.
const BUFFER: usize = 1 << 18;

/// Threads at most, unless it is said: one writes as much as eight make.
const THREADS: usize = 8;

/// A file of a table, with a heading.
fn file(folder: &Path, name: &str, columns: &[&str]) -> io::Result<BufWriter<File>> {
    let mut out =
        BufWriter::with_capacity(BUFFER, File::create(folder.join(format!("{name}.csv")))?);
    writeln!(out, "{}", columns.join(","))?;
    Ok(out)
}

/// A row of what could not be read.
fn put_damage(out: &mut impl Write, problem: &Problem) -> io::Result<()> {
    put_text(out, &problem.path.display().to_string())?;
    write!(out, ",{},{},", problem.at, problem.bytes)?;
    if let Some(records) = problem.records {
        write!(out, "{records}")?;
    }
    out.write_all(b",")?;
    put_text(out, &problem.what)?;
    let place = problem.header.as_ref().map(place);
    writeln!(out, ",{}", place.as_deref().unwrap_or(","))
}

/// A row that begins with `place` and has the fields that `has` says.
fn put_row(out: &mut impl Write, place: &str, has: &[bool], record: &Record) -> io::Result<()> {
    let mut digits = itoa::Buffer::new();
    let mut has = has.iter();
    out.write_all(place.as_bytes())?;
    record.each_field(|_, value| {
        if has.next() != Some(&true) {
            return Ok(());
        }
        out.write_all(b",")?;
        match value {
            Some(Shown::Text(text)) => put_text(out, text),
            Some(Shown::Number(number)) => out.write_all(digits.format(number as i64).as_bytes()),
            Some(Shown::Signed(number)) => out.write_all(digits.format(number).as_bytes()),
            Some(Shown::Flag(true)) => out.write_all(b"true"),
            Some(Shown::Flag(false)) => out.write_all(b"false"),
            None => Ok(()),
        }
    })?;
    out.write_all(b"\n")
}

/// A text in quotes where it needs them.
fn put_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    match text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

/// What rows have, by the place of their table in [`Record::TABLES`].
struct Columns {
    by_session: bool,
    /// Which fields of a record a row has, in the schema's order.
    has: Vec<Vec<bool>>,
}

impl Columns {
    fn new(options: &cli::Export) -> Columns {
        let of_table = |&(name, fields): &(&str, &[&str])| {
            let asked = options.columns.iter().find(|one| one.kind == name);
            let wanted =
                |field: &str| asked.is_none_or(|one| one.names.iter().any(|name| name == field));
            // A session's own id is in its place already.
            let has = |field: &&str| !PLACE.contains(field) && wanted(field);
            fields.iter().map(has).collect()
        };
        Columns {
            by_session: options.by_session,
            has: Record::TABLES.iter().map(of_table).collect(),
        }
    }

    fn heading(&self, table: usize) -> Vec<&'static str> {
        let fields = Record::TABLES[table].1.iter().zip(&self.has[table]);
        let own = fields.filter_map(|(field, has)| has.then_some(*field));
        let place = &PLACE[usize::from(self.by_session)..];
        place.iter().copied().chain(own).collect()
    }

    /// The rows of a block.
    fn rows(&self, header: &FileHeader, block: &Block) -> io::Result<Rows> {
        let place = match self.by_session {
            true => header.number.to_string(),
            false => place(header),
        };
        let (mut by_table, mut newer) = (vec![Vec::new(); self.has.len()], 0);
        for record in &block.records {
            match record.table() {
                Some(table) => put_row(&mut by_table[table], &place, &self.has[table], record)?,
                None => newer += 1,
            }
        }
        Ok(Rows { by_table, newer })
    }
}

/// Rows of a block as they are written.
struct Rows {
    by_table: Vec<Vec<u8>>,
    /// Records of a newer schema, which have no table.
    newer: u64,
}

/// The tables of all sessions, or of the one that is read.
struct Tables<'a> {
    folder: &'a Path,
    columns: &'a Columns,
    session: Option<[u8; 16]>,
    begun: HashSet<[u8; 16]>,
    files: Vec<BufWriter<File>>,
}

impl<'a> Tables<'a> {
    fn new(folder: &'a Path, columns: &'a Columns) -> io::Result<Tables<'a>> {
        let mut tables = Tables {
            folder,
            columns,
            session: None,
            begun: HashSet::new(),
            files: Vec::new(),
        };
        if !columns.by_session {
            tables.open(folder, false)?;
        }
        Ok(tables)
    }

    /// Makes the files in a folder, or goes on with those that are BEGUN.
    fn open(&mut self, folder: &Path, begun: bool) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let open = |(table, &(name, _)): (usize, &(&str, &[&str]))| match begun {
            true => {
                let path = folder.join(format!("{name}.csv"));
                let file = OpenOptions::new().append(true).open(path)?;
                Ok(BufWriter::with_capacity(BUFFER, file))
            }
            false => file(folder, name, &self.columns.heading(table)),
        };
        self.files = Record::TABLES
            .iter()
            .enumerate()
            .map(open)
            .collect::<io::Result<_>>()?;
        Ok(())
    }

    /// Writes rows of a session.
    fn write(&mut self, session: [u8; 16], rows: &Rows) -> io::Result<()> {
        if self.columns.by_session && self.session != Some(session) {
            self.flush()?;
            let begun = !self.begun.insert(session);
            self.open(&self.folder.join(hex(&session)), begun)?;
            self.session = Some(session);
        }
        let mut both = self.files.iter_mut().zip(&rows.by_table);
        both.try_for_each(|(file, rows)| file.write_all(rows))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(Write::flush)
    }
}

/// Writes the tables.
pub fn export(options: &cli::Export) -> Ended {
    let folder = &options.output;
    are_there(&options.paths)?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let columns = Columns::new(options);
    let mut tables = Tables::new(folder, &columns)?;
    let mut damage = file(folder, DAMAGE.0, DAMAGE.1)?;
    let (mut damaged, mut newer) = (false, 0_u64);
    let threads = match options.threads {
        Some(threads) => usize::from(threads),
        None => available_parallelism()?.get().min(THREADS),
    };
    let rows = |header: &FileHeader, block: Block| columns.rows(header, &block);
    read_directory_by(&options.paths, threads, rows, |found| {
        let (header, rows) = match found {
            Found::Block(header, rows) => (header, rows?),
            Found::Damage(..) | Found::File(..) => {
                let problem = Problem::from(found);
                problem.tell();
                damaged = true;
                return Ok::<(), Failure>(put_damage(&mut damage, &problem)?);
            }
        };
        newer += rows.newer;
        Ok(tables.write(header.session, &rows)?)
    })?;
    tables.flush()?;
    damage.flush()?;
    if newer > 0 {
        eprintln!(
            "{newer} records of a newer schema are left out: export with a newer fasttrack-trace"
        );
    }
    Ok(status(damaged))
}

fn place(header: &FileHeader) -> String {
    format!("{},{}", hex(&header.session), header.number)
}
