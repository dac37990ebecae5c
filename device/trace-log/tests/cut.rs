// SPDX-License-Identifier: GPL-2.0-only
//! A writer that is killed, and power that fails: what was finished is read, none twice, and the next one continues.

use fasttrack_trace_log::{
    log_files, read_directory, Bio, Found, LogWriter, Options, Record, Sync, Time,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// How often each is tried.
const TIMES: u64 = 200;

/// The directory of the writer that is to be killed, and how it makes blocks durable.
const KILLED: &str = "FASTTRACK_KILLED_WRITER";

/// A process that begins has the other test's locks for a moment: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Records of a block; the size of a file so that it has a few blocks, bytes.
const BLOCK: u64 = 20;
const FILE_BYTES: u64 = 2000;

fn options(sync: Sync) -> Options {
    Options {
        file_bytes: FILE_BYTES,
        block_bytes: 1 << 16,
        cap_bytes: 1 << 30,
        sync,
        level: 1,
    }
}

fn bio(number: u64) -> Record {
    Record::from(Bio {
        time: Time(number),
        bio: Some(number),
        sector: Some(number.wrapping_mul(0x9e37_79b9) % (1 << 30)),
        ..Bio::default()
    })
}

/// xorshift64*: the same cuts each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }
}

/// The numbers of the bios that are read, and how many parts are damaged.
fn read(directory: &Path) -> (Vec<u64>, usize) {
    let (mut numbers, mut damaged) = (Vec::new(), 0);
    read_directory(&[directory.to_path_buf()], 0, u64::MAX, |found| {
        match found {
            Found::Block(_, block) => numbers.extend(block.records.iter().map(|record| {
                let Record::Bio(bio) = record else {
                    panic!("{record:?} was not written");
                };
                assert_eq!(*record, self::bio(bio.time.0));
                bio.time.0
            })),
            Found::Damage(..) | Found::File(..) => damaged += 1,
        }
        Ok::<(), io::Error>(())
    })
    .expect("read");
    (numbers, damaged)
}

/// The next writer takes the directory, and what it writes is read after what was there.
fn continues(directory: &Path, before: &[u64]) {
    let mut writer = LogWriter::new(directory, [9; 16], options(Sync::Never)).expect("free");
    writer.push(&[bio(u64::MAX / 2)]).expect("written");
    writer.close().expect("closed");
    let (numbers, _) = read(directory);
    assert_eq!(numbers[..before.len()], *before);
    assert_eq!(numbers[before.len()..], [u64::MAX / 2]);
}

/// Not a test of its own: the writer below, in a process that can be killed.
#[test]
fn writes_until_it_is_killed() {
    let Some(asked) = std::env::var_os(KILLED) else {
        return;
    };
    let mut writer =
        LogWriter::new(&PathBuf::from(asked), [7; 16], options(Sync::Never)).expect("a directory");
    let mut out = io::stdout();
    for number in 0.. {
        writer.push(&[bio(number)]).expect("written");
        if (number + 1) % BLOCK == 0 {
            writer.end_block().expect("written");
            // A line is one write(2).
            out.write_all(format!("finished {}\n", number + 1).as_bytes())
                .and_then(|()| out.flush())
                .expect("told");
        }
    }
}

#[test]
fn two_hundred_kills() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random(1);
    let program = std::env::current_exe().expect("this test");
    let (mut files, mut between) = (0, 0);
    for _ in 0..TIMES {
        let dir = TempDir::new().expect("a directory");
        let mut writer = Command::new(&program)
            .args(["--exact", "writes_until_it_is_killed", "--nocapture"])
            .env(KILLED, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut said = String::new();
        let mut out = writer.stdout.take().expect("a pipe");
        let mut first = [0; 64];
        let count = out.read(&mut first).expect("its first words");
        said.push_str(&String::from_utf8_lossy(&first[..count]));
        std::thread::sleep(Duration::from_micros(random.below(5000)));
        writer.kill().expect("killed");
        writer.wait().expect("ended");
        out.read_to_string(&mut said).expect("its last words");
        // A line that is cut has a number that is too small.
        let told = said
            .lines()
            .filter_map(|line| line.strip_prefix("finished "));
        let finished = told.filter_map(|number| number.parse().ok()).max();
        let finished: u64 = finished.unwrap_or(0);
        let (numbers, _) = read(dir.path());
        let count = numbers.len() as u64;
        assert_eq!(
            numbers,
            (0..count).collect::<Vec<_>>(),
            "none twice, in order"
        );
        assert!(
            (finished..=finished + BLOCK).contains(&count),
            "{finished} were finished, {count} are read"
        );
        files = files.max(log_files(dir.path()).expect("files").len());
        between += u64::from(count != finished);
        continues(dir.path(), &numbers);
    }
    // Kills hit it at work: among several files.
    assert!(
        files > 2,
        "{files} files at most, {between} between two words"
    );
}

/// What a disk has of a file after a power cut: all that was made durable, and of the rest any pages, or zeros.
fn after_the_cut(bytes: &[u8], durable: usize, random: &mut Random) -> Vec<u8> {
    let end = durable + random.below((bytes.len() - durable) as u64 + 1) as usize;
    let mut left = bytes[..end].to_vec();
    for page in (durable / 4096 * 4096..end).step_by(4096) {
        if random.below(3) == 0 {
            left[page.max(durable)..(page + 4096).min(end)].fill(0);
        }
    }
    left
}

/// Files by path, each with its bytes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = log_files(directory).expect("files");
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("bytes"));
    files.into_iter().map(|(_, path)| read(path)).collect()
}

#[test]
fn two_hundred_power_cuts() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random(2);
    for time in 0..TIMES {
        let sync = [Sync::Block, Sync::File, Sync::Never][time as usize % 3];
        let dir = TempDir::new().expect("a directory");
        let mut writer = LogWriter::new(dir.path(), [7; 16], options(sync)).expect("a directory");
        // The last file may be open or just closed.
        let blocks = 1 + random.below(40);
        for number in 0..blocks * BLOCK {
            writer.push(&[bio(number)]).expect("written");
            if (number + 1) % BLOCK == 0 {
                writer.end_block().expect("written");
            }
        }
        let before = contents(dir.path());
        let (all, _) = read(dir.path());
        assert_eq!(all, (0..blocks * BLOCK).collect::<Vec<_>>());
        drop(writer);
        let last = before.keys().next_back().expect("a file").clone();
        for (path, bytes) in &before {
            let durable = match sync {
                Sync::Block => bytes.len(),
                Sync::File if *path != last => bytes.len(),
                Sync::File | Sync::Never => 0,
            };
            let left = after_the_cut(bytes, durable, &mut random);
            fs::write(path, left).expect("written");
        }
        let (numbers, _) = read(dir.path());
        assert!(
            numbers.windows(2).all(|two| two[0] < two[1]),
            "none twice, in order"
        );
        assert!(numbers.iter().all(|number| *number < blocks * BLOCK));
        let closed = before.keys().filter(|path| **path != last);
        let finished = match sync {
            Sync::Block => blocks * BLOCK,
            Sync::File => closed.map(|path| in_file(&before[path])).sum(),
            Sync::Never => 0,
        };
        assert!(
            numbers.len() as u64 >= finished
                && numbers[..finished as usize] == all[..finished as usize],
            "{finished} were durable, {} are read",
            numbers.len()
        );
        continues(dir.path(), &numbers);
    }
}

/// Records of a whole file.
fn in_file(bytes: &[u8]) -> u64 {
    let file = fasttrack_trace_log::LogFile::parse(bytes.to_vec()).expect("a log");
    file.headers().map(|header| u64::from(header.records)).sum()
}
