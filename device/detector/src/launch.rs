// SPDX-License-Identifier: GPL-2.0-only
//! The launch of one app.

use crate::event::Time;
use crate::policy::{LAUNCH_MOST, LAUNCH_SETTLE};
use crate::report::AppRef;

/// An app that begins.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Who.
    pub app: AppRef,
    /// Since when.
    pub since: Time,
    /// Its first window, or its last wait for storage after that.
    settled_from: Option<Time>,
}

impl Launch {
    /// An app begins now.
    pub fn new(app: AppRef, now: Time) -> Launch {
        Launch {
            app,
            since: now,
            settled_from: None,
        }
    }

    /// It has shown a window.
    pub fn window(&mut self, now: Time) {
        self.settled_from.get_or_insert(now);
    }

    /// Whether it has shown a window, so that its waits count.
    pub fn is_settling(&self) -> bool {
        self.settled_from.is_some()
    }

    /// It waits for storage: what it shows next is not there yet.
    pub fn wait(&mut self, now: Time) {
        if let Some(from) = &mut self.settled_from {
            *from = now.max(*from);
        }
    }

    /// When it is no longer launching.
    pub fn end(&self) -> Time {
        let most = self.since + LAUNCH_MOST;
        self.settled_from
            .map_or(most, |from| most.min(from + LAUNCH_SETTLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn launch() -> Launch {
        let app = AppRef {
            cgroup: "/a".to_string(),
            inode: 1,
            id: String::new(),
            pid: 0,
        };
        Launch::new(app, Duration::from_secs(100))
    }

    #[test]
    fn without_a_window_it_takes_the_longest_time() {
        assert_eq!(launch().end(), Duration::from_secs(110));
    }

    #[test]
    fn a_window_and_two_seconds_without_a_wait_end_it() {
        let mut launch = launch();
        launch.wait(Duration::from_secs(101));
        launch.window(Duration::from_secs(102));
        assert_eq!(launch.end(), Duration::from_secs(104));
        launch.wait(Duration::from_secs(103));
        assert_eq!(launch.end(), Duration::from_secs(105));
        launch.window(Duration::from_secs(104));
        assert_eq!(launch.end(), Duration::from_secs(105));
        launch.wait(Duration::from_secs(109));
        assert_eq!(launch.end(), Duration::from_secs(110));
    }
}
