//! What a set lacks, in the form of a proof. When looking for gaps in the checker, it can be fed back as a
//! new element.

use palisade_engine::proof::{Crowds, Element, Named, Process, SetLetter, Snapshot};
use palisade_program::Value;
use std::fmt;

/// Configurations that should be in a set but are not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// From a load-buffer proof, with the sets that the element names.
    LoadBuffers(Element, Vec<Vec<u32>>),
    /// From a single-buffer proof, with the sets that the element names.
    SingleBuffer(Snapshot, Vec<Vec<u32>>),
    /// From a proof by numbers of threads: one element, with the contents of memory and the thread states it
    /// names.
    Crowd(Crowds),
    /// From a proof by sets of stacks, in words.
    Stacks(String),
    /// From a proof for any number of processes with identities, with the sets that the element names.
    Identities(Named, Vec<Vec<Value>>),
    /// From such a proof, in words: it has to name more identities than there are.
    TooMany(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::LoadBuffers(element, sets) => show(f, element, sets),
            Missing::SingleBuffer(element, sets) => write!(f, "{element:?} with the sets {sets:?}"),
            Missing::Crowd(crowd) => write!(f, "{:?} with {:?}", crowd.elements, crowd.threads),
            Missing::Identities(element, sets) => write!(f, "{element:?} with the sets {sets:?}"),
            Missing::Stacks(words) | Missing::TooMany(words) => f.write_str(words),
        }
    }
}

fn show(f: &mut fmt::Formatter<'_>, element: &Element, sets: &[Vec<u32>]) -> fmt::Result {
    let content = |cell: u32, set: u32| match &sets[set as usize][..] {
        [value] => format!("c{cell}={value}"),
        values => {
            let values: Vec<String> = values.iter().map(u32::to_string).collect();
            format!("c{cell} in {{{}}}", values.join(", "))
        }
    };
    let memory: Vec<String> = element.memory.iter().map(|&(cell, set)| content(cell, set)).collect();
    let process = |process: &Process| {
        let letter =
            |l: &SetLetter| format!("{}{}", if l.own { "own " } else { "" }, content(l.cell, l.values));
        let word: Vec<String> = process.word.iter().map(letter).collect();
        format!("automaton {} at {} with [{}]", process.kind, process.state, word.join(", "))
    };
    let processes: Vec<String> = element.processes.iter().map(process).collect();
    write!(f, "memory [{}]; {}", memory.join(", "), processes.join("; "))
}
