// SPDX-License-Identifier: GPL-2.0-only
//! The guard: a process that freezes and thaws for the daemon, and lets nothing stay frozen.
//!
//! It alone freezes ([`crate::frozen`]). It gets orders through a socket of packets and thaws everything
//!
//! - when it is told to;
//! - when the socket closes, because the daemon has ended or was killed: a daemon that dies between its order and the
//!   guard's reading of it has ordered a freeze that ends at once;
//! - when [`FREEZE_MOST`] is over by its own clock, because the daemon is stopped or late. A stopped daemon can freeze
//!   nothing.
//!
//! After a close without a farewell it also takes back what the daemon had set ([`crate::clean`]). It does so, too, when the
//! daemon is stopped and somebody waits for storage or memory: what was set changes nothing before. That somebody waits is
//! told by the kernel ([`crate::pressure`]), so that looking at the daemon costs nothing while the machine is idle. A daemon
//! that runs is told of it, and looks at its agents. The guard's own death is covered from both sides: the daemon thaws what
//! it had ordered, and whoever starts next thaws what bears the mark.
//!
//! It does not judge who may be frozen ([`crate::candidates`]) or when ([`crate::freezer`]).

use crate::cgroup::Cgroup;
use crate::clean;
use crate::frozen;
use crate::pressure;
use crate::system::System;
use crate::waits;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FlockOperation;
use rustix::net::RecvFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longest freeze. A person notices a second; watchdogs of window systems wait for five.
pub const FREEZE_MOST: Duration = Duration::from_millis(1000);

/// How long a daemon that starts waits for the guard of an earlier one, and between two looks.
const WAIT_FOR_ANOTHER: Duration = Duration::from_secs(5);
const WAIT_STEP: Duration = Duration::from_millis(10);

/// Files below /proc/pressure by which it is known that somebody waits for what the daemon deals out.
const PRESSURES: [&str; 2] = ["io", "memory"];

/// The shortest time in which their waiting is counted: twice of it is a second, in which all is taken back.
const WINDOW: Duration = Duration::from_millis(500);

/// Largest packet, bytes: the paths of some hundred control groups.
pub const PACKET_BYTES: usize = 65_536;

/// What the daemon orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Freeze these groups, by inode and path.
    Freeze(Vec<(u64, String)>),
    /// Thaw all.
    Thaw,
    /// The daemon has taken everything back itself and ends.
    Farewell,
}

/// What the guard answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// So many groups are frozen, and so many could not be.
    Frozen(usize, usize),
    /// All are thawed; true if nobody had ordered it.
    Thawed(bool),
    /// The daemon was stopped, and what it had set was taken back.
    TakenBack,
    /// Somebody waits for storage or memory.
    Waits,
}

impl Order {
    /// As a packet.
    pub fn packet(&self) -> String {
        match self {
            Order::Thaw => "thaw".to_string(),
            Order::Farewell => "farewell".to_string(),
            Order::Freeze(groups) => {
                let mut text = "freeze".to_string();
                for (inode, path) in groups {
                    let line = format!("\n{inode} {path}");
                    if text.len() + line.len() > PACKET_BYTES {
                        break;
                    }
                    text.push_str(&line);
                }
                text
            }
        }
    }

    /// Of a packet; none where it makes no sense.
    pub fn parse(packet: &str) -> Option<Order> {
        let mut lines = packet.lines();
        match lines.next()? {
            "thaw" => Some(Order::Thaw),
            "farewell" => Some(Order::Farewell),
            "freeze" => {
                let group = |line: &str| {
                    let (inode, path) = line.split_once(' ')?;
                    Some((inode.parse().ok()?, path.to_string()))
                };
                lines.map(group).collect::<Option<_>>().map(Order::Freeze)
            }
            _ => None,
        }
    }
}

impl Answer {
    /// As a packet.
    pub fn packet(&self) -> String {
        match self {
            Answer::Frozen(frozen, failed) => format!("frozen {frozen} {failed}"),
            Answer::Thawed(late) => format!("thawed {late}"),
            Answer::TakenBack => "taken-back".to_string(),
            Answer::Waits => "waits".to_string(),
        }
    }

    /// Of a packet; none where it makes no sense.
    pub fn parse(packet: &str) -> Option<Answer> {
        let words: Vec<&str> = packet.split(' ').collect();
        match words[..] {
            ["frozen", frozen, failed] => {
                Some(Answer::Frozen(frozen.parse().ok()?, failed.parse().ok()?))
            }
            ["thawed", late] => Some(Answer::Thawed(late.parse().ok()?)),
            ["taken-back"] => Some(Answer::TakenBack),
            ["waits"] => Some(Answer::Waits),
            _ => None,
        }
    }
}

/// Looks after the daemon while somebody waits.
struct Watch {
    /// Triggers of the whole machine's pressure, as far as there are any.
    triggers: Vec<File>,
    daemon: u32,
    /// Whether everything was taken back, and the daemon has not spoken since.
    taken_back: bool,
}

impl Watch {
    /// Over the parent of this process.
    fn new(system: &System) -> Watch {
        let files = PRESSURES.map(|name| system.path(&format!("proc/pressure/{name}")));
        let triggers = files
            .iter()
            .filter_map(|path| pressure::trigger(path, WINDOW).ok());
        let parent = rustix::process::getppid();
        Watch {
            triggers: triggers.collect(),
            daemon: parent.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs()),
            taken_back: false,
        }
    }

    /// Somebody waits, or a thaw is late: takes back what a daemon that is stopped has set. Says what the daemon is to be
    /// told.
    fn look(&mut self, held: &mut Held<'_>) -> Option<Answer> {
        if !is_stopped(self.daemon) {
            self.taken_back = false;
            return Some(Answer::Waits);
        }
        if std::mem::replace(&mut self.taken_back, true) {
            return None;
        }
        held.thaw();
        clean::restore(held.system);
        Some(Answer::TakenBack)
    }
}

/// Whether a process is stopped, by a signal or by who traces it.
fn is_stopped(pid: u32) -> bool {
    // The daemon is a process of this system wherever the files of a test's are.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|line| waits::is_stopped(&line))
}

/// What is frozen, and until when.
struct Held<'a> {
    system: &'a System,
    groups: HashMap<u64, Cgroup>,
    until: Option<Instant>,
}

impl Held<'_> {
    /// Freezes what is not frozen. Says how many could not be.
    fn freeze(&mut self, groups: Vec<(u64, String)>) -> usize {
        self.until
            .get_or_insert_with(|| Instant::now() + FREEZE_MOST);
        let mut failed = 0;
        for (inode, path) in groups {
            if self.groups.contains_key(&inode) {
                continue;
            }
            if self.is_late() {
                failed += 1;
                continue;
            }
            match frozen::freeze(self.system, inode, &path) {
                Ok(group) => drop(self.groups.insert(inode, group)),
                Err(_) => failed += 1,
            }
        }
        failed
    }

    fn thaw(&mut self) {
        for (_, group) in self.groups.drain() {
            // Fails where the group has ended, and nothing is frozen then.
            let _ = frozen::thaw(&group);
        }
        self.until = None;
    }

    /// Time until the bound, for poll(); none without one.
    fn patience(&self) -> Option<Timespec> {
        let left = self.until?.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

/// Held by the guard as long as it runs: the next daemon must not set what this one is about to take back. Where it
/// cannot be made there is no lock.
fn lock(system: &System) -> Option<File> {
    crate::lock::open(system, "guard.lock").ok()
}

/// Waits until the guard of an earlier daemon has done its work. Says whether it has.
pub fn wait_for_another(system: &System) -> bool {
    let Some(file) = lock(system) else {
        return true;
    };
    for _ in 0..WAIT_FOR_ANOTHER.as_millis() / WAIT_STEP.as_millis() {
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        std::thread::sleep(WAIT_STEP);
    }
    false
}

/// Runs until the socket closes. The process that calls this is the guard.
pub fn run(system: &System, socket: &OwnedFd) -> io::Result<()> {
    let lock = lock(system);
    if let Some(file) = &lock {
        // One that is being replaced ends soon, and what is frozen cannot wait for it.
        let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    }
    let mut held = Held {
        system,
        groups: HashMap::new(),
        until: None,
    };
    let mut watch = Watch::new(system);
    let mut farewell = false;
    let mut buffer = vec![0_u8; PACKET_BYTES];
    while let Some(packet) = next_packet(socket, &mut held, &mut watch, &mut buffer)? {
        watch.taken_back = false;
        match Order::parse(&packet) {
            Some(Order::Freeze(groups)) => {
                let failed = held.freeze(groups);
                answer(socket, Answer::Frozen(held.groups.len(), failed));
            }
            Some(Order::Thaw) => {
                held.thaw();
                answer(socket, Answer::Thawed(false));
            }
            Some(Order::Farewell) => farewell = true,
            None => {}
        }
    }
    held.thaw();
    if !farewell {
        clean::restore(system);
    }
    drop(lock);
    Ok(())
}

/// The next packet; none when the socket has closed. Thaws what is late meanwhile.
fn next_packet(
    socket: &OwnedFd,
    held: &mut Held<'_>,
    watch: &mut Watch,
    buffer: &mut [u8],
) -> io::Result<Option<String>> {
    loop {
        let mut wait = vec![PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        let urgent = |file| PollFd::from_borrowed_fd(file, PollFlags::PRI);
        wait.extend(watch.triggers.iter().map(|file| urgent(file.as_fd())));
        let ready = match rustix::event::poll(&mut wait, held.patience().as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let spoken = !wait[0].revents().is_empty();
        let waits = ready > 0 && wait[1..].iter().any(|one| !one.revents().is_empty());
        drop(wait);
        // Late first: packets that come without end do not prolong a freeze.
        let late = held.is_late();
        if late {
            held.thaw();
            answer(socket, Answer::Thawed(true));
        }
        // Who has ordered no thaw may be stopped.
        if late || waits {
            if let Some(said) = watch.look(held) {
                answer(socket, said);
            }
        }
        if !spoken {
            continue;
        }
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Ok((_, length)) => {
                return Ok(Some(
                    String::from_utf8_lossy(&buffer[..length]).into_owned(),
                ))
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers, if the daemon listens: a stopped one must not stop the guard.
fn answer(socket: &OwnedFd, answer: Answer) {
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    let _ = rustix::net::send(socket, answer.packet().as_bytes(), flags);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_survive_the_socket() {
        let freeze = Order::Freeze(vec![(7, "/a b".to_string()), (8, "/c".to_string())]);
        for order in [
            freeze,
            Order::Freeze(Vec::new()),
            Order::Thaw,
            Order::Farewell,
        ] {
            assert_eq!(Order::parse(&order.packet()), Some(order));
        }
        for answer in [
            Answer::Frozen(3, 1),
            Answer::Thawed(true),
            Answer::TakenBack,
            Answer::Waits,
        ] {
            assert_eq!(Answer::parse(&answer.packet()), Some(answer));
        }
        for nonsense in ["", "frost", "freeze\nx /a", "freeze\n7"] {
            assert_eq!(Order::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_daemon_that_is_stopped_is_known() {
        use rustix::process::{kill_process, Pid, Signal, WaitOptions};
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a process");
        let pid = Pid::from_child(&child);
        let folder = tempfile::tempdir().expect("a folder");
        let mut held = Held {
            system: &System::new(folder.path()),
            groups: HashMap::new(),
            until: None,
        };
        let mut watch = Watch {
            triggers: Vec::new(),
            daemon: child.id(),
            taken_back: false,
        };
        let before = watch.look(&mut held);
        kill_process(pid, Signal::STOP).expect("sent");
        rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).expect("stopped");
        let (after, later) = (watch.look(&mut held), watch.look(&mut held));
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(
            (before, after, later),
            (Some(Answer::Waits), Some(Answer::TakenBack), None)
        );
        assert!(!is_stopped(0));
    }

    #[test]
    fn a_packet_is_never_too_large() {
        let many =
            (0..10_000).map(|inode| (inode, "/user.slice/user-1000.slice/a.scope".to_string()));
        let packet = Order::Freeze(many.collect()).packet();
        assert!(packet.len() <= PACKET_BYTES && Order::parse(&packet).is_some());
    }
}
