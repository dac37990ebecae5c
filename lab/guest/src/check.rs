// SPDX-License-Identifier: GPL-2.0-only
//! What a job must satisfy beyond its grammar. Every problem names the element, what is wrong with
//! it and what would be right.

use crate::job::{
    App, FileKind, FileSpec, Flag, Job, Mode, Role, Sqlite, Step, Thread, Transfer, SHORTEST_WHY_NS,
};
use crate::place::Place;
use std::collections::BTreeSet;
use std::path::Path;

/// A block is read or written by one call from one buffer: bounds its memory, bytes.
const MAX_BLOCK: u64 = 64 << 20;
/// Alignment that O_DIRECT needs on every emulated phone, bytes.
const DIRECT_ALIGN: u64 = 4096;

struct Checker {
    problems: Vec<String>,
}

/// Reads and checks a job file.
pub fn load(path: &Path) -> Result<Job, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let job = Job::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
    let problems = problems(&job);
    if problems.is_empty() {
        return Ok(job);
    }
    Err(problems
        .iter()
        .map(|problem| format!("{shown}: {problem}"))
        .collect::<Vec<_>>()
        .join("\n"))
}

/// All problems of a job; none means that it can be run.
pub fn problems(job: &Job) -> Vec<String> {
    let mut checker = Checker {
        problems: Vec::new(),
    };
    checker.job(job);
    checker.problems
}

/// Whether a name can be a directory's and a control group's.
fn good_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(plain)
}

fn good_seconds(seconds: f64) -> bool {
    seconds.is_finite() && (0.0..=1e9).contains(&seconds)
}

/// Whether a pass over the steps surely sleeps. What only does I/O may hit the cache.
fn sleeps(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Think(think) => think.s > 0.0,
        Step::Read(t) | Step::Mmap(t) | Step::Write(t) => t.think_s > 0.0,
        Step::Sqlite(sqlite) => sqlite.think_s > 0.0 && sqlite.transactions > 0,
        Step::Repeat(repeat) => sleeps(&repeat.steps),
        _ => false,
    })
}

fn waits_for_touch(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Touch(_) => true,
        Step::Repeat(repeat) => waits_for_touch(&repeat.steps),
        _ => false,
    })
}

fn never_ends(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat(repeat) => repeat.times == 0 || never_ends(&repeat.steps),
        _ => false,
    })
}

impl Checker {
    fn say(&mut self, place: &str, what: &str) {
        self.problems.push(format!("{place}: {what}"));
    }

    fn need(&mut self, good: bool, place: &str, what: &str) {
        if !good {
            self.say(place, what);
        }
    }

    fn seconds(&mut self, value: f64, place: &str) {
        let what = format!("{value} s is not a time; give 0 or more seconds");
        self.need(good_seconds(value), place, &what);
    }

    fn job(&mut self, job: &Job) {
        let version = format!("{} is not known; this guest speaks 1", job.version);
        self.need(job.version == 1, "version", &version);
        self.need(
            job.device.starts_with("/dev/"),
            "device",
            "must be a path below /dev",
        );
        self.seconds(job.touch_s, "touch_s");
        self.seconds(job.limit_s, "limit_s");
        self.need(
            job.limit_s > job.touch_s,
            "limit_s",
            "must be later than touch_s",
        );
        if let Some(format) = &job.format {
            self.need(
                !format.is_empty(),
                "format",
                "is empty; give mkfs's argv or null",
            );
        }
        for (list, name) in [(&job.settings, "settings"), (&job.foreground, "foreground")] {
            for (index, setting) in list.iter().enumerate() {
                let place = format!("{name}[{index}].path");
                self.need(
                    setting.path.starts_with('/'),
                    &place,
                    "must be an absolute path",
                );
            }
        }
        for (index, file) in job.files.iter().enumerate() {
            self.file(job, file, &format!("files[{index}]"));
        }
        let mut names = BTreeSet::new();
        for (index, app) in job.apps.iter().enumerate() {
            let place = format!("apps[{index}] ({})", app.name);
            self.need(names.insert(&app.name), &place, "has the name of another");
            self.app(job, app, &place);
        }
        self.mode(job);
    }

    fn mode(&mut self, job: &Job) {
        let commands = job
            .apps
            .iter()
            .filter(|app| app.role == Role::Foreground && !app.argv.is_empty())
            .count();
        if job.mode == Mode::Exec {
            let what = format!("mode exec needs one foreground app with argv, not {commands}");
            self.need(commands == 1, "apps", &what);
        }
        if job.why_interval_ns > 0 {
            self.why(job);
        }
        if let Some(name) = &job.files_from {
            self.need(
                job.mode == Mode::Exec,
                "files_from",
                "is for mode exec only",
            );
            self.need(
                good_name(name),
                "files_from",
                "must be a name in the run's directory",
            );
        }
    }

    fn why(&mut self, job: &Job) {
        let seen = |app: &App| app.role == Role::Foreground;
        let short = format!(
            "{} ns is too short; give 0, or {SHORTEST_WHY_NS} or more",
            job.why_interval_ns
        );
        self.need(
            job.why_interval_ns >= SHORTEST_WHY_NS,
            "why_interval_ns",
            &short,
        );
        self.need(
            matches!(job.mode, Mode::Play | Mode::Exec) && job.apps.iter().any(seen),
            "why_interval_ns",
            "needs mode play or exec, and a foreground app",
        );
    }

    fn file(&mut self, job: &Job, file: &FileSpec, place: &str) {
        let known = job.app(&file.app).is_some();
        let what = format!("app {:?} is not among apps", file.app);
        self.need(known, place, &what);
        self.path(&file.app, &file.path, &format!("{place}.path"));
        if file.kind == FileKind::Sqlite {
            self.need(
                file.row_bytes > 0,
                place,
                "a sqlite file needs row_bytes above 0",
            );
        }
    }

    fn path(&mut self, app: &str, path: &str, place: &str) {
        if let Err(error) = Place::logical(app, path) {
            self.say(place, &error);
        }
    }

    fn app(&mut self, job: &Job, app: &App, place: &str) {
        self.need(
            good_name(&app.name),
            place,
            "name: letters, digits, `.`, `_`, `-` only",
        );
        self.seconds(app.start_s, &format!("{place}.start_s"));
        let kinds = [
            !app.threads.is_empty(),
            !app.argv.is_empty(),
            app.trace.is_some(),
        ];
        let count = kinds.iter().filter(|&&given| given).count();
        let runs = matches!(job.mode, Mode::Play | Mode::Exec);
        self.need(
            count == 1 || (!runs && count == 0),
            place,
            "needs exactly one of threads, argv and trace",
        );
        if app.ioprio_touch.is_some() {
            let sharing = job.apps.iter().filter(|other| other.uid == app.uid);
            self.need(
                app.uid > 0 && sharing.count() == 1,
                place,
                "ioprio_touch is for all tasks of its UID: give it a UID of its own, above 0",
            );
        }
        if let Some(trace) = &app.trace {
            self.need(
                good_name(trace),
                place,
                "trace: must be a name in the run's directory",
            );
        }
        if let Some(cwd) = &app.cwd {
            self.path(&app.name, cwd, &format!("{place}.cwd"));
        }
        for (index, thread) in app.threads.iter().enumerate() {
            let at = format!("{place}.threads[{index}] ({})", thread.name);
            self.thread(app, thread, &at);
        }
        let waits = |thread: &Thread| thread.after_touch || waits_for_touch(&thread.steps);
        if app.role == Role::Foreground && !app.threads.is_empty() && job.mode == Mode::Play {
            self.need(
                app.threads.iter().any(waits),
                place,
                "is in the foreground, but no thread waits for the touch (after_touch, or a touch step)",
            );
        }
    }

    fn thread(&mut self, app: &App, thread: &Thread, place: &str) {
        self.need(!thread.steps.is_empty(), place, "has no steps");
        self.steps(app, &thread.steps, place, false);
        if app.role == Role::Foreground {
            self.need(
                !thread.repeat && !never_ends(&thread.steps),
                place,
                "repeats for ever; a foreground thread must end",
            );
        }
        if thread.repeat && !thread.steps.is_empty() {
            self.need(
                sleeps(&thread.steps) || never_ends(&thread.steps),
                place,
                "repeats for ever without a think time: virtual time would stop; add a think step",
            );
        }
    }

    fn steps(&mut self, app: &App, steps: &[Step], place: &str, counted: bool) {
        for (index, step) in steps.iter().enumerate() {
            self.step(app, step, &format!("{place}.steps[{index}]"), counted);
        }
    }

    fn step(&mut self, app: &App, step: &Step, place: &str, counted: bool) {
        match step {
            Step::Read(t) | Step::Mmap(t) => {
                self.need(t.flags.is_empty(), place, "flags are for write only");
                self.transfer(app, t, place, counted);
            }
            Step::Write(t) => {
                self.transfer(app, t, place, counted);
                self.direct(t, place);
            }
            Step::Fsync(f)
            | Step::Fdatasync(f)
            | Step::Close(f)
            | Step::Unlink(f)
            | Step::Mkdir(f)
            | Step::Stat(f) => self.name(app, &f.file, place, counted),
            Step::Rename(rename) => {
                self.name(app, &rename.file, place, counted);
                self.name(app, &rename.to, place, counted);
            }
            Step::Sqlite(sqlite) => self.sqlite(app, sqlite, place, counted),
            Step::Think(think) => self.seconds(think.s, place),
            Step::Memory(memory) => self.need(memory.bytes > 0, place, "bytes must be above 0"),
            Step::Repeat(repeat) => {
                self.need(!repeat.steps.is_empty(), place, "has no steps");
                self.need(
                    repeat.times > 0 || sleeps(&repeat.steps) || repeat.steps.is_empty(),
                    place,
                    "repeats for ever without a think time: virtual time would stop; add a think step",
                );
                self.steps(app, &repeat.steps, place, true);
            }
            Step::Touch(_) => {}
        }
    }

    fn name(&mut self, app: &App, file: &str, place: &str, counted: bool) {
        self.path(&app.name, file, place);
        self.need(
            counted || !file.contains("{i}"),
            place,
            "`{i}` has no meaning outside a repeat step",
        );
    }

    fn transfer(&mut self, app: &App, t: &Transfer, place: &str, counted: bool) {
        self.name(app, &t.file, place, counted);
        self.seconds(t.think_s, place);
        let what = format!("block: {} bytes is above {MAX_BLOCK}", t.block);
        self.need(t.block <= MAX_BLOCK, place, &what);
        let end = t.offset.checked_add(t.bytes);
        self.need(
            end.is_some_and(|end| end <= i64::MAX as u64),
            place,
            "offset + bytes is too large",
        );
    }

    fn direct(&mut self, t: &Transfer, place: &str) {
        let aligned = [t.offset, t.bytes, t.block_bytes()]
            .iter()
            .all(|value| value % DIRECT_ALIGN == 0);
        let what = format!("direct: offset, bytes and block must be multiples of {DIRECT_ALIGN}");
        self.need(!t.has(Flag::Direct) || aligned, place, &what);
        self.need(
            !t.has(Flag::Append) || t.offset == 0,
            place,
            "append goes to the file's end; leave offset out",
        );
    }

    fn sqlite(&mut self, app: &App, sqlite: &Sqlite, place: &str, counted: bool) {
        self.name(app, &sqlite.file, place, counted);
        self.seconds(sqlite.think_s, place);
        self.need(sqlite.rows > 0, place, "rows must be above 0");
        self.need(
            sqlite.row_bytes > 0 || sqlite.kind == crate::job::SqlKind::Select,
            place,
            "row_bytes must be above 0",
        );
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
