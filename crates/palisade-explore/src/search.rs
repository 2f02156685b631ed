//! Breadth-first search over packed states, in batches, on all cores.
//!
//! *How.* A level of the search is taken in batches. In a *round*, the states of a batch are expanded with the thread automaton as it is; then what
//! the automaton lacked is supplied (by one host thread, in a fixed order), and the states that had to wait, or whose reduced successors turned out to be
//! old (see [`crate::expand`]), are taken again. Expansion and insertion are separate phases: while states are expanded nothing is
//! written, and each shard of the visited set is filled by one host thread.
//!
//! *Guarantee.* Numbers of states, parents and the bad state reported do not depend on the number of jobs: in each shard, insertions happen in
//! the order of the batch. The bad state found has the least depth (in collapsed steps, a chain counting as one).

use crate::automaton::{Automaton, LocalId, Need};
use crate::chain::Payoff;
use crate::expand::{Expander, Expansion, Successors, Wanted};
use crate::judge::Judge;
use crate::layout::Layout;
use crate::visited::{Inserted, SHARDS, Shard, StateId, Visited, hash, shard_of};
use palisade_engine::{Budget, Exhausted};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// States per batch: large enough to keep all cores busy between phases, small enough for the caches.
const BATCH: usize = 1 << 14;
/// States per task of an expansion phase.
const CHUNK: usize = 256;
/// Smaller rounds are not worth sharing out.
const WORTH_SHARING: usize = 1 << 10;
/// More thread states than this count as growth without bound.
const MOST_LOCALS: usize = 1 << 20;

/// How a search ended.
pub(crate) enum End {
    /// All reachable states were visited; none is bad.
    Clean,
    /// The states of a run to a bad state, packed.
    Bad(Vec<Vec<u64>>),
    /// Some number outgrew its field: search again with a new layout.
    Outgrown,
    /// More threads than the layout has room for.
    TooManyThreads,
    /// The budget ran out.
    Exhausted(Exhausted),
    /// This cell takes more and more values.
    CellGrows(palisade_program::running::CellId),
    /// There are more and more thread states.
    ThreadStatesGrow,
}

/// What a search counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub states: u64,
    pub transitions: u64,
    pub depth: u64,
    pub bytes: u64,
}

/// A search.
pub(crate) struct Search<'s, 'a> {
    pub automaton: &'s mut Automaton<'a>,
    pub layout: &'s Layout,
    pub judge: &'s Judge<'a>,
    pub reduce: bool,
    pub chains: Payoff,
    pub budget: &'s Budget,
    /// Called after each batch.
    pub tell: &'s (dyn Fn(&Counters) + Sync),
    /// The host threads, if there are several.
    pub pool: Option<&'s rayon::ThreadPool>,
}

/// What one shard found in a round.
#[derive(Clone, Copy, Default)]
struct Findings {
    bad: Option<StateId>,
    full: bool,
}

/// What one chunk of a round produced: per shard, records of a position in the round and a state.
struct ChunkOut {
    bins: Vec<Vec<u64>>,
    successors: Successors,
    missed: Vec<u32>,
    parts: Vec<u32>,
    needs: Vec<Need>,
    transitions: u64,
    too_many_threads: bool,
}

impl ChunkOut {
    fn new() -> ChunkOut {
        ChunkOut {
            bins: vec![Vec::new(); SHARDS],
            successors: Successors::default(),
            missed: Vec::new(),
            parts: Vec::new(),
            needs: Vec::new(),
            transitions: 0,
            too_many_threads: false,
        }
    }

    fn clear(&mut self) {
        self.bins.iter_mut().for_each(Vec::clear);
        self.missed.clear();
        self.parts.clear();
        self.needs.clear();
        self.transitions = 0;
        self.too_many_threads = false;
    }
}

/// What a round produced besides new states.
#[derive(Default)]
struct Round {
    again: Vec<(StateId, Wanted)>,
    needs: Vec<Need>,
    findings: Findings,
    too_many_threads: bool,
    payoff: Payoff,
}

impl Search<'_, '_> {
    /// Searches all states.
    pub fn run(&mut self) -> (End, Counters) {
        let mut counters = Counters::default();
        let mut visited = Visited::new(self.layout.words);
        let end = self.search(&mut visited, &mut counters).unwrap_or_else(|end| end);
        self.count(&visited, &mut counters);
        (end, counters)
    }

    fn count(&self, visited: &Visited, counters: &mut Counters) {
        counters.states = visited.len();
        counters.bytes = visited.bytes() + self.automaton.bytes();
    }

    fn search(&mut self, visited: &mut Visited, counters: &mut Counters) -> Result<End, End> {
        if let Some(bad) = self.insert_initial(visited)? {
            return Ok(self.bad(visited, bad));
        }
        let mut chunks: Vec<ChunkOut> = Vec::new();
        let mut start = [0; SHARDS];
        loop {
            let end = visited.lens();
            if start == end {
                return Ok(End::Clean);
            }
            let level = (0..SHARDS).flat_map(|shard| {
                (start[shard]..end[shard]).map(move |position| StateId::new(shard, position as usize))
            });
            let mut level = level.peekable();
            while level.peek().is_some() {
                let wanted = if self.reduce { Wanted::Some } else { Wanted::All };
                let mut round: Vec<_> = level.by_ref().take(BATCH).map(|id| (id, wanted)).collect();
                while !round.is_empty() {
                    let result = self.round(visited, &round, &end, &mut chunks, counters);
                    self.chains.add(result.payoff);
                    if let Some(bad) = result.findings.bad {
                        return Ok(self.bad(visited, bad));
                    }
                    if result.too_many_threads {
                        return Err(End::TooManyThreads);
                    }
                    if result.findings.full {
                        return Err(End::Exhausted(Exhausted::Memory(self.budget.memory())));
                    }
                    self.supply(result.needs, counters.bytes)?;
                    round = result.again;
                }
                self.count(visited, counters);
                (self.tell)(counters);
                self.budget.check(counters.bytes).map_err(End::Exhausted)?;
                self.budget.check_work(counters.states).map_err(End::Exhausted)?;
            }
            counters.depth += 1;
            start = end;
        }
    }

    fn expander(&self) -> Expander<'_, '_> {
        Expander {
            automaton: self.automaton,
            layout: self.layout,
            judge: self.judge,
            reduce: self.reduce,
            chains: self.reduce && self.chains.pays(),
        }
    }

    fn bad(&self, visited: &Visited, id: StateId) -> End {
        let stored = visited.path_to(id);
        let mut path: Vec<Vec<u64>> = Vec::new();
        for id in stored {
            let state = visited.state(id);
            if let Some(before) = path.last().filter(|_| self.reduce) {
                let between = self.expander().between(before, state);
                path.extend(between);
            }
            path.push(state.to_vec());
        }
        End::Bad(path)
    }

    /// Supplies what the automaton lacked, in a fixed order. Some threads do much between two accesses, so that this may take a while.
    fn supply(&mut self, mut needs: Vec<Need>, bytes: u64) -> Result<(), End> {
        needs.sort_unstable();
        needs.dedup();
        for need in needs {
            self.budget.check(bytes).map_err(End::Exhausted)?;
            self.automaton.supply(need);
        }
        if let Some(cell) = self.automaton.codes.growing(self.automaton.machine.machine.system) {
            return Err(End::CellGrows(cell));
        }
        if self.automaton.len() > MOST_LOCALS {
            return Err(End::ThreadStatesGrow);
        }
        if self.layout.fits(self.automaton) { Ok(()) } else { Err(End::Outgrown) }
    }

    /// Inserts all initial states: every initial memory with every choice of first thread states. A bad one, if there is one.
    fn insert_initial(&mut self, visited: &mut Visited) -> Result<Option<StateId>, End> {
        let machine = self.automaton.machine.machine;
        let starts: Vec<Vec<LocalId>> =
            machine.system.instances.iter().map(|instance| self.automaton.starts(instance.role)).collect();
        if !self.layout.fits(self.automaton) {
            return Err(End::Outgrown);
        }
        let mut bad = None;
        let mut state = vec![0; self.layout.words];
        for (count, initial) in machine.initial_states().enumerate() {
            for (cell, &value) in initial.memory.iter_enumerated() {
                let code = self.automaton.codes.code(cell, value);
                if !self.layout.cells[cell].holds(code) {
                    return Err(End::Outgrown);
                }
                self.layout.cells[cell].set(&mut state, code);
            }
            let mut choice = vec![0; starts.len()];
            'choices: loop {
                for (thread, &option) in choice.iter().enumerate() {
                    self.layout.threads[thread].set(&mut state, starts[thread][option].0);
                }
                let mut normal = state.clone();
                self.layout.normalise(&mut normal);
                let hash = hash(&normal);
                let shard = shard_of(hash);
                if let Inserted::New(position) = visited.shards[shard].insert(hash, &normal, StateId::NONE)
                    && self.judge.is_bad(self.automaton, self.layout, &normal)
                {
                    let id = StateId::new(shard, position);
                    bad = Some(bad.map_or(id, |old: StateId| old.min(id)));
                }
                for (thread, option) in choice.iter_mut().enumerate() {
                    *option += 1;
                    if *option < starts[thread].len() {
                        continue 'choices;
                    }
                    *option = 0;
                }
                break;
            }
            if count % 4096 == 4095 {
                self.budget.check(visited.bytes()).map_err(End::Exhausted)?;
            }
        }
        Ok(bad)
    }

    fn round(
        &self,
        visited: &mut Visited,
        round: &[(StateId, Wanted)],
        level_end: &[u32; SHARDS],
        chunks: &mut Vec<ChunkOut>,
        counters: &mut Counters,
    ) -> Round {
        match self.pool {
            Some(pool) if round.len() >= WORTH_SHARING => {
                pool.install(|| self.shared_round(visited, round, level_end, chunks, counters))
            }
            _ => self.lone_round(visited, round, level_end, counters),
        }
    }

    fn lone_round(
        &self,
        visited: &mut Visited,
        round: &[(StateId, Wanted)],
        level_end: &[u32; SHARDS],
        counters: &mut Counters,
    ) -> Round {
        let expander = self.expander();
        let mut result = Round::default();
        let mut ignored = Vec::new();
        let mut successors = Successors::default();
        let mut state = vec![0; self.layout.words];
        for &(id, wanted) in round {
            successors.words.clear();
            state.copy_from_slice(visited.state(id));
            let expansion = expander.expand(&state, wanted, &mut successors, &mut result.needs);
            match expansion {
                Expansion::Missing => result.again.push((id, wanted)),
                Expansion::TooManyThreads => result.too_many_threads = true,
                Expansion::All | Expansion::Part => {
                    let mut open = false;
                    for next in successors.words.chunks_exact(self.layout.words) {
                        let hash = hash(next);
                        let index = shard_of(hash);
                        counters.transitions += 1;
                        let shard = &mut visited.shards[index];
                        open |= self.insert(shard, index, hash, next, id, level_end, &mut result.findings);
                    }
                    if expansion == Expansion::Part && !open {
                        ignored.push((id, Wanted::All));
                    }
                }
            }
        }
        result.again.append(&mut ignored);
        result.payoff = successors.payoff;
        result
    }

    fn shared_round(
        &self,
        visited: &mut Visited,
        round: &[(StateId, Wanted)],
        level_end: &[u32; SHARDS],
        chunks: &mut Vec<ChunkOut>,
        counters: &mut Counters,
    ) -> Round {
        let pieces = round.len().div_ceil(CHUNK);
        chunks.resize_with(pieces.max(chunks.len()), ChunkOut::new);
        let chunks = &mut chunks[..pieces];
        let known: &Visited = visited;
        chunks
            .par_iter_mut()
            .zip(round.par_chunks(CHUNK))
            .enumerate()
            .for_each(|(piece, (out, states))| self.expand_chunk(known, piece * CHUNK, states, out));
        let open: Vec<AtomicBool> = round.iter().map(|_| AtomicBool::new(false)).collect();
        let outs: &[ChunkOut] = chunks;
        let findings: Vec<Findings> = visited
            .shards
            .par_iter_mut()
            .enumerate()
            .map(|(index, shard)| self.insert_bins(shard, index, round, level_end, outs, &open))
            .collect();
        let mut result = Round::default();
        result.findings.bad = findings.iter().filter_map(|findings| findings.bad).min();
        result.findings.full = findings.iter().any(|findings| findings.full);
        for out in chunks.iter_mut() {
            counters.transitions += out.transitions;
            result.too_many_threads |= out.too_many_threads;
            result.payoff.add(std::mem::take(&mut out.successors.payoff));
            result.again.extend(out.missed.iter().map(|&position| round[position as usize]));
            result.needs.append(&mut out.needs);
        }
        let parts = chunks.iter().flat_map(|out| &out.parts);
        let ignored = parts.filter(|&&position| !open[position as usize].load(Ordering::Relaxed));
        result.again.extend(ignored.map(|&position| (round[position as usize].0, Wanted::All)));
        result
    }

    fn expand_chunk(
        &self,
        visited: &Visited,
        first: usize,
        states: &[(StateId, Wanted)],
        out: &mut ChunkOut,
    ) {
        out.clear();
        let expander = self.expander();
        for (offset, &(id, wanted)) in states.iter().enumerate() {
            let position = (first + offset) as u32;
            out.successors.words.clear();
            match expander.expand(visited.state(id), wanted, &mut out.successors, &mut out.needs) {
                Expansion::Missing => out.missed.push(position),
                Expansion::TooManyThreads => out.too_many_threads = true,
                expansion @ (Expansion::All | Expansion::Part) => {
                    if expansion == Expansion::Part {
                        out.parts.push(position);
                    }
                    for next in out.successors.words.chunks_exact(self.layout.words) {
                        out.transitions += 1;
                        let bin = &mut out.bins[shard_of(hash(next))];
                        bin.push(u64::from(position));
                        bin.extend_from_slice(next);
                    }
                }
            }
        }
    }

    fn insert_bins(
        &self,
        shard: &mut Shard,
        index: usize,
        round: &[(StateId, Wanted)],
        level_end: &[u32; SHARDS],
        outs: &[ChunkOut],
        open: &[AtomicBool],
    ) -> Findings {
        let mut findings = Findings::default();
        for out in outs {
            for record in out.bins[index].chunks_exact(self.layout.words + 1) {
                let position = record[0] as usize;
                let next = &record[1..];
                let parent = round[position].0;
                if self.insert(shard, index, hash(next), next, parent, level_end, &mut findings) {
                    open[position].store(true, Ordering::Relaxed);
                }
            }
        }
        findings
    }

    /// Inserts a successor. Whether it still waits to be expanded.
    #[allow(clippy::too_many_arguments)]
    fn insert(
        &self,
        shard: &mut Shard,
        index: usize,
        hash: u64,
        state: &[u64],
        parent: StateId,
        level_end: &[u32; SHARDS],
        findings: &mut Findings,
    ) -> bool {
        match shard.insert(hash, state, parent) {
            Inserted::Known(position) => position >= level_end[index] as usize,
            Inserted::New(position) => {
                if self.judge.is_bad(self.automaton, self.layout, state) {
                    let id = StateId::new(index, position);
                    findings.bad = Some(findings.bad.map_or(id, |old| old.min(id)));
                }
                true
            }
            Inserted::Full => {
                findings.full = true;
                true
            }
        }
    }
}
