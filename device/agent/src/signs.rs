// SPDX-License-Identifier: GPL-2.0-only
//! Signs that a source may be able to tell that could not before: a socket of a compositor or a server appears, the
//! session's environment is set, a source has ended. One thread waits for them, and nothing wakes it otherwise. Any user
//! may write where X servers have their sockets: what is none, or another user's, is no sign.

use crate::env::Env;
use crate::fault::Fault;
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use std::mem::MaybeUninit;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Folders of the runtime directory in which compositors have their sockets.
const FOLDERS: [&str; 2] = ["hypr", "i3"];
/// Where X servers have theirs.
const X11: &str = "/tmp/.X11-unix";
/// What sockets of compositors, buses and PipeWire are called, and folders that hold some.
const NAMES: [&str; 7] = [
    "wayland-",
    "sway-ipc.",
    "niri.",
    "hypr",
    "i3",
    "pipewire-0",
    "bus",
];

/// How a thread says something to the one that waits.
#[derive(Debug, Clone)]
pub struct Wake {
    event: Arc<OwnedFd>,
    said: Arc<Mutex<Vec<Said>>>,
}

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The environment of the session was set.
    Environment,
    /// A source has ended: its name and number, and whether it has failed.
    Ended(&'static str, u64, bool),
}

impl Wake {
    /// For nobody yet.
    pub fn new() -> Result<Wake, Fault> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake {
            event: Arc::new(event),
            said: Arc::default(),
        })
    }

    /// Says something.
    pub fn say(&self, what: Said) {
        self.said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
        // A counter that is full wakes, too.
        let _ = rustix::io::write(&*self.event, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<Said> {
        let _ = rustix::io::read(&*self.event, &mut [0; 8][..]);
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What was seen.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// A socket has appeared, or a folder of some.
    pub socket: bool,
    /// What threads have said.
    pub said: Vec<Said>,
}

/// Waits for signs.
pub struct Signs {
    wake: Wake,
    inotify: OwnedFd,
    runtime: Option<PathBuf>,
    /// Number of the watch on that directory, which others use as well.
    shared: Option<i32>,
    /// Where X servers have their sockets, and the number of the watch on it.
    servers: PathBuf,
    x11: Option<i32>,
}

/// Whether a file of this name in the runtime directory is a sign.
pub fn is_sign(name: &str) -> bool {
    !name.ends_with(".lock") && NAMES.iter().any(|begin| name.starts_with(begin))
}

/// Whether a file is the socket of an X server: `X` and a number, root's or this user's.
fn is_server(folder: &Path, name: &str) -> bool {
    let number = name.strip_prefix('X').unwrap_or("");
    let known = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let own = [0, rustix::process::geteuid().as_raw()];
    let file = known.then(|| folder.join(name).symlink_metadata());
    file.is_some_and(|file| {
        file.is_ok_and(|file| file.file_type().is_socket() && own.contains(&file.uid()))
    })
}

impl Signs {
    /// In a session's runtime directory, and where X servers are.
    pub fn new(env: &Env, wake: Wake) -> Result<Signs, Fault> {
        Signs::with(env, wake, PathBuf::from(X11))
    }

    fn with(env: &Env, wake: Wake, servers: PathBuf) -> Result<Signs, Fault> {
        let mut signs = Signs {
            wake,
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            runtime: env.runtime(""),
            shared: None,
            servers,
            x11: None,
        };
        signs.watch();
        Ok(signs)
    }

    /// One that is not there is none to watch; a second watch of one is the first.
    fn watch(&mut self) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        let watch = |folder: PathBuf| inotify::add_watch(&self.inotify, folder, flags).ok();
        self.x11 = watch(self.servers.clone());
        if let Some(runtime) = &self.runtime {
            for folder in FOLDERS {
                watch(runtime.join(folder));
            }
            self.shared = watch(runtime.clone());
        }
    }

    /// Waits for a sign; for so long at most, where a bound is given.
    pub fn wait(&mut self, most: Option<Duration>) -> Result<Seen, Fault> {
        let most = most.map(|most| Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: most.subsec_nanos().into(),
        });
        let mut fds = [
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::new(&*self.wake.event, PollFlags::IN),
        ];
        poll(&mut fds, most.as_ref())?;
        let socket = self.read()?;
        if socket {
            self.watch();
        }
        Ok(Seen {
            socket,
            said: self.wake.take(),
        })
    }

    fn read(&self) -> Result<bool, Fault> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut room[..]);
        let mut sign = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    // Where events were lost, one may have been a sign.
                    sign |= name.is_none_or(|name| match Some(event.wd()) {
                        watch if watch == self.shared => is_sign(name),
                        watch if watch == self.x11 => is_server(&self.servers, name),
                        _ => true,
                    });
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(sign),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_any_user_may_write_sockets_of_x_servers_alone_are_signs() {
        let servers = tempfile::tempdir().expect("a folder");
        let wake = Wake::new().expect("an eventfd");
        let path = servers.path().to_path_buf();
        let mut signs = Signs::with(&Env::default(), wake, path).expect("signs");
        let mut soon = || signs.wait(Some(Duration::from_millis(1))).expect("waited");
        let bind = |name: &str| {
            std::os::unix::net::UnixListener::bind(servers.path().join(name)).expect("a socket")
        };
        std::fs::write(servers.path().join("X1"), "").expect("a file");
        let _others = ["X", "Xa", "x2", "wayland-0"].map(bind);
        std::os::unix::fs::symlink("X2", servers.path().join("X3")).expect("a link");
        assert!(!soon().socket);
        let _server = bind("X2");
        assert!(soon().socket);
        let other = rustix::fs::Uid::from_raw(rustix::process::geteuid().as_raw() ^ 0x1_0000);
        let moved = servers.path().join("moved");
        let _foreign = bind("moved");
        // Root alone can make one that is another user's.
        if rustix::fs::chown(&moved, Some(other), None).is_ok() {
            std::fs::rename(&moved, servers.path().join("X4")).expect("a name");
            assert!(!soon().socket);
        }
    }

    #[test]
    fn sockets_are_signs_and_other_files_are_none() {
        let runtime = tempfile::tempdir().expect("a folder");
        let path = runtime.path().to_str().expect("a path");
        let env = Env::of([("XDG_RUNTIME_DIR", path)]);
        let wake = Wake::new().expect("an eventfd");
        let mut signs = Signs::new(&env, wake.clone()).expect("signs");
        let put = |name: &str| std::fs::write(runtime.path().join(name), "").expect("a file");
        let mut soon = || signs.wait(Some(Duration::from_millis(1))).expect("waited");
        assert_eq!(soon(), Seen::default());
        put("dconf-1");
        put("wayland-1.lock");
        assert!(!soon().socket);
        put("sway-ipc.1000.7.sock");
        assert!(soon().socket);
        std::fs::create_dir(runtime.path().join("i3")).expect("a folder");
        assert!(soon().socket);
        put("i3/ipc-socket.7");
        assert!(soon().socket);
        wake.say(Said::Environment);
        wake.say(Said::Ended("sway", 3, true));
        let said = vec![Said::Environment, Said::Ended("sway", 3, true)];
        assert_eq!(soon().said, said);
        assert_eq!(soon(), Seen::default());
    }
}
