// SPDX-License-Identifier: GPL-2.0-only
//! An X server that has nothing but DPMS, by the wire format of X11: Xvfb has none.

use super::*;
use crate::event::Event as Told;
use crate::testing::FakePlace;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{sync_channel, Receiver};
use x11rb::protocol::dpms::InfoNotifyEvent;
use x11rb::protocol::xproto::{
    Screen as XScreen, Setup, GET_INPUT_FOCUS_REQUEST, QUERY_EXTENSION_REQUEST,
};
use x11rb::x11_utils::Serialize;

/// What the server calls DPMS: the first request of extensions is 128.
const MAJOR: u8 = 130;
const GENERIC_EVENT: u8 = 35;
/// Of display 0.
const FIRST_PORT: u16 = 6000;
/// The part of an event that all have, bytes, and the unit in which what is longer is said.
const EVENT: usize = 32;
const UNIT: usize = 4;

/// Whether DPMS is in use, and what it has the screen do.
type Level = (bool, DPMSMode);

/// The server's side of one connection.
struct Server {
    stream: TcpStream,
    sequence: u16,
    /// Minor version of DPMS 1; events are since 2.
    version: u16,
    first: Level,
    selected: bool,
}

impl Server {
    fn read(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let mut room = vec![0; bytes];
        self.stream.read_exact(&mut room).ok()?;
        Some(room)
    }

    /// Who connects says its byte order, which is this machine's, and a key that is of no interest.
    fn greet(&mut self) -> Option<()> {
        let head = self.read(12)?;
        let word = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
        let key = word(6).next_multiple_of(UNIT) + word(8).next_multiple_of(UNIT);
        self.read(key)?;
        let mut setup = Setup {
            status: 1,
            protocol_major_version: 11,
            resource_id_mask: 0xffff,
            maximum_request_length: u16::MAX,
            roots: vec![XScreen::default()],
            ..Setup::default()
        };
        let length = (setup.serialize().len() - 8) / UNIT;
        setup.length = u16::try_from(length).expect("a short one");
        self.stream.write_all(&setup.serialize()).ok()
    }

    fn reply(&mut self, body: &[u8]) -> Option<()> {
        let mut reply = [0; EVENT];
        reply[0] = 1;
        reply[2..4].copy_from_slice(&self.sequence.to_ne_bytes());
        reply[8..8 + body.len()].copy_from_slice(body);
        self.stream.write_all(&reply).ok()
    }

    /// Answers until the client has been told how the screen is.
    fn serve(&mut self) -> Option<()> {
        self.greet()?;
        loop {
            let head = self.read(4)?;
            let length = usize::from(u16::from_ne_bytes([head[2], head[3]])) * UNIT;
            let body = self.read(length - head.len())?;
            self.sequence += 1;
            match (head[0], head[1]) {
                (QUERY_EXTENSION_REQUEST, _) => {
                    let is_dpms = body[4..].starts_with(dpms::X11_EXTENSION_NAME.as_bytes());
                    self.reply(&[u8::from(is_dpms), MAJOR, 0, 0])?;
                }
                (MAJOR, dpms::GET_VERSION_REQUEST) => {
                    let [minor, more] = self.version.to_ne_bytes();
                    let [major, none] = 1_u16.to_ne_bytes();
                    self.reply(&[major, none, minor, more])?;
                }
                (MAJOR, dpms::SELECT_INPUT_REQUEST) => self.selected = true,
                (MAJOR, dpms::INFO_REQUEST) => {
                    let (state, level) = self.first;
                    let [level, more] = u16::from(level).to_ne_bytes();
                    self.reply(&[level, more, u8::from(state)])?;
                }
                (GET_INPUT_FOCUS_REQUEST, _) => self.reply(&[])?,
                other => panic!("{other:?}"),
            }
            if head[0] == QUERY_EXTENSION_REQUEST && self.sequence > 2 {
                return Some(());
            }
        }
    }

    fn tell(&mut self, (state, power_level): Level) {
        let mut event = InfoNotifyEvent {
            response_type: GENERIC_EVENT,
            extension: MAJOR,
            sequence: self.sequence,
            event_type: dpms::INFO_NOTIFY_EVENT,
            power_level,
            state,
            ..InfoNotifyEvent::default()
        };
        event.length = ((event.serialize().len() - EVENT) / UNIT) as u32;
        self.stream
            .write_all(&event.serialize())
            .expect("the client reads");
    }
}

/// A source at a server whose screen is like the first of these, and then like the others.
fn play(version: u16, levels: Vec<Level>) -> Receiver<Told> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("the source");
        let mut server = Server {
            stream,
            sequence: 0,
            version,
            first: levels[0],
            selected: false,
        };
        server.serve().expect("asked for all");
        assert_eq!(server.selected, version >= 2);
        for level in &levels[1..] {
            server.tell(*level);
        }
        // It waits for more.
        let _ = server.read(1);
    });
    let (to, from) = sync_channel(8);
    let out = Out::new("x11-screen", FakePlace::new().resolver(), to);
    let mut source = X11Screen {
        display: Some(format!("127.0.0.1:{}", port - FIRST_PORT)),
    };
    std::thread::spawn(move || source.run(&out));
    from
}

fn dark(on: bool) -> Result<Told, std::sync::mpsc::RecvError> {
    Ok(Told::Away {
        source: "x11-screen",
        why: Nobody::Locked,
        on,
    })
}

#[test]
fn a_screen_that_dpms_switches_off_is_dark_until_it_is_on() {
    let levels = vec![
        (true, DPMSMode::ON),
        (true, DPMSMode::STANDBY),
        // As dark as before: nothing is said.
        (true, DPMSMode::SUSPEND),
        (true, DPMSMode::OFF),
        (true, DPMSMode::ON),
        (true, DPMSMode::OFF),
        // Who switches DPMS off has the screen on.
        (false, DPMSMode::OFF),
    ];
    let from = play(2, levels);
    for on in [false, true, false, true, false] {
        assert_eq!(from.recv(), dark(on));
    }
}

#[test]
fn a_server_without_events_tells_how_it_is_when_it_is_asked() {
    let from = play(1, vec![(true, DPMSMode::OFF)]);
    assert_eq!(from.recv(), dark(true));
    let from = play(1, vec![(false, DPMSMode::OFF)]);
    assert_eq!(from.recv(), dark(false));
}
