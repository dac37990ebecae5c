// SPDX-License-Identifier: GPL-2.0-only
//! Whether an app that has shown its first window still waits for storage, each launching app by itself and on any rung.
//!
//! Two signs, because each misses something. The I/O pressure of the app's own control group
//! (Documentation/accounting/psi.rst) counts every wait since the last look, but not those for a journal, and may be off.
//! A task in uninterruptible sleep is seen only at the look, whatever it waits for. No descriptor is kept: there may be
//! many such apps, with many threads each. Nobody looks but while such an app is
//! there: for [`fasttrack_detector::policy::LAUNCH_MOST`] at most.

use crate::cgroup::Cgroup;
use crate::system::System;
use crate::waits::waits;
use fasttrack_detector::decision::same_app;
use fasttrack_detector::report::AppRef;
use std::time::Duration;

/// How often it looks: 20 times in the two seconds that have to be without a wait.
const LOOK: Duration = Duration::from_millis(100);

struct One {
    app: AppRef,
    /// For how long its tasks have waited in all, microseconds; none where the kernel does not say.
    pressure: Option<u64>,
}

/// The launching apps with a window.
pub struct Settling {
    system: System,
    apps: Vec<One>,
    next: Duration,
}

impl Settling {
    /// Of nobody.
    pub fn new(system: &System) -> Settling {
        Settling {
            system: system.clone(),
            apps: Vec::new(),
            next: Duration::ZERO,
        }
    }

    /// These are to be watched from now on.
    pub fn follow(&mut self, now: Duration, apps: Vec<AppRef>) {
        if self.apps.is_empty() && !apps.is_empty() {
            self.next = now + LOOK;
        }
        let is_one = |one: &One| apps.iter().any(|app| same_app(app, &one.app));
        self.apps.retain(is_one);
        for app in apps {
            if !self.apps.iter().any(|one| same_app(&one.app, &app)) {
                let pressure = pressure(&self.system, &app);
                self.apps.push(One { app, pressure });
            }
        }
    }

    /// When to look next; none while there is nobody.
    pub fn deadline(&self) -> Option<Duration> {
        (!self.apps.is_empty()).then_some(self.next)
    }

    /// Those that wait, or have waited since the last look; nobody before the next look is due.
    pub fn look(&mut self, now: Duration) -> Vec<AppRef> {
        if self.deadline().is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.next = now + LOOK;
        let mut found = Vec::new();
        for one in &mut self.apps {
            let before = std::mem::replace(&mut one.pressure, pressure(&self.system, &one.app));
            let grown = matches!((before, one.pressure), (Some(was), Some(is)) if is > was);
            if grown || waits(&self.system, &one.app.cgroup) {
                found.push(one.app.clone());
            }
        }
        found
    }
}

/// The sum of `some` in the I/O pressure of a group, microseconds.
fn pressure(system: &System, app: &AppRef) -> Option<u64> {
    let text = Cgroup::open(system, app).ok()?.read("io.pressure").ok()?;
    total(&text)
}

fn total(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ')
        .find_map(|word| word.strip_prefix("total="))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_sum_of_some_is_read() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.00 total=4711\nfull avg10=0.00 total=3";
        assert_eq!(total(text), Some(4711));
        assert_eq!(total("full avg10=0.00 total=3"), None);
        assert_eq!(total("some total=x"), None);
        fasttrack_fuzz::mutate(text.as_bytes(), |bytes| {
            let _ = total(&String::from_utf8_lossy(bytes));
        });
    }

    #[test]
    fn each_app_is_known_by_its_own_pressure_and_its_own_tasks() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        for (name, tid) in [("a", 10), ("b", 11)] {
            put(
                &format!("sys/fs/cgroup/{name}/cgroup.threads"),
                &format!("{tid}\n"),
            );
            put(&format!("proc/{tid}/stat"), &format!("{tid} (x) S 1"));
        }
        put("sys/fs/cgroup/a/io.pressure", "some total=5");
        let system = System::new(root.path());
        let app = |path: &str| Cgroup::open_path(&system, path).expect("a group").app();
        let mut settling = Settling::new(&system);
        assert_eq!(settling.deadline(), None);
        let ms = Duration::from_millis;
        settling.follow(ms(1000), vec![app("/a"), app("/b")]);
        assert_eq!(settling.deadline(), Some(ms(1100)));
        assert!(settling.look(ms(1050)).is_empty());
        assert!(settling.look(ms(1100)).is_empty());
        put("sys/fs/cgroup/a/io.pressure", "some total=6");
        assert_eq!(settling.look(ms(1200)), [app("/a")]);
        put("proc/11/stat", "11 (x) D 1");
        assert_eq!(settling.look(ms(1300)), [app("/b")]);
        let open = fs::read_dir("/proc/self/fd")
            .expect("descriptors")
            .flatten();
        let kept = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        let kept: Vec<_> = kept.filter(|path| path.starts_with(root.path())).collect();
        assert!(kept.is_empty(), "{kept:?}");
        settling.follow(ms(1300), Vec::new());
        assert_eq!(settling.deadline(), None);
    }
}
