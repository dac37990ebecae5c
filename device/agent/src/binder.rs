// SPDX-License-Identifier: GPL-2.0-only
//! Parcels of Android's binder: what `ActivityManager` sends to a registered `IUidObserver`, and what is sent to register
//! one. By AOSP's layout (`Parcel.cpp`, `IUidObserver.aidl`, `IActivityManager.aidl`, `IServiceManager.aidl`).

use crate::fault::Fault;

const OBSERVER: &str = "android.app.IUidObserver";
const ACTIVITY_MANAGER: &str = "android.app.IActivityManager";
const SERVICE_MANAGER: &str = "android.os.IServiceManager";
/// "SYST": a parcel of the system's side.
const HEADER: i32 = 0x5359_5354;
/// Longest name of an interface, in characters.
const NAME_MOST: usize = 256;

/// Process states (`ActivityManager.java`): what the user looks at, what that is bound to, and the last one that the user
/// can notice: services in the foreground and what they are bound to.
const STATE_TOP: i32 = 2;
const STATE_BOUND_TOP: i32 = 3;
const STATE_NOTICED: i32 = 6;

/// Numbers of the observer's calls, in the order of its interface; `ACTIVE` and `IDLE` are between them.
const GONE: u32 = 1;
const STATE_CHANGED: u32 = 4;
/// `IServiceManager.getService` and `IActivityManager.registerUidObserver`. Native code of Android calls both, so they
/// keep their numbers.
pub const GET_SERVICE: u32 = 1;
/// See [`GET_SERVICE`].
pub const REGISTER: u32 = 2;
/// Of what an observer is told: processes' states, and that a UID has no process.
const WHICH: i32 = 1 | 2;
/// Of all states: `PROCESS_STATE_UNKNOWN`.
const CUTPOINT: i32 = -1;
/// Objects in parcels: one of the sender's own, and one of another process (`binder.h`).
const OWN: u32 = 0x7362_2a85;
const HANDLE: u32 = 0x7368_2a85;
/// Bytes of such an object, without the word on its stability that follows it.
const OBJECT: usize = 24;

/// How much of an app the user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Looks at it.
    Top,
    /// Looks at what it works for.
    BoundTop,
    /// Can notice it.
    Noticed,
    /// Nothing.
    Behind,
}

/// What an observer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The processes of a UID have this state.
    State(u32, State),
    /// All processes of a UID have ended.
    Gone(u32),
    /// Of no interest.
    Nothing,
}

/// Reads a call.
pub fn parse(code: u32, parcel: &[u8]) -> Result<Call, Fault> {
    let mut parcel = Parcel(parcel);
    parcel.interface()?;
    let uid = u32::try_from(parcel.int()?).map_err(|_| bad())?;
    Ok(match code {
        GONE => Call::Gone(uid),
        STATE_CHANGED => Call::State(uid, state(parcel.int()?)),
        _ => Call::Nothing,
    })
}

/// States before `TOP` are the system's own, which is nobody's app.
fn state(number: i32) -> State {
    match number {
        STATE_TOP => State::Top,
        STATE_BOUND_TOP => State::BoundTop,
        4..=STATE_NOTICED => State::Noticed,
        _ => State::Behind,
    }
}

/// The arguments of [`GET_SERVICE`].
pub fn get_service(name: &str) -> Vec<u8> {
    let mut bytes = token(SERVICE_MANAGER);
    text(&mut bytes, name);
    bytes
}

/// The arguments of [`REGISTER`], and where in them the observer is. OBSERVER is this process's number of it.
pub fn register(observer: u64, package: &str) -> (Vec<u8>, usize) {
    let mut bytes = token(ACTIVITY_MANAGER);
    let at = bytes.len();
    bytes.extend(OWN.to_le_bytes());
    // It takes calls of any priority, and no files.
    bytes.extend(0x7f_u32.to_le_bytes());
    bytes.extend(observer.to_le_bytes());
    bytes.extend(observer.to_le_bytes());
    // Stability: as any object of the system's side.
    int(&mut bytes, 0x0c);
    int(&mut bytes, WHICH);
    int(&mut bytes, CUTPOINT);
    text(&mut bytes, package);
    (bytes, at)
}

/// The handle in the answer to [`GET_SERVICE`].
pub fn service(answer: &[u8]) -> Result<u32, Fault> {
    let mut parcel = Parcel(answer);
    parcel.good()?;
    let kind = parcel.int()? as u32;
    let (_flags, handle) = (parcel.int()?, parcel.int()? as u32);
    match kind == HANDLE && answer.len() >= 4 + OBJECT {
        true => Ok(handle),
        false => Err(Fault::new("the service manager knows no activity manager")),
    }
}

/// The answer to [`REGISTER`], which has nothing but whether it was refused.
pub fn registered(answer: &[u8]) -> Result<(), Fault> {
    Parcel(answer).good()
}

fn bad() -> Fault {
    Fault::new("it sent what is no parcel of its interface")
}

fn int(bytes: &mut Vec<u8>, number: i32) {
    bytes.extend(number.to_le_bytes());
}

/// A text in UTF-16 with its length before and a zero behind it, padded.
fn text(bytes: &mut Vec<u8>, text: &str) {
    let units: Vec<u16> = text.encode_utf16().collect();
    int(bytes, units.len() as i32);
    for unit in units.iter().chain(&[0]) {
        bytes.extend(unit.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Strict mode's policy, the work's source, the header, and the interface's name.
fn token(interface: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    [0, -1, HEADER]
        .iter()
        .for_each(|word| int(&mut bytes, *word));
    text(&mut bytes, interface);
    bytes
}

struct Parcel<'a>(&'a [u8]);

impl Parcel<'_> {
    fn int(&mut self) -> Result<i32, Fault> {
        let (word, rest) = self.0.split_first_chunk::<4>().ok_or_else(bad)?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*word))
    }

    /// An answer begins with the number of an exception.
    fn good(&mut self) -> Result<(), Fault> {
        match self.int()? {
            0 => Ok(()),
            -1 => Err(Fault::new(
                "Android refuses: a process that observes UIDs needs PACKAGE_USAGE_STATS",
            )),
            number => Err(Fault(format!("Android refuses with exception {number}"))),
        }
    }

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
        match units.eq(OBSERVER.encode_utf16()) {
            true => Ok(()),
            false => Err(bad()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::mutate;

    /// A call as the activity manager makes it.
    pub fn call(ints: &[i32]) -> Vec<u8> {
        let mut bytes = token(OBSERVER);
        ints.iter().for_each(|word| int(&mut bytes, *word));
        bytes
    }

    /// `onUidStateChanged(10123, TOP, 7, ALL)` in bytes, written by hand after the layout in `Parcel.cpp`: neither recorded
    /// on a phone nor made by the functions above.
    const BY_LAYOUT: &[u8] = b"\x42\0\0\x82\xff\xff\xff\xff\x54\x53\x59\x53\x18\0\0\0\
        a\0n\0d\0r\0o\0i\0d\0.\0a\0p\0p\0.\0I\0U\0i\0d\0O\0b\0s\0e\0r\0v\0e\0r\0\0\0\0\0\
        \x8b\x27\0\0\x02\0\0\0\x07\0\0\0\0\0\0\0\x0f\0\0\0";

    #[test]
    fn calls_are_read() {
        let state = |ints: &[i32]| parse(STATE_CHANGED, &call(ints));
        assert_eq!(
            parse(STATE_CHANGED, BY_LAYOUT),
            Ok(Call::State(10_123, State::Top))
        );
        for (number, wanted) in [
            (0, State::Behind),
            (2, State::Top),
            (3, State::BoundTop),
            (4, State::Noticed),
            (6, State::Noticed),
            (7, State::Behind),
            (-1, State::Behind),
        ] {
            let said = state(&[20_123, number, 7, 0, 0]);
            assert_eq!(said, Ok(Call::State(20_123, wanted)), "{number}");
        }
        assert_eq!(
            parse(GONE, &call(&[1_010_123, 0])),
            Ok(Call::Gone(1_010_123))
        );
        assert_eq!(parse(2, &call(&[10_123])), Ok(Call::Nothing));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        assert!(parse(GONE, &[]).is_err());
        assert!(parse(STATE_CHANGED, &call(&[10_123])).is_err());
        assert!(parse(GONE, &call(&[-1])).is_err());
        let other: Vec<u8> = call(&[10_123]).iter().map(|byte| byte ^ 1).collect();
        assert!(parse(GONE, &other).is_err());
        mutate(BY_LAYOUT, |bytes| drop(parse(STATE_CHANGED, bytes)));
    }

    #[test]
    fn requests_and_their_answers() {
        let get = get_service("activity");
        assert_eq!(get.len() % 4, 0);
        assert_eq!(get[get.len() - 24..get.len() - 20], 8_i32.to_le_bytes());
        let (bytes, at) = register(0x77, "shell");
        assert_eq!(bytes[at..at + 4], OWN.to_le_bytes());
        assert_eq!(bytes[at + 8..at + 16], 0x77_u64.to_le_bytes());
        assert_eq!(bytes[at + OBJECT + 4..at + OBJECT + 8], 3_i32.to_le_bytes());
        let mut answer = vec![0; 4];
        answer.extend(HANDLE.to_le_bytes());
        answer.extend([0; 4]);
        answer.extend(9_u64.to_le_bytes());
        answer.extend([0; 12]);
        assert_eq!(service(&answer), Ok(9));
        mutate(&answer, |bytes| drop(service(bytes)));
        assert_eq!(registered(&[0; 4]), Ok(()));
        assert!(registered(&(-1_i32).to_le_bytes()).is_err_and(|why| why.0.contains("USAGE")));
    }
}
