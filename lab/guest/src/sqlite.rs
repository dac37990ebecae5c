// SPDX-License-Identifier: GPL-2.0-only
//! SQLite transactions on the real library, with full synchronous.
//!
//! A database holds one table with an index: rows with a key that is spread over the whole range,
//! so that inserts touch random index pages as a real app's do, and a value whose content follows
//! from its row and its version, so that what is read can be checked.

use crate::job::{Journal, SqlKind, Sqlite};
use crate::pattern::mix;
use crate::rng::Rng;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// How long a transaction waits for another's lock, virtual time.
const BUSY: Duration = Duration::from_secs(60);
/// Rows of one transaction while a database is prepared.
const PREPARE_ROWS: u64 = 4096;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS items(\
    id INTEGER PRIMARY KEY, key INTEGER NOT NULL, value BLOB NOT NULL);\
    CREATE INDEX IF NOT EXISTS items_key ON items(key);";

impl SqlKind {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            SqlKind::Insert => "insert",
            SqlKind::Update => "update",
            SqlKind::Select => "select",
        }
    }
}

/// What a transaction moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes of values read.
    pub read: u64,
    /// Bytes of values written.
    pub written: u64,
    /// Rows whose value was wrong.
    pub wrong: u64,
}

/// An open database.
pub struct Db {
    connection: Connection,
    journal: Option<Journal>,
}

fn key(id: i64) -> i64 {
    (mix(id as u64) >> 1) as i64
}

/// The value of a row: its version, then one word repeated.
fn value(id: i64, version: u64, bytes: u64) -> Vec<u8> {
    let word = mix(mix(id as u64) ^ version).to_le_bytes();
    let mut content: Vec<u8> = version.to_le_bytes().to_vec();
    content.extend(word.iter().cycle().take(bytes.saturating_sub(8) as usize));
    content.truncate(bytes as usize);
    content
}

fn is_good(id: i64, content: &[u8]) -> bool {
    match content.get(..8).and_then(|head| head.try_into().ok()) {
        Some(head) => content == value(id, u64::from_le_bytes(head), content.len() as u64),
        None => true,
    }
}

fn rows(transaction: &Transaction) -> rusqlite::Result<i64> {
    transaction.query_row("SELECT ifnull(max(id), 0) FROM items", [], |row| row.get(0))
}

fn insert(transaction: &Transaction, first: i64, count: u64, bytes: u64) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare_cached("INSERT INTO items(id, key, value) VALUES(?1, ?2, ?3)")?;
    for id in first..first + count as i64 {
        statement.execute((id, key(id), value(id, 0, bytes)))?;
    }
    Ok(())
}

impl Db {
    /// Opens a database, and makes its table where there is none.
    pub fn open(path: &Path, journal: Journal) -> rusqlite::Result<Db> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let mut db = Db {
            connection,
            journal: None,
        };
        db.set_journal(journal)?;
        let tables: i64 = db.connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'items_key'",
            [],
            |row| row.get(0),
        )?;
        if tables == 0 {
            db.connection.execute_batch(SCHEMA)?;
        }
        Ok(db)
    }

    /// Whether a journal mode is in force.
    pub fn has_journal(&self, journal: Journal) -> bool {
        self.journal == Some(journal)
    }

    /// Switches to a journal mode.
    pub fn set_journal(&mut self, journal: Journal) -> rusqlite::Result<()> {
        let pragma = format!("PRAGMA journal_mode={}", journal.name());
        self.connection.query_row(&pragma, [], |_| Ok(()))?;
        self.journal = Some(journal);
        Ok(())
    }

    /// Closes it, with the work that SQLite leaves for the end.
    pub fn close(self) -> rusqlite::Result<()> {
        self.connection.close().map_err(|(_, error)| error)
    }

    /// Runs one transaction of a step.
    pub fn transaction(&mut self, step: &Sqlite, rng: &mut Rng) -> rusqlite::Result<Moved> {
        let behavior = match step.kind {
            SqlKind::Select => TransactionBehavior::Deferred,
            _ => TransactionBehavior::Immediate,
        };
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let last = rows(&transaction)?;
        let moved = match step.kind {
            SqlKind::Insert => {
                insert(&transaction, last + 1, step.rows, step.row_bytes)?;
                Moved {
                    written: step.rows * step.row_bytes,
                    ..Moved::default()
                }
            }
            SqlKind::Update => update(&transaction, step, last, rng)?,
            SqlKind::Select => select(&transaction, step, last, rng)?,
        };
        transaction.commit()?;
        Ok(moved)
    }
}

fn pick(last: i64, rng: &mut Rng) -> i64 {
    1 + rng.below(last as u64) as i64
}

/// The value of a row, checked.
fn read(transaction: &Transaction, id: i64, moved: &mut Moved) -> rusqlite::Result<Vec<u8>> {
    let mut found = transaction.prepare_cached("SELECT value FROM items WHERE key = ?1")?;
    let content: Vec<u8> = found.query_row([key(id)], |row| row.get(0))?;
    moved.read += content.len() as u64;
    moved.wrong += u64::from(!is_good(id, &content));
    Ok(content)
}

fn update(
    transaction: &Transaction,
    step: &Sqlite,
    last: i64,
    rng: &mut Rng,
) -> rusqlite::Result<Moved> {
    let mut moved = Moved::default();
    if last == 0 {
        return Ok(moved);
    }
    let mut write = transaction.prepare_cached("UPDATE items SET value = ?1 WHERE key = ?2")?;
    for _ in 0..step.rows {
        let id = pick(last, rng);
        let old = read(transaction, id, &mut moved)?;
        let version = old.get(..8).map_or(0, |head| {
            u64::from_le_bytes(head.try_into().unwrap_or_default())
        });
        write.execute((value(id, version.wrapping_add(1), step.row_bytes), key(id)))?;
        moved.written += step.row_bytes;
    }
    Ok(moved)
}

fn select(
    transaction: &Transaction,
    step: &Sqlite,
    last: i64,
    rng: &mut Rng,
) -> rusqlite::Result<Moved> {
    let mut moved = Moved::default();
    if last == 0 {
        return Ok(moved);
    }
    for _ in 0..step.rows {
        read(transaction, pick(last, rng), &mut moved)?;
    }
    Ok(moved)
}

/// Makes a database with rows. Nothing is synced: the caller syncs the file system.
pub fn prepare(path: &Path, count: u64, row_bytes: u64) -> rusqlite::Result<()> {
    let mut db = Db::open(path, Journal::Delete)?;
    db.connection.pragma_update(None, "synchronous", "OFF")?;
    let mut done = 0;
    while done < count {
        let some = PREPARE_ROWS.min(count - done);
        let transaction = db.connection.transaction()?;
        insert(&transaction, done as i64 + 1, some, row_bytes)?;
        transaction.commit()?;
        done += some;
    }
    db.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: SqlKind, rows: u64) -> Sqlite {
        Sqlite {
            file: "db".into(),
            kind,
            transactions: 1,
            rows,
            row_bytes: 100,
            journal: Journal::Truncate,
            think_s: 0.0,
        }
    }

    fn folder() -> tempdir::Dir {
        tempdir::Dir::new()
    }

    use crate::tempdir;

    #[test]
    fn rows_are_prepared_found_and_good() {
        let dir = folder();
        let path = dir.path().join("db");
        prepare(&path, 5000, 64).expect("prepare");
        let mut db = Db::open(&path, Journal::Wal).expect("open");
        let mut rng = Rng::new(1, "a", "t");
        let moved = db
            .transaction(&step(SqlKind::Select, 50), &mut rng)
            .expect("select");
        assert_eq!(
            moved,
            Moved {
                read: 50 * 64,
                written: 0,
                wrong: 0
            }
        );
    }

    #[test]
    fn inserts_and_updates_stay_checkable() {
        let dir = folder();
        let path = dir.path().join("db");
        let mut rng = Rng::new(1, "a", "t");
        for journal in [
            Journal::Delete,
            Journal::Truncate,
            Journal::Persist,
            Journal::Wal,
        ] {
            let mut db = Db::open(&path, journal).expect("open");
            let inserted = db
                .transaction(&step(SqlKind::Insert, 10), &mut rng)
                .expect("insert");
            assert_eq!(inserted.written, 1000);
            let updated = db
                .transaction(&step(SqlKind::Update, 5), &mut rng)
                .expect("update");
            assert_eq!((updated.written, updated.wrong), (500, 0), "{journal:?}");
            db.close().expect("close");
        }
        let db = Db::open(&path, Journal::Delete).expect("open");
        let count: i64 = db
            .connection
            .query_row("SELECT count(*) FROM items", [], |row| row.get(0))
            .expect("count");
        assert_eq!(count, 40);
    }

    #[test]
    fn a_wrong_value_is_noticed() {
        let dir = folder();
        let path = dir.path().join("db");
        prepare(&path, 3, 64).expect("prepare");
        let mut db = Db::open(&path, Journal::Delete).expect("open");
        db.connection
            .execute("UPDATE items SET value = zeroblob(64)", [])
            .expect("spoil");
        let mut rng = Rng::new(1, "a", "t");
        let moved = db
            .transaction(&step(SqlKind::Select, 3), &mut rng)
            .expect("select");
        assert_eq!(moved.wrong, 3);
    }

    #[test]
    fn two_preparations_are_equal_to_the_byte() {
        let dir = folder();
        let read = |name: &str| {
            let path = dir.path().join(name);
            prepare(&path, 1000, 200).expect("prepare");
            std::fs::read(path).expect("read")
        };
        assert_eq!(read("a"), read("b"));
    }
}
