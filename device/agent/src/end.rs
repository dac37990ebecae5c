// SPDX-License-Identifier: GPL-2.0-only
//! The end of an agent that has to leave something as it was.

use crate::bus;
use crate::fault::Fault;
use tokio::select;
use tokio::signal::unix::{signal, SignalKind};

/// Has SIGTERM and SIGINT do this from now on, the first of them once, and not end the process.
pub fn listen(then: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
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
        then();
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
    fn a_signal_does_what_it_is_told_and_ends_nothing_by_itself() {
        for sent in [Signal::TERM, Signal::INT] {
            let (to, from) = sync_channel(1);
            listen(move || to.send(sent).expect("room")).expect("it listens");
            kill_process(getpid(), sent).expect("sent");
            assert_eq!(from.recv_timeout(Duration::from_secs(60)), Ok(sent));
        }
    }
}
