//! What processes exchange after each round of a search. All of them then know the same, and decide the same.

use crate::search::Spread;
use palisade_engine::Exhausted;
use palisade_search::Expand;
use std::time::Duration;

/// The kinds of messages, beside those of [`crate::agree`]. A process that sends another kind than expected does something
/// else.
pub(crate) const ROUND: u64 = 1;
pub(crate) const PATH: u64 = 3;

/// What one process has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// States that it keeps.
    pub states: u64,
    /// The memory that its states and tables take, in bytes.
    pub table_bytes: u64,
    /// The most memory that the process has had, as the host reports it.
    pub peak_memory_bytes: u64,
    /// Bytes that it sent to other processes.
    pub sent_bytes: u64,
    /// Bytes that it received from other processes.
    pub received_bytes: u64,
    /// How long it has waited for other processes, in microseconds.
    pub waited_micros: u64,
}

/// What a process says after a round.
pub(crate) struct Summary<E: Expand> {
    pub part: Part,
    /// Turns that it has to take again.
    pub again: u64,
    /// States that wait for the next level.
    pub waiting: u64,
    pub transitions: u64,
    pub weight: u64,
    /// See [`Spread::observed`].
    pub observed: u64,
    pub exhausted: Option<Exhausted>,
    pub halt: Option<E::Halt>,
    pub tally: E::Tally,
    /// The smallest state that is a goal.
    pub goal: Option<Vec<u64>>,
    pub needs: Vec<E::Need>,
}

impl<E: Spread> Summary<E> {
    pub fn encode(&self, words: usize) -> Vec<u64> {
        let part = &self.part;
        let mut out = vec![ROUND];
        out.extend([
            part.states,
            part.table_bytes,
            part.peak_memory_bytes,
            part.sent_bytes,
            part.received_bytes,
            part.waited_micros,
            self.again,
            self.waiting,
            self.transitions,
            self.weight,
            self.observed,
        ]);
        out.extend(encode_exhausted(self.exhausted));
        out.extend(self.halt.as_ref().map_or([0; 3], |halt| {
            let [kind, value] = E::put_halt(halt);
            [1, kind, value]
        }));
        out.extend(E::put_tally(&self.tally));
        out.push(self.goal.is_some().into());
        if let Some(goal) = &self.goal {
            debug_assert_eq!(goal.len(), words, "a goal is a state");
            out.extend_from_slice(goal);
        }
        self.needs.iter().for_each(|need| out.extend(E::put_need(need)));
        out
    }

    /// The summary in a message, or `None` if the message is something else.
    pub fn decode(message: &[u64], words: usize) -> Option<Summary<E>> {
        let mut rest = message.iter().copied();
        (rest.next()? == ROUND).then_some(())?;
        let mut next = || rest.next();
        let part = Part {
            states: next()?,
            table_bytes: next()?,
            peak_memory_bytes: next()?,
            sent_bytes: next()?,
            received_bytes: next()?,
            waited_micros: next()?,
        };
        let (again, waiting, transitions) = (next()?, next()?, next()?);
        let (weight, observed) = (next()?, next()?);
        let exhausted = decode_exhausted([next()?, next()?])?;
        let halt = match [next()?, next()?, next()?] {
            [0, ..] => None,
            [_, kind, value] => Some(E::get_halt([kind, value])?),
        };
        let tally: Vec<u64> = (0..E::TALLY_WORDS).map(|_| next()).collect::<Option<_>>()?;
        let tally = E::get_tally(&tally);
        let goal = match next()? {
            0 => None,
            _ => Some((0..words).map(|_| next()).collect::<Option<_>>()?),
        };
        let rest: Vec<u64> = rest.collect();
        let needs = rest.chunks_exact(E::NEED_WORDS).map(E::get_need).collect::<Option<_>>()?;
        Some(Summary {
            part,
            again,
            waiting,
            transitions,
            weight,
            observed,
            exhausted,
            halt,
            tally,
            goal,
            needs,
        })
    }
}

fn encode_exhausted(what: Option<Exhausted>) -> [u64; 2] {
    match what {
        None => [0, 0],
        Some(Exhausted::Time(time)) => [1, time.as_millis() as u64],
        Some(Exhausted::Memory(bytes)) => [2, bytes],
        Some(Exhausted::Work(work)) => [3, work],
        Some(Exhausted::Stopped) => [4, 0],
    }
}

fn decode_exhausted(words: [u64; 2]) -> Option<Option<Exhausted>> {
    Some(match words {
        [0, _] => None,
        [1, time] => Some(Exhausted::Time(Duration::from_millis(time))),
        [2, bytes] => Some(Exhausted::Memory(bytes)),
        [3, work] => Some(Exhausted::Work(work)),
        [4, _] => Some(Exhausted::Stopped),
        _ => return None,
    })
}
