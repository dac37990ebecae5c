// SPDX-License-Identifier: GPL-2.0-only
//! Wayland compositors with `ext_idle_notifier_v1` (KWin, sway since 1.8, Hyprland, niri, labwc, COSMIC): nobody has
//! touched anything for a while. That is before a screen is switched off for the same reason, which no compositor but
//! Mutter tells. Who keeps the screen awake keeps this from happening. GNOME has logind's hint (`logind`).

use crate::env::Env;
use crate::fault::Fault;
use crate::source::{Out, Probe, Source};
use crate::toplevel::{connect, wayland_socket};
use fasttrack_detector::report::Nobody;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use wayland_client::globals::GlobalListContents;
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle};
use wayland_protocols::ext::idle_notify::v1::client::{
    ext_idle_notification_v1::{self as notification, ExtIdleNotificationV1 as Notification},
    ext_idle_notifier_v1::ExtIdleNotifierV1 as Notifier,
};

/// After how long: as long as GNOME's default. Shorter than what desktops switch a screen off after.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Seats at most.
const SEATS_MOST: usize = 16;

/// What is known of the seats of a compositor.
#[derive(Debug, Default)]
struct Seats {
    number: usize,
    idle: BTreeSet<u32>,
    /// Changes that were not told yet.
    changes: Vec<bool>,
    away: bool,
}

macro_rules! says_nothing {
    ($($kind:ty, $data:ty);+) => {$(
        impl Dispatch<$kind, $data> for Seats {
            fn event(
                _: &mut Seats,
                _: &$kind,
                _: <$kind as Proxy>::Event,
                _: &$data,
                _: &Connection,
                _: &QueueHandle<Seats>,
            ) {
            }
        }
    )+};
}

says_nothing!(WlRegistry, GlobalListContents; WlSeat, (); Notifier, ());

impl Dispatch<Notification, u32> for Seats {
    fn event(
        state: &mut Seats,
        _: &Notification,
        event: notification::Event,
        seat: &u32,
        _: &Connection,
        _: &QueueHandle<Seats>,
    ) {
        match event {
            notification::Event::Idled => drop(state.idle.insert(*seat)),
            notification::Event::Resumed => drop(state.idle.remove(seat)),
            _ => {}
        }
        if state.are_idle() != state.away {
            state.away = !state.away;
            state.changes.push(state.away);
        }
    }
}

impl Seats {
    /// Whether nobody sits at any of them.
    fn are_idle(&self) -> bool {
        self.number > 0 && self.idle.len() == self.number
    }
}

/// A compositor's seats.
pub struct Idle {
    socket: Option<PathBuf>,
}

impl Idle {
    /// At `WAYLAND_DISPLAY`.
    pub fn new(env: &Env) -> Idle {
        Idle {
            socket: wayland_socket(env),
        }
    }

    fn bind(&self) -> Result<(EventQueue<Seats>, Seats), Fault> {
        let (globals, queue) = connect::<Seats>(self.socket.as_deref())?;
        let handle = queue.handle();
        let notifier = globals
            .bind::<Notifier, Seats, ()>(&handle, 1..=1, ())
            .map_err(|_| Fault::new("the compositor does not tell whether somebody is there"))?;
        let names = globals.contents().with_list(|all| {
            let seats = all.iter().filter(|one| one.interface == "wl_seat");
            seats
                .map(|one| one.name)
                .take(SEATS_MOST)
                .collect::<Vec<u32>>()
        });
        let ms = u32::try_from(IDLE.as_millis()).unwrap_or(u32::MAX);
        for name in &names {
            let seat = globals
                .registry()
                .bind::<WlSeat, _, _>(*name, 1, &handle, ());
            notifier.get_idle_notification(ms, &seat, &handle, *name);
        }
        let number = names.len();
        match number {
            0 => Err(Fault::new("the compositor has no seat")),
            _ => Ok((
                queue,
                Seats {
                    number,
                    ..Seats::default()
                },
            )),
        }
    }
}

impl Source for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn probe(&self) -> Probe {
        match self.bind() {
            Ok(_) => Probe::Yes,
            Err(Fault(why)) => Probe::No(why),
        }
    }

    fn run(&mut self, out: &Out) -> Result<(), Fault> {
        let (mut queue, mut seats) = self.bind()?;
        loop {
            queue.blocking_dispatch(&mut seats)?;
            for away in seats.changes.drain(..) {
                out.away(Nobody::Idle, away)?;
            }
        }
    }

    fn tells_focus(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::testing::{wayland, FakePlace};

    #[test]
    fn nobody_is_there_while_all_seats_are_idle() {
        // Objects of the client: registry 2, sync 3, notifier 4, a seat and its notification 5 and 6, then 7 and 8.
        let globals = [("wl_seat", 5), ("ext_idle_notifier_v1", 1), ("wl_seat", 5)];
        let away = |on| Event::Away {
            source: "idle",
            why: Nobody::Idle,
            on,
        };
        let events = [(6, 0), (8, 0), (6, 1), (6, 0)];
        let events = events.map(|(object, opcode)| wayland::event(object, opcode, &[]));
        let events = events.concat();
        let (env, _runtime) =
            wayland::play(wayland::globals(&globals), move || (events.clone(), false));
        let (to, from) = std::sync::mpsc::sync_channel(8);
        let out = Out::new("idle", FakePlace::new().resolver(), to);
        // It waits for more in the end.
        std::thread::spawn(move || Idle::new(&env).run(&out));
        for on in [true, false, true] {
            assert_eq!(from.recv(), Ok(away(on)));
        }
    }

    #[test]
    fn a_compositor_without_a_seat_or_the_protocol_cannot_tell() {
        for globals in [&[("ext_idle_notifier_v1", 1)][..], &[("wl_seat", 5)]] {
            let (env, _runtime) = wayland::play(wayland::globals(globals), || (Vec::new(), true));
            assert!(matches!(Idle::new(&env).probe(), Probe::No(_)));
        }
    }
}
