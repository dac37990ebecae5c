// SPDX-License-Identifier: GPL-2.0-only
//! What tracefs gives: descriptions of events, the pages of the ring buffer, and histograms.

mod format;
mod hist;
mod instance;
mod page;

pub use format::{EventFormat, FieldFormat, Place};
pub use hist::{Histogram, Row, Triggers, ROOM, TYPES};
pub use instance::{Batch, Instance, InstanceError, Missing, Setup, TRACEFS};
pub use page::{Layout, Missed, Page, PageError, Raw};
