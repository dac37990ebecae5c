// SPDX-License-Identifier: GPL-2.0-only
//! The program as a person runs it.

use fasttrack_trace_log::{
    log_files, Bio, LogWriter, Operation, Options, Record, Segment, Task, Time,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fasttrack-trace"))
        .args(args)
        .output()
        .expect("the program runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A trace of an app that writes 12 KiB, 4 KiB of which are nobody's.
fn trace(directory: &Path) {
    let mut writer = LogWriter::new(directory, [1; 16], Options::default()).expect("a directory");
    let task = Task {
        time: Time(1_000_000_000),
        task: Some(1),
        uid: Some(10001),
        name: Some("\"my\" mail".to_string()),
        ..Task::default()
    };
    let bio = Bio {
        time: Time(2_000_000_000),
        bio: Some(1),
        operation: Some(Operation::WRITE),
        bytes: Some(12_288),
        ..Bio::default()
    };
    let segment = |owner, offset, bytes| Segment {
        time: Time(2_000_000_000),
        bio: Some(1),
        owner,
        offset: Some(offset),
        bytes: Some(bytes),
        ..Segment::default()
    };
    let records = [
        Record::from(task),
        Record::from(bio),
        Record::from(segment(Some(1), 0, 8192)),
        Record::from(segment(None, 8192, 4096)),
    ];
    writer.push(&records).expect("written");
    writer.close().expect("closed");
}

#[test]
fn cat_prints_records() {
    let dir = TempDir::new().expect("a directory");
    trace(dir.path());
    let path = dir.path().to_str().expect("a path");
    let text = run(&["cat", path]);
    assert!(text.status.success(), "{}", err(&text));
    assert!(out(&text).contains("2.000000000 bio bio=1 operation=\"write\" bytes=12288"));
    let json = out(&run(&["cat", "--json", "-t", "segment", path]));
    assert_eq!(json.lines().count(), 2);
    let first: serde_json::Value =
        serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (first["record"].as_str(), first["owner"].as_u64()),
        (Some("segment"), Some(1))
    );
    let later = out(&run(&["cat", "--since", "1.5", path]));
    assert!(!later.contains("mail") && later.lines().count() == 3);
}

/// All that is whole is printed; then the status says that something was not.
#[test]
fn cat_tells_of_damage() {
    let dir = TempDir::new().expect("a directory");
    trace(dir.path());
    let path = log_files(dir.path()).expect("files")[0].1.clone();
    let mut bytes = fs::read(&path).expect("bytes");
    let last = bytes.len() - 40;
    bytes.truncate(last);
    bytes.extend_from_slice(b"torn");
    fs::write(&path, bytes).expect("written");
    let output = run(&["cat", path.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(out(&output).lines().count(), 4);
    assert!(err(&output).contains("nobody knows how many records"));
    let foreign = run(&["cat", "/etc/passwd"]);
    assert_eq!(foreign.status.code(), Some(3));
    assert!(err(&foreign).contains("not a log file"));
    let nothing = run(&["cat", "/nonexistent"]);
    assert_eq!(nothing.status.code(), Some(1));
}

#[test]
fn explain_of_nothing_is_an_error() {
    let dir = TempDir::new().expect("a directory");
    let output = run(&["explain", dir.path().to_str().expect("a path")]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""));
    assert!(err(&output).contains("no log file (*.ftlog) is there"));
}

#[test]
fn explain_names_who_and_what_is_unknown() {
    let dir = TempDir::new().expect("a directory");
    trace(dir.path());
    let text = out(&run(&["explain", dir.path().to_str().expect("a path")]));
    let row = |name: &str| {
        let line = text.lines().find(|line| line.ends_with(name));
        let words: Vec<String> = line
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_string)
            .collect();
        words.get(1).cloned()
    };
    assert_eq!(row("mail (uid 10001)").as_deref(), Some("8"), "{text}");
    assert_eq!(row("unknown").as_deref(), Some("4"), "{text}");
}

/// Without tracefs: what is wrong, and what to do.
#[test]
fn what_is_missing_is_said_with_the_way_out() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().to_str().expect("a path");
    let doctor = run(&["doctor", "--tracefs", path]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(
        out(&doctor).contains("mount -t tracefs"),
        "{}",
        out(&doctor)
    );
    assert!(out(&doctor).contains("BPF source: "));
    let state = dir.path().join("state");
    let logs = dir.path().join("logs");
    let record = run(&[
        "record",
        "--tracefs",
        path,
        "-o",
        logs.to_str().expect("a path"),
        "--state",
        state.to_str().expect("a path"),
    ]);
    assert_eq!(record.status.code(), Some(1));
    assert!(
        err(&record).contains("is tracefs mounted?"),
        "{}",
        err(&record)
    );
    // Nothing was recorded, so there is no file.
    assert!(log_files(&logs).expect("a directory").is_empty());
}

/// A tracefs with one event of the block layer, and a sysfs.
fn system(directory: &Path, lockdown: &str, btf: bool) -> [String; 2] {
    let [tracefs, sysfs] = ["tracing", "sys"].map(|name| directory.join(name));
    let event = tracefs.join("events/block/block_bio_queue");
    for folder in [
        &event,
        &tracefs.join("instances"),
        &sysfs.join("kernel/security"),
        &sysfs.join("kernel/btf"),
    ] {
        fs::create_dir_all(folder).expect("a directory");
    }
    fs::write(event.join("format"), "").expect("written");
    fs::write(sysfs.join("kernel/security/lockdown"), lockdown).expect("written");
    if btf {
        fs::write(sysfs.join("kernel/btf/vmlinux"), "").expect("written");
    }
    [tracefs, sysfs].map(|path| path.to_str().expect("a path").to_string())
}

#[test]
fn doctor_says_why_and_what_to_do() {
    let dir = TempDir::new().expect("a directory");
    let ask = |lockdown: &str, btf| {
        let [tracefs, sysfs] = system(dir.path(), lockdown, btf);
        run(&["doctor", "--tracefs", &tracefs, "--sysfs", &sysfs])
    };
    let locked = ask("none integrity [confidentiality]", false);
    assert_eq!(locked.status.code(), Some(1));
    for text in [
        "boot with lockdown=integrity",
        "no BTF (CONFIG_DEBUG_INFO_BTF)",
        "ok       events block: 1 of 6",
        "files of f2fs are unknown (is it a module that is not loaded?)",
        "the kernel is not patched",
        "ok       no other fasttrack-trace records",
    ] {
        assert!(out(&locked).contains(text), "{text}: {}", out(&locked));
    }
    let open = ask("none [integrity] confidentiality", true);
    assert_eq!(open.status.code(), Some(0), "{}", out(&open));
    assert!(out(&open).contains("lockdown is integrity: events are not affected"));
    // It has some, which are none: whether that is seen depends on privileges and on clang.
    assert!(out(&open).contains("BPF source: ") && !out(&open).contains("no BTF"));
    let other = format!("tracing/instances/fasttrack-trace-{}", std::process::id());
    fs::create_dir(dir.path().join(other)).expect("a directory");
    let busy = out(&ask("[none]", true));
    let text = format!("records already (process {})", std::process::id());
    assert!(
        busy.contains(&text) && busy.contains("a directory of its own"),
        "{busy}"
    );
}

/// A patched kernel may have no histograms; and tells names to the first of two collectors.
#[test]
fn doctor_says_what_a_patched_kernel_lacks() {
    let dir = TempDir::new().expect("a directory");
    let [tracefs, sysfs] = system(dir.path(), "[none]", false);
    for name in [
        "session",
        "task",
        "file",
        "bio",
        "segment",
        "transaction",
        "share",
        "call",
        "wait",
    ] {
        let event = Path::new(&tracefs).join("events/io_origin/io_".to_string() + name);
        fs::create_dir_all(&event).expect("a directory");
        fs::write(event.join("format"), "").expect("written");
    }
    let first = format!("instances/fasttrack-trace-{}", std::process::id());
    fs::create_dir(Path::new(&tracefs).join(first)).expect("a directory");
    let doctor = run(&["doctor", "--tracefs", &tracefs, "--sysfs", &sysfs]);
    assert_eq!(doctor.status.code(), Some(0));
    for text in [
        "synthetic_events: No such file",
        "top reads each event (CONFIG_HIST_TRIGGERS)",
        "tasks and files that the first has met have no names in it",
    ] {
        assert!(out(&doctor).contains(text), "{text}: {}", out(&doctor));
    }
}

/// Its ring may be there already, and be no directory that can be made.
#[test]
fn a_ring_that_cannot_be_made_is_said() {
    let dir = TempDir::new().expect("a directory");
    let [tracefs, sysfs] = system(dir.path(), "[none]", false);
    fs::remove_dir(Path::new(&tracefs).join("instances")).expect("removed");
    let doctor = run(&["doctor", "--tracefs", &tracefs, "--sysfs", &sysfs]);
    assert_eq!(doctor.status.code(), Some(1));
    let no_ring =
        |line: &str| line.contains("instances/fasttrack-trace-") && line.contains("No such file");
    assert!(out(&doctor).lines().any(no_ring), "{}", out(&doctor));
    // What cannot be looked at is not said to be nothing.
    let said = "whether another fasttrack-trace records is not known: No such file";
    assert!(out(&doctor).contains(said), "{}", out(&doctor));
}

#[test]
fn options_have_units_and_defaults() {
    let help = out(&run(&["record", "--help"]));
    for text in [
        "--disk-cap <MIB>",
        "[default: 64]",
        "--fsync-over <MS>",
        "--clear-names",
        "--sample <N>",
    ] {
        assert!(help.contains(text), "{text}: {help}");
    }
    for args in [
        ["record", "--duration", "-1"],
        ["record", "--disk-cap", "0"],
        ["record", "--fsync-over", "5"],
        ["record", "--sample", "0"],
    ] {
        assert_eq!(run(&args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn man_pages_and_completions_are_made() {
    let dir = TempDir::new().expect("a directory");
    let made = run(&["generate", dir.path().to_str().expect("a path")]);
    assert!(made.status.success(), "{}", err(&made));
    for name in [
        "fasttrack-trace.1",
        "fasttrack-trace-record.1",
        "fasttrack-trace.bash",
        "fasttrack-trace.fish",
        "_fasttrack-trace",
    ] {
        assert!(dir.path().join(name).is_file(), "{name}");
    }
}

/// In help, man pages and completions; elsewhere it is an error.
#[test]
fn options_are_there_where_they_act() {
    let dir = TempDir::new().expect("a directory");
    let folder = dir.path().to_str().expect("a path");
    assert!(run(&["generate", folder]).status.success());
    let page = |command: &str| {
        let path = dir.path().join(format!("fasttrack-trace-{command}.1"));
        let text = fs::read_to_string(path).expect("a man page");
        text.replace("\\-", "-")
    };
    for (command, has) in [
        ("record", ["--tracefs", "--source", "--buffer"].as_slice()),
        ("top", ["--tracefs", "--source", "--buffer"].as_slice()),
        ("doctor", ["--tracefs"].as_slice()),
        ("explain", &[]),
        ("cat", &[]),
        ("export", &[]),
    ] {
        let (help, page) = (out(&run(&[command, "--help"])), page(command));
        for option in ["--tracefs", "--source", "--buffer"] {
            let acts = has.contains(&option);
            assert_eq!(help.contains(option), acts, "{command} {option}: {help}");
            assert_eq!(page.contains(option), acts, "{command} {option}: {page}");
            let value = if option == "--source" { "auto" } else { "64" };
            if !acts {
                let refused = run(&[command, "x", option, value]);
                let says = err(&refused);
                assert_eq!(refused.status.code(), Some(2), "{command}: {says}");
            }
        }
        assert!(!help.contains("--sysfs"), "{help}");
    }
    let bash = fs::read_to_string(dir.path().join("fasttrack-trace.bash")).expect("completions");
    let opts = |command: &str| {
        let begin = bash.find(&format!("trace__subcmd__{command})\n            opts="));
        let line = begin.and_then(|at| bash[at..].lines().nth(1));
        line.unwrap_or_else(|| panic!("{command}: {bash}"))
            .to_string()
    };
    assert!(opts("record").contains("--source") && !opts("cat").contains("--source"));
    // Before the command it is no option, and the error says where it is one.
    let early = run(&["--source", "bpf", "record"]);
    assert_eq!(early.status.code(), Some(2));
    assert!(err(&early).contains("record --source"), "{}", err(&early));
}

#[test]
fn export_writes_tables() {
    let dir = TempDir::new().expect("a directory");
    let (logs, tables) = (dir.path().join("logs"), dir.path().join("tables"));
    trace(&logs);
    fs::write(logs.join("00000009.ftlog"), "FOREIGN").expect("written");
    let paths = [&logs, &tables].map(|path| path.to_str().expect("a path"));
    let output = run(&["export", paths[0], "-o", paths[1]]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    let table = |name: &str| fs::read_to_string(tables.join(name)).expect("a table");
    let session = "01".repeat(16);
    let task = table("task.csv");
    assert_eq!(
        task.lines().collect::<Vec<_>>(),
        [
            "session,log,time,task,pid,tgid,uid,name,cgroup,kernel_thread",
            &format!("{session},1,1000000000,1,,,10001,\"\"\"my\"\" mail\",,"),
        ]
    );
    let segments = table("segment.csv");
    let owners: Vec<_> = segments
        .lines()
        .map(|line| line.split(',').nth(9))
        .collect();
    assert_eq!(owners, [Some("owner"), Some("1"), Some("")]);
    assert!(table("damage.csv").ends_with(",0,7,,not a log file of fasttrack-trace,,\n"));
    assert!(table("session.csv").starts_with("session,log,time,install,"));
    assert_eq!(table("call.csv").lines().count(), 1);
}

/// For a reader that knows what it wants: a session's id is a third of a row.
#[test]
fn export_writes_the_columns_that_are_asked_for_by_session() {
    let dir = TempDir::new().expect("a directory");
    let (logs, tables) = (dir.path().join("logs"), dir.path().join("tables"));
    trace(&logs);
    let paths = [&logs, &tables].map(|path| path.to_str().expect("a path"));
    let asked = ["--by-session", "--columns", "task=time,uid"];
    let output = run(&[&["export", paths[0], "-o", paths[1]], &asked[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let of_session = tables.join("01".repeat(16));
    let task = fs::read_to_string(of_session.join("task.csv")).expect("a table");
    assert_eq!(task, "log,time,uid\n1,1000000000,10001\n");
    let bio = fs::read_to_string(of_session.join("bio.csv")).expect("a table");
    assert!(bio.starts_with("log,time,bio,dev,"));
    assert!(tables.join("damage.csv").exists() && !tables.join("task.csv").exists());
    for (columns, says) in [
        ("task=time,uids", "task has no field 'uids'"),
        ("tasks=time", "there is no record 'tasks'"),
        ("time", "it must be KIND=NAME,..."),
    ] {
        let output = run(&["export", paths[0], "-o", paths[1], "--columns", columns]);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(says), "{}", err(&output));
    }
}

/// Files, with their paths from `folder` on.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = PathBuf::from(path.file_name().expect("a name"));
        if path.is_dir() {
            found.extend(
                files(&path)
                    .into_iter()
                    .map(|(below, bytes)| (name.join(below), bytes)),
            );
        } else {
            found.insert(name, fs::read(&path).expect("bytes"));
        }
    }
    found
}

/// Sessions take turns, a file is there twice, one is damaged in its middle.
#[test]
fn export_by_several_threads_writes_the_same_bytes() {
    let dir = TempDir::new().expect("a directory");
    let [first, second] = [1, 2].map(|session| {
        let logs = dir.path().join(format!("logs {session}"));
        let options = Options {
            file_bytes: 4000,
            block_bytes: 300,
            ..Options::default()
        };
        let mut writer = LogWriter::new(&logs, [session; 16], options).expect("a directory");
        for number in 0..3000_u64 {
            let bio = Bio {
                time: Time(1_000_000 + number),
                bio: Some(number),
                sector: Some(number.wrapping_mul(0x9e37_79b9)),
                ..Bio::default()
            };
            writer.push(&[Record::from(bio)]).expect("written");
        }
        writer.close().expect("closed");
        log_files(&logs).expect("files")
    });
    let mut paths: Vec<PathBuf> = (first.into_iter().zip(second))
        .flat_map(|((_, one), (_, other))| [one, other])
        .collect();
    let mut bytes = fs::read(&paths[2]).expect("bytes");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8].fill(0xff);
    fs::write(&paths[2], bytes).expect("written");
    let foreign = dir.path().join("foreign.ftlog");
    fs::write(&foreign, "FOREIGN").expect("written");
    paths.extend([paths[0].clone(), foreign]);
    assert!(paths.len() > 8);
    for by_session in [false, true] {
        let [one, three] = ["1", "3"].map(|threads| {
            let tables = dir.path().join(format!("{threads} {by_session}"));
            let output = Command::new(env!("CARGO_BIN_EXE_fasttrack-trace"))
                .args(["export", "--threads", threads, "--output"])
                .arg(&tables)
                .args(by_session.then_some("--by-session"))
                .args(&paths)
                .output()
                .expect("the program runs");
            assert_eq!(output.status.code(), Some(3), "{}", err(&output));
            (files(&tables), err(&output))
        });
        assert!(one.0.values().map(Vec::len).sum::<usize>() > 100_000);
        assert!(one.1.contains("checksum does not match") && one.1.contains("not a log file"));
        assert!(one == three, "{by_session}");
    }
}
