// SPDX-License-Identifier: GPL-2.0-only
//! An event with its description.

use crate::tracefs::EventFormat;

/// Sectors of the largest disk that is thought of, 128 PiB.
const PLACES: u64 = 1 << 48;

/// An event as a source gives it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// When, ns of the boot-time clock.
    pub time: u64,
    /// Which processor.
    pub cpu: u64,
    /// What its bytes mean.
    pub format: &'a EventFormat,
    /// Its bytes.
    pub data: &'a [u8],
}

impl Event<'_> {
    /// A number, if the event has it.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.format.number(self.data, name)
    }

    /// A place on a disk or in a file, or a count of such places. What is beyond any disk is no place: nothing that is
    /// made of places can overflow.
    pub fn place(&self, name: &str) -> Option<u64> {
        self.number(name).filter(|place| *place < PLACES)
    }

    /// The same, signed.
    pub fn signed(&self, name: &str) -> Option<i64> {
        self.number(name).map(|number| number as i64)
    }

    /// A text, if the event has it.
    pub fn text(&self, name: &str) -> Option<String> {
        self.format.text(self.data, name)
    }

    /// A device, as the kernel numbers it; 0 is none.
    pub fn dev(&self, name: &str) -> Option<u64> {
        self.number(name).filter(|dev| *dev != 0)
    }

    /// The task that was running; 0 in the idle task.
    pub fn pid(&self) -> u64 {
        self.number("common_pid").unwrap_or(0)
    }

    /// The same as the thread that did something, where that is known.
    pub fn thread(&self) -> Option<u64> {
        self.number("common_pid").filter(|pid| *pid != 0)
    }
}

/// For tests: an event of fields of 8 bytes.
#[cfg(test)]
pub(super) struct WideEvent {
    pub(super) format: EventFormat,
    pub(super) data: Vec<u8>,
}

#[cfg(test)]
impl WideEvent {
    pub(super) fn new(name: &str, fields: &[(&str, u64)]) -> Self {
        let lines: String = (0..)
            .zip(fields)
            .map(|(at, (name, _))| {
                let at = 8 * at;
                format!("\tfield:u64 {name};\toffset:{at};\tsize:8;\tsigned:0;\n")
            })
            .collect();
        let text = format!("name: {name}\nID: 7\nformat:\n{lines}\n");
        Self {
            format: EventFormat::parse(&text).expect("a format"),
            data: fields
                .iter()
                .flat_map(|(_, value)| value.to_ne_bytes())
                .collect(),
        }
    }

    pub(super) fn at(&self, time: u64) -> Event<'_> {
        Event {
            time,
            cpu: 0,
            format: &self.format,
            data: &self.data,
        }
    }
}
