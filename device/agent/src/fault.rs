// SPDX-License-Identifier: GPL-2.0-only
//! Why something has failed, in words that a person understands.

use std::fmt;

/// Why a source has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// In words.
    pub fn new(why: impl Into<String>) -> Fault {
        Fault(why.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        use std::io::ErrorKind::{
            BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof,
        };
        match error.kind() {
            UnexpectedEof | BrokenPipe | ConnectionReset => {
                Fault::new("the other side has closed the connection: it has ended or restarts")
            }
            ConnectionRefused | NotFound => {
                Fault::new("nobody listens at its socket: it is not running")
            }
            _ => Fault(error.to_string()),
        }
    }
}

impl From<rustix::io::Errno> for Fault {
    fn from(error: rustix::io::Errno) -> Fault {
        std::io::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Fault {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => Fault(format!("it sent what is not its protocol: {error}")),
        }
    }
}

impl From<zbus::Error> for Fault {
    fn from(error: zbus::Error) -> Fault {
        // An answer of a service may be a page long.
        let text = error.to_string();
        Fault(format!(
            "D-Bus: {}",
            text.lines().next().unwrap_or_default()
        ))
    }
}

impl From<zbus::fdo::Error> for Fault {
    fn from(error: zbus::fdo::Error) -> Fault {
        zbus::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_they_mean() {
        let closed = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert!(Fault::from(closed).0.contains("restarts"));
        let bad = serde_json::from_str::<u32>("{").expect_err("half a message");
        assert!(Fault::from(bad).0.contains("protocol"));
    }
}
