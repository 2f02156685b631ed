//! Finding fences, and writing them into the text of the program.
//!
//! In C, an access can be made stronger instead. Every result for C is compiled and checked again before it is
//! reported; if that fails, the next possibility is tried.

mod ahead;
mod confirming;
mod costs;
mod minimise;
mod oracle;
mod room;
mod spot;
mod wire;
mod write;

pub use ahead::FencesHelp;
pub use confirming::Confirm;
pub use costs::Costs;
pub use minimise::{Compile, Known, Minimised, minimise};
pub use palisade_fences::Goal;
pub use spot::Spot;
pub use write::WriteError;

use crate::language::InputLanguage;
use crate::{Answer, AskError, CheckOptions, Deadlocks, Input, check};
use ahead::Ahead;
use confirming::{ConfirmFencing, Confirming};
use oracle::Engines;
use palisade_base::Source;
use palisade_cluster::Helpers;
use palisade_engine::{Exhausted, Limits, Reason, Verdict, Witness, peak_memory_bytes};
use palisade_fences::{
    AccessAt, End, FenceKind, FencePlace, FenceSet, Fencing, Findings, Per, PlaceId, Placement, Places,
    Shown, Stronger, Wanted, Which, find,
};
use palisade_memory::{Interlocked, Machine, Model, Violation};
use palisade_program::running::System;
use palisade_program::written::{Block, StmtKind};
use palisade_report::{FencesEnd, FencesFinding, ReportedFence, Standing};
use palisade_syntax::edit::FenceAt;
use palisade_trace::{Addresses, Evidence, Replay, Run, replay_lasso, take};
use room::Room;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use write::changed_text;

/// What to ask about a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FencesOptions {
    /// What the fences are for.
    pub goal: Goal,
    /// Between which statements they may be placed.
    pub placement: Placement,
    /// What counts as one fence.
    pub per: Per,
    /// Whether one set is wanted, or all of them.
    pub which: Which,
    /// If not empty, fences may be placed only here.
    pub only: Vec<Spot>,
    /// Fences may not be placed here.
    pub never: Vec<Spot>,
    /// How many times as much a change costs here. The last entry that matches counts.
    pub weights: Vec<(Spot, u64)>,
    /// How many times as much a change costs in a loop, unless a weight matches.
    pub loop_weight: Option<u64>,
    /// What may be changed in the text of C.
    pub changes: Changes,
    /// What each kind of change costs.
    pub costs: Costs,
    /// Whether fences may be placed anywhere in C if those after writes do not help.
    pub widen: bool,
    /// Memory model, number of threads, engine.
    pub check: CheckOptions,
}

/// What may be changed in the text of C. Other languages have fences only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Changes {
    /// Fences are added.
    #[default]
    Fences,
    /// Accesses are made stronger.
    Accesses,
    /// Both.
    Any,
}

/// The fences that were found.
#[derive(Clone, Debug)]
pub struct FencesAnswer {
    /// The options of the question.
    pub options: FencesOptions,
    /// Where fences may be placed.
    pub places: Places,
    /// Sets of fences, and how the search ended.
    pub findings: Findings,
    /// Whether the text with the first set was compiled and checked again, if that was requested.
    pub confirmed: Option<Result<(), WriteError>>,
    /// The answer under SC, if no fences help and the goal is safety.
    pub under_sc: Option<Answer>,
    /// Time taken.
    pub seconds: f64,
    /// The peak memory of this process, if the host reports it.
    pub peak_memory_bytes: Option<u64>,
    /// What addresses mean in the program.
    addresses: Option<Arc<dyn Addresses>>,
    /// For each set, and for each fence in it, the run that becomes possible without the fence. Replayed on
    /// the trusted machine.
    needed: Vec<Vec<ShownRun>>,
    /// The run that no fences prevent.
    hopeless: Option<ShownRun>,
}

/// A run, with the running form of the program that has it.
#[derive(Clone, Debug)]
struct ShownRun {
    system: System,
    run: Run,
    replay: Replay,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FencesError {
    /// An engine failed.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// `--only`, `--never` or a weight names something that is not a place for a fence.
    #[error("no fence can be placed at `{0}`")]
    NoSuchPlace(Spot),
    /// The limits ran out before the search began, or before its result could be put into words.
    #[error("{0}")]
    Exhausted(Exhausted),
}

/// Finds fences that make a program safe or robust.
pub fn fences(input: &Input, options: &FencesOptions, limits: &Limits) -> Result<FencesAnswer, FencesError> {
    fences_confirmed(input, options, None, None, limits)
}

/// Finds changes that make a program safe or robust, and has the text with them confirmed. If it is not, the next
/// cheapest changes are tried. Other processes can help: each of them answers with a [`FencesHelp`] for the same program
/// and options.
pub fn fences_confirmed(
    input: &Input,
    options: &FencesOptions,
    confirm: Option<Confirm<'_>>,
    helpers: Option<&Helpers>,
    limits: &Limits,
) -> Result<FencesAnswer, FencesError> {
    let answer = fences_at(input, options, confirm, helpers, limits)?;
    let wider = FencesOptions { placement: Placement::Anywhere, ..options.clone() };
    let may_widen = options.widen && input.c.is_some() && options.placement == Placement::AfterWrites;
    let is_right_under_sc = match &answer.under_sc {
        Some(answer) => answer.outcome.verdict == Verdict::Holds,
        None => true,
    };
    let is_hopeless = matches!(answer.findings.end, End::Hopeless(_)) || !answer.findings.accepted;
    if !may_widen || !is_right_under_sc || !is_hopeless {
        return Ok(answer);
    }
    match fences_at(input, &wider, confirm, helpers, limits)? {
        found if matches!(found.findings.end, End::Complete) && found.findings.accepted => Ok(found),
        _ => Ok(answer),
    }
}

fn fences_at(
    input: &Input,
    options: &FencesOptions,
    confirm: Option<Confirm<'_>>,
    helpers: Option<&Helpers>,
    limits: &Limits,
) -> Result<FencesAnswer, FencesError> {
    let start = Instant::now();
    let input = &without_plain(input);
    let places = limits.within(|| places(input, options)).map_err(FencesError::Exhausted)??;
    let engines = engines(input, options);
    let confirm_fencing = |places: &Places, fencing: &Fencing, limits: &Limits| {
        let patches = changed_text(input, places, fencing)?;
        confirm.map_or(Ok(()), |confirm| confirm(&patches, limits))
    };
    let confirm: Option<ConfirmFencing<'_>> = match confirm {
        Some(_) => Some(&confirm_fencing),
        None => None,
    };
    let ahead = helpers.map(|helpers| Ahead::new(helpers, options.placement));
    let oracle = Confirming::new(engines, ahead, confirm);
    let weight = |place: PlaceId, kind: FenceKind| {
        let place = &places.places()[place];
        let given = options.weights.iter().rev().find(|(spot, _)| spot.contains(place, &input.source));
        let in_loop = options.loop_weight.filter(|_| place.in_loop);
        let times = given.map(|(_, weight)| *weight).or(in_loop).unwrap_or(1);
        times.saturating_mul(options.costs.of(place.change(kind), options.check.model, input.c.is_some()))
    };
    search_at(input, options, places.clone(), &weight, &oracle, start, limits)
}

/// The program that is judged: fences do not prevent data races.
fn without_plain(input: &Input) -> Input {
    Input { program: input.program.without_plain(), ..input.clone() }
}

/// What judges candidates.
fn engines<'a>(input: &Input, options: &'a FencesOptions) -> Engines<'a> {
    Engines { goal: options.goal, options: &options.check, undecided: undecided(input, options) }
}

/// Searches for fences at some places.
fn search_at(
    input: &Input,
    options: &FencesOptions,
    places: Places,
    weight: &dyn Fn(PlaceId, FenceKind) -> u64,
    oracle: &Confirming<'_>,
    start: Instant,
    limits: &Limits,
) -> Result<FencesAnswer, FencesError> {
    let findings = find(&places, options.which, weight, oracle, limits)?;
    let confirmed = oracle.confirmed(findings.accepted);
    let taken = |fencing: &Fencing, witness: &Witness, shown: Shown| {
        let system = shown.lower(&places.marked(fencing), witness.instantiation);
        let machine =
            Machine { system: &system, model: options.check.model, interlocked: options.check.interlocked };
        let mut run = witness.run.clone();
        let mut replay = take(machine, &run).expect("the search took this run itself");
        match shown {
            // The run is not about a violation in its last state.
            Shown::Missed if options.goal == Goal::Robustness => replay.violation = None,
            Shown::Missed => {}
            Shown::Deadlock => replay.violation = Some(Violation::Deadlock),
            Shown::OutOfReach(goal) => replay.violation = Some(Violation::Unreachable(goal)),
            Shown::Forever => (run, replay) = with_one_round(machine, run),
        }
        ShownRun { system, run, replay }
    };
    let all_taken = || {
        let of_set = |set: &FenceSet| {
            set.fences.iter().map(|fence| taken(&fence.without, &fence.run, fence.shown)).collect()
        };
        let needed: Vec<Vec<ShownRun>> = findings.sets.iter().map(of_set).collect();
        let hopeless = match &findings.end {
            End::Hopeless(witness) => Some(taken(&places.no_fences(), witness, findings.hopeless)),
            End::Complete | End::Unknown(_) => None,
        };
        (needed, hopeless)
    };
    let (needed, hopeless) = limits.clone().with_grace().within(all_taken).map_err(FencesError::Exhausted)?;
    let under_sc = match (&hopeless, options.goal) {
        (Some(_), Goal::Safety) => {
            let options = CheckOptions { model: Model::Sc, ..options.check.clone() };
            let named_engine_may_not_know = CheckOptions { engine: crate::EngineChoice::Auto, ..options };
            Some(check(&input.program, &named_engine_may_not_know, limits)?)
        }
        _ => None,
    };
    Ok(FencesAnswer {
        options: options.clone(),
        findings,
        confirmed,
        under_sc,
        seconds: start.elapsed().as_secs_f64(),
        peak_memory_bytes: peak_memory_bytes(),
        addresses: input.c.as_ref().map(|c| c.shared_addresses()),
        needed,
        hopeless,
        places,
    })
}

/// A run that never ends, with its cycle once instead of several times.
fn with_one_round(machine: Machine<'_>, mut run: Run) -> (Run, Replay) {
    let taken = |run: &Run| {
        let replay = replay_lasso(machine, run).expect("the search found this cycle itself");
        let Some(Violation::Forever { from, .. }) = replay.violation else {
            unreachable!("a lasso violates a property forever")
        };
        (replay, from)
    };
    let (mut replay, mut from) = taken(&run);
    // The shortest cycle is the last one. It may be the last of several equal rounds.
    loop {
        let round = run.steps.len() - from;
        let begin = from.checked_sub(round).filter(|_| round > 0);
        let Some(begin) = begin.filter(|&begin| replay.states[begin] == replay.states[from]) else { break };
        if run.steps[begin..from] != run.steps[from..] {
            break;
        }
        run.steps.truncate(from);
        (replay, from) = taken(&run);
    }
    (run, replay)
}

/// Why fences for what must stay possible are not looked for, if they are not. Fences are tried at labels, and
/// a label changes what some waits mean.
fn undecided(input: &Input, options: &FencesOptions) -> Option<Reason> {
    let asked = options.check.deadlocks == Deadlocks::Asked || !input.program.progress.is_empty();
    if !asked || options.goal != Goal::Safety {
        return None;
    }
    let bodies = input.program.templates.iter().map(|template| &template.body);
    let mut blocks: Vec<&Block> =
        bodies.chain(input.program.procedures.iter().map(|procedure| &procedure.body)).collect();
    let begins_with_wait = |block: &&Block| {
        block.first().is_some_and(|stmt| {
            matches!(stmt.kind, StmtKind::Await(_) | StmtKind::Block(_) | StmtKind::Choose(_))
        })
    };
    while let Some(block) = blocks.pop() {
        for stmt in block {
            let inner = stmt.kind.blocks();
            let what = match &stmt.kind {
                StmtKind::Choose(_) if inner.iter().any(begins_with_wait) => {
                    "an alternative begins with a wait"
                }
                StmtKind::While { body, .. }
                    if !body.is_empty() && body.iter().all(|stmt| stmt.kind == StmtKind::Skip) =>
                {
                    "a loop waits with `skip`; leave its body empty"
                }
                _ => {
                    blocks.extend(inner);
                    continue;
                }
            };
            return Some(Reason::Unsupported(format!(
                "fences against deadlocks are not looked for where {what}"
            )));
        }
    }
    None
}

/// The places where fences may be placed: those that the options allow and that the text has room for.
fn places(input: &Input, options: &FencesOptions) -> Result<Places, FencesError> {
    let store_fences = options.check.model == Model::Pso;
    let room = Room::new(input, options.placement, store_fences);
    let with_fences = options.changes != Changes::Accesses;
    let can_write = |fence: FenceAt| with_fences && room.is_for(fence);
    let with_accesses = input.language == InputLanguage::C
        && options.changes != Changes::Fences
        && options.check.interlocked == Interlocked::WholeBuffer;
    let known: RefCell<BTreeMap<AccessAt, Option<Stronger>>> = RefCell::default();
    let stronger = |access: AccessAt| {
        if !with_accesses {
            return None;
        }
        let mut known = known.borrow_mut();
        *known.entry(access).or_insert_with(|| crate::c::stronger(&input.source, access))
    };
    let spots =
        || options.only.iter().chain(&options.never).chain(options.weights.iter().map(|(spot, _)| spot));
    let mut unused: Vec<&Spot> = spots().collect();
    let wanted = |allows| Wanted {
        placement: options.placement,
        per: options.per,
        store_fences,
        can_write: &can_write,
        stronger: &stronger,
        allows,
    };
    let all = Places::new(&input.program, &wanted(&|_| true));
    unused.retain(|spot| !all.places().iter().any(|place| spot.contains(place, &input.source)));
    if let Some(spot) = unused.first() {
        return Err(FencesError::NoSuchPlace((*spot).clone()));
    }
    if options.only.is_empty() && options.never.is_empty() {
        return Ok(all);
    }
    let allows = |place: &FencePlace| {
        let is_in = |spots: &[Spot]| spots.iter().any(|spot| spot.contains(place, &input.source));
        (options.only.is_empty() || is_in(&options.only)) && !is_in(&options.never)
    };
    Ok(Places::new(&input.program, &wanted(&allows)))
}

impl FencesAnswer {
    /// Notes why the search ended early, if it did. The sets that it had found are minimal all the same.
    pub fn note_end(&mut self, why: Reason) {
        if let End::Unknown(reason) = &mut self.findings.end {
            *reason = why;
        }
    }

    /// `safe` or `robust` if no fences are needed, `repairable` if those that were found are enough, `unsafe` or
    /// `not-robust` if no fences help, or `unknown`.
    pub fn word(&self) -> &'static str {
        let needs_fences = self.findings.sets.iter().any(|set| !set.fences.is_empty());
        match (&self.findings.end, self.options.goal) {
            (End::Complete, _) if needs_fences => "repairable",
            (End::Complete, Goal::Safety) => "safe",
            (End::Complete, Goal::Robustness) => "robust",
            (End::Hopeless(_), Goal::Safety) => "unsafe",
            (End::Hopeless(_), Goal::Robustness) => "not-robust",
            (End::Unknown(_), _) => "unknown",
        }
    }

    /// Whether the fences found (or none) are enough, no fences help, or this is not known.
    pub fn standing(&self) -> Standing {
        match self.findings.end {
            End::Complete => Standing::Good,
            End::Hopeless(_) => Standing::Bad,
            End::Unknown(_) => Standing::Open,
        }
    }

    /// The answer, ready to be reported.
    pub fn finding<'a>(&'a self, input: &'a Input, limits: Option<&'a str>) -> FencesFinding<'a> {
        let evidence = |taken: &'a ShownRun| self.evidence(taken, &input.source);
        let reported = |set: &'a FenceSet, needed: &'a [ShownRun]| {
            let fences = set.fences.iter().zip(needed);
            fences
                .map(|(fence, run)| ReportedFence {
                    place: &self.places.places()[fence.place],
                    kind: fence.kind,
                    becomes: self.places.places()[fence.place]
                        .stronger()
                        .and_then(|access| crate::c::becomes(&input.source, access, fence.kind)),
                    without: evidence(run),
                    weaker: fence.without[fence.place],
                })
                .collect()
        };
        let sets =
            self.findings.sets.iter().zip(&self.needed).map(|(set, needed)| reported(set, needed)).collect();
        let end = match (&self.findings.end, &self.hopeless) {
            (End::Complete, _) => FencesEnd::Complete,
            (End::Unknown(reason), _) => FencesEnd::Unknown(reason),
            (End::Hopeless(_), hopeless) => {
                let run = hopeless.as_ref().map(evidence).expect("the run was taken");
                let sc = self.under_sc.as_ref();
                match sc.map(|answer| &answer.outcome.verdict) {
                    Some(Verdict::Violated(_)) => {
                        let run = sc.and_then(|answer| answer.evidence(&input.source));
                        FencesEnd::WrongUnderSc(run.expect("an unsafe answer has a run"))
                    }
                    Some(Verdict::Holds) | None => FencesEnd::NotAllowed(run),
                    Some(Verdict::Unknown(reason)) => FencesEnd::NotKnownUnderSc(run, reason),
                }
            }
        };
        FencesFinding {
            source: &input.source,
            language: input.language.name(),
            warnings: &input.warnings,
            model: self.options.check.model,
            goal: self.options.goal.name(),
            all: self.options.which == Which::All,
            word: self.word(),
            engine: self.findings.engine,
            stats: &self.findings.stats,
            places: self.places.places().len(),
            fewest: self.findings.fewest,
            sets,
            costs: self.findings.sets.iter().map(|set| set.cost.weight).collect(),
            end,
            limits,
            seconds: self.seconds,
            peak_memory_bytes: self.peak_memory_bytes,
        }
    }

    fn evidence<'a>(&'a self, taken: &'a ShownRun, source: &'a Source) -> Evidence<'a> {
        let CheckOptions { model, interlocked, .. } = self.options.check;
        let machine = Machine { system: &taken.system, model, interlocked };
        Evidence {
            source,
            addresses: self.addresses.as_deref(),
            machine,
            run: &taken.run,
            replay: &taken.replay,
        }
    }
}
