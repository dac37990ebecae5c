// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the replay, on a directory of the host.

use super::*;
use crate::stats::{collect, Shared};
use crate::tempdir::Dir;
use serde_json::{json, Value};

/// Replays lines with a slot a thread; gives the app's statistics.
fn replay(dir: &Dir, lines: &[&str]) -> Value {
    let text = lines.join("\n").replace(' ', "\t");
    let trace = Trace::parse(&text).expect("a trace");
    let shared = Shared::new(trace.threads.len()).expect("memory");
    let fds = Fds::new();
    fs::create_dir_all(dir.path().join("app/a")).expect("mkdir");
    make_folders(&trace, dir.path(), "a").expect("folders");
    for (path, bytes) in trace.files() {
        let place = Place::of(dir.path(), "a", &path).expect("place");
        let mut content = vec![0; bytes as usize];
        Pattern::of(&place.logical).fill(&mut content, 0);
        fs::write(&place.real, content).expect("write");
    }
    std::thread::scope(|scope| {
        for index in 0..trace.threads.len() {
            let (trace, fds, shared) = (&trace, &fds, &shared);
            scope.spawn(move || {
                let meter = Meter::new(shared, index);
                let mut replayer =
                    Replayer::new(meter, dir.path(), "a", trace, fds).expect("a replayer");
                replayer.run(index).expect("a replay");
            });
        }
    });
    let stats = collect(&shared, 0..trace.threads.len(), shared.now(), true);
    serde_json::to_value(stats.counts).expect("JSON")
}

#[test]
fn calls_map_to_real_descriptors() {
    let dir = Dir::new();
    let open = format!("1 0 open /x/new {} 1000", libc::O_CREAT | libc::O_RDWR);
    let stats = replay(
        &dir,
        &[
            &open,
            "1 1 write 1000 5000",
            "1 2 write 1000 5000",
            "1 3 lseek 1000 0 0",
            "1 4 read 1000 100",
            "1 5 fsync 1000",
            "1 6 close 1000",
            "1 7 open old 0 1001",
            "1 8 pread 1001 4096 4096",
            "1 9 rename x/new x/newer",
            "1 9 stat x/newer",
        ],
    );
    let wanted = json!({"calls": 11, "skipped": 0, "short": 0, "errors": {}});
    assert_eq!(stats["replay"], wanted);
    assert_eq!(stats["bytes_written"], 10_000);
    assert_eq!(stats["bytes_read"], 4196);
    assert_eq!(stats["think_ns"], 9000);
    let content = fs::read(dir.path().join("app/a/x/newer")).expect("the file");
    assert_eq!(Pattern::of("/data/app/a/x/new").mismatches(&content, 0), 0);
}

#[test]
fn errors_are_counted_by_call() {
    let dir = Dir::new();
    let stats = replay(
        &dir,
        &[
            "1 0 unlink none",
            "1 1 unlink none",
            "1 2 stat none",
            "1 3 read 77 10",
            "1 4 mkdir d",
            "1 5 mkdir d",
        ],
    );
    let wanted = json!({"calls": 5, "skipped": 1, "short": 0,
        "errors": {"unlink": 2, "stat": 1, "mkdir": 1}});
    assert_eq!(stats["replay"], wanted);
}

#[test]
fn uses_after_a_failed_open_are_skipped() {
    let dir = Dir::new();
    let open = format!(
        "1 0 open f {} 5",
        libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY
    );
    fs::create_dir_all(dir.path().join("app/a")).expect("mkdir");
    fs::write(dir.path().join("app/a/f"), "there").expect("write");
    let stats = replay(&dir, &[&open, "1 1 write 5 10", "1 2 close 5"]);
    let wanted = json!({"calls": 1, "skipped": 2, "short": 0, "errors": {"open": 1}});
    assert_eq!(stats["replay"], wanted);
}

#[test]
fn threads_wait_for_each_others_descriptors() {
    let dir = Dir::new();
    // Thread 2 uses what thread 1 opens later than thread 2 gets there; thread 1's close must
    // wait for thread 2's last use.
    let stats = replay(
        &dir,
        &[
            "1 20000 open f 0 3",
            "1 30000 close 3",
            "2 20001 read 3 10",
            "2 29999 pread 3 10 90",
        ],
    );
    let wanted = json!({"calls": 4, "skipped": 0, "short": 0, "errors": {}});
    assert_eq!(stats["replay"], wanted);
    assert_eq!(stats["bytes_read"], 20);
}

#[test]
fn a_short_read_is_counted() {
    let dir = Dir::new();
    let open = format!(
        "1 0 open f {} 3",
        libc::O_CREAT | libc::O_RDWR | libc::O_TRUNC
    );
    let stats = replay(&dir, &[&open, "1 1 write 3 10", "1 2 pread 3 100 0"]);
    assert_eq!(stats["replay"]["short"], 1);
    assert_eq!(stats["bytes_read"], 10);
}

#[test]
fn a_missing_block_file_is_told() {
    let dir = Dir::new();
    let trace = Trace::parse("1\t0\tbread\t0\t4096").expect("a trace");
    let error = need_blocks(&trace, dir.path(), "a").expect_err("missing");
    assert!(error.contains("/data/app/a/blocks"), "{error}");
}
