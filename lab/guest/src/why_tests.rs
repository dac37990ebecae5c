// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the sampler, against a procfs of plain files.

use super::*;
use crate::job::{self, Job};
use crate::stats::Meter;
use crate::tempdir::Dir;

const READS: &str =
    "[<0>] __switch_to+0x3e/0x90\n[<0>] io_schedule+0x1e/0x50\n[<0>] filemap_read.part.0+0x2/0x9\n";
const COMMITS: &str = "[<0>] schedule+0x2/0x9\n[<0>] jbd2_journal_wait_updates+0x2/0x9\n";
const REST: &str = "[<0>] schedule+0x2/0x9\n[<0>] kjournald2+0x2/0x9\n";
const IDLES: &str = "[<0>] schedule+0x2/0x9\n[<0>] worker_thread+0x2/0x9\n[<0>] kthread+0x2/0x9\n";
const WRITES: &str =
    "[<0>] schedule+0x2/0x9\n[<0>] wb_workfn+0x2/0x9\n[<0>] worker_thread+0x2/0x9\n";

fn job() -> Job {
    let thread = json!({"name": "t", "after_touch": true, "steps": [{"op": "think", "s": 1}]});
    let app = |name: &str, uid: u32, role: &str| json!({"name": name, "uid": uid, "role": role, "threads": [thread]});
    let value = json!({
        "version": 1, "mode": "play", "seed": 1, "device": "/dev/sda", "fs": "ext4", "limit_s": 60,
        "why_interval_ns": 1_000_000, "apps": [app("a", 10101, "foreground"), app("b", 10201, "background")],
    });
    Job::parse(&value.to_string()).expect("a job")
}

/// A procfs with the calling thread and some kernel threads.
struct Proc(Dir);

impl Proc {
    fn new() -> Proc {
        let proc = Proc(Dir::new());
        fs::create_dir(proc.path().join("self")).expect("mkdir");
        fs::write(proc.path().join("self/stack"), "").expect("write");
        proc.thread(sys::thread_id(), "t", READS);
        proc.thread(2_000_000_000, "jbd2/sda-8", COMMITS);
        proc.thread(2_000_000_001, "kworker/u2:1-flush-8:0", WRITES);
        proc.thread(2_000_000_002, "kworker/0:0", IDLES);
        proc.thread(2_000_000_003, "init", WRITES);
        proc
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn thread(&self, pid: libc::pid_t, comm: &str, stack: &str) {
        let dir = self.path().join(pid.to_string());
        fs::create_dir_all(&dir).expect("mkdir");
        fs::write(dir.join("comm"), format!("{comm}\n")).expect("write");
        fs::write(dir.join("stack"), stack).expect("write");
    }
}

fn casts<'a>(job: &'a Job, shared: &'a Shared) -> Vec<Cast<'a>> {
    let cast = |(index, app)| Cast {
        job,
        app,
        trace: None,
        shared,
        slot: 2 * index,
        bell: -1,
    };
    job.apps.iter().enumerate().map(cast).collect()
}

#[test]
fn a_stack_is_its_places() {
    let expected = [
        "__switch_to+0x3e",
        "io_schedule+0x1e",
        "filemap_read.part.0+0x2",
    ];
    assert_eq!(places(READS.as_bytes()), expected);
    assert_eq!(function("filemap_read.part.0+0x2"), "filemap_read");
    assert!(places(b"").is_empty());
    let mut stacks = Stacks::default();
    let ids = [READS, "", READS].map(|text| stacks.id(text.as_bytes()));
    assert_eq!(ids, [0, 1, 0]);
    assert_eq!(stacks.list()[1], Vec::<String>::new());
}

#[test]
fn idle_workers_are_known_by_their_innermost_function() {
    assert!(idle(IDLES.as_bytes()) && idle(b""));
    assert!(!idle(WRITES.as_bytes()));
    assert!(idle(
        b"[<0>] schedule_timeout+0x2/0x9\n[<0>] kswapd+0x2/0x9\n"
    ));
}

#[test]
fn waits_are_counted_with_who_was_at_work() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = Sampler::new(proc.path(), &casts(&job, &shared)).expect("a sampler");
    sampler.scan();
    let (front, behind) = (Meter::new(&shared, 1), Meter::new(&shared, 3));
    front.begin();
    behind.begin();
    front.thinking(|| sampler.sample());
    front.thinking(|| behind.thinking(|| sampler.sample()));
    behind.thinking(|| sampler.sample());
    proc.thread(2_000_000_000, "jbd2/sda-8", REST);
    sampler.sample();
    front.finish();
    sampler.sample();
    let why = sampler.json(1_000_000);
    assert_eq!(
        (&why["interval_ns"], &why["samples"], &why["missed"]),
        (&json!(1_000_000), &json!(5), &json!(0))
    );
    assert_eq!(why["threads"].as_array().map(Vec::len), Some(1));
    let thread = &why["threads"][0];
    assert_eq!(
        (&thread["app"], &thread["thread"]),
        (&json!("a"), &json!("t"))
    );
    assert_eq!(thread["thinking"], 2);
    assert!(thread["finished_ns"].as_u64().is_some());
    let waits = thread["waits"].as_array().expect("waits");
    assert_eq!(waits.len(), 2);
    let stack = |of: &Value, key: &str| {
        let index = of[key].as_u64().expect("a number");
        why["stacks"][index as usize].to_string()
    };
    let beside = |wait: &Value, role: &str| {
        let others = wait["beside"].as_array().expect("beside");
        let one = others.iter().find(|one| one["role"] == role)?;
        Some((one["name"].clone(), stack(one, "stack")))
    };
    for (wait, journal) in [
        (&waits[0], "jbd2_journal_wait_updates"),
        (&waits[1], "kjournald2"),
    ] {
        assert_eq!(wait["count"], 1);
        assert!(stack(wait, "stack").contains("filemap_read"));
        assert!(stack(wait, "journal").contains(journal), "{wait}");
        let (name, place) = beside(wait, "kernel").expect("a kernel thread");
        assert!(name == "kworker" && place.contains("wb_workfn"), "{wait}");
        assert_eq!(beside(wait, "journal"), None);
    }
    assert_eq!(beside(&waits[0], "background"), None);
    let (name, _) = beside(&waits[1], "background").expect("the background");
    assert_eq!(name, "b/t");
}

#[test]
fn a_thread_that_runs_has_no_stack() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = Sampler::new(proc.path(), &casts(&job, &shared)).expect("a sampler");
    sampler.sample();
    Meter::new(&shared, 1).begin();
    fs::remove_dir_all(proc.path().join(sys::thread_id().to_string())).expect("rmdir");
    sampler.sample();
    let why = sampler.json(1);
    assert_eq!(why["stacks"], json!([[]]));
    assert_eq!(why["threads"][0]["thinking"], 1, "not begun");
    assert_eq!(why["threads"][0]["waits"][0]["count"], 1);
}

#[test]
fn kernel_threads_come_and_go() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = Sampler::new(proc.path(), &casts(&job, &shared)).expect("a sampler");
    sampler.scan();
    assert_eq!(sampler.workers.len(), 3);
    proc.thread(2_000_000_004, "kswapd0", IDLES);
    sampler.scan();
    sampler.scan();
    assert_eq!(sampler.workers.len(), 4);
}

#[test]
fn the_watch_ends_with_the_foreground() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = Sampler::new(proc.path(), &casts(&job, &shared)).expect("a sampler");
    Meter::new(&shared, 1).finish();
    sampler.watch(&shared, 0, job::SHORTEST_WHY_NS, &AtomicBool::new(false));
    assert_eq!(sampler.samples, 0);
}

#[test]
fn a_kernel_without_stacks_is_told() {
    let (job, shared) = (job(), Shared::new(4).expect("memory"));
    let error = Sampler::new(Path::new("/nonexistent"), &casts(&job, &shared)).err();
    assert!(error.is_some_and(|text| text.contains("CONFIG_STACKTRACE")));
}
