//! Programs with stacks, within a number of rounds.
//!
//! *Problem.* Can a bad state be reached if each thread runs in at most K *rounds*? A round is a stretch of a
//! run in which one thread takes all the steps (a context). Rounds of different threads may follow each other
//! in any order. This is the notion of Atig, Bouajjani and Parlato ("Getting rid of store buffers in TSO
//! analysis", CAV 2011, section 2.4), where every thread has at most K rounds. It covers K round-robin turns
//! of all threads, and more.
//!
//! *Source.* Qadeer and Rehof ("Context-bounded model checking of concurrent software", TACAS 2005). Let a
//! thread run alone from a regular set of stacks, with known memory. It reaches regular sets of stacks, one
//! for each memory it may leave. So a search over (memory, one regular set per thread) decides the problem.
//! Only memories that a round really leaves are visited, as in the lazy sequentialization of La Torre,
//! Madhusudan and Parlato (CAV 2009).
//!
//! *Guarantee.* Exact for K rounds, with stacks of any height and with values from finite domains. If the
//! sets are closed under further rounds, the answer holds for any number of rounds.
//!
//! *Differences from the paper.*
//! 1. The paper bounds the rounds of all threads together. Here each thread has its own bound. The search
//!    goes level by level, where level K holds what K rounds per thread reach.
//! 2. Sets of stacks are kept in normal form, so that they are compared and looked up by number. The result
//!    of a round for a set and a memory is computed once.
//! 3. Stacks whose top frame only passes through local steps are left out at the end of a round
//!    (`Views::passes_through`).
//! 4. The thread that ran last need not run again: what it would reach, it has already reached in the same
//!    round.
//! 5. A set of states is dropped if it is contained in another one that took no more rounds of any thread.
//!    The other one has more stacks of one thread, and is the same otherwise.
//! 6. Threads may be started. The threads that a round starts are part of its result, up to a bound.

use crate::language::{Language, LanguageId};
use crate::proof::stops;
use crate::rules::{Growing, MemoryId, Rules};
use crate::saturate::{Saturation, saturate};
use crate::views::{Sample, ViewSetId, Views, bad_combination};
use palisade_base::{Interner, limits};
use palisade_engine::{Exhausted, Limits, Reduction};
use palisade_memory::Machine;
use palisade_program::running::{Liveness, RoleId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The global set of states between two rounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Global {
    pub memory: MemoryId,
    /// The role of each thread, and the stacks it may have, in the order of creation.
    pub threads: Vec<(RoleId, LanguageId)>,
}

/// A global set of states that was found, and how it was reached.
pub(crate) struct Met {
    pub global: Global,
    /// How many rounds each thread has had.
    used: Vec<u32>,
    /// The previous set of states, and the thread that ran.
    pub parent: Option<(usize, usize)>,
    /// Whether another set contains it.
    pub dropped: bool,
}

/// A possible result of a round.
#[derive(Clone, Debug)]
struct Left {
    memory: MemoryId,
    started: Rc<[RoleId]>,
    stacks: LanguageId,
}

/// The results of a round.
#[derive(Clone)]
enum Round {
    Fault,
    Leaves(Rc<[Left]>),
}

/// The result of the search.
pub(crate) enum ContextsEnd {
    /// A bad state was found: the last set of states, and what is bad there.
    Bad(usize, Target),
    /// No number of rounds leads to a bad state.
    Nothing,
    /// This many rounds lead to no bad state; more may.
    NothingUpTo(u32),
}

/// A bad state.
pub(crate) enum Target {
    /// This thread runs into a fault when it runs next.
    Fault(usize),
    /// A property is violated. For each thread: the bottom of its stack, and whether there is nothing above
    /// it.
    Property(Vec<Sample>),
}

/// Why a search ended without an answer.
#[derive(Clone, Debug)]
pub(crate) enum Interrupted {
    Exhausted(Exhausted),
    Growing(Growing),
}

/// Counters of a search.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    /// Edges of all saturated automata.
    pub edges: u64,
    /// Rounds computed.
    pub rounds: u64,
    /// The level being searched.
    pub level: u32,
}

/// The search.
pub(crate) struct Contexts<'a, 'c> {
    pub rules: Rules<'a>,
    pub languages: Interner<LanguageId, Language>,
    pub met: Vec<Met>,
    pub counters: Counters,
    views: Views,
    /// The views that properties have of sets of stacks.
    seen: FxHashMap<LanguageId, ViewSetId>,
    /// Combinations that were judged and are not bad.
    judged: FxHashSet<(MemoryId, Vec<ViewSetId>)>,
    reduction: Reduction,
    limits: &'c Limits,
    report: &'c dyn Fn(&Counters),
    /// The sets found and not dropped, by everything except the stacks of one thread.
    known: FxHashMap<(Global, u32), Vec<usize>>,
    within: FxHashMap<(LanguageId, LanguageId), bool>,
    rounds: FxHashMap<(LanguageId, MemoryId), Round>,
    own_bytes: u64,
    rules_bytes: u64,
    /// The largest number of threads that may ever be started.
    most_threads: usize,
    /// Whether a run wanted to start more.
    pub too_many_threads: bool,
}

impl<'a, 'c> Contexts<'a, 'c> {
    /// A search of a program under SC, in which at most this many threads are started.
    pub fn new(
        machine: Machine<'a>,
        liveness: Arc<Liveness>,
        most_started: usize,
        reduction: Reduction,
        limits: &'c Limits,
        report: &'c dyn Fn(&Counters),
    ) -> Contexts<'a, 'c> {
        Contexts {
            rules: Rules::new(machine, liveness, most_started),
            languages: Interner::new(),
            met: Vec::new(),
            counters: Counters::default(),
            views: Views::new(machine.system),
            seen: FxHashMap::default(),
            judged: FxHashSet::default(),
            reduction,
            limits,
            report,
            known: FxHashMap::default(),
            within: FxHashMap::default(),
            rounds: FxHashMap::default(),
            own_bytes: 0,
            rules_bytes: 0,
            most_threads: machine.system.instances.len() + most_started,
            too_many_threads: false,
        }
    }

    /// Where threads always wait, by code.
    pub fn stops(&self) -> Vec<Vec<u32>> {
        let system = self.rules.system();
        match self.reduction {
            Reduction::None => {
                system.codes.iter().map(|code| (0..code.location_count() as u32).collect()).collect()
            }
            Reduction::Local | Reduction::Full => stops(system, &self.views.stops),
        }
    }

    /// Whether runs were left out because they start too many threads.
    pub fn is_cut(&self) -> bool {
        self.too_many_threads || self.rules.too_many_started
    }

    /// Searches level by level up to the given number of rounds.
    pub fn search(&mut self, most_rounds: u32) -> Result<ContextsEnd, Interrupted> {
        let machine = self.rules.machine();
        let mut queue: VecDeque<(usize, usize)> = VecDeque::new();
        let mut later: Vec<(usize, usize)> = Vec::new();
        for state in machine.initial_states() {
            limits::checkpoint();
            let memory = self.rules.memory_id(state.memory.as_slice().to_vec());
            let roles: Vec<RoleId> = machine.system.instances.iter().map(|instance| instance.role).collect();
            let threads = roles.iter().map(|&role| (role, self.start(role))).collect();
            let used = vec![0; roles.len()];
            if let Some(target) = self.meet(Global { memory, threads }, used, None, &mut queue) {
                return Ok(ContextsEnd::Bad(self.met.len() - 1, target));
            }
        }
        self.counters.level = 1;
        loop {
            while let Some((at, thread)) = queue.pop_front() {
                if self.met[at].dropped {
                    continue;
                }
                if self.met[at].used[thread] >= self.counters.level {
                    later.push((at, thread));
                    continue;
                }
                if let Some((last, target)) = self.run(at, thread, &mut queue)? {
                    return Ok(ContextsEnd::Bad(last, target));
                }
            }
            if later.is_empty() {
                return Ok(ContextsEnd::Nothing);
            }
            if self.counters.level >= most_rounds {
                let closed = self.is_closed(&later)?;
                return Ok(if closed { ContextsEnd::Nothing } else { ContextsEnd::NothingUpTo(most_rounds) });
            }
            self.counters.level += 1;
            queue.extend(later.drain(..));
        }
    }

    /// Whether one more round of these threads leads to nothing new.
    fn is_closed(&mut self, more: &[(usize, usize)]) -> Result<bool, Interrupted> {
        for &(at, thread) in more {
            if self.met[at].dropped {
                continue;
            }
            let global = self.met[at].global.clone();
            let Round::Leaves(left) = self.round(global.threads[thread].1, global.memory)? else {
                return Ok(false);
            };
            for left in left.iter() {
                let next = self.after(&global, thread, left);
                if !next.is_some_and(|next| self.is_held(&next, None)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The set with only the start of a process body.
    fn start(&mut self, role: RoleId) -> LanguageId {
        let start = self.rules.start(role);
        self.languages.id(Language::single(start))
    }

    /// Runs one thread. Returns the last set of states and what is bad there, if anything.
    fn run(
        &mut self,
        at: usize,
        thread: usize,
        queue: &mut VecDeque<(usize, usize)>,
    ) -> Result<Option<(usize, Target)>, Interrupted> {
        self.limits.check(self.own_bytes + self.rules_bytes).map_err(Interrupted::Exhausted)?;
        self.limits
            .check_work(self.counters.edges + self.met.len() as u64)
            .map_err(Interrupted::Exhausted)?;
        let global = self.met[at].global.clone();
        let left = match self.round(global.threads[thread].1, global.memory)? {
            Round::Fault => return Ok(Some((at, Target::Fault(thread)))),
            Round::Leaves(left) => left,
        };
        for left in left.iter() {
            let Some(next) = self.after(&global, thread, left) else {
                self.too_many_threads = true;
                continue;
            };
            let mut used = self.met[at].used.clone();
            used[thread] += 1;
            used.resize(next.threads.len(), 0);
            if let Some(target) = self.meet(next, used, Some((at, thread)), queue) {
                return Ok(Some((self.met.len() - 1, target)));
            }
        }
        Ok(None)
    }

    /// The global set after a round. `None` if there are too many threads.
    fn after(&mut self, global: &Global, thread: usize, left: &Left) -> Option<Global> {
        let mut next = Global { memory: left.memory, threads: global.threads.clone() };
        next.threads[thread].1 = left.stacks;
        for &role in left.started.iter() {
            let start = self.start(role);
            next.threads.push((role, start));
        }
        (next.threads.len() <= self.most_threads).then_some(next)
    }

    /// Whether a set found earlier contains these states. If `used` is given, that set must have used no more
    /// rounds.
    fn is_held(&mut self, global: &Global, used: Option<&[u32]>) -> bool {
        let (met, known, within, languages) = (&self.met, &self.known, &mut self.within, &self.languages);
        (0..global.threads.len()).any(|thread| {
            let others = known.get(&without(global, thread)).map_or(&[][..], Vec::as_slice);
            others.iter().map(|&other| &met[other]).any(|other| {
                used.is_none_or(|used| no_more(&other.used, used))
                    && is_within(within, languages, global, &other.global, thread)
            })
        })
    }

    /// Adds a global set of states, unless another one contains it, and judges it.
    fn meet(
        &mut self,
        global: Global,
        used: Vec<u32>,
        parent: Option<(usize, usize)>,
        queue: &mut VecDeque<(usize, usize)>,
    ) -> Option<Target> {
        if self.is_held(&global, Some(&used)) {
            return None;
        }
        let index = self.met.len();
        let threads = global.threads.len();
        let last = parent.map(|(_, thread)| thread);
        queue.extend((0..threads).filter(|&thread| Some(thread) != last).map(|thread| (index, thread)));
        for thread in 0..threads {
            let (met, within, languages) = (&mut self.met, &mut self.within, &self.languages);
            let known = self.known.entry(without(&global, thread)).or_default();
            known.retain(|&other| {
                let other = &mut met[other];
                other.dropped |= no_more(&used, &other.used)
                    && is_within(within, languages, &other.global, &global, thread);
                !other.dropped
            });
            known.push(index);
        }
        let target = self.judge(&global);
        self.own_bytes += 250 + (120 + 16 * threads as u64) * threads as u64;
        self.met.push(Met { global, used, parent, dropped: false });
        target
    }

    fn judge(&mut self, global: &Global) -> Option<Target> {
        if !self.views.any {
            return None;
        }
        let mut sets = Vec::with_capacity(global.threads.len());
        for &(role, stacks) in &global.threads {
            let set = *self
                .seen
                .entry(stacks)
                .or_insert_with(|| self.views.view_set(role, &self.rules, self.languages.get(stacks)));
            sets.push(set);
        }
        if !self.judged.insert((global.memory, sets)) {
            return None;
        }
        let samples = |&(role, stacks): &(RoleId, LanguageId)| {
            self.views.samples(role, &self.rules, self.languages.get(stacks))
        };
        let threads: Vec<Vec<Sample>> = global.threads.iter().map(samples).collect();
        let chosen = bad_combination(self.rules.machine(), self.rules.memory(global.memory), &threads)?;
        Some(Target::Property(threads.iter().zip(chosen).map(|(samples, i)| samples[i].clone()).collect()))
    }

    /// The results of a round of a thread with one of these stacks, starting from this memory.
    fn round(&mut self, stacks: LanguageId, memory: MemoryId) -> Result<Round, Interrupted> {
        if let Some(known) = self.rounds.get(&(stacks, memory)) {
            return Ok(known.clone());
        }
        let saturation = self.saturate(stacks, memory)?;
        self.counters.rounds += 1;
        self.rules_bytes = self.rules.bytes();
        let round = if saturation.fault.is_some() {
            Round::Fault
        } else {
            let mut left = Vec::new();
            for id in saturation.controls() {
                let control = Rc::clone(self.rules.control(id));
                if control.returning.is_some() {
                    continue;
                }
                let (rules, views, reduction) = (&mut self.rules, &self.views, self.reduction);
                let waits = |symbol| {
                    !rules.symbol(symbol).holds()
                        && (reduction == Reduction::None || !views.passes_through(rules, symbol))
                };
                if let Some(language) = saturation.stacks(id, waits) {
                    let known = self.languages.len();
                    let bytes = language.bytes();
                    let stacks = self.languages.id(language);
                    if self.languages.len() > known {
                        self.own_bytes += 2 * bytes;
                    }
                    left.push(Left { memory: control.memory, started: Rc::clone(&control.started), stacks });
                }
            }
            Round::Leaves(left.into())
        };
        self.rounds.insert((stacks, memory), round.clone());
        Ok(round)
    }

    /// The saturated automaton of a round.
    pub fn saturate(&mut self, stacks: LanguageId, memory: MemoryId) -> Result<Saturation, Interrupted> {
        let stacks = Rc::clone(self.languages.get(stacks));
        let own = self.own_bytes;
        let (limits, report, counters) = (self.limits, self.report, &mut self.counters);
        let mut edges = 0;
        let mut may_continue = |rules: &Rules<'_>, more: u64| {
            edges += more;
            counters.edges += more;
            report(counters);
            limits.check(own + rules.bytes() + 200 * edges).map_err(Interrupted::Exhausted)?;
            limits.check_work(counters.edges).map_err(Interrupted::Exhausted)?;
            rules.check_growth().map_err(Interrupted::Growing)
        };
        let rules = &mut self.rules;
        let saturated = self.limits.within(|| saturate(rules, &stacks, memory, &mut may_continue));
        saturated.unwrap_or_else(|what| Err(Interrupted::Exhausted(what)))
    }
}

/// Whether every number in the first list is at most the corresponding one in the second.
fn no_more(a: &[u32], b: &[u32]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b)
}

/// Everything except the stacks of one thread.
fn without(global: &Global, thread: usize) -> (Global, u32) {
    let mut rest = global.clone();
    rest.threads[thread].1 = LanguageId(u32::MAX);
    (rest, thread as u32)
}

/// Whether the stacks of a thread in one set of states are among those in another.
fn is_within(
    known: &mut FxHashMap<(LanguageId, LanguageId), bool>,
    languages: &Interner<LanguageId, Language>,
    small: &Global,
    large: &Global,
    thread: usize,
) -> bool {
    let (small, large) = (small.threads[thread].1, large.threads[thread].1);
    small == large
        || *known
            .entry((small, large))
            .or_insert_with(|| languages.get(small).is_within(languages.get(large)))
}
