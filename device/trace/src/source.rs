// SPDX-License-Identifier: GPL-2.0-only
//! Where events come from.

use crate::bpf::{self, Programs};
use crate::clocks;
use crate::histograms::Histograms;
use crate::join::{
    Event, EVENTS, ORIGIN, REPLACED, REPLACED_BY_BPF, REPLACED_BY_HISTOGRAMS, REPLACED_BY_SUMS,
};
use crate::signals;
use crate::sums::{Sum, Summing};
use crate::tracefs::{Batch, EventFormat, Instance, InstanceError, Missing, Setup};
use clap::ValueEnum;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which source says what bios carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wanted {
    /// The best that there is: the patched kernel, BPF, tracefs.
    Auto,
    /// The patched kernel's events.
    Kernel,
    /// BPF programs, and tracefs for the rest.
    Bpf,
    /// The events of any kernel.
    Tracefs,
}

/// What a source delivers, in the order of time.
#[derive(Debug)]
pub enum Delivered<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events that are missing.
    Loss(Missing),
    /// A file's end, which is delivered again in its turn: it has happened already, and whoever asks the system for that
    /// inode finds another file's.
    Ahead(Event<'a>),
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

/// Events of the end of an inode.
const ENDS: [&str; 2] = ["ext4_evict_inode", "f2fs_evict_inode"];

/// The kernel has joined already.
pub fn patched(root: &Path) -> bool {
    let there = |event: &&str| root.join("events").join(event).join("format").exists();
    ORIGIN.iter().all(there)
}

/// Processes that record already: each has a ring of its own, which costs memory and time.
///
/// # Errors
/// Nobody knows, as for a user who may not look.
pub fn others(tracefs: &Path) -> io::Result<Vec<String>> {
    Ok(rings(tracefs)?.map(|(pid, _)| pid).collect())
}

/// Their processes and their rings.
fn rings(tracefs: &Path) -> io::Result<impl Iterator<Item = (String, fs::DirEntry)>> {
    let entries = fs::read_dir(tracefs.join("instances"))?.flatten();
    Ok(entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let pid = name.strip_prefix(INSTANCE)?.strip_prefix('-')?;
        let lives = Path::new("/proc").join(pid).exists();
        lives.then(|| (pid.to_string(), entry))
    }))
}

/// Another collector's ring is so old that the kernel has told it, and tells nobody else, that all is in place.
fn is_in_place(tracefs: &Path) -> bool {
    let age = |ring: fs::DirEntry| ring.metadata().ok()?.modified().ok()?.elapsed().ok();
    let rings = rings(tracefs).into_iter().flatten();
    let mut ages = rings.filter_map(|(_, ring)| age(ring));
    ages.any(|age| age >= Duration::from_nanos(SETTLE_NS))
}

/// The events that are needed of tracefs.
fn chosen(wanted: Wanted, made: &Made) -> Vec<String> {
    let (replaced, more): (&[&str], &[&str]) = match wanted {
        Wanted::Kernel => (&REPLACED, &ORIGIN),
        Wanted::Bpf => (&REPLACED_BY_BPF, &[]),
        Wanted::Auto | Wanted::Tracefs => (&[], &[]),
    };
    let summed: &[&str] = match made {
        Made::Sums(_) => &REPLACED_BY_SUMS,
        Made::Histograms(_) => &REPLACED_BY_HISTOGRAMS,
        Made::Events | Made::Records(_) => &[],
    };
    let all = EVENTS.iter().filter(|event| !replaced.contains(event));
    let kept = all.chain(more).filter(|event| !summed.contains(event));
    kept.map(|event| event.to_string()).collect()
}

/// What is asked of a source.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// tracefs is mounted here.
    pub tracefs: &'a Path,
    /// sysfs is mounted here.
    pub sysfs: &'a Path,
    /// Buffer for each processor, KiB.
    pub buffer_kib: u64,
    /// A ring that is there already.
    pub ring: Option<String>,
    /// Which source.
    pub wanted: Wanted,
    /// Sums are wanted of the kernel, and no records of what they sum up.
    pub sums: bool,
}

/// What the kernel makes besides events of tracefs.
enum Made {
    /// Nothing: all is events.
    Events,
    /// Records of BPF programs.
    Records(Programs),
    /// Sums of BPF programs.
    Sums(bpf::Sums),
    /// Sums of histograms; none before there is a ring that they are of.
    Histograms(Option<Histograms>),
}

impl Made {
    fn records(&self) -> Option<&Programs> {
        match self {
            Made::Records(programs) => Some(programs),
            _ => None,
        }
    }

    fn records_mut(&mut self) -> Option<&mut Programs> {
        match self {
            Made::Records(programs) => Some(programs),
            _ => None,
        }
    }

    fn sums(&mut self) -> Option<&mut dyn Summing> {
        match self {
            Made::Sums(sums) => Some(sums),
            Made::Histograms(sums) => sums.as_mut().map(|sums| sums as &mut dyn Summing),
            Made::Events | Made::Records(_) => None,
        }
    }
}

impl Asked<'_> {
    fn refused(&self, why: &str) -> InstanceError {
        InstanceError {
            path: PathBuf::from("--source"),
            error: io::Error::other(why.to_string()),
        }
    }

    /// What is used of what is wanted: no BPF beside a ring of the kernel's, which has the events that it replaces.
    fn decided(&self) -> Result<(Wanted, Made), InstanceError> {
        let programs = || match self.ring {
            Some(_) => Err("BPF programs cannot go on with a --ring".to_string()),
            None if self.sums => bpf::load_sums(self.sysfs).map(Made::Sums),
            None => bpf::load(self.sysfs, self.buffer_kib).map(Made::Records),
        };
        let joined = || match self.sums {
            true => Made::Histograms(None),
            false => Made::Events,
        };
        match self.wanted {
            Wanted::Kernel if !patched(self.tracefs) => {
                Err(self.refused("the kernel is not patched: it has no events io_origin"))
            }
            Wanted::Auto | Wanted::Kernel if patched(self.tracefs) => {
                Ok((Wanted::Kernel, joined()))
            }
            Wanted::Auto => Ok(match programs() {
                Ok(programs) => (Wanted::Bpf, programs),
                Err(_) => (Wanted::Tracefs, Made::Events),
            }),
            Wanted::Bpf => {
                let programs = programs().map_err(|why| self.refused(&why))?;
                Ok((Wanted::Bpf, programs))
            }
            other => Ok((other, Made::Events)),
        }
    }
}

/// Events of tracefs: every kernel's, and FastTrack's where there are any; and what else the kernel makes.
pub struct Ftrace {
    // Before the ring, which cannot be removed while there are histograms of it.
    made: Made,
    instance: Instance,
    held: Batch,
    without_sums: Option<String>,
}

impl Ftrace {
    /// Begins to record, or goes on with a ring.
    ///
    /// # Errors
    /// tracefs says no, or a source that is wanted is not there.
    pub fn new(asked: &Asked<'_>) -> Result<Ftrace, InstanceError> {
        let (wanted, made) = asked.decided()?;
        let in_place = is_in_place(asked.tracefs);
        let setup = Setup {
            ring: asked.ring.clone(),
            root: asked.tracefs.to_path_buf(),
            name: INSTANCE.to_string(),
            buffer_kib: asked.buffer_kib,
            // Woken earlier, it reads pages that are filled in part, and copies them.
            wake_percent: 25,
            events: chosen(wanted, &made),
        };
        let mut source = Ftrace {
            made,
            instance: Instance::new(&setup)?,
            held: Batch::default(),
            without_sums: None,
        };
        source.begin_histograms(asked.tracefs)?;
        if !in_place {
            source.settle()?;
        }
        Ok(source)
    }

    /// Begins histograms where they are wanted; where the kernel has none, all is events.
    fn begin_histograms(&mut self, tracefs: &Path) -> Result<(), InstanceError> {
        if !matches!(self.made, Made::Histograms(None)) {
            return Ok(());
        }
        match Histograms::new(tracefs, self.instance.path()) {
            Ok(begun) => self.made = Made::Histograms(Some(begun)),
            Err(error) => {
                self.made = Made::Events;
                self.without_sums = Some(error.to_string());
                self.instance.add(&REPLACED_BY_HISTOGRAMS)?;
            }
        }
        Ok(())
    }

    /// Why the patched kernel makes no sums, where they were wanted.
    pub fn without_sums(&self) -> Option<&str> {
        self.without_sums.as_deref()
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
        while !begins(&self.held) && clocks::boot() < until && !signals::ended() {
            self.instance.wait(SETTLE_NS / 100, None);
            self.instance.read(u64::MAX, &mut self.held)?;
        }
        Ok(())
    }

    /// Delivers what is older than `until`, in order.
    fn deliver(&mut self, until: u64, sink: &mut dyn FnMut(Delivered<'_>)) {
        self.held.events.sort_by_key(|event| event.0);
        self.held.losses.sort_by_key(|loss| loss.until);
        self.look_ahead(sink);
        let count = self.held.events.partition_point(|event| event.0 < until);
        let lost = self.held.losses.partition_point(|loss| loss.until < until);
        let mut losses = self.held.losses.drain(..lost).peekable();
        for (time, cpu, data) in self.held.events.drain(..count) {
            while let Some(loss) = losses.next_if(|loss| loss.until <= time) {
                sink(Delivered::Loss(loss));
            }
            let id = data.get(..2).map(|id| u16::from_le_bytes([id[0], id[1]]));
            let formats = self.instance.formats();
            let programs = self.made.records().map(Programs::formats);
            let known = |id: u16| formats.get(&id).or_else(|| programs?.get(&id));
            if let Some(format) = id.and_then(known) {
                sink(Delivered::Event(Event {
                    time,
                    cpu,
                    format,
                    data: &data,
                }));
            }
        }
        for loss in losses {
            sink(Delivered::Loss(loss));
        }
    }

    /// Delivers the ends of files that are known already.
    fn look_ahead(&self, sink: &mut dyn FnMut(Delivered<'_>)) {
        let formats = self.instance.formats();
        let ends: Vec<_> = formats
            .values()
            .filter(|format| ENDS.contains(&format.name.as_str()))
            .collect();
        for (time, cpu, data) in &self.held.events {
            let is = |format: &&&EventFormat| data.starts_with(&format.id.to_le_bytes());
            if let Some(format) = ends.iter().find(is) {
                sink(Delivered::Ahead(Event {
                    time: *time,
                    cpu: *cpu,
                    format,
                    data,
                }));
            }
        }
    }

    /// BPF programs are in use.
    pub fn has_programs(&self) -> bool {
        matches!(self.made, Made::Records(_) | Made::Sums(_))
    }

    /// Sums that the kernel has made since the last time, and what is missing in them; none where all is sent.
    ///
    /// # Errors
    /// The kernel says no.
    pub fn take_sums(&mut self) -> Result<(Vec<Sum>, Vec<Missing>), String> {
        match self.made.sums() {
            Some(sums) => sums.take(),
            None => Ok((Vec::new(), Vec::new())),
        }
    }

    /// Descriptions of all its events.
    fn formats(&self) -> impl Iterator<Item = &EventFormat> {
        let programs = self.made.records().into_iter();
        let programs = programs.flat_map(|one| one.formats().values());
        self.instance.formats().values().chain(programs)
    }
}

impl Source for Ftrace {
    fn names(&self) -> String {
        let ours =
            |format: &EventFormat| format.name.starts_with("fasttrack_") || format.name == SESSION;
        let mut names = vec!["ftrace"];
        if self.made.records().is_some() {
            names.insert(0, "bpf");
        }
        if self.formats().any(ours) {
            names.push("kernel");
        }
        names.join(" ")
    }

    fn events(&self) -> String {
        let names: Vec<&str> = self.formats().map(|format| format.name.as_str()).collect();
        names.join(" ")
    }

    fn wait(&mut self, timeout_ns: u64) {
        let programs = self.made.records().map(Programs::fd);
        self.instance.wait(timeout_ns, programs);
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
        if let Some(programs) = self.made.records_mut() {
            programs.read(&mut self.held);
        }
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
        if let Some(programs) = self.made.records_mut() {
            programs.stop(&mut self.held);
        }
        self.instance.stop()
    }
}
