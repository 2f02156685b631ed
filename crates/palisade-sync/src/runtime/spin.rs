//! Loops that wait: a thread that goes round and round, looks at memory, and finds the same every time.
//!
//! *Problem.* A schedule that lets such a thread go on while nobody else moves never ends, and to an exhaustive search every further round is a new execution.
//!
//! *How.* A thread's *looks* since it last changed anything are remembered: by which instruction, where, and what was there. If the last round of looks is the same as the rounds before, the thread is
//! taken to wait for a change of what it looked at. A round that contains a [spin hint](crate::hint::spin_loop) counts after two rounds, others after three.
//!
//! *What is assumed.* That the thread has no counter of its own that would lead it out of the loop. This cannot be seen from outside. Loops that were taken as waits are told with the result. If in some
//! execution nobody else can go on, the thread is made to go on; should it leave its loop, the loop is not taken as a wait again.
//!
//! *Why searches lose nothing.* In a search the thread ends behind the round. An execution in which it goes on has the same states without the round, and the search has that one too: what the round read races with what
//! others write. Nor do the monitors lose anything. Suppose that an execution shows a violation in which the round counts: store *e* happens before the round, the round before another thread's store to what it
//! looked at, and that before `prev`. If what the thread does behind its loop also happens before `prev`, so does *e* without the round. If not, it can be left out, and what remains is a beginning of the execution that ends
//! with the round.

use palisade_monitor::Instruction;
use std::collections::VecDeque;

/// The longest round, in looks.
const LONGEST: usize = 48;
/// Rounds that have to be the same, with and without a hint.
const ROUNDS_HINTED: usize = 2;
const ROUNDS: usize = 3;

/// A thread looks at something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Look {
    pub instruction: Instruction,
    /// Where and what; nothing for a hint.
    pub seen: Option<(u64, u64)>,
}

/// The looks of a thread since it last changed anything.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    looks: VecDeque<Look>,
}

impl Looks {
    /// The thread has changed something, or has done something else than look.
    pub fn forget(&mut self) {
        self.looks.clear();
    }

    /// The thread looks. If that ends a round as before, the round.
    pub fn look(&mut self, look: Look) -> Option<Vec<Look>> {
        if self.looks.len() == LONGEST * ROUNDS {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
        (1..=LONGEST.min(self.looks.len() / ROUNDS_HINTED)).find_map(|length| self.round(length))
    }

    /// The last round of a length, if it is the same as those before.
    fn round(&self, length: usize) -> Option<Vec<Look>> {
        let looks = &self.looks;
        let end = looks.len();
        let same = |back: usize| looks[end - 1 - back] == looks[end - 1 - back - length];
        if !(0..length).all(same) {
            return None;
        }
        let last = || looks.range(end - length..);
        let hinted = last().any(|look| look.seen.is_none());
        let looked = last().any(|look| look.seen.is_some());
        let rounds = if hinted { ROUNDS_HINTED } else { ROUNDS };
        let enough = end >= length * rounds && (0..length * (rounds - 1)).all(same);
        (enough && looked).then(|| last().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds looks as letters: `a` to `y` are instructions that see 0, in upper case 1; `.` is a hint. The answer is the first round found and after how many looks.
    fn check(looks: &str, expected: Option<(usize, usize)>) {
        let mut seen = Looks::default();
        let mut found = None;
        for (at, letter) in looks.chars().enumerate() {
            let instruction = Instruction(letter.to_ascii_lowercase() as u32);
            let place = (letter != '.')
                .then_some((letter.to_ascii_lowercase() as u64, u64::from(letter.is_uppercase())));
            if let Some(round) = seen.look(Look { instruction, seen: place }) {
                found = Some((at + 1, round.len()));
                break;
            }
        }
        assert_eq!(found, expected, "{looks}");
    }

    #[test]
    fn rounds() {
        check("a", None);
        check("aa", None);
        check("aaa", Some((3, 1)));
        check("aAa", None);
        check("xyaaa", Some((5, 1)));
        check("ababab", Some((6, 2)));
        check("ababAb", None);
        check("a.a.", Some((4, 2)));
        check("a.A.", None);
        check("....", None);
        check("ab.ab.", Some((6, 3)));
    }
}
