// SPDX-License-Identifier: GPL-2.0-only
//! Dialogs of portals: whose they are, and a bus of the test's own with a portal and a backend.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use super::*;
use crate::dialogs::OPEN_MOST;
use crate::event::Event;
use crate::testing::bus::Bus;
use crate::testing::{mutate, FakePlace};
use fasttrack_detector::report::{AppRef, Report};
use std::collections::HashMap;
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use tokio::sync::Semaphore;
use zbus::zvariant::OwnedValue;

#[test]
fn a_handle_has_the_connection_that_asks() {
    let good = format!("{HANDLES}1_42/token");
    assert_eq!(asker(&good).as_deref(), Some(":1.42"));
    for bad in ["1_42", "x_1/t", "_/t", "142/t", ""] {
        assert_eq!(asker(&format!("{HANDLES}{bad}")), None, "{bad:?}");
    }
    mutate(good.as_bytes(), |bytes| {
        let found = asker(&String::from_utf8_lossy(bytes));
        assert!(found.is_none_or(|name| name.starts_with(':')));
    });
}

fn dialog(backend: u32, apps: &[&AppRef], number: u32) -> Dialog {
    Dialog {
        backend,
        to: ":1.9".into(),
        apps: apps.iter().map(|app| (*app).clone()).collect(),
        from: ":1.1".into(),
        handle: format!("/h{number}"),
    }
}

#[test]
fn a_window_of_a_backend_is_who_has_asked_and_two_are_ambiguous() {
    let fake = FakePlace::new();
    fake.group("/user.slice/portal.service", 9);
    let (one, two) = (fake.app("app-a-1.scope", 0), fake.app("app-b-2.scope", 0));
    let (to, from) = sync_channel(64);
    let out = Out::new("sway", fake.resolver(), to);
    let chooser = || Window::of(9, "xdg-desktop-portal-gtk");
    let front = |window: Window| {
        out.front(&[window]).expect("told");
        from.recv().expect("a report")
    };
    let dialogs = out.dialogs();
    assert!(matches!(front(chooser()), Event::Focus(Report::Front(apps)) if apps[0].pid == 9));
    dialogs.open(dialog(9, &[&one], 1));
    let asks = Event::Focus(Report::Front(vec![one.clone()]));
    assert_eq!(front(chooser()), asks);
    // Without a PID the id tells that it is a portal's.
    assert_eq!(front(Window::of(0, "xdg-desktop-portal-gtk")), asks);
    dialogs.open(dialog(9, &[&one], 2));
    assert_eq!(front(chooser()), asks);
    dialogs.open(dialog(9, &[&two], 3));
    let both = Event::Focus(Report::Ambiguous(vec![one.clone(), two.clone()]));
    assert_eq!(front(chooser()), both);
    dialogs.closed("/h3");
    dialogs.closed("/h4");
    dialogs.left(":1.2");
    dialogs.closed("/h1");
    assert_eq!(front(chooser()), asks);
    dialogs.left(":1.1");
    assert_eq!(dialogs.backends(), Vec::<u32>::new());
    (0..100).for_each(|number| dialogs.open(dialog(9, &[&one], number)));
    assert_eq!(dialogs.backends().len(), OPEN_MOST);
}

#[test]
fn a_call_that_types_a_key_wakes_nobody() {
    for rule in rules().expect("rules") {
        assert!(rule
            .member()
            .is_some_and(|member| !member.starts_with("Notify")));
    }
}

#[test]
fn an_answer_of_a_backend_wakes_nobody() {
    let kinds = [Some(Type::MethodCall), Some(Type::Signal)];
    let rules = rules().expect("rules");
    assert!(rules.iter().all(|rule| kinds.contains(&rule.msg_type())));
    let of_portal = rules.iter().filter(|rule| rule.msg_type() == kinds[1]);
    // The end of what an app has asked for, and owners of names, of which the bus tells.
    assert!(of_portal.into_iter().all(|rule| {
        let member = rule.member().map(|member| member.as_str());
        [Some(RESPONSE.1), Some(OWNER)].contains(&member)
    }));
}

struct FileChooser(Arc<Semaphore>);

#[zbus::interface(name = "org.freedesktop.impl.portal.FileChooser")]
impl FileChooser {
    async fn open_file(
        &self,
        _handle: ObjectPath<'_>,
        _app: &str,
        _parent: &str,
        _title: &str,
        _options: HashMap<String, OwnedValue>,
    ) -> (u32, HashMap<String, OwnedValue>) {
        self.0.acquire().await.expect("open").forget();
        (0, HashMap::new())
    }
}

/// Calls a backend, and waits until the bus has taken the call.
async fn open(from: &Connection, to: &str, handle: &str) {
    let handle = ObjectPath::try_from(handle).expect("a path");
    let options: HashMap<&str, Value<'_>> = HashMap::new();
    let body = (handle, "org.example.Editor", "", "Open", options);
    let call = Message::method_call("/org/freedesktop/portal/desktop", "OpenFile")
        .and_then(|it| it.destination(to))
        .and_then(|it| it.interface("org.freedesktop.impl.portal.FileChooser"))
        .and_then(|it| it.build(&body))
        .expect("a call");
    from.send(&call).await.expect("sent");
    let daemon = zbus::fdo::DBusProxy::new(from).await.expect("the bus");
    daemon.get_id().await.expect("an answer");
}

/// The portal tells the app.
async fn respond(portal: &Connection, handle: &str) {
    let body = (0_u32, HashMap::<&str, Value<'_>>::new());
    let (interface, member) = RESPONSE;
    let told = portal.emit_signal(None::<&str>, handle, interface, member, &body);
    told.await.expect("sent");
}

/// Waits for so many open dialogs, not for ever; says how many there are.
async fn wait(out: &Out, dialogs: usize) -> usize {
    for _ in 0..200 {
        if out.dialogs().backends().len() == dialogs {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    out.dialogs().backends().len()
}

#[test]
fn a_dialog_is_the_portals_call_to_a_backend_until_its_response_or_the_backends_end() {
    let Some(bus) = Bus::start() else {
        return;
    };
    let fake = FakePlace::new();
    let app = fake.app("app-org.example.Editor-1.scope", std::process::id());
    let (to, _from) = sync_channel(64);
    let out = Out::new("portal", fake.resolver(), to);
    let close = Arc::new(Semaphore::new(0));
    crate::bus::runtime().expect("a runtime").block_on(async {
        let name = format!("{BACKENDS}.test");
        let chooser = FileChooser(close.clone());
        let backend = zbus::connection::Builder::address(bus.address.as_str())
            .and_then(|it| it.serve_at("/org/freedesktop/portal/desktop", chooser))
            .and_then(|it| it.name(name.clone()))
            .expect("a backend");
        let backend = backend.build().await.expect("a backend");
        let (portal, editor) = (bus.connect().await, bus.connect().await);
        let (asks, monitor) = (bus.connect().await, bus.connect().await);
        let followed = follow(&asks, monitor, &out);
        let unique = editor.unique_name().expect("a name").to_string();
        let handle = format!("{HANDLES}{}/t", unique[1..].replace('.', "_"));
        let called = async {
            portal.request_name(PORTAL).await.expect("its name");
            // Until it monitors, a call may go unseen.
            let mut calls: u32 = 0;
            while out.dialogs().backends().is_empty() {
                open(&portal, &name, &handle).await;
                calls += 1;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            close.add_permits(calls as usize);
            // Its answer is not seen, and what others say is not the portal's.
            respond(&editor, &handle).await;
            assert_eq!(wait(&out, calls as usize).await, calls as usize);
            respond(&portal, &handle).await;
            assert_eq!(wait(&out, 0).await, 0);
            // Neither of the first two is the portal's call to a backend.
            open(&editor, &name, &handle).await;
            open(&portal, &unique, &handle).await;
            open(&portal, &name, &handle).await;
            assert_eq!(wait(&out, 1).await, 1);
            close.add_permits(2);
            respond(&portal, &handle).await;
            assert_eq!(wait(&out, 0).await, 0);
            open(&portal, &name, &handle).await;
            assert_eq!(wait(&out, 1).await, 1);
            backend.close().await.expect("its end");
            assert_eq!(wait(&out, 0).await, 0);
        };
        tokio::select! {
            end = followed => panic!("{end:?}"),
            () = called => {}
        }
    });
    drop(app);
}
