//! Why an answer is unknown, and what is known in spite of that.

use crate::Exhausted;
use std::fmt;

/// Why an answer is unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The budget ran out.
    Exhausted(Exhausted),
    /// The budget ran out after something had been established.
    Partly(Exhausted, Box<Reason>),
    /// This kept it from being known for any number of threads, but it is known for a few.
    AnyNumber {
        /// What kept it from being known.
        why: Box<Reason>,
        /// What is known.
        known: Box<Reason>,
    },
    /// No bad state with buffers up to this length, but longer buffers are possible.
    BufferBound(usize),
    /// No bad state with up to this many instances of the templates whose number of instances is not fixed.
    InstanceBound(u32),
    /// No bad state in runs in which no thread has more unfinished calls than this.
    CallDepth(usize),
    /// No bad state in runs in which every process has at most this many rounds.
    Rounds(u32),
    /// No bad state in runs in which no store stays in its buffer for more than this many further rounds of
    /// its process.
    StoreAge(u32),
    /// No bad state in runs that start at most this many processes.
    Spawned(usize),
    /// No bad state in runs that start at most `processes` processes and in which no process has more than
    /// `rounds` rounds. In recursive programs no further processes are explored.
    Started {
        /// How many processes are started.
        processes: usize,
        /// The bound on rounds, if there is one.
        rounds: Option<u32>,
    },
    /// No bad state in runs that satisfy all of these bounds at once. Made by [`Reason::within`].
    Within(Vec<Reason>),
    /// No bad state in the program with its loops unrolled this many times.
    Unrolled(usize),
    /// Robust with up to this many instances of the templates whose number of instances is not fixed.
    RobustUpTo(u32),
    /// Nothing of this kind, such as a deadlock, in runs that satisfy the bound.
    Without {
        /// What was not found.
        what: &'static str,
        /// The bound.
        bound: Box<Reason>,
    },
    /// The values of this variable seem to grow without bound.
    Growing {
        /// The variable or register.
        name: String,
        /// How many different values the engine counted. Some of them may be impossible for reasons that the
        /// engine does not consider.
        values: usize,
    },
    /// The program is robust: the question is asked under SC instead.
    Robust,
    /// The engine does not handle such programs.
    Unsupported(String),
    /// Something that the engine observed, in words. It does not answer the question.
    Observed(String),
    /// A reason that is about something other than the given program.
    About {
        /// What it is about, such as "the translated program".
        subject: String,
        /// The reason.
        reason: Box<Reason>,
    },
    /// A bad state is reachable, but no run to it can be shown.
    Unshown(String),
    /// The engine contradicted itself. This is never an answer: it is reported as an error.
    Bug(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Exhausted(what) => what.fmt(f),
            Reason::Partly(what, reached) => write!(f, "{what}; {reached}"),
            Reason::AnyNumber { why, known } => write!(f, "{why}; {known}"),
            Reason::BufferBound(_) | Reason::InstanceBound(_) | Reason::CallDepth(_) => {
                write!(f, "no bad state with {}", self.phrase())
            }
            Reason::Rounds(bound) => {
                write!(f, "safe up to {bound} round{}", if *bound == 1 { "" } else { "s" })
            }
            Reason::StoreAge(bound) => write!(f, "safe up to store age {bound}"),
            Reason::Spawned(bound) => {
                let plural = if *bound == 1 { "" } else { "es" };
                write!(f, "no bad state in runs that start up to {bound} process{plural}")
            }
            Reason::Within(bounds) => {
                write!(f, "no bad state with ")?;
                for (index, bound) in bounds.iter().enumerate() {
                    let before = match index {
                        0 => "",
                        _ if index + 1 == bounds.len() => " and ",
                        _ => ", ",
                    };
                    write!(f, "{before}{}", bound.phrase())?;
                }
                Ok(())
            }
            Reason::Started { processes, rounds } => {
                write!(f, "no bad state in runs that start up to {processes} processes")?;
                match rounds {
                    None => {}
                    Some(1) => write!(f, ", with up to 1 round each")?,
                    Some(rounds) => write!(f, ", with up to {rounds} rounds each")?,
                }
                write!(
                    f,
                    "; in recursive programs no further started processes are explored: start fewer, or write the recursion as a loop"
                )
            }
            Reason::Unrolled(1) => f.write_str("no bad state with loops unrolled once"),
            Reason::Unrolled(times) => write!(f, "no bad state with loops unrolled {times} times"),
            Reason::RobustUpTo(bound) => write!(f, "robust with {}", Reason::InstanceBound(*bound).phrase()),
            Reason::Without { what, bound } => {
                write!(f, "no {what} with {}", bound.covered().unwrap_or_else(|| bound.to_string()))
            }
            Reason::Growing { name, values } => {
                write!(
                    f,
                    "`{name}` may take more and more values ({values} counted so far); declare its domain, or bound all integers with --int-range LO..HI"
                )
            }
            Reason::Robust => {
                f.write_str("robust; the question is asked under sequential consistency instead")
            }
            Reason::About { subject, reason } => write!(f, "{subject}: {reason}"),
            Reason::Unsupported(why) | Reason::Observed(why) | Reason::Unshown(why) | Reason::Bug(why) => {
                f.write_str(why)
            }
        }
    }
}

impl Reason {
    /// The budget ran out. `reached` is what had been established by then.
    pub fn exhausted(what: Exhausted, reached: Option<Reason>) -> Reason {
        match reached {
            Some(reached) => Reason::Partly(what, Box::new(reached)),
            None => Reason::Exhausted(what),
        }
    }

    /// The same reason, and what is known with up to this many threads of each kind of which there may be any number.
    /// It replaces what was known about fewer threads, or about some of their runs only.
    pub fn and_known(self, known: Reason) -> Reason {
        match self {
            Reason::Exhausted(what) | Reason::Partly(what, _) => Reason::Partly(what, Box::new(known)),
            Reason::AnyNumber { why, .. } => why.and_known(known),
            bound if bound.is_bound() || matches!(bound, Reason::RobustUpTo(_)) => known,
            why => Reason::AnyNumber { why: Box::new(why), known: Box::new(known) },
        }
    }

    /// Whether the values of some variable or register seemed to grow without bound.
    pub fn is_growth(&self) -> bool {
        match self {
            Reason::Growing { .. } => true,
            Reason::Partly(_, reached) => reached.is_growth(),
            Reason::AnyNumber { why, known } => why.is_growth() || known.is_growth(),
            Reason::About { reason, .. } => reason.is_growth(),
            _ => false,
        }
    }

    /// Up to how many threads of each kind the program is known to be right in all runs, where any number is allowed.
    pub fn known_threads(&self) -> Option<u32> {
        match self {
            Reason::InstanceBound(threads) | Reason::RobustUpTo(threads) => Some(*threads),
            Reason::Partly(_, known) | Reason::AnyNumber { known, .. } => known.known_threads(),
            _ => None,
        }
    }

    /// No bad state in runs that satisfy all of these bounds at once. Returns `None` if there are no bounds.
    /// Of two bounds of the same kind, only the smaller one matters.
    pub fn within(bounds: impl IntoIterator<Item = Reason>) -> Option<Reason> {
        let mut all: Vec<Reason> = Vec::new();
        for bound in bounds.into_iter().flat_map(Reason::into_bounds) {
            debug_assert!(bound.is_bound(), "only bounds are joined: {bound:?}");
            match all.iter_mut().find_map(|other| Some((bound.tighter(other)?, other))) {
                Some((tighter, other)) => *other = tighter,
                None => all.push(bound),
            }
        }
        if all.len() < 2 { all.pop() } else { Some(Reason::Within(all)) }
    }

    fn into_bounds(self) -> Vec<Reason> {
        match self {
            Reason::Within(bounds) => bounds,
            bound => vec![bound],
        }
    }

    /// The smaller of two bounds, if they are of the same kind.
    fn tighter(&self, other: &Reason) -> Option<Reason> {
        Some(match (self, other) {
            (Reason::BufferBound(a), Reason::BufferBound(b)) => Reason::BufferBound(*a.min(b)),
            (Reason::InstanceBound(a), Reason::InstanceBound(b)) => Reason::InstanceBound(*a.min(b)),
            (Reason::CallDepth(a), Reason::CallDepth(b)) => Reason::CallDepth(*a.min(b)),
            (Reason::Spawned(a), Reason::Spawned(b)) => Reason::Spawned(*a.min(b)),
            (Reason::Rounds(a), Reason::Rounds(b)) => Reason::Rounds(*a.min(b)),
            (Reason::StoreAge(a), Reason::StoreAge(b)) => Reason::StoreAge(*a.min(b)),
            _ => return None,
        })
    }

    /// Whether it states a bound up to which no bad state was found.
    pub fn is_bound(&self) -> bool {
        match self {
            Reason::BufferBound(_)
            | Reason::InstanceBound(_)
            | Reason::CallDepth(_)
            | Reason::Spawned(_)
            | Reason::Started { .. }
            | Reason::Rounds(_)
            | Reason::StoreAge(_)
            | Reason::Within(_) => true,
            Reason::Exhausted(_)
            | Reason::Partly(..)
            | Reason::AnyNumber { .. }
            | Reason::Unrolled(_)
            | Reason::RobustUpTo(_)
            | Reason::Without { .. }
            | Reason::Growing { .. }
            | Reason::Robust
            | Reason::Unsupported(_)
            | Reason::Observed(_)
            | Reason::About { .. }
            | Reason::Unshown(_)
            | Reason::Bug(_) => false,
        }
    }

    /// The individual bounds within which no bad state was found.
    pub fn bounds(&self) -> &[Reason] {
        match self {
            Reason::Within(bounds) => bounds,
            Reason::Partly(_, reached) | Reason::AnyNumber { known: reached, .. } => reached.bounds(),
            bound if bound.is_bound() => std::slice::from_ref(bound),
            _ => &[],
        }
    }

    /// The runs that the bounds cover, as a phrase that follows "with", if there are bounds.
    pub fn covered(&self) -> Option<String> {
        let mut phrases: Vec<String> = self.bounds().iter().map(Reason::phrase).collect();
        let last = phrases.pop()?;
        Some(if phrases.is_empty() { last } else { format!("{} and {last}", phrases.join(", ")) })
    }

    /// What is wrong with the engine, if it contradicted itself.
    pub fn bug(&self) -> Option<&str> {
        match self {
            Reason::Bug(what) => Some(what),
            Reason::Partly(_, reached) | Reason::AnyNumber { known: reached, .. } => reached.bug(),
            _ => None,
        }
    }

    /// A bound as a short phrase that follows "with".
    fn phrase(&self) -> String {
        let counted = |bound: usize, what: &str, plural: &str| {
            format!("up to {bound} {what}{}", if bound == 1 { "" } else { plural })
        };
        match self {
            Reason::BufferBound(bound) => format!("buffers up to {bound}"),
            Reason::InstanceBound(bound) => {
                let threads = counted(*bound as usize, "thread", "s");
                format!("{threads} of each kind of which any number is allowed")
            }
            Reason::CallDepth(bound) => counted(*bound, "nested call", "s"),
            Reason::Spawned(bound) => counted(*bound, "started process", "es"),
            Reason::Rounds(bound) => counted(*bound as usize, "round", "s"),
            Reason::StoreAge(bound) => format!("store age up to {bound}"),
            Reason::Started { processes, rounds } => {
                let started = counted(*processes, "started process", "es");
                match rounds {
                    Some(rounds) => format!("{started}, {}", counted(*rounds as usize, "round", "s")),
                    None => started,
                }
            }
            other => other.to_string(),
        }
    }

    /// The same reason, about `subject` rather than the given program. It is then not a bound for the given
    /// program.
    pub fn about(self, subject: &str) -> Reason {
        match self {
            Reason::Exhausted(_) | Reason::Bug(_) => self,
            Reason::Partly(what, reached) => Reason::Partly(what, Box::new(reached.about(subject))),
            Reason::AnyNumber { why, known } => {
                Reason::AnyNumber { why, known: Box::new(known.about(subject)) }
            }
            fact => Reason::About { subject: subject.to_owned(), reason: Box::new(fact) },
        }
    }

    /// Which part of the budget ran out, if that is the reason.
    pub fn what_ran_out(&self) -> Option<Exhausted> {
        match self {
            Reason::Exhausted(what) | Reason::Partly(what, _) => Some(*what),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_printed_alone_and_together() {
        let check = |bounds: Vec<Reason>, expected: &str| {
            let text = Reason::within(bounds).map_or_else(String::new, |reason| reason.to_string());
            assert_eq!(text, expected);
        };
        check(vec![], "");
        check(vec![Reason::BufferBound(8)], "no bad state with buffers up to 8");
        check(vec![Reason::CallDepth(1)], "no bad state with up to 1 nested call");
        check(vec![Reason::Spawned(32)], "no bad state in runs that start up to 32 processes");
        check(
            vec![Reason::InstanceBound(4), Reason::BufferBound(2)],
            "no bad state with up to 4 threads of each kind of which any number is allowed and buffers up to 2",
        );
        let nested = Reason::within([Reason::Spawned(2), Reason::CallDepth(3)]).expect("there are two");
        check(
            vec![nested, Reason::Rounds(2)],
            "no bad state with up to 2 started processes, up to 3 nested calls and up to 2 rounds",
        );
        check(
            vec![Reason::Spawned(2), Reason::Spawned(1)],
            "no bad state in runs that start up to 1 process",
        );
    }

    #[test]
    fn what_is_known_of_a_few_threads() {
        let check = |reason: Reason, expected: &str, threads: Option<u32>| {
            assert_eq!(reason.to_string(), expected);
            assert_eq!(reason.known_threads(), threads, "{reason:?}");
        };
        let known = "no bad state with up to 6 threads of each kind of which any number is allowed";
        let grows = Reason::Unsupported("it grows".to_owned());
        check(grows.clone(), "it grows", None);
        let grows = grows.and_known(Reason::InstanceBound(6));
        check(grows.clone(), &format!("it grows; {known}"), Some(6));
        assert_eq!(grows.bounds(), [Reason::InstanceBound(6)]);
        let buffers = Reason::within([Reason::InstanceBound(4), Reason::BufferBound(2)]);
        let stopped = Reason::exhausted(Exhausted::Stopped, buffers.clone());
        assert_eq!(stopped.known_threads(), None, "some of their runs only");
        check(
            stopped.clone().and_known(Reason::InstanceBound(6)),
            &format!("{}; {known}", Exhausted::Stopped),
            Some(6),
        );
        let bounded = buffers.expect("there are two");
        check(bounded.and_known(Reason::InstanceBound(6)), known, Some(6));
    }

    #[test]
    fn a_bug_is_found_in_an_exhausted_reason() {
        let bug = Reason::exhausted(Exhausted::Stopped, Some(Reason::Bug("no run".to_owned())));
        assert_eq!((bug.bug(), bug.is_bound()), (Some("no run"), false));
        assert_eq!(Reason::Rounds(1).bug(), None);
        assert_eq!(bug.about("elsewhere").bug(), Some("no run"));
    }
}
