// SPDX-License-Identifier: GPL-2.0-only
//! An app's process: becomes its user, then plays its threads, its trace or its command.

use crate::cast::Cast;
use crate::exec;
use crate::job::Role;
use crate::place::{app_dir, DATA};
use crate::replay::{self, Fds, Replayer};
use crate::rng;
use crate::stats::{wait_for, Meter, Shared};
use crate::steps::{Origins, Player};
use crate::sys;
use crate::trace::Trace;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Exit status of an app that failed; its error says why.
pub const FAILED: i32 = 1;

/// Files that an app may have open: a scan keeps thousands.
pub const OPEN_FILES: u64 = 65536;

/// The app's whole life in its forked process.
pub fn live(cast: Cast<'_>) -> ! {
    let header = cast.shared.header();
    let prepared = become_app(cast);
    header.ready.fetch_add(1, Relaxed);
    sys::futex_wake(&header.ready);
    if let Err(error) = prepared {
        fail(cast.shared, cast.slot, &error);
    }
    wait_for(&header.go);
    sys::sleep_until_ns(cast.shared.start() + crate::job::ns(cast.app.start_s));
    if !cast.app.argv.is_empty() {
        if cast.app.role == Role::Foreground {
            wait_for(&header.touched);
        }
        let error = exec::replace(cast.app);
        fail(cast.shared, cast.slot, &error);
    }
    play(cast);
    Meter::new(cast.shared, cast.slot).finish();
    sys::eventfd_signal(cast.bell);
    sys::exit_now(0)
}

/// Notes why the app fails, and ends it.
fn fail(shared: &Shared, slot: usize, error: &str) -> ! {
    shared.slot(slot).error.set(&[error]);
    sys::exit_now(FAILED)
}

fn become_app(cast: Cast<'_>) -> Result<(), String> {
    let app = cast.app;
    let dir = app_dir(Path::new(DATA), &app.name);
    sys::unblock_child_signal();
    exec::join_group(&app.name).map_err(|error| format!("cgroup of {}: {error}", app.name))?;
    if app.argv.is_empty() {
        sys::raise_file_limit(OPEN_FILES).map_err(|error| format!("file limit: {error}"))?;
    } else {
        exec::redirect(&app.name)
            .map_err(|error| format!("output files of {}: {error}", app.name))?;
    }
    if let Some(ioprio) = app.ioprio {
        // As root: an app may not take the class realtime.
        ioprio
            .take()
            .map_err(|error| format!("I/O priority: {error}"))?;
    }
    exec::become_user(app).map_err(|error| format!("becoming UID {}: {error}", app.uid))?;
    std::env::set_current_dir(&dir)
        .map_err(|error| format!("directory {}: {error}", dir.display()))?;
    if let Some(trace) = cast.trace {
        replay::make_folders(trace, Path::new(DATA), &app.name)?;
        replay::need_blocks(trace, Path::new(DATA), &app.name)?;
    }
    if app.threads.iter().any(|thread| !thread.steps.is_empty()) {
        rng::seed_sqlite(cast.job.seed, &app.name);
    }
    Ok(())
}

fn play(cast: Cast<'_>) {
    let origins = Origins::default();
    let fds = Fds::new();
    let fds = &fds;
    let origins = &origins;
    std::thread::scope(|scope| {
        for index in 0..cast.threads() {
            let slot = cast.thread_slot(index);
            let work = move || {
                Meter::new(cast.shared, slot).begin();
                let result = match cast.trace {
                    Some(trace) => replay_thread(cast, trace, index, fds),
                    None => step_thread(cast, index, origins),
                };
                if let Err(error) = result {
                    fail(cast.shared, slot, &error);
                }
                Meter::new(cast.shared, slot).finish();
            };
            // A name with a NUL cannot be; the kernel cuts long ones.
            let name = cast.thread_name(index).replace('\0', "");
            if let Err(error) = std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)
            {
                fail(
                    cast.shared,
                    cast.slot,
                    &format!("cannot start a thread: {error}"),
                );
            }
        }
    });
}

fn step_thread(cast: Cast<'_>, index: usize, origins: &Origins) -> Result<(), String> {
    let thread = &cast.app.threads[index];
    let meter = Meter::new(cast.shared, cast.thread_slot(index));
    let mut player = Player::new(
        meter,
        Path::new(DATA),
        &cast.app.name,
        &thread.name,
        cast.job.seed,
        cast.job.verify,
        origins,
    )
    .map_err(|error| format!("memory for thread {}: {error}", thread.name))?;
    if thread.after_touch {
        wait_for(&cast.shared.header().touched);
    }
    loop {
        player.run(&thread.steps, None)?;
        if !thread.repeat {
            break;
        }
    }
    // The app goes on living with its files, databases and memory.
    std::mem::forget(player);
    Ok(())
}

fn replay_thread(cast: Cast<'_>, trace: &Trace, index: usize, fds: &Fds) -> Result<(), String> {
    let meter = Meter::new(cast.shared, cast.thread_slot(index));
    let mut replayer = Replayer::new(meter, Path::new(DATA), &cast.app.name, trace, fds)
        .map_err(|error| format!("memory for a thread: {error}"))?;
    if cast.app.role == Role::Foreground {
        wait_for(&cast.shared.header().touched);
    }
    let result = replayer.run(index);
    std::mem::forget(replayer);
    result
}
