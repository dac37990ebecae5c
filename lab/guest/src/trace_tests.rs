// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the trace's grammar and of the files that it needs.

use super::*;

const CREATE: i32 = libc::O_CREAT | libc::O_WRONLY;

fn trace(lines: &[&str]) -> Trace {
    Trace::parse(&lines.join("\n").replace(' ', "\t")).expect("a trace")
}

fn needs(lines: &[&str]) -> Vec<(String, u64)> {
    trace(lines).files().into_iter().collect()
}

#[test]
fn all_calls_are_parsed() {
    let parsed = trace(&[
        "1 0 open /data/data/x/f 66 3",
        "1 1 read 3 10",
        "1 1 pread 3 10 20",
        "1 2 write 3 10",
        "1 3 pwrite 3 10 20",
        "1 4 fsync 3",
        "1 5 fdatasync 3",
        "1 6 lseek 3 -5 1",
        "1 7 ftruncate 3 9",
        "1 8 close 3",
        "2 0 unlink a",
        "2 1 rename a b",
        "2 2 mkdir d",
        "2 3 stat a",
        "2 4 truncate a 5",
        "2 5 bread 4096 8192",
        "2 6 bwrite 0 4096",
        "2 7 bflush",
    ]);
    let events: Vec<&Call> = parsed.events().map(|event| &event.call).collect();
    assert_eq!(events[0], &Call::Open("data/data/x/f".into(), 66, 3));
    assert_eq!(events[2], &Call::Pread(3, 10, 20));
    assert_eq!(events[7], &Call::Lseek(3, -5, 1));
    assert_eq!(events[11], &Call::Rename("a".into(), "b".into()));
    let names: BTreeSet<&str> = events.iter().map(|call| call.name()).collect();
    assert_eq!(names, CALLS.iter().copied().collect());
    assert_eq!(parsed.threads.len(), 2);
    assert_eq!(parsed.fds[&3], FdLife { uses: 8 });
}

#[test]
fn bad_lines_are_named() {
    for (text, parts) in [
        (
            "1\t0\tbflush\n1\t1\tfoo\t3",
            vec!["line 2", "foo", "pwrite"],
        ),
        ("1\t0\tread\t3", vec!["line 1", "read lacks its bytes"]),
        ("1\t0\tread\t3\tx", vec!["line 1", "\"x\" is not a number"]),
        ("1\t0\tclose\t3\t4", vec!["one field too many"]),
        ("1 0 close 3", vec!["tab-separated"]),
        ("1\t5\tbflush\n1\t4\tbflush", vec!["line 2", "earlier"]),
        (
            "1\t0\tbflush\n2\t0\tbflush\n1\t1\tbflush",
            vec!["line 3", "comes again"],
        ),
        (
            "1\t0\topen\ta\t0\t3\n1\t1\topen\tb\t0\t3",
            vec!["descriptor 3", "again"],
        ),
        ("1\t0\tstat\t..", vec!["names no file"]),
        ("1\t0\tbread\t0\t1000000000000", vec!["split the request"]),
    ] {
        let error = Trace::parse(text).expect_err(text);
        for part in parts {
            assert!(error.contains(part), "{error}: no {part}");
        }
    }
}

#[test]
fn strays_are_found() {
    let parsed = trace(&[
        "1 0 read 3 10",
        "1 5 open f 0 3",
        "1 9 close 3",
        "2 4 read 3 10",
        "2 6 read 3 10",
        "2 10 read 3 10",
        "2 11 read 9 1",
    ]);
    let wanted: BTreeSet<(usize, usize)> = [(0, 0), (1, 0), (1, 2), (1, 3)].into();
    assert_eq!(parsed.stray, wanted);
    assert_eq!(parsed.fds[&3].uses, 1);
}

#[test]
fn what_is_only_read_is_needed_in_full() {
    let found = needs(&[
        "1 0 open lib/a.so 0 3",
        "1 1 read 3 100",
        "1 2 pread 3 50 4000",
        "1 3 read 3 100",
        "1 4 lseek 3 9000 0",
        "1 5 read 3 1",
    ]);
    assert_eq!(found, [("lib/a.so".to_string(), 9001)]);
}

#[test]
fn what_the_trace_makes_is_not_needed() {
    let open = format!("1 0 open f {CREATE} 3");
    let cut = format!("1 3 open g {} 4", libc::O_TRUNC | libc::O_RDWR);
    let found = needs(&[
        &open,
        "1 1 pwrite 3 100 0",
        "1 2 pread 3 100 0",
        &cut,
        "1 4 write 4 10",
        "1 5 pread 4 10 0",
        "1 6 unlink h",
        &format!("1 7 open h {CREATE} 5"),
        "1 8 pread 5 10 0",
    ]);
    assert_eq!(found, [("g".to_string(), 0)]);
}

#[test]
fn a_created_file_that_is_read_first_was_there() {
    let found = needs(&[&format!("1 0 open f {CREATE} 3"), "1 1 pread 3 100 4096"]);
    assert_eq!(found, [("f".to_string(), 4196)]);
}

#[test]
fn renames_are_followed() {
    let found = needs(&["1 0 rename old new", "1 1 open new 0 3", "1 2 read 3 70"]);
    assert_eq!(found, [("old".to_string(), 70)]);
}

#[test]
fn directories_are_not_files() {
    let parsed = trace(&["1 0 open /data/data 0 3", "1 1 open /data/data/x/f 0 4"]);
    assert_eq!(
        parsed.files().into_keys().collect::<Vec<_>>(),
        ["data/data/x/f"]
    );
    assert_eq!(
        parsed.folders().into_iter().collect::<Vec<_>>(),
        ["data", "data/data", "data/data/x"]
    );
}

#[test]
fn block_traces_need_their_extent() {
    let found = needs(&["1 0 bread 4096 512", "2 0 bwrite 8192 4096"]);
    assert_eq!(found, [(BLOCKS.to_string(), 12288)]);
}

#[test]
fn an_exclusive_open_says_that_the_file_was_not_there() {
    let open = format!("1 0 open f {} 3", CREATE | libc::O_EXCL);
    let found = needs(&[&open, "1 1 open f 0 4", "1 2 pread 4 10 0"]);
    assert_eq!(found, []);
}

#[test]
fn a_file_that_the_trace_made_is_opened_again() {
    let open = format!("1 0 open f {CREATE} 3");
    let found = needs(&[
        &open,
        "1 1 write 3 10",
        "1 1 open f 0 4",
        "1 2 pread 4 10 0",
    ]);
    assert_eq!(found, []);
}
