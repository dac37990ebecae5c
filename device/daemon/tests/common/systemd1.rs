// SPDX-License-Identifier: GPL-2.0-only
//! systemd's manager, as far as the daemon asks it and tells it.

use super::Bus;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zbus::fdo;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::Connection;

const MANAGER: &str = "/org/freedesktop/systemd1";

/// Properties by unit and name.
type All = Arc<Mutex<BTreeMap<(String, String), u64>>>;

/// What was set, in order: unit, property, value, and whether for this run of the machine alone.
type Sets = Arc<Mutex<Vec<(String, String, u64, bool)>>>;

/// The mock.
pub struct Systemd1 {
    connection: Connection,
    all: All,
    sets: Sets,
}

struct Manager {
    all: All,
    sets: Sets,
}

struct Unit {
    active: bool,
}

/// A slice or a service, both by the interface that is asked for.
struct Slice {
    name: String,
    all: All,
}

struct Service {
    name: String,
    all: All,
}

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) {}

    fn get_unit(&self, name: &str) -> fdo::Result<OwnedObjectPath> {
        let known = self.all.lock().expect("no panic");
        if known.keys().any(|(unit, _)| unit == name) {
            return Ok(path(name));
        }
        Err(fdo::Error::Failed(format!("Unit {name} not loaded.")))
    }

    fn set_unit_properties(
        &self,
        name: &str,
        runtime: bool,
        properties: Vec<(String, OwnedValue)>,
    ) {
        for (property, value) in properties {
            let value = u64::try_from(&value).expect("a number");
            let set = (name.to_string(), property.clone(), value, runtime);
            self.sets.lock().expect("no panic").push(set);
            let key = (name.to_string(), property);
            self.all.lock().expect("no panic").insert(key, value);
        }
    }
}

#[zbus::interface(name = "org.freedesktop.systemd1.Unit")]
impl Unit {
    #[zbus(property)]
    fn active_state(&self) -> &str {
        if self.active {
            "active"
        } else {
            "inactive"
        }
    }
}

fn read(all: &All, unit: &str, property: &str) -> u64 {
    let all = all.lock().expect("no panic");
    *all.get(&(unit.to_string(), property.to_string()))
        .unwrap_or(&0)
}

#[zbus::interface(name = "org.freedesktop.systemd1.Slice")]
impl Slice {
    #[zbus(property)]
    fn memory_low(&self) -> u64 {
        read(&self.all, &self.name, "MemoryLow")
    }
}

#[zbus::interface(name = "org.freedesktop.systemd1.Service")]
impl Service {
    #[zbus(property, name = "IOWeight")]
    fn io_weight(&self) -> u64 {
        read(&self.all, &self.name, "IOWeight")
    }

    #[zbus(property)]
    fn memory_low(&self) -> u64 {
        read(&self.all, &self.name, "MemoryLow")
    }
}

fn path(unit: &str) -> OwnedObjectPath {
    let escaped = unit.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    });
    let path = format!("{MANAGER}/unit/{}", escaped.collect::<String>());
    OwnedObjectPath::try_from(path).expect("a path")
}

impl Systemd1 {
    pub async fn start(bus: &Bus) -> Systemd1 {
        let (all, sets) = (All::default(), Sets::default());
        let connection = bus.connect().await;
        let manager = Manager {
            all: all.clone(),
            sets: sets.clone(),
        };
        let server = connection.object_server();
        server.at(MANAGER, manager).await.expect("an object");
        connection
            .request_name("org.freedesktop.systemd1")
            .await
            .expect("a name");
        Systemd1 {
            connection,
            all,
            sets,
        }
    }

    /// A unit with a property, or two.
    pub async fn add(&self, unit: &str, properties: &[(&str, u64)]) {
        for (property, value) in properties {
            self.change(unit, property, *value);
        }
        let server = self.connection.object_server();
        let (name, all) = (unit.to_string(), self.all.clone());
        let done = match unit.ends_with(".slice") {
            true => server.at(path(unit), Slice { name, all }).await,
            false => server.at(path(unit), Service { name, all }).await,
        };
        assert!(done.expect("an object"));
        let active = Unit { active: false };
        server.at(path(unit), active).await.expect("an object");
    }

    /// Somebody else sets a property.
    pub fn change(&self, unit: &str, property: &str, value: u64) {
        let key = (unit.to_string(), property.to_string());
        self.all.lock().expect("no panic").insert(key, value);
    }

    pub fn value(&self, unit: &str, property: &str) -> u64 {
        read(&self.all, unit, property)
    }

    /// What was set.
    pub fn sets(&self) -> Vec<(String, String, u64, bool)> {
        self.sets.lock().expect("no panic").clone()
    }

    /// A unit starts or ends.
    pub async fn set_active(&self, unit: &str, active: bool) {
        let server = self.connection.object_server();
        let object = server
            .interface::<_, Unit>(path(unit))
            .await
            .expect("a unit");
        object.get_mut().await.active = active;
        let emitter = object.signal_emitter();
        let told = object.get().await.active_state_changed(emitter).await;
        told.expect("told");
    }
}
