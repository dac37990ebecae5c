// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::conduct::caught;
use crate::event::Event;
use crate::testing::{mutate, wayland, FakePlace};
use fasttrack_detector::report::Report;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::{Arc, Mutex};

/// Numbers of objects that a compositor makes begin here.
const OWN: u32 = 0xff00_0000;
const WINDOWS: [&str; 2] = ["one", "two"];

/// A compositor, as far as these sources ask it, by the wire format of Wayland.
struct Compositor {
    stream: UnixStream,
    globals: &'static [(&'static str, u32)],
    list: u32,
    info: u32,
    states: Vec<u32>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The array of COSMIC's states, with its length.
fn states(active: bool) -> &'static [u32] {
    match active {
        true => &[8, 3, 2],
        false => &[0],
    }
}

impl Compositor {
    fn event(&mut self, object: u32, opcode: u32, body: &[u8]) {
        // Who only looks has gone by now.
        let _ = self.stream.write_all(&wayland::event(object, opcode, body));
    }

    /// Serves until the client knows all windows: where COSMIC is, until it waits after it has asked for their states.
    fn serve(&mut self) -> Option<()> {
        let cosmic = self.globals.len() > 1;
        loop {
            let mut head = [0; 8];
            self.stream.read_exact(&mut head).ok()?;
            let mut body = vec![0; (word(&head, 4) >> 16) as usize - 8];
            self.stream.read_exact(&mut body).ok()?;
            let (object, opcode) = (word(&head, 0), word(&head, 4) & 0xffff);
            self.request(object, opcode, &body);
            let all = match cosmic {
                true => self.states.len() == WINDOWS.len() && (object, opcode) == (1, 0),
                false => self.list > 0,
            };
            if all {
                return Some(());
            }
        }
    }

    fn request(&mut self, object: u32, opcode: u32, body: &[u8]) {
        match (object, opcode) {
            (1, 0) => self.event(word(body, 0), 0, &[0; 4]),
            (1, 1) => {
                for (name, (interface, version)) in self.globals.iter().enumerate() {
                    let mut global = (name as u32).to_ne_bytes().to_vec();
                    global.extend(wayland::text(interface));
                    global.extend(version.to_ne_bytes());
                    self.event(word(body, 0), 0, &global);
                }
            }
            // The registry is the first object that a client makes.
            (2, 0) => {
                let id = word(body, body.len() - 4);
                match self.globals[word(body, 0) as usize].0 {
                    "ext_foreign_toplevel_list_v1" => {
                        self.list = id;
                        self.windows();
                    }
                    _ => self.info = id,
                }
            }
            (info, 1) if info == self.info => {
                self.states.push(word(body, 0));
                self.active(self.states.len() - 1, self.states.len() == 1);
                self.event(info, 2, &[]);
            }
            other => panic!("{other:?}"),
        }
    }

    fn windows(&mut self) {
        for (index, id) in WINDOWS.iter().enumerate() {
            let window = OWN + index as u32;
            self.event(self.list, 0, &window.to_ne_bytes());
            self.event(window, 3, &wayland::text(id));
            self.event(window, 1, &[]);
        }
    }

    fn active(&mut self, index: usize, active: bool) {
        self.event(self.states[index], 8, &words(states(active)));
    }
}

/// Serves whoever connects, and then does this.
fn compositor(
    path: &Path,
    globals: &'static [(&'static str, u32)],
    then: impl Fn(&mut Compositor) + Send + 'static,
) {
    let listener = UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut compositor = Compositor {
                stream: stream.expect("a client"),
                globals,
                list: 0,
                info: 0,
                states: Vec::new(),
            };
            if compositor.serve().is_some() {
                then(&mut compositor);
            }
        }
    });
}

fn env(directory: &tempfile::TempDir) -> (Env, PathBuf) {
    let path = directory.path().join("wayland-9");
    let env = Env::of([("WAYLAND_DISPLAY", path.to_str().expect("a path"))]);
    (env, path)
}

fn out(fake: &FakePlace) -> (Out, Receiver<Event>) {
    let (to, from) = sync_channel(64);
    (Out::new("test", fake.resolver(), to), from)
}

#[test]
fn cosmics_active_window_is_in_front_and_half_a_message_is_a_fault() {
    let fake = FakePlace::new();
    let apps = WINDOWS.map(|id| fake.app(&format!("app-cosmic-{id}-1.scope"), 0));
    let directory = tempfile::tempdir().expect("a directory");
    let (env, path) = env(&directory);
    let globals = &[
        ("ext_foreign_toplevel_list_v1", 1),
        ("zcosmic_toplevel_info_v1", 3),
    ];
    let (go, wait) = sync_channel(0);
    compositor(&path, globals, move |compositor| {
        wait.recv().expect("a go");
        compositor.active(0, false);
        compositor.active(1, true);
        compositor.event(compositor.info, 2, &[]);
        wait.recv().expect("a go");
        compositor.event(OWN + 1, 0, &[]);
        wait.recv().expect("a go");
        let _ = compositor.stream.write_all(&OWN.to_ne_bytes());
    });
    let mut source = Cosmic::new(&env);
    assert_eq!(source.probe(), Probe::Yes);
    let (out, from) = out(&fake);
    let thread = std::thread::spawn(move || source.run(&out));
    let next = || from.recv().expect("an event");
    for app in &apps {
        assert_eq!(next(), Event::Other(Report::Window(app.clone())));
    }
    for app in &apps {
        assert_eq!(next(), Event::Focus(Report::Front(vec![app.clone()])));
        go.send(()).expect("a compositor");
    }
    let unfocused = fasttrack_detector::report::Nobody::Unfocused;
    assert_eq!(next(), Event::Focus(Report::Nobody(unfocused)));
    go.send(()).expect("a compositor");
    assert!(thread.join().expect("no panic").is_err());
}

#[test]
fn the_list_alone_tells_windows_and_no_focus() {
    let fake = FakePlace::new();
    let apps = WINDOWS.map(|id| fake.app(&format!("app-x-{id}-1.scope"), 0));
    let directory = tempfile::tempdir().expect("a directory");
    let (env, path) = env(&directory);
    let (go, wait) = sync_channel::<()>(0);
    let globals = &[("ext_foreign_toplevel_list_v1", 1)];
    // It closes when it is let go.
    compositor(&path, globals, move |_| {
        let _ = wait.recv();
    });
    assert!(matches!(Cosmic::new(&env).probe(), Probe::No(_)));
    let mut source = Listed::new(&env, &fake.place());
    let (out, from) = out(&fake);
    let thread = std::thread::spawn(move || source.run(&out));
    let next = || from.recv().expect("an event");
    assert!(matches!(next(), Event::Focus(Report::CannotTell(_))));
    for app in apps {
        assert_eq!(next(), Event::Other(Report::Window(app)));
    }
    drop(go);
    assert!(thread.join().expect("no panic").is_err());
}

/// Whether a source that is told these bytes in the end fails, and does no more.
fn is_fault(source: &mut dyn Source, fake: &FakePlace) -> bool {
    let (to, _from) = sync_channel(1024);
    let out = Out::new("test", fake.resolver(), to);
    caught(|| source.run(&out)).is_err()
}

#[test]
fn a_spoilt_list_does_no_harm() {
    let fake = FakePlace::new();
    let event = wayland::event;
    // The list is the client's fourth object.
    let stream = [
        event(4, 0, &words(&[OWN])),
        event(OWN, 3, &wayland::text("one")),
        event(OWN, 2, &wayland::text("its title")),
        event(OWN, 1, &[]),
        event(4, 0, &words(&[OWN + 1])),
        event(OWN + 1, 3, &wayland::text("two")),
        event(OWN + 1, 1, &[]),
        event(OWN, 0, &[]),
        event(4, 1, &[]),
    ]
    .concat();
    let globals = wayland::globals(&[("ext_foreign_toplevel_list_v1", 1)]);
    let now = Arc::new(Mutex::new(stream.clone()));
    let said = now.clone();
    let (env, _runtime) = wayland::play(globals, move || {
        (said.lock().expect("no panic").clone(), true)
    });
    mutate(&stream, |bytes| {
        *now.lock().expect("no panic") = bytes.to_vec();
        assert!(is_fault(&mut Listed::new(&env, &fake.place()), &fake));
    });
}

#[test]
fn spoilt_states_of_cosmic_do_no_harm() {
    let fake = FakePlace::new();
    let directory = tempfile::tempdir().expect("a directory");
    let (env, path) = env(&directory);
    let globals = &[
        ("ext_foreign_toplevel_list_v1", 1),
        ("zcosmic_toplevel_info_v1", 3),
    ];
    let now = Arc::new(Mutex::new(Vec::new()));
    let said = now.clone();
    let (to, numbers) = sync_channel(1);
    compositor(&path, globals, move |compositor| {
        let _ = to.try_send((compositor.info, compositor.states.clone()));
        let bytes: Vec<u8> = said.lock().expect("no panic").clone();
        let _ = compositor.stream.write_all(&bytes);
        let _ = compositor.stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut compositor.stream, &mut std::io::sink());
    });
    assert!(is_fault(&mut Cosmic::new(&env), &fake));
    let (info, of) = numbers.recv().expect("the numbers of objects");
    let event = wayland::event;
    let stream = [
        event(of[0], 8, &words(states(false))),
        event(of[1], 8, &words(states(true))),
        event(info, 2, &[]),
        event(OWN + 1, 2, &wayland::text("its title")),
        event(OWN + 1, 1, &[]),
        event(OWN + 1, 0, &[]),
        event(info, 2, &[]),
        event(info, 1, &[]),
    ]
    .concat();
    mutate(&stream, |bytes| {
        *now.lock().expect("no panic") = bytes.to_vec();
        assert!(is_fault(&mut Cosmic::new(&env), &fake));
    });
}
