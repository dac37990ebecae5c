// SPDX-License-Identifier: GPL-2.0-only
//! The D-Bus interface of `fasttrackd`: names, types on the wire, and a proxy for those who call it. Besides, the lease
//! for which the kernel believes daemon and agent.
//!
//! `data/org.fasttrack1.Manager.xml` documents each member. A report goes as four fields, so that one signature carries
//! all kinds:
//!
//! | field | type | meaning |
//! |---|---|---|
//! | kind | `s` | `front`, `nobody`, `ambiguous`, `cannot-tell`, `launch`, `window`, `perceptible` |
//! | apps | `a(stsu)` | control group, its inode, application id, process |
//! | detail | `s` | why nobody is in front; the compositor; by what an app can be noticed |
//! | on | `b` | whether being perceptible begins |
//!
//! The same types serve both directions and the JSON output of `fasttrackctl`.

mod lease;
mod proxy;
mod report;
mod status;

pub use lease::{lease_ms, BEAT, LEASE};
pub use proxy::{AgentProxy, ChangedStream, ManagerProxy};
pub use report::{
    check_sources, Malformed, WireApp, WireReport, WireTrouble, APPS_MOST, ID_BYTES_MOST,
    PATH_BYTES_MOST, SOURCES_MOST,
};
pub use status::{AppStatus, Explanation, SessionStatus, Status, Usage};

/// Name of the daemon on the system bus.
pub const NAME: &str = "org.fasttrack1";

/// Path of its one object.
pub const PATH: &str = "/org/fasttrack1";

/// Name of a session's agent on the session's bus.
pub const AGENT_NAME: &str = "org.fasttrack1.Agent";

/// Path of its one object.
pub const AGENT_PATH: &str = "/org/fasttrack1/Agent";

/// What polkit is asked before somebody says by hand who is in front.
pub const ACTION: &str = "org.fasttrack1.set-foreground";
