// SPDX-License-Identifier: GPL-2.0-only
//! Mutter, headless, in control groups as systemd would make them: root's work, in a namespace of mounts of its own
//! where this machine still has the old hierarchies.

use crate::harness::{self, Agent, Session};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";
const TEST: &str = "mutter::each_switch_is_reported_by_the_attribute";
/// Says to the test that it is in that namespace.
const INSIDE: &str = "FASTTRACK_TEST_UNIFIED";
const WAITS: &str =
    "until grep -q app-fasttrack /proc/$$/cgroup; do sleep 0.01; done; exec weston-eventdemo";

/// The groups of a user's apps, which go with this.
struct Groups(PathBuf);

impl Groups {
    fn new(user: u32) -> Groups {
        let top = PathBuf::from(format!("{ROOT}/user.slice/user-{user}.slice"));
        let groups = Groups(top.join(format!("user@{user}.service/app.slice")));
        std::fs::create_dir_all(&groups.0).expect("a control group");
        groups
    }

    fn scope(&self, name: &str, user: u32) -> PathBuf {
        let path = self.0.join(format!("app-fasttrack-{name}-1.scope"));
        std::fs::create_dir_all(&path).expect("a control group");
        chown(&path, Some(user), Some(user)).expect("root");
        path
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // Those that others use stay.
        let scopes = std::fs::read_dir(&self.0)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let all = scopes.chain(self.0.ancestors().take(4).map(Path::to_path_buf));
        all.for_each(|path| drop(std::fs::remove_dir(path)));
    }
}

fn mutter(session: &mut Session) {
    let address = session.bus();
    session.set("DBUS_SYSTEM_BUS_ADDRESS", &address);
    session.set("LIBGL_ALWAYS_SOFTWARE", "1");
    session.start(&["python3", "-m", "dbusmock", "--template", "logind"]);
    let runtime = harness::runtime();
    let bus = harness::connect(&runtime, &address);
    harness::until("logind", || {
        runtime.block_on(harness::owned(&bus, "org.freedesktop.login1"))
    });
    let display = [
        "--virtual-monitor",
        "800x600",
        "--wayland-display",
        "wayland-mutter",
    ];
    session.start(
        &[
            &["mutter", "--headless", "--wayland", "--no-x11"],
            &display[..],
        ]
        .concat(),
    );
    let socket = session.path("wayland-mutter");
    harness::until("Mutter", || UnixStream::connect(&socket).ok());
    session.set("WAYLAND_DISPLAY", "wayland-mutter");
}

fn window(session: &mut Session, scope: &Path) -> u32 {
    let pid = session.start(&["sh", "-c", WAITS]);
    std::fs::write(scope.join("cgroup.procs"), pid.to_string()).expect("root");
    pid
}

fn front(agent: &Agent, id: &str) -> Instant {
    loop {
        let (at, value) = agent.next();
        match value["report"].as_str() {
            Some("front") => {
                assert_eq!(value["apps"][0]["id"], id, "{value}");
                return at;
            }
            Some("nobody") => {}
            _ => panic!("{value}"),
        }
    }
}

fn inside() {
    let mut session = Session::new();
    let groups = Groups::new(session.user());
    mutter(&mut session);
    let scopes = ["one", "two"].map(|name| groups.scope(name, session.user()));
    let agent = session.agent(&["--source", "gnome"]);
    window(&mut session, &scopes[0]);
    front(&agent, "one");
    let mut times = Vec::new();
    for _ in 0..harness::switches() / 2 {
        let pid = window(&mut session, &scopes[1]);
        front(&agent, "two");
        let begin = Instant::now();
        session.end(pid);
        times.push(front(&agent, "one").saturating_duration_since(begin));
    }
    harness::print("mutter (and as many by windows that open)", times, &agent);
    // No look at wake-ups: the stand-in of logind answers with an error, and is asked again with back-off.
    drop(session);
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
#[ignore = "needs Mutter and root"]
fn each_switch_is_reported_by_the_attribute() {
    if harness::skipped(&[
        "mutter",
        "dbus-daemon",
        "weston-eventdemo",
        "python3",
        "unshare",
    ]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: control groups of apps without systemd need root");
    } else if Path::new(ROOT).join("cgroup.procs").exists() || std::env::var_os(INSIDE).is_some() {
        inside();
    } else {
        let program = std::env::current_exe().expect("this program");
        let mount =
            format!("umount -R {ROOT} && mount -t cgroup2 none {ROOT} && exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", &mount])
            .arg(program);
        let status = command
            .args(["--ignored", "--exact", "--nocapture", TEST])
            .env(INSIDE, "1")
            .status();
        assert!(status.expect("unshare").success());
    }
}
