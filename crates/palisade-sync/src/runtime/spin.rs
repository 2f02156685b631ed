//! Waiting loops: a thread that loops, reads memory, and finds the same every time.
//!
//! *Problem.* A schedule that keeps running such a thread while no other thread moves never ends. For an
//! exhaustive search, every further iteration is a new execution.
//!
//! *How.* A thread's *looks* since its last change are recorded: the instruction, the address, and the value
//! seen. If the last round of looks is the same as the rounds before, the thread is treated as waiting for a
//! change of what it looked at. A round that contains a [spin hint](crate::hint::spin_loop) counts after two
//! equal rounds, others after three.
//!
//! *Assumption.* The thread has no local counter that would lead it out of the loop. This cannot be seen from
//! outside. The result lists the loops that were treated as waits. If no other thread can continue in some
//! execution, the waiting thread has to continue. If it then leaves its loop, the loop is no longer treated
//! as a wait.
//!
//! *Why searches lose nothing.* In a search the thread ends after the round. An execution in which it
//! continues has the same states without the round, and the search covers that one too: the reads of the
//! round race with the writes of others. The monitors do not lose anything either. Suppose that an execution
//! shows a violation in which the round counts: a store *e* happens before the round, the round before
//! another thread's store to what it looked at, and that store before `prev`. If what the thread does after
//! its loop also happens before `prev`, so does *e* without the round. If not, it can be left out, and the
//! rest is a prefix of the execution that ends with the round.

use palisade_monitor::Instruction;
use std::collections::VecDeque;

/// The longest round, in looks.
const LONGEST: usize = 48;
/// The number of equal rounds required, with and without a hint.
const ROUNDS_HINTED: usize = 2;
const ROUNDS: usize = 3;

/// A look of a thread at memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Look {
    pub instruction: Instruction,
    /// The address and the value; `None` for a hint.
    pub seen: Option<(u64, u64)>,
}

/// The looks of a thread since its last change.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    looks: VecDeque<Look>,
}

impl Looks {
    /// The thread has changed something, or has done anything other than look.
    pub fn forget(&mut self) {
        self.looks.clear();
    }

    /// Adds a look. If it completes a round that is the same as before, returns the round.
    pub fn look(&mut self, look: Look) -> Option<Vec<Look>> {
        if self.looks.len() == LONGEST * ROUNDS {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
        (1..=LONGEST.min(self.looks.len() / ROUNDS_HINTED)).find_map(|length| self.round(length))
    }

    /// The last round of a given length, if it is the same as those before.
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

    /// Feeds looks as letters: `a` to `y` are instructions that see 0, in upper case 1; `.` is a hint. The
    /// result is the first round found and the number of looks before it.
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
