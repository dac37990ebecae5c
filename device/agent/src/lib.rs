// SPDX-License-Identifier: GPL-2.0-only
//! The agent of a session: it finds out who is in front, who begins and who can be noticed, and tells the daemon.
//!
//! It runs as the user, in the user's session, and needs no privilege. Each [`source::Source`] speaks from a thread of
//! its own, and [`conduct`] decides which do; [`merge::Merge`], a pure function of events, decides what the daemon has to know; a [`sink::Sink`] takes it.
//! What the agent says is a claim of the user's code, and the daemon gives it no more than that user's own share.
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod activation;
pub mod again;
pub mod android;
pub mod begin;
pub mod binder;
pub mod binder_driver;
pub mod bus;
pub mod cannot;
pub mod choose;
pub mod conduct;
mod cosmic_protocol;
pub mod daemon;
pub mod desktop;
pub mod dialogs;
pub mod end;
pub mod env;
pub mod event;
pub mod execs;
pub mod ext_toplevel;
pub mod fault;
pub mod gnome;
pub mod hyprland;
pub mod i3ipc;
pub mod idle;
pub mod inhibit;
pub mod kde;
pub mod knobs;
pub mod launch;
pub mod logind;
pub mod manual;
pub mod merge;
pub mod niri;
pub mod pipewire;
pub mod place;
pub mod portal;
pub mod resolve;
pub mod scope;
pub mod session_bus;
pub mod signs;
pub mod sink;
pub mod socket;
pub mod source;
pub mod start;
pub mod startup;
#[cfg(test)]
mod testing;
pub mod titles;
pub mod toplevel;
pub mod uid_observer;
pub mod uids;
pub mod watch;
pub mod window;
pub mod x11;
pub mod x11_screen;
