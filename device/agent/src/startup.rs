// SPDX-License-Identifier: GPL-2.0-only
//! Launches on X11, as launchers announce them to all (freedesktop.org, "Startup Notification Protocol"): messages to
//! the root window in pieces of 20 bytes, `new: ID="…" APPLICATION_ID=… BIN=…`. The process has the ID in its
//! environment. Where it is in the window manager's control group it gets a scope.
//!
//! Wayland's xdg-activation is between the launcher and the compositor: nobody else hears of a token.

use crate::begin::{self, By};
use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::x11::Clients;
use std::collections::BTreeMap;
use x11rb::protocol::xproto::ClientMessageEvent;
use x11rb::protocol::Event;

/// Longest message, bytes; and most that have begun and not ended.
const MESSAGE_MOST: usize = 4096;
const BEGUN_MOST: usize = 32;

/// A launch that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The token.
    pub token: String,
    /// The app, or its program.
    pub id: String,
}

/// Reads a message; none where it announces no launch.
pub fn parse(text: &str) -> Option<Launch> {
    let mut rest = text.strip_prefix("new:")?;
    let mut all = BTreeMap::new();
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = value(after);
        all.entry(key.trim()).or_insert(value);
        rest = after;
    }
    let get = |key: &str| all.get(key).filter(|value| !value.is_empty());
    let token = get("ID")?.clone();
    let id = ["APPLICATION_ID", "WMCLASS", "BIN", "NAME"]
        .into_iter()
        .find_map(get);
    let id = id.map_or("", |id| id.rsplit('/').next().unwrap_or_default());
    let id = id.strip_suffix(".desktop").unwrap_or(id).to_string();
    Some(Launch { token, id })
}

/// A value up to the next blank that is not quoted, and what follows.
fn value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for (at, one) in text.char_indices() {
        match one {
            _ if escaped => {
                value.push(one);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ' ' if !quoted => return (value, &text[at..]),
            _ => value.push(one),
        }
    }
    (value, "")
}

/// Messages of several senders, in pieces.
#[derive(Debug, Default)]
pub struct Pieces(BTreeMap<u32, Vec<u8>>);

impl Pieces {
    /// Takes a piece; the whole message where it is the last.
    pub fn take(&mut self, sender: u32, begins: bool, piece: &[u8]) -> Option<String> {
        if begins {
            if self.0.len() >= BEGUN_MOST {
                self.0.clear();
            }
            self.0.insert(sender, Vec::new());
        }
        let message = self.0.get_mut(&sender)?;
        let end = piece.iter().position(|byte| *byte == 0);
        message.extend(&piece[..end.unwrap_or(piece.len())]);
        if end.is_none() && message.len() < MESSAGE_MOST {
            return None;
        }
        let message = self.0.remove(&sender)?;
        end.and_then(|_| String::from_utf8(message).ok())
    }
}

/// Announcements on an X server.
pub struct Startup {
    display: Option<String>,
}

impl Startup {
    /// At `DISPLAY`, unless that is the Xwayland of a Wayland session.
    pub fn new(env: &Env) -> Startup {
        Startup {
            display: crate::x11::display(env),
        }
    }

    fn connect(&self) -> Result<Clients, Fault> {
        let display = self.display.as_deref();
        Clients::connect(display.ok_or_else(|| Fault::new("this is not an X11 session"))?)
    }
}

impl Source for Startup {
    fn name(&self) -> &'static str {
        "startup"
    }

    fn probe(&self) -> Probe {
        match self.connect() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let clients = self.connect()?;
        clients.listen()?;
        let mut pieces = Pieces::default();
        loop {
            let Event::ClientMessage(event) = clients.event()? else {
                continue;
            };
            let text = take(&mut pieces, &clients, &event);
            let Some(launch) = text.and_then(|text| parse(&text)) else {
                continue;
            };
            let group = out.resolver().place().cgroup_of(clients.manager()?);
            if let Some(group) = group {
                begin::begin(out, &group, By::Token(&launch.token), &launch.id)?;
            }
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

fn take(pieces: &mut Pieces, clients: &Clients, event: &ClientMessageEvent) -> Option<String> {
    let begins = clients.announces(event.type_)?;
    pieces.take(event.window, begins, &event.data.as_data8())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mutate;

    const MESSAGE: &str = r#"new: ID="gio 1/2\"x" NAME=Text BIN=/usr/bin/gedit APPLICATION_ID=/a/org.x.Y.desktop TIMESTAMP=7"#;

    #[test]
    fn an_announcement_has_a_token_and_an_app() {
        let launch = parse(MESSAGE).expect("a launch");
        assert_eq!((&*launch.token, &*launch.id), ("gio 1/2\"x", "org.x.Y"));
        let launch = parse("new: BIN=/usr/bin/xterm ID=7").expect("a launch");
        assert_eq!((&*launch.token, &*launch.id), ("7", "xterm"));
        assert_eq!(parse("remove: ID=7"), None);
        assert_eq!(parse("new: NAME=x"), None);
        mutate(MESSAGE.as_bytes(), |bytes| {
            drop(parse(&String::from_utf8_lossy(bytes)))
        });
    }

    #[test]
    fn pieces_of_two_senders_are_kept_apart() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.take(1, false, b"lost\0"), None);
        assert_eq!(pieces.take(1, true, b"new:"), None);
        assert_eq!(
            pieces.take(2, true, b"remove: ID=8\0xx").as_deref(),
            Some("remove: ID=8")
        );
        assert_eq!(
            pieces.take(1, false, b" ID=7\0").as_deref(),
            Some("new: ID=7")
        );
        for sender in 0..100 {
            assert_eq!(pieces.take(sender, true, b"x"), None);
            assert!(pieces.0.len() <= BEGUN_MOST);
        }
        let good = b"\x011new: ID=7\x000 NAME=xxxxxx\x021new: ID=8 NAME=y";
        mutate(good, |bytes| {
            for piece in bytes.chunks(20) {
                let (sender, begins) = (piece[0].into(), piece.get(1) == Some(&b'1'));
                let text = pieces.take(sender, begins, piece.get(2..).unwrap_or_default());
                assert!(text.is_none_or(|text| text.len() < MESSAGE_MOST + 20));
            }
            let longest = pieces.0.values().map(Vec::len).max();
            assert!(pieces.0.len() <= BEGUN_MOST && longest.is_none_or(|most| most < MESSAGE_MOST));
        });
        // One without an end is forgotten.
        pieces.take(1, true, b"");
        (0..MESSAGE_MOST).for_each(|_| drop(pieces.take(1, false, b"xx")));
        assert!(!pieces.0.contains_key(&1));
    }
}
