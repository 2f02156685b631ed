//! Facts about a program that all backward engines use: letters as the memory model interprets them, and cells
//! with at most one writer.

use crate::values::{SetId, ValueSets};
use palisade_automata::{Automata, Edge, Letter, Population, StateId, ValueId};
use palisade_base::IdVec;
use palisade_engine::proof;
use palisade_memory::Model;
use palisade_program::running::CellId;

/// The letter as the model interprets it. Under TSO store-store fences do nothing; under SC every access is
/// locked.
pub(crate) fn adapt(edge: &Edge, model: Model) -> Edge {
    let letter = match (model, &edge.letter) {
        (_, letter) if is_silent(letter, model) => Letter::Silent,
        (Model::Sc, Letter::Read(cell, value)) => {
            Letter::Locked { guard: vec![(*cell, *value)], effect: Vec::new() }
        }
        (Model::Sc, Letter::Write(cell, value)) => {
            Letter::Locked { guard: Vec::new(), effect: vec![(*cell, *value)] }
        }
        (_, letter) => letter.clone(),
    };
    Edge { letter, ..edge.clone() }
}

/// Whether a letter has no effect under the model.
pub(crate) fn is_silent(letter: &Letter, model: Model) -> bool {
    match letter {
        Letter::Silent => true,
        Letter::StoreFence => model != Model::Pso,
        Letter::Fence => model == Model::Sc,
        Letter::Spawn(_) | Letter::Read(..) | Letter::Write(..) | Letter::Locked { .. } => false,
    }
}

/// Whether a population has that many processes.
pub(crate) fn is_at_most(processes: usize, population: Population) -> bool {
    match population {
        Population::Fixed(most) => processes <= most as usize,
        Population::Any => true,
    }
}

/// The values that an edge stores.
pub(crate) fn writes(letter: &Letter) -> Vec<(CellId, ValueId)> {
    match letter {
        Letter::Write(cell, value) => vec![(*cell, *value)],
        Letter::Locked { effect, .. } => effect.clone(),
        _ => Vec::new(),
    }
}

/// The writers of a cell, in the cases that are distinguished.
#[derive(Clone, Debug)]
pub(crate) enum Sole {
    /// Several processes.
    Many,
    /// No process. The cell has one initial value.
    Constant(ValueId),
    /// One process, with the values that the cell can hold at each of its states: in memory, or at the end of
    /// the buffer.
    Writer(u32, IdVec<StateId, Vec<ValueId>>),
}

impl Sole {
    /// The writers of a cell among kinds of processes, each with its number of processes and its edges.
    /// `held` gives the values at the states of the only writer.
    pub fn new<'e>(
        automata: &Automata,
        cell: CellId,
        kinds: impl Iterator<Item = (Population, &'e [Edge])>,
        held: impl FnOnce(usize) -> IdVec<StateId, Vec<ValueId>>,
    ) -> Sole {
        let writes_it = |edge: &Edge| writes(&edge.letter).iter().any(|&(written, _)| written == cell);
        let writers: Vec<(usize, Population)> = kinds
            .enumerate()
            .filter(|(_, (_, edges))| edges.iter().any(writes_it))
            .map(|(kind, (population, _))| (kind, population))
            .collect();
        match writers[..] {
            [] if automata.initial[cell] == 1 => Sole::Constant(ValueId(0)),
            [(writer, Population::Fixed(1))] => Sole::Writer(writer as u32, held(writer)),
            _ => Sole::Many,
        }
    }
}

/// What a cell can hold: in memory, or at the end of the buffer.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// Any of its values.
    Anything,
    /// Always this.
    Always(SetId),
    /// By the states of its only writer. `None` if the writer never gets there.
    ByWriter(u32, IdVec<StateId, Option<SetId>>),
}

impl Held {
    pub fn new(sole: &Sole, cell: CellId, sets: &ValueSets) -> Held {
        match sole {
            Sole::Many => Held::Anything,
            Sole::Constant(value) => Held::Always(sets.single(cell, *value)),
            Sole::Writer(kind, values) => {
                let sets = values.iter().map(|values| sets.of(cell, values.iter().copied()));
                Held::ByWriter(*kind, sets.collect())
            }
        }
    }

    /// The values that the cell can hold, given the states of processes by kind. `None` if the writer is never in
    /// that state.
    pub fn possible(&self, state_of: impl FnOnce(u32) -> Option<StateId>) -> Option<SetId> {
        match self {
            Held::Anything => Some(SetId::ALL),
            Held::Always(set) => Some(*set),
            Held::ByWriter(kind, sets) => state_of(*kind).map_or(Some(SetId::ALL), |state| sets[state]),
        }
    }
}

/// What the only writers of cells guarantee, for a proof.
pub(crate) fn held(soles: &IdVec<CellId, Sole>) -> Vec<proof::Held> {
    let held = soles.iter_enumerated().filter_map(|(cell, sole)| match sole {
        Sole::Many | Sole::Constant(_) => None,
        Sole::Writer(kind, values) => {
            let values = values.iter().map(|values| values.iter().map(|value| value.0).collect()).collect();
            Some(proof::Held { cell: cell.0, kind: *kind, values })
        }
    });
    held.collect()
}
