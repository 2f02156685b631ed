//! Breadth-first search whose states are shared out over processes.
//!
//! *Problem.* The states of a search do not fit into one machine, or one machine takes too long.
//!
//! *Source.* Stern and Dill, "Parallelizing the Murφ verifier", CAV 1997: each state has an owner, given by its hash,
//! and successors are sent to their owners. Termination: timely's progress tracking (Murray et al., "Naiad", SOSP 2013)
//! instead of a protocol of our own.
//!
//! *How.* All processes work on the same level. A level is expanded in one or more *batches*, which depend on the hashes
//! of the states and on nothing else. A batch takes one or more *rounds*, as in `palisade-search`:
//! 1. Each process expands its states of the batch, and sends the successors to their owners, which insert them and reply
//!    where the proviso needs it. timely says when all of this has arrived.
//! 2. Each process sends everyone a [`Summary`]. From here on, all processes know the same.
//! 3. Each process adds the missing table entries, those of all processes, in the same order. So the tables are the same
//!    everywhere, and a packed state means the same everywhere. That is why states travel as they are.
//! 4. States that had to wait for the tables, or whose partial successors were all old, are expanded again.
//!
//! *Guarantee.* The verdict, the number of states and the path that is found are the same for any number of processes,
//! one included: everything that the search decides depends on *sets* that do not depend on where a state is kept.
//! - The states of a round are a set: those of the batch, or those of it that must be expanded again.
//! - The tables after a round depend on the set of all needs, which are sorted.
//! - What is kept of a new state does not depend on the order in which it is reached ([`crate::share`]).
//! - The goal that is reported is the smallest of the round. The path to it is unique ([`crate::path`]).
//! - Counters, such as those that decide whether chains are followed, are added up over all processes.
//!
//! *Which reductions are sound here, and why.*
//! - *Collapsed local steps, symmetry and chains* look at one state at a time. They do not depend on what was visited.
//! - *Persistent sets* need the proviso of `palisade-search`: at least one successor of a state that is expanded in part
//!   is new, or waits for the next level. The owner of a successor knows whether it does. If it does not, and the
//!   expansion was partial, the owner replies with the parent's hash. Whether a successor waits depends only on which
//!   states were visited before the level, so the reply is the same whenever it is given. A state all of whose partial
//!   successors are closed is expanded fully. Ranks travel with the states. So both conditions of `palisade-search` hold,
//!   and so does its argument.
//! - Replies carry 48 bits of the parent's hash. If two states of a round that were expanded in part have the same bits,
//!   replies cannot be told apart, and both are expanded fully unless there are no replies at all. That is sound, and does
//!   not depend on the number of processes, because both states have the same owner.
//!
//! *Compared with one process without timely.* The reductions are the same. The number of states is the same unless a
//! level has more than [`BATCH`] states there or here: batches are chosen differently then, so that table entries are
//! numbered differently, and the search may decide earlier or later whether to follow chains.
//!
//! *Cost.* Two steps of timely per round. On the wire, 8 bytes per successor in addition to its words, and 8 bytes per
//! closed partial successor. Successors that this process keeps itself are not sent. In flight at any time: at most the
//! successors of one batch.

use crate::agree::{Agreed, Work, agree, another_question};
use crate::seat::{Lost, Seat};
use crate::share::{Head, Share, batch_of, owner};
use crate::summary::{Part, Summary};
use palisade_base::limits;
use palisade_engine::{Exhausted, Limits, Pace, peak_memory_bytes};
use palisade_search::{Counters, Expand, Expansion, PATIENCE, Successors, Wanted, hash};
use rustc_hash::FxHashMap;

/// States per batch, over all processes. It does not depend on how many there are.
const BATCH: u64 = 1 << 18;
/// States to expand before looking for messages.
const CHUNK: usize = 256;
/// Words to collect for another process before they are sent.
const BLOCK: usize = 1 << 12;

/// A search problem that can be shared out. What the processes exchange is encoded in words.
pub trait Spread: Expand {
    /// Words per table entry.
    const NEED_WORDS: usize;
    /// Words of the counters.
    const TALLY_WORDS: usize;

    /// A missing table entry as [`Spread::NEED_WORDS`] words.
    fn put_need(need: &Self::Need) -> Vec<u64>;
    /// The missing table entry in these words.
    fn get_need(words: &[u64]) -> Option<Self::Need>;
    /// The counters as [`Spread::TALLY_WORDS`] words.
    fn put_tally(tally: &Self::Tally) -> Vec<u64>;
    /// The counters in these words.
    fn get_tally(words: &[u64]) -> Self::Tally;
    /// A reason to halt as two words.
    fn put_halt(halt: &Self::Halt) -> [u64; 2];
    /// The reason to halt in these words.
    fn get_halt(words: [u64; 2]) -> Option<Self::Halt>;

    /// What was seen in states while they were judged, as bits.
    fn observed(&self) -> u64;
    /// Notes what other processes have seen.
    fn observe(&mut self, seen: u64);

    /// Whether a state that is stored next may be reached from another one directly.
    fn leads_to(&self, from: &[u64], to: &[u64]) -> bool;

    /// Reports progress, after each round.
    fn report_parts(&self, counters: &Counters, parts: &[Part]);

    /// A number that differs if processes were asked different things.
    fn question(&self) -> u64;
}

/// How a shared search ended. All processes that were not lost know it.
pub enum End<H> {
    /// All reachable states were visited, and nothing was found.
    Clean,
    /// The states from an initial one to one that was found.
    Found(Vec<Vec<u64>>),
    /// The search cannot continue.
    Halted(H),
    /// The limits of some process ran out.
    Exhausted(Exhausted),
    /// A process was lost.
    Lost(Lost),
}

impl<H> From<Lost> for End<H> {
    fn from(lost: Lost) -> End<H> {
        End::Lost(lost)
    }
}

/// The end of a search, the counters of all processes together, and what each has done.
pub struct Found<H> {
    /// How it ended.
    pub end: End<H>,
    /// The counters of all processes together.
    pub counters: Counters,
    /// Each process, in order.
    pub parts: Vec<Part>,
}

/// Searches all states that are reachable from the initial ones, of this many words each, together with the other
/// processes. `begin` passes all initial states to its second argument.
pub fn search<E: Spread>(
    seat: &mut Seat,
    expand: &mut E,
    words: usize,
    limits: &Limits,
    begin: impl FnOnce(&mut E, &mut dyn FnMut(&[u64])) -> Result<(), Stop<E::Halt>>,
) -> Found<E::Halt> {
    *seat.share.borrow_mut() = Share::new(words);
    let processes = seat.processes();
    let mut search = Search {
        limits,
        words,
        levels: Vec::new(),
        counters: Counters::default(),
        parts: vec![Part::default(); processes],
        waiting: 0,
        exhausted: None,
        lacks_entries: false,
        outgoing: vec![Vec::new(); processes],
        seat,
    };
    let end = match search.run(expand, begin).unwrap_or_else(|end| end) {
        // A process that notices a loss while it searches stops for this reason.
        End::Exhausted(Exhausted::Stopped) => match search.seat.check() {
            Err(lost) => End::Lost(lost),
            Ok(()) => End::Exhausted(Exhausted::Stopped),
        },
        end => end,
    };
    let Search { counters, parts, seat, .. } = search;
    // The states are not needed any more.
    *seat.share.borrow_mut() = Share::new(words);
    Found { end, counters, parts }
}

/// Why initial states could not be listed.
pub enum Stop<H> {
    /// The search cannot begin. All processes find the same.
    Halted(H),
    /// The limits of this process ran out.
    Exhausted(Exhausted),
}

pub(crate) struct Search<'s> {
    pub seat: &'s mut Seat,
    pub limits: &'s Limits,
    pub words: usize,
    /// Where the levels begin among this process's states.
    pub levels: Vec<usize>,
    pub parts: Vec<Part>,
    counters: Counters,
    /// States that wait for the next level, over all processes.
    waiting: u64,
    /// The limits of this process that ran out since the last summary.
    exhausted: Option<Exhausted>,
    /// Whether they ran out before all table entries were added. Then states of others may mean nothing here.
    lacks_entries: bool,
    /// States for other processes.
    outgoing: Vec<Vec<u64>>,
}

/// A state that is due for expansion.
#[derive(Clone, Copy)]
struct Turn {
    position: u32,
    rank: u8,
    wanted: Wanted,
}

/// States with the same bits of their hash that were expanded in part.
#[derive(Default)]
struct Parted {
    turns: Vec<Turn>,
    sent: u32,
    closed: u32,
}

/// The result of one process's part of a round.
struct Expanded<E: Expand> {
    again: Vec<Turn>,
    needs: Vec<E::Need>,
    halt: Option<E::Halt>,
    tally: E::Tally,
    transitions: u64,
}

impl<'s> Search<'s> {
    fn run<E: Spread>(
        &mut self,
        expand: &mut E,
        begin: impl FnOnce(&mut E, &mut dyn FnMut(&[u64])) -> Result<(), Stop<E::Halt>>,
    ) -> Result<End<E::Halt>, End<E::Halt>> {
        if agree(self.seat, Work::Search, expand.question(), self.limits)? == Agreed::ToStop {
            self.limits.stop();
            return Err(End::Exhausted(Exhausted::Stopped));
        }
        self.seat.share.borrow_mut().next_round();
        let (index, processes, share) = (self.seat.index(), self.seat.processes(), self.seat.share.clone());
        let own = &mut |state: &[u64]| {
            if owner(hash(state), processes) == index {
                share.borrow_mut().begin(state);
            }
        };
        let mut halt = None;
        match begin(expand, own) {
            Ok(()) => {}
            Err(Stop::Halted(why)) => halt = Some(why),
            Err(Stop::Exhausted(what)) => self.exhausted = Some(what),
        }
        let (again, needs, tally) = (Vec::new(), Vec::new(), E::Tally::default());
        self.conclude(expand, Expanded { again, needs, halt, tally, transitions: 0 })?;
        while self.waiting > 0 {
            self.level(expand)?;
            self.counters.depth += 1;
        }
        Ok(End::Clean)
    }

    /// Expands a level.
    fn level<E: Spread>(&mut self, expand: &mut E) -> Result<(), End<E::Halt>> {
        let start = self.level_start();
        let share = self.seat.share.clone();
        let ranks = share.borrow_mut().next_level();
        let end = share.borrow().len();
        self.levels.push(start);
        let batches = (self.waiting / BATCH).next_power_of_two().max(1);
        let parts = expand.wants_parts();
        let turn = |(position, &rank): (usize, &u8)| Turn {
            position: position as u32,
            rank,
            wanted: if parts && u16::from(rank) < PATIENCE { Wanted::Part } else { Wanted::All },
        };
        let turns = (start..end).zip(&ranks).map(turn);
        let mut bins: Vec<Vec<Turn>> = vec![Vec::new(); batches as usize];
        for turn in turns {
            let bin = match batches {
                1 => 0,
                _ => batch_of(hash(share.borrow().state(turn.position as usize)), batches),
            };
            bins[bin as usize].push(turn);
        }
        for mut turns in bins {
            loop {
                let expanded = self.expand(expand, &turns)?;
                let (again, others) = self.conclude(expand, expanded)?;
                if others == 0 {
                    break;
                }
                turns = again;
            }
        }
        Ok(())
    }

    /// Where the states begin that wait for their level.
    fn level_start(&self) -> usize {
        let share = self.seat.share.borrow();
        share.len() - share.waiting()
    }

    /// Expands this process's states of a round, and waits until all processes have.
    fn expand<E: Spread>(&mut self, expand: &mut E, turns: &[Turn]) -> Result<Expanded<E>, Lost> {
        let share = self.seat.share.clone();
        share.borrow_mut().next_round();
        self.seat.begin_step();
        let (index, processes, words) = (self.seat.index(), self.seat.processes(), self.words);
        let mut out: Expanded<E> = Expanded {
            again: Vec::new(),
            needs: Vec::new(),
            halt: None,
            tally: E::Tally::default(),
            transitions: 0,
        };
        let mut parted: FxHashMap<u64, Parted> = FxHashMap::default();
        let mut successors = Successors::default();
        let mut state = vec![0; words];
        let mut pace = Pace::new();
        let turns = if self.lacks_entries { &[] } else { turns };
        'turns: for chunk in turns.chunks(CHUNK) {
            let mut share = share.borrow_mut();
            for &turn in chunk {
                let bytes = || share.bytes() + expand.bytes();
                if let Err(what) = self.limits.check_often(&mut pace, bytes) {
                    self.exhausted.get_or_insert(what);
                    break 'turns;
                }
                successors.clear();
                state.copy_from_slice(share.state(turn.position as usize));
                let expansion = match expand.expand(&state, turn.wanted, &mut successors, &mut out.needs) {
                    Ok(Expansion::Missing) => {
                        out.again.push(turn);
                        continue;
                    }
                    Ok(expansion) => expansion,
                    Err(halt) => {
                        out.halt.get_or_insert(halt);
                        continue;
                    }
                };
                let is_part = expansion == Expansion::Part;
                let parent = hash(&state);
                let rank = if is_part { u16::from(turn.rank) + 1 } else { 0 };
                let (mut sent, mut closed) = (0, 0);
                for (position, next) in successors.words.chunks_exact(words).enumerate() {
                    let head = Head::new(parent, is_part, rank, successors.weight(position));
                    let hash = hash(next);
                    let target = owner(hash, processes);
                    sent += 1;
                    if target == index {
                        closed += u32::from(!share.insert(head, hash, next));
                    } else {
                        let block = &mut self.outgoing[target];
                        block.push(head.word());
                        block.extend_from_slice(next);
                        if block.len() >= BLOCK {
                            self.seat.send_states(target, std::mem::take(block));
                        }
                    }
                }
                out.transitions += u64::from(sent);
                // A state of which some successors are sent away may be closed by replies.
                if is_part {
                    let known = parted.entry(parent >> 16).or_default();
                    known.turns.push(turn);
                    known.sent += sent;
                    known.closed += closed;
                }
            }
            drop(share);
            self.seat.step();
            self.seat.check()?;
        }
        for target in 0..processes {
            if !self.outgoing[target].is_empty() {
                let block = std::mem::take(&mut self.outgoing[target]);
                self.seat.send_states(target, block);
            }
        }
        self.seat.settle(self.limits)?;
        for parent in self.seat.closed.borrow_mut().drain(..) {
            parted.get_mut(&(parent >> 16)).expect("replies are about this round").closed += 1;
        }
        let ignored =
            |known: &Parted| known.closed == known.sent || known.turns.len() > 1 && known.closed > 0;
        let mut ignored: Vec<Turn> =
            parted.into_values().filter(ignored).flat_map(|known| known.turns).collect();
        ignored.sort_unstable_by_key(|turn| turn.position);
        out.again.extend(ignored.into_iter().map(|turn| Turn { wanted: Wanted::All, ..turn }));
        out.tally = std::mem::take(&mut successors.tally);
        Ok(out)
    }

    /// Ends a round: exchanges summaries with the others, and acts on what all of them say. Returns this
    /// process's turns to take again, and how many there are over all processes.
    fn conclude<E: Spread>(
        &mut self,
        expand: &mut E,
        expanded: Expanded<E>,
    ) -> Result<(Vec<Turn>, u64), End<E::Halt>> {
        let Expanded { again, mut needs, halt, tally, transitions } = expanded;
        needs.sort_unstable();
        needs.dedup();
        let share = self.seat.share.clone();
        let share = share.borrow();
        let new = share.new_in_round().filter(|_| !self.lacks_entries).map(|position| share.state(position));
        let goal = new.filter(|state| expand.is_goal(state)).min().map(<[u64]>::to_vec);
        let full = share.is_full.then(|| Exhausted::Memory(self.limits.memory()));
        let mut summary: Summary<E> = Summary {
            part: self.part(share.len() as u64, share.bytes() + expand.bytes()),
            again: again.len() as u64,
            waiting: share.waiting() as u64,
            transitions,
            weight: share.weight(),
            observed: expand.observed(),
            exhausted: self.exhausted.take().or(full),
            halt,
            tally,
            goal,
            needs,
        };
        drop(share);
        if let Err(what) = self.limits.check(summary.part.table_bytes) {
            summary.exhausted.get_or_insert(what);
        }
        let messages = self.seat.exchange(summary.encode(self.words), self.limits)?;
        let (mut needs, mut halt, mut exhausted, mut goal) = (Vec::new(), None, None, None);
        let (mut weight, mut others, mut tally) = (0, 0, E::Tally::default());
        self.waiting = 0;
        for (process, message) in messages.iter().enumerate() {
            let said = Summary::<E>::decode(message, self.words).ok_or_else(|| another_question(process))?;
            self.parts[process] = said.part;
            self.counters.transitions += said.transitions;
            self.waiting += said.waiting;
            others += said.again;
            weight += said.weight;
            tally += said.tally;
            expand.observe(said.observed);
            needs.extend(said.needs);
            halt = halt.or(said.halt);
            exhausted = exhausted.or(said.exhausted);
            goal = goal.into_iter().chain(said.goal).min();
        }
        expand.count(tally, weight);
        self.counters.states = self.parts.iter().map(|part| part.states).sum();
        self.counters.bytes = self.parts.iter().map(|part| part.table_bytes).sum();
        expand.report_parts(&self.counters, &self.parts);
        if let Some(goal) = goal {
            return Err(End::Found(self.path_to(expand, goal)?));
        }
        if let Some(halt) = halt {
            return Err(End::Halted(halt));
        }
        if let Some(what) = exhausted {
            return Err(End::Exhausted(what));
        }
        self.limits.check_work(self.counters.states).map_err(End::Exhausted)?;
        self.supply(expand, needs)?;
        Ok((again, others))
    }

    fn part(&self, states: u64, table_bytes: u64) -> Part {
        let (sent_bytes, received_bytes) = self.seat.bytes_on_the_wire();
        let peak_memory_bytes = peak_memory_bytes().unwrap_or(0);
        let waited_micros = self.seat.waited().as_micros() as u64;
        Part { states, table_bytes, peak_memory_bytes, sent_bytes, received_bytes, waited_micros }
    }

    /// Adds the missing table entries of all processes, in the same order everywhere. If the limits of this process run
    /// out, the others hear of it after the next round.
    fn supply<E: Spread>(&mut self, expand: &mut E, mut needs: Vec<E::Need>) -> Result<(), End<E::Halt>> {
        if needs.is_empty() {
            return Ok(());
        }
        needs.sort_unstable();
        needs.dedup();
        let supply = || {
            needs.into_iter().for_each(|need| {
                limits::checkpoint();
                expand.supply(need);
            });
        };
        if let Err(what) = self.limits.within(supply) {
            self.exhausted = Some(what);
            self.lacks_entries = true;
            return Ok(());
        }
        expand.check().map_err(End::Halted)
    }
}
