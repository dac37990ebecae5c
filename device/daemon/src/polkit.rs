// SPDX-License-Identifier: GPL-2.0-only
//! Asks polkit whether somebody may say by hand who is in front.

use std::collections::HashMap;
use zbus::zvariant::Value;
use zbus::Connection;

const POLKIT: &str = "org.freedesktop.PolicyKit1";
const ALLOW_INTERACTION: u32 = 1;

/// Whether the owner of a name on the bus may do this. Root may without being asked.
pub async fn may(bus: &Connection, name: &str, user: u32, action: &str) -> Result<(), String> {
    if user == 0 {
        return Ok(());
    }
    let asked = ask(bus, name, action).await;
    match asked {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!(
            "polkit does not allow you the action {action}: try it as an administrator"
        )),
        Err(error) => Err(format!(
            "polkit cannot be asked, so root alone may do this: {error}"
        )),
    }
}

async fn ask(bus: &Connection, name: &str, action: &str) -> zbus::Result<bool> {
    let subject = (
        "system-bus-name",
        HashMap::from([("name", Value::from(name))]),
    );
    let details: HashMap<&str, &str> = HashMap::new();
    let reply = bus
        .call_method(
            Some(POLKIT),
            "/org/freedesktop/PolicyKit1/Authority",
            Some("org.freedesktop.PolicyKit1.Authority"),
            "CheckAuthorization",
            &(subject, action, details, ALLOW_INTERACTION, ""),
        )
        .await?;
    let (allowed, _, _): (bool, bool, HashMap<String, String>) = reply.body().deserialize()?;
    Ok(allowed)
}
