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
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;
use zbus::Connection;

/// Longest wait for the daemon's answer. It answers in a millisecond; who hangs is told again when it is back.
const ANSWER_MOST: Duration = Duration::from_secs(2);

/// Tells the daemon.
pub struct Daemon {
    runtime: Runtime,
    proxy: ManagerProxy<'static>,
}

impl Daemon {
    /// On the system bus.
    pub fn connect() -> Result<Daemon, Fault> {
        let runtime = bus::runtime()?;
        let proxy = runtime.block_on(async {
            let bus = Connection::system().await?;
            ManagerProxy::new(&bus).await
        })?;
        Ok(Daemon { runtime, proxy })
    }
}

impl Daemon {
    fn told(&self, call: impl Future<Output = zbus::Result<()>>) -> Result<(), Fault> {
        let told = async { tokio::time::timeout(ANSWER_MOST, call).await };
        match self.runtime.block_on(told) {
            Ok(result) => Ok(result?),
            Err(_) => Err(Fault::new("the daemon does not answer")),
        }
    }
}

impl Sink for Daemon {
    fn take(&mut self, report: &Report) -> Result<(), Fault> {
        self.told(self.proxy.report(&WireReport::from(report)))
    }

    fn trouble(&mut self, trouble: &Trouble) -> Result<(), Fault> {
        let trouble = WireTrouble {
            source: trouble.source.to_string(),
            meaning: WireTrouble::fitting(&trouble.why),
            faults: trouble.counts.faults,
            unknown: trouble.counts.unknown,
        };
        self.told(self.proxy.trouble(&trouble))
    }

    fn sources(&mut self, names: &[&str]) -> Result<(), Fault> {
        self.told(self.proxy.sources(names))
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
