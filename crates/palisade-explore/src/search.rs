//! Breadth-first search over packed states, in batches, on all cores.
//!
//! *How.* A level of the search is taken in batches. In a *round*, the states of a batch are expanded with the thread automaton as it is; then what
//! the automaton lacked is supplied (by one host thread, in a fixed order), and the states that had to wait, or whose reduced successors turned out to be
//! old (see [`crate::expand`]), are taken again. Expansion and insertion are separate phases: while states are expanded nothing is
//! written, and each shard of the visited set is filled by one host thread.
//!
//! *No thread is ignored forever.* A state may be expanded in part (see [`crate::expand`]) only if the search gets from it, by such parts alone, to a state that is expanded fully: whatever another
//! thread can do is then done there. Each waiting state has a *rank*. Two conditions see to it:
//! 1. at least one successor of a state expanded in part is met for the first time, or waits in the next level (the queue proviso of Bošnački and Holzmann for breadth-first search). That successor
//!    gets a rank greater than the state's, if it has no greater one already;
//! 2. a state whose rank is [`PATIENCE`] is expanded fully. Successors of fully expanded states have rank 0, unless a state expanded in part raises it.
//!
//! By 1, following those successors the rank grows with each level; by 2, it cannot grow forever. In a finite state space 1 alone would do: some state is expanded last. In an infinite one there need not
//! be a last one: a thread that counts up a register has a new state with every step.
//!
//! *Guarantee.* Every bad state that some run reaches is met after finitely many levels, or another one before it; so this holds for infinite state spaces, too. Numbers of states, parents and the bad state reported do not depend on the number of jobs: in each shard, insertions happen in
//! the order of the batch. The bad state found has the least depth (in collapsed steps, a chain counting as one).

use crate::automaton::{Automaton, Need};
use crate::chain::{Follow, Payoff};
use crate::expand::{Crowd, Expander, Expansion, Successors, Wanted};
use crate::judge::Judge;
use crate::layout::Layout;
use crate::visited::{Inserted, SHARDS, Shard, StateId, Visited, hash, shard_of};
use palisade_automata::on_demand::LocalId;
use palisade_base::limits;
use palisade_engine::{Budget, Exhausted, Pace};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// States per batch: large enough to keep all cores busy between phases, small enough for the caches.
const BATCH: usize = 1 << 14;
/// States per task of an expansion phase.
const CHUNK: usize = 256;
/// Smaller rounds are not worth sharing out.
const WORTH_SHARING: usize = 1 << 10;
/// More different values than this in a cell without a declared domain count as growth without bound.
const GROWING: u64 = 1024;
/// More thread states than this count as growth without bound.
const MOST_LOCALS: usize = 1 << 20;

/// How many states in a row may be expanded in part. Small, so that no thread waits long for its turn; but hardly any program does so much in a row that concerns no other thread.
const PATIENCE: u16 = 32;

/// How a search ended.
pub(crate) enum End {
    /// All reachable states were visited; none is bad.
    Clean {
        /// Whether threads that would have been started were left out.
        left_out: bool,
    },
    /// The states of a run to a bad state, packed.
    Bad(Vec<Vec<u64>>),
    /// The same, unpacked.
    Run(palisade_trace::Run),
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
    /// Steps through states that were not stored.
    pub chain_steps: u64,
    pub bytes: u64,
}

/// A search.
pub(crate) struct Search<'s, 'a> {
    pub automaton: &'s mut Automaton<'a>,
    pub layout: &'s Layout,
    pub judge: &'s Judge<'a>,
    pub reduce: bool,
    pub crowd: Crowd,
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
    /// Steps of chains that led to new states.
    steps_to_new: u64,
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
    exhausted: Option<Exhausted>,
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
            exhausted: None,
        }
    }

    fn clear(&mut self) {
        self.bins.iter_mut().for_each(Vec::clear);
        self.missed.clear();
        self.parts.clear();
        self.needs.clear();
        self.transitions = 0;
        self.too_many_threads = false;
        self.exhausted = None;
    }
}

/// A state whose turn it is.
#[derive(Clone, Copy)]
struct Turn {
    id: StateId,
    wanted: Wanted,
    rank: u16,
}

impl Turn {
    /// The rank of a successor.
    fn next_rank(self, expansion: Expansion) -> u16 {
        if expansion == Expansion::Part { self.rank + 1 } else { 0 }
    }
}

/// The ranks of the states of a level, by shard and position.
type Ranks = [Vec<u16>; SHARDS];

fn no_ranks() -> Ranks {
    std::array::from_fn(|_| Vec::new())
}

/// What a round produced besides new states.
#[derive(Default)]
struct Round {
    again: Vec<Turn>,
    left_out: bool,
    needs: Vec<Need>,
    findings: Findings,
    too_many_threads: bool,
    exhausted: Option<Exhausted>,
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
        counters.chain_steps = self.chains.walked;
        counters.bytes = visited.bytes() + self.automaton.bytes();
    }

    fn search(&mut self, visited: &mut Visited, counters: &mut Counters) -> Result<End, End> {
        if let Some(bad) = self.insert_initial(visited)? {
            return Ok(self.bad(visited, bad));
        }
        let mut chunks: Vec<ChunkOut> = Vec::new();
        let mut start = [0; SHARDS];
        let mut left_out = false;
        let mut ranks = visited.lens().map(|len| vec![0; len as usize]);
        loop {
            let end = visited.lens();
            if start == end {
                return Ok(End::Clean { left_out });
            }
            let mut next_ranks = no_ranks();
            let level = (0..SHARDS).flat_map(|shard| {
                let waiting = (start[shard]..end[shard]).zip(&ranks[shard]);
                waiting.map(move |(position, &rank)| (StateId::new(shard, position as usize), rank))
            });
            let reduce = self.reduce;
            let turns = level.map(|(id, rank)| {
                let in_part = reduce && rank < PATIENCE;
                Turn { id, rank, wanted: if in_part { Wanted::Some } else { Wanted::All } }
            });
            let mut turns = turns.peekable();
            while turns.peek().is_some() {
                let mut round: Vec<Turn> = turns.by_ref().take(BATCH).collect();
                while !round.is_empty() {
                    let result = self.round(visited, &round, &end, &mut next_ranks, &mut chunks, counters);
                    self.chains.add(result.payoff);
                    left_out |= result.left_out;
                    if let Some(bad) = result.findings.bad {
                        return Ok(self.bad(visited, bad));
                    }
                    if result.too_many_threads {
                        return Err(End::TooManyThreads);
                    }
                    if let Some(what) = result.exhausted {
                        return Err(End::Exhausted(what));
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
            ranks = next_ranks;
        }
    }

    fn expander(&self) -> Expander<'_, '_> {
        Expander {
            automaton: self.automaton,
            layout: self.layout,
            judge: self.judge,
            reduce: self.reduce,
            crowd: self.crowd,
            follow: if self.reduce { self.chains.follow() } else { Follow::No },
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
        self.budget.check(bytes).map_err(End::Exhausted)?;
        let automaton = &mut *self.automaton;
        let supply = || {
            needs.into_iter().for_each(|need| {
                limits::go_on();
                automaton.supply(need);
            });
        };
        self.budget.within(supply).map_err(End::Exhausted)?;
        if let Some(cell) = self.automaton.values.most_varied(GROWING + 1) {
            return Err(End::CellGrows(cell));
        }
        if self.automaton.numbers() > MOST_LOCALS {
            return Err(End::ThreadStatesGrow);
        }
        if self.layout.fits(self.automaton) { Ok(()) } else { Err(End::Outgrown) }
    }

    /// Inserts all initial states: every initial memory with every choice of first thread states. A bad one, if there is one.
    fn insert_initial(&mut self, visited: &mut Visited) -> Result<Option<StateId>, End> {
        let machine = self.automaton.machine.machine;
        let automaton = &mut *self.automaton;
        let start = |role| automaton.starts(role).to_vec();
        let starts = machine.system.instances.iter().map(|instance| instance.role).map(start);
        let starts = self.budget.within(|| starts.collect::<Vec<Vec<LocalId>>>()).map_err(End::Exhausted)?;
        if !self.layout.fits(self.automaton) {
            return Err(End::Outgrown);
        }
        let mut bad = None;
        let mut state = vec![0; self.layout.words];
        let mut pace = Pace::new();
        for initial in machine.initial_states() {
            for (cell, &value) in initial.memory.iter_enumerated() {
                let code = self.automaton.values.code(cell, value);
                if !self.layout.cells[cell].holds(code) {
                    return Err(End::Outgrown);
                }
                self.layout.cells[cell].set(&mut state, code);
            }
            let mut choice = vec![0; starts.len()];
            'choices: loop {
                self.budget.check_often(&mut pace, || visited.bytes()).map_err(End::Exhausted)?;
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
        }
        Ok(bad)
    }

    fn round(
        &self,
        visited: &mut Visited,
        round: &[Turn],
        level_end: &[u32; SHARDS],
        ranks: &mut Ranks,
        chunks: &mut Vec<ChunkOut>,
        counters: &mut Counters,
    ) -> Round {
        match self.pool {
            Some(pool) if round.len() >= WORTH_SHARING => {
                pool.install(|| self.shared_round(visited, round, level_end, ranks, chunks, counters))
            }
            _ => self.lone_round(visited, round, level_end, ranks, counters),
        }
    }

    fn lone_round(
        &self,
        visited: &mut Visited,
        round: &[Turn],
        level_end: &[u32; SHARDS],
        ranks: &mut Ranks,
        counters: &mut Counters,
    ) -> Round {
        let expander = self.expander();
        let mut result = Round::default();
        let mut ignored = Vec::new();
        let mut successors = Successors::default();
        let mut state = vec![0; self.layout.words];
        let mut pace = Pace::new();
        for &turn in round {
            let bytes = || visited.bytes() + self.automaton.bytes();
            if let Err(what) = self.budget.check_often(&mut pace, bytes) {
                result.exhausted = Some(what);
                break;
            }
            successors.clear();
            state.copy_from_slice(visited.state(turn.id));
            let expansion = expander.expand(&state, turn.wanted, &mut successors, &mut result.needs);
            match expansion {
                Expansion::Missing => result.again.push(turn),
                Expansion::TooManyThreads => result.too_many_threads = true,
                Expansion::All | Expansion::Part => {
                    let mut open = false;
                    for (next, steps) in successors.iter(self.layout.words) {
                        let hash = hash(next);
                        let index = shard_of(hash);
                        counters.transitions += 1;
                        let mut place = Place {
                            shard: &mut visited.shards[index],
                            index,
                            level_end: level_end[index] as usize,
                            ranks: &mut ranks[index],
                        };
                        let arrival = Arrival { parent: turn.id, rank: turn.next_rank(expansion), steps };
                        open |= self.insert(&mut place, hash, next, arrival, &mut result.findings);
                    }
                    if expansion == Expansion::Part && !open {
                        ignored.push(Turn { wanted: Wanted::All, ..turn });
                    }
                }
            }
        }
        result.again.append(&mut ignored);
        result.payoff = successors.payoff;
        result.payoff.to_new = result.findings.steps_to_new;
        result.left_out = successors.left_out;
        result
    }

    fn shared_round(
        &self,
        visited: &mut Visited,
        round: &[Turn],
        level_end: &[u32; SHARDS],
        ranks: &mut Ranks,
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
            .zip(ranks.par_iter_mut())
            .enumerate()
            .map(|(index, (shard, ranks))| {
                let place = Place { shard, index, level_end: level_end[index] as usize, ranks };
                self.insert_bins(place, round, outs, &open)
            })
            .collect();
        let mut result = Round::default();
        result.findings.bad = findings.iter().filter_map(|findings| findings.bad).min();
        result.findings.full = findings.iter().any(|findings| findings.full);
        result.payoff.to_new = findings.iter().map(|findings| findings.steps_to_new).sum();
        for out in chunks.iter_mut() {
            counters.transitions += out.transitions;
            result.too_many_threads |= out.too_many_threads;
            result.exhausted = result.exhausted.or(out.exhausted);
            result.payoff.add(std::mem::take(&mut out.successors.payoff));
            result.left_out |= std::mem::take(&mut out.successors.left_out);
            result.again.extend(out.missed.iter().map(|&position| round[position as usize]));
            result.needs.append(&mut out.needs);
        }
        let parts = chunks.iter().flat_map(|out| &out.parts);
        let ignored = parts.filter(|&&position| !open[position as usize].load(Ordering::Relaxed));
        let ignored = ignored.map(|&position| Turn { wanted: Wanted::All, ..round[position as usize] });
        result.again.extend(ignored);
        result
    }

    fn expand_chunk(&self, visited: &Visited, first: usize, states: &[Turn], out: &mut ChunkOut) {
        out.clear();
        let expander = self.expander();
        let mut pace = Pace::new();
        for (offset, &turn) in states.iter().enumerate() {
            let bytes = || visited.bytes() + self.automaton.bytes();
            if let Err(what) = self.budget.check_often(&mut pace, bytes) {
                out.exhausted = Some(what);
                break;
            }
            let position = (first + offset) as u32;
            out.successors.clear();
            let state = visited.state(turn.id);
            match expander.expand(state, turn.wanted, &mut out.successors, &mut out.needs) {
                Expansion::Missing => out.missed.push(position),
                Expansion::TooManyThreads => out.too_many_threads = true,
                expansion @ (Expansion::All | Expansion::Part) => {
                    if expansion == Expansion::Part {
                        out.parts.push(position);
                    }
                    for (next, steps) in out.successors.iter(self.layout.words) {
                        out.transitions += 1;
                        let bin = &mut out.bins[shard_of(hash(next))];
                        let rank = turn.next_rank(expansion);
                        bin.push(u64::from(steps) << 48 | u64::from(rank) << 32 | u64::from(position));
                        bin.extend_from_slice(next);
                    }
                }
            }
        }
    }

    fn insert_bins(
        &self,
        mut place: Place<'_>,
        round: &[Turn],
        outs: &[ChunkOut],
        open: &[AtomicBool],
    ) -> Findings {
        let mut findings = Findings::default();
        for out in outs {
            for record in out.bins[place.index].chunks_exact(self.layout.words + 1) {
                let position = record[0] as u32 as usize;
                let (rank, steps) = ((record[0] >> 32) as u16, (record[0] >> 48) as u16);
                let next = &record[1..];
                let arrival = Arrival { parent: round[position].id, rank, steps };
                if self.insert(&mut place, hash(next), next, arrival, &mut findings) {
                    open[position].store(true, Ordering::Relaxed);
                }
            }
        }
        findings
    }

    /// Inserts a successor. Whether it still waits to be expanded.
    fn insert(
        &self,
        place: &mut Place<'_>,
        hash: u64,
        state: &[u64],
        Arrival { parent, rank, steps }: Arrival,
        findings: &mut Findings,
    ) -> bool {
        match place.shard.insert(hash, state, parent) {
            Inserted::Known(position) => match position.checked_sub(place.level_end) {
                Some(waiting) => {
                    place.ranks[waiting] = place.ranks[waiting].max(rank);
                    true
                }
                None => false,
            },
            Inserted::New(position) => {
                debug_assert_eq!(
                    position,
                    place.level_end + place.ranks.len(),
                    "every waiting state has a rank"
                );
                place.ranks.push(rank);
                findings.steps_to_new += u64::from(steps);
                if self.judge.is_bad(self.automaton, self.layout, state) {
                    let id = StateId::new(place.index, position);
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

/// How a state was reached.
#[derive(Clone, Copy)]
struct Arrival {
    parent: StateId,
    rank: u16,
    /// Steps of the chain that it is the end of.
    steps: u16,
}

/// A shard, and what is known of the states in it that wait for the next level.
struct Place<'v> {
    shard: &'v mut Shard,
    index: usize,
    /// Where the next level begins.
    level_end: usize,
    ranks: &'v mut Vec<u16>,
}
