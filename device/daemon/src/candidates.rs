// SPDX-License-Identifier: GPL-2.0-only
//! Which control groups may be frozen, and why others may not.
//!
//! The rule is the other way round from that of weights: a group is left alone unless everything says that nobody needs
//! it. Only apps in users' app slices are looked at.

use crate::cgroup::{is_proper, user_of, Cgroup};
use crate::peers::{self, Link, Unknown};
use crate::system::System;
use crate::tree::{app_slices, children};
use crate::waits::below;
use fasttrack_config::INDEXERS;
use fasttrack_detector::{group, units, Decision, Verdict};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Parts of names of what others need to answer: compositors and shells, buses, sound, portals, input methods, keys,
/// virtual machines, lockers of the screen, bars, notices and menus.
const NEEDED: [&str; 58] = [
    "fasttrack",
    "dbus",
    "systemd",
    "pipewire",
    "wireplumber",
    "pulseaudio",
    "jack",
    "xdg-",
    "portal",
    "gvfs",
    "ibus",
    "fcitx",
    "maliit",
    "squeekboard",
    "onboard",
    "at-spi",
    "orca",
    "gnome-shell",
    "mutter",
    "gnome-session",
    "gsd-",
    "gnome-settings",
    "kwin",
    "plasma",
    "ksmserver",
    "kded",
    "sway",
    "hyprland",
    "niri",
    "weston",
    "labwc",
    "wayfire",
    "cosmic",
    "gamescope",
    "xwayland",
    "xorg",
    "keyring",
    "kwallet",
    "gpg-agent",
    "ssh-agent",
    "pinentry",
    "polkit",
    "qemu",
    "libvirt",
    "virtualbox",
    "picom",
    "compton",
    "lock",
    "screensaver",
    "waybar",
    "polybar",
    "i3bar",
    "dunst",
    "mako",
    "rofi",
    "wofi",
    "fuzzel",
    "dmenu",
];

/// Groups of one user that are looked at, at most. Who makes more keeps the rest from being frozen, and makes the look
/// no longer for others.
const APPS_MOST: usize = 256;

/// Threads in them, and descriptors of their processes, that are looked at in one look, at most. As many are of all
/// apps in front.
const THREADS_MOST: usize = 2048;
const LINKS_MOST: usize = 16_384;
/// Groups below an app's, at most: a terminal has one for each tab. They count as threads, too.
const GROUPS_MOST: usize = 256;

/// What is still looked at.
#[derive(Debug)]
struct Budget {
    threads: usize,
    links: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            threads: THREADS_MOST,
            links: LINKS_MOST,
        }
    }
}

/// Takes one of what is left.
fn spend(left: &mut usize) -> Result<(), Kept> {
    *left = left.checked_sub(1).ok_or(Kept::TooMany)?;
    Ok(())
}

/// Why a group is not frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is no app in a user's app slice.
    NoApp,
    /// Others need it to answer.
    Needed,
    /// It is background by a rule, and such services are never frozen.
    Maintenance,
    /// The configuration says so.
    Configured,
    /// It is, holds, or belongs to an app that is in front or perceptible.
    InUse,
    /// One of its threads has a real-time policy.
    RealTime,
    /// It runs a virtual machine.
    Machine,
    /// An app in front has a socket to it.
    Peer,
    /// It serves a file system or a disk.
    Server,
    /// It has a sound device or a camera open.
    Media,
    /// Its user has more threads, descriptors or groups than are looked at.
    TooMany,
    /// It is not known whom apps in front wait for: it may be this.
    Unknown(Unknown),
}

impl fmt::Display for Kept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kept::NoApp => "it is no app in a user's app slice",
            Kept::Needed => "it has the name of one that others need to answer",
            Kept::Maintenance => "it is background by a rule, and such services never are",
            Kept::Configured => "the configuration has its name in never_freeze",
            Kept::InUse => "it is, holds or belongs to an app that is in front or perceptible",
            Kept::RealTime => "one of its threads has a real-time policy",
            Kept::Machine => "it runs a virtual machine",
            Kept::Peer => "an app in front has a socket to it",
            Kept::Server => "it serves a file system or a disk",
            Kept::Media => "it has a sound device or a camera open",
            Kept::TooMany => {
                "its user has more threads, descriptors or control groups than are looked at"
            }
            Kept::Unknown(unknown) => {
                return write!(
                    out,
                    "it is not known whom apps in front wait for: {unknown}"
                );
            }
        })
    }
}

/// What is known of a group's threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Threads {
    /// One has a real-time policy.
    pub real_time: bool,
    /// One is a virtual processor.
    pub machine: bool,
}

/// Why a group is not frozen by its name alone.
pub fn by_name(path: &str, never: &[String]) -> Result<(), Kept> {
    let in_app_slice = path
        .strip_prefix("/user.slice/user-")
        .and_then(|rest| rest.split_once("/app.slice/"))
        .is_some();
    let name = units::leaf(path).to_lowercase();
    if !in_app_slice || name.ends_with(".slice") {
        return Err(Kept::NoApp);
    }
    let own = units::without_launcher(&name);
    if NEEDED.iter().any(|part| own.contains(part)) {
        return Err(Kept::Needed);
    }
    if INDEXERS.iter().any(|part| name.contains(part)) {
        return Err(Kept::Maintenance);
    }
    if never.iter().any(|part| name.contains(&part.to_lowercase())) {
        return Err(Kept::Configured);
    }
    Ok(())
}

/// The apps that are behind whenever they are not in use, whoever has spoken of them. Services that are no apps are not
/// among them, whom the app in front may wait for; nor a terminal's tab, which may be in front with it.
pub fn behind(system: &System) -> Vec<String> {
    let apps = all_apps(system);
    let apps = apps.iter().filter(|path| by_name(path, &[]).is_ok());
    let mut apps: Vec<String> = apps
        .map(|path| group::app_of(path))
        .filter(|app| units::is_one_app(units::leaf(app)))
        .map(str::to_string)
        .collect();
    apps.dedup();
    apps
}

/// Why a group is not frozen by who is in front.
pub fn by_decision(path: &str, decision: &Decision) -> Result<(), Kept> {
    let related = |verdict: &Verdict| {
        is_within(path, &verdict.app.cgroup) || is_within(&verdict.app.cgroup, path)
    };
    if decision
        .foreground
        .iter()
        .chain(&decision.perceptible)
        .any(related)
    {
        return Err(Kept::InUse);
    }
    Ok(())
}

/// Why a group is not frozen by what runs in it.
pub fn by_threads(threads: Threads) -> Result<(), Kept> {
    match threads {
        Threads {
            real_time: true, ..
        } => Err(Kept::RealTime),
        Threads { machine: true, .. } => Err(Kept::Machine),
        _ => Ok(()),
    }
}

/// Why a group is not frozen by what one of its processes has open. `peers` are the other ends of sockets of apps in
/// front.
pub fn by_link(link: Link, peers: &HashSet<u32>) -> Result<(), Kept> {
    match link {
        Link::Served => Err(Kept::Server),
        Link::Media => Err(Kept::Media),
        Link::Socket(inode) if peers.contains(&inode) => Err(Kept::Peer),
        Link::Socket(_) | Link::Other => Ok(()),
    }
}

/// Whether a path is this group or below it.
pub fn is_within(path: &str, group: &str) -> bool {
    path.strip_prefix(group)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The groups that were looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorted {
    /// Those that may be frozen, by inode and path.
    pub groups: Vec<(u64, String)>,
    /// The others, and why not.
    pub kept: Vec<(String, Kept)>,
}

/// The groups that may be frozen now. None may where it is not known whom apps in front wait for.
pub fn find(system: &System, decision: &Decision, never: &[String]) -> Result<Sorted, Unknown> {
    let peers = peers_of_front(system, decision)?;
    let mut budgets: HashMap<Option<u32>, Budget> = HashMap::new();
    let mut sorted = Sorted::default();
    for path in all_apps(system) {
        let budget = budgets.entry(user_of(&path)).or_default();
        let may = without_a_look(&path, decision, never)
            .and_then(|()| by_content(system, &path, &peers, budget));
        match may {
            Ok(()) => {
                let group = Cgroup::open_path(system, &path);
                sorted
                    .groups
                    .extend(group.map(|group| (group.inode(), path)));
            }
            Err(why) => sorted.kept.push((path, why)),
        }
    }
    Ok(sorted)
}

/// Why a group is not frozen, without a look at what runs in it.
pub fn without_a_look(path: &str, decision: &Decision, never: &[String]) -> Result<(), Kept> {
    by_name(path, never)?;
    by_decision(path, decision)
}

/// The other ends of the sockets of apps in front.
fn peers_of_front(system: &System, decision: &Decision) -> Result<HashSet<u32>, Unknown> {
    let mut budget = Budget::default();
    let front = decision.foreground.iter();
    let apps = front.map(|verdict| sockets(system, &verdict.app.cgroup, &mut budget));
    let apps: Result<Vec<_>, _> = apps.collect();
    peers::peers(&apps.map_err(|_| Unknown::TooMany)?)
}

/// The sockets of a group.
fn sockets(system: &System, group: &str, budget: &mut Budget) -> Result<HashSet<u32>, Kept> {
    let mut found = HashSet::new();
    let pids = numbers(system, group, PROCESSES, &mut budget.threads)?;
    for link in pids.iter().flat_map(|pid| peers::links(system, *pid)) {
        spend(&mut budget.links)?;
        if let Link::Socket(inode) = link {
            found.insert(inode);
        }
    }
    Ok(found)
}

/// Why a group is not frozen by what runs in it and has what open.
fn by_content(
    system: &System,
    group: &str,
    peers: &HashSet<u32>,
    budget: &mut Budget,
) -> Result<(), Kept> {
    by_threads(threads(system, group, &mut budget.threads)?)?;
    // Those that were there are among the threads.
    let mut most = THREADS_MOST;
    let pids = numbers(system, group, PROCESSES, &mut most)?;
    for link in pids.iter().flat_map(|pid| peers::links(system, *pid)) {
        spend(&mut budget.links)?;
        by_link(link, peers)?;
    }
    Ok(())
}

/// The groups in users' app slices; those of slices of the desktop in their place.
fn all_apps(system: &System) -> Vec<String> {
    let slices = app_slices(system).into_iter();
    slices.flat_map(|slice| apps_of(system, slice)).collect()
}

/// The groups in the app slice of one user, [`APPS_MOST`] of them.
fn apps_of(system: &System, slice: String) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![slice];
    let mut left = APPS_MOST;
    while left > 0 {
        let Some(slice) = open.pop() else { break };
        let mut below = children(system.cgroups(), &slice);
        below.truncate(left);
        left -= below.len();
        let (slices, apps): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|path| path.ends_with(".slice"));
        open.extend(slices);
        found.extend(apps);
    }
    found.sort();
    found
}

/// The processes of a group, and its threads, one a line.
const PROCESSES: &str = "cgroup.procs";
const THREADS: &str = "cgroup.threads";

/// The numbers in a file of a group and of those below it, if so many are left to look at.
fn numbers(
    system: &System,
    group: &str,
    file: &str,
    left: &mut usize,
) -> Result<HashSet<u32>, Kept> {
    let mut found = HashSet::new();
    if !is_proper(group) {
        return Ok(found);
    }
    let folder = system.cgroups().join(group.trim_start_matches('/'));
    // The group's own, and one for each of those that may be below it.
    let most = 1 + GROUPS_MOST.min(*left);
    let folders = below(&folder, most + 1);
    *left = left.saturating_sub(folders.len() - 1);
    if folders.len() > most {
        return Err(Kept::TooMany);
    }
    let files = folders
        .into_iter()
        .filter_map(|folder| File::open(folder.join(file)).ok());
    // The kernel makes as much of a file as is read.
    let lines = files.flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
    for number in lines.filter_map(|line| line.parse().ok()) {
        spend(left)?;
        found.insert(number);
    }
    Ok(found)
}

/// The processes of a group and of those below it, if so many are left to look at.
pub fn processes(system: &System, group: &str, left: &mut usize) -> Option<HashSet<u32>> {
    numbers(system, group, PROCESSES, left).ok()
}

fn threads(system: &System, group: &str, left: &mut usize) -> Result<Threads, Kept> {
    let mut all = Threads::default();
    for tid in numbers(system, group, THREADS, left)? {
        let line = system.read(&format!("proc/{tid}/stat")).unwrap_or_default();
        let of_it = thread(&line);
        all.real_time |= of_it.real_time;
        all.machine |= of_it.machine;
    }
    Ok(all)
}

/// Scheduling policies that are real time: `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
const REAL_TIME: [&str; 3] = ["1", "2", "6"];

/// Which of the fields behind the name is the policy: field 41 of the line, and the state is field 3.
const POLICY: usize = 41 - 3;

/// What a line of `/proc/TID/stat` says.
pub fn thread(line: &str) -> Threads {
    let Some((name, rest)) = line.rsplit_once(") ") else {
        return Threads::default();
    };
    let policy = rest.split(' ').nth(POLICY).unwrap_or("0");
    Threads {
        real_time: REAL_TIME.contains(&policy),
        machine: name.ends_with("/KVM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_detector::report::AppRef;
    use fasttrack_detector::Rule;
    use std::fs;
    use std::time::Duration;

    const APPS: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";

    fn named(name: &str) -> Result<(), Kept> {
        by_name(&format!("{APPS}/{name}"), &["steam".to_string()])
    }

    #[test]
    fn apps_alone_are_frozen() {
        assert_eq!(named("app-gnome-firefox-1234.scope"), Ok(()));
        assert_eq!(named("app-flatpak-org.gimp.GIMP-77.scope"), Ok(()));
        for launcher in ["fasttrack", "sway", "niri", "Hyprland", "cosmic"] {
            assert_eq!(named(&format!("app-{launcher}-firefox-7.scope")), Ok(()));
        }
        for (name, why) in [
            ("app-org.gnome.Terminal.slice", Kept::NoApp),
            ("pipewire-pulse.service", Kept::Needed),
            ("app-org.kde.KWin-1.scope", Kept::Needed),
            ("xdg-desktop-portal.service", Kept::Needed),
            ("app-gnome-ibus-1.scope", Kept::Needed),
            ("app-sway-sway-1.scope", Kept::Needed),
            ("app-fasttrack-i3lock-7.scope", Kept::Needed),
            ("app-sway-fcitx5-0a-1b.scope", Kept::Needed),
            ("app-keyring.scope", Kept::Needed),
            ("app-gnome\\x2dkeyring@autostart.service", Kept::Needed),
            ("dbus-:1.2-org.x.Y@0.service", Kept::Needed),
            ("kde-baloo.service", Kept::Maintenance),
            ("app-Steam-1.scope", Kept::Configured),
        ] {
            assert_eq!(named(name), Err(why), "{name}");
        }
        for path in [
            "/system.slice/packagekit.service",
            "/user.slice/user-1000.slice/session-3.scope",
            "/user.slice/user-1000.slice/user@1000.service/session.slice/x.service",
            "/machine.slice/vm.scope",
            "/",
        ] {
            assert_eq!(by_name(path, &[]), Err(Kept::NoApp), "{path}");
        }
    }

    #[test]
    fn apps_are_behind_and_tabs_and_services_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        for name in [
            "app-gnome-firefox-1.scope",
            "app-org.gnome.Terminal.slice/vte-spawn-1.scope",
            "app-org.gnome.Terminal.slice/gnome-terminal-server.service",
            "vte-spawn-2.scope",
            "app-ghostty-surface-transient-3.scope",
            "evolution-source-registry.service",
            "app-gnome-ibus-1.scope",
        ] {
            fs::create_dir_all(system.cgroups().join(&APPS[1..]).join(name)).expect("a group");
        }
        let names = ["app-gnome-firefox-1.scope", "app-org.gnome.Terminal.slice"];
        assert_eq!(behind(&system), names.map(|name| format!("{APPS}/{name}")));
    }

    #[test]
    fn one_user_with_many_groups_makes_others_wait_no_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let group = |user: u32, name: &str| {
            let slice = format!("user.slice/user-{user}.slice/user@{user}.service/app.slice");
            let place = system.cgroups().join(slice).join(name);
            fs::create_dir_all(place).expect("a group");
        };
        for number in 0..2 * APPS_MOST {
            group(1000, &format!("app-{number}.scope"));
            group(1001, &format!("a-{number}.slice/b.slice/app.scope"));
        }
        group(1002, "app-x.slice/app-x-1.scope");
        let apps = all_apps(&system);
        let of = |user: u32| {
            let theirs = format!("/user-{user}.slice/");
            apps.iter().filter(|path| path.contains(&theirs)).count()
        };
        assert_eq!((of(1000), of(1001), of(1002)), (APPS_MOST, 0, 1));
    }

    fn verdict(path: &str) -> Verdict {
        Verdict {
            app: AppRef {
                cgroup: path.to_string(),
                inode: 1,
                id: String::new(),
                pid: 0,
            },
            rule: Rule::Focus,
            since: Duration::ZERO,
            session: None,
        }
    }

    #[test]
    fn what_is_used_is_not_frozen_nor_what_is_around_it() {
        let decision = Decision {
            perceptible: vec![verdict(&format!("{APPS}/a.scope"))],
            ..Decision::default()
        };
        for name in ["a.scope", "a.scope/sub"] {
            assert_eq!(
                by_decision(&format!("{APPS}/{name}"), &decision),
                Err(Kept::InUse)
            );
        }
        assert_eq!(by_decision(APPS, &decision), Err(Kept::InUse));
        assert_eq!(by_decision(&format!("{APPS}/a.scope2"), &decision), Ok(()));
    }

    fn slice(user: u32) -> String {
        format!("/user.slice/user-{user}.slice/user@{user}.service/app.slice")
    }

    /// A group of an app with one process, which has this open.
    fn app(system: &System, user: u32, name: &str, pid: u32, open: &str) {
        let folder = system.cgroups().join(&slice(user)[1..]).join(name);
        fs::create_dir_all(&folder).expect("a group");
        for file in [PROCESSES, THREADS] {
            fs::write(folder.join(file), format!("{pid}\n")).expect("a file");
        }
        let links = system.path(&format!("proc/{pid}/fd"));
        fs::create_dir_all(&links).expect("a folder");
        std::os::unix::fs::symlink(open, links.join("3")).expect("a link");
    }

    /// The names of the groups that may be frozen with nobody in front.
    fn found(system: &System) -> Vec<String> {
        let sorted = find(system, &Decision::default(), &[]).expect("known");
        let name = |(_, path): &(u64, String)| units::leaf(path).to_string();
        sorted.groups.iter().map(name).collect()
    }

    #[test]
    fn who_serves_files_or_has_a_sound_device_or_a_camera_is_not_frozen_whoever_is_in_front() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        app(&system, 1000, "rclone.service", 7, "/dev/fuse");
        app(&system, 1000, "disk.service", 8, "/dev/ublkc0");
        app(&system, 1000, "app-a-1.scope", 9, "/dev/null");
        app(&system, 1000, "app-b-1.scope", 10, "socket:[77]");
        app(&system, 1000, "player.scope", 11, "/dev/snd/pcmC0D0p");
        app(&system, 1000, "camera.scope", 12, "/dev/video0");
        assert_eq!(found(&system), ["app-a-1.scope", "app-b-1.scope"]);
    }

    #[test]
    fn who_is_kept_is_told_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        for (number, (name, open)) in [
            ("app-a-1.scope", "/dev/null"),
            ("app-camera-1.scope", "/dev/video0"),
            ("app-disk-1.scope", "/dev/ublkc0"),
            ("app-ibus-1.scope", "/dev/null"),
            ("app-loud-1.scope", "/dev/null"),
            ("app-machine-1.scope", "/dev/null"),
            ("app-mine-1.scope", "/dev/null"),
            ("app-tracker-miner-fs-3-1.scope", "/dev/null"),
            ("app-used-1.scope", "/dev/null"),
        ]
        .into_iter()
        .enumerate()
        {
            let pid = 20 + u32::try_from(number).expect("few");
            app(&system, 1000, name, pid, open);
            let policy = u32::from(name.contains("loud"));
            let task = if name.contains("machine") {
                "CPU 0/KVM"
            } else {
                "x"
            };
            let zeros = "0 ".repeat(POLICY - 1);
            let stat = system.path(&format!("proc/{pid}/stat"));
            fs::write(stat, format!("{pid} ({task}) S {zeros}{policy} 0")).expect("a file");
        }
        let decision = Decision {
            perceptible: vec![verdict(&format!("{}/app-used-1.scope", slice(1000)))],
            ..Decision::default()
        };
        let sorted = find(&system, &decision, &["mine".to_string()]).expect("known");
        let kept: Vec<_> = sorted
            .kept
            .iter()
            .map(|(path, why)| (units::leaf(path), *why))
            .collect();
        let all = [
            ("app-camera-1.scope", Kept::Media),
            ("app-disk-1.scope", Kept::Server),
            ("app-ibus-1.scope", Kept::Needed),
            ("app-loud-1.scope", Kept::RealTime),
            ("app-machine-1.scope", Kept::Machine),
            ("app-mine-1.scope", Kept::Configured),
            ("app-tracker-miner-fs-3-1.scope", Kept::Maintenance),
            ("app-used-1.scope", Kept::InUse),
        ];
        assert_eq!(kept, all);
        assert_eq!(sorted.groups.len(), 1);
    }

    #[test]
    fn each_reason_has_a_sentence_of_its_own() {
        let unknown = Kept::Unknown(Unknown::NotListed);
        let all = [
            (Kept::NoApp, "app slice"),
            (Kept::Needed, "others need"),
            (Kept::Maintenance, "background by a rule"),
            (Kept::Configured, "never_freeze"),
            (Kept::InUse, "in front or perceptible"),
            (Kept::RealTime, "real-time policy"),
            (Kept::Machine, "virtual machine"),
            (Kept::Peer, "socket to it"),
            (Kept::Server, "file system or a disk"),
            (Kept::Media, "sound device or a camera"),
            (Kept::TooMany, "more threads, descriptors or control groups"),
            (unknown, "another network namespace"),
        ];
        for (why, part) in all {
            let said = all
                .iter()
                .filter(|(other, _)| other.to_string().contains(part));
            assert_eq!(
                said.map(|(other, _)| *other).collect::<Vec<_>>(),
                [why],
                "{part}"
            );
        }
    }

    #[test]
    fn who_has_the_other_end_of_a_socket_is_a_peer() {
        let peers = HashSet::from([77]);
        assert_eq!(by_link(Link::Socket(77), &peers), Err(Kept::Peer));
        assert_eq!(by_link(Link::Served, &peers), Err(Kept::Server));
        assert_eq!(by_link(Link::Media, &peers), Err(Kept::Media));
        for other in [Link::Socket(1), Link::Other] {
            assert_eq!(by_link(other, &peers), Ok(()));
        }
    }

    #[test]
    fn one_user_with_many_threads_or_descriptors_makes_others_wait_no_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path());
        let open = |pid: u32, number: usize| {
            let links = system.path(&format!("proc/{pid}/fd"));
            for one in 0..number {
                std::os::unix::fs::symlink("/dev/null", links.join(format!("x{one}")))
                    .expect("a link");
            }
        };
        // What is looked at first may have all that there is, what comes then may not.
        app(&system, 1000, "a.scope", 7, "/dev/null");
        open(7, LINKS_MOST - 1);
        app(&system, 1000, "b.scope", 8, "/dev/null");
        let threads: String = (20..20 + THREADS_MOST)
            .map(|tid| format!("{tid}\n"))
            .collect();
        app(&system, 1001, "c.scope", 9, "/dev/null");
        let many = system.cgroups().join(&slice(1001)[1..]).join("c.scope");
        fs::write(many.join(THREADS), threads).expect("a file");
        app(&system, 1001, "d.scope", 10, "/dev/null");
        app(&system, 1002, "e.scope", 11, "/dev/null");
        // Of one that has too many groups nobody knows what is in the last.
        app(&system, 1002, "f.scope", 12, "/dev/null");
        let tabs = system.cgroups().join(&slice(1002)[1..]).join("f.scope");
        for tab in 0..=GROUPS_MOST {
            fs::create_dir(tabs.join(format!("tab-{tab}"))).expect("a group");
        }
        assert_eq!(found(&system), ["a.scope", "c.scope", "e.scope"]);
        // Nor does an app in front.
        let front = |name: &str| Decision {
            foreground: vec![verdict(&format!("{}/{name}", slice(1000)))],
            ..Decision::default()
        };
        let find = |name: &str| find(&system, &front(name), &[]);
        assert!(!find("a.scope").expect("known").groups.is_empty());
        open(8, LINKS_MOST);
        assert_eq!(find("b.scope"), Err(Unknown::TooMany));
    }

    #[test]
    fn real_time_tasks_and_virtual_processors_are_seen() {
        let line = |name: &str, policy: u32| {
            let zeros = "0 ".repeat(POLICY - 1);
            format!("7 ({name}) S {zeros}{policy} 0 0")
        };
        assert_eq!(by_threads(thread(&line("a) b", 0))), Ok(()));
        assert_eq!(by_threads(thread(&line("a) b", 2))), Err(Kept::RealTime));
        assert_eq!(
            by_threads(thread(&line("CPU 0/KVM", 0))),
            Err(Kept::Machine)
        );
    }
}
