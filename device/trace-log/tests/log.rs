// SPDX-License-Identifier: GPL-2.0-only
//! Log files: what is finished is read, none twice, whatever has happened to the file.

use fasttrack_trace_log::{
    log_files, read_directory, read_directory_by, Bio, Block, Call, CallInterface, CallKind,
    Damage, FileType, Found, LogError, LogFile, LogWriter, Loss, LossReason, Operation, Options,
    Record, Session, Sync, Task, Time, TransactionKind, Wait, WaitKind, WriteError,
};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SESSION: [u8; 16] = *b"0123456789abcdef";

fn bio(number: u64) -> Record {
    Record::from(Bio {
        time: Time(1_000_000 + number * 137),
        bio: Some(number),
        dev: Some(8 << 20),
        operation: Some(Operation::WRITE),
        sector: Some(number.wrapping_mul(0x9e37_79b9) % (1 << 24)),
        bytes: Some(4096),
        sync: Some(number % 3 == 0),
        ..Bio::default()
    })
}

fn small() -> Options {
    Options {
        file_bytes: 2000,
        block_bytes: 200,
        cap_bytes: 1 << 20,
        sync: Sync::Never,
        level: 3,
    }
}

fn write(directory: &Path, options: Options, count: u64) {
    let mut writer = LogWriter::new(directory, SESSION, options).expect("a directory");
    for number in 0..count {
        writer.push(&[bio(number)]).expect("written");
    }
    writer.close().expect("closed");
}

/// One file's bytes, of a writer that is killed before it closes it.
fn killed(count: u64) -> Vec<u8> {
    let dir = TempDir::new().expect("a directory");
    let options = Options {
        file_bytes: 1 << 20,
        ..small()
    };
    let mut writer = LogWriter::new(dir.path(), SESSION, options).expect("a directory");
    for number in 0..count {
        writer.push(&[bio(number)]).expect("written");
    }
    let path = log_files(dir.path()).expect("files")[0].1.clone();
    fs::read(path).expect("bytes")
}

/// One file's bytes with its index.
fn closed(count: u64) -> Vec<u8> {
    let dir = TempDir::new().expect("a directory");
    let options = Options {
        file_bytes: 1 << 20,
        ..small()
    };
    write(dir.path(), options, count);
    fs::read(&log_files(dir.path()).expect("files")[0].1).expect("bytes")
}

fn whole(file: &LogFile) -> Vec<Block> {
    file.blocks(0, u64::MAX).filter_map(Result::ok).collect()
}

fn damaged(file: &LogFile) -> Vec<Damage> {
    let blocks = file.blocks(0, u64::MAX).filter_map(Result::err);
    blocks.chain(file.damages().iter().cloned()).collect()
}

fn records(blocks: &[Block]) -> Vec<Record> {
    blocks
        .iter()
        .flat_map(|block| block.records.clone())
        .collect()
}

fn read_all(paths: &[PathBuf]) -> (Vec<Record>, usize) {
    let (mut found, mut bad) = (Vec::new(), 0);
    read_directory(paths, 0, u64::MAX, |one| {
        match one {
            Found::Block(_, block) => found.extend(block.records),
            Found::Damage(..) | Found::File(..) => bad += 1,
        }
        Ok::<(), io::Error>(())
    })
    .expect("read");
    (found, bad)
}

#[test]
fn what_is_written_is_read() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), small(), 1000);
    let files = log_files(dir.path()).expect("files");
    assert!(files.len() > 3);
    for (number, path) in &files {
        let file = LogFile::open(path).expect("a log");
        assert!(file.closed && file.header.number == *number && damaged(&file).is_empty());
        assert!(fs::metadata(path).expect("a file").len() < 2000 + 400);
        let mode = fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let (found, bad) = read_all(&[dir.path().to_path_buf()]);
    assert_eq!(found, (0..1000).map(bio).collect::<Vec<_>>());
    assert_eq!(bad, 0);
}

#[test]
fn an_interval_reads_its_blocks_alone() {
    let file = LogFile::parse(closed(200)).expect("a log");
    let time = bio(100).time().0;
    let found: Vec<Block> = file.blocks(time, time).map(|b| b.expect("whole")).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].records.contains(&bio(100)));
}

/// A power cut leaves a file of any length: the blocks that are whole in it are read, in order.
#[test]
fn cut_at_every_byte() {
    for bytes in [killed(100), closed(100)] {
        let full = LogFile::parse(bytes.clone()).expect("a log");
        let blocks = whole(&full);
        assert!(blocks.len() > 3);
        for cut in 0..bytes.len() {
            let part = bytes[..cut].to_vec();
            let finished = |block: &&Block| block.at + block.header.size() <= cut as u64;
            let expected: Vec<Block> = blocks.iter().filter(finished).cloned().collect();
            match LogFile::parse(part) {
                Ok(file) => assert_eq!(records(&whole(&file)), records(&expected), "cut at {cut}"),
                Err(LogError::Empty) => assert!(cut < 64, "cut at {cut}"),
                Err(error) => panic!("cut at {cut}: {error}"),
            }
        }
    }
}

/// A byte that is wrong costs its block, and no other; none is read that was not written.
#[test]
fn each_byte_wrong() {
    let bytes = closed(100);
    let blocks = whole(&LogFile::parse(bytes.clone()).expect("a log"));
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x41;
        match LogFile::parse(wrong) {
            Ok(file) => {
                let hit = |block: &&Block| {
                    !(block.at..block.at + block.header.size()).contains(&(at as u64))
                };
                let expected: Vec<Block> = blocks.iter().filter(hit).cloned().collect();
                assert_eq!(records(&whole(&file)), records(&expected), "byte {at}");
                let gone = expected.len() < blocks.len();
                assert!(!gone || !damaged(&file).is_empty(), "byte {at} is silent");
            }
            Err(error) => assert!(at < 64, "byte {at}: {error}"),
        }
    }
}

#[test]
fn damage_says_how_many_records() {
    let mut bytes = killed(100);
    let blocks = whole(&LogFile::parse(bytes.clone()).expect("a log"));
    // In the payload of the second block.
    bytes[blocks[1].at as usize + 90] ^= 1;
    let file = LogFile::parse(bytes).expect("a log");
    let damage = damaged(&file);
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].records, Some(blocks[1].records.len() as u64));
}

#[test]
fn a_newer_format_is_refused_and_says_so() {
    let mut bytes = closed(10);
    bytes[8] = 2;
    let error = LogFile::parse(bytes).expect_err("newer");
    assert!(matches!(error, LogError::Newer(2)));
    assert!(error.to_string().contains("newer fasttrack-trace"));
}

#[test]
fn a_foreign_file_is_refused() {
    for bytes in [b"PK\x03\x04".to_vec(), vec![0; 100], b"FTTRACEX".to_vec()] {
        assert!(matches!(LogFile::parse(bytes), Err(LogError::Foreign)));
    }
    assert!(matches!(LogFile::parse(Vec::new()), Err(LogError::Empty)));
    let no_file = LogFile::open(Path::new("/nonexistent/log"));
    assert!(matches!(no_file, Err(LogError::Io(_))));
}

/// Blocks of a file that was in the same place of the disk before are not this file's.
#[test]
fn another_sessions_blocks_are_not_read() {
    let mut bytes = killed(50);
    let count = whole(&LogFile::parse(bytes.clone()).expect("a log")).len();
    let dir = TempDir::new().expect("a directory");
    let mut writer =
        LogWriter::new(dir.path(), *b"another session!", small()).expect("a directory");
    for number in 0..20 {
        writer.push(&[bio(number)]).expect("written");
    }
    let path = log_files(dir.path()).expect("files")[0].1.clone();
    bytes.extend_from_slice(&fs::read(path).expect("bytes")[64..]);
    let file = LogFile::parse(bytes).expect("a log");
    assert_eq!(whole(&file).len(), count);
    assert!(!file.damages().is_empty());
}

#[test]
fn none_is_read_twice() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), small(), 300);
    let path = dir.path().to_path_buf();
    let copied = TempDir::new().expect("a directory");
    let first = &log_files(&path).expect("files")[0].1;
    let copy = copied.path().join("00000001.ftlog");
    fs::copy(first, &copy).expect("copied");
    let (found, bad) = read_all(&[path, copy]);
    assert_eq!((found.len(), bad), (300, 0));
}

/// Oldest first; what goes is a loss in the stream, and exact.
#[test]
fn the_cap_removes_the_oldest_and_counts_them() {
    let dir = TempDir::new().expect("a directory");
    let options = Options {
        cap_bytes: 8000,
        ..small()
    };
    write(dir.path(), options, 3000);
    let files = log_files(dir.path()).expect("files");
    let bytes: u64 = files
        .iter()
        .map(|(_, path)| fs::metadata(path).expect("a file").len())
        .sum();
    assert!(bytes < 8000 + 3000 && files[0].0 > 1, "{bytes} bytes");
    let (found, bad) = read_all(&[dir.path().to_path_buf()]);
    let (mut bios, mut lost) = (0, 0);
    let mut evicted = Vec::new();
    for record in &found {
        match record {
            Record::Bio(_) => bios += 1,
            Record::Loss(loss) => {
                assert_eq!(loss.reason, Some(LossReason::DISK_CAP));
                lost += loss.count.expect("counted");
                evicted.push(loss.file.expect("a number"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bad, 0);
    assert_eq!(evicted.last(), Some(&(files[0].0 - 1)));
    // Loss records that went with their files are records that are lost, too: one a file.
    let gone = files[0].0 - 1;
    assert_eq!(bios + lost, 3000 + gone - evicted.len() as u64);
    assert!(bios > 100, "{bios} of 3000 are left");
}

/// What a session has written itself is not read for it.
#[test]
fn the_cap_counts_a_file_that_is_unreadable() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), small(), 10);
    let options = Options {
        cap_bytes: 8000,
        ..small()
    };
    let mut writer = LogWriter::new(dir.path(), SESSION, options).expect("a directory");
    let files = || log_files(dir.path()).expect("files");
    let mut bios = (0..).map(bio);
    let mut push = || {
        writer
            .push(&[bios.next().expect("a bio")])
            .expect("written")
    };
    while files().len() < 3 {
        push();
    }
    let mut expected = Vec::new();
    for (number, path) in files().drain(..2) {
        let file = LogFile::open(&path).expect("closed");
        let count: u64 = file.headers().map(|one| u64::from(one.records)).sum();
        let since = file.headers().map(|one| Time(one.first)).min();
        expected.push((Some(number), Some(count), since));
    }
    fs::write(dir.path().join("00000002.ftlog"), "no log").expect("spoilt");
    while files()[0].0 < 3 {
        push();
    }
    writer.close().expect("closed");
    let (found, bad) = read_all(&[dir.path().to_path_buf()]);
    let lost: Vec<_> = found
        .iter()
        .filter_map(|record| match record {
            Record::Loss(loss) => Some((loss.file, loss.count, loss.since)),
            _ => None,
        })
        .collect();
    assert_eq!((lost, bad), (expected, 0));
}

#[test]
fn a_session_continues_with_the_next_number() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), small(), 10);
    let mut writer = LogWriter::new(dir.path(), *b"fedcba9876543210", small()).expect("again");
    assert_eq!(writer.file_number().expect("a file"), 2);
    writer.push(&[bio(10)]).expect("written");
    writer.close().expect("closed");
    let (found, _) = read_all(&[dir.path().to_path_buf()]);
    assert_eq!(found, (0..11).map(bio).collect::<Vec<_>>());
}

#[test]
fn one_directory_has_one_writer() {
    let dir = TempDir::new().expect("a directory");
    let first = LogWriter::new(dir.path(), SESSION, small()).expect("a directory");
    let second = LogWriter::new(dir.path(), SESSION, small());
    assert!(matches!(second, Err(WriteError::Busy(_))));
    drop(first);
    LogWriter::new(dir.path(), SESSION, small()).expect("free again");
}

/// Each says what to do.
#[test]
fn errors_of_the_disk_have_a_way_out() {
    for (kind, way) in [
        (
            io::ErrorKind::StorageFull,
            "make room there, or take another directory",
        ),
        (
            io::ErrorKind::ReadOnlyFilesystem,
            "mount it writable again (dmesg says why it is not), or take another directory",
        ),
        (
            io::ErrorKind::NotFound,
            "make its directory again, or take another",
        ),
        (io::ErrorKind::PermissionDenied, "take another directory"),
    ] {
        let error = WriteError::Io(PathBuf::from("/logs"), io::Error::from(kind)).to_string();
        assert!(
            error.starts_with("/logs: ") && error.ends_with(way),
            "{error}"
        );
    }
}

/// Names stay with the record that needs them, also where a block and a file end.
#[test]
fn records_that_are_given_together_stay_together() {
    let dir = TempDir::new().expect("a directory");
    let mut writer = LogWriter::new(dir.path(), SESSION, small()).expect("a directory");
    let mut named = 0;
    for number in 0..500 {
        let mut together = Vec::new();
        let file = writer.file_number().expect("a file");
        if file != named {
            named = file;
            together.push(Record::from(Task {
                time: bio(number).time(),
                task: Some(7),
                name: Some("a".to_string()),
                ..Task::default()
            }));
        }
        together.push(bio(number));
        writer.push(&together).expect("written");
    }
    writer.close().expect("closed");
    for (_, path) in log_files(dir.path()).expect("files") {
        let found = records(&whole(&LogFile::open(&path).expect("a log")));
        assert!(matches!(found[0], Record::Task(_)), "{}", path.display());
    }
}

#[test]
fn a_loss_is_in_the_blocks_header() {
    let dir = TempDir::new().expect("a directory");
    let mut writer = LogWriter::new(dir.path(), SESSION, small()).expect("a directory");
    let loss = Loss {
        time: Time(5),
        count: Some(12),
        ..Loss::default()
    };
    writer.push(&[Record::from(loss)]).expect("written");
    writer.close().expect("closed");
    let file = LogFile::open(&log_files(dir.path()).expect("files")[0].1).expect("a log");
    assert_eq!(file.headers().map(|header| header.lost).sum::<u64>(), 12);
}

/// The promise: at most 12 bytes a record of I/O.
#[test]
fn bytes_of_a_record() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), Options::default(), 20_000);
    let files = log_files(dir.path()).expect("files");
    let bytes: u64 = files
        .iter()
        .map(|(_, path)| fs::metadata(path).expect("a file").len())
        .sum();
    assert!(bytes < 12 * 20_000, "{bytes} bytes for 20,000 records");
}

/// Readers of all times read the file that each version has written.
#[test]
fn golden_files_of_all_versions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (version, said) in [
        (1, golden()),
        (2, golden_2()),
        (3, golden_3()),
        (4, golden_4()),
        (5, golden_5()),
        (6, golden_6()),
        (7, golden_7()),
        (8, golden_8()),
        (9, golden_9()),
    ] {
        let path = folder.join(format!("v{version}.ftlog"));
        if std::env::var_os("FASTTRACK_WRITE_GOLDEN").is_some() && !path.exists() {
            let dir = TempDir::new().expect("a directory");
            let mut writer = LogWriter::new(dir.path(), SESSION, small()).expect("a directory");
            writer.push(&said).expect("written");
            writer.close().expect("closed");
            fs::copy(&log_files(dir.path()).expect("files")[0].1, &path).expect("copied");
        }
        let file = LogFile::open(&path).expect("the golden file");
        assert!(file.closed && damaged(&file).is_empty(), "{version}");
        assert_eq!(records(&whole(&file)), said, "{version}");
    }
}

/// A read by io_uring, and what a splice has written.
fn golden_9() -> Vec<Record> {
    let call = |kind, interface| {
        Record::from(Call {
            time: Time(120),
            task: Some(5),
            kind: Some(kind),
            duration_ns: Some(20),
            interface: Some(interface),
            ..Call::default()
        })
    };
    vec![
        call(CallKind::DIRECT_READ, CallInterface::IO_URING),
        call(CallKind::SPLICE_WRITE, CallInterface::SYSTEM_CALL),
    ]
}

/// A transaction of SQLite that has ended, and one of which nobody knows.
fn golden_8() -> Vec<Record> {
    let one = |time, ended| {
        Record::from(fasttrack_trace_log::SqliteTransaction {
            time: Time(time),
            thread: Some(1234),
            derived: Some(true),
            ended,
            ..fasttrack_trace_log::SqliteTransaction::default()
        })
    };
    vec![one(96, Some(true)), one(97, None)]
}

/// An app above its budget, and a transaction of SQLite.
fn golden_7() -> Vec<Record> {
    vec![
        Record::from(fasttrack_trace_log::Aggregate {
            time: Time(90),
            calls: Some(3),
            calls_ns: Some(70_000),
            waits: Some(2),
            waits_ns: Some(60_000),
            ..fasttrack_trace_log::Aggregate::default()
        }),
        Record::from(fasttrack_trace_log::SqliteTransaction {
            time: Time(95),
            task: Some(4),
            thread: Some(1234),
            file: Some(6),
            mode: Some(fasttrack_trace_log::SqliteMode::WAL),
            duration_ns: Some(5_000_000),
            writes: Some(7),
            bytes: Some(28_672),
            syncs: Some(1),
            syncs_ns: Some(4_000_000),
            derived: Some(true),
            ..fasttrack_trace_log::SqliteTransaction::default()
        }),
    ]
}

/// A bio of a sample, its segment and its request, and what was left.
fn golden_6() -> Vec<Record> {
    let (time, weight) = (Time(70), Some(10));
    vec![
        Record::from(Session {
            time: Time(1),
            sample: weight,
            ..Session::default()
        }),
        Record::from(Bio {
            time,
            bio: Some(7),
            weight,
            ..Bio::default()
        }),
        Record::from(fasttrack_trace_log::Segment {
            time,
            bio: Some(7),
            weight,
            ..fasttrack_trace_log::Segment::default()
        }),
        Record::from(fasttrack_trace_log::Request {
            time: Time(80),
            first_bio: Some(7),
            weight,
            ..fasttrack_trace_log::Request::default()
        }),
        Record::from(Loss {
            time: Time(90),
            reason: Some(LossReason::SAMPLED),
            count: Some(27),
            ..Loss::default()
        }),
        Record::from(fasttrack_trace_log::Aggregate {
            time: Time(90),
            bios: Some(3),
            weight,
            ..fasttrack_trace_log::Aggregate::default()
        }),
    ]
}

/// Events that no program ran for, of nobody knows which processor.
fn golden_5() -> Vec<Record> {
    vec![Record::from(Loss {
        time: Time(60),
        reason: Some(LossReason::RECURSION),
        since: Some(Time(50)),
        count: Some(2),
        ..Loss::default()
    })]
}

/// A bio, a wait and a call of one thread of a process.
fn golden_4() -> Vec<Record> {
    let thread = Some(1002);
    vec![
        Record::from(Bio {
            time: Time(30),
            carrier: Some(3),
            thread,
            ..Bio::default()
        }),
        Record::from(Wait {
            time: Time(40),
            task: Some(3),
            duration_ns: Some(10),
            thread,
            ..Wait::default()
        }),
        Record::from(Call {
            time: Time(50),
            task: Some(3),
            duration_ns: Some(30),
            thread,
            ..Call::default()
        }),
    ]
}

/// A call that waited for its bio and for a buffer.
fn golden_3() -> Vec<Record> {
    let wait = |kind, sector| {
        Record::from(Wait {
            time: Time(40),
            task: Some(3),
            kind: Some(kind),
            duration_ns: Some(10),
            sector,
            ..Wait::default()
        })
    };
    vec![
        Record::from(Session {
            time: Time(1),
            calls_over_us: Some(100),
            ..Session::default()
        }),
        wait(WaitKind::BIO, None),
        wait(WaitKind::BUFFER, Some(8)),
        Record::from(Call {
            time: Time(50),
            task: Some(3),
            kind: Some(CallKind::DIRECT_READ),
            duration_ns: Some(30),
            ..Call::default()
        }),
    ]
}

/// A transaction and its payers.
fn golden_2() -> Vec<Record> {
    let transaction = fasttrack_trace_log::Transaction {
        time: Time(2_000_000),
        transaction: Some(7),
        kind: Some(TransactionKind::JBD2),
        began: Some(Time(1_500_000)),
        trigger: Some(2),
        trigger_call: Some(CallKind::MSYNC),
        handles: Some(3),
        blocks: Some(12),
        ..fasttrack_trace_log::Transaction::default()
    };
    let share = |task, blocks, through| fasttrack_trace_log::Share {
        time: Time(2_000_000),
        transaction: Some(7),
        task,
        handles: Some(1),
        blocks: Some(blocks),
        through_flusher: Some(through),
        ..fasttrack_trace_log::Share::default()
    };
    vec![
        Record::from(transaction),
        Record::from(share(Some(2), 8, false)),
        Record::from(share(Some(4), 3, true)),
        Record::from(share(None, 1, false)),
    ]
}

/// Of every type of field, and every kind of record that a bio needs.
fn golden() -> Vec<Record> {
    let file = fasttrack_trace_log::File {
        time: Time(1_000_000),
        file: Some(3),
        created_ns: Some(-5),
        path: Some("data/app/ä.db".to_string()),
        file_type: Some(FileType::SQLITE_DB),
        ..fasttrack_trace_log::File::default()
    };
    let segment = fasttrack_trace_log::Segment {
        time: bio(1).time(),
        bio: Some(1),
        offset: Some(0),
        bytes: Some(4096),
        file: Some(3),
        dirtied: Some(Time(999)),
        ..fasttrack_trace_log::Segment::default()
    };
    vec![
        Record::from(file),
        bio(1),
        Record::from(segment),
        bio(u64::MAX / 1_000_000),
    ]
}

/// What threads make comes in the order of the blocks, and who is asked may end it.
#[test]
fn threads_keep_the_order_and_end_when_told() {
    let dir = TempDir::new().expect("a directory");
    write(dir.path(), small(), 3000);
    let paths = [dir.path().to_path_buf()];
    let read = |threads, most: usize| {
        let mut numbers = Vec::new();
        let ended = read_directory_by(
            &paths,
            threads,
            |_, block| block.records,
            |found| {
                let Found::Block(_, records) = found else {
                    panic!("{found:?}");
                };
                numbers.extend(records);
                match numbers.len() < most {
                    true => Ok(()),
                    false => Err(io::Error::other("enough")),
                }
            },
        );
        (numbers, ended.is_ok())
    };
    let all: Vec<Record> = (0..3000).map(bio).collect();
    for threads in [1, 2, 5] {
        assert_eq!(read(threads, usize::MAX), (all.clone(), true));
        let (some, whole) = read(threads, 100);
        assert!(!whole && some.len() < 200 && all.starts_with(&some));
    }
    let nothing = read_directory_by::<_, io::Error>(
        &[dir.path().join("nothing")],
        2,
        |_, block| block,
        |found| {
            assert!(matches!(found, Found::File(..)));
            Ok(())
        },
    );
    assert!(nothing.is_ok());
}
