//! What went wrong with the program itself in an execution.

use super::{Execution, LeftState, LeftThread};
use crate::misuse::Misuse;
use crate::stream::Reason;

/// Whether threads may outlive the program's end, or need not be joined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Leaks {
    /// It is a failure, unless the thread was detached.
    #[default]
    Reported,
    /// It is not.
    Allowed,
}

/// What can be wrong with a program by itself, on any machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Failure {
    /// It was ended by a signal: it crashed, or it aborted because an assertion failed.
    Signal {
        /// The signal.
        signal: u32,
        /// Where it happened.
        place: u64,
        /// The assertion that failed.
        what: Option<String>,
    },
    /// Its exit code reports an error.
    ExitCode {
        /// The exit code.
        code: u32,
    },
    /// Threads wait for each other.
    Deadlock {
        /// The waiting threads.
        threads: Vec<LeftThread>,
    },
    /// The same, and some of them wait in loops that change nothing.
    Spins {
        /// The waiting threads.
        threads: Vec<LeftThread>,
    },
    /// Threads repeat the same steps forever, and change memory on the way.
    Livelock {
        /// The threads that have not ended.
        threads: Vec<LeftThread>,
    },
    /// It used memory that was freed, or that is not part of a block or frame.
    Misuse(Misuse),
    /// It took more steps than were allowed.
    Endless,
    /// It produced no events for a while.
    Stalled {
        /// The system call in which it waits; `None` if it is running.
        call: Option<u32>,
        /// Where it produced the last event.
        place: u64,
    },
    /// It took more time than was allowed.
    Late,
    /// It ended while threads were running, or without having joined them.
    Leaked {
        /// The threads.
        threads: Vec<LeftThread>,
    },
    /// A thread other than the first ended the process.
    EarlyExit {
        /// The thread.
        thread: u16,
    },
    /// It did something that cannot be followed.
    Unsupported {
        /// What it did.
        what: String,
    },
    /// It ended in a way that could not be observed.
    Vanished,
    /// The runtime failed.
    Internal {
        /// What failed.
        what: String,
    },
}

impl Failure {
    /// A short name, for machine-readable output.
    pub fn name(&self) -> &'static str {
        match self {
            Failure::Signal { what: Some(_), .. } => "assertion",
            Failure::Signal { .. } => "crash",
            Failure::ExitCode { .. } => "exit-code",
            Failure::Deadlock { .. } | Failure::Spins { .. } => "deadlock",
            Failure::Livelock { .. } => "livelock",
            Failure::Misuse(misuse) => misuse.name(),
            Failure::Endless => "step-limit",
            Failure::Stalled { call: Some(_), .. } => "blocked",
            Failure::Stalled { .. } => "stalled",
            Failure::Late => "time-limit",
            Failure::Leaked { .. } => "leaked-threads",
            Failure::EarlyExit { .. } => "early-exit",
            Failure::Unsupported { .. } => "unsupported",
            Failure::Vanished => "vanished",
            Failure::Internal { .. } => "internal",
        }
    }

    /// Whether the program would have gone on, had this not ended the execution. The other failures are ends: no
    /// thread can move any more, or the program has ended itself.
    pub fn cuts_short(&self) -> bool {
        match self {
            Failure::Signal { .. } | Failure::Misuse(_) => true,
            Failure::ExitCode { .. }
            | Failure::Deadlock { .. }
            | Failure::Spins { .. }
            | Failure::Livelock { .. }
            | Failure::Leaked { .. }
            | Failure::EarlyExit { .. } => false,
            // Nothing is known about what comes next.
            Failure::Endless
            | Failure::Stalled { .. }
            | Failure::Late
            | Failure::Unsupported { .. }
            | Failure::Vanished
            | Failure::Internal { .. } => true,
        }
    }

    /// Whether this says nothing about the program being wrong, only that the execution could not be followed
    /// to its end.
    pub fn is_inconclusive(&self) -> bool {
        use Failure::{Endless, Internal, Late, Stalled, Unsupported, Vanished};
        matches!(self, Endless | Late | Stalled { .. } | Unsupported { .. } | Vanished | Internal { .. })
    }

    /// The same when something could not be followed: an unobserved process, handler or assembly may wake
    /// waiting threads.
    pub fn is_inconclusive_with(&self, is_followed: bool) -> bool {
        let waits =
            matches!(self, Failure::Deadlock { .. } | Failure::Spins { .. } | Failure::Livelock { .. });
        self.is_inconclusive() || waits && !is_followed
    }
}

impl Execution {
    /// What went wrong with the program itself, if something did.
    pub fn failure(&self, leaks: Leaks) -> Option<Failure> {
        let place = |thread: u16| self.last.get(usize::from(thread)).copied().unwrap_or(0);
        let signal = self.end.status & 0x7f;
        let code = (self.end.status >> 8) & 0xff;
        // The last message is about the end.
        let message = || self.messages.last().cloned().unwrap_or_default();
        let crash_place = || self.end.crash.map_or(0, |(place, _, _)| place + 1);
        match self.end.reason {
            Reason::Deadlock => return Some(Failure::Deadlock { threads: self.left.clone() }),
            Reason::Steps => return Some(Failure::Endless),
            Reason::Stalled => {
                let text = message();
                let call = text.split_whitespace().next().and_then(|word| word.parse().ok());
                let thread = self
                    .turns
                    .as_ref()
                    .and_then(|turns| turns.turns.last())
                    .map_or(0, |turn| turn.actor.thread);
                return Some(Failure::Stalled { call, place: place(thread) });
            }
            Reason::Time => return Some(Failure::Late),
            Reason::Unsupported => return Some(Failure::Unsupported { what: message() }),
            Reason::Internal => return Some(Failure::Internal { what: message() }),
            Reason::Turns | Reason::Stopped | Reason::Assumed => return None,
            Reason::Spun => {
                let spins = |left: &LeftThread| left.how == LeftState::Spins;
                let threads = self.left.iter().any(spins).then(|| self.left.clone());
                return threads.map(|threads| Failure::Spins { threads });
            }
            Reason::Misuse => return Some(Failure::Misuse(self.misuse.clone())),
            Reason::Livelock => return Some(Failure::Livelock { threads: self.left.clone() }),
            Reason::None => {}
        }
        if signal != 0 {
            let what = self.messages.iter().find(|text| text.contains("assertion")).cloned();
            return Some(Failure::Signal { signal, place: crash_place(), what });
        }
        if code != 0 {
            return Some(Failure::ExitCode { code });
        }
        let main_runs = self.left.iter().any(|left| left.thread == 0 && left.how == LeftState::Running);
        if let Some(thread) = self.exit.filter(|&thread| thread != 0 && main_runs) {
            return Some(Failure::EarlyExit { thread });
        }
        let leaked: Vec<LeftThread> = self
            .left
            .iter()
            .copied()
            .filter(|left| matches!(left.how, LeftState::Running | LeftState::NotJoined))
            .collect();
        if !leaked.is_empty() && leaks == Leaks::Reported {
            return Some(Failure::Leaked { threads: leaked });
        }
        (!self.end.exited).then_some(Failure::Vanished)
    }
}
