//! Executions that repeat themselves.
//!
//! *Problem.* An execution that reaches the limit on steps may be long, or may go on forever.
//!
//! *How.* At the limit all threads and buffers take turns, so every thread that can move does, and every store
//! reaches memory. The state before each turn is kept: the turn, memory, pending stores, synchronisation
//! objects, and what every thread is about to do. If the states repeat with a fixed period, over
//! [`MIN_REPEATED`] turns and [`MIN_PERIODS`] periods, the execution is a livelock. If nothing changed
//! meanwhile, all threads wait in loops, and it is a deadlock.
//!
//! *Assumption.* What threads keep in local variables or under locks does not lead them out. This cannot be seen
//! from outside, and the report says that it was not compared.
//!
//! The turns are not part of the schedule: they follow from the state at the limit.

use super::schedule::Turn;
use super::state::{End, Failure, State};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// How many turns have to repeat, and how many periods.
const MIN_REPEATED: usize = 2000;
const MIN_PERIODS: usize = 3;
/// The number of turns after which the execution ends in any case.
const MAX_TURNS: usize = 4 * MIN_REPEATED;

/// The turns that threads and buffers have taken since the limit.
#[derive(Debug, Default)]
pub struct Rounds {
    turns: Vec<Turn>,
    states: Vec<u64>,
    /// By state, when it was last seen.
    seen: FxHashMap<u64, usize>,
    /// If not 0: the last `repeated` states are those of `period` turns before.
    period: usize,
    repeated: usize,
    /// The number of turns before the last change.
    changed: usize,
}

impl Rounds {
    /// A thread has changed something.
    pub fn change(&mut self) {
        self.changed = self.turns.len();
    }

    /// The next turn among some, which are not empty.
    fn next(&self, turns: &[Turn]) -> Turn {
        let key = |turn: Turn| match turn {
            Turn::Step { thread, .. } => (thread, 0),
            Turn::Write { thread, buffer } => (thread, 1 + buffer),
        };
        let last = self.turns.last().map(|&turn| key(turn));
        let after = turns.iter().filter(|turn| Some(key(**turn)) > last).min_by_key(|turn| key(**turn));
        *after.or_else(|| turns.iter().min_by_key(|turn| key(**turn))).expect("somebody can move")
    }

    /// Adds a turn and the state before it.
    fn take(&mut self, turn: Turn, state: u64) {
        let now = self.states.len();
        self.turns.push(turn);
        self.states.push(state);
        if self.period > 0 && self.states[now - self.period] == state {
            self.repeated += 1;
        } else {
            self.period = self.seen.get(&state).map_or(0, |before| now - before);
            self.repeated = usize::from(self.period > 0);
        }
        self.seen.insert(state, now);
        debug_assert!(self.repeated == 0 || self.states[now - self.period] == state, "as the field says");
    }

    fn is_over(&self) -> bool {
        self.repeats() || self.states.len() == MAX_TURNS
    }

    fn repeats(&self) -> bool {
        self.repeated >= MIN_REPEATED.max(MIN_PERIODS * self.period)
    }

    /// Whether a thread has moved in the last period.
    fn moves(&self, thread: usize) -> bool {
        let last = self.turns.iter().rev().take(self.period);
        last.copied().any(|turn| matches!(turn, Turn::Step { thread: moved, .. } if moved == thread))
    }

    fn has_changed(&self) -> bool {
        self.turns.len() - self.changed <= self.period
    }
}

impl State {
    /// Chooses among the threads and buffers that can move, at the limit on steps. `None` if the execution has
    /// ended.
    pub(super) fn choose_in_rounds(&mut self, turns: &[Turn]) -> Option<Turn> {
        let rounds = self.rounds.get_or_insert_default();
        if rounds.is_over() {
            let end = self.end_of_rounds();
            self.finish(end);
            return None;
        }
        let turn = rounds.next(turns);
        let state = self.state_before(turn);
        self.rounds.get_or_insert_default().take(turn, state);
        self.idling = true;
        Some(turn)
    }

    fn end_of_rounds(&self) -> End {
        let Some(rounds) = self.rounds.as_ref().filter(|rounds| rounds.repeats()) else { return End::Cut };
        let repeating = self.call_sites_by(|number, thread| !thread.ended && rounds.moves(number));
        if !rounds.has_changed() {
            return End::Failed(Failure::Spin(repeating));
        }
        let waiting = self.call_sites_by(|number, thread| !thread.ended && !rounds.moves(number));
        End::Failed(Failure::Livelock { repeating, waiting })
    }

    /// The state as far as it is known, and whose turn it is.
    fn state_before(&self, turn: Turn) -> u64 {
        let mut all = FxHasher::default();
        turn.hash(&mut all);
        for (number, thread) in self.threads.iter().enumerate() {
            let Some(thread) = thread.as_ref().filter(|thread| !thread.ended) else { continue };
            (number, thread.round.is_some()).hash(&mut all);
            if let Some(pending) = &thread.pending {
                pending.instruction.hash(&mut all);
                pending.footprint.touches.iter().for_each(|touch| touch.address.hash(&mut all));
            }
        }
        for (thread, store) in self.buffers.pending() {
            (thread, store.address, store.value).hash(&mut all);
        }
        // Maps have no order, so what they contain is added up.
        let hash = |entry: &dyn Fn(&mut FxHasher)| {
            let mut one = FxHasher::default();
            entry(&mut one);
            one.finish()
        };
        let memory = self.memory.iter().map(|entry| hash(&|one| entry.hash(one)));
        let objects = self.objects.iter().map(|entry| hash(&|one| entry.hash(one)));
        (memory.fold(0, u64::wrapping_add), objects.fold(0, u64::wrapping_add)).hash(&mut all);
        all.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(thread: usize) -> Turn {
        Turn::Step { thread, outcome: 0 }
    }

    #[test]
    fn all_take_turns() {
        let mut rounds = Rounds::default();
        let write = Turn::Write { thread: 0, buffer: 0 };
        let turns = [step(0), step(2), write];
        for expected in [step(0), write, step(2), step(0)] {
            let next = rounds.next(&turns);
            assert_eq!(next, expected);
            rounds.take(next, 0);
        }
        assert_eq!(rounds.next(&[step(0)]), step(0));
    }

    #[test]
    fn periods() {
        let repeats = |state: &dyn Fn(usize) -> u64| {
            let mut rounds = Rounds::default();
            (0..MAX_TURNS).any(|turn| {
                rounds.take(step(turn % 3), state(turn));
                rounds.repeats()
            })
        };
        assert!(repeats(&|_| 7));
        assert!(repeats(&|turn| turn as u64 % 30));
        assert!(repeats(&|turn| turn.saturating_sub(100) as u64 % 30));
        assert!(!repeats(&|turn| turn as u64));
        assert!(!repeats(&|turn| (turn % 30) as u64
            + u64::from(turn % 1000 == 0) * 100
            + turn as u64 / 1000));
    }
}
