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
use fasttrack_trace_log::{read_directory, FileHeader, Found, Record, Shown};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Columns before those of the schema. The first is left out where the directory says it.
const PLACE: [&str; 2] = ["session", "log"];

/// The table of what could not be read.
const DAMAGE: (&str, &[&str]) = (
    "damage",
    &["path", "at", "bytes", "records", "what", "session", "log"],
);

/// Bytes that a table keeps until it writes them.
const BUFFER: usize = 1 << 18;

/// A table that is written.
struct Table {
    out: BufWriter<File>,
    number: itoa::Buffer,
    /// Which fields of a record it has, in the schema's order.
    has: Vec<bool>,
}

impl Table {
    /// A file with a heading, or one that has it already.
    fn new(
        folder: &Path,
        name: &str,
        columns: &[&str],
        has: Vec<bool>,
        begun: bool,
    ) -> io::Result<Table> {
        let path = folder.join(format!("{name}.csv"));
        let file = match begun {
            true => OpenOptions::new().append(true).open(path)?,
            false => File::create(path)?,
        };
        let mut out = BufWriter::with_capacity(BUFFER, file);
        if !begun {
            writeln!(out, "{}", columns.join(","))?;
        }
        Ok(Table {
            out,
            number: itoa::Buffer::new(),
            has,
        })
    }

    fn damage(&mut self, problem: &Problem) -> io::Result<()> {
        put_text(&mut self.out, &problem.path.display().to_string())?;
        write!(self.out, ",{},{},", problem.at, problem.bytes)?;
        if let Some(records) = problem.records {
            write!(self.out, "{records}")?;
        }
        self.out.write_all(b",")?;
        put_text(&mut self.out, &problem.what)?;
        let place = problem.header.as_ref().map(place);
        writeln!(self.out, ",{}", place.as_deref().unwrap_or(","))
    }

    fn row(&mut self, place: &str, record: &Record) -> io::Result<()> {
        let (out, digits) = (&mut self.out, &mut self.number);
        let mut has = self.has.iter();
        out.write_all(place.as_bytes())?;
        record.each_field(|_, value| {
            if has.next() != Some(&true) {
                return Ok(());
            }
            out.write_all(b",")?;
            match value {
                Some(Shown::Text(text)) => put_text(out, text),
                Some(Shown::Number(number)) => {
                    out.write_all(digits.format(number as i64).as_bytes())
                }
                Some(Shown::Signed(number)) => out.write_all(digits.format(number).as_bytes()),
                Some(Shown::Flag(true)) => out.write_all(b"true"),
                Some(Shown::Flag(false)) => out.write_all(b"false"),
                None => Ok(()),
            }
        })?;
        out.write_all(b"\n")
    }
}

/// A text in quotes where it needs them.
fn put_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    match text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

/// The tables of all sessions, or of the one that is read.
struct Tables<'a> {
    options: &'a cli::Export,
    session: Option<[u8; 16]>,
    begun: HashSet<[u8; 16]>,
    by_name: HashMap<&'static str, Table>,
}

impl<'a> Tables<'a> {
    fn new(options: &'a cli::Export) -> io::Result<Tables<'a>> {
        let mut tables = Tables {
            options,
            session: None,
            begun: HashSet::new(),
            by_name: HashMap::new(),
        };
        if !options.by_session {
            tables.open(&options.output, false)?;
        }
        Ok(tables)
    }

    fn open(&mut self, folder: &Path, begun: bool) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for &(name, fields) in Record::TABLES {
            let asked = self.options.columns.iter().find(|one| one.kind == name);
            let wanted =
                |field: &str| asked.is_none_or(|one| one.names.iter().any(|name| name == field));
            // A session's own id is in its place already.
            let has: Vec<bool> = fields
                .iter()
                .map(|field| !PLACE.contains(field) && wanted(field))
                .collect();
            let own = fields
                .iter()
                .zip(&has)
                .filter_map(|(field, has)| has.then_some(*field));
            let columns: Vec<&str> = self.place().iter().copied().chain(own).collect();
            let table = Table::new(folder, name, &columns, has, begun)?;
            self.by_name.insert(name, table);
        }
        Ok(())
    }

    fn place(&self) -> &'static [&'static str] {
        &PLACE[usize::from(self.options.by_session)..]
    }

    /// Makes the tables those of a session, and says how its rows begin.
    fn turn_to(&mut self, header: &FileHeader) -> io::Result<String> {
        if !self.options.by_session {
            return Ok(place(header));
        }
        if self.session != Some(header.session) {
            self.flush()?;
            let begun = !self.begun.insert(header.session);
            self.open(&self.options.output.join(hex(&header.session)), begun)?;
            self.session = Some(header.session);
        }
        Ok(header.number.to_string())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.by_name
            .values_mut()
            .try_for_each(|table| table.out.flush())
    }
}

/// Writes the tables.
pub fn export(options: &cli::Export) -> Ended {
    let folder = &options.output;
    are_there(&options.paths)?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tables = Tables::new(options)?;
    let mut damage = Table::new(folder, DAMAGE.0, DAMAGE.1, Vec::new(), false)?;
    let (mut damaged, mut newer) = (false, 0_u64);
    read_directory(&options.paths, 0, u64::MAX, |found| {
        let (header, block) = match found {
            Found::Block(header, block) => (header, block),
            Found::Damage(..) | Found::File(..) => {
                let problem = Problem::from(found);
                problem.tell();
                damaged = true;
                return Ok::<(), Failure>(damage.damage(&problem)?);
            }
        };
        let place = tables.turn_to(&header)?;
        for record in &block.records {
            match record.name().and_then(|name| tables.by_name.get_mut(name)) {
                Some(table) => table.row(&place, record)?,
                None => newer += 1,
            }
        }
        Ok(())
    })?;
    tables.flush()?;
    damage.out.flush()?;
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
