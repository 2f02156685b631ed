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
//! - Fences and locked instructions wait until the buffer is empty.
//!
//! A state (local states, memory) is reachable with empty store buffers under TSO iff it is reachable in this
//! semantics (their Theorem 3.4).
//!
//! *Guarantee.* Sound and complete for programs whose [automata](palisade_automata::Automata) are finite, except
//! that there may be no answer for programs which start threads while many stores are pending ([`crate::spawns`]). It
//! terminates: the order below is a well-quasi-order by Higman's lemma. `unsafe` comes with a run of the
//! store-buffer machine.
//!
//! # Elements
//! An [element](element::Element) represents an upward-closed set of configurations. It consists of
//! - for each memory cell, a set of values of which it must hold one (all values, if nothing is required);
//! - a multiset of processes, each with a local state and a word over plain and own letters, newest first. A
//!   letter (x,S) has a cell x and a set S of values. Processes that are not mentioned may be anywhere.
//!
//! A buffer is in ⟦β⟧ iff β's letters embed in it in order such that each letter (x,S) maps to a message on x
//! with a value in S, each own letter maps to the newest own message of its cell, and no own message on x is
//! newer than the position of a plain letter on x. So a word describes only what the rest of the run will
//! read. ⟦β⟧ is closed under adding older messages, so deletions never need to be undone.
//!
//! One element is below another if both of these hold:
//! - each of its cells allows at least the values that the other allows there;
//! - its processes map injectively to processes of the other with the same local state and with a word above
//!   their own: letters map in order to letters of the same kind on the same cell that allow no more values.
//!
//! Then it represents a superset. There are finitely many letters, and they are partially ordered by their
//! sets, so this is a well-quasi-order by Higman's lemma, as with single values. An element with sets
//! represents the union of the elements with one value from each set. So every upward-closed set that is
//! represented with sets is also represented without them, and the search stays exact. What is gained is that
//! reads which differ only in the value are undone together ([`crate::edges`]).
//!
//! # Undoing steps
//! Let p be at q₂ with word β, and q₁ → q₂ an edge.
//! - *Read of a value in S from x.* If β has an own letter (x,T), p read that one, so it was an own letter
//!   (x,S∩T), and p was at q₁. Otherwise there are two cases.
//!   The message was plain and is the oldest of the buffer. It may be the message of β's oldest letter, if that
//!   is a plain letter (x,T): reading does not delete, and so this letter was (x,S∩T). Or it is older: β with
//!   (x,S) added at its old end. The second is above the first if S ⊆ T, and above β if T ⊆ S.
//!   Or it was an own message older than all plain letters on x in β: one predecessor for each position it can
//!   have.
//! - *Write of v to x* by p. Memory holds v. The own message is the newest in the buffer except for messages
//!   propagated since. So letters newer than p's own letter on x, which must allow v, and plain letters on x
//!   together with all newer ones, are dropped first. Before the write memory held any value.
//! - *Fence, locked instruction.* All letters were propagated since; drop them. Memory is as the instruction
//!   requires.
//! - *Propagation* by the newest letter (x,S) of a word. The letter is dropped, and if x is known to hold a
//!   value in T, it held one in S∩T. If T ⊆ S, the result is below the element and replaces it at once (normal
//!   form).
//! - *A process not mentioned* takes part only by writing a value that the element requires: one of a known
//!   cell, or of a letter that can then be dropped.
//!
//! # Why propagation is not a separate step
//! A propagation that leaves fewer values for a cell can be moved towards the past as long as the cell's value and the
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
//! Elements that contradict them contain no reachable configuration. Values that an invariant excludes are
//! added to the sets of known cells and of own letters. No reachable configuration is added by this, and what
//! follows from the invariants is not mentioned.
//!
//! # Local states
//! The search runs on automata with bisimilar states [merged](palisade_automata::Merged), and with fewer edges
//! ([`crate::edges`]). Only the resulting run goes through the original states.
//!
//! # Few processes
//! If this search takes a long time, it takes turns with three kinds of attempts at shorter proofs ([`turns`]): proofs
//! that follow only some processes ([`tracked`]), proofs with guesses from a visit ([`visited`]), and proofs for some processes
//! that are extended to all ([`lifted`]).
//!
//! # Small proofs
//! A closed set that becomes a certificate is first made smaller: requirements of its elements are left out as long as
//! it stays closed ([`Closed::shrink`](palisade_wqo::Closed::shrink)).
//!
//! # Sequential consistency
//! With every access locked, the same search decides reachability under SC.

mod element;
mod guessing;
mod lifted;
mod predecessors;
mod process;
mod proof;
pub(crate) mod setup;
mod sharing;
mod store;
mod tracked;
mod turns;
mod visited;
mod witness;

pub use sharing::{SharedSearch, shared_search};

use crate::bad::Bad;
use crate::chain::NamedSteps;
use crate::identities;
use crate::values::{MAX_SETS, SetId, with_sets};
use element::{Element, View, processes_below};
use palisade_automata::StateId;
use palisade_engine::{
    Analysis, Engine, Limits, Outcome, Proof, Proofs, Reason, Stats, Suitability, Verdict,
};
use palisade_memory::Model;
use palisade_wqo::{Backward, Generalise, Keys, Signature};
use predecessors::Step;
use process::Requirement;
use setup::Setup;
use store::Store;
use turns::Asked;

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
        let answer = check(analysis, limits, &mut stats, prove.then_some(&mut proof), MAX_SETS);
        let verdict = answer.unwrap_or_else(Verdict::Unknown);
        (Outcome::new(self.name(), verdict, stats), proof)
    }
}

fn check(
    analysis: &Analysis<'_>,
    limits: &Limits,
    stats: &mut Stats,
    mut proof: Option<&mut Option<Proof>>,
    most_sets: usize,
) -> Result<Verdict, Reason> {
    if analysis.task.has_open_identities() {
        return identities::check(analysis, limits, stats, proof);
    }
    with_sets(|apart| {
        let question = Asked { analysis, limits, most_sets, apart };
        question.answer(stats, proof.as_deref_mut())
    })
}

impl NamedSteps for Setup {
    type Step = Step;

    fn steps(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        Setup::predecessors(self, element, &mut |element, step| give(element, step()));
    }

    fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Element, Vec<StateId>)) {
        Setup::bad_elements(self, bad, give);
    }
}

impl Generalise for Setup {
    fn generalise(&self, element: &Element, give: &mut dyn FnMut(Element) -> bool) {
        self.with_one_less(element, give);
    }
}

impl Setup {
    /// Whether an element is below another. The values that follow from the states of the other's processes count.
    fn below(&self, a: &impl View, b: &impl View) -> bool {
        a.known().all(|(cell, of_a)| {
            let of_b = b.content(cell);
            of_a == of_b || {
                let possible = self.possible_in(b, cell).unwrap_or(SetId::ALL);
                self.sets
                    .meet(cell, of_b, possible)
                    .is_none_or(|possible| self.sets.is_subset(cell, possible, of_a))
            }
        }) && processes_below(a, b, &self.sets)
    }
}

impl Backward for Setup {
    type Element = Element;
    type Key = u64;
    type Store = Store;

    fn keep(&self, store: &mut Store, element: Element) -> usize {
        store.push(&element) + self.processes.new_bytes()
    }

    fn kept(&self, store: &Store, number: u32) -> Element {
        store.get(number, &self.processes, self.cells)
    }

    fn kept_is_below(&self, store: &Store, number: u32, element: &Element) -> bool {
        self.below(&store.packed(number, &self.processes.entries()), element)
    }

    fn is_below_kept(&self, element: &Element, store: &Store, number: u32) -> bool {
        self.below(element, &store.packed(number, &self.processes.entries()))
    }

    fn is_below(&self, a: &Element, b: &Element) -> bool {
        self.below(a, b)
    }

    fn keys(&self, element: &Element) -> Keys<u64> {
        element.keys()
    }

    fn signature(&self, element: &Element) -> Signature {
        let letters = element.letters();
        let required =
            element.known().fold(0, |bits, (cell, content)| bits | self.sets.filter(cell, content));
        let follows = |process: &Requirement| self.kinds[process.kind as usize].filters[process.state];
        let provided = element.processes.iter().fold(required | self.always, |bits, p| bits | follows(p));
        Signature { required: [required, letters], provided: [provided, letters] }
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

    fn predecessors(&self, element: &Element, give: &mut dyn FnMut(Element)) {
        Setup::predecessors(self, element, &mut |element, _| give(element));
        if !self.free.is_empty() && self.alone(element).is_none() {
            self.undo_free_writes(element, &mut |element| give(element));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::{Profile, generate, seeds};
    use palisade_engine::{Question, Safety, Task};

    /// With few sets for each cell, searches are repeated with single values. The answers stay the same.
    #[test]
    fn differential_cells_with_too_many_sets() {
        let (mut same, mut given_up) = (0, 0);
        for seed in &seeds(15) {
            for profile in [Profile::Choices, Profile::Full] {
                let program = generate(profile, seed);
                for model in [Model::Sc, Model::Tso] {
                    let task = Task::new(&program, model);
                    let limits = Limits::unlimited(1).with_work(20_000);
                    let ask = |most| {
                        let verdict = check(&task.analysis(), &limits, &mut Stats::new(), None, most);
                        Safety::word(&verdict.unwrap_or_else(Verdict::Unknown)).to_owned()
                    };
                    let expected = ask(MAX_SETS);
                    for most in [3, 5] {
                        match ask(most) {
                            found if found == expected => same += 1,
                            found => {
                                assert_eq!(found, "unknown", "seed {seed}, {profile:?}, {most} sets");
                                given_up += 1;
                            }
                        }
                    }
                }
            }
        }
        println!("{same} answers are the same, {given_up} are missing");
        assert!(same > given_up);
    }
}
