// SPDX-License-Identifier: GPL-2.0-only
//! FastTrack's own events: classes of bios, and waits that it made.

use super::event::Event;
use super::{Joiner, Origin, ORIGINS_KEPT};
use fasttrack_trace_log::{Class, Record, Time, Wait, WaitKind};

impl Joiner {
    pub(super) fn fasttrack(&mut self, name: &str, event: &Event<'_>, out: &mut Vec<Record>) {
        let kind = match name {
            "bio" => return self.origin(event),
            "hold" => WaitKind::HOLD,
            "promote" => WaitKind::PROMOTE,
            "pause" => WaitKind::PAUSE,
            "protect" => WaitKind::PROTECT,
            _ => return,
        };
        let inode = event.dev("dev").zip(event.number("ino"));
        let file = inode.and_then(|(dev, inode)| self.names.file(dev, inode, event.time));
        let until = event.number("wake_ns");
        let duration = event.number("paused_ns").or(event.number("waited_ns"));
        // Who has sent the request that is held does not wait for the hold.
        let waits = |pid: &u64| *pid != 0 && kind != WaitKind::HOLD;
        let pid = event.number("pid").filter(waits);
        out.push(Record::from(Wait {
            time: Time(event.time),
            kind: Some(kind),
            task: pid.map(|pid| self.names.task(pid, event.time)),
            duration_ns: duration.or(until.map(|until| until.saturating_sub(event.time))),
            dev: event.dev("dev"),
            file,
            index: event.number("index"),
            sector: event.number("sector"),
            uid: event.number("uid").map(signed_uid),
            class: event.number("class").map(Class),
            thread: pid.filter(|_| kind == WaitKind::PAUSE),
            ..Wait::default()
        }));
    }

    /// Comes before the bio's own event.
    fn origin(&mut self, event: &Event<'_>) {
        let (Some(dev), Some(sector)) = (event.dev("dev"), event.number("sector")) else {
            return;
        };
        if self.origins.len() >= ORIGINS_KEPT {
            self.origins.clear();
        }
        let origin = Origin {
            class: event.number("class").unwrap_or(0),
            cause: event.number("cause").unwrap_or(0),
            app_uid: event.number("uid").map_or(-1, signed_uid),
        };
        self.origins.insert((dev, sector), origin);
    }

    pub(super) fn throttled(&mut self, event: &Event<'_>, out: &mut Vec<Record>) {
        // In ms; 0 or less is no wait.
        let Some(pause) = event.signed("pause").filter(|pause| *pause > 0) else {
            return;
        };
        let duration = (pause as u64).saturating_mul(1_000_000);
        out.push(Record::from(Wait {
            time: Time(event.time.saturating_add(duration)),
            kind: Some(WaitKind::DIRTY_THROTTLE),
            task: Some(self.names.task(event.pid(), event.time)),
            duration_ns: Some(duration),
            dev: event
                .text("bdi")
                .and_then(|name| super::segments::dev_of(&name)),
            thread: event.thread(),
            ..Wait::default()
        }));
    }
}

/// The kernel says `(u32)-1` for nobody.
fn signed_uid(uid: u64) -> i64 {
    i64::from(uid as u32 as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::event::WideEvent;
    use crate::join::Nothing;

    #[test]
    fn a_hold_is_of_an_app_and_no_wait_of_its_task() {
        let fields = [
            ("dev", 8 << 20),
            ("uid", 1000),
            ("pid", 7),
            ("queued", 3),
            ("in_flight", 0),
            ("wake_ns", 150),
        ];
        let event = WideEvent::new("fasttrack_hold", &fields);
        let mut out = Vec::new();
        Joiner::new(Box::new(Nothing), 1).fasttrack("hold", &event.at(100), &mut out);
        let [Record::Wait(wait)] = out.as_slice() else {
            panic!("{out:?}");
        };
        assert_eq!(wait.kind, Some(WaitKind::HOLD));
        assert_eq!((wait.uid, wait.duration_ns), (Some(1000), Some(50)));
        assert_eq!((wait.task, wait.thread), (None, None));
    }
}
