// SPDX-License-Identifier: GPL-2.0-only
//! Records which app, file and call caused each block of I/O.
//!
//! A source gives events in the order of time, `join` makes records of them, `output` names, hashes and limits them,
//! and `fasttrack-trace-log` writes them.

pub mod bpf;
pub mod budget;
pub mod clocks;
pub mod confine;
pub mod file_type;
pub mod flight;
pub mod histograms;
pub mod identity;
pub mod join;
pub mod leases;
pub mod output;
pub mod payers;
pub mod privacy;
pub mod recent;
pub mod recorder;
pub mod sample;
pub mod signals;
pub mod source;
pub mod summary;
pub mod sums;
pub mod system;
pub mod took;
pub mod tracefs;
