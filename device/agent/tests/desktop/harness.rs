// SPDX-License-Identifier: GPL-2.0-only
//! A session of a user who is not root, an agent in it, and what the agent prints.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use zbus::Connection;

/// Switches of a test, unless SWITCHES in the environment says how many.
const SWITCHES: usize = 150;
/// Longest wait for anything. A busy machine starts a compositor in some seconds.
const WAIT_MOST: Duration = Duration::from_secs(180);
/// `nobody`, as which sessions run where the tests run as root: sway refuses root.
const NOBODY: u32 = 65_534;
const BUS_CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>ADDRESS</listen><policy context="default"><allow user="*"/><allow own="*"/>
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy></busconfig>"#;
const X11_SOCKETS: &str = "/tmp/.X11-unix";

/// How often a test switches.
pub fn switches() -> usize {
    std::env::var("SWITCHES").map_or(SWITCHES, |text| text.parse().expect("SWITCHES is a number"))
}

/// The first program of these that is absent, with a line for the log.
pub fn skipped(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let there = |name: &str| {
        path.split(':')
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let absent = programs.iter().find(|name| !there(name));
    if let Some(name) = absent {
        eprintln!("SKIPPED: {name} is not installed (scripts/packages-desktop*.txt)");
    }
    absent.is_some()
}

/// A session: its runtime directory, and the processes in it, which end with it.
pub struct Session {
    directory: TempDir,
    env: Vec<(String, String)>,
    user: u32,
    children: Vec<Child>,
}

impl Session {
    pub fn new() -> Session {
        let directory = tempfile::tempdir().expect("a directory");
        let root = rustix::process::geteuid().is_root();
        let user = if root {
            NOBODY
        } else {
            rustix::process::geteuid().as_raw()
        };
        if root {
            std::os::unix::fs::chown(directory.path(), Some(user), Some(user)).expect("root");
            // X servers of this user put their sockets there, and Xwayland wants it to be root's.
            let _ = fs::create_dir(X11_SOCKETS);
            let _ = fs::set_permissions(X11_SOCKETS, fs::Permissions::from_mode(0o1777));
        }
        let path = directory.path().to_str().expect("a path").to_string();
        let env = [("XDG_RUNTIME_DIR", path.clone()), ("HOME", path)];
        let env = env.map(|(name, value)| (name.to_string(), value)).to_vec();
        Session {
            directory,
            env,
            user,
            children: Vec::new(),
        }
    }

    pub fn user(&self) -> u32 {
        self.user
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.to_string(), value.to_string()));
    }

    /// A command in this session.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().cloned()).stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(self.user).gid(self.user);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a program, and leaves it running.
    pub fn start(&mut self, words: &[&str]) -> u32 {
        let child = self
            .command(words)
            .spawn()
            .expect("a program that is installed");
        self.children.push(child);
        self.children.last().expect("it").id()
    }

    /// A bus for this session; its address. The test, which may be root, is let in too.
    pub fn bus(&mut self) -> String {
        let (socket, config) = (self.path("bus"), self.path("bus.conf"));
        let address = format!("unix:path={}", socket.display());
        let text = BUS_CONFIG.replace("ADDRESS", &address);
        fs::write(&config, text).expect("a file");
        let config = format!("--config-file={}", config.display());
        self.start(&["dbus-daemon", &config, "--nofork"]);
        until("session's bus", || UnixStream::connect(&socket).ok());
        self.set("DBUS_SESSION_BUS_ADDRESS", &address);
        address
    }

    /// Ends a program that was started.
    pub fn end(&mut self, pid: u32) {
        let at = self
            .children
            .iter()
            .position(|child| child.id() == pid)
            .expect("a child");
        let mut child = self.children.remove(at);
        child.kill().expect("an own child");
        child.wait().expect("its end");
    }

    /// The agent in this session.
    pub fn agent(&mut self, arguments: &[&str]) -> Agent {
        let program = env!("CARGO_BIN_EXE_fasttrack-agent");
        // Copied: the session's user may not reach the build's directory.
        let copy = self.path("fasttrack-agent");
        if !copy.exists() {
            fs::copy(program, &copy).expect("the agent");
        }
        let mut words = vec![copy.to_str().expect("a path"), "--print"];
        words.extend(arguments);
        let mut command = self.command(&words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        Agent::of(child.expect("the agent"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A runtime for a test's own calls.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Something, where somebody owns this name.
pub async fn owned(bus: &Connection, name: &str) -> Option<()> {
    let daemon = zbus::fdo::DBusProxy::new(bus).await.ok()?;
    let there = daemon.name_has_owner(name.try_into().ok()?).await.ok()?;
    there.then_some(())
}

/// A connection to the session's bus, which refuses other users but root.
pub fn connect(runtime: &Runtime, address: &str) -> Connection {
    let connect = async { zbus::connection::Builder::address(address)?.build().await };
    runtime.block_on(connect).expect("the session's bus")
}

/// A running agent.
pub struct Agent {
    child: Child,
    lines: Receiver<(Instant, Value)>,
}

impl Agent {
    fn of(mut child: Child) -> Agent {
        let (to, lines) = channel();
        let from = BufReader::new(child.stdout.take().expect("its output"));
        std::thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                let now = Instant::now();
                let value = serde_json::from_str(&line).expect("a line of JSON");
                if to.send((now, value)).is_err() {
                    return;
                }
            }
        });
        Agent { child, lines }
    }

    /// The next report about the focus, and when it came.
    pub fn next(&self) -> (Instant, Value) {
        loop {
            let (at, value) = self.lines.recv_timeout(WAIT_MOST).expect("a report");
            if !["launch", "window", "perceptible"]
                .contains(&value["report"].as_str().unwrap_or_default())
            {
                return (at, value);
            }
        }
    }

    /// Leaves out reports until one says that this process can, or can no longer, be noticed.
    pub fn perceptible(&self, pid: u32, sense: &str, on: bool) {
        loop {
            let (_, value) = self.lines.recv_timeout(WAIT_MOST).expect("a report");
            if value["report"] == "perceptible" && value["app"]["pid"] == pid {
                assert_eq!(
                    (&value["sense"], &value["on"]),
                    (&sense.into(), &on.into()),
                    "{value}"
                );
                return;
            }
        }
    }

    /// Reports about the focus, until this process is in front. Whoever else is, is wrong; nobody may be in between.
    pub fn front(&self, pid: u32) -> Instant {
        self.front_with("pid", &pid.into())
    }

    /// The same, by the app's id.
    pub fn front_app(&self, id: &str) -> Instant {
        self.front_with("id", &id.into())
    }

    fn front_with(&self, key: &str, wanted: &Value) -> Instant {
        loop {
            let (at, value) = self.next();
            match value["report"].as_str() {
                Some("front") => {
                    assert_eq!(&value["apps"][0][key], wanted, "{value}");
                    assert!(value["apps"][0]["inode"].as_u64() > Some(0), "{value}");
                    return at;
                }
                Some("nobody") => {}
                _ => panic!("{value}"),
            }
        }
    }

    /// Leaves out reports until one has this process in front.
    pub fn settle(&self, pid: u32) {
        while self.next().1["apps"][0]["pid"] != pid {}
    }

    /// Resident memory, and how often its threads have slept so far.
    pub fn cost(&self) -> (String, u64) {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(proc.join("status")).expect("a process");
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_string()
        };
        let threads = fs::read_dir(proc.join("task"))
            .expect("a process")
            .flatten();
        let sleeps = threads.map(|thread| {
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            field(&text, "voluntary_ctxt_switches:")
                .parse::<u64>()
                .unwrap_or(0)
        });
        let memory = format!(
            "{} (own {})",
            field(&status, "VmRSS:"),
            field(&status, "RssAnon:")
        );
        (memory, sleeps.sum())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is there.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + WAIT_MOST;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prints a distribution.
pub fn print(name: &str, mut times: Vec<Duration>, agent: &Agent) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let (rss, _) = agent.cost();
    println!(
        "{name}: {} switches, all right; order to report p50 {:.2} ms, p99 {:.2} ms; RSS {rss}",
        times.len(),
        at(0.5),
        at(0.99)
    );
}

/// The agent sleeps while nothing happens: not one wake-up in this time.
pub fn idles(agent: &Agent, time: Duration) {
    // What belongs to the start ends first: a thread of a pool that has nothing to do goes after ten seconds.
    std::thread::sleep(Duration::from_secs(12));
    let (_, before) = agent.cost();
    std::thread::sleep(time);
    let (_, after) = agent.cost();
    assert_eq!(after, before, "wake-ups in {time:?}");
}
