//! Facts about a program that all backward engines use: letters as the memory model interprets them, cells
//! with at most one writer, and initial memory.

use crate::symbol::Symbol;
use palisade_automata::{Automata, Edge, Letter, Population, StateId, ValueId};
use palisade_base::{Id, IdVec};
use palisade_engine::proof::Held;
use palisade_memory::Model;
use palisade_program::Value;
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
        Letter::Read(..) | Letter::Write(..) | Letter::Locked { .. } => false,
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

    /// The value that the cell must hold, given the states of processes by kind, or `None` if it can hold
    /// several.
    pub fn implied(&self, state_of: impl FnOnce(u32) -> Option<StateId>) -> Option<ValueId> {
        match self {
            Sole::Many => None,
            Sole::Constant(value) => Some(*value),
            Sole::Writer(kind, values) => match values[state_of(*kind)?][..] {
                [value] => Some(value),
                _ => None,
            },
        }
    }

    /// Whether the cell can hold the value, given the states of processes by kind.
    pub fn allows(&self, value: ValueId, state_of: impl FnOnce(u32) -> Option<StateId>) -> bool {
        match self {
            Sole::Many => true,
            Sole::Constant(only) => *only == value,
            Sole::Writer(kind, values) => state_of(*kind).is_none_or(|state| values[state].contains(&value)),
        }
    }
}

/// What the only writers of cells guarantee, for a proof.
pub(crate) fn held(soles: &IdVec<CellId, Sole>) -> Vec<Held> {
    let held = soles.iter_enumerated().filter_map(|(cell, sole)| match sole {
        Sole::Many | Sole::Constant(_) => None,
        Sole::Writer(kind, values) => {
            let values = values.iter().map(|values| values.iter().map(|value| value.0).collect()).collect();
            Some(Held { cell: cell.0, kind: *kind, values })
        }
    });
    held.collect()
}

/// The memory that an element requires (`known`), extended by the values of its letters, which all come from
/// initial memory. `None` if a letter is an own store, if two values contradict each other, or if a value is
/// not an initial one.
pub(crate) fn initial_values<'s>(
    known: impl Iterator<Item = Option<ValueId>>,
    letters: impl Iterator<Item = &'s Symbol>,
    initial: &IdVec<CellId, usize>,
) -> Option<Vec<Option<ValueId>>> {
    let mut memory: Vec<Option<ValueId>> = known.collect();
    for symbol in letters {
        let content = &mut memory[symbol.cell().index()];
        match *content {
            _ if symbol.is_own() => return None,
            Some(value) if value != symbol.value() => return None,
            _ => *content = Some(symbol.value()),
        }
    }
    let is_initial = |(index, content): (usize, &Option<ValueId>)| {
        content.is_none_or(|value| value.index() < initial[CellId::from_index(index)])
    };
    memory.iter().enumerate().all(is_initial).then_some(memory)
}

/// Concrete initial memory. Cells whose values do not matter hold their first one.
pub(crate) fn concrete(automata: &Automata, memory: &[Option<ValueId>]) -> Vec<Value> {
    let value = |(index, content): (usize, &Option<ValueId>)| {
        let values = automata.values[CellId::from_index(index)].as_slice();
        content.map_or(values[0], |value| values[value.index()])
    };
    memory.iter().enumerate().map(value).collect()
}
