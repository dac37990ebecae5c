// SPDX-License-Identifier: GPL-2.0-only
//! Who did what, summed up: for `top` and `explain`.

use crate::join::Names;
use crate::sums::{On, Sum, What, Who};
use crate::took::{Took, Waits};
use crate::tracefs::Missing;
use fasttrack_trace_log::{
    BlockType, File, LossReason, Operation, Record, Segment, Task, Time, Transaction,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Bytes of one who reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
    /// Bios' segments.
    pub segments: u64,
}

/// A transaction's payers.
#[derive(Debug, Clone, Copy, Default)]
struct Paid {
    transactions: u64,
    handles: u64,
    blocks: u64,
}

/// What is summed up.
#[derive(Debug, Default)]
pub struct Summary {
    tasks: HashMap<u64, Task>,
    files: HashMap<u64, File>,
    /// The last bio: its segments follow it at once.
    bio: Option<(u64, Operation)>,
    apps: BTreeMap<String, Bytes>,
    by_file: BTreeMap<String, Bytes>,
    types: BTreeMap<String, Bytes>,
    payers: BTreeMap<String, Paid>,
    triggers: BTreeMap<String, Took>,
    calls: BTreeMap<String, Took>,
    sqlite: BTreeMap<String, Took>,
    waits: Waits,
    device_ns: u64,
    requests: u64,
    /// One bio of so many was recorded, in a session that was sampled most.
    sample: u64,
    lost: u64,
    uncounted: u64,
    span: Option<(u64, u64)>,
}

const UNKNOWN: &str = "unknown";

impl Summary {
    /// Takes names of a record that is not summed up itself: it is older.
    pub fn name(&mut self, record: &Record) {
        match record {
            Record::Task(task) => {
                if let Some(id) = task.task {
                    self.tasks.insert(id, task.clone());
                }
            }
            Record::File(file) => {
                if let Some(id) = file.file {
                    self.files.insert(id, file.clone());
                }
            }
            _ => {}
        }
    }

    /// Takes a record.
    pub fn add(&mut self, record: &Record) {
        self.name(record);
        let time = record.time().0;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        match record {
            Record::Bio(bio) => {
                self.bio = bio.bio.zip(bio.operation);
            }
            Record::Segment(segment) => self.segment(segment),
            Record::Request(request) => {
                let weight = self.weight(request.weight);
                self.requests += weight;
                self.device_ns += weight * request.device_ns.unwrap_or(0);
            }
            Record::Transaction(one) => self.transaction(one),
            Record::Share(share) => {
                let paid = self.payers.entry(self.task(share.task)).or_default();
                paid.transactions += 1;
                paid.handles += share.handles.unwrap_or(0);
                paid.blocks += share.blocks.unwrap_or(0);
            }
            Record::Call(call) => {
                let kind = call.kind.and_then(|kind| kind.name()).unwrap_or(UNKNOWN);
                let name = format!("{kind}: {}", self.task(call.task));
                let calls = self.calls.entry(name).or_default();
                calls.add(call.duration_ns.unwrap_or(0));
            }
            Record::SqliteTransaction(one) => {
                let sums = self.sqlite.entry(self.file(one.file)).or_default();
                sums.add(one.duration_ns.unwrap_or(0));
            }
            Record::Wait(wait) => {
                let kind = wait.kind.and_then(|kind| kind.name()).unwrap_or(UNKNOWN);
                self.waits.add(wait, kind);
            }
            // The weights of what was taken stand for it; or it is in the share of nobody.
            Record::Loss(loss)
                if matches!(loss.reason, Some(LossReason::SAMPLED | LossReason::PAYERS)) => {}
            Record::Loss(loss) => match loss.count {
                Some(count) => self.lost += count,
                None => self.uncounted += 1,
            },
            _ => {}
        }
    }

    /// How many a record stands for.
    fn weight(&mut self, weight: Option<u64>) -> u64 {
        let weight = weight.unwrap_or(1);
        self.sample = self.sample.max(weight);
        weight
    }

    fn transaction(&mut self, one: &Transaction) {
        let call = one.trigger_call.and_then(|call| call.name());
        let name = match one.trigger {
            // Without one it was the timer, or nobody has said.
            None => UNKNOWN.to_string(),
            some => format!("{}: {}", self.task(some), call.unwrap_or(UNKNOWN)),
        };
        let began = one.began.map_or(one.time.0, |began| began.0);
        let took = one.time.0.saturating_sub(began);
        self.triggers.entry(name).or_default().add(took);
    }

    /// Takes sums of an interval, ns, that were made in the kernel; the collector's own are left out.
    pub fn sums(&mut self, names: &mut Names, (since, until): (u64, u64), sums: &[Sum]) {
        if !sums.is_empty() {
            let (first, last) = self.span.unwrap_or((since, until));
            self.span = Some((first.min(since), last.max(until)));
        }
        for sum in sums {
            let task = sum.who.as_ref().map(|who| match who {
                Who::Known(id) => *id,
                Who::Told(told) => names.task_told(Task {
                    time: Time(until),
                    pid: Some(told.pid),
                    tgid: Some(told.tgid),
                    uid: Some(told.uid),
                    name: Some(told.name.clone()),
                    kernel_thread: Some(told.kernel_thread),
                    ..Task::default()
                }),
            });
            if task.is_some_and(|task| names.is_own(task)) {
                continue;
            }
            let file = sum.file.and_then(|file| match file {
                On::Known(id) => Some(id),
                On::Inode(dev, inode, generation) => {
                    names.file_of(dev, inode, Some(generation), until);
                    names.file(dev, inode, until)
                }
            });
            let described = Segment {
                owner: task,
                file,
                ..Segment::default()
            };
            // Of this picture: each has all of its names.
            let mut needed = Vec::new();
            names.needed(&Record::from(described), until, &mut needed);
            for name in &needed {
                self.name(name);
            }
            self.sum(sum, task, file);
        }
    }

    fn sum(&mut self, sum: &Sum, task: Option<u64>, file: Option<u64>) {
        match sum.what {
            What::Requests => {
                self.requests += sum.count;
                self.device_ns += sum.ns;
            }
            What::Call(kind) => {
                let name = format!("{}: {}", kind.name().unwrap_or(UNKNOWN), self.task(task));
                let calls = self.calls.entry(name).or_default();
                calls.add_many(sum.count, sum.ns, sum.longest_ns);
            }
            What::Read(kind) | What::Written(kind) => {
                let read = matches!(sum.what, What::Read(_));
                self.blocks(task, file, Some(kind), (sum.count, sum.bytes), read);
            }
        }
    }

    /// Takes what found no room in sums.
    pub fn losses(&mut self, losses: &[Missing]) {
        for loss in losses {
            match loss.count {
                Some(count) => self.lost += count,
                None => self.uncounted += 1,
            }
        }
    }

    fn segment(&mut self, segment: &Segment) {
        let operation = self.bio.filter(|(bio, _)| segment.bio == Some(*bio));
        let weight = self.weight(segment.weight);
        let bytes = weight * segment.bytes.unwrap_or(0);
        let read = operation.is_some_and(|(_, operation)| operation == Operation::READ);
        let sums = (weight, bytes);
        self.blocks(segment.owner, segment.file, segment.block_type, sums, read);
    }

    /// Adds so many segments, and bytes of these.
    fn blocks(
        &mut self,
        owner: Option<u64>,
        file: Option<u64>,
        kind: Option<BlockType>,
        (segments, bytes): (u64, u64),
        read: bool,
    ) {
        let kind = kind.and_then(|kind| kind.name());
        let names = (
            self.task(owner),
            self.file(file),
            kind.unwrap_or(UNKNOWN).to_string(),
        );
        for (map, name) in [
            (&mut self.apps, names.0),
            (&mut self.by_file, names.1),
            (&mut self.types, names.2),
        ] {
            let sum = map.entry(name).or_default();
            sum.segments += segments;
            match read {
                true => sum.read += bytes,
                false => sum.written += bytes,
            }
        }
    }

    /// How a task is shown: whoever names it writes nothing else to the terminal.
    pub fn task(&self, id: Option<u64>) -> String {
        let Some(task) = id.and_then(|id| self.tasks.get(&id)) else {
            return UNKNOWN.to_string();
        };
        let name = printable(task.name.as_deref().unwrap_or("?"));
        match (task.uid, task.kernel_thread) {
            (_, Some(true)) => format!("[{name}]"),
            (Some(uid), _) => format!("{name} (uid {uid})"),
            (None, _) => name,
        }
    }

    /// How a file is shown, as a task is.
    pub fn file(&self, id: Option<u64>) -> String {
        let Some(file) = id.and_then(|id| self.files.get(&id)) else {
            return UNKNOWN.to_string();
        };
        match (&file.path, file.inode) {
            (Some(path), _) => printable(path),
            (None, Some(inode)) => format!("inode {inode}"),
            (None, None) => UNKNOWN.to_string(),
        }
    }

    /// The tables, each with its `rows` largest.
    pub fn text(&self, rows: usize) -> String {
        let mut out = String::new();
        let (first, last) = self.span.unwrap_or((0, 0));
        let span = (last - first).max(1);
        // Requests overlap where the device has a queue: it may be more than 100 %.
        let _ = writeln!(
            out,
            "{:.3} s, {} requests, device time {:.3} s ({} % of the interval)",
            span as f64 / 1e9,
            self.requests,
            self.device_ns as f64 / 1e9,
            self.device_ns * 100 / span
        );
        if self.sample > 1 {
            let _ = writeln!(
                out,
                "SAMPLED: one bio of {} was recorded: requests, device time and bytes are estimates",
                self.sample
            );
        }
        if self.lost + self.uncounted > 0 {
            let _ = writeln!(
                out,
                "LOST: {} events or records, and {} losses that nobody counted: the sums below are too small",
                self.lost, self.uncounted
            );
        }
        for (title, map) in [
            ("by app", &self.apps),
            ("by file", &self.by_file),
            ("by type of block", &self.types),
        ] {
            table(&mut out, title, map, rows);
        }
        let _ = writeln!(
            out,
            "\n{:>10} {:>10} {:>10}  payers of transactions",
            "handles", "blocks", "in"
        );
        for (name, paid) in largest(&self.payers, rows, |paid| paid.blocks + paid.handles) {
            let _ = writeln!(
                out,
                "{:>10} {:>10} {:>10}  {name}",
                paid.handles, paid.blocks, paid.transactions
            );
        }
        let waits = self
            .waits
            .by_kind()
            .into_iter()
            .map(|(kind, sum)| (kind.to_string(), sum));
        times(&mut out, "transactions asked for by", &self.triggers, rows);
        times(&mut out, "waits", &waits.collect(), rows);
        times(&mut out, "calls", &self.calls, rows);
        if !self.sqlite.is_empty() {
            times(&mut out, "transactions of SQLite", &self.sqlite, rows);
        }
        if self.waits.doubtful() > 0 {
            let _ = writeln!(
                out,
                "{} waits may be summed up with waits that they are around: explain a shorter part, --last",
                self.waits.doubtful()
            );
        }
        out
    }
}

/// A name that an app has chosen, on one line and without sequences that a terminal obeys.
fn printable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for one in name.chars() {
        match one.is_control() {
            true => shown.extend(one.escape_default()),
            false => shown.push(one),
        }
    }
    shown
}

fn largest<T>(
    map: &BTreeMap<String, T>,
    rows: usize,
    by: impl Fn(&T) -> u64,
) -> Vec<(&String, &T)> {
    let mut sorted: Vec<_> = map.iter().collect();
    sorted.sort_by_key(|(_, value)| std::cmp::Reverse(by(value)));
    sorted.truncate(rows);
    sorted
}

fn times(out: &mut String, title: &str, map: &BTreeMap<String, Took>, rows: usize) {
    let _ = writeln!(
        out,
        "\n{:>10} {:>10} {:>10}  {title}",
        "count", "total ms", "max ms"
    );
    for (name, sum) in largest(map, rows, |sum| sum.total_ns) {
        let (total, longest) = (sum.total_ns as f64 / 1e6, sum.longest_ns as f64 / 1e6);
        let _ = writeln!(
            out,
            "{:>10} {total:>10.3} {longest:>10.3}  {name}",
            sum.count
        );
    }
}

fn table(out: &mut String, title: &str, map: &BTreeMap<String, Bytes>, rows: usize) {
    let _ = writeln!(
        out,
        "\n{:>10} {:>10} {:>10}  {title}",
        "read KiB", "write KiB", "segments"
    );
    for (name, bytes) in largest(map, rows, |bytes| bytes.read + bytes.written) {
        let (read, written) = (bytes.read >> 10, bytes.written >> 10);
        let _ = writeln!(
            out,
            "{read:>10} {written:>10} {:>10}  {name}",
            bytes.segments
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Nothing;
    use crate::sums::Told;
    use fasttrack_trace_log::{Bio, Call, CallKind, Loss, Request};

    /// What was left out is in the weights, and no loss.
    #[test]
    fn a_sample_stands_for_all() {
        let mut summary = Summary::default();
        let weight = Some(10);
        let bio = Bio {
            bio: Some(5),
            operation: Some(Operation::READ),
            weight,
            ..Bio::default()
        };
        let segment = Segment {
            bio: Some(5),
            bytes: Some(4096),
            weight,
            ..Segment::default()
        };
        let request = Request {
            time: Time(1_000_000_000),
            device_ns: Some(2_000_000),
            weight,
            ..Request::default()
        };
        let left = Loss {
            reason: Some(LossReason::SAMPLED),
            count: Some(18),
            ..Loss::default()
        };
        for record in [
            Record::from(bio),
            Record::from(segment),
            Record::from(request),
            Record::from(left),
        ] {
            summary.add(&record);
        }
        let text = summary.text(10);
        assert!(text.starts_with("1.000 s, 10 requests, device time 0.020 s (2 %"));
        assert!(text.contains("SAMPLED: one bio of 10") && !text.contains("LOST"));
        let row = "        40          0         10  unknown";
        assert_eq!(
            text.lines().filter(|line| *line == row).count(),
            3,
            "{text}"
        );
    }

    #[test]
    fn sums_have_a_row_for_what_is_unknown() {
        let mut summary = Summary::default();
        let task = Task {
            task: Some(1),
            name: Some("mail".to_string()),
            uid: Some(10001),
            ..Task::default()
        };
        let bio = Bio {
            bio: Some(5),
            operation: Some(Operation::WRITE),
            ..Bio::default()
        };
        let segment = |owner, bytes| Segment {
            bio: Some(5),
            owner,
            bytes: Some(bytes),
            block_type: Some(BlockType::DATA),
            ..Segment::default()
        };
        let transaction = Transaction {
            time: Time(5_000_000),
            began: Some(Time(2_000_000)),
            trigger: Some(1),
            trigger_call: Some(CallKind::FSYNC),
            ..Transaction::default()
        };
        let call = Call {
            task: Some(1),
            kind: Some(CallKind::READ),
            duration_ns: Some(4_000_000),
            ..Call::default()
        };
        let loss = Loss {
            count: Some(3),
            ..Loss::default()
        };
        for record in [
            Record::from(task),
            Record::from(bio),
            Record::from(segment(Some(1), 8192)),
            Record::from(segment(None, 4096)),
            Record::from(transaction),
            Record::from(call),
            Record::from(loss),
        ] {
            summary.add(&record);
        }
        assert_eq!(summary.apps["mail (uid 10001)"].written, 8192);
        assert_eq!(summary.apps["unknown"].written, 4096);
        let text = summary.text(10);
        assert!(text.contains("LOST: 3 events"), "{text}");
        let asked = "         1      3.000      3.000  mail (uid 10001): fsync";
        let read = "         1      4.000      4.000  read: mail (uid 10001)";
        for row in [asked, read] {
            assert!(text.lines().any(|line| line == row), "{text}");
        }
    }

    /// An app may name itself and its files as it likes.
    #[test]
    fn a_name_does_nothing_to_the_terminal() {
        let mut summary = Summary::default();
        let name = "\x1b]0;root\x07\nmäil".to_string();
        let task = Task {
            task: Some(1),
            name: Some(name.clone()),
            uid: Some(10001),
            ..Task::default()
        };
        let file = File {
            file: Some(2),
            path: Some(name),
            ..File::default()
        };
        summary.name(&Record::from(task));
        summary.name(&Record::from(file));
        let shown = "\\u{1b}]0;root\\u{7}\\nmäil";
        assert_eq!(summary.task(Some(1)), format!("{shown} (uid 10001)"));
        assert_eq!(summary.file(Some(2)), shown);
    }

    /// The collector's own are left out, and names are each picture's.
    #[test]
    fn sums_of_the_kernel_are_rows() {
        let mut names = Names::new(Box::new(Nothing), 99);
        let who = |pid| {
            Some(Who::Told(Told {
                pid,
                tgid: pid,
                uid: 10_000 + pid,
                kernel_thread: false,
                name: "mail".to_string(),
            }))
        };
        let sum = |who, what, bytes| Sum {
            who,
            file: Some(On::Inode(8 << 20, 12, 1)),
            what,
            count: 2,
            bytes,
            ns: 3_000_000,
            longest_ns: 2_000_000,
        };
        let data = What::Written(BlockType::DATA);
        let sums = [
            sum(who(1), data, 8192),
            sum(who(99), data, 4096),
            sum(None, What::Read(BlockType::DATA), 4096),
            sum(who(1), What::Call(CallKind::FSYNC), 0),
            sum(None, What::Requests, 0),
        ];
        for since in [0, 1_000_000_000] {
            let mut summary = Summary::default();
            summary.sums(&mut names, (since, since + 1_000_000_000), &sums);
            summary.losses(&[Missing {
                cpu: Some(0),
                since: 0,
                until: 1,
                count: Some(5),
                reason: LossReason::RING_OVERRUN,
            }]);
            assert_eq!(summary.apps["mail (uid 10001)"].written, 8192);
            assert_eq!(summary.apps["unknown"].read, 4096);
            assert_eq!(summary.by_file["inode 12"].written, 8192);
            assert_eq!(summary.apps.len(), 2);
            let text = summary.text(10);
            assert!(text.starts_with("1.000 s, 2 requests, device time 0.003 s"));
            assert!(text.contains("LOST: 5 events"), "{text}");
            let call = "         2      3.000      2.000  fsync: mail (uid 10001)";
            assert!(text.lines().any(|line| line == call), "{text}");
        }
    }
}
