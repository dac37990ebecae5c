// SPDX-License-Identifier: GPL-2.0-only
//! The configuration of `fasttrackd`; that of `fasttrack-agent` is [`agent`]'s.
//!
//! Files are read in this order, and a later one wins, setting by setting:
//!
//! 1. `/usr/lib/fasttrack/fasttrackd.toml`, or `/etc/fasttrack/fasttrackd.toml` in its place;
//! 2. `fasttrackd.toml.d/*.toml` of both folders, by name; one in `/etc` hides one of the same name in `/usr/lib`.
//!
//! A setting that is wrong is an error with its file and line, and keeps its default: a typing error must not leave the
//! user without the rest.

pub mod agent;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Folders of the configuration below the root of the system, the weaker first.
pub const FOLDERS: [&str; 2] = ["usr/lib/fasttrack", "etc/fasttrack"];

/// Name of the main file.
pub const FILE: &str = "fasttrackd.toml";

/// Services that work for nobody who waits: background, and never frozen.
pub const MAINTENANCE: [&str; 10] = [
    "packagekit.service",
    "apt-daily.service",
    "apt-daily-upgrade.service",
    "dnf-makecache.service",
    "snapd.service",
    "flatpak-system-helper.service",
    "fstrim.service",
    "man-db.service",
    "plocate-updatedb.service",
    "e2scrub_all.service",
];

/// Parts of names of users' services that index files: background, and never frozen. KDE's, and GNOME's of all ages.
pub const INDEXERS: [&str; 5] = [
    "baloo",
    "tracker-miner",
    "tracker-extract",
    "tracker3.miner",
    "localsearch",
];

/// What is done for the app in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// Use the patched kernel.
    pub kernel: bool,
    /// Use weights of I/O schedulers.
    pub weights: bool,
    /// Set `memory.low`.
    pub memory: bool,
    /// How much, MiB.
    pub memory_low_mib: u64,
    /// Give users' apps the io controller where weights need it.
    pub enable_io: bool,
    /// Freeze background apps while the app in front waits for storage.
    pub freezer: bool,
    /// Use priorities of tasks where nothing better works.
    pub ioprio: bool,
    /// System services that are background.
    pub background: Vec<String>,
    /// Parts of names of groups that are never frozen, besides those that the daemon knows.
    pub never_freeze: Vec<String>,
}

/// How much agents may say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reports {
    /// Reports of a user in a second, in the long run.
    pub per_second: u32,
    /// Reports at once.
    pub burst: u32,
}

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The section `[effects]`.
    pub effects: Effects,
    /// The section `[reports]`.
    pub reports: Reports,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            effects: Effects {
                kernel: true,
                weights: true,
                memory: true,
                // More than an app in front uses of files at a time; a sixteenth of 8 GiB.
                memory_low_mib: 512,
                enable_io: true,
                freezer: false,
                ioprio: true,
                background: MAINTENANCE.map(str::to_string).to_vec(),
                never_freeze: Vec::new(),
            },
            // Nobody changes windows fifty times a second; a session that begins reports a hundred apps at once.
            reports: Reports {
                per_second: 50,
                burst: 200,
            },
        }
    }
}

/// An error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// In which file.
    pub file: PathBuf,
    /// In which line, from 1; zero for the whole file.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Problem {
    /// What is wrong in a file, by where it is in its text.
    fn of(file: &Path, text: &str, wrong: Wrong) -> Vec<Problem> {
        let problem = |(span, what): (Range<usize>, String)| Problem {
            file: file.to_path_buf(),
            line: line_of(text, span.start),
            what,
        };
        wrong.into_iter().map(problem).collect()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawFile {
    effects: Option<RawEffects>,
    reports: Option<RawReports>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawEffects {
    kernel: Option<bool>,
    weights: Option<bool>,
    memory: Option<bool>,
    memory_low_mib: Option<Spanned<u64>>,
    enable_io: Option<bool>,
    freezer: Option<bool>,
    ioprio: Option<bool>,
    background: Option<Vec<Spanned<String>>>,
    never_freeze: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawReports {
    per_second: Option<Spanned<u32>>,
    burst: Option<Spanned<u32>>,
}

/// The files of a system's configuration, the weaker first.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let main = FOLDERS.iter().map(|folder| root.join(folder).join(FILE));
    let mut files: Vec<PathBuf> = main.filter(|path| path.exists()).collect();
    if files.len() > 1 {
        files.remove(0);
    }
    let mut drop_ins = BTreeMap::new();
    for folder in FOLDERS {
        let folder = root.join(folder).join(format!("{FILE}.d"));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|suffix| suffix == "toml") {
                drop_ins.insert(entry.file_name(), path);
            }
        }
    }
    files.extend(drop_ins.into_values());
    files
}

/// The configuration of a system, and what is wrong with it.
pub fn load(root: &Path) -> (Config, Vec<Problem>) {
    let mut config = Config::default();
    let mut problems = Vec::new();
    for file in files(root) {
        if let Some(text) = read(&file, &mut problems) {
            problems.extend(add(&mut config, &file, &text));
        }
    }
    (config, problems)
}

/// What a file has, if it is there.
fn read(file: &Path, problems: &mut Vec<Problem>) -> Option<String> {
    match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            problems.push(Problem {
                file: file.to_path_buf(),
                line: 0,
                what: format!("cannot be read: {error}"),
            });
            None
        }
    }
}

/// Adds the settings of one file. Says what is wrong with it.
pub fn add(config: &mut Config, file: &Path, text: &str) -> Vec<Problem> {
    let raw: RawFile = match toml::from_str(text) {
        Ok(raw) => raw,
        Err(error) => return vec![wrong_toml(file, text, &error)],
    };
    let mut wrong = Vec::new();
    add_effects(
        &mut config.effects,
        raw.effects.unwrap_or_default(),
        &mut wrong,
    );
    let reports = raw.reports.unwrap_or_default();
    number(
        &mut config.reports.per_second,
        reports.per_second,
        1..=1000,
        &mut wrong,
    );
    number(
        &mut config.reports.burst,
        reports.burst,
        1..=10_000,
        &mut wrong,
    );
    Problem::of(file, text, wrong)
}

/// A text that is no TOML, or has a setting that there is not.
fn wrong_toml(file: &Path, text: &str, error: &toml::de::Error) -> Problem {
    Problem {
        file: file.to_path_buf(),
        line: error.span().map_or(0, |span| line_of(text, span.start)),
        what: one_line(error.message()),
    }
}

type Wrong = Vec<(Range<usize>, String)>;

fn add_effects(effects: &mut Effects, raw: RawEffects, wrong: &mut Wrong) {
    let switches = [
        (&mut effects.kernel, raw.kernel),
        (&mut effects.weights, raw.weights),
        (&mut effects.memory, raw.memory),
        (&mut effects.enable_io, raw.enable_io),
        (&mut effects.freezer, raw.freezer),
        (&mut effects.ioprio, raw.ioprio),
    ];
    for (setting, value) in switches {
        *setting = value.unwrap_or(*setting);
    }
    number(
        &mut effects.memory_low_mib,
        raw.memory_low_mib,
        1..=65_536,
        wrong,
    );
    if let Some(units) = raw.background {
        let fits = |name: &str| is_unit(name);
        effects.background = names(
            units,
            fits,
            "a unit's name, such as packagekit.service",
            wrong,
        );
    }
    if let Some(parts) = raw.never_freeze {
        let fits = |part: &str| part.len() >= 2 && !part.contains('/');
        effects.never_freeze = names(
            parts,
            fits,
            "a part of a name of at least two letters without '/'",
            wrong,
        );
    }
}

fn number<T: Copy + PartialOrd + fmt::Display>(
    setting: &mut T,
    value: Option<Spanned<T>>,
    range: std::ops::RangeInclusive<T>,
    wrong: &mut Wrong,
) {
    let Some(value) = value else { return };
    if range.contains(value.get_ref()) {
        *setting = *value.get_ref();
    } else {
        let what = format!(
            "{} is not from {} to {}",
            value.get_ref(),
            range.start(),
            range.end()
        );
        wrong.push((value.span(), what));
    }
}

fn names(
    given: Vec<Spanned<String>>,
    fits: impl Fn(&str) -> bool,
    what: &str,
    wrong: &mut Wrong,
) -> Vec<String> {
    let mut good = Vec::new();
    for name in given {
        if fits(name.get_ref()) {
            good.push(name.into_inner());
        } else {
            wrong.push((name.span(), format!("{:?} is not {what}", name.get_ref())));
        }
    }
    good
}

fn is_unit(name: &str) -> bool {
    let suffix = name.ends_with(".service") || name.ends_with(".scope") || name.ends_with(".slice");
    suffix
        && !name.contains('/')
        && !name
            .chars()
            .any(|character| character.is_whitespace() || character.is_control())
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let mut config = Config::default();
        let problems = add(&mut config, Path::new("f.toml"), text);
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn one_line_switches_the_freezer_on() {
        let mut config = Config::default();
        assert_eq!(
            add(&mut config, Path::new("f"), "[effects]\nfreezer = true\n"),
            []
        );
        let mut expected = Config::default();
        expected.effects.freezer = true;
        assert_eq!(config, expected);
    }

    #[test]
    fn an_error_has_its_file_and_line() {
        assert_eq!(
            wrong("# a comment\n[reports]\n\nburst = 0\n"),
            ["f.toml:4: 0 is not from 1 to 10000"]
        );
        assert_eq!(
            wrong("[effects]\nbackground = [\n  \"a.service\",\n  \"b\"\n]\n"),
            ["f.toml:4: \"b\" is not a unit's name, such as packagekit.service"]
        );
        let unknown = wrong("[effects]\n\nfrezer = true\n");
        assert!(
            unknown[0].starts_with("f.toml:3: unknown field `frezer`"),
            "{unknown:?}"
        );
        let kind = wrong("[effects]\nfreezer = \"yes\"\n");
        assert!(kind[0].starts_with("f.toml:2: invalid type"), "{kind:?}");
        let grammar = wrong("[effects]\nfreezer == true\n");
        assert!(grammar[0].starts_with("f.toml:2: "), "{grammar:?}");
    }

    #[test]
    fn a_wrong_setting_keeps_its_default_and_spoils_no_other() {
        let mut config = Config::default();
        let problems = add(
            &mut config,
            Path::new("f"),
            "[reports]\nper_second = 0\nburst = 7\n",
        );
        assert_eq!(problems.len(), 1);
        assert_eq!((config.reports.per_second, config.reports.burst), (50, 7));
    }

    #[test]
    fn files_of_the_administrator_win() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        put(
            "usr/lib/fasttrack/fasttrackd.toml",
            "[reports]\nburst = 1\n",
        );
        put(
            "usr/lib/fasttrack/fasttrackd.toml.d/10-a.toml",
            "[reports]\nburst = 2\n",
        );
        put(
            "usr/lib/fasttrack/fasttrackd.toml.d/20-b.toml",
            "[effects]\nfreezer = true\n",
        );
        put(
            "etc/fasttrack/fasttrackd.toml.d/20-b.toml",
            "[effects]\nkernel = false\n",
        );
        put("etc/fasttrack/fasttrackd.toml.d/notes.txt", "nonsense");
        let (config, problems) = load(root.path());
        assert_eq!(problems, []);
        assert_eq!(
            (
                config.reports.burst,
                config.effects.freezer,
                config.effects.kernel
            ),
            (2, false, false)
        );
        put(
            "etc/fasttrack/fasttrackd.toml",
            "[reports]\nper_second = 9\n",
        );
        assert_eq!(load(root.path()).0.reports.per_second, 9);
    }

    #[test]
    fn no_text_makes_it_panic_or_leaves_a_setting_out_of_bounds() {
        let good =
            "[effects]\nbackground = [\"a.service\"]\nmemory_low_mib = 12\n[reports]\nburst = 3\n";
        fasttrack_fuzz::mutate(good.as_bytes(), |bytes| {
            let mut config = Config::default();
            let text = String::from_utf8_lossy(bytes);
            let problems = add(&mut config, Path::new("a.toml"), &text);
            assert!((1..=65_536).contains(&config.effects.memory_low_mib));
            assert!((1..=10_000).contains(&config.reports.burst));
            let lines = text.split('\n').count();
            assert!(problems.iter().all(|problem| problem.line <= lines));
        });
    }
}
