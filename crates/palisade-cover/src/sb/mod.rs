//! Backward reachability with a single buffer (`--engine sb`).
//!
//! *Problem.* Is a bad state reachable under TSO, PSO or SC, with buffers and loops of any length?
//!
//! *Source.* The single-buffer semantics and its order: Abdulla, Atig, Chen, Leonardsson and Rezine,
//! "Counter-example guided fence insertion under weak memory models" (TACAS 2012), sections 4, 5 and 9, with
//! the improvements of appendix B.
//!
//! *Guarantee.* Sound and complete for programs whose [automata](palisade_automata::Automata) are finite, except
//! that there may be no answer for programs which start threads while many stores are pending ([`crate::spawns`]). It
//! terminates: the order of [`order`] is a well-quasi-order. `unsafe` comes with a run of the store-buffer
//! machine.
//!
//! # The semantics
//! One buffer holds all stores that have taken effect, in the order in which they reach memory. No store is
//! ever removed, and each position represents the whole memory after it. Every process has a *pointer* into
//! the buffer, which marks the memory it sees. The rules are:
//! - A pointer may advance at any time.
//! - Stores are put at the end of the buffer.
//! - A process reads x from its newest own store to x after its pointer. If there is no such store, it reads
//!   x at its pointer.
//! - A fence waits until the pointer is at the end.
//! - A locked instruction waits for that too. It puts everything it writes at the end as one position and
//!   moves its pointer there.
//!
//! Under TSO a store takes effect when it is executed (their Theorem 4.1: the same local states are reachable
//! as with store buffers). Since all stores are in the buffer then, memory at the end of the buffer is memory
//! with empty store buffers.
//!
//! Under PSO a store first goes to a *queue* of its process and cell. The oldest entry of a queue may take
//! effect at any time. A read sees the newest entry of the process's queue for the cell, if there is one;
//! otherwise it reads as above. What instructions wait for:
//! - Store-store fences wait until the queues of their process are empty.
//! - Fences and atomic blocks wait for that, and until the pointer is at the end.
//! - Locked instructions wait for the same, or (`--interlocked own-address`) only for the queue of their cell
//!   and for the pointer.
//!
//! *This is PSO.* Take a run of the machine. Let U(w) be the number of updates up to that of w, and T(e) the
//! number of updates before an instruction e. (All buffers can be drained at the end, so U is finite.) Let
//! N(e) be the maximum of T(e) and all U(w), where w ranges over the stores before a store-store fence that
//! is not after e. Execute e here when N(e) stores have taken effect, with the pointer at T(e).
//! - N grows along each process.
//! - N(w) < U(w), that is, the store is executed before it takes effect. This holds since T(w) < U(w), and
//!   since stores before a store-store fence are updated before those after it.
//! - The queues are empty at the fence: U(w) ≤ N(fence).
//! - A read that sees a pending store in the machine sees it here as well: in the queue if U(w) > N(e),
//!   otherwise in the buffer after the pointer. All other reads see the memory after T(e) updates in both.
//!
//! For the converse, sort the instructions of a run here by the positions of their pointers, and updates by
//! their positions in the buffer. In runs of this shape, own stores in the buffer after the pointer have a
//! store-store fence between them and any instruction that reads them. Such runs suffice.
//!
//! # Elements
//! Every value in an element is one of a set: a cell x with the set S holds some value of S, and so on. An element
//! with sets represents the union of the elements with one value from each set. There are finitely many sets, so
//! the order stays a well-quasi-order. What is represented with sets can also be represented without them, so the
//! search stays exact. What is gained is that steps which differ only in a value are undone together
//! ([`crate::edges`]).
//!
//! An [element](element::Element) requires
//! - values of some cells at the end of the buffer;
//! - processes at local states, or (under PSO) at any state, which have executed the stores that are required
//!   in their queues. Processes that are not mentioned may be anywhere;
//! - for each of these processes a word of *letters*: positions of the buffer, oldest first, at which a cell
//!   holds a value. Several letters may be at the same position. The process's pointer is at the first letter
//!   or before it. A *plain* letter on x is where the process will read x from memory; none of its own stores
//!   to x come after it. An *own* letter is its newest store to x. If a process has a letter on x, its queue
//!   for x is empty;
//! - for queues, that they hold some values in order. A *closed* queue has the additional requirement that
//!   the last of these values is the newest entry or, without values, that the queue is empty;
//! - under PSO, that a cell is *settled*: no queue of any process holds a store to it.
//!
//! With a fixed number of threads under TSO the letters of all processes are in one word, like the positions
//! of one buffer. Letters of different processes need not be ordered, though. The rules below look at one
//! process's letters at a time, with one exception: the letters at the end of the buffer are those at the end
//! of every word. So under PSO, and for any number of threads, each process has a word of its own
//! ([`Sharing`]).
//!
//! # Undoing steps
//! Advancing a pointer is never undone, since no element requires a pointer to have advanced. Let p be at q₂,
//! and q₁ → q₂ an edge.
//! - *Read of a value in S from x.* If p has an own letter (x,T), that is what it read, and the letter was
//!   (x,S∩T). If nothing says that the queue for x is empty, it may have read the newest entry. That is the last
//!   required entry, with values in T, which then has values in S∩T; or a newer one with values in S. The queue
//!   is closed with it. The second is above the first if S ⊆ T. If nothing says that the queue for x holds an
//!   entry, p may have read from the buffer. If it read at its pointer, that may be the position of p's first
//!   letter, if that is a plain letter (x,T): then it was (x,S∩T). Or it is an older position: a plain letter
//!   (x,S) before all letters of p (at any position there, in one word). The second is above the first if S ⊆ T,
//!   and above the element if T ⊆ S. In one word, positions before a letter (x,T) of another process with T ⊆ S are
//!   covered by the position after it. If p read an own store, this gives an own letter, at any position not after
//!   plain ones on x.
//! - *A value in S takes effect for x*, by a store of p (under TSO when it is executed; then S has one value). The
//!   end of the buffer holds it. All p's letters on x are there, and maybe more. The letters that are there form a
//!   suffix of a word. It is enough to consider suffixes that begin with a letter on x that allows a value of S,
//!   since any other letter can equally be placed one position earlier. What they require of x leaves fewer
//!   values of S. What they require of other cells held before. Then they are dropped, and x held any value.
//!   Under PSO one of the values that are left was the oldest entry of p's queue.
//! - *Execution of a store* of v under PSO. The newest required entry of the queue for x, if there is one and it
//!   allows v, was this store. If the element did not require that entry, p may have been in any state before it.
//! - *Store-store fence, fence, locked instruction.* The queues it waits for were empty. For a fence or a
//!   locked instruction, letters of p were at the end of the buffer and none of them was own. Memory is as
//!   the instruction requires.
//! - *A process that is not mentioned* takes part only by doing something that the element requires. It
//!   enters by writing, or (PSO) with a value in a queue, at any state. If a locked instruction leaves everything
//!   that is required as it was, the predecessor is above the element and is left out.
//!
//! Normal form:
//! - The newest letter is dropped if it allows all values that the end of the buffer can hold.
//! - A queue that must be empty may hold anything if nothing is required of its cell at the end of the
//!   buffer, since all of it can take effect now.
//!
//! - A settled cell with any value is not mentioned, for the same reason.
//!
//! None of this changes what is reachable.
//!
//! Each rule gives exactly the predecessors of the element's configurations, up to advancing pointers and
//! queues taking effect. So the search is exact.
//!
//! # Order of the search
//! Elements with fewer requirements are expanded first ([`Element::weight`]). With sets, an element can require (x,S)
//! of the end of the buffer and, as its newest letter, (x,T) with T ⊆ S. With single values the two would be one
//! requirement, since the letter would be dropped. So they count as one here as well. Otherwise, sets would move
//! elements with such a pair, and the runs through them, to the end of the search.
//!
//! # One process at a time
//! If p is not at a start state and the last instruction of p, whichever it was, can be moved to the end of
//! the run, then only p's instructions are undone. That is the case for
//! - reads, since the buffer only grows, and p reads at its pointer or its own store. Under PSO reads are
//!   excluded if the value may have been in the queue, since it may have taken effect since then;
//! - fences, if no letter of p is required;
//! - store-store fences;
//! - stores that are still in their queue.
//!
//! Then the element is reached by a shorter run followed by that instruction. Induction on the length of
//! shortest runs, which subsumption never lengthens, gives completeness. (This goes further than the
//! partial-order reduction of appendix B, in which pointers advance only immediately after reads and stores.)
//!
//! # Pruning
//! [`setup`] has a coarse forward analysis of single processes. It computes which stores can be pending at a
//! state, and which values a cell with only one writer holds at the writer's states. Elements that contradict
//! it contain no reachable configuration. Values that it excludes are added to the sets of known cells, own letters
//! and entries of queues. No reachable configuration is added by this, and what follows from the analysis is not
//! mentioned.
//!
//! # Local states
//! The search runs on automata with bisimilar states [merged](palisade_automata::Merged), and with fewer edges
//! ([`crate::edges`]). Only the resulting run goes through the original states.
//!
//! # Differences from the paper
//! 1. Constraints instead of automata, and subwords with last-write information only where a later read
//!    requires it.
//! 2. Pointers, values, processes and the states of processes are chosen only when something requires them.
//! 3. Identical threads form a multiset. This is the symmetry that is used.
//! 4. PSO with store-store fences. The paper's section 9 has no such fences, and without them needs no buffer
//!    other than the queues.
//! 5. Sequential consistency. With every access locked, the same search decides reachability under SC.

mod draft;
mod element;
mod flow;
mod generalise;
mod order;
mod proof;
mod setup;
mod undo;
mod witness;

use crate::bad::{Bad, bad_combinations};
use crate::chain::{NamedSteps, chain, count};
use crate::small::small;
use crate::spawns::{Doubt, Spawning};
use crate::start;
use crate::values::{MAX_SETS, Unanswered, ValueSets, with_sets};
use element::Element;
use palisade_automata::StateId;
use palisade_base::IdVec;
use palisade_engine::{
    Analysis, Engine, Exhausted, Limits, Outcome, Pace, Proof, Proofs, Reason, Stats, Suitability, Verdict,
    Witness,
};
use palisade_memory::Model;
use palisade_program::running::{CellId, System};
use palisade_wqo::{Backward, Keys, NodeId, Search, SearchEnd, Signature};
use rustc_hash::FxHashSet;
use setup::{Machine, Setup, Sharing};
use undo::Step;
use witness::Program;

/// The single-buffer engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sb;

impl Engine for Sb {
    fn name(&self) -> &'static str {
        "sb"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        match analysis.task.model {
            Model::Pso => Suitability::Decides,
            Model::Sc | Model::Tso => Suitability::Reluctant,
        }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        self.ask(analysis, limits, None)
    }

    fn proofs(&self) -> Proofs {
        Proofs::Argued
    }

    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        let mut proof = None;
        (self.ask(analysis, limits, Some(&mut proof)), proof)
    }
}

impl Sb {
    fn ask(&self, analysis: &Analysis<'_>, limits: &Limits, proof: Option<&mut Option<Proof>>) -> Outcome {
        let mut stats = Stats::new();
        let verdict = check(analysis, limits, &mut stats, proof, MAX_SETS).unwrap_or_else(Verdict::Unknown);
        Outcome::new(self.name(), verdict, stats)
    }
}

fn check(
    analysis: &Analysis<'_>,
    limits: &Limits,
    stats: &mut Stats,
    mut proof: Option<&mut Option<Proof>>,
    most_sets: usize,
) -> Result<Verdict, Reason> {
    with_sets(|apart| {
        let prepared = &start::prepared(analysis, limits)?;
        let asked = |spawning, prepared| Asked { analysis, limits, most_sets, apart, spawning, prepared };
        match search(&asked(prepared.starts.into(), prepared), stats, proof.as_deref_mut()) {
            Err(Unanswered::Unreal(doubt)) => {
                let drained = start::drained(analysis, limits)?;
                match search(&asked(Spawning::Drained, &drained), stats, None)? {
                    Verdict::Holds => Err(Unanswered::Unreal(doubt)),
                    verdict => Ok(verdict),
                }
            }
            answer => answer,
        }
    })
}

/// A question about a program in which the values of some cells stay apart.
struct Asked<'a> {
    analysis: &'a Analysis<'a>,
    limits: &'a Limits,
    most_sets: usize,
    apart: &'a FxHashSet<CellId>,
    spawning: Spawning,
    prepared: &'a start::Prepared,
}

fn search(
    asked: &Asked<'_>,
    stats: &mut Stats,
    proof: Option<&mut Option<Proof>>,
) -> Result<Verdict, Unanswered> {
    let Asked { analysis, limits, most_sets, apart, spawning, prepared } = *asked;
    let start::Prepared { automata, merged, .. } = prepared;
    let system = analysis.system(1);
    // Proofs treat each process's letters separately.
    let sharing = if proof.is_some() { Sharing::PerProcess } else { Sharing::One };
    let sets = ValueSets::with_at_most(merged.automata.values.iter().map(IdVec::len), most_sets);
    let (model, interlocked) = (analysis.task.model, analysis.task.interlocked);
    let machine = Machine { model, interlocked, sharing, spawning };
    let setup = Setup::new(merged, machine, apart.clone(), sets);
    let bad = bad_combinations(&system, &merged.automata).map_err(Reason::Unsupported)?;
    let mut elements = Vec::new();
    for combination in &bad {
        setup.bad_elements(combination, &mut |element, _| elements.push(element));
    }
    let mut search = Search::new(&setup);
    elements.iter().for_each(|element| search.add(element.clone()));
    let mut expanded = 0u64;
    let mut exhausted = None;
    let mut pace = Pace::new();
    let found = search.run(|search| {
        expanded += 1;
        if expanded.is_multiple_of(256) {
            count(search, 0, &merged.automata, stats);
            limits.report("searching backward with a single buffer", stats);
            let checked = limits.check(search.bytes()).and_then(|()| limits.check_work(search.generated()));
            exhausted = checked.err();
        } else {
            exhausted = limits.check_often(&mut pace, || search.bytes()).err();
        }
        exhausted.is_none() && setup.sets.overflown().is_none()
    });
    count(&search, 0, &merged.automata, stats);
    if let Some(cell) = setup.sets.overflown() {
        return Err(Unanswered::Overflow(cell));
    }
    match found {
        None => Err(Reason::Exhausted(exhausted.unwrap_or(Exhausted::Stopped)).into()),
        Some(SearchEnd::Closed) => {
            if let Some(proof) = proof {
                let elements = small(search.closed(), &elements, search.generated(), limits)?;
                if let Some(cell) = setup.sets.overflown() {
                    return Err(Unanswered::Overflow(cell));
                }
                *proof = Some(proof::proof(&setup, merged, &elements));
            }
            Ok(Verdict::Holds)
        }
        Some(SearchEnd::Initial(_)) if !setup.exact => Err(Unanswered::Unreal(Doubt::Early)),
        Some(SearchEnd::Initial(node)) => {
            let program = Program { automata, merged, setup: &setup };
            match unfold(analysis, &system, &program, &search, &bad, node) {
                Some(witness) => Ok(Verdict::Violated(witness)),
                None if prepared.may_be_pending(&bad) => Err(Unanswered::Unreal(Doubt::Pending)),
                None => Err(Reason::Bug("a bad state was found, but no run to it".into()).into()),
            }
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
    witness::unfold(program, &search.element(initial), &chain.links, &chain.bad).witness(analysis, system)
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
    type Store = Vec<Element>;

    fn keep(&self, store: &mut Vec<Element>, element: Element) -> usize {
        let bytes = size_of::<Element>() + element.bytes();
        store.push(element);
        bytes
    }

    fn kept(&self, store: &Vec<Element>, number: u32) -> Element {
        store[number as usize].clone()
    }

    fn kept_is_below(&self, store: &Vec<Element>, number: u32, element: &Element) -> bool {
        self.below(&store[number as usize], element)
    }

    fn is_below_kept(&self, element: &Element, store: &Vec<Element>, number: u32) -> bool {
        self.below(element, &store[number as usize])
    }

    fn keys(&self, element: &Element) -> Keys<u64> {
        element.keys().into()
    }

    fn signature(&self, element: &Element) -> Signature {
        self.bits(element)
    }

    fn is_below(&self, a: &Element, b: &Element) -> bool {
        self.below(a, b)
    }

    fn weight(&self, element: &Element) -> usize {
        element.weight(&self.sets)
    }

    fn is_initial(&self, element: &Element) -> bool {
        self.initial_memory(element).is_some()
    }

    fn predecessors(&self, element: &Element, give: &mut dyn FnMut(Element)) {
        Setup::predecessors(self, element, &mut |element, _| give(element));
    }
}
