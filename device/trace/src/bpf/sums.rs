// SPDX-License-Identifier: GPL-2.0-only
//! Sums that the programs make: none of what they see is sent one by one.

use super::misses::Grown;
use super::{told, Loaded, Lost};
use crate::clocks;
use crate::sums::{On, Sum, Summing, Told, What, Who};
use crate::tracefs::Missing;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::Ebpf;
use fasttrack_trace_log::{BlockType, CallKind, LossReason};
use std::path::Path;
use std::time::Duration;

/// Sums of one picture, and of the next one while this is read: more are counted as lost.
const SUMS: u32 = 8192;

/// Dirty pages whose owners are known, 256 MiB.
const PAGES: u32 = 65_536;

/// Requests in their devices.
const ISSUED: u32 = 8192;

/// Threads that sync.
const SYNCING: u32 = 4096;

/// Programs that other forms do not need: on tracepoints of the kernel itself, and of file systems.
pub(super) const PROGRAMS: [(&str, &str, bool); 2] = [
    ("rq_issue", "block_rq_issue", false),
    ("rq_complete", "block_rq_complete", false),
];
pub(super) const OF_MODULES: [(&str, &[&str]); 4] = [
    ("ext4_sync_begins", &["ext4_sync_file_enter"]),
    ("f2fs_sync_begins", &["f2fs_sync_file_enter"]),
    ("ext4_sync_ends", &["ext4_sync_file_exit"]),
    ("f2fs_sync_ends", &["f2fs_sync_file_exit"]),
];

/// What a sum is of, as the programs number it: a type of block that is written, or one of these.
const READ: u32 = 0x100;
const FSYNC: u32 = 0x200;
const FDATASYNC: u32 = 0x201;
const REQUEST: u32 = 0x300;

/// After a change of turn the programs that have begun before have ended.
const SETTLED: Duration = Duration::from_millis(1);

/// The key of a sum, as the programs have it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Key {
    pid: u32,
    tgid: u32,
    uid: u32,
    kernel_thread: u32,
    comm: [u8; 16],
    inode: u64,
    dev: u32,
    generation: u32,
    what: u32,
    turn: u32,
}

/// A sum, as the programs have it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    count: u64,
    bytes: u64,
    ns: u64,
    longest: u64,
}

// SAFETY: numbers without padding: any bytes are valid.
unsafe impl aya::Pod for Key {}
// SAFETY: the same.
unsafe impl aya::Pod for Value {}

impl Key {
    fn sum(&self, value: &Value) -> Sum {
        let key = self;
        let end = key.comm.iter().position(|byte| *byte == 0);
        let name = &key.comm[..end.unwrap_or(key.comm.len())];
        let who = Told {
            pid: key.pid.into(),
            tgid: key.tgid.into(),
            uid: key.uid.into(),
            kernel_thread: key.kernel_thread != 0,
            name: String::from_utf8_lossy(name).into_owned(),
        };
        let what = match key.what {
            FSYNC => What::Call(CallKind::FSYNC),
            FDATASYNC => What::Call(CallKind::FDATASYNC),
            REQUEST => What::Requests,
            read if read & READ != 0 => What::Read(BlockType(u64::from(read & !READ))),
            written => What::Written(BlockType(u64::from(written))),
        };
        let file = On::Inode(key.dev.into(), key.inode, key.generation.into());
        Sum {
            who: (key.pid != 0).then_some(Who::Told(who)),
            file: (key.inode != 0).then_some(file),
            what,
            count: value.count,
            bytes: value.bytes,
            ns: value.ns,
            longest_ns: value.longest,
        }
    }
}

/// The programs at work, which end when this is dropped.
pub struct Sums {
    _ebpf: Ebpf,
    sums: HashMap<MapData, Key, Value>,
    turn: Array<MapData, u32>,
    now: u32,
    lost: PerCpuArray<MapData, Lost>,
    told: Vec<Grown>,
    since: u64,
}

/// Loads and attaches the programs.
///
/// # Errors
/// What is missing, in words.
pub fn load(sysfs: &Path) -> Result<Sums, String> {
    let sized = [
        ("sums", 2 * SUMS),
        ("pages", PAGES),
        ("issued", ISSUED),
        ("syncing", SYNCING),
    ];
    let Loaded { mut ebpf, .. } = super::loaded(sysfs, super::PAGE as u64, Some(&sized))?;
    let mut map = |name: &str| ebpf.take_map(name).ok_or(format!("there is no map {name}"));
    let (sums, turn, lost) = (map("sums")?, map("turn")?, map("lost")?);
    Ok(Sums {
        sums: HashMap::try_from(sums).map_err(|error| told(&error))?,
        turn: Array::try_from(turn).map_err(|error| told(&error))?,
        lost: PerCpuArray::try_from(lost).map_err(|error| told(&error))?,
        told: Vec::new(),
        now: 0,
        since: clocks::boot(),
        _ebpf: ebpf,
    })
}

impl Summing for Sums {
    fn take(&mut self) -> Result<(Vec<Sum>, Vec<Missing>), String> {
        let ended = self.now;
        self.now = self.now.wrapping_add(1);
        let turned = self.turn.set(0, self.now, 0);
        turned.map_err(|error| told(&error))?;
        std::thread::sleep(SETTLED);
        let keys: Vec<Key> = self.sums.keys().filter_map(Result::ok).collect();
        let mut sums = Vec::new();
        for key in keys.iter().filter(|key| key.turn == ended) {
            let value = self.sums.get(key, 0).map_err(|error| told(&error))?;
            self.sums.remove(key).map_err(|error| told(&error))?;
            sums.push(key.sum(&value));
        }
        Ok((sums, self.losses()))
    }
}

impl Sums {
    fn losses(&mut self) -> Vec<Missing> {
        let until = clocks::boot();
        let since = std::mem::replace(&mut self.since, until);
        let counts = self.lost.get(&0, 0);
        let counts = counts.iter().flat_map(|counts| counts.iter()).enumerate();
        let mut losses = Vec::new();
        for (cpu, lost) in counts {
            if self.told.len() <= cpu {
                self.told.push(Grown::default());
            }
            losses.extend(self.told[cpu].by(lost.count).map(|count| Missing {
                cpu: Some(cpu as u64),
                since,
                until,
                count: Some(count),
                reason: LossReason::RING_OVERRUN,
            }));
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_says_who_and_what() {
        let mut key = Key {
            pid: 8,
            tgid: 7,
            uid: 10_001,
            inode: 12,
            dev: 8 << 20,
            generation: 3,
            what: READ | 1,
            ..Key::default()
        };
        key.comm[..4].copy_from_slice(b"mail");
        let value = Value {
            count: 2,
            bytes: 8192,
            ..Value::default()
        };
        let sum = key.sum(&value);
        let Some(Who::Told(who)) = sum.who else {
            panic!("nobody: {sum:?}");
        };
        assert_eq!((who.tgid, who.uid, who.name.as_str()), (7, 10_001, "mail"));
        assert_eq!(sum.file, Some(On::Inode(8 << 20, 12, 3)));
        assert_eq!((sum.what, sum.bytes), (What::Read(BlockType::DATA), 8192));
        let nobody = Key {
            what: 2,
            ..Key::default()
        };
        let sum = nobody.sum(&value);
        assert_eq!((sum.who, sum.file), (None, None));
        assert_eq!(sum.what, What::Written(BlockType::JOURNAL));
        let whats = [FSYNC, FDATASYNC, REQUEST].map(|what| {
            let key = Key { what, ..key };
            key.sum(&value).what
        });
        assert_eq!(
            whats,
            [
                What::Call(CallKind::FSYNC),
                What::Call(CallKind::FDATASYNC),
                What::Requests
            ]
        );
    }

    /// Where programs may be loaded: whoever may not, or has no clang, sees why.
    #[test]
    fn each_sum_is_taken_once() {
        let mut sums = match load(Path::new("/sys")) {
            Ok(sums) => sums,
            Err(why) => return println!("SKIPPED ({why})"),
        };
        let key = Key {
            pid: u32::MAX,
            ..Key::default()
        };
        let value = Value {
            count: 3,
            ..Value::default()
        };
        sums.sums.insert(key, value, 0).expect("room");
        let mine = |sum: &Sum| match &sum.who {
            Some(Who::Told(who)) => who.pid == u64::from(u32::MAX),
            _ => false,
        };
        let (first, _) = sums.take().expect("sums");
        assert_eq!(
            first.iter().find(|sum| mine(sum)).map(|sum| sum.count),
            Some(3)
        );
        let (second, _) = sums.take().expect("sums");
        assert!(!second.iter().any(mine));
    }
}
