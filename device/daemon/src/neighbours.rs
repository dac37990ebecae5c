// SPDX-License-Identifier: GPL-2.0-only
//! Finds the programs of [`crate::coexist`] on the bus, and whether the battery is to be saved.

use crate::coexist::{Found, Known, KNOWN, POWER_PROFILES};
use crate::input::Input;
use crate::signals;
use tokio::sync::mpsc::UnboundedSender;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::{Connection, MatchRule, MessageStream};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "/org/freedesktop/systemd1";

/// Follows them until the bus ends.
pub async fn follow(bus: Connection, to: UnboundedSender<Input>) {
    if let Err(error) = follow_signals(&bus, &to).await {
        let meaning = format!("programs that do similar things cannot be looked for: {error}");
        let _ = to.send(Input::Trouble("neighbours", meaning));
    }
}

async fn follow_signals(bus: &Connection, to: &UnboundedSender<Input>) -> zbus::Result<()> {
    let mut signals = futures_util::stream::SelectAll::new();
    for name in KNOWN.iter().flat_map(|program| program.bus) {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender("org.freedesktop.DBus")?
            .member("NameOwnerChanged")?
            .arg(0, *name)?
            .build();
        signals.push(MessageStream::for_match_rule(rule, bus, None).await?);
    }
    for name in POWER_PROFILES {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .path(path_of(name))?
            .member("PropertiesChanged")?
            .build();
        signals.push(MessageStream::for_match_rule(rule, bus, None).await?);
    }
    // Not all of them have a name on the bus: a unit tells when it starts and ends.
    for unit in KNOWN.iter().flat_map(|program| program.units) {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender(SYSTEMD)?
            .path(unit_path(unit))?
            .interface("org.freedesktop.DBus.Properties")?
            .member("PropertiesChanged")?
            .build();
        signals.push(MessageStream::for_match_rule(rule, bus, None).await?);
    }
    subscribe(bus).await;
    let mut marks = signals::marks(signals);
    loop {
        let found = Input::Coexist(look(bus).await);
        let saver = Input::Saver(saves(bus).await);
        if to.send(found).is_err() || to.send(saver).is_err() || marks.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Asks systemd for signals, which it sends only where somebody wants them.
async fn subscribe(bus: &Connection) {
    if owned(bus, SYSTEMD).await {
        let manager = Some("org.freedesktop.systemd1.Manager");
        // It has nothing to say but that we had asked before.
        let _ = bus
            .call_method(Some(SYSTEMD), MANAGER, manager, "Subscribe", &())
            .await;
    }
}

/// The object that is called as its name.
fn path_of(name: &str) -> String {
    format!("/{}", name.replace('.', "/"))
}

/// The object of a unit: letters and digits of its name, all else as `_` and two hexadecimal digits.
fn unit_path(unit: &str) -> String {
    let escaped = unit.bytes().enumerate().map(|(index, byte)| match byte {
        b'0'..=b'9' if index > 0 => char::from(byte).to_string(),
        b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    });
    format!("{MANAGER}/unit/{}", escaped.collect::<String>())
}

async fn look(bus: &Connection) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, program) in KNOWN.iter().enumerate() {
        if runs(bus, program).await {
            found.extend(Found::number(index));
        }
    }
    found
}

async fn runs(bus: &Connection, program: &Known) -> bool {
    for name in program.bus {
        if owned(bus, name).await {
            return true;
        }
    }
    for unit in program.units {
        if active(bus, unit).await.unwrap_or(false) {
            return true;
        }
    }
    false
}

async fn owned(bus: &Connection, name: &str) -> bool {
    let interface = Some("org.freedesktop.DBus");
    let reply = bus
        .call_method(
            interface,
            "/org/freedesktop/DBus",
            interface,
            "NameHasOwner",
            &(name,),
        )
        .await;
    reply.is_ok_and(|reply| reply.body().deserialize().unwrap_or(false))
}

async fn active(bus: &Connection, unit: &str) -> zbus::Result<bool> {
    if !owned(bus, SYSTEMD).await {
        return Ok(false);
    }
    let manager = Some("org.freedesktop.systemd1.Manager");
    let reply = bus
        .call_method(Some(SYSTEMD), MANAGER, manager, "GetUnit", &(unit,))
        .await?;
    let path: OwnedObjectPath = reply.body().deserialize()?;
    let state = property(
        bus,
        SYSTEMD,
        path.as_str(),
        "org.freedesktop.systemd1.Unit",
        "ActiveState",
    )
    .await?;
    Ok(state == "active")
}

async fn saves(bus: &Connection) -> bool {
    for name in POWER_PROFILES {
        if owned(bus, name).await {
            let profile = property(bus, name, &path_of(name), name, "ActiveProfile").await;
            return profile.is_ok_and(|profile| profile == "power-saver");
        }
    }
    false
}

async fn property(
    bus: &Connection,
    name: &str,
    path: &str,
    interface: &str,
    property: &str,
) -> zbus::Result<String> {
    let properties = Some("org.freedesktop.DBus.Properties");
    let reply = bus
        .call_method(Some(name), path, properties, "Get", &(interface, property))
        .await?;
    let value: OwnedValue = reply.body().deserialize()?;
    Ok(<&str>::try_from(&value).unwrap_or("").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_of_a_name_has_its_words() {
        let paths = POWER_PROFILES.map(path_of);
        let known = [
            "/org/freedesktop/UPower/PowerProfiles",
            "/net/hadess/PowerProfiles",
        ];
        assert_eq!(paths, known);
    }

    #[test]
    fn units_are_found_by_their_paths() {
        assert_eq!(
            unit_path("ananicy-cpp.service"),
            "/org/freedesktop/systemd1/unit/ananicy_2dcpp_2eservice"
        );
        assert!(unit_path("7.service").ends_with("/_37_2eservice"));
    }
}
