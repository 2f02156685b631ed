//! Robustness of model programs by running all partial orders under the monitors: `palisade robust --engine
//! monitor`.
//!
//! *Problem.* Does TSO or PSO add behaviour to a program that terminates?
//!
//! *Source.* Theorems 3 to 6 of Burnim, Sen and Stergiou (TACAS 2011): a program has a violation iff the
//! monitor reports one on some sequentially consistent execution. The executions come from optimal dynamic
//! partial-order reduction (`palisade-dpor`), one per partial order. That is enough for our monitors, though
//! not for the paper's (see `monitor.rs`).
//!
//! *Guarantee.* `not-robust` comes with a run that was taken on the machine and whose cycle was found by
//! `palisade-trace`. `robust` rests on Theorems 5 and 6 and on the search. It is the answer only if no
//! execution was cut off and the machine confirmed every report.
//!
//! *Differences from the paper.* Programs may choose values, start processes, and have fences and atomic
//! sections (an atomic section is one event). Where a program stops all processes or waits, the search runs a
//! program that does a little more (`subject.rs`). If a report depends on that extra behaviour, the answer is
//! `unknown`.
//!
//! *Cost.* Exponential in the number of conflicts. Programs with loops are run up to a length. The length is
//! doubled until no execution is cut off, a violation is found, or the limits are reached.

mod subject;
mod witness;

use crate::event::{Access, Action, Bytes, Event, Instruction, MAX_PROCESSES, Process};
use crate::monitor::Monitor;
use crate::violations::Violation;
use palisade_base::{Id, limits};
use palisade_dpor::explore;
use palisade_engine::{
    Analysis, Engine, Exhausted, Limits, Outcome, Reason, Robustness, Stats, Suitability, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::CellId;
use palisade_trace::{Run, until_cycle, violating};
use std::ops::ControlFlow;
use subject::{ExecutedStep, StepEvent};
use witness::Seen;

/// The engine `monitor`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByMonitors;

/// The first and the last length at which executions are cut off.
const SHORTEST: usize = 32;
const LONGEST: usize = 512;

/// Progress is reported once per this many executions.
const REPORT_EVERY: u64 = 16;

impl Engine<Robustness> for ByMonitors {
    fn name(&self) -> &'static str {
        "monitor"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        if analysis.task.is_parameterized() { Suitability::No } else { Suitability::Reluctant }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Robustness> {
        let mut stats = Stats::new();
        let answer = answer(analysis, limits, &mut stats);
        Outcome::new(self.name(), answer, stats)
    }
}

fn answer(analysis: &Analysis<'_>, limits: &Limits, stats: &mut Stats) -> Verdict {
    if analysis.task.is_parameterized() {
        let why = "this engine runs a fixed number of processes; set the number with --threads N";
        return Verdict::Unknown(Reason::Unsupported(why.to_owned()));
    }
    if analysis.task.model == Model::Sc {
        return Verdict::Holds;
    }
    let system = analysis.system(1);
    let machine = analysis.machine(&system);
    let mut length = SHORTEST;
    // Whether the machine failed to confirm a report, at this length or a shorter one.
    let mut unconfirmed = false;
    loop {
        // Executions are counted only for the last length, so that their number is the number of partial
        // orders.
        stats.set("executions", 0);
        stats.set("broken_off", 0);
        let mut search =
            Search { machine, limits, stats, length, end: None, unconfirmed_report: false, cut: false };
        for state in (Machine { model: Model::Sc, ..machine }).initial_states() {
            limits::checkpoint();
            search.run(state);
            if search.end.is_some() {
                break;
            }
        }
        let Search { end, unconfirmed_report, cut, .. } = search;
        let unconfirmed_before = unconfirmed;
        unconfirmed |= unconfirmed_report;
        match end {
            Some(End::Shown(run)) => {
                return Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run });
            }
            Some(End::Exhausted(what)) => {
                let reached = (length > SHORTEST && !unconfirmed_before).then(|| cut_reason(length / 2));
                return Verdict::Unknown(Reason::exhausted(what, reached));
            }
            None if cut && length < LONGEST => length *= 2,
            None if cut && !unconfirmed => return Verdict::Unknown(cut_reason(length)),
            None if unconfirmed => {
                let why =
                    "a violation was seen only where a process fails, waits or is stuck in an atomic section";
                return Verdict::Unknown(Reason::Unsupported(why.to_owned()));
            }
            None => return Verdict::Holds,
        }
    }
}

fn cut_reason(length: usize) -> Reason {
    Reason::Unsupported(format!(
        "executions were cut off after at most {length} steps; no execution that was run shows a violation"
    ))
}

/// Why the search is over.
enum End {
    /// A run that shows a violation.
    Shown(Run),
    Exhausted(Exhausted),
}

struct Search<'a> {
    machine: Machine<'a>,
    limits: &'a Limits,
    stats: &'a mut Stats,
    length: usize,
    end: Option<End>,
    /// Whether there was a report that the machine did not confirm.
    unconfirmed_report: bool,
    /// Whether some execution was cut off.
    cut: bool,
}

impl Search<'_> {
    /// Runs all executions from an initial state.
    fn run(&mut self, state: palisade_memory::State) {
        let memory = state.memory.as_slice().to_vec();
        let mut subject =
            subject::Model::new(Machine { model: Model::Sc, ..self.machine }, state, self.limits);
        let limits = palisade_dpor::Limits { steps: self.length, ..Default::default() };
        let mut executions = 0;
        let summary = explore(&mut subject, limits, |subject, execution| {
            executions += 1;
            self.stats.add("executions", 1);
            self.stats.add("steps", execution.steps.len() as u64);
            if let Err(what) = self.check_limits(executions) {
                self.end = Some(End::Exhausted(what));
                return ControlFlow::Break(());
            }
            match self.judge(&memory, &subject.taken) {
                Some(run) => {
                    self.end = Some(End::Shown(run));
                    ControlFlow::Break(())
                }
                None => ControlFlow::Continue(()),
            }
        });
        self.cut |= summary.cut > 0 || subject.bounded;
        self.stats.add("broken_off", summary.broken_off);
    }

    /// Checks the limits, and reports progress now and then.
    fn check_limits(&self, executions: u64) -> Result<(), Exhausted> {
        self.limits.check_work(self.stats.get("steps").unwrap_or(0))?;
        if executions.is_multiple_of(REPORT_EVERY) {
            self.limits.report("running executions", self.stats);
        }
        self.limits.check(0)
    }

    /// Runs the monitors on an execution. Returns a run that shows a violation, if there is one.
    fn judge(&mut self, memory: &[palisade_program::Value], taken: &[ExecutedStep]) -> Option<Run> {
        let mut monitor = Monitor::new(self.machine.interlocked);
        // The step of the execution that each event belongs to. Events are identified by their instruction.
        let mut positions: Vec<usize> = Vec::new();
        for (position, step) in taken.iter().enumerate() {
            limits::checkpoint();
            if step.process >= MAX_PROCESSES as usize {
                self.cut = true;
                return None;
            }
            for (what, _) in &step.events {
                let instruction = Instruction(positions.len() as u32);
                positions.push(position);
                feed(&mut monitor, step.process, instruction, what);
            }
        }
        for (violation, _) in monitor.violations().sorted() {
            if violation.model != self.machine.model {
                continue;
            }
            match self.show(memory, taken, &positions, violation) {
                Some(run) => return Some(run),
                None => self.unconfirmed_report = true,
            }
        }
        None
    }

    /// A run of the machine that confirms a report.
    fn show(
        &mut self,
        memory: &[palisade_program::Value],
        taken: &[ExecutedStep],
        positions: &[usize],
        violation: Violation,
    ) -> Option<Run> {
        let [store, last] = [violation.store, violation.access].map(|event| positions[event.index()]);
        let stored = taken[store].cells();
        let shared = taken[last].cells().into_iter().filter(|(cell, _)| stored.contains(&(*cell, true)));
        let ways = shared.flat_map(|(cell, _)| [(cell, Seen::Earlier), (cell, Seen::All)]);
        for (cell, seen) in ways {
            let run = witness::witness(self.machine, memory, taken, (last, cell), seen);
            if let Some(run) = run.filter(|run| violating(self.machine, run).is_ok()) {
                return Some(until_cycle(self.machine, run));
            }
        }
        None
    }
}

fn feed(monitor: &mut Monitor, process: usize, instruction: Instruction, what: &StepEvent) {
    let process = Process(process as u32);
    let bytes = |cell: CellId| Bytes { address: 8 * cell.index() as u64, size: 8 };
    let action = match what {
        StepEvent::Access(access, cell) => Action::Access(*access, bytes(*cell)),
        StepEvent::Section(cells) => {
            let access = |&(cell, writes): &(CellId, bool)| {
                (if writes { Access::Locked } else { Access::LockedLoad }, bytes(cell))
            };
            let accesses: Vec<(Access, Bytes)> = cells.iter().map(access).collect();
            monitor.take_section(process, instruction, &accesses);
            return;
        }
        StepEvent::Fence => Action::Fence,
        StepEvent::StoreFence => Action::StoreFence,
        StepEvent::Spawn(child) => Action::Spawn(Process(*child as u32)),
    };
    monitor.take(&Event { process, instruction, action });
}
