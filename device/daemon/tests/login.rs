// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon learns from a logind that fails, with one of the test's own on a bus.

mod common;

use common::{block_on, Bus};
use fasttrackd::input::Input;
use fasttrackd::login::Login;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use zbus::zvariant::{ObjectPath, Value};
use zbus::{Connection, Message, MessageStream};

const LIMITS: &str = "org.freedesktop.DBus.Error.LimitsExceeded";

/// logind with one session.
struct Logind {
    connection: Connection,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    active: bool,
    /// The error that is the answer to the next question for the session.
    fails: Option<&'static str>,
}

impl Logind {
    async fn start(bus: &Bus) -> Logind {
        let logind = Logind {
            connection: bus.connect().await,
            state: Arc::default(),
        };
        logind.state().active = true;
        let mut calls = MessageStream::from(&logind.connection);
        let name = "org.freedesktop.login1";
        logind.connection.request_name(name).await.expect("a name");
        let (connection, state) = (logind.connection.clone(), logind.state.clone());
        tokio::spawn(async move {
            while let Some(Ok(message)) = calls.next().await {
                if message.message_type() == zbus::message::Type::MethodCall {
                    answer(&connection, &state, &message).await.expect("sent");
                }
            }
        });
        logind
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }
}

async fn answer(
    connection: &Connection,
    state: &Mutex<State>,
    message: &Message,
) -> zbus::Result<()> {
    let header = message.header();
    let member = header.member().map(ToString::to_string);
    if member.as_deref() == Some("ListSessions") {
        let path = ObjectPath::try_from("/org/freedesktop/login1/session/c1")?;
        return connection
            .reply(
                &header,
                &(vec![("c1", 1000_u32, "somebody", "seat0", path)],),
            )
            .await;
    }
    let (fails, active) = {
        let mut state = state.lock().expect("no panic");
        (state.fails.take(), state.active)
    };
    match fails {
        Some(error) => connection.reply_error(&header, error, &("no",)).await,
        None => {
            let all = BTreeMap::from([
                ("Active", Value::from(active)),
                ("Remote", Value::from(false)),
                ("Class", Value::from("user")),
                ("Type", Value::from("wayland")),
            ]);
            connection.reply(&header, &(all,)).await
        }
    }
}

#[test]
fn a_session_ends_by_logind_s_word_and_by_no_other_error() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let logind = Logind::start(&bus).await;
        let (connection, login) = (bus.connect().await, Login::default());
        let begun = login.refresh(&connection).await.expect("an answer");
        assert!(matches!(&begun[..], [Input::Active(key, true)] if key.id == "c1"));
        let known = login.sessions();
        logind.state().fails = Some(LIMITS);
        assert!(login.refresh(&connection).await.is_err());
        assert_eq!(login.sessions(), known);
        let changes = login.refresh(&connection).await.expect("an answer");
        assert!(changes.is_empty(), "{changes:?}");
        for ended in [
            "org.freedesktop.DBus.Error.UnknownObject",
            "org.freedesktop.login1.NoSuchSession",
        ] {
            logind.state().fails = Some(ended);
            let gone = login.refresh(&connection).await.expect("an answer");
            assert!(matches!(&gone[..], [Input::SessionGone(key)] if key.id == "c1"));
            login.refresh(&connection).await.expect("an answer");
        }
    });
}
