// SPDX-License-Identifier: GPL-2.0-only
//! Events of Android's activity manager, as lines for the agent's source `manual`: by whom they are said, a UID, and by
//! which control group the agent is to say it.

use fasttrack_agent::android::{parse, Replay, Step};
use fasttrack_detector::report::{AppRef, Report};
use std::collections::BTreeMap;

/// Plays a log.
#[derive(Debug)]
pub struct Player {
    replay: Replay,
    groups: BTreeMap<u32, String>,
}

impl Player {
    /// With the control group of each UID.
    pub fn new(groups: &BTreeMap<u32, String>) -> Player {
        Player {
            replay: Replay::default(),
            groups: groups.clone(),
        }
    }

    /// What the agent is to be told of a line of the log, if anything.
    pub fn take(&mut self, line: &str) -> Option<String> {
        match self.replay.take(&parse(line))? {
            Step::Front => {
                let apps = self.replay.front();
                let groups: Vec<&str> = apps.iter().filter_map(|app| self.group(app)).collect();
                Some(match groups.is_empty() {
                    true => "nobody".to_string(),
                    false => format!("front {}", groups.join(" ")),
                })
            }
            Step::Tell(Report::Launch(app)) => {
                self.group(&app).map(|group| format!("launch {group}"))
            }
            Step::Tell(Report::Window(app)) => {
                self.group(&app).map(|group| format!("window {group}"))
            }
            Step::Tell(_) => None,
            Step::Away(on) => Some(format!("away locked {}", if on { "on" } else { "off" })),
        }
    }

    fn group(&self, app: &AppRef) -> Option<&str> {
        let uid = app.cgroup.strip_prefix("/uid_")?.parse().ok()?;
        self.groups.get(&uid).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_two_lines_of_the_log_and_one_app_in_front() {
        let groups =
            [(10101, "/a.scope"), (10102, "/b.scope")].map(|(uid, path)| (uid, path.to_string()));
        let mut player = Player::new(&BTreeMap::from(groups));
        let lines = [
            ("I/am_proc_start: [0,1,10101,a,service,x]", Some("nobody")),
            (
                "I/am_proc_start: [0,2,10102,b,activity,x]",
                Some("launch /b.scope"),
            ),
            (
                "I/wm_resume_activity: [0,11,1,a/.Main]",
                Some("front /a.scope"),
            ),
            ("I/wm_pause_activity: [0,11,a/.Main]", Some("nobody")),
            (
                "I/wm_resume_activity: [0,12,1,b/.Main]",
                Some("front /b.scope"),
            ),
            ("I/screen_toggled: 0", Some("away locked on")),
            ("not a line of a log", None),
        ];
        for (line, wanted) in lines {
            assert_eq!(player.take(line).as_deref(), wanted, "{line}");
        }
    }
}
