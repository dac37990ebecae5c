// SPDX-License-Identifier: GPL-2.0-only
//! The way to the daemon: its proxy on the system bus, and whether it is there.

use crate::bus;
use crate::event::Event;
use crate::fault::Fault;
use crate::merge::Trouble;
use crate::sink::Sink;
use crate::source::{Out, Probe, Source};
use fasttrack_bus::{ManagerProxy, WireReport, WireTrouble, NAME};
use fasttrack_detector::report::Report;
use futures_util::StreamExt;
use std::time::Duration;
use tokio::runtime::Runtime;
use zbus::Connection;

/// Longest wait for the daemon's answer. It answers in a millisecond; who hangs is told again when it is back.
const ANSWER_MOST: Duration = Duration::from_secs(2);

/// Tells the daemon.
pub struct Daemon {
    runtime: Runtime,
    /// None where the bus has closed the connection: whoever tells something next connects again.
    proxy: Option<ManagerProxy<'static>>,
}

async fn connect() -> zbus::Result<ManagerProxy<'static>> {
    ManagerProxy::new(&Connection::system().await?).await
}

impl Daemon {
    /// On the system bus.
    pub fn connect() -> Result<Daemon, Fault> {
        let runtime = bus::runtime()?;
        let proxy = Some(runtime.block_on(connect())?);
        Ok(Daemon { runtime, proxy })
    }

    fn told(
        &mut self,
        call: impl AsyncFnOnce(&ManagerProxy<'static>) -> zbus::Result<()>,
    ) -> Result<(), Fault> {
        let proxy = &mut self.proxy;
        let told = async {
            let proxy = match proxy {
                Some(proxy) => proxy,
                None => proxy.insert(connect().await?),
            };
            call(proxy).await
        };
        let told = async { tokio::time::timeout(ANSWER_MOST, told).await };
        match self.runtime.block_on(told) {
            Ok(result) => {
                if matches!(result, Err(zbus::Error::InputOutput(_))) {
                    self.proxy = None;
                }
                Ok(result?)
            }
            Err(_) => Err(Fault::new("the daemon does not answer")),
        }
    }
}

impl Sink for Daemon {
    fn take(&mut self, report: &Report) -> Result<(), Fault> {
        let report = WireReport::from(report);
        self.told(async |daemon| daemon.report(&report).await)
    }

    fn trouble(&mut self, trouble: &Trouble) -> Result<(), Fault> {
        let trouble = WireTrouble {
            source: trouble.source.to_string(),
            meaning: WireTrouble::fitting(&trouble.why),
            faults: trouble.counts.faults,
            unknown: trouble.counts.unknown,
        };
        self.told(async |daemon| daemon.trouble(&trouble).await)
    }

    fn sources(&mut self, names: &[&str]) -> Result<(), Fault> {
        self.told(async |daemon| daemon.sources(names).await)
    }
}

/// Tells when the daemon has come, or come again.
#[derive(Default)]
pub struct Arrival;

impl Source for Arrival {
    fn name(&self) -> &'static str {
        "daemon"
    }

    fn probe(&self) -> Probe {
        Probe::Yes
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        bus::runtime()?.block_on(async {
            let bus = Connection::system().await?;
            let mut owners = bus::owners(&bus, NAME).await?;
            if bus::owner(&bus, NAME).await?.is_some() {
                out.say(Event::Daemon)?;
            }
            while let Some(change) = owners.next().await {
                if change.args()?.new_owner().is_some() {
                    out.say(Event::Daemon)?;
                }
            }
            Err(Fault::new("the system bus has closed"))
        })
    }

    fn tells_focus(&self) -> bool {
        false
    }
}
