// SPDX-License-Identifier: GPL-2.0-only
//! weston, headless: a compositor that tells nobody who has the focus.

use crate::harness::{self, Session};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[test]
#[ignore = "needs weston"]
fn a_compositor_that_cannot_tell_is_named_and_then_costs_nothing() {
    if harness::skipped(&["weston"]) {
        return;
    }
    let mut session = Session::new();
    session.set("WAYLAND_DISPLAY", "wayland-weston");
    session.start(&[
        "weston",
        "--backend=headless-backend.so",
        "--socket=wayland-weston",
    ]);
    let socket = session.path("wayland-weston");
    harness::until("weston", || UnixStream::connect(&socket).ok());
    let agent = session.agent(&[]);
    let report = agent.next().1;
    assert_eq!(report["report"], "cannot-tell", "{report}");
    assert!(report.to_string().contains("weston"), "{report}");
    harness::idles(&agent, Duration::from_secs(10));
}
