// SPDX-License-Identifier: GPL-2.0-only
//! A scope for the processes of a window, where a plain window manager has all apps in one session's scope.
//!
//! The user manager makes it (StartTransientUnit with PIDs) and moves the processes; children inherit it. Only the
//! window's process and its descendants that are still in the session's scope are moved: never the window manager.

use crate::fault::Fault;
use crate::resolve::Resolver;
use crate::window::Window;
use fasttrack_detector::units;
use std::time::Duration;

/// Longest wait for the user manager. A move takes some milliseconds; longer, and the focus would be late for all.
const WAIT_MOST: Duration = Duration::from_millis(500);
/// Most processes that are moved at once.
const PROCESSES_MOST: usize = 512;

/// Splits a session's scope.
pub trait Scoper: Send + Sync {
    /// Puts the processes of a window into a scope of their own.
    fn split(&self, resolver: &Resolver, window: &Window) -> Result<(), Fault>;
}

/// The user manager, over the session's bus.
pub struct UserManager;

impl Scoper for UserManager {
    fn split(&self, resolver: &Resolver, window: &Window) -> Result<(), Fault> {
        let name = name(window);
        let pids = family(resolver, window.pid);
        let runtime = crate::bus::runtime()?;
        let made = async { tokio::time::timeout(WAIT_MOST, start(&name, pids)).await };
        match runtime.block_on(made) {
            Ok(result) => result,
            Err(_) => Err(Fault::new("the user manager does not answer")),
        }
    }
}

/// A scope's name, by the conventions of systemd.
fn name(window: &Window) -> String {
    let id = match window.id.as_str() {
        "" => "unknown",
        id => id,
    };
    format!("app-fasttrack-{}-{}.scope", units::escape(id), window.pid)
}

/// The process and its descendants in the same group.
fn family(resolver: &Resolver, pid: u32) -> Vec<u32> {
    let place = resolver.place();
    let cgroup = place.cgroup_of(pid).unwrap_or_default();
    let mut all = place.processes(&cgroup);
    all.retain(|one| place.descends(*one, pid));
    all.truncate(PROCESSES_MOST);
    all
}

/// The manager sends its signals to those who have subscribed.
async fn subscribe(manager: &zbus::Proxy<'_>) -> Result<(), Fault> {
    crate::bus::call_running(manager, "Subscribe", &()).await
}

async fn start(name: &str, pids: Vec<u32>) -> Result<(), Fault> {
    use futures_util::StreamExt;
    use zbus::zvariant::{OwnedObjectPath, Value};
    let bus = zbus::Connection::session().await?;
    let manager = crate::bus::user_manager(&bus).await?;
    // Asked for before the start, or a quick job would end unseen.
    let mut ended = manager.receive_signal("JobRemoved").await?;
    subscribe(&manager).await?;
    let properties: Vec<(&str, Value)> = vec![
        ("PIDs", Value::from(pids)),
        ("Slice", Value::from("app.slice")),
        ("CollectMode", Value::from("inactive-or-failed")),
    ];
    let others: Vec<(&str, Vec<(&str, Value)>)> = Vec::new();
    let _job: OwnedObjectPath = crate::bus::call_running(
        &manager,
        "StartTransientUnit",
        &(name, "fail", properties, others),
    )
    .await?;
    while let Some(message) = ended.next().await {
        let body = message.body();
        let (_, _, unit, result): (u32, zbus::zvariant::ObjectPath, &str, &str) =
            body.deserialize()?;
        if unit == name {
            return match result {
                "done" => Ok(()),
                other => Err(Fault(format!("the user manager says: {other}"))),
            };
        }
    }
    Err(Fault::new("the session's bus has closed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakePlace;

    #[test]
    fn descendants_in_the_same_group_move_and_nobody_else() {
        let fake = FakePlace::new();
        let session = "/user.slice/user-1.slice/session-2.scope";
        fake.group(session, 10);
        fake.process(20, session, 10);
        fake.process(21, session, 20);
        fake.process(22, session, 21);
        fake.process(30, session, 10);
        fake.app("app-x-1.scope", 0);
        fake.process(23, "/elsewhere.scope", 20);
        assert_eq!(family(&fake.resolver(), 20), [20, 21, 22]);
    }

    #[test]
    fn the_name_follows_systemds_conventions() {
        let name = name(&Window::of(77, "org.x-y"));
        assert_eq!(name, "app-fasttrack-org.x\\x2dy-77.scope");
        assert_eq!(units::id_of(&name).as_deref(), Some("org.x-y"));
    }
}
