// SPDX-License-Identifier: GPL-2.0-only
//! From the join to the log files: budget, names, privacy.

use crate::budget::Budget;
use crate::clocks;
use crate::flight::{Flight, Triggers};
use crate::join::Joiner;
use crate::payers::{Payers, LEFT_OUT};
use crate::privacy::Privacy;
use crate::sample::Sample;
use fasttrack_trace_log::{
    Bio, Clock, ClockReason, LogWriter, Record, Segment, Session, Time, WriteError,
};
use std::iter::Peekable;

/// Writes what the join gives.
pub struct Output {
    writer: LogWriter,
    privacy: Privacy,
    sample: Sample,
    budget: Budget,
    payers: Payers,
    flight: Option<(Flight, Triggers)>,
    session: Session,
    number: u64,
    clock: Clock,
    written: u64,
    /// What a write has failed with, until one works.
    failure: Option<String>,
}

/// The next record, if it is a segment: it is of the bio before it.
fn next_segment(records: &mut Peekable<impl Iterator<Item = Record>>) -> Option<Segment> {
    match records.next_if(|next| matches!(next, Record::Segment(_))) {
        Some(Record::Segment(segment)) => Some(segment),
        _ => None,
    }
}

impl Output {
    /// Writes under `session`, which each file begins with.
    pub fn new(writer: LogWriter, privacy: Privacy, budget: Budget, session: Session) -> Output {
        let session = Session {
            clear_names: Some(privacy.is_clear()),
            key: privacy.key_id(),
            ..session
        };
        Output {
            writer,
            privacy,
            sample: Sample::new(1),
            budget,
            payers: Payers::new(LEFT_OUT.into(), clocks::boot()),
            flight: None,
            session,
            number: 0,
            clock: clocks::all(ClockReason::FILE_START),
            written: 0,
            failure: None,
        }
    }

    /// Keeps the last seconds and writes them when something happens.
    pub fn with_flight(self, flight: Flight, triggers: Triggers) -> Output {
        Output {
            flight: Some((flight, triggers)),
            ..self
        }
    }

    /// Writes a sample of the bios, which says what a record stands for.
    pub fn with_sample(self, sample: Sample) -> Output {
        Output {
            session: Session {
                sample: sample.weight(),
                ..self.session
            },
            sample,
            ..self
        }
    }

    /// Records that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes records of the join; segments follow their bio.
    ///
    /// # Errors
    /// The first log file cannot be made.
    pub fn take(
        &mut self,
        joiner: &mut Joiner,
        records: &mut Vec<Record>,
    ) -> Result<(), WriteError> {
        let mut records = records.drain(..).peekable();
        while let Some(record) = records.next() {
            match record {
                Record::Bio(bio) => {
                    let segments = std::iter::from_fn(|| next_segment(&mut records)).collect();
                    self.take_bio(joiner, bio, segments)?;
                }
                Record::Request(mut request) => {
                    if self.sample.takes_request(&mut request)
                        && self.budget.takes_request(request.first_bio)
                    {
                        self.give(joiner, vec![Record::from(request)])?;
                    }
                }
                other => self.take_time(joiner, other)?,
            }
        }
        Ok(())
    }

    fn take_bio(
        &mut self,
        joiner: &mut Joiner,
        mut bio: Bio,
        mut segments: Vec<Segment>,
    ) -> Result<(), WriteError> {
        if !self.sample.takes(&mut bio, &mut segments) {
            return Ok(());
        }
        let owner = segments.first().and_then(|segment| segment.owner);
        let uid = owner
            .or(bio.carrier)
            .and_then(|task| joiner.names.uid(task));
        if !self.budget.takes(&bio, &segments, uid) {
            return Ok(());
        }
        let mut together = vec![Record::from(bio)];
        together.extend(segments.into_iter().map(Record::from));
        self.give(joiner, together)
    }

    /// A call or a wait above its app's budget is in a sum; what it makes the flight recorder write is written.
    fn take_time(&mut self, joiner: &mut Joiner, record: Record) -> Result<(), WriteError> {
        let uid = match &record {
            Record::Call(call) => call.task.and_then(|task| joiner.names.uid(task)),
            Record::Wait(wait) => match wait.task {
                Some(task) => joiner.names.uid(task),
                None => wait.uid.and_then(|uid| u64::try_from(uid).ok()),
            },
            _ => None,
        };
        if self.budget.takes_time(&record, uid) {
            return self.give(joiner, vec![record]);
        }
        let triggers = self.flight.as_ref().map(|(_, triggers)| triggers);
        match triggers.and_then(|triggers| triggers.reason(&record)) {
            Some(reason) => self.trigger(joiner, reason),
            None => Ok(()),
        }
    }

    /// To the flight recorder, or to the files.
    fn give(&mut self, joiner: &mut Joiner, records: Vec<Record>) -> Result<(), WriteError> {
        let Some((flight, triggers)) = &mut self.flight else {
            return self.write(joiner, records);
        };
        let mut reason = None;
        for record in records {
            reason = reason.or(triggers.reason(&record));
            flight.keep(record);
        }
        match reason {
            Some(reason) => self.trigger(joiner, reason),
            None => Ok(()),
        }
    }

    /// Writes what the flight recorder has.
    ///
    /// # Errors
    /// The first log file cannot be made.
    pub fn trigger(&mut self, joiner: &mut Joiner, reason: &str) -> Result<(), WriteError> {
        let Some((flight, _)) = &mut self.flight else {
            return Ok(());
        };
        let mut records = flight.take(clocks::boot(), reason).peekable();
        while let Some(record) = records.next() {
            let mut together = vec![record];
            while let Some(segment) = next_segment(&mut records) {
                together.push(Record::from(segment));
            }
            self.write(joiner, together)?;
        }
        self.writer.end_block()
    }

    /// Writes records together, with the names that they need.
    fn write(&mut self, joiner: &mut Joiner, records: Vec<Record>) -> Result<(), WriteError> {
        let number = self.writer.file_number()?;
        if number == 0 {
            // There is no file: they are lost, and need no names.
            self.number = 0;
            return self.writer.push(&records);
        }
        let mut together = Vec::with_capacity(records.len() + 4);
        if number != self.number {
            self.number = number;
            self.clock = clocks::all(ClockReason::FILE_START);
            together.push(Record::from(Session {
                time: Time(clocks::boot()),
                ..self.session.clone()
            }));
            together.push(Record::from(self.clock.clone()));
        }
        for record in &records {
            joiner.names.needed(record, number, &mut together);
        }
        together.extend(records);
        for record in &mut together {
            self.privacy.apply(record);
        }
        self.written += together.len() as u64;
        self.writer.push(&together)
    }

    /// What is due from time to time: clocks that have jumped, sums, what the collector did itself.
    ///
    /// # Errors
    /// The first log file cannot be made.
    pub fn tick(&mut self, joiner: &mut Joiner, end: bool) -> Result<(), WriteError> {
        self.tick_at(joiner, end, clocks::all(ClockReason::JUMP))
    }

    fn tick_at(&mut self, joiner: &mut Joiner, end: bool, now: Clock) -> Result<(), WriteError> {
        let mut due = Vec::new();
        self.budget.ended(now.time.0, end, &mut due);
        for record in &mut due {
            if let Record::Aggregate(sum) = record {
                sum.weight = self.sample.weight();
            }
        }
        due.extend(self.sample.ended(now.time.0, end));
        due.extend(self.payers.grown(now.time.0));
        due.extend(joiner.take_own(now.time.0));
        joiner.due(now.time.0, end, &mut due);
        if let Some(reason) = clocks::changed(&self.clock, &now) {
            self.clock = Clock {
                reason: Some(reason),
                ..now
            };
            due.push(Record::from(self.clock.clone()));
        }
        for record in due {
            self.give(joiner, vec![record])?;
        }
        self.tell_failure();
        Ok(())
    }

    /// A failure is told once, and when it is over.
    fn tell_failure(&mut self) {
        if let Some(failure) = self.writer.take_failure().map(|error| error.to_string()) {
            if self.failure.as_ref() != Some(&failure) {
                eprintln!(
                    "fasttrack-trace: {failure}; what is not written meanwhile is counted as lost"
                );
            }
            self.failure = Some(failure);
        } else if self.failure.is_some() && !self.writer.is_failing() {
            eprintln!("fasttrack-trace: records are written again");
            self.failure = None;
        }
    }

    /// Makes a block of what has gathered.
    ///
    /// # Errors
    /// The first log file cannot be made.
    pub fn end_block(&mut self) -> Result<(), WriteError> {
        self.writer.end_block()
    }

    /// Ends the files.
    ///
    /// # Errors
    /// A log file cannot be written.
    pub fn close(self) -> Result<(), WriteError> {
        self.writer.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Nothing;
    use fasttrack_trace_log::{read_directory, Found, Options};
    use std::io;
    use tempfile::TempDir;

    /// Boot time goes on while the machine sleeps, and monotonic time does not: records before and after have their time.
    #[test]
    fn a_suspend_is_a_record() {
        let directory = TempDir::new().expect("a directory");
        let log = LogWriter::new(directory.path(), [1; 16], Options::default()).expect("a log");
        let (privacy, budget) = (Privacy::clear(), Budget::new(0));
        let mut output = Output::new(log, privacy, budget, Session::default());
        let mut joiner = Joiner::new(Box::new(Nothing), 1);
        let bio = || Record::from(Bio::default());
        output.give(&mut joiner, vec![bio()]).expect("written");
        let sleeps = 5_000_000_000;
        let began = output.clock.clone();
        let after = Clock {
            time: Time(began.time.0 + sleeps),
            real_ns: began.real_ns.map(|ns| ns + sleeps as i64),
            ..began.clone()
        };
        for now in [&began, &after, &after] {
            output
                .tick_at(&mut joiner, false, now.clone())
                .expect("written");
        }
        output.give(&mut joiner, vec![bio()]).expect("written");
        output.close().expect("closed");
        let mut told = Vec::new();
        let paths = [directory.path().to_path_buf()];
        read_directory(&paths, 0, u64::MAX, |found| {
            if let Found::Block(_, block) = found {
                told.extend(block.records.into_iter().map(|record| match record {
                    Record::Clock(clock) => clock.reason.and_then(|reason| reason.name()),
                    Record::Bio(_) => Some("bio"),
                    _ => None,
                }));
            }
            Ok::<(), io::Error>(())
        })
        .expect("read");
        let told: Vec<_> = told.into_iter().flatten().collect();
        assert_eq!(told, ["file_start", "bio", "suspend", "bio"]);
    }
}
