//! One execution: what its log shows ([`Recorder`]), and what is wrong with the program ([`Failure`]).

mod failure;
mod monitored;
mod places;
mod recorder;

pub use failure::{Failure, Leaks};
pub use places::{PlacedViolation, Places};
pub use recorder::{Analyses, Recorder};
pub(crate) use recorder::{NOTE_BITS, NOTE_SHARED_STACK};

use crate::divergence::Stray;
use crate::misuse::Misuse;
use crate::process::Output;
use crate::races::Race;
use crate::schedule::{Command, Turns};
use crate::stream::End;
use crate::trace::Judgement;
use palisade_monitor::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// An execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Execution {
    /// Violations, in the order in which they were first seen.
    #[serde(with = "crate::elsewhere::violations")]
    pub violations: Vec<(PlacedViolation, Seen)>,
    /// Races, and how often each was seen.
    pub races: Vec<(Race, u64)>,
    /// With store buffers: under which models it is possible, unless it was too long to find out.
    pub judgement: Option<Judgement>,
    /// The turns of the threads; `None` if there were too many to keep.
    pub turns: Option<Turns>,
    /// Threads in the order in which they were started.
    pub started: Vec<u16>,
    /// What could not be followed, and where.
    pub unfollowed: BTreeSet<(Unfollowed, u64)>,
    /// Threads that were left at the end.
    pub left: Vec<LeftThread>,
    /// What the runtime reports about an error in the use of memory.
    pub misuse: Misuse,
    /// The first point at which the given turns could not be taken.
    pub diverged: Option<Stray>,
    /// The number of memory accesses.
    pub accesses: u64,
    /// The number of events, not counting blocks that are freed.
    pub events: u64,
    /// The thread that ended the process, if it ended by `exit` or at the end of `main`.
    pub exit: Option<u16>,
    /// Where each thread was last.
    pub last: Vec<u64>,
    /// Call sites that occur in it, and the return addresses that each stands for, that of the access first.
    pub sites: Vec<(u64, Vec<u64>)>,
    /// How it ended.
    pub end: End,
    /// Messages from the runtime.
    pub messages: Vec<String>,
    /// What the program printed.
    pub output: Output,
}

/// Something that cannot be followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Unfollowed {
    /// A new process (`fork`, `system`, `popen`, `posix_spawn`). Its actions are not seen.
    Fork,
    /// A signal handler was installed. Its actions are not seen.
    Handler,
    /// Inline assembly that touches memory.
    Assembly,
    /// An access that the compiler did not announce. Either it is not known exactly what it touches, or it is
    /// on a stack that other threads touch.
    Access,
    /// In a search, a wait with a timeout. It ends only when no other thread can continue.
    Time,
    /// Code that was compiled in some other way, or a library of such code that is loaded while the program
    /// runs.
    NotCompiled,
    /// A function of the C or C++ library, by its number in the log. What it does to memory is not seen.
    Call(u32),
    /// Memory became executable. Code that is made at run time is not seen.
    Code,
    /// Memory is mapped such that it can change without an access: it is shared with a file or another
    /// process, mapped at two addresses, or replaced while there are other threads.
    Mapping,
    /// The memory of a process was opened as a file (`/proc/self/mem`), for writing.
    MemoryFile,
    /// An access after the process has begun to end: in a destructor of a library.
    AfterExit,
    /// In a search, a value that is not determined and has too many possibilities. Only some were tried.
    Value,
}

/// A thread whose state at the end of an execution is worth reporting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LeftThread {
    /// The thread.
    pub thread: u16,
    /// Its state.
    pub how: LeftState,
    /// Where it is.
    pub place: u64,
}

/// The state of a thread at the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LeftState {
    /// It waits, and no thread can continue.
    Waits,
    /// It was still running when the process ended.
    Running,
    /// The same, but it was detached.
    Detached,
    /// It had ended, and was never joined.
    NotJoined,
    /// It is in a loop that changes nothing and never ends.
    Spins,
}

impl Execution {
    /// The turns with threads numbered in the order in which they were started. Another session will number
    /// them the same way.
    pub fn portable_turns(&self) -> Option<Turns> {
        let mut turns = self.turns.clone()?;
        for turn in &mut turns.turns {
            let thread = &mut turn.actor.thread;
            if *thread != 0 {
                let index = self.started.iter().position(|started| started == thread)?;
                *thread = index as u16 + 1;
            }
        }
        Some(turns)
    }

    /// The turns by which another session can repeat an execution of this command. In a search, threads keep the
    /// numbers that the search has given them.
    pub fn turns_for(&self, command: &Command) -> Option<Turns> {
        if command.explores { self.turns.clone() } else { self.portable_turns() }
    }
}
