//! Deadlocks, and goals that must stay reachable (`--engine explicit`).
//!
//! *Problem.* Is a stuck state reachable ([`Machine::is_stuck`])? Is there a reachable state from which a
//! goal of the program is out of reach?
//!
//! *Guarantee.*
//! - Every state of the machine is visited, up to registers that are never read again, local steps, and the
//!   order of interchangeable threads; see below. For goals, what can be reached from a state of the search is
//!   what can be reached on the machine. A register that is never read again changes no step, and no goal
//!   mentions it.
//! - `unsafe` comes with a run.
//! - Buffers are bounded as in the search for bad states. `safe` is reported only if no thread ever wanted a
//!   longer buffer. Stuck states are judged by the machine, without any bound on buffers.
//! - A goal counts as out of reach of a state only if the search was not cut off anywhere after that state.
//!   If every state leads to every goal, that holds whatever was cut off: "no dead end with buffers up to N".
//!   Otherwise nothing is known with this bound ([`End::Open`]).
//! - A state with a fault has no successors, and it is not judged. The search for bad states reports it.
//!
//! *Reductions*, in programs without atomic sections. In the others, and if a fault is reachable, every single
//! step is taken.
//! 1. *Local steps* are collapsed, and threads that get stuck are kept (`Stuck::Kept`). States in which no
//!    thread can take another collapsed step are called settled; the search visits these.
//!    - *Deadlocks.* What follows a stuck state is stuck. From a stuck state, local steps of its threads lead to
//!      a settled one. Local steps commute with those of other threads, so the search reaches it.
//!    - *Goals.* What follows a state from which a goal is out of reach is such a state. So if there is one,
//!      there is a settled one. From a settled state, the search reaches a goal if the machine does: steps that
//!      change what goals see are not collapsed, the others can be taken at once.
//! 2. *Symmetry.* Threads of one role that no goal names are interchangeable. Exchanging them maps runs to
//!    runs, stuck states to stuck states, and goals to goals. The same holds for threads that differ in data
//!    ([`crate::symmetry`]): what they wait for is mapped as well.
//! 3. *Persistent sets*, only for deadlocks. Let a run w lead from a visited state to a stuck one. By the
//!    argument in [`crate::coverage`](mod@crate::coverage), the search takes all steps of w, with other steps in
//!    between that are independent of the rest of w. So these can come after w. They lead from a stuck state to
//!    a stuck state, which the search visits.
//! 4. *Chains* ([`crate::chain`]), only for deadlocks and together with 3. Every state of a chain is judged, and a
//!    stuck one is stored. For goals, all states and steps are needed.
//!
//! *Robust programs* without atomic sections are asked under SC instead. Their robustness is that of the
//! program with retries. Without atomic sections, every pending store can reach memory at any time, and stuck
//! states have empty buffers. Why the question under SC is exact, if every run has the happens-before
//! relation of some run under SC:
//! 1. A run to a state with empty buffers has a run under SC with the same relation. There every thread reads
//!    the same values, and the last store to each cell is the same, so it ends in the same state. Hence the
//!    states with empty buffers that are reachable are those that SC reaches. Stuck states have empty
//!    buffers.
//! 2. Goals under SC imply goals under the model: from any state, all pending stores can reach memory. By 1,
//!    SC reaches that state, and from there SC reaches the goal. Its run is also one of the model.
//! 3. Goals under the model imply goals under SC: let SC reach a state, and let a run of the model lead from
//!    there to the goal. When the remaining stores have reached memory, the goal still holds: locations and
//!    registers do not change, and a goal that mentions memory held with empty buffers. In the happens-before
//!    relation of the whole run, no event after the state comes before an event before it, because all the
//!    latter were in memory. So a run under SC with the same relation exists that begins with the given one.
//!
//! *Cost.* For goals, two expansions per state, and one number per step.

use crate::automaton::Automaton;
use crate::flags::Flags;
use crate::layout::Layout;
use crate::search::{End, Goal, Search};
use crate::{Check, Explicit, Searches};
use palisade_automata::Hold;
use palisade_automata::on_demand::LocalId;
use palisade_base::Id;
use palisade_engine::{
    Analysis, DeadlockFreedom, Engine, FairProgress, GoalsReachable, Limits, Options, Outcome, Question,
    Reason, Reduction, Stats, Suitability, Verdict,
};
use palisade_memory::{Machine, Section, State};
use palisade_program::running::{Instr, ThreadId};
use palisade_search::{Successors, Visited, Wanted};
use std::sync::Arc;

/// Explicit-state search for deadlocks, for goals that are out of reach, and for fair runs that go on forever
/// ([`crate::fair`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress;

impl Engine<DeadlockFreedom> for Progress {
    fn name(&self) -> &'static str {
        Explicit.name()
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        Explicit.suits(analysis)
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<DeadlockFreedom> {
        check(Goal::Stuck, "deadlock", analysis, limits)
    }
}

impl Engine<GoalsReachable> for Progress {
    fn name(&self) -> &'static str {
        Explicit.name()
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        Explicit.suits(analysis)
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<GoalsReachable> {
        check(Goal::OutOfReach, "dead end", analysis, limits)
    }
}

impl Engine<FairProgress> for Progress {
    fn name(&self) -> &'static str {
        Explicit.name()
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        Explicit.suits(analysis)
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<FairProgress> {
        check(Goal::Forever, "violation of `terminates` or `leaves`", analysis, limits)
    }
}

fn check<Q: Question>(
    goal: Goal,
    what: &'static str,
    analysis: &Analysis<'_>,
    limits: &Limits,
) -> Outcome<Q> {
    let sections = limits.within(|| {
        let system = analysis.system(1);
        let mut edges = system.codes.iter().flat_map(|code| code.edges());
        edges.any(|edge| edge.instr == Instr::AtomicBegin)
    });
    let reduction = match (analysis.task.options.reduction, sections) {
        // Fairness is about single steps.
        _ if goal == Goal::Forever => Reduction::None,
        (Reduction::None, _) | (_, Ok(true)) => Reduction::None,
        (Reduction::Full, Ok(false)) if goal == Goal::Stuck => Reduction::Full,
        (Reduction::Local | Reduction::Full, Ok(false)) => Reduction::Local,
        (_, Err(what)) => return Outcome::unknown(Explicit.name(), Reason::Exhausted(what)),
    };
    let (mut verdict, mut searched) = search(goal, reduction, analysis, limits);
    // A fault ends the run of all threads, so it commutes with nothing. A run to a deadlock is one in any case.
    let is_shown = goal == Goal::Stuck && verdict.witness().is_some();
    if searched.fault_seen && reduction != Reduction::None && !is_shown {
        (verdict, searched) = search(goal, Reduction::None, analysis, limits);
    }
    Outcome::new(Explicit.name(), in_its_words(verdict, what), searched.stats)
}

/// What a search leaves behind.
struct Searched {
    stats: Stats,
    fault_seen: bool,
}

fn search(goal: Goal, reduction: Reduction, analysis: &Analysis<'_>, limits: &Limits) -> (Verdict, Searched) {
    let options = Options { reduction, ..analysis.task.options.clone() };
    let mut run = Check { analysis, searches: Searches::new(goal, &options, limits) };
    let verdict = if analysis.task.is_parameterized() {
        run.any_number()
    } else {
        run.fixed(1, analysis.task.options.max_buffer)
    };
    let Searches { stats, fault_seen, .. } = run.searches;
    (verdict, Searched { stats, fault_seen })
}

/// Rewords a verdict so that it names what was not found.
fn in_its_words(verdict: Verdict, what: &'static str) -> Verdict {
    fn reworded(reason: Reason, what: &'static str) -> Reason {
        match reason {
            Reason::Partly(ran_out, reached) => Reason::Partly(ran_out, Box::new(reworded(*reached, what))),
            bound if bound.is_bound() => Reason::Without { what, bound: Box::new(bound) },
            other => other,
        }
    }
    match verdict {
        Verdict::Unknown(reason) => Verdict::Unknown(reworded(reason, what)),
        known => known,
    }
}

/// Why [`End::Open`] with the longest buffers is not an answer.
pub(crate) fn open(bound: usize) -> Reason {
    Reason::Observed(format!(
        "with buffers up to {bound}, some states lead to what must stay reachable only with longer buffers, if at all"
    ))
}

/// Why there is no answer about all states where many threads are started.
pub(crate) fn too_many_threads(goal: Goal) -> Reason {
    let what = if goal == Goal::Forever { "whether every run ends" } else { "what stays reachable" };
    Reason::Unsupported(format!("too many processes are started to know {what}"))
}

/// Whether nothing happens after a packed state, because of a fault.
pub(crate) fn is_over(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> bool {
    layout.threads.iter().any(|field| automaton.note(LocalId(field.get(state))).flags.has(Flags::FAULTED))
}

/// Whether a packed state is stuck. Most states are ruled out by what is noted about their threads.
pub(crate) fn is_stuck(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> bool {
    let info = |field: &crate::layout::Field| automaton.note(LocalId(field.get(state)));
    let mut threads = layout.threads.iter().map(info);
    let holder = layout.threads.iter().map(info).find(|info| info.flags.has(Flags::ENTERED));
    let may_wait = match holder {
        Some(holder) => holder.may_wait,
        None => threads.all(|info| info.may_wait),
    };
    may_wait && automaton.machine.machine.is_stuck(&unpacked(automaton, layout, state))
}

/// The state of the machine that a packed state stands for.
fn unpacked(automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> State {
    let system = automaton.machine.machine.system;
    let value = |cell| automaton.values.value(cell, layout.cells[cell].get(state));
    let memory: Vec<_> = system.cells.ids().map(value).collect();
    let present = layout.threads.iter().map(|field| LocalId(field.get(state)));
    let locals: Vec<_> =
        present.filter(|&local| local != LocalId::NONE).map(|id| automaton.local(id)).collect();
    let section = locals.iter().enumerate().find_map(|(index, local)| match local.hold {
        Hold::Entered(depth) => Some(Section { holder: ThreadId::from_index(index), depth }),
        Hold::Outside | Hold::Armed(_) => None,
    });
    let fault = locals
        .iter()
        .enumerate()
        .find_map(|(index, local)| local.fault.map(|fault| (ThreadId::from_index(index), fault)));
    let threads = locals.iter().map(|local| Arc::new(local.thread.clone())).collect();
    State { memory: memory.into(), threads, section, fault }
}

/// Judges all states after the search: does each of them lead to every goal?
pub(crate) fn judge(search: &mut Search<'_, '_>, visited: &Visited) -> End {
    let limits = search.limits;
    match limits.within(|| judge_within(search, visited)) {
        Ok(end) => end,
        Err(what) => End::Exhausted(what),
    }
}

fn judge_within(search: &Search<'_, '_>, visited: &Visited) -> End {
    let machine: Machine<'_> = search.automaton.machine.machine;
    if search.automaton.policy.too_deep {
        return End::Open;
    }
    let states: Vec<&[u64]> = visited.iter().collect();
    let before = Before::new(search, visited, &states);
    let cut = |state: &&[u64]| {
        let mut threads = search.layout.threads.iter();
        threads.any(|field| search.automaton.note(LocalId(field.get(state))).cut_off)
    };
    let mut open = false;
    for goal in &machine.system.goals {
        let satisfies = |state: &&[u64]| {
            palisade_base::limits::checkpoint();
            machine.satisfies(&unpacked(search.automaton, search.layout, state), goal)
        };
        let mut leads: Vec<bool> = states.iter().map(satisfies).collect();
        before.close(&mut leads);
        let over: Vec<bool> =
            states.iter().map(|state| is_over(search.automaton, search.layout, state)).collect();
        if leads.iter().zip(&over).all(|(leads, over)| *leads || *over) {
            continue;
        }
        let mut maybe: Vec<bool> =
            states.iter().zip(&leads).map(|(state, leads)| *leads || cut(state)).collect();
        before.close(&mut maybe);
        // The state whose shortest run is the shortest, to be easy to read.
        let hopeless =
            (0..states.len()).filter(|&index| !maybe[index] && !over[index]).map(|index| visited.nth(index));
        match hopeless.min_by_key(|&id| visited.path_to(id).len()) {
            Some(id) => return search.bad(visited, id),
            None => open = true,
        }
    }
    if open { End::Open } else { End::Clean { left_out: search.tally.left_out } }
}

/// For each state, the states from which a step leads to it.
struct Before {
    /// Where the list of each state begins. There is one entry more than there are states.
    first: Vec<usize>,
    states: Vec<u32>,
}

impl Before {
    fn new(search: &Search<'_, '_>, visited: &Visited, states: &[&[u64]]) -> Before {
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut successors = Successors::default();
        let expander = search.expander();
        for (index, state) in states.iter().enumerate() {
            palisade_base::limits::checkpoint();
            if is_over(search.automaton, search.layout, state) {
                continue;
            }
            successors.words.clear();
            expander.expand_once(state, Wanted::All, &mut successors, &mut Vec::new());
            for next in successors.words.chunks_exact(search.layout.words) {
                let to = visited.index_of(next).expect("the search has visited all states");
                steps.push((to as u32, index as u32));
            }
        }
        let mut first = vec![0; states.len() + 1];
        steps.iter().for_each(|&(to, _)| first[to as usize + 1] += 1);
        (0..states.len()).for_each(|state| first[state + 1] += first[state]);
        let mut next = first.clone();
        let mut sources = vec![0; steps.len()];
        for (to, from) in steps {
            sources[next[to as usize]] = from;
            next[to as usize] += 1;
        }
        Before { first, states: sources }
    }

    /// Marks the states from which a marked state is reachable.
    fn close(&self, marked: &mut [bool]) {
        let mut open: Vec<usize> = (0..marked.len()).filter(|&state| marked[state]).collect();
        while let Some(state) = open.pop() {
            for &earlier in &self.states[self.first[state]..self.first[state + 1]] {
                if !std::mem::replace(&mut marked[earlier as usize], true) {
                    open.push(earlier as usize);
                }
            }
        }
    }
}
