//! One search, from below or from above.

use super::judge::next_combination;
use super::{ANY, Marking, Population};
use crate::contexts::Interrupted;
use crate::rules::MemoryId;
use crate::tokens::{Target, Wakes};
use palisade_automata::Hold;
use palisade_automata::on_demand::{LocalId, OneWay};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Step};
use palisade_program::running::ThreadId;
use palisade_trace::{Run, until_bad};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The thread that takes a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Actor {
    Named(usize),
    /// Some thread in this thread state.
    Started(LocalId),
}

/// A step of the net.
#[derive(Clone, Copy, Debug)]
struct NumberedStep {
    actor: Actor,
    /// The move by its number, and the code of the value it reads.
    mv: u32,
    code: u32,
    target: Target,
    /// The thread state of the started thread, if any.
    child: Option<LocalId>,
}

/// The side of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Below,
    Above,
}

/// The result of one search.
pub(super) enum Searched {
    Bad(Run),
    /// From above: a bad marking that may or may not be real.
    Perhaps,
    /// Nothing, and this is exact.
    Clean,
    /// From below: nothing, but threads were left out.
    CleanSoFar,
}

pub(super) struct Met {
    pub marking: Marking,
    parent: Option<(usize, NumberedStep)>,
    pub dropped: bool,
}

/// Memory, the named threads, and the started thread whose atomic section is open. While a section is open,
/// more threads are not better.
type Key = (MemoryId, Vec<LocalId>, Option<LocalId>);

pub(super) struct Search<'p, 'a, 'c> {
    pub population: &'p mut Population<'a, 'c>,
    side: Side,
    bound: u32,
    pub met: Vec<Met>,
    /// The markings found, by the parts that must be equal in comparable markings.
    known: FxHashMap<Key, Vec<usize>>,
    /// Markings to expand. If more threads can only make a state worse, those with the most threads come
    /// first, because they cover the others.
    queue: BinaryHeap<(u64, Reverse<usize>)>,
    /// Whether threads were left out.
    left_out: bool,
}

impl<'p, 'a, 'c> Search<'p, 'a, 'c> {
    pub fn new(population: &'p mut Population<'a, 'c>, side: Side, bound: u32) -> Search<'p, 'a, 'c> {
        Search {
            population,
            side,
            bound,
            met: Vec::new(),
            known: FxHashMap::default(),
            queue: BinaryHeap::new(),
            left_out: false,
        }
    }

    pub fn run(&mut self) -> Result<Searched, Interrupted> {
        let machine = self.population.tokens.machine.machine;
        let starts = machine.system.instances.iter();
        let starts: Vec<Vec<LocalId>> =
            starts.map(|instance| self.population.tokens.starts(instance.role).to_vec()).collect();
        for state in machine.initial_states() {
            limits::checkpoint();
            let memory = self.population.memories.id(state.memory.as_slice().to_vec());
            let mut chosen = vec![0; starts.len()];
            loop {
                let named = starts.iter().zip(&chosen).map(|(starts, &i): (_, &usize)| starts[i]).collect();
                let marking = Marking { memory, named, started: Vec::new() };
                if let Some(bad) = self.meet(marking, None) {
                    return Ok(self.found(bad));
                }
                if !next_combination(&mut chosen, |thread| starts[thread].len()) {
                    break;
                }
            }
        }
        while let Some((_, Reverse(at))) = self.queue.pop() {
            if self.met[at].dropped {
                continue;
            }
            if let Some(bad) = self.expand(at)? {
                return Ok(self.found(bad));
            }
        }
        Ok(if self.left_out { Searched::CleanSoFar } else { Searched::Clean })
    }

    fn found(&mut self, bad: usize) -> Searched {
        match self.side {
            Side::Below => Searched::Bad(self.unfold(bad)),
            Side::Above => Searched::Perhaps,
        }
    }

    /// Takes all steps from a marking. Returns the bad marking that was found, if any.
    fn expand(&mut self, at: usize) -> Result<Option<usize>, Interrupted> {
        let population = &mut *self.population;
        population.counters.states += 1;
        if population.counters.states.is_multiple_of(64) {
            population.limits.check(population.bytes).map_err(Interrupted::Exhausted)?;
        }
        if population.counters.states.is_multiple_of(1024) {
            (population.report)(&population.counters);
            population.check_growth()?;
        }
        population.limits.check_work(population.counters.states).map_err(Interrupted::Exhausted)?;
        let marking = self.met[at].marking.clone();
        let memory = Rc::clone(population.memories.get(marking.memory));
        let named = marking.named.iter().enumerate().map(|(thread, &local)| (Actor::Named(thread), local));
        let started = marking.started.iter().map(|&(local, _)| (Actor::Started(local), local));
        let mut actors: Vec<(Actor, LocalId)> = named.chain(started).collect();
        let holder = actors.iter().find(|(_, local)| population.tokens.local(*local).hold != Hold::Outside);
        if let Some(&holder) = holder {
            actors = vec![holder];
        }
        for (actor, local) in actors {
            for mv in self.population.tokens.work_out_moves(local, OneWay).to_vec() {
                let tokens = &mut self.population.tokens;
                let read = mv.letter.reads();
                let code = read.map_or(0, |cell| tokens.values.code(cell, memory[cell.index()]));
                let targets = tokens.work_out(&mv, code, OneWay).to_vec();
                // All targets are places after the same step.
                let Some(step) = targets.first() else { continue };
                let mut next = marking.clone();
                if let (Some(cell), Some(code)) = (mv.letter.cell(), step.write()) {
                    let mut changed = memory.to_vec();
                    changed[cell.index()] = tokens.values.value(cell, code);
                    next.memory = self.population.memories.id(changed);
                }
                let children: Vec<Option<LocalId>> = match step.mark {
                    None => vec![None],
                    // No thread can observe when a child takes its first local steps. However, a run must not
                    // contain them while a section is open.
                    Some(child) if child.wakes == Wakes::AtOnce || self.side == Side::Above => {
                        tokens.starts(child.role).iter().copied().map(Some).collect()
                    }
                    Some(child) => vec![Some(tokens.asleep(child.role))],
                };
                for &target in &targets {
                    for &child in &children {
                        let mut next = next.clone();
                        let fits = match actor {
                            Actor::Named(thread) => {
                                next.named[thread] = target.local;
                                true
                            }
                            Actor::Started(local) => {
                                take(&mut next.started, local);
                                self.put(&mut next.started, target.local)
                            }
                        };
                        if !fits || !child.is_none_or(|child| self.put(&mut next.started, child)) {
                            continue;
                        }
                        let taken = NumberedStep { actor, mv: mv.number(), code, target, child };
                        if let Some(bad) = self.meet(next, Some((at, taken))) {
                            return Ok(Some(bad));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Adds one thread to a thread state. Returns false if the search from below does not follow this many
    /// and may not leave one out.
    fn put(&mut self, started: &mut Vec<(LocalId, u32)>, local: LocalId) -> bool {
        let tokens = &self.population.tokens;
        let (thread, fault) = (&tokens.local(local).thread, tokens.local(local).fault);
        let vanishes = self.population.vanishing[thread.role.index()];
        if vanishes && fault.is_none() && thread.has_ended(tokens.system()) {
            return true;
        }
        let position = started.binary_search_by_key(&local, |&(local, _)| local);
        let count = position.map_or(0, |position| started[position].1);
        let more = match self.side {
            _ if count < self.bound => count + 1,
            Side::Above => ANY,
            Side::Below => {
                self.left_out = true;
                if !self.population.monotone {
                    return false;
                }
                count
            }
        };
        match position {
            Ok(position) => started[position].1 = more,
            Err(position) => started.insert(position, (local, more)),
        }
        true
    }

    /// Adds a marking unless it is known. Returns its index if it is bad.
    fn meet(&mut self, marking: Marking, parent: Option<(usize, NumberedStep)>) -> Option<usize> {
        let monotone = self.population.monotone;
        let met = &mut self.met;
        let tokens = &self.population.tokens;
        let mut started = marking.started.iter().map(|&(local, _)| local);
        let holder = started.find(|&local| tokens.local(local).hold != Hold::Outside);
        let known = self.known.entry((marking.memory, marking.named.clone(), holder)).or_default();
        let covers =
            |a: &[(LocalId, u32)], b: &[(LocalId, u32)]| if monotone { covers(a, b) } else { a == b };
        if known.iter().any(|&other| covers(&met[other].marking.started, &marking.started)) {
            return None;
        }
        known.retain(|&other| {
            let dropped = covers(&marking.started, &met[other].marking.started);
            met[other].dropped = dropped;
            !dropped
        });
        let index = met.len();
        known.push(index);
        self.population.bytes += 160 + 8 * (2 * marking.named.len() + marking.started.len()) as u64;
        let bad = self.population.is_bad(&marking);
        let threads = marking.started.iter().map(|&(_, count)| u64::from(count.min(self.bound + 1))).sum();
        self.queue.push((if monotone { threads } else { 0 }, Reverse(index)));
        self.met.push(Met { marking, parent, dropped: false });
        bad.then_some(index)
    }

    /// The run to a marking of the search from below.
    fn unfold(&mut self, last: usize) -> Run {
        let mut path = Vec::new();
        let mut at = last;
        while let Some((parent, taken)) = &self.met[at].parent {
            path.push(*taken);
            at = *parent;
        }
        let tokens = &mut self.population.tokens;
        let system = tokens.system();
        let memory = self.population.memories.get(self.met[at].marking.memory).to_vec();
        let mut steps = Vec::new();
        let mut add = |thread: usize, actions: Vec<Action>| {
            let thread = ThreadId::from_index(thread);
            steps.extend(actions.into_iter().map(|action| Step { thread, action }));
        };
        // All threads by number, with the thread state each is in.
        let mut threads = self.met[at].marking.named.clone();
        for (thread, instance) in system.instances.iter().enumerate() {
            add(thread, tokens.steps_from_start(instance.role, threads[thread]).steps);
        }
        for taken in path.into_iter().rev() {
            let thread = match taken.actor {
                Actor::Named(thread) => thread,
                Actor::Started(local) => {
                    let instances = system.instances.len();
                    let position = threads[instances..].iter().position(|&other| other == local);
                    instances + position.expect("some thread is in this thread state")
                }
            };
            let mv = tokens.numbered(taken.mv);
            add(thread, vec![mv.action]);
            add(thread, tokens.steps_after(&mv, taken.code, OneWay, &taken.target).steps);
            threads[thread] = taken.target.local;
            if let (Some(child), Some(local)) = (taken.target.mark, taken.child) {
                if child.wakes == Wakes::AtOnce {
                    add(threads.len(), tokens.steps_from_start(child.role, local).steps);
                }
                threads.push(local);
            }
        }
        until_bad(tokens.machine.machine, Run { memory, steps })
    }
}

/// Removes one thread from a thread state.
fn take(started: &mut Vec<(LocalId, u32)>, local: LocalId) {
    let position = started.binary_search_by_key(&local, |&(local, _)| local).expect("a thread is there");
    match started[position].1 {
        ANY => {}
        1 => drop(started.remove(position)),
        _ => started[position].1 -= 1,
    }
}

/// Whether the first has at least as many threads everywhere as the second.
fn covers(a: &[(LocalId, u32)], b: &[(LocalId, u32)]) -> bool {
    let mut a = a.iter();
    b.iter().all(|&(local, count)| {
        a.by_ref().find(|(other, _)| *other >= local).is_some_and(|&(other, n)| other == local && n >= count)
    })
}
