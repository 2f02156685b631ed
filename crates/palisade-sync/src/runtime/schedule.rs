//! Schedules as text: which threads took the steps, and with which outcome where there was a choice; and when
//! stores reached memory.
//!
//! `0x3 1 2.1 w1` means three steps of thread 0, one of thread 1, and one of thread 2 with its second outcome.
//! Then the oldest pending store of thread 1 reaches memory. Under PSO a thread has a buffer for every address
//! that it has stored to: `w1.2` is its third one. Threads are numbered in the order in which the first
//! schedule of a session started them.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// One step of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Turn {
    /// A thread takes its next step.
    Step {
        /// The thread.
        thread: usize,
        /// The index of the outcome; 0 for steps with one outcome.
        outcome: usize,
    },
    /// The oldest store in a buffer reaches memory.
    Write {
        /// The thread that stored.
        thread: usize,
        /// The index of the buffer among those of the thread.
        buffer: usize,
    },
}

impl Turn {
    /// The thread.
    pub fn thread(self) -> usize {
        match self {
            Turn::Step { thread, .. } | Turn::Write { thread, .. } => thread,
        }
    }

    /// The same for another thread.
    pub fn of(self, thread: usize) -> Turn {
        match self {
            Turn::Step { outcome, .. } => Turn::Step { thread, outcome },
            Turn::Write { buffer, .. } => Turn::Write { thread, buffer },
        }
    }
}

/// The choices of an execution, from its start.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Schedule(pub Vec<Turn>);

impl Display for Schedule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for group in self.0.chunk_by(|a, b| a == b) {
            let space = if std::mem::take(&mut first) { "" } else { " " };
            let (prefix, thread, index) = match group[0] {
                Turn::Step { thread, outcome } => ("", thread, outcome),
                Turn::Write { thread, buffer } => ("w", thread, buffer),
            };
            write!(f, "{space}{prefix}{thread}")?;
            if index != 0 {
                write!(f, ".{index}")?;
            }
            if group.len() > 1 {
                write!(f, "x{}", group.len())?;
            }
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Schedule, String> {
        let mut turns = Vec::new();
        for word in text.split_whitespace() {
            let wrong =
                || format!("`{word}` is not a step of a schedule; steps are written like 1, 1x4, 1.2 or w1");
            let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
            let (step, times) = match word.split_once('x') {
                Some((step, times)) => (step, number(times)?),
                None => (word, 1),
            };
            let (thread, is_write) = match step.strip_prefix('w') {
                Some(step) => (step, true),
                None => (step, false),
            };
            let (thread, index) = match thread.split_once('.') {
                Some((thread, index)) => (number(thread)?, number(index)?),
                None => (number(thread)?, 0),
            };
            if times > 10_000_000 {
                return Err(wrong());
            }
            let turn = match is_write {
                false => Turn::Step { thread, outcome: index },
                true => Turn::Write { thread, buffer: index },
            };
            turns.extend(std::iter::repeat_n(turn, times));
        }
        Ok(Schedule(turns))
    }
}

impl Schedule {
    /// How many times a step is taken by a different thread than the step before. A store that reaches memory is a step
    /// of its thread.
    pub fn switches(&self) -> usize {
        self.0.windows(2).filter(|pair| pair[0].thread() != pair[1].thread()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        for text in ["", "0", "0x3 1 2.1", "4.2x7 0", "1x2 w1 0 w1x2 w0.3"] {
            let schedule: Schedule = text.parse().expect("a well-formed schedule");
            assert_eq!(schedule.to_string(), text);
        }
        for wrong in ["a", "1x", "1.", "x3", "1x99999999999"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }
}
