//! States that need not be stored: those with one successor, and those with none.
//!
//! *Idea.* Where only one step is possible there is nothing to choose. The search immediately continues from
//! its result, along the *chain* of such states, and stores only the end of the chain. In programs that pass
//! a token, such as those translated from TSO to SC, most states are of this kind. A state without successors
//! is not needed once it has been judged.
//!
//! *Guarantee.*
//! - Every state of a chain is judged. A bad one, or a stuck one if those are looked for, is stored, which ends the
//!   chain.
//! - All possible steps of a state on a chain are taken. So leaving the state out changes nothing for the
//!   reduction of [`crate::expand`]: a cycle with such a state has a state that is expanded fully.
//! - A chain that returns to itself is finished, because all its states were judged.
//! - Chains end after [`LONGEST`] steps at the latest. Stopping early is always correct.
//! - For witnesses, chains are walked again.
//!
//! *Cost.* Finding out that a state has several successors takes as long as finding two of them. This is paid
//! for every successor of every state. Where few successors begin a chain, the search [stops
//! looking](Payoff).
//!
//! Chains that meet share their remaining part. The shared part is walked once for each chain, and if it is
//! long, most of the work is walking. The same happens where the automaton repeatedly lacks an entry, because
//! each time a walk starts from the beginning. Both show in the counters: few steps are on walks to a new
//! end. Then chains also end at *waypoints*. One state in [`WAYPOINT_ONE_OF`] is a waypoint, chosen by its
//! hash. Chains that meet end at the same waypoint, and the rest is walked once from there. A walk then takes
//! about [`WAYPOINT_ONE_OF`] steps, and about one in [`WAYPOINT_ONE_OF`] of the states that would have been
//! left out is stored.

use crate::automaton::{Need, Target};
use crate::expand::{Expander, Expansion, Locals, Outcome, Successors};
use crate::flags::Flags;
use crate::progress;
use crate::search::Goal;
use palisade_automata::on_demand::{Access, LocalId};
use palisade_search::{Wanted, hash};
use smallvec::SmallVec;

/// The largest number of steps in a chain.
const LONGEST: u16 = 256;

/// How many successors to look at, or steps to walk, before judging whether chains pay off.
const TRIAL: u64 = 1 << 12;
/// Chains pay off if at least one in this many successors begins one.
const ONE_OF: u64 = 8;

/// Walking is wasteful if less than one step in this many is on a walk to a new end.
const ONE_STEP_OF: u64 = 4;
/// One state in this many is a waypoint.
const WAYPOINT_ONE_OF: u64 = 8;

/// How chains are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follow {
    /// Not at all: every successor is stored.
    No,
    /// Up to the next waypoint.
    ToWaypoints,
    /// To their end.
    ToTheEnd,
}

/// Whether it pays off to look for chains, and to follow them to their end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payoff {
    /// Successors looked at.
    looked_at: u64,
    /// Successors that were not stored.
    left_out: u64,
    /// Steps walked.
    pub walked: u64,
    /// Steps on walks whose end was stored for the first time.
    pub to_new: u64,
}

impl Payoff {
    /// As words, for other processes.
    pub fn words(self) -> [u64; 4] {
        [self.looked_at, self.left_out, self.walked, self.to_new]
    }

    /// The counters in these words.
    pub fn of_words([looked_at, left_out, walked, to_new]: [u64; 4]) -> Payoff {
        Payoff { looked_at, left_out, walked, to_new }
    }

    pub fn add(&mut self, other: Payoff) {
        self.looked_at += other.looked_at;
        self.left_out += other.left_out;
        self.walked += other.walked;
        self.to_new += other.to_new;
    }

    /// How to follow chains from now on.
    pub fn follow(self) -> Follow {
        if self.looked_at >= TRIAL && self.left_out < self.looked_at / ONE_OF {
            Follow::No
        } else if self.walked >= TRIAL && self.to_new < self.walked / ONE_STEP_OF {
            Follow::ToWaypoints
        } else {
            Follow::ToTheEnd
        }
    }
}

/// Whether walks may end in this state. This depends on the state alone, so walks that meet end in the same
/// states.
fn is_waypoint(state: &[u64]) -> bool {
    // Uses bits that neither the index nor the choice of a shard uses.
    (hash(state) >> 32).is_multiple_of(WAYPOINT_ONE_OF)
}

/// The possible next states.
enum Next {
    /// Several states, or one that has to be stored in any case.
    Choice,
    /// One state.
    One { thread: usize, access: Access, target: Target },
    /// Nothing.
    Nothing,
}

impl Expander<'_, '_> {
    /// Continues from each of the successors, from `start` on, as long as there is no choice.
    pub(crate) fn follow_chains(
        &self,
        start: usize,
        successors: &mut Successors,
        needs: &mut Vec<Need>,
    ) -> Result<(), Expansion> {
        let words = self.layout.words;
        let mut result = Ok(());
        let mut kept = start;
        let mut next = start;
        while next < successors.words.len() {
            let mut passed = 0;
            let end =
                self.walk(&mut successors.words[next..next + words], self.follow, needs, |_| passed += 1);
            let left_out = u64::from(passed > 0 || end == Ok(false));
            successors.tally.payoff.add(Payoff { looked_at: 1, left_out, walked: passed.into(), to_new: 0 });
            match end {
                Ok(true) => {
                    successors.words.copy_within(next..next + words, kept);
                    successors.weights.push(passed);
                    kept += words;
                }
                Ok(false) => {}
                Err(why) => result = Err(why),
            }
            next += words;
        }
        successors.words.truncate(kept);
        result
    }

    /// The states between two consecutive states of the search.
    pub(crate) fn between(&self, from: &[u64], to: &[u64]) -> Vec<Vec<u64>> {
        self.find_between(from, to).expect("a state of the path follows from the one before it")
    }

    /// The states between two states of the search, if the second may have been stored after the first.
    pub(crate) fn find_between(&self, from: &[u64], to: &[u64]) -> Option<Vec<Vec<u64>>> {
        for wanted in [Wanted::Part, Wanted::All] {
            let mut successors = Successors::default();
            self.expand_once(from, wanted, &mut successors, &mut Vec::new());
            for first in successors.words.chunks_exact(self.layout.words) {
                let mut passed: Vec<Vec<u64>> = Vec::new();
                let mut state = first.to_vec();
                let _ = self.walk(&mut state, Follow::ToTheEnd, &mut Vec::new(), |state| {
                    passed.push(state.to_vec());
                });
                // The search may have ended this chain earlier.
                if let Some(steps) = passed.iter().position(|state| state == to) {
                    passed.truncate(steps);
                    return Some(passed);
                }
                if state == to {
                    return Some(passed);
                }
            }
        }
        None
    }

    /// Walks a chain from a state to its end, and passes each state on the way to the callback. Returns
    /// whether the end has to be stored.
    fn walk(
        &self,
        state: &mut [u64],
        follow: Follow,
        needs: &mut Vec<Need>,
        mut pass: impl FnMut(&[u64]),
    ) -> Result<bool, Expansion> {
        // A state of the chain, replaced by a later one each time the number of steps has doubled. A walk
        // that reaches it again is in a cycle (Brent).
        let mut earlier: SmallVec<[u64; 8]> = SmallVec::new();
        for step in 1..=LONGEST {
            match self.next(state, needs)? {
                // Every stored state is judged.
                Next::Choice => return Ok(true),
                _ if self.ends_chain(state) => return Ok(true),
                // A search for the ends of runs looks at states without successors.
                Next::Nothing => return Ok(self.ends.is_some()),
                Next::One { thread, access, target } => {
                    pass(state);
                    if step.is_power_of_two() {
                        earlier.clear();
                        earlier.extend_from_slice(state);
                    }
                    self.apply(state, thread, access, target, needs)?;
                    if *state == *earlier {
                        return Ok(false);
                    }
                    if follow == Follow::ToWaypoints && is_waypoint(state) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Whether a state has to be stored, whatever follows it: the search looks for it, or nothing follows it.
    fn ends_chain(&self, state: &[u64]) -> bool {
        match self.goal {
            Goal::Stuck => {
                progress::is_over(self.automaton, self.layout, state)
                    || progress::is_stuck(self.automaton, self.layout, state)
            }
            Goal::Bad | Goal::Steps | Goal::OutOfReach | Goal::Forever => {
                self.judge.is_bad(self.automaton, self.layout, state)
            }
        }
    }

    /// The possible next states of a state.
    fn next(&self, state: &[u64], needs: &mut Vec<Need>) -> Result<Next, Expansion> {
        let locals: Locals = self.layout.threads.iter().map(|field| LocalId(field.get(state))).collect();
        if !self.all_known(&locals, needs) {
            return Err(Expansion::Missing);
        }
        let holder = locals.iter().position(|&local| self.automaton.note(local).flags.has(Flags::ENTERED));
        let threads = holder.map_or(0..locals.len(), |holder| holder..holder + 1);
        let mut next = Next::Nothing;
        for thread in threads {
            for mv in self.moves(locals[thread]) {
                let Outcome::Targets(targets) = self.outcome(state, mv, needs) else {
                    return Err(Expansion::Missing);
                };
                for &target in targets {
                    if !matches!(next, Next::Nothing) || target.child().is_some() {
                        return Ok(Next::Choice);
                    }
                    next = Next::One { thread, access: mv.letter, target };
                }
            }
        }
        Ok(next)
    }

    fn apply(
        &self,
        state: &mut [u64],
        thread: usize,
        access: Access,
        target: Target,
        needs: &mut Vec<Need>,
    ) -> Result<(), Expansion> {
        self.layout.take(state, thread, access, &target);
        self.layout.normalise(self.automaton, state, needs).map_err(|_| Expansion::Missing)
    }
}
