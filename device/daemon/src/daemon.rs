// SPDX-License-Identifier: GPL-2.0-only
//! The owner of the state: takes inputs one by one, with the time, and has the effects follow.

use crate::candidates;
use crate::cgroup::{self, Cgroup, Refusal};
use crate::coexist::{self, Found};
use crate::counters::Counters;
use crate::effects::Effects;
use crate::freezable::{Freezable, Look};
use crate::freezer::{Act, Freezer};
use crate::guard::Answer;
use crate::guard_link::Guard;
use crate::heartbeat::Heartbeat;
use crate::input::{Input, Mode};
use crate::latency::Latencies;
use crate::notify::Notify;
use crate::peers::Unknown;
use crate::settling::Settling;
use crate::system::System;
use crate::units::Told;
use crate::waits::{self, Waits};
use fasttrack_bus::{Usage, WireTrouble, SOURCES_MOST};
use fasttrack_config::{Config, Problem, Reader};
use fasttrack_detector::group::{app_of, is_wide};
use fasttrack_detector::report::{AppRef, Report};
use fasttrack_detector::{Decision, Detector, Event, SessionKey};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two readings of the configuration: each probes the system by writes.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// An agent, as far as it has reported.
#[derive(Debug, Clone, Default)]
pub struct AgentSeen {
    /// Its process.
    pub pid: u32,
    /// Reports taken from it.
    pub reports: u64,
    /// Whether its session is the active one of its seat.
    pub active: bool,
    /// Whether its process was stopped when it was last looked at.
    pub stopped: bool,
    /// Its sources that are in use, first that of the focus.
    pub sources: Vec<String>,
    /// Its sources that have had trouble, by name.
    pub troubles: BTreeMap<String, WireTrouble>,
}

/// How often, and for how long, a group was frozen.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrozenFor {
    /// Times.
    pub times: u64,
    /// In all.
    pub total: Duration,
}

/// The daemon, without bus and clock.
pub struct Daemon {
    pub(crate) system: System,
    /// Remembers what files had before they were spoilt.
    reader: Reader,
    pub(crate) config: Config,
    pub(crate) problems: Vec<Problem>,
    pub(crate) found: Vec<Found>,
    pub(crate) detector: Detector,
    pub(crate) decision: Decision,
    pub(crate) effects: Effects,
    pub(crate) counters: Counters,
    pub(crate) agents: BTreeMap<SessionKey, AgentSeen>,
    pub(crate) frozen_for: BTreeMap<String, FrozenFor>,
    /// What apps had read and written, and when.
    pub(crate) usage: Option<(Duration, Vec<Usage>)>,
    /// Counts the changes of who has which class, and of whether groups may be frozen.
    pub changes: u64,
    /// Whether groups may be frozen, as of the last change.
    froze: bool,
    /// The guard, where groups may be frozen.
    pub guard: Option<Guard>,
    pub(crate) latencies: Latencies,
    heart: Heartbeat,
    notify: Notify,
    freezer: Freezer,
    frozen_since: Option<Duration>,
    waits: Waits,
    settling: Settling,
    pub(crate) freezable: Freezable,
    /// When the configuration was read again last, and when it will be.
    reloaded: Option<Duration>,
    reload_at: Option<Duration>,
}

impl Daemon {
    /// A daemon for this system. Nobody is in front.
    pub fn new(
        system: &System,
        now: Duration,
        notify: Notify,
        watchdog_us: Option<u64>,
        mut counters: Counters,
    ) -> Daemon {
        let mut reader = Reader::default();
        let (config, problems) = reader.load(&system.path(""));
        for problem in &problems {
            counters.error(&format!("configuration {problem}"), || {
                format!("configuration: {problem}")
            });
        }
        let effects = Effects::new(system, &config.effects, &mut counters);
        Daemon {
            system: system.clone(),
            reader,
            config,
            problems,
            found: Vec::new(),
            detector: Detector::new(),
            decision: Decision::default(),
            effects,
            counters,
            agents: BTreeMap::new(),
            frozen_for: BTreeMap::new(),
            usage: None,
            changes: 0,
            froze: false,
            guard: None,
            latencies: Latencies::default(),
            heart: Heartbeat::new(now, watchdog_us),
            notify,
            freezer: Freezer::default(),
            frozen_since: None,
            waits: Waits::new(system),
            settling: Settling::new(system),
            freezable: Freezable::default(),
            reloaded: None,
            reload_at: None,
        }
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Groups of apps in front, if they are to be watched for waits.
    pub fn watched(&self) -> Vec<String> {
        if !self.freezes() {
            return Vec::new();
        }
        let front = self.decision.foreground.iter();
        front.map(|verdict| verdict.app.cgroup.clone()).collect()
    }

    /// What systemd is to be told of units' values since this was last asked.
    pub fn units(&mut self) -> Vec<Told> {
        self.effects.told()
    }

    /// A look for groups that may be frozen, which is to be made beside this and handed back as an input.
    pub fn look(&mut self, now: Duration) -> Option<Look> {
        let never = &self.config.effects.never_freeze;
        let freezable = &mut self.freezable;
        let look = freezable.look(now, &self.system, &self.decision, never)?;
        self.counters.count("looks for groups that may be frozen");
        Some(look)
    }

    /// Tells systemd something.
    pub fn tell(&self, what: &str) {
        self.notify.tell(what);
    }

    /// When it must be called though nothing happens.
    pub fn deadline(&self) -> Option<Duration> {
        let guard = self.guard.as_ref().and_then(Guard::due);
        let heart = self.heart.deadline(!self.decision.foreground.is_empty());
        [
            self.detector.deadline(),
            self.freezer.deadline(),
            self.settling.deadline(),
            heart,
            guard,
            self.reload_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Duration, input: Input) {
        match input {
            Input::Report {
                session,
                agent,
                received,
                report,
                reply,
            } => {
                let result = self.report(now, session, agent, report);
                let late = crate::system::now().saturating_sub(received);
                self.latencies.add(late);
                // Who has asked may have gone.
                let _ = reply.send(result);
            }
            Input::Source(session, agent, trouble) => self.trouble(session, agent, trouble),
            Input::Sources(session, agent, names) => {
                let seen = self.agents.entry(session).or_default();
                (seen.pid, seen.active, seen.sources) = (agent, true, names);
            }
            Input::Refused(name, meaning) => self.counters.error(name, || meaning),
            Input::Unread(number) => self.counters.errors_of("messages dropped unread", number, || {
                "messages were dropped unread: they want no answer, or came faster than one waits for it".to_string()
            }),
            Input::Trouble(name, meaning) => self.counters.error(name, || meaning),
            Input::Active(session, active) => self.active(now, session, active),
            Input::SessionGone(session) => {
                self.agents.remove(&session);
                self.event(now, Event::SessionGone(session));
            }
            Input::ByHand(mode, whom, reply) => drop(reply.send(self.by_hand(now, mode, &whom))),
            Input::Status(reply) => drop(reply.send(self.status(now))),
            Input::Explain(what, reply) => drop(reply.send(self.explain(now, &what))),
            Input::Usage(reply) => drop(reply.send(self.recent_usage(now))),
            Input::Pressure => self.arm(now),
            Input::Freezable(found) => {
                let known = self.freezable.take(found);
                known.unwrap_or_else(|unknown| self.unknown(unknown));
            }
            Input::Saver(on) => {
                self.effects.set_saver(on, &mut self.counters);
                self.want(now);
            }
            Input::Coexist(found) => self.coexist(now, found),
            Input::BusGone => self.bus_gone(now),
        }
    }

    /// Whoever has spoken has to do it again: who has gone meanwhile would never be missed.
    fn bus_gone(&mut self, now: Duration) {
        self.counters.error("bus closed", || {
            "the bus has closed; it is connected to again".to_string()
        });
        for session in std::mem::take(&mut self.agents).into_keys() {
            self.event(now, Event::SessionGone(session));
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Duration) {
        if self.heart.beat(now, !self.decision.foreground.is_empty()) {
            self.notify.tell("WATCHDOG=1");
            self.look_at_agents(now);
            self.sweep(now, true);
            let system = &self.system;
            self.frozen_for
                .retain(|path, _| !Cgroup::open_path(system, path).is_err_and(|why| why.is_gone()));
            self.effects.renew(&self.decision, &mut self.counters);
            self.effects
                .look_at_signs(&self.decision, &mut self.counters);
        }
        if self
            .guard
            .as_ref()
            .and_then(Guard::due)
            .is_some_and(|due| due <= now)
        {
            self.counters.error("guard late", || {
                "the guard was late; it was replaced".to_string()
            });
            self.replace_guard(now);
        }
        if self.freezer.deadline().is_some_and(|at| at <= now) {
            self.poll(now);
        }
        if self.detector.deadline().is_some_and(|at| at <= now) {
            self.event(now, Event::Tick);
        }
        for app in self.settling.look(now) {
            // What was over by now has ended above: who is in front stays.
            self.detector.handle(now, Event::Wait(app));
        }
        if self.reload_at.is_some_and(|at| at <= now) {
            self.read_again(now);
        }
        // By another rung, or the guard.
        let freezes = self.freezes();
        if std::mem::replace(&mut self.froze, freezes) != freezes {
            self.changes += 1;
            self.follow(now);
        }
    }

    /// The guard has said something, or has ended.
    pub fn guard_said(&mut self, now: Duration, answer: Option<Answer>) {
        match answer {
            Some(Answer::Frozen(_, failed)) => self
                .counters
                .add("groups that could not be frozen", failed as u64),
            Some(Answer::Thawed(by_itself)) => {
                if by_itself {
                    self.counters.count("freezes that the guard has ended");
                }
                self.book_thaw(now);
                self.freezer.thawed(now);
            }
            Some(Answer::TakenBack) => {
                self.counters.error("stopped", || {
                    "this process was stopped, and what it had set was taken back; it is set again".to_string()
                });
                self.effects.set_again(&self.decision, &mut self.counters);
                self.freezer.thawed(now);
                // Says that this process runs, so that the next stop is seen as one.
                self.order_thaw(now);
            }
            Some(Answer::Waits) => self.look_at_agents(now),
            None => {
                self.counters.error("guard ended", || {
                    "the guard has ended; there is a new one".to_string()
                });
                self.replace_guard(now);
            }
        }
    }

    /// Somebody asks to have the configuration read again: at once, or when the last time was long enough ago.
    ///
    /// Many who ask meanwhile have it read once. systemd waits for the answer, which is `READY=1`.
    pub fn reload(&mut self, now: Duration) {
        self.counters.count("reloads asked for");
        let due = self.reloaded.map_or(now, |last| last + RELOAD_EVERY);
        self.reload_at.get_or_insert(due.max(now));
        if due <= now {
            self.read_again(now);
        }
    }

    fn read_again(&mut self, now: Duration) {
        self.reload_at = None;
        self.reloaded = Some(now);
        self.counters.count("reloads");
        self.notify.tell("RELOADING=1");
        let (config, problems) = self.reader.load(&self.system.path(""));
        for problem in &problems {
            self.counters.forget(&format!("configuration {problem}"));
            self.counters
                .error(&format!("configuration {problem}"), || {
                    format!("configuration: {problem}")
                });
        }
        self.config = config;
        self.problems = problems;
        self.want(now);
        // Who has done what a note asks for asks for a reload, though the configuration is the same.
        self.effects.look_again(&self.decision, &mut self.counters);
        self.notify.tell("READY=1");
    }

    /// Takes everything back.
    pub fn release(&mut self, now: Duration) {
        self.thaw(now);
        self.effects.release(&mut self.counters);
        if let Some(guard) = &mut self.guard {
            guard.farewell();
        }
    }

    fn report(
        &mut self,
        now: Duration,
        session: SessionKey,
        agent: u32,
        report: Report,
    ) -> Result<(), String> {
        let Some(report) = self.check(session.user, report)? else {
            return Ok(());
        };
        // An agent that tells of its sources first has been seen, but its user's files have not.
        let seen = self.agents.get(&session);
        if seen.is_none_or(|seen| seen.reports == 0) {
            self.effects.look_again(&self.decision, &mut self.counters);
        }
        let seen = self.agents.entry(session.clone()).or_default();
        seen.pid = agent;
        seen.reports += 1;
        seen.active = true;
        // Who reports is not.
        self.stopped(now, session.clone(), false);
        self.counters.count("reports");
        let arms = matches!(
            report,
            Report::Front(_) | Report::Launch(_) | Report::Window(_)
        );
        self.event(now, Event::Report { session, report });
        if arms {
            self.arm(now);
        }
        Ok(())
    }

    /// A source of an agent has had trouble. The agent has logged it.
    fn trouble(&mut self, session: SessionKey, agent: u32, trouble: WireTrouble) {
        let seen = self.agents.entry(session).or_default();
        seen.pid = agent;
        seen.active = true;
        if seen.troubles.len() < SOURCES_MOST || seen.troubles.contains_key(&trouble.source) {
            seen.troubles.insert(trouble.source.clone(), trouble);
        }
    }

    /// Refuses groups that are not the user's, and forgets processes that are not in theirs. `None` if whom it is about
    /// has ended on the way here: who reported could not know.
    fn check(&mut self, user: u32, report: Report) -> Result<Option<Report>, String> {
        Ok(match report {
            Report::Front(apps) => self.check_all(user, apps)?.map(Report::Front),
            Report::Ambiguous(apps) => self.check_all(user, apps)?.map(Report::Ambiguous),
            Report::Launch(app) => self.check_one(user, app)?.map(Report::Launch),
            Report::Window(app) => self.check_one(user, app)?.map(Report::Window),
            // What has ended can no longer be heard: of that the path alone is looked at.
            Report::Perceptible {
                ref app, on: false, ..
            } => {
                let named = cgroup::may_name(user, &app.cgroup);
                named.map_err(|why| self.refused(user, app, why))?;
                Some(report)
            }
            Report::Perceptible { app, sense, on } => self
                .check_one(user, app)?
                .map(|app| Report::Perceptible { app, sense, on }),
            other => Some(other),
        })
    }

    /// All of several, but for those that have ended; `None` if nobody is left.
    fn check_all(
        &mut self,
        user: u32,
        mut apps: Vec<AppRef>,
    ) -> Result<Option<Vec<AppRef>>, String> {
        let gone = |app: &AppRef| Cgroup::is_gone(&self.system, app);
        if apps.len() > 1 && !apps.iter().all(gone) {
            apps.retain(|app| !gone(app));
        }
        let named = apps.len();
        let mut there = Vec::new();
        for app in apps {
            there.extend(self.check_one(user, app)?);
        }
        Ok((named == 0 || !there.is_empty()).then_some(there))
    }

    /// `None` if it has ended.
    fn check_one(&mut self, user: u32, mut app: AppRef) -> Result<Option<AppRef>, String> {
        let named = cgroup::may_name(user, &app.cgroup);
        match named.and_then(|()| Cgroup::open(&self.system, &app).map(drop)) {
            Ok(()) => {}
            Err(Refusal::Missing) => {
                self.counters.count("reports of apps that had ended");
                return Ok(None);
            }
            Err(why) => return Err(self.refused(user, &app, why)),
        }
        let within = cgroup::of_process(&self.system, app.pid)
            .is_some_and(|path| candidates::is_within(&path, &app.cgroup));
        if !within {
            app.pid = 0;
        }
        Ok(Some(app))
    }

    fn refused(&mut self, user: u32, app: &AppRef, why: Refusal) -> String {
        let meaning = format!("user {user} may not report {:?}: {why}", app.cgroup);
        self.counters
            .error(&format!("refused groups: {why}"), || meaning.clone());
        meaning
    }

    fn active(&mut self, now: Duration, session: SessionKey, active: bool) {
        if let Some(seen) = self.agents.get_mut(&session) {
            seen.active = active;
            let active = active && !seen.stopped;
            self.event(now, Event::Active { session, active });
        }
    }

    /// An agent that is stopped does not tell of another app that comes to the front: nobody is in front for it.
    fn look_at_agents(&mut self, now: Duration) {
        let agents: Vec<_> = self
            .agents
            .iter()
            .map(|(session, seen)| (session.clone(), seen.pid))
            .collect();
        for (session, pid) in agents {
            let line = self.system.read(&format!("proc/{pid}/stat"));
            self.stopped(
                now,
                session,
                line.is_ok_and(|line| waits::is_stopped(&line)),
            );
        }
    }

    fn stopped(&mut self, now: Duration, session: SessionKey, stopped: bool) {
        let Some(seen) = self.agents.get_mut(&session) else {
            return;
        };
        if seen.stopped == stopped {
            return;
        }
        seen.stopped = stopped;
        let (active, pid) = (seen.active && !stopped, seen.pid);
        if stopped {
            let meaning = || {
                format!("process {pid}, an agent, is stopped: nobody is in front in its session")
            };
            self.counters.error("agent stopped", meaning);
        } else {
            self.counters.forget("agent stopped");
        }
        self.event(now, Event::Active { session, active });
    }

    fn by_hand(&mut self, now: Duration, mode: Mode, whom: &[String]) -> Result<(), String> {
        let mut apps = whom
            .iter()
            .map(|word| self.group_of(word))
            .collect::<Result<Vec<_>, _>>()?;
        let (before, only) = self.detector.by_hand();
        let only = match mode {
            Mode::Set => true,
            Mode::Add => {
                apps.splice(..0, before.iter().cloned());
                only
            }
            Mode::Clear => {
                apps.clear();
                false
            }
        };
        self.event(now, Event::ByHand { only, apps });
        self.arm(now);
        Ok(())
    }

    /// The group that a person means by a PID or a path.
    fn group_of(&self, word: &str) -> Result<AppRef, String> {
        let (path, pid) = match word.parse::<u32>() {
            Ok(pid) => {
                let path = cgroup::of_process(&self.system, pid)
                    .ok_or_else(|| format!("there is no process {pid}"))?;
                (app_of(&path).to_string(), pid)
            }
            Err(_) => (word.to_string(), 0),
        };
        if path == "/" || is_wide(&path) {
            return Err(format!(
                "{word} is in {path}, which is no app's control group: start the app in a scope"
            ));
        }
        let group =
            Cgroup::open_path(&self.system, &path).map_err(|why| format!("{path}: {why}"))?;
        Ok(AppRef { pid, ..group.app() })
    }

    fn coexist(&mut self, now: Duration, found: Vec<Found>) {
        for program in &found {
            if !self.found.contains(program) {
                self.counters.say(&program.sentence());
            }
        }
        self.found = found;
        self.want(now);
    }

    fn want(&mut self, now: Duration) {
        let wanted = coexist::give_way(&self.found, &self.config.effects);
        self.effects.set_wanted(&wanted, &mut self.counters);
        self.effects.apply(&self.decision, &mut self.counters);
        self.follow(now);
    }

    fn event(&mut self, now: Duration, event: Event) {
        self.detector.handle(now, event);
        self.sweep(now, false);
    }

    /// Decides anew, without groups that have ended; of those behind, of which there may be many, only if `all`.
    fn sweep(&mut self, now: Duration, all: bool) {
        let decision = self.detector.decide();
        let behind = decision.background.iter().filter(|_| all);
        let lists = decision.foreground.iter().chain(&decision.perceptible);
        let apps = lists.chain(behind).map(|verdict| &verdict.app);
        let gone: Vec<AppRef> = apps
            .filter(|app| Cgroup::is_gone(&self.system, app))
            .cloned()
            .collect();
        if gone.is_empty() {
            return self.take(now, decision);
        }
        for app in gone {
            self.counters.count("groups that had ended");
            self.detector.handle(now, Event::Gone(app));
        }
        self.take(now, self.detector.decide());
    }

    fn take(&mut self, now: Duration, decision: Decision) {
        let same = decision.same_sets(&self.decision);
        self.decision = decision;
        self.settling.follow(now, self.detector.settling());
        self.effects.apply(&self.decision, &mut self.counters);
        if !same {
            self.changes += 1;
            self.counters.count("changes");
            self.follow(now);
        }
    }

    fn freezes(&self) -> bool {
        self.effects.rung().freezes() && self.guard.is_some()
    }

    /// Has the freezer follow the decision. Who has come to the front must not stay frozen for a moment.
    fn follow(&mut self, now: Duration) {
        self.freezable.forget();
        self.thaw(now);
        let groups = self.watched();
        let nobody = groups.is_empty();
        self.waits.set_groups(groups);
        if nobody {
            self.freezer.disarm();
        }
    }

    fn arm(&mut self, now: Duration) {
        if self.freezes() && !self.decision.foreground.is_empty() {
            self.freezer.arm(now);
        }
    }

    fn poll(&mut self, now: Duration) {
        let freezes = self.freezes();
        if freezes {
            self.freezable.want(now);
        }
        let waits = freezes && self.waits.look(now);
        let ready = self.freezer.is_frozen() || self.freezable.groups(now).is_some();
        if waits && !ready {
            self.freezer.arm(now);
        }
        match self.freezer.poll(now, waits && ready) {
            Act::Nothing => {}
            Act::Freeze => self.freeze(now),
            Act::Thaw => self.order_thaw(now),
        }
    }

    fn freeze(&mut self, now: Duration) {
        let groups = self.freezable.groups(now).unwrap_or_default();
        if groups.is_empty() {
            self.freezer.thawed(now);
        } else if let Some(guard) = &mut self.guard {
            self.counters.count("freezes");
            self.frozen_since = Some(now);
            if guard.freeze(now, groups.to_vec()).is_err() {
                self.replace_guard(now);
            }
        }
    }

    fn unknown(&mut self, unknown: Unknown) {
        let meaning =
            || format!("whom apps in front wait for is not known, so nothing is frozen: {unknown}");
        self.counters.error(unknown.name(), meaning);
    }

    fn thaw(&mut self, now: Duration) {
        if self.freezer.is_frozen() {
            self.freezer.thawed(now);
            self.order_thaw(now);
        }
    }

    fn order_thaw(&mut self, now: Duration) {
        self.book_thaw(now);
        if self
            .guard
            .as_mut()
            .is_some_and(|guard| guard.thaw(now).is_err())
        {
            self.replace_guard(now);
        }
    }

    fn book_thaw(&mut self, now: Duration) {
        let Some(since) = self.frozen_since.take() else {
            return;
        };
        let Some(guard) = &self.guard else { return };
        let frozen = now.saturating_sub(since);
        for path in guard.frozen() {
            let entry = self.frozen_for.entry(path.to_string()).or_default();
            entry.times += 1;
            entry.total += frozen;
        }
        let ms = u64::try_from(frozen.as_millis()).unwrap_or(u64::MAX);
        self.counters.most("longest freeze, ms", ms);
    }

    fn replace_guard(&mut self, now: Duration) {
        self.book_thaw(now);
        self.freezer.thawed(now);
        let Some(guard) = &mut self.guard else { return };
        if let Err(error) = guard.replace() {
            let meaning =
                format!("no guard can be started, so nothing is frozen from now on: {error}");
            self.counters.error("no guard", || meaning);
            self.guard = None;
        }
    }
}
