// SPDX-License-Identifier: GPL-2.0-only
//! Users, control groups and host commands.

use crate::job::App;
use crate::place::{app_dir, Place, DATA};
use crate::sys;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where control groups are mounted.
pub const CGROUPS: &str = "/sys/fs/cgroup";
/// Where the host's directory of the run is mounted.
pub const RUN: &str = "/run/fasttrack";
/// Where a host command is looked for.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Lets an app's command read host files of other users, as a checkout below /root. From
/// linux/capability.h.
const CAP_DAC_READ_SEARCH: u32 = 2;
/// Of the 64-bit capability sets, from linux/capability.h.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// The control group of an app, with control groups at `groups`.
pub fn group(groups: &Path, app: &str) -> PathBuf {
    groups.join(format!("app-{app}"))
}

/// Makes the control group of an app, where control groups are.
pub fn make_group(app: &str) -> io::Result<()> {
    if !Path::new(CGROUPS).join("cgroup.procs").exists() {
        return Ok(());
    }
    match fs::create_dir(group(Path::new(CGROUPS), app)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// What to add to an error about a file below ROOT, where control groups are mounted: which controllers there are.
pub fn controllers(root: &Path, path: &Path) -> String {
    if !path.starts_with(root) {
        return String::new();
    }
    match fs::read_to_string(root.join("cgroup.controllers")) {
        Ok(names) => format!("; controllers of this kernel: {}", names.trim()),
        Err(_) => "; this kernel has no control groups".to_string(),
    }
}

/// Moves the calling process into its app's control group, if there is one.
pub fn join_group(app: &str) -> io::Result<()> {
    let group = group(Path::new(CGROUPS), app);
    if group.exists() {
        fs::write(group.join("cgroup.procs"), "0")?;
    }
    Ok(())
}

/// Makes the calling process the app's: own session, its UID and GID alone, no new privileges.
pub fn become_user(app: &App) -> io::Result<()> {
    let name = sys::cstring(&app.name)?;
    let keep = !app.argv.is_empty();
    // SAFETY: plain system calls on this process; the name outlives its call.
    unsafe {
        sys::check(libc::setsid())?;
        sys::check(libc::prctl(libc::PR_SET_NAME, name.as_ptr()))?;
        sys::check(libc::prctl(libc::PR_SET_KEEPCAPS, i64::from(keep), 0, 0, 0))?;
        sys::check(libc::setgroups(0, std::ptr::null()))?;
        sys::check(libc::setresgid(app.uid, app.uid, app.uid))?;
        sys::check(libc::setresuid(app.uid, app.uid, app.uid))?;
        sys::check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    if keep && app.uid != 0 {
        keep_reading()?;
    }
    sys::set_timer_slack(if keep {
        sys::DEFAULT_SLACK_NS
    } else {
        sys::EXACT_NS
    })
}

/// Keeps one capability over setuid and exec: reading what the host's owner alone may read.
fn keep_reading() -> io::Result<()> {
    let bit = 1_u32 << CAP_DAC_READ_SEARCH;
    let header = [CAPABILITY_VERSION_3, 0];
    // Effective, permitted, inheritable; the second three are capabilities above 31.
    let sets = [bit, bit, bit, 0, 0, 0];
    // SAFETY: both arrays have the layout of capset(2)'s structures.
    unsafe {
        let result = libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        sys::check(result as libc::c_int)?;
        sys::check(libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_RAISE,
            u64::from(CAP_DAC_READ_SEARCH),
            0,
            0,
        ))?;
    }
    Ok(())
}

/// Becomes the app's command. Returns only if that fails, and says why.
pub fn replace(app: &App) -> String {
    let dir = match &app.cwd {
        Some(cwd) => match Place::of(Path::new(DATA), &app.name, cwd) {
            Ok(place) => place.real,
            Err(error) => return error,
        },
        None => app_dir(Path::new(DATA), &app.name),
    };
    let home = app_dir(Path::new(DATA), &app.name);
    let mut command = Command::new(&app.argv[0]);
    command
        .args(&app.argv[1..])
        .current_dir(&dir)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", home)
        .env("TMPDIR", "/tmp")
        .env("LANG", "C.UTF-8")
        .env("USER", &app.name)
        .envs(&app.env);
    let error = command.exec();
    format!("cannot run {:?} in {}: {error}", app.argv[0], dir.display())
}

/// Points standard input at nothing, output and errors at NAME.out and NAME.err of the run.
pub fn redirect(app: &str) -> io::Result<()> {
    let input = File::open("/dev/null")?;
    let output = File::create(format!("{RUN}/{app}.out"))?;
    let errors = File::create(format!("{RUN}/{app}.err"))?;
    for (file, number) in [(input, 0), (output, 1), (errors, 2)] {
        sys::dup_over(file.as_raw_fd(), number)?;
    }
    Ok(())
}

/// Copies a directory's content into another, which is there. Everything becomes `uid`'s.
pub fn copy_tree(from: &Path, to: &Path, uid: u32) -> Result<(), String> {
    let mut entries: Vec<_> = fs::read_dir(from)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        copy_entry(&source, &target, uid)
            .map_err(|error| format!("cannot copy {}: {error}", source.display()))?;
        if source.is_dir() && !source.is_symlink() {
            copy_tree(&source, &target, uid)?;
        }
    }
    Ok(())
}

fn copy_entry(source: &Path, target: &Path, uid: u32) -> io::Result<()> {
    let metadata = fs::symlink_metadata(source)?;
    if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(source)?, target)?;
    } else if metadata.is_dir() {
        fs::create_dir(target)?;
        fs::set_permissions(target, metadata.permissions())?;
    } else if metadata.is_file() {
        fs::copy(source, target)?;
    } else {
        return Err(io::Error::other("neither a file, a directory nor a link"));
    }
    std::os::unix::fs::lchown(target, Some(uid), Some(uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::Dir;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_tree_is_copied_with_modes_and_links() {
        let dir = Dir::new();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("sub")).expect("mkdir");
        fs::create_dir(&to).expect("mkdir");
        fs::write(from.join("sub/file"), "content").expect("write");
        fs::set_permissions(from.join("sub/file"), fs::Permissions::from_mode(0o750))
            .expect("chmod");
        std::os::unix::fs::symlink("sub/file", from.join("link")).expect("symlink");
        let uid = fs::metadata(&from).expect("stat").uid();
        copy_tree(&from, &to, uid).expect("copy");
        assert_eq!(fs::read(to.join("link")).expect("read"), b"content");
        let mode = fs::metadata(to.join("sub/file")).expect("stat").mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(
            fs::read_link(to.join("link")).expect("link"),
            Path::new("sub/file")
        );
    }

    #[test]
    fn an_error_about_control_groups_names_the_controllers() {
        let dir = Dir::new();
        let (root, file) = (dir.path(), dir.path().join("app-a/io.weight"));
        assert_eq!(controllers(root, Path::new("/sys/kernel/knob")), "");
        assert!(controllers(root, &file).contains("no control groups"));
        fs::write(root.join("cgroup.controllers"), "cpu memory\n").expect("write");
        assert_eq!(
            controllers(root, &file),
            "; controllers of this kernel: cpu memory"
        );
    }

    #[test]
    fn a_missing_tree_is_named() {
        let error = copy_tree(Path::new("/nonexistent/x"), Path::new("/tmp"), 0).expect_err("none");
        assert!(error.contains("/nonexistent/x"), "{error}");
    }
}
