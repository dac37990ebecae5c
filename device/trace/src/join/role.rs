// SPDX-License-Identifier: GPL-2.0-only
//! Files of SQLite.

/// What a file is for a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Itself.
    Database,
    /// Its rollback journal.
    Journal,
    /// Its write-ahead log.
    Wal,
}
