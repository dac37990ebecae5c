// SPDX-License-Identifier: GPL-2.0-only
//! X11: Xvfb with a window manager.

use crate::harness::{self, Session};
use fasttrack_agent::env::Env;
use fasttrack_agent::fault::Fault;
use fasttrack_agent::place::Place;
use fasttrack_agent::resolve::Resolver;
use fasttrack_agent::scope::Scoper;
use fasttrack_agent::source::{Out, Source};
use fasttrack_agent::startup::Startup;
use fasttrack_agent::window::Window;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::dpms::{ConnectionExt as _, DPMSMode};
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, PropMode, ScreenSaver,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

struct Display {
    name: String,
    connection: RustConnection,
    root: u32,
}

impl Display {
    fn start(session: &mut Session) -> Display {
        let number = 500 + std::process::id() % 500;
        // Two tests of one process: the second takes the next free one.
        let name = (number..number + 50)
            .map(|number| format!(":{number}"))
            .find(|name| x11rb::connect(Some(name)).is_err() && !lock(name).exists())
            .expect("a free display");
        session.start(&[
            "Xvfb",
            &name,
            "-screen",
            "0",
            "800x600x24",
            "-nolisten",
            "tcp",
        ]);
        session.set("DISPLAY", &name);
        let (connection, screen) = harness::until("X server", || x11rb::connect(Some(&name)).ok());
        let root = connection.setup().roots[screen].root;
        Display {
            name,
            connection,
            root,
        }
    }

    fn atom(&self, name: &str) -> u32 {
        let cookie = self
            .connection
            .intern_atom(false, name.as_bytes())
            .expect("X");
        cookie.reply().expect("an atom").atom
    }

    fn words(&self, window: u32, name: &str) -> Vec<u32> {
        let name = self.atom(name);
        let cookie = self
            .connection
            .get_property(false, window, name, AtomEnum::ANY, 0, 1024)
            .expect("X");
        cookie
            .reply()
            .ok()
            .and_then(|reply| reply.value32().map(Iterator::collect))
            .unwrap_or_default()
    }

    fn managed(&self) -> bool {
        !self.words(self.root, "_NET_SUPPORTING_WM_CHECK").is_empty()
    }

    /// Windows by the process that they say.
    fn windows(&self) -> BTreeMap<u32, u32> {
        let windows = self.words(self.root, "_NET_CLIENT_LIST");
        let pid = |window: u32| Some((*self.words(window, "_NET_WM_PID").first()?, window));
        windows.into_iter().filter_map(pid).collect()
    }

    /// Sets numbers, as a window manager or a client does.
    fn set(&self, window: u32, name: &str, kind: AtomEnum, words: &[u32]) {
        let name = self.atom(name);
        let set = self
            .connection
            .change_property32(PropMode::REPLACE, window, name, kind, words);
        set.expect("X").check().expect("set");
    }

    /// The window of a process, where there is no window manager that lists it.
    fn window_of(&self, pid: u32) -> Option<u32> {
        let tree = self.connection.query_tree(self.root).expect("X");
        let all = tree.reply().expect("the root has windows").children;
        let says = |window: &u32| self.words(*window, "_NET_WM_PID") == [pid];
        all.into_iter().find(says)
    }

    /// As a launcher does: in pieces of 20 bytes, of which the last has the end.
    fn announce(&self, text: &str) {
        let kinds = ["_NET_STARTUP_INFO_BEGIN", "_NET_STARTUP_INFO"].map(|name| self.atom(name));
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(20), 0);
        for (number, piece) in bytes.chunks(20).enumerate() {
            let data: [u8; 20] = piece.try_into().expect("20 bytes");
            let message = ClientMessageEvent::new(8, self.root, kinds[number.min(1)], data);
            self.connection
                .send_event(false, self.root, EventMask::PROPERTY_CHANGE, message)
                .expect("X");
        }
        self.connection.flush().expect("X");
    }

    /// As a pager does.
    fn activate(&self, window: u32) {
        let kind = self.atom("_NET_ACTIVE_WINDOW");
        let message = ClientMessageEvent::new(32, window, kind, [2, 0, 0, 0, 0]);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection
            .send_event(false, self.root, mask, message)
            .expect("X");
        self.connection.flush().expect("X");
    }
}

fn lock(display: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(format!("/tmp/.X{}-lock", &display[1..]))
}

fn switches(name: &str, mut session: Session, manager: &[&str], source: &str) {
    let display = Display::start(&mut session);
    session.start(manager);
    harness::until("window manager", || display.managed().then_some(()));
    let agent = session.agent(&["--source", source]);
    let pids: Vec<u32> = ["one", "two", "three"]
        .map(|name| {
            let pid = session.start(&["xterm", "-name", name, "-e", "sleep", "1000"]);
            let window = harness::until("window", || display.windows().get(&pid).copied());
            display.activate(window);
            agent.settle(pid);
            pid
        })
        .to_vec();
    let windows = display.windows();
    let mut times = Vec::new();
    for switch in 0..harness::switches() {
        let pid = pids[switch % pids.len()];
        let begin = Instant::now();
        display.activate(windows[&pid]);
        times.push(agent.front(pid).saturating_duration_since(begin));
    }
    harness::print(&format!("{name} on {}", display.name), times, &agent);
    harness::idles(&agent, Duration::from_secs(10));
}

/// Remembers for which windows it was asked.
#[derive(Default)]
struct Asked(Mutex<Vec<Window>>);

impl Scoper for Asked {
    fn split(&self, _: &Resolver, window: &Window) -> Result<(), Fault> {
        self.0.lock().expect("no panic").push(window.clone());
        Ok(())
    }
}

#[test]
#[ignore = "needs Xvfb and openbox"]
fn an_announced_launch_gets_a_scope_before_it_has_a_window() {
    if harness::skipped(&["Xvfb", "openbox"]) {
        return;
    }
    let mut session = Session::new();
    let display = Display::start(&mut session);
    session.start(&["openbox"]);
    harness::until("window manager", || display.managed().then_some(()));
    let (to, _from) = std::sync::mpsc::sync_channel(8);
    let asked = Arc::new(Asked::default());
    let resolver = Resolver::new(Place::default(), session.user());
    let out = Out::new("startup", resolver, to).with_scoper(Some(asked.clone()));
    let env = Env::of([("DISPLAY", display.name.as_str())]);
    std::thread::spawn(move || Startup::new(&env).run(&out));
    let pid = session.start(&["env", "DESKTOP_STARTUP_ID=fasttrack 1", "sleep", "1000"]);
    let found = harness::until("launch", || {
        display.announce("new: ID=\"fasttrack 1\" APPLICATION_ID=org.x.Y.desktop NAME=Y");
        asked.0.lock().expect("no panic").first().cloned()
    });
    assert_eq!(found, Window::of(pid, "org.x.Y"));
}

#[test]
#[ignore = "needs Xvfb"]
fn a_panel_or_a_desktop_with_the_focus_leaves_nobody_in_front() {
    if harness::skipped(&["Xvfb", "xterm"]) {
        return;
    }
    let mut session = Session::new();
    let display = Display::start(&mut session);
    // The test is the window manager.
    let check = [display.root];
    display.set(
        display.root,
        "_NET_SUPPORTING_WM_CHECK",
        AtomEnum::WINDOW,
        &check,
    );
    let mut start = || {
        let pid = session.start(&["xterm", "-e", "sleep", "1000"]);
        (pid, harness::until("window", || display.window_of(pid)))
    };
    let (app, shell) = (start(), start());
    let focus = |window: u32| {
        display.set(
            display.root,
            "_NET_ACTIVE_WINDOW",
            AtomEnum::WINDOW,
            &[window],
        );
    };
    focus(app.1);
    let agent = session.agent(&["--source", "x11"]);
    agent.settle(app.0);
    for kinds in [&["DOCK"][..], &["OWN", "DESKTOP"]] {
        let kinds = kinds.iter();
        let kinds = kinds.map(|kind| display.atom(&format!("_NET_WM_WINDOW_TYPE_{kind}")));
        let kinds: Vec<u32> = kinds.collect();
        display.set(shell.1, "_NET_WM_WINDOW_TYPE", AtomEnum::ATOM, &kinds);
        focus(shell.1);
        assert_eq!(agent.next().1["why"], "unfocused");
        focus(app.1);
        assert_eq!(agent.next().1["apps"][0]["pid"], app.0);
    }
    let normal = [display.atom("_NET_WM_WINDOW_TYPE_NORMAL")];
    display.set(shell.1, "_NET_WM_WINDOW_TYPE", AtomEnum::ATOM, &normal);
    focus(shell.1);
    assert_eq!(agent.next().1["apps"][0]["pid"], shell.0);
}

#[test]
#[ignore = "needs Xvfb"]
fn without_a_window_manager_the_desktop_is_named_that_cannot_tell() {
    if harness::skipped(&["Xvfb"]) {
        return;
    }
    let mut session = Session::new();
    let _display = Display::start(&mut session);
    session.set("XDG_CURRENT_DESKTOP", "twm");
    let agent = session.agent(&[]);
    let report = agent.next().1;
    assert_eq!(report["report"], "cannot-tell", "{report}");
    assert_eq!(report["compositor"], "twm");
}

#[test]
#[ignore = "needs Xvfb and openbox"]
fn a_screen_that_is_off_or_blank_leaves_nobody_in_front() {
    if harness::skipped(&["Xvfb", "openbox", "xterm"]) {
        return;
    }
    let mut session = Session::new();
    let display = Display::start(&mut session);
    session.start(&["openbox"]);
    harness::until("window manager", || display.managed().then_some(()));
    let agent = session.agent(&[]);
    let pid = session.start(&["xterm", "-e", "sleep", "1000"]);
    agent.settle(pid);
    let saver = |mode| {
        let asked = display.connection.force_screen_saver(mode).expect("X");
        asked.check().expect("X");
    };
    saver(ScreenSaver::ACTIVE);
    assert_eq!(agent.next().1["why"], "locked");
    saver(ScreenSaver::RESET);
    agent.front(pid);
    let version = display.connection.dpms_get_version(1, 2).ok();
    let version = version.and_then(|asked| asked.reply().ok());
    let events =
        version.is_some_and(|is| (is.server_major_version, is.server_minor_version) >= (1, 2));
    let level = |mode| {
        let on = display.connection.dpms_enable().expect("X").check();
        on.is_ok()
            && display
                .connection
                .dpms_force_level(mode)
                .expect("X")
                .check()
                .is_ok()
    };
    if !events || !level(DPMSMode::OFF) {
        eprintln!("SKIPPED: this X server has no DPMS, or no events of it");
        return;
    }
    assert_eq!(agent.next().1["why"], "locked");
    assert!(level(DPMSMode::ON));
    agent.front(pid);
}

#[test]
#[ignore = "needs Xvfb and openbox"]
fn each_switch_of_openbox_is_reported() {
    if harness::skipped(&["Xvfb", "openbox", "xterm"]) {
        return;
    }
    switches("x11, openbox", Session::new(), &["openbox"], "x11");
}

#[test]
#[ignore = "needs Xvfb and i3"]
fn each_switch_of_i3_is_reported_by_its_ipc() {
    if harness::skipped(&["Xvfb", "i3", "xterm"]) {
        return;
    }
    let mut session = Session::new();
    let socket = session.path("i3.sock");
    let config = session.path("i3.config");
    let text = format!("font pango:monospace 8\nipc-socket {}\n", socket.display());
    std::fs::write(&config, text).expect("a file");
    session.set("I3SOCK", socket.to_str().expect("a path"));
    let config = config.to_str().expect("a path").to_string();
    switches("i3", session, &["i3", "-c", &config], "i3");
}
