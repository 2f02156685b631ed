//! The search's result as an independently checkable proof.
//!
//! Under TSO and SC an element with a word for each process is also an element of the load-buffer semantics:
//! its letters are messages that the process will read. So the proof is a load-buffer proof. Under PSO it
//! consists of the needed elements only, and the checker repeats the forward analysis.

use super::element::{Content, Element, End, Process, Queue};
use super::setup::{Setup, Sharing};
use crate::facts::held;
use crate::symbol::Symbol;
use crate::values::{SetId, SetList};
use palisade_automata::Merged;
use palisade_base::Id;
use palisade_engine::{Proof, proof};
use palisade_memory::Model;
use palisade_program::running::CellId;

/// The proof consisting of a closed set.
pub(crate) fn proof(setup: &Setup, merged: &Merged, elements: &[Element]) -> Proof {
    assert_eq!(setup.sharing, Sharing::PerProcess, "proofs are about each process's letters by themselves");
    let classes =
        merged.classes.iter().map(|classes| classes.iter().map(|class| class.0).collect()).collect();
    let mut writer = Writer { setup, sets: SetList::default() };
    if setup.model == Model::Pso {
        let mut elements: Vec<proof::Snapshot> =
            elements.iter().map(|element| writer.snapshot(element)).collect();
        elements.sort_unstable();
        let sets = writer.sets.sets;
        return Proof::SingleBuffer(proof::SingleBuffer { rewritten: true, classes, sets, elements });
    }
    let mut pending: Vec<proof::Pending> = Vec::new();
    for (kind, of_kind) in setup.kinds.iter().enumerate() {
        for (state, cell, set) in of_kind.all_own() {
            pending.extend(setup.sets.values(cell, set).into_iter().map(|value| proof::Pending {
                kind: kind as u32,
                state: state.0,
                cell: cell.0,
                value: value.0,
            }));
        }
    }
    pending.sort_unstable();
    let mut elements: Vec<proof::Element> =
        elements.iter().map(|element| writer.load_buffers(element)).collect();
    elements.sort_unstable();
    let parts = vec![proof::Part { tracked: None, elements }];
    let (held, sets) = (held(&setup.sole), writer.sets.sets);
    Proof::LoadBuffers(proof::LoadBuffers { rewritten: true, classes, pending, held, sets, parts })
}

struct Writer<'s> {
    setup: &'s Setup,
    sets: SetList,
}

impl Writer<'_> {
    fn set(&mut self, cell: CellId, set: SetId) -> u32 {
        self.sets.number(&self.setup.sets, cell, set)
    }

    fn letter(&mut self, symbol: &Symbol) -> proof::SetLetter {
        let values = self.set(symbol.cell(), symbol.set());
        proof::SetLetter { own: symbol.is_own(), cell: symbol.cell().0, values }
    }

    fn load_buffers(&mut self, element: &Element) -> proof::Element {
        let known = element.memory.iter().enumerate().filter(|(_, content)| **content != Content::ANY);
        let memory = known
            .map(|(cell, content)| (cell as u32, self.set(CellId::from_index(cell), content.set())))
            .collect();
        let mut process = |process: &Process| proof::Process {
            kind: process.kind,
            state: process.state.expect("only under PSO a process may be anywhere").0,
            word: process.word.iter().rev().map(|symbol| self.letter(symbol)).collect(),
        };
        proof::Element { memory, processes: element.processes.iter().map(&mut process).collect() }
    }

    fn snapshot(&mut self, element: &Element) -> proof::Snapshot {
        let known = element.memory.iter().enumerate().filter(|(_, content)| **content != Content::ANY);
        let memory = known
            .map(|(cell, content)| proof::Cell {
                cell: cell as u32,
                values: self.set(CellId::from_index(cell), content.set()),
                settled: content.is_settled(),
            })
            .collect();
        proof::Snapshot {
            memory,
            processes: element.processes.iter().map(|process| self.viewer(process)).collect(),
        }
    }

    fn viewer(&mut self, process: &Process) -> proof::Viewer {
        let mut queue = |queue: &Queue| proof::Queue {
            cell: queue.cell.0,
            closed: queue.end == End::Closed,
            values: queue.values.iter().map(|&set| self.set(queue.cell, set)).collect(),
        };
        let queues = process.queues.iter().map(&mut queue).collect();
        proof::Viewer {
            kind: process.kind,
            state: process.state.map(|state| state.0),
            word: process.word.iter().map(|symbol| self.letter(symbol)).collect(),
            queues,
        }
    }
}
