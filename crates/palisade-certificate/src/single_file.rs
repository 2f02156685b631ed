//! The file format of single-buffer proofs: numbers in the order of the fields of [`palisade_engine::proof`].

use crate::file::Flag;
use palisade_engine::proof::{Cell, Message, Queue, SingleBuffer, Snapshot, Viewer};
use serde::{Deserialize, Serialize};

/// The proof.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SingleBody {
    elements: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Cell, value, and whether it is settled.
    memory: Vec<(u32, u32, Flag)>,
    processes: Vec<Actor>,
}

/// Automaton, state, letters (own, cell, value; oldest first), queues (cell, closed, values).
type Actor = (u32, Option<u32>, Vec<(Flag, u32, u32)>, Vec<(u32, Flag, Vec<u32>)>);

impl SingleBody {
    pub fn of(proof: &SingleBuffer) -> SingleBody {
        let actor = |process: &Viewer| {
            let letter = |letter: &Message| (Flag(letter.own), letter.cell, letter.value);
            let queue = |queue: &Queue| (queue.cell, Flag(queue.closed), queue.values.clone());
            let word = process.word.iter().map(letter).collect();
            (process.kind, process.state, word, process.queues.iter().map(queue).collect())
        };
        let entry = |element: &Snapshot| Entry {
            memory: element.memory.iter().map(|cell| (cell.cell, cell.value, Flag(cell.settled))).collect(),
            processes: element.processes.iter().map(actor).collect(),
        };
        SingleBody { elements: proof.elements.iter().map(entry).collect() }
    }

    pub fn proof(self) -> SingleBuffer {
        let process = |(kind, state, word, queues): Actor| Viewer {
            kind,
            state,
            word: word.into_iter().map(|(Flag(own), cell, value)| Message { own, cell, value }).collect(),
            queues: queues
                .into_iter()
                .map(|(cell, Flag(closed), values)| Queue { cell, closed, values })
                .collect(),
        };
        let element = |entry: Entry| Snapshot {
            memory: entry
                .memory
                .into_iter()
                .map(|(cell, value, Flag(settled))| Cell { cell, value, settled })
                .collect(),
            processes: entry.processes.into_iter().map(process).collect(),
        };
        SingleBuffer { elements: self.elements.into_iter().map(element).collect() }
    }
}
