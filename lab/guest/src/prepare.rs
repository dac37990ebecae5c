// SPDX-License-Identifier: GPL-2.0-only
//! The phone's storage: formats and mounts it, makes the apps' directories and files.

use crate::job::{FileKind, FileSpec, Job};
use crate::pattern::Pattern;
use crate::place::{app_dir, Place, DATA};
use crate::steps::FILE_MODE;
use crate::sys::{self, Area, PAGE};
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// Mode of an app's directory: others may pass through it, as through one on Android.
const DIR_MODE: u32 = 0o771;
/// How long the storage may take to appear, and how often it is looked for, ns of virtual time.
const DEVICE_WAIT_NS: u64 = 10_000_000_000;
const DEVICE_STEP_NS: u64 = 10_000_000;
/// One write of a prepared file, bytes: a large request is cheap in real time.
const BLOCK: usize = 4 << 20;

/// Waits for the device, formats it where the job says so, and mounts it on /data.
pub fn mount_phone(job: &Job) -> Result<(), String> {
    wait_for_device(&job.device)?;
    if let Some(argv) = &job.format {
        format(argv)?;
    }
    let (flags, data) = mount_flags(&job.mount_options);
    sys::mount(&job.device, DATA, job.fs.name(), flags, &data).map_err(|error| {
        let (fs, options) = (job.fs.name(), &job.mount_options);
        format!(
            "cannot mount {} ({fs}, options {options:?}) on {DATA}: {error}; is it formatted?",
            job.device
        )
    })?;
    make_dirs(job)
}

fn wait_for_device(device: &str) -> Result<(), String> {
    let mut waited = 0;
    while !Path::new(device).exists() {
        if waited >= DEVICE_WAIT_NS {
            return Err(format!(
                "device {device} has not appeared; is the phone on the kernel's command line?"
            ));
        }
        sys::sleep_ns(DEVICE_STEP_NS);
        waited += DEVICE_STEP_NS;
    }
    Ok(())
}

fn format(argv: &[String]) -> Result<(), String> {
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("PATH", crate::exec::PATH)
        .output()
        .map_err(|error| format!("cannot run {:?}: {error}", argv[0]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} failed ({}): {}{}",
        argv.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Splits mount(8)'s options into flags and what the file system itself parses.
fn mount_flags(options: &str) -> (libc::c_ulong, String) {
    let mut flags = 0;
    let mut rest = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        flags |= match option {
            "noatime" => libc::MS_NOATIME,
            "nodiratime" => libc::MS_NODIRATIME,
            "relatime" => libc::MS_RELATIME,
            "strictatime" => libc::MS_STRICTATIME,
            "lazytime" => libc::MS_LAZYTIME,
            "nodev" => libc::MS_NODEV,
            "nosuid" => libc::MS_NOSUID,
            "noexec" => libc::MS_NOEXEC,
            "ro" => libc::MS_RDONLY,
            "sync" => libc::MS_SYNCHRONOUS,
            "dirsync" => libc::MS_DIRSYNC,
            "rw" | "defaults" => 0,
            other => {
                rest.push(other);
                0
            }
        };
    }
    (flags, rest.join(","))
}

/// Makes the directories of all apps that are not there.
fn make_dirs(job: &Job) -> Result<(), String> {
    let data = Path::new(DATA);
    let root = data.join("app");
    fs::create_dir_all(&root).map_err(|error| format!("mkdir {}: {error}", root.display()))?;
    for app in &job.apps {
        make_dir(&app_dir(data, &app.name), app.uid)?;
    }
    Ok(())
}

fn make_dir(path: &Path, uid: u32) -> Result<(), String> {
    let say = |error| format!("mkdir {}: {error}", path.display());
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        other => other.map_err(say)?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(DIR_MODE)).map_err(say)?;
    chown(path, Some(uid), Some(uid)).map_err(say)
}

/// Makes the files of the job.
pub fn make_files(job: &Job) -> Result<(), String> {
    let data = Path::new(DATA);
    // One for all: in a guest, memory that is touched first costs far more than what is written from it.
    let mut buffer = Area::private(BLOCK).map_err(|error| format!("memory: {error}"))?;
    job.files.iter().try_for_each(|file| {
        let uid = job.app(&file.app).map_or(0, |app| app.uid);
        make_file(data, file, uid, &mut buffer)
    })
}

/// Makes one file, its directories and its owner. The buffer is of [`BLOCK`] bytes.
fn make_file(data: &Path, file: &FileSpec, uid: u32, buffer: &mut Area) -> Result<(), String> {
    let place = Place::of(data, &file.app, &file.path)?;
    make_parents(&place.real, data, uid)?;
    match file.kind {
        FileKind::Data => write_pattern(&place, file.bytes, buffer)
            .map_err(|error| format!("writing {}: {error}", place.logical))?,
        FileKind::Sqlite => crate::sqlite::prepare(&place.real, file.rows, file.row_bytes)
            .map_err(|error| format!("making database {}: {error}", place.logical))?,
    }
    chown(&place.real, Some(uid), Some(uid))
        .map_err(|error| format!("chown {}: {error}", place.logical))
}

fn make_parents(path: &Path, data: &Path, uid: u32) -> Result<(), String> {
    let inside = |parent: &&Path| parent.starts_with(data) && *parent != data;
    let mut parents: Vec<&Path> = path.ancestors().skip(1).take_while(inside).collect();
    parents.reverse();
    parents
        .into_iter()
        .try_for_each(|parent| make_dir(parent, uid))
}

/// Writes a file of the pattern past the page cache, which spares a copy and a write-back.
fn write_pattern(place: &Place, bytes: u64, buffer: &mut Area) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE);
    let direct = options
        .clone()
        .custom_flags(libc::O_DIRECT)
        .open(&place.real);
    // tmpfs in tests has no O_DIRECT.
    let file = direct.or_else(|_| options.open(&place.real))?;
    let pattern = Pattern::of(&place.logical);
    let mut at = 0;
    while at < bytes {
        let whole = ((bytes - at).min(BLOCK as u64) as usize).next_multiple_of(PAGE);
        let part = &mut buffer.bytes_mut()[..whole];
        pattern.fill(part, at);
        file.write_all_at(part, at)?;
        at += whole as u64;
    }
    if bytes % PAGE as u64 != 0 {
        file.set_len(bytes)?;
    }
    Ok(())
}

/// Puts what has been written on the storage.
pub fn sync() -> Result<(), String> {
    let path = CString::new(Path::new(DATA).as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the path is a valid string; the descriptor is closed below.
    unsafe {
        let say = |error: io::Error| format!("sync of {DATA}: {error}");
        let fd =
            sys::check(libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)).map_err(say)?;
        let result = sys::check(libc::syncfs(fd)).map_err(say);
        libc::close(fd);
        result.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::Dir;

    #[test]
    fn options_are_split() {
        let (flags, data) = mount_flags("noatime,discard,nosuid,data=ordered");
        assert_eq!(flags, libc::MS_NOATIME | libc::MS_NOSUID);
        assert_eq!(data, "discard,data=ordered");
        assert_eq!(mount_flags(""), (0, String::new()));
    }

    #[test]
    fn a_file_of_any_size_holds_its_pattern() {
        let dir = Dir::new();
        fs::create_dir_all(dir.path().join("app/a")).expect("mkdir");
        let mut buffer = Area::private(BLOCK).expect("memory");
        for bytes in [0, 1, 4096, 5000, (BLOCK + 4097) as u64] {
            let place = Place::of(dir.path(), "a", &format!("f{bytes}")).expect("place");
            write_pattern(&place, bytes, &mut buffer).expect("write");
            let content = fs::read(&place.real).expect("read");
            assert_eq!(content.len() as u64, bytes);
            assert_eq!(Pattern::of(&place.logical).mismatches(&content, 0), 0);
        }
    }

    #[test]
    fn parents_are_made() {
        let dir = Dir::new();
        let uid = std::os::unix::fs::MetadataExt::uid(&fs::metadata(dir.path()).expect("stat"));
        let file = FileSpec {
            app: "a".into(),
            path: "x/y/db".into(),
            bytes: 0,
            kind: FileKind::Sqlite,
            rows: 10,
            row_bytes: 20,
        };
        let mut buffer = Area::private(BLOCK).expect("memory");
        make_file(dir.path(), &file, uid, &mut buffer).expect("make");
        let mode = fs::metadata(dir.path().join("app/a/x")).expect("stat");
        assert_eq!(mode.permissions().mode() & 0o777, DIR_MODE);
        assert!(dir.path().join("app/a/x/y/db").exists());
    }
}
