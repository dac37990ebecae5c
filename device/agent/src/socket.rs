// SPDX-License-Identifier: GPL-2.0-only
//! Sockets of compositors: only one that this user owns is believed.

use crate::fault::Fault;
use std::io::{BufRead, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest answer to a request. A compositor that needs longer hangs.
const ANSWER_MOST: Duration = Duration::from_secs(5);
/// Longest line of a stream of events, bytes: a list of all windows with long titles is less than a tenth.
const LINE_MOST: u64 = 4 << 20;

/// Connects, and refuses a peer of another user.
pub fn connect(path: &Path) -> Result<UnixStream, Fault> {
    let stream = UnixStream::connect(path)?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    let user = rustix::process::geteuid();
    match peer.uid == user {
        true => Ok(stream),
        false => Err(Fault(format!(
            "{} is answered by user {}: not believed",
            path.display(),
            peer.uid.as_raw()
        ))),
    }
}

/// Connects for requests, whose answers have a bound of time.
pub fn connect_for_answers(path: &Path) -> Result<UnixStream, Fault> {
    let stream = connect(path)?;
    stream.set_read_timeout(Some(ANSWER_MOST))?;
    stream.set_write_timeout(Some(ANSWER_MOST))?;
    Ok(stream)
}

/// Process that listens at a socket.
pub fn listener(path: &Path) -> Option<u32> {
    let stream = UnixStream::connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// The next line of a stream, without its end; none where the stream ends between two lines.
pub fn line<'a>(from: &mut impl BufRead, into: &'a mut Vec<u8>) -> Result<Option<&'a [u8]>, Fault> {
    into.clear();
    let read = from.by_ref().take(LINE_MOST).read_until(b'\n', into)?;
    match into.last() {
        None if read == 0 => Ok(None),
        Some(b'\n') => Ok(Some(&into[..into.len() - 1])),
        _ if read as u64 == LINE_MOST => Err(Fault::new("it sent a line without end")),
        _ => Err(Fault::new(
            "it closed the connection in the middle of a message",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    #[test]
    fn lines_end_and_half_a_line_is_a_fault() {
        let mut from = &b"one\ntwo"[..];
        let mut into = Vec::new();
        assert_eq!(line(&mut from, &mut into), Ok(Some(&b"one"[..])));
        assert!(line(&mut from, &mut into).is_err());
        assert_eq!(line(&mut from, &mut into), Ok(None));
    }

    #[test]
    fn the_listener_of_an_own_socket_is_this_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        assert!(connect(&path).is_err());
        let _socket = UnixListener::bind(&path).expect("a socket");
        assert_eq!(listener(&path), Some(std::process::id()));
        assert!(connect(&path).is_ok());
    }

    /// The user that has no file: nobody.
    const STRANGER: u32 = 65_534;

    /// The kernel keeps who has called listen(2): a thread of that user does it.
    fn of_a_stranger(path: PathBuf) -> UnixListener {
        let thread = std::thread::spawn(move || {
            // SAFETY: numbers alone, and by the kernel's call, which is for this thread and not for the process.
            let done = unsafe { libc::syscall(libc::SYS_setresuid, STRANGER, STRANGER, STRANGER) };
            assert_eq!(done, 0);
            UnixListener::bind(path).expect("a socket")
        });
        thread.join().expect("no panic")
    }

    #[test]
    fn a_stranger_s_socket_is_not_believed_where_a_link_in_an_own_folder_leads_to_it() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can listen as another user");
            return;
        }
        let (own, theirs) = (tempfile::tempdir(), tempfile::tempdir());
        let (own, theirs) = (own.expect("a folder"), theirs.expect("a folder"));
        chown(theirs.path(), Some(STRANGER), None).expect("given away");
        let socket = theirs.path().join("socket");
        let _listener = of_a_stranger(socket.clone());
        let link = own.path().join("sway-ipc.sock");
        symlink(&socket, &link).expect("a link");
        for path in [&socket, &link] {
            let Err(Fault(why)) = connect(path) else {
                panic!("{} is believed", path.display());
            };
            assert!(
                why.contains(&format!("user {STRANGER}: not believed")),
                "{why}"
            );
        }
    }
}
