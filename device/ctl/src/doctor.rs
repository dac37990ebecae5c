// SPDX-License-Identifier: GPL-2.0-only
//! Looks for what is wrong on this machine, and says what to do about it.

use crate::cli::Cli;
use crate::meaning;
use fasttrack_bus::{ManagerProxy, SessionStatus, Status};
use fasttrack_detector::report::Nobody;
use fasttrack_detector::Quiet;
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use zbus::fdo::DBusProxy;
use zbus::Connection;

/// The name of polkit on the system bus.
const POLKIT: &str = "org.freedesktop.PolicyKit1";

/// Works in sessions with `graphical-session.target` and without.
const NO_AGENT: &str = "no agent has reported: 'fasttrack-agent --start' in the session has systemd start it; \
    fasttrack-agent(1) says how it starts with each session, 'journalctl --user -u fasttrack-agent' why it has ended";

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub good: bool,
    /// How it is, and what to do where that is not good.
    pub how: String,
}

fn finding(what: &'static str, result: Result<String, String>) -> Finding {
    let good = result.is_ok();
    let how = result.unwrap_or_else(|how| how);
    Finding { what, good, how }
}

/// Looks at everything.
pub async fn examine(cli: &Cli, daemon: Result<ManagerProxy<'static>, String>) -> Vec<Finding> {
    let status = match &daemon {
        Ok(daemon) => daemon.status().await.map_err(meaning),
        Err(error) => Err(error.clone()),
    };
    let mut all = vec![
        finding("control groups", cgroups(cli)),
        finding("kernel", kernel(cli, status.as_ref().ok())),
        finding("configuration", configuration(cli)),
    ];
    match status {
        Err(error) => all.push(finding("daemon", Err(error))),
        Ok(status) => {
            all.push(finding(
                "daemon",
                Ok(format!("it runs, version {}", status.version)),
            ));
            let rung = match status.rung.as_str() {
                "observe" => Err(format!(
                    "it can do nothing for the app in front: {}",
                    status.notes.join(" ")
                )),
                rung => Ok(format!("rung: {rung}")),
            };
            all.push(finding("effects", rung));
            all.extend(agents(&status));
            all.push(finding(
                "errors",
                match status.errors.len() {
                    0 => Ok("none".to_string()),
                    _ => Err(status.errors.join("\n    ")),
                },
            ));
        }
    }
    all.push(finding("sound", sound(cli)));
    if let Ok(daemon) = daemon {
        let there = polkit(daemon.inner().connection()).await;
        all.push(finding("polkit", there));
    }
    all
}

/// Each session that has an agent.
fn agents(status: &Status) -> Vec<Finding> {
    if status.sessions.is_empty() {
        return vec![finding("agent", Err(NO_AGENT.to_string()))];
    }
    let agent = |session| finding("agent", agent(session));
    status.sessions.iter().map(agent).collect()
}

/// Whether a session's agent tells who is in front. That nobody is may be so: the screen is locked, for one.
fn agent(session: &SessionStatus) -> Result<String, String> {
    let who = format!("session {} of user {}", session.session, session.user);
    let focus = session.sources.first().map(String::as_str);
    let by = focus.map_or_else(String::new, |source| {
        format!(", the focus is told by {source}")
    });
    let quiet = session.quiet.as_str();
    let is_so = |why: &Nobody| quiet == Quiet::Nobody(*why).to_string();
    match quiet {
        "" => Ok(format!("{who}{by}")),
        _ if Nobody::ALL.iter().any(is_so) => Ok(format!("{who}{by}; nobody is in front: {quiet}")),
        _ => Err(format!(
            "{who}{by}; {quiet}, so nobody is in front: 'fasttrack-agent --list' in the session \
             says what can tell, 'journalctl --user -u fasttrack-agent' what went wrong"
        )),
    }
}

/// Who is heard is read from a program of PipeWire's.
fn sound(cli: &Cli) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| {
        std::env::split_paths(&path).any(|folder| {
            let below = folder.strip_prefix("/").unwrap_or(&folder);
            cli.root.join(below).join(program).is_file()
        })
    };
    let (agent, _) = fasttrack_config::agent::load(&cli.root, |name| std::env::var(name).ok());
    if agent.without.iter().any(|one| one == "pipewire") {
        return Ok("the agent does not ask PipeWire, by its configuration".to_string());
    }
    match (there("pipewire"), there("pw-dump")) {
        (_, true) => Ok("pw-dump tells who plays and records".to_string()),
        (false, false) => {
            Ok("there is no PipeWire: apps that play or record count as any others".to_string())
        }
        (true, false) => Err(
            "pw-dump is missing, so apps that play, record or use the camera count as any others: install the package \
             that has it (pipewire-bin, pipewire-utils)"
                .to_string(),
        ),
    }
}

/// Without it the daemon refuses what a user who is not root wants to change.
async fn polkit(bus: &Connection) -> Result<String, String> {
    let is_there = async {
        let daemon = DBusProxy::new(bus).await?;
        let started = daemon.list_activatable_names().await?;
        let names = daemon.list_names().await?;
        let mut all = started.iter().chain(&names);
        Ok::<bool, zbus::Error>(all.any(|name| name.as_str() == POLKIT))
    };
    match is_there.await.map_err(meaning)? {
        true => Ok("it can be asked who may say by hand who is in front".to_string()),
        false => Err(
            "it is missing, so root alone may use 'fasttrackctl foreground': install the package polkitd, or polkit"
                .to_string(),
        ),
    }
}

fn cgroups(cli: &Cli) -> Result<String, String> {
    let mounts = fs::read_to_string(cli.root.join("proc/self/mounts")).unwrap_or_default();
    let mut kinds = mounts.lines().filter_map(|line| line.split(' ').nth(2));
    if !kinds.any(|kind| kind == "cgroup2") {
        return Err(
            "version 2 is not mounted: boot with systemd.unified_cgroup_hierarchy=1".to_string(),
        );
    }
    if mounts
        .lines()
        .any(|line| line.split(' ').nth(2) == Some("cgroup"))
    {
        return Ok("version 2 is mounted beside version 1, which keeps its controllers: only freezing works".to_string());
    }
    Ok("version 2".to_string())
}

fn kernel(cli: &Cli, status: Option<&Status>) -> Result<String, String> {
    let folder = cli.root.join("sys/kernel/fasttrack");
    if !folder.is_dir() {
        return Ok("it has no FastTrack: weights, the freezer or priorities are used".to_string());
    }
    let read = |name: &str| fs::read_to_string(folder.join(name));
    match read("enabled").as_deref().map(str::trim) {
        Ok("1") => Ok("it has FastTrack, switched on".to_string()),
        Ok(_) => {
            let ejected = read("ejected").unwrap_or_default();
            switched_off(cli, ejected.trim(), status)
        }
        Err(error) => Err(format!("/sys/kernel/fasttrack/enabled: {error}")),
    }
}

/// Whether FastTrack is to be off, and what to do if not. EJECTED: why it has switched itself off; empty if it has not.
fn switched_off(cli: &Cli, ejected: &str, status: Option<&Status>) -> Result<String, String> {
    let on = "'echo 1 >/sys/kernel/fasttrack/enabled' switches it on again";
    let (config, _) = fasttrack_config::load(&cli.root);
    let said = |status: &Status| {
        let mut notes = status.notes.iter();
        notes.find(|note| note.starts_with("kernel: ")).cloned()
    };
    let off = "it has FastTrack, switched off";
    if !ejected.is_empty() {
        return Err(format!(
            "it has FastTrack, which has switched itself off ({ejected}): {on}"
        ));
    }
    if !config.effects.kernel {
        return Ok(format!("{off} by the configuration (kernel = false)"));
    }
    Err(match status.map(said) {
        None => format!("{off}: fasttrackd switches it on when it starts"),
        Some(Some(note)) => format!("{off}; fasttrackd says: {note}"),
        Some(None) => format!("{off} by somebody: {on}"),
    })
}

fn configuration(cli: &Cli) -> Result<String, String> {
    let (files, problems) = crate::configuration(cli);
    if problems.is_empty() {
        return Ok(format!("{files} files, no error"));
    }
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Err(lines.join("\n    "))
}

/// All findings as text.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = if finding.good { "ok  " } else { "BAD " };
        let _ = writeln!(text, "{mark}{}: {}", finding.what, finding.how);
    }
    text
}
