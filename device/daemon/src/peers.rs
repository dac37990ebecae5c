// SPDX-License-Identifier: GPL-2.0-only
//! Who an app waits for: by a socket, of which the kernel has a list (`sock_diag(7)`), or as its server of a file system
//! or a disk. Freezing it would stop the app, too. So would it stop a sound or a camera, by what else a process has open.

use crate::system::System;
use rustix::net::{netlink, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;

/// Messages of netlink, and of its kind for sockets.
const DUMP_BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;
const AF_UNIX: u8 = 1;
/// Asks for the other end.
const SHOW_PEER: u32 = 4;
const ATTRIBUTE_PEER: u16 = 2;

/// Length of a message's head, and of what is said of a socket, bytes.
const HEAD: usize = 16;
const SOCKET: usize = 16;

/// Sockets of all users that are looked at, at most. A desktop has one or two thousand.
const SOCKETS_MOST: usize = 65_536;

/// Why it is not known who has the other ends of sockets of apps in front. Then it may be anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// There is more than is looked at.
    TooMany,
    /// The kernel does not give its list, for this error.
    NoList(i32),
    /// The list has not one socket of an app that has some. It is that of a network namespace.
    NotListed,
}

impl Unknown {
    /// By which it is counted.
    pub fn name(self) -> &'static str {
        match self {
            Unknown::TooMany => "looks at too much in front",
            Unknown::NoList(_) => "looks without a list of sockets",
            Unknown::NotListed => "looks at sockets that are not listed",
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::TooMany => out.write_str(
                "apps in front have more threads or descriptors, or the machine has more sockets, than are looked at",
            ),
            Unknown::NoList(error) => {
                let error = io::Error::from_raw_os_error(*error);
                write!(out, "the kernel gives no list of UNIX sockets: {error}")
            }
            Unknown::NotListed => out.write_str(
                "the kernel's list of UNIX sockets has none of an app in front, which may be in another network \
                 namespace than fasttrackd",
            ),
        }
    }
}

/// The other ends of the sockets of some apps, by inode. Each set is of one app.
pub fn peers(apps: &[HashSet<u32>]) -> Result<HashSet<u32>, Unknown> {
    peers_by(apps, dump)
}

/// The same, by who goes through the list.
fn peers_by(
    apps: &[HashSet<u32>],
    list: impl FnOnce(&mut Ends) -> io::Result<()>,
) -> Result<HashSet<u32>, Unknown> {
    let sockets = apps.iter().flatten().copied().collect();
    let mut ends = Ends::new(&sockets);
    if !sockets.is_empty() {
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        list(&mut ends).map_err(|error| Unknown::NoList(number(error)))?;
    }
    if ends.left == 0 {
        return Err(Unknown::TooMany);
    }
    // Of what kind a socket is its link does not say: some are not of UNIX.
    let unseen = |app: &HashSet<u32>| !app.is_empty() && app.is_disjoint(&ends.seen);
    if apps.iter().any(unseen) {
        return Err(Unknown::NotListed);
    }
    Ok(ends.found)
}

/// The other ends of some sockets, from a list of all.
struct Ends<'a> {
    of: &'a HashSet<u32>,
    /// Those that are in the list.
    seen: HashSet<u32>,
    found: HashSet<u32>,
    /// Sockets that are still looked at.
    left: usize,
}

impl Ends<'_> {
    fn new(of: &HashSet<u32>) -> Ends<'_> {
        Ends {
            of,
            seen: HashSet::new(),
            found: HashSet::new(),
            left: SOCKETS_MOST,
        }
    }
}

/// Devices by which a process serves a file system or a disk, by how their paths begin. Who waits for that waits in
/// uninterruptible sleep, and for anybody who uses the files: by the app in front it cannot be told.
const SERVED: [&str; 3] = ["/dev/fuse", "/dev/cuse", "/dev/ublkc"];

/// Devices by which a process plays, records or films past PipeWire, whose streams alone the agent knows.
const MEDIA: [&str; 2] = ["/dev/snd/", "/dev/video"];

/// What a descriptor leads to, where that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// A socket, by its inode.
    Socket(u32),
    /// One of [`SERVED`].
    Served,
    /// One of [`MEDIA`].
    Media,
    /// Anything else.
    Other,
}

/// What the descriptors of a process lead to.
pub fn links(system: &System, pid: u32) -> impl Iterator<Item = Link> {
    let folder = fs::read_dir(system.path(&format!("proc/{pid}/fd")));
    let entries = folder.into_iter().flatten().flatten();
    entries.map(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        link(target.to_str().unwrap_or_default())
    })
}

fn link(target: &str) -> Link {
    let is_one_of = |devices: &[&str]| devices.iter().any(|device| target.starts_with(device));
    if is_one_of(&SERVED) {
        return Link::Served;
    }
    if is_one_of(&MEDIA) {
        return Link::Media;
    }
    let number = target
        .strip_prefix("socket:[")
        .and_then(|rest| rest.strip_suffix(']'));
    let inode = number.and_then(|number| number.parse().ok());
    inode.map_or(Link::Other, Link::Socket)
}

/// Goes through all UNIX sockets, or as many as are looked at.
fn dump(ends: &mut Ends) -> io::Result<()> {
    let kind = Some(netlink::SOCK_DIAG);
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        kind,
    )?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut buffer = vec![0_u8; 32_768];
    loop {
        let (_, length) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if !parse(&buffer[..length], ends)? {
            return Ok(());
        }
    }
}

/// Asks for all sockets and their other ends.
fn request() -> Vec<u8> {
    let mut message = Vec::with_capacity(HEAD + 24);
    message.extend(40_u32.to_ne_bytes());
    message.extend(DUMP_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([AF_UNIX, 0, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(SHOW_PEER.to_ne_bytes());
    message.extend([0; 8]);
    message
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Takes the sockets of one packet. Says whether there are more packets.
fn parse(mut packet: &[u8], ends: &mut Ends) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(packet, 0), u16_at(packet, 4)) {
        let length = length as usize;
        if length < HEAD || length > packet.len() {
            return Err(io::Error::from_raw_os_error(libc::EBADMSG));
        }
        let message = &packet[HEAD..length];
        if kind == DONE || kind == ERROR {
            return last(message).map(|()| false);
        }
        ends.left = ends.left.saturating_sub(1);
        if ends.left == 0 {
            return Ok(false);
        }
        if let Some(inode) = u32_at(message, 4).filter(|inode| ends.of.contains(inode)) {
            ends.seen.insert(inode);
            ends.found.extend(peer(message));
        }
        packet = &packet[length.next_multiple_of(4).min(packet.len())..];
    }
    Ok(true)
}

/// The last message of a list: an error is a negative number.
fn last(message: &[u8]) -> io::Result<()> {
    let number = message
        .first_chunk()
        .map(|bytes| i32::from_ne_bytes(*bytes));
    match number.and_then(i32::checked_neg) {
        Some(error) if error > 0 => Err(io::Error::from_raw_os_error(error)),
        _ => Ok(()),
    }
}

/// The other end of a socket.
fn peer(message: &[u8]) -> Option<u32> {
    let mut rest = message.get(SOCKET..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        if kind == ATTRIBUTE_PEER {
            return u32_at(rest, 4);
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    #[test]
    fn the_other_end_of_a_pair_is_found() {
        let (one, other) = UnixStream::pair().expect("sockets");
        let inode = |socket: &UnixStream| {
            let link =
                fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).expect("a link");
            let text = link.to_str().expect("text").to_string();
            text["socket:[".len()..text.len() - 1]
                .parse::<u32>()
                .expect("a number")
        };
        let ours = HashSet::from([inode(&one)]);
        match peers(&[ours]) {
            Err(Unknown::NoList(_)) => eprintln!("SKIPPED: sock_diag cannot be used here"),
            found => assert_eq!(found, Ok(HashSet::from([inode(&other)]))),
        }
        let system = System::new(Path::new("/"));
        let pid = std::process::id();
        assert!(links(&system, pid).any(|link| link == Link::Socket(inode(&other))));
    }

    #[test]
    fn links_that_matter_are_told_from_others() {
        assert_eq!(link("socket:[77]"), Link::Socket(77));
        for device in ["/dev/fuse", "/dev/cuse", "/dev/ublkc0", "/dev/ublkc17"] {
            assert_eq!(link(device), Link::Served);
        }
        for device in ["/dev/snd/pcmC0D0p", "/dev/snd/seq", "/dev/video0"] {
            assert_eq!(link(device), Link::Media);
        }
        for other in [
            "/dev/null",
            "/dev/sndstat",
            "/home/dev/fuse",
            "pipe:[77]",
            "socket:[x]",
            "",
        ] {
            assert_eq!(link(other), Link::Other);
        }
    }

    /// One socket and its other end, as the kernel tells of them.
    fn message(inode: u32, peer: u32) -> Vec<u8> {
        let mut message = 40_u32.to_ne_bytes().to_vec();
        message.extend(DUMP_BY_FAMILY.to_ne_bytes());
        message.resize(HEAD + 4, 0);
        message.extend(inode.to_ne_bytes());
        message.resize(HEAD + SOCKET, 0);
        message.extend([8_u16, ATTRIBUTE_PEER].map(u16::to_ne_bytes).concat());
        message.extend(peer.to_ne_bytes());
        message
    }

    #[test]
    fn of_very_many_sockets_none_is_kept_that_is_nobody_s_and_the_look_ends() {
        let ours = HashSet::from([7]);
        let mut ends = Ends::new(&ours);
        let more = parse(&[message(7, 8), message(9, 10)].concat(), &mut ends);
        assert!(more.expect("a list"));
        assert_eq!(ends.found, HashSet::from([8]));
        let many = message(9, 10).repeat(SOCKETS_MOST);
        assert!(!parse(&many, &mut ends).expect("a list"));
        assert_eq!((ends.left, ends.found.len()), (0, 1));
        let found = peers_by(std::slice::from_ref(&ours), |ends| {
            parse(&many, ends).map(drop)
        });
        assert_eq!(found, Err(Unknown::TooMany));
    }

    /// The last message of a list.
    fn end(kind: u16, number: i32) -> Vec<u8> {
        let mut message = 20_u32.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.resize(HEAD, 0);
        message.extend(number.to_ne_bytes());
        message
    }

    #[test]
    fn without_the_whole_list_nobody_is_known_not_to_be_a_peer() {
        let ours = [HashSet::from([7])];
        let by = |list: Vec<u8>| peers_by(&ours, |ends| parse(&list, ends).map(drop));
        let whole = [message(7, 8), end(DONE, 0)].concat();
        assert_eq!(by(whole), Ok(HashSet::from([8])));
        for kind in [ERROR, DONE] {
            let refused = [message(7, 8), end(kind, -libc::ENOENT)].concat();
            assert_eq!(by(refused), Err(Unknown::NoList(libc::ENOENT)));
        }
        let mut cut = message(7, 8);
        cut.pop();
        assert_eq!(by(cut), Err(Unknown::NoList(libc::EBADMSG)));
        // As of another network namespace.
        for list in [end(DONE, 0), message(9, 10)] {
            assert_eq!(by(list), Err(Unknown::NotListed));
        }
    }

    #[test]
    fn each_app_in_front_has_a_socket_in_the_list_or_none_at_all() {
        let list = message(7, 8);
        let by = |apps: &[HashSet<u32>]| peers_by(apps, |ends| parse(&list, ends).map(drop));
        let (known, other) = (HashSet::from([7, 99]), HashSet::from([99]));
        let one = by(&[known.clone(), HashSet::new()]);
        assert_eq!(one, Ok(HashSet::from([8])));
        assert_eq!(by(&[known, other]), Err(Unknown::NotListed));
        let unasked = peers_by(&[HashSet::new()], |_| panic!("no list is needed"));
        assert_eq!(unasked, Ok(HashSet::new()));
    }

    #[test]
    fn no_packet_makes_it_panic() {
        let mut packet = 24_u32.to_ne_bytes().to_vec();
        packet.extend(DUMP_BY_FAMILY.to_ne_bytes());
        packet.resize(24, 1);
        fasttrack_fuzz::mutate(&packet, |packet| {
            let _ = parse(packet, &mut Ends::new(&HashSet::new()));
        });
    }
}
