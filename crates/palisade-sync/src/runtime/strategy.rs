//! Which thread is next, and when stores reach memory.
//!
//! *Source* of PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
//! probabilistic guarantees of finding bugs", ASPLOS 2010. The thread with the highest priority runs.
//! Priorities are random, and at `depth - 1` random steps the running thread gets the lowest one. Here store
//! buffers have priorities, too.
//!
//! *Lazy stores.* Most errors with store buffers need stores that stay in a buffer for long. So in two thirds
//! of the random schedules, a store reaches memory only now and then while threads can run. It does so
//! eventually, as on a machine: otherwise a thread that waits for it would never end.

use super::schedule::Turn;
use palisade_dpor::{Choice, Footprint, Sleeper};
use rustc_hash::FxHashMap;

/// Pseudo-random numbers (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator from a seed, which may be any number.
    pub fn new(seed: u64) -> Random {
        // Neighbouring seeds must not give similar numbers (splitmix64).
        let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random((z ^ z >> 31) | 1)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }
}

/// A thread or a buffer that can be next.
pub struct Candidate {
    /// Its number in the search.
    pub process: usize,
    /// Its turn, with the first outcome.
    pub turn: Turn,
    /// The number of outcomes of its step.
    pub outcomes: usize,
    pub footprint: Footprint,
}

impl Candidate {
    fn is_buffer(&self) -> bool {
        matches!(self.turn, Turn::Write { .. })
    }

    fn with(&self, outcome: usize) -> Turn {
        match self.turn {
            Turn::Step { thread, .. } => Turn::Step { thread, outcome },
            write @ Turn::Write { .. } => write,
        }
    }

    /// Its turn with an outcome, if there is such an outcome.
    fn checked(&self, outcome: usize) -> Option<Turn> {
        (outcome < self.outcomes).then(|| self.with(outcome))
    }
}

/// Where an execution is.
#[derive(Clone, Copy)]
pub struct Position<'a> {
    /// The process that took the last step, and the thread that took the last step of a thread.
    pub last: Option<usize>,
    pub last_thread: Option<usize>,
    /// The number of steps so far.
    pub step: usize,
    /// By process, how many steps it has taken.
    pub counts: &'a [usize],
}

/// How decisions are made.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// Each thread with the same probability.
    Random(Random, Laziness),
    /// By priority.
    Pct(Pct),
    /// By the requests of a search, or a given schedule.
    Follow(Follow),
}

/// When stores reach memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Laziness {
    /// A buffer is as likely to be next as a thread.
    Even,
    /// One step in this many.
    OneIn(usize),
}

/// The rarest that stores reach memory while threads can run.
const RARELY: usize = 64;

/// Priorities of threads and buffers.
#[derive(Clone, Debug)]
pub struct Pct {
    random: Random,
    priorities: FxHashMap<usize, u64>,
    /// The steps at which the running thread gets the lowest priority.
    changes: Vec<usize>,
}

/// What a strategy has to do first.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The choices of a search. If one is not possible, the execution ends there.
    Choices(Vec<Choice>),
    /// A schedule. Turns that are not possible are skipped.
    Turns(Vec<Turn>),
}

/// Makes the given choices first. Then continues with the thread of the last step, unless it is asleep.
#[derive(Clone, Debug)]
pub struct Follow {
    wanted: Wanted,
    asleep: Vec<Sleeper>,
    /// Whether stores reach memory as soon as they can, after the given choices.
    eager: bool,
    /// Whether stores reach memory as soon as they can, also between the given choices.
    always_eager: bool,
    at: usize,
}

impl Follow {
    /// Follows a search.
    pub fn search(choices: Vec<Choice>, asleep: Vec<Sleeper>, eager: bool) -> Follow {
        Follow { wanted: Wanted::Choices(choices), asleep, eager, always_eager: false, at: 0 }
    }

    /// Follows a schedule.
    pub fn schedule(turns: Vec<Turn>) -> Follow {
        let wanted = Wanted::Turns(turns);
        Follow { wanted, asleep: Vec::new(), eager: true, always_eager: false, at: 0 }
    }

    /// Follows a schedule without store buffers, on a machine that has them.
    pub fn without_buffers(turns: Vec<Turn>) -> Follow {
        Follow { always_eager: true, ..Follow::schedule(turns) }
    }
}

impl Strategy {
    /// Random decisions. `buffered` says whether there are store buffers.
    pub fn random(seed: u64, buffered: bool) -> Strategy {
        let mut random = Random::new(seed);
        let laziness = match buffered.then(|| random.below(3)) {
            Some(0) => Laziness::OneIn(RARELY),
            Some(1) => Laziness::OneIn(8),
            _ => Laziness::Even,
        };
        Strategy::Random(random, laziness)
    }

    /// Priorities, for executions of about this many steps.
    pub fn pct(seed: u64, depth: usize, steps: usize) -> Strategy {
        let mut random = Random::new(seed);
        let changes = (1..depth).map(|_| 1 + random.below(steps.max(1))).collect();
        Strategy::Pct(Pct { random, priorities: FxHashMap::default(), changes })
    }

    /// The thread whose turn is next in a given schedule.
    pub fn wanted_thread(&self) -> Option<usize> {
        let Strategy::Follow(Follow { wanted: Wanted::Turns(turns), at, .. }) = self else { return None };
        match turns.get(*at) {
            Some(&Turn::Step { thread, .. }) => Some(thread),
            _ => None,
        }
    }

    /// The next step, as the index of a candidate and its turn. Threads come before buffers. `None` if the
    /// execution should end here.
    pub fn choose(&mut self, candidates: &[Candidate], position: Position<'_>) -> Option<(usize, Turn)> {
        let (random, chosen) = match self {
            Strategy::Random(random, laziness) => {
                let chosen = random.pick(candidates, *laziness);
                (random, chosen)
            }
            Strategy::Pct(pct) => {
                let chosen = pct.pick(candidates, position);
                (&mut pct.random, chosen)
            }
            Strategy::Follow(follow) => return follow.choose(candidates, position),
        };
        let outcome = random.below(candidates[chosen].outcomes);
        Some((chosen, candidates[chosen].with(outcome)))
    }
}

impl Random {
    fn pick(&mut self, candidates: &[Candidate], laziness: Laziness) -> usize {
        let all = candidates.len();
        let threads = candidates.iter().take_while(|candidate| !candidate.is_buffer()).count();
        match laziness {
            Laziness::OneIn(many) if threads > 0 && threads < all => match self.below(many) {
                0 => threads + self.below(all - threads),
                _ => self.below(threads),
            },
            _ => self.below(all),
        }
    }
}

impl Pct {
    fn pick(&mut self, candidates: &[Candidate], position: Position<'_>) -> usize {
        for candidate in candidates {
            let random = &mut self.random;
            self.priorities.entry(candidate.process).or_insert_with(|| (1 << 32) + (random.next() >> 1));
        }
        let change = self.changes.iter().position(|change| *change == position.step);
        if let (Some(at), Some(last)) = (change, position.last) {
            self.priorities.insert(last, at as u64);
        }
        if let Some(buffer) = candidates.iter().position(Candidate::is_buffer)
            && self.random.below(RARELY) == 0
        {
            return buffer + self.random.below(candidates.len() - buffer);
        }
        let priority = |index: &usize| self.priorities[&candidates[*index].process];
        (0..candidates.len()).max_by_key(priority).expect("there is a candidate")
    }
}

impl Follow {
    fn choose(&mut self, candidates: &[Candidate], position: Position<'_>) -> Option<(usize, Turn)> {
        let buffer = candidates.iter().position(Candidate::is_buffer);
        if let Some(buffer) = buffer.filter(|_| self.always_eager) {
            return Some((buffer, candidates[buffer].turn));
        }
        match &self.wanted {
            Wanted::Choices(choices) => {
                if let Some(&Choice { process, outcome }) = choices.get(self.at) {
                    self.at += 1;
                    let chosen = candidates.iter().position(|candidate| candidate.process == process)?;
                    return Some((chosen, candidates[chosen].checked(outcome)?));
                }
            }
            Wanted::Turns(turns) => {
                while let Some(&turn) = turns.get(self.at) {
                    self.at += 1;
                    let outcome = if let Turn::Step { outcome, .. } = turn { outcome } else { 0 };
                    let is_it = |candidate: &Candidate| candidate.checked(outcome) == Some(turn);
                    if let Some(chosen) = candidates.iter().position(is_it) {
                        return Some((chosen, turn));
                    }
                }
            }
        }
        let is_awake =
            |index: &usize| !self.asleep.iter().any(|sleeper| sleeper.process == candidates[*index].process);
        let awake = || (0..candidates.len()).filter(is_awake);
        let written = awake().find(|&index| self.eager && candidates[index].is_buffer());
        let same = || awake().find(|&index| Some(candidates[index].process) == position.last_thread);
        let index = written.or_else(same).or_else(|| awake().next())?;
        let chosen = &candidates[index];
        let taken = |process: usize| position.counts.get(process).copied().unwrap_or(0);
        self.asleep.retain(|sleeper| !sleeper.is_woken_by(chosen.process, &chosen.footprint, taken));
        Some((index, chosen.turn))
    }
}
