// SPDX-License-Identifier: GPL-2.0-only
//! Long answers, a few at a time.
//!
//! Anybody may ask for them, as often as calls are taken, and each is in memory from when it is made until the bus has
//! taken it: with hundreds of apps a megabyte.

use serde::{Serialize, Serializer};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zbus::zvariant::{Signature, Type};

/// Answers in memory at once, at most. Who asks meanwhile waits.
const ANSWERS_MOST: usize = 4;

/// The places for them.
pub struct Answers(Arc<Semaphore>);

impl Default for Answers {
    fn default() -> Answers {
        Answers(Arc::new(Semaphore::new(ANSWERS_MOST)))
    }
}

impl Answers {
    /// A place, as soon as there is one; none if there will be none.
    pub async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().acquire_owned().await.ok()
    }
}

/// An answer, which keeps its place until it is sent.
pub struct Answer<T> {
    told: T,
    _place: Option<OwnedSemaphorePermit>,
}

impl<T> Answer<T> {
    /// An answer in a place.
    pub fn new(told: T, place: Option<OwnedSemaphorePermit>) -> Answer<T> {
        Answer {
            told,
            _place: place,
        }
    }
}

impl<T: Type> Type for Answer<T> {
    const SIGNATURE: &'static Signature = T::SIGNATURE;
}

impl<T: Serialize> Serialize for Answer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.told.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn an_answer_waits_until_one_of_those_before_it_is_sent() {
        let answers = Answers::default();
        let place = || answers.place().now_or_never();
        let mut sent: Vec<Answer<u32>> = (0..ANSWERS_MOST)
            .map(|_| Answer::new(1, place().expect("at once")))
            .collect();
        assert!(place().is_none());
        sent.pop();
        assert!(place().is_some());
    }
}
