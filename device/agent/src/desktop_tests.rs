// SPDX-License-Identifier: GPL-2.0-only
//! The desktop's inhibitors on a bus of the test's own, with the two services as they answer.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use super::*;
use crate::event::Event;
use crate::testing::bus::Bus;
use crate::testing::FakePlace;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::{Arc, Mutex};

struct Manager;

#[zbus::interface(name = "org.gnome.SessionManager")]
impl Manager {
    fn get_inhibitors(&self) -> Vec<OwnedObjectPath> {
        let path = |number: usize| format!("/i{number}").try_into().expect("a path");
        // The last one has ended meanwhile.
        (0..4).map(path).collect()
    }
}

struct Inhibitor(&'static str, u32);

#[zbus::interface(name = "org.gnome.SessionManager.Inhibitor")]
impl Inhibitor {
    fn get_flags(&self) -> u32 {
        self.1
    }

    fn get_app_id(&self) -> &str {
        self.0
    }
}

struct PolicyAgent(Arc<Mutex<Vec<&'static str>>>);

#[zbus::interface(name = "org.kde.Solid.PowerManagement.PolicyAgent")]
impl PolicyAgent {
    fn list_inhibitions(&self) -> Vec<(String, String)> {
        let all = self.0.lock().expect("no panic");
        let all = all.iter();
        all.map(|who| (who.to_string(), "plays".to_string()))
            .collect()
    }
}

struct GameMode;

#[zbus::interface(name = "com.feralinteractive.GameMode")]
impl GameMode {
    fn list_games(&self) -> Vec<(i32, OwnedObjectPath)> {
        // One of a game, one that has ended, and one that is none.
        let path = || "/g".try_into().expect("a path");
        vec![(77, path()), (78, path()), (-1, path())]
    }
}

fn told(from: &Receiver<Event>) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    while let Ok(event) = from.try_recv() {
        match event {
            Event::Sense { app, sense, on, .. } => {
                assert_eq!(sense == Sense::Game, app.id == "org.example.Game");
                all.push((app.id, on));
            }
            other => panic!("{other:?}"),
        }
    }
    all
}

#[test]
fn signals_are_of_one_or_of_none() {
    let of = Desktop::of_signal;
    assert_eq!(
        of("org.gnome.SessionManager", "InhibitorAdded"),
        Some(Desktop::Gnome)
    );
    assert_eq!(of("org.gnome.SessionManager", "ClientAdded"), None);
    assert_eq!(of("org.kde.KWin", "InhibitionsChanged"), None);
    for one in ALL {
        assert_eq!(one.rules().expect("rules").len(), one.signals().len());
    }
}

#[test]
fn apps_that_keep_the_screen_awake_are_told_and_told_off() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let fake = FakePlace::new();
    fake.app("app-gnome-org.example.Video-1.scope", 0);
    fake.app("app-gnome-org.example.Backup-2.scope", 0);
    fake.app("app-org.example.Show-3.scope", 0);
    fake.app("app-steam-org.example.Game-4.scope", 77);
    let (to, from) = sync_channel(64);
    let out = Out::new("session-bus", fake.resolver(), to);
    let names = Arc::new(Mutex::new(vec!["org.example.Show", "Nobody's"]));
    crate::bus::runtime().expect("a runtime").block_on(async {
        let build =
            || zbus::connection::Builder::address(bus.address.as_str()).expect("an address");
        let here = build().build().await.expect("a connection");
        let mut named = Named::default();
        for desktop in ALL {
            let nobody = named.look(desktop, &here, &out).await;
            nobody.expect("none runs, and that is no fault");
        }
        assert_eq!(told(&from), []);
        let (gnome, kde) = (Desktop::Gnome, Desktop::Kde);
        let there = build()
            .serve_at(gnome.path(), Manager)
            .and_then(|it| it.serve_at("/i0", Inhibitor("org.example.Video.desktop", 12)))
            .and_then(|it| it.serve_at("/i1", Inhibitor("org.example.Backup", 4)))
            .and_then(|it| it.serve_at("/i2", Inhibitor("org.example.Unknown", 8)))
            .and_then(|it| it.serve_at(kde.path(), PolicyAgent(names.clone())))
            .and_then(|it| it.serve_at(Desktop::GameMode.path(), GameMode))
            .and_then(|it| it.name(gnome.name()))
            .and_then(|it| it.name(kde.name()))
            .and_then(|it| it.name(Desktop::GameMode.name()))
            .expect("services");
        let there = there.build().await.expect("services");
        for desktop in ALL {
            named.look(desktop, &here, &out).await.expect("asked");
        }
        let on = |id: &str| (id.to_string(), true);
        assert_eq!(
            told(&from),
            [
                on("org.example.Video"),
                on("org.example.Show"),
                on("org.example.Game")
            ]
        );
        names.lock().expect("no panic").clear();
        named.look(kde, &here, &out).await.expect("asked");
        assert_eq!(told(&from), [("org.example.Show".to_string(), false)]);
        there.release_name(gnome.name()).await.expect("released");
        named.look(gnome, &here, &out).await.expect("asked");
        assert_eq!(told(&from), [("org.example.Video".to_string(), false)]);
    });
}
