// SPDX-License-Identifier: GPL-2.0-only
//! The loop that records.

use crate::clocks;
use crate::join::Joiner;
use crate::output::Output;
use crate::signals;
use crate::source::{Delivered, Source};
use fasttrack_trace_log::{Loss, LossReason, Record, Time};
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

/// Reads a source once; gives the records.
pub fn read(
    source: &mut dyn Source,
    joiner: &mut Joiner,
    end: bool,
    sum: &mut Sum,
) -> (Vec<Record>, Result<(), crate::tracefs::InstanceError>) {
    let mut records = Vec::new();
    let result = source.read(end, &mut |delivered| match delivered {
        Delivered::Event(event) => {
            sum.events += 1;
            joiner.event(&event, &mut records);
        }
        Delivered::Loss {
            cpu,
            since,
            until,
            count,
        } => {
            sum.lost += count.unwrap_or(0);
            joiner.forget();
            records.push(Record::from(Loss {
                time: Time(until),
                reason: Some(LossReason::RING_OVERRUN),
                cpu: Some(cpu),
                since: Some(Time(since)),
                count,
                ..Loss::default()
            }));
        }
    });
    (records, result)
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
    let began = clocks::boot();
    let (mut sum, mut block) = (Sum::default(), began);
    let mut failed = None;
    let over = |now: u64| limits.duration_ns.is_some_and(|limit| now - began >= limit);
    while !signals::ended() && !over(clocks::boot()) && failed.is_none() {
        source.wait(TICK_NS);
        let (records, result) = read(source, joiner, false, &mut sum);
        output.take(joiner, records)?;
        failed = result.err();
        if signals::asked() {
            output.trigger(joiner, "signal")?;
        }
        output.tick(joiner, false)?;
        let now = clocks::boot();
        if now - block >= limits.block_ns {
            output.end_block()?;
            block = now;
        }
    }
    if failed.is_none() {
        failed = source.stop().err();
        let (records, result) = read(source, joiner, true, &mut sum);
        output.take(joiner, records)?;
        failed = failed.or(result.err());
    }
    output.tick(joiner, true)?;
    sum.records = output.written();
    output.close()?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(sum),
    }
}
