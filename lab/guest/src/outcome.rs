// SPDX-License-Identifier: GPL-2.0-only
//! The result of a run, as `contract/README.md` fixes it.

use crate::exec::RUN;
use crate::report::{AppReport, Exec, Numbers, Report, Why};
use std::fs;
use std::io;
use std::path::Path;

/// FastTrack's counters, one a file.
const COUNTERS: &str = "/sys/kernel/fasttrack/stats";
/// The elevator's knobs and counters, one a file.
const ELEVATOR: &str = "/sys/block/sda/queue/iosched";
/// The emulated phone's counters, one a line.
const DEVICE: &str = "/sys/kernel/debug/mflash/stats";

/// What came of a job.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What went wrong; nothing means that the run is good.
    pub errors: Vec<String>,
    /// When the user touched.
    pub touch_ns: Option<u64>,
    /// When the last foreground app ended.
    pub end_ns: Option<u64>,
    /// The apps' results.
    pub apps: Vec<AppReport>,
    /// What the kernel counted.
    pub kernel: KernelState,
    /// Of the foreground command.
    pub exec: Option<Exec>,
    /// Where the foreground waited.
    pub why: Option<Why>,
}

/// What the kernel shows at the end of a run.
#[derive(Debug, Default)]
pub struct KernelState {
    counters: Numbers,
    elevator: Numbers,
    device: Numbers,
    memory: Numbers,
}

impl KernelState {
    /// Reads it.
    pub fn read() -> KernelState {
        KernelState {
            counters: number_files(Path::new(COUNTERS)),
            elevator: number_files(Path::new(ELEVATOR)),
            device: name_values(&fs::read_to_string(DEVICE).unwrap_or_default()),
            memory: meminfo(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        }
    }
}

impl Outcome {
    /// Of a run that failed before it began.
    pub fn failed(error: String) -> Outcome {
        Outcome {
            errors: vec![error],
            ..Outcome::default()
        }
    }

    /// The whole result.
    fn report(self) -> Report {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Report {
            version: 1,
            ok: self.errors.is_empty(),
            error: (!self.errors.is_empty()).then(|| self.errors.join("; ")),
            kernel: release.trim().to_string(),
            touch_ns: self.touch_ns,
            end_ns: self.end_ns,
            apps: self.apps,
            counters: self.kernel.counters,
            elevator: self.kernel.elevator,
            device: self.kernel.device,
            memory: self.kernel.memory,
            exec: self.exec,
            why: self.why,
        }
    }

    /// Writes `result.json` into the run's directory, whole or not at all.
    pub fn write(self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.report())? + "\n";
        let temporary = format!("{RUN}/result.json.new");
        fs::write(&temporary, text)?;
        fs::rename(&temporary, format!("{RUN}/result.json"))
    }
}

/// A directory's files that hold a number each.
fn number_files(dir: &Path) -> Numbers {
    let mut found = Numbers::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Ok(number) = text.trim().parse::<i64>() {
            found.insert(entry.file_name().to_string_lossy().into_owned(), number);
        }
    }
    found
}

/// Lines `name value`; others are left out.
fn name_values(text: &str) -> Numbers {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let number = value.trim().parse().ok()?;
        Some((name.trim_end_matches(':').to_string(), number))
    });
    pairs.collect()
}

/// /proc/meminfo's sizes, in bytes.
fn meminfo(text: &str) -> Numbers {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let kib: i64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
        Some((name.to_string(), kib * 1024))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const N: usize>(pairs: [(&str, i64); N]) -> Numbers {
        pairs.map(|(name, value)| (name.to_string(), value)).into()
    }

    #[test]
    fn the_kernels_numbers_are_read() {
        let device = name_values("reads 12\nflushes: -3\nphone s6\n\nlonely\n");
        assert_eq!(device, numbers([("reads", 12), ("flushes", -3)]));
        let memory = meminfo("MemTotal:  1024 kB\nHugePages_Total:  0\n");
        assert_eq!(memory, numbers([("MemTotal", 1_048_576)]));
    }

    #[test]
    fn files_of_numbers_are_read() {
        let dir = crate::tempdir::Dir::new();
        fs::write(dir.path().join("pauses"), "41\n").expect("write");
        fs::write(dir.path().join("text"), "off\n").expect("write");
        assert_eq!(number_files(dir.path()), numbers([("pauses", 41)]));
        assert!(number_files(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn an_error_is_not_ok() {
        let bad = Outcome::failed("no device".into()).report();
        assert_eq!((bad.ok, bad.error.as_deref()), (false, Some("no device")));
        let good = serde_json::to_value(Outcome::default().report()).expect("JSON");
        assert!(good["ok"] == true && good["error"].is_null());
        assert!(good.get("exec").is_none() && good.get("why").is_none());
    }
}
