// SPDX-License-Identifier: GPL-2.0-only
//! The process with which an app begins, where nobody names it: a window manager, or a launcher, says that it starts
//! one, and it is in their control group. Looked for only then, and in that group alone.

use crate::fault::Fault;
use crate::place::{Place, TICKS};
use crate::source::Out;
use crate::window::Window;
use std::time::Duration;

/// What is older than this when it is looked for was there before, s.
const FRESH: f64 = 1.0;
/// The same of who gets a token: it begins after that was announced, but announcements wait while another is looked for,
/// each for as long as all looks take.
const ANNOUNCED: f64 = 5.0;
/// How long to wait before each look: who says that it starts something may do so before or after.
const LOOKS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(400),
];
/// What startup notification and xdg-activation hand to a process in its environment.
const TOKENS: [&str; 2] = ["DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN"];

/// By what a process is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By<'a> {
    /// The window manager has just started it.
    Parent(u32),
    /// It has this token.
    Token(&'a str),
}

/// The processes with which an app begins, in a group: those whose descendants the others are.
///
/// An environment is read only of who has just begun, and once: the kernel takes the process's `mmap_lock` for that, and
/// reads its stack back where that was swapped out.
pub fn roots(place: &Place, group: &str, by: By<'_>) -> Vec<u32> {
    let Some(now) = place.now() else {
        return Vec::new();
    };
    let is_younger = |pid: u32, age: f64| {
        let started = place.started(pid);
        started.is_some_and(|started| now.saturating_sub(started) as f64 <= age * TICKS)
    };
    let all = place.processes(group);
    let mut found = all.clone();
    found.retain(|pid| match by {
        By::Parent(_) => is_younger(*pid, FRESH),
        By::Token(token) => is_younger(*pid, ANNOUNCED) && place.has_variable(*pid, &TOKENS, token),
    });
    let is_root = |pid: u32| {
        let parent = place.parent(pid).unwrap_or(0);
        match by {
            // Who starts another for good forks twice: the second belongs to nobody in this group.
            By::Parent(manager) => pid != manager && (parent == manager || !all.contains(&parent)),
            By::Token(_) => !found.contains(&parent),
        }
    };
    found.iter().copied().filter(|pid| is_root(*pid)).collect()
}

/// Looks for them until there is one, and gives each a scope.
pub fn begin(out: &Out, group: &str, by: By<'_>, id: &str) -> Result<(), Fault> {
    for pause in LOOKS {
        std::thread::sleep(pause);
        let found = roots(out.resolver().place(), group, by);
        for pid in &found {
            out.begins(&Window::of(*pid, id), group)?;
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakePlace;

    const SESSION: &str = "/user.slice/user-1.slice/session-2.scope";

    fn fake() -> FakePlace {
        let fake = FakePlace::new();
        fake.uptime("1000.00 0.00");
        for (pid, parent, started) in [
            (10, 1, 50_000),  // the window manager
            (11, 10, 50_100), // its bar
            (12, 11, 99_990), // a program of the bar
            (20, 1, 99_990),  // what the window manager starts for good
            (21, 20, 99_995), // its child
            (22, 10, 99_995), // what stays its child
            (23, 10, 60_000), // the same, long ago
        ] {
            fake.process_of(pid, SESSION, parent, started);
        }
        fake
    }

    #[test]
    fn what_a_window_manager_has_just_started_is_found_and_a_bars_programs_are_not() {
        assert_eq!(roots(&fake().place(), SESSION, By::Parent(10)), [20, 22]);
    }

    #[test]
    fn a_token_is_found_in_the_first_process_that_has_it() {
        let fake = fake();
        for (pid, name) in [(12, TOKENS[1]), (20, TOKENS[0]), (21, TOKENS[0])] {
            let token = if pid == 12 { "other" } else { "this" };
            fake.environment(pid, &format!("A=b\0{name}={token}\0"));
        }
        let by = |token| roots(&fake.place(), SESSION, By::Token(token));
        assert_eq!(
            (by("this"), by("other"), by("th")),
            (vec![20], vec![12], vec![])
        );
    }

    #[test]
    fn of_who_was_there_before_no_environment_is_read_and_of_others_once() {
        let fake = fake();
        let pids = [10, 11, 12, 20, 21, 22, 23];
        for pid in pids {
            fake.environment(pid, &format!("{}=this\0", TOKENS[0]));
        }
        let mut opened = pids.map(|pid| fake.opened(pid, "environ"));
        let found = roots(&fake.place(), SESSION, By::Token("this"));
        assert_eq!(found, [12, 20, 22]);
        let opened = opened.each_mut().map(|opened| opened());
        assert_eq!(opened, [0, 0, 1, 1, 1, 1, 0]);
    }
}
