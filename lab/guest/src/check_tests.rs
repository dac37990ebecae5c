// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the job's grammar and checks.

use super::*;
use serde_json::{json, Value};

fn job(apps: Value) -> Value {
    json!({
        "version": 1, "mode": "play", "seed": 1, "device": "/dev/sda", "fs": "ext4",
        "format": null, "mount_options": "noatime", "limit_s": 60, "touch_s": 2.0,
        "settings": [], "foreground": [], "files": [], "apps": apps, "verify": true,
    })
}

fn app(steps: Value) -> Value {
    json!({"name": "a", "uid": 10101, "role": "foreground", "threads":
        [{"name": "t", "after_touch": true, "steps": steps}]})
}

fn background(thread: Value) -> Value {
    json!({"name": "b", "uid": 10201, "role": "background", "threads": [thread]})
}

fn found(value: &Value) -> Vec<String> {
    problems(&Job::parse(&value.to_string()).expect("a job that parses"))
}

fn complains(value: &Value, what: &str) {
    let all = found(value);
    assert!(
        all.iter().any(|problem| problem.contains(what)),
        "no {what:?} in {all:?}"
    );
}

#[test]
fn every_step_of_the_contract_is_known() {
    let steps = json!([
        {"op": "read", "file": "f", "bytes": 0, "offset": 0, "block": 4096, "order": "random", "think_s": 0.1},
        {"op": "mmap", "file": "f", "bytes": 8192, "offset": 4096, "block": 4096, "order": "sequential", "think_s": 0},
        {"op": "write", "file": "f", "bytes": 8192, "block": 4096,
            "flags": ["create", "truncate", "direct", "sync", "dsync"]},
        {"op": "write", "file": "g", "bytes": 1, "flags": ["append"]},
        {"op": "fsync", "file": "f"}, {"op": "fdatasync", "file": "f"}, {"op": "close", "file": "f"},
        {"op": "unlink", "file": "f"}, {"op": "mkdir", "file": "d"}, {"op": "stat", "file": "f"},
        {"op": "rename", "file": "f", "to": "g"},
        {"op": "sqlite", "file": "db", "kind": "insert", "transactions": 3, "rows": 2, "row_bytes": 100,
            "journal": "wal", "think_s": 0.01},
        {"op": "think", "s": 0.5}, {"op": "memory", "bytes": 4096},
        {"op": "repeat", "times": 3, "cycle": 2, "steps": [{"op": "stat", "file": "x{i}"}]},
        {"op": "touch"},
    ]);
    assert_eq!(found(&job(json!([app(steps)]))), Vec::<String>::new());
}

#[test]
fn grammar_errors_say_where() {
    for (steps, part) in [
        (
            json!([{"op": "think", "s": 1}, {"op": "reed", "file": "f"}]),
            "reed",
        ),
        (
            json!([{"op": "think", "s": 1}, {"op": "read", "fil": "f"}]),
            "fil",
        ),
        (
            json!([{"op": "think", "s": 1}, {"op": "read", "file": "f", "bytes": -1}]),
            "-1",
        ),
    ] {
        let error = Job::parse(&job(json!([app(steps)])).to_string()).expect_err("bad step");
        assert!(error.contains("apps[0].threads[0].steps[1]"), "{error}");
        assert!(error.contains(part), "{error}");
    }
    let mut extra = job(json!([]));
    extra["sede"] = json!(1);
    let error = Job::parse(&extra.to_string()).expect_err("unknown key");
    assert!(error.contains("sede") && error.contains("seed"), "{error}");
}

#[test]
fn nulls_are_defaults() {
    let mut value = job(json!([app(
        json!([{"op": "read", "file": "f", "block": null}])
    )]));
    value["settings"] = Value::Null;
    value["apps"][0]["argv"] = Value::Null;
    value["apps"][0]["trace"] = Value::Null;
    assert_eq!(found(&value), Vec::<String>::new());
}

#[test]
fn a_loop_that_never_sleeps_is_refused() {
    let busy = json!([{"op": "write", "file": "f", "bytes": 10, "flags": ["create"]}]);
    let thread = json!({"name": "t", "repeat": true, "steps": busy});
    complains(&job(json!([background(thread)])), "virtual time would stop");
    let step = json!([{"op": "repeat", "times": 0, "steps": busy}]);
    let thread = json!({"name": "t", "steps": step});
    complains(&job(json!([background(thread)])), "virtual time would stop");
    let lazy = json!([{"op": "repeat", "times": 4, "steps": [
        {"op": "write", "file": "f", "bytes": 10, "flags": ["create"], "think_s": 0.1}]}]);
    let thread = json!({"name": "t", "repeat": true, "steps": lazy});
    assert_eq!(
        found(&job(json!([background(thread)]))),
        Vec::<String>::new()
    );
}

#[test]
fn a_foreground_app_must_wait_and_end() {
    let mut early = app(json!([{"op": "think", "s": 1}]));
    early["threads"][0]["after_touch"] = json!(false);
    complains(&job(json!([early])), "waits for the touch");
    let endless = json!([{"op": "repeat", "times": 0, "steps": [{"op": "think", "s": 1}]}]);
    complains(&job(json!([app(endless)])), "must end");
}

#[test]
fn elements_are_checked() {
    for (step, what) in [
        (
            json!({"op": "read", "file": "f", "flags": ["sync"]}),
            "write only",
        ),
        (
            json!({"op": "write", "file": "f", "bytes": 100, "flags": ["direct"]}),
            "multiples",
        ),
        (
            json!({"op": "write", "file": "f", "bytes": 9, "offset": 4, "flags": ["append"]}),
            "append",
        ),
        (json!({"op": "read", "file": "f{i}"}), "outside a repeat"),
        (
            json!({"op": "read", "file": "/etc/passwd"}),
            "not on the phone",
        ),
        (json!({"op": "think", "s": -1.0}), "not a time"),
        (json!({"op": "memory", "bytes": 0}), "above 0"),
        (
            json!({"op": "sqlite", "file": "d", "kind": "insert", "transactions": 1, "rows": 1}),
            "row_bytes",
        ),
        (
            json!({"op": "read", "file": "f", "block": 1_u64 << 40}),
            "above",
        ),
    ] {
        complains(&job(json!([app(json!([step]))])), what);
    }
}

#[test]
fn samples_need_a_foreground_to_look_at() {
    let mut value = job(json!([app(json!([{"op": "think", "s": 1}]))]));
    value["why_interval_ns"] = json!(1_000_000);
    assert_eq!(found(&value), Vec::<String>::new());
    value["why_interval_ns"] = json!(9_999);
    complains(&value, "too short");
    value["why_interval_ns"] = json!(1_000_000);
    value["apps"] = json!([{"name": "a", "uid": 1, "role": "foreground", "argv": ["x"]}]);
    value["mode"] = json!("exec");
    assert_eq!(found(&value), Vec::<String>::new());
    value["mode"] = json!("prepare");
    complains(&value, "mode play or exec");
    value["mode"] = json!("play");
    value["apps"] = json!([{"name": "a", "uid": 1, "role": "background", "argv": ["x"]}]);
    complains(&value, "a foreground app");
}

#[test]
fn the_jobs_frame_is_checked() {
    let good = app(json!([{"op": "think", "s": 1}]));
    let mut value = job(json!([good, good]));
    complains(&value, "name of another");
    value["apps"] = json!([{"name": "a/b", "uid": 1, "role": "service", "argv": ["x"]}]);
    complains(&value, "letters");
    value["apps"] =
        json!([{"name": "a", "uid": 1, "role": "service", "argv": ["x"], "trace": "t"}]);
    complains(&value, "exactly one");
    value["apps"] = json!([good]);
    value["limit_s"] = json!(1.0);
    complains(&value, "limit_s");
    value["mode"] = json!("exec");
    complains(&value, "argv");
    value["files"] = json!([{"app": "z", "path": "f", "bytes": 1, "kind": "data"}]);
    complains(&value, "not among apps");
    value["version"] = json!(2);
    complains(&value, "speaks 1");
    value["settings"] = json!([{"path": "sys/x", "value": "1"}]);
    complains(&value, "absolute");
}

#[test]
fn io_priorities_are_known_and_given_to_one_app() {
    let with = |key: &str, value: Value| {
        let mut one = app(json!([{"op": "think", "s": 1}]));
        one[key] = value;
        one
    };
    let mut value = job(json!([with("ioprio", json!("idle"))]));
    assert_eq!(found(&value), Vec::<String>::new());
    value["apps"] = json!([with("ioprio_touch", json!("realtime 4"))]);
    assert_eq!(found(&value), Vec::<String>::new());
    let mut other = background(json!({"name": "t", "steps": [{"op": "think", "s": 1}]}));
    other["uid"] = json!(10101);
    value["apps"] = json!([with("ioprio_touch", json!("idle")), other]);
    complains(&value, "a UID of its own");
    value["apps"] = json!([with("ioprio", json!("best"))]);
    let error = Job::parse(&value.to_string()).expect_err("no such class");
    for part in ["apps[0].ioprio", "\"best\"", "best-effort 0 to 7"] {
        assert!(error.contains(part), "{error}");
    }
}
