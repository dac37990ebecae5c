// SPDX-License-Identifier: GPL-2.0-only
//! Tells when the I/O pressure of an app in front grows, without looking at it: a trigger of the kernel's
//! (Documentation/accounting/psi.rst).

use crate::input::Input;
use crate::system::System;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

/// How long tasks must have waited: a page turned, not one block read.
const WAITED: Duration = Duration::from_millis(20);

/// Of which time, for an app in front.
const WINDOW: Duration = Duration::from_secs(1);

/// The shortest time that the kernel takes from everybody, since 6.5.
const WINDOW_OF_ALL: Duration = Duration::from_secs(2);

/// Triggers at once, at most.
const GROUPS_MOST: usize = 4;

/// Watches some groups until it is dropped.
#[derive(Debug, Default)]
pub struct Pressure {
    groups: Vec<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl Pressure {
    /// Watches these groups from now on. Where there is no pressure to be had, nothing is told.
    pub fn set_groups(&mut self, system: &System, groups: &[String], to: &UnboundedSender<Input>) {
        if self.groups == groups {
            return;
        }
        self.groups = groups.to_vec();
        self.tasks.drain(..).for_each(|task| task.abort());
        for group in groups.iter().take(GROUPS_MOST) {
            if let Ok(file) = open(system, group) {
                self.tasks.push(tokio::spawn(watch(file, to.clone())));
            }
        }
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A file that has an urgent event when some task has waited for 20 ms of a time, at most once in that: half a second to
/// ten. Who has no CAP_SYS_RESOURCE gets [`WINDOW_OF_ALL`].
pub fn trigger(path: &Path, window: Duration) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let mut file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
    let text = |window: Duration| {
        let (waited, window) = (WAITED.as_micros(), window.as_micros());
        format!("some {waited} {window}\0")
    };
    match file.write_all(text(window).as_bytes()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            file.write_all(text(WINDOW_OF_ALL).as_bytes())?;
        }
        done => done?,
    }
    Ok(file)
}

fn open(system: &System, group: &str) -> io::Result<AsyncFd<File>> {
    let group = system.cgroups().join(group.trim_start_matches('/'));
    let file = trigger(&group.join("io.pressure"), WINDOW)?;
    // SAFETY: a File names one descriptor, which is open as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(file, Interest::PRIORITY) }?)
}

async fn watch(file: AsyncFd<File>, to: UnboundedSender<Input>) {
    // It ends with an error when the group has ended.
    while let Ok(mut ready) = file.ready(Interest::PRIORITY).await {
        if ready.ready().is_error() || to.send(Input::Pressure).is_err() {
            return;
        }
        ready.clear_ready();
    }
}
