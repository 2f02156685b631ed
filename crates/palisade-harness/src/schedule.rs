//! Schedules: how the threads of an execution take turns, and how the runtime receives a schedule. The files in which
//! schedules are kept are in [`schedule_file`](crate::schedule_file).
//!
//! A schedule is the sequence of actors that were chosen, one per step. An actor is a thread, or the store
//! buffer of a thread. A schedule is kept as turns: an actor and how many steps in a row it takes.

pub use crate::schedule_file::{Schedule, ScheduleError};
use palisade_memory::Model;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How threads are chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Strategy {
    /// Uniformly at random among the threads that can continue.
    Random,
    /// Probabilistic concurrency testing: each thread has a random priority. Priorities change at `depth - 1`
    /// steps, where `depth` is the depth of the bugs that it looks for.
    Pct {
        /// The depth.
        depth: u32,
    },
    /// The running thread continues as long as it can.
    Stay,
    /// All threads take turns.
    Round,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Random => f.write_str("random"),
            Strategy::Pct { depth } => write!(f, "pct {depth}"),
            Strategy::Stay => f.write_str("stay"),
            Strategy::Round => f.write_str("round"),
        }
    }
}

/// What takes a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Actor {
    /// The thread.
    pub thread: u16,
    /// Which of its pending stores reaches memory, by its position in the buffer; `None` if the thread itself
    /// takes the step.
    pub pending: Option<u16>,
    /// If the step of the thread is to get a nondeterministic value: which of the possible values it is.
    pub value: Option<u16>,
}

impl Actor {
    /// A thread.
    pub fn thread(thread: u16) -> Actor {
        Actor { thread, pending: None, value: None }
    }

    /// A store in the buffer of a thread.
    pub fn buffer(thread: u16, position: u16) -> Actor {
        Actor { pending: Some(position), ..Actor::thread(thread) }
    }

    /// The number by which the runtime knows it.
    fn encode(self) -> u32 {
        let above = match (self.pending, self.value) {
            (Some(position), _) => u32::from(position) + 1,
            (None, Some(value)) => VALUES + u32::from(value),
            (None, None) => 0,
        };
        u32::from(self.thread) | above << ACTOR_BITS
    }
}

/// The bits of a thread's number.
pub(crate) const ACTOR_BITS: u32 = 12;

/// What is above the number of a thread if it gets a value, plus that value. `runtime/schedule.c` has the same number.
const VALUES: u32 = 1 << 17;

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pending {
            None => match self.value {
                None => write!(f, "{}", self.thread),
                Some(value) => write!(f, "{}={value}", self.thread),
            },
            Some(0) => write!(f, "b{}", self.thread),
            Some(position) => write!(f, "b{}.{position}", self.thread),
        }
    }
}

/// Some steps of one actor in a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The actor.
    pub actor: Actor,
    /// How many steps.
    pub steps: u32,
}

/// The turns of an execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Turns {
    /// In order; neighbouring turns belong to different actors.
    pub turns: Vec<Turn>,
}

impl Turns {
    /// No turns yet, and room for some.
    pub(crate) fn with_capacity(turns: usize) -> Turns {
        Turns { turns: Vec::with_capacity(turns) }
    }

    /// Adds one step.
    #[inline]
    pub fn push(&mut self, actor: Actor) {
        match self.turns.last_mut() {
            Some(turn) if turn.actor == actor && turn.steps < u32::MAX => turn.steps += 1,
            _ => self.turns.push(Turn { actor, steps: 1 }),
        }
    }

    /// How many steps there are.
    pub fn steps(&self) -> u64 {
        self.turns.iter().map(|turn| u64::from(turn.steps)).sum()
    }

    /// How many times the next turn belongs to a different actor.
    pub fn switches(&self) -> usize {
        self.turns.len().saturating_sub(1)
    }

    /// The first `steps` steps.
    pub fn prefix(&self, steps: u64) -> Turns {
        let mut left = steps;
        let mut prefix = Turns::default();
        for turn in &self.turns {
            let taken = left.min(u64::from(turn.steps)) as u32;
            if taken > 0 {
                prefix.turns.push(Turn { steps: taken, ..*turn });
            }
            left -= u64::from(taken);
        }
        prefix
    }

    /// The same turns without one of them.
    pub fn without(&self, index: usize) -> Turns {
        let rest = self.turns.iter().enumerate().filter(|(at, _)| *at != index);
        Turns::joined(rest.map(|(_, turn)| *turn))
    }

    /// The same turns with one exchanged with its successor.
    pub fn exchanged(&self, index: usize) -> Turns {
        let mut turns = self.turns.clone();
        if index + 1 < turns.len() {
            turns.swap(index, index + 1);
        }
        Turns::joined(turns)
    }

    /// Merges neighbouring turns of the same actor.
    fn joined(turns: impl IntoIterator<Item = Turn>) -> Turns {
        let mut joined = Turns::default();
        for turn in turns {
            match joined.turns.last_mut() {
                Some(last) if last.actor == turn.actor => last.steps += turn.steps,
                _ => joined.turns.push(turn),
            }
        }
        joined
    }
}

/// What to do in one execution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Command {
    /// How threads are chosen after the given turns.
    pub strategy: Strategy,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The expected length of executions, for [`Strategy::Pct`].
    pub length: u64,
    /// How the execution begins.
    pub turns: Turns,
    /// In a search: actors that must not take steps after the turns until another one takes a step that
    /// conflicts with theirs.
    pub asleep: Vec<Actor>,
    /// The maximum number of steps; 0 for no limit.
    pub steps: u64,
    /// Milliseconds without any event after which the execution is ended; 0 for no limit.
    pub stall: u64,
    /// Milliseconds for the whole execution; 0 for no limit.
    pub time: u64,
    /// Whether to report what every thread will do next, to end threads whose loops change nothing, and to
    /// end the execution where the turns cannot be followed.
    pub explores: bool,
    /// The turns are those of an execution of a search, which is repeated. Where they cannot be followed, that is
    /// reported and they are left out. Pending stores are named by their positions.
    pub repeats: bool,
    /// The memory model whose store buffers threads have.
    #[serde(with = "crate::elsewhere::model")]
    pub model: Model,
    /// In a search under PSO: the addresses of stores. Actors name pending stores by positions in this list.
    pub addresses: Vec<u64>,
    /// In a search: what other executions have shown.
    pub known: Known,
}

/// What the executions of a search have shown so far, and later ones have to know.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// The numbers of threads: for each, its parent and its index among the parent's children.
    pub threads: Vec<(u32, u32)>,
    /// Words of stacks that several threads access: the address, and which bytes, one bit each.
    pub shared: Vec<(u64, u8)>,
    /// Addresses at which memory is compared with a number before it is written. For writes there, executions show
    /// what was replaced.
    pub compared: Vec<u64>,
}

const MAGIC: u64 = 0x3144_4e41_4d4d_4f43;

impl Command {
    /// The encoding that the runtime reads.
    pub fn encode(&self) -> Vec<u8> {
        let (strategy, depth) = match self.strategy {
            Strategy::Random => (0, 0),
            Strategy::Pct { depth } => (1, depth),
            Strategy::Stay => (2, 0),
            Strategy::Round => (3, 0),
        };
        let flags = u64::from(self.explores) | u64::from(self.repeats) << 1;
        let fields = [
            MAGIC,
            strategy,
            self.seed,
            u64::from(depth),
            self.length,
            self.steps,
            self.stall,
            self.time,
            flags,
            match self.model {
                Model::Sc => 0,
                Model::Tso => 1,
                Model::Pso => 2,
            },
            (self.turns.turns.len() + self.asleep.len()) as u64,
            self.addresses.len() as u64,
            self.known.threads.len() as u64,
            self.known.shared.len() as u64,
            self.known.compared.len() as u64,
        ];
        let turns = self.turns.turns.len() + self.asleep.len();
        let numbers = self.addresses.len() + self.known.threads.len() + self.known.shared.len();
        let mut bytes: Vec<u8> = Vec::with_capacity(8 * (fields.len() + turns + numbers));
        bytes.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        let asleep = self.asleep.iter().map(|&actor| Turn { actor, steps: 0 });
        for turn in self.turns.turns.iter().copied().chain(asleep) {
            bytes.extend_from_slice(&turn.actor.encode().to_le_bytes());
            bytes.extend_from_slice(&turn.steps.to_le_bytes());
        }
        let threads =
            self.known.threads.iter().map(|&(parent, index)| u64::from(parent) << 32 | u64::from(index));
        let shared = self.known.shared.iter().map(|&(word, touched)| (word / 8) << 8 | u64::from(touched));
        let compared = self.known.compared.iter().copied();
        let numbers = self.addresses.iter().copied().chain(threads).chain(shared).chain(compared);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule_file::turn;

    fn turns(text: &str) -> Turns {
        Turns { turns: text.split_whitespace().map(|word| turn(word).expect("a turn")).collect() }
    }

    #[test]
    fn parts_of_turns() {
        let all = turns("0*2 1*3 0*1");
        assert_eq!((all.steps(), all.switches()), (6, 2));
        assert_eq!(all.prefix(3), turns("0*2 1*1"));
        assert_eq!(all.prefix(9), all);
        assert_eq!(all.without(1), turns("0*3"));
        assert_eq!(all.exchanged(0), turns("1*3 0*3"));
        assert_eq!(all.exchanged(2), all);
        let mut pushed = Turns::default();
        for thread in [0, 0, 1, 1, 1, 0] {
            pushed.push(Actor::thread(thread));
        }
        assert_eq!(pushed, all);
    }
}
