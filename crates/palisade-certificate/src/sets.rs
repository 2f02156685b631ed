//! One set of a proof: its elements, indexed by the parts that must be equal, and the check that it is closed
//! under predecessors.

use crate::bad::{At, Bad};
use crate::element::{Config, Letter, Process, memory_embeds, processes_embed};
use crate::flow::{Flow, Limit};
use crate::invariant::Invariant;
use crate::undo::{Free, Undo};
use crate::values::Values;
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

pub(crate) struct Set {
    pub limits: Vec<Limit>,
    free: Free,
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
    /// Elements, with bits for what they require.
    here: Vec<(Required, usize)>,
}

/// Bits for the values that memory and letters must not have, and for letters. Several may share a bit. An
/// element below another has no other bits. This only saves comparisons.
type Required = u128;

fn required(flow: &Flow, config: &Config) -> Required {
    let bit = |what: (u32, u32, u32, u32)| {
        let hash = FxBuildHasher.hash_one(what);
        1 << ((hash >> 32) % u64::from(Required::BITS))
    };
    let lacking = |place: (u32, u32), cell: u32, values: &Values| {
        let count = flow.values[cell as usize];
        let without = (0..count).filter(|&value| !values.has(value));
        without.fold(0, |all, value| all | bit((place.0, place.1, cell, value)))
    };
    let memory = config.memory.iter().enumerate();
    let mut all = memory.fold(0, |all, (cell, values)| {
        all | values.as_ref().map_or(0, |values| lacking((0, 0), cell as u32, values))
    });
    for process in &config.processes {
        for Letter { own, cell, values } in &process.word {
            let place = (1 + process.kind, 2 * process.state + u32::from(*own));
            all |= bit((place.0, place.1, *cell, u32::MAX)) | lacking(place, *cell, values);
        }
    }
    all
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
        let mut written = Vec::new();
        for (kind, limit) in flow.kinds.iter().zip(&limits) {
            if *limit != kind.population {
                written.extend(kind.edges.iter().flat_map(|edge| edge.act.writes()));
            }
        }
        let free = Free::new(flow, &written);
        let numbered = elements.into_iter().enumerate().map(|(number, element)| (first + number, element));
        let elements: Vec<(usize, Config)> =
            numbered.filter(|(_, element)| invariant.narrowed(element, &limits).is_some()).collect();
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
            index[node].here.push((required(flow, element), place));
        }
        Set { limits, free, elements, index }
    }

    /// Whether some element contains all of these configurations. What follows from the invariant is named in
    /// them.
    pub fn covers(&self, flow: &Flow, config: &Config) -> bool {
        self.covers_from(0, &config.keys(), required(flow, config), config)
    }

    fn covers_from(&self, node: usize, keys: &[(u32, u32)], has: Required, config: &Config) -> bool {
        let node = &self.index[node];
        let below = |&(required, place): &(Required, usize)| {
            let element = &self.elements[place].1;
            required & !has == 0
                && memory_embeds(&element.memory, &config.memory)
                && processes_embed(&element.processes, &config.processes)
        };
        if node.here.iter().any(below) {
            return true;
        }
        (0..keys.len()).any(|place| {
            // Equal keys lead to the same node, so visiting it once is enough.
            let seen = place > 0 && keys[place] == keys[place - 1];
            let next = if seen { None } else { node.next.get(&keys[place]) };
            next.is_some_and(|&next| self.covers_from(next, &keys[place + 1..], has, config))
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
            if let Some(predecessor) = self.first_missing(&undo, element, summary) {
                let (predecessor, sets) = predecessor.written();
                let predecessor = Missing::LoadBuffers(predecessor, sets);
                return Err(Refusal::NotClosed { element: *number, predecessor });
            }
        }
        Ok(())
    }

    /// A predecessor of an element that is missing.
    fn first_missing(&self, undo: &Undo<'_>, element: &Config, summary: &mut Summary) -> Option<Config> {
        self.missing(undo.flow, summary, |look_up| match undo.postponable(element) {
            Some(alone) => undo.by(element, alone, look_up),
            None => {
                for actor in 0..element.processes.len() {
                    // Equal processes have equal predecessors.
                    if actor == 0 || element.processes[actor] != element.processes[actor - 1] {
                        undo.by(element, actor, look_up);
                    }
                }
                undo.by_others(element, look_up);
                undo.by_parents(element, look_up);
                undo.by_free_writes(element, look_up);
            }
        })
    }

    /// The first of these configurations that is in none of the elements.
    fn missing(
        &self,
        flow: &Flow,
        summary: &mut Summary,
        all: impl FnOnce(&mut dyn FnMut(Config)),
    ) -> Option<Config> {
        let mut missing = None;
        all(&mut |config| {
            summary.predecessors += 1;
            if missing.is_none() && !self.covers(flow, &config) {
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
        let memory = bad.memory.iter().map(|value| value.map(Values::one)).collect();
        let mut config = Config { memory, processes: bad.processes.iter().map(process).collect() };
        config.processes.sort();
        // `None` if it is impossible.
        let Some(config) = self.invariant.narrowed(&config, &self.populations()) else { return Ok(()) };
        match self.sets.iter().any(|set| set.covers(self.flow, &config)) {
            true => Ok(()),
            false => {
                let (config, sets) = config.written();
                Err(Missing::LoadBuffers(config, sets))
            }
        }
    }
}
