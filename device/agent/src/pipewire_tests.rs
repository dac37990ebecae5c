// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::testing::{mutate, FakePlace};

/// Recorded from PipeWire 0.3.65: a player begins and ends. Parameters and other kinds of objects are left out.
const DUMP: &[u8] = include_bytes!("../tests/streams/pw-dump.json");
/// Written by hand: a camera, a cast of the screen, a client of PulseAudio's protocol.
const VIDEO: &str = r#"[
{"id": 1, "type": "PipeWire:Interface:Client", "info": {"props": {"pipewire.sec.pid": 50}}},
{"id": 2, "type": "PipeWire:Interface:Client", "info": {"props": {"pipewire.sec.pid": "60", "application.process.id": 61}}},
{"id": 10, "type": "PipeWire:Interface:Node", "info": {"state": "running", "props": {"media.class": "Video/Source", "media.role": "Camera"}}},
{"id": 11, "type": "PipeWire:Interface:Node", "info": {"state": "running", "props": {"media.class": "Stream/Input/Video", "client.id": 1}}},
{"id": 12, "type": "PipeWire:Interface:Node", "info": {"state": "running", "props": {"media.class": "Stream/Input/Video", "client.id": 2}}},
{"id": 13, "type": "PipeWire:Interface:Node", "info": {"state": "idle", "props": {"media.class": "Stream/Input/Audio", "client.id": 2}}},
{"id": 20, "type": "PipeWire:Interface:Link", "info": {"output-node-id": 10, "input-node-id": 11}}
]"#;

fn run(bytes: &[u8]) -> Vec<Vec<Noticed>> {
    let mut all = Vec::new();
    let _ = read(bytes, &mut Graph::default(), |noticed| {
        all.push(noticed);
        Ok(())
    });
    all
}

#[test]
fn a_player_is_noticed_while_it_plays() {
    let all = run(DUMP);
    let audio: Vec<usize> = all.iter().map(Vec::len).collect();
    assert!(audio.contains(&1), "{audio:?}");
    assert_eq!((audio.first(), audio.last()), (Some(&0), Some(&0)));
    let one = all.iter().flatten().next().expect("a player");
    assert!(one.sense == Sense::Audio && one.pid > 0 && one.said > 0);
}

#[test]
fn cameras_and_casts_are_told_apart() {
    let all = run(VIDEO.as_bytes());
    let camera = Noticed {
        pid: 50,
        said: 0,
        sense: Sense::Camera,
    };
    let cast = Noticed {
        pid: 60,
        said: 61,
        sense: Sense::ScreenCast,
    };
    assert_eq!(all, [vec![camera, cast]]);
}

#[test]
fn where_there_is_no_room_what_is_known_still_changes() {
    let object = |id: usize, state: &str| {
        format!(
            r#"{{"id": {id}, "type": "PipeWire:Interface:Node",
                "info": {{"state": "{state}", "props": {{"media.class": "Stream/Output/Audio"}}}}}}"#
        )
    };
    let all: Vec<String> = (0..OBJECTS_MOST).map(|id| object(id, "idle")).collect();
    let text = format!(
        "[{}] [{}] [{}]",
        all.join(","),
        object(7, "running"),
        object(OBJECTS_MOST, "running")
    );
    let heard: Vec<usize> = run(text.as_bytes()).iter().map(Vec::len).collect();
    assert_eq!(heard, [0, 1, 1]);
}

#[test]
fn a_client_of_pulse_is_who_it_says() {
    let fake = FakePlace::new();
    fake.app("app-x-1.scope", 60);
    fake.program(60, PULSE);
    let one = Noticed {
        pid: 60,
        said: 61,
        sense: Sense::Audio,
    };
    assert_eq!(process(&one, &fake.place()), 61);
    fake.program(60, "firefox");
    assert_eq!(process(&one, &fake.place()), 60);
}

#[test]
fn spoilt_streams_do_no_harm() {
    mutate(DUMP, |bytes| drop(run(bytes)));
    mutate(VIDEO.as_bytes(), |bytes| drop(run(bytes)));
}
