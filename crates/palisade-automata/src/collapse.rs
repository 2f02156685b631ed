//! Collapsing local steps: after a step that concerns memory, a thread runs on until its next one.
//!
//! *Problem.* Interleaving the local steps of different threads multiplies states without adding behaviour.
//!
//! *Guarantee.* A bad state is reachable with collapsed steps iff it is reachable without. A step is
//! collapsed only if it is local, invisible, and has no alternative that waits:
//! - *Local*: its outcome does not depend on memory and does not change it, so it commutes with every step of
//!   other threads. Putting a store into the thread's own buffer is local as well. It commutes with the steps
//!   of others and with the updates of its own buffer. Doing it as soon as possible never needs a longer
//!   buffer than doing it later, since the thread does nothing else in between.
//! - *Without an alternative that waits*: no instruction from the same location waits for pending stores.
//!   Such an instruction is local too, but it becomes possible only later. Taking the others at once would
//!   rule it out.
//! - *Invisible*: what properties see of the thread stays the same. One visible step is allowed after a step
//!   that changed neither memory nor the buffer nor what is seen, such as a load. A state between the two
//!   looks the same as the state before the load, and anything the others do in between they can also do
//!   before it.
//!
//! A thread may get stuck (a false assumption, an endless local loop) without having changed memory, its
//! buffer or its view. Such a thread can be forgotten, because the others can do the same without that step.
//! This is what makes `await` a blocking read.
//!
//! *Data races.* A thread that runs on passes states in which it is about to access a cell: it puts stores into its
//! buffer. Its thread state remembers these accesses until its next step ([`Local::passed`]). Whatever the others do
//! before that step, they can do before the local steps, because these are local. So if another thread is about to
//! access the cell now, or was in its own last local steps, both are about to do so in some state of the machine, and
//! every race is seen this way. Threads that were about to access something are not forgotten.
//!
//! The thread's own updates are such a next step, but some of them can come before its last local steps, too. So a
//! thread with pending stores stops before an access to a cell on which races are possible: its pending stores may
//! reach memory while it is about to make the access, and other threads may react to that.
//!
//! Under PSO pending stores count as accesses, too. A store that the thread puts into its buffer while it runs on is
//! still there when it stops, and the updates of its buffer are steps of their own.
//!
//! *What stays possible.* With [`Stuck::Kept`] no thread is forgotten, and no visible step is collapsed. Then
//! every stop is a state that the thread reaches, and all its steps up to there are local and invisible. So what
//! the thread and the others can still reach is the same before these steps and after one of their outcomes.

use crate::coverage::Coverage;
use crate::local::{After, Hold, Local, StepKind, Stuck, ThreadMachine};
use crate::observe::Observer;
use palisade_memory::Action;
use rustc_hash::FxHashMap;

/// A collapsed step stops at the latest after this much work, counted in registers and pending stores of the
/// thread states visited. Stopping early is always correct.
const MAX_WORK: usize = 1 << 18;

/// Where a thread can be after running on, each with the local steps that lead there.
pub struct Runs {
    /// Thread states that wait for something, each once.
    pub stops: Vec<Stop>,
    /// Whether some thread state wanted to call deeper than allowed.
    pub too_deep: bool,
}

/// Where a thread waits after a step, and how it gets there.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The thread state.
    pub local: Local,
    /// The local steps after the first step.
    pub steps: Vec<Action>,
    /// How many of the last steps belong to an atomic section that is not entered yet. The count includes the
    /// first step, which comes before all others. A run of the machine takes these steps together with the
    /// thread's next step; see [`Schedule`].
    pub armed: usize,
    /// Whether it stops here only because of the limit on work. Its next steps are local, too.
    pub cut: bool,
}

/// The steps of one thread for a run of the machine. Steps of a section not entered yet are put off to the
/// thread's next step, so that the section is opened only when it is entered.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    put_off: Vec<Action>,
}

impl Schedule {
    /// The steps to take now. `actions` are the next steps of the thread, the last `armed` of which belong to
    /// a section not entered yet.
    pub fn take(&mut self, mut actions: Vec<Action>, armed: usize) -> Vec<Action> {
        let now = actions.len().saturating_sub(armed);
        let later = actions.split_off(now);
        if now == 0 && armed > 0 {
            self.put_off.extend(later);
            return Vec::new();
        }
        let mut steps = std::mem::replace(&mut self.put_off, later);
        steps.append(&mut actions);
        steps
    }
}

/// The largest number of unfinished calls of a thread.
pub const MAX_CALLS: usize = 256;

/// The largest number of frames of a thread: one for each call, and one for its own code.
pub const MAX_FRAMES: usize = MAX_CALLS + 1;

/// Runs a thread on from `after`, a step of `source` (`None` at the start). All local steps that it takes are
/// noted in `coverage`, including those that lead nowhere.
pub fn run_on(
    machine: &ThreadMachine<'_>,
    observer: &Observer,
    source: Option<&Local>,
    after: After,
    coverage: &mut Coverage,
) -> Runs {
    let changed = after.write.is_some() || after.child.is_some();
    let source_view = source.map(|local| observer.view(local));
    // Whether the thread state is indistinguishable from the source.
    let like_source = |local: &Local| {
        machine.stuck == Stuck::Forgotten
            && !changed
            && local.fault.is_none()
            && source.is_some_and(|source| source.thread.buffer == local.thread.buffer)
            && source_view.as_ref() == Some(&observer.view(local))
    };
    let forgotten =
        |local: &Local| like_source(local) && observer.last_accesses(machine.machine.model, local).is_empty();
    let runs = Runs { stops: Vec::new(), too_deep: false };
    let mut search = Search { machine, observer, runs, coverage, work: 0 };
    // Depth first, so that reaching a thread state of the current path again reveals an endless loop.
    let mut state = FxHashMap::default();
    let mut path = vec![Visit { local: after.local, next: None, by: None }];
    while let Some(depth) = path.len().checked_sub(1) {
        let visit = &mut path[depth];
        if visit.next.is_none() {
            state.insert(visit.local.clone(), Colour::OnPath);
            match search.local_steps(&visit.local, like_source(&visit.local)) {
                Ahead::Waits => {
                    search.stop(&path, false);
                    visit_done(&mut state, &mut path);
                    continue;
                }
                Ahead::Cut => {
                    search.stop(&path, true);
                    visit_done(&mut state, &mut path);
                    continue;
                }
                Ahead::Steps(steps) if steps.is_empty() => {
                    if !forgotten(&visit.local) {
                        search.stop(&path, false);
                    }
                    visit_done(&mut state, &mut path);
                    continue;
                }
                Ahead::Steps(steps) => visit.next = Some(steps),
            }
        }
        let visit = &mut path[depth];
        match visit.next.as_mut().expect("set above").pop() {
            None => visit_done(&mut state, &mut path),
            Some((action, local)) => match state.get(&local) {
                None => path.push(Visit { local, next: None, by: Some(action) }),
                Some(Colour::Done) => {}
                Some(Colour::OnPath) => {
                    if !forgotten(&local) {
                        let end = path.iter().position(|visit| visit.local == local).expect("on the path");
                        search.stop(&path[..=end], false);
                    }
                }
            },
        }
    }
    let mut runs = search.runs;
    let mut seen = rustc_hash::FxHashSet::default();
    runs.stops.retain(|stop| seen.insert(stop.local.clone()));
    runs
}

#[derive(Clone, Copy, PartialEq)]
enum Colour {
    OnPath,
    Done,
}

struct Visit {
    local: Local,
    /// Local steps not yet followed.
    next: Option<Vec<(Action, Local)>>,
    /// The step that led here.
    by: Option<Action>,
}

fn visit_done(state: &mut FxHashMap<Local, Colour>, path: &mut Vec<Visit>) {
    let visit = path.pop().expect("called with a path");
    state.insert(visit.local, Colour::Done);
}

/// The next steps of a thread state.
enum Ahead {
    /// Local steps. If there are none, the thread is stuck.
    Steps(Vec<(Action, Local)>),
    /// It has to stop here.
    Waits,
    /// It could continue, but the limit on work is reached.
    Cut,
}

struct Search<'m, 'a> {
    machine: &'m ThreadMachine<'a>,
    observer: &'m Observer,
    runs: Runs,
    coverage: &'m mut Coverage,
    work: usize,
}

impl Search<'_, '_> {
    /// The local steps of a thread state. They include visible steps only if the thread state is
    /// indistinguishable from the one before the run.
    fn local_steps(&mut self, local: &Local, like_source: bool) -> Ahead {
        let ended = local.thread.has_ended(self.machine.machine.system);
        let registers: usize = local.thread.frames.iter().map(|frame| frame.registers.len()).sum();
        self.work += 16 + registers + local.thread.buffer.len();
        if local.fault.is_some() || ended {
            return Ahead::Waits;
        }
        let enough = self.work > MAX_WORK;
        if local.thread.frames.len() > MAX_FRAMES && !enough {
            self.runs.too_deep = true;
            return Ahead::Steps(Vec::new());
        }
        let edges: Vec<_> = self.machine.edges(local).collect();
        if edges.iter().any(|&edge| self.machine.kind(local, edge) != StepKind::Local) {
            return Ahead::Waits;
        }
        if enough {
            return Ahead::Cut;
        }
        // An instruction that waits for pending stores becomes possible without another step of the thread.
        // Other instructions from here must not be taken before that.
        if edges.iter().any(|&edge| self.machine.waits_for_buffer(local, edge)) {
            return Ahead::Waits;
        }
        let next_accesses = self.observer.next_accesses(local);
        if !next_accesses.is_empty() && !local.thread.buffer.is_empty() {
            return Ahead::Waits;
        }
        let view = self.observer.view(local);
        let mut passed = local.passed.clone();
        for access in next_accesses {
            if !passed.contains(&access) {
                passed.push(access);
            }
        }
        let mut steps = Vec::new();
        for edge in edges {
            for action in self.machine.actions(local, edge) {
                if let Some(mut after) = self.machine.step(local, action, None) {
                    after.local.passed.clone_from(&passed);
                    if !like_source && self.observer.view(&after.local) != view {
                        return Ahead::Waits;
                    }
                    steps.push((action, after.local));
                }
            }
        }
        for (action, after) in &steps {
            self.coverage.step(self.machine.machine.system, &local.thread, *action, &after.thread);
        }
        Ahead::Steps(steps)
    }

    fn stop(&mut self, path: &[Visit], cut: bool) {
        let local = path.last().expect("a path has a start").local.clone();
        let steps: Vec<Action> = path.iter().filter_map(|visit| visit.by).collect();
        let outside = path.iter().rposition(|visit| visit.local.hold == Hold::Outside);
        let armed = match local.hold {
            Hold::Armed(_) => outside.map_or(steps.len() + 1, |position| steps.len() - position),
            Hold::Outside | Hold::Entered(_) => 0,
        };
        self.runs.stops.push(Stop { local, steps, armed, cut });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_program::running::EdgeId;

    #[test]
    fn steps_of_a_section_wait_for_its_first_access() {
        let action = |edge| Action::Execute { edge: EdgeId(edge), choice: None };
        let mut schedule = Schedule::default();
        assert_eq!(schedule.take(vec![action(0), action(1)], 0), [action(0), action(1)]);
        assert_eq!(schedule.take(vec![action(2), action(3), action(4)], 2), [action(2)]);
        assert_eq!(schedule.take(vec![action(5)], 1), []);
        assert_eq!(schedule.take(vec![action(6)], 0), [action(3), action(4), action(5), action(6)]);
        assert_eq!(schedule.take(Vec::new(), 0), []);
    }
}
