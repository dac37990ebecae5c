// SPDX-License-Identifier: GPL-2.0-only
//! D-Bus for sources, each of which drives its own connection in its own thread.

use crate::source::Fault;
use tokio::runtime::{Builder, Runtime};
use zbus::fdo::{DBusProxy, NameOwnerChangedStream};
use zbus::proxy::MethodFlags;
use zbus::{Connection, Proxy};

/// A runtime for one thread: it sleeps in the kernel until something comes.
pub fn runtime() -> Result<Runtime, Fault> {
    Ok(Builder::new_current_thread().enable_all().build()?)
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
