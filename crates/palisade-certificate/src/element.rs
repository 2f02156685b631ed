//! Elements as the checker sees them, and the order between them.

use crate::Refusal;
use crate::flow::Flow;
use crate::matching::each_has_its_own;
use crate::values::Values;
use palisade_engine::proof::{self, Element, SetLetter};

/// Elements with more processes than this are rejected, since comparing them needs a stack of that depth.
pub(crate) const MAX_PROCESSES: usize = 1 << 10;

/// A set of configurations: memory as far as it is known, and at least these processes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Config {
    /// For each cell, the values of which it holds one; `None` for any.
    pub memory: Vec<Option<Values>>,
    pub processes: Vec<Process>,
}

/// A process: its automaton, its class of states, and what its load buffer holds, newest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Process {
    pub kind: u32,
    pub state: u32,
    pub word: Vec<Letter>,
}

/// A message with one of these values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Letter {
    pub own: bool,
    pub cell: u32,
    pub values: Values,
}

impl Config {
    /// Any memory, no processes.
    pub fn open(flow: &Flow) -> Config {
        Config { memory: vec![None; flow.values.len()], processes: Vec::new() }
    }

    /// Reads an element, and checks that everything it names exists.
    pub fn read(flow: &Flow, sets: &[Values], element: &Element) -> Result<Config, Refusal> {
        let unfit = |what: &str| Err(Refusal::Unfit(format!("an element names {what} that does not exist")));
        let values = |cell: u32, set: u32| {
            let set = sets.get(set as usize)?;
            let count = *flow.values.get(cell as usize)?;
            set.iter().all(|value| value < count).then(|| set.clone())
        };
        let mut config = Config::open(flow);
        for &(cell, set) in &element.memory {
            let Some(values) = values(cell, set) else { return unfit("a value in memory") };
            if config.memory[cell as usize].is_some() {
                return Err(Refusal::Unfit("an element names a cell twice".into()));
            }
            config.memory[cell as usize] = Some(values);
        }
        if element.processes.len() > MAX_PROCESSES {
            return Err(Refusal::Unfit("an element names too many processes".into()));
        }
        for process in &element.processes {
            let kind = flow.kinds.get(process.kind as usize);
            if kind.is_none_or(|kind| process.state as usize >= kind.into.len()) {
                return unfit("a state");
            }
            let letter = |letter: &SetLetter| {
                let values = values(letter.cell, letter.values)?;
                Some(Letter { own: letter.own, cell: letter.cell, values })
            };
            let Some(word) = process.word.iter().map(letter).collect::<Option<Vec<Letter>>>() else {
                return unfit("a message");
            };
            if !is_well_formed(&word) {
                return Err(Refusal::Unfit(
                    "a word has two own letters on a cell, or one that is newer than a plain one".into(),
                ));
            }
            config.processes.push(Process { kind: process.kind, state: process.state, word });
        }
        config.processes.sort();
        Ok(config)
    }

    /// The element in the form of a proof, with the sets that it names.
    pub fn written(self) -> (Element, Vec<Vec<u32>>) {
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut set = |values: &Values| -> u32 {
            let values: Vec<u32> = values.iter().collect();
            let place = sets.iter().position(|other| *other == values).unwrap_or_else(|| {
                sets.push(values);
                sets.len() - 1
            });
            place as u32
        };
        let named = self.memory.iter().enumerate();
        let memory = named.filter_map(|(cell, values)| Some((cell as u32, set(values.as_ref()?)))).collect();
        let mut letter =
            |letter: &Letter| SetLetter { own: letter.own, cell: letter.cell, values: set(&letter.values) };
        let process = |process: &Process| proof::Process {
            kind: process.kind,
            state: process.state,
            word: process.word.iter().map(&mut letter).collect(),
        };
        let processes = self.processes.iter().map(process).collect();
        (Element { memory, processes }, sets)
    }

    /// The automata and classes of its processes, sorted.
    pub fn keys(&self) -> Vec<(u32, u32)> {
        self.processes.iter().map(|process| (process.kind, process.state)).collect()
    }
}

/// The sets of a proof. Each has its values in order, and at least one.
pub(crate) fn read_sets(sets: &[Vec<u32>], values: &[u32]) -> Result<Vec<Values>, Refusal> {
    let most = values.iter().copied().max().unwrap_or(0);
    let fits = |set: &Vec<u32>| {
        !set.is_empty() && set.is_sorted_by(|a, b| a < b) && set.last().is_some_and(|&last| last < most)
    };
    match sets.iter().all(fits) {
        true => Ok(sets.iter().map(|set| Values::of(set.iter().copied())).collect()),
        false => Err(Refusal::Unfit(
            "a set of values is empty, out of order, or has values that do not exist".into(),
        )),
    }
}

/// At most one own letter on each cell, and plain letters on the cell only newer than it.
fn is_well_formed(word: &[Letter]) -> bool {
    word.iter()
        .enumerate()
        .all(|(place, letter)| !letter.own || word[place + 1..].iter().all(|older| older.cell != letter.cell))
}

/// Whether the letters of `a` can be found in `b`, in order, each with all values that `b` allows.
fn embeds(a: &[Letter], b: &[Letter]) -> bool {
    let mut next = 0;
    for letter in b {
        let fits = |wanted: &Letter| {
            (wanted.own, wanted.cell) == (letter.own, letter.cell) && letter.values.is_subset(&wanted.values)
        };
        if a.get(next).is_some_and(fits) {
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

/// Whether memory that is as `b` says is as `a` says.
pub(crate) fn memory_embeds(a: &[Option<Values>], b: &[Option<Values>]) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => b.is_subset(a),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(kind: u32, state: u32, letters: &[(u32, &[u32])]) -> Vec<Process> {
        let letter = |&(cell, values): &(u32, &[u32])| Letter {
            own: false,
            cell,
            values: Values::of(values.iter().copied()),
        };
        vec![Process { kind, state, word: letters.iter().map(letter).collect() }]
    }

    #[test]
    fn letters_are_found_in_order_with_the_same_state() {
        let plain = |kind, state, cells: &[u32]| {
            let letters: Vec<(u32, &[u32])> = cells.iter().map(|&cell| (cell, &[0][..])).collect();
            process(kind, state, &letters)
        };
        assert!(processes_embed(&plain(0, 0, &[1, 2]), &plain(0, 0, &[1, 3, 2])));
        assert!(!processes_embed(&plain(0, 0, &[1, 2]), &plain(0, 0, &[2, 1])));
        assert!(!processes_embed(&plain(0, 0, &[1, 1]), &plain(0, 0, &[1, 2])));
        assert!(!processes_embed(&plain(0, 0, &[1]), &plain(0, 0, &[])));
        assert!(!processes_embed(&plain(0, 0, &[]), &plain(0, 1, &[])));
        assert!(!processes_embed(&plain(0, 0, &[]), &plain(1, 0, &[])));
    }

    #[test]
    fn letters_below_allow_more_values() {
        let letters = |letters: &[(u32, &[u32])]| process(0, 0, letters);
        assert!(processes_embed(&letters(&[(1, &[0, 2])]), &letters(&[(1, &[2])])));
        assert!(processes_embed(&letters(&[(1, &[0, 2])]), &letters(&[(1, &[0, 1]), (1, &[0])])));
        assert!(!processes_embed(&letters(&[(1, &[2])]), &letters(&[(1, &[0, 2])])));
        assert!(!processes_embed(&letters(&[(1, &[0, 1])]), &letters(&[(1, &[1, 2])])));
    }

    #[test]
    fn memory_below_allows_more_values() {
        let memory = |values: &[u32]| [Some(Values::of(values.iter().copied()))];
        assert!(memory_embeds(&[None], &memory(&[1])));
        assert!(memory_embeds(&memory(&[0, 1]), &memory(&[1])));
        assert!(!memory_embeds(&memory(&[1]), &memory(&[0, 1])));
        assert!(!memory_embeds(&memory(&[0, 1]), &[None]));
    }
}
