// SPDX-License-Identifier: GPL-2.0-only
//! `record` and `top`.

use crate::cli::{self, Reading};
use crate::Ended;
use fasttrack_trace::budget::Budget;
use fasttrack_trace::confine::{confine, ConfineError, Needs};
use fasttrack_trace::flight::{Flight, Triggers};
use fasttrack_trace::identity::{hex, random, Identity};
use fasttrack_trace::join::Joiner;
use fasttrack_trace::output::Output;
use fasttrack_trace::privacy::Privacy;
use fasttrack_trace::recorder::{self, Limits, Sum};
use fasttrack_trace::sample::Sample;
use fasttrack_trace::signals;
use fasttrack_trace::source::{self, Asked, Ftrace, Source};
use fasttrack_trace::summary::Summary;
use fasttrack_trace::system::System;
use fasttrack_trace::tracefs::InstanceError;
use fasttrack_trace_log::{LogWriter, Options, Session, Sync};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::process::ExitCode;

/// The patched kernel's bound of calls, us.
const CALLS_OVER: &str = "/sys/module/io_origin/parameters/calls_over_us";

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn joiner() -> Joiner {
    Joiner::new(Box::<System>::default(), u64::from(std::process::id()))
}

fn source(reading: &Reading, ring: Option<String>, sums: bool) -> Result<Ftrace, InstanceError> {
    // Where nobody may look, there is no ring either.
    let others = source::others(&reading.places.tracefs).unwrap_or_default();
    if !others.is_empty() && source::patched(&reading.places.tracefs) {
        eprintln!(
            "fasttrack-trace: process {} records already: tasks and files that it has met have no names here; see \
             fasttrack-trace doctor",
            others.join(", ")
        );
    }
    Ftrace::new(&Asked {
        tracefs: &reading.places.tracefs,
        sysfs: &reading.places.sysfs,
        buffer_kib: reading.buffer,
        ring,
        wanted: reading.source,
        sums,
    })
}

/// The shortest call that is told of, changed for as long as this is recorded.
struct CallsOver {
    before: String,
}

impl CallsOver {
    fn set(us: u32) -> Result<CallsOver, String> {
        let told = |error| format!("--calls-over: {CALLS_OVER}: {error}");
        let before = fs::read_to_string(CALLS_OVER).map_err(told)?;
        fs::write(CALLS_OVER, us.to_string()).map_err(told)?;
        Ok(CallsOver { before })
    }
}

impl Drop for CallsOver {
    fn drop(&mut self) {
        let _ = fs::write(CALLS_OVER, self.before.trim());
    }
}

/// All that recording does not need.
fn give_up(needs: Needs) -> Result<(), ConfineError> {
    if !confine(needs)? {
        eprintln!(
            "fasttrack-trace: system calls are not filtered: the kernel has no CONFIG_SECCOMP_FILTER, or no filter is \
             known for this processor"
        );
    }
    Ok(())
}

/// Records into files.
pub fn record(options: &cli::Record) -> Ended {
    signals::take()?;
    let told = |error| {
        format!(
            "{}: {error}; run it as root, or see --state",
            options.state.display()
        )
    };
    let identity = Identity::load(&options.state, options.rotate_key).map_err(told)?;
    let id = random()?;
    let written = Options {
        file_bytes: options.file_size << 10,
        cap_bytes: options.disk_cap << 20,
        sync: match options.sync {
            cli::Sync::Never => Sync::Never,
            cli::Sync::File => Sync::File,
            cli::Sync::Block => Sync::Block,
        },
        ..Options::default()
    };
    let writer = LogWriter::new(&options.output, id, written)?;
    let mut source = source(&options.reading, options.ring.clone(), false)?;
    // Now that nobody else records: it is one for all.
    let _bound = options.calls_over.map(CallsOver::set).transpose()?;
    let privacy = match options.clear_names {
        true => Privacy::clear(),
        false => Privacy::hashed(&identity),
    };
    let session = session(&source, &identity, &id);
    let all_calls = session.calls_over_us == Some(0);
    let mut output = Output::new(writer, privacy, Budget::new(options.budget), session)
        .with_sample(Sample::new(options.sample));
    if let Some(seconds) = options.flight {
        let triggers = Triggers {
            fsync_ns: options.fsync_over.map(|ms| ns(ms / 1e3)),
            wait_ns: options.wait_over.map(|ms| ns(ms / 1e3)),
        };
        output = output.with_flight(Flight::new(ns(seconds)), triggers);
    }
    let limits = Limits {
        duration_ns: options.duration.map(ns),
        block_ns: ns(options.block_time),
    };
    give_up(Needs::of(&options.output, source.has_programs()))?;
    // Whoever started it may wait for this line.
    println!("recording to {}", options.output.display());
    std::io::stdout().flush()?;
    let mut joiner = joiner();
    if all_calls {
        joiner = joiner.with_sqlite();
    }
    let sum = recorder::record(&mut source, &mut joiner, output, limits)?;
    // All is written: whoever started it may have closed the pipe.
    let _ = writeln!(
        std::io::stdout(),
        "{} events, {} records, {} events lost",
        sum.events,
        sum.records,
        sum.lost
    );
    Ok(ExitCode::SUCCESS)
}

fn session(source: &Ftrace, identity: &Identity, id: &[u8]) -> Session {
    let line = |path: &str| {
        let text = fs::read_to_string(path).ok();
        text.map(|text| text.trim().to_string())
    };
    Session {
        session: Some(hex(id)),
        install: Some(hex(&identity.install)),
        boot: line("/proc/sys/kernel/random/boot_id"),
        kernel: line("/proc/sys/kernel/osrelease"),
        collector: Some(env!("CARGO_PKG_VERSION").to_string()),
        sources: Some(source.names()),
        events: Some(source.events()),
        calls_over_us: line(CALLS_OVER).and_then(|us| us.parse().ok()),
        page_bytes: Some(rustix::param::page_size() as u64),
        ..Session::default()
    }
}

/// Shows sums.
pub fn top(options: &cli::Top) -> Ended {
    signals::take()?;
    let mut source = source(&options.reading, None, true)?;
    if let Some(why) = source.without_sums() {
        eprintln!(
            "fasttrack-trace: the kernel makes no sums, each event is read: {why}; see fasttrack-trace doctor"
        );
    }
    give_up(Needs {
        programs: source.has_programs(),
        ..Needs::default()
    })?;
    let (mut joiner, mut sum) = (joiner(), Sum::default());
    let mut shown = 0;
    while !signals::ended() && (options.count == 0 || shown < options.count) {
        let picture = picture(&mut source, &mut joiner, &mut sum, options.interval)?;
        println!("{}", picture.text(options.rows));
        shown += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// What happens in an interval.
fn picture(
    source: &mut Ftrace,
    joiner: &mut Joiner,
    sum: &mut Sum,
    seconds: u64,
) -> Result<Summary, Box<dyn Error>> {
    let mut summary = Summary::default();
    let since = fasttrack_trace::clocks::boot();
    let until = since + seconds * 1_000_000_000;
    loop {
        let now = fasttrack_trace::clocks::boot();
        let over = now >= until || signals::ended();
        // Before what is read at last, which has the names of all that is in them.
        let (sums, losses) = match over {
            true => source.take_sums()?,
            false => Default::default(),
        };
        if !over {
            source.wait(until - now);
        }
        recorder::read(source, joiner, false, sum, |joiner, records| {
            let mut names = Vec::new();
            for record in records.iter() {
                // A picture begins without names: each has all of its own.
                joiner.names.needed(record, until, &mut names);
                for name in names.drain(..) {
                    summary.name(&name);
                }
                summary.add(record);
            }
            Ok::<(), InstanceError>(())
        })?;
        if over {
            summary.sums(&mut joiner.names, (since, now), &sums);
            summary.losses(&losses);
            return Ok(summary);
        }
    }
}
