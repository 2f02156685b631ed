//! The search's result as an independently checkable proof: the invariants of [`super::setup`] and the
//! minimal elements.

use super::element::Element;
use super::process::Process;
use super::setup::Setup;
use crate::facts::held;
use crate::symbol::Symbol;
use crate::values::{SetId, SetList};
use palisade_automata::Merged;
use palisade_base::Id;
use palisade_engine::{Proof, proof};
use palisade_program::running::CellId;

/// A proof under construction.
pub(crate) struct Writer<'s> {
    setup: &'s Setup,
    sets: SetList,
    parts: Vec<proof::Part>,
}

impl<'s> Writer<'s> {
    pub fn new(setup: &'s Setup) -> Writer<'s> {
        Writer { setup, sets: SetList::default(), parts: Vec::new() }
    }

    /// Adds a closed set.
    pub fn add(&mut self, tracked: Option<Vec<u32>>, elements: &[Element]) {
        let mut elements: Vec<proof::Element> =
            elements.iter().map(|element| self.element(element)).collect();
        elements.sort_unstable();
        self.parts.push(proof::Part { tracked, elements });
    }

    /// The proof consisting of the closed sets.
    pub fn proof(self, merged: &Merged) -> Proof {
        let mut pending: Vec<proof::Pending> = Vec::new();
        for (kind, of_kind) in self.setup.kinds.iter().enumerate() {
            for (state, cell, set) in of_kind.all_pending() {
                pending.extend(self.setup.sets.values(cell, set).into_iter().map(|value| proof::Pending {
                    kind: kind as u32,
                    state: state.0,
                    cell: cell.0,
                    value: value.0,
                }));
            }
        }
        pending.sort_unstable();
        let classes =
            merged.classes.iter().map(|classes| classes.iter().map(|class| class.0).collect()).collect();
        let Writer { setup, sets, parts } = self;
        let (held, sets) = (held(&setup.sole), sets.sets);
        Proof::LoadBuffers(proof::LoadBuffers { rewritten: true, classes, pending, held, sets, parts })
    }

    fn set(&mut self, cell: CellId, set: SetId) -> u32 {
        self.sets.number(&self.setup.sets, cell, set)
    }

    fn element(&mut self, element: &Element) -> proof::Element {
        let known = element.memory.iter().enumerate().filter(|(_, set)| **set != SetId::ALL);
        let memory = known.map(|(cell, &set)| (cell as u32, self.set(CellId::from_index(cell), set)));
        let memory = memory.collect();
        let mut letter = |symbol: &Symbol| proof::SetLetter {
            own: symbol.is_own(),
            cell: symbol.cell().0,
            values: self.set(symbol.cell(), symbol.set()),
        };
        let mut process = |process: &Process| proof::Process {
            kind: process.kind,
            state: process.state.0,
            word: process.word.iter().map(&mut letter).collect(),
        };
        proof::Element { memory, processes: element.processes.iter().map(&mut process).collect() }
    }
}
