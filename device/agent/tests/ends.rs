// SPDX-License-Identifier: GPL-2.0-only
//! When the agent ends by itself: where it prints what a source says that it was asked for, with that source.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than it takes; less than whoever waits for a test.
const MOST: Duration = Duration::from_secs(60);

#[test]
fn who_reads_what_is_printed_is_told_all_and_then_the_end() {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_fasttrack-agent"))
        .args(["--print", "--source", "manual"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the agent");
    let mut lines = agent.stdin.take().expect("a pipe");
    lines
        .write_all(b"away locked on\naway locked off\naway idle on\n")
        .expect("it reads");
    drop(lines);
    let began = Instant::now();
    let ended = loop {
        if let Some(status) = agent.try_wait().expect("a child") {
            break status;
        }
        if began.elapsed() > MOST {
            let _ = agent.kill();
            panic!("it goes on without its source");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut printed = String::new();
    let mut out = agent.stdout.take().expect("a pipe");
    out.read_to_string(&mut printed).expect("text");
    assert!(ended.success(), "{ended}: {printed}");
    assert_eq!(printed.matches("locked").count(), 1, "{printed}");
    assert_eq!(printed.matches("idle").count(), 1, "{printed}");
}
