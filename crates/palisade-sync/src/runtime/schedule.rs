//! Schedules as text: which threads took the steps, and with which outcome where there was a choice.
//!
//! `0x3 1 2.1` means three steps of thread 0, one of thread 1, and one of thread 2 with its second outcome.
//! Threads are numbered in the order in which the first schedule of a session started them.

use palisade_dpor::Choice;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The choices of an execution, from its start.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Schedule(pub Vec<Choice>);

impl Display for Schedule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for group in self.0.chunk_by(|a, b| a == b) {
            let space = if std::mem::take(&mut first) { "" } else { " " };
            write!(f, "{space}{}", group[0].process)?;
            if group[0].outcome != 0 {
                write!(f, ".{}", group[0].outcome)?;
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
        let mut choices = Vec::new();
        for word in text.split_whitespace() {
            let wrong =
                || format!("`{word}` is not a step of a schedule; steps are written like 1, 1x4 or 1.2");
            let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
            let (step, times) = match word.split_once('x') {
                Some((step, times)) => (step, number(times)?),
                None => (word, 1),
            };
            let (process, outcome) = match step.split_once('.') {
                Some((process, outcome)) => (number(process)?, number(outcome)?),
                None => (number(step)?, 0),
            };
            if times > 10_000_000 {
                return Err(wrong());
            }
            choices.extend(std::iter::repeat_n(Choice { process, outcome }, times));
        }
        Ok(Schedule(choices))
    }
}

impl Schedule {
    /// How often a step is taken by another thread than the step before.
    pub fn switches(&self) -> usize {
        self.0.windows(2).filter(|pair| pair[0].process != pair[1].process).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        for text in ["", "0", "0x3 1 2.1", "4.2x7 0"] {
            let schedule: Schedule = text.parse().expect("a well-formed schedule");
            assert_eq!(schedule.to_string(), text);
        }
        for wrong in ["a", "1x", "1.", "x3", "1x99999999999"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }
}
