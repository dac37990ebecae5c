// SPDX-License-Identifier: GPL-2.0-only
//! Other programs that change the same things: they are named, and given way to, thing by thing.

use fasttrack_config::Effects;

/// A program that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found(&'static Known);

/// A program that does similar things.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name for people.
    pub name: &'static str,
    /// Its names on the system bus.
    pub bus: &'static [&'static str],
    /// Its units.
    pub units: &'static [&'static str],
    /// What is left to it.
    left: &'static [Thing],
    /// What that means, as a sentence.
    meaning: &'static str,
}

/// Something that two programs can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Weights,
    Memory,
    Ioprio,
}

/// The names that power-profiles-daemon has had on the bus, the latest first. Its interface is called likewise, and its
/// object by the same words.
pub const POWER_PROFILES: [&str; 2] = [
    "org.freedesktop.UPower.PowerProfiles",
    "net.hadess.PowerProfiles",
];

/// All that are looked for.
pub static KNOWN: [Known; 5] = [
    Known {
        name: "uresourced",
        bus: &["org.freedesktop.UResourced"],
        units: &["uresourced.service"],
        left: &[Thing::Weights, Thing::Memory],
        meaning: "it sets weights and protected memory of users' slices; both are left to it",
    },
    Known {
        name: "system76-scheduler",
        bus: &["com.system76.Scheduler"],
        units: &[
            "com.system76.Scheduler.service",
            "system76-scheduler.service",
        ],
        left: &[Thing::Ioprio],
        meaning: "it sets I/O priorities of processes; these are left to it",
    },
    Known {
        name: "Ananicy",
        bus: &[],
        units: &["ananicy.service", "ananicy-cpp.service"],
        left: &[Thing::Ioprio],
        meaning: "it sets I/O priorities by names of programs; these are left to it",
    },
    Known {
        name: "systemd-oomd",
        bus: &["org.freedesktop.oom1"],
        units: &["systemd-oomd.service"],
        left: &[],
        meaning:
            "it looks at memory pressure, which a freeze of less than a second does not change",
    },
    Known {
        name: "power-profiles-daemon",
        bus: &POWER_PROFILES,
        units: &["power-profiles-daemon.service"],
        left: &[],
        meaning: "while its profile is power-saver nothing is frozen",
    },
];

/// A sentence about GameMode, which is on the users' buses: their agents tell of its games.
pub fn gamemode(games: usize) -> String {
    format!("GameMode runs: its games ({games}) are never held back, and their I/O priority is left to it.")
}

impl Found {
    /// The program of this number in [`KNOWN`].
    pub fn number(index: usize) -> Option<Found> {
        KNOWN.get(index).map(Found)
    }

    /// A sentence about it.
    pub fn sentence(&self) -> String {
        format!("{} runs: {}.", self.0.name, self.0.meaning)
    }
}

/// What is still wanted beside these programs.
pub fn give_way(found: &[Found], wanted: &Effects) -> Effects {
    let left = |thing| found.iter().any(|program| program.0.left.contains(&thing));
    let mut wanted = wanted.clone();
    wanted.weights &= !left(Thing::Weights);
    wanted.memory &= !left(Thing::Memory);
    wanted.ioprio &= !left(Thing::Ioprio);
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_config::Config;

    fn found(names: &[&str]) -> Vec<Found> {
        let all = (0..KNOWN.len()).filter_map(Found::number);
        all.filter(|program| names.contains(&program.0.name))
            .collect()
    }

    #[test]
    fn way_is_given_thing_by_thing() {
        let wanted = Config::default().effects;
        assert_eq!(give_way(&[], &wanted), wanted);
        let beside = give_way(&found(&["uresourced"]), &wanted);
        assert_eq!(
            (beside.weights, beside.memory, beside.ioprio, beside.kernel),
            (false, false, true, true)
        );
        let beside = give_way(&found(&["Ananicy", "systemd-oomd"]), &wanted);
        assert_eq!((beside.weights, beside.ioprio), (true, false));
    }

    #[test]
    fn each_has_a_sentence() {
        for index in 0..KNOWN.len() {
            let sentence = Found::number(index).expect("known").sentence();
            assert!(
                sentence.ends_with('.') && sentence.contains(" runs: "),
                "{sentence}"
            );
        }
        assert!(Found::number(KNOWN.len()).is_none());
    }
}
