// SPDX-License-Identifier: GPL-2.0-only
//! Histograms that the kernel makes of events: the triggers that ask for them, and the files `hist` that show them.
//!
//! Documentation/trace/histogram.rst describes both. A bio's direction is in the event `io_bio`, and whose its blocks are
//! in the events `io_segment` that follow on the same processor. So the first leaves it in a variable of the processor,
//! and each of the others makes an event of both, a synthetic one with a name of the collector's own. That one is summed
//! up, and is in no ring.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Rows of a histogram: what finds no room in it is not summed up.
pub const ROOM: usize = 8192;

/// A bio's number, and what it asks, in one number.
const SENT: u64 = 64;

/// The number of a file, and the type of its blocks, in one number.
pub const TYPES: u64 = 8;

/// Begin of the name of the synthetic event; the process follows.
const BLOCKS: &str = "fasttrack_trace_blocks";

/// A row: its keys in their order, then how often it was met and the sums in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Keys; of a power of two its exponent.
    pub keys: Vec<u64>,
    /// Hits, and sums.
    pub values: Vec<u64>,
}

/// What a file shows of one trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Rows, in any order.
    pub rows: Vec<Row>,
    /// How often any row was met.
    pub hits: u64,
    /// How often there was no room for a row.
    pub dropped: u64,
}

/// Reads a file `hist`: one histogram for each trigger, in the order in which they were made.
///
/// # Errors
/// What is not understood, or missing, in words.
pub fn histograms(text: &str) -> Result<Vec<Histogram>, String> {
    let mut found = Vec::new();
    let mut ended = true;
    for line in text.lines().map(str::trim) {
        if line == "# event histogram" {
            if !ended {
                return Err("a histogram has no end".to_string());
            }
            found.push(Histogram::default());
            ended = false;
        }
        if line.is_empty() || line.starts_with('#') || line == "Totals:" {
            continue;
        }
        let wrong = || format!("a line is not understood: {line:?}");
        let now = found.last_mut().ok_or_else(wrong)?;
        match (line.strip_prefix('{'), line.split_once(':')) {
            (Some(rest), _) => now.rows.push(row(rest).ok_or_else(wrong)?),
            (None, Some(("Hits", count))) => now.hits = number(count).ok_or_else(wrong)?,
            (None, Some(("Entries", count))) => {
                number(count).ok_or_else(wrong)?;
            }
            (None, Some(("Dropped", count))) => {
                now.dropped = number(count).ok_or_else(wrong)?;
                ended = true;
            }
            _ => return Err(wrong()),
        }
    }
    match ended {
        true => Ok(found),
        false => Err("a histogram has no end".to_string()),
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `KEY: NUMBER, KEY: ~ 2^NUMBER } hitcount: NUMBER  SUM: NUMBER`
fn row(text: &str) -> Option<Row> {
    let (keys, values) = text.split_once('}')?;
    let key = |part: &str| {
        let said = part.rsplit_once(':')?.1.trim();
        number(said.strip_prefix("~ 2^").unwrap_or(said))
    };
    let keys: Vec<u64> = keys.split(',').map(key).collect::<Option<_>>()?;
    let mut words = values.split_whitespace();
    let mut values = Vec::new();
    while let Some(name) = words.next() {
        name.strip_suffix(':')?;
        values.push(number(words.next()?)?);
    }
    (!values.is_empty()).then_some(Row { keys, values })
}

/// Histograms of one ring's events, which are removed when this is dropped.
pub struct Triggers {
    root: PathBuf,
    instance: PathBuf,
    pid: u32,
}

fn synthetic(pid: u32) -> String {
    format!("{BLOCKS}_{pid}")
}

/// Adds a line: what truncates such a file removes all that is in it.
fn add(path: &Path, line: &str) -> io::Result<()> {
    let opened = OpenOptions::new().append(true).open(path);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// What of a row's keys and sums the two histograms have.
const BLOCKS_ROW: &str = "hist:keys=owner,file*8+block_type,sent-bio*64:vals=bytes";
const CALLS_ROW: &str = "hist:keys=task,call,took_ns.log2:vals=took_ns";

/// Counts all, and has room for all.
const ALL: &str = "hist:keys=common_cpu";

impl Triggers {
    /// Asks for the histograms of a ring's events.
    ///
    /// # Errors
    /// The kernel has none, or refuses: which file, and what it says.
    pub fn new(root: &Path, instance: &Path) -> io::Result<Triggers> {
        let pid = std::process::id();
        // A former collector's with the same number was killed.
        remove(root, instance, pid);
        let triggers = Triggers {
            root: root.to_path_buf(),
            instance: instance.to_path_buf(),
            pid,
        };
        let event = synthetic(pid);
        let fields = "u64 bio; u64 sent; u32 owner; u32 file; u8 block_type; u32 bytes";
        add(&root.join("synthetic_events"), &format!("{event} {fields}"))?;
        let given = "bio,$sent,owner,file,block_type,bytes";
        // What is sent is summed up before anything is sent.
        let lines = [
            (&*format!("synthetic/{event}"), sized(BLOCKS_ROW)),
            (
                "io_origin/io_bio",
                format!("{ALL}:sent=bio*{SENT}+operation"),
            ),
            (
                "io_origin/io_segment",
                format!("{ALL}:onmatch(io_origin.io_bio).trace({event},{given})"),
            ),
            ("io_origin/io_call", ALL.to_string()),
            ("io_origin/io_call", sized(CALLS_ROW)),
        ];
        for (event, line) in &lines {
            add(&triggers.file(event, "trigger"), line)?;
        }
        Ok(triggers)
    }

    fn file(&self, event: &str, name: &str) -> PathBuf {
        self.instance.join("events").join(event).join(name)
    }

    fn read(&self, event: &str) -> Result<Vec<Histogram>, String> {
        let path = self.file(event, "hist");
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        text.and_then(|text| histograms(&text))
            .map_err(|why| format!("{}: {why}", path.display()))
    }

    /// How many runs of blocks there were, and their sums: by owner, file with type, and what their bio asks.
    ///
    /// # Errors
    /// The ring was taken away.
    pub fn blocks(&self) -> Result<(u64, Histogram), String> {
        let all = self.read("io_origin/io_segment")?;
        let sums = self.read(&format!("synthetic/{}", synthetic(self.pid)))?;
        let all = all.first().map_or(0, |all| all.hits);
        Ok((all, sums.into_iter().next().unwrap_or_default()))
    }

    /// How many calls there were, and their sums: by task, call and the exponent of their time.
    ///
    /// # Errors
    /// The ring was taken away.
    pub fn calls(&self) -> Result<(u64, Histogram), String> {
        let mut both = self.read("io_origin/io_call")?.into_iter();
        let all = both.next().map_or(0, |all| all.hits);
        Ok((all, both.next().unwrap_or_default()))
    }

    /// Empties the sums of blocks.
    ///
    /// # Errors
    /// The ring was taken away.
    pub fn clear_blocks(&self) -> io::Result<()> {
        let event = format!("synthetic/{}", synthetic(self.pid));
        clear(&self.file(&event, "trigger"), BLOCKS_ROW)
    }

    /// Empties the sums of calls.
    ///
    /// # Errors
    /// The ring was taken away.
    pub fn clear_calls(&self) -> io::Result<()> {
        let path = self.file("io_origin/io_call", "trigger");
        clear(&path, CALLS_ROW)
    }
}

fn sized(row: &str) -> String {
    format!("{row}:size={ROOM}")
}

/// Nothing may be added while it is emptied: that would be in no row, and in no count of what is lost.
fn clear(path: &Path, row: &str) -> io::Result<()> {
    ["pause", "clear", "cont"]
        .iter()
        .try_for_each(|what| add(path, &format!("{}:{what}", sized(row))))
}

impl Drop for Triggers {
    fn drop(&mut self) {
        remove(&self.root, &self.instance, self.pid);
    }
}

/// Removes a collector's histograms, of which some may not be there: a ring cannot be removed before them.
pub fn remove(root: &Path, instance: &Path, pid: u32) {
    let event = synthetic(pid);
    let events = instance.join("events");
    // Each before those that it refers to.
    for name in [
        &format!("synthetic/{event}"),
        "io_origin/io_segment",
        "io_origin/io_bio",
        "io_origin/io_call",
    ] {
        // One that is not there is not made.
        let opened = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(events.join(name).join("trigger"));
        let _: io::Result<File> = opened;
    }
    let _ = add(&root.join("synthetic_events"), &format!("!{event}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOWN: &str = "# event histogram
#
# trigger info: hist:keys=common_cpu:vals=hitcount:sort=hitcount:size=2048 [active]
#

{ common_cpu:          1 } hitcount:          3
{ common_cpu:          0 } hitcount:          9

Totals:
    Hits: 12
    Entries: 2
    Dropped: 0


# event histogram
#
# trigger info: hist:keys=task,call,took_ns.log2:vals=hitcount,took_ns:sort=hitcount:size=8192 [active]
#

{ task:         21, call:          3, took_ns: ~ 2^20 } hitcount:         11  took_ns:    9000000

Totals:
    Hits: 11
    Entries: 1
    Dropped: 1
";

    #[test]
    fn a_file_has_a_histogram_for_each_trigger() {
        let found = histograms(SHOWN).expect("histograms");
        let row = |keys: &[u64], values: &[u64]| Row {
            keys: keys.to_vec(),
            values: values.to_vec(),
        };
        let expected = [
            Histogram {
                rows: vec![row(&[1], &[3]), row(&[0], &[9])],
                hits: 12,
                dropped: 0,
            },
            Histogram {
                rows: vec![row(&[21, 3, 20], &[11, 9_000_000])],
                hits: 11,
                dropped: 1,
            },
        ];
        assert_eq!(found, expected);
        assert_eq!(histograms(""), Ok(Vec::new()));
        let cut = &SHOWN[..SHOWN.len() - 20];
        assert!(histograms(cut).is_err());
    }

    fn shown(histogram: &Histogram) -> String {
        let rows = histogram.rows.iter().map(|row| {
            let keys: Vec<String> = row.keys.iter().map(|key| format!("k: {key:10}")).collect();
            let values: Vec<String> = row
                .values
                .iter()
                .map(|sum| format!("v: {sum:10}"))
                .collect();
            format!("{{ {} }} {}\n", keys.join(", "), values.join("  "))
        });
        let rows: String = rows.collect();
        format!(
            "# event histogram\n#\n\n{rows}\nTotals:\n    Hits: {}\n    Entries: {}\n    Dropped: {}\n",
            histogram.hits,
            histogram.rows.len(),
            histogram.dropped
        )
    }

    prop_compose! {
        fn any_row()(
            keys in prop::collection::vec(any::<u64>(), 1..4),
            values in prop::collection::vec(any::<u64>(), 1..4),
        ) -> Row {
            Row { keys, values }
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read(
            made in prop::collection::vec(
                (prop::collection::vec(any_row(), 0..5), any::<u64>(), any::<u64>()),
                0..3,
            )
        ) {
            let made: Vec<Histogram> = made
                .into_iter()
                .map(|(rows, hits, dropped)| Histogram { rows, hits, dropped })
                .collect();
            let text: Vec<String> = made.iter().map(shown).collect();
            prop_assert_eq!(histograms(&text.join("\n\n")), Ok(made));
        }
    }

    /// No text is too much for it, and a row has keys and hits.
    #[test]
    fn spoilt_files_are_refused() {
        fasttrack_fuzz::mutate(SHOWN.as_bytes(), |bytes| {
            let text = String::from_utf8_lossy(bytes);
            for histogram in histograms(&text).unwrap_or_default() {
                for row in histogram.rows {
                    assert!(!row.keys.is_empty() && !row.values.is_empty());
                }
            }
        });
    }
}
