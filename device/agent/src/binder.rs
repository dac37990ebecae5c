// SPDX-License-Identifier: GPL-2.0-only
//! Android, live: the parcels that `ActivityManager` sends to a registered `IUidObserver`.
//!
//! Only the reading of a parcel is here, tested on parcels made by AOSP's layout (`Parcel.cpp`, `IUidObserver.aidl`).
//! It has not been tried on a phone, and nothing registers the observer yet.

use crate::android::app_uid;
use crate::source::Fault;

const INTERFACE: &str = "android.app.IUidObserver";
/// "SYST": a parcel of the system's side.
const HEADER: i32 = 0x5359_5354;
/// `PROCESS_STATE_TOP`: what the user looks at.
const STATE_TOP: i32 = 2;
/// Longest name of an interface, in characters.
const NAME_MOST: usize = 256;

/// Numbers of the calls that matter, in the order of the interface; `ACTIVE` and `IDLE` are between them.
const GONE: u32 = 1;
const STATE_CHANGED: u32 = 4;

/// What an observer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// This app is in front, or no longer.
    Front(u32, bool),
    /// All processes of this app have ended.
    Gone(u32),
    /// Of no interest.
    Nothing,
}

/// Reads a call.
pub fn parse(code: u32, parcel: &[u8]) -> Result<Call, Fault> {
    let mut parcel = Parcel(parcel);
    parcel.interface()?;
    let uid = u32::try_from(parcel.int()?).map_err(|_| bad())?;
    let Some(uid) = app_uid(uid) else {
        return Ok(Call::Nothing);
    };
    Ok(match code {
        GONE => Call::Gone(uid),
        STATE_CHANGED => Call::Front(uid, parcel.int()? == STATE_TOP),
        _ => Call::Nothing,
    })
}

fn bad() -> Fault {
    Fault::new("it sent what is no call of an observer")
}

struct Parcel<'a>(&'a [u8]);

impl Parcel<'_> {
    fn int(&mut self) -> Result<i32, Fault> {
        let (word, rest) = self.0.split_first_chunk::<4>().ok_or_else(bad)?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*word))
    }

    /// Strict mode's policy, the work's source, the header, and the interface's name in UTF-16 with an end, padded.
    fn interface(&mut self) -> Result<(), Fault> {
        let (_policy, _source, header) = (self.int()?, self.int()?, self.int()?);
        let length = usize::try_from(self.int()?).map_err(|_| bad())?;
        if header != HEADER || length > NAME_MOST {
            return Err(bad());
        }
        let bytes = ((length + 1) * 2).next_multiple_of(4);
        let (name, rest) = self.0.split_at_checked(bytes).ok_or_else(bad)?;
        self.0 = rest;
        let units = name
            .chunks_exact(2)
            .take(length)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        match units.eq(INTERFACE.encode_utf16()) {
            true => Ok(()),
            false => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mutate;

    fn parcel(ints: &[i32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let words = [0x42, -1, HEADER, INTERFACE.len() as i32];
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        INTERFACE
            .encode_utf16()
            .for_each(|unit| bytes.extend(unit.to_le_bytes()));
        bytes.extend([0, 0]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        ints.iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    #[test]
    fn calls_are_read() {
        let top = parcel(&[10_123, STATE_TOP, 7, 0, 15]);
        assert_eq!(parse(STATE_CHANGED, &top), Ok(Call::Front(10_123, true)));
        let sandbox = parcel(&[20_123, 11, 7, 0, 0]);
        assert_eq!(
            parse(STATE_CHANGED, &sandbox),
            Ok(Call::Front(10_123, false))
        );
        assert_eq!(
            parse(GONE, &parcel(&[1_010_123, 0])),
            Ok(Call::Gone(1_010_123))
        );
        assert_eq!(parse(STATE_CHANGED, &parcel(&[1000, 2])), Ok(Call::Nothing));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        assert!(parse(GONE, &[]).is_err());
        assert!(parse(STATE_CHANGED, &parcel(&[10_123])).is_err());
        assert!(parse(GONE, &parcel(&[-1])).is_err());
        let other = parcel(&[10_123])
            .iter()
            .map(|byte| byte ^ 1)
            .collect::<Vec<u8>>();
        assert!(parse(GONE, &other).is_err());
        mutate(&parcel(&[10_123, 2, 7, 0, 15]), |bytes| {
            drop(parse(STATE_CHANGED, bytes))
        });
    }
}
