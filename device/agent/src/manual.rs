// SPDX-License-Identifier: GPL-2.0-only
//! By hand: a line each on the standard input, for scripts and for compositors that no other source knows.
//!
//! `front PID|CGROUP|ID …`, `nobody`, `window PID|CGROUP|ID`, `launch CGROUP`, `away locked|idle|inactive on|off`;
//! empty lines and those that begin with `#` are left out.

use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::window::Window;
use fasttrack_detector::report::{AppRef, Nobody, Report};
use std::io::BufRead;

/// A line, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// These are in front.
    Front(Vec<Name>),
    /// Nobody is.
    Nobody,
    /// A window has opened.
    Window(Name),
    /// An app begins.
    Launch(String),
    /// Nobody uses the session, or somebody does again.
    Away(Nobody, bool),
    /// Nothing is said.
    Nothing,
}

/// How a line names an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// A process or an application id.
    Window(Window),
    /// A control group.
    Group(String),
}

/// Reads a line.
pub fn parse(line: &str) -> Result<Line, Fault> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Ok(match words[..] {
        [] => Line::Nothing,
        [first, ..] if first.starts_with('#') => Line::Nothing,
        ["front", _, ..] => Line::Front(words[1..].iter().map(|word| name(word)).collect()),
        ["nobody"] => Line::Nobody,
        ["window", word] => Line::Window(name(word)),
        ["launch", group] if group.starts_with('/') => Line::Launch(group.to_string()),
        ["away", why, "on"] => Line::Away(reason(why)?, true),
        ["away", why, "off"] => Line::Away(reason(why)?, false),
        _ => return Err(Fault(format!("not understood: {line:?}"))),
    })
}

fn name(word: &str) -> Name {
    match word.parse() {
        Ok(pid) => Name::Window(Window::of(pid, "")),
        Err(_) if word.starts_with('/') => Name::Group(word.to_string()),
        Err(_) => Name::Window(Window::of(0, word)),
    }
}

fn reason(word: &str) -> Result<Nobody, Fault> {
    match word {
        "locked" => Ok(Nobody::Locked),
        "idle" => Ok(Nobody::Idle),
        "inactive" => Ok(Nobody::Inactive),
        _ => Err(Fault(format!(
            "not understood: {word:?} is neither locked, idle nor inactive"
        ))),
    }
}

/// The standard input.
#[derive(Default)]
pub struct Manual;

impl Source for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }

    fn probe(&self) -> Probe {
        Probe::No("is only used where it is asked for".into())
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        follow(&mut std::io::stdin().lock(), out)
    }
}

/// Says what lines say, until they end. A line that is not understood is counted, and the next one is read.
pub fn follow(from: &mut impl BufRead, out: &Out) -> Result<(), Fault> {
    let mut room = Vec::new();
    while let Some(line) = crate::socket::line(from, &mut room)? {
        match parse(&String::from_utf8_lossy(line)) {
            Ok(line) => obey(line, out)?,
            Err(Fault(why)) => out.say(crate::event::Event::Fault {
                source: "manual",
                why,
            })?,
        }
    }
    Ok(())
}

fn obey(line: Line, out: &Out) -> Result<(), Fault> {
    match line {
        Line::Front(names) => front(&names, out),
        Line::Nobody => out.nobody(),
        Line::Window(Name::Window(window)) => out.window(&window),
        Line::Window(Name::Group(group)) => match out.resolver().app(&group, "", 0) {
            Some(app) => out.say(crate::event::Event::Other(Report::Window(app))),
            None => Ok(()),
        },
        Line::Launch(group) => out
            .resolver()
            .app(&group, "", 0)
            .map_or(Ok(()), |app| out.launch(app)),
        Line::Away(why, on) => out.away(why, on),
        Line::Nothing => Ok(()),
    }
}

fn front(names: &[Name], out: &Out) -> Result<(), Fault> {
    let groups: Vec<AppRef> = names
        .iter()
        .filter_map(|name| match name {
            Name::Group(group) => out.resolver().app(group, "", 0),
            Name::Window(_) => None,
        })
        .collect();
    if !groups.is_empty() {
        return out.focus(Report::Front(groups));
    }
    let windows = names.iter().filter_map(|name| match name {
        Name::Window(window) => Some(window.clone()),
        Name::Group(_) => None,
    });
    out.front(&windows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::testing::{mutate, FakePlace};

    #[test]
    fn lines_are_understood_or_refused() {
        assert_eq!(
            parse("front 7"),
            Ok(Line::Front(vec![Name::Window(Window::of(7, ""))]))
        );
        assert_eq!(parse(" nobody "), Ok(Line::Nobody));
        assert_eq!(parse("# a note"), Ok(Line::Nothing));
        assert_eq!(parse("away idle on"), Ok(Line::Away(Nobody::Idle, true)));
        for bad in [
            "front",
            "launch x",
            "away asleep on",
            "away idle",
            "boost 7",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_line_is_counted_and_the_next_one_holds() {
        let fake = FakePlace::new();
        let app = fake.app("app-foot-7.scope", 7);
        let (to, from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("manual", fake.resolver(), to);
        follow(&mut &b"bad\nfront 7\n"[..], &out).expect("the end");
        assert!(matches!(from.recv(), Ok(Event::Fault { .. })));
        assert_eq!(from.recv(), Ok(Event::Focus(Report::Front(vec![app]))));
    }

    #[test]
    fn spoilt_lines_do_no_harm() {
        mutate(b"front 7 /a b\naway locked on\nlaunch /x\n", |bytes| {
            String::from_utf8_lossy(bytes)
                .lines()
                .for_each(|line| drop(parse(line)));
        });
    }
}
