// SPDX-License-Identifier: GPL-2.0-only
//! The configuration of `fasttrackd`; that of `fasttrack-agent` is [`agent`]'s.
//!
//! Files are read in this order, and a later one wins, setting by setting:
//!
//! 1. `/usr/lib/fasttrack/fasttrackd.toml`, or `/etc/fasttrack/fasttrackd.toml` in its place;
//! 2. `fasttrackd.toml.d/*.toml` of both folders, by name; one in `/etc` hides one of the same name in `/usr/lib`.
//!
//! A setting that is wrong, or that there is not, is an error with its file and line and has no effect: the others of its
//! file hold, and of this one what weaker files say. A typing error must not switch on what was switched off. A file that
//! is no TOML has no effect as a whole, unless it was good before: see [`Reader`].

pub mod agent;
mod settings;

use settings::{Settings, Wrong};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
    /// Use weights of I/O schedulers where there is no freezer.
    pub weights: bool,
    /// Set `memory.low`.
    pub memory: bool,
    /// How much, MiB.
    pub memory_low_mib: u64,
    /// Give users' apps the io controller where weights need it.
    pub enable_io: bool,
    /// Freeze background apps while the app in front waits for storage.
    pub freezer: bool,
    /// Use priorities of tasks beside the freezer, and where nothing better works.
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
    fn of(file: &Path, text: &str, mut wrong: Wrong) -> Vec<Problem> {
        wrong.sort_by_key(|(place, _)| place.start);
        let problems = wrong.into_iter().map(|(place, what)| Problem {
            file: file.to_path_buf(),
            line: line_of(text, place.start),
            what: one_line(&what),
        });
        problems.collect()
    }

    /// A text that is no TOML.
    fn no_toml(file: &Path, text: &str, error: &toml::de::Error) -> Problem {
        Problem {
            file: file.to_path_buf(),
            line: error.span().map_or(0, |span| line_of(text, span.start)),
            what: one_line(error.message()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
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
    Reader::default().load(root)
}

/// Reads the configuration of a system again and again. A file that cannot be read or is no TOML counts as it was when it
/// last was good: who is in the midst of editing it must not have all of its settings taken back.
#[derive(Debug, Default)]
pub struct Reader {
    good: BTreeMap<PathBuf, String>,
}

impl Reader {
    /// The configuration, and what is wrong with it now.
    pub fn load(&mut self, root: &Path) -> (Config, Vec<Problem>) {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let mut before = std::mem::take(&mut self.good);
        for file in files(root) {
            let mut text = match read(&file) {
                Ok(Some(text)) => Some(text),
                Ok(None) => continue,
                Err(problem) => {
                    problems.push(problem);
                    None
                }
            };
            if let Some(text) = &text {
                problems.extend(add(&mut config, &file, text));
            }
            if !text.as_deref().is_some_and(is_toml) {
                text = before.remove(&file);
                // What was wrong with it was told.
                if let Some(text) = &text {
                    add(&mut config, &file, text);
                }
            }
            self.good.extend(text.map(|text| (file, text)));
        }
        (config, problems)
    }
}

/// What a file has, if it is there.
fn read(file: &Path) -> Result<Option<String>, Problem> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem {
            file: file.to_path_buf(),
            line: 0,
            what: format!("cannot be read: {error}"),
        }),
    }
}

fn is_toml(text: &str) -> bool {
    Settings::parse(text).is_ok()
}

/// Adds the settings of one file. Says what is wrong with it.
pub fn add(config: &mut Config, file: &Path, text: &str) -> Vec<Problem> {
    let mut all = match Settings::parse(text) {
        Ok(all) => all,
        Err(error) => return vec![Problem::no_toml(file, text, &error)],
    };
    let mut wrong = Wrong::new();
    add_effects(
        &mut config.effects,
        all.section("effects", &mut wrong),
        &mut wrong,
    );
    let mut section = all.section("reports", &mut wrong);
    let reports = &mut config.reports;
    section.number("per_second", &mut reports.per_second, 1..=1000, &mut wrong);
    section.number("burst", &mut reports.burst, 1..=10_000, &mut wrong);
    section.end(&mut wrong);
    all.end(&mut wrong);
    Problem::of(file, text, wrong)
}

fn add_effects(effects: &mut Effects, mut section: Settings, wrong: &mut Wrong) {
    section.switch("kernel", &mut effects.kernel, wrong);
    section.switch("weights", &mut effects.weights, wrong);
    section.switch("memory", &mut effects.memory, wrong);
    section.number(
        "memory_low_mib",
        &mut effects.memory_low_mib,
        1..=65_536,
        wrong,
    );
    section.switch("enable_io", &mut effects.enable_io, wrong);
    section.switch("freezer", &mut effects.freezer, wrong);
    section.switch("ioprio", &mut effects.ioprio, wrong);
    let what = "a unit's name, such as packagekit.service";
    if let Some(units) = section.texts("background", is_unit, what, wrong) {
        effects.background = units;
    }
    let fits = |part: &str| part.len() >= 2 && !part.contains('/');
    let what = "a part of a name of at least two letters without '/'";
    if let Some(parts) = section.texts("never_freeze", fits, what, wrong) {
        effects.never_freeze = parts;
    }
    section.end(wrong);
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
        assert_eq!(
            kind,
            ["f.toml:2: invalid type: string \"yes\", expected a boolean"]
        );
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
    fn a_wrong_type_and_an_unknown_setting_spoil_no_other() {
        let mut config = Config::default();
        let text = "[effects]\nkernel = false\nenable_io = false\nfreezer = \"on\"\n";
        let problems = add(&mut config, Path::new("f"), text);
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [4]);
        let effects = &config.effects;
        assert_eq!(
            (effects.kernel, effects.enable_io, effects.freezer),
            (false, false, false)
        );
        let mut config = Config::default();
        let text = "later = 1979-05-27\neffects.kernel = false\n\
            [effects.later.still]\nx = 1979-05-27\n\
            [reports]\nburst = 7\nper_second = { a.b = [] }\n\
            [[other]]\nkernel = true\n";
        let problems = add(&mut config, Path::new("f"), text);
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 3, 7, 8]);
        assert_eq!((config.effects.kernel, config.reports.burst), (false, 7));
        for text in ["effects = 3", "effects = 1979-05-27", "[[effects]]"] {
            let problems = wrong(text);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].ends_with("expected a section"), "{problems:?}");
        }
    }

    #[test]
    fn of_a_list_what_is_wrong_is_left_out() {
        let mut config = Config::default();
        let text = "[effects]\nnever_freeze = [\n\"ab\",\n7,\n[\"cd\"],\n\"ef\"]\n";
        let problems = add(&mut config, Path::new("f"), text);
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [4, 5]);
        assert_eq!(config.effects.never_freeze, ["ab", "ef"]);
    }

    #[test]
    fn a_file_that_is_no_toml_when_it_is_read_again_counts_as_before() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("etc/fasttrack/fasttrackd.toml.d");
        fs::create_dir_all(&folder).expect("folders");
        let put = |text: &[u8]| fs::write(folder.join("local.toml"), text).expect("a file");
        let mut reader = Reader::default();
        let mut kernel = || {
            let (config, problems) = reader.load(root.path());
            (config.effects.kernel, problems.len())
        };
        put(b"x ==\n");
        assert_eq!(kernel(), (true, 1));
        put(b"[effects]\nkernel = false\n");
        assert_eq!(kernel(), (false, 0));
        for spoilt in [&b"x ==\n"[..], b"x ==\n", b"\xff"] {
            put(spoilt);
            assert_eq!(kernel(), (false, 1));
        }
        put(b"[effects]\n");
        assert_eq!(kernel(), (true, 0));
        put(b"[effects]\nkernel = false\n");
        assert_eq!(kernel(), (false, 0));
        // One that is taken away is good, and says nothing; nor does a link to nowhere.
        fs::remove_file(folder.join("local.toml")).expect("a file");
        std::os::unix::fs::symlink("nowhere", folder.join("local.toml")).expect("a link");
        assert_eq!(kernel(), (true, 0));
        fs::remove_file(folder.join("local.toml")).expect("a link");
        assert_eq!(kernel(), (true, 0));
        put(b"x ==\n");
        assert_eq!(kernel(), (true, 1));
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
        let good = "[effects]\nkernel = false\nbackground = [\"a.service\"]\n\
            memory_low_mib = 12\n[reports]\nburst = 3\n";
        fasttrack_fuzz::mutate(good.as_bytes(), |bytes| {
            let mut config = Config::default();
            let text = String::from_utf8_lossy(bytes);
            let problems = add(&mut config, Path::new("a.toml"), &text);
            assert!((1..=65_536).contains(&config.effects.memory_low_mib));
            assert!((1..=10_000).contains(&config.reports.burst));
            let all: toml::Table = text.parse().unwrap_or_default();
            let kernel = all.get("effects").and_then(|all| all.get("kernel"));
            // In a text that is TOML no other setting hides this one.
            assert_eq!(
                config.effects.kernel,
                kernel.and_then(toml::Value::as_bool).unwrap_or(true)
            );
            let lines = text.split('\n').count();
            assert!(problems.iter().all(|problem| problem.line <= lines));
        });
    }
}
