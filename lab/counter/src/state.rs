// SPDX-License-Identifier: GPL-2.0-only
//! The states of FastTrack and of tracing in which paths are measured.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::path::Path;

use crate::sys;
use crate::trace::Trace;

const KNOBS: &str = "/sys/kernel/fasttrack";
const CGROUPS: &str = "/sys/fs/cgroup";

/// The apps: UIDs and control groups, all equally deep.
const APP_UIDS: &str = "10000-19999";
const FRONT_UID: u32 = 10001;
const BEHIND_UID: u32 = 10002;
const OTHER_UID: u32 = 1000;
const APP_GROUP: &str = "/apps";
const FRONT_GROUP: &str = "/apps/front";
const BEHIND_GROUP: &str = "/apps/behind";
const OTHER_GROUP: &str = "/services/other";

/// By what the configuration names apps.
enum Mode {
    Off,
    Uid,
    Cgroup,
}

/// A state, and who is measured in it.
pub struct State {
    pub name: String,
    mode: Mode,
    uid: u32,
    group: &'static str,
    trace: Trace,
}

impl State {
    /// The state with this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let off = |trace| (Mode::Off, OTHER_UID, OTHER_GROUP, trace);
        let uid = |uid| (Mode::Uid, uid, OTHER_GROUP, Trace::None);
        let cgroup = |group| (Mode::Cgroup, OTHER_UID, group, Trace::None);
        let (mode, uid, group, trace) = match name {
            "unpatched" | "off" => off(Trace::None),
            "uid-neutral" => uid(OTHER_UID),
            "uid-foreground" => uid(FRONT_UID),
            "uid-background" => uid(BEHIND_UID),
            "cgroup-neutral" => cgroup(OTHER_GROUP),
            "cgroup-foreground" => cgroup(FRONT_GROUP),
            "cgroup-background" => cgroup(BEHIND_GROUP),
            "trace-origin" => off(Trace::Origin),
            "trace-block" => off(Trace::BlockEvents),
            "trace-blktrace" => off(Trace::Blktrace),
            _ => return Err(format!("there is no state {name}")),
        };
        let name = name.to_string();
        Ok(Self {
            name,
            mode,
            uid,
            group,
            trace,
        })
    }

    /// Switches to it, has `work` done with its name and its elevator, and says what that has found, and was lost.
    pub fn measure(
        &self,
        disks: &[&'static str],
        work: &dyn Fn(&str, &str) -> Result<String, String>,
    ) -> Result<String, String> {
        let told = |error| format!("{}: {error}", self.name);
        groups()?;
        self.switch().map_err(told)?;
        let tracing = self.trace.begin(disks).map_err(told)?;
        let mut text = work(&self.name, self.elevator()).map_err(told)?;
        if let Some(lost) = tracing.end().map_err(told)? {
            text += &format!("lost {} {lost}\n", self.name);
        }
        self.switch_off().map_err(told)?;
        Ok(text)
    }

    fn lists(&self) -> [(&'static str, String); 2] {
        match self.mode {
            Mode::Cgroup => [
                ("app_cgroups", APP_GROUP.into()),
                ("foreground_cgroups", FRONT_GROUP.into()),
            ],
            _ => [
                ("app_uids", APP_UIDS.into()),
                ("foreground_uids", FRONT_UID.to_string()),
            ],
        }
    }

    fn switch(&self) -> Result<(), String> {
        if matches!(self.mode, Mode::Off) {
            return Ok(());
        }
        for (list, value) in self.lists() {
            sys::write(&Path::new(KNOBS).join(list), &value)?;
        }
        sys::write(&Path::new(KNOBS).join("enabled"), "1")
    }

    fn switch_off(&self) -> Result<(), String> {
        if matches!(self.mode, Mode::Off) {
            return Ok(());
        }
        let ejected = fs::read_to_string(Path::new(KNOBS).join("ejected")).unwrap_or_default();
        let enabled = fs::read_to_string(Path::new(KNOBS).join("enabled")).unwrap_or_default();
        if enabled.trim() != "1" {
            return Err(format!("FastTrack has switched itself off: {ejected}"));
        }
        sys::write(&Path::new(KNOBS).join("enabled"), "0")?;
        for (list, _) in self.lists() {
            sys::write(&Path::new(KNOBS).join(list), "\n")?;
        }
        Ok(())
    }

    /// The elevator that is measured: what FastTrack replaces, or its own.
    fn elevator(&self) -> &'static str {
        match self.mode {
            Mode::Off => "mq-deadline",
            _ => "fasttrack",
        }
    }

    /// Has a child, which is the app, do the work, and says what that has found.
    pub fn as_app(&self, work: impl FnOnce() -> io::Result<String>) -> Result<String, String> {
        let text = self
            .child(work)
            .map_err(|error| format!("child: {error}"))?;
        if text.ends_with('\n') {
            Ok(text)
        } else {
            Err(format!("the child has not come to its end: {text}"))
        }
    }

    fn child(&self, work: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors, both of which are owned by nobody else.
        let (mut reader, mut writer) = unsafe {
            sys::check(libc::pipe(ends.as_mut_ptr()).into())?;
            (
                fs::File::from_raw_fd(ends[0]),
                fs::File::from_raw_fd(ends[1]),
            )
        };
        // SAFETY: this process has one thread.
        let pid = sys::check(unsafe { libc::fork() }.into())?;
        if pid == 0 {
            let text = self
                .become_app()
                .and_then(|()| work())
                .unwrap_or_else(|error| error.to_string());
            let status = writer.write_all(text.as_bytes()).is_err().into();
            // SAFETY: leaves without the parent's exit handlers.
            unsafe { libc::_exit(status) };
        }
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text)?;
        // SAFETY: a child of this process, whose status is not asked for.
        sys::check(unsafe { libc::waitpid(pid as libc::pid_t, std::ptr::null_mut(), 0) }.into())?;
        Ok(text)
    }

    /// Current is the app, with all memory in place.
    fn become_app(&self) -> io::Result<()> {
        fs::write(format!("{CGROUPS}{}/cgroup.procs", self.group), "0")?;
        // SAFETY: no memory is passed.
        unsafe {
            sys::check(libc::mlockall(libc::MCL_CURRENT).into())?;
            sys::check(libc::munlockall().into())?;
            sys::check(libc::setresgid(self.uid, self.uid, self.uid).into())?;
            sys::check(libc::setresuid(self.uid, self.uid, self.uid).into())?;
        }
        Ok(())
    }
}

/// The control groups, with the controllers that a desktop has.
fn groups() -> Result<(), String> {
    for group in [
        "",
        "/apps",
        "/services",
        FRONT_GROUP,
        BEHIND_GROUP,
        OTHER_GROUP,
    ] {
        let place = Path::new(CGROUPS).join(group.trim_start_matches('/'));
        if !place.is_dir() {
            fs::create_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        }
        if group.matches('/').count() < 2 {
            sys::write(&place.join("cgroup.subtree_control"), "+memory +io")?;
        }
    }
    Ok(())
}
