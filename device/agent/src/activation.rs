// SPDX-License-Identifier: GPL-2.0-only
//! Apps that the session's bus starts. Where it has systemd do so, a unit tells it (`launch`). Otherwise they run in the
//! bus's own control group, and get a scope as soon as they have their name: an app takes it before it opens a window.
//!
//! An app is what has a `NAME.desktop`, as the Desktop Entry Specification has it of those that D-Bus activates: a
//! service of the desktop stays where it is.

use crate::bus;
use crate::env::Env;
use crate::fault::Fault;
use crate::source::Out;
use crate::window::Window;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use zbus::{Connection, MatchRule};

/// First words of names at most that are listened to: org, com and a few more are common.
const FIRST_WORDS_MOST: usize = 32;

/// What a bus can start.
#[derive(Debug, Default)]
pub struct Activation {
    /// Names of apps.
    apps: BTreeSet<String>,
    /// Where the bus's own process is.
    group: String,
}

/// Folders of applications, as XDG's base directories have them.
pub fn folders(env: &Env) -> Vec<PathBuf> {
    let home = env.var("HOME").unwrap_or_default();
    let own = env.var("XDG_DATA_HOME").map(str::to_string);
    let own = own.unwrap_or_else(|| format!("{home}/.local/share"));
    let all = env
        .var("XDG_DATA_DIRS")
        .unwrap_or("/usr/local/share:/usr/share");
    std::iter::once(own.as_str())
        .chain(all.split(':'))
        .map(|folder| Path::new(folder).join("applications"))
        .collect()
}

/// Whether what has this name on the bus is an app.
pub fn is_app(name: &str, folders: &[PathBuf]) -> bool {
    let file = format!("{name}.desktop");
    folders.iter().any(|folder| folder.join(&file).is_file())
}

/// Of names those of apps.
pub fn apps(mut names: Vec<String>, folders: &[PathBuf]) -> BTreeSet<String> {
    names.retain(|name| is_app(name, folders));
    names.into_iter().collect()
}

/// The first words of names.
pub fn first_words(names: &BTreeSet<String>) -> BTreeSet<&str> {
    names
        .iter()
        .filter_map(|name| name.split('.').next())
        .collect()
}

impl Activation {
    /// Asks what the bus can start, and to be told when it has.
    pub async fn listen(of: &Connection, env: &Env, out: &Out) -> Result<Activation, Fault> {
        let daemon = zbus::fdo::DBusProxy::new(of).await?;
        let names = daemon.list_activatable_names().await?;
        let names = names.iter().map(ToString::to_string).collect();
        let apps = apps(names, &folders(env));
        // Names of connections begin with a colon: nobody who comes or goes wakes the agent.
        for word in first_words(&apps).into_iter().take(FIRST_WORDS_MOST) {
            let rule = MatchRule::builder()
                .msg_type(zbus::message::Type::Signal)
                .sender("org.freedesktop.DBus")?
                .member("NameOwnerChanged")?
                .arg0ns(word)?
                .build();
            daemon.add_match_rule(rule).await?;
        }
        let pid = bus::process(of, "org.freedesktop.DBus").await?;
        let group = out.resolver().place().cgroup_of(pid).unwrap_or_default();
        Ok(Activation { apps, group })
    }

    /// A name has an owner.
    pub async fn owned(
        &self,
        of: &Connection,
        name: &str,
        owner: &str,
        out: &Out,
    ) -> Result<(), Fault> {
        if owner.is_empty() || !self.apps.contains(name) {
            return Ok(());
        }
        // It may have ended.
        if let Ok(pid) = bus::process(of, owner).await {
            out.begins(&Window::of(pid, name), &self.group)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_are_names_with_a_desktop_file() {
        let data = tempfile::tempdir().expect("a directory");
        let folder = data.path().join("applications");
        std::fs::create_dir(&folder).expect("a directory");
        std::fs::write(folder.join("org.x.Editor.desktop"), "").expect("a file");
        let env = Env::of([
            ("XDG_DATA_DIRS", data.path().to_str().expect("a path")),
            ("HOME", "/h"),
        ]);
        let folders = folders(&env);
        assert_eq!(
            folders,
            [PathBuf::from("/h/.local/share/applications"), folder]
        );
        let names = ["org.x.Editor", "org.x.Daemon", ":1.2"].map(str::to_string);
        let apps = apps(names.to_vec(), &folders);
        assert_eq!(apps, BTreeSet::from(["org.x.Editor".to_string()]));
        assert_eq!(first_words(&apps), BTreeSet::from(["org"]));
    }
}
