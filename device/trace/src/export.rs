// SPDX-License-Identifier: GPL-2.0-only
//! `export`: log files as one CSV file for each kind of record, for programs that analyse them.
//!
//! Each row begins with the session and the number of its log file: ids of bios, tasks and files are a session's, and
//! names are those of a log file. An absent field is empty, an empty text is `""`; numbers are signed, of 64 bits.

use crate::cat::{are_there, status, Failure, Problem};
use crate::cli;
use crate::Ended;
use fasttrack_trace::identity::hex;
use fasttrack_trace_log::{read_directory, FileHeader, Found, Record, Shown};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Columns before those of the schema.
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
}

impl Table {
    fn new<'a>(
        folder: &Path,
        name: &str,
        columns: impl IntoIterator<Item = &'a &'static str>,
    ) -> io::Result<Table> {
        let file = File::create(folder.join(format!("{name}.csv")))?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        let columns: Vec<&str> = columns.into_iter().copied().collect();
        writeln!(out, "{}", columns.join(","))?;
        Ok(Table {
            out,
            number: itoa::Buffer::new(),
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
        out.write_all(place.as_bytes())?;
        record.each_field(|name, value| {
            // A session's own id is in its place already.
            if PLACE.contains(&name) {
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

/// Writes the tables.
pub fn export(options: &cli::Export) -> Ended {
    let folder = &options.output;
    are_there(&options.paths)?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tables = HashMap::new();
    for &(name, fields) in Record::TABLES {
        let own = fields.iter().filter(|field| !PLACE.contains(field));
        tables.insert(name, Table::new(folder, name, PLACE.iter().chain(own))?);
    }
    let mut damage = Table::new(folder, DAMAGE.0, DAMAGE.1)?;
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
        let place = place(&header);
        for record in &block.records {
            match record.name().and_then(|name| tables.get_mut(name)) {
                Some(table) => table.row(&place, record)?,
                None => newer += 1,
            }
        }
        Ok(())
    })?;
    for table in tables.values_mut().chain([&mut damage]) {
        table.out.flush()?;
    }
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
