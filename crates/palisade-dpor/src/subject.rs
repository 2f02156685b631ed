//! What the search runs: something whose processes take steps one by one.

use crate::footprint::Footprint;
use crate::plan::{Choice, Plan, Sleeper};
use std::sync::Arc;

/// Something whose processes take steps one by one.
///
/// A process has the same number in every execution in which it exists. For example, the third process that
/// process 2 starts must not get its number from the order in which processes happen to be started.
pub trait Subject {
    /// All processes that exist now have numbers below this.
    fn processes(&self) -> usize;

    /// The next step of a process.
    fn next(&mut self, process: usize) -> Next;

    /// Whether a process is ready for its next step.
    fn is_ready(&mut self, process: usize) -> bool {
        matches!(self.next(process), Next::Ready(_))
    }

    /// How many outcomes the next step of a process can have, at least one. Steps with several outcomes are
    /// those in which the program itself chooses.
    fn outcomes(&mut self, process: usize) -> usize {
        let _ = process;
        1
    }

    /// Whether the next step of a process, which is [conditional](Footprint::writes), would write nothing if it were
    /// taken now. This is asked right after [`outcomes`](Subject::outcomes).
    fn fails_now(&mut self, process: usize) -> bool {
        let _ = process;
        false
    }

    /// A process that is ready takes its next step. Returns the processes that this step starts.
    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize>;

    /// Goes back to the point after this many steps of the current execution.
    fn rewind(&mut self, steps: usize);

    /// The number of steps from the start to the current point.
    fn position(&self) -> usize;

    /// What the search is going to do from here: these steps, and then any steps except those of sleeping
    /// processes. This is for subjects for which going back is expensive: they can run all of it at once.
    fn plan(&mut self, choices: Vec<Choice>, asleep: Vec<Sleeper>) {
        let _ = (choices, asleep);
    }

    /// How many more of the next executions the subject wants to know in advance.
    fn appetite(&self) -> usize {
        0
    }

    /// Executions that the search is going to try, the next ones first, each of them once, and no more than the
    /// [appetite](Subject::appetite). The very next one may be left out. The current execution has just ended. Nothing that the search finds in the
    /// meantime changes these plans, as long as it is not stopped; see `explore.rs`.
    fn foresee(&mut self, plans: Vec<Plan>) {
        let _ = plans;
    }

    /// The process that the subject prefers for the next step, where the search is free to choose.
    fn prefers(&mut self) -> Option<usize> {
        None
    }

    /// Whether a process is ready after the steps of a sequence, taken from a point of the current execution,
    /// each in turn. `taken` are the steps of the execution from that point on; afterwards the subject is at
    /// the end of them again. The sequence contains what its steps touch, and the process comes with what it
    /// waits to touch.
    fn ready_after(
        &mut self,
        from: usize,
        sequence: &[(Choice, &Footprint)],
        (process, footprint): (usize, &Footprint),
        taken: &[Choice],
    ) -> bool {
        let _ = footprint;
        self.rewind(from);
        let mut ready = true;
        for (choice, _) in sequence {
            ready = matches!(self.next(choice.process), Next::Ready(_));
            if !ready {
                break;
            }
            self.step(choice.process, choice.outcome);
        }
        ready = ready && matches!(self.next(process), Next::Ready(_));
        self.rewind(from);
        for choice in taken {
            self.step(choice.process, choice.outcome);
        }
        ready
    }

    /// The same as [`ready_after`](Subject::ready_after) for a [conditional](Footprint::writes) step: whether it would
    /// write nothing. The process is ready.
    fn fails_after(
        &mut self,
        from: usize,
        sequence: &[(Choice, &Footprint)],
        (process, footprint): (usize, &Footprint),
        taken: &[Choice],
    ) -> bool {
        let _ = footprint;
        self.rewind(from);
        for (choice, _) in sequence {
            self.step(choice.process, choice.outcome);
        }
        let fails = self.fails_now(process);
        self.rewind(from);
        for choice in taken {
            self.step(choice.process, choice.outcome);
        }
        fails
    }

    /// Whether a step that the search saw later in another execution can be tried now and is the same. It
    /// always can, unless the subject is [broken](Subject::is_broken).
    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let _ = footprint;
        assert!(matches!(self.next(process), Next::Ready(_)), "a step to try is ready");
        true
    }

    /// A step with this footprint was expected to write, or not to, and did the opposite. Called before the search gives
    /// up.
    fn succeeds_differently(&mut self, process: usize, footprint: &Footprint) {
        let _ = (process, footprint);
    }

    /// Whether the subject itself cut off the execution at this point, so that the rest is not known.
    fn is_cut(&self) -> bool {
        false
    }

    /// Whether the search should end as soon as it can. This is called at every step.
    fn is_stopped(&mut self) -> bool {
        false
    }

    /// Whether the subject is broken: it did not repeat itself, so the search cannot continue.
    fn is_broken(&self) -> bool {
        false
    }
}

/// The next step of a process, and whether it is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: the process has ended, or does not exist.
    Nothing,
    /// A step.
    Ready(Arc<Footprint>),
    /// A step for which it has to wait; the footprint has [`waits`](Footprint::waits) set, or names the steps
    /// that it waits for ([`after`](Footprint::after)).
    Waiting(Arc<Footprint>),
}
