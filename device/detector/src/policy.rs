// SPDX-License-Identifier: GPL-2.0-only
//! The constants of the policy, each with its unit and reason.

use std::time::Duration;

/// How long "no window has the focus" is not believed.
///
/// `KWin` says it between any two windows, for a millisecond or two, and a busy machine stretches that. A person does
/// not see a tenth of a second.
pub const DEBOUNCE: Duration = Duration::from_millis(100);

/// How long an app may be launching at most.
///
/// A cold start of a large app takes 2 to 5 s on slow storage, of a game 10. What has no window by then is a service, or
/// waits for the network.
pub const LAUNCH_MOST: Duration = Duration::from_secs(10);

/// How long an app is still launching after its first window, counted from its last wait for storage.
///
/// The first window often shows a splash; what the app shows then is read after it.
pub const LAUNCH_SETTLE: Duration = Duration::from_secs(2);

/// How many apps of a session may be launching and in front at once; of more, the newest.
///
/// The user waits for one, rarely two. A session that starts has twenty, and the boost of all is the boost of none.
pub const LAUNCHES_IN_FRONT: usize = 2;

/// How long an app lingers after it has lost the focus.
///
/// Who presses alt-tab by mistake presses it again within a second.
pub const LINGER: Duration = Duration::from_secs(1);

/// How many apps of a session may linger at once; of more, the latest.
///
/// Nobody looks at more windows in a second.
pub const LINGERING_MOST: usize = 8;

/// How many apps of a session are remembered at most.
///
/// A desktop has tens. The bound is for agents that report without end: the one heard of longest ago is forgotten.
pub const APPS_MOST: usize = 256;
