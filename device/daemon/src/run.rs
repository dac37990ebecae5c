// SPDX-License-Identifier: GPL-2.0-only
//! The loop: everything that can happen, one at a time.

use crate::agents::Agents;
use crate::clean;
use crate::counters::Counters;
use crate::daemon::Daemon;
use crate::freezable::Look;
use crate::guard::{self, Answer};
use crate::guard_link::{Guard, Launcher};
use crate::inlet::Inlet;
use crate::input::Input;
use crate::lock::{self, Lock};
use crate::login::Login;
use crate::memory;
use crate::neighbours;
use crate::notify::{self, Notify};
use crate::pressure::Pressure;
use crate::service::Service;
use crate::system::{now, System};
use crate::units::{self, Told};
use fasttrack_bus::{NAME, PATH};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use zbus::fdo::RequestNameFlags;
use zbus::object_server::InterfaceRef;
use zbus::Connection;

/// The argument that makes a process the guard.
pub const GUARD: &str = "--guard";

/// How long to wait before the bus is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long the bus may take to let the daemon in, and to give it its name. Meanwhile nothing else is done: with logind's
/// patience this is less than half of systemd's watchdog.
const BUS_MOST: Duration = Duration::from_secs(5);

/// What the command line says.
#[derive(Debug)]
pub struct Options {
    /// The system's files are below this.
    pub root: PathBuf,
    /// The bus, if not the system's.
    pub bus: Option<String>,
    /// systemd.
    pub notify: Notify,
}

/// Runs until a signal ends it. Another one that runs is an error, and nothing is changed then.
pub fn run(system: &System, options: &Options) -> Result<(), String> {
    let lock = lock::of_daemon(system);
    let mut counters = Counters::default();
    match &lock {
        Lock::Ours(_) => {}
        Lock::Others(told) => return Err(told.clone()),
        Lock::Nobodys(error) => counters.error("no lock", || {
            format!("another fasttrackd would not be noticed: there is no lock: {error}")
        }),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let done = runtime.block_on(serve(system, options, counters));
    drop(lock);
    done
}

/// Takes back what an earlier daemon has left. Says how many groups that were. One that runs is an error: what it has
/// set is its own.
pub fn restore(system: &System, options: &Options) -> Result<usize, String> {
    let lock = lock::of_daemon(system);
    if let Lock::Others(told) = lock {
        return Err(told);
    }
    let found = clean::restore(system);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let bus = async {
        let builder = match options.bus.as_deref() {
            Some(address) => zbus::connection::Builder::address(address)?,
            None => zbus::connection::Builder::system()?,
        };
        units::restore(&builder.build().await?, system).await;
        zbus::Result::Ok(())
    };
    // Without a bus nobody has told systemd anything, or the machine goes down.
    if let Ok(runtime) = runtime {
        let _ = runtime.block_on(async { tokio::time::timeout(units::LAST_MOST, bus).await });
    }
    drop(lock);
    Ok(found)
}

/// The guard is ended by its socket alone: systemd tells all processes of a unit to end, and then it is needed most.
pub fn outlive_the_daemon() {
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
}

/// What runs beside the loop.
struct Room {
    system: System,
    inputs: UnboundedReceiver<Input>,
    to: UnboundedSender<Input>,
    pressure: Pressure,
    bus: Option<Connection>,
    on_bus: Option<InterfaceRef<Service>>,
    /// Tells systemd values of units; none while there is no bus.
    units: Option<Units>,
}

/// The task that tells systemd, and the way to it.
struct Units {
    to: UnboundedSender<Told>,
    task: JoinHandle<()>,
}

impl Room {
    /// Has nothing to do with the bus any more.
    fn leave(&mut self) {
        self.on_bus = None;
        self.units = None;
        if let Some(bus) = self.bus.take() {
            close(bus);
        }
    }

    /// Has a look made in a thread of its own. After a panic there nothing more is frozen.
    fn look(&self, look: Look) {
        let to = self.to.clone();
        tokio::spawn(async move {
            let input = match tokio::task::spawn_blocking(|| look.find()).await {
                Ok(found) => Input::Freezable(found),
                Err(error) => Input::Trouble(
                    "looks that have failed",
                    format!("groups that may be frozen are no longer looked for: {error}"),
                ),
            };
            let _ = to.send(input);
        });
    }

    /// Hands on what systemd is to be told. Without a bus nobody could tell it.
    fn tell_units(&self, told: Vec<Told>) {
        if let Some(units) = &self.units {
            for one in told {
                // The task has ended with its bus, and there will be another one.
                let _ = units.to.send(one);
            }
        }
    }
}

async fn serve(system: &System, options: &Options, counters: Counters) -> Result<(), String> {
    let told = |error: std::io::Error| format!("no signals: {error}");
    let mut end = [SignalKind::terminate(), SignalKind::interrupt()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()
        .map_err(told)?;
    let mut reload = signal(SignalKind::hangup()).map_err(told)?;
    let (to, inputs) = mpsc::unbounded_channel();
    let mut room = Room {
        system: system.clone(),
        inputs,
        to,
        pressure: Pressure::default(),
        bus: None,
        on_bus: None,
        units: None,
    };
    let mut daemon = start(system, options, counters);
    memory::keep_touched();
    tokio::select! {
        result = looped(&mut daemon, &mut room, options, &mut reload) => result?,
        () = any(&mut end) => {}
    }
    daemon.tell("STOPPING=1");
    daemon.release(now());
    room.tell_units(daemon.units());
    if let Some(Units { to, task }) = room.units {
        drop(to);
        let _ = tokio::time::timeout(units::LAST_MOST, task).await;
    }
    Ok(())
}

async fn any(signals: &mut [Signal]) {
    let waits = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures_util::future::select_all(waits).await;
}

/// A daemon on a clean system, with a guard.
fn start(system: &System, options: &Options, mut counters: Counters) -> Daemon {
    if !guard::wait_for_another(system) {
        counters.error("another guard", || {
            "the guard of an earlier daemon still runs".to_string()
        });
    }
    let found = clean::restore_groups(system);
    if found > 0 {
        counters.add(
            "groups of an earlier daemon that were restored",
            found as u64,
        );
        counters.say(&format!(
            "{found} control groups had something of an earlier fasttrackd; it was taken back"
        ));
    }
    let notify = Notify::clone(&options.notify);
    let mut daemon = Daemon::new(system, now(), notify, notify::watchdog_us(), counters);
    let launcher = Launcher {
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        arguments: vec![GUARD.into(), "--root".into(), options.root.clone().into()],
    };
    match Guard::start(system, launcher) {
        Ok(guard) => daemon.guard = Some(guard),
        Err(error) => daemon.handle(
            now(),
            Input::Trouble(
                "no guard",
                format!("no guard can be started, so nothing is frozen: {error}"),
            ),
        ),
    }
    daemon
}

async fn looped(
    daemon: &mut Daemon,
    room: &mut Room,
    options: &Options,
    reload: &mut Signal,
) -> Result<(), String> {
    let mut changes = daemon.changes;
    let mut retry = RETRY.0;
    let mut connect_at = Some(now());
    loop {
        if connect_at.is_some_and(|at| at <= now()) {
            connect_at = match connect(daemon, room, options).await {
                Ok(()) => None,
                Err(error) => {
                    let meaning =
                        format!("the bus cannot be used, it is tried again and again: {error}");
                    daemon.handle(now(), Input::Trouble("no bus", meaning));
                    let at = now() + retry;
                    retry = (retry * 2).min(RETRY.1);
                    Some(at)
                }
            };
            daemon.tell("READY=1");
        }
        let deadline = daemon.deadline().into_iter().chain(connect_at).min();
        tokio::select! {
            biased;
            // First: an effect that was taken back must not be taken for one that somebody has switched off.
            answer = listen(&mut daemon.guard) => daemon.guard_said(now(), answer),
            Some(input) = room.inputs.recv() => {
                if matches!(input, Input::BusGone) {
                    room.leave();
                    retry = RETRY.0;
                    connect_at = Some(now() + retry);
                }
                daemon.handle(now(), input);
            }
            () = until(deadline) => {}
            _ = reload.recv() => daemon.reload(now()),
        }
        daemon.tick(now());
        room.tell_units(daemon.units());
        if let Some(look) = daemon.look(now()) {
            room.look(look);
        }
        if changes != daemon.changes {
            changes = daemon.changes;
            room.pressure
                .set_groups(&room.system, &daemon.watched(), &room.to);
            announce(room, changes);
        }
    }
}

async fn listen(guard: &mut Option<Guard>) -> Option<Answer> {
    match guard {
        Some(guard) => guard.listen().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Duration>) {
    match deadline {
        Some(at) => tokio::time::sleep(at.saturating_sub(now())).await,
        None => std::future::pending().await,
    }
}

/// Tells the bus that something has changed. Nobody waits for that.
fn announce(room: &Room, number: u64) {
    if let Some(object) = room.on_bus.clone() {
        tokio::spawn(async move {
            let _ = Service::changed(object.signal_emitter(), number).await;
        });
    }
}

async fn connect(daemon: &Daemon, room: &mut Room, options: &Options) -> zbus::Result<()> {
    let (agents, login) = (Agents::default(), Login::default());
    let limits = &daemon.config().reports;
    let address = options.bus.as_deref();
    let inlet = Inlet::connect(address, limits, agents.clone(), room.to.clone()).await?;
    let to = room.to.clone();
    let service = Service::new(&room.system, login.clone(), limits, agents, to);
    let builder = zbus::connection::Builder::socket(inlet).serve_at(PATH, service)?;
    let bus: Connection = in_time(builder.build()).await?;
    match name(&bus, &login, &room.to).await {
        Ok(object) => room.on_bus = Some(object),
        Err(error) => {
            close(bus);
            return Err(error);
        }
    }
    tokio::spawn(login.follow(bus.clone(), room.to.clone()));
    tokio::spawn(neighbours::follow(bus.clone(), room.to.clone()));
    let (to, values) = mpsc::unbounded_channel();
    let told = room.to.clone();
    let trouble = move |meaning| drop(told.send(Input::Trouble("systemd's properties", meaning)));
    let task = units::follow(bus.clone(), room.system.clone(), values, trouble);
    room.units = Some(Units {
        to,
        task: tokio::spawn(task),
    });
    room.bus = Some(bus);
    Ok(())
}

/// Takes the name. Sessions are known before anybody can speak for one.
async fn name(
    bus: &Connection,
    login: &Login,
    to: &UnboundedSender<Input>,
) -> zbus::Result<InterfaceRef<Service>> {
    if let Err(error) = login.refresh(bus).await {
        let meaning = format!("logind does not answer, so no agent is believed yet: {error}");
        let _ = to.send(Input::Trouble("logind", meaning));
    }
    let object = bus.object_server().interface(PATH).await?;
    // Nobody takes it from this daemon, which would not notice.
    let flags = RequestNameFlags::DoNotQueue.into();
    in_time(bus.request_name_with_flags(NAME, flags)).await?;
    Ok(object)
}

/// What the bus gives within [`BUS_MOST`]: one that takes a connection and is silent must not stop all else.
async fn in_time<T>(asked: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    let given = tokio::time::timeout(BUS_MOST, asked).await;
    given.unwrap_or_else(|_| Err(zbus::Error::Failure("it does not answer".to_string())))
}

/// Ends a connection for all who have a part of it. Nobody waits for a bus that takes nothing any more.
fn close(bus: Connection) {
    tokio::spawn(bus.close());
}
