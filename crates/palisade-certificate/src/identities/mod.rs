//! Proofs for any number of processes with identities.
//!
//! Let P_N be the program with N processes that have identities. A proof is about the automata of P_M for one M, with
//! loops over all others as [single reads](view), and shows that no P_N reaches a bad state.
//!
//! # What is checked
//! 1. Identities are only names, and a step of a process involves fewer than M of them
//!    ([`identities_are_names`](palisade_program::written::Program::identities_are_names), where the theorem is).
//! 2. Renamings act on the [automata](action) and their classes of states; edges, starts, the values of cells and the
//!    invariant are the same up to renaming ([`world`]). The invariant is inductive ([`crate::invariant`]).
//! 3. The set contains all bad states, contains no initial one, and is closed under [predecessors](undo).
//!
//! # Elements
//! An element names the identities 1 to m, where m < M. It represents configurations of P_N for every N ≥ m, up to
//! renaming identities. In these,
//! - cells hold what is required of them. What is required of a cell of star, the identity M, is required of the cells of
//!   all processes from m + 1 to N. If star's cell may hold no value, there are none: N = m. A set of identities
//!   contains all of m + 1 to N if it contains star, and none of them otherwise;
//! - the processes that it has are in their classes, with their words in their buffers. A word is a sequence of groups of
//!   letters. For some order of the letters of each group, the letters are in the buffer in this order. A letter on star's
//!   cell stands for a letter on the cell of each process from m + 1 to N.
//!
//! The rest is as in [the crate's header](crate): letters, own letters, and the semantics of load buffers. In a class that
//! an element requires, and among the identities of its processes, only 1 to m are remembered.
//!
//! An element a is *below* b if the identities that a names can be mapped to different ones that b names, such that
//! everything that a requires is required by b, where a's requirements on star are requirements on all identities
//! that are not mapped to: those that only b names, and star. Then every configuration of b is one of a: both are about
//! N ≥ b.m processes.
//!
//! # Why this is a proof
//! *P_M is enough.* By the theorem, a step of a process of P_N is, up to renaming, one of P_M, since it involves
//! fewer than M identities. By induction over runs of one process, so are its thread states and the values that cells
//! can hold, which the [automata](Automata::build_for_all_sizes) have without a bound on the number of stores. And so is
//! (by symmetry) what the invariant says about them. So an edge of the automata of P_N is an edge of
//! those of P_M, up to a renaming of the identities that it involves. All others are alike for it.
//!
//! *Closed.* Let a run of P_N lead into an element e of the set. As in the crate's header, let i be the instruction to be
//! undone. If it involves identities that e does not name, these may be renamed so that they come next: e says the same of all
//! of them. Naming them changes nothing about the configurations with such processes: they get star's requirements,
//! and letters beside star's in the same group. There is still an identity that is not named afterwards, or the
//! proof is refused. Now i is an edge of P_M that involves named identities only, and the rules of the
//! crate's header apply, with these additions.
//! - *Processes that e does not mention.* If i is a write of one, e says nothing about the class to which i leads. The
//!   predecessor requires the source of i, what memory holds before it, and what e requires of others. So identities that
//!   only the target remembers are not involved: a step of P_N and one of P_M that agree on everything else have the same
//!   predecessor. There is such a step of P_M, because its local steps can choose any identity that differs from those
//!   that the process remembers at that time.
//! - *Groups.* If letters of a group were propagated from i, all letters of newer groups are newer than they are for each
//!   order, so they are dropped as well. The other letters of the group are kept: those that were propagated after i
//!   are propagated again from the predecessor. An own message in the middle of a group leaves the newer letters on
//!   one side and the older on the other. Star's may be on both sides and are left out, which requires less.
//! - *Star's letters* are dropped for all processes at once. No process that is not named has written its cell since they were
//!   propagated, because there is no instruction after i. So memory holds what was propagated.
//! - *A loop over all others* reads the cell of each other process once, in an order that is not known: these
//!   letters are one group, the oldest. If the oldest group before had a letter on such a cell with a value in common, it may
//!   be the message that was read; then nothing is added for this cell, which requires less. A process never has pending stores
//!   to cells of others, so it reads none of its own messages. The values are read one by one and may differ between
//!   processes. So whatever is read leads to the same classes ([`world`]).
//! - *The process at the end of a run that only read* may be undone alone, for each N as in the crate's header.
//!
//! *Initial.* An element that contains an initial configuration of P_N contains one of P_m or P_(m+1): of the processes
//! that are not named, one can be kept, with its identity wherever one of theirs was.
//!
//! *Bad.* Properties count processes from below and look at cells; faults are about one process. Larger numbers than
//! those that are covered add nothing ([`crate::bad`]), so the processes they are about need not be named. The cells with identities that
//! a property names are fewer than M, so there is a renaming of what they hold into P_M. Let a bad state of P_N have k
//! processes that matter, and take them one after the other, with what they remember. While they involve fewer than M
//! identities, there is a renaming of them in P_M, and some element has to be below. If they ever involve M or more,
//! then P_M has one in which the new process involves all M, since processes are chosen independently
//! of each other; and then the proof is refused, as it is for more than M processes.

mod action;
mod cells;
mod element;
mod undo;
mod view;
mod world;

use crate::bad::{self, Bad, Sets};
use crate::flow::{Flow, Limit};
use crate::invariant::Invariant;
use crate::rewrite::Rewrite;
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use action::{Action, Renaming};
use element::{Element, Process};
use palisade_automata::{Automata, Population, Starts};
use palisade_engine::proof::{Identities, LoadBuffers};
use palisade_engine::{Task, Threads};
use palisade_memory::Model;
use palisade_program::running::System;
use palisade_program::{Instantiation, lower};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use undo::TooFew;
use world::World;

/// The most identities that a proof may use. There are as many automata, and renamings of them.
const MAX_IDENTITIES: u32 = 10;

/// For an element with more processes, the index is of no use.
const MAX_KEYS: usize = 12;

/// Checks a proof for any number of processes with identities.
pub(crate) fn verify(task: &Task<'_>, proof: &Identities, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    let unsuited = |what: String| Refusal::Unsuited(what);
    let of_declared = task.threads != Threads::Any || task.program.templates.len() == 1;
    if !task.has_open_identities() || !of_declared {
        let what =
            "the proof is about any number of processes with identities, and other processes as declared";
        return Err(unsuited(what.into()));
    }
    let known = task.program.identities_are_names().map_err(|why| unsuited(why.into()))?;
    if proof.number > MAX_IDENTITIES || proof.number as usize <= known.max(2) {
        return Err(unsuited(format!("{} identities are too many or too few", proof.number)));
    }
    let number = proof.number as u8;
    let viewed =
        view::with_every(task.program, proof.number, task.model).map_err(|why| unsuited(why.into()))?;
    let system = lower(&viewed, Instantiation::declared(1));
    let automata = automata(&system, watch)?;
    let cells = cells::cells(task.program, &viewed, &automata, number).map_err(unsuited)?;
    let identities = task.program.identities.as_ref().expect("their number is open");
    let owner = |automaton: &palisade_automata::Automaton| {
        let role = &system.roles[automaton.role];
        match (&role.args[..], system.templates[role.template].name == *identities.process) {
            ([identity], true) => u8::try_from(*identity).ok().filter(|id| (1..=number).contains(id)),
            (_, true) => None,
            (_, false) => (automaton.population == Population::Fixed(1)).then_some(0),
        }
    };
    let owner: Option<Vec<u8>> = automata.automata.iter().map(owner).collect();
    let owner = owner.ok_or_else(|| unsuited("there are several processes of another kind".into()))?;
    let flow = Flow::new(&automata, &proof.classes, Model::Tso, None)?;
    let claims = LoadBuffers {
        classes: proof.classes.clone(),
        pending: proof.pending.clone(),
        held: proof.held.clone(),
        ..LoadBuffers::default()
    };
    let invariant = Invariant::new(&flow, &claims)?;
    let rewrite = Rewrite {
        system: &system,
        automata: &automata,
        classes: &proof.classes,
        invariant: &invariant,
        flow: &flow,
        starts: Starts::Drained,
        rewritten: true,
    };
    let flow = Flow::new(&automata, &proof.classes, Model::Tso, Some(&rewrite))?;
    let action = Action::new(&system, &automata, (&cells, identities.which), &proof.classes, &owner, number);
    let action = action.map_err(unsuited)?;
    let world =
        World::new(&automata, (&flow, &invariant, &action), (&cells, &owner, number)).map_err(unsuited)?;
    let closed = Closed::read(&world, proof)?;
    bad::check(&system, &automata, &closed, watch)?;
    closed.check(watch)
}

fn automata(system: &System, watch: &Watch<'_>) -> Result<Automata, Refusal> {
    let liveness = Arc::new(crate::dead::checked(system)?);
    let mut exhausted = Ok(());
    let may_continue = || {
        exhausted = watch.look(0);
        exhausted.is_ok()
    };
    let population = |role| {
        let instances = system.instances.iter().filter(|instance| instance.role == role);
        Population::Fixed(instances.count() as u32)
    };
    let automata = Automata::build_for_all_sizes(system, liveness, population, may_continue);
    exhausted?;
    automata.map_err(|trouble| Refusal::Unsuited(format!("the program has no automata ({trouble:?})")))
}

/// The elements of a proof, by the classes of their processes up to renaming.
struct Closed<'a> {
    world: &'a World<'a>,
    elements: Vec<Element>,
    index: FxHashMap<Vec<u32>, Vec<usize>>,
}

impl<'a> Closed<'a> {
    fn read(world: &'a World<'a>, proof: &Identities) -> Result<Closed<'a>, Refusal> {
        let elements = proof.elements.iter().map(|element| world.read(&proof.sets, element));
        let elements: Vec<Element> = elements.collect::<Result<_, _>>()?;
        let mut index: FxHashMap<Vec<u32>, Vec<usize>> = FxHashMap::default();
        for (number, element) in elements.iter().enumerate() {
            index.entry(world.keys(element)).or_default().push(number);
        }
        Ok(Closed { world, elements, index })
    }

    /// Whether an element of the set is below this one, which is narrowed.
    fn covers(&self, element: &Element) -> bool {
        let is_below = |below: &Element| {
            below.named <= element.named && {
                let ways = self.world.injections(below.named, element.named);
                ways.iter().any(|image| self.world.is_below(below, image, element))
            }
        };
        let keys = self.world.keys(element);
        if keys.len() > MAX_KEYS {
            return self.elements.iter().any(is_below);
        }
        (0u64..1 << keys.len()).any(|chosen| {
            let part = (0..keys.len()).filter(|place| chosen >> place & 1 == 1).map(|place| keys[place]);
            let found = self.index.get(&part.collect::<Vec<u32>>());
            found.into_iter().flatten().any(|&number| is_below(&self.elements[number]))
        })
    }

    fn check(&self, watch: &Watch<'_>) -> Result<Summary, Refusal> {
        let mut summary = Summary::default();
        for (number, element) in self.elements.iter().enumerate() {
            summary.elements += 1;
            watch.element()?;
            watch.look(0)?;
            if self.is_initial(element) {
                return Err(Refusal::Initial(number));
            }
            // What the invariant excludes has no predecessors that matter.
            let Some(narrowed) = self.world.narrowed(element) else { continue };
            let mut missing = None;
            let named = self.world.predecessors(&narrowed, &mut |predecessor| {
                summary.predecessors += 1;
                if missing.is_none() && !self.covers(&predecessor) {
                    missing = Some(predecessor);
                }
            });
            if let Err(TooFew) = named {
                let what = "the proof would have to name all identities";
                return Err(Refusal::Unsuited(what.into()));
            }
            if let Some(missing) = missing {
                return Err(Refusal::NotClosed {
                    element: number,
                    predecessor: self.world.missing(&missing),
                });
            }
        }
        Ok(summary)
    }

    /// Whether the element contains an initial configuration for some number of processes, or one from which
    /// propagations lead into it.
    fn is_initial(&self, element: &Element) -> bool {
        let world = self.world;
        let mut memory: Vec<u64> = element.memory.iter().zip(&world.initial).map(|(a, b)| a & b).collect();
        for process in &element.processes {
            if !world.flow.kinds[process.kind as usize].is_start[process.state as usize] {
                return false;
            }
            for letter in process.word.iter().flatten() {
                if letter.own {
                    return false;
                }
                memory[letter.cell as usize] &= letter.mask;
            }
        }
        let possible = |others: bool| {
            let existing = (element.named + 1..=world.number).fold(!0u64, |set, id| set & !(1 << id));
            memory.iter().zip(world.cells).all(|(&mask, cell)| {
                let exists =
                    !cell.every && (cell.owner <= element.named || others && cell.owner == world.star());
                let mask = if cell.holds_identity && !others { mask & existing } else { mask };
                !exists || mask != 0
            })
        };
        // There is at least one process.
        element.named > 0 && possible(false) || possible(true)
    }
}

impl Sets for Closed<'_> {
    /// Any number of processes with identities: each of them may be counted as often as needed.
    fn populations(&self) -> Vec<Limit> {
        self.world.owner.iter().map(|&owner| if owner > 0 { None } else { Some(1) }).collect()
    }

    fn values(&self) -> &[u32] {
        &self.world.flow.values
    }

    fn class(&self, kind: usize, state: usize) -> u32 {
        self.world.flow.kinds[kind].class_of[state]
    }

    fn before(&self, (kind, class): bad::At) -> &[u32] {
        &self.world.flow.kinds[kind as usize].before[class as usize]
    }

    fn cover(&self, bad: &Bad) -> Result<(), Missing> {
        let world = self.world;
        let missing = |what: String| Err(Missing::TooMany(what));
        if bad.processes.len() >= usize::from(world.number) {
            return missing("a property is about too many processes".to_owned());
        }
        // Of each automaton, there is one process.
        let mut kinds: Vec<u32> = bad.processes.iter().map(|&(kind, _)| kind).collect();
        kinds.sort_unstable();
        if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        let mut named = bad.processes.iter().fold(0u32, |set, &(kind, class)| {
            let own = world.owner[kind as usize];
            let own = if own > 0 { 1 << own } else { 0 };
            set | own | world.action.remembered[kind as usize][class as usize]
        });
        let mut memory = world.full.clone();
        for (cell, value) in bad.memory.iter().enumerate() {
            let Some(value) = *value else { continue };
            memory[cell] = world.bit(cell as u32, value);
            let info = &world.cells[cell];
            if info.every {
                return missing("a property is about the cells of all others".to_owned());
            }
            named |= if info.owner > 0 { 1 << info.owner } else { 0 };
            named |= if info.holds_identity { memory[cell] as u32 & !1 } else { 0 };
        }
        let count = named.count_ones() as u8;
        if count >= world.number {
            return missing(format!("{bad:?}: it involves all identities"));
        }
        // The renaming that moves these identities to the front.
        let (first, last): (Vec<u8>, Vec<u8>) = (1..=world.number).partition(|&id| named >> id & 1 == 1);
        let mut renaming: Renaming = vec![0; usize::from(world.number) + 1];
        for (new, old) in (1u8..).zip(first.into_iter().chain(last)) {
            renaming[usize::from(old)] = new;
        }
        let image = world.action.image(&renaming);
        let process = |&(kind, class): &bad::At| Process {
            kind: image.kind[kind as usize],
            state: image.class[kind as usize][class as usize],
            word: Vec::new(),
        };
        let mut element = Element {
            named: count,
            memory: world.full.clone(),
            processes: bad.processes.iter().map(process).collect(),
        };
        for (cell, &mask) in memory.iter().enumerate() {
            let renamed = world.rename_cell(cell as u32, &image) as usize;
            element.memory[renamed] = world.rename_mask(cell as u32, mask, &image);
        }
        let Some(element) = world.narrowed(&element) else { return Ok(()) };
        match self.covers(&element) {
            true => Ok(()),
            false => Err(world.missing(&element)),
        }
    }
}
