// SPDX-License-Identifier: GPL-2.0-only
//! A disk that takes no more: what was finished is read, what was not is counted to the record, and both are said.
//!
//! Full and read-only file systems are real ones, in a mount namespace of the test's own, which needs root; without it
//! these tests are SKIPPED.

use fasttrack_trace_log::{
    read_directory, Bio, Found, LogWriter, Loss, LossReason, Operation, Options, Record, Sync, Time,
};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Set in the namespace: where the test may mount.
const PLACE: &str = "FASTTRACK_TEST_MOUNT";

fn bio(number: u64) -> Record {
    Record::from(Bio {
        time: Time(number * 1_000_003),
        bio: Some(number),
        operation: Some(Operation::WRITE),
        // So that a block of them does not compress to nothing.
        sector: Some(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        bytes: Some(4096),
        ..Bio::default()
    })
}

fn writer(directory: &Path) -> LogWriter {
    let options = Options {
        file_bytes: 16 << 10,
        block_bytes: 1 << 10,
        sync: Sync::Never,
        ..Options::default()
    };
    LogWriter::new(directory, [7; 16], options).expect("a directory")
}

/// Numbers of the bios that are read, the losses, and how much is damaged.
fn read(directory: &Path) -> (Vec<u64>, Vec<Loss>, usize) {
    let (mut bios, mut losses, mut damages) = (Vec::new(), Vec::new(), 0);
    read_directory(&[directory.to_path_buf()], 0, u64::MAX, |found| {
        match found {
            Found::Block(_, block) => {
                for record in block.records {
                    match record {
                        Record::Bio(bio) => bios.extend(bio.bio),
                        Record::Loss(loss) => losses.push(loss),
                        other => panic!("{other:?}"),
                    }
                }
            }
            _ => damages += 1,
        }
        Ok::<(), io::Error>(())
    })
    .expect("read");
    (bios, losses, damages)
}

/// Each bio is read or in a loss, whose interval is that of what is missing.
fn all_are_read_or_counted(directory: &Path, written: u64) {
    let (bios, losses, damages) = read(directory);
    assert_eq!(damages, 0);
    assert!(bios.windows(2).all(|pair| pair[0] < pair[1]), "{bios:?}");
    let lost: u64 = losses.iter().map(|loss| loss.count.expect("a count")).sum();
    assert!(lost > 0 && !losses.is_empty());
    assert_eq!(bios.len() as u64 + lost, written, "{losses:?}");
    for loss in &losses {
        assert_eq!(loss.reason, Some(LossReason::DISK_ERROR));
        let (since, until) = (loss.since.expect("a begin").0, loss.time.0);
        let missing = (since / 1_000_003..=until / 1_000_003).collect::<Vec<_>>();
        assert_eq!(missing.len() as u64, loss.count.expect("a count"));
        assert!(!missing.iter().any(|number| bios.contains(number)));
    }
}

/// Runs the test `name` in a namespace of its own; whether this is it, and where it may mount.
fn namespace(name: &str) -> Option<std::path::PathBuf> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Some(place.into());
    }
    let place = TempDir::new().expect("a directory");
    let private = ["--mount", "--propagation", "private"];
    let allowed = Command::new("unshare").args(private).arg("true").output();
    if !allowed.is_ok_and(|done| done.status.success()) {
        println!("{name}: SKIPPED (a mount namespace needs root)");
        return None;
    }
    let done = Command::new("unshare")
        .args(private)
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, place.path())
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    print!("{said}");
    None
}

fn mount(args: &[&str], place: &Path) -> bool {
    let done = Command::new("mount").args(args).arg(place).output();
    done.is_ok_and(|done| done.status.success())
}

/// The directory is away for a while: its file takes on what it can, and the next is made when it is back.
#[test]
fn without_a_next_file_records_are_counted() {
    let dir = TempDir::new().expect("a directory");
    let (logs, away) = (dir.path().join("logs"), dir.path().join("away"));
    let mut writer = writer(&logs);
    writer.push(&[bio(0)]).expect("written");
    fs::rename(&logs, &away).expect("away");
    for number in 1..3000 {
        writer.push(&[bio(number)]).expect("counted");
    }
    let failure = writer.take_failure().expect("a failure").to_string();
    assert!(
        failure.contains("00000002.ftlog: No such file"),
        "{failure}"
    );
    assert!(failure.ends_with("or take another"), "{failure}");
    // It is tried again with each block, not with each record.
    assert!(writer.take_failure().is_none() && writer.is_failing());
    writer.end_block().expect("tried");
    assert!(writer.take_failure().is_some());
    assert_eq!(writer.file_number().expect("none"), 0);
    fs::rename(&away, &logs).expect("back");
    writer.end_block().expect("tried");
    assert!(!writer.is_failing());
    for number in 3000..4000 {
        writer.push(&[bio(number)]).expect("written");
    }
    writer.close().expect("closed");
    all_are_read_or_counted(&logs, 4000);
}

/// What is in the place of the next file is not ours, and stays.
#[test]
fn a_name_that_is_taken_is_passed_over() {
    let dir = TempDir::new().expect("a directory");
    let mut writer = writer(dir.path());
    writer.push(&[bio(0)]).expect("written");
    let taken = dir.path().join("00000002.ftlog");
    fs::create_dir(&taken).expect("a directory in its place");
    for number in 1..3000 {
        writer.push(&[bio(number)]).expect("written");
    }
    writer.close().expect("closed");
    fs::remove_dir(&taken).expect("it is still there");
    let (bios, losses, damages) = read(dir.path());
    assert_eq!((bios.len(), losses.len(), damages), (3000, 0, 0));
}

#[test]
fn a_full_disk() {
    let Some(place) = namespace("a_full_disk") else {
        return;
    };
    assert!(mount(&["-t", "tmpfs", "-o", "size=128k", "tmpfs"], &place));
    let logs = place.join("logs");
    let mut writer = writer(&logs);
    let mut failures = Vec::new();
    let mut push = |writer: &mut LogWriter, numbers: std::ops::Range<u64>| {
        for number in numbers {
            writer.push(&[bio(number)]).expect("written or counted");
            failures.extend(writer.take_failure().map(|failure| failure.to_string()));
        }
        writer.end_block().expect("written or counted");
        failures.extend(writer.take_failure().map(|failure| failure.to_string()));
    };
    push(&mut writer, 0..1000);
    fs::write(place.join("ballast"), vec![1; 1 << 20]).expect_err("full");
    push(&mut writer, 1000..9000);
    fs::remove_file(place.join("ballast")).expect("removed");
    push(&mut writer, 9000..10_000);
    push(&mut writer, 10_000..11_000);
    assert!(!writer.is_failing());
    writer.close().expect("closed");
    assert!(!failures.is_empty());
    let way = "make room there, or take another directory";
    assert!(
        failures.iter().all(|said| said.ends_with(way)),
        "{failures:?}"
    );
    all_are_read_or_counted(&logs, 11_000);
}

/// As ext4 makes itself after an error. It does not become writable again, so the losses are in no file.
#[test]
fn a_read_only_remount() {
    let Some(place) = namespace("a_read_only_remount") else {
        return;
    };
    let image = place.with_extension("image");
    let made = fs::File::create(&image).and_then(|file| file.set_len(8 << 20));
    made.expect("an image");
    let made = Command::new("mkfs.ext4").arg("-q").arg(&image).output();
    let options = [
        "-o",
        "loop,errors=remount-ro",
        image.to_str().expect("a path"),
    ];
    let mounted = made.is_ok_and(|done| done.status.success()) && mount(&options, &place);
    fs::remove_file(&image).expect("removed");
    if !mounted {
        println!("a_read_only_remount: SKIPPED (no loop device)");
        return;
    }
    let logs = place.join("logs");
    let mut writer = writer(&logs);
    for number in 0..5000 {
        writer.push(&[bio(number)]).expect("written");
    }
    writer.end_block().expect("written");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let line = mounts
        .lines()
        .find(|line| line.contains(&*place.to_string_lossy()));
    let device = line
        .and_then(|line| line.split(' ').next())
        .expect("a device");
    let name = Path::new(device).file_name().expect("a name");
    let trigger = Path::new("/sys/fs/ext4")
        .join(name)
        .join("trigger_fs_error");
    fs::write(trigger, "1").expect("an error");
    for number in 5000..9000 {
        writer.push(&[bio(number)]).expect("counted");
    }
    let failure = writer.take_failure().expect("a failure").to_string();
    assert!(failure.contains("mount it writable again"), "{failure}");
    writer.close().expect_err("nothing can be closed there");
    let (bios, losses, _) = read(&logs);
    assert_eq!(bios, (0..5000).collect::<Vec<_>>());
    assert!(losses.is_empty());
}
