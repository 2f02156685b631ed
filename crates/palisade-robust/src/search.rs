//! Breadth-first search over packed states, level by level, on all cores.
//!
//! A level is expanded in chunks by all cores, and the successors are inserted in the order of the chunks, so numbers of states, parents and the first cycle found
//! are the same for any number of jobs. What the tables of thread states lack is worked out between two attempts at the states concerned.

use crate::discard::Candidates;
use crate::expand::{Expander, Question, Sink, Taken, Trouble};
use crate::state::{Layout, State};
use crate::threads::{CODES, Need, Threads};
use hashbrown::HashTable;
use palisade_automata::on_demand::LocalId;
use palisade_base::{Id, limits};
use palisade_engine::{Budget, Exhausted, Pace, Progress, Stats};
use palisade_memory::{Machine, Model};
use palisade_program::running::CellId;
use rayon::prelude::*;

/// How a search ended.
pub(crate) enum Found {
    /// Steps from these states close cycles; there is at least one, and those of one level that were wanted are told together.
    Cycles(Vec<usize>),
    /// There is no cycle.
    Nothing,
    /// The budget ran out.
    Exhausted(Exhausted),
    /// More threads than there is room for.
    ThreadCount,
    /// Values without end, calls too deep, a section too long.
    Trouble(crate::threads::Trouble),
}

/// What a search may use, and whom it tells.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'e> {
    pub budget: &'e Budget,
    pub progress: &'e dyn Progress,
    pub pool: Option<&'e rayon::ThreadPool>,
}

/// States in a chunk.
const CHUNK: usize = 512;
/// No parent.
const NONE: u32 = u32::MAX;

/// The states found so far.
pub(crate) struct Search<'a> {
    pub question: Question,
    pub threads: Threads<'a>,
    pub layout: Layout,
    pub model: Model,
    pub candidates: Candidates,
    words: Vec<u32>,
    parents: Vec<u32>,
    index: HashTable<u32>,
    /// How many states have an attack.
    attacking: u64,
}

/// What a chunk of states led to.
#[derive(Default)]
struct Chunk {
    /// Successors with their parents.
    words: Vec<u32>,
    parents: Vec<u32>,
    /// States that must be expanded again.
    again: Vec<u32>,
    needs: Vec<Need>,
    /// States from which a step closes a cycle.
    cycles: Vec<u32>,
    full: bool,
    /// Why the last states were not expanded.
    exhausted: Option<Exhausted>,
}

struct Collect<'c> {
    chunk: &'c mut Chunk,
    parent: u32,
}

impl Sink for Collect<'_> {
    fn take(&mut self, _: Taken<'_>, next: Option<&[u32]>) {
        match next {
            Some(words) => {
                self.chunk.words.extend_from_slice(words);
                self.chunk.parents.push(self.parent);
            }
            None if self.chunk.cycles.last() != Some(&self.parent) => self.chunk.cycles.push(self.parent),
            None => {}
        }
    }
}

impl<'a> Search<'a> {
    pub fn new(
        question: Question,
        threads: Threads<'a>,
        layout: Layout,
        model: Model,
        candidates: Candidates,
    ) -> Search<'a> {
        Search {
            question,
            threads,
            layout,
            model,
            candidates,
            words: Vec::new(),
            parents: Vec::new(),
            index: HashTable::new(),
            attacking: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    pub fn state(&self, index: usize) -> &[u32] {
        &self.words[index * self.layout.words()..(index + 1) * self.layout.words()]
    }

    /// The states from an initial one to this one.
    pub fn path_to(&self, index: usize) -> Vec<usize> {
        let mut path = vec![index];
        while let Some(parent) = Some(self.parents[path[path.len() - 1]]).filter(|&parent| parent != NONE) {
            path.push(parent as usize);
        }
        path.reverse();
        path
    }

    /// What has been counted.
    pub fn count(&self, stats: &mut Stats) {
        stats.add("states", self.len() as u64);
        stats.add("attack_states", self.attacking);
        stats.add("thread_states", self.threads.automaton.len() as u64);
    }

    fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.parents.capacity() * 4 + self.index.allocation_size()) as u64
            + self.threads.bytes()
    }

    /// Searches until there are cycles that are wanted (all that are found in one go are offered together), or there is nothing more.
    pub fn run(
        &mut self,
        machine: Machine<'_>,
        effort: &Effort<'_>,
        stats: &Stats,
        mut wanted: impl FnMut(&mut Search<'a>, Vec<usize>) -> Vec<usize>,
    ) -> Found {
        let Effort { budget, progress, pool } = *effort;
        if let Err(trouble) = self.start(machine) {
            return Found::Trouble(trouble);
        }
        let mut done = 0;
        while done < self.len() {
            let level: Vec<u32> = (done as u32..self.len() as u32).collect();
            done = self.len();
            // Long levels go in batches, so that the budget is asked often enough.
            for batch in level.chunks(CHUNK * 256) {
                let mut open = batch.to_vec();
                while !open.is_empty() {
                    let chunks = self.expand(&open, budget, pool);
                    open.clear();
                    let mut cycles: Vec<usize> =
                        chunks.iter().flat_map(|chunk| &chunk.cycles).map(|&state| state as usize).collect();
                    if !cycles.is_empty() {
                        cycles.sort_unstable();
                        let cycles = wanted(self, cycles);
                        if !cycles.is_empty() {
                            return Found::Cycles(cycles);
                        }
                    }
                    if chunks.iter().any(|chunk| chunk.full) {
                        return Found::ThreadCount;
                    }
                    if let Some(what) = chunks.iter().find_map(|chunk| chunk.exhausted) {
                        return Found::Exhausted(what);
                    }
                    let mut needs = Vec::new();
                    for mut chunk in chunks {
                        open.append(&mut chunk.again);
                        needs.append(&mut chunk.needs);
                        let words = chunk.words.chunks_exact(self.layout.words());
                        for (words, &parent) in words.zip(&chunk.parents) {
                            self.insert(words, parent);
                        }
                    }
                    needs.sort_unstable();
                    needs.dedup();
                    for need in needs {
                        limits::go_on();
                        self.threads.supply(need);
                    }
                    if let Some(trouble) = self.threads.trouble() {
                        return Found::Trouble(trouble);
                    }
                    let spent =
                        budget.check_work(self.len() as u64).and_then(|()| budget.check(self.bytes()));
                    if let Err(what) = spent {
                        return Found::Exhausted(what);
                    }
                    if self.len() >= NONE as usize / 2 {
                        return Found::Exhausted(Exhausted::Memory(budget.memory()));
                    }
                }
            }
            let mut stats = stats.clone();
            self.count(&mut stats);
            progress.tell("searching for a cycle", &stats);
        }
        Found::Nothing
    }

    /// Adds the initial states.
    fn start(&mut self, machine: Machine<'_>) -> Result<(), crate::threads::Trouble> {
        let roles: Vec<_> = machine.system.instances.iter().map(|instance| instance.role).collect();
        let locals: Vec<LocalId> = roles.into_iter().map(|role| self.threads.start(role)).collect();
        for initial in machine.initial_states() {
            limits::go_on();
            let mut state = State { words: vec![0; self.layout.words()], layout: self.layout };
            for (cell, &value) in initial.memory.iter().enumerate() {
                let cell = CellId::from_index(cell);
                let code = self.threads.automaton.values.code(cell, value);
                if code >= CODES {
                    return Err(crate::threads::Trouble::Values(cell));
                }
                state.set_memory(cell, code);
            }
            locals.iter().enumerate().for_each(|(thread, &local)| state.set_thread(thread, local));
            self.insert(&state.words, NONE);
        }
        Ok(())
    }

    fn insert(&mut self, words: &[u32], parent: u32) {
        let stride = self.layout.words();
        let states = &self.words;
        let at = |index: u32| &states[index as usize * stride..(index as usize + 1) * stride];
        let hash = hash(words);
        if self.index.find(hash, |&index| at(index) == words).is_some() {
            return;
        }
        let index = self.parents.len() as u32;
        self.index.insert_unique(hash, index, |&index| self::hash(at(index)));
        self.words.extend_from_slice(words);
        self.parents.push(parent);
        self.attacking += u64::from(words[0] != 0);
    }

    fn expand(&self, open: &[u32], budget: &Budget, pool: Option<&rayon::ThreadPool>) -> Vec<Chunk> {
        match pool {
            Some(pool) if open.len() > CHUNK => pool
                .install(|| open.par_chunks(CHUNK).map(|states| self.expand_chunk(states, budget)).collect()),
            _ => open.chunks(CHUNK).map(|states| self.expand_chunk(states, budget)).collect(),
        }
    }

    fn expand_chunk(&self, states: &[u32], budget: &Budget) -> Chunk {
        let mut chunk = Chunk::default();
        let expander = self.expander();
        let mut pace = Pace::new();
        for &parent in states {
            if let Err(what) = budget.check_often(&mut pace, || self.bytes()) {
                chunk.exhausted = Some(what);
                break;
            }
            let (words, parents, cycles) = (chunk.words.len(), chunk.parents.len(), chunk.cycles.len());
            let mut needs = std::mem::take(&mut chunk.needs);
            let mut sink = Collect { chunk: &mut chunk, parent };
            let expanded = expander.expand(self.state(parent as usize), &mut sink, &mut needs);
            chunk.needs = needs;
            match expanded {
                Ok(()) => {}
                Err(Trouble::Needs) => {
                    // All successors are told again once the tables are complete.
                    chunk.words.truncate(words);
                    chunk.parents.truncate(parents);
                    chunk.cycles.truncate(cycles);
                    chunk.again.push(parent);
                }
                Err(Trouble::Threads) => chunk.full = true,
            }
        }
        chunk
    }

    pub fn expander(&self) -> Expander<'_, 'a> {
        Expander {
            question: self.question,
            threads: &self.threads,
            layout: self.layout,
            model: self.model,
            candidates: &self.candidates,
        }
    }
}

/// A hash of the words of a state.
fn hash(words: &[u32]) -> u64 {
    let mut hash = 0x9E37_79B9_7F4A_7C15_u64;
    for pair in words.chunks(2) {
        let word = u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        let product = u128::from(hash ^ word) * u128::from(0xD6E8_FEB8_6659_FD93_u64);
        hash = (product as u64) ^ ((product >> 64) as u64);
    }
    hash
}
