// SPDX-License-Identifier: GPL-2.0-only
//! The object on the bus. It checks who calls, and passes on what they say.
//!
//! Who is refused waits for the answer: the bus lets a connection have a bounded number of calls without one, so a
//! caller in a loop stops itself. A call that waits is kept in memory, so a bounded number of them does. Calls that want
//! no answer do not come here ([`crate::inlet`]).
#![allow(missing_docs)] // what the macro makes has no documentation of its own

use crate::agents::Agents;
use crate::answers::{Answer, Answers};
use crate::input::{Input, Mode};
use crate::login::{self, Login};
use crate::polkit::Polkit;
use crate::sender::{Refusal, Sender, Senders};
use crate::system::{now, System};
use fasttrack_bus::{Explanation, Malformed, Status, Usage, WireReport, WireTrouble, ACTION};
use fasttrack_config::Reports;
use fasttrack_detector::report::Report;
use fasttrack_detector::SessionKey;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, Semaphore};
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, MatchRule, MessageStream};

/// How long who is refused waits.
const WAIT: Duration = Duration::from_secs(1);

/// Who is refused and waits, at most; others have their answer at once. With the longest calls that is some 10 MiB.
const WAITERS_MOST: usize = 32;

/// Control groups that a person names at once, at most.
const WHOM_MOST: usize = 64;

/// The object.
pub struct Service {
    system: System,
    login: Login,
    senders: Arc<Mutex<Senders>>,
    agents: Agents,
    polkit: Polkit,
    waiters: Semaphore,
    answers: Answers,
    to: UnboundedSender<Input>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// An object that passes on what it is told.
    pub fn new(
        system: &System,
        login: Login,
        limits: &Reports,
        agents: Agents,
        to: UnboundedSender<Input>,
    ) -> Service {
        Service {
            system: system.clone(),
            login,
            senders: Arc::new(Mutex::new(Senders::new(limits.clone()))),
            agents,
            polkit: Polkit::default(),
            waiters: Semaphore::new(WAITERS_MOST),
            answers: Answers::default(),
            to,
        }
    }

    async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> fdo::Result<T> {
        let (reply, answer) = oneshot::channel();
        let ended = || fdo::Error::Failed("the daemon ends".to_string());
        self.to.send(input(reply)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())
    }

    /// The same, where the answer is long.
    async fn ask_for_long<T>(
        &self,
        input: impl FnOnce(oneshot::Sender<T>) -> Input,
    ) -> fdo::Result<Answer<T>> {
        let place = self.answers.place().await;
        Ok(Answer::new(self.ask(input).await?, place))
    }

    /// Who has sent a message.
    async fn sender(&self, bus: &Connection, name: &str) -> Result<Arc<Sender>, Refusal> {
        let known = locked(&self.senders).get(name);
        if let Some(known) = known {
            return match known {
                Ok(sender) if !sender.lives() => {
                    Err(("senders that had ended", "the sender has ended".to_string()))
                }
                other => other,
            };
        }
        let found = find(&self.system, bus, name).await;
        let learned = locked(&self.senders).learn(name, found);
        if learned.is_ok() {
            let (bus, name) = (bus.clone(), name.to_string());
            let (senders, agents, to) =
                (self.senders.clone(), self.agents.clone(), self.to.clone());
            tokio::spawn(async move {
                let _ = until_gone(&bus, &name).await;
                locked(&senders).forget(&name);
                for session in agents.forget(&name) {
                    let _ = to.send(Input::SessionGone(session));
                }
            });
        }
        learned
    }

    /// Who speaks, and for which session.
    async fn agent(
        &self,
        bus: &Connection,
        name: &str,
    ) -> Result<(Arc<Sender>, SessionKey), Refusal> {
        let sender = self.sender(bus, name).await?;
        if !locked(&self.senders).may_speak(sender.user, now()) {
            let what = format!("the user {} reports more often than it may", sender.user);
            return Err(("reports beyond the rate", what));
        }
        let session = login::session_of(&self.login.sessions(), &sender)?;
        if !self.agents.hears(&session, name) {
            let what = format!("another agent speaks for session {}", session.id);
            return Err(("reports of a second agent", what));
        }
        Ok((sender, session))
    }

    /// Hands what an agent has told of its sources to the daemon, whose answer is not waited for.
    async fn hand_on(
        &self,
        bus: &Connection,
        header: &Header<'_>,
        checked: Result<(), Malformed>,
        input: impl FnOnce(SessionKey, u32) -> Input,
    ) -> fdo::Result<()> {
        let (sender, session) = match self.agent(bus, &name_of(header)).await {
            Ok(agent) => agent,
            Err(why) => return self.refuse(why).await,
        };
        if let Err(why) = checked {
            return self.refuse(("malformed reports", why.to_string())).await;
        }
        let ended = |_| fdo::Error::Failed("the daemon ends".to_string());
        self.to.send(input(session, sender.pid)).map_err(ended)
    }

    async fn refuse<T>(&self, (kind, meaning): Refusal) -> fdo::Result<T> {
        let _ = self.to.send(Input::Refused(
            kind,
            format!("a message was refused: {meaning}"),
        ));
        if let Ok(_place) = self.waiters.try_acquire() {
            tokio::time::sleep(WAIT).await;
        }
        Err(fdo::Error::AccessDenied(meaning))
    }
}

fn name_of(header: &Header<'_>) -> String {
    header.sender().map(ToString::to_string).unwrap_or_default()
}

/// What the bus knows of a name, and the kernel of its process.
async fn find(system: &System, bus: &Connection, name: &str) -> Result<Sender, Refusal> {
    let unknown = |why: String| ("senders that the bus does not know", why);
    let bus_name = name
        .to_string()
        .try_into()
        .map_err(|error: zbus::names::Error| unknown(error.to_string()))?;
    let proxy = fdo::DBusProxy::new(bus)
        .await
        .map_err(|error| unknown(error.to_string()))?;
    let credentials = proxy
        .get_connection_credentials(bus_name)
        .await
        .map_err(|error| unknown(error.to_string()))?;
    let (Some(user), Some(pid)) = (credentials.unix_user_id(), credentials.process_id()) else {
        return Err(unknown(format!(
            "the bus does not say whose process {name} is"
        )));
    };
    let pidfd = credentials
        .process_fd()
        .and_then(|fd| std::os::fd::AsFd::as_fd(fd).try_clone_to_owned().ok());
    Sender::find(system, user, pid, pidfd)
}

/// Waits until a name has left the bus.
async fn until_gone(bus: &Connection, name: &str) -> zbus::Result<()> {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")?
        .member("NameOwnerChanged")?
        .arg(0, name)?
        .build();
    let mut signals = MessageStream::for_match_rule(rule, bus, Some(4)).await?;
    // It may have left before it was listened to.
    let proxy = fdo::DBusProxy::new(bus).await?;
    if !proxy.name_has_owner(name.to_string().try_into()?).await? {
        return Ok(());
    }
    signals.next().await;
    Ok(())
}

#[zbus::interface(name = "org.fasttrack1.Manager")]
impl Service {
    /// For agents alone.
    async fn report(
        &self,
        report: WireReport,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        let received = now();
        let (sender, session) = match self.agent(bus, &name_of(&header)).await {
            Ok(agent) => agent,
            Err(why) => return self.refuse(why).await,
        };
        let report = match Report::try_from(report) {
            Ok(report) => report,
            Err(why) => return self.refuse(("malformed reports", why.to_string())).await,
        };
        let result = self
            .ask(|reply| Input::Report {
                session,
                agent: sender.pid,
                received,
                report,
                reply,
            })
            .await?;
        result.map_err(fdo::Error::AccessDenied)
    }

    /// For agents alone.
    async fn trouble(
        &self,
        trouble: WireTrouble,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        let checked = trouble.check();
        self.hand_on(bus, &header, checked, |session, agent| {
            Input::Source(session, agent, trouble)
        })
        .await
    }

    /// For agents alone.
    async fn sources(
        &self,
        names: Vec<String>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        let checked = fasttrack_bus::check_sources(&names);
        self.hand_on(bus, &header, checked, |session, agent| {
            Input::Sources(session, agent, names)
        })
        .await
    }

    /// For everyone.
    async fn status(&self) -> fdo::Result<Answer<Status>> {
        self.ask_for_long(Input::Status).await
    }

    /// For everyone.
    async fn explain(&self, what: String) -> fdo::Result<Explanation> {
        let answer = self.ask(|reply| Input::Explain(what, reply)).await?;
        answer.map_err(fdo::Error::InvalidArgs)
    }

    /// For everyone.
    async fn usage(&self) -> fdo::Result<Answer<Vec<Usage>>> {
        self.ask_for_long(Input::Usage).await
    }

    /// For whom polkit allows it.
    async fn set_foreground(
        &self,
        mode: String,
        whom: Vec<String>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        let Some(mode) = Mode::parse(&mode).filter(|_| whom.len() <= WHOM_MOST) else {
            return Err(fdo::Error::InvalidArgs(
                "the mode is set, add or clear; of at most 64 apps".to_string(),
            ));
        };
        let name = name_of(&header);
        let sender = match self.sender(bus, &name).await {
            Ok(sender) => sender,
            Err(why) => return self.refuse(why).await,
        };
        self.polkit
            .may(bus, &name, sender.user, ACTION)
            .await
            .map_err(fdo::Error::AccessDenied)?;
        let answer = self.ask(|reply| Input::ByHand(mode, whom, reply)).await?;
        answer.map_err(fdo::Error::InvalidArgs)
    }

    /// Who has which class has changed.
    #[zbus(signal)]
    pub async fn changed(emitter: &SignalEmitter<'_>, number: u64) -> zbus::Result<()>;
}
