//! The successors of a packed state, all of them or a sufficient part.
//!
//! *Reduction.* Often one thread's next steps are independent of everything the others can still do. Then it
//! is enough to follow these steps (a persistent set: Godefroid, "Partial-Order Methods for the Verification
//! of Concurrent Systems", 1996). Two kinds of sets are tried for each thread:
//! - One pending store reaching memory, if its cell can be accessed neither by another thread nor by any
//!   thread that its own thread may still start. The update also commutes with the steps of its own thread:
//!   whether the store is pending or in memory, the thread reads the same value.
//! - All next instructions of a thread, under two conditions. No other thread can still write what they read,
//!   or access what they write. And the thread's own pending stores cannot enable, disable or change any of
//!   them. The second condition holds if the buffer is empty, or if all of them are loads: a load of an own
//!   pending store reads the same value from memory later if no other thread writes the cell.
//!
//! Two kinds of threads are left out:
//! - Threads about to enter an atomic section, because a section is more than its first access.
//! - Threads whose local steps were [cut off](Info::cuts) once, twice, four times, eight times … in a row.
//!   Such a thread may run forever, and each of its steps represents very many steps of the machine, so the
//!   others get their turn early. If the thread does finish, the others get such a turn only a few times.
//!
//! *Conditions.* No step of such a set is visible to properties, and no thread is ignored forever.
//! `palisade-search` checks the latter, and asks for all successors where it fails.
//!
//! *Data races* are not visible in this sense. Let a run w lead from a visited state v to a race of two threads, t1
//! and t2, where t1 is about to make an access, or was in its last local steps. If some step of the chosen set is in w,
//! the first one can be taken first, as always, and the rest of w leads to the same state. If none is, the set's steps
//! are independent of w and of the two accesses: if t1 is the thread of the set, it takes at most updates in w, so the
//! access is already among its [last accesses](Info::racing) in v, or it is the access that it waits at. The set is not
//! chosen then, because t2 is about to make the other access, or may still make it. So w leads to the same race after
//! any step of the set. Under PSO a pending store of t1 may be its part of the race. It is among its last accesses as
//! well, so while t2 may still access the cell, no set of t1 is chosen, not even that of the update.
//!
//! *Numbers of started threads.* Where the number of started threads is capped ([`Crowd::Capped`]), a step
//! that starts a thread is never in such a set. So the reduction never adds a start to a run, nor moves one
//! earlier, and a run with few threads stands for runs with few threads. A bad state that is reachable within
//! the cap is found within it.

use crate::automaton::{Automaton, Info, Look, Move, Need, Target};
use crate::chain::Follow;
use crate::ends::{self, Ends};
use crate::flags::{Flags, OfThreads};
use crate::footprint::{Footprint, Together};
use crate::judge::Judge;
use crate::layout::Layout;
use crate::search::{Goal, Tally};
use palisade_automata::on_demand::{self, LocalId, OneWay};
use palisade_search::Wanted;
use smallvec::SmallVec;

/// The result of an expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expansion {
    /// All successors were produced.
    All,
    /// A sufficient part was produced. It counts only if no thread is ignored forever.
    Part,
    /// The automaton lacks an entry. Nothing was produced.
    Missing,
    /// More threads than the layout has room for.
    TooManyThreads,
}

/// What happens when a thread is started and the layout has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crowd {
    /// The search starts again with more room.
    Grows,
    /// The step is not taken.
    Capped,
}

/// The successors in order, with the steps of the chains that lead to them.
pub(crate) type Successors = palisade_search::Successors<Tally>;

/// Expands packed states.
pub(crate) struct Expander<'s, 'a> {
    pub automaton: &'s Automaton<'a>,
    pub layout: &'s Layout,
    pub judge: &'s Judge<'a>,
    pub goal: Goal,
    /// Present if the search is for the ends of runs. States after a fault are then not expanded.
    pub ends: Option<&'s Ends<'s>>,
    pub reduce: bool,
    pub crowd: Crowd,
    /// How to follow chains.
    pub follow: Follow,
}

/// Some moves of one thread.
type Chosen<'s> = SmallVec<[&'s Move; 4]>;

pub(crate) type Locals = SmallVec<[LocalId; 16]>;

/// The targets of a move, or the entry that is missing.
pub(crate) enum Outcome<'s> {
    Targets(&'s [Target]),
    Missing,
}

impl<'s> Expander<'s, '_> {
    /// Appends the successors of `state`, or the ends of the [chains](crate::chain) that begin with them, and
    /// pushes the entries that the automaton lacks.
    #[inline]
    pub fn expand(
        &self,
        state: &[u64],
        wanted: Wanted,
        successors: &mut Successors,
        needs: &mut Vec<Need>,
    ) -> Expansion {
        let start = successors.words.len();
        let expansion = self.expand_once(state, wanted, successors, needs);
        match expansion {
            Expansion::All | Expansion::Part if self.follow != Follow::No => {
                let result = self.follow_chains(start, successors, needs);
                finish(result, expansion, start, successors)
            }
            _ => expansion,
        }
    }

    /// Whether the moves of all threads are known. Requests those that are not.
    pub(crate) fn all_known(&self, locals: &Locals, needs: &mut Vec<Need>) -> bool {
        let before = needs.len();
        for &local in locals {
            self.is_known(local, needs);
        }
        needs.len() == before
    }

    /// Whether the moves of a thread state are known. Requests them if not.
    #[inline]
    fn is_known(&self, local: LocalId, needs: &mut Vec<Need>) -> bool {
        let known = self.automaton.moves(local, OneWay).is_some();
        if !known {
            needs.push(Need::Entry(on_demand::Need::Moves(local, OneWay)));
        }
        known
    }

    /// The moves of a thread state. They must be known.
    pub(crate) fn moves(&self, local: LocalId) -> &'s [Move] {
        self.automaton.moves(local, OneWay).expect("the moves of all threads are known")
    }

    /// Appends the successors of `state`.
    pub(crate) fn expand_once(
        &self,
        state: &[u64],
        wanted: Wanted,
        successors: &mut Successors,
        needs: &mut Vec<Need>,
    ) -> Expansion {
        // This is done for every state, so the thread states are looked at once.
        let locals: Locals = self.layout.threads.iter().map(|field| LocalId(field.get(state))).collect();
        let flags = |local| self.automaton.note(local).flags;
        let some = locals.iter().fold(OfThreads::default(), |all, &local| all.and(flags(local))).some;
        debug_assert!(
            locals.iter().all(|&local| {
                flags(local).has(Flags::UNKNOWN) == self.automaton.moves(local, OneWay).is_none()
            }),
            "a thread state's flags say whether its moves are known"
        );
        if some.has(Flags::UNKNOWN) {
            self.all_known(&locals, needs);
            return Expansion::Missing;
        }
        if self.ends.is_some() && ends::end_of(self.automaton, self.layout, state) == Some(ends::End::Fault) {
            return Expansion::All;
        }
        if some.has(Flags::ENTERED) {
            let holder = locals.iter().position(|&local| flags(local).has(Flags::ENTERED));
            let holder = holder.expect("one of them has entered a section");
            return self.emit_threads(state, &locals, holder..holder + 1, successors, needs);
        }
        if self.reduce && wanted == Wanted::Part {
            match self.part(state, &locals, needs) {
                Ok(Some((thread, moves))) => {
                    let start = successors.words.len();
                    let result =
                        moves.into_iter().try_for_each(|mv| self.emit(state, thread, mv, successors, needs));
                    return finish(result, Expansion::Part, start, successors);
                }
                Ok(None) => {}
                Err(missing) => return missing,
            }
        }
        self.emit_threads(state, &locals, 0..locals.len(), successors, needs)
    }

    fn emit_threads(
        &self,
        state: &[u64],
        locals: &Locals,
        threads: std::ops::Range<usize>,
        successors: &mut Successors,
        needs: &mut Vec<Need>,
    ) -> Expansion {
        let start = successors.words.len();
        let mut result = Ok(());
        for thread in threads {
            for mv in self.moves(locals[thread]) {
                let emitted = self.emit(state, thread, mv, successors, needs);
                // Missing outcomes are collected from all moves. Any other error ends the expansion.
                match emitted {
                    Ok(()) => {}
                    Err(Expansion::Missing) => result = emitted,
                    Err(_) => return finish(emitted, Expansion::All, start, successors),
                }
            }
        }
        finish(result, Expansion::All, start, successors)
    }

    /// A sufficient set of moves of one thread.
    fn part(
        &self,
        state: &[u64],
        locals: &Locals,
        needs: &mut Vec<Need>,
    ) -> Result<Option<(usize, Chosen<'s>)>, Expansion> {
        let mut all = Together::default();
        locals.iter().for_each(|&local| all.add(self.automaton.note(local).future));
        for thread in 0..locals.len() {
            let info = self.automaton.note(locals[thread]);
            let moves = self.moves(locals[thread]);
            if moves.is_empty() || info.cuts.is_power_of_two() {
                continue;
            }
            let others = all.without(info.future);
            // A race that the thread may be part of with its last accesses must not be missed.
            if info.racing.conflicts(others) {
                continue;
            }
            let (updates, instructions) = moves.split_at(info.updates as usize);
            let others_and_children = others.union(info.children);
            for update in updates {
                if update.letter.cell().map_or(0, |cell| self.automaton.policy.footprints.only(cell))
                    & (others_and_children.reads | others_and_children.writes)
                    == 0
                {
                    let set: Chosen<'s> = std::iter::once(update).collect();
                    if self.invisible(state, &set, needs)? {
                        return Ok(Some((thread, set)));
                    }
                }
            }
            if self.instructions_suffice(info, others) {
                let set: Chosen<'s> = instructions.iter().collect();
                if self.invisible(state, &set, needs)? {
                    return Ok(Some((thread, set)));
                }
            }
        }
        Ok(None)
    }

    fn instructions_suffice(&self, info: &Info, others: Footprint) -> bool {
        !info.holds && (!info.flags.has(Flags::PENDING) || info.only_loads) && !info.next.conflicts(others)
    }

    /// Whether the moves lead somewhere, properties see no change, and the cap on threads is not affected.
    fn invisible(&self, state: &[u64], moves: &[&'s Move], needs: &mut Vec<Need>) -> Result<bool, Expansion> {
        let mut some = false;
        for mv in moves {
            match self.outcome(state, mv, needs) {
                Outcome::Missing => return Err(Expansion::Missing),
                Outcome::Targets(targets) => {
                    some |= !targets.is_empty();
                    let starts = |target: &Target| target.child().is_some();
                    let capped = self.crowd == Crowd::Capped;
                    if targets.iter().any(|target| target.mark == Look::Changed || capped && starts(target)) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(some)
    }

    #[inline(always)]
    pub(crate) fn outcome(&self, state: &[u64], mv: &Move, needs: &mut Vec<Need>) -> Outcome<'s> {
        let code = self.layout.read(state, mv.letter);
        match self.automaton.outcome(mv, code, OneWay) {
            Some(targets) => Outcome::Targets(targets),
            None => {
                needs.push(Need::Entry(on_demand::Need::Outcome(mv.number(), code, OneWay)));
                Outcome::Missing
            }
        }
    }

    /// Appends the successors reached by one move. Most of the time of a search is spent here, and inlining saves a
    /// tenth of it.
    #[inline(always)]
    fn emit(
        &self,
        state: &[u64],
        thread: usize,
        mv: &Move,
        successors: &mut Successors,
        needs: &mut Vec<Need>,
    ) -> Result<(), Expansion> {
        let Outcome::Targets(targets) = self.outcome(state, mv, needs) else {
            return Err(Expansion::Missing);
        };
        let Successors { words, tally, .. } = successors;
        let mut result = Ok(());
        for target in targets {
            let start = words.len();
            words.extend_from_slice(state);
            let next = &mut words[start..];
            self.layout.take(next, thread, mv.letter, target);
            if target.child().is_some_and(|child| !self.place_child(next, child)) {
                if self.crowd == Crowd::Grows {
                    return Err(Expansion::TooManyThreads);
                }
                tally.left_out = true;
                words.truncate(start);
                continue;
            }
            if self.layout.normalise(self.automaton, next, needs).is_err() {
                result = Err(Expansion::Missing);
            }
        }
        result
    }

    /// Puts a started thread into the first free field after the initial instances.
    pub(crate) fn place_child(&self, state: &mut [u64], child: LocalId) -> bool {
        let instances = self.automaton.machine.machine.system.instances.len();
        let free = self.layout.threads[instances..].iter().find(|field| field.get(state) == 0);
        free.inspect(|field| field.set(state, child.0)).is_some()
    }
}

fn finish(
    result: Result<(), Expansion>,
    done: Expansion,
    start: usize,
    successors: &mut Successors,
) -> Expansion {
    match result {
        Ok(()) => done,
        Err(why) => {
            successors.words.truncate(start);
            why
        }
    }
}
