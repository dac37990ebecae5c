// SPDX-License-Identifier: GPL-2.0-only
//! What a session says of itself: its environment and its runtime directory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// Variables that compositors and X servers set.
const SESSION: [&str; 9] = [
    "DISPLAY",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "I3SOCK",
    "NIRI_SOCKET",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_SESSION_ID",
];

/// An environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// This process's.
    pub fn own() -> Env {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Env(std::env::vars_os().filter_map(text).collect())
    }

    /// One that a test makes.
    pub fn of<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Env {
        let text = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        Env(all.into_iter().map(text).collect())
    }

    /// With the variables of a session that were imported since, `NAME=VALUE` each.
    pub fn with(&self, set: &[String]) -> Env {
        let mut env = self.clone();
        let all = set.iter().filter_map(|one| one.split_once('='));
        for (name, value) in all.filter(|(name, _)| SESSION.contains(name)) {
            env.0.insert(name.to_string(), value.to_string());
        }
        env
    }

    /// What compositors and X servers have set here, `NAME=VALUE` each. Not the session's id, which would stay with the
    /// user's systemd when the session is over.
    pub fn session(&self) -> Vec<String> {
        let names = SESSION.iter().filter(|name| **name != "XDG_SESSION_ID");
        let set = names.filter_map(|name| Some(format!("{name}={}", self.var(name)?)));
        set.collect()
    }

    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The runtime directory, or a path below it.
    pub fn runtime(&self, below: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.var("XDG_RUNTIME_DIR")?).join(below))
    }

    /// Whether one of the words of `XDG_CURRENT_DESKTOP` is this.
    pub fn desktop(&self, name: &str) -> bool {
        let words = self.var("XDG_CURRENT_DESKTOP").unwrap_or_default();
        words.split(':').any(|word| word.eq_ignore_ascii_case(name))
    }

    /// Files of the runtime directory with such names, the newest first.
    pub fn sockets(&self, named: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        self.sockets_in("", named)
    }

    /// Files of a folder of the runtime directory with such names, the newest first.
    pub fn sockets_in(&self, folder: &str, named: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let directory = self
            .runtime(folder)
            .and_then(|path| std::fs::read_dir(path).ok());
        let mut found: Vec<(SystemTime, PathBuf)> = directory
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(&named))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, path)| path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_imports_counts_and_nothing_else() {
        let env = Env::of([("HOME", "/h"), ("DISPLAY", ":0")]);
        let set = [
            "HOME=/x",
            "DISPLAY=:1",
            "WAYLAND_DISPLAY=wayland-1",
            "SWAYSOCK",
        ];
        let env = env.with(&set.map(str::to_string));
        assert_eq!(env.var("HOME"), Some("/h"));
        assert_eq!(env.var("DISPLAY"), Some(":1"));
        assert_eq!(env.var("WAYLAND_DISPLAY"), Some("wayland-1"));
        assert_eq!(env.var("SWAYSOCK"), None);
    }

    #[test]
    fn an_empty_variable_is_none_and_desktops_are_words() {
        let env = Env::of([("A", ""), ("XDG_CURRENT_DESKTOP", "ubuntu:GNOME")]);
        assert_eq!(env.var("A"), None);
        assert!(env.desktop("gnome") && !env.desktop("ubu"));
    }
}
