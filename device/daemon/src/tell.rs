// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon tells of itself. Files are read when somebody asks, and not before.

use crate::candidates::{self, is_within, processes};
use crate::cgroup;
use crate::coexist::{self, Found};
use crate::daemon::Daemon;
use crate::effects::kernel;
use fasttrack_bus::{AppStatus, Explanation, SessionStatus, Status, Usage, WireApp, WireTrouble};
use fasttrack_detector::{units, Rule, SessionKey, Verdict};
use std::time::Duration;

/// Groups of apps that are told of at most.
const USAGE_MOST: usize = 128;
/// Processes of a group whose bytes are added up at most, and of all groups in one answer: each is a file to be read.
const PROCESSES_OF_ONE: usize = 256;
const PROCESSES_OF_ALL: usize = 2048;
/// How old an answer about bytes may be.
const USAGE_EVERY: Duration = Duration::from_secs(1);
/// Why users' apps are neutral.
const NOBODY_IN_FRONT: &str = "nobody is in front";

impl Daemon {
    /// All of it.
    pub fn status(&self, now: Duration) -> Status {
        let app = |(class, verdict)| app_status(class, verdict, now);
        Status {
            version: env!("CARGO_PKG_VERSION").to_string(),
            rung: self.effects.rung().to_string(),
            notes: self.notes(),
            sessions: self.sessions(),
            apps: self.decision.verdicts().map(app).collect(),
            frozen: self
                .guard
                .iter()
                .flat_map(|guard| guard.frozen())
                .map(str::to_string)
                .collect(),
            counters: self.all_counters(),
            errors: self.all_errors(),
        }
    }

    /// Why an app has its class.
    pub fn explain(&self, now: Duration, what: &str) -> Result<Explanation, String> {
        let path = match what.parse::<u32>() {
            // A user may call a group what terminals take for an order. No app of a report is called so.
            Ok(pid) => cgroup::of_process(&self.system, pid)
                .ok_or_else(|| format!("there is no process {pid}"))?
                .replace(char::is_control, "?"),
            Err(_) => what.to_string(),
        };
        let within = |verdict: &Verdict| is_within(&path, &verdict.app.cgroup);
        let by_path = self
            .decision
            .verdicts()
            .find(|(_, verdict)| within(verdict));
        let found = match by_path {
            Some(found) => Some(found),
            None if path.starts_with('/') => None,
            None => Some(self.called(what)?),
        };
        let (app, group) = match found {
            Some((class, verdict)) => (app_status(class, verdict, now), verdict.app.cgroup.clone()),
            None => (self.unspoken(&path), path),
        };
        let mut done = self.effects.explain(&group);
        if let Some(frozen) = self.frozen_for.get(&group) {
            let ms = frozen.total.as_millis();
            done.push(format!(
                "It was frozen {} times, {ms} ms in all.",
                frozen.times
            ));
        }
        if app.class == "background" {
            done.extend(self.not_frozen(&group));
            done.extend(self.by_kernel());
        }
        if done.is_empty() {
            done.push(format!(
                "Nothing was set for it; the rung is '{}'.",
                self.effects.rung()
            ));
        }
        Ok(Explanation { app, done })
    }

    /// Why an app behind is not frozen, where others are. Anybody may ask, so nothing is looked at for the answer.
    fn not_frozen(&self, app: &str) -> Option<String> {
        if !self.effects.rung().freezes() {
            return None;
        }
        let never = &self.config.effects.never_freeze;
        // Which group of a slice it is tells the last look alone.
        let is_slice = app.ends_with(".slice") && units::is_one_app(units::leaf(app));
        let known = match candidates::without_a_look(app, &self.decision, never) {
            Err(why) if !is_slice => Some((app, why)),
            _ => self.freezable.kept(app),
        };
        let (path, why) = known?;
        let inside = path != app && is_within(path, app);
        let who = if inside { units::leaf(path) } else { "It" };
        Some(format!("{who} is not frozen: {why}."))
    }

    /// What the kernel has done to all that are behind: it does not count by app.
    fn by_kernel(&self) -> Option<String> {
        let counter = |name: &str| {
            self.system
                .read(&format!("{}/stats/{name}", kernel::FOLDER))
                .ok()
        };
        let (pauses, held) = (counter("pauses")?, counter("dispatch_held")?);
        Some(format!(
            "The kernel has paused background tasks {pauses} times and held their requests back {held} times, \
             of all apps together; root's 'fasttrackctl top' shows pauses app by app."
        ))
    }

    /// The app of this name: its application id, its unit, or a part of one of these that no other app has.
    fn called(&self, name: &str) -> Result<(&'static str, &Verdict), String> {
        let last = |verdict: &Verdict| {
            let path = &verdict.app.cgroup;
            units::leaf(path).to_string()
        };
        let all = || self.decision.verdicts();
        let exactly = |verdict: &Verdict| verdict.app.id == name || last(verdict) == name;
        let found = all().find(|(_, verdict)| exactly(verdict));
        if let Some(found) = found.filter(|_| !name.is_empty()) {
            return Ok(found);
        }
        let small = name.to_lowercase();
        let partly = |text: &str| !small.is_empty() && text.to_lowercase().contains(&small);
        let found: Vec<_> = all()
            .filter(|(_, verdict)| partly(&verdict.app.id) || partly(&last(verdict)))
            .collect();
        match found[..] {
            [one] => Ok(one),
            [] => Err(format!(
                "no app is called {name:?}. fasttrackd does not know the titles of windows: \
                 name a PID, an application id or a control group; 'fasttrackctl top' lists the apps that are known"
            )),
            _ => {
                let names: Vec<String> = found.iter().map(|(_, verdict)| last(verdict)).collect();
                Err(format!("{name:?} may be any of {}: name one of them", names.join(", ")))
            }
        }
    }

    /// What apps have read and written, as of a second ago at most: anybody may ask, and each answer reads many files.
    pub fn recent_usage(&mut self, now: Duration) -> Vec<Usage> {
        match &self.usage {
            Some((at, usage)) if now < *at + USAGE_EVERY => usage.clone(),
            _ => {
                let usage = self.usage();
                self.usage = Some((now, usage.clone()));
                usage
            }
        }
    }

    /// What apps have read and written.
    fn usage(&self) -> Vec<Usage> {
        let mut left = PROCESSES_OF_ALL;
        self.decision
            .verdicts()
            .take(USAGE_MOST)
            .map(|(class, verdict)| self.usage_of(class, verdict, &mut left))
            .collect()
    }

    /// A group that nobody has spoken of.
    fn unspoken(&self, path: &str) -> AppStatus {
        let in_apps = path.contains("/app.slice/")
            || self
                .effects
                .explain(path)
                .iter()
                .any(|line| line.contains("app_cgroups"));
        let (class, why) = match (in_apps, self.decision.foreground.is_empty()) {
            (false, _) => ("neutral", "it is no app of a user's"),
            (true, true) => ("neutral", NOBODY_IN_FRONT),
            (true, false) => ("background", "another app is in front"),
        };
        AppStatus {
            app: WireApp {
                cgroup: path.to_string(),
                inode: 0,
                id: String::new(),
                pid: 0,
            },
            class: class.to_string(),
            rule: "unspoken".to_string(),
            why: why.to_string(),
            for_ms: 0,
            session: String::new(),
            user: cgroup::user_of(path).unwrap_or(0),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.effects.notes().to_vec();
        notes.extend(self.found.iter().map(Found::sentence));
        if !self.decision.games.is_empty() {
            notes.push(coexist::gamemode(self.decision.games.len()));
        }
        if self.effects.rung().freezes() && self.guard.is_none() {
            notes.push("freezer: off, because there is no guard.".to_string());
        }
        let (by_hand, only) = self.detector.by_hand();
        if only || !by_hand.is_empty() {
            let who = if only { "alone" } else { "too" };
            notes.push(format!(
                "{} set by hand, {who}; 'fasttrackctl foreground clear' ends it.",
                if by_hand.len() == 1 {
                    "One app is".to_string()
                } else {
                    format!("{} apps are", by_hand.len())
                }
            ));
        }
        notes.extend(
            self.problems
                .iter()
                .map(|problem| format!("configuration: {problem}.")),
        );
        notes
    }

    fn sessions(&self) -> Vec<SessionStatus> {
        let quiet = |key: &SessionKey| {
            let found = self
                .decision
                .quiet
                .iter()
                .find(|(session, _)| session == key);
            found.map_or_else(String::new, |(_, why)| why.to_string())
        };
        let session = |(key, seen): (&SessionKey, &crate::daemon::AgentSeen)| SessionStatus {
            session: key.id.clone(),
            user: key.user,
            seat: key.seat.clone(),
            active: seen.active,
            agent: seen.pid,
            reports: seen.reports,
            quiet: quiet(key),
            sources: seen.sources.clone(),
        };
        self.agents.iter().map(session).collect()
    }

    fn all_counters(&self) -> std::collections::BTreeMap<String, u64> {
        let mut all = self.counters.all();
        for name in ["pauses", "dispatch_held", "promoted", "stuck"] {
            let text = self
                .system
                .read(&format!("{}/stats/{name}", kernel::FOLDER));
            if let Some(number) = text.ok().and_then(|text| text.parse().ok()) {
                all.insert(format!("kernel: {name}"), number);
            }
        }
        let times = [
            ("p50 of the last 1000", self.latencies.percentile_us(50)),
            ("p99 of the last 1000", self.latencies.percentile_us(99)),
            ("longest", self.latencies.longest_us()),
        ];
        for (what, us) in times {
            if let Some(us) = us {
                let name = format!("time from a report to its last write, {what}, us");
                all.insert(name, us.into());
            }
        }
        for (key, trouble) in self.troubles() {
            let source = format!("agent of {}: {}", key.id, trouble.source);
            for (what, number) in [
                ("faults", trouble.faults),
                ("windows of nobody", trouble.unknown),
            ] {
                if number > 0 {
                    all.insert(format!("{source}: {what}"), number);
                }
            }
        }
        all
    }

    /// What went wrong here, then what agents say of their sources.
    fn all_errors(&self) -> Vec<String> {
        let told = |(key, trouble): (&SessionKey, &WireTrouble)| {
            let often = match trouble.faults + trouble.unknown {
                0 | 1 => String::new(),
                often => format!(" ({often} times)"),
            };
            format!(
                "agent of {}: {}: {}{often}",
                key.id, trouble.source, trouble.meaning
            )
        };
        let mut all = self.counters.errors();
        all.extend(self.troubles().map(told));
        all
    }

    fn troubles(&self) -> impl Iterator<Item = (&SessionKey, &WireTrouble)> {
        let each = self.agents.iter().map(|(key, seen)| (key, &seen.troubles));
        each.flat_map(|(key, troubles)| troubles.values().map(move |trouble| (key, trouble)))
    }

    fn usage_of(&self, class: &str, verdict: &Verdict, left: &mut usize) -> Usage {
        let path = &verdict.app.cgroup;
        let (read_bytes, written_bytes) = self.bytes(path, left);
        let frozen = self.frozen_for.get(path).copied().unwrap_or_default();
        Usage {
            cgroup: path.clone(),
            name: verdict.app.name().to_string(),
            class: class.to_string(),
            read_bytes,
            written_bytes,
            freezes: frozen.times,
            frozen_ms: u64::try_from(frozen.total.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Bytes read and written: of the group, or of its living processes where it does not count them; none where so
    /// many are not left to be read.
    fn bytes(&self, path: &str, left: &mut usize) -> (u64, u64) {
        let group = cgroup::Cgroup::open_path(&self.system, path);
        if let Some(text) = group.ok().and_then(|group| group.read("io.stat").ok()) {
            return (sum(&text, "rbytes="), sum(&text, "wbytes="));
        }
        let most = PROCESSES_OF_ONE.min(*left);
        let mut of_one = most;
        let pids = processes(&self.system, path, &mut of_one);
        *left -= most - of_one;
        let Some(pids) = pids else {
            return (0, 0);
        };
        let of_process = |pid: u32| {
            let text = self
                .system
                .read(&format!("proc/{pid}/io"))
                .unwrap_or_default();
            (line(&text, "read_bytes: "), line(&text, "write_bytes: "))
        };
        let each = pids.into_iter().map(of_process);
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

fn sum(text: &str, key: &str) -> u64 {
    let words = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(key));
    words.filter_map(|number| number.parse::<u64>().ok()).sum()
}

fn line(text: &str, key: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(key));
    found.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn app_status(class: &str, verdict: &Verdict, now: Duration) -> AppStatus {
    let session = verdict.session.as_ref();
    let for_ms = now.saturating_sub(verdict.since).as_millis();
    AppStatus {
        app: WireApp::from(&verdict.app),
        class: class.to_string(),
        rule: verdict.rule.word().to_string(),
        why: match verdict.rule {
            Rule::Behind if class == "neutral" => NOBODY_IN_FRONT.to_string(),
            Rule::Behind => "another app is in front, or it has no window".to_string(),
            rule => rule.to_string(),
        },
        for_ms: u64::try_from(for_ms).unwrap_or(u64::MAX),
        session: session.map_or_else(String::new, |key| key.id.clone()),
        user: session.map_or(0, |key| key.user),
    }
}
