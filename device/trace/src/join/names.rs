// SPDX-License-Identifier: GPL-2.0-only
//! Tasks and files by the ids that records refer to. Each is described once in a log file, before its first use there.

use super::event::Event;
use super::role::Role;
use fasttrack_trace_log::{File, FileEvent, FileType, Record, Task, Time};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What is of a database where `path` leads, if it is named as a log of SQLite's: the database's path, and what it is.
fn log_of(path: &str) -> Option<(&str, Role)> {
    let journal = path.strip_suffix("-journal");
    journal
        .map(|stem| (stem, Role::Journal))
        .or_else(|| Some((path.strip_suffix("-wal")?, Role::Wal)))
}

/// The file is a database.
fn set_database(file: &mut File) {
    if file.file_type != Some(FileType::DIRECTORY) {
        file.file_type = Some(FileType::SQLITE_DB);
    }
}

/// So many tasks, and so many files, are remembered; then the oldest tenth is forgotten and gets new ids when used.
const KEPT: usize = 50_000;

/// Ends of a kernel task's name that writes a journal.
const JOURNAL: &str = "jbd2/";

/// What the kernel adds to the path of an unlinked file.
const DELETED: &str = "//deleted";

/// `CLONE_THREAD`.
const CLONE_THREAD: u64 = 0x0001_0000;

/// What the system says of a task that lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// Its process.
    pub tgid: u64,
    /// Its user.
    pub uid: u64,
    /// Its name now.
    pub name: String,
    /// It is the kernel's.
    pub kernel: bool,
}

/// What the system says of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Its path, if it has one.
    pub path: Option<String>,
    /// Its creation, ns since 1970.
    pub created_ns: Option<i64>,
    /// Its size, bytes.
    pub bytes: Option<u64>,
    /// Its type.
    pub file_type: Option<FileType>,
}

/// A file system's place on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// The disk's number.
    pub disk: u64,
    /// First sector on the disk.
    pub start: u64,
    /// Sectors of a block.
    pub block_sectors: u64,
    /// It makes bios for other devices of its own, as device-mapper and md do.
    pub stacked: bool,
}

impl Volume {
    /// First sector of a block.
    pub fn sector(self, block: u64) -> u64 {
        self.start + block * self.block_sectors
    }
}

/// The file behind a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Device of its file system.
    pub dev: u64,
    /// Its inode.
    pub inode: u64,
    /// Where in it the device begins, pages.
    pub first: u64,
}

/// What events do not say. Of tasks and files nothing is known, unless it is told here.
pub trait Lookup {
    /// A task, if it lives.
    fn task(&mut self, _pid: u64) -> Option<TaskFacts> {
        None
    }

    /// A file, if it can be found; of that generation, if it is known.
    fn file(&mut self, _dev: u64, _inode: u64, _generation: Option<u64>) -> Option<FileFacts> {
        None
    }

    /// A device.
    fn volume(&mut self, dev: u64) -> Volume;

    /// The file behind a loop device.
    fn image(&mut self, _dev: u64) -> Option<Image> {
        None
    }

    /// The absolute path of what its file system has at `path`, if that is known.
    fn absolute(&mut self, _dev: u64, _path: &str) -> Option<String> {
        None
    }
}

/// A kernel's id as records have it.
pub fn shown_id(id: u64) -> u64 {
    2 * id
}

/// A name, and the log file that has it.
struct Named<T> {
    record: T,
    written_in: u64,
}

/// A task that has begun and was not used yet.
struct Born {
    name: String,
    process: Option<u64>,
    /// Its parent's user, unless that is root, who may have made it another's.
    uid: Option<u64>,
}

/// Tasks and files.
pub struct Names {
    lookup: Box<dyn Lookup>,
    own: u64,
    tasks: BTreeMap<u64, Named<Task>>,
    by_pid: HashMap<u64, u64>,
    born: HashMap<u64, Born>,
    files: BTreeMap<u64, Named<File>>,
    by_inode: HashMap<(u64, u64), u64>,
    /// Files of whose end the kernel has told.
    gone: HashSet<u64>,
    /// Paths of which a log of SQLite's was used: there are databases. One at work cannot be looked at, and its journal
    /// is gone when one looks for it.
    with_log: HashSet<String>,
    /// When inodes end whose end has not come yet.
    ends: HashMap<(u64, u64), u64>,
    volumes: HashMap<u64, Volume>,
    last: u64,
}

/// Forgets the oldest, if there is no room for one more; which these are.
fn trim<T>(kept: &mut BTreeMap<u64, Named<T>>) -> HashSet<u64> {
    if kept.len() < KEPT {
        return HashSet::new();
    }
    let oldest = (0..KEPT / 10).map_while(|_| kept.pop_first());
    oldest.map(|(id, _)| id).collect()
}

impl Names {
    /// Asks `lookup`; `own` is the collector's process.
    pub fn new(lookup: Box<dyn Lookup>, own: u64) -> Names {
        Names {
            lookup,
            own,
            tasks: BTreeMap::new(),
            by_pid: HashMap::new(),
            born: HashMap::new(),
            files: BTreeMap::new(),
            by_inode: HashMap::new(),
            gone: HashSet::new(),
            with_log: HashSet::new(),
            ends: HashMap::new(),
            volumes: HashMap::new(),
            // The first is 1: the kernel's are even.
            last: u64::MAX,
        }
    }

    /// The id of a task.
    pub fn task(&mut self, pid: u64, time: u64) -> u64 {
        self.task_named(pid, None, time)
    }

    /// The id of a task that an event has told the name of.
    pub fn task_named(&mut self, pid: u64, name: Option<String>, time: u64) -> u64 {
        if let Some(id) = self.by_pid.get(&pid) {
            return *id;
        }
        let born = self.born.remove(&pid);
        let facts = match pid {
            0 => Some(TaskFacts {
                kernel: true,
                name: "swapper".to_string(),
                ..TaskFacts::default()
            }),
            pid => self.lookup.task(pid),
        };
        let process = born.as_ref().and_then(|born| born.process);
        let uid = born.as_ref().and_then(|born| born.uid);
        let told = name.or(born.map(|born| born.name));
        let record = Task {
            time: Time(time),
            pid: Some(pid),
            tgid: facts.as_ref().map(|facts| facts.tgid).or(process),
            uid: facts.as_ref().map(|facts| facts.uid).or(uid),
            name: told.or(facts.as_ref().map(|facts| facts.name.clone())),
            kernel_thread: facts.map(|facts| facts.kernel),
            ..Task::default()
        };
        self.add_task(pid, record)
    }

    /// The id of a task that an event tells all of: another user or name is another task.
    pub fn task_told(&mut self, told: Task) -> u64 {
        let pid = told.pid.unwrap_or(0);
        let known = self.by_pid.get(&pid).and_then(|id| self.tasks.get_mut(id));
        if let Some(named) = known {
            let record = &mut named.record;
            let same = |record: &Task| (record.tgid, record.uid) == (told.tgid, told.uid);
            if same(record) && record.name == told.name {
                // A record that is written already stays as it is.
                if named.written_in == 0 {
                    record.cgroup = record.cgroup.or(told.cgroup);
                }
                return record.task.unwrap_or(0);
            }
        }
        self.born.remove(&pid);
        self.add_task(pid, told)
    }

    /// Both tasks are of one process and user.
    pub fn same_app(&self, one: u64, other: u64) -> bool {
        let of = |task| self.record(task).map(|task| (task.tgid, task.uid));
        one == other || of(one).is_some_and(|app| app.0.is_some() && Some(app) == of(other))
    }

    /// Makes room for one more task.
    fn trim_tasks(&mut self) {
        let gone = trim(&mut self.tasks);
        if !gone.is_empty() {
            self.by_pid.retain(|_, id| !gone.contains(id));
        }
    }

    /// Makes room for one more file.
    fn trim_files(&mut self) {
        let gone = trim(&mut self.files);
        if !gone.is_empty() {
            self.by_inode.retain(|_, id| !gone.contains(id));
            self.gone.retain(|id| !gone.contains(id));
        }
    }

    fn add_task(&mut self, pid: u64, record: Task) -> u64 {
        self.trim_tasks();
        self.last = self.last.wrapping_add(2);
        let id = self.last;
        let record = Task {
            task: Some(id),
            ..record
        };
        let written_in = 0;
        self.tasks.insert(id, Named { record, written_in });
        self.by_pid.insert(pid, id);
        id
    }

    /// A task has begun: its number is not that of a former one.
    pub fn new_task(&mut self, event: &Event<'_>) {
        let Some(pid) = event.number("pid") else {
            return;
        };
        self.by_pid.remove(&pid);
        if self.born.len() >= KEPT {
            self.born.clear();
        }
        let thread = event.number("clone_flags").unwrap_or(0) & CLONE_THREAD != 0;
        let parent = self.task(event.pid(), event.time);
        let parent = self.record(parent);
        let process = match thread {
            true => parent.and_then(|parent| parent.tgid),
            false => Some(pid),
        };
        let uid = parent.and_then(|parent| parent.uid).filter(|uid| *uid != 0);
        let name = event.text("comm").unwrap_or_default();
        self.born.insert(pid, Born { name, process, uid });
    }

    /// A task has another name from now on, and another id: what it did before was done under the old one.
    pub fn renamed(&mut self, event: &Event<'_>) {
        let (Some(pid), Some(name)) = (event.number("pid"), event.text("newcomm")) else {
            return;
        };
        if let Some(born) = self.born.get_mut(&pid) {
            born.name = name;
            return;
        }
        let Some(id) = self.by_pid.remove(&pid) else {
            return;
        };
        let before = self.tasks.get(&id).map(|named| named.record.clone());
        let facts = self.lookup.task(pid);
        let inherited = before.as_ref().and_then(|before| before.uid);
        let record = Task {
            time: Time(event.time),
            name: Some(name),
            uid: facts.map(|facts| facts.uid).or(inherited),
            ..before.unwrap_or_default()
        };
        self.add_task(pid, record);
    }

    /// The id of a file.
    pub fn file(&mut self, dev: u64, inode: u64, time: u64) -> Option<u64> {
        self.file_at(dev, inode, None, time)
    }

    fn file_at(&mut self, dev: u64, inode: u64, generation: Option<u64>, time: u64) -> Option<u64> {
        if let Some(id) = self.by_inode.get(&(dev, inode)) {
            return Some(*id);
        }
        self.trim_files();
        // What is found now is another one's if this one has ended since.
        let ended = self.ends.get(&(dev, inode));
        let found = match ended.is_some_and(|end| *end >= time) {
            true => None,
            false => self.lookup.file(dev, inode, generation),
        };
        let facts = found.unwrap_or_default();
        self.last = self.last.wrapping_add(2);
        let id = self.last;
        let mut record = File {
            time: Time(time),
            file: Some(id),
            event: Some(FileEvent::FIRST_USE),
            dev: Some(dev),
            inode: Some(inode),
            generation,
            path: facts.path,
            created_ns: facts.created_ns,
            bytes: facts.bytes,
            file_type: facts.file_type,
            ..File::default()
        };
        self.find_database(&mut record);
        let written_in = 0;
        self.files.insert(id, Named { record, written_in });
        self.by_inode.insert((dev, inode), id);
        Some(id)
    }

    /// The file is a database with a log that was used, or such a log: then it says what the database is.
    fn find_database(&mut self, record: &mut File) {
        let Some(path) = record.path.as_deref() else {
            return;
        };
        if let Some((stem, _)) = log_of(path) {
            if self.with_log.len() >= KEPT {
                self.with_log.clear();
            }
            if self.with_log.insert(stem.to_string()) {
                // The last of this name: one that was there before may be gone.
                let mut files = self.files.values_mut().rev().map(|named| &mut named.record);
                if let Some(file) = files.find(|file| file.path.as_deref() == Some(stem)) {
                    set_database(file);
                }
            }
        } else if self.with_log.contains(path) {
            set_database(record);
        }
    }

    /// A file of this generation is used: its number may have been another file's before.
    pub fn file_of(&mut self, dev: u64, inode: u64, generation: Option<u64>, time: u64) {
        let known = self.by_inode.get(&(dev, inode));
        let before = known.and_then(|id| self.files.get(id)?.record.generation);
        if before.is_some() && before != generation {
            self.by_inode.remove(&(dev, inode));
        }
        self.file_at(dev, inode, generation, time);
    }

    /// The kernel describes a task.
    pub fn told_task(&mut self, event: &Event<'_>) {
        let Some(id) = event.number("task").map(shown_id) else {
            return;
        };
        self.trim_tasks();
        let record = Task {
            time: Time(event.time),
            task: Some(id),
            pid: event.number("tgid"),
            tgid: event.number("tgid"),
            uid: event.number("uid"),
            name: event.text("name"),
            kernel_thread: event.number("kernel_thread").map(|flag| flag != 0),
            ..Task::default()
        };
        let written_in = 0;
        self.tasks.insert(id, Named { record, written_in });
    }

    /// The kernel describes a file; gives the record of one that is renamed or unlinked.
    pub fn told_file(&mut self, event: &Event<'_>) -> Option<File> {
        let id = event.number("file").map(shown_id)?;
        let (dev, inode) = (event.dev("dev")?, event.number("inode")?);
        let why = FileEvent(event.number("event").unwrap_or(0));
        if why == FileEvent::UNLINK {
            // One that ends before it was used is described here alone: what it does yet refers to it.
            if !self.files.contains_key(&id) {
                self.describe(event, id, dev, inode, FileEvent::FIRST_USE);
            }
            let mut gone = self.files.get(&id)?.record.clone();
            gone.time = Time(event.time);
            gone.event = Some(why);
            gone.bytes = event.number("bytes");
            self.gone.insert(id);
            return Some(gone);
        }
        // Nobody has read of a file that no record was about.
        let known = self.files.get(&id).is_some_and(|file| file.written_in != 0);
        let record = self.describe(event, id, dev, inode, why);
        (known && why == FileEvent::RENAME).then_some(record)
    }

    /// Keeps what the kernel says of a file.
    fn describe(
        &mut self,
        event: &Event<'_>,
        id: u64,
        dev: u64,
        inode: u64,
        why: FileEvent,
    ) -> File {
        self.trim_files();
        // It may be gone when this is read, and its number another file's.
        let generation = event.number("generation");
        let found = self.lookup.file(dev, inode, generation);
        let facts = found.unwrap_or_default();
        let told = event.text("path").filter(|path| !path.is_empty());
        let told = told.map(|path| path.trim_end_matches(DELETED).to_string());
        // As it was then: what is found now may have another name since.
        let then = told
            .as_deref()
            .and_then(|path| self.lookup.absolute(dev, path));
        let created = event.signed("created_ns").filter(|created| *created != 0);
        let mut record = File {
            time: Time(event.time),
            file: Some(id),
            event: Some(why),
            dev: Some(dev),
            inode: Some(inode),
            generation,
            created_ns: facts.created_ns.or(created),
            path: then.or(facts.path).or(told),
            file_type: facts.file_type,
            bytes: event.number("bytes"),
            ..File::default()
        };
        self.find_database(&mut record);
        self.by_inode.insert((dev, inode), id);
        let named = Named {
            record: record.clone(),
            written_in: 0,
        };
        self.files.insert(id, named);
        record
    }

    /// A file of this inode ends at `time`, of which the event comes later.
    pub fn ends(&mut self, dev: u64, inode: u64, time: u64) {
        if self.ends.len() >= KEPT {
            self.ends.clear();
        }
        self.ends.insert((dev, inode), time);
    }

    /// A file's inode is gone: its number may come again. Gives the file, unless the kernel has told of its end.
    pub fn unlinked(&mut self, dev: u64, inode: u64, time: u64) -> Option<File> {
        if self.ends.get(&(dev, inode)).is_some_and(|end| *end <= time) {
            self.ends.remove(&(dev, inode));
        }
        let id = self.by_inode.remove(&(dev, inode))?;
        if self.gone.remove(&id) {
            return None;
        }
        self.files.get(&id).map(|named| named.record.clone())
    }

    /// Device and inode of a file that is known.
    pub fn inode(&self, file: u64) -> Option<(u64, u64)> {
        let record = &self.files.get(&file)?.record;
        record.dev.zip(record.inode)
    }

    /// The file behind a loop device, as it is now.
    pub fn image(&mut self, dev: u64) -> Option<Image> {
        self.lookup.image(dev)
    }

    /// Where a file system is.
    pub fn volume(&mut self, dev: u64) -> Volume {
        let lookup = &mut self.lookup;
        *self
            .volumes
            .entry(dev)
            .or_insert_with(|| lookup.volume(dev))
    }

    fn record(&self, task: u64) -> Option<&Task> {
        self.tasks.get(&task).map(|named| &named.record)
    }

    /// The task is the collector's own.
    pub fn is_own(&self, task: u64) -> bool {
        self.record(task).and_then(|task| task.tgid) == Some(self.own)
    }

    /// The task is the kernel's.
    pub fn is_kernel(&self, task: u64) -> bool {
        self.record(task)
            .is_some_and(|task| task.kernel_thread == Some(true))
    }

    /// The task writes a journal.
    pub fn is_journal(&self, task: u64) -> bool {
        let name = self.record(task).and_then(|task| task.name.as_deref());
        name.is_some_and(|name| name.starts_with(JOURNAL))
    }

    /// The task's user.
    pub fn uid(&self, task: u64) -> Option<u64> {
        self.record(task)?.uid
    }

    fn file_type(&self, file: u64) -> Option<FileType> {
        self.files.get(&file)?.record.file_type
    }

    /// The file is a directory, as far as one could look at it.
    pub fn is_directory(&self, file: u64) -> bool {
        self.file_type(file) == Some(FileType::DIRECTORY)
    }

    /// The file is a database's.
    pub fn is_sqlite(&self, file: u64) -> bool {
        matches!(
            self.file_type(file),
            Some(
                FileType::SQLITE_DB
                    | FileType::SQLITE_JOURNAL
                    | FileType::SQLITE_WAL
                    | FileType::SQLITE_TEMP
            )
        )
    }

    /// Of which database a file is what, if it is one of SQLite's.
    pub fn sqlite_role(&self, file: u64) -> Option<(u64, Role)> {
        let record = &self.files.get(&file)?.record;
        if record.file_type == Some(FileType::SQLITE_DB) {
            return Some((file, Role::Database));
        }
        let (stem, role) = log_of(record.path.as_deref()?)?;
        // The last of this name: one that was there before may be gone.
        let database = self.files.iter().rev().find(|(_, named)| {
            let record = &named.record;
            record.path.as_deref() == Some(stem) && record.file_type == Some(FileType::SQLITE_DB)
        });
        database.map(|(id, _)| (*id, role))
    }

    /// What the log file `number` must have before `record`.
    pub fn needed(&mut self, record: &Record, number: u64, out: &mut Vec<Record>) {
        let (tasks, file) = referred(record);
        for id in tasks.into_iter().flatten() {
            if let Some(named) = self.tasks.get_mut(&id) {
                if named.written_in != number {
                    named.written_in = number;
                    out.push(Record::from(named.record.clone()));
                }
            }
        }
        if let Some(named) = file.and_then(|id| self.files.get_mut(&id)) {
            if named.written_in != number {
                named.written_in = number;
                out.push(Record::from(named.record.clone()));
            }
        }
    }
}

/// The tasks and the file that a record refers to.
fn referred(record: &Record) -> ([Option<u64>; 2], Option<u64>) {
    match record {
        Record::Bio(bio) => ([bio.carrier, None], None),
        Record::Segment(segment) => ([segment.owner, None], segment.file),
        Record::Transaction(one) => ([one.carrier, one.trigger], None),
        Record::Share(share) => ([share.task, None], None),
        Record::Call(call) => ([call.task, None], call.file),
        Record::Wait(wait) => ([wait.task, None], wait.file),
        Record::SqliteTransaction(one) => ([one.task, None], one.file),
        _ => ([None, None], None),
    }
}

/// Nothing is known beside what events say.
#[cfg(test)]
pub(crate) struct Nothing;

#[cfg(test)]
impl Lookup for Nothing {
    fn volume(&mut self, disk: u64) -> Volume {
        Volume {
            disk,
            start: 0,
            block_sectors: 8,
            // Device-mapper's, mostly.
            stacked: disk >> 20 == 254,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::event::WideEvent;

    /// Every inode is the file that is there now.
    struct Now;

    impl Lookup for Now {
        fn file(&mut self, _: u64, _: u64, _: Option<u64>) -> Option<FileFacts> {
            Some(FileFacts {
                path: Some("/new".to_string()),
                ..FileFacts::default()
            })
        }

        fn volume(&mut self, disk: u64) -> Volume {
            Nothing.volume(disk)
        }
    }

    #[test]
    fn what_has_ended_since_is_not_looked_up() {
        let mut names = Names::new(Box::new(Now), 1);
        names.ends(5, 77, 20);
        names.file(5, 77, 10);
        let old = names.unlinked(5, 77, 20).expect("a file");
        assert_eq!(old.path, None);
        let new = names.file(5, 77, 30).expect("an id");
        assert_eq!(names.files[&new].record.path.as_deref(), Some("/new"));
        assert_ne!(old.file, Some(new));
    }

    /// It could not be looked at, and its journal is gone when one looks for it.
    #[test]
    fn a_database_is_known_by_a_log_of_its_own() {
        struct Paths;

        impl Lookup for Paths {
            fn file(&mut self, _: u64, inode: u64, _: Option<u64>) -> Option<FileFacts> {
                let name = ["Story", "History", "History-journal", "History"][inode as usize];
                Some(FileFacts {
                    path: Some(format!("/d/{name}")),
                    file_type: Some(FileType::OTHER),
                    ..FileFacts::default()
                })
            }

            fn volume(&mut self, disk: u64) -> Volume {
                Nothing.volume(disk)
            }
        }

        let mut names = Names::new(Box::new(Paths), 1);
        let [story, database] = [0, 1].map(|inode| names.file(5, inode, 10).expect("an id"));
        assert_eq!(names.sqlite_role(database), None);
        let journal = names.file(5, 2, 11).expect("an id");
        assert_eq!(
            names.sqlite_role(database),
            Some((database, Role::Database))
        );
        assert_eq!(names.sqlite_role(journal), Some((database, Role::Journal)));
        assert_eq!(names.sqlite_role(story), None);
        // And another one of that name.
        let later = names.file(5, 3, 12).expect("an id");
        assert_eq!(names.sqlite_role(later), Some((later, Role::Database)));
    }

    #[test]
    fn a_file_that_ends_before_its_use_has_a_record_and_a_description() {
        let unlink = 2;
        let fields = [
            ("file", 21),
            ("dev", 5),
            ("inode", 77),
            ("event", unlink),
            ("bytes", 4096),
        ];
        let event = WideEvent::new("io_file", &fields);
        let mut names = Names::new(Box::new(Nothing), 1);
        let gone = names.told_file(&event.at(9)).expect("a record");
        assert_eq!(
            (gone.file, gone.inode, gone.bytes, gone.event),
            (Some(42), Some(77), Some(4096), Some(FileEvent::UNLINK))
        );
        // What it does yet is that file's.
        assert_eq!(names.file(5, 77, 10), Some(42));
        assert_eq!(names.unlinked(5, 77, 11), None);
    }

    /// Gives `count` events of these fields to `tell`, with values that `of` has for their numbers, from 1.
    fn tell<const N: usize>(
        fields: [&str; N],
        count: usize,
        of: impl Fn(u64) -> [u64; N],
        mut tell: impl FnMut(&Event<'_>),
    ) {
        let mut event = WideEvent::new("io_event", &fields.map(|field| (field, 0)));
        for number in 1..=count as u64 {
            let values = of(number);
            event.data = values.iter().flat_map(|one| one.to_ne_bytes()).collect();
            tell(&event.at(number));
        }
    }

    #[test]
    fn what_the_kernel_tells_of_files_is_forgotten() {
        let mut names = Names::new(Box::new(Nothing), 1);
        let fields = ["file", "dev", "inode", "event"];
        // Each is used and then removed.
        let of = |number| [number / 2, 5, number / 2, 2 * (number % 2)];
        tell(fields, 6 * KEPT, of, |event| drop(names.told_file(event)));
        assert!(names.files.len() <= KEPT && names.by_inode.len() <= KEPT);
        assert!(names.gone.len() <= KEPT);
        // The last are known.
        let last = 3 * KEPT as u64;
        assert_eq!(names.file(5, last, 0), Some(shown_id(last)));
        // One that was forgotten has another id, and a record.
        let again = names.file(5, 1, 0).expect("an id");
        assert_ne!(again, shown_id(1));
        assert_eq!(names.files[&again].record.inode, Some(1));
    }

    #[test]
    fn a_task_that_is_forgotten_has_another_id() {
        let mut names = Names::new(Box::new(Nothing), 1);
        let before = names.task(7, 0);
        let of = |number| [number, number, 0];
        tell(["task", "tgid", "uid"], KEPT, of, |event| {
            names.told_task(event)
        });
        assert!(names.record(before).is_none());
        let again = names.task(7, 0);
        assert_ne!(again, before);
        assert!(names.record(again).is_some());
    }
}
