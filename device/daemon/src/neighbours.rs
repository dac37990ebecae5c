// SPDX-License-Identifier: GPL-2.0-only
//! Finds the programs of [`crate::coexist`] on the bus, and whether the battery is to be saved.

use crate::coexist::{Found, Known, KNOWN};
use crate::input::Input;
use crate::signals;
use tokio::sync::mpsc::UnboundedSender;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::{Connection, MatchRule, MessageStream};

const SYSTEMD: &str = "org.freedesktop.systemd1";

/// Where the profile is, by the two names that it has had: name, path, interface.
const PROFILES: [(&str, &str, &str); 2] = [
    (
        "org.freedesktop.UPower.PowerProfiles",
        "/org/freedesktop/UPower/PowerProfiles",
        "org.freedesktop.UPower.PowerProfiles",
    ),
    (
        "net.hadess.PowerProfiles",
        "/net/hadess/PowerProfiles",
        "net.hadess.PowerProfiles",
    ),
];

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
    for (_, path, _) in PROFILES {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .path(path)?
            .member("PropertiesChanged")?
            .build();
        signals.push(MessageStream::for_match_rule(rule, bus, None).await?);
    }
    let mut marks = signals::marks(signals);
    loop {
        let found = Input::Coexist(look(bus).await);
        let saver = Input::Saver(saves(bus).await);
        if to.send(found).is_err() || to.send(saver).is_err() || marks.changed().await.is_err() {
            return Ok(());
        }
    }
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
        .call_method(
            Some(SYSTEMD),
            "/org/freedesktop/systemd1",
            manager,
            "GetUnit",
            &(unit,),
        )
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
    for (name, path, interface) in PROFILES {
        if owned(bus, name).await {
            let profile = property(bus, name, path, interface, "ActiveProfile").await;
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
