// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's end of the guard: starts it, orders, and does the guard's work where the guard does not.

use crate::frozen;
use crate::guard::{Answer, Order, FREEZE_MOST, PACKET_BYTES};
use crate::system::System;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How long after its bound the guard may still be silent about a thaw.
pub const GRACE: Duration = Duration::from_millis(50);

/// How the guard's process is started.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program: the daemon's own.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A guard and what it was ordered.
#[derive(Debug)]
pub struct Guard {
    system: System,
    launcher: Launcher,
    child: Child,
    socket: AsyncFd<OwnedFd>,
    ordered: Vec<(u64, String)>,
    /// When it must have thawed, by the daemon's clock.
    due: Option<Duration>,
}

impl Guard {
    /// Starts a guard.
    pub fn start(system: &System, launcher: Launcher) -> io::Result<Guard> {
        let (child, socket) = start(&launcher)?;
        Ok(Guard {
            system: system.clone(),
            launcher,
            child,
            socket,
            ordered: Vec::new(),
            due: None,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Orders a freeze.
    pub fn freeze(&mut self, now: Duration, groups: Vec<(u64, String)>) -> io::Result<()> {
        self.due = Some(now + FREEZE_MOST + GRACE);
        self.ordered.clone_from(&groups);
        self.send(&Order::Freeze(groups))
    }

    /// Orders a thaw. It must be answered soon.
    pub fn thaw(&mut self, now: Duration) -> io::Result<()> {
        self.due = self.due.map(|due| due.min(now + GRACE));
        self.send(&Order::Thaw)
    }

    /// The groups that may be frozen.
    pub fn frozen(&self) -> impl Iterator<Item = &str> {
        self.ordered.iter().map(|(_, path)| path.as_str())
    }

    /// When it is late unless it has answered.
    pub fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Waits for what it says; none when it has ended.
    pub async fn listen(&mut self) -> Option<Answer> {
        let mut buffer = [0_u8; 128];
        loop {
            let mut ready = self.socket.readable().await.ok()?;
            let got = ready.try_io(|socket| {
                Ok(rustix::net::recv(
                    socket.get_ref(),
                    &mut buffer[..],
                    RecvFlags::DONTWAIT,
                )?)
            });
            let length = match got {
                Ok(Ok((_, 0)) | Err(_)) => return None,
                Ok(Ok((_, length))) => length,
                Err(_) => continue,
            };
            let answer = std::str::from_utf8(&buffer[..length])
                .ok()
                .and_then(Answer::parse)?;
            if matches!(answer, Answer::Thawed(_) | Answer::TakenBack) {
                self.due = None;
                self.ordered.clear();
            }
            return Some(answer);
        }
    }

    /// Ends it, thaws without it, and starts another: it has ended, or is late.
    ///
    /// It is ended first: it may be at work on its order, and what it froze afterwards nobody would thaw.
    pub fn replace(&mut self) -> io::Result<()> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (inode, path) in self.ordered.drain(..) {
            frozen::thaw_ours(&self.system, inode, &path);
        }
        self.due = None;
        (self.child, self.socket) = start(&self.launcher)?;
        Ok(())
    }

    /// Says that nothing is left to take back.
    pub fn farewell(&mut self) {
        let _ = self.send(&Order::Farewell);
    }

    fn send(&mut self, order: &Order) -> io::Result<()> {
        let packet = order.packet();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(self.socket.get_ref(), packet.as_bytes(), flags)?;
        Ok(())
    }
}

fn start(launcher: &Launcher) -> io::Result<(Child, AsyncFd<OwnedFd>)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::sockopt::set_socket_send_buffer_size(&ours, 4 * PACKET_BYTES)?;
    let child = Command::new(&launcher.program)
        .args(&launcher.arguments)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()?;
    // SAFETY: an OwnedFd names one descriptor, which is open as long as it lives.
    let ours = unsafe { AsyncFd::register(ours) }?;
    Ok((child, ours))
}
