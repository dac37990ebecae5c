// SPDX-License-Identifier: GPL-2.0-only
//! The program on the host, as the lab calls it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn guest(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fasttrack-guest"))
        .args(args)
        .output()
        .expect("the program runs")
}

fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("a file");
    path
}

const JOB: &str = r#"{"version": 1, "mode": "prepare", "seed": 1, "device": "/dev/sda", "fs": "f2fs",
    "format": ["mkfs.f2fs", "/dev/sda"], "mount_options": "", "limit_s": 100, "settings": [],
    "foreground": [], "touch_s": 0, "verify": false,
    "files": [{"app": "a", "path": "f", "bytes": 10, "kind": "data"}],
    "apps": [{"name": "a", "uid": 10101, "role": "foreground"}]}"#;

#[test]
fn a_good_job_is_ok() {
    let path = file("good.json", JOB);
    let output = guest(&["--check", path.to_str().expect("a path")]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("ok\n"));
}

#[test]
fn a_bad_job_names_file_element_and_fault() {
    let path = file("bad.json", &JOB.replace("\"app\": \"a\"", "\"app\": \"b\""));
    let output = guest(&["--check", path.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["bad.json", "files[0]", "\"b\" is not among apps"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_traces_files_are_listed_as_json() {
    let path = file("trace", "1\t0\topen\t/data/x\t0\t3\n1\t5\tread\t3\t100\n");
    let output = guest(&["--trace-files", path.to_str().expect("a path")]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, "[{\"bytes\":100,\"path\":\"data/x\"}]\n");
}

#[test]
fn a_wrong_call_shows_the_help() {
    let output = guest(&["--chekc", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--trace-files TRACE"));
}
