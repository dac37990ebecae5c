// SPDX-License-Identifier: GPL-2.0-only
//! Priorities of tasks: the last means, which reaches what a task sends itself.
//!
//! A priority is inherited by fork: an app that another one starts begins with what that has from us, in a group that has
//! nothing from us yet. It cannot be told from one that somebody has chosen. So at the first time both priorities of ours
//! count as inherited where a group's first process may come from another app, which is in scopes alone: systemd starts
//! the processes of services itself.

use super::effect::Effect;
use super::ladder::Reach;
use super::rules::with_tasks;
use crate::candidates;
use crate::cgroup::Cgroup;
use crate::counters::Counters;
use crate::system::System;
use fasttrack_config::Effects as Wanted;
use fasttrack_detector::report::AppRef;
use fasttrack_detector::{Decision, Verdict};
use std::collections::BTreeMap;

/// The attribute of a group whose tasks have a priority of ours: a [`Mark`].
pub const MARK: &str = "trusted.fasttrack.ioprio";

const SHIFT: libc::c_long = 13;
const NONE: libc::c_long = 0;
/// Best effort, the best of it: real time would let an app starve the system.
const FRONT: libc::c_long = 2 << SHIFT;
const IDLE: libc::c_long = 3 << SHIFT;
const WHO_PROCESS: libc::c_long = 1;

/// Behind the priority, where the group is a game's.
const GAME: &str = " game";

/// Before a second priority that tasks may have from us.
const OR: &str = " or ";

/// A priority of ours, and what is to become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    value: libc::c_long,
    /// One that tasks have from us as long as the other replaces it: who is killed meanwhile leaves both.
    replaced: Option<libc::c_long>,
    /// Whether the group is a game of GameMode's, which gives its games the same as we who is in front.
    game: bool,
}

impl Mark {
    /// Whether a priority is ours and the tasks lose it in the end. What is whose cannot be told while there is a game,
    /// so that one keeps it.
    fn takes_back(self, value: libc::c_long) -> bool {
        let ours = value == self.value || Some(value) == self.replaced;
        ours && (value != FRONT || !self.game)
    }

    fn text(self) -> String {
        let replaced = self.replaced.map(|value| format!("{OR}{value}"));
        let game = if self.game { GAME } else { "" };
        format!("{}{}{game}", self.value, replaced.unwrap_or_default())
    }

    /// Of an attribute; none where it makes no sense.
    fn parse(text: &str) -> Option<Mark> {
        let number = text.strip_suffix(GAME);
        let numbers = number.unwrap_or(text);
        let (value, replaced) = match numbers.split_once(OR) {
            Some((value, replaced)) => (value, Some(replaced.parse().ok()?)),
            None => (numbers, None),
        };
        Some(Mark {
            value: value.parse().ok()?,
            replaced,
            game: number.is_some(),
        })
    }
}

/// Priorities of the tasks of control groups.
pub struct Ioprio {
    system: System,
    rules: Vec<String>,
    reach: Reach,
    /// What is background by a rule, as far as it was there at the last look.
    maintenance: Vec<AppRef>,
    /// Likewise, users' apps, of which an agent may not have spoken to this daemon.
    behind: Vec<AppRef>,
    set: BTreeMap<String, (AppRef, Mark)>,
    /// Groups that have had a priority from us, by inode: what their tasks have now is from us, or chosen.
    known: BTreeMap<String, u64>,
}

impl Ioprio {
    /// Priorities of these users' tasks, and of the system's. None is set yet.
    pub fn new(system: &System, wanted: &Wanted, reach: Reach) -> Ioprio {
        Ioprio {
            system: system.clone(),
            maintenance: reached(system, with_tasks(system, &wanted.background), &reach),
            behind: reached(system, candidates::behind(system), &reach),
            reach,
            rules: wanted.background.clone(),
            set: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// Gives the tasks of a group a priority, in place of the one that they may have from us.
    fn give(&mut self, app: AppRef, value: libc::c_long, counters: &mut Counters) {
        let same = |(is, _): &&(AppRef, Mark)| is.inode == app.inode;
        let known = self.set.get(&app.cgroup).filter(same);
        let before = known.map_or(NONE, |(_, mark)| mark.value);
        if before == value {
            return;
        }
        let Ok(group) = Cgroup::open(&self.system, &app) else {
            return counters.count("groups that had ended");
        };
        let known = self.known.get(&app.cgroup) == Some(&app.inode);
        let inherits = app.cgroup.ends_with(".scope") && !known;
        let ours: &[libc::c_long] = if inherits { &[IDLE, FRONT] } else { &[before] };
        let mut replaced = ours.iter().copied();
        let mut mark = Mark {
            value,
            replaced: replaced.find(|one| ![NONE, value].contains(one)),
            game: false,
        };
        // Without the mark a crash would leave the priority for ever.
        if let Err(error) = group.set_attribute(MARK, &mark.text()) {
            return counters.error("ioprio mark", || {
                format!("{}: the mark cannot be set: {error}", app.cgroup)
            });
        }
        self.known.insert(app.cgroup.clone(), app.inode);
        let done = set_group(&group, value, ours);
        counters.add("tasks given a priority", done as u64);
        // Whoever has the other one from now on has chosen it.
        if mark.replaced.take().is_some() {
            let _ = group.set_attribute(MARK, &mark.text());
        }
        self.set.insert(app.cgroup.clone(), (app, mark));
    }

    /// Notes on the groups which are games': who takes back what we have left knows nothing else of them.
    fn note_games(&mut self, games: &[AppRef]) {
        for (path, (app, mark)) in &mut self.set {
            let game = games.iter().any(|game| game.cgroup == *path);
            if mark.game == game {
                continue;
            }
            mark.game = game;
            // One that has ended needs no mark.
            if let Ok(group) = Cgroup::open(&self.system, app) {
                let _ = group.set_attribute(MARK, &mark.text());
            }
        }
    }
}

/// Those of these groups whose tasks may get a priority.
fn reached(system: &System, paths: Vec<String>, reach: &Reach) -> Vec<AppRef> {
    let paths = paths.into_iter();
    paths
        .filter(|path| reach.has(path))
        .filter_map(|path| Some(Cgroup::open_path(system, &path).ok()?.app()))
        .collect()
}

fn get(tid: u32) -> Option<libc::c_long> {
    // SAFETY: the call takes numbers and touches no memory of ours.
    let value =
        unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, libc::c_long::from(tid)) };
    (value >= 0).then_some(value)
}

fn set(tid: u32, value: libc::c_long) -> bool {
    // SAFETY: as above.
    unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            WHO_PROCESS,
            libc::c_long::from(tid),
            value,
        ) == 0
    }
}

/// The class and level that somebody has chosen; none where the kernel derives them from nice.
fn chosen(tid: u32) -> Option<libc::c_long> {
    get(tid).filter(|value| value >> SHIFT != NONE)
}

/// Gives all tasks of a group a priority; those that have chosen one, that is neither ours nor the kernel's, keep theirs.
/// Says how many have it now.
fn set_group(group: &Cgroup, value: libc::c_long, ours: &[libc::c_long]) -> usize {
    let mut done = 0;
    let mut seen = Vec::new();
    // Threads begin while it runs, with the priority of whoever made them: until nothing is new, or thrice.
    for _ in 0..3 {
        let threads = group.numbers("cgroup.threads");
        let new: Vec<u32> = threads
            .into_iter()
            .filter(|tid| !seen.contains(tid))
            .collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            let free = chosen(tid).is_none_or(|is| ours.contains(&is) || is == 4 | 2 << SHIFT);
            done += usize::from(free && set(tid, value));
            seen.push(tid);
        }
    }
    done
}

/// Takes a priority of ours back, where a mark says that there is one.
pub fn restore_group(group: &Cgroup) -> bool {
    let Ok(Some(text)) = group.attribute(MARK) else {
        return false;
    };
    let Some(mark) = Mark::parse(&text) else {
        return false;
    };
    for tid in group.numbers("cgroup.threads") {
        if get(tid).is_some_and(|value| mark.takes_back(value)) {
            set(tid, NONE);
        }
    }
    group.remove_attribute(MARK).is_ok()
}

/// Takes the priority of a group back, unless it has ended.
fn take_back(system: &System, app: &AppRef) {
    if let Ok(group) = Cgroup::open(system, app) {
        restore_group(&group);
    }
}

impl Effect for Ioprio {
    fn apply(&mut self, decision: &Decision, counters: &mut Counters) {
        let mut wanted = BTreeMap::new();
        if !decision.foreground.is_empty() {
            let apps = |list: &'_ [Verdict]| -> Vec<AppRef> {
                let apps = list.iter().map(|verdict| verdict.app.clone());
                apps.filter(|app| self.reach.has(&app.cgroup)).collect()
            };
            let unused = |app: &&AppRef| candidates::by_decision(&app.cgroup, decision).is_ok();
            let behind = self.behind.iter().filter(unused).cloned().collect();
            let ranks = [
                (self.maintenance.clone(), IDLE),
                (behind, IDLE),
                (apps(&decision.background), IDLE),
                (apps(&decision.foreground), FRONT),
            ];
            for (apps, value) in ranks {
                wanted.extend(
                    apps.into_iter()
                        .map(|app| (app.cgroup.clone(), (app, value))),
                );
            }
        }
        for game in &decision.games {
            wanted.remove(&game.cgroup);
        }
        self.note_games(&decision.games);
        let over: Vec<String> = self
            .set
            .iter()
            .filter(|(path, _)| !wanted.contains_key(*path))
            .filter(|(_, (_, mark))| mark.takes_back(mark.value))
            .map(|(path, _)| path.clone())
            .collect();
        // Who waits is in front.
        let (first, others): (Vec<_>, Vec<_>) =
            wanted.into_values().partition(|(_, value)| *value == FRONT);
        for (app, value) in first.into_iter().chain(others) {
            self.give(app, value, counters);
        }
        for path in over {
            if let Some((app, _)) = self.set.remove(&path) {
                take_back(&self.system, &app);
            }
        }
    }

    /// Services and apps begin and end without a word: those that are there now get theirs, those that have ended are
    /// forgotten.
    fn renew(&mut self, decision: &Decision, counters: &mut Counters) {
        let system = self.system.clone();
        self.set
            .retain(|_, (app, _)| !Cgroup::is_gone(&system, app));
        let is = |path: &str| Cgroup::open_path(&system, path).map(|group| group.inode());
        self.known
            .retain(|path, inode| is(path).is_ok_and(|is| is == *inode));
        self.maintenance = reached(&system, with_tasks(&system, &self.rules), &self.reach);
        self.behind = reached(&system, candidates::behind(&system), &self.reach);
        self.apply(decision, counters);
    }

    fn explain(&self, cgroup: &str) -> Vec<String> {
        let word = |value| {
            if value == IDLE {
                "idle"
            } else {
                "best effort 0"
            }
        };
        let set = self
            .set
            .get(cgroup)
            .iter()
            .map(|(_, mark)| word(mark.value))
            .collect::<Vec<_>>();
        set.into_iter()
            .map(|word| format!("The tasks of {cgroup} have the I/O priority {word}."))
            .collect()
    }

    fn release(&mut self, _counters: &mut Counters) {
        for (app, _) in std::mem::take(&mut self.set).into_values() {
            take_back(&self.system, &app);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn a_game_s_priority_is_left_to_gamemode() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let wanted = fasttrack_config::Config::default().effects;
        let app = |name: &str| {
            let place = folder.path().join("sys/fs/cgroup").join(name);
            fs::create_dir_all(place).expect("a group");
            Cgroup::open_path(&system, &format!("/{name}"))
                .expect("a group")
                .app()
        };
        let front = |app: AppRef| fasttrack_detector::Verdict {
            app,
            rule: fasttrack_detector::Rule::Focus,
            since: std::time::Duration::ZERO,
            session: None,
        };
        let (game, other) = (app("game"), app("other"));
        let decision = Decision {
            foreground: vec![front(game.clone()), front(other.clone())],
            games: vec![game],
            ..Decision::default()
        };
        let mut ioprio = Ioprio::new(&system, &wanted, Reach::all());
        let mut counters = Counters::silent();
        ioprio.apply(&decision, &mut counters);
        assert!(!ioprio.set.contains_key("/game"));
        // Where the mark cannot be set, that of the other one was tried for.
        assert!(ioprio.set.contains_key("/other") || !counters.errors().is_empty());
    }

    #[test]
    fn only_what_a_game_may_have_from_gamemode_is_left() {
        for (value, game, taken) in [
            (FRONT, false, true),
            (FRONT, true, false),
            (IDLE, false, true),
            (IDLE, true, true),
        ] {
            for replaced in [None, Some(IDLE)] {
                let mark = Mark {
                    value,
                    replaced,
                    game,
                };
                assert_eq!(mark.takes_back(value), taken, "{mark:?}");
                assert_eq!(Mark::parse(&mark.text()), Some(mark));
            }
        }
        let alone = Mark::parse("16384 game").expect("without another one");
        assert_eq!((alone.replaced, alone.takes_back(IDLE)), (None, false));
        for nonsense in ["x game", "1 or x", ""] {
            assert_eq!(Mark::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn what_gamemode_has_set_stays_whether_the_game_was_in_front_before_or_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        let place = folder.path().join("sys/fs/cgroup/game");
        fs::create_dir_all(&place).expect("a group");
        fs::write(place.join("cgroup.threads"), child.id().to_string()).expect("a file");
        let group = Cgroup::open_path(&system, "/game").expect("a group");
        let app = group.app();
        let decision = |front: bool, game: bool| Decision {
            foreground: front
                .then(|| fasttrack_detector::Verdict {
                    app: app.clone(),
                    rule: fasttrack_detector::Rule::Focus,
                    since: std::time::Duration::ZERO,
                    session: None,
                })
                .into_iter()
                .collect(),
            games: game.then(|| app.clone()).into_iter().collect(),
            ..Decision::default()
        };
        let marks = group.set_attribute(MARK, "0").is_ok() && group.remove_attribute(MARK).is_ok();
        let wanted = fasttrack_config::Config::default().effects;
        let mut ioprio = Ioprio::new(&system, &wanted, Reach::all());
        let mut counters = Counters::silent();
        let mut after = |front, game| {
            ioprio.apply(&decision(front, game), &mut counters);
            get(child.id()) == Some(FRONT)
        };
        let front_first = [(true, false), (true, true), (false, true), (false, false)];
        let front_first = front_first.map(|(front, game)| after(front, game));
        set(child.id(), FRONT);
        let game_first = [(false, true), (true, true), (false, true)];
        let game_first = game_first.map(|(front, game)| after(front, game));
        // Who ends, or cleans up after one that was killed, takes nothing from a game that is one still.
        let mut ended = [false; 2];
        for (how, kept) in ended.iter_mut().enumerate() {
            set(child.id(), NONE);
            let mut ioprio = Ioprio::new(&system, &wanted, Reach::all());
            ioprio.apply(&decision(true, false), &mut Counters::silent());
            ioprio.apply(&decision(true, true), &mut Counters::silent());
            match how {
                0 => ioprio.release(&mut Counters::silent()),
                _ => drop(restore_group(&group)),
            }
            *kept = get(child.id()) == Some(FRONT) && matches!(group.attribute(MARK), Ok(None));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(game_first, [true; 3]);
        if marks {
            assert_eq!(front_first, [true, true, true, false]);
            assert_eq!(ended, [true; 2]);
        } else {
            eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here");
        }
    }

    #[test]
    fn what_a_new_scope_has_inherited_is_no_choice() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        let tid = child.id();
        let group = |name: &str| {
            let place = folder.path().join("sys/fs/cgroup").join(name);
            fs::create_dir_all(&place).expect("a group");
            fs::write(place.join("cgroup.threads"), tid.to_string()).expect("a file");
            Cgroup::open_path(&system, &format!("/{name}")).expect("a group")
        };
        let scope = group("app-x-1.scope");
        let marks = scope.set_attribute(MARK, "0").is_ok() && scope.remove_attribute(MARK).is_ok();
        let wanted = fasttrack_config::Config::default().effects;
        let mut counters = Counters::silent();
        let decision = |front: bool, app: &AppRef| {
            let verdict = Verdict {
                app: app.clone(),
                rule: fasttrack_detector::Rule::Focus,
                since: std::time::Duration::ZERO,
                session: None,
            };
            let other = Verdict {
                app: AppRef {
                    cgroup: "/other".to_string(),
                    ..app.clone()
                },
                ..verdict.clone()
            };
            let (foreground, background) = match front {
                true => (vec![verdict], Vec::new()),
                false => (vec![other], vec![verdict]),
            };
            Decision {
                foreground,
                background,
                ..Decision::default()
            }
        };
        let mut seen = Vec::new();
        for (app, inherited, front) in [
            (scope.app(), IDLE, true),
            (scope.app(), FRONT, false),
            (group("app-x.service").app(), IDLE, true),
        ] {
            let mut ioprio = Ioprio::new(&system, &wanted, Reach::all());
            set(tid, inherited);
            ioprio.apply(&decision(front, &app), &mut counters);
            let given = get(tid);
            // Chosen later: that is left alone, also where the group has nothing from us in between.
            ioprio.apply(&Decision::default(), &mut counters);
            let taken = chosen(tid);
            set(tid, IDLE);
            ioprio.apply(&decision(true, &app), &mut counters);
            let kept = get(tid);
            ioprio.release(&mut counters);
            seen.push((given, taken, kept));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        if !marks {
            return eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here");
        }
        let of_nice = |is: Option<libc::c_long>| is.is_none_or(|is| is == 4 | 2 << SHIFT);
        assert!(of_nice(seen[0].1) && of_nice(seen[1].1), "{seen:?}");
        let values: Vec<_> = seen
            .iter()
            .map(|(given, _, kept)| (*given, *kept))
            .collect();
        let idle = Some(IDLE);
        assert_eq!(values, [(Some(FRONT), idle), (idle, idle), (idle, idle)]);
    }

    #[test]
    fn who_is_killed_while_one_replaces_the_other_leaves_what_can_be_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut children: Vec<_> = (0..2)
            .map(|_| Command::new("sleep").arg("60").spawn().expect("a process"))
            .collect();
        let tids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
        fs::create_dir(folder.path().join("g")).expect("a group");
        let threads = format!("{}\n{}\n", tids[0], tids[1]);
        fs::write(folder.path().join("g/cgroup.threads"), threads).expect("a file");
        let group = Cgroup::open_below(folder.path(), "/g").expect("open");
        // One has the new one, and the other not yet.
        set(tids[0], FRONT);
        set(tids[1], IDLE);
        let mark = Mark {
            value: FRONT,
            replaced: Some(IDLE),
            game: false,
        };
        let marked = group.set_attribute(MARK, &mark.text());
        let restored = marked.is_ok() && restore_group(&group);
        let after: Vec<_> = tids.iter().map(|tid| get(*tid)).collect();
        for child in &mut children {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
        match marked {
            Ok(()) => {
                let ours = |value: &Option<libc::c_long>| [Some(FRONT), Some(IDLE)].contains(value);
                assert!(restored && !after.iter().any(ours), "{after:?}");
            }
            Err(error) => {
                eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}")
            }
        }
    }

    #[test]
    fn a_priority_is_given_and_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        fs::create_dir(folder.path().join("g")).expect("a group");
        fs::write(
            folder.path().join("g/cgroup.threads"),
            format!("{}\n", child.id()),
        )
        .expect("a file");
        let group = Cgroup::open_below(folder.path(), "/g").expect("open");
        let done = set_group(&group, FRONT, &[NONE]);
        let is = get(child.id());
        let marked = group.set_attribute(MARK, &FRONT.to_string());
        let restored = marked.is_ok() && restore_group(&group);
        let after = chosen(child.id());
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!((done, is), (1, Some(FRONT)));
        match marked {
            Ok(()) => assert!(restored && after != Some(FRONT)),
            Err(error) => {
                eprintln!("SKIPPED: attributes of the kind trusted.* cannot be set here: {error}")
            }
        }
    }
}
