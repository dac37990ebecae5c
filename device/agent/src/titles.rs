// SPDX-License-Identifier: GPL-2.0-only
//! Finds apps by the titles of their windows, for `fasttrackctl explain`.
//!
//! A title says what a person reads or writes, so it stays in the session: it is asked of the compositor when somebody
//! wants to know, compared and forgotten, and the answer, on the session's bus, is control groups alone. The daemon is not
//! told. Whoever can reach the session's bus could ask most compositors as well.
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use crate::bus;
use crate::conduct::caught;
use crate::env::Env;
use crate::fault::Fault;
use crate::resolve::{Owner, Resolver};
use crate::source::{Probe, Source};
use crate::window::Titled;
use fasttrack_bus::{AGENT_NAME, AGENT_PATH};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zbus::fdo::{self, RequestNameFlags};
use zbus::Connection;

/// Longest wait for a compositor's answer.
const ANSWER_MOST: Duration = Duration::from_secs(3);

/// Makes the sources of focus of a session.
pub type Sources = fn(&Env, &Resolver) -> Vec<Box<dyn Source>>;

/// Answers at its name on the session's bus.
struct Titles {
    sources: Sources,
    env: Env,
    resolver: Resolver,
    /// Held while a compositor is asked: one that hangs is not asked twice.
    asking: Arc<Mutex<()>>,
}

#[zbus::interface(name = "org.fasttrack1.Agent")]
impl Titles {
    /// The control groups of the apps that have a window with this in its title, whatever the case of its letters.
    async fn groups_of_title(&self, part: String) -> fdo::Result<Vec<String>> {
        let (sources, asking) = (self.sources, self.asking.clone());
        let (env, resolver) = (self.env.clone(), self.resolver.clone());
        let asked = tokio::task::spawn_blocking(move || {
            let Ok(_one) = asking.try_lock() else {
                return Err(Fault::new(
                    "the compositor was asked before, and has not answered",
                ));
            };
            caught(|| {
                let env = env.with(&bus::environment());
                let all = titled(&sources(&env, &resolver))?;
                Ok(groups(&all, &part, &resolver))
            })
        });
        let told = |Fault(why)| fdo::Error::Failed(why);
        match tokio::time::timeout(ANSWER_MOST, asked).await {
            Ok(Ok(found)) => found.map_err(told),
            Ok(Err(error)) => Err(fdo::Error::Failed(format!("the agent has failed: {error}"))),
            Err(_) => Err(told(Fault::new("the compositor does not answer"))),
        }
    }
}

/// Serves on a connection. Where another one has the name, that is the session's agent.
pub async fn serve(
    bus: &Connection,
    sources: Sources,
    env: &Env,
    resolver: &Resolver,
) -> Result<(), Fault> {
    let titles = Titles {
        sources,
        env: env.clone(),
        resolver: resolver.clone(),
        asking: Arc::default(),
    };
    bus.object_server().at(AGENT_PATH, titles).await?;
    bus.request_name_with_flags(AGENT_NAME, RequestNameFlags::DoNotQueue.into())
        .await?;
    Ok(())
}

/// The windows of the first source that can tell here and knows titles.
fn titled(sources: &[Box<dyn Source>]) -> Result<Vec<Titled>, Fault> {
    let mut why = None;
    for source in sources {
        if source.probe() == Probe::Yes {
            match source.titled() {
                Ok(all) => return Ok(all),
                Err(fault) => drop(why.get_or_insert(fault)),
            }
        }
    }
    Err(why.unwrap_or_else(|| Fault::new("no compositor can be asked here")))
}

/// The groups whose windows have this in their titles, each once.
fn groups(all: &[Titled], part: &str, resolver: &Resolver) -> Vec<String> {
    let part = part.to_lowercase();
    let mut found = Vec::new();
    let matching = all
        .iter()
        .filter(|(title, _)| title.to_lowercase().contains(&part));
    for (_, window) in matching {
        let apps = match resolver.owner(window) {
            Owner::App(apps) | Owner::Ambiguous(apps) => apps,
            Owner::Unknown(_) => continue,
        };
        found.extend(apps.into_iter().map(|app| app.cgroup));
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::all as sources;
    use crate::testing::bus::Bus;
    use crate::testing::{wayland, FakePlace};
    use crate::window::Window;
    use fasttrack_bus::AgentProxy;

    #[test]
    fn groups_are_those_of_windows_with_a_part_of_the_title() {
        let fake = FakePlace::new();
        let mail = fake.app("app-mail-7.scope", 7).cgroup;
        let web = fake.app("app-web-8.scope", 8).cgroup;
        let one = |title: &str, pid| (title.to_string(), Window::of(pid, ""));
        let all = [
            one("Inbox (3)", 7),
            one("inbox - help", 8),
            one("Inbox", 9),
            one("Sent", 7),
        ];
        let of = |part| groups(&all, part, &fake.resolver());
        assert_eq!(of("INBOX"), [mail.clone(), web]);
        assert_eq!(of("sent"), [mail]);
        assert_eq!(of("drafts"), [""; 0]);
    }

    #[test]
    fn the_agent_asks_the_compositor_and_says_where_that_tells_nothing() {
        let Some(bus) = Bus::start() else {
            return;
        };
        let fake = FakePlace::new();
        let app = fake.app("app-editor-7.scope", 7);
        // The manager is the client's fourth object and the question for the end of the list the fifth.
        let window = 0xff00_0000_u32;
        let event = wayland::event;
        let stream = [
            event(4, 0, &window.to_ne_bytes()),
            event(window, 0, &wayland::text("Letter to Ada")),
            event(window, 1, &wayland::text("editor")),
            event(window, 5, &[]),
            event(5, 0, &[0; 4]),
        ];
        let globals = wayland::globals(&[("zwlr_foreign_toplevel_manager_v1", 3)]);
        let (env, _runtime) = wayland::play(globals, move || (stream.concat(), false));
        let gnome = Env::of([("XDG_CURRENT_DESKTOP", "GNOME")]);
        bus::runtime().expect("a runtime").block_on(async {
            let there = bus.connect().await;
            let asks = AgentProxy::new(&bus.connect().await)
                .await
                .expect("a proxy");
            serve(&there, sources, &env, &fake.resolver())
                .await
                .expect("served");
            let found = asks.groups_of_title("to ada").await.expect("asked");
            assert_eq!(found, [app.cgroup]);
            assert_eq!(asks.groups_of_title("Bob").await.expect("asked"), [""; 0]);
            let second = bus.connect().await;
            let taken = serve(&second, sources, &gnome, &fake.resolver()).await;
            taken.expect_err("another one is the agent");
            there.release_name(AGENT_NAME).await.expect("released");
            drop(there);
            let third = bus.connect().await;
            serve(&third, sources, &gnome, &fake.resolver())
                .await
                .expect("served");
            let why = asks.groups_of_title("Ada").await.expect_err("none");
            assert!(why.to_string().contains("gnome tells no titles"), "{why}");
        });
    }
}
