// SPDX-License-Identifier: GPL-2.0-only
//! The configuration of `fasttrack-agent`: `fasttrack/agent.toml` in the folders of the XDG Base Directory
//! Specification. A user's own file wins over the administrator's, setting by setting.

use crate::settings::{Settings, Wrong};
use crate::{read, Problem};
use std::path::{Path, PathBuf};

/// Its name below each folder.
pub const FILE: &str = "fasttrack/agent.toml";

/// Sources of focus.
pub const FOCUS: [&str; 14] = [
    "sway",
    "i3",
    "hyprland",
    "niri",
    "kde",
    "gnome",
    "cosmic",
    "toplevel",
    "x11",
    "toplevel-list",
    "uid-observer",
    "manual",
    "android-replay",
    "none",
];

/// All other sources.
pub const OTHERS: [&str; 10] = [
    "launch",
    "exec",
    "startup",
    "session-bus",
    "portal",
    "logind",
    "idle",
    "x11-screen",
    "inhibitors",
    "pipewire",
];

/// What a user can say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// The source of focus; without one, the first that can tell.
    pub source: Option<String>,
    /// Sources that are not used.
    pub without: Vec<String>,
}

/// Where the files may be, the weaker first, by the variables of an environment. A relative folder is none.
pub fn places(root: &Path, var: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let var = |name: &str| var(name).filter(|value| !value.is_empty());
    let own = var("XDG_CONFIG_HOME").or_else(|| Some(format!("{}/.config", var("HOME")?)));
    let all = var("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".to_string());
    let folders = all.split(':').rev().map(str::to_string).chain(own);
    folders
        .filter_map(|folder| Some(root.join(folder.strip_prefix('/')?).join(FILE)))
        .collect()
}

/// The configuration of a session's agent, and what is wrong with it.
pub fn load(root: &Path, var: impl Fn(&str) -> Option<String>) -> (Agent, Vec<Problem>) {
    let (mut agent, mut problems) = (Agent::default(), Vec::new());
    for file in places(root, var) {
        match read(&file) {
            Ok(text) => problems.extend(text.iter().flat_map(|text| add(&mut agent, &file, text))),
            Err(problem) => problems.push(problem),
        }
    }
    (agent, problems)
}

/// Adds the settings of one file. Says what is wrong with it.
pub fn add(agent: &mut Agent, file: &Path, text: &str) -> Vec<Problem> {
    let mut all = match Settings::parse(text) {
        Ok(all) => all,
        Err(error) => return vec![Problem::no_toml(file, text, &error)],
    };
    let mut wrong = Wrong::new();
    let what = format!("a source of focus: {}", FOCUS.join(", "));
    let fits = |name: &str| FOCUS.contains(&name);
    if let Some(name) = all.text("source", fits, &what, &mut wrong) {
        agent.source = Some(name);
    }
    let what = "a source; 'fasttrack-agent --list' has them";
    let fits = |name: &str| FOCUS.contains(&name) || OTHERS.contains(&name);
    if let Some(names) = all.texts("without", fits, what, &mut wrong) {
        agent.without = names;
    }
    all.end(&mut wrong);
    Problem::of(file, text, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_user_s_file_wins_setting_by_setting() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path).join(FILE);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        put("etc/xdg", "source = \"x11\"\nwithout = [\"pipewire\"]\n");
        put("home/u/.config", "source = \"sway\"\n");
        put("other", "without = []\n");
        let home = |name: &str| (name == "HOME").then(|| "/home/u".to_string());
        let (agent, problems) = load(root.path(), home);
        assert_eq!(problems, []);
        assert_eq!(agent.source.as_deref(), Some("sway"));
        assert_eq!(agent.without, ["pipewire"]);
        let moved = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/other".to_string()),
            "XDG_CONFIG_DIRS" => Some("relative:/etc/xdg:/nowhere".to_string()),
            other => home(other),
        };
        let (agent, problems) = load(root.path(), moved);
        assert_eq!(problems, []);
        assert_eq!(agent.source.as_deref(), Some("x11"));
        assert!(agent.without.is_empty());
        assert_eq!(load(root.path(), |_| None).0.source.as_deref(), Some("x11"));
    }

    #[test]
    fn an_error_has_its_file_and_line_and_spoils_no_other_setting() {
        let wrong = |text: &str| {
            let mut agent = Agent::default();
            let problems = add(&mut agent, Path::new("a.toml"), text);
            let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
            (agent, problems.join("\n"))
        };
        let (agent, problems) = wrong("# mine\nsource = \"telepathy\"\nwithout = [\"logind\"]\n");
        assert!(problems.starts_with("a.toml:2: \"telepathy\" is not a source of focus: sway,"));
        assert_eq!(
            (agent.source, agent.without),
            (None, vec!["logind".to_string()])
        );
        assert!(wrong("\nwithout = [\n\"x\"]\n")
            .1
            .starts_with("a.toml:3: \"x\" is not"));
        let (agent, problems) = wrong("sauce = 1\nsource = 7\nwithout = [\"x11\"]\n");
        assert_eq!(problems.lines().count(), 2, "{problems}");
        assert_eq!(agent.without, ["x11"]);
        assert!(wrong("sauce = 1\n")
            .1
            .starts_with("a.toml:1: unknown field"));
        assert!(wrong("source = \n").1.starts_with("a.toml:1: "));
        fasttrack_fuzz::mutate(
            b"source = \"sway\"\nwithout = [\"x11\", \"exec\"]\n",
            |bytes| {
                let (agent, _) = wrong(&String::from_utf8_lossy(bytes));
                assert!(agent
                    .source
                    .is_none_or(|name| FOCUS.contains(&name.as_str())));
            },
        );
    }
}
