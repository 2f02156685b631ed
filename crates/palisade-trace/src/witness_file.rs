//! Witnesses as files: a versioned JSON format with everything needed to replay the run, and everything a
//! reader wants to know about it.
//!
//! *Invariants*:
//! 1. The initial memory and the steps determine the run.
//! 2. Effects, names and the violation are what the machine computes: [`WitnessFile::verify`] replays the run
//!    and compares. Lines, columns and source texts are for the reader and are not compared.
//!
//! Later versions may add fields; readers ignore fields that they do not know. A change of meaning changes
//! [`SCHEMA_VERSION`].

mod check;
mod record;

pub use check::WitnessError;
pub use record::{
    ActionRecord, EffectRecord, Instances, Medium, ProgramRecord, SCHEMA_VERSION, StepRecord, ViolationKind,
    ViolationRecord, WitnessFile,
};

use crate::{BuildRecord, Replay, Run, links, next_span, process_name};
use palisade_base::{Source, Span};
use palisade_memory::{Action, Effect, Interlocked, Machine, Violation};
use palisade_program::Instantiation;
use palisade_program::Value;
use palisade_program::running::{FairKind, PropertyKind};

/// Where a run comes from: what a witness file contains in addition to the run itself.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The text of the program.
    pub source: &'a Source,
    /// Its language: `pal`, `rmm`, `litmus`, `trencher`, `c`, `llvm`.
    pub language: &'a str,
    /// How it was made from its text, if a compiler took part.
    pub build: Option<&'a BuildRecord>,
    /// How many instances each template has.
    pub instantiation: Instantiation,
    /// Whether the program was changed so that templates declared with several instances have any number of them.
    pub several: bool,
    /// The range of integers without a declared domain, if one was given.
    pub int_range: Option<(Value, Value)>,
}

/// A hash of a text that is the same on every machine (FNV-1a, 64 bits). It detects that a program was
/// edited. It does not protect against forgery.
pub fn text_hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("fnv1a64:{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

impl WitnessFile {
    /// Records a replayed run. If the run does not end in a violation, it is recorded as a run whose
    /// happens-before relation has a cycle.
    pub fn new(machine: Machine<'_>, origin: Origin<'_>, run: &Run, replay: &Replay) -> WitnessFile {
        let cells = machine.system.cells.iter().map(|cell| cell.name.clone());
        WitnessFile {
            schema_version: SCHEMA_VERSION,
            program: ProgramRecord {
                file: origin.source.name().to_owned(),
                language: origin.language.to_owned(),
                hash: text_hash(&origin.source.identity()),
                build: origin.build.cloned(),
            },
            model: machine.model.name().to_owned(),
            interlocked: interlocked_name(machine.interlocked).to_owned(),
            instantiation: Instances {
                any: origin.instantiation.any,
                every: origin.instantiation.every,
                several: origin.several,
            },
            int_range: origin.int_range.map(|(lo, hi)| [lo, hi]),
            constants: origin.source.constants().iter().cloned().collect(),
            memory: cells.zip(run.memory.iter().copied()).collect(),
            steps: step_records(machine, origin.source, run, replay),
            violation: violation_record(machine, Some(origin.source), run, replay),
        }
    }

    /// How many instances each template has.
    pub fn instantiation(&self) -> Instantiation {
        Instantiation { any: self.instantiation.any, every: self.instantiation.every }
    }

    /// Whether the program's text has changed since the witness was found.
    pub fn program_changed(&self, source: &Source) -> bool {
        self.program.hash != text_hash(&source.identity())
    }
}

/// `whole-buffer` or `own-address`.
pub(crate) fn interlocked_name(interlocked: Interlocked) -> &'static str {
    match interlocked {
        Interlocked::WholeBuffer => "whole-buffer",
        Interlocked::OwnAddress => "own-address",
    }
}

fn step_records(machine: Machine<'_>, source: &Source, run: &Run, replay: &Replay) -> Vec<StepRecord> {
    let links = links(run, replay);
    let record = |index: usize| {
        let step = run.steps[index];
        let action = match step.action {
            Action::Execute { edge, choice } => ActionRecord::Execute { edge: edge.0, choice },
            Action::Update { position } => ActionRecord::Update { position },
        };
        // An update points to the text of its store.
        let span = span_of(machine, run, replay, links.store_of[index].unwrap_or(index));
        let position = source.position(span);
        StepRecord {
            number: index + 1,
            process: process_name(machine.system, &replay.states[index], step.thread),
            thread: step.thread.0,
            action,
            file: source.other_file(span).map(str::to_owned),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            text: one_line(source.slice(span)),
            effect: effect_record(machine, replay, index),
            overtakes: links.overtakes[index].iter().map(|store| store + 1).collect(),
        }
    };
    (0..run.steps.len()).map(record).collect()
}

/// Where the instruction of a step appears in the text. Updates have no such place.
fn span_of(machine: Machine<'_>, run: &Run, replay: &Replay, index: usize) -> Span {
    let step = run.steps[index];
    match step.action {
        Action::Execute { edge, .. } => {
            let code = replay.states[index].threads[step.thread].top().code;
            machine.system.codes[code].edges()[edge].span
        }
        Action::Update { .. } => Span::NONE,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the step with this index (from 0) did.
pub(crate) fn effect_record(machine: Machine<'_>, replay: &Replay, index: usize) -> EffectRecord {
    let name = |cell| machine.system.cells[cell].name.clone();
    match replay.effects[index] {
        Effect::Local => EffectRecord::Local,
        Effect::ReadMemory(cell, value) => {
            EffectRecord::Read { cell: name(cell), value, from: Medium::Memory }
        }
        Effect::ReadBuffer(cell, value) => {
            EffectRecord::Read { cell: name(cell), value, from: Medium::Buffer }
        }
        Effect::Buffered(cell, value) => EffectRecord::Store { cell: name(cell), value, to: Medium::Buffer },
        Effect::Wrote(cell, value) => EffectRecord::Store { cell: name(cell), value, to: Medium::Memory },
        Effect::Updated(cell, value) => EffectRecord::Update { cell: name(cell), value },
        Effect::Locked { cell, read, wrote } => EffectRecord::Locked { cell: name(cell), read, wrote },
        Effect::Fenced => EffectRecord::Fence,
        Effect::StoreFenced => EffectRecord::StoreFence,
        Effect::Spawned(thread) => EffectRecord::Spawn {
            thread: thread.0,
            process: process_name(machine.system, &replay.states[index + 1], thread),
        },
        Effect::Faulted(fault) => EffectRecord::Fault { message: fault.to_string() },
    }
}

/// Why the last state is bad. Without a source the line is left out.
pub(crate) fn violation_record(
    machine: Machine<'_>,
    source: Option<&Source>,
    run: &Run,
    replay: &Replay,
) -> ViolationRecord {
    let last = replay.states.len() - 1;
    let line = |span| source.and_then(|source| source.position(span)).map(|position| position.line);
    let file = |span| source.and_then(|source| source.other_file(span)).map(str::to_owned);
    match replay.violation {
        None => ViolationRecord {
            kind: ViolationKind::Cycle,
            message: "happens-before has a cycle".to_owned(),
            property: None,
            file: None,
            cycle: None,
            line: None,
        },
        Some(Violation::Fault(thread, fault)) => {
            let process = process_name(machine.system, &replay.states[last], thread);
            let span = last.checked_sub(1).map_or(Span::NONE, |step| span_of(machine, run, replay, step));
            ViolationRecord {
                kind: ViolationKind::Fault,
                message: format!("{process}: {fault}"),
                property: None,
                cycle: None,
                file: file(span),
                line: line(span),
            }
        }
        Some(Violation::Property(index)) => {
            let property = &machine.system.properties[index];
            let (kind, message) = match property.kind {
                PropertyKind::Forbid => (ViolationKind::Forbid, "a forbidden state is reached"),
                PropertyKind::Final => (ViolationKind::Final, "the final condition does not hold"),
            };
            ViolationRecord {
                kind,
                message: message.to_owned(),
                property: Some(index),
                file: file(property.span),
                cycle: None,
                line: line(property.span),
            }
        }
        Some(Violation::Race(first, second, cell)) => {
            let name = |thread| process_name(machine.system, &replay.states[last], thread);
            let cell = &machine.system.cells[cell].name;
            ViolationRecord {
                kind: ViolationKind::Race,
                message: format!("data race on {cell} between {} and {}", name(first), name(second)),
                property: None,
                cycle: None,
                file: file(next_span(machine, &replay.states[last], first)),
                line: line(next_span(machine, &replay.states[last], first)),
            }
        }
        Some(Violation::Deadlock) => ViolationRecord {
            kind: ViolationKind::Deadlock,
            message: "a deadlock is reached".to_owned(),
            property: None,
            file: None,
            cycle: None,
            line: None,
        },
        Some(Violation::Unreachable(index)) => ViolationRecord {
            kind: ViolationKind::Live,
            message: "what must stay reachable no longer is".to_owned(),
            property: Some(index),
            file: machine.system.goals.get(index).and_then(|goal| file(goal.span)),
            cycle: None,
            line: machine.system.goals.get(index).and_then(|goal| line(goal.span)),
        },
        Some(Violation::Forever { property: index, from }) => {
            let property = &machine.system.fair[index];
            let (kind, message) = match property.kind {
                FairKind::Terminates => (ViolationKind::Terminates, "the run never ends"),
                FairKind::Leaves { .. } => {
                    (ViolationKind::Leaves, "a process never leaves the labelled statement")
                }
            };
            ViolationRecord {
                kind,
                message: message.to_owned(),
                property: Some(index),
                cycle: Some(from + 1),
                file: file(property.span),
                line: line(property.span),
            }
        }
    }
}
