//! One set of a proof: its elements, indexed by the parts that must be equal, and the check that it is closed
//! under predecessors.

use crate::bad::{At, Bad};
use crate::element::{Config, processes_embed};
use crate::flow::{Flow, Limit};
use crate::invariant::Invariant;
use crate::undo::Undo;
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use palisade_engine::proof::{Message, Process};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;

pub(crate) struct Set {
    pub limits: Vec<Limit>,
    free: FxHashSet<(u32, u32)>,
    /// The elements, with their indices in the proof. Exactly these are checked, and only these count as
    /// covering anything. An element that contradicts the invariant, or names more processes than are
    /// followed, is left out of both.
    elements: Vec<(usize, Config)>,
    /// Elements by the automata and classes of their processes: a tree with one level per process. It only
    /// saves comparisons, which look at all of this again.
    index: Vec<Node>,
}

#[derive(Default)]
struct Node {
    next: FxHashMap<(u32, u32), usize>,
    here: Vec<Naming>,
}

/// Elements that name the same cells.
struct Naming {
    cells: Vec<usize>,
    /// By the values of these cells, with the letters of each element.
    by_values: FxHashMap<Vec<u32>, Vec<(Letters, usize)>>,
}

/// A set of letters with the automaton and class of their process. Several may share a bit.
type Letters = u128;

fn letters(config: &Config) -> Letters {
    let bit = |process: &Process, letter: &Message| {
        let hash = FxBuildHasher.hash_one((process.kind, process.state, letter));
        1 << ((hash >> 32) % u64::from(Letters::BITS))
    };
    let words = config.processes.iter().flat_map(|process| process.word.iter().map(move |l| (process, l)));
    words.fold(0, |all, (process, letter)| all | bit(process, letter))
}

impl Node {
    fn add(&mut self, number: usize, element: &Config) {
        let named = element.memory.iter().enumerate().filter_map(|(cell, value)| Some((cell, (*value)?)));
        let (cells, values): (Vec<usize>, Vec<u32>) = named.unzip();
        let place = self.here.iter().position(|naming| naming.cells == cells);
        let place = place.unwrap_or_else(|| {
            self.here.push(Naming { cells, by_values: FxHashMap::default() });
            self.here.len() - 1
        });
        self.here[place].by_values.entry(values).or_default().push((letters(element), number));
    }

    /// The elements that require no more than these values and, as far as a quick test shows, these letters.
    fn candidates(&self, memory: &[Option<u32>], letters: Letters) -> impl Iterator<Item = usize> {
        let lists = self.here.iter().filter_map(|Naming { cells, by_values }| {
            let values: Option<Vec<u32>> = cells.iter().map(|&cell| memory[cell]).collect();
            by_values.get(&values?)
        });
        // Everything that passes is compared in full. This only saves time.
        lists.flatten().filter(move |(required, _)| required & !letters == 0).map(|&(_, number)| number)
    }
}

impl Set {
    /// The set with these elements. The first of them has this index in the proof.
    pub fn new(
        flow: &Flow,
        invariant: &Invariant,
        limits: Vec<Limit>,
        elements: Vec<Config>,
        first: usize,
    ) -> Set {
        let mut free = FxHashSet::default();
        for (kind, limit) in flow.kinds.iter().zip(&limits) {
            if *limit != kind.population {
                free.extend(kind.edges.iter().flat_map(|edge| edge.act.writes()));
            }
        }
        let numbered = elements.into_iter().enumerate().map(|(number, element)| (first + number, element));
        let elements: Vec<(usize, Config)> =
            numbered.filter(|(_, element)| invariant.allows_all(element, &limits)).collect();
        let mut index = vec![Node::default()];
        for (place, (_, element)) in elements.iter().enumerate() {
            let mut node = 0;
            for key in element.keys() {
                let fresh = index.len();
                node = *index[node].next.entry(key).or_insert(fresh);
                if node == fresh {
                    index.push(Node::default());
                }
            }
            index[node].add(place, element);
        }
        Set { limits, free, elements, index }
    }

    /// Whether some element contains all of these configurations.
    pub fn covers(&self, invariant: &Invariant, config: &Config) -> bool {
        let cells = config.memory.iter().enumerate();
        let known = |(cell, held): (usize, &Option<u32>)| {
            held.or_else(|| invariant.implied(&config.processes, cell as u32))
        };
        let memory: Vec<Option<u32>> = cells.map(known).collect();
        self.covers_from(0, &config.keys(), &memory, letters(config), config)
    }

    fn covers_from(
        &self,
        node: usize,
        keys: &[(u32, u32)],
        memory: &[Option<u32>],
        letters: Letters,
        config: &Config,
    ) -> bool {
        let node = &self.index[node];
        let below = |place: usize| processes_embed(&self.elements[place].1.processes, &config.processes);
        if node.candidates(memory, letters).any(below) {
            return true;
        }
        (0..keys.len()).any(|place| {
            // Equal keys lead to the same node, so visiting it once is enough.
            let seen = place > 0 && keys[place] == keys[place - 1];
            let next = if seen { None } else { node.next.get(&keys[place]) };
            next.is_some_and(|&next| self.covers_from(next, &keys[place + 1..], memory, letters, config))
        })
    }

    /// Checks that the set contains its predecessors and nothing initial.
    pub fn check_closed(
        &self,
        flow: &Flow,
        invariant: &Invariant,
        watch: &Watch<'_>,
        summary: &mut Summary,
    ) -> Result<(), Refusal> {
        let undo = Undo { flow, invariant, limits: &self.limits, free: &self.free };
        for (place, (number, element)) in self.elements.iter().enumerate() {
            summary.elements += 1;
            watch.element()?;
            if place % 64 == 0 {
                watch.look(0)?;
            }
            if undo.is_initial(element) {
                return Err(Refusal::Initial(*number));
            }
            let missing = self.missing(invariant, summary, |look_up| match undo.postponable(element) {
                Some(alone) => undo.by(element, alone, look_up),
                None => {
                    for actor in 0..element.processes.len() {
                        // Equal processes have equal predecessors.
                        if actor == 0 || element.processes[actor] != element.processes[actor - 1] {
                            undo.by(element, actor, look_up);
                        }
                    }
                    undo.by_others(element, look_up);
                    undo.by_free_writes(element, look_up);
                }
            });
            if let Some(predecessor) = missing {
                let predecessor = Missing::LoadBuffers(predecessor.written());
                return Err(Refusal::NotClosed { element: *number, predecessor });
            }
        }
        Ok(())
    }

    /// The first of these configurations that is in none of the elements.
    fn missing(
        &self,
        invariant: &Invariant,
        summary: &mut Summary,
        all: impl FnOnce(&mut dyn FnMut(Config)),
    ) -> Option<Config> {
        let mut missing = None;
        all(&mut |config| {
            summary.predecessors += 1;
            if missing.is_none() && !self.covers(invariant, &config) {
                missing = Some(config);
            }
        });
        missing
    }
}

/// All sets of a proof, with the automata and the invariant they are based on.
pub(crate) struct Sets<'a> {
    pub flow: &'a Flow,
    pub invariant: &'a Invariant,
    pub sets: &'a [Set],
}

impl crate::bad::Sets for Sets<'_> {
    fn populations(&self) -> Vec<Limit> {
        self.flow.kinds.iter().map(|kind| kind.population).collect()
    }

    fn values(&self) -> &[u32] {
        &self.flow.values
    }

    fn class(&self, kind: usize, state: usize) -> u32 {
        self.flow.kinds[kind].class_of[state]
    }

    fn before(&self, (kind, class): At) -> &[u32] {
        &self.flow.kinds[kind as usize].before[class as usize]
    }

    fn cover(&self, bad: &Bad) -> Result<(), Missing> {
        let process = |&(kind, state): &At| Process { kind, state, word: Vec::new() };
        let mut config =
            Config { memory: bad.memory.clone(), processes: bad.processes.iter().map(process).collect() };
        config.processes.sort();
        let impossible = !self.invariant.allows_all(&config, &self.populations());
        let covered = impossible || self.sets.iter().any(|set| set.covers(self.invariant, &config));
        if covered { Ok(()) } else { Err(Missing::LoadBuffers(config.written())) }
    }
}
