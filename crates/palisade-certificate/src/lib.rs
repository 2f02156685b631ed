//! Certificates: evidence for `safe` that can be checked independently.
//!
//! An exact engine can produce a [`Proof`](palisade_engine::Proof): an invariant of single processes, and
//! sets of configurations. [`verify`] checks it with code of its own. It shares only the definitions of
//! programs and of their [automata](palisade_automata::Automata) with the engine. [`Certificate`] is the
//! proof as a file.
//!
//! # What is checked
//! The check depends on the proof:
//! - Where there are finitely many states, a proof may say no more than that. All of them are then visited
//!   here; see [`states`].
//! - For recursion, and for programs that start threads without bound, under SC, proofs are sets that are
//!   closed under steps; see [`sc`].
//! - For PSO, proofs are about a single buffer; see [`single`].
//! - For any number of processes with identities, proofs name some of them; see [`identities`].
//! - What must stay possible (deadlocks and goals) is proved by a ranking of all states; see [`progress`].
//! - For TSO and SC, proofs are about the load-buffer semantics (Abdulla, Atig, Bouajjani, Ngo, "A
//!   load-buffer semantics for total store ordering", LMCS 2018). The rest of this header is about these.
//!
//! In the load-buffer semantics the same states are reachable as under TSO. Its rules are:
//! - A store reaches memory at once and leaves an *own* message in its process's buffer.
//! - The value of a cell may be *propagated* to the new end of any buffer at any time.
//! - A read takes the newest own message on its cell, or else the oldest message of the buffer.
//! - Old messages may be deleted.
//! - Fences and locked instructions need an empty buffer.
//!
//! An element e represents a set ⟦e⟧ of configurations. Each cell that e names holds one of the values that e
//! allows there, and there are at least the processes that e names. The buffers of these processes hold the
//! named letters in this order, each with one of its values. Own letters are the newest own messages of their
//! cells, and no own message on x is newer than a plain letter on x. Everything else is arbitrary.
//!
//! So e is the union of the elements with one value in place of each set, and one element contains another if
//! it allows at least the same values in each place. Predecessors are computed for each value that an
//! instruction reads or writes, and they are what the rules for single values give for that union.
//!
//! A set S of elements is accepted if, with the rules of [`undo`]:
//! 1. the invariant is inductive ([`invariant`]);
//! 2. every bad state is in ⟦e⟧ for some e in S ([`bad`]);
//! 3. no configuration in ⟦e⟧ can be reached from an initial one by propagations alone;
//! 4. every predecessor of every e in S contradicts the invariant or has an element of S below it. A
//!    predecessor undoes one instruction and those propagations that cannot have come before it. If some
//!    process of e is not at its start and can have reached its state only by reads (or fences, if e requires
//!    nothing of its buffer), the predecessors by the first such process suffice.
//!
//! # Why this is a proof
//! Let R be the configurations from which propagations lead into ⟦S⟧. Claim: no run from an initial
//! configuration gets into R. The proof is by induction on the number of instructions in the run. With no
//! instructions, this is point 3. Otherwise let the run lead into ⟦e⟧.
//! - If e has a process p as in point 4, p's last instruction is a read (or a fence). A read looks only at
//!   p's buffer, and everything propagated later is newer. So the read can be moved to the end of the run. A
//!   fence can be moved there too, if p's later propagations are left out, and nothing requires these. Before
//!   that instruction, the run is in a predecessor of e by p.
//! - Otherwise let i be the last instruction. A propagation after i can be moved before i unless it passes on
//!   a value written by i, comes after another such propagation in the same buffer, must be newer than i's
//!   own message, or goes to a buffer that i needs empty. Those that cannot be moved are undone with i.
//!   Before i, the run is in a predecessor of e.
//!
//! In both cases a run with fewer instructions leads into an element of S, which is impossible. Since bad
//! states are in ⟦S⟧, none is reachable.
//!
//! # Processes that are not followed
//! A part of a proof may follow only some processes ([`palisade_engine::proof::Part::tracked`]). The others
//! may write any value they ever write, at any time. Such *free* values only add runs, so a state that is
//! unreachable with them is unreachable.
//!
//! For these parts R is also closed under free writes: a cell that may hold a free value may have held
//! anything before. Where a free value was propagated, one can insert a free write of this value immediately
//! before, since memory holds it already. So a letter that allows free values may be dropped together with the
//! newer ones of its word, as a step of its own. The result of that step must have an element of S below it. The
//! propagations that are undone with an instruction can then be assumed to have no free values: of a letter
//! that allows both, only the others are considered.
//!
//! # Processes that are started
//! Stores that are pending when a process is started are [delayed](palisade_automata::Starts) in the automata, if they
//! are few. Where nothing else of the parent is pending, a start needs an empty buffer, as a fence does, and its predecessors lack the
//! new process. An element contains an initial configuration only if it has no more processes than there are at the
//! start. Elsewhere, starts are treated [differently](rewrite).
//!
//! # Rewritten automata
//! A proof may say that the automata are [rewritten](rewrite) first: a store and the fence after it are one
//! step, and reads of a cell by its only writer are local steps, where that makes no difference.
//!
//! # Merged states
//! A proof may put several states of an automaton into one class. The automaton of the classes can do
//! everything the states can do, so again this only adds runs.

mod bad;
mod dead;
mod domains;
mod element;
mod fair;
mod file;
mod flow;
mod identities;
mod identities_file;
mod invariant;
mod matching;
mod missing;
mod modulo;
mod progress;
mod rewrite;
mod sc;
mod sc_file;
mod seen;
mod sets;
mod single;
mod single_file;
mod states;
mod undo;
mod values;
mod watch;
mod wraps;

pub use domains::{CellDomain, narrowed};
pub use fair::verify_fair;
pub use file::{Certificate, CertificateError, SCHEMA_VERSION};
pub use missing::Missing;
pub use modulo::{runs_away, wrapped};
pub use progress::{can_reach, verify_progress, verify_ranking};

use element::Config;
use flow::Flow;
use invariant::Invariant;
use palisade_automata::{Automata, Population, Starts};
use palisade_engine::proof::{LoadBuffers, Proof};
use palisade_engine::{Exhausted, Limits, Task, Threads};
use palisade_memory::Model;
use palisade_program::running::{RoleId, System};
use palisade_program::written::Count;
use rewrite::Rewrite;
use sets::{Set, Sets};
use std::sync::Arc;
use watch::Watch;

/// Statistics of a proof check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The number of elements or states.
    pub elements: usize,
    /// The number of predecessors or successors that were looked up.
    pub predecessors: u64,
}

/// Why a proof is rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The proof is for another model, or the program is not one that such proofs apply to.
    #[error("{0}")]
    Unsuited(String),
    /// The proof names something that the program does not have.
    #[error("it does not fit the program: {0}")]
    Unfit(String),
    /// The claimed invariant is not an invariant.
    #[error("its invariant is not inductive: {0}")]
    NotInductive(String),
    /// A bad state is missing.
    #[error("a bad state is not in any of its sets: {0}")]
    BadMissing(Missing),
    /// An initial state is in a set.
    #[error("an initial state is in element {0}")]
    Initial(usize),
    /// A set is not closed.
    #[error("a predecessor of element {element} is not in the set: {predecessor}")]
    NotClosed {
        /// The index of the element.
        element: usize,
        /// The missing predecessor.
        predecessor: Missing,
    },
    /// The program has a deadlock.
    #[error("the program has a deadlock")]
    Deadlock,
    /// What must stay reachable does not.
    #[error("the program reaches a state from which one of its `live` properties is out of reach")]
    OutOfReach,
    /// A fair run goes on forever and thereby violates a property.
    #[error("a fair run violates one of the program's `terminates` or `leaves` properties")]
    Forever,
    /// The ranking of states does not lead to what must stay possible.
    #[error("its ranking of states is wrong: {0}")]
    NotRanked(String),
    /// An initial state is missing.
    #[error("an initial state is not in any element")]
    InitialMissing,
    /// A step leads out of the set.
    #[error("a step from element {element} leads out of the set: {to}")]
    Leaves {
        /// The index of the element.
        element: usize,
        /// The target of the step.
        to: Missing,
    },
    /// An element contains a bad state, or a state from which one step leads to a bad state.
    #[error("element {0} leads to a bad state")]
    Bad(usize),
    /// A bad state is reachable.
    #[error("a bad state is reachable")]
    BadReached,
    /// The analysis that the automata rely on is wrong. This is a bug in Palisade.
    #[error("a register was assumed never to be read again, but it is: {0}. This is a bug in Palisade")]
    Liveness(String),
    /// The limits ran out.
    #[error("the check did not finish: {0}")]
    Exhausted(Exhausted),
}

/// Checks that a proof shows the task to be safe.
pub fn verify(task: &Task<'_>, proof: &Proof, limits: &Limits) -> Result<Summary, Refusal> {
    let watch = &Watch::new(limits);
    match (proof, task.model) {
        (Proof::Identities(_), Model::Pso) => {
            Err(Refusal::Unsuited("a load-buffer proof proves nothing under PSO".into()))
        }
        (Proof::Identities(proof), _) => identities::verify(task, proof, watch),
        _ if task.has_open_identities() => {
            let why =
                "the processes have identities and their number is open: this proof is about a fixed number";
            Err(Refusal::Unfit(why.into()))
        }
        (Proof::AllStates, _) => states::verify(task, watch),
        (Proof::Crowds(proof), _) => sc::verify_crowds(task, proof, watch),
        (Proof::Stacks(proof), _) => sc::verify_stacks(task, proof, watch),
        (Proof::LoadBuffers(proof), Model::Sc | Model::Tso) => load_buffers(task, proof, watch),
        (Proof::SingleBuffer(proof), Model::Pso) => {
            let system = task.lower(1);
            let (automata, starts) = automata(task, &system, watch)?;
            single::verify(&system, &automata, (task.interlocked, starts), proof, watch)
        }
        (Proof::LoadBuffers(_), Model::Pso) => {
            Err(Refusal::Unsuited("a load-buffer proof proves nothing under PSO".into()))
        }
        (Proof::SingleBuffer(_), Model::Sc | Model::Tso) => {
            Err(Refusal::Unsuited("a single-buffer proof applies only to PSO".into()))
        }
    }
}

/// The automata, with delayed stores where threads are started.
fn automata(task: &Task<'_>, system: &System, watch: &Watch<'_>) -> Result<(Automata, Starts), Refusal> {
    // No program is known for which this fails. It guards against a bug in the analysis.
    let liveness = Arc::new(dead::checked(system)?);
    let mut exhausted = Ok(());
    let may_continue = || {
        exhausted = watch.look(0);
        exhausted.is_ok()
    };
    let automata =
        Automata::build_with(system, liveness, |role| population(task, system, role), may_continue);
    exhausted?;
    let automata = automata
        .map_err(|trouble| Refusal::Unsuited(format!("the program has no automata ({trouble:?})")))?;
    let (delayed, starts) = automata.with_delayed_stores(task.model, task.interlocked);
    Ok((delayed.unwrap_or(automata), starts))
}

fn load_buffers(task: &Task<'_>, proof: &LoadBuffers, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    let system = task.lower(1);
    let (automata, starts) = automata(task, &system, watch)?;
    let flow = Flow::new(&automata, &proof.classes, task.model, None)?;
    let invariant = Invariant::new(&flow, proof)?;
    let rewrite = Rewrite {
        system: &system,
        automata: &automata,
        classes: &proof.classes,
        invariant: &invariant,
        flow: &flow,
        starts,
        rewritten: proof.rewritten,
    };
    let flow = Flow::new(&automata, &proof.classes, task.model, Some(&rewrite))?;
    let sets = read_sets(&flow, &invariant, proof)?;
    bad::check(&system, &automata, &Sets { flow: &flow, invariant: &invariant, sets: &sets }, watch)?;
    let mut summary = Summary::default();
    for set in &sets {
        set.check_closed(&flow, &invariant, watch, &mut summary)?;
    }
    Ok(summary)
}

fn read_sets(flow: &Flow, invariant: &Invariant, proof: &LoadBuffers) -> Result<Vec<Set>, Refusal> {
    let values = element::read_sets(&proof.sets, &flow.values)?;
    let mut numbered = 0;
    let mut sets = Vec::new();
    for part in &proof.parts {
        let limits = match &part.tracked {
            None => flow.kinds.iter().map(|kind| kind.population).collect(),
            Some(_) if flow.spawns() => {
                let what = "a set that follows only some processes is not supported with processes started at run time";
                return Err(Refusal::Unsuited(what.into()));
            }
            Some(tracked) if tracked.len() == flow.kinds.len() => flow.limits(tracked),
            Some(_) => return Err(Refusal::Unfit("it follows automata that do not exist".into())),
        };
        let elements: Result<Vec<Config>, Refusal> =
            part.elements.iter().map(|element| Config::read(flow, &values, element)).collect();
        let elements = elements?;
        let first = numbered;
        numbered += elements.len();
        sets.push(Set::new(flow, invariant, limits, elements, first));
    }
    Ok(sets)
}

/// The number of threads that run a role. Everything that looks at the task uses the same number.
fn population(task: &Task<'_>, system: &System, role: RoleId) -> Population {
    let template = &task.program.templates[system.roles[role].template.0 as usize];
    let any = match task.threads {
        Threads::Any => true,
        Threads::Declared | Threads::Several => template.count == Count::Any,
        Threads::Each(_) => false,
    };
    match any {
        true => Population::Any,
        false => Population::Fixed(system.instances.iter().filter(|i| i.role == role).count() as u32),
    }
}
