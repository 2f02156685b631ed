//! The file format of proofs for any number of processes with identities: numbers in the order of the fields of
//! [`palisade_engine::proof`].

use crate::file::Flag;
use palisade_engine::proof::{Held, Identities, Named, NamedProcess, Pending, SetLetter};
use palisade_program::Value;
use serde::{Deserialize, Serialize};

/// The proof.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdentitiesBody {
    number: u32,
    classes: Vec<Vec<u32>>,
    pending: Vec<(u32, u32, u32, u32)>,
    held: Vec<(u32, u32, Vec<Vec<u32>>)>,
    sets: Vec<Vec<Value>>,
    named: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    identities: u32,
    memory: Vec<(u32, u32)>,
    processes: Vec<Actor>,
}

/// Automaton, class, and groups of letters (own, cell, set), newest group first.
type Actor = (u32, u32, Vec<Vec<(Flag, u32, u32)>>);

impl IdentitiesBody {
    pub fn of(proof: &Identities) -> IdentitiesBody {
        let letter = |letter: &SetLetter| (Flag(letter.own), letter.cell, letter.values);
        let actor = |process: &NamedProcess| {
            let word = process.word.iter().map(|group| group.iter().map(letter).collect());
            (process.kind, process.state, word.collect())
        };
        let entry = |element: &Named| Entry {
            identities: element.identities,
            memory: element.memory.clone(),
            processes: element.processes.iter().map(actor).collect(),
        };
        IdentitiesBody {
            number: proof.number,
            classes: proof.classes.clone(),
            pending: proof.pending.iter().map(|p| (p.kind, p.state, p.cell, p.value)).collect(),
            held: proof.held.iter().map(|held| (held.cell, held.kind, held.values.clone())).collect(),
            sets: proof.sets.clone(),
            named: proof.elements.iter().map(entry).collect(),
        }
    }

    pub fn proof(self) -> Identities {
        let letter = |(Flag(own), cell, values)| SetLetter { own, cell, values };
        let process = |(kind, state, word): Actor| {
            let group = |group: Vec<_>| group.into_iter().map(letter).collect();
            NamedProcess { kind, state, word: word.into_iter().map(group).collect() }
        };
        let element = |entry: Entry| Named {
            identities: entry.identities,
            memory: entry.memory,
            processes: entry.processes.into_iter().map(process).collect(),
        };
        let pending = |(kind, state, cell, value)| Pending { kind, state, cell, value };
        Identities {
            number: self.number,
            classes: self.classes,
            pending: self.pending.into_iter().map(pending).collect(),
            held: self.held.into_iter().map(|(cell, kind, values)| Held { cell, kind, values }).collect(),
            sets: self.sets,
            elements: self.named.into_iter().map(element).collect(),
        }
    }
}
