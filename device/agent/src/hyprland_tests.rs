// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::event::Event;
use crate::testing::{mutate, FakePlace};
use fasttrack_detector::report::Report;
use std::os::unix::net::UnixListener;

/// Written by the documented protocol, not recorded.
const EVENTS: &[u8] = include_bytes!("../tests/streams/hyprland-events.txt");
const ACTIVE: &[u8] = include_bytes!("../tests/streams/hyprland-activewindow.json");
const CLIENTS: &[u8] = include_bytes!("../tests/streams/hyprland-clients.json");

#[test]
fn lines_are_understood() {
    let lines = EVENTS
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let steps: Vec<Step> = lines.map(|line| parse(line).expect("a line")).collect();
    let some: Vec<&Step> = steps
        .iter()
        .filter(|step| **step != Step::Nothing)
        .collect();
    let opened = Step::Opened("55d6a1f2c3e0".into());
    assert_eq!(some, [&opened, &Step::Ask, &Step::Ask, &Step::Nobody]);
    assert!(parse(b"half a li").is_err());
}

#[test]
fn answers_are_understood() {
    assert_eq!(active(ACTIVE), Ok(Some(Window::of(7, "foot"))));
    assert_eq!(active(b"{}"), Ok(None));
    assert_eq!(
        client(CLIENTS, "55d6a1f2c3e0"),
        Ok(Some(Window::of(7, "foot")))
    );
    assert_eq!(client(CLIENTS, "1"), Ok(None));
    let titled = titles(CLIENTS).expect("clients");
    assert_eq!(
        titled[0],
        ("Mozilla Firefox".into(), Window::of(8, "firefox"))
    );
    // A window that is not mapped yet has PID -1.
    assert_eq!(active(br#"{"pid":-1,"class":""}"#), Ok(None));
    assert!(active(b"unknown request").is_err());
}

#[test]
fn spoilt_streams_do_no_harm() {
    mutate(EVENTS, |bytes| {
        bytes
            .split(|byte| *byte == b'\n')
            .for_each(|line| drop(parse(line)))
    });
    mutate(ACTIVE, |bytes| drop(active(bytes)));
    mutate(CLIENTS, |bytes| drop(client(bytes, "55d6a1f2c3e0")));
}

#[test]
fn a_compositor_that_closes_half_way_is_a_fault_after_what_it_said() {
    let fake = FakePlace::new();
    let app = fake.app("app-foot-7.scope", 7);
    let runtime = tempfile::tempdir().expect("a directory");
    let directory = runtime.path().join("hypr/x");
    std::fs::create_dir_all(&directory).expect("a directory");
    let events = UnixListener::bind(directory.join(".socket2.sock")).expect("a socket");
    let answers = UnixListener::bind(directory.join(".socket.sock")).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = answers.accept().expect("a question");
        let mut question = String::new();
        stream.read_to_string(&mut question).expect("its end");
        stream
            .write_all(if question == "j/activewindow" {
                ACTIVE
            } else {
                b""
            })
            .expect("an answer");
    });
    std::thread::spawn(move || {
        // The probe, and then the source.
        drop(events.accept());
        let (mut stream, _) = events.accept().expect("a reader");
        stream
            .write_all(b"activewindowv2>>\nactivewi")
            .expect("a line and a half");
    });
    let path = runtime.path().to_str().expect("a path");
    let env = Env::of([
        ("XDG_RUNTIME_DIR", path),
        ("HYPRLAND_INSTANCE_SIGNATURE", "x"),
    ]);
    let (to, from) = std::sync::mpsc::sync_channel(8);
    let out = Out::new("hyprland", fake.resolver(), to);
    let fault = Hyprland::new(&env).run(&out).expect_err("half a line");
    assert!(fault.0.contains("middle"), "{fault}");
    let mut app = app;
    app.id = "foot".into();
    assert_eq!(from.recv(), Ok(Event::Focus(Report::Front(vec![app]))));
    assert!(matches!(from.recv(), Ok(Event::Focus(Report::Nobody(_)))));
}
