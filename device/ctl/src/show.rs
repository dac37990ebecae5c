// SPDX-License-Identifier: GPL-2.0-only
//! Answers of the daemon as text.

use fasttrack_bus::{AppStatus, Explanation, SessionStatus, Status};
use std::fmt::Write;

/// What the daemon does.
pub fn status(status: &Status) -> String {
    let mut text = format!("fasttrackd {}, rung: {}\n", status.version, status.rung);
    for note in &status.notes {
        let _ = writeln!(text, "  {note}");
    }
    section(
        &mut text,
        "sessions",
        &status.sessions,
        "no agent has reported",
        session,
    );
    let apps = status
        .apps
        .iter()
        .filter(|app| matches!(app.class.as_str(), "foreground" | "perceptible"))
        .collect::<Vec<_>>();
    section(&mut text, "apps", &apps, "nobody is in front", |one| {
        app(one)
    });
    let behind = status.apps.len() - apps.len();
    if behind > 0 {
        let _ = writeln!(text, "  and {behind} behind; 'fasttrackctl top' lists them");
    }
    if !status.frozen.is_empty() {
        section(&mut text, "frozen now", &status.frozen, "", Clone::clone);
    }
    let counters: Vec<_> = status.counters.iter().collect();
    section(
        &mut text,
        "counters",
        &counters,
        "nothing yet",
        |(name, number)| format!("{name}: {number}"),
    );
    if !status.errors.is_empty() {
        section(&mut text, "errors", &status.errors, "", Clone::clone);
    }
    text
}

/// Why an app has its class.
pub fn explanation(explanation: &Explanation) -> String {
    let one = &explanation.app;
    let mut text = format!("{}\n  {} because {}", name(one), one.class, one.why);
    if one.for_ms > 0 {
        let _ = write!(text, ", for {}", span(one.for_ms));
    }
    text.push('\n');
    for line in &explanation.done {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn section<T>(text: &mut String, title: &str, all: &[T], none: &str, line: impl Fn(&T) -> String) {
    let _ = writeln!(text, "{title}:");
    if all.is_empty() {
        let _ = writeln!(text, "  {none}");
    }
    for one in all {
        let _ = writeln!(text, "  {}", line(one));
    }
}

fn session(session: &SessionStatus) -> String {
    let seat = if session.seat.is_empty() {
        "no seat"
    } else {
        &session.seat
    };
    let mut line = format!(
        "{} of user {} on {seat}, agent {}, {} reports",
        session.session, session.user, session.agent, session.reports
    );
    if let Some((focus, others)) = session.sources.split_first() {
        let _ = write!(line, "; the focus is told by {focus}");
        if !others.is_empty() {
            let _ = write!(line, ", more by {}", others.join(", "));
        }
    }
    if !session.quiet.is_empty() {
        let _ = write!(line, "; nobody in front: {}", session.quiet);
    }
    line
}

fn app(app: &AppStatus) -> String {
    format!(
        "{:<11} {} ({}, {})",
        app.class,
        name(app),
        app.why,
        span(app.for_ms)
    )
}

fn name(app: &AppStatus) -> String {
    if app.app.id.is_empty() {
        app.app.cgroup.clone()
    } else {
        format!("{} {}", app.app.id, app.app.cgroup)
    }
}

/// A time for people.
pub fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_bus::WireApp;

    fn an_app(class: &str) -> AppStatus {
        AppStatus {
            app: WireApp {
                cgroup: "/user.slice/a.scope".to_string(),
                inode: 1,
                id: "org.example.A".to_string(),
                pid: 0,
            },
            class: class.to_string(),
            rule: "focus".to_string(),
            why: "it has the focus".to_string(),
            for_ms: 90_000,
            session: "c1".to_string(),
            user: 1000,
        }
    }

    #[test]
    fn a_status_names_the_rung_the_front_and_what_is_inert() {
        let text = status(&Status {
            version: "1".to_string(),
            rung: "observe".to_string(),
            notes: vec!["kernel: this kernel has no /sys/kernel/fasttrack.".to_string()],
            sessions: Vec::new(),
            apps: ["foreground", "background", "neutral"].map(an_app).to_vec(),
            frozen: Vec::new(),
            counters: [("reports".to_string(), 3)].into(),
            errors: Vec::new(),
        });
        let expected = "\
fasttrackd 1, rung: observe
  kernel: this kernel has no /sys/kernel/fasttrack.
sessions:
  no agent has reported
apps:
  foreground  org.example.A /user.slice/a.scope (it has the focus, 90 s)
  and 2 behind; 'fasttrackctl top' lists them
counters:
  reports: 3
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_session_names_its_sources() {
        let of = |sources: &[&str]| {
            session(&SessionStatus {
                session: "c1".to_string(),
                user: 1000,
                seat: String::new(),
                active: true,
                agent: 7,
                reports: 3,
                quiet: "the screen is locked".to_string(),
                sources: sources.iter().map(ToString::to_string).collect(),
            })
        };
        let begin = "c1 of user 1000 on no seat, agent 7, 3 reports";
        let end = "; nobody in front: the screen is locked";
        assert_eq!(of(&[]), format!("{begin}{end}"));
        let told = "; the focus is told by sway, more by launch, exec";
        assert_eq!(
            of(&["sway", "launch", "exec"]),
            format!("{begin}{told}{end}")
        );
    }

    #[test]
    fn an_explanation_is_a_sentence() {
        let text = explanation(&Explanation {
            app: an_app("foreground"),
            done: vec!["Nothing was set.".to_string()],
        });
        let expected = "org.example.A /user.slice/a.scope\n  foreground because it has the focus, for 90 s\n  Nothing was set.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn times_are_for_people() {
        let all = [0, 999, 1000, 119_999, 120_000, 7_200_000].map(span);
        assert_eq!(all, ["0 ms", "999 ms", "1 s", "119 s", "2 min", "2 h"]);
    }
}
