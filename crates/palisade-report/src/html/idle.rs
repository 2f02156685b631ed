//! Processes that take no step in a run. They say nothing about it, so they are folded away.

use palisade_memory::Violation;
use palisade_program::running::ThreadId;
use palisade_trace::Evidence;
use std::collections::BTreeSet;

/// What happens to processes that take no step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Idle {
    /// They are only named.
    Folded,
    /// They are shown like the others, because they may take the next step.
    Shown,
}

/// The processes that take part in a run, and those that are folded away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cast {
    /// In their order, with the column of each.
    pub(super) shown: Vec<ThreadId>,
    /// In their order.
    pub(super) idle: Vec<ThreadId>,
}

impl Cast {
    /// A process that waits forever, or whose next access is part of a race, is part of what went wrong even if it
    /// took no step. If no process takes a step, all are shown.
    pub(super) fn new(evidence: &Evidence<'_>, idle: Idle) -> Cast {
        let mut busy: BTreeSet<ThreadId> = evidence.run.steps.iter().map(|step| step.thread).collect();
        let all = || evidence.last_state().threads.ids();
        let fold = match evidence.replay.violation {
            Some(Violation::Deadlock | Violation::Unreachable(_) | Violation::Forever { .. }) => false,
            Some(Violation::Race(one, other, _)) => {
                busy.extend([one, other]);
                true
            }
            Some(Violation::Fault(..) | Violation::Property(_)) | None => !busy.is_empty(),
        };
        let (shown, idle) = match idle {
            Idle::Folded if fold => all().partition(|thread| busy.contains(thread)),
            Idle::Folded | Idle::Shown => (all().collect(), Vec::new()),
        };
        Cast { shown, idle }
    }

    /// The column of a process that is shown.
    pub(super) fn column(&self, thread: ThreadId) -> usize {
        self.shown.binary_search(&thread).expect("a process that takes a step is shown")
    }

    /// `P(2) and P(3) take no step`, or nothing if all do.
    pub(super) fn in_words(&self, evidence: &Evidence<'_>) -> Option<String> {
        let names: Vec<String> = self.idle.iter().map(|&thread| evidence.name(thread)).collect();
        let (takes, names) = match names.len() {
            0 => return None,
            1 => ("takes", crate::explain::enumeration(&names)),
            2..=6 => ("take", crate::explain::enumeration(&names)),
            others => ("take", format!("{others} processes")),
        };
        Some(format!("{names} {takes} no step"))
    }
}
