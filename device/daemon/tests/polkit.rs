// SPDX-License-Identifier: GPL-2.0-only
//! What polkit grants and refuses, with an authority of the test's on a bus of its own.

mod common;

use common::{block_on, Bus};
use fasttrack_bus::ACTION;
use fasttrackd::polkit::Polkit;
use futures_util::stream::FuturesUnordered;
use futures_util::StreamExt;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zbus::zvariant::OwnedValue;
use zbus::Connection;

const USER: u32 = 1000;

/// What it was asked: kind and name of the subject, the action, flags.
type Asked = Arc<Mutex<Vec<(String, String, String, u32)>>>;

/// An authority that grants what it is told to.
struct Authority {
    grants: bool,
    asked: Asked,
}

#[zbus::interface(name = "org.freedesktop.PolicyKit1.Authority")]
impl Authority {
    #[zbus(out_args("is_authorized", "is_challenge", "details"))]
    fn check_authorization(
        &self,
        subject: (String, HashMap<String, OwnedValue>),
        action: String,
        _details: HashMap<String, String>,
        flags: u32,
        _cancellation: String,
    ) -> (bool, bool, HashMap<String, String>) {
        let name = subject.1.get("name").expect("a name");
        let name = <&str>::try_from(name).expect("text").to_string();
        let asked = (subject.0, name, action, flags);
        self.asked.lock().expect("no panic").push(asked);
        (self.grants, !self.grants, HashMap::new())
    }
}

async fn authority(bus: &Bus, grants: bool) -> (Connection, Asked) {
    let asked = Asked::default();
    let object = Authority {
        grants,
        asked: asked.clone(),
    };
    (serve(bus, object).await, asked)
}

async fn serve(bus: &Bus, object: impl zbus::object_server::Interface) -> Connection {
    let connection = bus.connect().await;
    let server = connection.object_server();
    let path = "/org/freedesktop/PolicyKit1/Authority";
    server.at(path, object).await.expect("an object");
    let name = "org.freedesktop.PolicyKit1";
    connection.request_name(name).await.expect("a name");
    connection
}

/// Cancellation ids of questions, in order, and whether they were cancelled.
type Open = Arc<Mutex<Vec<(String, bool)>>>;

/// An authority whose agent never answers.
struct Silent(Open);

#[zbus::interface(name = "org.freedesktop.PolicyKit1.Authority")]
impl Silent {
    #[zbus(out_args("is_authorized", "is_challenge", "details"))]
    async fn check_authorization(
        &self,
        _subject: (String, HashMap<String, OwnedValue>),
        _action: String,
        _details: HashMap<String, String>,
        _flags: u32,
        cancellation: String,
    ) -> (bool, bool, HashMap<String, String>) {
        self.0.lock().expect("no panic").push((cancellation, false));
        std::future::pending().await
    }

    async fn cancel_check_authorization(&self, cancellation: String) {
        let mut open = self.0.lock().expect("no panic");
        let one = open.iter_mut().find(|(id, _)| *id == cancellation);
        one.expect("asked").1 = true;
    }
}

#[test]
fn who_is_granted_may_and_who_is_refused_is_told_the_way_out() {
    for grants in [true, false] {
        block_on(async {
            let Some(bus) = Bus::start() else { return };
            let (_authority, asked) = authority(&bus, grants).await;
            let connection = bus.connect().await;
            let polkit = Polkit::default();
            let answer = polkit.may(&connection, ":1.99", USER, ACTION).await;
            // A person may be asked for a password: flag 1.
            let expected = (
                "system-bus-name".to_string(),
                ":1.99".to_string(),
                ACTION.to_string(),
                1,
            );
            assert_eq!(*asked.lock().expect("no panic"), [expected]);
            match grants {
                true => assert_eq!(answer, Ok(())),
                false => {
                    let why = answer.expect_err("refused");
                    assert!(
                        why.contains("does not allow") && why.contains(ACTION),
                        "{why}"
                    );
                }
            }
        });
    }
}

#[test]
fn without_an_authority_root_alone_may() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let connection = bus.connect().await;
        let polkit = Polkit::default();
        let root = polkit.may(&connection, ":1.99", 0, ACTION).await;
        assert_eq!(root, Ok(()));
        let why = polkit.may(&connection, ":1.99", USER, ACTION).await;
        let why = why.expect_err("nobody to ask");
        assert!(
            why.starts_with("polkit cannot be asked, so root alone"),
            "{why}"
        );
    });
}

#[test]
fn root_is_not_asked_about() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let (_authority, asked) = authority(&bus, false).await;
        let connection = bus.connect().await;
        let root = Polkit::default().may(&connection, ":1.99", 0, ACTION).await;
        assert_eq!(root, Ok(()));
        assert!(asked.lock().expect("no panic").is_empty());
    });
}

#[test]
fn few_questions_are_open_however_many_ask() {
    // One user who asks again and again, and many users.
    for (users, most) in [(1_u32, 1), (200, 8)] {
        block_on(async {
            let Some(bus) = Bus::start() else { return };
            let open = Open::default();
            let _authority = serve(&bus, Silent(open.clone())).await;
            let connection = bus.connect().await;
            let polkit = Polkit::default();
            let may = |number| polkit.may(&connection, ":1.99", USER + number % users, ACTION);
            let mut answers: FuturesUnordered<_> = (0..200).map(may).collect();
            let early: Vec<_> = answers.by_ref().take(200 - most).collect().await;
            let busy = |answer: &Result<(), String>| {
                let why = answer.as_ref().expect_err("no answer");
                why.contains("busy")
            };
            assert!(early.iter().all(busy), "{early:?}");
            while open.lock().expect("no panic").len() < most {
                let more = tokio::time::timeout(Duration::from_millis(5), answers.next()).await;
                assert!(more.is_err(), "{more:?}");
            }
            assert_eq!(open.lock().expect("no panic").len(), most);
        });
    }
}

#[test]
fn a_question_that_nobody_answers_is_taken_back() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let open = Open::default();
        let _authority = serve(&bus, Silent(open.clone())).await;
        let connection = bus.connect().await;
        let polkit = Polkit::new(Duration::from_millis(100));
        for number in 1..=10 {
            let why = polkit.may(&connection, ":1.99", USER, ACTION).await;
            let why = why.expect_err("no answer");
            assert!(why.contains("nobody has answered"), "{why}");
            let open = open.lock().expect("no panic");
            assert!(open.iter().all(|(_, cancelled)| *cancelled));
            let ids: HashSet<_> = open.iter().map(|(id, _)| id).collect();
            assert_eq!((open.len(), ids.len()), (number, number));
        }
    });
}
