// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon learns from a logind that fails, with one of the test's own on a bus.

mod common;

use common::{block_on, Bus};
use fasttrackd::input::Input;
use fasttrackd::login::Login;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use zbus::zvariant::{ObjectPath, Value};
use zbus::{Connection, Message, MessageStream};

const LIMITS: &str = "org.freedesktop.DBus.Error.LimitsExceeded";
const SESSION: &str = "/org/freedesktop/login1/session/c1";

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
    /// It answers nothing.
    silent: bool,
    /// How often it was asked for the sessions.
    listed: u32,
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

    /// Says that something has changed.
    async fn signal(&self) {
        let (path, interface) = (SESSION, "org.freedesktop.DBus.Properties");
        let body = ("org.freedesktop.login1.Session", "IdleHint");
        let sent =
            self.connection
                .emit_signal(None::<()>, path, interface, "PropertiesChanged", &body);
        sent.await.expect("sent");
    }
}

async fn answer(
    connection: &Connection,
    state: &Mutex<State>,
    message: &Message,
) -> zbus::Result<()> {
    let header = message.header();
    let member = header.member().map(ToString::to_string);
    if state.lock().expect("no panic").silent {
        return Ok(());
    }
    if member.as_deref() == Some("ListSessions") {
        state.lock().expect("no panic").listed += 1;
        let path = ObjectPath::try_from(SESSION)?;
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

#[test]
fn many_signals_are_few_questions_and_the_last_state_is_known() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let logind = Logind::start(&bus).await;
        let (connection, login) = (bus.connect().await, Login::default());
        let (to, mut inputs) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(login.clone().follow(connection, to));
        let first = inputs.recv().await.expect("told");
        assert!(matches!(first, Input::Active(_, true)));
        let begin = Instant::now();
        for _ in 0..1000 {
            logind.signal().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        logind.state().active = false;
        logind.signal().await;
        let last = inputs.recv().await.expect("told");
        assert!(matches!(last, Input::Active(_, false)), "{last:?}");
        // One at once, one each 100 ms.
        let most = 2 + begin.elapsed().as_millis() / 100;
        let listed = logind.state().listed;
        assert!(
            (2..=most).contains(&u128::from(listed)),
            "{listed} of {most}"
        );
    });
}

#[test]
fn a_silent_logind_does_not_keep_the_daemon_from_the_bus() {
    block_on(async {
        let Some(bus) = Bus::start() else { return };
        let logind = Logind::start(&bus).await;
        logind.state().silent = true;
        let tree = common::Tree::with_kernel();
        let _daemon = common::daemon(tree.root(), &bus.address);
        common::until_there(&bus.connect().await).await;
    });
}
