//! The search. Candidates are minimal ways to meet the demands so far. Each wrong candidate gives a run, and
//! each run a demand.
//!
//! *Problem.* Find all minimal sets of fences, or a cheapest one, that make a program correct.
//!
//! *Source.* Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence insertion under weak
//! memory models" (TACAS 2012), section 6, grows candidates fence by fence (Algorithm 2). Here demands are
//! kept and candidates are hitting sets of all of them, as in R. Reiter, "A theory of diagnosis from first
//! principles" (AI 32, 1987).
//!
//! *Guarantee.*
//! - Every set that makes the program correct meets every demand ([`crate::demand`](mod@crate::demand)). So a
//!   candidate that makes it correct is a minimal set: with one fence less some demand is not met, and its
//!   run breaks the program.
//! - When all minimal ways to meet the demands make the program correct, they are all the minimal sets.
//! - Every step either finds a set or adds a demand that the candidate does not meet, and there are finitely
//!   many candidates.
//!
//! *Differences from the paper.*
//! 1. No candidate repeats what a known run has refuted.
//! 2. Runs are shortened, and their stores moved to memory early, before their demand is computed.
//! 3. Places may have weak and strong fences.
//! 4. If an engine does not know, the answer is unknown. Sets found before that stay proved.
//!
//! *Cost.* One query to the engine per minimal set and per demand.

use crate::demand::{Demand, demand};
use crate::hitting::{Cost, cheapest, cost, meets, minimal, weaker};
use crate::places::{Fencing, Marks, PlaceId, Places};
use crate::reorder::with_fewer_waits;
use crate::{Judgement, Oracle, Shown};
use palisade_engine::{Exhausted, Limits, Progress, Reason, Stats, Verdict, Witness};
use palisade_memory::{Action, Machine, State, Step, Violation};
use palisade_program::Instantiation;
use palisade_program::running::System;
use palisade_syntax::edit::FenceKind;
use palisade_trace::{Priority, Replay, Run, replay_lasso, replay_to_deadlock, settle, take, transfer};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Which sets to search for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Which {
    /// One with the lowest cost.
    #[default]
    Cheapest,
    /// All minimal ones.
    All,
}

/// This many sets are tried until one is accepted.
const MAX_REFUSED: usize = 8;

/// A fence of a set, and why it is needed.
#[derive(Clone, Debug)]
pub struct Fence {
    /// The place of the fence.
    pub place: PlaceId,
    /// The kind of fence.
    pub kind: FenceKind,
    /// A run that breaks the program with the fences of [`Fence::without`].
    pub run: Witness,
    /// What the run shows.
    pub shown: Shown,
    /// The other fences of the set, with this one replaced by the next weaker kind, or removed if there is
    /// none.
    pub without: Fencing,
}

/// A minimal set of fences.
#[derive(Clone, Debug)]
pub struct FenceSet {
    /// The fences in the order of their places, each with the reason for it.
    pub fences: Vec<Fence>,
    /// The same fences as a table: for each place, the fence there.
    pub fencing: Fencing,
    /// The cost of the fences.
    pub cost: Cost,
}

/// How the search ended.
#[derive(Clone, Debug)]
pub enum End {
    /// The sets found are all sets, or the one found has the lowest cost.
    Complete,
    /// This run breaks the program with any fences at the places.
    Hopeless(Witness),
    /// Unknown, with the reason. The sets found are minimal, but there may be others, or cheaper ones.
    Unknown(Reason),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Minimal sets, the cheapest first.
    pub sets: Vec<FenceSet>,
    /// How the search ended.
    pub end: End,
    /// What the run of [`End::Hopeless`] shows.
    pub hopeless: Shown,
    /// Whether the oracle accepts the set, if one was wanted. Otherwise it is the cheapest set, but it cannot be
    /// written.
    pub accepted: bool,
    /// A lower bound on the cost of any set that makes the program correct.
    pub least: Cost,
    /// A lower bound on the number of its fences.
    pub fewest: usize,
    /// The number of demands found, the number of queries, and the sums of the engines' counters.
    pub stats: Stats,
    /// The engine that answered last.
    pub engine: &'static str,
}

/// Finds fences that make a program correct. `weight` is the cost of a fence at a place, at least 1. A full fence costs
/// at least as much as a store-store fence at the same place.
pub fn find<O: Oracle>(
    places: &Places,
    which: Which,
    weight: &dyn Fn(PlaceId, FenceKind) -> u64,
    oracle: &O,
    limits: &Limits,
) -> Result<Findings, O::Error> {
    let weight = |place: PlaceId, kind: FenceKind| {
        let kinds = places.places()[place].kinds().iter();
        kinds.filter(|&&weaker| weaker <= kind).map(|&kind| weight(place, kind).max(1)).max().unwrap_or(1)
    };
    let mut search = Search {
        places,
        oracle,
        weight: &weight,
        none: places.no_fences(),
        demands: Vec::new(),
        runs: Vec::new(),
        right: Vec::new(),
        refused: Vec::new(),
        undecided: Vec::new(),
        hopeless: Shown::Missed,
        engine: "none",
        calls: 0,
        counted: Stats::new(),
    };
    let mut end = search.run(which, limits)?;
    let unwritten = search.right.is_empty() && !search.refused.is_empty();
    if unwritten {
        // It is correct, though it cannot be written.
        search.right.push(search.refused[0].clone());
    }
    let graced = limits.clone().with_grace();
    let mut sets: Vec<FenceSet> = Vec::new();
    for fencing in &search.right {
        match graced.within(|| search.set(fencing)) {
            Ok(set) => sets.push(set),
            // The program is correct, but there is no time left to show why.
            Err(what) => {
                end = End::Unknown(Reason::Exhausted(what));
                break;
            }
        }
    }
    sets.sort_by_key(|set| set.cost);
    let bounds = graced.within(|| {
        let least = cheapest(&search.none, &search.demands, search.weight, &|_| true);
        let fewest = cheapest(&search.none, &search.demands, &|_, _| 1, &|_| true);
        (least, fewest)
    });
    // If the time ran out, nothing is known about the bounds, and nothing is claimed.
    let (least, fewest) = bounds.unwrap_or_default();
    Ok(Findings {
        sets,
        end,
        hopeless: search.hopeless,
        accepted: !unwritten,
        least: least.map_or(Cost::default(), |fencing| cost(&fencing, search.weight)),
        fewest: fewest.map_or(0, |fencing| fencing.iter().flatten().count()),
        stats: search.stats(),
        engine: search.engine,
    })
}

struct Search<'a, O> {
    places: &'a Places,
    oracle: &'a O,
    weight: &'a dyn Fn(PlaceId, FenceKind) -> u64,
    none: Fencing,
    demands: Vec<Demand>,
    /// For each demand its run, in the marked program without fences, and what it shows.
    runs: Vec<(Witness, Shown)>,
    /// Candidates that make the program correct.
    right: Vec<Fencing>,
    /// Candidates that do, but that the oracle does not accept.
    refused: Vec<Fencing>,
    /// Candidates that could not be decided, and why.
    undecided: Vec<(Fencing, Reason)>,
    hopeless: Shown,
    engine: &'static str,
    calls: u64,
    counted: Stats,
}

impl<O: Oracle> Search<'_, O> {
    fn run(&mut self, which: Which, limits: &Limits) -> Result<End, O::Error> {
        loop {
            let candidate = match limits.within(|| self.candidate(which)) {
                Ok(Some(candidate)) => candidate,
                Ok(None) => break,
                Err(what) => return Ok(End::Unknown(Reason::Exhausted(what))),
            };
            // Stronger accesses and fences can make the same program.
            let effect = self.places.effect(&candidate);
            if self.right.iter().chain(&self.refused).any(|known| self.places.effect(known) == effect) {
                if self.keep(candidate, which, limits)? {
                    break;
                }
                continue;
            }
            let search_progress =
                SearchProgress { to: limits.progress().clone(), doing: self.doing(&candidate) };
            search_progress.report_search();
            let watched = limits.clone().with_progress(Arc::new(search_progress));
            let prepared = limits.within(|| {
                self.announce(which, &candidate);
                self.places.marked(&candidate)
            });
            let program = match prepared {
                Ok(program) => program,
                Err(what) => return Ok(End::Unknown(Reason::Exhausted(what))),
            };
            let judgement = match self.oracle.judged_before(self.places, &candidate, limits) {
                Some(judgement) => judgement,
                None => self.oracle.judge(&program, &watched)?,
            };
            let Judgement { verdict, engine, stats, shown } = judgement;
            self.calls += 1;
            self.engine = engine;
            stats.iter().for_each(|(name, value)| self.counted.add(name, value));
            match verdict {
                Verdict::Holds => {
                    if self.keep(candidate, which, limits)? {
                        break;
                    }
                }
                Verdict::Violated(witness) => {
                    let learned = limits.within(|| self.learn(&candidate, &witness, shown, limits));
                    let (demand, witness) = match learned.and_then(|learned| learned) {
                        Ok(Some(learned)) => learned,
                        Ok(None) => {
                            let why = "something is out of reach that is not without these fences";
                            self.undecided.push((candidate, Reason::Observed(why.to_owned())));
                            continue;
                        }
                        Err(what) => return Ok(End::Unknown(Reason::Exhausted(what))),
                    };
                    if demand.is_empty() {
                        self.hopeless = shown;
                        return Ok(End::Hopeless(witness));
                    }
                    self.demands.push(demand);
                    self.runs.push((witness, shown));
                }
                Verdict::Unknown(reason) => {
                    let over = reason.what_ran_out().is_some();
                    self.undecided.push((candidate, reason));
                    if over {
                        break;
                    }
                }
            }
        }
        Ok(match self.undecided.first() {
            // What is known about the program with fences does not apply to the program itself.
            Some((fencing, reason)) => End::Unknown(match fencing.iter().flatten().count() {
                0 => reason.clone(),
                1 => reason.clone().about("with 1 fence added"),
                fences => reason.clone().about(&format!("with {fences} fences added")),
            }),
            None => End::Complete,
        })
    }

    /// Keeps a candidate that makes the program correct. Returns whether the search is over.
    fn keep(&mut self, candidate: Fencing, which: Which, limits: &Limits) -> Result<bool, O::Error> {
        if which == Which::All || self.oracle.accepts(self.places, &candidate, limits)? {
            self.right.push(candidate);
            return Ok(which == Which::Cheapest);
        }
        self.refused.push(candidate);
        Ok(self.refused.len() >= MAX_REFUSED)
    }

    /// A way to meet all demands that has not been judged yet.
    fn candidate(&self, which: Which) -> Option<Fencing> {
        self.candidate_besides(which, &[])
    }

    /// Announces the candidates that come next if this one is judged and no new demand rules them out. Most often they
    /// do come next: a demand is met by many candidates.
    fn announce(&self, which: Which, candidate: &Fencing) {
        let mut besides = vec![candidate.clone()];
        while self.oracle.appetite() > 0
            && let Some(next) = self.candidate_besides(which, &besides)
        {
            self.oracle.expect(self.places, &next);
            besides.push(next);
        }
    }

    /// The same, other than these candidates.
    fn candidate_besides(&self, which: Which, besides: &[Fencing]) -> Option<Fencing> {
        let is_new = |fencing: &Fencing| {
            !self.right.contains(fencing)
                && !self.refused.contains(fencing)
                && !self.undecided.iter().any(|(undecided, _)| undecided == fencing)
                && !besides.contains(fencing)
        };
        match which {
            Which::Cheapest => cheapest(&self.none, &self.demands, self.weight, &is_new),
            Which::All => {
                let mut found = None;
                minimal(&self.none, &self.demands, &mut |fencing| {
                    if is_new(fencing) {
                        found = Some(fencing.clone());
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                });
                found
            }
        }
    }

    /// The demand of a run that breaks a candidate, and the run in the marked program without fences. `None`
    /// if the run shows nothing there.
    ///
    /// # Panics
    /// If the candidate meets the demand, or the run is not a run of the program without fences. In both
    /// cases the argument in [`mod@crate::demand`] is wrong.
    fn learn(
        &self,
        candidate: &Fencing,
        witness: &Witness,
        shown: Shown,
        limits: &Limits,
    ) -> Result<Option<(Demand, Witness)>, Exhausted> {
        let system = self.lower(candidate, witness.instantiation, shown);
        let machine = self.oracle.machine(&system);
        let marks = self.places.marks(&system);
        let found = match shown {
            Shown::Missed | Shown::Deadlock | Shown::Forever => witness.run.clone(),
            // What is out of reach stays out of reach when stores reach memory.
            Shown::OutOfReach(_) => drained(machine, witness.run.clone()),
        };
        let last = take(machine, &found).expect("the oracle's run can be replayed").states.pop();
        let bad = |state: &State| match shown {
            Shown::Missed => self.oracle.goal().is_missed_in(machine, state),
            Shown::Deadlock => machine.is_stuck(state),
            Shown::OutOfReach(_) => Some(state) == last.as_ref(),
            // No state shows it alone.
            Shown::Forever => false,
        };
        let still = |run: &Run| match shown {
            Shown::Missed => self.oracle.goal().is_missed_by(machine, run),
            Shown::Deadlock => replay_to_deadlock(machine, run).is_ok(),
            Shown::OutOfReach(_) => {
                take(machine, run).is_ok_and(|replay| replay.states.last() == last.as_ref())
            }
            Shown::Forever => replay_lasso(machine, run).is_ok(),
        };
        let tried = [Priority::First, Priority::Last].map(|priority| {
            let mut run = settle(machine, found.clone(), priority, &still);
            if shown == Shown::Forever {
                run = repeated(machine, run);
            }
            let replay = take(machine, &run).expect("the oracle's run can be replayed");
            (demand(self.places, &marks, &run, &replay), run)
        });
        let [first, last] = tried;
        let (mut demand, mut run) = if last.0.len() < first.0.len() { last } else { first };
        if let Some((smaller, reordered)) = self.reordered(machine, &marks, &run, &demand, &bad, &still) {
            (demand, run) = (smaller, reordered);
        }
        assert!(!meets(candidate, &demand), "a run of a program demands no fence that the program has");
        let plain = self.lower(&self.none, witness.instantiation, shown);
        let plain = self.oracle.machine(&plain);
        let run = transfer(machine, plain, &run).expect("fences add no runs");
        let shows = match shown {
            Shown::Missed => true,
            Shown::Deadlock => replay_to_deadlock(plain, &run).is_ok(),
            Shown::OutOfReach(goal) => {
                let replay = take(plain, &run).expect("the run was just taken");
                let last = replay.states.last().expect("a run has a first state");
                self.oracle.is_out_of_reach(plain, last, goal, limits)?
            }
            Shown::Forever => replay_lasso(plain, &run).is_ok(),
        };
        Ok(shows.then_some((demand, Witness { instantiation: witness.instantiation, run })))
    }

    /// The running form of the marked program with some fences.
    fn lower(&self, fencing: &Fencing, instantiation: Instantiation, shown: Shown) -> System {
        shown.lower(&self.places.marked(fencing), instantiation)
    }

    /// The instructions of a run in an order with a smaller demand, if one is found. With several kinds of
    /// fences this is not tried, since pending stores are not all that counts.
    fn reordered(
        &self,
        machine: Machine<'_>,
        marks: &Marks,
        run: &Run,
        old: &Demand,
        bad: &dyn Fn(&State) -> bool,
        still: &dyn Fn(&Run) -> bool,
    ) -> Option<(Demand, Run)> {
        if self.places.places().iter().any(|place| place.store_fence) {
            return None;
        }
        let demanded: BTreeSet<PlaceId> = old.iter().map(|&(place, _)| place).collect();
        let run = with_fewer_waits(machine, marks, run, &demanded, bad)?;
        let run = settle(machine, run, Priority::First, still);
        let demand = demand(self.places, marks, &run, &take(machine, &run).ok()?);
        (still(&run) && demand.len() < old.len()).then_some((demand, run))
    }

    /// A candidate that makes the program correct, with a run for each of its fences.
    fn set(&self, fencing: &Fencing) -> FenceSet {
        let fences = fencing.iter_enumerated().filter_map(|(place, kind)| {
            let kind = (*kind)?;
            let mut without = fencing.clone();
            let is_choice = |kind: &FenceKind| self.places.places()[place].kinds().contains(kind);
            without[place] = weaker(kind).filter(is_choice);
            let missed = self.demands.iter().position(|demand| !meets(&without, demand));
            let missed = missed.expect("a candidate is a minimal way to meet the demands");
            let (Witness { instantiation, run }, shown) = &self.runs[missed];
            let plain = self.lower(&self.none, *instantiation, *shown);
            let fenced = self.lower(&without, *instantiation, *shown);
            let run = transfer(self.oracle.machine(&plain), self.oracle.machine(&fenced), run);
            let run = run.expect("a run stays possible with fences that do not meet its demand");
            let machine = self.oracle.machine(&fenced);
            let shows = match shown {
                Shown::Missed => self.oracle.goal().is_missed_by(machine, &run),
                Shown::Deadlock => replay_to_deadlock(machine, &run).is_ok(),
                // It is out of reach without any fences.
                Shown::OutOfReach(_) => take(machine, &run).is_ok(),
                Shown::Forever => replay_lasso(machine, &run).is_ok(),
            };
            assert!(shows, "with other fences the run shows the same error");
            let run = Witness { instantiation: *instantiation, run };
            Some(Fence { place, kind, run, shown: *shown, without })
        });
        FenceSet { fences: fences.collect(), fencing: fencing.clone(), cost: cost(fencing, self.weight) }
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::new();
        stats.set("engine_calls", self.calls);
        stats.set("demands", self.demands.len() as u64);
        stats.set("places", self.places.places().len() as u64);
        self.counted.iter().for_each(|(name, value)| stats.set(name, value));
        stats
    }

    fn doing(&self, candidate: &Fencing) -> String {
        let fences = candidate.iter().flatten().count();
        let best = self.right.iter().map(|fencing| fencing.iter().flatten().count()).min();
        let best = best.map_or(String::new(), |best| format!("; best so far: {best}"));
        let demands = match self.demands.len() {
            1 => "1 demand".to_owned(),
            demands => format!("{demands} demands"),
        };
        let plural = if fences == 1 { "" } else { "s" };
        format!("candidate {} with {fences} fence{plural} for {demands}{best}", self.calls + 1)
    }
}

/// The run, extended by the stores that have not reached memory, as far as that is possible.
fn drained(machine: Machine<'_>, mut run: Run) -> Run {
    let Ok(replay) = take(machine, &run) else { return run };
    let mut state = replay.states.last().expect("a run has a first state").clone();
    while let Some((step, next)) = state.threads.ids().find_map(|thread| {
        let step = Step { thread, action: Action::Update { position: 0 } };
        machine.step(&state, step).ok().map(|(next, _)| (step, next))
    }) {
        run.steps.push(step);
        state = next;
    }
    run
}

/// The run with its cycle repeated until every store that is pending at some time has reached memory, and all
/// that is pending, with any fences, comes from the repetitions. Then each fence that has an effect on the
/// endless run has one on this run too.
fn repeated(machine: Machine<'_>, mut run: Run) -> Run {
    let Ok(Replay { violation: Some(Violation::Forever { from, .. }), states, .. }) =
        replay_lasso(machine, &run)
    else {
        return run;
    };
    let pending = states[run.steps.len()].threads.iter().map(|thread| thread.buffer.len()).max();
    let cycle = run.steps[from..].to_vec();
    for _ in 0..2 * (pending.unwrap_or(0) + 1) {
        run.steps.extend_from_slice(&cycle);
    }
    run
}

/// Reports the progress of the search and, in the lanes below it, of the engines.
struct SearchProgress {
    to: Arc<dyn Progress>,
    doing: String,
}

impl SearchProgress {
    fn report_search(&self) {
        self.to.report(&self.doing, &Stats::new());
    }
}

impl Progress for SearchProgress {
    fn report(&self, doing: &str, stats: &Stats) {
        self.report_lane(0, "", doing, stats);
    }

    fn report_lane(&self, lane: usize, engine: &str, doing: &str, stats: &Stats) {
        // Report again, since an observer may have dropped the last report.
        self.report_search();
        self.to.report_lane(lane + 1, engine, doing, stats);
    }

    fn ended(&self, lane: usize) {
        self.to.ended(lane + 1);
    }
}
