// SPDX-License-Identifier: GPL-2.0-only
//! Names that tell nothing of a person.
//!
//! A path's segments and a task's name become keyed hashes (HMAC-SHA-256, 8 bytes in hexadecimal). Clear remain:
//! directories that every system has, endings that say a type and no more, and names of the kernel's own tasks. The key
//! is random and this installation's, so equal names are equal in its traces, and cannot be guessed without the key.

use crate::file_type::{extension, known_extension};
use crate::identity::{hex, Identity};
use fasttrack_trace_log::Record;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Segments that every system has.
const KNOWN: [&str; 44] = [
    "data",
    "app",
    "user",
    "user_de",
    "media",
    "system",
    "vendor",
    "product",
    "apex",
    "cache",
    "code_cache",
    "databases",
    "files",
    "shared_prefs",
    "no_backup",
    "lib",
    "lib64",
    "bin",
    "sbin",
    "usr",
    "etc",
    "var",
    "log",
    "tmp",
    "run",
    "opt",
    "srv",
    "home",
    "root",
    "boot",
    "proc",
    "sys",
    "dev",
    "mnt",
    "share",
    "spool",
    "local",
    ".cache",
    ".config",
    ".local",
    "misc",
    "0",
    "lost+found",
    "DCIM",
];

/// Bytes of a hash that are kept: 64 bits tell a million names apart.
const KEPT: usize = 8;

/// Hashes names, or leaves them.
pub struct Privacy {
    key: Option<[u8; 32]>,
}

impl Privacy {
    /// Hashes with this key.
    pub fn hashed(identity: &Identity) -> Privacy {
        Privacy {
            key: Some(identity.key),
        }
    }

    /// Leaves names as they are.
    pub fn clear() -> Privacy {
        Privacy { key: None }
    }

    /// Names are left as they are.
    pub fn is_clear(&self) -> bool {
        self.key.is_none()
    }

    /// An id of the key, which does not tell it.
    pub fn key_id(&self) -> Option<String> {
        self.key.map(|key| hash(&key, "key id"))
    }

    /// Hides a record's names.
    pub fn apply(&self, record: &mut Record) {
        let Some(key) = &self.key else { return };
        match record {
            Record::Task(task) if task.kernel_thread != Some(true) => {
                task.name = task.name.as_deref().map(|name| hash(key, name));
            }
            Record::File(file) => {
                file.path = file.path.as_deref().map(|path| hidden(key, path));
            }
            _ => {}
        }
    }
}

fn hash(key: &[u8], text: &str) -> String {
    // A key of any length is a key.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new();
    };
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes()[..KEPT])
}

fn hidden(key: &[u8], path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(|part| segment(key, part)).collect();
    parts.join("/")
}

fn segment(key: &[u8], part: &str) -> String {
    if part.is_empty() || KNOWN.contains(&part) {
        return part.to_string();
    }
    match extension(part).filter(|ending| known_extension(ending)) {
        Some(ending) => format!(
            "{}.{ending}",
            hash(key, &part[..part.len() - ending.len() - 1])
        ),
        None => hash(key, part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_trace_log::{File, Task};

    fn path(privacy: &Privacy, path: &str) -> String {
        let mut record = Record::from(File {
            path: Some(path.to_string()),
            ..File::default()
        });
        privacy.apply(&mut record);
        match record {
            Record::File(file) => file.path.expect("a path"),
            other => panic!("{other:?}"),
        }
    }

    fn privacy(byte: u8) -> Privacy {
        Privacy::hashed(&Identity {
            install: [0; 16],
            key: [byte; 32],
        })
    }

    #[test]
    fn paths_keep_what_every_system_has() {
        let one = privacy(1);
        let found = path(&one, "/data/app/org.bank/databases/accounts.db");
        let parts: Vec<&str> = found.split('/').collect();
        assert_eq!(parts[..3], ["", "data", "app"]);
        assert_eq!((parts[3].len(), parts[4]), (16, "databases"));
        assert!(
            parts[5].ends_with(".db") && !found.contains("bank") && !found.contains("accounts")
        );
        // Equal names are equal, under this key alone.
        assert_eq!(
            found,
            path(&one, "/data/app/org.bank/databases/accounts.db")
        );
        assert_ne!(
            found,
            path(&privacy(2), "/data/app/org.bank/databases/accounts.db")
        );
    }

    /// An ending may be a name.
    #[test]
    fn unknown_endings_are_hashed() {
        let found = path(&privacy(1), "/home/letter.miller");
        assert!(!found.contains("miller") && found.starts_with("/home/"));
        assert!(!path(&privacy(1), "/home/LETTER.TXT").contains("LETTER"));
    }

    #[test]
    fn tasks_of_the_kernel_keep_their_names() {
        let task = |kernel| {
            let mut record = Record::from(Task {
                name: Some("kworker/0:1".to_string()),
                kernel_thread: Some(kernel),
                ..Task::default()
            });
            privacy(1).apply(&mut record);
            record
        };
        assert!(format!("{:?}", task(true)).contains("kworker"));
        assert!(!format!("{:?}", task(false)).contains("kworker"));
    }

    #[test]
    fn clear_names_are_left() {
        assert_eq!(
            path(&Privacy::clear(), "/home/a/letter.txt"),
            "/home/a/letter.txt"
        );
        assert!(Privacy::clear().key_id().is_none() && privacy(1).key_id().is_some());
    }
}
