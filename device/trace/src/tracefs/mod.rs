// SPDX-License-Identifier: GPL-2.0-only
//! What tracefs gives: descriptions of events, and the pages of the ring buffer.

mod format;
mod instance;
mod page;

pub use format::{EventFormat, FieldFormat, Place};
pub use instance::{Batch, Instance, InstanceError, Missing, Setup, TRACEFS};
pub use page::{Layout, Missed, Page, PageError, Raw};
