// SPDX-License-Identifier: GPL-2.0-only
//! Writes of a file on the emulated phone, in the patterns of Androtrace's evaluation: how long they take in the guest's
//! time, in which an instruction is a nanosecond and the phone's storage takes what its model says.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sys::{self, PAGE};
use crate::{file_system, state::State};

/// The phone's disk.
const DISK: &str = "sda";

/// The file: an eighth of the paper's, which took minutes on real phones.
const FILE_BYTES: usize = 64 << 20;
const LARGE: usize = 128 << 10;

/// Writes of a page: enough for a mean, and few enough for a guest that counts.
const SMALL_WRITES: usize = 4096;

/// Between two patterns, so that the device has written what it keeps.
const REST: Duration = Duration::from_secs(5);

/// How a file is written.
struct Way {
    name: &'static str,
    flags: libc::c_int,
}

const WAYS: [Way; 3] = [
    Way {
        name: "buffered",
        flags: 0,
    },
    Way {
        name: "sync",
        flags: libc::O_SYNC,
    },
    Way {
        name: "direct",
        flags: libc::O_DIRECT,
    },
];

/// Measures all patterns, each in all states; a state has a guest of its own, so that the device is always as new.
pub fn measure(states: &[State]) -> Result<String, String> {
    let place = prepare().map_err(|error| format!("{DISK}: {error}"))?;
    let mut text = String::new();
    for state in states {
        text += &state.measure(&[DISK], &|name, elevator| {
            let scheduler = Path::new("/sys/block").join(DISK).join("queue/scheduler");
            sys::write(&scheduler, elevator)?;
            state.as_app(|| patterns(&place, name))
        })?;
    }
    Ok(text)
}

/// The file system with the file, which an app may write.
fn prepare() -> Result<String, String> {
    let begin = Instant::now();
    let disk = format!("/dev/{DISK}");
    while !Path::new(&disk).exists() {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("it has not come".into());
        }
        sleep(Duration::from_millis(10));
    }
    file_system(&disk)?;
    let place = "/run/data/file".to_string();
    let made = File::create(&place).and_then(|file| {
        let part = vec![b'x'; LARGE];
        for at in (0..FILE_BYTES).step_by(LARGE) {
            file.write_all_at(&part, at as u64)?;
        }
        file.sync_all()?;
        fs::set_permissions(&place, Permissions::from_mode(0o666))
    });
    made.map_err(|error| format!("{place}: {error}"))?;
    Ok(place)
}

/// A line for each pattern.
fn patterns(place: &str, state: &str) -> io::Result<String> {
    let mut text = String::new();
    for way in &WAYS {
        for (order, block, writes) in [
            ("sequential", LARGE, FILE_BYTES / LARGE),
            ("random", PAGE, SMALL_WRITES),
        ] {
            sleep(REST);
            let ticks = write_all(place, way, block, writes, order == "random")?;
            let bytes = block * writes;
            let _ = writeln!(text, "write {state} {}-{order} {bytes} {ticks}", way.name);
        }
    }
    Ok(text)
}

/// Ticks from the first write to the end of an fsync after the last one.
fn write_all(place: &str, way: &Way, block: usize, writes: usize, random: bool) -> io::Result<u64> {
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(way.flags)
        .open(place)?;
    let buffer = sys::memory(block)?;
    let mut draw = 1_u64;
    let begin = sys::ticks();
    for number in 0..writes {
        let at = if random {
            // Knuth's MMIX; its high bits are the better ones.
            draw = draw
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) as usize % (FILE_BYTES / block)
        } else {
            number
        };
        file.write_all_at(buffer, (at * block) as u64)?;
    }
    // SAFETY: a descriptor of an open file.
    sys::check(unsafe { libc::fsync(file.as_raw_fd()) }.into())?;
    Ok(sys::ticks() - begin)
}
