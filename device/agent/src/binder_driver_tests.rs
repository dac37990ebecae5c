// SPDX-License-Identifier: GPL-2.0-only
//! A driver that plays answers, and what a link makes of them.

use super::*;
use crate::testing::mutate;
use std::sync::{Arc, Mutex};

/// Answers by exchange, parcels by address; remembers commands.
#[derive(Clone, Default)]
pub struct Played {
    pub answers: Arc<Mutex<VecDeque<Vec<u8>>>>,
    pub parcels: Arc<Mutex<Vec<Vec<u8>>>>,
    pub commands: Arc<Mutex<Vec<u8>>>,
}

impl Driver for Played {
    fn exchange(&mut self, commands: &[u8], answers: &mut Vec<u8>) -> Result<(), Fault> {
        self.commands.lock().expect("no panic").extend(commands);
        let next = self.answers.lock().expect("no panic").pop_front();
        answers.extend(next.ok_or_else(|| Fault::new("the test is over"))?);
        Ok(())
    }

    fn parcel(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        let parcels = self.parcels.lock().expect("no panic");
        let parcel = parcels.get(usize::try_from(address).ok()?)?;
        parcel
            .get(..usize::try_from(length).ok()?)
            .map(<[u8]>::to_vec)
    }
}

impl Played {
    pub fn answer(&self, bytes: Vec<u8>) {
        self.answers.lock().expect("no panic").push_back(bytes);
    }

    /// An answer or a call with a parcel, from a user.
    pub fn transaction(&self, kind: u32, code: u32, from: u32, parcel: &[u8]) -> Vec<u8> {
        let mut parcels = self.parcels.lock().expect("no panic");
        parcels.push(parcel.to_vec());
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 16]);
        for word in [code, ONE_WAY, 77, from] {
            bytes.extend(word.to_le_bytes());
        }
        for long in [parcel.len() as u64, 0, parcels.len() as u64 - 1, 0] {
            bytes.extend(long.to_le_bytes());
        }
        bytes
    }

    pub fn reply(&self, parcel: &[u8]) {
        let bytes = self.transaction(BR_REPLY, 0, 0, parcel);
        self.answer(bytes);
    }

    pub fn call(&self, code: u32, parcel: &[u8]) {
        let bytes = self.transaction(BR_TRANSACTION, code, SYSTEM, parcel);
        self.answer(bytes);
    }

    /// The commands so far, without what follows them.
    pub fn kinds(&self) -> Vec<u32> {
        let commands = self.commands.lock().expect("no panic");
        let (mut kinds, mut at) = (Vec::new(), 0);
        while at < commands.len() {
            let kind = word(&commands, at);
            kinds.push(kind);
            at += 4 + (kind >> 16 & 0x3fff) as usize;
        }
        kinds
    }

    pub fn death(&self) {
        let mut bytes = BR_DEAD_BINDER.to_le_bytes().to_vec();
        bytes.extend([0; 8]);
        self.answer(bytes);
    }
}

#[test]
fn a_call_has_its_answer_and_calls_of_others_are_kept() {
    let played = Played::default();
    let mut link = Link::new(played.clone());
    let mut first = played.transaction(BR_TRANSACTION, 4, SYSTEM, b"seen");
    first.extend(played.transaction(BR_TRANSACTION, 4, 10_123, b"forged"));
    let mut counted = BR_ACQUIRE.to_le_bytes().to_vec();
    counted.extend([7; 16]);
    first.extend(&counted);
    played.answer(first);
    played.reply(b"done");
    assert_eq!(link.call(3, 9, b"please", &[]), Ok(b"done".to_vec()));
    let call = link.incoming().expect("a call");
    assert_eq!((call.code, &call.parcel[..]), (4, &b"seen"[..]));
    played.answer(Vec::new());
    played.death();
    assert!(link
        .incoming()
        .is_err_and(|why| why.0.contains("system server")));
    let commands = played.commands.lock().expect("no panic");
    let has = |kind: u32| commands.windows(4).any(|four| four == kind.to_le_bytes());
    assert!(has(BC_TRANSACTION) && has(BC_ACQUIRE_DONE) && has(BC_FREE_BUFFER));
    assert!(!has(BC_REPLY));
}

#[test]
fn a_handle_is_acquired_before_the_reply_that_brought_it_is_freed() {
    let played = Played::default();
    let mut link = Link::new(played.clone());
    played.reply(b"handle 5");
    assert!(link.call(0, 1, b"", &[]).is_ok());
    link.keep(5);
    played.reply(b"done");
    assert!(link.call(5, 2, b"", &[]).is_ok());
    let order = [
        BC_TRANSACTION,
        BC_ACQUIRE,
        BC_REQUEST_DEATH,
        BC_TRANSACTION,
        BC_FREE_BUFFER,
    ];
    assert_eq!(played.kinds(), order);
}

#[test]
fn a_call_that_fails_says_so_and_spoilt_answers_do_no_harm() {
    let played = Played::default();
    let mut link = Link::new(played.clone());
    played.answer(BR_FAILED_REPLY.to_le_bytes().to_vec());
    assert!(link.call(0, 1, b"", &[]).is_err());
    played.answer(BR_REPLY.to_le_bytes().to_vec());
    assert!(link.call(0, 1, b"", &[]).is_err());
    let mut good = played.transaction(BR_TRANSACTION, 4, SYSTEM, b"seen");
    good.extend(played.transaction(BR_REPLY, 4, SYSTEM, b"done"));
    mutate(&good, |bytes| {
        let mut link = Link::new(played.clone());
        played.answer(bytes.to_vec());
        while link.incoming().is_ok() {}
    });
}

#[test]
fn numbers_have_the_sizes_of_what_follows() {
    for (number, size) in [
        (BC_TRANSACTION, TRANSACTION),
        (BC_REPLY, TRANSACTION),
        (BR_TRANSACTION, TRANSACTION),
        (BR_REPLY, TRANSACTION),
        (BC_FREE_BUFFER, 8),
        (BC_REQUEST_DEATH, 12),
        (BC_INCREFS_DONE, 16),
        (BR_INCREFS, 16),
    ] {
        assert_eq!((number >> 16 & 0x3fff) as usize, size, "{number:#x}");
    }
    assert_eq!(
        (WRITE_READ >> 16 & 0x3fff) as usize,
        std::mem::size_of::<WriteRead>()
    );
}
