// SPDX-License-Identifier: GPL-2.0-only
//! What systemd is told: `sd_notify(3)`.

use std::env;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// systemd's socket, if it wants to be told.
#[derive(Debug, Clone)]
pub struct Notify {
    address: Option<SocketAddr>,
}

impl Notify {
    /// By the environment. Children do not inherit it.
    pub fn from_environment() -> Notify {
        let name = env::var("NOTIFY_SOCKET").unwrap_or_default();
        env::remove_var("NOTIFY_SOCKET");
        Notify {
            address: address(&name).ok(),
        }
    }

    /// Tells it something, such as `READY=1`. That it does not listen is no error.
    pub fn tell(&self, what: &str) {
        if let Some(address) = &self.address {
            let _ = UnixDatagram::unbound()
                .and_then(|socket| socket.send_to_addr(what.as_bytes(), address));
        }
    }
}

/// Microseconds after which systemd takes this process for hung.
pub fn watchdog_us() -> Option<u64> {
    let ours = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
    env::var("WATCHDOG_USEC")
        .ok()
        .filter(|_| ours)?
        .parse()
        .ok()
}

fn address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None if name.is_empty() => Err(io::ErrorKind::NotFound.into()),
        None => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_a_socket_by_either_kind_of_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let systemd = UnixDatagram::bind(&path).expect("a socket");
        let notify = Notify {
            address: address(path.to_str().expect("a name")).ok(),
        };
        notify.tell("READY=1");
        let mut buffer = [0; 16];
        let length = systemd.recv(&mut buffer).expect("told");
        assert_eq!(&buffer[..length], b"READY=1");
        assert!(address("@name").is_ok() && address("").is_err());
        Notify { address: None }.tell("nobody listens");
    }
}
