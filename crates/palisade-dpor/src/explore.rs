//! The search: one execution per partial order.
//!
//! *Problem.* Run a terminating program so that each of its Mazurkiewicz traces (partial orders of
//! executions, given by the conflicts of their steps) is seen exactly once.
//!
//! *Source.* Optimal-DPOR, Algorithm 2 of Abdulla, Aronis, Jonsson and Sagonas, JACM 64(4), 2017. When an
//! execution has ended, each of its races (two conflicting steps with nothing between them) is reversed: the
//! steps that do not happen after the first one, followed by the second one, become a sequence to try in
//! place of the first. Sleep sets and wakeup trees leave out what leads to executions already seen.
//!
//! *Guarantee.* Without limits, every trace is seen exactly once, and no execution is abandoned because it
//! could only lead to traces already seen. The paper proves this for steps with one outcome that do not wait.
//! For other steps, `tests/suite/counts.rs`, `buffers.rs` and `conditional.rs` compare with all interleavings, and
//! [`Summary::broken_off`] counts abandoned executions. If an execution was cut at the limit of its length,
//! traces may be missing.
//!
//! *Differences from the paper.*
//! 1. Steps have outcomes; see `wakeup.rs`.
//! 2. Steps may wait (locks). Such a step races with the latest conflicting steps, back through the
//!    execution, before which it is ready. The subject is run to find out whether it is ready. If no process
//!    can continue, the waiting steps have races too: so a deadlock leads to the orders without it.
//! 3. Steps may start processes. The steps of a started process happen after its start.
//! 4. A step may name steps of other processes that have to come first ([`Footprint::after`]). They happen
//!    before it, but this is not a race: the step cannot be taken without them. If a race is reversed, they
//!    are still there, because they do not happen after its first step; otherwise it would not be a race.
//!
//! 5. Steps may write only under a condition ([`Footprint::writes`]); see below.
//!
//! *Conditional steps.* A compare-and-swap that fails only reads, and so does an attempt to take a lock. So two of them
//! that fail do not conflict. Whether such a step fails depends on memory, and is known for certain only where it was
//! taken. The relation is a valid one in the sense of the paper, because only a step that writes what it touches, or touches
//! another range, can change whether it fails, and such a step conflicts with it in any case:
//! - In every order of the steps that respects the relation, each of them fails or succeeds as before. The writes before
//!   it are the same.
//! - A step *q* that does not conflict with *p* does not remove a conflict between *p* and *r*. If *r* is conditional, a
//!   write of *q* could do that, by making *r* fail. If *p* touches exactly the range that *r* touches, *q* then conflicts
//!   with *p*, too. If it touches another one, say half of it, *p* and *r* conflict whether *r* fails or not. This makes
//!   some traces count twice, but only of programs that access parts of what they compare.
//! - Sleeping steps keep their outcome until something conflicts with them and wakes them up.
//!
//! What has to be known in addition is whether a step fails where it was *not* taken: when a race is reversed, the second
//! step comes before the first. If the first one writes, the second may fail in one order and succeed in the other. The
//! same holds if it reads another range: readers of a lock do not conflict with each other, but make an attempt to write
//! fail, and touch another range than that does. So the subject is asked ([`Subject::fails_after`]). Guessing is not enough, not even on the safe side. If a step that
//! fails is planned as one that writes, sequences are added to the tree although a sleeping process covers them. Other
//! sequences are then taken to lead to the same executions, and are dropped. But a sequence that is covered is abandoned
//! where it does not wake up the process that covers it, so some traces would never be seen.
//!
//! *Store buffers.* A buffer is a process. A store is a step of its thread that touches nothing, and a later
//! step of the buffer that writes memory and comes after the store. Fences, locked instructions and the like
//! come after the steps that empty the buffer. A load that has no own store in the buffer reads memory. For a
//! load *L* of thread *T* that comes after a store of *T* to the same address, let *u* be the step of *T*'s
//! buffer that writes the newest such store. *L* does not conflict with *u*, because it reads that store
//! before *u* and after it. It conflicts with another thread's write *W* if and only if *u* comes before *W*:
//! only then does it matter whether *L* comes before *W* (and reads the own store) or after (and reads *W* or
//! something later). This is [`Touch::own`](crate::Touch::own).
//!
//! The traces are then those of Shasha and Snir: program order, where loads read from, and the order of the
//! writes to each address. They determine what happens before what: *L* and *W* conflict if *W* comes after
//! *u*, and *W* is before *L* if it is what *L* reads or comes before that. Conversely, all writes of an
//! address are ordered, and *L* reads the last *W* after *u* that happens before it, or else the own store.
//! The paper's theorems hold for every relation with certain properties (valid happens-before relations). Two
//! of them are not obvious here:
//! - Every order of the steps that respects the relation is an execution with the same relation. *L* keeps
//!   reading the same store, because the writes of its address keep their order, and those that conflict with
//!   it stay on their side.
//! - A step that does not conflict with *p* does not remove a conflict between *p* and *r*. Only *u* changes
//!   whether a read and a write conflict, and from then on they do.
//!
//! This is the idea of chronological traces: Abdulla, Aronis, Atig, Jonsson, Leonardsson and Sagonas,
//! "Stateless model checking for TSO and PSO", TACAS 2015. `tests/suite/buffers.rs` compares with all
//! interleavings.
//!
//! *Plans.* All executions that are still to be tried begin with a branch of some node, so they can be run ahead of
//! time ([`Subject::foresee`]), on other cores. How such an execution begins does not change any more. New branches
//! are added after the others, at all levels of a tree, so the first path through a branch stays the same. The
//! processes that are asleep when it begins are those of the node and those of the branches before it. A subject
//! that compares plan and request notices if this were not so, and loses only time.
//!
//! *Invariants*
//! 1. The subject is at the last node of the stack whenever the search looks at it or takes a step (checked
//!    before each step and after races are reversed).
//! 2. The process whose step is being tried at a node is that of its first branch (checked when the search
//!    goes back).
//! 3. A conditional step that was planned to fail or to succeed does so when it is tried. A subject for which this does
//!    not hold does not repeat itself (checked in release builds, too: [`Summary::broken`]).

use crate::footprint::Footprint;
use crate::history::{History, Late, Step};
use crate::node::Node;
use crate::plan::{Choice, Plan};
use crate::subject::{Next, Subject};
use crate::wakeup::{Branch, Item, insert};
use std::ops::ControlFlow;

/// Limits of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Executions are cut after this many steps.
    pub steps: usize,
    /// The search stops after this many executions.
    pub executions: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: usize::MAX, executions: u64::MAX }
    }
}

/// An execution, as the visitor sees it.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// Its steps.
    pub steps: &'a [Step],
    /// Why it ended.
    pub ended: Ended,
    nodes: &'a [Node],
}

impl Execution<'_> {
    /// The approximate part of the search that is done, from 0 to 1. At every point on the path, the branches
    /// that are done, being tried and waiting have equal weight. New branches are found during the search, so
    /// the value may shrink.
    pub fn progress(&self) -> f64 {
        let (mut progress, mut share) = (0.0, 1.0);
        for node in self.nodes {
            let branches = (node.done + node.branches.len()).max(1) as f64;
            progress += share * node.done as f64 / branches;
            share /= branches;
        }
        progress
    }
}

/// Why an execution ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// No process can continue.
    Complete,
    /// The limit was reached.
    Cut,
}

/// The result of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Executions seen by the visitor.
    pub executions: u64,
    /// Executions cut at the limit; they are included in `executions`.
    pub cut: u64,
    /// Executions that were abandoned because they could only lead to traces already seen; they are not
    /// included in `executions`.
    pub broken_off: u64,
    /// Steps taken.
    pub steps: u64,
    /// Whether the search was stopped before its end: by the visitor, or by the limit on executions.
    pub stopped: bool,
    /// Whether the search was stopped because the subject did not repeat itself.
    pub broken: bool,
}

impl Summary {
    /// Whether every trace was seen.
    pub fn is_complete(&self) -> bool {
        self.cut == 0 && !self.stopped && !self.broken
    }
}

/// Runs the subject once per trace. `visit` sees each execution when it has ended, with the subject at its
/// end, and may stop the search. Afterwards the subject is at its start.
pub fn explore<S: Subject>(
    subject: &mut S,
    limits: Limits,
    mut visit: impl FnMut(&mut S, Execution<'_>) -> ControlFlow<()>,
) -> Summary {
    let mut search = Search {
        subject,
        history: History::default(),
        nodes: vec![Node::default()],
        spare: Vec::new(),
        limits,
        summary: Summary::default(),
    };
    loop {
        let ended = search.descend();
        if search.subject.is_stopped() {
            search.summary.stopped = true;
            break;
        }
        if search.subject.is_broken() || search.summary.broken {
            search.summary.broken = true;
            break;
        }
        match ended {
            Some(ended) => {
                search.summary.executions += 1;
                search.summary.cut += u64::from(ended == Ended::Cut);
                if visit(
                    search.subject,
                    Execution { steps: &search.history.steps, ended, nodes: &search.nodes },
                )
                .is_break()
                {
                    search.summary.stopped = true;
                    break;
                }
                search.reverse_races();
                search.foretell();
                if search.subject.is_stopped() {
                    search.summary.stopped = true;
                    break;
                }
                if search.subject.is_broken() {
                    search.summary.broken = true;
                    break;
                }
            }
            None => search.summary.broken_off += 1,
        }
        if !search.backtrack() || search.summary.broken {
            break;
        }
        if search.summary.executions >= limits.executions {
            search.summary.stopped = true;
            break;
        }
    }
    search.subject.rewind(0);
    let Search { history, nodes, summary, .. } = search;
    if summary.stopped {
        drop_elsewhere((history, nodes));
    }
    summary
}

/// Frees data that may be large on a separate thread, so that a stopped search ends without waiting for it.
pub(crate) fn drop_elsewhere<T: Send + 'static>(what: T) {
    std::thread::spawn(move || drop(what));
}

/// What to ask a subject: [`Subject::ready_after`] or [`Subject::fails_after`].
type Question<S> = fn(&mut S, usize, &[(Choice, &Footprint)], (usize, &Footprint), &[Choice]) -> bool;

struct Search<'a, S> {
    subject: &'a mut S,
    history: History,
    /// One per step, and one for the current end of the execution.
    nodes: Vec<Node>,
    /// Nodes that are not used, for their memory.
    spare: Vec<Node>,
    limits: Limits,
    summary: Summary,
}

impl<S: Subject> Search<'_, S> {
    /// Takes steps until the execution has ended; `None` if it could only lead to traces already seen, or the
    /// search is stopped.
    fn descend(&mut self) -> Option<Ended> {
        loop {
            self.check_position();
            if self.subject.is_stopped() {
                return None;
            }
            let node = self.nodes.last().expect("there is a node for the current point");
            let wish = if node.branches.is_empty() { self.subject.prefers() } else { None };
            let granted = wish.filter(|&process| !node.is_asleep(process) && self.subject.is_ready(process));
            let processes = self.subject.processes();
            if granted.is_none() && !(0..processes).any(|process| self.subject.is_ready(process)) {
                return Some(if self.subject.is_cut() { Ended::Cut } else { Ended::Complete });
            }
            if self.history.steps.len() >= self.limits.steps {
                return Some(Ended::Cut);
            }
            if node.branches.is_empty() {
                // The preferred process, or the one that has taken the fewest steps. So all processes take
                // part in an execution that is cut.
                let process = granted.or_else(|| {
                    let awake = (0..processes).filter(|&process| !node.is_asleep(process));
                    let ready = awake.filter(|&process| self.subject.is_ready(process));
                    ready.min_by_key(|&process| self.history.count(process))
                })?;
                let Next::Ready(footprint) = self.subject.next(process) else { return None };
                let node = self.nodes.last_mut().expect("there is a node for the current point");
                node.branches.push(Branch::leaf(process, footprint));
                if wish.is_some_and(|wish| wish != process) {
                    self.announce_plan(None);
                }
            }
            if !self.try_branches() {
                return None;
            }
        }
    }

    /// Informs the subject of what will be tried from the current node on, with the outcome of the first step
    /// if it is known.
    fn announce_plan(&mut self, outcome: Option<usize>) {
        let node = self.nodes.last().expect("there is a node for the current point");
        let Some(branch) = node.branches.first() else { return };
        let from = self.history.steps.len();
        let Plan { choices, asleep, .. } = self.history.plan(from, node.sleepers(0), branch, outcome);
        self.subject.plan(choices, asleep);
    }

    /// Informs the subject of what will be tried after the current execution, except for what is tried next: the
    /// subject learns that at once, when it is tried.
    fn foretell(&mut self) {
        let appetite = self.subject.appetite();
        if appetite == 0 {
            return;
        }
        let mut plans = Vec::with_capacity(appetite);
        let mut is_next = true;
        for (position, node) in self.nodes.iter_mut().enumerate().rev() {
            if plans.len() == appetite {
                break;
            }
            for index in 1..node.branches.len() {
                let is_next = std::mem::take(&mut is_next);
                if !is_next && plans.len() < appetite && !node.branches[index].is_foreseen {
                    node.branches[index].is_foreseen = true;
                    let branch = &node.branches[index];
                    plans.push(self.history.plan(position, node.sleepers(index), branch, None));
                }
            }
        }
        self.subject.foresee(plans);
    }

    /// Takes the first step of the branches of the current node. Returns false if there is nothing left to
    /// try.
    fn try_branches(&mut self) -> bool {
        let node = self.nodes.last_mut().expect("there is a node for the current point");
        while let Some(branch) = node.branches.first() {
            let process = branch.process;
            if !self.subject.can_try(process, &branch.footprint) {
                return false;
            }
            let outcomes = self.subject.outcomes(process).max(1);
            if branch.footprint.is_conditional() {
                let fails = self.subject.fails_now(process);
                if node.branches[0].is_planned_to_fail().is_some_and(|planned| planned != fails) {
                    let footprint = node.branches[0].footprint.clone();
                    self.subject.succeeds_differently(process, &footprint);
                    self.summary.broken = true;
                    return false;
                }
                node.branches[0].footprint = node.branches[0].footprint.settled(fails);
            }
            if node.begin(outcomes) {
                self.take();
                return true;
            }
            node.finish();
        }
        false
    }

    /// Takes the step that the current node prescribes.
    fn take(&mut self) {
        self.check_position();
        let node = self.nodes.last_mut().expect("there is a node for the current point");
        let outcome = *node.outcomes.last().expect("there is an outcome to try");
        let branch = &mut node.branches[0];
        let step = self.history.next_step(branch.process, outcome, branch.footprint.clone());
        branch.clock = step.clock.clone();
        let mut next = self.spare.pop().unwrap_or_default();
        let planned = branch.take_tree(outcome, node.outcomes.len());
        if !planned.is_empty() {
            next.branches = planned;
        }
        next.sleep.extend(node.sleep.iter().filter(|asleep| !asleep.is_woken_by(&step)).cloned());
        node.tried.push(outcome);
        let started = self.subject.step(step.process, outcome);
        self.history.push(step, started);
        self.nodes.push(next);
        self.summary.steps += 1;
    }

    /// Adds the sequences that reverse the races of the execution to the trees, unless the search is stopped.
    fn reverse_races(&mut self) {
        for position in 0..self.history.steps.len() {
            let step = &self.history.steps[position];
            let (process, races) = (step.process, step.races.len());
            if !step.footprint.waits && races == 0 {
                continue;
            }
            let footprint = step.footprint.clone();
            let late = Late { process, footprint: &footprint, position };
            if footprint.waits {
                self.reverse_waiting_races(late);
                continue;
            }
            for index in 0..races {
                if self.subject.is_stopped() {
                    return;
                }
                let race = self.history.steps[position].races[index];
                self.try_before(race, late);
            }
        }
        // A step that touches everything and ends the program prevents what others were about to do.
        let is_over = self.history.steps.last().is_some_and(|last| last.footprint.everything);
        for process in 0..self.subject.processes() {
            // In an execution that was cut, a process may also wait for a buffer.
            if let Next::Waiting(footprint) = self.subject.next(process)
                && (footprint.waits || is_over)
                && footprint.after.iter().all(|&step| self.history.has(step))
            {
                let position = self.history.steps.len();
                self.reverse_waiting_races(Late { process, footprint: &footprint, position });
            }
        }
        self.check_position();
    }

    fn check_position(&self) {
        debug_assert_eq!(self.nodes.len(), self.history.steps.len() + 1, "every step has a node");
        debug_assert_eq!(
            self.subject.position(),
            self.history.steps.len(),
            "invariant 1: the subject is at the last node"
        );
    }

    /// Reverses the races of a step that waits: those with conflicting steps before which the process is
    /// ready.
    fn reverse_waiting_races(&mut self, late: Late<'_>) {
        let mut races = self.history.waiting_races(late);
        while let Some(race) = races.next(&self.history, late) {
            if self.subject.is_stopped() {
                return;
            }
            if self.ask(race, late, S::ready_after) {
                self.try_before(race, late);
                races.is_race(&self.history);
            }
        }
    }

    /// Asks the subject about a late step, as it would be if it came before a step that it races with.
    fn ask(&mut self, race: usize, late: Late<'_>, question: Question<S>) -> bool {
        let choice = |process: usize, outcome: usize| Choice { process, outcome };
        let (sequence, ..) = self.history.without(race, late);
        let before: Vec<(Choice, &Footprint)> = (sequence.iter())
            .map(|item| (choice(item.process, item.outcome.unwrap_or(0)), &**item.footprint))
            .collect();
        let taken: Vec<Choice> =
            (self.history.steps[race..].iter()).map(|step| choice(step.process, step.outcome)).collect();
        question(self.subject, race, &before, (late.process, late.footprint), &taken)
    }

    /// Plans to try the second step of a race before the first, unless that would lead to executions already
    /// seen.
    fn try_before(&mut self, race: usize, late: Late<'_>) {
        let Late { process, mut footprint, position } = late;
        let first = &self.history.steps[race].footprint;
        let settled;
        if footprint.is_conditional() && first.may_change(footprint) {
            settled = footprint.settled(self.ask(race, late, S::fails_after));
            footprint = &settled;
        }
        let (mut sequence, number, clock) = self.history.without(race, Late { process, footprint, position });
        sequence.push(Item { process, outcome: None, footprint, number, clock: &clock, shared_clock: None });
        let node = &mut self.nodes[race];
        if !node.sleep.iter().any(|asleep| asleep.covers(&sequence)) {
            insert(&mut node.branches, sequence);
        }
    }

    /// Goes back to the last point where something is left to try, and takes that step. Returns false if
    /// there is none.
    fn backtrack(&mut self) -> bool {
        loop {
            if let Some(mut node) = self.nodes.pop() {
                node.clear();
                self.spare.push(node);
            }
            let Some(step) = self.history.pop() else { return false };
            let position = self.history.steps.len();
            let node = self.nodes.last_mut().expect("every step has a node");
            debug_assert_eq!(
                node.branches[0].process, step.process,
                "invariant 2: the first branch is being tried"
            );
            node.outcomes.pop();
            if node.outcomes.is_empty() {
                node.finish();
                if node.branches.is_empty() {
                    continue;
                }
                self.subject.rewind(position);
                self.announce_plan(None);
                if !self.try_branches() {
                    if self.summary.broken {
                        return false;
                    }
                    continue;
                }
            } else {
                let outcome = node.outcomes.last().copied();
                self.subject.rewind(position);
                self.announce_plan(outcome);
                self.take();
            }
            return true;
        }
    }
}
