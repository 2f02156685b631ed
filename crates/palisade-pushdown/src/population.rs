//! Threads without recursion, started at run time in any number.
//!
//! *Problem.* Can a bad state be reached under SC if threads start threads without end? The state is memory, the threads that are there from the start, and how many started threads are in
//! each of finitely many thread states: a Petri net with control states. Bad states that ask for at least so many threads somewhere are a coverability problem, which is decidable.
//!
//! *Source.* Expand, enlarge and check (Geeraerts, Raskin and Van Begin, "Expand, enlarge and check: new algorithms for the coverability problem of WSTS", JCSS 2006). For c = 1, 2, 3, …
//! the net is searched twice, both times with finitely many states:
//! - *from below*: of more than c threads (or some more, if a condition counts up to them) in one thread state only c are followed. The others just stay where they are, so what is found this way is real, and comes with a run;
//! - *from above*: more than c threads in one thread state count as any number. If nothing bad is found this way, there is nothing.
//!
//! *Guarantee.* `unsafe` comes with a run; `safe` is exact. If threads only make things worse by being more (all conditions are of the kind `count(P@l) >= n`), one of the two searches answers
//! for some c: a bad run has finitely many threads, and if there is none, the set of all markings below reachable ones has finitely many limits, none of whose finite numbers is
//! above some c. Otherwise (`final`, or a count from above) the answer may stay unknown, unless the number of threads turns out to be bounded.
//!
//! *Reductions.* Local steps are taken together ([`crate::tokens`]). Threads that have ended and that nobody counts are forgotten. If more threads only make things worse, states with fewer
//! threads than another one are dropped. While a section is open only its holder runs.

use crate::contexts::Interrupted;
use crate::intern::Interner;
use crate::numbers::{Up, greatest, is_simple, may_hold, places, size, truth_grows};
use crate::rules::{Growing, MemoryId};
use crate::tokens::{Leap, LocalId, Tokens, Wakes};
use palisade_automata::Hold;
use palisade_base::Id;
use palisade_engine::Budget;
use palisade_memory::{Action, Machine, Section, State, Step};
use palisade_program::Value;
use palisade_program::running::{Location, PropertyKind, RoleId, ThreadId};
use palisade_trace::{Run, until_bad};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Any number of threads.
const ANY: u32 = u32::MAX;

/// More thread states or contents of memory than this are taken for values without end.
const MOST: usize = 1 << 20;

/// Combinations of numbers of threads that are tried where any number is possible.
const MOST_COMBINATIONS: u64 = 1 << 12;

/// More threads than this in one thread state are not written out to judge a state.
const MOST_THREADS: u64 = 200;

/// A state of the net.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Marking {
    memory: MemoryId,
    /// The threads that are there from the start.
    named: Vec<LocalId>,
    /// How many started threads are in which thread state, sorted.
    started: Vec<(LocalId, u32)>,
}

/// Who takes a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Actor {
    Named(usize),
    /// Some thread in this thread state.
    Started(LocalId),
}

/// A step of the net.
#[derive(Clone, Debug)]
struct Taken {
    actor: Actor,
    leap: Leap,
    /// The thread that was started, and the local steps it takes at once.
    child: Option<Leap>,
}

/// Which of the two searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Below,
    Above,
}

/// What the search found.
pub(crate) enum Found {
    Bad(Run),
    Nothing,
    /// Neither side has an answer with up to so many threads in one thread state.
    Open(u32),
}

/// Counters of a search.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub states: u64,
    /// The number c of the search.
    pub bound: u32,
}

/// The search.
pub(crate) struct Population<'a, 'c> {
    pub tokens: Tokens<'a>,
    pub memories: Interner<MemoryId, Vec<Value>>,
    pub counters: Counters,
    budget: &'c Budget,
    tell: &'c dyn Fn(&Counters),
    monotone: bool,
    /// Whether every count is compared with something that does not depend on threads' numbers.
    simple: bool,
    /// What counts are compared with, at most, as far as it is small and written in the program.
    asked: u32,
    /// Where threads are counted.
    counted: FxHashSet<(RoleId, Location)>,
    /// Whether threads matter wherever they are: there is a condition on final states.
    all_seen: bool,
    /// Roles whose threads are forgotten when they end.
    vanishing: Vec<bool>,
    bytes: u64,
}

/// What one search has found.
enum Searched {
    Bad(Run),
    /// From above: something that may be real or not.
    Perhaps,
    /// Nothing, and this is exact.
    Clean,
    /// From below: nothing, but threads were left out.
    CleanSoFar,
}

impl<'a, 'c> Population<'a, 'c> {
    /// A search of a program without recursion, under SC.
    pub fn new(machine: Machine<'a>, budget: &'c Budget, tell: &'c dyn Fn(&Counters)) -> Population<'a, 'c> {
        let system = machine.system;
        let monotone = system
            .properties
            .iter()
            .all(|property| property.kind == PropertyKind::Forbid && truth_grows(&property.bad, Up::More));
        let simple = system.properties.iter().all(|property| is_simple(&property.bad));
        let asked = system.properties.iter().map(|property| greatest(&property.bad)).max().unwrap_or(0);
        let mut counted = FxHashSet::default();
        system.properties.iter().for_each(|property| places(&property.bad, &mut counted));
        let counted_at_end = |role: RoleId| counted.contains(&(role, system.role_code(role).exit));
        let vanishing = system.roles.ids().map(|role| !counted_at_end(role)).collect();
        Population {
            tokens: Tokens::new(machine),
            memories: Interner::new(),
            counters: Counters::default(),
            budget,
            tell,
            monotone,
            simple,
            asked: asked.clamp(1, 8) as u32 - 1,
            counted,
            all_seen: system.properties.iter().any(|property| property.kind == PropertyKind::Final),
            vanishing,
            bytes: 0,
        }
    }

    /// Searches from below and above with growing numbers.
    pub fn search(&mut self, most: u32) -> Result<Found, Interrupted> {
        for bound in 1..=most {
            self.counters.bound = bound;
            if let Searched::Clean = self.side(Side::Above, bound)? {
                return Ok(Found::Nothing);
            }
            // With fewer threads in one place than a count asks for there is often nothing to be found.
            match self.side(Side::Below, bound.saturating_add(self.asked))? {
                Searched::Bad(run) => return Ok(Found::Bad(run)),
                Searched::Clean => return Ok(Found::Nothing),
                Searched::CleanSoFar | Searched::Perhaps => {}
            }
        }
        Ok(Found::Open(most))
    }

    fn side(&mut self, side: Side, bound: u32) -> Result<Searched, Interrupted> {
        let mut search = Search {
            population: self,
            side,
            bound,
            met: Vec::new(),
            known: FxHashMap::default(),
            queue: BinaryHeap::new(),
            left_out: false,
        };
        let before = search.population.bytes;
        let found = search.run();
        self.bytes = before;
        found
    }
}

struct Met {
    marking: Marking,
    parent: Option<(usize, Taken)>,
    dropped: bool,
}

/// Memory, the named threads, and the started thread whose atomic section is open: while it is, having more threads is not better.
type Key = (MemoryId, Vec<LocalId>, Option<LocalId>);

struct Search<'p, 'a, 'c> {
    population: &'p mut Population<'a, 'c>,
    side: Side,
    bound: u32,
    met: Vec<Met>,
    /// By what must be equal in comparable markings.
    known: FxHashMap<Key, Vec<usize>>,
    /// Those with most threads first, if more threads only make things worse: they cover the others.
    queue: BinaryHeap<(u64, Reverse<usize>)>,
    /// Whether threads were left out.
    left_out: bool,
}

impl Search<'_, '_, '_> {
    fn run(&mut self) -> Result<Searched, Interrupted> {
        let machine = self.population.tokens.machine();
        let starts: Vec<Rc<[Leap]>> =
            machine.system.instances.iter().map(|i| self.population.tokens.starts(i.role)).collect();
        for state in machine.initial_states() {
            let memory = self.population.memories.id(state.memory.as_slice().to_vec());
            let mut chosen = vec![0; starts.len()];
            loop {
                let named =
                    starts.iter().zip(&chosen).map(|(leaps, &i): (_, &usize)| leaps[i].target).collect();
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

    fn found(&self, bad: usize) -> Searched {
        match self.side {
            Side::Below => Searched::Bad(self.unfold(bad)),
            Side::Above => Searched::Perhaps,
        }
    }

    /// Takes all steps from a marking. The bad marking that was met, if any.
    fn expand(&mut self, at: usize) -> Result<Option<usize>, Interrupted> {
        let population = &mut *self.population;
        population.counters.states += 1;
        if population.counters.states.is_multiple_of(1024) {
            (population.tell)(&population.counters);
            population.budget.check(population.bytes).map_err(Interrupted::Exhausted)?;
            population.check_growth()?;
        }
        population.budget.check_work(population.counters.states).map_err(Interrupted::Exhausted)?;
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
            for mv in self.population.tokens.moves(local).iter().copied() {
                let value = mv.reads.map_or(0, |cell| memory[cell.index()]);
                let Some(outcome) = self.population.tokens.outcome(local, mv, value) else { continue };
                let mut next = marking.clone();
                if let Some((cell, value)) = outcome.write {
                    let mut changed = memory.to_vec();
                    changed[cell.index()] = value;
                    next.memory = self.population.memories.id(changed);
                }
                let children: Vec<Option<Leap>> = match outcome.child {
                    None => vec![None],
                    Some((role, Wakes::AtOnce)) => {
                        self.population.tokens.starts(role).iter().cloned().map(Some).collect()
                    }
                    Some((role, Wakes::Later)) => {
                        let target = self.population.tokens.asleep(role);
                        vec![Some(Leap { target, actions: [].into() })]
                    }
                };
                for leap in outcome.leaps.iter() {
                    for child in &children {
                        let mut next = next.clone();
                        let fits = match actor {
                            Actor::Named(thread) => {
                                next.named[thread] = leap.target;
                                true
                            }
                            Actor::Started(local) => {
                                take(&mut next.started, local);
                                self.put(&mut next.started, leap.target)
                            }
                        };
                        if !fits
                            || !child.as_ref().is_none_or(|child| self.put(&mut next.started, child.target))
                        {
                            continue;
                        }
                        let taken = Taken { actor, leap: leap.clone(), child: child.clone() };
                        if let Some(bad) = self.meet(next, Some((at, taken))) {
                            return Ok(Some(bad));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// One thread more in a thread state. False if the search from below does not follow so many and may not leave one out.
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

    /// Notes a marking unless it is known; its index if it is bad.
    fn meet(&mut self, marking: Marking, parent: Option<(usize, Taken)>) -> Option<usize> {
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
    fn unfold(&self, last: usize) -> Run {
        let mut path = Vec::new();
        let mut at = last;
        while let Some((parent, taken)) = &self.met[at].parent {
            path.push(taken);
            at = *parent;
        }
        let tokens = &self.population.tokens;
        let system = tokens.system();
        let memory = self.population.memories.get(self.met[at].marking.memory).to_vec();
        let mut steps = Vec::new();
        let mut add = |thread: usize, actions: &[Action]| {
            let thread = ThreadId::from_index(thread);
            steps.extend(actions.iter().map(|&action| Step { thread, action }));
        };
        // All threads by number, with the thread state each is in.
        let mut threads = self.met[at].marking.named.clone();
        for (thread, instance) in system.instances.iter().enumerate() {
            let starts = tokens.known_starts(instance.role);
            let leap = starts.iter().find(|leap| leap.target == threads[thread]).expect("it started here");
            add(thread, &leap.actions);
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
            add(thread, &taken.leap.actions);
            threads[thread] = taken.leap.target;
            if let Some(child) = &taken.child {
                add(threads.len(), &child.actions);
                threads.push(child.target);
            }
        }
        until_bad(tokens.machine(), Run { memory, steps })
    }
}

impl Population<'_, '_> {
    /// Whether the marking, or one of those it stands for, is bad.
    fn is_bad(&self, marking: &Marking) -> bool {
        let tokens = &self.tokens;
        let locals = marking.named.iter().chain(marking.started.iter().map(|(local, _)| local));
        if locals.clone().any(|&local| tokens.local(local).fault.is_some()) {
            return true;
        }
        let machine = tokens.machine();
        let memory = self.memories.get(marking.memory);
        if !machine.system.properties.iter().any(|property| may_hold(&property.bad, memory)) {
            return false;
        }
        let holds = locals.into_iter().any(|&local| tokens.local(local).hold != Hold::Outside);
        let thread = |local: &LocalId| tokens.local(*local).thread.clone();
        let mut state = State {
            memory: memory.to_vec().into(),
            threads: marking.named.iter().map(thread).collect(),
            section: holds.then_some(Section { holder: ThreadId(0), depth: 1 }),
            fault: None,
        };
        let seen = |local: LocalId| self.all_seen || self.is_counted(local);
        let exact = marking.started.iter().filter(|&&(local, count)| count != ANY && seen(local));
        let open = marking.started.iter().filter(|&&(local, count)| count == ANY && seen(local));
        let open: Vec<LocalId> = open.map(|&(local, _)| local).collect();
        let all = exact.flat_map(|(local, count)| std::iter::repeat_n(thread(local), *count as usize));
        for thread in all {
            state.threads.push(thread);
        }
        let with = |numbers: &[u32]| {
            let mut state = state.clone();
            for (local, &number) in open.iter().zip(numbers) {
                for _ in 0..number {
                    state.threads.push(thread(local));
                }
            }
            machine.violation(&state).is_some()
        };
        let enough = machine.system.properties.iter().map(|property| size(&property.bad, &state)).max();
        let enough = enough.unwrap_or(0).saturating_add(1);
        // Where the numbers cannot be told, anything may be.
        if !open.is_empty() && (enough > MOST_THREADS || !(self.monotone || self.simple)) {
            return true;
        }
        if self.monotone {
            return with(&vec![enough as u32; open.len()]);
        }
        let choices = enough + 1;
        if choices.checked_pow(open.len() as u32).is_none_or(|all| all > MOST_COMBINATIONS) {
            return true;
        }
        let mut numbers = vec![0usize; open.len()];
        loop {
            let chosen: Vec<u32> = numbers.iter().map(|&number| number as u32).collect();
            if with(&chosen) {
                return true;
            }
            if !next_combination(&mut numbers, |_| choices as usize) {
                return false;
            }
        }
    }

    /// Whether a thread is where some condition counts threads.
    fn is_counted(&self, local: LocalId) -> bool {
        let thread = &self.tokens.local(local).thread;
        thread.frames.len() == 1 && self.counted.contains(&(thread.role, thread.frames[0].location))
    }

    fn check_growth(&self) -> Result<(), Interrupted> {
        let system = self.tokens.system();
        if self.memories.len() > MOST {
            let values = |cell: usize| {
                let values = self.memories.iter().map(|memory| memory[cell]);
                values.collect::<FxHashSet<_>>().len()
            };
            let most = (0..system.cells.len()).map(|cell| (values(cell), cell)).max();
            let (values, cell) = most.expect("memory differs in a cell");
            let name = system.cells.as_slice()[cell].name.clone();
            return Err(Interrupted::Growing(Growing { name, values }));
        }
        if self.tokens.len() > MOST {
            let frames = self.tokens.iter().flat_map(|local| local.thread.frames.iter());
            return Err(Interrupted::Growing(Growing::of_registers(system, frames)));
        }
        Ok(())
    }
}

/// One thread fewer in a thread state.
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

/// The next combination of numbers below the given ends; false after the last.
fn next_combination(numbers: &mut [usize], end: impl Fn(usize) -> usize) -> bool {
    for (position, number) in numbers.iter_mut().enumerate() {
        *number += 1;
        if *number < end(position) {
            return true;
        }
        *number = 0;
    }
    false
}
