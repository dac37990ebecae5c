// SPDX-License-Identifier: GPL-2.0-only
//! The agent against real compositors, each started headless: `make test-desktop` runs these and installs what they
//! need. A test whose programs are absent says so and passes.
//!
//! Every switch must be reported right. How long it took, from the order to the report, is printed and never asserted.

mod groups;
mod harness;
mod kwin;
mod labwc;
mod mutter;
mod pipewire;
mod sway;
mod weston;
mod x11;
