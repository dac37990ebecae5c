// SPDX-License-Identifier: GPL-2.0-only
//! What an agent tells the daemon: who is in front, who starts, who can be heard.

use crate::units;

/// An app as a session knows it: a control group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppRef {
    /// Path below the root of the control groups, as in `/proc/PID/cgroup`; begins with a slash.
    pub cgroup: String,
    /// Inode of that directory: another group may have the same path later.
    pub inode: u64,
    /// Desktop or Wayland application id; empty where nobody has said it.
    pub id: String,
    /// Process that owns the window, in the daemon's PID namespace; zero where it is not known.
    pub pid: u32,
}

impl AppRef {
    /// How a person may call it: its application id, or its unit.
    pub fn name(&self) -> &str {
        match self.id.is_empty() {
            true => units::leaf(&self.cgroup),
            false => &self.id,
        }
    }
}

/// Why nobody is in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nobody {
    /// The compositor says that no window has the focus.
    Unfocused,
    /// The screen is locked or off.
    Locked,
    /// The user has done nothing for a while.
    Idle,
    /// The session is not the active one of its seat.
    Inactive,
}

impl Nobody {
    /// All reasons.
    pub const ALL: [Nobody; 4] = [
        Nobody::Unfocused,
        Nobody::Locked,
        Nobody::Idle,
        Nobody::Inactive,
    ];

    /// One word for it, on the bus and where reports are shown.
    pub fn word(self) -> &'static str {
        match self {
            Nobody::Unfocused => "unfocused",
            Nobody::Locked => "locked",
            Nobody::Idle => "idle",
            Nobody::Inactive => "inactive",
        }
    }
}

/// Why an app can be noticed though it is not in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sense {
    /// Plays or records sound.
    Audio,
    /// Uses the camera.
    Camera,
    /// The screen is shown to others.
    ScreenCast,
    /// Keeps the session from idling, as players of video do.
    Inhibitor,
    /// Input method or keyboard on the screen.
    Input,
    /// Is registered with GameMode as a game.
    Game,
}

impl Sense {
    /// All senses.
    pub const ALL: [Sense; 6] = [
        Sense::Audio,
        Sense::Camera,
        Sense::ScreenCast,
        Sense::Inhibitor,
        Sense::Input,
        Sense::Game,
    ];

    /// One word for it, on the bus and where reports are shown.
    pub fn word(self) -> &'static str {
        match self {
            Sense::Audio => "audio",
            Sense::Camera => "camera",
            Sense::ScreenCast => "screen-cast",
            Sense::Inhibitor => "inhibitor",
            Sense::Input => "input",
            Sense::Game => "game",
        }
    }
}

/// One report of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// These apps have the focus; more than one where the screen is shared.
    Front(Vec<AppRef>),
    /// No app is in front.
    Nobody(Nobody),
    /// More than one app says that it has the focus: nothing is boosted.
    Ambiguous(Vec<AppRef>),
    /// The compositor named here cannot tell who has the focus.
    CannotTell(String),
    /// An app begins: there is no window yet.
    Launch(AppRef),
    /// A launched app has shown its first window.
    Window(AppRef),
    /// An app can, or can no longer, be noticed.
    Perceptible {
        /// Who.
        app: AppRef,
        /// By what.
        sense: Sense,
        /// Whether it begins or ends.
        on: bool,
    },
}
