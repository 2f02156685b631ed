//! Any number of processes with identities, by load buffers.
//!
//! *Problem.* Is a bad state reachable under TSO for some number of processes that have identities, cells of
//! their own (`flag[me]`) and shared cells that hold an identity or none?
//!
//! *Source.* The search of [`crate::dual`], with identities as in parameterized model checking modulo arrays
//! (Ghilardi and Ranise, "MCMT"; Conchon, Goel, Krstić, Mebsout and Zaïdi, "Cubicle", CAV 2012; for TSO:
//! Conchon, Declerck and Zaïdi, "Cubicle-W", 2018). There, guards over all processes are checked at once and
//! approximated by guards over the processes that a formula names. Here they are reads, one after the other, and
//! what they read of processes that are not named yet is kept.
//!
//! *Guarantee.* `safe` holds for every number of processes, under TSO or SC. `unsafe` comes with a run of the program with some
//! number of processes, found by [`crate::Dual`] for that number. The problem is undecidable in general, so
//! neither may come: then the answer is `unknown`.
//!
//! # Elements
//! An [element](element::Element) names the identities 1 to m. It represents configurations of the program with N
//! processes, for every N ≥ m, up to renaming identities. It requires
//! - of each cell that belongs to no process, and of those of named processes, one of a set of values;
//! - of the cells of *star*, the same for every process that is not named. The empty set means that there is no
//!   such process;
//! - of some processes a local state and a word over letters. A letter on a cell of star requires a message on that
//!   cell for every process that is not named.
//!
//! Sets of identities contain all identities that are not named, or none of them. A word is a sequence of
//! groups. A buffer is in ⟦β⟧ if, for some order of the letters in each group, the resulting word is embedded in
//! it as in `dual`. Star's letters are one letter for each process that is not named, in any order and place
//! within their group.
//!
//! Elements are kept up to [renaming](symmetry). One is below another if its identities map injectively to
//! identities that the other names, such that all its requirements follow; for identities that only the other
//! names, star's requirements count ([`Setup::below`]). The identities map to *named* ones, so this holds in every
//! program with as many processes as the other names, and the other is empty in smaller ones.
//!
//! # Undoing steps
//! The rules are those of `dual`, with these additions ([`undo`]).
//! - *A step that involves an identity that is not named* names it first. It gets star's requirements: a set for
//!   each of its cells, and a letter beside each of star's letters, in the same group. That changes nothing about
//!   the configurations in which there is such a process. Processes that are not named are alike, so it is
//!   enough to name the next one.
//! - *A loop over all others* is one step ([`view`]): a group of letters at the old end of the word, one for
//!   each other process that is named and one for star. If the oldest group has a letter of the same cell, the
//!   message may be the same one. Then no letter is added, which requires less.
//! - *Letters of a group* are dropped in any order. To drop a letter, only newer groups are dropped before it.
//! - *An own letter* is inserted between groups, and between any two parts of a group.
//! - *Initial.* If an element with m named identities contains an initial configuration of the program with m or
//!   m + 1 processes, a bad state may be reachable with that many. Of several processes that are not named, one is
//!   enough: they are alike at the start, and a cell that holds an identity at the start may hold this one.
//!
//! The arguments of `dual` about propagations and about undoing one process at a time are about single runs of one
//! program, and hold for each number of processes. A propagation of star's letter can be undone at once for
//! all processes that are not named: none of them has written its cell since (a process that has is named when its
//! write is undone), so the letter's anchor is one of the process that reads, which is the same for all.
//!
//! # Forgetting
//! Elements could name more and more processes. Those that mention more than `most` processes forget one, unless
//! a smaller element is below them ([`search`]). If there are many identities, one that no process has or
//! remembers is merged with star, which then requires only what both did. Both represent more configurations, so
//! `safe` stays right. If such a search reaches an initial
//! configuration, the program with that many processes is checked. If it is safe, the search is repeated with more
//! processes.
//!
//! # PSO
//! Load buffers describe one buffer per process, so this search says nothing about PSO, where stores to different cells
//! overtake each other. The single buffer of [`crate::Sb`] has one word for all processes. Star's letters would have
//! to say where in that word each process is that is not named, for each of its cells; no order is known for that.
//!
//! # Trust
//! The set is a proof that `palisade-certificate` checks with code of its own. Random programs are compared with their
//! instances (`tests/suite/identities.rs`).

pub(crate) mod element;
mod fragment;
mod normal;
mod proof;
mod search;
mod setup;
mod symmetry;
mod undo;
mod view;

use crate::Dual;
use element::{Element, Memory, Process, Word};
use fragment::known_at_once;
use palisade_automata::{Automata, Merged, Population, Trouble};
use palisade_engine::{
    Analysis, Engine, Limits, Pace, Proof, Reason, Stats, Task, Threads, Verdict, Witness,
};
use palisade_memory::Model;
use palisade_program::running::{Liveness, System};
use palisade_program::written::Count;
use palisade_program::{Instantiation, lower};
use search::{End, Search};
use setup::Setup;
use std::sync::Arc;

/// The most processes that elements mention, in the searches one after the other.
const MOST: [usize; 3] = [2, 3, 4];

/// How many more identities than that the program of the search has.
const MORE: usize = 4;

/// How many configurations the check of one number of processes may take before the search begins.
const PROBE: u64 = 20_000;

/// The numbers of processes that are checked first.
const PROBED: u32 = 2;

/// Decides a program with identities.
pub(crate) fn check(
    analysis: &Analysis<'_>,
    limits: &Limits,
    stats: &mut Stats,
    proof: Option<&mut Option<Proof>>,
) -> Result<Verdict, Reason> {
    if analysis.task.model == Model::Pso {
        return Err(Reason::Unsupported("load buffers are for TSO and SC, not for PSO".into()));
    }
    let mut checked = Instances { analysis, safe: 0, generated: 0 };
    for number in 1..=PROBED {
        if let Some(witness) = checked.ask(number, &limits.clone().at_most_work(PROBE))? {
            stats.set("configurations", checked.generated);
            return Ok(Verdict::Violated(witness));
        }
    }
    let known = known_at_once(analysis.task.program);
    let mut generated = 0;
    for most in MOST {
        let number = most + MORE;
        if known.is_ok_and(|known| known >= number) {
            continue;
        }
        let setup = prepare(&analysis.task, number as u8, most, limits)?;
        let mut search = Search::new(&setup);
        setup.bad_elements().into_iter().for_each(|element| search.add(element));
        let mut exhausted = None;
        let mut pace = Pace::new();
        let found = search.run(|search| {
            exhausted = limits.check_often(&mut pace, || search.bytes).err();
            if exhausted.is_none() {
                exhausted = limits.check_work(generated + search.generated).err();
            }
            exhausted.is_none() && setup.is_complete()
        });
        generated += search.generated;
        stats.set("configurations", checked.generated + generated);
        stats.set("antichain", search.antichain_len() as u64);
        stats.set("subsumption_tests", search.tests);
        let states = setup.automata.automata.iter().map(|automaton| automaton.states.len() as u64);
        stats.set("local_states", states.sum());
        stats.set("table_bytes", search.bytes);
        limits.report("searching backward with identities", stats);
        if let Some(exhausted) = exhausted {
            return Err(Reason::Exhausted(exhausted));
        }
        match found {
            Some(End::Closed) if search.is_closed() && setup.is_complete() => {
                return match known {
                    Ok(_) if others_are_declared(&analysis.task) => {
                        if let Some(proof) = proof {
                            *proof = Some(proof::proof(&setup, &search.elements()));
                        }
                        Ok(Verdict::Holds)
                    }
                    Ok(_) => Err(not_covered("the number of all processes is open")),
                    Err(why) => Err(not_covered(why)),
                };
            }
            Some(End::Initial(needed)) => {
                for number in checked.safe + 1..=needed {
                    if let Some(witness) = checked.ask(number, limits)? {
                        stats.set("configurations", checked.generated + generated);
                        return Ok(Verdict::Violated(witness));
                    }
                }
            }
            Some(End::Closed) | None => {}
        }
    }
    let why = "the search would have to follow too many processes at once, or finds runs in which loops over all \
               others take another order";
    let known = Reason::InstanceBound(checked.safe);
    Err(Reason::AnyNumber { why: Box::new(Reason::Observed(why.to_owned())), known: Box::new(known) })
}

/// Whether the processes without identities are there as the program declares them.
fn others_are_declared(task: &Task<'_>) -> bool {
    task.threads != Threads::Any || task.program.templates.len() == 1
}

fn not_covered(why: &str) -> Reason {
    let what = "proofs for any number of processes with identities do not cover this program";
    Reason::Unsupported(format!("{what}: {why}"))
}

/// The program with fixed numbers of processes.
struct Instances<'a> {
    analysis: &'a Analysis<'a>,
    /// It is safe with up to this number.
    safe: u32,
    /// How many configurations this took.
    generated: u64,
}

impl Instances<'_> {
    /// A run that breaks the program with this number of processes, if there is one.
    fn ask(&mut self, number: u32, limits: &Limits) -> Result<Option<Witness>, Reason> {
        let mut program = self.analysis.task.program.with_identities(number);
        // There are as many of each other kind of which there may be any number.
        for template in program.templates.iter_mut().filter(|template| template.count == Count::Any) {
            template.count = Count::Fixed(number);
        }
        let task = Task { program: &program, threads: Threads::Declared, ..self.analysis.task.clone() };
        let outcome = Dual.check(&Analysis::new(task), limits);
        self.generated += outcome.stats.get("configurations").unwrap_or(0);
        match outcome.verdict {
            Verdict::Holds => {
                if self.safe + 1 == number {
                    self.safe = number;
                }
                Ok(None)
            }
            Verdict::Violated(witness) => {
                let instantiation = self.analysis.instantiation(number);
                Ok(Some(Witness { instantiation, ..witness }))
            }
            Verdict::Unknown(reason @ (Reason::Bug(_) | Reason::Unsupported(_) | Reason::Growing { .. })) => {
                Err(reason)
            }
            Verdict::Unknown(_) => Ok(None),
        }
    }
}

/// The program with this many identities, prepared.
fn prepare(task: &Task<'_>, number: u8, most: usize, limits: &Limits) -> Result<Setup, Reason> {
    let identities = task.program.identities.clone().expect("the program has identities");
    let process = identities.process.clone();
    let (system, merged) = automata(task, number, limits)?;
    let setup = Setup::new(&system, &merged, &identities, &process, number, most);
    let setup = setup.map_err(Reason::Unsupported)?;
    let shape_here = setup::shape(&system, &merged, &identities, &process, number);
    let (system, merged) = automata(task, number + 1, limits)?;
    if shape_here != setup::shape(&system, &merged, &identities, &process, number + 1) {
        let why = "what a process can do depends on the number of processes";
        return Err(Reason::Unsupported(why.to_owned()));
    }
    Ok(setup)
}

/// The automata of the program with this many identities.
fn automata(task: &Task<'_>, number: u8, limits: &Limits) -> Result<(System, Merged), Reason> {
    let viewed = view::view(task.program, number.into(), task.model).map_err(Reason::Unsupported)?;
    let system = lower(&viewed, Instantiation::declared(1));
    let mut exhausted = None;
    let may_continue = || {
        exhausted = limits.check(0).err();
        exhausted.is_none()
    };
    let population = |role| {
        let instances = system.instances.iter().filter(|instance| instance.role == role);
        Population::Fixed(instances.count() as u32)
    };
    let liveness = Arc::new(Liveness::new(&system));
    let automata = Automata::build_for_all_sizes(&system, liveness, population, may_continue);
    if let Some(exhausted) = exhausted {
        return Err(Reason::Exhausted(exhausted));
    }
    let automata = automata.map_err(|trouble| {
        Reason::Unsupported(match trouble {
            Trouble::Values(cell) => {
                format!("`{}` takes too many values; declare its domain", system.cells[cell].name)
            }
            Trouble::Spawn | Trouble::CallDepth(_) | Trouble::States(_) | Trouble::Stopped => {
                "the processes have too many states".to_owned()
            }
        })
    })?;
    let merged = automata.merged(&system);
    Ok((system, merged))
}

impl Setup {
    /// The elements of all bad combinations.
    fn bad_elements(&self) -> Vec<Element> {
        let mut found = Vec::new();
        for bad in &self.bad {
            let mut memory: Memory = self.full.iter().copied().collect();
            for &(cell, value) in &bad.memory {
                memory[cell.0 as usize] &= self.bit(cell.0 as usize, value);
            }
            let processes = bad.processes.iter().map(|&(kind, state)| (kind as u8, state.0));
            let processes: Vec<(u8, u32)> = processes.collect();
            let named = processes.iter().fold(0u32, |all, &(kind, state)| {
                let kind = &self.kinds[kind as usize];
                let own = if kind.owner > 0 { 1 << kind.owner } else { 0 };
                all | own | kind.names[state as usize]
            });
            let named = bad.memory.iter().fold(named, |all, &(cell, value)| {
                match self.cells[cell.0 as usize].holds_identity {
                    true => all | (self.bit(cell.0 as usize, value) as u32 & !1),
                    false => all,
                }
            });
            // Each combination has a renaming that names the first identities.
            let last = u32::BITS - named.leading_zeros();
            let last = last.saturating_sub(1) as u8;
            if named.count_ones() >= u32::from(self.star) {
                self.overflown.set(true);
            }
            if last >= self.star || (1..=last).any(|id| named >> id & 1 == 0) {
                continue;
            }
            self.choose_roots(last, &memory, &mut Vec::new(), &processes, &mut found);
        }
        found
    }

    fn choose_roots(
        &self,
        named: u8,
        memory: &Memory,
        chosen: &mut Vec<Process>,
        rest: &[(u8, u32)],
        found: &mut Vec<Element>,
    ) {
        let Some((&(kind, state), rest)) = rest.split_first() else {
            let mut processes = chosen.clone();
            processes.sort();
            found.extend(self.normalised(Element { named, memory: memory.clone(), processes }));
            return;
        };
        for &root in &self.kinds[kind as usize].roots[state as usize] {
            chosen.push(Process { kind, state: root, word: Word::new() });
            self.choose_roots(named, memory, chosen, rest, found);
            chosen.pop();
        }
    }
}
