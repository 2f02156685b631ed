//! The result of the search as an independently checkable proof.

use super::element::{Element, Letter, Word};
use super::setup::Setup;
use palisade_engine::{Proof, proof};
use palisade_program::Value;
use rustc_hash::FxHashMap;

/// The proof that consists of these elements.
pub(crate) fn proof(setup: &Setup, elements: &[Element]) -> Proof {
    let mut writer = Writer { setup, sets: Vec::new(), numbers: FxHashMap::default() };
    let mut elements: Vec<proof::Named> = elements.iter().map(|element| writer.element(element)).collect();
    elements.sort_unstable();
    Proof::Identities(proof::Identities { sets: writer.sets, elements, ..setup.facts.clone() })
}

struct Writer<'s> {
    setup: &'s Setup,
    sets: Vec<Vec<Value>>,
    numbers: FxHashMap<Vec<Value>, u32>,
}

impl Writer<'_> {
    fn set(&mut self, cell: usize, mask: u64) -> u32 {
        let values = self.setup.values_of(cell, mask);
        let next = self.sets.len() as u32;
        let number = *self.numbers.entry(values.clone()).or_insert(next);
        if number == next {
            self.sets.push(values);
        }
        number
    }

    fn element(&mut self, element: &Element) -> proof::Named {
        let mut memory = Vec::new();
        for (cell, &mask) in element.memory.iter().enumerate() {
            if mask != self.setup.full[cell] {
                memory.push((cell as u32, self.set(cell, mask)));
            }
        }
        let mut processes = Vec::new();
        for process in &element.processes {
            let word = self.word(&process.word);
            processes.push(proof::NamedProcess { kind: process.kind.into(), state: process.state, word });
        }
        proof::Named { identities: element.named.into(), memory, processes }
    }

    fn word(&mut self, word: &Word) -> Vec<Vec<proof::SetLetter>> {
        let mut groups: Vec<Vec<proof::SetLetter>> = Vec::new();
        for &Letter { cell, own, joined, mask } in word {
            let letter = proof::SetLetter { own, cell: cell.into(), values: self.set(cell.into(), mask) };
            match groups.last_mut().filter(|_| joined) {
                Some(group) => group.push(letter),
                None => groups.push(vec![letter]),
            }
        }
        groups
    }
}
