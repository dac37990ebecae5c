// SPDX-License-Identifier: GPL-2.0-only
//! What a session is to `fasttrackd`, for the lab: its guests run apps and no desktop.
//!
//! It puts each app of a run into a control group of its own, as a user's manager does; answers for logind on a bus of
//! its own; starts `fasttrackd` and `fasttrack-agent`; and plays Android's activity events, as the lab writes them into
//! a FIFO, to the agent. So who is in front goes the whole way: event, agent, bus, daemon, write.

mod events;
mod groups;

use events::Player;
use fasttrack_bus::{ManagerProxy, Status};
use fasttrack_login1::Login1;
use groups::{Groups, USER};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use zbus::Connection;

const HELP: &str = "\
fasttrack-standin: what a session is to fasttrackd, in the lab's guests

  fasttrack-standin --rung RUNG --controllers LIST --events FIFO [--app UID=NAME]...

  --rung RUNG         what fasttrackd must say that it does, as in its status
  --controllers LIST  controllers of the apps' control groups, with blanks: memory, io
  --events FIFO       made here; lines of Android's event log that are written to it are played
  --app UID=NAME      an app: processes of the control group /app-NAME move to one as a desktop's
Beside this program must be fasttrackd, fasttrack-agent, fasttrackd.toml and begin.log, the events so far.
";

/// The bus. Programs find it by their environment.
const BUS: &str = "unix:path=/run/standin-bus";

/// A folder of this program's own below its /etc, which has the configuration.
const OWN: &str = "/etc/fasttrack";

/// How long anything that must come up may take, s of the guest's time: with an infinitely fast processor, nothing does.
const COME_UP: Duration = Duration::from_secs(10);

/// How often it is looked for, ms.
const LOOK: Duration = Duration::from_millis(1);

/// What the command line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    rung: String,
    controllers: String,
    events: PathBuf,
    apps: BTreeMap<u32, String>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--rung" => options.rung = value,
            "--controllers" => options.controllers = value,
            "--events" => options.events = value.into(),
            "--app" => {
                let app = value
                    .split_once('=')
                    .and_then(|(uid, name)| Some((uid.parse().ok()?, name.to_string())));
                let (uid, name) = app.ok_or_else(|| format!("--app {value}: must be UID=NAME"))?;
                options.apps.insert(uid, name);
            }
            _ => return Err(format!("{word:?} is no option")),
        }
    }
    match options.rung.is_empty() || options.events.as_os_str().is_empty() {
        true => Err("--rung and --events are needed".to_string()),
        false => Ok(options),
    }
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprint!("fasttrack-standin: {error}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(told("no runtime"))
        .and_then(|runtime| runtime.block_on(serve(&options)));
    // Nobody reads it any more: who writes to it fails, and says so.
    let _ = fs::remove_file(&options.events);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fasttrack-standin: {error}");
            ExitCode::FAILURE
        }
    }
}

/// An error's text, with what it is about.
fn told<E: std::fmt::Display>(what: impl std::fmt::Display) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}

async fn serve(options: &Options) -> Result<(), String> {
    let room = own_room()?;
    etc(&room)?;
    let groups = Groups::make(&options.controllers, &options.apps)?;
    std::env::set_var("DBUS_SYSTEM_BUS_ADDRESS", BUS);
    let _bus = start_bus()?;
    let connection = connect().await?;
    let login = Login1::serve(&connection)
        .await
        .map_err(told("logind's answers"))?;
    login
        .add("c1", USER, true, false)
        .await
        .map_err(told("logind's answers"))?;
    // In a group of its own: what the lab ends together with this program could no longer be asked.
    let mut daemon = Command::new(room.join("fasttrackd"))
        .process_group(0)
        .spawn()
        .map_err(told("fasttrackd"))?;
    let proxy = ManagerProxy::new(&connection)
        .await
        .map_err(told("fasttrackd"))?;
    until_there(&proxy).await?;
    let mut agent = start_agent(&room, &groups)?;
    let mut to = agent.stdin.take().ok_or("the agent has no input")?;
    let mut player = Player::new(groups.apps());
    play(&room.join("begin.log"), &mut player, &mut to)?;
    let status = until_heard(&proxy).await?;
    if status.rung != options.rung {
        return Err(format!(
            "fasttrackd uses the rung {:?} in place of {:?}: {}",
            status.rung,
            options.rung,
            status.notes.join(" ")
        ));
    }
    make_fifo(&options.events)?;
    follow(options.events.clone(), player, to, &proxy).await?;
    end(&mut daemon, "fasttrackd")?;
    // Its other sources go on after the end of its input.
    end(&mut agent, "fasttrack-agent")
}

/// Ends a program: the daemon takes everything back.
fn end(program: &mut Child, name: &str) -> Result<(), String> {
    let pid = libc::pid_t::try_from(program.id()).map_err(told(name))?;
    // SAFETY: it is a child that nobody has waited for, so its number is its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    program.wait().map(drop).map_err(told(name))
}

/// The folder of this program, which has the others.
fn own_room() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(told("this program"))?;
    program
        .parent()
        .map(Path::to_path_buf)
        .ok_or_else(|| "this program is in no folder".to_string())
}

/// A folder /etc of this program's own: the host's says nothing of the guest's users, and has no configuration.
fn etc(room: &Path) -> Result<(), String> {
    let zero = std::ptr::null();
    // SAFETY: the strings end with a zero, and unshare takes a number.
    let failed = unsafe {
        libc::unshare(libc::CLONE_NEWNS) != 0
            || libc::mount(
                c"etc".as_ptr(),
                c"/etc".as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                zero,
            ) != 0
    };
    if failed {
        return Err(format!(
            "a folder /etc of its own: {}",
            io::Error::last_os_error()
        ));
    }
    let put = |path: &str, text: &str| fs::write(path, text).map_err(told(path));
    put(
        "/etc/passwd",
        &format!("root:x:0:0::/:/bin/sh\nuser:x:{USER}:{USER}::/:/bin/sh\n"),
    )?;
    put("/etc/group", &format!("root:x:0:\nuser:x:{USER}:\n"))?;
    put("/etc/nsswitch.conf", "passwd: files\ngroup: files\n")?;
    put(
        "/etc/standin-bus.conf",
        &format!(
            "<busconfig><type>system</type><listen>{BUS}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>\
             <allow user=\"*\"/></policy></busconfig>"
        ),
    )?;
    fs::create_dir(OWN).map_err(told(OWN))?;
    let from = room.join("fasttrackd.toml");
    let to = Path::new(OWN).join("fasttrackd.toml");
    fs::copy(&from, to).map(drop).map_err(told(from.display()))
}

fn start_bus() -> Result<Child, String> {
    let mut command = Command::new("dbus-daemon");
    command.args([
        "--nofork",
        "--nopidfile",
        "--config-file=/etc/standin-bus.conf",
    ]);
    let child = command.stdin(Stdio::null()).process_group(0).spawn();
    child.map_err(told("dbus-daemon (the package dbus-daemon)"))
}

async fn connect() -> Result<Connection, String> {
    let begin = Instant::now();
    loop {
        match Connection::system().await {
            Ok(connection) => return Ok(connection),
            Err(error) if begin.elapsed() > COME_UP => return Err(format!("the bus: {error}")),
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn until_there(proxy: &ManagerProxy<'_>) -> Result<Status, String> {
    let begin = Instant::now();
    loop {
        match proxy.status().await {
            Ok(status) => return Ok(status),
            Err(error) if begin.elapsed() > COME_UP => {
                return Err(format!("fasttrackd does not answer: {error}"))
            }
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Waits until the daemon believes the agent.
async fn until_heard(proxy: &ManagerProxy<'_>) -> Result<Status, String> {
    let begin = Instant::now();
    loop {
        let status = proxy.status().await.map_err(told("fasttrackd"))?;
        if !status.sessions.is_empty() {
            return Ok(status);
        }
        if begin.elapsed() > COME_UP {
            return Err(format!(
                "fasttrackd has not heard the agent: {}",
                status.errors.join("; ")
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn start_agent(room: &Path, groups: &Groups) -> Result<Child, String> {
    // Where the user may start it: the run's directory is for its owner alone.
    let program = Path::new(OWN).join("fasttrack-agent");
    fs::copy(room.join("fasttrack-agent"), &program).map_err(told("fasttrack-agent"))?;
    let mut command = Command::new(program);
    command
        .args(["--source", "manual"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let procs = groups.agent().join("cgroup.procs");
    // SAFETY: between fork and exec one file is written and two system calls are made, in a process of one thread.
    unsafe {
        command.pre_exec(move || {
            fs::write(&procs, "0")?;
            if libc::setresgid(USER, USER, USER) != 0 || libc::setresuid(USER, USER, USER) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.spawn().map_err(told("fasttrack-agent"))
}

/// Plays all events of a file.
fn play(path: &Path, player: &mut Player, to: &mut ChildStdin) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(told(path.display()))?;
    text.lines().try_for_each(|line| tell(line, player, to))
}

fn tell(line: &str, player: &mut Player, to: &mut ChildStdin) -> Result<(), String> {
    match player.take(line) {
        Some(order) => writeln!(to, "{order}").map_err(told("the agent has ended")),
        None => Ok(()),
    }
}

fn make_fifo(path: &Path) -> Result<(), String> {
    let name =
        std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).map_err(told("--events"))?;
    // SAFETY: the string ends with a zero.
    match unsafe { libc::mkfifo(name.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(format!(
            "{}: {}",
            path.display(),
            io::Error::last_os_error()
        )),
    }
}

/// Plays events as they come, until it is ended by a signal; then says what the daemon has done.
async fn follow(
    events: PathBuf,
    mut player: Player,
    mut to: ChildStdin,
    proxy: &ManagerProxy<'_>,
) -> Result<(), String> {
    // For reading and writing: so it never ends, whoever opens and closes it.
    let fifo = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&events)
        .map_err(told(events.display()))?;
    std::thread::spawn(move || {
        for line in BufReader::new(fifo).lines().map_while(Result::ok) {
            if let Err(error) = tell(&line, &mut player, &mut to) {
                eprintln!("fasttrack-standin: {error}");
                return;
            }
        }
    });
    let kind = tokio::signal::unix::SignalKind::terminate();
    let mut end = tokio::signal::unix::signal(kind).map_err(told("signals"))?;
    end.recv().await;
    let status = proxy.status().await.map_err(told("fasttrackd"))?;
    for (name, count) in &status.counters {
        println!("{name}: {count}");
    }
    status
        .errors
        .iter()
        .for_each(|error| eprintln!("fasttrackd: {error}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn the_command_line_is_read_or_refused() {
        let all = [
            "--rung",
            "freezer",
            "--controllers",
            "memory",
            "--events",
            "/run/e",
            "--app",
            "10101=gallery",
        ];
        let options = parsed(&all).expect("good");
        assert_eq!(options.rung, "freezer");
        assert_eq!(options.apps[&10101], "gallery");
        for bad in [
            &["--rung"][..],
            &["--rung", "x"],
            &["--what", "x"],
            &["--app", "gallery"],
        ] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }
}
