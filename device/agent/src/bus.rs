// SPDX-License-Identifier: GPL-2.0-only
//! D-Bus for sources, each of which drives its own connection in its own thread.

use crate::env::Env;
use crate::fault::Fault;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use zbus::fdo::{DBusProxy, NameOwnerChangedStream};
use zbus::proxy::MethodFlags;
use zbus::{Connection, Proxy};

/// A runtime for one thread: it sleeps in the kernel until something comes.
pub fn runtime() -> Result<Runtime, Fault> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Whether a session has a bus.
pub fn has_session(env: &Env) -> bool {
    let named = env.var("DBUS_SESSION_BUS_ADDRESS").is_some();
    named || env.runtime("bus").is_some_and(|path| path.exists())
}

/// The user's manager of units.
pub async fn user_manager(bus: &Connection) -> Result<Proxy<'static>, Fault> {
    proxy(
        bus,
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
    )
    .await
}

/// Longest wait for the user manager's answer.
const ANSWER_MOST: Duration = Duration::from_millis(500);

/// The environment that the user manager has, `NAME=VALUE` each: what a compositor has imported since this process
/// began. It does not say that it has changed. Empty where there is no manager.
pub fn environment() -> Vec<String> {
    let asked = async {
        let bus = Connection::session().await?;
        let manager = user_manager(&bus).await?;
        Ok::<Vec<String>, Fault>(manager.get_property("Environment").await?)
    };
    let result = runtime().and_then(|runtime| {
        let answer = runtime.block_on(async { tokio::time::timeout(ANSWER_MOST, asked).await });
        answer.unwrap_or_else(|_| Err(Fault::new("the user manager does not answer")))
    });
    result.unwrap_or_default()
}

/// An object that keeps no properties: a cache would wake the agent for each change.
pub async fn proxy(
    bus: &Connection,
    service: &str,
    path: &str,
    interface: &str,
) -> Result<Proxy<'static>, Fault> {
    let proxy = zbus::proxy::Builder::new(bus)
        .destination(service.to_string())?
        .path(path.to_string())?
        .interface(interface.to_string())?
        .cache_properties(zbus::proxy::CacheProperties::No)
        .build()
        .await?;
    Ok(proxy)
}

/// Who owns a name.
pub async fn owner(bus: &Connection, name: &str) -> Result<Option<String>, Fault> {
    let daemon = DBusProxy::new(bus).await?;
    match daemon
        .get_name_owner(name.try_into().map_err(zbus::Error::from)?)
        .await
    {
        Ok(owner) => Ok(Some(owner.to_string())),
        Err(zbus::fdo::Error::NameHasNoOwner(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Process of a connection.
pub async fn process(bus: &Connection, name: &str) -> Result<u32, Fault> {
    let daemon = DBusProxy::new(bus).await?;
    Ok(daemon
        .get_connection_unix_process_id(name.try_into().map_err(zbus::Error::from)?)
        .await?)
}

/// Changes of a name's owner.
pub async fn owners(bus: &Connection, name: &str) -> Result<NameOwnerChangedStream, Fault> {
    let daemon = DBusProxy::new(bus).await?;
    Ok(daemon
        .receive_name_owner_changed_with_args(&[(0, name)])
        .await?)
}

/// Calls a service only where it runs: the bus would start it otherwise, and that is nobody's wish here.
pub async fn call_running<B, R>(proxy: &Proxy<'_>, method: &str, body: &B) -> Result<R, Fault>
where
    B: serde::Serialize + zbus::zvariant::DynamicType,
    R: for<'d> zbus::zvariant::DynamicDeserialize<'d>,
{
    let flags = MethodFlags::NoAutoStart.into();
    let reply = proxy.call_with_flags(method, flags, body).await?;
    reply.ok_or_else(|| Fault(format!("D-Bus: {method} has no answer")))
}
