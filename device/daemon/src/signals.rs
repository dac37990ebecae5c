// SPDX-License-Identifier: GPL-2.0-only
//! Signals of the bus, where it only matters that one has come.

use futures_util::{Stream, StreamExt};
use tokio::sync::watch;

/// Says that something has come since it was last asked; an error once the stream has ended.
///
/// The stream is emptied apart from who asks. A connection stops to read while a stream of its is full, so who awaits an
/// answer and leaves signals lying may wait for ever.
pub fn marks<S: Stream + Unpin + Send + 'static>(mut signals: S) -> watch::Receiver<()> {
    let (mark, marks) = watch::channel(());
    tokio::spawn(async move {
        while signals.next().await.is_some() {
            if mark.send(()).is_err() {
                return;
            }
        }
    });
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[tokio::test]
    async fn many_are_one_and_the_end_is_told() {
        let (to, from) = tokio::sync::mpsc::channel(1);
        let signals = stream::unfold(from, |mut from| async {
            from.recv().await.map(|one: u32| (one, from))
        });
        let mut marks = marks(Box::pin(signals));
        // More than there is room for, and nobody takes them.
        for number in 0..1000 {
            to.send(number).await.expect("it is emptied");
        }
        assert!(marks.changed().await.is_ok());
        drop(to);
        while marks.changed().await.is_ok() {}
    }
}
