//! Reads witness files, which may come from anywhere, and replays their runs.

use super::{ActionRecord, EffectRecord, SCHEMA_VERSION, StepRecord, ViolationKind, WitnessFile};
use super::{effect_record, interlocked_name, violation_record};
use crate::{
    NotViolating, Replay, ReplayError, Run, links, process_name, replay, replay_lasso_from,
    replay_to_deadlock, take, violating,
};
use palisade_memory::{Action, Interlocked, Machine, Model, Step, Violation};
use palisade_program::Waits;
use palisade_program::running::{EdgeId, System, ThreadId};
use serde::Deserialize;

/// What is wrong with a witness file. Steps are counted from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WitnessError {
    /// It cannot be parsed.
    #[error("not a witness file: {0}")]
    Malformed(String),
    /// It was written by another version.
    #[error("the witness file has version {found}; this release reads version {SCHEMA_VERSION}")]
    Version {
        /// The version in the file.
        found: u64,
    },
    /// It names an unknown memory model.
    #[error("unknown memory model `{0}`; the models are `sc`, `tso` and `pso`")]
    UnknownModel(String),
    /// It names an unknown mode of locked instructions.
    #[error("unknown mode of locked instructions `{0}`; the modes are `whole-buffer` and `own-address`")]
    UnknownInterlocked(String),
    /// It gives a value to a variable that the program does not have.
    #[error("the program has no variable `{0}`")]
    UnknownCell(String),
    /// It gives no value to a variable of the program.
    #[error("the initial value of `{0}` is missing")]
    MissingCell(String),
    /// Steps are missing or in the wrong order.
    #[error("step {expected} is missing: the file continues with step {found}")]
    StepNumber {
        /// The number that should come next.
        expected: usize,
        /// The number in the file.
        found: usize,
    },
    /// The run is not a run of the program, or does not end in a bad state.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// It is about a `live` property that the program does not have.
    #[error("the program has no such `live` property")]
    UnknownGoal,
    /// The goal of its `live` property is still reachable from its last state.
    #[error("the run claims that a goal is out of reach, but its last state can still reach it")]
    Reachable,
    /// Whether the goal of its `live` property is out of reach was not found out.
    #[error("{0}; so it is not known whether what it rules out is out of reach")]
    Unfinished(String),
    /// It is about a `terminates` or `leaves` property that the program does not have.
    #[error("the program has no such `terminates` or `leaves` property")]
    UnknownFair,
    /// It does not say where the cycle begins.
    #[error("the file does not say with which step the cycle begins")]
    NoCycleStart,
    /// It is a run of the program, but its happens-before relation has no cycle.
    #[error("the happens-before relation of the run has no cycle")]
    NoCycle,
    /// A step belongs to a different process than recorded.
    #[error("step {step} belongs to {actual}, but the file says {recorded}")]
    Process {
        /// The number of the step.
        step: usize,
        /// What the file says.
        recorded: String,
        /// What the machine says.
        actual: String,
    },
    /// A step does something different than recorded.
    #[error(
        "step {step} does not do what the file says: the file says `{recorded}`, the replay gives `{actual}`"
    )]
    Effect {
        /// The number of the step.
        step: usize,
        /// What the file says.
        recorded: EffectRecord,
        /// What the machine says.
        actual: EffectRecord,
    },
    /// A step overtook different stores than recorded.
    #[error("step {step} overtakes {}, but the file says {}", stores(actual), stores(recorded))]
    Overtakes {
        /// The number of the step.
        step: usize,
        /// The store steps in the file.
        recorded: Vec<usize>,
        /// The store steps in the replay.
        actual: Vec<usize>,
    },
    /// The last state is bad in a different way than recorded.
    #[error(
        "the run ends with a different violation: the file says `{recorded}`, the replay gives `{actual}`"
    )]
    Violation {
        /// What the file says.
        recorded: String,
        /// What the machine says.
        actual: String,
    },
}

impl WitnessFile {
    /// The JSON form, on several lines, with a final newline.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("records of strings and integers can always be written") + "\n"
    }

    /// Reads the JSON form.
    pub fn from_json(text: &str) -> Result<WitnessFile, WitnessError> {
        #[derive(Deserialize)]
        struct Versioned {
            schema_version: u64,
        }
        let malformed = |error: serde_json::Error| WitnessError::Malformed(error.to_string());
        let Versioned { schema_version } = serde_json::from_str(text).map_err(malformed)?;
        if schema_version != u64::from(SCHEMA_VERSION) {
            return Err(WitnessError::Version { found: schema_version });
        }
        serde_json::from_str(text).map_err(malformed)
    }

    /// The memory model.
    pub fn model(&self) -> Result<Model, WitnessError> {
        let found = Model::ALL.into_iter().find(|model| model.name() == self.model);
        found.ok_or_else(|| WitnessError::UnknownModel(self.model.clone()))
    }

    /// What locked instructions wait for under PSO.
    pub fn interlocked(&self) -> Result<Interlocked, WitnessError> {
        let mut kinds = [Interlocked::WholeBuffer, Interlocked::OwnAddress].into_iter();
        let found = kinds.find(|&kind| interlocked_name(kind) == self.interlocked);
        found.ok_or_else(|| WitnessError::UnknownInterlocked(self.interlocked.clone()))
    }

    /// The machine that the file names, for a running form of its program.
    pub fn machine<'s>(&self, system: &'s System) -> Result<Machine<'s>, WitnessError> {
        Ok(Machine { system, model: self.model()?, interlocked: self.interlocked()? })
    }

    /// The run.
    pub fn run(&self, system: &System) -> Result<Run, WitnessError> {
        if let Some(name) =
            self.memory.keys().find(|&name| system.cells.iter().all(|cell| cell.name != *name))
        {
            return Err(WitnessError::UnknownCell(name.clone()));
        }
        let value = |cell: &palisade_program::running::Cell| {
            self.memory.get(&cell.name).copied().ok_or_else(|| WitnessError::MissingCell(cell.name.clone()))
        };
        let memory = system.cells.iter().map(value).collect::<Result<_, _>>()?;
        let numbered = self.steps.iter().enumerate().map(|(index, step)| match step.number {
            number if number == index + 1 => Ok(to_step(step)),
            found => Err(WitnessError::StepNumber { expected: index + 1, found }),
        });
        Ok(Run { memory, steps: numbered.collect::<Result<_, _>>()? })
    }

    /// How the program is lowered for this run.
    pub fn waits(&self) -> Waits {
        match self.violation.kind {
            ViolationKind::Deadlock
            | ViolationKind::Live
            | ViolationKind::Terminates
            | ViolationKind::Leaves => Waits::Retry,
            ViolationKind::Cycle
            | ViolationKind::Fault
            | ViolationKind::Forbid
            | ViolationKind::Final
            | ViolationKind::Race => Waits::Delay,
        }
    }

    /// Replays the run on a running form of the program, and compares what happens with what is recorded. The
    /// running form must be lowered as [`WitnessFile::waits`] says.
    ///
    /// For a run to a state from which a goal is out of reach ([`ViolationKind::Live`]), only the run is
    /// replayed. That the goal is out of reach has to be checked by a search, and there is none here.
    pub fn verify(&self, system: &System) -> Result<Replay, WitnessError> {
        let machine = self.machine(system)?;
        let run = self.run(system)?;
        let replay = match self.violation.kind {
            ViolationKind::Cycle => violating(machine, &run)
                .map(|violating| Replay { violation: None, ..violating.replay })
                .map_err(|why| match why {
                    NotViolating::NoRun(error) => WitnessError::Replay(error),
                    NotViolating::NoCycle => WitnessError::NoCycle,
                })?,
            ViolationKind::Fault | ViolationKind::Forbid | ViolationKind::Final | ViolationKind::Race => {
                replay(machine, &run)?
            }
            ViolationKind::Deadlock => replay_to_deadlock(machine, &run)?,
            ViolationKind::Live => {
                let goal = self.violation.property.filter(|&goal| goal < system.goals.len());
                let goal = goal.ok_or(WitnessError::UnknownGoal)?;
                Replay { violation: Some(Violation::Unreachable(goal)), ..take(machine, &run)? }
            }
            ViolationKind::Terminates | ViolationKind::Leaves => {
                let property = self.violation.property.filter(|&property| property < system.fair.len());
                let property = property.ok_or(WitnessError::UnknownFair)?;
                let from = self.violation.cycle.and_then(|step| step.checked_sub(1));
                replay_lasso_from(machine, &run, from.ok_or(WitnessError::NoCycleStart)?, property)?
            }
        };
        let links = links(&run, &replay);
        for (index, record) in self.steps.iter().enumerate() {
            let process = process_name(system, &replay.states[index], ThreadId(record.thread));
            if process != record.process {
                return Err(WitnessError::Process {
                    step: record.number,
                    recorded: record.process.clone(),
                    actual: process,
                });
            }
            let actual = effect_record(machine, &replay, index);
            if actual != record.effect {
                return Err(WitnessError::Effect {
                    step: record.number,
                    recorded: record.effect.clone(),
                    actual,
                });
            }
            // A file may leave out which stores were overtaken. If it lists them, the list must be right.
            let actual: Vec<usize> = links.overtakes[index].iter().map(|store| store + 1).collect();
            if !record.overtakes.is_empty() && actual != record.overtakes {
                return Err(WitnessError::Overtakes {
                    step: record.number,
                    recorded: record.overtakes.clone(),
                    actual,
                });
            }
        }
        let actual = violation_record(machine, None, &run, &replay);
        let same = |a: &super::ViolationRecord, b: &super::ViolationRecord| {
            (a.kind, &a.message, a.property, a.cycle) == (b.kind, &b.message, b.property, b.cycle)
        };
        if !same(&actual, &self.violation) {
            return Err(WitnessError::Violation {
                recorded: self.violation.message.clone(),
                actual: actual.message,
            });
        }
        Ok(replay)
    }
}

/// Stores by the numbers of their steps.
fn stores(steps: &[usize]) -> String {
    match steps {
        [] => "no store".to_owned(),
        [step] => format!("the store of step {step}"),
        steps => {
            let steps: Vec<String> = steps.iter().map(usize::to_string).collect();
            format!("the stores of steps {}", steps.join(", "))
        }
    }
}

fn to_step(record: &StepRecord) -> Step {
    let action = match record.action {
        ActionRecord::Execute { edge, choice } => Action::Execute { edge: EdgeId(edge), choice },
        ActionRecord::Update { position } => Action::Update { position },
    };
    Step { thread: ThreadId(record.thread), action }
}
