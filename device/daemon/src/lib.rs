// SPDX-License-Identifier: GPL-2.0-only
//! `fasttrackd` keeps the app in front of the user fast: it takes reports of agents, decides who is in front, and has
//! the kernel prefer that.
//!
//! One thread and one owner of state. [`service`] checks callers and turns what they say into [`input::Input`]s;
//! [`daemon`] takes these one by one, with the time, asks the policy (the crate `fasttrack-detector`) for a decision,
//! and hands it to the [`effects`]. Nothing wakes up while nothing happens, but for one heartbeat while an app is in
//! front or systemd wants to hear of the daemon: it renews the kernel's lease and answers the watchdog. While an app that
//! is launched has a window and may still read, [`settling`] looks ten times a second. A second thread is there while
//! groups that may be frozen are looked for ([`freezable`]).
//!
//! Freezing is done by a second process, the [`guard`]: it holds what is frozen and thaws it when the daemon is killed,
//! stopped or late.
//!
//! All files are reached below one directory ([`system::System`]), so a test has a system of its own.

pub mod agents;
pub mod answers;
pub mod baseline;
pub mod candidates;
pub mod cgroup;
pub mod clean;
pub mod coexist;
pub mod counters;
pub mod daemon;
pub mod disks;
pub mod effects;
pub mod frame;
pub mod freezable;
pub mod freezer;
pub mod frozen;
pub mod guard;
pub mod guard_link;
pub mod heartbeat;
pub mod inlet;
pub mod input;
pub mod latency;
pub mod lock;
pub mod login;
pub mod memory;
pub mod neighbours;
pub mod notify;
pub mod peers;
pub mod polkit;
pub mod pressure;
pub mod rate;
pub mod run;
pub mod sender;
pub mod service;
pub mod settling;
pub mod signals;
pub mod system;
pub mod tell;
pub mod tree;
pub mod units;
pub mod waits;
