//! Backward reachability with load buffers (`--engine dual`).
//!
//! *Problem.* Is a bad state reachable under TSO (or SC), with buffers and loops of any length, and with a
//! fixed or any number of threads?
//!
//! *Source.* The load-buffer semantics and its order: Abdulla, Atig, Bouajjani and Ngo, "A load-buffer
//! semantics for total store ordering" (LMCS 2018), sections 3 to 6. The semantics has these rules:
//! - A store reaches memory at once and puts an *own* message at the new end of its process's buffer.
//! - At any time the current value of a cell may be *propagated* to the new end of any buffer, as a plain
//!   message.
//! - A read of x sees the newest own message on x if the buffer contains one. Otherwise it reads the oldest
//!   message of the buffer, which must be a plain one on x.
//! - The oldest message may be deleted at any time.
//! - Fences and locked instructions wait for the empty buffer.
//!
//! A state (local states, memory) is reachable with empty store buffers under TSO iff it is reachable in this
//! semantics (their Theorem 3.4).
//!
//! *Guarantee.* Sound and complete for programs whose [automata](palisade_automata::Automata) are finite. It
//! terminates: the order below is a well-quasi-order by Higman's lemma. `unsafe` comes with a run of the
//! store-buffer machine.
//!
//! # Elements
//! An [element](element::Element) represents an upward-closed set of configurations. It consists of
//! - memory cells that must hold a given value (the others may hold any);
//! - a multiset of processes, each with a local state and a word over plain and own letters, newest first.
//!   Processes that are not mentioned may be anywhere.
//!
//! A buffer is in ⟦β⟧ iff β's letters embed in it in order such that each own letter maps to the newest own
//! message of its cell, and no own message on x is newer than the position of a plain letter on x. So a word
//! describes only what the rest of the run will read. ⟦β⟧ is closed under adding older messages, so deletions
//! never need to be undone.
//!
//! One element is below another if both of these hold:
//! - its known cells are known in the other with the same values;
//! - its processes map injectively to processes of the other with the same local state and a superword.
//!
//! # Undoing steps
//! Let p be at q₂ with word β, and q₁ → q₂ an edge.
//! - *Read of v from x.* If β has an own letter on x, it must be v, and p was at q₁ with β. Otherwise there
//!   are two cases. The message was plain and the oldest one required: β with (x,v) added at its old end (or
//!   β itself, if it ends that way, since the message need not be deleted). Or it was an own message older
//!   than all plain letters on x in β: one predecessor for each position it can have.
//! - *Write of v to x* by p. Memory holds v. The own message is the newest in the buffer except for messages
//!   propagated since. So letters newer than p's own letter on x, and plain letters on x together with all
//!   newer ones, are dropped first. Before the write memory held any value.
//! - *Fence, locked instruction.* All letters were propagated since; drop them. Memory is as the instruction
//!   requires.
//! - *Propagation* of (x,v) by the newest letter of a word. The letter is dropped, and memory holds v. If
//!   that value is known already, the result is below the element and replaces it at once (normal form).
//! - *A process not mentioned* takes part only by writing a value that the element requires: that of a known
//!   cell, or of a letter that can then be dropped.
//!
//! # Why propagation is not a separate step
//! A propagation that fixes an unknown cell can be moved towards the past as long as the cell's value and the
//! order of the word allow it. It then comes immediately after one of these:
//! - the write that gave the cell its value;
//! - the propagation of the next older letter;
//! - the process's own write of the next older own letter;
//! - the process's last fence or locked instruction;
//! - the start.
//!
//! So it is undone only together with these (`with_value`, `undo_own_write`, `drop_letters`,
//! `initial_memory`).
//!
//! # One process at a time
//! If p is not at a start state and all edges to its state are reads (or fences, with an empty word), only
//! p's steps are undone. In a shortest run into the element, p's last instruction is such a step. It is
//! followed only by steps of other processes and propagations to p. A read looks only at p's buffer, and
//! later propagations only add at the new end, so the read can be moved to the end. A fence can also be moved
//! to the end if nothing is required of the buffer; the propagations after it are left out. So the element is
//! reached by a shorter run followed by that step. Induction on the length of shortest runs, which
//! subsumption never lengthens, gives completeness.
//!
//! # Pruning
//! Two invariants of single processes come from forward data flow ([`setup`]): which value can be the newest
//! pending own store at a state, and which values a cell with only one writer holds at the writer's states.
//! Elements that contradict them contain no reachable configuration. If a cell's content follows from its
//! writer's state, the element does not store it.
//!
//! # Local states
//! The search runs on automata with bisimilar states [merged](palisade_automata::Merged). Only the resulting
//! run goes through the original states.
//!
//! # Few processes
//! If this search takes a long time, it alternates with attempts at proofs that follow only some processes
//! ([`tracked`]).
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
use crate::chain::{NamedSteps, chain, count};
use crate::start;
use element::Element;
use palisade_automata::StateId;
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
use witness::{Program, Unfolded};

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

/// The number of configurations the exact search generates before it tries proofs that follow few processes.
/// After each round both get four times as much.
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

/// The run to a bad state that an initial element represents.
fn unfold(
    analysis: &Analysis<'_>,
    system: &System,
    program: &Program<'_>,
    search: &Search<'_, Setup>,
    bad: &[Bad],
    initial: NodeId,
) -> Option<Witness> {
    let chain = chain(program.setup, search, bad, initial)?;
    let unfolded = Unfolded::new(program, search.element(initial), &chain.links, &chain.bad);
    unfolded.timeline(program.automata).witness(analysis, system)
}

impl NamedSteps for Setup {
    type Step = Step;

    fn steps(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        Setup::predecessors(self, element, give);
    }

    fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Element, Vec<StateId>)) {
        Setup::bad_elements(self, bad, give);
    }
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
