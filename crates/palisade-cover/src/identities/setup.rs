//! The program with M identities, prepared for the search: sets of values as bit masks, renamings, and which
//! identities each state and edge names.
//!
//! # Why M identities are enough
//! A step of a process involves its own identity, those in its registers, and at most one that it reads from
//! memory. Let r be the largest number of other identities that a state names. With M ≥ r + 3 there is always
//! one that is neither the process's own, nor named, nor read. So every thread state and every step of an
//! instance with more processes is, up to renaming, a state and a step here. The values that cells hold are
//! the same as well: a step writes a number that does not depend on identities, or an identity. As a check, the
//! automata for M + 1 identities must have as many states up to renaming, and must not name more ([`shape`]).
//!
//! *Names.* A state names an identity if exchanging it with one that it does not remember changes the state. All
//! identities that are neither the process's own nor named can be exchanged with each other without changing it.

use super::symmetry::{BadKey, Cell, Permutation, Symmetry};
use crate::bad::{Bad, bad_combinations};
use crate::dual::setup::Setup as Dual;
use crate::edges::Act;
use crate::facts::{self, Held};
use crate::spawns::Spawning;
use crate::values::{SetId, ValueSets};
use palisade_automata::{Automata, Merged, Population, StateId, ValueId};
use palisade_base::{Id, IdVec};
use palisade_engine::proof;
use palisade_memory::Model;
use palisade_program::Value;
use palisade_program::running::{CellId, System};
use palisade_program::written::{Domain, Identities};
use rustc_hash::{FxHashMap, FxHashSet};

/// The effect of an edge.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Reads one of these values.
    Read(u16, u64),
    /// Reads one of these values in the cell of every other process. The array is given by its first cell.
    Every(u32, u64),
    /// Waits until the buffer is empty.
    Fence,
    /// Writes a value, given as a single bit.
    Write(u16, u64),
    /// With an empty buffer: memory is in these sets before, and has these values afterwards.
    Locked { guard: Vec<(u16, u64)>, written: Vec<(u16, u64)> },
}

/// An edge that is not silent.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub source: u32,
    pub target: u32,
    pub effect: Effect,
    /// The identities that it or its states name, as bits, without the process's own.
    pub names: u32,
    /// The same without those that only the target names.
    pub enters: u32,
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// Its identity, and 0 if it has none.
    pub owner: u8,
    pub edges: Vec<Edge>,
    pub incoming: Vec<Vec<usize>>,
    pub roots: Vec<Vec<u32>>,
    pub is_start: Vec<bool>,
    pub only_reads: Vec<bool>,
    pub only_reads_and_fences: Vec<bool>,
    /// The values that can be the newest pending own store to a cell at a state.
    pub pending: FxHashMap<(u32, u16), u64>,
    /// For each state, a number that is the same for all renamings of it.
    pub orbit: Vec<u64>,
    /// The identities that each state names, as bits.
    pub names: Vec<u32>,
}

/// What memory can hold in a cell, by the states of its only writer.
#[derive(Clone, Debug)]
pub(crate) enum Holds {
    Anything,
    Always(u64),
    ByWriter(u8, Vec<u64>),
}

pub(crate) struct Setup {
    pub kinds: Vec<Kind>,
    pub cells: Vec<Cell>,
    /// All values of each cell.
    pub full: Vec<u64>,
    pub initial: Vec<u64>,
    pub holds: Vec<Holds>,
    /// All renamings of the identities except star.
    pub renamings: Vec<Permutation>,
    /// For each m, the renamings that change only identities up to m.
    pub fixing: Vec<Vec<usize>>,
    /// For each a and b, one renaming for each way to map the identities up to a to those up to b.
    pub into: Vec<Vec<Vec<usize>>>,
    /// The identity that stands for all processes that are not named.
    pub star: u8,
    /// The most processes that elements mention. Further ones are forgotten.
    pub most: usize,
    /// The bad combinations, as processes and memory.
    pub bad: Vec<Bad>,
    pub automata: Automata,
    /// For each cell that does not hold identities, its values in the order of their bits.
    pub order: Vec<Vec<Value>>,
    /// What a proof says besides its elements: the classes of states, and the invariants.
    pub facts: proof::Identities,
    /// Set if a step would have named more identities than there are. The search has then missed it.
    pub overflown: std::cell::Cell<bool>,
}

/// Why a program is not searched.
pub(crate) type Refused = String;

/// What does not depend on the search: the identities of processes, and the exchanges of identities.
struct Renamed {
    owner: Vec<u8>,
    cells: Vec<Cell>,
    bad: Vec<Bad>,
    unit: Permutation,
    exchanges: Vec<Permutation>,
}

fn renamed(
    system: &System,
    merged: &Merged,
    identities: &Identities,
    process: &str,
    number: u8,
) -> Result<Renamed, Refused> {
    let automata = &merged.automata;
    let owner: Vec<u8> = automata
        .automata
        .iter()
        .map(|automaton| {
            let role = &system.roles[automaton.role];
            let of_template = system.templates[role.template].name == process;
            if of_template { role.args[0] as u8 } else { 0 }
        })
        .collect();
    let alone = |(automaton, owner): (&palisade_automata::Automaton, &u8)| {
        *owner > 0 || automaton.population == Population::Fixed(1)
    };
    if !automata.automata.iter().zip(&owner).all(alone) {
        return Err("beside the processes with identities, there are several of one kind".to_owned());
    }
    if !automata.spawned.is_empty() {
        return Err("processes are started at run time".to_owned());
    }
    let cells = cells(system, identities, number);
    let bad = bad(system, automata, &owner)?;
    let keys: FxHashSet<BadKey> = bad.iter().map(|bad| key(automata, bad)).collect();
    let symmetry = Symmetry { automata, cells: &cells, owner: &owner, bad: &keys, identities: number };
    let exchanges: Option<Vec<Permutation>> = (1..number).map(|first| symmetry.exchange(first)).collect();
    let Some(exchanges) = exchanges else {
        return Err("the automata of different processes were not found to be alike".to_owned());
    };
    let unit = symmetry.unit();
    Ok(Renamed { owner, unit, exchanges, bad, cells })
}

/// How many states there are up to renaming, and the most identities that one of them names. Both are the same
/// for all large enough numbers of identities.
pub(crate) fn shape(
    system: &System,
    merged: &Merged,
    identities: &Identities,
    process: &str,
    number: u8,
) -> Result<(usize, u32), Refused> {
    let Renamed { owner, unit, exchanges, .. } = renamed(system, merged, identities, process, number)?;
    let swaps = swaps(&unit, &exchanges, number);
    let mut seen: FxHashSet<(u8, u32)> = FxHashSet::default();
    let (mut orbits, mut widest) = (0, 0);
    for (kind, states) in unit.state.iter().enumerate() {
        for &state in states {
            let names = named(&swaps, &merged.automata, (kind, state), owner[kind], number);
            widest = widest.max(names.count_ones());
            let mut work = vec![(kind as u8, state)];
            orbits += usize::from(!seen.contains(&work[0]));
            while let Some((kind, state)) = work.pop() {
                if seen.insert((kind, state)) {
                    work.extend(exchanges.iter().map(|exchange| {
                        (exchange.kind[kind as usize], exchange.state[kind as usize][state as usize])
                    }));
                }
            }
        }
    }
    Ok((orbits, widest))
}

impl Setup {
    pub fn new(
        system: &System,
        merged: &Merged,
        identities: &Identities,
        process: &str,
        number: u8,
        most: usize,
    ) -> Result<Setup, Refused> {
        let automata = &merged.automata;
        if let Some(cell) = automata.values.ids().find(|&cell| automata.values[cell].len() > 32) {
            return Err(format!("`{}` has more than 32 values", system.cells[cell].name));
        }
        if system.cells.len() > 1000 || automata.automata.len() > 64 {
            return Err("the program is too large".to_owned());
        }
        let Renamed { owner, cells, bad, unit, exchanges } =
            renamed(system, merged, identities, process, number)?;
        let renamings = generate(&unit, &exchanges[..number as usize - 2]);
        let (fixing, into) = index(&renamings, number);
        let swaps = swaps(&unit, &exchanges, number);
        let order = order(automata, &cells);
        let setup = Dual::with_sets(
            merged,
            Model::Tso,
            Spawning::Anytime,
            FxHashSet::default(),
            ValueSets::with_at_most(automata.values.iter().map(IdVec::len), crate::values::MAX_SETS),
        );
        if let Some(cell) = setup.sets.overflown() {
            return Err(format!("`{}` has too many values", system.cells[cell].name));
        }
        let masks = Masks { automata, cells: &cells, order: &order, sets: &setup.sets };
        let names = |kind: usize, state: u32| named(&swaps, automata, (kind, state), owner[kind], number);
        let mut kinds = Vec::new();
        for (index, kind) in setup.kinds.iter().enumerate() {
            kinds.push(masks.kind(index, kind, owner[index], number, &names, &renamings)?);
        }
        let widest = kinds.iter().flat_map(|kind| &kind.names).map(|names| names.count_ones()).max();
        if widest.unwrap_or(0) + 3 > u32::from(number) {
            return Err("processes remember too many identities".to_owned());
        }
        let holds = |cell: CellId| match &setup.held[cell] {
            Held::Anything => Holds::Anything,
            Held::Always(set) => Holds::Always(masks.mask(cell, *set)),
            Held::ByWriter(kind, sets) => {
                let sets = sets.iter().map(|set| set.map_or(0, |set| masks.mask(cell, set)));
                Holds::ByWriter(*kind as u8, sets.collect())
            }
        };
        let holds = automata.values.ids().map(holds).collect();
        let full = automata.values.ids().map(|cell| masks.mask(cell, SetId::ALL)).collect();
        let initial = automata.values.ids().map(|cell| masks.mask(cell, setup.initial[cell])).collect();
        let mut pending: Vec<proof::Pending> = Vec::new();
        for (kind, of_kind) in setup.kinds.iter().enumerate() {
            for (state, cell, set) in of_kind.all_pending() {
                let values = setup.sets.values(cell, set).into_iter();
                let of = |value: ValueId| (kind as u32, state.0, cell.0, value.0);
                let claim = |(kind, state, cell, value)| proof::Pending { kind, state, cell, value };
                pending.extend(values.map(of).map(claim));
            }
        }
        pending.sort_unstable();
        let classes = merged.classes.iter().map(|classes| classes.iter().map(|class| class.0).collect());
        let facts = proof::Identities {
            number: number.into(),
            classes: classes.collect(),
            pending,
            held: facts::held(&setup.sole),
            sets: Vec::new(),
            elements: Vec::new(),
        };
        let automata = automata.clone();
        Ok(Setup {
            order: order.clone(),
            facts,
            kinds,
            full,
            initial,
            holds,
            renamings,
            fixing,
            into,
            star: number,
            most,
            bad,
            automata,
            cells,
            overflown: std::cell::Cell::new(false),
        })
    }

    /// Whether no step was missed for want of identities.
    pub fn is_complete(&self) -> bool {
        !self.overflown.get()
    }

    /// A value of a cell as a mask.
    pub fn bit(&self, cell: usize, value: ValueId) -> u64 {
        bit(&self.automata, &self.cells, &self.order, CellId::from_index(cell), value)
    }

    /// The values of a mask.
    pub fn values_of(&self, cell: usize, mask: u64) -> Vec<Value> {
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        match self.cells[cell].holds_identity {
            true => bits.map(Value::from).collect(),
            false => bits.map(|bit| self.order[cell][bit as usize]).collect(),
        }
    }

    /// The cell of an array that belongs to an identity.
    pub fn cell_of(&self, array: u32, owner: u8) -> usize {
        array as usize + owner as usize
    }
}

/// What each cell is. The cells of an array with one per process are those of none, of all identities, and
/// `EVERY`, in this order.
fn cells(system: &System, identities: &Identities, number: u8) -> Vec<Cell> {
    let mut cells: Vec<Cell> = system
        .cells
        .iter()
        .map(|cell| Cell {
            array: None,
            owner: 0,
            every: false,
            holds_identity: matches!(cell.ty.domain, Domain::Enum { which, .. } if which == identities.which),
        })
        .collect();
    for name in &identities.arrays {
        let first = system.cells.iter().position(|cell| cell.name == format!("{name}[0]"));
        let Some(first) = first else { continue };
        for index in 0..number as usize + 2 {
            let cell = &mut cells[first + index];
            cell.array = Some(first as u32);
            cell.every = index == number as usize + 1;
            cell.owner = if cell.every { 0 } else { index as u8 };
        }
    }
    cells
}

/// The bad combinations. The number of processes with identities is open, so each of them may have any number.
fn bad(system: &System, automata: &Automata, owner: &[u8]) -> Result<Vec<Bad>, Refused> {
    let mut open = automata.clone();
    for (automaton, owner) in open.automata.iter_mut().zip(owner) {
        if *owner > 0 {
            automaton.population = Population::Any;
        }
    }
    let mut found = bad_combinations(system, &open)?;
    // Of each identity there is one process.
    found.retain(|bad| {
        let mut kinds: Vec<u32> = bad.processes.iter().map(|&(kind, _)| kind).collect();
        kinds.sort_unstable();
        kinds.windows(2).all(|pair| pair[0] != pair[1])
    });
    Ok(found)
}

fn key(automata: &Automata, bad: &Bad) -> BadKey {
    let mut memory: Vec<(u32, Value)> =
        bad.memory.iter().map(|&(cell, value)| (cell.0, automata.values[cell][value])).collect();
    let mut processes: Vec<(u32, u32)> = bad.processes.iter().map(|&(kind, state)| (kind, state.0)).collect();
    memory.sort_unstable();
    processes.sort_unstable();
    (memory, processes)
}

/// All products of these exchanges.
fn generate(unit: &Permutation, exchanges: &[Permutation]) -> Vec<Permutation> {
    let mut found = vec![unit.clone()];
    let mut known: FxHashSet<Vec<u8>> = [unit.identity.clone()].into_iter().collect();
    let mut next = 0;
    while next < found.len() {
        for exchange in exchanges {
            let product = found[next].then(exchange);
            if known.insert(product.identity.clone()) {
                found.push(product);
            }
        }
        next += 1;
    }
    found
}

/// [`Setup::fixing`] and [`Setup::into`].
fn index(renamings: &[Permutation], star: u8) -> (Vec<Vec<usize>>, Vec<Vec<Vec<usize>>>) {
    let all = || renamings.iter().enumerate();
    let fixing = (0..star).map(|most| {
        let fixes = |renaming: &Permutation| (most + 1..star).all(|id| renaming.identity[id as usize] == id);
        all().filter(|(_, renaming)| fixes(renaming)).map(|(index, _)| index).collect()
    });
    let into = |from: u8, to: u8| {
        let mut seen: FxHashSet<Vec<u8>> = FxHashSet::default();
        let maps = |renaming: &Permutation| {
            let images = renaming.identity[1..=from as usize].to_vec();
            images.iter().all(|&image| image <= to).then_some(images)
        };
        let mut fits = |renaming: &Permutation| maps(renaming).is_some_and(|images| seen.insert(images));
        all().filter(|(_, renaming)| fits(renaming)).map(|(index, _)| index).collect::<Vec<usize>>()
    };
    let into = (0..star).map(|from| (0..star).map(|to| into(from, to)).collect()).collect();
    (fixing.collect(), into)
}

/// The exchange of each pair of identities.
fn swaps(unit: &Permutation, exchanges: &[Permutation], number: u8) -> FxHashMap<(u8, u8), Permutation> {
    let mut swaps = FxHashMap::default();
    for a in 1..number {
        let mut swap = unit.then(&exchanges[a as usize - 1]);
        swaps.insert((a, a + 1), swap.clone());
        for b in a + 2..=number {
            let step = &exchanges[b as usize - 2];
            swap = step.then(&swap).then(step);
            swaps.insert((a, b), swap.clone());
        }
    }
    swaps
}

/// The identities that a state names: all others that cannot be exchanged freely with one that is in none of its
/// registers. Without such an identity, the state names all.
fn named(
    swaps: &FxHashMap<(u8, u8), Permutation>,
    automata: &Automata,
    (kind, state): (usize, u32),
    own: u8,
    number: u8,
) -> u32 {
    let others: Vec<u8> = (1..=number).filter(|&id| id != own).collect();
    let thread = &automata.automata[kind].states[StateId(state)].thread;
    let mentions = |id: u8| thread.frames.iter().any(|frame| frame.registers.contains(&Value::from(id)));
    let alike = |a: u8, b: u8| a == b || swaps[&(a.min(b), a.max(b))].state[kind][state as usize] == state;
    let all = others.iter().fold(0u32, |set, &id| set | 1 << id);
    match others.iter().rev().find(|&&id| !mentions(id)) {
        Some(&a) => all & !others.iter().filter(|&&b| alike(a, b)).fold(0u32, |set, &b| set | 1 << b),
        None => all,
    }
}

/// For each cell, its values in the order of their bits. Cells of one array have the same order.
fn order(automata: &Automata, cells: &[Cell]) -> Vec<Vec<Value>> {
    let mut order: Vec<Vec<Value>> =
        automata.values.iter().map(|values| values.iter().copied().collect()).collect();
    for index in 0..cells.len() {
        if let Some(array) = cells[index].array {
            let all: Vec<Value> = (0..cells.len())
                .filter(|&other| cells[other].array == Some(array))
                .flat_map(|other| automata.values[CellId::from_index(other)].iter().copied())
                .collect();
            order[index] = all;
        }
        order[index].sort_unstable();
        order[index].dedup();
    }
    order
}

/// The bit of a value. Where a cell holds identities, it is the identity.
fn bit(automata: &Automata, cells: &[Cell], order: &[Vec<Value>], cell: CellId, value: ValueId) -> u64 {
    let number = automata.values[cell][value];
    match cells[cell.index()].holds_identity {
        true => 1 << number,
        false => 1 << order[cell.index()].iter().position(|&known| known == number).expect("it is a value"),
    }
}

/// From sets to masks.
struct Masks<'a> {
    automata: &'a Automata,
    cells: &'a [Cell],
    order: &'a [Vec<Value>],
    sets: &'a ValueSets,
}

impl Masks<'_> {
    fn mask(&self, cell: CellId, set: SetId) -> u64 {
        let values: Vec<ValueId> = match set == SetId::ALL {
            true => self.automata.values[cell].ids().collect(),
            false => self.sets.values(cell, set),
        };
        values.into_iter().fold(0, |mask, value| mask | self.bit(cell, value))
    }

    fn bit(&self, cell: CellId, value: ValueId) -> u64 {
        bit(self.automata, self.cells, self.order, cell, value)
    }

    fn kind(
        &self,
        index: usize,
        kind: &crate::dual::setup::ProcessKind,
        owner: u8,
        number: u8,
        names: &dyn Fn(usize, u32) -> u32,
        renamings: &[Permutation],
    ) -> Result<Kind, Refused> {
        let states = kind.is_start.len() as u32;
        let of_state: Vec<u32> = (0..states).map(|state| names(index, state)).collect();
        let mut edges = Vec::new();
        let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
        for (place, edge) in kind.edges.iter().enumerate() {
            let cell = |cell: &CellId| cell.0 as u16;
            let guard = |&(of, set): &(CellId, SetId)| (cell(&of), self.mask(of, set));
            let written = |&(of, value): &(CellId, ValueId)| (cell(&of), self.bit(of, value));
            let effect = match &edge.act {
                Act::Silent => continue,
                Act::Spawn(_) | Act::StoreFence => {
                    return Err("processes are started at run time".to_owned());
                }
                Act::Read(of, set) if self.cells[of.index()].every => {
                    let array = self.cells[of.index()].array.expect("the cell belongs to an array");
                    Effect::Every(array, self.mask(*of, *set))
                }
                Act::Read(of, set) => Effect::Read(cell(of), self.mask(*of, *set)),
                Act::Write(of, value) => Effect::Write(cell(of), self.bit(*of, *value)),
                Act::Fence => Effect::Fence,
                Act::Locked { guard: guards, effect } => Effect::Locked {
                    guard: guards.iter().map(guard).collect(),
                    written: effect.iter().map(written).collect(),
                },
            };
            let mut all = of_state[edge.source.index()];
            let mut look = |(cell, mask): (u16, u64), is_write: bool| {
                let Cell { owner: of, holds_identity, every, .. } = self.cells[cell as usize];
                if every {
                    return Err(
                        "the cells of all others are accessed in another way than by a loop".to_owned()
                    );
                }
                if of > 0 && of != owner {
                    all |= 1 << of;
                }
                if is_write && of != owner && of > 0 && self.is_read_by_loops(cell) && owner > 0 {
                    return Err("processes write cells of others that loops over all others read".to_owned());
                }
                if holds_identity {
                    all |= singled_out(mask, owner, number);
                }
                Ok(())
            };
            match &effect {
                Effect::Read(cell, mask) => look((*cell, *mask), false)?,
                Effect::Write(cell, mask) => look((*cell, *mask), true)?,
                Effect::Locked { guard, written } => {
                    guard.iter().try_for_each(|&of| look(of, false))?;
                    written.iter().try_for_each(|&of| look(of, false))?;
                }
                Effect::Every(..) | Effect::Fence => {}
            }
            numbers.insert(place, edges.len());
            let (source, target) = (edge.source.0, edge.target.0);
            let names = all | of_state[target as usize];
            edges.push(Edge { source, target, effect, names, enters: all });
        }
        let incoming = kind.incoming.iter().map(|all| all.iter().map(|place| numbers[place]).collect());
        let roots = kind.roots.iter().map(|all| all.iter().map(|state| state.0).collect());
        let pending =
            kind.all_pending().map(|(state, cell, set)| ((state.0, cell.0 as u16), self.mask(cell, set)));
        let orbit = (0..states).map(|state| {
            let images = renamings.iter().map(|renaming| {
                u64::from(renaming.kind[index]) << 32 | u64::from(renaming.state[index][state as usize])
            });
            images.min().expect("there is a renaming")
        });
        Ok(Kind {
            owner,
            incoming: incoming.collect(),
            roots: roots.collect(),
            is_start: kind.is_start.iter().copied().collect(),
            only_reads: kind.only_reads.iter().copied().collect(),
            only_reads_and_fences: kind.only_reads_and_fences.iter().copied().collect(),
            pending: pending.collect(),
            orbit: orbit.collect(),
            names: of_state,
            edges,
        })
    }

    /// Whether a cell belongs to an array that has the cell `EVERY`. All of them have.
    fn is_read_by_loops(&self, cell: u16) -> bool {
        self.cells[cell as usize].array.is_some()
    }
}

/// The identities other than the process's own that a set treats differently from most.
fn singled_out(mask: u64, own: u8, number: u8) -> u32 {
    let others = (1..=number).filter(|&id| id != own);
    let (inside, outside): (Vec<u8>, Vec<u8>) = others.partition(|&id| mask >> id & 1 == 1);
    let few = if inside.len() <= outside.len() { inside } else { outside };
    few.iter().fold(0, |set, &id| set | 1 << id)
}
