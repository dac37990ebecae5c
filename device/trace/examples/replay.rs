// SPDX-License-Identifier: GPL-2.0-only
//! What the collector costs beside the kernel: a recorded ring is joined and written so many times over, as if the
//! same apps went on elsewhere on the disk.
//!
//!     cargo build --release -p fasttrack-trace --example replay --features rustix/use-libc
//!     zstd -d trace/tests/rings/ext4-patched.zst -o /tmp/ring
//!     valgrind --tool=cachegrind --cache-sim=no target/release/examples/replay /tmp/ring 100
//!
//! It prints events, records, bytes written and the most memory that was resident. What one record costs is the
//! difference between two numbers of times. A directory as the third word keeps the log files, all of them: so that
//! reports of recordings of any length can be measured.

#[path = "../tests/join/ring_file.rs"]
mod ring_file;

use fasttrack_trace::budget::Budget;
use fasttrack_trace::join::Event;
use fasttrack_trace::output::Output;
use fasttrack_trace::privacy::Privacy;
use fasttrack_trace::tracefs::EventFormat;
use fasttrack_trace_log::{log_files, LogWriter, Options, Session, Sync};
use ring_file::{joiner_of, Ring};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// Numbers that grow from one time to the next, and by how much: those of bios, and places on the disk.
const GROWS: [(&str, u64); 2] = [("bio", 10_000), ("sector", 8192)];

/// What is on no disk is left as it is.
const PLACES: u64 = 1 << 48;

fn grow(format: &EventFormat, data: &mut [u8], times: u64) {
    for (name, by) in GROWS {
        let number = format.number(data, name).filter(|number| *number < PLACES);
        if let (Some(number), Some(field)) = (number, format.field(name)) {
            let grown = (number + by * times).to_le_bytes();
            data[field.offset..field.offset + field.size].copy_from_slice(&grown[..field.size]);
        }
    }
}

fn resident_kib() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_string()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (name, times) = (words.next(), words.next());
    let (Some(name), Some(times)) = (name, times.and_then(|text| text.parse::<u64>().ok())) else {
        return Err("say the file of a ring, unpacked, and how many times".into());
    };
    let ring = Ring::parse(&fs::read(name)?);
    let unkept = tempfile::TempDir::new()?;
    let kept = words.next().map(PathBuf::from);
    let mut options = Options {
        sync: Sync::Never,
        ..Options::default()
    };
    if let Some(folder) = &kept {
        fs::create_dir_all(folder)?;
        options.cap_bytes = u64::MAX;
    }
    let folder = kept.as_deref().unwrap_or(unkept.path());
    let writer = LogWriter::new(folder, [1; 16], options)?;
    let mut output = Output::new(writer, Privacy::clear(), Budget::new(0), Session::default());
    let mut joiner = joiner_of(u64::MAX);
    let mut records = Vec::new();
    let span = ring.events.last().map_or(0, |last| last.0) - ring.events[0].0;
    for round in 0..times {
        for (time, cpu, at, data) in &ring.events {
            let format = &ring.formats[*at];
            let mut data = data.clone();
            grow(format, &mut data, round);
            let event = Event {
                time: time + round * span,
                cpu: *cpu,
                format,
                data: &data,
            };
            joiner.event(&event, &mut records);
            output.take(&mut joiner, &mut records)?;
        }
    }
    let written = output.written();
    output.close()?;
    let mut bytes = 0;
    for (_, path) in log_files(folder)? {
        bytes += fs::metadata(path)?.len();
    }
    println!(
        "{} events, {written} records, {bytes} bytes, {} resident",
        ring.events.len() as u64 * times,
        resident_kib()
    );
    Ok(())
}
