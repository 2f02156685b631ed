//! The search's result as an independently checkable proof.
//!
//! Under TSO and SC an element with a word for each process is also an element of the load-buffer semantics:
//! its letters are messages that the process will read. So the proof is a load-buffer proof. Under PSO it
//! consists of the minimal elements only, and the checker repeats the forward analysis.

use super::element::{Content, Element, End, Process};
use super::setup::{Setup, Sharing};
use crate::facts::held;
use crate::symbol::Symbol;
use palisade_engine::{Proof, proof};
use palisade_memory::Model;

/// The proof consisting of a closed set.
pub(crate) fn proof<'e>(setup: &Setup, elements: impl Iterator<Item = &'e Element>) -> Proof {
    assert_eq!(setup.sharing, Sharing::PerProcess, "proofs are about each process's letters by themselves");
    if setup.model == Model::Pso {
        let mut elements: Vec<proof::Snapshot> = elements.map(snapshot).collect();
        elements.sort_unstable();
        return Proof::SingleBuffer(proof::SingleBuffer { elements });
    }
    let mut pending: Vec<proof::Pending> = Vec::new();
    for (kind, of_kind) in setup.kinds.iter().enumerate() {
        pending.extend(of_kind.own().map(|(state, cell, value)| proof::Pending {
            kind: kind as u32,
            state: state.0,
            cell: cell.0,
            value: value.0,
        }));
    }
    pending.sort_unstable();
    let classes = setup.kinds.iter().map(|kind| (0..kind.incoming.len() as u32).collect()).collect();
    let mut elements: Vec<proof::Element> = elements.map(load_buffers).collect();
    elements.sort_unstable();
    let parts = vec![proof::Part { tracked: None, elements }];
    // The set of one value has the number of the value.
    let words = elements_of(&parts).flat_map(|element| &element.processes).flat_map(|process| &process.word);
    let known = elements_of(&parts).flat_map(|element| &element.memory).map(|&(_, value)| value);
    let most = words.map(|letter| letter.values).chain(known).max();
    let sets = (0..most.map_or(0, |most| most + 1)).map(|value| vec![value]).collect();
    let held = held(&setup.sole);
    Proof::LoadBuffers(proof::LoadBuffers { rewritten: false, classes, pending, held, sets, parts })
}

fn elements_of(parts: &[proof::Part]) -> impl Iterator<Item = &proof::Element> {
    parts.iter().flat_map(|part| &part.elements)
}

fn message(symbol: &Symbol) -> proof::Message {
    proof::Message { own: symbol.is_own(), cell: symbol.cell().0, value: symbol.value().0 }
}

fn letter(symbol: &Symbol) -> proof::SetLetter {
    proof::SetLetter { own: symbol.is_own(), cell: symbol.cell().0, values: symbol.value().0 }
}

fn load_buffers(element: &Element) -> proof::Element {
    let process = |process: &Process| proof::Process {
        kind: process.kind,
        state: process.state.expect("only under PSO a process may be anywhere").0,
        word: process.word.iter().rev().map(letter).collect(),
    };
    let known = element.memory.iter().enumerate();
    proof::Element {
        memory: known.filter_map(|(cell, content)| Some((cell as u32, content.value()?.0))).collect(),
        processes: element.processes.iter().map(process).collect(),
    }
}

fn snapshot(element: &Element) -> proof::Snapshot {
    let cell = |(cell, content): (usize, &Content)| {
        let value = content.value()?.0;
        Some(proof::Cell { cell: cell as u32, value, settled: content.is_settled() })
    };
    let queue = |queue: &super::element::Queue| proof::Queue {
        cell: queue.cell.0,
        closed: queue.end == End::Closed,
        values: queue.values.iter().map(|value| value.0).collect(),
    };
    let process = |process: &Process| proof::Viewer {
        kind: process.kind,
        state: process.state.map(|state| state.0),
        word: process.word.iter().map(message).collect(),
        queues: process.queues.iter().map(queue).collect(),
    };
    proof::Snapshot {
        memory: element.memory.iter().enumerate().filter_map(cell).collect(),
        processes: element.processes.iter().map(process).collect(),
    }
}
