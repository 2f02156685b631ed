//! Proofs by sets of stacks, for recursion.
//!
//! A piece is a memory and a set of stacks for each thread. It represents all states with this memory in
//! which each stack is in its set and no atomic section is open. Pieces are a proof if
//! 1. for each initial state, a piece contains all ways in which its threads first wait;
//! 2. for each piece and each thread, consider everything that the thread reaches alone
//!    ([`super::saturate`]). The part that is outside sections and waits must be in a piece, for each
//!    memory it leaves and each list of threads it starts, together with the sets of the others and with the
//!    starts of the new threads;
//! 3. the thread causes no fault on its way, and no state of a piece violates a property.
//!
//! This is the argument in the [header](super) of this folder with longer steps. Whatever a thread does
//! between one point outside sections and the next (inside a section the others do not run) is something
//! it reaches alone. Here a thread waits where it may call or return. So passing concerns only the top frame,
//! and is visible there.

use super::alone::Alone;
use super::inclusion::{END, Row, is_within};
use super::saturate::{Letter, Rules, Saturated, saturate};
use super::{Table, check_task, read_memories, unfit};
use crate::seen::{Seen, seen};
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use palisade_base::Id;
use palisade_engine::Task;
use palisade_engine::proof::{Piece, StackSet, Stacks};
use palisade_memory::{State, Thread};
use palisade_program::Value;
use palisade_program::running::{Location, RoleId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Threads of a piece: roles, and sets of stacks.
type Threads = Vec<(RoleId, u32)>;

/// Marks the thread whose set may be arbitrary.
const OPEN: u32 = u32::MAX;

struct Checker<'a, 'b> {
    rules: Rules<'a>,
    watch: &'b Watch<'b>,
    sets: Vec<Vec<Row>>,
    pieces: Vec<(u32, Threads)>,
    /// Pieces by memory and roles.
    by_roles: FxHashMap<(u32, Vec<RoleId>), Vec<usize>>,
    /// Pieces by memory and everything except the set of one thread.
    by_others: FxHashMap<(u32, Threads), Vec<usize>>,
    most_threads: usize,
    within: FxHashMap<(u32, u32), bool>,
    starts: FxHashMap<RoleId, Rc<[Row]>>,
    started_in: FxHashMap<(RoleId, u32), bool>,
    saturated: FxHashMap<(u32, u32), Rc<Reached>>,
    left: FxHashMap<(u32, u32, usize, u32), bool>,
    looks: Looks,
    summary: Summary,
}

/// The stacks that a thread reaches alone: the automaton, and for each control the edges with a top that
/// waits.
struct Reached {
    automaton: Saturated,
    waiting: Vec<Row>,
}

/// The views that properties have of sets of stacks.
struct Looks {
    seen: Vec<Seen>,
    /// By role and set: one sample of each kind of thread that properties can distinguish.
    samples: Table<Vec<Thread>>,
    of: FxHashMap<(RoleId, u32), u32>,
    judged: FxHashSet<(u32, Vec<u32>)>,
}

/// Checks that a proof shows a program to be safe under SC.
pub(crate) fn verify(task: &Task<'_>, proof: &Stacks, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    check_task(task)?;
    let system = task.lower(1);
    let mut checker = Checker {
        rules: Rules::new(Alone::new(task, &system, &proof.stops)?),
        watch,
        sets: Vec::new(),
        pieces: Vec::new(),
        by_roles: FxHashMap::default(),
        by_others: FxHashMap::default(),
        most_threads: proof.pieces.iter().map(|piece| piece.threads.len()).max().unwrap_or(0),
        within: FxHashMap::default(),
        starts: FxHashMap::default(),
        started_in: FxHashMap::default(),
        saturated: FxHashMap::default(),
        left: FxHashMap::default(),
        looks: Looks {
            seen: seen(&system, |_| true),
            samples: Table::new(),
            of: FxHashMap::default(),
            judged: FxHashSet::default(),
        },
        summary: Summary::default(),
    };
    checker.read(proof)?;
    checker.check_initial()?;
    for number in 0..checker.pieces.len() {
        checker.check_piece(number)?;
    }
    Ok(checker.summary)
}

impl Checker<'_, '_> {
    fn read(&mut self, proof: &Stacks) -> Result<(), Refusal> {
        let cells = self.rules.alone.system().cells.len();
        let memories = read_memories(cells, &proof.memories, &mut self.rules.memories)?;
        let mut letters = Vec::with_capacity(proof.frames.len());
        for frame in &proof.frames {
            let (inherited, opened) = (frame.inherited, frame.opened);
            let letter = Letter { frame: self.rules.alone.frame(&frame.frame)?, inherited, opened };
            letters.push(self.rules.letters.id(letter));
        }
        self.sets = proof.sets.iter().map(|set| read_set(set, &letters)).collect::<Result<_, _>>()?;
        for piece in &proof.pieces {
            let (memory, threads) = self.read_piece(piece, &memories)?;
            let number = self.pieces.len();
            let roles = threads.iter().map(|&(role, _)| role).collect();
            self.by_roles.entry((memory, roles)).or_default().push(number);
            for thread in 0..threads.len() {
                self.by_others.entry((memory, without(&threads, thread))).or_default().push(number);
            }
            self.pieces.push((memory, threads));
        }
        // Larger sets contain more, so they are tried first.
        let sizes: Vec<usize> = self.sets.iter().map(|rows| rows.iter().map(Vec::len).sum()).collect();
        let size = |threads: &Threads| threads.iter().map(|&(_, set)| sizes[set as usize]).sum();
        let sizes: Vec<usize> = self.pieces.iter().map(|(_, threads)| size(threads)).collect();
        for candidates in self.by_roles.values_mut().chain(self.by_others.values_mut()) {
            candidates.sort_by_key(|&piece| std::cmp::Reverse(sizes[piece]));
        }
        Ok(())
    }

    fn read_piece(&self, piece: &Piece, memories: &[u32]) -> Result<(u32, Threads), Refusal> {
        let system = self.rules.alone.system();
        let Some(&memory) = memories.get(piece.memory as usize) else { return unfit("an invalid piece") };
        let instances = system.instances.iter().map(|instance| instance.role);
        let roles: Vec<RoleId> = piece.threads.iter().map(|&(role, _)| RoleId(role)).collect();
        if !instances.eq(roles.iter().copied().take(system.instances.len())) {
            return unfit("a piece with the wrong threads");
        }
        for (&role, &(_, set)) in roles.iter().zip(&piece.threads) {
            let (Some(role), Some(rows)) = (system.roles.get(role), self.sets.get(set as usize)) else {
                return unfit("an invalid piece");
            };
            let mut bottoms = rows.iter().flatten().filter(|&&(_, to)| to == END);
            if !bottoms.all(|&(letter, _)| self.rules.letters.get(letter).frame.code == role.code) {
                return unfit("a stack without a process body");
            }
        }
        Ok((memory, roles.into_iter().zip(piece.threads.iter().map(|&(_, set)| set)).collect()))
    }

    fn check_initial(&mut self) -> Result<(), Refusal> {
        let machine = self.rules.alone.machine;
        let roles: Vec<RoleId> = machine.system.instances.iter().map(|instance| instance.role).collect();
        for (number, state) in machine.initial_states().enumerate() {
            if number % 1024 == 0 {
                self.watch.look(self.rules.bytes())?;
            }
            let memory = self.rules.memories.id(state.memory.as_slice().to_vec());
            let candidates = self.by_roles.get(&(memory, roles.clone())).cloned().unwrap_or_default();
            if !self.any(&candidates, |checker, piece| {
                let threads = checker.pieces[piece].1.clone();
                checker.all(&threads, |checker, &(role, set)| checker.starts_in(role, set))
            })? {
                return Err(Refusal::InitialMissing);
            }
        }
        Ok(())
    }

    fn check_piece(&mut self, number: usize) -> Result<(), Refusal> {
        self.watch.look(self.rules.bytes())?;
        self.summary.elements += 1;
        self.watch.element()?;
        let (memory, threads) = self.pieces[number].clone();
        if self.is_bad(memory, &threads)? {
            return Err(Refusal::Bad(number));
        }
        for thread in 0..threads.len() {
            let set = threads[thread].1;
            let reached = match self.alone(set, memory) {
                Err(Refusal::BadReached) => return Err(Refusal::Bad(number)),
                reached => reached?,
            };
            for (at, (control, _)) in reached.automaton.controls.iter().enumerate() {
                if reached.waiting[at].is_empty() {
                    continue;
                }
                self.summary.predecessors += 1;
                let left = Left { threads: &threads, thread, from: (set, memory), at, reached: &reached };
                if !self.is_held(&left)? {
                    let to = self.rules.memories.get(control.memory);
                    let to =
                        format!("thread {thread} leaves memory {to:?} and has started {:?}", control.started);
                    return Err(Refusal::Leaves { element: number, to: Missing::Stacks(to) });
                }
            }
        }
        Ok(())
    }

    /// The stacks that a thread with one of these stacks reaches alone.
    fn alone(&mut self, set: u32, memory: u32) -> Result<Rc<Reached>, Refusal> {
        if let Some(known) = self.saturated.get(&(set, memory)) {
            return Ok(Rc::clone(known));
        }
        let automaton =
            saturate(&mut self.rules, &self.sets[set as usize], memory, self.most_threads, self.watch)?;
        let mut waiting = Vec::with_capacity(automaton.controls.len());
        for (_, state) in &automaton.controls {
            let mut row = Row::new();
            for &(letter, to) in &automaton.rows[*state as usize] {
                if self.rules.waits(letter)? {
                    row.push((letter, to));
                }
            }
            waiting.push(row);
        }
        let reached = Rc::new(Reached { automaton, waiting });
        self.saturated.insert((set, memory), Rc::clone(&reached));
        Ok(reached)
    }

    /// Whether a piece contains everything that a thread leaves with a control.
    fn is_held(&mut self, left: &Left<'_>) -> Result<bool, Refusal> {
        let (control, _) = &left.reached.automaton.controls[left.at];
        // Usually the sets of the others are the same.
        if control.started.is_empty() {
            let others = (control.memory, without(left.threads, left.thread));
            let candidates = self.by_others.get(&others).cloned().unwrap_or_default();
            if self.any(&candidates, |checker, piece| {
                checker.leaves_in(left, checker.pieces[piece].1[left.thread].1)
            })? {
                return Ok(true);
            }
        }
        let roles = left.threads.iter().map(|&(role, _)| role).chain(control.started.iter().copied());
        let candidates = self.by_roles.get(&(control.memory, roles.collect())).cloned().unwrap_or_default();
        self.any(&candidates, |checker, piece| {
            let sets: Vec<u32> = checker.pieces[piece].1.iter().map(|&(_, set)| set).collect();
            let (old, new) = sets.split_at(left.threads.len());
            for (thread, (&(_, set), &other)) in left.threads.iter().zip(old).enumerate() {
                if thread != left.thread && !checker.set_within(set, other)? {
                    return Ok(false);
                }
            }
            for (&role, &set) in control.started.iter().zip(new) {
                if !checker.starts_in(role, set)? {
                    return Ok(false);
                }
            }
            checker.leaves_in(left, old[left.thread])
        })
    }

    fn leaves_in(&mut self, left: &Left<'_>, set: u32) -> Result<bool, Refusal> {
        let key = (left.from.0, left.from.1, left.at, set);
        if let Some(&known) = self.left.get(&key) {
            return Ok(known);
        }
        let Reached { automaton, waiting } = left.reached;
        let within = is_within(&waiting[left.at], &automaton.rows, &self.sets[set as usize], self.watch)?;
        self.left.insert(key, within);
        Ok(within)
    }

    fn set_within(&mut self, a: u32, b: u32) -> Result<bool, Refusal> {
        if a == b {
            return Ok(true);
        }
        if let Some(&known) = self.within.get(&(a, b)) {
            return Ok(known);
        }
        let rows = &self.sets[a as usize];
        let within = is_within(&rows[0], rows, &self.sets[b as usize], self.watch)?;
        self.within.insert((a, b), within);
        Ok(within)
    }

    /// Whether a set contains the stacks with which a thread first waits.
    fn starts_in(&mut self, role: RoleId, set: u32) -> Result<bool, Refusal> {
        if let Some(&known) = self.started_in.get(&(role, set)) {
            return Ok(known);
        }
        if !self.starts.contains_key(&role) {
            let starts = self.rules.starts(role)?;
            self.starts.insert(role, [starts.into_iter().map(|letter| (letter, END)).collect()].into());
        }
        let rows = &self.starts[&role];
        let within = is_within(&rows[0], rows, &self.sets[set as usize], self.watch)?;
        self.started_in.insert((role, set), within);
        Ok(within)
    }

    fn any(
        &mut self,
        candidates: &[usize],
        mut holds: impl FnMut(&mut Self, usize) -> Result<bool, Refusal>,
    ) -> Result<bool, Refusal> {
        for &candidate in candidates {
            if holds(self, candidate)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn all<T>(
        &mut self,
        items: &[T],
        mut holds: impl FnMut(&mut Self, &T) -> Result<bool, Refusal>,
    ) -> Result<bool, Refusal> {
        for item in items {
            if !holds(self, item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether some state of a piece violates a property.
    fn is_bad(&mut self, memory: u32, threads: &Threads) -> Result<bool, Refusal> {
        let looks: Vec<u32> = threads.iter().map(|&(role, set)| self.look(role, set)).collect();
        if !self.looks.judged.insert((memory, looks.clone())) {
            return Ok(false);
        }
        let samples: Vec<&[Thread]> =
            looks.iter().map(|&look| self.looks.samples.get(look).as_slice()).collect();
        if samples.iter().any(|samples| samples.is_empty()) {
            return Ok(false);
        }
        let machine = self.rules.alone.machine;
        let mut choice = vec![0; samples.len()];
        let mut state = State {
            memory: self.rules.memories.get(memory).to_vec().into(),
            threads: samples.iter().map(|samples| Arc::new(samples[0].clone())).collect(),
            section: None,
            fault: None,
        };
        let mut judged = 0u64;
        loop {
            if machine.violation(&state).is_some() {
                return Ok(true);
            }
            judged += 1;
            if judged.is_multiple_of(4096) {
                self.watch.look(self.rules.bytes())?;
            }
            let next = (0..samples.len()).find(|&thread| {
                choice[thread] = (choice[thread] + 1) % samples[thread].len();
                let id = palisade_program::running::ThreadId::from_index(thread);
                state.threads[id] = Arc::new(samples[thread][choice[thread]].clone());
                choice[thread] > 0
            });
            if next.is_none() {
                return Ok(false);
            }
        }
    }

    /// One thread for each way in which properties see the threads with a stack of a set. Properties see the
    /// location in the process body, if no procedure is entered, and the contents of its registers.
    fn look(&mut self, role: RoleId, set: u32) -> u32 {
        if let Some(&known) = self.looks.of.get(&(role, set)) {
            return known;
        }
        let rows = &self.sets[set as usize];
        let mut entered = vec![false; rows.len()];
        for &(_, to) in rows.iter().flatten().filter(|&&(_, to)| to != END) {
            entered[to as usize] = true;
        }
        let mut known: FxHashSet<(Option<Location>, Vec<Value>)> = FxHashSet::default();
        let mut samples = Vec::new();
        for (state, row) in rows.iter().enumerate() {
            for &(letter, _) in row.iter().filter(|&&(_, to)| to == END) {
                let frame = &self.rules.letters.get(letter).frame;
                let seen = &self.looks.seen[frame.code.index()];
                for alone in [true, false] {
                    if !(if alone { state == 0 } else { entered[state] }) {
                        continue;
                    }
                    let at = (alone && seen.locations.contains(&frame.location)).then_some(frame.location);
                    let registers = seen.registers.iter().map(|register| frame.registers[register.index()]);
                    if known.insert((at, registers.collect())) {
                        // The frames above do not matter.
                        let frames = vec![frame.clone(); if alone { 1 } else { 2 }];
                        samples.push(Thread { role, frames, buffer: Vec::new() });
                    }
                }
            }
        }
        let look = self.looks.samples.id(samples);
        self.looks.of.insert((role, set), look);
        look
    }
}

/// The result of a thread of a piece for one control.
struct Left<'l> {
    threads: &'l Threads,
    thread: usize,
    /// The stacks it started with, and the memory.
    from: (u32, u32),
    at: usize,
    reached: &'l Reached,
}

fn without(threads: &Threads, thread: usize) -> Threads {
    let mut others = threads.clone();
    others[thread].1 = OPEN;
    others
}

/// A set of stacks with rows sorted by letter.
fn read_set(set: &StackSet, letters: &[u32]) -> Result<Vec<Row>, Refusal> {
    let count = set.states.len();
    let edge = |&(frame, to): &(u32, Option<u32>)| {
        let letter = *letters.get(frame as usize)?;
        match to {
            None => Some((letter, END)),
            Some(to) => ((to as usize) < count).then_some((letter, to)),
        }
    };
    let row = |row: &Vec<(u32, Option<u32>)>| {
        let mut row: Row = row.iter().map(edge).collect::<Option<_>>()?;
        row.sort_unstable();
        Some(row)
    };
    match set.states.iter().map(row).collect::<Option<Vec<Row>>>() {
        Some(rows) if !rows.is_empty() => Ok(rows),
        _ => unfit("an invalid set of stacks"),
    }
}
