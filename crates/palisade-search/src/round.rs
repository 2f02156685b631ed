//! One round of a search: expansion, then insertion of the successors.

use crate::visited::{Inserted, Numbering, Shard, Visited, hash};
use crate::{Choose, Effort, Expand, Expansion, Finds, StateId, Successors, Wanted};
use palisade_engine::{Exhausted, Pace};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// States per task of an expansion phase.
const CHUNK: usize = 256;
/// Smaller rounds are not worth distributing over host threads.
const WORTH_SHARING: usize = 1 << 10;

/// A state that is due for expansion.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub id: StateId,
    pub wanted: Wanted,
    pub rank: u16,
}

impl Turn {
    /// The rank of a successor.
    fn next_rank(self, expansion: Expansion) -> u16 {
        if expansion == Expansion::Part { self.rank + 1 } else { 0 }
    }
}

/// The level being expanded, and the ranks of the states that wait for the next one, by shard.
pub(crate) struct Level {
    /// Where the next level begins.
    pub end: Vec<u32>,
    pub ranks: Vec<Vec<u16>>,
}

/// The output of one chunk of a round. For each shard, it holds records of a position in the round and a
/// state.
pub(crate) struct Chunk<E: Expand> {
    bins: Vec<Vec<u64>>,
    successors: Successors<E::Tally>,
    missed: Vec<u32>,
    parts: Vec<u32>,
    found: Vec<StateId>,
    needs: Vec<E::Need>,
    transitions: u64,
    halt: Option<E::Halt>,
    exhausted: Option<Exhausted>,
}

impl<E: Expand> Chunk<E> {
    fn new(shards: usize) -> Chunk<E> {
        Chunk {
            bins: vec![Vec::new(); shards],
            successors: Successors::default(),
            missed: Vec::new(),
            parts: Vec::new(),
            found: Vec::new(),
            needs: Vec::new(),
            transitions: 0,
            halt: None,
            exhausted: None,
        }
    }

    fn clear(&mut self) {
        self.bins.iter_mut().for_each(Vec::clear);
        self.missed.clear();
        self.parts.clear();
    }
}

/// The output of a round other than new states.
pub(crate) struct Outcome<E: Expand> {
    /// States that must be expanded again.
    pub again: Vec<Turn>,
    pub needs: Vec<E::Need>,
    pub found: Vec<StateId>,
    pub halt: Option<E::Halt>,
    pub exhausted: Option<Exhausted>,
    pub transitions: u64,
    tally: E::Tally,
}

impl<E: Expand> Outcome<E> {
    fn new() -> Outcome<E> {
        let (again, needs, found) = (Vec::new(), Vec::new(), Vec::new());
        let tally = E::Tally::default();
        Outcome { again, needs, found, halt: None, exhausted: None, transitions: 0, tally }
    }
}

/// The findings of one shard.
#[derive(Clone, Copy, Default)]
struct Findings {
    goal: Option<StateId>,
    full: bool,
    /// The total weight of the new states.
    weight: u64,
}

impl Findings {
    fn add(&mut self, other: Findings) {
        self.goal = self.goal.into_iter().chain(other.goal).min();
        self.full |= other.full;
        self.weight += other.weight;
    }
}

/// A round to run.
pub(crate) struct Phases<'r> {
    pub effort: Effort<'r>,
    pub visited: &'r mut Visited,
    pub level: &'r mut Level,
    pub round: &'r [Turn],
}

impl Phases<'_> {
    pub fn run<E: Expand>(
        mut self,
        expand: &mut E,
        choose: Choose<'_, E>,
        chunks: &mut Vec<Chunk<E>>,
    ) -> Outcome<E> {
        let pool = self.effort.pool.filter(|_| self.round.len() >= WORTH_SHARING);
        match pool {
            None if E::FINDS == Finds::States => self.interleaved(expand),
            pool => self.in_phases(expand, choose, chunks, pool),
        }
    }

    /// Runs on one host thread and inserts successors immediately.
    fn interleaved<E: Expand>(&mut self, expand: &mut E) -> Outcome<E> {
        let numbering = self.visited.numbering();
        let words = self.visited.words();
        let mut outcome = Outcome::new();
        let mut findings = Findings::default();
        let mut ignored = Vec::new();
        let mut successors = Successors::default();
        let mut state = vec![0; words];
        let mut pace = Pace::new();
        for &turn in self.round {
            let bytes = || self.visited.bytes() + expand.bytes();
            if let Err(what) = self.effort.limits.check_often(&mut pace, bytes) {
                outcome.exhausted = Some(what);
                break;
            }
            successors.clear();
            state.copy_from_slice(self.visited.state(turn.id));
            match expand.expand(&state, turn.wanted, &mut successors, &mut outcome.needs) {
                Ok(Expansion::Missing) => outcome.again.push(turn),
                Ok(expansion) => {
                    let mut open = false;
                    for (position, next) in successors.words.chunks_exact(words).enumerate() {
                        let weight = successors.weight(position);
                        let hash = hash(next);
                        let index = numbering.shard_of(hash);
                        outcome.transitions += 1;
                        let mut place = Destination {
                            shard: &mut self.visited.shards[index],
                            index,
                            numbering,
                            level_end: self.level.end[index] as usize,
                            ranks: &mut self.level.ranks[index],
                        };
                        let reached = Reached { parent: turn.id, rank: turn.next_rank(expansion), weight };
                        open |= place.insert(expand, hash, next, reached, &mut findings);
                    }
                    if expansion == Expansion::Part && !open {
                        ignored.push(Turn { wanted: Wanted::All, ..turn });
                    }
                }
                Err(halt) => outcome.halt = outcome.halt.or(Some(halt)),
            }
        }
        outcome.again.append(&mut ignored);
        outcome.tally = successors.tally;
        self.conclude(expand, outcome, findings)
    }

    /// First expands all states, then inserts all successors.
    fn in_phases<E: Expand>(
        &mut self,
        expand: &mut E,
        choose: Choose<'_, E>,
        chunks: &mut Vec<Chunk<E>>,
        pool: Option<&rayon::ThreadPool>,
    ) -> Outcome<E> {
        let pieces = self.round.len().div_ceil(CHUNK);
        let shards = self.visited.shards.len();
        chunks.resize_with(pieces.max(chunks.len()), || Chunk::new(shards));
        let chunks = &mut chunks[..pieces];
        self.expand_all(expand, chunks, pool);
        let mut outcome = Outcome::new();
        for chunk in chunks.iter_mut() {
            outcome.transitions += std::mem::take(&mut chunk.transitions);
            outcome.halt = outcome.halt.or(chunk.halt.take());
            outcome.exhausted = outcome.exhausted.or(chunk.exhausted.take());
            outcome.again.extend(chunk.missed.iter().map(|&position| self.round[position as usize]));
            outcome.needs.append(&mut chunk.needs);
            outcome.found.append(&mut chunk.found);
            outcome.tally += std::mem::take(&mut chunk.successors.tally);
        }
        if !outcome.found.is_empty() {
            outcome.found.sort_unstable();
            outcome.found = choose(expand, self.visited, outcome.found);
            if !outcome.found.is_empty() {
                return self.conclude(expand, outcome, Findings::default());
            }
        }
        let open: Vec<AtomicBool> = self.round.iter().map(|_| AtomicBool::new(false)).collect();
        let findings = self.insert_all(expand, chunks, &open, pool);
        let parts = chunks.iter().flat_map(|chunk| &chunk.parts);
        let ignored = parts.filter(|&&position| !open[position as usize].load(Ordering::Relaxed));
        let ignored = ignored.map(|&position| Turn { wanted: Wanted::All, ..self.round[position as usize] });
        outcome.again.extend(ignored);
        self.conclude(expand, outcome, findings)
    }

    fn conclude<E: Expand>(&self, expand: &mut E, mut outcome: Outcome<E>, findings: Findings) -> Outcome<E> {
        expand.count(std::mem::take(&mut outcome.tally), findings.weight);
        outcome.found.extend(findings.goal);
        if findings.full && outcome.exhausted.is_none() {
            outcome.exhausted = Some(Exhausted::Memory(self.effort.limits.memory()));
        }
        outcome
    }

    fn expand_all<E: Expand>(&self, expand: &E, chunks: &mut [Chunk<E>], pool: Option<&rayon::ThreadPool>) {
        let one = |(piece, (chunk, turns)): (usize, (&mut Chunk<E>, &[Turn]))| {
            self.expand_chunk(expand, piece * CHUNK, turns, chunk);
        };
        match pool {
            Some(pool) => pool.install(|| {
                chunks.par_iter_mut().zip(self.round.par_chunks(CHUNK)).enumerate().for_each(one);
            }),
            None => chunks.iter_mut().zip(self.round.chunks(CHUNK)).enumerate().for_each(one),
        }
    }

    fn expand_chunk<E: Expand>(&self, expand: &E, first: usize, turns: &[Turn], out: &mut Chunk<E>) {
        out.clear();
        let numbering = self.visited.numbering();
        let words = self.visited.words();
        let mut pace = Pace::new();
        for (offset, &turn) in turns.iter().enumerate() {
            let bytes = || self.visited.bytes() + expand.bytes();
            if let Err(what) = self.effort.limits.check_often(&mut pace, bytes) {
                out.exhausted = Some(what);
                break;
            }
            let position = (first + offset) as u32;
            out.successors.clear();
            let state = self.visited.state(turn.id);
            match expand.expand(state, turn.wanted, &mut out.successors, &mut out.needs) {
                Ok(Expansion::Missing) => out.missed.push(position),
                Ok(expansion) => {
                    if expansion == Expansion::Part {
                        out.parts.push(position);
                    }
                    if out.successors.found {
                        out.found.push(turn.id);
                    }
                    let rank = turn.next_rank(expansion);
                    for (index, next) in out.successors.words.chunks_exact(words).enumerate() {
                        let weight = out.successors.weight(index);
                        out.transitions += 1;
                        let bin = &mut out.bins[numbering.shard_of(hash(next))];
                        bin.push(u64::from(weight) << 48 | u64::from(rank) << 32 | u64::from(position));
                        bin.extend_from_slice(next);
                    }
                }
                Err(halt) => out.halt = out.halt.take().or(Some(halt)),
            }
        }
    }

    fn insert_all<E: Expand>(
        &mut self,
        expand: &E,
        chunks: &[Chunk<E>],
        open: &[AtomicBool],
        pool: Option<&rayon::ThreadPool>,
    ) -> Findings {
        let (numbering, words) = (self.visited.numbering(), self.visited.words());
        let (round, ends) = (self.round, &self.level.end);
        let one = |(index, (shard, ranks)): (usize, (&mut Shard, &mut Vec<u16>))| {
            let level_end = ends[index] as usize;
            let mut place = Destination { shard, index, numbering, level_end, ranks };
            let mut findings = Findings::default();
            for chunk in chunks {
                for record in chunk.bins[index].chunks_exact(words + 1) {
                    let position = record[0] as u32 as usize;
                    let (rank, weight) = ((record[0] >> 32) as u16, (record[0] >> 48) as u16);
                    let next = &record[1..];
                    let reached = Reached { parent: round[position].id, rank, weight };
                    if place.insert(expand, hash(next), next, reached, &mut findings) {
                        open[position].store(true, Ordering::Relaxed);
                    }
                }
            }
            findings
        };
        let (shards, ranks) = (&mut self.visited.shards, &mut self.level.ranks);
        let all: Vec<Findings> = match pool {
            Some(pool) => pool
                .install(|| shards.par_iter_mut().zip(ranks.par_iter_mut()).enumerate().map(one).collect()),
            None => shards.iter_mut().zip(ranks.iter_mut()).enumerate().map(one).collect(),
        };
        all.into_iter().fold(Findings::default(), |mut all, findings| {
            all.add(findings);
            all
        })
    }
}

/// How a state was reached.
#[derive(Clone, Copy)]
struct Reached {
    parent: StateId,
    rank: u16,
    /// The state's weight if it is new.
    weight: u16,
}

/// A shard, and information about its states that wait for the next level.
struct Destination<'v> {
    shard: &'v mut Shard,
    index: usize,
    numbering: Numbering,
    /// Where the next level begins.
    level_end: usize,
    ranks: &'v mut Vec<u16>,
}

impl Destination<'_> {
    /// Inserts a successor. Returns whether it still waits to be expanded.
    #[inline(always)]
    fn insert<E: Expand>(
        &mut self,
        expand: &E,
        hash: u64,
        state: &[u64],
        Reached { parent, rank, weight }: Reached,
        findings: &mut Findings,
    ) -> bool {
        match self.shard.insert(hash, state, parent) {
            Inserted::Known(position) => match position.checked_sub(self.level_end) {
                Some(waiting) => {
                    self.ranks[waiting] = self.ranks[waiting].max(rank);
                    true
                }
                None => false,
            },
            Inserted::New(position) => {
                let waiting = self.level_end + self.ranks.len();
                debug_assert_eq!(position, waiting, "every waiting state has a rank");
                self.ranks.push(rank);
                findings.weight += u64::from(weight);
                if expand.is_goal(state) {
                    let id = self.numbering.id(self.index, position);
                    findings.goal = Some(findings.goal.map_or(id, |old| old.min(id)));
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
