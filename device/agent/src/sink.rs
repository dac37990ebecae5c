// SPDX-License-Identifier: GPL-2.0-only
//! Who takes the reports: the daemon, or a line of JSON each for `--print`.

use crate::fault::Fault;
use crate::merge::Trouble;
use fasttrack_detector::report::{AppRef, Report};
use serde_json::{json, Value};
use std::io::Write;

/// Takes reports.
pub trait Sink {
    /// Takes one.
    fn take(&mut self, report: &Report) -> Result<(), Fault>;
    /// Takes what went wrong with a source.
    fn trouble(&mut self, trouble: &Trouble) -> Result<(), Fault>;
    /// Takes the names of the sources that are in use, first that of the focus.
    fn sources(&mut self, _names: &[&str]) -> Result<(), Fault> {
        // Whoever reads the reports has them on standard error.
        Ok(())
    }
    /// Nothing comes any more: leaves what it has changed as it was.
    fn end(&mut self) -> Result<(), Fault> {
        // The daemon sees that the connection has ended.
        Ok(())
    }
}

/// Writes each report as a line of JSON.
pub struct Print<W: Write>(pub W);

impl<W: Write> Sink for Print<W> {
    fn take(&mut self, report: &Report) -> Result<(), Fault> {
        writeln!(self.0, "{}", line(report))?;
        self.0.flush()?;
        Ok(())
    }

    fn trouble(&mut self, _: &Trouble) -> Result<(), Fault> {
        // Whoever reads the reports has it on standard error.
        Ok(())
    }
}

/// A report as JSON: its kind, and what belongs to it.
pub fn line(report: &Report) -> Value {
    let list = |apps: &[AppRef]| apps.iter().map(app).collect::<Vec<_>>();
    match report {
        Report::Front(apps) => json!({"report": "front", "apps": list(apps)}),
        Report::Nobody(why) => json!({"report": "nobody", "why": why.word()}),
        Report::Ambiguous(apps) => json!({"report": "ambiguous", "apps": list(apps)}),
        Report::CannotTell(who) => json!({"report": "cannot-tell", "compositor": who}),
        Report::Launch(one) => json!({"report": "launch", "app": app(one)}),
        Report::Window(one) => json!({"report": "window", "app": app(one)}),
        Report::Perceptible {
            app: one,
            sense,
            on,
        } => {
            json!({"report": "perceptible", "app": app(one), "sense": sense.word(), "on": on})
        }
    }
}

fn app(app: &AppRef) -> Value {
    json!({"cgroup": app.cgroup, "inode": app.inode, "id": app.id, "pid": app.pid})
}

#[cfg(test)]
mod tests {
    use super::*;
    use fasttrack_detector::report::Sense;

    #[test]
    fn a_line_has_kind_and_apps() {
        let app = AppRef {
            cgroup: "/a".into(),
            inode: 3,
            id: "foot".into(),
            pid: 7,
        };
        let mut bytes = Vec::new();
        let mut print = Print(&mut bytes);
        print
            .take(&Report::Front(vec![app.clone()]))
            .expect("memory");
        print
            .take(&Report::Perceptible {
                app,
                sense: Sense::Audio,
                on: true,
            })
            .expect("memory");
        let text = String::from_utf8(bytes).expect("JSON");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines[0]["apps"][0]["pid"], 7);
        assert_eq!(lines[1]["sense"], "audio");
    }
}
