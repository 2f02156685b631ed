//! Recordings of executions that begin like the one before.
//!
//! A search goes from one execution to the next by changing its last steps, so most of two logs is the same. What a
//! recording says up to some step follows from the records up to there. So if the records are the same, that part of the
//! recording is kept, and only the rest is read.
//!
//! *Comparison.* As long as two executions make the same choices, processes must be about to do the same
//! ([`Recording::difference`]). If the first record that differs is a step of another process, or with another outcome,
//! there is nothing to compare: everything before is the same. Otherwise both recordings are compared in full.

use crate::log::{Record, RecordKind};
use crate::steps::{Processes, Steps};
use palisade_dpor::{Again, Recording};

/// The last execution that was recorded.
#[derive(Debug, Default)]
pub(crate) struct Incremental {
    steps: Steps,
    log: Vec<Record>,
    /// By step, the position in the log at which its records begin.
    marks: Vec<usize>,
    /// The log before that.
    previous: Vec<Record>,
}

impl Incremental {
    /// Forgets the last execution.
    pub(crate) fn forget(&mut self) {
        self.log.clear();
        self.marks.clear();
    }

    /// Records an execution. `before` is the last recording, which belongs to the last log unless that is forgotten;
    /// what was changed in it after its last step does not matter.
    pub(crate) fn record(&mut self, processes: &mut Processes, log: Vec<Record>, before: Recording) -> Again {
        let same = self.log.iter().zip(&log).take_while(|(old, new)| old == new).count();
        let step = self.marks.partition_point(|&mark| mark <= same).checked_sub(1);
        let departs = step.filter(|&step| {
            let mark = self.marks[step];
            mark == same && are_different_choices(&self.log[mark..], &log[mark..])
        });
        let again = match departs {
            Some(step) => {
                let mark = self.marks[step];
                self.marks.truncate(step);
                self.steps.rewind(processes, before, step, &log[..mark]);
                let recording = self.read(processes, &log, mark);
                debug_assert!(
                    recording.is_same(&Steps::of(&mut processes.clone(), &log)),
                    "what is kept is what reading everything would give"
                );
                Again { recording, before: None, difference: None }
            }
            None => {
                self.marks.clear();
                self.steps = Steps::default();
                let recording = self.read(processes, &log, 0);
                let difference = before.difference(&recording);
                Again { recording, before: Some(before), difference }
            }
        };
        self.previous = std::mem::replace(&mut self.log, log);
        again
    }

    /// Reads the records from a position on.
    fn read(&mut self, processes: &mut Processes, log: &[Record], from: usize) -> Recording {
        for (position, record) in log.iter().enumerate().skip(from) {
            let before = self.steps.len();
            self.steps.take(processes, record);
            if self.steps.len() > before {
                // What the step replaces comes first.
                let is_value = |at: &usize| log[*at].kind == RecordKind::Value && !log[*at].is_pending();
                self.marks.push(position.checked_sub(1).filter(is_value).unwrap_or(position));
            }
        }
        self.steps.finish()
    }

    /// The recording before the last one.
    pub(crate) fn before(&self, processes: &Processes) -> Option<Recording> {
        (!self.previous.is_empty()).then(|| Steps::of(&mut processes.clone(), &self.previous))
    }
}

/// Whether two logs continue with steps of different processes, or with different outcomes.
fn are_different_choices(a: &[Record], b: &[Record]) -> bool {
    let step = |log: &[Record]| {
        let is_value = |record: &Record| record.kind == RecordKind::Value && !record.is_pending();
        log.get(usize::from(log.first().is_some_and(is_value))).copied()
    };
    let (Some(a), Some(b)) = (step(a), step(b)) else { return false };
    let is_step = |record: &Record| record.is_chosen() || record.kind == RecordKind::Update;
    let actor = |record: &Record| {
        let is_update = record.kind == RecordKind::Update;
        // Under PSO, every address has a buffer.
        (record.thread, is_update.then_some(record.address), record.choice().map(|(_, outcome)| outcome))
    };
    is_step(&a) && is_step(&b) && actor(&a) != actor(&b)
}
