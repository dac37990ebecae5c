// SPDX-License-Identifier: GPL-2.0-only
//! The freezer and its guard on the host's own control groups. Skipped, with the reason, where there are none to write.

mod common;

use common::{block_on, of_class, user, wait_for, Running, Stage, Tree};
use fasttrack_bus::WireApp;
use rustix::process::{Pid, Signal};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Control groups of the host that are taken away in the end, with one app behind that has a process.
struct Groups {
    top: PathBuf,
    behind: WireApp,
    front: WireApp,
    sleeper: Child,
    _turn: MutexGuard<'static, ()>,
}

/// This process is the app in front, and can be in one control group at a time.
static TURN: Mutex<()> = Mutex::new(());

impl Groups {
    fn make(tree: &Tree) -> Option<Groups> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount = mounts
            .lines()
            .find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let Some(mount) = mount.and_then(|line| line.split(' ').nth(1)) else {
            eprintln!("SKIPPED: no control groups of version 2 are mounted");
            return None;
        };
        let top = Path::new(mount).join(format!(
            "fasttrack-test-{}-{}",
            std::process::id(),
            fastrand::u32(..)
        ));
        if let Err(error) = fs::create_dir(&top) {
            eprintln!("SKIPPED: no control group can be made: {error}");
            return None;
        }
        std::os::unix::fs::symlink(&top, tree.root().join("cg")).expect("a link");
        tree.put("proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n");
        let app = |name: &str| {
            let path = format!("{}/{name}", common::apps(user()));
            let folder = top.join(&path[1..]);
            fs::create_dir_all(&folder).expect("a group");
            let inode = fs::metadata(folder).expect("a group").ino();
            WireApp {
                cgroup: path,
                inode,
                id: name.to_string(),
                pid: 0,
            }
        };
        let (front, behind) = (app("app-front-1.scope"), app("app-behind-2.scope"));
        let sleeper = Command::new("sleep").arg("600").spawn().expect("a process");
        let groups = Groups {
            top,
            behind,
            front,
            sleeper,
            _turn: turn,
        };
        groups.put(
            &groups.behind,
            "cgroup.procs",
            &groups.sleeper.id().to_string(),
        );
        if !groups.file(&groups.behind, "cgroup.freeze").exists() {
            eprintln!("SKIPPED: these control groups cannot be frozen");
            return None;
        }
        Some(groups)
    }

    fn file(&self, app: &WireApp, name: &str) -> PathBuf {
        self.top.join(&app.cgroup[1..]).join(name)
    }

    fn put(&self, app: &WireApp, name: &str, text: &str) {
        fs::write(self.file(app, name), text).expect("written");
    }

    fn is_frozen(&self) -> bool {
        fs::read_to_string(self.file(&self.behind, "cgroup.freeze"))
            .expect("read")
            .trim()
            == "1"
    }

    /// A process of the app in front, whose state is what the tree says.
    fn in_front(&self, tree: &Tree, state: char) {
        tree.put(
            &format!("proc/{}/stat", std::process::id()),
            &format!("1 (x) {state} 1 1"),
        );
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let _ = fs::write(self.file(&self.behind, "cgroup.freeze"), "0");
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let root = self.top.parent().expect("a mount").join("cgroup.procs");
        let _ = fs::write(root, std::process::id().to_string());
        remove(&self.top);
    }
}

/// Removes a group and those below it; one whose last process has just ended may need a moment.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    for _ in 0..200 {
        if fs::remove_dir(group).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Host {
    groups: Groups,
    stage: Stage,
}

impl Host {
    /// The app in front comes there, and waits until the one behind is frozen.
    async fn freeze(&self) {
        self.stage
            .report("front", &[&self.groups.front], "")
            .await
            .expect("taken");
        wait_for("frozen", || self.groups.is_frozen());
    }
}

/// A daemon whose rung is the freezer, with an app in front that waits for storage.
async fn set(state: char) -> Option<Host> {
    if user() != 0 {
        eprintln!("SKIPPED: only root can make control groups and freeze them");
        return None;
    }
    let tree = Tree::new();
    tree.put(
        "etc/fasttrack/fasttrackd.toml",
        "[effects]\nfreezer = true\n",
    );
    let groups = Groups::make(&tree)?;
    // This process is the app in front.
    groups.put(
        &groups.front,
        "cgroup.procs",
        &std::process::id().to_string(),
    );
    groups.in_front(&tree, state);
    let stage = Stage::set(tree).await?;
    assert_eq!(stage.status().await.rung, "freezer");
    Some(Host { groups, stage })
}

/// The guard of a daemon; none between the end of one and the start of the next.
fn guard_now(daemon: u32) -> Option<u32> {
    let path = format!("/proc/{daemon}/task/{daemon}/children");
    let children = fs::read_to_string(path).expect("children");
    let first = children.split_whitespace().next()?;
    Some(first.parse().expect("a number"))
}

fn guard_of(daemon: u32) -> u32 {
    guard_now(daemon).expect("a guard")
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("sent");
}

#[test]
fn background_is_frozen_while_the_front_waits_and_no_longer() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        host.freeze().await;
        groups.in_front(&stage.tree, 'S');
        wait_for("thawed", || !groups.is_frozen());
        let status = stage.until("told", |status| status.frozen.is_empty()).await;
        assert!(status.counters["freezes"] >= 1);
        assert_eq!(
            status.counters.get("freezes that the guard has ended"),
            None
        );
        let explained = stage
            .proxy
            .explain(&groups.behind.cgroup)
            .await
            .expect("explained");
        assert!(
            explained
                .done
                .iter()
                .any(|line| line.starts_with("It was frozen ")),
            "{explained:?}"
        );
    });
}

/// At the first wait it is known who may be frozen.
#[test]
fn who_may_be_frozen_is_looked_for_before_anybody_waits() {
    block_on(async {
        let Some(host) = set('S').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let front = stage.report("front", &[&groups.front], "").await;
        front.expect("taken");
        let looked = |status: &fasttrack_bus::Status| {
            let name = "looks for groups that may be frozen";
            status.counters.get(name).is_some_and(|looks| *looks >= 1)
        };
        let status = stage.until("looked", looked).await;
        assert_eq!(status.counters.get("freezes"), None);
        groups.in_front(&stage.tree, 'D');
        host.freeze().await;
    });
}

#[test]
fn who_is_not_frozen_for_what_it_has_open_is_told_why() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let folder = format!("proc/{}/fd", groups.sleeper.id());
        let folder = stage.tree.root().join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        let open = std::os::unix::fs::symlink("/dev/snd/pcmC0D0p", folder.join("3"));
        open.expect("a link");
        let front = stage.report("front", &[&groups.front], "").await;
        front.expect("taken");
        let why = "It is not frozen: it has a sound device or a camera open.";
        let begin = Instant::now();
        loop {
            let told = stage.proxy.explain(&groups.behind.cgroup).await;
            let done = told.expect("explained").done;
            if done.iter().any(|line| line == why) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{done:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!groups.is_frozen());
    });
}

/// In `LimitMEMLOCK=` of the unit. What is kept counts by its addresses, and a thread may have had many.
#[test]
fn what_is_kept_in_memory_has_room_after_a_look_for_groups() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        host.freeze().await;
        let path = format!("/proc/{}/status", host.stage.daemon.0.id());
        let status = fs::read_to_string(path).expect("a process");
        let kept = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let kib = kept.and_then(|kept| kept.split_whitespace().next()?.parse().ok());
        let kib: u64 = kib.expect("a number");
        assert!(kib < 32 << 10, "{kib} KiB");
    });
}

/// As in another network namespace: the kernel's list has none of its sockets.
#[test]
fn nobody_is_frozen_while_it_is_not_known_whom_the_front_waits_for() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let link = format!("proc/{}/fd/3", std::process::id());
        let place = stage.tree.root().join(link);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink("socket:[4294967295]", &place).expect("a link");
        let front = stage.report("front", &[&groups.front], "").await;
        front.expect("taken");
        let unknown = |status: &fasttrack_bus::Status| {
            let mut errors = status.errors.iter();
            errors.any(|error| error.contains("not known, so nothing is frozen"))
        };
        let status = stage.until("told", unknown).await;
        assert!(status.counters["looks at sockets that are not listed"] >= 1);
        assert_eq!(status.counters.get("freezes"), None);
        assert!(!groups.is_frozen());
        fs::remove_file(place).expect("closed");
        stage
            .report("nobody", &[], "unfocused")
            .await
            .expect("taken");
        host.freeze().await;
    });
}

/// power-profiles-daemon.
struct Profiles(&'static str);

#[zbus::interface(name = "org.freedesktop.UPower.PowerProfiles")]
impl Profiles {
    #[zbus(property)]
    fn active_profile(&self) -> &str {
        self.0
    }
}

#[test]
fn nothing_is_frozen_while_the_battery_is_to_be_saved() {
    const PATH: &str = "/org/freedesktop/UPower/PowerProfiles";
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let profiles = stage.bus.connect().await;
        let server = profiles.object_server();
        let object = Profiles("balanced");
        server.at(PATH, object).await.expect("an object");
        let name = "org.freedesktop.UPower.PowerProfiles";
        profiles.request_name(name).await.expect("a name");
        host.freeze().await;
        let change = |profile: &'static str| async move {
            let object = server.interface::<_, Profiles>(PATH).await.expect("there");
            object.get_mut().await.0 = profile;
            let emitter = object.signal_emitter();
            let told = object.get().await.active_profile_changed(emitter).await;
            told.expect("told");
        };
        let off = "freezer: off while the battery is to be saved.".to_string();
        change("power-saver").await;
        stage
            .until("it is told", |status| status.notes.contains(&off))
            .await;
        wait_for("thawed", || !groups.is_frozen());
        let before = stage.status().await.counters["freezes"];
        for _ in 0..3 {
            // The app in front still waits for storage.
            stage
                .report("nobody", &[], "unfocused")
                .await
                .expect("taken");
            stage
                .report("front", &[&groups.front], "")
                .await
                .expect("taken");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(stage.status().await.counters["freezes"], before);
        assert!(!groups.is_frozen());
        change("performance").await;
        stage
            .until("it is told", |status| !status.notes.contains(&off))
            .await;
        host.freeze().await;
    });
}

#[test]
#[ignore = "a measurement"]
fn how_long_a_frozen_app_takes_to_answer() {
    const CALLS: usize = 100;
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let mut server = Running(
            Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("cat"),
        );
        groups.put(&groups.behind, "cgroup.procs", &server.0.id().to_string());
        let mut to = server.0.stdin.take().expect("a pipe");
        let mut from = server.0.stdout.take().expect("a pipe");
        let mut took = Vec::new();
        for _ in 0..CALLS {
            groups.in_front(&stage.tree, 'D');
            host.freeze().await;
            // It has what it read, and asks the app behind.
            groups.in_front(&stage.tree, 'S');
            let begin = Instant::now();
            to.write_all(b"x").expect("asked");
            from.read_exact(&mut [0]).expect("answered");
            took.push(begin.elapsed());
        }
        took.sort();
        println!(
            "{CALLS} calls to a frozen app: answered after p50 {} ms, at most {} ms",
            took[CALLS / 2].as_millis(),
            took[CALLS - 1].as_millis()
        );
    });
}

/// power-profiles-daemon by its name before 0.20.
struct OldProfiles;

#[zbus::interface(name = "net.hadess.PowerProfiles")]
impl OldProfiles {
    #[zbus(property)]
    fn active_profile(&self) -> &str {
        "power-saver"
    }
}

#[test]
fn a_battery_saver_that_goes_saves_no_longer() {
    const NAME: &str = "net.hadess.PowerProfiles";
    block_on(async {
        let Some(host) = set('D').await else { return };
        let stage = &host.stage;
        let profiles = stage.bus.connect().await;
        let server = profiles.object_server();
        let served = server.at("/net/hadess/PowerProfiles", OldProfiles).await;
        assert!(served.expect("an object"));
        profiles.request_name(NAME).await.expect("the name");
        let saved = |status: &fasttrack_bus::Status| {
            let mut notes = status.notes.iter();
            notes.any(|note| note == "freezer: off while the battery is to be saved.")
        };
        stage.until("told", saved).await;
        profiles.release_name(NAME).await.expect("released");
        stage.until("told", |status| !saved(status)).await;
        host.freeze().await;
    });
}

#[test]
fn who_comes_to_the_front_or_can_be_heard_is_thawed() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        host.freeze().await;
        stage
            .report("perceptible", &[&groups.behind], "audio")
            .await
            .expect("taken");
        wait_for("thawed", || !groups.is_frozen());
        let before = stage.status().await.counters["freezes"];
        stage
            .report("launch", &[&groups.front], "")
            .await
            .expect("taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let status = stage.status().await;
        assert_eq!(
            (status.counters["freezes"], groups.is_frozen()),
            (before, false)
        );
        assert_eq!(
            of_class(&status, "perceptible"),
            std::slice::from_ref(&groups.behind.cgroup)
        );
    });
}

#[test]
fn a_daemon_that_is_stopped_leaves_nothing_frozen() {
    block_on(async {
        let Some(host) = set('D').await else { return };
        let (groups, stage) = (&host.groups, &host.stage);
        let daemon = stage.daemon.0.id();
        host.freeze().await;
        send(daemon, Signal::STOP);
        wait_for("thawed", || !groups.is_frozen());
        send(daemon, Signal::CONT);
        groups.in_front(&stage.tree, 'S');
        stage
            .until("it goes on", |status| status.frozen.is_empty())
            .await;
    });
}

#[test]
fn a_guard_that_is_killed_or_stopped_leaves_nothing_frozen() {
    block_on(async {
        for signal in [Signal::KILL, Signal::STOP] {
            let Some(host) = set('D').await else { return };
            let (groups, stage) = (&host.groups, &host.stage);
            let daemon = stage.daemon.0.id();
            host.freeze().await;
            // One that was too slow under load has been replaced by now.
            let guard = guard_of(daemon);
            send(guard, signal);
            groups.in_front(&stage.tree, 'S');
            wait_for("the end of the guard", || {
                fs::metadata(format!("/proc/{guard}")).is_err()
            });
            wait_for("thawed", || !groups.is_frozen());
            wait_for("another guard", || {
                guard_now(daemon).is_some_and(|next| next != guard)
            });
        }
    });
}

#[test]
fn what_both_have_left_frozen_is_thawed_by_the_next() {
    block_on(async {
        let Some(mut host) = set('D').await else {
            return;
        };
        let daemon = host.stage.daemon.0.id();
        host.freeze().await;
        let guard = guard_of(daemon);
        send(daemon, Signal::STOP);
        send(guard, Signal::KILL);
        send(daemon, Signal::KILL);
        host.stage.daemon.0.wait().expect("ended");
        if !host.groups.is_frozen() {
            eprintln!("SKIPPED: it was thawed before both were killed");
            return;
        }
        let program = env!("CARGO_BIN_EXE_fasttrackd");
        let root = host.stage.tree.root();
        let output = Command::new(program)
            .arg("--root")
            .arg(root)
            .arg("--restore")
            .output()
            .expect("run");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("1 control groups"));
        assert!(!host.groups.is_frozen());
    });
}

#[test]
fn two_hundred_kills_leave_nothing_frozen() {
    block_on(async {
        let Some(mut host) = set('D').await else {
            return;
        };
        let mut random = fastrand::Rng::with_seed(1);
        let (mut frozen, mut longest) = (0, Duration::ZERO);
        for _ in 0..200 {
            host.stage
                .report("front", &[&host.groups.front], "")
                .await
                .expect("taken");
            std::thread::sleep(Duration::from_micros(random.u64(0..20_000)));
            frozen += u32::from(host.groups.is_frozen());
            send(host.stage.daemon.0.id(), Signal::KILL);
            let begin = Instant::now();
            wait_for("thawed", || !host.groups.is_frozen());
            longest = longest.max(begin.elapsed());
            host.stage.daemon.0.wait().expect("ended");
            host.stage.daemon = common::daemon(host.stage.tree.root(), &host.stage.bus.address);
            common::until_there(&host.stage.connection).await;
        }
        println!(
            "200 kills, {frozen} of them while frozen; all thawed after {longest:?} at the latest"
        );
        assert!(frozen > 0);
    });
}
