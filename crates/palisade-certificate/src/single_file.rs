//! The file format of single-buffer proofs: numbers in the order of the fields of [`palisade_engine::proof`].
//! Without sets, as in version 2, the set with each number is that of the value with this number, and every state is
//! a class by itself.

use crate::file::{Flag, singles};
use palisade_engine::proof::{Cell, Queue, SetLetter, SingleBuffer, Snapshot, Viewer};
use serde::{Deserialize, Serialize};

/// The proof.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SingleBody {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rewritten: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sets: Option<Vec<Vec<u32>>>,
    elements: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Cell, set, and whether it is settled.
    memory: Vec<(u32, u32, Flag)>,
    processes: Vec<Actor>,
}

/// Automaton, class, letters (own, cell, set; oldest first), queues (cell, closed, sets).
type Actor = (u32, Option<u32>, Vec<(Flag, u32, u32)>, Vec<(u32, Flag, Vec<u32>)>);

impl SingleBody {
    pub fn of(proof: &SingleBuffer) -> SingleBody {
        let actor = |process: &Viewer| {
            let letter = |letter: &SetLetter| (Flag(letter.own), letter.cell, letter.values);
            let queue = |queue: &Queue| (queue.cell, Flag(queue.closed), queue.values.clone());
            let word = process.word.iter().map(letter).collect();
            (process.kind, process.state, word, process.queues.iter().map(queue).collect())
        };
        let entry = |element: &Snapshot| Entry {
            memory: element.memory.iter().map(|cell| (cell.cell, cell.values, Flag(cell.settled))).collect(),
            processes: element.processes.iter().map(actor).collect(),
        };
        SingleBody {
            rewritten: proof.rewritten,
            classes: proof.classes.clone(),
            sets: Some(proof.sets.clone()),
            elements: proof.elements.iter().map(entry).collect(),
        }
    }

    /// Whether it is in the form of a version with sets.
    pub fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Whether it has something that versions without sets do not have.
    pub fn is_rewritten_or_merged(&self) -> bool {
        self.rewritten || !self.classes.is_empty()
    }

    pub fn proof(self) -> SingleBuffer {
        let process = |(kind, state, word, queues): Actor| Viewer {
            kind,
            state,
            word: word.into_iter().map(|(Flag(own), cell, values)| SetLetter { own, cell, values }).collect(),
            queues: queues
                .into_iter()
                .map(|(cell, Flag(closed), values)| Queue { cell, closed, values })
                .collect(),
        };
        let element = |entry: Entry| Snapshot {
            memory: entry
                .memory
                .into_iter()
                .map(|(cell, values, Flag(settled))| Cell { cell, values, settled })
                .collect(),
            processes: entry.processes.into_iter().map(process).collect(),
        };
        let elements: Vec<Snapshot> = self.elements.into_iter().map(element).collect();
        let sets = self.sets.unwrap_or_else(|| {
            let processes = || elements.iter().flat_map(|element| &element.processes);
            let letters = processes().flat_map(|process| &process.word).map(|letter| letter.values);
            let entries = processes().flat_map(|process| &process.queues).flat_map(|queue| &queue.values);
            let known = elements.iter().flat_map(|element| &element.memory).map(|cell| cell.values);
            singles(letters.chain(entries.copied()).chain(known))
        });
        SingleBuffer { rewritten: self.rewritten, classes: self.classes, sets, elements }
    }
}
