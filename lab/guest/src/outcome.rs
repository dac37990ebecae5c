// SPDX-License-Identifier: GPL-2.0-only
//! The result of a run, as `contract/README.md` fixes it.

use crate::exec::RUN;
use serde_json::{json, Map, Value};
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
    pub apps: Vec<Value>,
    /// What the kernel counted.
    pub kernel: KernelState,
    /// Of the foreground command.
    pub exec: Option<Value>,
    /// Where the foreground waited.
    pub why: Option<Value>,
}

/// What the kernel shows at the end of a run.
#[derive(Debug, Default)]
pub struct KernelState {
    counters: Map<String, Value>,
    elevator: Map<String, Value>,
    device: Map<String, Value>,
    memory: Map<String, Value>,
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
    pub fn json(&self) -> Value {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut value = json!({
            "version": 1,
            "ok": self.errors.is_empty(),
            "error": (!self.errors.is_empty()).then(|| self.errors.join("; ")),
            "kernel": release.trim(),
            "touch_ns": self.touch_ns,
            "end_ns": self.end_ns,
            "apps": self.apps,
            "counters": self.kernel.counters,
            "elevator": self.kernel.elevator,
            "device": self.kernel.device,
            "memory": self.kernel.memory,
        });
        for (key, part) in [("exec", &self.exec), ("why", &self.why)] {
            if let Some(part) = part {
                value[key] = part.clone();
            }
        }
        value
    }

    /// Writes `result.json` into the run's directory, whole or not at all.
    pub fn write(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.json())? + "\n";
        let temporary = format!("{RUN}/result.json.new");
        fs::write(&temporary, text)?;
        fs::rename(&temporary, format!("{RUN}/result.json"))
    }
}

/// A directory's files that hold a number each.
fn number_files(dir: &Path) -> Map<String, Value> {
    let mut found = Map::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Ok(number) = text.trim().parse::<i64>() {
            found.insert(
                entry.file_name().to_string_lossy().into_owned(),
                number.into(),
            );
        }
    }
    found
}

/// Lines `name value`; others are left out.
fn name_values(text: &str) -> Map<String, Value> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        let number: i64 = value.trim().parse().ok()?;
        Some((name.trim_end_matches(':').to_string(), number.into()))
    });
    pairs.collect()
}

/// /proc/meminfo's sizes, in bytes.
fn meminfo(text: &str) -> Map<String, Value> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
        Some((name.to_string(), (kib * 1024).into()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_numbers_are_read() {
        let device = name_values("reads 12\nflushes: -3\nphone s6\n\nlonely\n");
        assert_eq!(Value::Object(device), json!({"reads": 12, "flushes": -3}));
        let memory = meminfo("MemTotal:  1024 kB\nHugePages_Total:  0\n");
        assert_eq!(Value::Object(memory), json!({"MemTotal": 1_048_576}));
    }

    #[test]
    fn files_of_numbers_are_read() {
        let dir = crate::tempdir::Dir::new();
        fs::write(dir.path().join("pauses"), "41\n").expect("write");
        fs::write(dir.path().join("text"), "off\n").expect("write");
        assert_eq!(
            Value::Object(number_files(dir.path())),
            json!({"pauses": 41})
        );
        assert!(number_files(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn an_error_is_not_ok() {
        let bad = Outcome::failed("no device".into()).json();
        assert_eq!(
            (&bad["ok"], &bad["error"]),
            (&json!(false), &json!("no device"))
        );
        let good = Outcome::default().json();
        assert_eq!((&good["ok"], &good["error"]), (&json!(true), &Value::Null));
        assert!(good.get("exec").is_none() && good.get("why").is_none());
    }
}
