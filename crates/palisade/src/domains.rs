//! Guess and proof: exact engines on programs whose counters they cannot bound by themselves.
//!
//! *Problem.* The exact engines `dual` and `sb` list the values that cells can hold. For a 32-bit counter in a loop
//! there are too many, although it takes only a few in any run. The same holds for a counter without a domain (`int`):
//! the engines bound its values by looking at single processes, and a loop that adds to it and subtracts again then
//! seems to have no bound.
//!
//! Machine words are always guessed. Variables without a domain are guessed only if the engine has failed because of
//! their values: most of them take few, which the engine finds by itself.
//!
//! *How.* A few runs on the trusted machine, with random schedules, show which values wide cells take. These become
//! their domains, and leaving a domain becomes an error. Then the engine is asked.
//! 1. If it answers `safe`, nothing leaves the domains, and the program is safe: the argument is in
//!    `palisade-certificate`, which does not trust the guess either.
//! 2. If it finds a run that leaves a domain, the domain grows by what this run stores, and the engine is asked again.
//! 3. Any other violation is one of the program itself: up to there the run stays inside the domains.
//!
//! *Guarantee.* Every answer is about the program itself. If no guess holds, there is no answer from here.

use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice, check_analysis};
use crate::error::AskError;
use crate::modulo::modulo;
use palisade_base::limits::checkpoint;
use palisade_certificate::{CellDomain, narrowed, runs_away};
use palisade_engine::{Analysis, Limits, Verdict};
use palisade_memory::{Fault, Machine, Model, Pending, State, Violation};
use palisade_program::Value;
use palisade_program::running::System;
use palisade_program::written::{Init, InitValue, Outside, Program, Shared};
use palisade_trace::Run;
use std::time::Duration;

/// How many runs are looked at, and how many steps of each.
const RUNS: u64 = 64;
const STEPS: usize = 4_000;

/// A cell with at least this many values is not listed: engines that list values stop there.
const WIDE: u64 = 1 << 14;

/// A domain with more values than this does not help.
const MAX_WIDTH: u64 = 256;

/// How many times a guess is corrected.
const CORRECTIONS: usize = 16;

/// With any number of threads, the runs that are looked at have this many of each kind. A counter of threads leaves
/// every domain sooner or later, so there are fewer corrections and less work for each.
const THREADS: u32 = 3;
const CORRECTIONS_OF_ANY: usize = 2;
const WORK_OF_ANY: u64 = 1 << 17;

/// How much work engines do before integers that seem to grow are [taken modulo a number](modulo).
const PROBE: u64 = 1 << 16;

/// The same in time: a single step of `rounds` or `age` may take forever where an integer grows in a loop.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// The engines that list values.
const LISTING: [&str; 2] = ["dual", "sb"];

/// Checks a program. Where an engine lists values, the domains of machine words are guessed first, and those of
/// variables without a domain if it fails because of their values. If several engines are asked and none knows the
/// answer, one that lists values is asked with guessed domains.
pub(crate) fn check_guessing(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Answer, AskError> {
    let shared = &analysis.task.program.shared;
    let [words, unbounded] = [Width::Word, Width::Unbounded]
        .map(|wanted| shared.iter().any(|shared| width(shared) == Some(wanted)));
    let lists = matches!(&options.engine, EngineChoice::Named(name) if LISTING.contains(&name.as_str()));
    if words
        && lists
        && let Some(answer) = guessed(analysis, options, limits, &[Width::Word])?
    {
        return Ok(answer);
    }
    let is_auto = options.engine == EngineChoice::Auto;
    let listing = match is_auto {
        true => {
            let engine = if options.model == Model::Pso { "sb" } else { "dual" };
            CheckOptions { engine: EngineChoice::from(engine), ..options.clone() }
        }
        false => options.clone(),
    };
    let grows = limits.within(|| runs_away(analysis.task.program)) == Ok(true);
    // Engines that visit states would go on forever, so they do not come first.
    if is_auto && grows {
        let probe = limits.clone().leaving_one_in(2).at_most_work(PROBE).at_most(PROBE_TIME);
        let answer = check_analysis(analysis, options, &probe)?;
        if !matches!(answer.outcome.verdict, Verdict::Unknown(_)) {
            return Ok(answer);
        }
        if let Some(answer) = modulo(analysis, &listing, limits)? {
            return Ok(answer);
        }
    }
    let answer = check_analysis(analysis, options, limits)?;
    let Verdict::Unknown(reason) = &answer.outcome.verdict else { return Ok(answer) };
    let options = listing;
    if words
        && is_auto
        && let Some(answer) = guessed(analysis, &options, limits, &[Width::Word])?
    {
        return Ok(answer);
    }
    if unbounded
        && (is_auto || lists && reason.is_growth())
        && let Some(answer) = guessed(analysis, &options, limits, &[Width::Word, Width::Unbounded])?
    {
        return Ok(answer);
    }
    if grows
        && lists
        && reason.is_growth()
        && let Some(answer) = modulo(analysis, &options, limits)?
    {
        return Ok(answer);
    }
    Ok(answer)
}

/// Why the domain of a variable says nothing about the values that it takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    /// It is a machine word.
    Word,
    /// It has no domain.
    Unbounded,
}

/// Whether and why a variable's domain says nothing about its values. `None` also if it cannot be replaced.
fn width(shared: &Shared) -> Option<Width> {
    let arbitrary = match &shared.init {
        Init::Every(value) => *value == InitValue::Any,
        Init::Each(values) => values.contains(&InitValue::Any),
    };
    match (shared.ty.domain.bounds(), shared.ty.outside) {
        _ if arbitrary => None,
        (Some((lo, hi)), Outside::Wrap) if hi.abs_diff(lo) >= WIDE => Some(Width::Word),
        (None, Outside::Fault) => Some(Width::Unbounded),
        _ => None,
    }
}

/// The answer of an engine with guessed domains for variables of these kinds, if a guess holds.
fn guessed(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
    which: &[Width],
) -> Result<Option<Answer>, AskError> {
    let program = analysis.task.program;
    let is_any = analysis.task.is_parameterized();
    let prepared = limits.within(|| {
        let system = analysis.system(if is_any { THREADS } else { 1 });
        let ranges = Ranges::seen(machine(&system, options));
        (system, ranges)
    });
    let Ok((system, mut ranges)) = prepared else { return Ok(None) };
    let limits = &match is_any {
        true => limits.clone().at_most_work(WORK_OF_ANY),
        false => limits.clone(),
    };
    for _ in 0..if is_any { CORRECTIONS_OF_ANY } else { CORRECTIONS } {
        let domains = ranges.domains(program, &system, which);
        let Ok(narrow) = narrowed(program, &domains) else { return Ok(None) };
        if domains.is_empty() {
            return Ok(None);
        }
        let narrow_analysis = Analysis::new(options.task(&narrow));
        let answer = check_analysis(&narrow_analysis, options, limits)?;
        match (&answer.outcome.verdict, &answer.confirmed) {
            (Verdict::Holds, _) => return Ok(Some(Answer { domains, ..answer })),
            (Verdict::Violated(witness), Some(confirmed)) => match confirmed.replay.violation {
                Some(Violation::Fault(_, Fault::OutOfDomain(_))) => {
                    let grown = limits.within(|| {
                        let system = analysis.system(witness.instantiation.any);
                        ranges.grow(machine(&system, options), &witness.run)
                    });
                    if grown != Ok(true) {
                        return Ok(None);
                    }
                }
                _ => return Ok(Some(answer)),
            },
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn machine<'s>(system: &'s System, options: &CheckOptions) -> Machine<'s> {
    Machine { system, model: options.model, interlocked: options.interlocked }
}

/// The least and the greatest value that each cell was seen to hold, in memory or in a buffer.
struct Ranges(Vec<(Value, Value)>);

impl Ranges {
    /// What is seen in runs with random schedules.
    fn seen(machine: Machine<'_>) -> Ranges {
        let mut ranges = Ranges(vec![(Value::MAX, Value::MIN); machine.system.cells.len()]);
        for seed in 0..RUNS {
            let mut random = Random(seed);
            let Some(mut state) = machine.initial_states().next() else { break };
            ranges.add(&state);
            for _ in 0..STEPS {
                checkpoint();
                let mut successors = machine.successors(&state);
                if successors.is_empty() || state.fault.is_some() {
                    break;
                }
                state = successors.swap_remove(random.below(successors.len())).state;
                ranges.add(&state);
            }
        }
        ranges
    }

    /// Adds what a run of the narrowed program stores as a run of the program itself. Returns whether that is more.
    fn grow(&mut self, machine: Machine<'_>, run: &Run) -> bool {
        let before = self.0.clone();
        let Some(mut state) = machine.initial_states().next() else { return false };
        for &step in &run.steps {
            checkpoint();
            let Ok((next, _)) = machine.step(&state, step) else { return false };
            state = next;
            self.add(&state);
        }
        self.0 != before
    }

    fn add(&mut self, state: &State) {
        let mut add = |cell: usize, value: Value| {
            let (lo, hi) = &mut self.0[cell];
            (*lo, *hi) = ((*lo).min(value), (*hi).max(value));
        };
        state.memory.iter().enumerate().for_each(|(cell, value)| add(cell, *value));
        for thread in state.threads.iter() {
            for pending in &thread.buffer {
                if let Pending::Store(cell, value) = pending {
                    add(cell.0 as usize, *value);
                }
            }
        }
    }

    /// The domains of the wide variables that took few values.
    fn domains(&self, program: &Program, system: &System, which: &[Width]) -> Vec<CellDomain> {
        let mut found = Vec::new();
        let wide = |shared: &&Shared| width(shared).is_some_and(|width| which.contains(&width));
        for shared in program.shared.iter().filter(wide) {
            let name = shared.name.as_str();
            let cells = system.cells.iter_enumerated().filter(|(_, cell)| {
                cell.name == name || cell.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('['))
            });
            let range = cells.map(|(id, _)| self.0[id.0 as usize]);
            let range = range.reduce(|(lo, hi), (other_lo, other_hi)| (lo.min(other_lo), hi.max(other_hi)));
            if let Some((lo, hi)) = range.filter(|(lo, hi)| lo <= hi && hi.abs_diff(*lo) < MAX_WIDTH) {
                found.push(CellDomain { name: name.to_owned(), lo, hi });
            }
        }
        found
    }
}

/// Random numbers that are the same everywhere (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
