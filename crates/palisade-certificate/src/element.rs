//! Elements as the checker sees them, and the order between them.

use crate::Refusal;
use crate::flow::Flow;
use crate::matching::each_has_its_own;
use palisade_engine::proof::{Element, Message, Process};

/// Elements with more processes than this are rejected, since comparing them needs a stack of that depth.
pub(crate) const MAX_PROCESSES: usize = 1 << 10;

/// A set of configurations: memory as far as it is known, and at least these processes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Config {
    pub memory: Vec<Option<u32>>,
    pub processes: Vec<Process>,
}

impl Config {
    /// Any memory, no processes.
    pub fn open(flow: &Flow) -> Config {
        Config { memory: vec![None; flow.values.len()], processes: Vec::new() }
    }

    /// Reads an element, and checks that everything it names exists.
    pub fn read(flow: &Flow, element: &Element) -> Result<Config, Refusal> {
        let unfit = |what: &str| Err(Refusal::Unfit(format!("an element names {what} that does not exist")));
        let exists =
            |cell: u32, value: u32| flow.values.get(cell as usize).is_some_and(|&count| value < count);
        let mut config = Config::open(flow);
        for &(cell, value) in &element.memory {
            if !exists(cell, value) || config.memory[cell as usize].is_some() {
                return unfit("a value in memory");
            }
            config.memory[cell as usize] = Some(value);
        }
        if element.processes.len() > MAX_PROCESSES {
            return Err(Refusal::Unfit("an element names too many processes".into()));
        }
        for process in &element.processes {
            let kind = flow.kinds.get(process.kind as usize);
            if kind.is_none_or(|kind| process.state as usize >= kind.into.len()) {
                return unfit("a state");
            }
            if process.word.iter().any(|message| !exists(message.cell, message.value)) {
                return unfit("a message");
            }
            if !is_well_formed(&process.word) {
                return Err(Refusal::Unfit(
                    "a word has two own letters on a cell, or one that is newer than a plain one".into(),
                ));
            }
        }
        config.processes = element.processes.clone();
        config.processes.sort();
        Ok(config)
    }

    /// The element in the form of a proof.
    pub fn written(self) -> Element {
        let named = self.memory.iter().enumerate();
        let memory = named.filter_map(|(cell, value)| Some((cell as u32, (*value)?))).collect();
        Element { memory, processes: self.processes }
    }

    /// The automata and classes of its processes, sorted.
    pub fn keys(&self) -> Vec<(u32, u32)> {
        self.processes.iter().map(|process| (process.kind, process.state)).collect()
    }
}

/// At most one own letter on each cell, and plain letters on the cell only newer than it.
fn is_well_formed(word: &[Message]) -> bool {
    word.iter()
        .enumerate()
        .all(|(place, letter)| !letter.own || word[place + 1..].iter().all(|older| older.cell != letter.cell))
}

/// Whether the letters of `a` can be found in `b`, in order.
fn embeds(a: &[Message], b: &[Message]) -> bool {
    let mut next = 0;
    for letter in b {
        if next < a.len() && a[next] == *letter {
            next += 1;
        }
    }
    next == a.len()
}

/// Whether the processes of `a` can be assigned to different processes of `b`, each with the same state and
/// at least the same letters.
pub(crate) fn processes_embed(a: &[Process], b: &[Process]) -> bool {
    each_has_its_own(a.len(), b.len(), &|process, candidate| {
        let (process, candidate) = (&a[process], &b[candidate]);
        (candidate.kind, candidate.state) == (process.kind, process.state)
            && embeds(&process.word, &candidate.word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_found_in_order_with_the_same_state() {
        let process = |kind, state, cells: &[u32]| {
            let word = cells.iter().map(|&cell| Message { own: false, cell, value: 0 }).collect();
            vec![Process { kind, state, word }]
        };
        assert!(processes_embed(&process(0, 0, &[1, 2]), &process(0, 0, &[1, 3, 2])));
        assert!(!processes_embed(&process(0, 0, &[1, 2]), &process(0, 0, &[2, 1])));
        assert!(!processes_embed(&process(0, 0, &[1, 1]), &process(0, 0, &[1, 2])));
        assert!(!processes_embed(&process(0, 0, &[1]), &process(0, 0, &[])));
        assert!(!processes_embed(&process(0, 0, &[]), &process(0, 1, &[])));
        assert!(!processes_embed(&process(0, 0, &[]), &process(1, 0, &[])));
    }
}
