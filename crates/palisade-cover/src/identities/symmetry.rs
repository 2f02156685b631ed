//! Renaming identities, and the check that the program does not distinguish them.
//!
//! Identities can only be compared for equality, so a renaming of them maps runs to runs. Nothing relies on that
//! being enforced by the language. Instead, for each exchange of two neighbouring identities, a map between the
//! states of the automata is computed and checked: starts go to starts, bad combinations to bad combinations,
//! initial values to initial values, and edges to edges with renamed letters, one to one. Exchanges generate all
//! renamings.
//!
//! *How.* States get colours, first by whether they are starts or bad, then by the letters and colours of
//! their edges, until the number of colours stays the same. Bisimilar states are merged, so a state and its
//! image are the only ones with their colour. If colours are ambiguous or an edge does not match, the program
//! is refused.

use palisade_automata::{Automata, Letter, StateId};
use palisade_base::Id;
use palisade_program::Value;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// What a cell is, as far as identities matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    /// Its array, if it has one cell per process: the array's first cell.
    pub array: Option<u32>,
    /// The process it belongs to; 0 if it belongs to none.
    pub owner: u8,
    /// Whether it is the cell `EVERY` of its array.
    pub every: bool,
    /// Whether it holds an identity or none.
    pub holds_identity: bool,
}

/// A renaming of identities: the image of each, with 0 for none.
pub(crate) type Renaming = Vec<u8>;

/// A renaming with its effect on everything else.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    pub identity: Renaming,
    pub cell: Vec<u16>,
    pub kind: Vec<u8>,
    /// For each kind and state, the state of the renamed kind.
    pub state: Vec<Vec<u32>>,
}

impl Permutation {
    /// First this one, then another.
    pub fn then(&self, other: &Permutation) -> Permutation {
        Permutation {
            identity: self.identity.iter().map(|&id| other.identity[id as usize]).collect(),
            cell: self.cell.iter().map(|&cell| other.cell[cell as usize]).collect(),
            kind: self.kind.iter().map(|&kind| other.kind[kind as usize]).collect(),
            state: self
                .state
                .iter()
                .zip(&self.kind)
                .map(|(states, &kind)| {
                    states.iter().map(|&state| other.state[kind as usize][state as usize]).collect()
                })
                .collect(),
        }
    }
}

/// What is renamed.
pub(crate) struct Symmetry<'a> {
    pub automata: &'a Automata,
    pub cells: &'a [Cell],
    /// The identity of each kind, and 0 if it has none.
    pub owner: &'a [u8],
    /// The bad combinations: memory, and kinds with states, sorted.
    pub bad: &'a FxHashSet<BadKey>,
    pub identities: u8,
}

/// A bad combination that can be compared.
pub(crate) type BadKey = (Vec<(u32, Value)>, Vec<(u32, u32)>);

/// A letter with cells and values instead of numbers of values.
type Said = (u8, Vec<(u32, Value)>, Vec<(u32, Value)>);

impl Symmetry<'_> {
    /// The renaming that changes nothing.
    pub fn unit(&self) -> Permutation {
        let states = self.automata.automata.iter().map(|a| (0..a.states.len() as u32).collect());
        Permutation {
            identity: (0..=self.identities).collect(),
            cell: (0..self.cells.len() as u16).collect(),
            kind: (0..self.owner.len() as u8).collect(),
            state: states.collect(),
        }
    }

    /// The exchange of an identity with the next one. `None` if the program distinguishes them.
    pub fn exchange(&self, first: u8) -> Option<Permutation> {
        let mut found = self.unit();
        found.identity.swap(first as usize, first as usize + 1);
        let owners: FxHashMap<u8, u8> =
            self.owner.iter().enumerate().filter(|(_, o)| **o > 0).map(|(k, &o)| (o, k as u8)).collect();
        for (kind, &owner) in self.owner.iter().enumerate().filter(|(_, owner)| **owner > 0) {
            found.kind[kind] = *owners.get(&found.identity[owner as usize])?;
        }
        for (index, cell) in self.cells.iter().enumerate() {
            let image = Cell { owner: found.identity[cell.owner as usize], ..*cell };
            if cell.owner > 0 {
                found.cell[index] = self.cells.iter().position(|other| *other == image)? as u16;
            }
        }
        for kind in 0..self.owner.len() {
            found.state[kind] = self.match_states(kind, &found)?;
        }
        self.is_symmetry(&found).then_some(found)
    }

    fn said(&self, letter: &Letter, renamed: Option<&Permutation>) -> Said {
        let value = |&(cell, value): &(CellId, palisade_automata::ValueId)| {
            let number = self.automata.values[cell][value];
            match renamed {
                None => (cell.0, number),
                Some(permutation) => (
                    u32::from(permutation.cell[cell.index()]),
                    match self.cells[cell.index()].holds_identity {
                        true => Value::from(permutation.identity[number as usize]),
                        false => number,
                    },
                ),
            }
        };
        let all = |list: &[(CellId, palisade_automata::ValueId)]| {
            let mut list: Vec<(u32, Value)> = list.iter().map(value).collect();
            list.sort_unstable();
            list
        };
        match letter {
            Letter::Silent => (0, Vec::new(), Vec::new()),
            Letter::Spawn(kind) => (6, vec![(*kind, 0)], Vec::new()),
            Letter::Read(cell, value) => (1, all(&[(*cell, *value)]), Vec::new()),
            Letter::Write(cell, value) => (2, Vec::new(), all(&[(*cell, *value)])),
            Letter::Fence => (3, Vec::new(), Vec::new()),
            Letter::StoreFence => (4, Vec::new(), Vec::new()),
            Letter::Locked { guard, effect } => (5, all(guard), all(effect)),
        }
    }

    /// The colours of a kind's states after some rounds.
    fn colours(&self, kind: usize, renamed: Option<&Permutation>, rounds: usize) -> Vec<u64> {
        let automaton = &self.automata.automata[kind];
        let mut starts = vec![false; automaton.states.len()];
        automaton.starts.iter().for_each(|start| starts[start.0.index()] = true);
        let mut bad: Vec<Vec<usize>> = vec![Vec::new(); automaton.states.len()];
        for (memory, processes) in self.bad {
            for &(of, state) in processes.iter().filter(|(of, _)| *of as usize == kind) {
                let _ = of;
                bad[state as usize].push(memory.len() * 64 + processes.len());
            }
        }
        let hash = |value: &dyn Fn(&mut FxHasher)| {
            let mut hasher = FxHasher::default();
            value(&mut hasher);
            hasher.finish()
        };
        let mut colours: Vec<u64> = starts
            .iter()
            .zip(&mut bad)
            .map(|(start, bad)| {
                bad.sort_unstable();
                bad.dedup();
                hash(&|hasher| (*start, &*bad).hash(hasher))
            })
            .collect();
        let edges: Vec<(usize, usize, Said)> = automaton
            .edges
            .iter()
            .map(|edge| (edge.source.index(), edge.target.index(), self.said(&edge.letter, renamed)))
            .collect();
        for _ in 0..rounds {
            let mut seen: Vec<Vec<u64>> = vec![Vec::new(); colours.len()];
            for (source, target, said) in &edges {
                seen[*source].push(hash(&|hasher| (0u8, said, colours[*target]).hash(hasher)));
                seen[*target].push(hash(&|hasher| (1u8, said, colours[*source]).hash(hasher)));
            }
            colours = colours
                .iter()
                .zip(&mut seen)
                .map(|(colour, seen)| {
                    seen.sort_unstable();
                    seen.dedup();
                    hash(&|hasher| (colour, &*seen).hash(hasher))
                })
                .collect();
        }
        colours
    }

    fn match_states(&self, kind: usize, renaming: &Permutation) -> Option<Vec<u32>> {
        let image = renaming.kind[kind] as usize;
        let states = self.automata.automata[kind].states.len();
        let rounds = states.min(64);
        let from = self.colours(kind, Some(renaming), rounds);
        let to = self.colours(image, None, rounds);
        let places: FxHashMap<u64, u32> =
            to.iter().enumerate().map(|(state, &colour)| (colour, state as u32)).collect();
        if from.len() != to.len() || places.len() != to.len() {
            return None;
        }
        from.iter().map(|colour| places.get(colour).copied()).collect()
    }

    fn is_symmetry(&self, renaming: &Permutation) -> bool {
        for (kind, automaton) in self.automata.automata.iter().enumerate() {
            let image = &self.automata.automata[renaming.kind[kind] as usize];
            let map = |state: StateId| renaming.state[kind][state.index()];
            let distinct: FxHashSet<u32> = renaming.state[kind].iter().copied().collect();
            let starts = |a: &[(StateId, Vec<palisade_memory::Action>, usize)]| {
                a.iter().map(|start| start.0.0).collect::<FxHashSet<u32>>()
            };
            let mapped: FxHashSet<u32> = automaton.starts.iter().map(|start| map(start.0)).collect();
            let edges: FxHashSet<(u32, Said, u32)> = image
                .edges
                .iter()
                .map(|edge| (edge.source.0, self.said(&edge.letter, None), edge.target.0))
                .collect();
            let renamed: FxHashSet<(u32, Said, u32)> = automaton
                .edges
                .iter()
                .map(|edge| (map(edge.source), self.said(&edge.letter, Some(renaming)), map(edge.target)))
                .collect();
            if distinct.len() != image.states.len()
                || automaton.states.len() != image.states.len()
                || mapped != starts(&image.starts)
                || edges != renamed
            {
                return false;
            }
        }
        let values = |cell: usize, rename: bool, initial: bool| {
            let of = CellId::from_index(cell);
            let count = if initial { self.automata.initial[of] } else { self.automata.values[of].len() };
            let value = |&value: &Value| match rename && self.cells[cell].holds_identity {
                true => Value::from(renaming.identity[value as usize]),
                false => value,
            };
            self.automata.values[of].as_slice()[..count].iter().map(value).collect::<FxHashSet<Value>>()
        };
        let memory = (0..self.cells.len()).all(|cell| {
            let image = renaming.cell[cell] as usize;
            [true, false]
                .into_iter()
                .all(|initial| values(cell, true, initial) == values(image, false, initial))
        });
        let rename_bad = |(memory, processes): &BadKey| {
            let mut memory: Vec<(u32, Value)> = memory
                .iter()
                .map(|&(cell, value)| {
                    let value = match self.cells[cell as usize].holds_identity {
                        true => Value::from(renaming.identity[value as usize]),
                        false => value,
                    };
                    (u32::from(renaming.cell[cell as usize]), value)
                })
                .collect();
            let mut processes: Vec<(u32, u32)> = processes
                .iter()
                .map(|&(kind, state)| {
                    (u32::from(renaming.kind[kind as usize]), renaming.state[kind as usize][state as usize])
                })
                .collect();
            memory.sort_unstable();
            processes.sort_unstable();
            (memory, processes)
        };
        memory && self.bad.iter().all(|bad| self.bad.contains(&rename_bad(bad)))
    }
}
