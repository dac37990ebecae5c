// SPDX-License-Identifier: GPL-2.0-only
//! A directory for a test, removed with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fasttrack-guest-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Dir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
