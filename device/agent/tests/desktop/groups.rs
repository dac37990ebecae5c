// SPDX-License-Identifier: GPL-2.0-only
//! Control groups of apps as systemd would make them: root's work, in a namespace of mounts of its own where this
//! machine still has the old hierarchies.

use crate::harness::Session;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ROOT: &str = "/sys/fs/cgroup";
/// Says to the test that it is in that namespace.
const INSIDE: &str = "FASTTRACK_TEST_UNIFIED";

/// The groups of a user's apps, which go with this.
pub struct Groups(PathBuf);

impl Groups {
    fn new(user: u32) -> Groups {
        let top = PathBuf::from(format!("{ROOT}/user.slice/user-{user}.slice"));
        let groups = Groups(top.join(format!("user@{user}.service/app.slice")));
        std::fs::create_dir_all(&groups.0).expect("a control group");
        groups
    }

    /// The scope of an app of the user's.
    pub fn scope(&self, name: &str, user: u32) -> PathBuf {
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

/// Starts a program in a scope: it is not there before.
pub fn start(session: &mut Session, scope: &Path, program: &str) -> u32 {
    let waits =
        format!("until grep -q app-fasttrack /proc/$$/cgroup; do sleep 0.01; done; exec {program}");
    let pid = session.start(&["sh", "-c", &waits]);
    std::fs::write(scope.join("cgroup.procs"), pid.to_string()).expect("root");
    pid
}

/// Runs TEST, whose name is NAME, in a session where all control groups are in one hierarchy.
pub fn unified(name: &str, test: fn(&mut Session, &Groups)) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: control groups of apps without systemd need root");
    } else if Path::new(ROOT).join("cgroup.procs").exists() || std::env::var_os(INSIDE).is_some() {
        let mut session = Session::new();
        let groups = Groups::new(session.user());
        test(&mut session, &groups);
        // Its processes leave the groups, which go after that.
        drop(session);
        std::thread::sleep(Duration::from_millis(200));
    } else {
        let program = std::env::current_exe().expect("this program");
        let mount =
            format!("umount -R {ROOT} && mount -t cgroup2 none {ROOT} && exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", &mount])
            .arg(program);
        let status = command
            .args(["--ignored", "--exact", "--nocapture", name])
            .env(INSIDE, "1")
            .status();
        assert!(status.expect("unshare").success());
    }
}
