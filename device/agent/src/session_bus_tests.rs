// SPDX-License-Identifier: GPL-2.0-only
//! Mutter's screen, on a bus of the test's own with a stand-in for Mutter.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use super::*;
use crate::testing::bus::Bus;
use crate::testing::FakePlace;
use std::sync::mpsc::{sync_channel, Receiver};
use std::time::Duration;

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

/// What is said of the screen next, not waited for without end.
async fn dark(from: &Receiver<Event>) -> Option<bool> {
    for _ in 0..1000 {
        match from.try_recv() {
            Ok(Event::Away {
                source: "screen",
                why: Nobody::Locked,
                on,
            }) => return Some(on),
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
            assert_eq!(dark(&from).await, Some(true));
            for (mode, expected) in [(0, false), (1, true), (0, false), (3, true), (-1, false)] {
                set(&mutter, mode).await;
                assert_eq!(dark(&from).await, Some(expected), "{mode}");
            }
        };
        tokio::select! {
            end = follow(bus.connect().await, crate::choose::all, &env, &out) => panic!("{end:?}"),
            () = changes => {}
        }
    });
}
