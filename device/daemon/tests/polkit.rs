// SPDX-License-Identifier: GPL-2.0-only
//! What polkit grants and refuses, with an authority of the test's on a bus of its own.

mod common;

use common::{block_on, Bus};
use fasttrack_bus::ACTION;
use fasttrackd::polkit::may;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
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
    let connection = bus.connect().await;
    let object = Authority {
        grants,
        asked: asked.clone(),
    };
    let server = connection.object_server();
    let path = "/org/freedesktop/PolicyKit1/Authority";
    server.at(path, object).await.expect("an object");
    let name = "org.freedesktop.PolicyKit1";
    connection.request_name(name).await.expect("a name");
    (connection, asked)
}

#[test]
fn who_is_granted_may_and_who_is_refused_is_told_the_way_out() {
    for grants in [true, false] {
        block_on(async {
            let Some(bus) = Bus::start() else { return };
            let (_authority, asked) = authority(&bus, grants).await;
            let connection = bus.connect().await;
            let answer = may(&connection, ":1.99", USER, ACTION).await;
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
        assert_eq!(may(&connection, ":1.99", 0, ACTION).await, Ok(()));
        let why = may(&connection, ":1.99", USER, ACTION).await;
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
        assert_eq!(may(&connection, ":1.99", 0, ACTION).await, Ok(()));
        assert!(asked.lock().expect("no panic").is_empty());
    });
}
