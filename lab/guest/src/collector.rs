// SPDX-License-Identifier: GPL-2.0-only
//! The collector of traces, beside the apps.

use crate::exec::{PATH, RUN};
use crate::sys;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Where its logs go, in the directory of the run.
const LOGS: &str = "trace";

/// Where it keeps its id and its key.
const STATE: &str = "/run/fasttrack-trace";

/// It says this when it records.
const RECORDS: &str = "recording";

/// A collector at work.
pub struct Collector {
    child: Child,
    /// It prints more at its end.
    _printed: BufReader<ChildStdout>,
}

impl Collector {
    /// Starts the program `name` of the run's directory, and waits until it records.
    pub fn start(name: &str) -> Result<Collector, String> {
        let program = Path::new(RUN).join(name);
        let mut command = Command::new(&program);
        command
            .args(["record", "--clear-names", "--calls-over", "0"])
            .args(["--state", STATE, "--output"])
            .arg(Path::new(RUN).join(LOGS))
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // SAFETY: only system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                sys::unblock_child_signal();
                Ok(())
            });
        }
        let say = |error| format!("cannot run the collector {}: {error}", program.display());
        let mut child = command.spawn().map_err(say)?;
        let output = child.stdout.take().ok_or("the collector has no output")?;
        let mut printed = BufReader::new(output);
        let mut line = String::new();
        printed.read_line(&mut line).map_err(say)?;
        if !line.starts_with(RECORDS) {
            // It has said why on the console.
            let shown = program.display();
            return Err(format!("the collector {shown} does not record"));
        }
        Ok(Collector {
            child,
            _printed: printed,
        })
    }

    /// Ends it when it has written all.
    pub fn end(mut self) -> Result<(), String> {
        sys::terminate(self.child.id());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the collector has failed ({status})")),
            Err(_) => Err("the collector has ended before the run".to_string()),
        }
    }
}
