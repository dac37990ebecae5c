// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's ear on the bus: it takes from the socket what has come, and hands on what is worth reading.
//!
//! To read a message costs the daemon 13 µs, and to see by its head that it need not be read a fraction of one. Calls
//! that want no answer are never handed on: who is honest waits for the answer, and so cannot send faster than it is
//! served. Nor are calls that bring descriptors, since none takes any. Of the others each sender has a share, of calls
//! and of their bytes, and all that are no agents have one together: a call stays in memory until it is answered. While
//! messages are dropped the socket is read a hundred times a second and not for each of them.

use crate::agents::Agents;
use crate::frame::{self, Frame, Head};
use crate::input::Input;
use crate::rate::Bucket;
use crate::system::now;
use fasttrack_config::Reports;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;
use zbus::address::transport::{Transport, Unix, UnixSocket};
use zbus::connection::socket::{ReadHalf, Socket, Split};
use zbus::Address;

/// Bytes that are taken from the socket at once: some fifty reports.
const ROOM: usize = 16 << 10;
/// Longest call that is handed on, bytes: sixteen apps, each with the longest path and id, are half of it.
const CALL_MOST: usize = 64 << 10;
/// Longest answer or signal: logind's list of ten thousand sessions.
const TOLD_MOST: usize = 1 << 20;
/// After messages were dropped and all has been read, s: an honest report is so late at most, in a flood.
const PAUSE: Duration = Duration::from_millis(10);
/// How much more a connection may say than its user's reports, which are counted after they are read.
const OVER_REPORTS: u32 = 2;
/// What all that are no agents may ask in a second, and at once.
const STRANGERS: (u32, u32) = (500, 1000);
/// Length of a call for which there is a share, bytes: a report is some hundred. Read, it is some five times as long.
const CALL_MEAN: u32 = 1 << 10;
/// Senders that are remembered at most. The bus gives a user 256 connections.
const SENDERS_MOST: usize = 1024;

/// Who may still say something.
#[derive(Debug)]
struct Gate {
    limits: Reports,
    agents: Agents,
    senders: HashMap<String, Share>,
    strangers: Share,
}

/// What somebody may still send.
#[derive(Debug)]
struct Share {
    calls: Bucket,
    bytes: Bucket,
}

impl Share {
    /// So many calls in a second, and at once; one of the longest is never too long.
    fn new(per_second: u32, burst: u32) -> Share {
        let bucket =
            |per_second: u32, burst| Bucket::new(Duration::from_secs(1) / per_second.max(1), burst);
        let bytes = (burst * CALL_MEAN).max(CALL_MOST as u32);
        Share {
            calls: bucket(per_second, burst),
            bytes: bucket(per_second * CALL_MEAN, bytes),
        }
    }

    fn take(&mut self, length: usize, now: Duration) -> bool {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.calls.take(now) && self.bytes.take_many(now, length)
    }
}

impl Gate {
    fn new(limits: &Reports, agents: Agents) -> Gate {
        Gate {
            limits: limits.clone(),
            agents,
            senders: HashMap::new(),
            strangers: Share::new(STRANGERS.0, STRANGERS.1),
        }
    }

    fn admits(&mut self, frame: &Frame, now: Duration) -> bool {
        if !frame.is_call {
            return true;
        }
        let length = frame.length;
        frame.wants_reply
            && !frame.has_descriptors
            && self.sender(frame.sender).take(length, now)
            && (self.agents.has(frame.sender) || self.strangers.take(length, now))
    }

    fn sender(&mut self, name: &str) -> &mut Share {
        if self.senders.len() >= SENDERS_MOST && !self.senders.contains_key(name) {
            self.senders.clear();
        }
        let limits = &self.limits;
        self.senders.entry(name.to_string()).or_insert_with(|| {
            Share::new(
                limits.per_second * OVER_REPORTS,
                limits.burst * OVER_REPORTS,
            )
        })
    }
}

/// Bytes that are handed on, with the descriptors that have come with them.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    at: usize,
    fds: Vec<OwnedFd>,
}

/// What has come, message by message.
#[derive(Debug)]
struct Sieve {
    gate: Gate,
    /// The message that is not there as a whole yet.
    begun: Vec<u8>,
    begun_fds: Vec<OwnedFd>,
    /// Bytes of a message that are still to come and are dropped.
    skip: usize,
    kept: VecDeque<Part>,
    dropped: u64,
}

impl Sieve {
    fn new(gate: Gate) -> Sieve {
        Sieve {
            gate,
            begun: Vec::new(),
            begun_fds: Vec::new(),
            skip: 0,
            kept: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Takes what was read. The kernel ends a read with what descriptors have come with, and the bus sends them with the
    /// first bytes of a message: they belong to the last message of it.
    fn put(&mut self, bytes: &[u8], fds: Vec<OwnedFd>, now: Duration) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.begun.extend(&bytes[skipped..]);
        let mut at = 0;
        let mut kept = false;
        while let Some((length, keep)) = judge(&self.begun[at..], &mut self.gate, now) {
            let end = self.begun.len().min(at + length);
            self.skip = at + length - end;
            let fds = std::mem::take(&mut self.begun_fds);
            match keep {
                true => self.kept.push_back(Part {
                    bytes: self.begun[at..end].to_vec(),
                    at: 0,
                    fds,
                }),
                false => self.dropped += 1,
            }
            (at, kept) = (end, keep);
        }
        self.begun.drain(..at);
        match self.kept.back_mut() {
            _ if !self.begun.is_empty() => self.begun_fds.extend(fds),
            Some(last) if kept => last.fds.extend(fds),
            _ => {}
        }
    }

    /// Hands on.
    fn take(&mut self, to: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
        let part = self.kept.front_mut()?;
        let count = to.len().min(part.bytes.len() - part.at);
        to[..count].copy_from_slice(&part.bytes[part.at..part.at + count]);
        part.at += count;
        let fds = std::mem::take(&mut part.fds);
        if part.at == part.bytes.len() {
            self.kept.pop_front();
        }
        Some((count, fds))
    }
}

/// How long the message is that begins here, and whether it is kept; none while that cannot be told.
fn judge(bytes: &[u8], gate: &mut Gate, now: Duration) -> Option<(usize, bool)> {
    let most = |is_call| if is_call { CALL_MOST } else { TOLD_MOST };
    match frame::head(bytes) {
        Head::Begun(length, is_call) if length > most(is_call) => Some((length, false)),
        Head::Short | Head::Begun(..) => None,
        Head::Whole(frame) if frame.length > most(frame.is_call) => Some((frame.length, false)),
        // It is handed on as a whole.
        Head::Whole(frame) if frame.length > bytes.len() => None,
        Head::Whole(frame) => Some((frame.length, gate.admits(&frame, now))),
        // A line of the handshake.
        Head::Bad => Some((bytes.iter().position(|byte| *byte == b'\n')? + 1, true)),
    }
}

/// The socket.
pub struct Inlet {
    stream: UnixStream,
    sieve: Sieve,
    to: UnboundedSender<Input>,
}

impl Inlet {
    /// Connects to a bus: this one, or the system's.
    pub async fn connect(
        address: Option<&str>,
        limits: &Reports,
        agents: Agents,
        to: UnboundedSender<Input>,
    ) -> zbus::Result<Inlet> {
        let address = match address {
            Some(address) => address.parse()?,
            None => Address::system()?,
        };
        let stream = UnixStream::connect(path(&address)?);
        let stream = stream.await.map_err(zbus::Error::from)?;
        Ok(Inlet {
            stream,
            sieve: Sieve::new(Gate::new(limits, agents)),
            to,
        })
    }
}

fn path(address: &Address) -> zbus::Result<PathBuf> {
    match address.transport() {
        Transport::Unix(unix) => file(unix),
        _ => None,
    }
    .ok_or_else(|| zbus::Error::Address(format!("{address} is no unix:path=")))
}

fn file(unix: &Unix) -> Option<PathBuf> {
    match unix.path() {
        UnixSocket::File(path) => Some(path.clone()),
        _ => None,
    }
}

impl Socket for Inlet {
    type ReadHalf = Reader;
    type WriteHalf = OwnedWriteHalf;

    fn split(self) -> Split<Reader, OwnedWriteHalf> {
        let (stream, write) = self.stream.split().take();
        let read = Reader {
            stream,
            room: vec![0; ROOM],
            sieve: self.sieve,
            to: self.to,
        };
        Split::new(read, write)
    }
}

/// The end that is read.
#[derive(Debug)]
pub struct Reader {
    stream: OwnedReadHalf,
    room: Vec<u8>,
    sieve: Sieve,
    to: UnboundedSender<Input>,
}

impl Reader {
    /// Counts what was dropped.
    fn tell(&mut self) {
        let number = std::mem::take(&mut self.sieve.dropped);
        let _ = self.to.send(Input::Unread(number));
    }
}

#[async_trait::async_trait]
impl ReadHalf for Reader {
    async fn recvmsg(&mut self, to: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        loop {
            if let Some(part) = self.sieve.take(to) {
                return Ok(part);
            }
            let (count, fds) = self.stream.recvmsg(&mut self.room).await?;
            if count == 0 {
                return Ok((0, fds));
            }
            self.sieve.put(&self.room[..count], fds, now());
            if self.sieve.dropped > 0 && count < self.room.len() {
                self.tell();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn can_pass_unix_fd(&self) -> bool {
        self.stream.can_pass_unix_fd()
    }

    async fn peer_credentials(&mut self) -> io::Result<zbus::fdo::ConnectionCredentials> {
        ReadHalf::peer_credentials(&mut self.stream).await
    }
}

#[cfg(test)]
#[path = "inlet_tests.rs"]
mod tests;
