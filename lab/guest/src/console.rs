// SPDX-License-Identifier: GPL-2.0-only
//! What the guest program says on the console.

use std::io::{self, Write};

/// Prints a line on the console.
pub fn say(text: &str) {
    let mut out = io::stdout().lock();
    // A console that is gone leaves nobody to tell.
    let _ = writeln!(out, "fasttrack-guest: {text}").and_then(|()| out.flush());
}
