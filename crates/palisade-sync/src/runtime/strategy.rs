//! Which thread is next.
//!
//! *Source* of PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
//! probabilistic guarantees of finding bugs", ASPLOS 2010. The thread with the highest priority runs.
//! Priorities are random, and at `depth - 1` random steps the running thread gets the lowest one.

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

/// A thread that can be next.
pub struct Candidate<'a> {
    pub thread: usize,
    /// The number of outcomes of its step.
    pub outcomes: usize,
    pub footprint: &'a Footprint,
}

/// How decisions are made.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// Each thread with the same probability.
    Random(Random),
    /// By priority.
    Pct(Pct),
    /// By the requests of a search.
    Follow(Follow),
}

/// Priorities of threads.
#[derive(Clone, Debug)]
pub struct Pct {
    random: Random,
    priorities: FxHashMap<usize, u64>,
    /// The steps at which the running thread gets the lowest priority.
    changes: Vec<usize>,
}

/// Makes the given choices first. Then continues with the thread of the last step, unless it is asleep.
#[derive(Clone, Debug)]
pub struct Follow {
    pub choices: Vec<Choice>,
    pub asleep: Vec<Sleeper>,
    /// Whether choices that are not possible are skipped; otherwise the execution ends there.
    pub lenient: bool,
    at: usize,
}

impl Follow {
    pub fn new(choices: Vec<Choice>, asleep: Vec<Sleeper>, lenient: bool) -> Follow {
        Follow { choices, asleep, lenient, at: 0 }
    }
}

impl Strategy {
    pub fn random(seed: u64) -> Strategy {
        Strategy::Random(Random::new(seed))
    }

    /// Priorities, for executions of about this many steps.
    pub fn pct(seed: u64, depth: usize, steps: usize) -> Strategy {
        let mut random = Random::new(seed);
        let changes = (1..depth).map(|_| 1 + random.below(steps.max(1))).collect();
        Strategy::Pct(Pct { random, priorities: FxHashMap::default(), changes })
    }

    /// The next step, with index `step`, after one of thread `last`. `None` if the execution should end here.
    pub fn choose(
        &mut self,
        candidates: &[Candidate<'_>],
        last: Option<usize>,
        step: usize,
    ) -> Option<Choice> {
        match self {
            Strategy::Random(random) => {
                let chosen = &candidates[random.below(candidates.len())];
                Some(Choice { process: chosen.thread, outcome: random.below(chosen.outcomes) })
            }
            Strategy::Pct(pct) => Some(pct.choose(candidates, last, step)),
            Strategy::Follow(follow) => follow.choose(candidates, last),
        }
    }
}

impl Pct {
    fn choose(&mut self, candidates: &[Candidate<'_>], last: Option<usize>, step: usize) -> Choice {
        for candidate in candidates {
            let random = &mut self.random;
            self.priorities.entry(candidate.thread).or_insert_with(|| (1 << 32) + (random.next() >> 1));
        }
        if let (Some(at), Some(last)) = (self.changes.iter().position(|change| *change == step), last) {
            self.priorities.insert(last, at as u64);
        }
        let first = candidates.iter().max_by_key(|candidate| self.priorities[&candidate.thread]);
        let chosen = first.expect("there is a candidate");
        Choice { process: chosen.thread, outcome: self.random.below(chosen.outcomes) }
    }
}

impl Follow {
    fn choose(&mut self, candidates: &[Candidate<'_>], last: Option<usize>) -> Option<Choice> {
        while let Some(&choice) = self.choices.get(self.at) {
            self.at += 1;
            let possible = candidates
                .iter()
                .any(|candidate| candidate.thread == choice.process && choice.outcome < candidate.outcomes);
            if possible {
                return Some(choice);
            }
            if !self.lenient {
                return None;
            }
        }
        let is_awake = |candidate: &&Candidate<'_>| {
            !self.asleep.iter().any(|sleeper| sleeper.process == candidate.thread)
        };
        let awake = || candidates.iter().filter(is_awake);
        let same = || awake().find(|candidate| Some(candidate.thread) == last);
        let chosen = same().or_else(|| awake().next())?;
        let (thread, footprint) = (chosen.thread, chosen.footprint.clone());
        self.asleep.retain(|sleeper| !sleeper.footprint.conflicts(&footprint));
        Some(Choice { process: thread, outcome: 0 })
    }
}
