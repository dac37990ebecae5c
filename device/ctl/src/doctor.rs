// SPDX-License-Identifier: GPL-2.0-only
//! Looks for what is wrong on this machine, and says what to do about it.

use crate::cli::Cli;
use crate::meaning;
use fasttrack_bus::ManagerProxy;
use serde::Serialize;
use std::fmt::Write;
use std::fs;

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
    let mut all = vec![
        finding("control groups", cgroups(cli)),
        finding("kernel", kernel(cli)),
        finding("configuration", configuration(cli)),
    ];
    let status = match daemon {
        Ok(daemon) => daemon.status().await.map_err(meaning),
        Err(error) => Err(error),
    };
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
            all.push(finding(
                "agent",
                match status.sessions.len() {
                    0 => Err(NO_AGENT.to_string()),
                    number => Ok(format!("{number} sessions have one")),
                },
            ));
            all.push(finding(
                "errors",
                match status.errors.len() {
                    0 => Ok("none".to_string()),
                    _ => Err(status.errors.join("\n    ")),
                },
            ));
        }
    }
    all
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

fn kernel(cli: &Cli) -> Result<String, String> {
    let folder = cli.root.join("sys/kernel/fasttrack");
    if !folder.is_dir() {
        return Ok("it has no FastTrack: weights, the freezer or priorities are used".to_string());
    }
    match fs::read_to_string(folder.join("enabled"))
        .as_deref()
        .map(str::trim)
    {
        Ok("1") => Ok("it has FastTrack, switched on".to_string()),
        Ok(_) => Err(
            "it has FastTrack, switched off: fasttrackd switches it on when it starts".to_string(),
        ),
        Err(error) => Err(format!("/sys/kernel/fasttrack/enabled: {error}")),
    }
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
