// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the sampler, against a procfs of plain files.

use super::*;
use crate::job::Job;
use crate::stats::Meter;
use crate::tempdir::Dir;
use serde_json::{json, Value};

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

    /// The threads of an app's control group, which lies in the same directory.
    fn group(&self, app: &str, threads: &[libc::pid_t]) {
        let dir = self.path().join(format!("app-{app}"));
        fs::create_dir_all(&dir).expect("mkdir");
        let text: String = threads.iter().map(|tid| format!("{tid}\n")).collect();
        fs::write(dir.join("cgroup.threads"), text).expect("write");
    }
}

fn sampler<'a>(proc: &Proc, job: &'a Job, shared: &'a Shared) -> Sampler<'a> {
    let casts = casts(job, shared);
    Sampler::new(proc.path(), proc.path(), &casts, job.why_interval_ns).expect("a sampler")
}

fn report(sampler: &Sampler) -> Value {
    serde_json::to_value(sampler.report()).expect("JSON")
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
fn waits_are_counted_with_who_was_at_work() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = sampler(&proc, &job, &shared);
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
    let why = report(&sampler);
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
    let mut sampler = sampler(&proc, &job, &shared);
    sampler.sample();
    Meter::new(&shared, 1).begin();
    fs::remove_dir_all(proc.path().join(sys::thread_id().to_string())).expect("rmdir");
    sampler.sample();
    let why = report(&sampler);
    assert_eq!(why["stacks"], json!([[]]));
    assert_eq!(why["threads"][0]["thinking"], 1, "not begun");
    assert_eq!(why["threads"][0]["waits"][0]["count"], 1);
}

#[test]
fn kernel_threads_come_and_go() {
    let (job, shared, proc) = (job(), Shared::new(4).expect("memory"), Proc::new());
    let mut sampler = sampler(&proc, &job, &shared);
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
    let mut sampler = sampler(&proc, &job, &shared);
    Meter::new(&shared, 1).finish();
    sampler.watch(&shared, 0, &AtomicBool::new(false));
    assert_eq!(sampler.samples, 0);
}

#[test]
fn a_kernel_without_stacks_is_told() {
    let (job, shared) = (job(), Shared::new(4).expect("memory"));
    let gone = Path::new("/nonexistent");
    let error = Sampler::new(gone, gone, &casts(&job, &shared), 1).err();
    assert!(error.is_some_and(|text| text.contains("CONFIG_STACKTRACE")));
}

fn commands() -> Job {
    let app = |name: &str, uid: u32, role: &str| json!({"name": name, "uid": uid, "role": role, "argv": ["x"]});
    let value = json!({
        "version": 1, "mode": "exec", "seed": 1, "device": "/dev/sda", "fs": "ext4", "limit_s": 60,
        "why_interval_ns": 1_000_001, "apps": [app("a", 10101, "foreground"), app("b", 10201, "background")],
    });
    Job::parse(&value.to_string()).expect("a job")
}

const WAITS: &str = "[<0>] schedule+0x2/0x9\n[<0>] do_wait+0x2/0x9\n[<0>] kernel_wait4+0x2/0x9\n";

#[test]
fn a_commands_ticks_are_shared_by_its_busy_threads() {
    let (job, shared, proc) = (commands(), Shared::new(4).expect("memory"), Proc::new());
    let [sh, cat, dd, tar] = [2_000_000_010, 2_000_000_011, 2_000_000_012, 2_000_000_013];
    proc.thread(sh, "sh", WAITS);
    proc.thread(cat, "cat", READS);
    proc.thread(dd, "dd", WRITES);
    proc.thread(tar, "tar", READS);
    proc.group("a", &[sh]);
    proc.group("b", &[tar]);
    let mut sampler = sampler(&proc, &job, &shared);
    assert!(!sampler.ended());
    sampler.sample();
    proc.group("a", &[sh, cat, dd]);
    sampler.sample();
    proc.thread(cat, "dd", READS);
    sampler.sample();
    proc.group("a", &[sh, dd]);
    sampler.sample();
    let why = report(&sampler);
    assert_eq!(why["commands"], json!([{"app": "a", "idle": 1}]));
    let thread = |name: &str| {
        let all = why["threads"].as_array().expect("threads");
        all.iter().find(|one| one["thread"] == name).expect(name)
    };
    let sum = |of: &Value, key: &str| -> u64 {
        let waits = of["waits"].as_array().expect("waits");
        waits.iter().filter_map(|wait| wait[key].as_u64()).sum()
    };
    let counts = ["sh", "cat", "dd"].map(|name| sum(thread(name), "count"));
    assert_eq!((counts, &thread("sh")["thinking"]), ([0, 1, 4], &json!(4)));
    // Of 4 ticks one was idle.
    assert_eq!(sum(thread("cat"), "share_ns"), 500_001);
    assert_eq!(
        sum(thread("cat"), "share_ns") + sum(thread("dd"), "share_ns"),
        3 * 1_000_001
    );
    let beside = &thread("cat")["waits"][0]["beside"];
    assert_eq!(
        (&beside[0]["role"], &beside[0]["name"]),
        (&json!("background"), &json!("b/tar"))
    );
    assert_eq!(thread("dd")["finished_ns"], Value::Null);
}

#[test]
fn a_command_without_a_control_group_is_told() {
    let (job, shared, proc) = (commands(), Shared::new(4).expect("memory"), Proc::new());
    let casts = casts(&job, &shared);
    let error = Sampler::new(proc.path(), proc.path(), &casts, 1).err();
    assert!(error.is_some_and(|text| text.contains("app-a/cgroup.threads")));
}
