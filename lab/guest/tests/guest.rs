// SPDX-License-Identifier: GPL-2.0-only
//! The program in a real guest: User-Mode Linux with the emulated phone.
//!
//! FASTTRACK_TEST_KERNEL names the lab's built kernel (`linux`); without it these tests say that
//! they are skipped, and end. A run's virtual times may be compared to the nanosecond.

use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BYTES: u64 = 6_000_000;

struct Lab {
    kernel: String,
    dir: PathBuf,
}

impl Lab {
    fn new(name: &str) -> Option<Lab> {
        let Ok(kernel) = std::env::var("FASTTRACK_TEST_KERNEL") else {
            eprintln!("SKIPPED: FASTTRACK_TEST_KERNEL does not name the lab's kernel");
            return None;
        };
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        Some(Lab { kernel, dir })
    }

    /// Runs a job on the image `image`; gives the result and the console's log.
    fn run(&self, name: &str, image: &str, job: &Value) -> (Value, String) {
        let dir = self.dir.join(name);
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("job.json"), job.to_string()).expect("a job");
        let log = dir.join("log");
        let status = Command::new("setarch")
            .args(["-R", "timeout", "300", &self.kernel])
            .args("mem=512M root=/dev/root rootfstype=hostfs rootflags=/ ro norandmaps".split(' '))
            .args("time-travel=inf-cpu time-travel-start=1700000000000000000".split(' '))
            .args("con0=null,fd:1 con=null lab_seed=7 mflash.phone=s6".split(' '))
            .args(["fasttrack_run=/proc/self/cwd/.", "fasttrack_host=/"])
            .arg(format!("mflash.image=/proc/self/cwd/../{image}"))
            .arg(concat!("init=", env!("CARGO_BIN_EXE_fasttrack-guest")))
            .current_dir(&dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", "/dev/shm")
            .env("HOME", &dir)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log).expect("a log"))
            .stderr(Stdio::null())
            .status()
            .expect("the kernel starts");
        let text = String::from_utf8_lossy(&fs::read(&log).expect("the log")).into_owned();
        assert!(status.success(), "{status}: {text}");
        assert!(text.contains("reboot: Power down"), "{text}");
        let result = fs::read(dir.join("result.json")).unwrap_or_else(|_| panic!("{text}"));
        (serde_json::from_slice(&result).expect("JSON"), text)
    }

    fn copy(&self, image: &str, to: &str) {
        let status = Command::new("cp")
            .args(["--sparse=always", image, to])
            .current_dir(&self.dir)
            .status()
            .expect("cp runs");
        assert!(status.success());
    }

    fn prepare(&self, apps: &Value) {
        let mut value = job("prepare", apps.clone());
        value["format"] = json!(["mkfs.ext4", "-q", "/dev/sda"]);
        value["files"] = json!([
            {"app": "gallery", "path": "lib/ui.so", "bytes": BYTES, "kind": "data"},
            {"app": "gallery", "path": "db", "kind": "sqlite", "rows": 2000, "row_bytes": 100},
        ]);
        let (result, log) = self.run("prepare", "prepared", &value);
        assert_eq!(result["ok"], true, "{result} {log}");
    }
}

fn job(mode: &str, apps: Value) -> Value {
    json!({
        "version": 1, "mode": mode, "seed": 1, "device": "/dev/sda", "fs": "ext4",
        "mount_options": "noatime", "limit_s": 60, "touch_s": 1.0, "verify": true, "apps": apps,
        "settings": [{"path": "/sys/block/sda/queue/scheduler", "value": "mq-deadline"}],
        "foreground": [{"path": "/sys/kernel/no_such_knob", "value": "x"}],
    })
}

fn apps() -> Value {
    json!([
        {"name": "gallery", "uid": 10101, "role": "foreground", "threads": [
            {"name": "ui", "after_touch": true, "steps": [
                {"op": "mmap", "file": "lib/ui.so", "block": 16384, "order": "random", "think_s": 0.0001},
                {"op": "read", "file": "lib/ui.so"},
                {"op": "sqlite", "file": "db", "kind": "select", "transactions": 5, "rows": 2},
                {"op": "sqlite", "file": "db", "kind": "insert", "transactions": 2, "rows": 2, "row_bytes": 100,
                    "journal": "truncate"}]}]},
        {"name": "update", "uid": 10201, "role": "background", "start_s": 0.2, "threads": [
            {"name": "writer", "repeat": true, "steps": [
                {"op": "write", "file": "apk", "bytes": 20_000_000, "block": 1 << 20, "flags": ["create"],
                    "think_s": 0.002},
                {"op": "fsync", "file": "apk"}]}]},
    ])
}

#[test]
fn a_played_run_is_whole_and_the_same_again() {
    let Some(lab) = Lab::new("play") else { return };
    lab.prepare(&apps());
    let mut value = job("play", apps());
    value["foreground"] = json!([]);
    let mut results = Vec::new();
    for name in ["first", "again"] {
        lab.copy("prepared", "image");
        results.push(lab.run(name, "image", &value).0);
    }
    let result = &results[0];
    assert_eq!(result["ok"], true, "{result}");
    let (gallery, update) = (&result["apps"][0], &result["apps"][1]);
    assert_eq!(gallery["bytes_read"], 2 * BYTES + 5 * 2 * 100);
    assert_eq!(gallery["verify_errors"], 0);
    assert_eq!(gallery["finished_ns"], result["end_ns"]);
    assert_eq!(update["exit_code"], Value::Null);
    assert!(update["bytes_written"].as_u64() > update["since_touch"]["bytes_written"].as_u64());
    let response = result["end_ns"].as_u64().zip(result["touch_ns"].as_u64());
    assert!(response.is_some_and(|(end, touch)| end > touch && touch >= 1_000_000_000));
    assert_eq!(results[0], results[1]);
}

#[test]
fn failures_are_told_and_the_guest_ends() {
    let Some(lab) = Lab::new("failures") else {
        return;
    };
    lab.prepare(&apps());
    let (result, _) = lab.run("setting", "prepared", &job("play", apps()));
    let error = result["error"].as_str().unwrap_or_default();
    assert!(error.contains("no_such_knob"), "{error}");
    let mut late = job("play", apps());
    late["foreground"] = json!([]);
    late["apps"][0]["threads"][0]["steps"] = json!([{"op": "think", "s": 500}]);
    let (result, log) = lab.run("late", "prepared", &late);
    let error = result["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("limit_s") && error.contains("gallery"),
        "{error}"
    );
    assert!(log.contains("do_nanosleep"), "{log}");
    late["apps"][0]["threads"][0]["steps"] = json!([{"op": "read", "file": "none"}]);
    let (result, _) = lab.run("missing", "prepared", &late);
    let error = result["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("open /data/app/gallery/none") && error.contains("errno 2"),
        "{error}"
    );
}

#[test]
fn a_command_runs_as_the_app_in_its_directory() {
    let Some(lab) = Lab::new("exec") else { return };
    let apps = json!([
        {"name": "front", "uid": 10101, "role": "foreground", "cwd": "sub",
            "argv": ["sh", "-c", "pwd; id -u; cat file; sleep 0.5; echo sorry >&2; exit 3"]},
        {"name": "behind", "uid": 10201, "role": "background",
            "argv": ["sh", "-c", "trap 'echo bye; exit' TERM; while :; do sleep 0.1; done"]},
    ]);
    let mut value = job("exec", apps);
    value["format"] = json!(["mkfs.ext4", "-q", "/dev/sda"]);
    value["foreground"] = json!([]);
    value["files_from"] = json!("files");
    let files = lab.dir.join("run/files/sub");
    fs::create_dir_all(&files).expect("a directory");
    fs::write(files.join("file"), "content\n").expect("a file");
    let (result, log) = lab.run("run", "image", &value);
    assert_eq!(result["ok"], true, "{result} {log}");
    assert_eq!(result["exec"]["exit_code"], 3);
    let response = result["exec"]["response_ns"].as_u64().unwrap_or(0);
    assert!((500_000_000..600_000_000).contains(&response), "{response}");
    let output = |name: &str| read(&lab.dir.join("run").join(name));
    assert_eq!(output("front.out"), "/data/app/front/sub\n10101\ncontent\n");
    assert_eq!(output("front.err"), "sorry\n");
    assert_eq!(output("behind.out"), "bye\n");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file of the run")
}
