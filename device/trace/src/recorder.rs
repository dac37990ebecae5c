// SPDX-License-Identifier: GPL-2.0-only
//! The loop that records.

use crate::clocks;
use crate::join::Joiner;
use crate::output::Output;
use crate::signals;
use crate::source::{Delivered, Source};
use crate::tracefs::InstanceError;
use fasttrack_trace_log::{Loss, Record, Time, WriteError};
use std::error::Error;

/// Between two looks at what is due, ns: a task that has begun and ended between is known by its name alone.
const TICK_NS: u64 = 200_000_000;

/// How long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// It ends after so long, ns.
    pub duration_ns: Option<u64>,
    /// What has gathered becomes a block after so long, ns.
    pub block_ns: u64,
}

/// What was recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    /// Events.
    pub events: u64,
    /// Records written, names too.
    pub records: u64,
    /// Events lost that were counted.
    pub lost: u64,
}

/// Reads a source once, and gives the records of each event to `show`.
///
/// # Errors
/// The source was taken away; or what `show` says, which ends what is given to it.
pub fn read<E: From<InstanceError>>(
    source: &mut dyn Source,
    joiner: &mut Joiner,
    end: bool,
    sum: &mut Sum,
    mut show: impl FnMut(&mut Joiner, &mut Vec<Record>) -> Result<(), E>,
) -> Result<(), E> {
    let mut records = Vec::new();
    let mut failed = None;
    let result = source.read(end, &mut |delivered| {
        match delivered {
            Delivered::Event(event) => {
                sum.events += 1;
                joiner.event(&event, &mut records);
            }
            Delivered::Ahead(event) => joiner.ahead(&event),
            Delivered::Loss(missing) => {
                sum.lost += missing.count.unwrap_or(0);
                joiner.forget(&mut records);
                records.push(Record::from(Loss {
                    time: Time(missing.until),
                    reason: Some(missing.reason),
                    cpu: missing.cpu,
                    since: Some(Time(missing.since)),
                    count: missing.count,
                    ..Loss::default()
                }));
            }
        }
        if !records.is_empty() && failed.is_none() {
            failed = show(joiner, &mut records).err();
        }
        records.clear();
    });
    if end && failed.is_none() {
        joiner.end(&mut records);
        failed = show(joiner, &mut records).err();
    }
    match failed {
        Some(error) => Err(error),
        None => result.map_err(E::from),
    }
}

/// Why recording ended early.
enum Stopped {
    /// The source went; what was read can be written.
    Source(InstanceError),
    /// Nothing can be written.
    Log(WriteError),
}

impl From<InstanceError> for Stopped {
    fn from(error: InstanceError) -> Stopped {
        Stopped::Source(error)
    }
}

/// Records until a signal, the end of its time, or the end of its source.
///
/// # Errors
/// The source was taken away, or a log file cannot be made; what was recorded before is written.
pub fn record(
    source: &mut dyn Source,
    joiner: &mut Joiner,
    mut output: Output,
    limits: Limits,
) -> Result<Sum, Box<dyn Error>> {
    let mut sum = Sum::default();
    let failed = match until_the_end(source, joiner, &mut output, limits, &mut sum) {
        Ok(()) => None,
        Err(Stopped::Source(error)) => Some(error),
        Err(Stopped::Log(error)) => return Err(error.into()),
    };
    output.tick(joiner, true)?;
    sum.records = output.written();
    output.close()?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(sum),
    }
}

fn until_the_end(
    source: &mut dyn Source,
    joiner: &mut Joiner,
    output: &mut Output,
    limits: Limits,
    sum: &mut Sum,
) -> Result<(), Stopped> {
    let began = clocks::boot();
    let mut block = began;
    let over = |now: u64| limits.duration_ns.is_some_and(|limit| now - began >= limit);
    while !signals::ended() && !over(clocks::boot()) {
        source.wait(TICK_NS);
        read(source, joiner, false, sum, |joiner, records| {
            output.take(joiner, records).map_err(Stopped::Log)
        })?;
        if signals::asked() {
            output.trigger(joiner, "signal").map_err(Stopped::Log)?;
        }
        output.tick(joiner, false).map_err(Stopped::Log)?;
        let now = clocks::boot();
        if now - block >= limits.block_ns {
            output.end_block().map_err(Stopped::Log)?;
            block = now;
        }
    }
    source.stop()?;
    read(source, joiner, true, sum, |joiner, records| {
        output.take(joiner, records).map_err(Stopped::Log)
    })
}
