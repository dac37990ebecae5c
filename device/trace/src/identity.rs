// SPDX-License-Identifier: GPL-2.0-only
//! The random id of this installation, and the key that hashes names. Both can be made anew; then nothing old and
//! nothing new are known to be of one device.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Where they are kept.
pub const STATE: &str = "/var/lib/fasttrack-trace";

/// Bytes of the key.
const KEY: usize = 32;

/// Bytes of the id.
const ID: usize = 16;

/// Id and key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The installation's id.
    pub install: [u8; ID],
    /// The key of names.
    pub key: [u8; KEY],
}

/// Random bytes of the kernel's.
///
/// # Errors
/// There is no /dev/urandom.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Identity {
    /// New ones, kept nowhere.
    ///
    /// # Errors
    /// There is no /dev/urandom.
    pub fn random() -> io::Result<Identity> {
        Ok(Identity {
            install: random()?,
            key: random()?,
        })
    }

    /// Those in a directory, or new ones if there are none or `rotate` asks for it.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn load(directory: &Path, rotate: bool) -> io::Result<Identity> {
        let path = directory.join("identity");
        if !rotate {
            if let Some(found) = read(&path) {
                return Ok(found);
            }
        }
        let made = Identity::random()?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let partial = directory.join("identity.new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&partial)?;
        file.write_all(&made.install)?;
        file.write_all(&made.key)?;
        file.sync_all()?;
        fs::rename(&partial, &path)?;
        Ok(made)
    }
}

fn read(path: &Path) -> Option<Identity> {
    let bytes = fs::read(path).ok()?;
    let (install, key) = bytes.split_at_checked(ID)?;
    Some(Identity {
        install: install.try_into().ok()?,
        key: key.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_kept_until_it_is_made_anew() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let folder = dir.path().join("state");
        let first = Identity::load(&folder, false).expect("made");
        assert!(Identity::load(&folder, false).expect("read") == first);
        let next = Identity::load(&folder, true).expect("made anew");
        assert!(next.install != first.install && next.key != first.key);
        let mode = fs::metadata(folder.join("identity")).expect("a file");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }
}
