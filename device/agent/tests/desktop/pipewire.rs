// SPDX-License-Identifier: GPL-2.0-only
//! PipeWire with a sink that nobody hears: who plays is told, as long as it plays.

use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;

const SINK: &str =
    "context.objects = [ { factory = adapter args = { factory.name = support.null-audio-sink
 node.name = nowhere media.class = Audio/Sink object.linger = true audio.position = [ FL FR ] } } ]
";
const RATE: u32 = 8000;
const SECONDS: u32 = 600;

/// Silence as a WAV file: one channel of 16 bits.
fn silence() -> Vec<u8> {
    let bytes = RATE * SECONDS * 2;
    let mut wav = Vec::new();
    wav.extend(b"RIFF");
    wav.extend((36 + bytes).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16u32.to_le_bytes());
    wav.extend([1u16, 1].map(u16::to_le_bytes).concat());
    wav.extend([RATE, RATE * 2].map(u32::to_le_bytes).concat());
    wav.extend([2u16, 16].map(u16::to_le_bytes).concat());
    wav.extend(b"data");
    wav.extend(bytes.to_le_bytes());
    wav.resize(44 + bytes as usize, 0);
    wav
}

#[test]
#[ignore = "needs PipeWire"]
fn who_plays_is_perceptible_until_it_stops_and_a_restart_is_survived() {
    if harness::skipped(&[
        "pipewire",
        "wireplumber",
        "pw-play",
        "pw-dump",
        "dbus-daemon",
    ]) {
        return;
    }
    let mut session = Session::new();
    session.bus();
    let folder = session.path(".config/pipewire/pipewire.conf.d");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("sink.conf"), SINK).expect("a file");
    std::fs::write(session.path("silence.wav"), silence()).expect("a file");
    let socket = session.path("pipewire-0");
    let agent = session.agent(&[]);
    for _ in 0..2 {
        let server = session.start(&["pipewire"]);
        harness::until("PipeWire", || UnixStream::connect(&socket).ok());
        let manager = session.start(&["wireplumber"]);
        let wav = session.path("silence.wav");
        let player = session.start(&["pw-play", wav.to_str().expect("a path")]);
        agent.perceptible(player, "audio", true);
        session.end(player);
        agent.perceptible(player, "audio", false);
        session.end(manager);
        session.end(server);
        let _ = std::fs::remove_file(&socket);
    }
}
