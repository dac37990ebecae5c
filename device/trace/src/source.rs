// SPDX-License-Identifier: GPL-2.0-only
//! Where events come from.

use crate::clocks;
use crate::join::{Event, EVENTS, ORIGIN, REPLACED};
use crate::tracefs::{Batch, Instance, InstanceError, Missing, Setup};
use fasttrack_trace_log::LossReason;
use std::path::Path;

/// What a source delivers, in the order of time.
#[derive(Debug)]
pub enum Delivered<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events that are missing.
    Loss {
        /// Of which processor.
        cpu: u64,
        /// From when, ns.
        since: u64,
        /// To when, ns.
        until: u64,
        /// How many, if it is known.
        count: Option<u64>,
        /// Why.
        reason: LossReason,
    },
}

impl Delivered<'_> {
    /// A loss as a batch has it.
    fn of(missing: Missing) -> Self {
        Delivered::Loss {
            cpu: missing.cpu,
            since: missing.since,
            until: missing.until,
            count: missing.count,
            reason: match missing.torn {
                true => LossReason::UNREADABLE,
                false => LossReason::RING_OVERRUN,
            },
        }
    }
}

/// Gives events.
pub trait Source {
    /// Its names, separated by spaces: those of `from` in contract/trace.toml.
    fn names(&self) -> String;
    /// Its events, separated by spaces.
    fn events(&self) -> String;
    /// Waits until there is much to read, for `timeout_ns` at most, or until a signal.
    fn wait(&mut self, timeout_ns: u64);
    /// Delivers what there is; at the `end` all of it.
    ///
    /// # Errors
    /// The source was taken away.
    fn read(&mut self, end: bool, sink: &mut dyn FnMut(Delivered<'_>))
        -> Result<(), InstanceError>;
    /// No more events are made.
    ///
    /// # Errors
    /// The source was taken away.
    fn stop(&mut self) -> Result<(), InstanceError>;
}

/// Begin of the name of a collector's ring; its process follows.
pub const INSTANCE: &str = "fasttrack-trace";

/// The patched kernel's event that all is in place, and how long it is waited for, ns: pages are marked before it.
const SESSION: &str = "io_session";
const SETTLE_NS: u64 = 5_000_000_000;

/// The events of this kernel that are needed.
fn chosen(root: &Path) -> Vec<String> {
    let there = |event: &&str| root.join("events").join(event).join("format").exists();
    let joined = ORIGIN.iter().all(there);
    let mut events: Vec<String> = EVENTS
        .iter()
        .filter(|event| !joined || !REPLACED.contains(event))
        .map(|event| event.to_string())
        .collect();
    if joined {
        events.extend(ORIGIN.map(str::to_string));
    }
    events
}

/// Events of tracefs: every kernel's, and FastTrack's where there are any.
pub struct Ftrace {
    instance: Instance,
    held: Batch,
}

impl Ftrace {
    /// Begins to record into a ring of `buffer_kib` a processor, or goes on with the one of that name.
    ///
    /// # Errors
    /// tracefs says no.
    pub fn new(
        root: &Path,
        buffer_kib: u64,
        ring: Option<String>,
    ) -> Result<Ftrace, InstanceError> {
        let setup = Setup {
            ring,
            root: root.to_path_buf(),
            name: INSTANCE.to_string(),
            buffer_kib,
            // Woken earlier, it reads pages that are filled in part, and copies them.
            wake_percent: 25,
            events: chosen(root),
        };
        let mut source = Ftrace {
            instance: Instance::new(&setup)?,
            held: Batch::default(),
        };
        source.settle()?;
        Ok(source)
    }

    /// Waits until the kernel says that what is dirtied from now on has an owner.
    fn settle(&mut self) -> Result<(), InstanceError> {
        let mut formats = self.instance.formats().values();
        let Some(id) = formats
            .find(|format| format.name == SESSION)
            .map(|format| format.id)
        else {
            return Ok(());
        };
        let begins = |held: &Batch| {
            held.events
                .iter()
                .any(|event| event.2.starts_with(&id.to_le_bytes()))
        };
        let until = clocks::boot() + SETTLE_NS;
        while !begins(&self.held) && clocks::boot() < until {
            self.instance.wait(SETTLE_NS / 100);
            self.instance.read(u64::MAX, &mut self.held)?;
        }
        Ok(())
    }

    /// Delivers what is older than `until`, in order.
    fn deliver(&mut self, until: u64, sink: &mut dyn FnMut(Delivered<'_>)) {
        self.held.events.sort_by_key(|event| event.0);
        self.held.losses.sort_by_key(|loss| loss.until);
        let count = self.held.events.partition_point(|event| event.0 < until);
        let lost = self.held.losses.partition_point(|loss| loss.until < until);
        let mut losses = self.held.losses.drain(..lost).peekable();
        for (time, cpu, data) in self.held.events.drain(..count) {
            while let Some(loss) = losses.next_if(|loss| loss.until <= time) {
                sink(Delivered::of(loss));
            }
            let id = data.get(..2).map(|id| u16::from_le_bytes([id[0], id[1]]));
            if let Some(format) = id.and_then(|id| self.instance.formats().get(&id)) {
                sink(Delivered::Event(Event {
                    time,
                    cpu,
                    format,
                    data: &data,
                }));
            }
        }
        for loss in losses {
            sink(Delivered::of(loss));
        }
    }

    /// Events that this kernel does not have.
    pub fn missing(&self) -> &[String] {
        self.instance.missing()
    }
}

impl Source for Ftrace {
    fn names(&self) -> String {
        let mut formats = self.instance.formats().values();
        match formats.any(|format| format.name.starts_with("fasttrack_") || format.name == SESSION)
        {
            true => "ftrace kernel".to_string(),
            false => "ftrace".to_string(),
        }
    }

    fn events(&self) -> String {
        let formats = self.instance.formats().values();
        let names: Vec<&str> = formats.map(|format| format.name.as_str()).collect();
        names.join(" ")
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.instance.wait(timeout_ns);
    }

    fn read(
        &mut self,
        end: bool,
        sink: &mut dyn FnMut(Delivered<'_>),
    ) -> Result<(), InstanceError> {
        // What is older than this is there on every processor.
        let now = match end {
            true => u64::MAX,
            false => clocks::boot(),
        };
        loop {
            let more = self.instance.read(now, &mut self.held);
            let until = more.as_ref().ok().copied().flatten().unwrap_or(now);
            self.deliver(until.min(now), sink);
            if more?.is_none() {
                return Ok(());
            }
        }
    }

    fn stop(&mut self) -> Result<(), InstanceError> {
        self.instance.stop()
    }
}
