// SPDX-License-Identifier: GPL-2.0-only
//! Values that systemd knows are told to systemd, too: otherwise its next `set-property` or reload replaces them.
//!
//! The file is written first, because an app that is launched does not wait for a round trip over the bus. systemd then
//! writes the same value. What the property said before is kept on the group in an attribute, and comes back, as with
//! the files ([`crate::baseline`]), only if ours still stands: when the value is taken back, or after a daemon that was
//! killed. The guard has no bus; it restores the file, and whoever starts next the property.
//!
//! This is for units of the system's manager. A user's manager is on that user's bus, where root has no business.

use crate::baseline::Kept;
use crate::cgroup::Cgroup;
use crate::system::System;
use crate::tree;
use fasttrack_detector::units::leaf;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};
use zbus::Connection;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";

/// How the attributes begin; the property follows.
const PREFIX: &str = "trusted.fasttrack.unit.";

/// The properties that are ever set.
const PROPERTIES: [&str; 2] = ["IOWeight", "MemoryLow"];

/// Longest wait for systemd at the daemon's end.
pub const LAST_MOST: Duration = Duration::from_secs(2);

/// A value that systemd is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Path of the control group.
    pub path: String,
    /// Its inode: another group may have its path meanwhile.
    pub inode: u64,
    /// What it is called on the bus.
    pub property: &'static str,
    /// Ours; none to have what was there before.
    pub value: Option<u64>,
}

impl Told {
    /// What systemd is to be told of a file of a group; none where it is no business of the system's manager.
    pub fn of(group: &Cgroup, file: &str, value: Option<&str>) -> Option<Told> {
        unit(group.path())?;
        let (property, most) = match file {
            "memory.low" => ("MemoryLow", 1),
            "io.weight" => ("IOWeight", 1),
            // systemd maps 1 to 100 of its weights to bfq's 1 to 100, and 100 to 10,000 to 100 to 1,000.
            "io.bfq.weight" => ("IOWeight", 10),
            _ => return None,
        };
        let value = match value {
            Some(value) => Some(value.parse::<u64>().ok()?),
            None => None,
        };
        Some(Told {
            path: group.path().to_string(),
            inode: group.inode(),
            property,
            value: value.map(|value| if value > 100 { value * most } else { value }),
        })
    }
}

/// Whether the last part of a path is the group of a user's manager: what is below is not the system's manager's.
fn is_of_a_user(path: &str) -> bool {
    leaf(path).starts_with("user@")
}

/// The unit of the system's manager that a group is.
pub fn unit(path: &str) -> Option<&str> {
    let (above, name) = path.rsplit_once('/')?;
    let below_a_user = above.split('/').any(is_of_a_user);
    let is_unit = [".slice", ".scope", ".service"]
        .iter()
        .any(|kind| name.ends_with(kind));
    // Names that could be taken for files of the kernel have this sign before them.
    (is_unit && !below_a_user).then(|| name.strip_prefix('_').unwrap_or(name))
}

/// Tells systemd what comes, until nothing can come any more.
pub async fn follow(
    bus: Connection,
    system: System,
    mut values: UnboundedReceiver<Told>,
    trouble: impl Fn(String),
) {
    restore(&bus, &system).await;
    while let Some(told) = values.recv().await {
        if let Err(error) = tell(&bus, &system, &told).await {
            trouble(format!(
                "systemd does not take {} of {}: {error}",
                told.property, told.path
            ));
        }
    }
}

/// Takes back what a daemon that is gone has told systemd.
pub async fn restore(bus: &Connection, system: &System) {
    for path in tree::all(system, |path| !is_of_a_user(path)) {
        let Ok(group) = Cgroup::open_path(system, &path) else {
            continue;
        };
        for property in PROPERTIES {
            if matches!(group.attribute(&format!("{PREFIX}{property}")), Ok(Some(_))) {
                let told = Told {
                    path: path.clone(),
                    inode: group.inode(),
                    property,
                    value: None,
                };
                // It may have no systemd, and then nobody has told it anything.
                let _ = tell(bus, system, &told).await;
            }
        }
    }
}

/// Tells systemd one value, and remembers what it said before.
pub async fn tell(bus: &Connection, system: &System, told: &Told) -> zbus::Result<()> {
    let group = Cgroup::open_path(system, &told.path);
    // A unit that has ended has taken its values along.
    let (Some(unit), Ok(group)) = (unit(&told.path), group) else {
        return Ok(());
    };
    if group.inode() != told.inode || !is_there(bus).await {
        return Ok(());
    }
    let name = format!("{PREFIX}{}", told.property);
    let current = get(bus, unit, told.property).await?.to_string();
    let known = Kept::of(&group, &name)?;
    let kept = told.value.map(|value| {
        let value = value.to_string();
        Kept::next(known.clone(), &current, &value)
    });
    let wanted = match (&kept, known) {
        (Some(kept), _) => {
            kept.keep(&group, &name)?;
            kept.ours.clone()
        }
        (None, Some(known)) if known.stands(&current) => known.before,
        (None, _) => current.clone(),
    };
    if wanted != current {
        set(bus, unit, told.property, &wanted).await?;
    }
    match kept {
        Some(kept) if kept.replaced.is_some() => kept.settle(&group, &name, &wanted)?,
        Some(_) => {}
        None => group.remove_attribute(&name)?,
    }
    Ok(())
}

async fn is_there(bus: &Connection) -> bool {
    let Ok(proxy) = zbus::fdo::DBusProxy::new(bus).await else {
        return false;
    };
    let name = zbus::names::BusName::from_static_str(SYSTEMD);
    match name {
        Ok(name) => proxy.name_has_owner(name).await.unwrap_or(false),
        Err(_) => false,
    }
}

async fn get(bus: &Connection, unit: &str, property: &str) -> zbus::Result<u64> {
    let reply = bus
        .call_method(Some(SYSTEMD), PATH, Some(MANAGER), "GetUnit", &(unit,))
        .await?;
    let path: OwnedObjectPath = reply.body().deserialize()?;
    let kind = unit.rsplit('.').next().unwrap_or("");
    let mut interface = format!("{SYSTEMD}.{}", kind[..1].to_uppercase());
    interface.push_str(&kind[1..]);
    let properties = Some("org.freedesktop.DBus.Properties");
    let reply = bus
        .call_method(
            Some(SYSTEMD),
            path,
            properties,
            "Get",
            &(interface, property),
        )
        .await?;
    let value: OwnedValue = reply.body().deserialize()?;
    Ok(u64::try_from(&value)?)
}

async fn set(bus: &Connection, unit: &str, property: &str, value: &str) -> zbus::Result<()> {
    let value: u64 = value
        .parse()
        .map_err(|_| zbus::Error::Failure(format!("{value:?} is no number")))?;
    let runtime = true;
    let properties = vec![(property, Value::from(value))];
    let body = (unit, runtime, properties);
    bus.call_method(
        Some(SYSTEMD),
        PATH,
        Some(MANAGER),
        "SetUnitProperties",
        &body,
    )
    .await?;
    Ok(())
}
