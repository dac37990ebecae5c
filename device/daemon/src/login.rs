// SPDX-License-Identifier: GPL-2.0-only
//! logind's sessions: which are active and local, and whose.

use crate::input::Input;
use crate::sender::{Refusal, Sender};
use crate::signals;
use fasttrack_detector::SessionKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::{Connection, MatchRule, MessageStream};

const LOGIN: &str = "org.freedesktop.login1";
/// How long logind may take to answer, and after how long it is asked again where it has not.
const PATIENCE: Duration = Duration::from_secs(10);
/// From an answer to the next question: any user can have logind send signals, and each question is of all sessions.
const PAUSE: Duration = Duration::from_millis(100);

/// A session, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Name, user and seat.
    pub key: SessionKey,
    /// It is the active one of its seat.
    pub active: bool,
    /// It is used from elsewhere.
    pub remote: bool,
    /// `user`, `greeter`, `lock-screen`, `background`, `manager` and others.
    pub class: String,
    /// `wayland`, `x11`, `tty` and others.
    pub kind: String,
}

impl Session {
    /// Whether its agent is believed.
    fn is_trusted(&self) -> bool {
        self.active && !self.remote && self.class == "user"
    }

    fn is_graphical(&self) -> bool {
        matches!(self.kind.as_str(), "wayland" | "x11" | "mir")
    }
}

/// The session that a sender speaks for.
///
/// A process of a session's own scope speaks for that session. A user's service belongs to no session: it speaks for the
/// active local one of its user, for a graphical one before a text console.
pub fn session_of(sessions: &[Session], sender: &Sender) -> Result<SessionKey, Refusal> {
    by_cgroup(sessions, sender.user, &sender.cgroup)
}

fn by_cgroup(sessions: &[Session], user: u32, cgroup: &str) -> Result<SessionKey, Refusal> {
    let outside = || {
        let what = format!("the sender runs in {cgroup}, in no session of the user {user}");
        ("senders outside of a session", what)
    };
    let rest = cgroup
        .strip_prefix(&format!("/user.slice/user-{user}.slice/"))
        .ok_or_else(outside)?;
    let scope = rest.split('/').next().unwrap_or("");
    let of_user = sessions.iter().filter(|session| session.key.user == user);
    let candidates: Vec<&Session> = if let Some(id) = scope
        .strip_prefix("session-")
        .and_then(|id| id.strip_suffix(".scope"))
    {
        of_user.filter(|session| session.key.id == id).collect()
    } else if scope == format!("user@{user}.service") {
        of_user.collect()
    } else {
        return Err(outside());
    };
    let trusted = candidates
        .into_iter()
        .filter(|session| session.is_trusted());
    let best = trusted.max_by_key(|session| session.is_graphical());
    best.map(|session| session.key.clone()).ok_or_else(|| {
        let what = format!("the user {user} has no session there that is active and local");
        ("senders of a session that is not active and local", what)
    })
}

/// The sessions, kept up to date by logind's signals.
#[derive(Debug, Clone, Default)]
pub struct Login {
    sessions: Arc<Mutex<Vec<Session>>>,
}

impl Login {
    /// All sessions, as logind last told of them.
    pub fn sessions(&self) -> Vec<Session> {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asks logind, which may be silent for [`PATIENCE`], and says what has changed.
    pub async fn refresh(&self, bus: &Connection) -> zbus::Result<Vec<Input>> {
        let silent = |_| zbus::Error::Failure("it is silent".to_string());
        let new = tokio::time::timeout(PATIENCE, ask(bus)).await;
        let new = new.map_err(silent)??;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes(&sessions, &new);
        *sessions = new;
        Ok(changes)
    }

    /// Follows logind until the bus ends.
    pub async fn follow(self, bus: Connection, to: UnboundedSender<Input>) {
        if let Err(error) = self.follow_signals(&bus, &to).await {
            let meaning = format!("logind cannot be followed, so no agent is believed: {error}");
            let _ = to.send(Input::Trouble("logind", meaning));
        }
        // Without logind a connection is worth nothing: another one is tried.
        let _ = to.send(Input::BusGone);
    }

    /// Asks logind; whether it has answered.
    async fn ask_again(&self, bus: &Connection, to: &UnboundedSender<Input>) -> bool {
        match self.refresh(bus).await {
            Ok(changes) => {
                for input in changes {
                    let _ = to.send(input);
                }
                true
            }
            Err(error) => {
                let meaning = format!("logind does not answer, what it said last holds: {error}");
                let _ = to.send(Input::Trouble("logind", meaning));
                false
            }
        }
    }

    async fn follow_signals(
        &self,
        bus: &Connection,
        to: &UnboundedSender<Input>,
    ) -> zbus::Result<()> {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender(LOGIN)?
            .path_namespace("/org/freedesktop/login1")?
            .build();
        let mut marks = signals::marks(MessageStream::for_match_rule(rule, bus, None).await?);
        loop {
            let answered = self.ask_again(bus, to).await;
            tokio::time::sleep(PAUSE).await;
            let changed = match answered {
                true => marks.changed().await,
                false => tokio::time::timeout(PATIENCE, marks.changed())
                    .await
                    .unwrap_or(Ok(())),
            };
            if changed.is_err() || to.is_closed() {
                return Ok(());
            }
        }
    }
}

fn changes(old: &[Session], new: &[Session]) -> Vec<Input> {
    let gone = old
        .iter()
        .filter(|session| new.iter().all(|one| one.key != session.key));
    let gone = gone.map(|session| Input::SessionGone(session.key.clone()));
    let active = |session: &Session| session.active && !session.remote;
    let before: BTreeMap<_, _> = old
        .iter()
        .map(|session| (&session.key, active(session)))
        .collect();
    let changed = new
        .iter()
        .filter(|session| before.get(&session.key) != Some(&active(session)));
    let changed = changed.map(|session| Input::Active(session.key.clone(), active(session)));
    gone.chain(changed).collect()
}

async fn ask(bus: &Connection) -> zbus::Result<Vec<Session>> {
    let manager = "/org/freedesktop/login1";
    let reply = bus
        .call_method(
            Some(LOGIN),
            manager,
            Some("org.freedesktop.login1.Manager"),
            "ListSessions",
            &(),
        )
        .await?;
    let list: Vec<(String, u32, String, String, OwnedObjectPath)> = reply.body().deserialize()?;
    let mut sessions = Vec::new();
    for (id, user, _, seat, path) in list {
        match details(bus, SessionKey { user, seat, id }, &path).await {
            Ok(session) => sessions.push(session),
            // Meanwhile.
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}

/// Whether an error says that there is no such session. Of any other nothing follows for the session.
fn has_ended(error: &zbus::Error) -> bool {
    let ended = [
        "org.freedesktop.DBus.Error.UnknownObject",
        "org.freedesktop.login1.NoSuchSession",
    ];
    matches!(error, zbus::Error::MethodError(name, ..) if ended.contains(&name.as_str()))
}

async fn details(
    bus: &Connection,
    key: SessionKey,
    path: &OwnedObjectPath,
) -> zbus::Result<Session> {
    let properties = "org.freedesktop.DBus.Properties";
    let reply = bus
        .call_method(
            Some(LOGIN),
            path,
            Some(properties),
            "GetAll",
            &("org.freedesktop.login1.Session",),
        )
        .await?;
    let body = reply.body();
    let all: BTreeMap<String, OwnedValue> = body.deserialize()?;
    let flag = |name: &str| all.get(name).and_then(|value| bool::try_from(value).ok());
    let text = |name: &str| {
        all.get(name)
            .and_then(|value| <&str>::try_from(value).ok().map(str::to_string))
    };
    Ok(Session {
        key,
        active: flag("Active").unwrap_or(false),
        remote: flag("Remote").unwrap_or(true),
        class: text("Class").unwrap_or_default(),
        kind: text("Type").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, user: u32, active: bool, remote: bool) -> Session {
        Session {
            key: SessionKey {
                user,
                seat: "seat0".to_string(),
                id: id.to_string(),
            },
            active,
            remote,
            class: "user".to_string(),
            kind: "wayland".to_string(),
        }
    }

    const AGENT: &str =
        "/user.slice/user-1000.slice/user@1000.service/session.slice/fasttrack-agent.service";

    fn who(sessions: &[Session], user: u32, cgroup: &str) -> Result<String, &'static str> {
        by_cgroup(sessions, user, cgroup)
            .map(|key| key.id)
            .map_err(|why| why.0)
    }

    #[test]
    fn an_agent_speaks_for_its_users_active_local_session() {
        let mut text = session("1", 1000, true, false);
        text.kind = "tty".to_string();
        let sessions = [
            text,
            session("2", 1000, true, false),
            session("3", 1000, false, false),
        ];
        assert_eq!(who(&sessions, 1000, AGENT).as_deref(), Ok("2"));
        assert_eq!(
            who(
                &sessions,
                1000,
                "/user.slice/user-1000.slice/session-1.scope"
            )
            .as_deref(),
            Ok("1")
        );
    }

    #[test]
    fn nobody_else_is_believed() {
        let not_active = Err("senders of a session that is not active and local");
        let outside = Err("senders outside of a session");
        let mut greeter = session("9", 1000, true, false);
        greeter.class = "greeter".to_string();
        let sessions = [
            session("1", 1000, false, false),
            session("2", 1000, true, true),
            greeter,
            session("4", 1001, true, false),
        ];
        assert_eq!(who(&sessions, 1000, AGENT), not_active);
        assert_eq!(
            who(
                &sessions,
                1000,
                "/user.slice/user-1000.slice/session-4.scope"
            ),
            not_active
        );
        assert_eq!(
            who(
                &sessions,
                1000,
                "/user.slice/user-1001.slice/session-4.scope"
            ),
            outside
        );
        assert_eq!(who(&sessions, 1001, AGENT), outside);
        assert_eq!(who(&sessions, 1000, "/system.slice/cron.service"), outside);
        assert_eq!(
            who(&sessions, 1000, "/user.slice/user-1000.slice/other.scope"),
            outside
        );
    }

    #[test]
    fn what_changes_is_told() {
        let old = [
            session("1", 1000, true, false),
            session("2", 1001, true, false),
        ];
        let new = [session("1", 1000, false, false)];
        let told = changes(&old, &new);
        assert!(matches!(&told[0], Input::SessionGone(key) if key.id == "2"));
        assert!(matches!(&told[1], Input::Active(key, false) if key.id == "1"));
        assert!(changes(&new, &new).is_empty());
    }
}
