// SPDX-License-Identifier: GPL-2.0-only
//! Names of systemd's units for apps: `app[-LAUNCHER]-ID[@RANDOM].service`, `app[-LAUNCHER]-ID-RANDOM.scope`,
//! `dbus-:1.2-NAME@RANDOM.service`, as systemd's page "Desktop environments" has them.

/// The last part of a control group's path: its unit.
pub fn leaf(cgroup: &str) -> &str {
    cgroup.rsplit_once('/').map_or(cgroup, |(_, leaf)| leaf)
}

/// The manager's own slice for apps, in the path of a user manager's unit.
pub fn app_slice(cgroup: &str) -> Option<String> {
    let at = cgroup.find("/user@")?;
    let rest = &cgroup[at + 1..];
    let manager = &rest[..rest.find('/').unwrap_or(rest.len())];
    let digits = manager.strip_prefix("user@")?.strip_suffix(".service")?;
    digits.parse::<u32>().ok()?;
    Some(format!("{}/{manager}/app.slice", &cgroup[..at]))
}

/// The slice of apps of a user, where systemd has it.
pub fn app_slice_of_user(uid: u32) -> String {
    format!("/user.slice/user-{uid}.slice/user@{uid}.service/app.slice")
}

/// Whether a unit's name is one of an app: not of a part of one, as a terminal's tab.
pub fn is_app(unit: &str) -> bool {
    let started =
        unit.starts_with("app-") || unit.starts_with("dbus-") || unit.starts_with("snap.");
    started && (unit.ends_with(".scope") || unit.ends_with(".service")) && !is_tab(unit)
}

/// Whether a control group holds a whole login session: a plain window manager and all its apps.
pub fn is_session(cgroup: &str) -> bool {
    let leaf = leaf(cgroup);
    leaf.starts_with("session-") && leaf.ends_with(".scope")
}

/// The app id in a unit's name, with systemd's escapes undone.
pub fn id_of(unit: &str) -> Option<String> {
    let (stem, kind) = unit.rsplit_once('.')?;
    let stem = match (kind, stem.rsplit_once('@')) {
        (_, Some((stem, _))) => stem,
        ("scope", None) => stem.rsplit_once('-').map_or(stem, |(stem, _)| stem),
        _ => stem,
    };
    let words = stem.strip_prefix("app-").or_else(|| {
        let rest = stem.strip_prefix("dbus-:")?;
        rest.split_once('-').map(|(_, name)| name)
    })?;
    // In a unit's name a dash separates; one that belongs to a word is escaped.
    let last = words.rsplit('-').next()?;
    Some(unescape(last))
}

/// The Flatpak of a scope, if it is one's.
pub fn flatpak(unit: &str) -> Option<&str> {
    let rest = unit.strip_prefix("app-flatpak-")?.strip_suffix(".scope")?;
    rest.rsplit_once('-').map(|(id, _)| id)
}

/// How the scopes are called in which terminals start the jobs of their tabs, and tmux those of its panes.
const TABS: [&str; 5] = [
    "vte-spawn-",
    "ptyxis-spawn-",
    "kitty-",
    "app-ghostty-surface-",
    "tmux-spawn-",
];

/// Whether a unit's name is one of those.
pub fn is_tab(unit: &str) -> bool {
    unit.ends_with(".scope") && TABS.iter().any(|tab| unit.starts_with(tab))
}

/// Whether a group with this name is an app: a unit of one, or a slice that one has for itself.
pub fn is_one_app(name: &str) -> bool {
    let slice = name.starts_with("app-") && name.ends_with(".slice");
    slice || is_app(name)
}

/// The name of an app's unit without that of its launcher, which may be a compositor; of others, the whole name. The
/// launcher is a word before the id, and after that a scope has one more, or several.
pub fn without_launcher(unit: &str) -> String {
    let words: Vec<&str> = unit.split('-').collect();
    let least = match unit.contains('@') {
        true => 3,
        false => 4,
    };
    match words[0] == "app" && words.len() >= least {
        true => [&words[..1], &words[2..]].concat().join("-"),
        false => unit.to_string(),
    }
}

/// A word for a unit's name, with what is not allowed there escaped.
pub fn escape(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':');
    word.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("\\x{byte:02x}"),
        })
        .collect()
}

/// Undoes `\xNN`.
pub fn unescape(word: &str) -> String {
    let bytes = word.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match hex(&bytes[at..]) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn hex(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.strip_prefix(b"\\x")?.get(..2)?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";

    #[test]
    fn ids_are_read_from_names_of_units() {
        let cases = [
            ("app-gnome-org.gnome.Evince-12345.scope", "org.gnome.Evince"),
            ("app-org.kde.kate-0123abc.scope", "org.kde.kate"),
            ("app-org.kde.kate@0123abc.service", "org.kde.kate"),
            ("app-KDE-org.kde.okular@12345.service", "org.kde.okular"),
            ("app-foo\\x2dbar@1.service", "foo-bar"),
            ("app-sway-foot-77.scope", "foot"),
            (
                "dbus-:1.2-org.gnome.Nautilus@0.service",
                "org.gnome.Nautilus",
            ),
        ];
        for (unit, id) in cases {
            assert_eq!(id_of(unit).as_deref(), Some(id), "{unit}");
        }
        assert_eq!(id_of("pipewire.service"), None);
        assert_eq!(id_of(""), None);
    }

    #[test]
    fn the_launcher_is_left_out() {
        for (unit, without) in [
            ("app-sway-foot-77.scope", "app-foot-77.scope"),
            ("app-sway-fcitx5-0a-1b.scope", "app-fcitx5-0a-1b.scope"),
            ("app-KDE-okular@12345.service", "app-okular@12345.service"),
            ("app-kate-0123abc.scope", "app-kate-0123abc.scope"),
            ("app-kate@0123abc.service", "app-kate@0123abc.service"),
            ("app-keyring.scope", "app-keyring.scope"),
            ("dbus-:1.2-org.x.Y@0.service", "dbus-:1.2-org.x.Y@0.service"),
            ("", ""),
        ] {
            assert_eq!(without_launcher(unit), without, "{unit}");
        }
    }

    #[test]
    fn flatpaks_are_known_by_their_scope() {
        assert_eq!(
            flatpak("app-flatpak-org.mozilla.firefox-991.scope"),
            Some("org.mozilla.firefox")
        );
        assert_eq!(flatpak("app-gnome-foo-1.scope"), None);
    }

    #[test]
    fn the_slice_of_apps_is_found_in_any_unit_of_the_manager() {
        let own =
            "/user.slice/user-1000.slice/user@1000.service/session.slice/fasttrack-agent.service";
        assert_eq!(app_slice(own).as_deref(), Some(SLICE));
        assert_eq!(app_slice_of_user(1000), SLICE);
        assert_eq!(
            app_slice("/user.slice/user-1000.slice/session-1.scope"),
            None
        );
        assert_eq!(app_slice("/user@evil.service/x"), None);
    }

    #[test]
    fn escapes_are_undone_and_bad_ones_kept() {
        assert_eq!(unescape("a\\x2db"), "a-b");
        assert_eq!(unescape("a\\x2"), "a\\x2");
        assert_eq!(unescape("\\xzz\\"), "\\xzz\\");
        assert_eq!(unescape(&escape("a-b c/d@é")), "a-b c/d@é");
    }
}
