// SPDX-License-Identifier: GPL-2.0-only
//! Types of files (A8).

use crate::leases::Leases;
use fasttrack_trace_log::FileType;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A database of SQLite begins so.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The size of a database is a multiple of its pages', powers of two from this, bytes.
const LEAST_PAGE: u64 = 512;

/// A file that was changed within this time is not opened. What was emptied and written anew is written back by whoever
/// closes it (ext4's `auto_da_alloc`). After 30 s the kernel has written it back itself (`dirty_expire_centisecs`), 5 s
/// late at most.
const SETTLED: Duration = Duration::from_secs(60);

/// What databases' other files add to its name.
const BESIDE: [(&str, FileType); 3] = [
    ("-journal", FileType::SQLITE_JOURNAL),
    ("-wal", FileType::SQLITE_WAL),
    ("-shm", FileType::SQLITE_TEMP),
];

const MULTIMEDIA: [&str; 20] = [
    "jpg", "jpeg", "png", "gif", "webp", "heic", "bmp", "svg", "mp3", "m4a", "aac", "ogg", "opus",
    "flac", "wav", "mp4", "mkv", "webm", "3gp", "avi",
];
const EXECUTABLE: [&str; 9] = [
    "apk", "so", "dex", "odex", "oat", "vdex", "art", "jar", "ko",
];
const DATABASE: [&str; 3] = ["db", "sqlite", "sqlite3"];
const TEMP: [&str; 4] = ["tmp", "temp", "part", "swp"];

/// A name's ending, in lower case.
pub fn extension(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    (!stem.is_empty()).then(|| ending.to_lowercase())
}

/// Whether an ending is one of the lists above: such a one tells nothing of a person.
pub fn known_extension(ending: &str) -> bool {
    let lists: [&[&str]; 4] = [&MULTIMEDIA, &EXECUTABLE, &DATABASE, &TEMP];
    let more = [
        "db-journal",
        "db-wal",
        "db-shm",
        "xml",
        "json",
        "txt",
        "log",
        "conf",
        "html",
        "js",
        "css",
        "py",
        "zip",
        "gz",
        "xz",
        "zst",
        "tar",
        "pdf",
        "lock",
        "dat",
        "bin",
        "cache",
        "toml",
        "img",
    ];
    lists.iter().any(|list| list.contains(&ending)) || more.contains(&ending)
}

/// The type of a file at a path of this system. One of which somebody has a lease is not opened.
pub fn of(path: &Path, directory: bool, leases: &mut Leases) -> FileType {
    match directory {
        true => FileType::DIRECTORY,
        false => by_content(path, leases).unwrap_or_else(|| by_name(path)),
    }
}

/// A database, or a file beside one.
fn by_content(path: &Path, leases: &mut Leases) -> Option<FileType> {
    let name = path.file_name()?.to_str()?;
    let mut is = |path: &Path| is_database(path, leases);
    // One at work cannot be looked at: such a name beside it will do.
    let mut of_database = |stem: &str| is(&path.with_file_name(stem)) != Some(false);
    for (ending, kind) in BESIDE {
        if let Some(stem) = name.strip_suffix(ending) {
            return of_database(stem).then_some(kind);
        }
    }
    if let Some((stem, _)) = name.rsplit_once("-mj") {
        return of_database(stem).then_some(FileType::SQLITE_TEMP);
    }
    // One that is new has no content until its first transaction ends, but a file beside it.
    let beside = |ending: &str| {
        let other: PathBuf = path.with_file_name(format!("{name}{ending}"));
        other.exists()
    };
    let database = beside("-journal") || beside("-wal") || is(path) == Some(true);
    database.then_some(FileType::SQLITE_DB)
}

/// Whether a file begins as a database does; nothing of one that must not be opened now. To open a file may wake who
/// scans what is opened, so few are.
fn is_database(path: &Path, leases: &mut Leases) -> Option<bool> {
    let mut begin = [0; MAGIC.len()];
    let Some(found) = path.metadata().ok().filter(Metadata::is_file) else {
        return Some(false);
    };
    if !is_settled(&found) {
        return None;
    }
    if found.len() < LEAST_PAGE || found.len() % LEAST_PAGE != 0 {
        return Some(false);
    }
    if leases.has(found.ino()) {
        return None;
    }
    // A look must not write a time of access. It is allowed to root and to the file's owner, who alone look. Nor must
    // it wait for who has just got a lease.
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NOATIME | libc::O_NONBLOCK);
    let opened = |mut file: File| file.read_exact(&mut begin).is_ok();
    Some(options.open(path).is_ok_and(opened) && begin == MAGIC)
}

/// One from the future is of another clock, and not being changed.
fn is_settled(found: &Metadata) -> bool {
    let changed = found.modified().ok().map(|changed| changed.elapsed());
    changed.is_none_or(|age| age.map_or(true, |age| age >= SETTLED))
}

/// The type by the name alone.
pub fn by_name(path: &Path) -> FileType {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    for (ending, kind) in BESIDE {
        let stem = name.strip_suffix(ending).and_then(extension);
        if stem.is_some_and(|stem| DATABASE.contains(&stem.as_str())) {
            return kind;
        }
    }
    if name.contains(".db-mj") {
        return FileType::SQLITE_TEMP;
    }
    let ending = extension(&name).unwrap_or_default();
    let is = |list: &[&str]| list.contains(&ending.as_str());
    let below = |folder: &str| {
        path.components()
            .any(|part| part.as_os_str().to_str() == Some(folder))
    };
    match () {
        () if is(&DATABASE) => FileType::SQLITE_DB,
        () if is(&MULTIMEDIA) => FileType::MULTIMEDIA,
        () if is(&EXECUTABLE) || name.contains(".so.") => FileType::EXECUTABLE,
        () if below("cache") || below(".cache") || ending == "cache" => FileType::CACHE,
        () if is(&TEMP) || below("tmp") => FileType::TEMP,
        () => FileType::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::time::SystemTime;

    /// `F_SETSIG` of asm-generic/fcntl.h.
    const F_SETSIG: libc::c_int = 10;

    fn of(path: &Path, directory: bool) -> FileType {
        super::of(path, directory, &mut Leases::default())
    }

    /// What a database of one page has.
    fn page() -> Vec<u8> {
        let mut page = MAGIC.to_vec();
        page.resize(LEAST_PAGE as usize, 1);
        page
    }

    #[test]
    fn names_have_types() {
        let known = [
            ("/data/a/x.db", FileType::SQLITE_DB),
            ("/data/a/x.db-journal", FileType::SQLITE_JOURNAL),
            ("/data/a/x.db-wal", FileType::SQLITE_WAL),
            ("/data/a/x.db-shm", FileType::SQLITE_TEMP),
            ("/data/a/x.db-mj1234", FileType::SQLITE_TEMP),
            ("/sdcard/DCIM/A.JPG", FileType::MULTIMEDIA),
            ("/lib/libc.so.6", FileType::EXECUTABLE),
            ("/data/app/base.apk", FileType::EXECUTABLE),
            ("/data/a/cache/17", FileType::CACHE),
            ("/data/a/x.tmp", FileType::TEMP),
            ("/data/a/.db", FileType::OTHER),
            ("/data/a/notes", FileType::OTHER),
        ];
        for (path, kind) in known {
            assert_eq!(by_name(Path::new(path)), kind, "{path}");
        }
    }

    /// Apps name databases as they like.
    #[test]
    fn a_database_is_known_by_its_content() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let make = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, content).expect("written");
            settle(&path);
            path
        };
        let database = make("History", &page());
        let journal = make("History-journal", b"");
        let other = make("Story-journal", b"dear diary");
        let young = make("new", b"");
        make("new-wal", b"");
        let no_page = make("Bookmarks", b"SQLite format 3\0and more");
        assert_eq!(of(&database, false), FileType::SQLITE_DB);
        assert_eq!(of(&journal, false), FileType::SQLITE_JOURNAL);
        assert_ne!(of(&other, false), FileType::SQLITE_JOURNAL);
        assert_eq!(of(&young, false), FileType::SQLITE_DB);
        assert_ne!(of(&no_page, false), FileType::SQLITE_DB);
        assert_eq!(of(dir.path(), true), FileType::DIRECTORY);
    }

    /// Its name and its neighbours say what it is, until it is at rest.
    #[test]
    fn a_file_that_is_being_changed_is_not_opened() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let database = dir.path().join("History");
        fs::write(&database, page()).expect("written");
        assert_ne!(of(&database, false), FileType::SQLITE_DB);
        let journal = dir.path().join("History-journal");
        fs::write(&journal, b"").expect("written");
        assert_eq!(of(&database, false), FileType::SQLITE_DB);
        assert_eq!(of(&journal, false), FileType::SQLITE_JOURNAL);
        fs::remove_file(&journal).expect("removed");
        settle(&database);
        assert_eq!(of(&database, false), FileType::SQLITE_DB);
    }

    /// Who has a lease is not asked for it.
    #[test]
    fn a_look_breaks_no_lease() {
        let dir = tempfile::TempDir::new().expect("a directory");
        for bytes in [1000, 4096] {
            let path = dir.path().join(bytes.to_string());
            fs::write(&path, vec![1; bytes]).expect("written");
            settle(&path);
            let file = File::options().append(true).open(&path).expect("a file");
            let ask = |command, argument: libc::c_int| {
                // SAFETY: these commands take a number.
                unsafe { libc::fcntl(file.as_raw_fd(), command, argument) }
            };
            // What tells of a broken lease is ignored, where SIGIO would end this process.
            assert_eq!(ask(F_SETSIG, libc::SIGURG), 0);
            assert_eq!(ask(libc::F_SETLEASE, libc::F_WRLCK), 0);
            of(&path, false);
            assert_eq!(ask(libc::F_GETLEASE, 0), libc::F_WRLCK, "{bytes} bytes");
        }
    }

    /// As if it were changed long ago.
    fn settle(path: &Path) {
        let file = File::options().append(true).open(path).expect("a file");
        let before = SystemTime::now() - 2 * SETTLED;
        file.set_modified(before).expect("another time");
    }
}
