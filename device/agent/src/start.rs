// SPDX-License-Identifier: GPL-2.0-only
//! Has the user's systemd start the agent, for sessions that do not have it reach `graphical-session.target`. It is told
//! first where the compositor is, which nobody else does in some of these. An agent that runs already hears of that, and
//! looks again.

use crate::bus;
use crate::env::Env;
use crate::fault::Fault;
use std::time::Duration;
use zbus::zvariant::OwnedObjectPath;
use zbus::Connection;

/// The agent's unit.
const UNIT: &str = "fasttrack-agent.service";
/// Longest wait for the user manager: at a session's start everybody asks it at once.
const WAIT_MOST: Duration = Duration::from_secs(30);

/// Tells the user's systemd where this session's compositor is, and has it start the unit.
pub fn start(env: &Env) -> Result<(), Fault> {
    if env.var("WAYLAND_DISPLAY").or(env.var("DISPLAY")).is_none() {
        return Err(Fault::new(
            "neither WAYLAND_DISPLAY nor DISPLAY is set here: start it from the compositor's own configuration, or from \
             a terminal in the session",
        ));
    }
    let asked = async { tokio::time::timeout(WAIT_MOST, ask(&env.session())).await };
    let answer = bus::runtime()?.block_on(asked);
    let told = answer.unwrap_or_else(|_| Err(Fault::new("it does not answer")));
    told.map_err(|Fault(why)| {
        Fault(format!(
            "the user's systemd has not started {UNIT} ({why}); without systemd, run fasttrack-agent in the session"
        ))
    })
}

async fn ask(set: &[String]) -> Result<(), Fault> {
    let bus = Connection::session().await?;
    let manager = bus::user_manager(&bus).await?;
    bus::call_running::<_, ()>(&manager, "SetEnvironment", &set).await?;
    let start = (UNIT, "replace");
    bus::call_running::<_, OwnedObjectPath>(&manager, "StartUnit", &start).await?;
    Ok(())
}
