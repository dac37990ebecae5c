// SPDX-License-Identifier: GPL-2.0-only
//! Sums that the kernel makes by app, file and call, for `top`: none of what is summed up is sent one by one.
//!
//! BPF programs make them, or histograms of the patched kernel's events.

use crate::tracefs::Missing;
use fasttrack_trace_log::{BlockType, CallKind};

/// Who has done what a sum is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A task, as it was then.
    Told(Told),
    /// A task by its id in records, which an event describes.
    Known(u64),
}

/// All that is known of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its thread.
    pub pid: u64,
    /// Its process.
    pub tgid: u64,
    /// Its user.
    pub uid: u64,
    /// It is the kernel's.
    pub kernel_thread: bool,
    /// The thread's name.
    pub name: String,
}

/// On which file it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Device, inode and generation.
    Inode(u64, u64, u64),
    /// A file by its id in records, which an event describes.
    Known(u64),
}

/// What a sum is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Blocks that are read.
    Read(BlockType),
    /// Blocks that are written.
    Written(BlockType),
    /// Calls.
    Call(CallKind),
    /// Requests, of whomever.
    Requests,
}

/// A sum of one picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Who; none if nobody is known.
    pub who: Option<Who>,
    /// On which file; none if none is known.
    pub file: Option<On>,
    /// What.
    pub what: What,
    /// How many: runs of blocks, calls or requests.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// How long they took together, ns.
    pub ns: u64,
    /// How long the longest took, ns; at most, where the source knows it by a factor of two.
    pub longest_ns: u64,
}

/// Makes sums in the kernel.
pub trait Summing {
    /// Sums since the last time, and what is missing in them.
    ///
    /// # Errors
    /// The kernel says no.
    fn take(&mut self) -> Result<(Vec<Sum>, Vec<Missing>), String>;
}
