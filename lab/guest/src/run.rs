// SPDX-License-Identifier: GPL-2.0-only
//! PID 1 while the apps run: starts them, touches, waits for the foreground, ends the rest.

use crate::cast::Cast;
use crate::collector::Collector;
use crate::console::say;
use crate::exec;
use crate::job::{ns, Job, Mode, Role, Setting};
use crate::outcome::{KernelState, Outcome};
use crate::player;
use crate::prepare;
use crate::report::{AppReport, Exec};
use crate::stats::{self, Shared};
use crate::sys::{self, ChildSignal};
use crate::trace::Trace;
use crate::watchdog;
use crate::why::Sampler;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How long a killed app may take to die, ns of virtual time.
const DEATH_NS: u64 = 60_000_000_000;
/// How long a background command may take to end after SIGTERM, ns of virtual time.
const TERM_NS: u64 = 5_000_000_000;

/// A started app.
struct Child {
    pid: libc::pid_t,
    status: Option<i32>,
    ended_ns: u64,
    ended_by_us: bool,
    io: [u64; 2],
}

struct Director<'a> {
    job: &'a Job,
    shared: &'a Shared,
    casts: Vec<Cast<'a>>,
    children: Vec<Child>,
    signal: &'a ChildSignal,
    bell: OwnedFd,
    timer: OwnedFd,
    outcome: Outcome,
}

/// Writes settings in their order; the first failure is told.
fn write_settings(settings: &[Setting]) -> Result<(), String> {
    settings.iter().try_for_each(|setting| {
        fs::OpenOptions::new()
            .write(true)
            .open(&setting.path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, setting.value.as_bytes()))
            .map_err(|error| {
                let number = error.raw_os_error().unwrap_or(0);
                let lacking = exec::controllers(Path::new(exec::CGROUPS), Path::new(&setting.path));
                format!(
                    "setting {} to {:?}: {error}, errno {number}{lacking}",
                    setting.path, setting.value
                )
            })
    })
}

/// Makes the run's directories and groups, and writes the policy's settings.
pub fn set_up(job: &Job) -> Result<(), String> {
    prepare::mount_phone(job)?;
    for app in &job.apps {
        exec::make_group(&app.name).map_err(|error| format!("cgroup of {}: {error}", app.name))?;
    }
    if let Some(name) = &job.files_from {
        let front = job.apps.iter().find(|app| app.role == Role::Foreground);
        if let Some(app) = front {
            let from = Path::new(exec::RUN).join(name);
            let to = crate::place::app_dir(Path::new(crate::place::DATA), &app.name);
            exec::copy_tree(&from, &to, app.uid)?;
        }
    }
    write_settings(&job.settings)
}

/// Plays the apps of a job (modes play and exec).
pub fn play(job: &Job, signal: &ChildSignal) -> Outcome {
    let outcome = || -> Result<Outcome, String> {
        set_up(job)?;
        let traces = load_traces(job)?;
        let slots = job.apps.iter().zip(&traces).map(|(app, trace)| {
            1 + trace
                .as_ref()
                .map_or(app.threads.len(), |t| t.threads.len())
        });
        let shared = Shared::new(slots.sum()).map_err(|error| format!("shared memory: {error}"))?;
        let collector = job.collector.as_deref().map(Collector::start).transpose()?;
        let outcome = || -> Result<Outcome, String> {
            let mut director = Director::new(job, &shared, &traces, signal)?;
            director.start()?;
            director.watched()?;
            Ok(director.outcome)
        };
        let mut outcome = outcome().unwrap_or_else(Outcome::failed);
        let ended = collector.map_or(Ok(()), Collector::end);
        outcome.errors.extend(ended.err());
        Ok(outcome)
    };
    outcome().unwrap_or_else(Outcome::failed)
}

fn load_traces(job: &Job) -> Result<Vec<Option<Trace>>, String> {
    let load = |name: &String| Trace::load(&Path::new(exec::RUN).join(name));
    job.apps
        .iter()
        .map(|app| app.trace.as_ref().map(load).transpose())
        .collect()
}

fn drop_caches() -> Result<(), String> {
    prepare::sync()?;
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| format!("dropping caches: {error}"))
}

impl<'a> Director<'a> {
    fn new(
        job: &'a Job,
        shared: &'a Shared,
        traces: &'a [Option<Trace>],
        signal: &'a ChildSignal,
    ) -> Result<Director<'a>, String> {
        let say = |error| format!("event descriptors: {error}");
        let bell = sys::eventfd().map_err(say)?;
        sys::set_timer_slack(sys::EXACT_NS).map_err(say)?;
        let mut casts: Vec<Cast> = Vec::new();
        for (app, trace) in job.apps.iter().zip(traces) {
            casts.push(Cast {
                job,
                app,
                trace: trace.as_ref(),
                shared,
                slot: casts.last().map_or(0, |cast| cast.slots().end),
                bell: bell.as_raw_fd(),
            });
        }
        Ok(Director {
            job,
            shared,
            casts,
            children: Vec::new(),
            signal,
            bell,
            timer: sys::timerfd().map_err(say)?,
            outcome: Outcome::default(),
        })
    }

    /// Forks the apps, waits until each is its user, and lets them go with cold caches.
    fn start(&mut self) -> Result<(), String> {
        for cast in &self.casts {
            let fork =
                sys::fork().map_err(|error| format!("fork of {}: {error}", cast.app.name))?;
            let Some(pid) = fork else {
                player::live(*cast);
            };
            self.children.push(Child {
                pid,
                status: None,
                ended_ns: 0,
                ended_by_us: false,
                io: [0; 2],
            });
        }
        let ready = &self.shared.header().ready;
        loop {
            let count = ready.load(Relaxed);
            if count as usize >= self.casts.len() {
                break;
            }
            sys::futex_wait(ready, count);
        }
        drop_caches()?;
        self.shared.go();
        let limit = self.shared.start() + ns(self.job.limit_s);
        watchdog::set_deadline(limit + watchdog::MARGIN_NS);
        Ok(())
    }

    /// The run, with a sampler beside it where the job asks for one.
    fn watched(&mut self) -> Result<(), String> {
        let (job, shared, interval) = (self.job, self.shared, self.job.why_interval_ns);
        if interval == 0 {
            self.run(|| ());
            return Ok(());
        }
        sys::raise_file_limit(player::OPEN_FILES)
            .map_err(|error| format!("why: file limit: {error}"))?;
        let (proc, groups) = (Path::new("/proc"), Path::new(exec::CGROUPS));
        let mut sampler = Sampler::new(proc, groups, &self.casts, interval)?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = || sampler.watch(shared, ns(job.touch_s), &stop);
            let thread = std::thread::Builder::new().name("sampler".to_string());
            thread
                .spawn_scoped(scope, watch)
                .map_err(|error| format!("why: cannot start a thread: {error}"))?;
            self.run(|| stop.store(true, Relaxed));
            Ok::<(), String>(())
        })?;
        self.outcome.why = Some(sampler.report());
        Ok(())
    }

    /// From the start of the apps to the end of them all. `over` is called when the response is.
    fn run(&mut self, over: impl FnOnce()) {
        if let Err(error) = self.direct() {
            self.outcome.errors.push(error);
        }
        over();
        self.end();
    }

    /// From the start of the apps to the end of the foreground's.
    fn direct(&mut self) -> Result<(), String> {
        let (touch_at, limit_at) = (ns(self.job.touch_s), ns(self.job.limit_s));
        loop {
            let now = self.shared.now();
            self.reap(now);
            if self.shared.touch_ns().is_none() && now >= touch_at {
                self.touch(now)?;
                continue;
            }
            if let Some(end) = self.ended().filter(|&end| end < limit_at) {
                self.outcome.end_ns = Some(end);
                return Ok(());
            }
            if now >= limit_at {
                self.dump();
                let who = match self.in_front().next() {
                    Some(_) => "the foreground has",
                    None => "the apps have",
                };
                return Err(format!(
                    "{who} not ended after {} s of virtual time (limit_s): {}",
                    self.job.limit_s,
                    self.where_they_are(limit_at, now)
                ));
            }
            let next = match self.shared.touch_ns() {
                None => touch_at.min(limit_at),
                Some(_) => limit_at,
            };
            self.wait(next);
        }
    }

    /// Sleeps until something happens or the run's clock shows `until`.
    fn wait(&self, until: u64) {
        sys::timerfd_set(self.timer.as_raw_fd(), self.shared.start() + until);
        let fds = [
            self.signal.as_raw_fd(),
            self.bell.as_raw_fd(),
            self.timer.as_raw_fd(),
        ];
        sys::wait_readable(&fds);
        fds.iter().for_each(|&fd| sys::drain(fd));
    }

    fn touch(&mut self, now: u64) -> Result<(), String> {
        self.outcome.touch_ns = Some(now);
        self.shared.set_touch(now);
        let written = write_settings(&self.job.foreground).and_then(|()| self.give_ioprios());
        self.shared.release_touch();
        written
    }

    /// Gives apps the I/O priorities that they have from the touch on.
    fn give_ioprios(&self) -> Result<(), String> {
        let alive = self.casts.iter().zip(&self.children);
        for (cast, _) in alive.filter(|(_, child)| child.status.is_none()) {
            let app = cast.app;
            let given = app.ioprio_touch.map(|ioprio| ioprio.give_to_user(app.uid));
            given
                .transpose()
                .map_err(|error| format!("I/O priority of {}: {error}", app.name))?;
        }
        Ok(())
    }

    fn in_front(&self) -> impl Iterator<Item = (&Cast<'a>, &Child)> {
        let pairs = self.casts.iter().zip(&self.children);
        pairs.filter(|(cast, _)| cast.app.role == Role::Foreground)
    }

    /// Whose end is the run's: the foreground apps, or all where none is in front.
    fn awaited(&self) -> impl Iterator<Item = (&Cast<'a>, &Child)> {
        let all = self.in_front().next().is_none();
        let pairs = self.casts.iter().zip(&self.children);
        pairs.filter(move |(cast, _)| all || cast.app.role == Role::Foreground)
    }

    /// When the run ended, if it has.
    fn ended(&self) -> Option<u64> {
        let mut last = self.shared.touch_ns()?;
        for (cast, child) in self.awaited() {
            last = last.max(self.finished(cast, child)?);
        }
        Some(last)
    }

    fn finished(&self, cast: &Cast, child: &Child) -> Option<u64> {
        stats::finished_ns(self.shared, cast.slots()).or(child.status.map(|_| child.ended_ns))
    }

    /// Where those are that had not ended at the limit.
    fn where_they_are(&self, limit_at: u64, now: u64) -> String {
        let place = |cast: &Cast, child: &Child| {
            let name = &cast.app.name;
            match self.finished(cast, child) {
                Some(end) if end < limit_at => None,
                Some(_) => Some(format!("{name} ended too late")),
                None => {
                    let stats = stats::collect(self.shared, cast.slots(), now, false);
                    let call = stats.in_call.unwrap_or_else(|| "no call".to_string());
                    Some(format!("{name} is in {call}"))
                }
            }
        };
        let places = self
            .awaited()
            .filter_map(|(cast, child)| place(cast, child));
        places.collect::<Vec<String>>().join(", ")
    }

    /// Notes who has ended.
    fn reap(&mut self, now: u64) {
        while let Some(pid) = sys::peek_ended() {
            let io = process_io(pid);
            let Some((pid, status)) = sys::reap() else {
                return;
            };
            if let Some(child) = self.children.iter_mut().find(|child| child.pid == pid) {
                child.status = Some(status);
                child.ended_ns = now.max(1);
                child.io = io;
            }
        }
    }

    /// Takes the result, then ends all apps.
    fn end(&mut self) {
        let now = self.outcome.end_ns.unwrap_or_else(|| self.shared.now());
        self.outcome.kernel = KernelState::read();
        for child in &mut self.children {
            child.ended_by_us = child.status.is_none();
        }
        let seen: Vec<stats::AppStats> = self
            .casts
            .iter()
            .map(|cast| stats::collect(self.shared, cast.slots(), now, cast.trace.is_some()))
            .collect();
        self.end_apps();
        for (index, stats) in seen.into_iter().enumerate() {
            let value = self.app_result(index, stats);
            self.outcome.apps.push(value);
        }
        if self.job.mode == Mode::Exec {
            self.outcome.exec = self.exec_result();
        }
    }

    fn end_apps(&mut self) {
        let gone = |director: &Director, commands: bool| {
            let mut pairs = director.casts.iter().zip(&director.children);
            pairs.all(|(cast, child)| {
                child.status.is_some() || (commands && cast.app.argv.is_empty())
            })
        };
        for (cast, child) in self.casts.iter().zip(&self.children) {
            if child.status.is_none() && !cast.app.argv.is_empty() {
                sys::kill_group(child.pid, libc::SIGTERM);
            }
        }
        self.wait_until(TERM_NS, |director| gone(director, true));
        for (cast, child) in self.casts.iter().zip(&self.children) {
            // A finished foreground app is on its way out by itself.
            if stats::finished_ns(self.shared, cast.slots()).is_none() {
                sys::kill_group(child.pid, libc::SIGKILL);
            }
        }
        if !self.wait_until(DEATH_NS, |director| gone(director, false)) {
            self.dump();
            let stuck: Vec<&str> = self
                .casts
                .iter()
                .zip(&self.children)
                .filter(|(_, child)| child.status.is_none())
                .map(|(cast, _)| cast.app.name.as_str())
                .collect();
            let stuck = stuck.join(", ");
            self.outcome
                .errors
                .push(format!("killed, but does not die: {stuck}"));
        }
    }

    fn wait_until(&mut self, limit_ns: u64, done: impl Fn(&Director) -> bool) -> bool {
        let deadline = self.shared.now() + limit_ns;
        loop {
            let now = self.shared.now();
            self.reap(now);
            if done(self) {
                return true;
            }
            if now >= deadline {
                return false;
            }
            self.wait(deadline);
        }
    }

    fn app_result(&mut self, index: usize, stats: stats::AppStats) -> AppReport {
        let (cast, child) = (&self.casts[index], &self.children[index]);
        let app = cast.app;
        let finished = self.finished(cast, child).filter(|_| {
            !child.ended_by_us || stats::finished_ns(self.shared, cast.slots()).is_some()
        });
        let code = finished.and(child.status).map(exit_code);
        let mut error = stats.error;
        if error.is_none() && app.argv.is_empty() && !child.ended_by_us {
            error = child
                .status
                .and_then(|status| death(status, &stats.in_call));
        }
        let mut counts = stats.counts;
        if !app.argv.is_empty() {
            [counts.bytes_read, counts.bytes_written] = child.io;
        }
        if counts.verify_errors > 0 {
            let pages = counts.verify_errors;
            let what = format!("{}: {pages} pages or rows read back wrong", app.name);
            self.outcome.errors.push(what);
        }
        // A background that broke off measures nothing either; only a command may fail as it likes.
        if let Some(error) = &error {
            self.outcome.errors.push(format!("{}: {error}", app.name));
        }
        AppReport {
            name: app.name.clone(),
            uid: app.uid,
            role: app.role,
            exit_code: code,
            counts,
            finished_ns: finished,
            error,
        }
    }

    fn exec_result(&self) -> Option<Exec> {
        let (_, child) = self
            .in_front()
            .find(|(cast, _)| !cast.app.argv.is_empty())?;
        let status = child.status.filter(|_| !child.ended_by_us)?;
        let touch = self.outcome.touch_ns?;
        Some(Exec {
            exit_code: exit_code(status),
            response_ns: child.ended_ns.saturating_sub(touch),
        })
    }

    fn dump(&self) {
        let alive = self.casts.iter().zip(&self.children);
        for (cast, child) in alive.filter(|(_, child)| child.status.is_none()) {
            say(&format!("{} is process {}", cast.app.name, child.pid));
        }
        watchdog::dump_all();
    }
}

/// Bytes that a process and its reaped children read from and wrote to storage, where the kernel
/// counts them.
fn process_io(pid: libc::pid_t) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    ["read_bytes: ", "write_bytes: "].map(|name| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.parse().ok())
            .unwrap_or(0)
    })
}

/// A wait status as a shell shows it.
fn exit_code(status: i32) -> i32 {
    if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

/// Why a player is gone that gave no reason.
fn death(status: i32, call: &Option<String>) -> Option<String> {
    let place = call.as_deref().unwrap_or("no call");
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        return Some(format!("killed by signal {signal} in {place}"));
    }
    let code = libc::WEXITSTATUS(status);
    (code != 0).then(|| format!("ended with status {code} in {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_read_as_in_a_shell() {
        assert_eq!(exit_code(3 << 8), 3);
        assert_eq!(exit_code(libc::SIGKILL), 137);
    }

    #[test]
    fn a_silent_death_is_told() {
        assert_eq!(death(0, &None), None);
        let bus = death(libc::SIGBUS, &Some("mmap lib.so".into()));
        assert_eq!(bus.as_deref(), Some("killed by signal 7 in mmap lib.so"));
    }

    #[test]
    fn a_failed_setting_says_all() {
        let setting = Setting {
            path: "/nonexistent/knob".into(),
            value: "1".into(),
        };
        let error = write_settings(&[setting]).expect_err("no such file");
        for part in ["/nonexistent/knob", "\"1\"", "errno 2"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
