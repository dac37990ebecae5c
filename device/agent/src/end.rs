// SPDX-License-Identifier: GPL-2.0-only
//! The end of an agent that has to leave something as it was: SIGTERM and SIGINT are events like others.

use crate::bus;
use crate::event::Event;
use crate::fault::Fault;
use std::sync::mpsc::SyncSender;
use tokio::select;
use tokio::signal::unix::{signal, SignalKind};

/// Has the signals send [`Event::End`] from now on, and not end the process.
pub fn listen(to: SyncSender<Event>) -> Result<(), Fault> {
    let runtime = bus::runtime()?;
    let (mut term, mut int) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            select! { _ = term.recv() => {}, _ = int.recv() => {} }
        });
        // Whoever takes events has ended if this fails.
        let _ = to.send(Event::End(None));
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process, Signal};
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    #[test]
    fn a_signal_is_an_event_and_ends_nothing_by_itself() {
        for sent in [Signal::TERM, Signal::INT] {
            let (to, from) = sync_channel(1);
            listen(to).expect("it listens");
            kill_process(getpid(), sent).expect("sent");
            let event = from.recv_timeout(Duration::from_secs(60));
            assert_eq!(event, Ok(Event::End(None)), "{sent:?}");
        }
    }
}
