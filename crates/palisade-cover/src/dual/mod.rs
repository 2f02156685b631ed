//! Backward reachability with load buffers (`--engine dual`).
//!
//! *Problem.* Is a bad state reachable under TSO (or SC), with buffers and loops of any length, and with a fixed or any number of threads?
//!
//! *Source.* The load-buffer semantics and its order: Abdulla, Atig, Bouajjani and Ngo, "A load-buffer semantics for total store ordering" (LMCS 2018),
//! sections 3 to 6. In that semantics a store reaches memory at once and puts an *own* message at the new end of its process's buffer; at any time the
//! current value of a cell may be *propagated* to the new end of any buffer as a plain message; a read of x sees its newest own message
//! on x if there is one in the buffer, else it reads the oldest message of the buffer, which must be a plain one on x; the oldest message may be deleted at
//! any time; fences and locked instructions wait for the empty buffer. A state (local states, memory) is reachable with empty store buffers under TSO iff it
//! is reachable there (their Theorem 3.4).
//!
//! *Guarantee.* Sound and complete for programs whose [automata](palisade_automata::Automata) are finite, and it ends: the order below is a well-quasi-order
//! by Higman's lemma. `unsafe` comes with a run of the store-buffer machine.
//!
//! # Elements
//! An [element](element::Element) stands for an upward-closed set of configurations: memory cells that must hold a value (the others may hold any), and a multiset of
//! processes, each with a local state and a word over plain and own letters, newest first; processes that are not mentioned may be anywhere.
//! A buffer is in ⟦β⟧ iff β's letters embed in it in order such that each own letter falls on the newest own message of its cell, and no own message on x is
//! newer than the place of a plain letter on x. So a word says only what the future of the run will read. ⟦β⟧ is closed under adding older
//! messages; deletions never need to be undone.
//!
//! One element is below another if its known cells are known there with the same values, and its processes go injectively to ones of the other with the
//! same local state and a superword.
//!
//! # Undoing steps
//! Let p be at q₂ with word β, and q₁ → q₂ an edge.
//! - *Read of v from x.* If β has an own letter on x, it must be v, and p was at q₁ with β. Else the message was plain and the oldest asked for: β with (x,v) at
//!   its old end (or β itself, if it ends so: the message need not be deleted), or it was an own message older than all plain letters on x in β:
//!   one predecessor per place for it.
//! - *Write of v to x* by p. Memory holds v. The own message is the newest in the buffer except for what was propagated since: letters newer than p's
//!   own letter on x, and plain letters on x together with all newer ones, are dropped first. Before the write memory held anything.
//! - *Fence, locked instruction.* All letters were propagated since; drop them. Memory as the instruction says.
//! - *Propagation* of (x,v) by the newest letter of a word: the letter goes, memory holds v. Where that is known already, the result is below the
//!   element, and is taken at once (normal form).
//! - *A process not mentioned* takes part only by writing what somebody waits for: a known cell, or a letter that can then be dropped.
//!
//! # Why propagation is no step of its own
//! A propagation that fixes an unknown cell can be moved towards the past as long as the cell's value and the order of the word allow: up to right behind the write
//! that gave the cell its value, or the propagation of the next older letter, or the process's own write of the next older own letter, or its last fence or
//! locked instruction, or the start. So it is undone only together with these (`with_value`, `undo_own_write`, `drop_letters`, `initial_memory`).
//!
//! # One process at a time
//! If p is not at a start state and all edges to its state are reads (or fences, with an empty word), only p's steps are undone. In a shortest run into
//! the element, p's last instruction is such a step; what follows are steps of others and propagations to p. A read looks at p's buffer only, and later
//! propagations only add at the new end, so the read can be put last. A fence with nothing asked of the buffer can be put last as well, leaving out the
//! propagations after it. So the element is reached by a shorter run followed by that step; induction over the length of shortest runs, which subsumption
//! never lengthens, gives completeness.
//!
//! # Pruning
//! Two invariants of single processes, from forward data flow ([`setup`]): which value can be the newest pending own store at a state, and what a cell with
//! only one writer holds at the writer's states. Elements that contradict them hold no reachable configuration. If a cell's content follows from its writer's
//! state, it is not written down.
//!
//! # Local states
//! The search runs on automata with bisimilar states [merged](palisade_automata::Merged); only the run that is handed out goes from state to state again.
//!
//! # Few processes
//! Where this search takes long, proofs that follow only some processes are tried in turn ([`tracked`]).
//!
//! # Sequential consistency
//! With every access locked, the same search decides reachability under SC.

mod element;
mod predecessors;
mod proof;
mod setup;
mod tracked;
mod witness;

use crate::bad::{Bad, bad_combinations};
use crate::start;
use element::Element;
use palisade_automata::Automata;
use palisade_engine::{
    Analysis, Engine, Limits, Outcome, Pace, Proof, Proofs, Reason, Stats, Suitability, Verdict, Witness,
};
use palisade_memory::Model;
use palisade_program::running::{CellId, System};
use palisade_wqo::{Backward, NodeId, Search, SearchEnd, Signature};
use predecessors::Step;
use rustc_hash::FxHasher;
use setup::Setup;
use std::hash::Hasher;
use tracked::{Attempt, Tracked};
use witness::{Link, Program, Unfolded};

/// The load-buffer engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dual;

impl Engine for Dual {
    fn name(&self) -> &'static str {
        "dual"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        match analysis.task.model {
            Model::Tso => Suitability::Decides,
            Model::Sc if analysis.task.is_parameterized() => Suitability::Decides,
            Model::Sc => Suitability::Reluctant,
            Model::Pso => Suitability::No,
        }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        self.ask(analysis, limits, false).0
    }

    fn proofs(&self) -> Proofs {
        Proofs::Argued
    }

    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        self.ask(analysis, limits, true)
    }
}

impl Dual {
    fn ask(&self, analysis: &Analysis<'_>, limits: &Limits, prove: bool) -> (Outcome, Option<Proof>) {
        let mut stats = Stats::new();
        let mut proof = None;
        let answer = check(analysis, limits, &mut stats, prove.then_some(&mut proof));
        let verdict = answer.unwrap_or_else(Verdict::Unknown);
        (Outcome::new(self.name(), verdict, stats), proof)
    }
}

/// How many configurations the exact search generates before proofs that follow few processes are tried; then both get four times as much, and so on.
const FIRST_SHARE: u64 = 4096;

fn check(
    analysis: &Analysis<'_>,
    limits: &Limits,
    stats: &mut Stats,
    proof: Option<&mut Option<Proof>>,
) -> Result<Verdict, Reason> {
    if analysis.task.model == Model::Pso {
        return Err(Reason::Unsupported("load buffers are for TSO and SC, not for PSO".into()));
    }
    let system = analysis.system(1);
    let automata = start::automata(analysis, limits)?;
    let merged = analysis.merged(limits)?;
    let setup = Setup::new(&merged.automata, analysis.task.model);
    let bad = bad_combinations(&system, &merged.automata).map_err(Reason::Unsupported)?;
    let mut elements = Vec::new();
    for combination in &bad {
        setup.bad_elements(combination, &mut |element, _| elements.push(element));
    }
    let mut search = Search::new(&setup);
    elements.iter().for_each(|element| search.add(element.clone()));
    let mut tracked = Some(Tracked::new(&setup, elements.clone()));
    let mut parts = Vec::new();
    let mut expanded = 0u64;
    let mut share = FIRST_SHARE;
    let mut pace = Pace::new();
    loop {
        let elsewhere = tracked.as_ref().map_or(0, |tracked| tracked.generated);
        let mut exhausted = None;
        let found = search.run(|search| {
            expanded += 1;
            if expanded.is_multiple_of(256) {
                count(search, elsewhere, &merged.automata, stats);
                limits.report("searching backward with load buffers", stats);
                let work = limits.check_work(search.generated() + elsewhere);
                exhausted = limits.check(search.bytes()).and(work).err();
            } else {
                exhausted = limits.check_often(&mut pace, || search.bytes()).err();
            }
            exhausted.is_none() && (tracked.is_none() || search.generated() < share)
        });
        count(&search, elsewhere, &merged.automata, stats);
        match (found, exhausted) {
            (_, Some(exhausted)) => return Err(Reason::Exhausted(exhausted)),
            (None, None) => {}
            (Some(SearchEnd::Closed), _) => {
                if let Some(proof) = proof {
                    let needed = proof::part(None, search.needed(elements.into_iter()));
                    *proof = Some(proof::proof(&setup, &merged, vec![needed]));
                }
                return Ok(Verdict::Holds);
            }
            (Some(SearchEnd::Initial(node)), _) => {
                let program = Program {
                    automata: &automata,
                    merged: &merged,
                    setup: &setup,
                    model: analysis.task.model,
                };
                let witness = unfold(analysis, &system, &program, &search, &bad, node);
                return witness
                    .map(Verdict::Violated)
                    .ok_or_else(|| Reason::Bug("a bad state was found, but no run to it".into()));
            }
        }
        let Some(attempts) = &mut tracked else { continue };
        let mut check = |generated: u64, bytes: u64| {
            stats.set("configurations", search.generated() + generated);
            limits.report("following few processes with load buffers", stats);
            limits.check(search.bytes() + bytes).and(limits.check_work(search.generated() + generated))
        };
        let mut keep = |tracked: &[u32], elements: Vec<&Element>| {
            if proof.is_some() {
                parts.push(proof::part(Some(tracked.to_vec()), elements));
            }
        };
        let attempt = attempts.attempt(share, &mut check, &mut keep);
        count(&search, attempts.generated, &merged.automata, stats);
        match attempt {
            Attempt::Proved => {
                if let Some(proof) = proof {
                    *proof = Some(proof::proof(&setup, &merged, parts));
                }
                return Ok(Verdict::Holds);
            }
            Attempt::Unfinished => share *= 4,
            Attempt::Hopeless => tracked = None,
            Attempt::Exhausted(exhausted) => return Err(Reason::Exhausted(exhausted)),
        }
    }
}

/// `elsewhere`: what was generated by searches that follow few processes.
fn count(search: &Search<'_, Setup>, elsewhere: u64, automata: &Automata, stats: &mut Stats) {
    stats.set("configurations", search.generated() + elsewhere);
    stats.set("antichain", search.antichain_len() as u64);
    stats.set("subsumption_tests", search.subsumption_tests());
    stats.set("local_states", automata.automata.iter().map(|automaton| automaton.states.len() as u64).sum());
    stats.set("table_bytes", search.bytes());
}

/// The run to a bad state that an initial element stands for.
fn unfold(
    analysis: &Analysis<'_>,
    system: &System,
    program: &Program<'_>,
    search: &Search<'_, Setup>,
    bad: &[Bad],
    initial: NodeId,
) -> Option<Witness> {
    let setup = program.setup;
    let mut chain = Vec::new();
    let mut node = initial;
    while let Some((successor, ())) = search.successor(node) {
        let (before, after) = (search.element(node), search.element(successor));
        chain.push(Link { step: step_between(setup, before, after)?, after });
        node = successor;
    }
    let mut states = None;
    for combination in bad {
        setup.bad_elements(combination, &mut |element, named| {
            if states.is_none() && element == *search.element(node) {
                states = Some(named);
            }
        });
    }
    let unfolded = Unfolded::new(program, search.element(initial), &chain, &states?);
    unfolded.timeline(program.automata).witness(analysis, system)
}

/// How an element is a predecessor of another.
fn step_between(setup: &Setup, before: &Element, after: &Element) -> Option<Step> {
    let mut found = None;
    setup.predecessors(after, &mut |element, step| {
        if found.is_none() && element == *before {
            found = Some(step);
        }
    });
    found
}

impl Backward for Setup {
    type Element = Element;
    type Key = u64;
    type Why = ();

    fn keys(&self, element: &Element) -> Vec<u64> {
        element.keys()
    }

    fn signature(&self, element: &Element) -> Signature {
        let known = element.known();
        let implied =
            self.sole.ids().take(64).filter(|&cell| self.implied(&element.processes, cell).is_some());
        let available = implied.fold(known, |bits, cell| bits | 1 << cell.0);
        Signature { known, available, letters: element.letters() }
    }

    fn content(&self, element: &Element, mut cells: u64) -> u64 {
        let mut hasher = FxHasher::default();
        while cells != 0 {
            let cell = CellId(cells.trailing_zeros());
            let value = element.content(cell).value().or_else(|| self.implied(&element.processes, cell));
            hasher.write_u32(value.expect("the cell is available").0);
            cells &= cells - 1;
        }
        hasher.finish()
    }

    fn is_below(&self, a: &Element, b: &Element) -> bool {
        let cells = a.memory.iter().zip(&b.memory).enumerate();
        let memory_below = cells.into_iter().all(|(index, (of_a, of_b))| match of_a.value() {
            None => true,
            Some(value) => {
                let cell = CellId(index as u32);
                of_b.value().or_else(|| self.implied(&b.processes, cell)) == Some(value)
            }
        });
        memory_below && a.processes_below(b)
    }

    fn weight(&self, element: &Element) -> usize {
        element.weight()
    }

    fn is_initial(&self, element: &Element) -> bool {
        match self.free.is_empty() {
            true => self.initial_memory(element).is_some(),
            false => self.is_initial_with_free_writes(element),
        }
    }

    fn predecessors(&self, element: &Element, give: &mut dyn FnMut(Element, ())) {
        Setup::predecessors(self, element, &mut |element, _| give(element, ()));
        if !self.free.is_empty() && self.alone(element).is_none() {
            self.undo_free_writes(element, &mut |element| give(element, ()));
        }
    }

    fn bytes(&self, element: &Element) -> usize {
        let spilled = |word: &element::Word| if word.spilled() { 4 * word.capacity() } else { 0 };
        let words: usize = element.processes.iter().map(|process| spilled(&process.word)).sum();
        size_of::<element::Process>() * element.processes.capacity() + words
    }
}
