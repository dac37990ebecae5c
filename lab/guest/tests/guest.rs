// SPDX-License-Identifier: GPL-2.0-only
//! The program in a real guest: User-Mode Linux with the emulated phone.
//!
//! FASTTRACK_TEST_BOOT is the command, a word a line, that boots a run's directory, as
//! `./fasttrack build --boot` prints it; FASTTRACK_TEST_GUEST is the program as the lab builds it.
//! scripts/test.sh sets both. A run's virtual times may be compared to the nanosecond.

use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BYTES: u64 = 6_000_000;
/// Of real time; a boot takes seconds.
const LIMIT_S: &str = "300";

struct Lab {
    boot: Vec<String>,
    program: PathBuf,
    dir: PathBuf,
}

fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run scripts/test.sh"))
}

impl Lab {
    fn new(name: &str) -> Lab {
        let boot = given("FASTTRACK_TEST_BOOT");
        let program = given("FASTTRACK_TEST_GUEST");
        // Where the lab's runs are as well: the guest's memory and its phone are files there.
        let room = [
            Path::new("/dev/shm"),
            Path::new(env!("CARGO_TARGET_TMPDIR")),
        ]
        .into_iter()
        .find(|room| room.is_dir())
        .expect("a directory");
        let dir = room.join(format!("fasttrack-guest-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        Lab {
            boot: boot.lines().map(str::to_string).collect(),
            program: program.into(),
            dir,
        }
    }

    /// Runs a job on the phone `phone`, which is moved there and back; gives the result and the
    /// console's log.
    fn run(&self, name: &str, phone: &str, job: &Value) -> (Value, String) {
        let dir = self.dir.join(name);
        for mount_point in ["dev", "proc", "tmp"] {
            fs::create_dir_all(dir.join("root").join(mount_point)).expect("a directory");
        }
        fs::copy(&self.program, dir.join("root/init")).expect("the program");
        fs::write(dir.join("job.json"), job.to_string()).expect("a job");
        let (there, here) = (self.dir.join(phone), dir.join("phone.img"));
        if there.exists() {
            fs::rename(&there, &here).expect("a phone");
        }
        let log = dir.join("log");
        let status = Command::new("timeout")
            .arg(LIMIT_S)
            .args(&self.boot)
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log).expect("a log"))
            .stderr(Stdio::null())
            .status()
            .expect("the kernel starts");
        let text = String::from_utf8_lossy(&fs::read(&log).expect("the log")).into_owned();
        assert!(status.success(), "{status}: {text}");
        assert!(text.contains("reboot: Power down"), "{text}");
        fs::rename(&here, &there).expect("a phone");
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

impl Drop for Lab {
    fn drop(&mut self) {
        // What stays is in the way of nobody.
        let _ = fs::remove_dir_all(&self.dir);
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
#[ignore = "boots a guest: scripts/test.sh"]
fn a_played_run_is_whole_and_the_same_again() {
    let lab = Lab::new("play");
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
#[ignore = "boots a guest: scripts/test.sh"]
fn failures_are_told_and_the_guest_ends() {
    let lab = Lab::new("failures");
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
#[ignore = "boots a guest: scripts/test.sh"]
fn a_command_runs_as_the_app_in_its_directory() {
    let lab = Lab::new("exec");
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
