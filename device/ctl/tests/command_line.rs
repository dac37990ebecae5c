// SPDX-License-Identifier: GPL-2.0-only
//! The program as a person runs it, where there is no daemon.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fasttrackctl"))
        .args(words)
        .env_remove("XDG_CONFIG_DIRS")
        .output()
        .expect("run")
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn without_a_bus_it_says_what_to_do() {
    let (code, _, error) = said(&run(&["--bus", "unix:path=/nowhere/bus", "status"]));
    assert_eq!(code, Some(2));
    assert!(
        error.contains("there is no system bus") && error.contains("dbus.service"),
        "{error}"
    );
}

#[test]
fn errors_of_the_configuration_have_file_and_line() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("etc/fasttrack");
    fs::create_dir_all(&folder).expect("folders");
    let place = root.path().to_str().expect("text");
    assert_eq!(said(&run(&["--root", place, "config", "check"])).0, Some(0));
    fs::write(folder.join("fasttrackd.toml"), "[effects]\nfrezer = true\n").expect("a file");
    let (code, out, _) = said(&run(&["--root", place, "config", "check"]));
    assert_eq!(code, Some(1));
    assert!(
        out.contains("etc/fasttrack/fasttrackd.toml:2: unknown field `frezer`"),
        "{out}"
    );
    let own = root.path().join("etc/xdg/fasttrack");
    fs::create_dir_all(&own).expect("folders");
    fs::write(own.join("agent.toml"), "\nsource = \"telepathy\"\n").expect("a file");
    let (_, out, _) = said(&run(&["--root", place, "config", "check"]));
    assert!(
        out.contains("etc/xdg/fasttrack/agent.toml:2: \"telepathy\" is not a source"),
        "{out}"
    );
    let (code, out, _) = said(&run(&["--root", place, "--json", "config", "check"]));
    assert!(code == Some(1) && out.starts_with("[\n"), "{out}");
}

#[test]
fn the_default_configuration_has_no_error_and_is_the_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/fasttrackd.toml");
    let text = fs::read_to_string(path).expect("a file");
    let mut config = fasttrack_config::Config::default();
    assert_eq!(fasttrack_config::add(&mut config, path.as_ref(), &text), []);
    assert_eq!(config, fasttrack_config::Config::default());
}

#[test]
fn man_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("text");
    let (code, _, error) = said(&run(&["generate", place]));
    assert_eq!(code, Some(0), "{error}");
    for name in [
        "fasttrackctl.1",
        "fasttrackctl-status.1",
        "fasttrackctl.bash",
        "_fasttrackctl",
        "fasttrackctl.fish",
    ] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    assert!(!folder.path().join("fasttrack-agent.1").exists());
}

#[test]
fn the_agent_s_options_and_sources_are_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, _, error) = said(&run(&["generate", folder.path().to_str().expect("text")]));
    assert_eq!(code, Some(0), "{error}");
    let words = |text: &str| {
        let word = |character: char| !character.is_ascii_alphanumeric() && character != '-';
        let all = text.split(word).map(str::to_string);
        all.collect::<BTreeSet<_>>()
    };
    let options = |all: BTreeSet<String>| {
        let option = |word: &String| word.starts_with("--") && word.len() > 2;
        all.into_iter().filter(option).collect::<BTreeSet<_>>()
    };
    let source = include_str!("../../agent/src/main.rs");
    let (_, help) = source.split_once("const HELP").expect("its summary");
    let (help, _) = help.split_once("\";").expect("the summary's end");
    let known = options(words(help));
    assert!(known.len() > 5, "{known:?}");
    for name in ["fasttrack-agent.bash", "_fasttrack-agent"] {
        let made = fs::read_to_string(folder.path().join(name)).expect("completions");
        assert_eq!(options(words(&made)), known, "{name}");
    }
    let fish = fs::read_to_string(folder.path().join("fasttrack-agent.fish")).expect("completions");
    for option in &known {
        assert!(fish.contains(&format!(" -l {}", &option[2..])), "{option}");
    }
    for name in fasttrack_config::agent::FOCUS {
        assert!(words(&fish).contains(name), "{name}");
    }
}

#[test]
fn help_has_units_and_defaults() {
    let (_, out, _) = said(&run(&["top", "--help"]));
    assert!(
        out.contains("seconds") && out.contains("[default: 1]"),
        "{out}"
    );
    assert_eq!(said(&run(&["nonsense"])).0, Some(2));
}
