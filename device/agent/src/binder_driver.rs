// SPDX-License-Identifier: GPL-2.0-only
//! Android's binder as a client of it: calls, answers, and calls of others to an object of this process, by the driver's
//! protocol (`include/uapi/linux/android/binder.h`, version 8, on 64 bits). Everything but [`Device`] is tested against a
//! driver of the test's own; none of it has run on a phone.

use crate::fault::Fault;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::path::Path;

/// Commands and answers have the size of what follows them in their numbers.
const BC_TRANSACTION: u32 = 0x4040_6300;
const BC_REPLY: u32 = 0x4040_6301;
const BC_FREE_BUFFER: u32 = 0x4008_6303;
const BC_ACQUIRE: u32 = 0x4004_6305;
const BC_INCREFS_DONE: u32 = 0x4010_6308;
const BC_ACQUIRE_DONE: u32 = 0x4010_6309;
const BC_ENTER_LOOPER: u32 = 0x0000_630c;
const BC_REQUEST_DEATH: u32 = 0x400c_630e;
const BR_TRANSACTION: u32 = 0x8040_7202;
const BR_REPLY: u32 = 0x8040_7203;
const BR_DEAD_REPLY: u32 = 0x0000_7205;
const BR_INCREFS: u32 = 0x8010_7207;
const BR_ACQUIRE: u32 = 0x8010_7208;
const BR_DEAD_BINDER: u32 = 0x8008_720f;
const BR_FAILED_REPLY: u32 = 0x0000_7211;
/// Nobody waits for an answer.
const ONE_WAY: u32 = 1;
/// Bytes of a transaction.
const TRANSACTION: usize = 64;
/// Bytes of answers in one read.
const ROOM: usize = 4096;
/// Longest parcel that is taken, and room for parcels in all, bytes: an observer's are a hundred.
const PARCEL_MOST: u64 = 64 << 10;
const MAPPED: usize = 128 << 10;
/// UID of Android's system server.
const SYSTEM: u32 = 1000;

/// What carries commands to the kernel.
pub trait Driver: Send {
    /// Hands commands over, and waits for answers, which are added.
    fn exchange(&mut self, commands: &[u8], answers: &mut Vec<u8>) -> Result<(), Fault>;
    /// A parcel that has come.
    fn parcel(&self, address: u64, length: u64) -> Option<Vec<u8>>;
}

/// A call of somebody else to an object of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// Number of the call.
    pub code: u32,
    /// Its arguments.
    pub parcel: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Reply(Vec<u8>),
    Call(Incoming),
    Refused(&'static str),
}

/// A connection to the other processes.
pub struct Link<D: Driver> {
    driver: D,
    /// Commands that wait for the next exchange.
    commands: Vec<u8>,
    /// Buffers of parcels that were copied. They are given back after the commands that wait: with a reply's buffer the
    /// kernel drops the handles in it that nobody has acquired.
    copied: Vec<u64>,
    answers: VecDeque<Answer>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let piece = bytes
        .get(at..at + 4)
        .and_then(|piece| piece.try_into().ok());
    piece.map_or(0, u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

impl<D: Driver> Link<D> {
    /// Over a driver.
    pub fn new(driver: D) -> Link<D> {
        Link {
            driver,
            commands: Vec::new(),
            copied: Vec::new(),
            answers: VecDeque::new(),
        }
    }

    fn command(&mut self, command: u32, body: &[u8]) {
        self.commands.extend(command.to_le_bytes());
        self.commands.extend(body);
    }

    /// Calls an object of another process, and waits for its answer. OBJECTS: where in the arguments objects are.
    pub fn call(
        &mut self,
        handle: u32,
        code: u32,
        arguments: &[u8],
        objects: &[u64],
    ) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::with_capacity(TRANSACTION);
        body.extend(u64::from(handle).to_le_bytes());
        body.extend(0_u64.to_le_bytes());
        for word in [code, 0, 0, 0] {
            body.extend(word.to_le_bytes());
        }
        let sizes = [arguments.len(), std::mem::size_of_val(objects)];
        sizes
            .iter()
            .for_each(|size| body.extend((*size as u64).to_le_bytes()));
        for address in [arguments.as_ptr() as u64, objects.as_ptr() as u64] {
            body.extend(address.to_le_bytes());
        }
        self.command(BC_TRANSACTION, &body);
        loop {
            // The kernel has copied the arguments when the exchange returns.
            self.exchange()?;
            let reply = |answer: &Answer| !matches!(answer, Answer::Call(_));
            if let Some(at) = self.answers.iter().position(reply) {
                match self.answers.remove(at) {
                    Some(Answer::Reply(parcel)) => return Ok(parcel),
                    Some(Answer::Refused(why)) => return Err(Fault::new(why)),
                    _ => {}
                }
            }
        }
    }

    /// Keeps an object of another process, and asks to be told of its end. Before the next exchange after the reply that
    /// has its handle.
    pub fn keep(&mut self, handle: u32) {
        self.command(BC_ACQUIRE, &handle.to_le_bytes());
        let mut body = handle.to_le_bytes().to_vec();
        body.extend(u64::from(handle).to_le_bytes());
        self.command(BC_REQUEST_DEATH, &body);
    }

    /// From now on this thread takes calls.
    pub fn listen(&mut self) {
        self.command(BC_ENTER_LOOPER, &[]);
    }

    /// The next call; an error where an object that is kept has ended.
    pub fn incoming(&mut self) -> Result<Incoming, Fault> {
        loop {
            match self.answers.pop_front() {
                Some(Answer::Call(call)) => return Ok(call),
                Some(Answer::Refused(why)) => return Err(Fault::new(why)),
                Some(Answer::Reply(_)) => {}
                None => self.exchange()?,
            }
        }
    }

    fn exchange(&mut self) -> Result<(), Fault> {
        for address in std::mem::take(&mut self.copied) {
            self.command(BC_FREE_BUFFER, &address.to_le_bytes());
        }
        let commands = std::mem::take(&mut self.commands);
        let mut answers = Vec::new();
        self.driver.exchange(&commands, &mut answers)?;
        let mut rest = &answers[..];
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let kind = u32::from_le_bytes(*head);
            let size = (kind >> 16 & 0x3fff) as usize;
            let Some((body, after)) = after.split_at_checked(size) else {
                return Err(Fault::new("binder's driver has sent half an answer"));
            };
            self.take(kind, body);
            rest = after;
        }
        Ok(())
    }

    fn take(&mut self, kind: u32, body: &[u8]) {
        match kind {
            BR_REPLY => {
                let parcel = self.parcel(body);
                self.answers.push_back(match parcel {
                    Some(parcel) => Answer::Reply(parcel),
                    None => Answer::Refused("an answer is longer than it can be"),
                });
            }
            BR_TRANSACTION => {
                let (code, flags, from) = (word(body, 16), word(body, 20), word(body, 28));
                let parcel = self.parcel(body);
                if flags & ONE_WAY == 0 {
                    self.command(BC_REPLY, &[0; TRANSACTION]);
                }
                // Whoever else has got hold of the observer is not believed.
                if let (Some(parcel), SYSTEM) = (parcel, from) {
                    self.answers
                        .push_back(Answer::Call(Incoming { code, parcel }));
                }
            }
            BR_INCREFS => self.command(BC_INCREFS_DONE, body),
            BR_ACQUIRE => self.command(BC_ACQUIRE_DONE, body),
            BR_DEAD_BINDER => {
                let why = "Android's system server has ended or restarts";
                self.answers.push_back(Answer::Refused(why));
            }
            BR_DEAD_REPLY | BR_FAILED_REPLY => {
                self.answers
                    .push_back(Answer::Refused("binder: the call has failed"));
            }
            _ => {}
        }
    }

    /// Copies a parcel, whose memory is given back with the next exchange.
    fn parcel(&mut self, transaction: &[u8]) -> Option<Vec<u8>> {
        let (length, address) = (long(transaction, 32), long(transaction, 48));
        let parcel = match length {
            0..=PARCEL_MOST => self.driver.parcel(address, length),
            _ => None,
        };
        self.copied.push(address);
        parcel
    }
}

/// The kernel's binder.
pub struct Device {
    file: OwnedFd,
    mapped: *const u8,
}

// SAFETY: the memory belongs to this value alone, and the kernel writes to it.
unsafe impl Send for Device {}

/// `struct binder_write_read`.
#[repr(C)]
struct WriteRead {
    write_size: u64,
    write_consumed: u64,
    write_buffer: u64,
    read_size: u64,
    read_consumed: u64,
    read_buffer: u64,
}

/// `BINDER_WRITE_READ`.
const WRITE_READ: u32 = 0xc030_6201;

impl Device {
    /// Opens it.
    pub fn open(path: &Path) -> Result<Device, Fault> {
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                MAPPED,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        match mapped == libc::MAP_FAILED {
            true => Err(std::io::Error::last_os_error().into()),
            false => Ok(Device {
                file,
                mapped: mapped.cast(),
            }),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: what `open` has mapped, and nobody keeps a reference into.
        unsafe { libc::munmap(self.mapped.cast_mut().cast(), MAPPED) };
    }
}

impl Driver for Device {
    fn exchange(&mut self, commands: &[u8], answers: &mut Vec<u8>) -> Result<(), Fault> {
        let mut room = [0_u8; ROOM];
        let mut both = WriteRead {
            write_size: commands.len() as u64,
            write_consumed: 0,
            write_buffer: commands.as_ptr() as u64,
            read_size: ROOM as u64,
            read_consumed: 0,
            read_buffer: room.as_mut_ptr() as u64,
        };
        loop {
            // SAFETY: both buffers live until the call returns, with the sizes that are said.
            let done =
                unsafe { libc::ioctl(self.file.as_raw_fd(), WRITE_READ as _, &raw mut both) };
            let error = std::io::Error::last_os_error();
            match done {
                0 => break,
                _ if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Err(error.into()),
            }
        }
        let read = usize::try_from(both.read_consumed).unwrap_or(ROOM);
        answers.extend(&room[..read.min(ROOM)]);
        Ok(())
    }

    fn parcel(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        let from = usize::try_from(address.checked_sub(self.mapped as u64)?).ok()?;
        let length = usize::try_from(length).ok()?;
        if from.checked_add(length)? > MAPPED {
            return None;
        }
        // SAFETY: within what is mapped, and the kernel changes it after BC_FREE_BUFFER alone.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapped.add(from), length) };
        Some(bytes.to_vec())
    }
}

#[cfg(test)]
#[path = "binder_driver_tests.rs"]
pub(crate) mod tests;
