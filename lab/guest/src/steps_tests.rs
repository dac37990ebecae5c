// SPDX-License-Identifier: GPL-2.0-only
//! Tests of steps, on a directory of the host.

use super::*;
use crate::stats::{collect, Shared};
use crate::tempdir::Dir;
use serde_json::{json, Value};

struct Scene {
    dir: Dir,
    shared: Shared,
    origins: Origins,
}

impl Scene {
    fn new() -> Scene {
        let dir = Dir::new();
        fs::create_dir_all(dir.path().join("app/a")).expect("mkdir");
        Scene {
            dir,
            shared: Shared::new(1).expect("memory"),
            origins: Origins::default(),
        }
    }

    fn player(&self) -> Player<'_> {
        let meter = Meter::new(&self.shared, 0);
        let data = self.dir.path();
        Player::new(meter, data, "a", "t", 1, true, &self.origins).expect("a player")
    }

    fn play(&self, steps: Value) -> Done {
        self.player().play(steps)
    }

    fn stats(&self) -> Value {
        let stats = collect(&self.shared, 0..1, self.shared.now(), false);
        serde_json::to_value(stats.counts).expect("JSON")
    }

    fn content(&self, file: &str) -> Vec<u8> {
        fs::read(self.dir.path().join("app/a").join(file)).expect("a file")
    }
}

impl Player<'_> {
    fn play(&mut self, steps: Value) -> Done {
        let steps: Vec<Step> = serde_json::from_value(steps).expect("steps");
        self.run(&steps, None)
    }

    /// With which of these flags the file `f` is open.
    fn flags_of_f(&self, among: i32) -> i32 {
        let file = &self.open["/data/app/a/f"].file;
        // SAFETY: a plain system call on an open file.
        unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file), libc::F_GETFL) & among }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let scene = Scene::new();
    scene
        .play(json!([
            {"op": "write", "file": "f", "bytes": 100_000, "block": 8192, "order": "random", "flags": ["create"]},
            {"op": "fsync", "file": "f"},
            {"op": "read", "file": "f", "bytes": 0, "block": 5000},
            {"op": "mmap", "file": "f", "bytes": 0, "block": 16384, "order": "random"},
            {"op": "close", "file": "f"},
        ]))
        .expect("good steps");
    assert_eq!(
        Pattern::of("/data/app/a/f").mismatches(&scene.content("f"), 0),
        0
    );
    let stats = scene.stats();
    assert_eq!(stats["bytes_written"], 100_000);
    assert_eq!(stats["bytes_read"], 200_000);
    assert_eq!(stats["verify_errors"], 0);
    // open, 13 writes, fsync, 20 reads, 7 maps, close
    assert_eq!(stats["ops"], 43);
}

#[test]
fn wrong_content_is_counted_by_page() {
    let scene = Scene::new();
    fs::write(scene.dir.path().join("app/a/f"), vec![1; 3 * PAGE]).expect("write");
    scene
        .play(json!([{"op": "read", "file": "f"}, {"op": "mmap", "file": "f"}]))
        .expect("reading");
    assert_eq!(scene.stats()["verify_errors"], 6);
}

#[test]
fn append_and_truncate_keep_the_pattern() {
    let scene = Scene::new();
    scene
        .play(json!([
            {"op": "write", "file": "f", "bytes": 5000, "flags": ["create"]},
            {"op": "write", "file": "f", "bytes": 5000, "flags": ["append"]},
            {"op": "read", "file": "f"},
        ]))
        .expect("appending");
    assert_eq!(scene.content("f").len(), 10_000);
    scene
        .play(json!([{"op": "write", "file": "f", "bytes": 10, "flags": ["truncate"]}]))
        .expect("truncating");
    assert_eq!(scene.content("f").len(), 10);
    assert_eq!(scene.stats()["verify_errors"], 0);
}

#[test]
fn a_renamed_file_still_verifies() {
    let scene = Scene::new();
    scene
        .play(json!([
            {"op": "write", "file": "f.tmp", "bytes": 9000, "flags": ["create"]},
            {"op": "rename", "file": "f.tmp", "to": "f"},
            {"op": "write", "file": "f", "bytes": 9000, "flags": ["append"]},
            {"op": "close", "file": "f"},
            {"op": "read", "file": "f"},
            {"op": "unlink", "file": "f"},
            {"op": "write", "file": "f", "bytes": 4096, "flags": ["create"]},
            {"op": "read", "file": "f"},
        ]))
        .expect("renaming");
    assert_eq!(scene.stats()["verify_errors"], 0);
    assert_eq!(
        Pattern::of("/data/app/a/f").mismatches(&scene.content("f"), 0),
        0
    );
}

#[test]
fn a_repeat_counts_modulo_its_cycle() {
    let scene = Scene::new();
    scene
        .play(
            json!([{"op": "mkdir", "file": "d"}, {"op": "mkdir", "file": "d"},
            {"op": "repeat", "times": 5, "cycle": 3, "steps": [
                {"op": "write", "file": "d/f{i}", "bytes": 10, "flags": ["create", "append"]},
                {"op": "repeat", "times": 2, "steps": [
                    {"op": "write", "file": "d/g{i}", "bytes": 1, "flags": ["create"]}]},
            ]}]),
        )
        .expect("repeating");
    assert_eq!(scene.content("d/f0").len(), 20);
    assert_eq!(scene.content("d/f2").len(), 10);
    assert_eq!(scene.content("d/g1").len(), 1);
    assert!(!scene.dir.path().join("app/a/d/f3").exists());
}

#[test]
fn failures_name_the_call_the_file_and_the_errno() {
    let scene = Scene::new();
    for (step, parts) in [
        (
            json!({"op": "read", "file": "none"}),
            ["open /data/app/a/none", "errno 2"],
        ),
        (
            json!({"op": "unlink", "file": "none"}),
            ["unlink /data/app/a/none", "errno 2"],
        ),
        (
            json!({"op": "stat", "file": "x/none"}),
            ["stat /data/app/a/x/none", "errno 2"],
        ),
        (
            json!({"op": "rename", "file": "none", "to": "y"}),
            ["rename /data/app/a/none", "errno 2"],
        ),
        (
            json!({"op": "write", "file": "none", "bytes": 1}),
            ["open /data/app/a/none", "errno 2"],
        ),
    ] {
        let error = scene.play(json!([step])).expect_err("no such file");
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn a_short_read_fails() {
    let scene = Scene::new();
    fs::write(scene.dir.path().join("app/a/f"), vec![1; 100]).expect("write");
    let error = scene
        .play(json!([{"op": "read", "file": "f", "bytes": 200}]))
        .expect_err("short");
    assert!(error.contains("short: 100 of 200 bytes"), "{error}");
    let error = scene
        .play(json!([{"op": "mmap", "file": "f", "bytes": 200}]))
        .expect_err("short");
    assert!(error.contains("the file has 100"), "{error}");
}

#[test]
fn sqlite_steps_count_their_transactions() {
    let scene = Scene::new();
    scene
        .play(json!([
            {"op": "sqlite", "file": "db", "kind": "insert", "transactions": 3, "rows": 4, "row_bytes": 50, "journal": "wal"},
            {"op": "sqlite", "file": "db", "kind": "select", "transactions": 2, "rows": 5},
            {"op": "close", "file": "db"},
        ]))
        .expect("transactions");
    let stats = scene.stats();
    assert_eq!(stats["bytes_written"], 3 * 4 * 50);
    assert_eq!(stats["bytes_read"], 2 * 5 * 50);
    // The second step's journal mode is another one: to change it is a call.
    assert_eq!(stats["ops"], 1 + 3 + 1 + 2 + 1);
}

#[test]
fn random_order_visits_each_block_once_and_is_seeded() {
    let t: Transfer = serde_json::from_value(json!({"file": "f", "block": 10, "order": "random"}))
        .expect("a transfer");
    let draw = |seed| blocks(&t, 5, 95, &mut Rng::new(seed, "a", "t"));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let mut all = draw(1);
    all.sort_unstable();
    let wanted: Vec<(u64, usize)> = (0..10)
        .map(|index| (5 + index * 10, if index == 9 { 5 } else { 10 }))
        .collect();
    assert_eq!(all, wanted);
}

#[test]
fn direct_writes_reach_the_file() {
    let scene = Scene::new();
    let step = json!([{"op": "write", "file": "f", "bytes": 16384, "block": 4096,
        "flags": ["create", "direct", "dsync"]}, {"op": "read", "file": "f"}]);
    match scene.play(step) {
        // tmpfs before Linux 6.6 has no O_DIRECT.
        Err(error) => assert!(error.contains("errno 22"), "{error}"),
        Ok(()) => assert_eq!(scene.stats()["verify_errors"], 0),
    }
}

#[test]
fn a_file_is_opened_again_for_other_flags() {
    let scene = Scene::new();
    let mut player = scene.player();
    let sync = libc::O_SYNC | libc::O_DSYNC;
    for (flags, open) in [
        (json!(["create"]), 0),
        (json!(["dsync"]), libc::O_DSYNC),
        (json!(["sync"]), libc::O_SYNC),
        (json!([]), 0),
    ] {
        let step = json!([{"op": "write", "file": "f", "bytes": 4096, "flags": flags}]);
        player.play(step).expect("a write");
        assert_eq!(player.flags_of_f(sync), open, "{flags}");
    }
    let read = json!([{"op": "read", "file": "f"}]);
    player.play(read.clone()).expect("a read");
    // 4 times open and write, 3 times close; the last file serves the read.
    assert_eq!(scene.stats()["ops"], 4 + 4 + 3 + 1);
    let direct =
        json!([{"op": "write", "file": "f", "bytes": 4096, "block": 4096, "flags": ["direct"]}]);
    // tmpfs before Linux 6.6 has no O_DIRECT.
    if player.play(direct).is_ok() {
        assert_eq!(player.flags_of_f(libc::O_DIRECT), libc::O_DIRECT);
        player.play(read).expect("a read");
        assert_eq!(player.flags_of_f(libc::O_DIRECT), 0);
    }
}

#[test]
fn an_unlinked_file_is_gone() {
    let scene = Scene::new();
    let error = scene
        .play(json!([
            {"op": "write", "file": "f", "bytes": 10, "flags": ["create"]},
            {"op": "unlink", "file": "f"},
            {"op": "write", "file": "f", "bytes": 10},
        ]))
        .expect_err("no such file");
    assert!(error.contains("open /data/app/a/f"), "{error}");
}

#[test]
fn a_file_renamed_twice_still_verifies() {
    let scene = Scene::new();
    scene
        .play(json!([
            {"op": "write", "file": "f", "bytes": 9000, "flags": ["create"]},
            {"op": "rename", "file": "f", "to": "g"},
            {"op": "rename", "file": "g", "to": "h"},
            {"op": "read", "file": "h"},
            {"op": "write", "file": "g", "bytes": 9000, "flags": ["create"]},
            {"op": "read", "file": "g"},
        ]))
        .expect("renaming");
    assert_eq!(scene.stats()["verify_errors"], 0);
    for (file, origin) in [("h", "/data/app/a/f"), ("g", "/data/app/a/g")] {
        let pattern = Pattern::of(origin);
        assert_eq!(pattern.mismatches(&scene.content(file), 0), 0, "{file}");
    }
}
