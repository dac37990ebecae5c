// SPDX-License-Identifier: GPL-2.0-only
//! Why an app has its class, by whatever a person calls it.

use crate::{meaning, Failure};
use fasttrack_bus::{AgentProxy, Explanation, ManagerProxy};
use zbus::{Connection, Error};

/// Asks the daemon, and where that knows no app of this name, the agent of this session for windows with such a title.
pub async fn of(daemon: &ManagerProxy<'_>, what: &str) -> Result<Explanation, Failure> {
    let why = match daemon.explain(what).await {
        Ok(explanation) => return Ok(explanation),
        Err(why) => why,
    };
    let is_name = !what.is_empty() && !what.starts_with('/') && what.parse::<u32>().is_err();
    if !is_name || !is_unknown(&why) {
        return Err(meaning(why));
    }
    let why = meaning(why);
    let groups = groups_of_title(what).await;
    match groups.map_err(|titles| format!("{why}.\nBy title: {titles}"))?[..] {
        [] => Err(format!("{why}.\nBy title: no window has this in its title")),
        [ref one] => daemon.explain(one).await.map_err(meaning),
        ref many => Err(format!(
            "{what:?} is in the titles of windows of {} apps; name one of them:\n{}",
            many.len(),
            many.join("\n")
        )),
    }
}

/// Whether the daemon has answered that it knows no such app.
fn is_unknown(why: &Error) -> bool {
    matches!(why, Error::MethodError(name, ..) if name.as_str() == "org.freedesktop.DBus.Error.InvalidArgs")
}

/// Control groups, or why titles are not known.
async fn groups_of_title(part: &str) -> Result<Vec<String>, Failure> {
    let no_agent =
        "no agent answers on the bus of this session; it knows titles of your own windows alone";
    let Ok(bus) = Connection::session().await else {
        return Err(no_agent.to_string());
    };
    let asked = async { AgentProxy::new(&bus).await?.groups_of_title(part).await };
    asked.await.map_err(|error| match error {
        Error::MethodError(name, Some(text), _)
            if name.as_str() == "org.freedesktop.DBus.Error.Failed" =>
        {
            text
        }
        _ => no_agent.to_string(),
    })
}
