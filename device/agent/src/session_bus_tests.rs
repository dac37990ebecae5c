// SPDX-License-Identifier: GPL-2.0-only
//! A bus of the test's own, with stand-ins for who is on a session's.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use super::*;
use crate::testing::bus::Bus;
use crate::testing::FakePlace;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Mutter's modes: on, standby, suspend, off; and -1 where it does not know.
struct Mutter(i32);

#[zbus::interface(name = "org.gnome.Mutter.DisplayConfig")]
impl Mutter {
    #[zbus(property)]
    fn power_save_mode(&self) -> i32 {
        self.0
    }
}

/// Mutter sets a mode, and says so.
async fn set(mutter: &Connection, mode: i32) {
    let object = mutter.object_server().interface::<_, Mutter>(MUTTER_PATH);
    let object = object.await.expect("there");
    object.get_mut().await.0 = mode;
    let emitter = object.signal_emitter();
    let told = object.get().await.power_save_mode_changed(emitter).await;
    told.expect("told");
}

/// What is said next under this name of whether somebody is there, not waited for without end.
async fn away(from: &Receiver<Event>, name: &str) -> Option<bool> {
    for _ in 0..1000 {
        match from.try_recv() {
            Ok(Event::Away {
                source,
                why: Nobody::Locked,
                on,
            }) if source == name => return Some(on),
            Ok(_) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    None
}

#[test]
fn mutters_screen_that_is_off_is_as_one_that_is_locked() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let (to, from) = sync_channel(64);
    let out = Out::new("session-bus", FakePlace::new().resolver(), to);
    let env = Env::default();
    bus::runtime().expect("a runtime").block_on(async {
        let mutter = bus.connect().await;
        let server = mutter.object_server();
        server.at(MUTTER_PATH, Mutter(3)).await.expect("served");
        mutter.request_name(MUTTER).await.expect("its name");
        let changes = async {
            // It was off before the agent came.
            assert_eq!(away(&from, "screen").await, Some(true));
            for (mode, expected) in [(0, false), (1, true), (0, false), (3, true), (-1, false)] {
                set(&mutter, mode).await;
                assert_eq!(away(&from, "screen").await, Some(expected), "{mode}");
            }
        };
        let (listens, asks) = (bus.connect().await, bus.connect().await);
        let followed = follow(&listens, &asks, crate::choose::all, &env, &out);
        tokio::select! {
            end = followed => panic!("{end:?}"),
            () = changes => {}
        }
    });
}

/// The user manager, with units that it has forgotten as soon as it is asked for them.
struct Manager(Arc<Notify>);

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) {
        self.0.notify_one();
    }

    fn get_unit(&self, name: &str) -> zbus::fdo::Result<OwnedObjectPath> {
        Err(zbus::fdo::Error::Failed(format!("there is no {name}")))
    }
}

#[test]
fn many_new_units_at_once_stop_nothing() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let (to, from) = sync_channel(64);
    let out = Out::new("session-bus", FakePlace::new().resolver(), to);
    let env = Env::default();
    bus::runtime().expect("a runtime").block_on(async {
        let manager = bus.connect().await;
        let path = "/org/freedesktop/systemd1";
        let server = manager.object_server();
        let subscribed = Arc::new(Notify::new());
        server
            .at(path, Manager(subscribed.clone()))
            .await
            .expect("served");
        manager.request_name(SYSTEMD).await.expect("its name");
        let object = OwnedObjectPath::try_from("/u").expect("a path");
        let says = async {
            subscribed.notified().await;
            // As the manager does when it is reloaded.
            for number in 0..1000 {
                let unit = (format!("app-x-{number}.scope"), &object);
                let sent = manager.emit_signal(None::<&str>, path, MANAGER, "UnitNew", &unit);
                sent.await.expect("sent");
            }
            let locks = manager.emit_signal(None::<&str>, "/", SAVERS[0], "ActiveChanged", &true);
            locks.await.expect("sent");
            assert_eq!(away(&from, "session-bus").await, Some(true));
        };
        let (listens, asks) = (bus.connect().await, bus.connect().await);
        let followed = follow(&listens, &asks, crate::choose::all, &env, &out);
        tokio::select! {
            end = followed => panic!("{end:?}"),
            () = says => {}
        }
    });
}

#[test]
fn a_screen_saver_that_ends_while_it_covers_the_screen_covers_it_no_more() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let (to, from) = sync_channel(64);
    let out = Out::new("session-bus", FakePlace::new().resolver(), to);
    let env = Env::default();
    bus::runtime().expect("a runtime").block_on(async {
        let (saver, manager) = (bus.connect().await, bus.connect().await);
        saver.request_name(SAVERS[2]).await.expect("its name");
        let subscribed = Arc::new(Notify::new());
        let server = manager.object_server();
        let object = Manager(subscribed.clone());
        server
            .at("/org/freedesktop/systemd1", object)
            .await
            .expect("served");
        manager.request_name(SYSTEMD).await.expect("its name");
        let says = async {
            subscribed.notified().await;
            for covers in [true, false, true] {
                let sent =
                    saver.emit_signal(None::<&str>, "/", SAVERS[2], "ActiveChanged", &covers);
                sent.await.expect("sent");
                assert_eq!(away(&from, "session-bus").await, Some(covers));
            }
            // Another of its names: as KDE's has two.
            let sent = saver.emit_signal(None::<&str>, "/", SAVERS[1], "ActiveChanged", &true);
            sent.await.expect("sent");
            assert_eq!(away(&from, "session-bus").await, Some(true));
            saver.close().await.expect("closed");
            assert_eq!(away(&from, "session-bus").await, Some(false));
        };
        let (listens, asks) = (bus.connect().await, bus.connect().await);
        tokio::select! {
            end = follow(&listens, &asks, crate::choose::all, &env, &out) => panic!("{end:?}"),
            () = says => {}
        }
    });
}
