//! The search's result as an independently checkable proof: the invariants of [`super::setup`] and the
//! minimal elements.

use super::element::{Element, Process};
use super::setup::Setup;
use crate::facts::held;
use crate::symbol::Symbol;
use palisade_automata::Merged;
use palisade_base::Id;
use palisade_engine::{Proof, proof};

/// One closed set of a proof.
pub(crate) fn part(tracked: Option<Vec<u32>>, elements: Vec<&Element>) -> proof::Part {
    let mut elements: Vec<proof::Element> = elements.into_iter().map(element).collect();
    elements.sort_unstable();
    proof::Part { tracked, elements }
}

/// The proof consisting of closed sets.
pub(crate) fn proof(setup: &Setup, merged: &Merged, parts: Vec<proof::Part>) -> Proof {
    let mut pending: Vec<proof::Pending> = Vec::new();
    for (kind, of_kind) in setup.kinds.iter().enumerate() {
        pending.extend(of_kind.pending().map(|(state, symbol)| proof::Pending {
            kind: kind as u32,
            state: state.0,
            cell: symbol.cell().0,
            value: symbol.value().0,
        }));
    }
    pending.sort_unstable();
    let classes =
        merged.classes.iter().map(|classes| classes.iter().map(|class| class.0).collect()).collect();
    Proof::LoadBuffers(proof::LoadBuffers { classes, pending, held: held(&setup.sole), parts })
}

fn element(element: &Element) -> proof::Element {
    let known = element.memory.iter().enumerate();
    let message = |symbol: &Symbol| proof::Message {
        own: symbol.is_own(),
        cell: symbol.cell().0,
        value: symbol.value().0,
    };
    let process = |process: &Process| proof::Process {
        kind: process.kind,
        state: process.state.0,
        word: process.word.iter().map(message).collect(),
    };
    proof::Element {
        memory: known
            .filter_map(|(cell, content)| Some((cell as u32, content.value()?.index() as u32)))
            .collect(),
        processes: element.processes.iter().map(process).collect(),
    }
}
