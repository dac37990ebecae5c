// SPDX-License-Identifier: GPL-2.0-only
//! The patched kernel told without a daemon, as on Android, where there is no D-Bus: UIDs in front and perceptible, and
//! the ranges of apps' UIDs (`Documentation/ABI/testing/sysfs-kernel-fasttrack`).

use crate::fault::Fault;
use crate::merge::Trouble;
use crate::sink::Sink;
use fasttrack_bus::{lease_ms, BEAT};
use fasttrack_detector::report::{AppRef, Report};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where the kernel's files are.
pub const FOLDER: &str = "/sys/kernel/fasttrack";
/// Android's apps, the sandboxes of their SDKs, and isolated processes, of each user.
const APPS: &str = "10000-19999 20000-29999 90000-99999";

/// Writes the kernel's lists.
pub struct Knobs {
    folder: PathBuf,
    /// Whether FastTrack was on before.
    was_on: bool,
    heard: BTreeSet<u32>,
    /// Whether somebody is in front.
    front: Arc<Mutex<bool>>,
    beat: std::thread::Thread,
}

/// The UIDs of apps that are called by them.
fn uids(apps: &[AppRef]) -> BTreeSet<u32> {
    let uid = |app: &AppRef| app.cgroup.rsplit_once("/uid_")?.1.parse().ok();
    apps.iter().filter_map(uid).collect()
}

fn words(uids: &BTreeSet<u32>) -> String {
    let words: Vec<String> = uids.iter().map(u32::to_string).collect();
    words.join(" ") + "\n"
}

impl Knobs {
    /// Switches the kernel's part on, with empty lists: an agent that was killed has left its own.
    pub fn new(folder: &Path) -> Result<Knobs, Fault> {
        let put = |name: &str, text: &str| write(folder, name, text);
        for list in ["foreground_uids", "perceptible_uids"] {
            put(list, "\n")?;
        }
        let was_on = fs::read_to_string(folder.join("enabled")).is_ok_and(|on| on.trim() == "1");
        put("app_uids", APPS)?;
        put("lease_ms", &lease_ms())?;
        put("enabled", "1")?;
        let front = Arc::new(Mutex::new(false));
        let (place, seen) = (folder.to_path_buf(), Arc::clone(&front));
        let thread = std::thread::spawn(move || loop {
            let front = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            if !front {
                std::thread::park();
                continue;
            }
            // A write that fails is tried again at the next beat.
            let _ = write(&place, "lease_ms", &lease_ms());
            std::thread::park_timeout(BEAT);
        });
        Ok(Knobs {
            folder: folder.to_path_buf(),
            was_on,
            heard: BTreeSet::new(),
            front,
            beat: thread.thread().clone(),
        })
    }

    fn front(&self, apps: &[AppRef]) -> Result<(), Fault> {
        let uids = uids(apps);
        write(&self.folder, "foreground_uids", &words(&uids))?;
        *self.front.lock().unwrap_or_else(PoisonError::into_inner) = !uids.is_empty();
        self.beat.unpark();
        Ok(())
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Fault> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| Fault(format!("{}: {error}", path.display())))
}

impl Sink for Knobs {
    fn take(&mut self, report: &Report) -> Result<(), Fault> {
        match report {
            Report::Front(apps) => self.front(apps),
            Report::Nobody(_) | Report::Ambiguous(_) | Report::CannotTell(_) => self.front(&[]),
            Report::Perceptible { app, on, .. } => {
                for uid in uids(std::slice::from_ref(app)) {
                    match on {
                        true => drop(self.heard.insert(uid)),
                        false => drop(self.heard.remove(&uid)),
                    }
                }
                write(&self.folder, "perceptible_uids", &words(&self.heard))
            }
            // Its processes have the state of the front from their beginning.
            Report::Launch(_) | Report::Window(_) => Ok(()),
        }
    }

    fn trouble(&mut self, _: &Trouble) -> Result<(), Fault> {
        // It is on standard error, and nobody else asks.
        Ok(())
    }

    /// Nobody is in front or perceptible, and FastTrack is off if it was.
    fn end(&mut self) -> Result<(), Fault> {
        let ended = [
            self.front(&[]),
            write(&self.folder, "perceptible_uids", "\n"),
            match self.was_on {
                true => Ok(()),
                false => write(&self.folder, "enabled", "0"),
            },
        ];
        // One that fails does not keep the others from being written.
        ended.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_detector::report::{Nobody, Sense};

    #[test]
    fn lists_are_written_and_emptied() {
        let folder = tempfile::tempdir().expect("a folder");
        let get = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
        let app = |cgroup: &str| AppRef {
            cgroup: cgroup.into(),
            inode: 0,
            id: String::new(),
            pid: 0,
        };
        // What an agent before has left is not believed again, even for a moment.
        for list in ["foreground_uids", "perceptible_uids"] {
            fs::write(folder.path().join(list), "10199\n").expect("a file");
        }
        let lease = folder.path().join("lease_ms");
        fs::create_dir(&lease).expect("no file");
        assert!(Knobs::new(folder.path()).is_err_and(|why| why.0.contains("lease_ms")));
        let both = (get("foreground_uids"), get("perceptible_uids"));
        assert_eq!(both, ("\n".into(), "\n".into()));
        fs::remove_dir(&lease).expect("no folder");
        let mut knobs = Knobs::new(folder.path()).expect("files");
        assert_eq!((&*get("app_uids"), &*get("enabled")), (APPS, "1"));
        assert_eq!(get("lease_ms"), lease_ms());
        let both = vec![app("/apps/uid_1010200"), app("/uid_10123"), app("/a.scope")];
        knobs.take(&Report::Front(both)).expect("written");
        assert_eq!(get("foreground_uids"), "10123 1010200\n");
        let music = |on| Report::Perceptible {
            app: app("/uid_10160"),
            sense: Sense::Audio,
            on,
        };
        knobs.take(&music(true)).expect("written");
        assert_eq!(get("perceptible_uids"), "10160\n");
        knobs.take(&music(false)).expect("written");
        knobs
            .take(&Report::Nobody(Nobody::Locked))
            .expect("written");
        assert_eq!(
            (&*get("perceptible_uids"), &*get("foreground_uids")),
            ("\n", "\n")
        );
        knobs.take(&music(true)).expect("written");
        let front = vec![app("/uid_10123")];
        knobs.take(&Report::Front(front)).expect("written");
        let left = || {
            let names = ["foreground_uids", "perceptible_uids", "enabled"];
            names.map(|name| get(name).trim().to_string())
        };
        knobs.end().expect("written");
        assert_eq!(left(), ["", "", "0"]);
        // Who had it on keeps it on.
        fs::write(folder.path().join("enabled"), "1\n").expect("a file");
        let mut knobs = Knobs::new(folder.path()).expect("files");
        knobs.end().expect("written");
        assert_eq!(left(), ["", "", "1"]);
        assert!(Knobs::new(Path::new("/nowhere"))
            .is_err_and(|why| why.0.contains("/nowhere/foreground_uids")));
    }
}
