// SPDX-License-Identifier: GPL-2.0-only
//! An app in its run: its part of the job, and its slots of the shared memory.

use crate::job::{App, Job};
use crate::stats::Shared;
use crate::trace::Trace;
use std::ops::Range;
use std::os::fd::RawFd;

/// What the process of an app needs to know.
#[derive(Clone, Copy)]
pub struct Cast<'a> {
    /// The job.
    pub job: &'a Job,
    /// The app.
    pub app: &'a App,
    /// Its trace, if it replays one.
    pub trace: Option<&'a Trace>,
    /// Memory shared with PID 1.
    pub shared: &'a Shared,
    /// Its main thread's slot; its threads' follow.
    pub slot: usize,
    /// The eventfd that tells PID 1 to look.
    pub bell: RawFd,
}

impl<'a> Cast<'a> {
    /// Threads that play.
    pub fn threads(&self) -> usize {
        match self.trace {
            Some(trace) => trace.threads.len(),
            None => self.app.threads.len(),
        }
    }

    /// Name of a thread that plays.
    pub fn thread_name(&self, index: usize) -> &'a str {
        match self.trace {
            Some(trace) => &trace.threads[index].name,
            None => &self.app.threads[index].name,
        }
    }

    /// Slot of a thread that plays.
    pub fn thread_slot(&self, index: usize) -> usize {
        self.slot + 1 + index
    }

    /// All slots of the app.
    pub fn slots(&self) -> Range<usize> {
        self.slot..self.slot + 1 + self.threads()
    }
}
