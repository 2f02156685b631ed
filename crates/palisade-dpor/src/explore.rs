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
//! For other steps, `tests/suite/counts.rs` compares with all interleavings, and [`Summary::broken_off`]
//! counts abandoned executions. If an execution was cut at the limit of its length, traces may be missing.
//!
//! *Differences from the paper.*
//! 1. Steps have outcomes; see `wakeup.rs`.
//! 2. Steps may wait (locks). Such a step races with the latest conflicting steps, back through the
//!    execution, before which it is ready. The subject is run to find out whether it is ready. If no process
//!    can continue, the waiting steps have races too: so a deadlock leads to the orders without it.
//! 3. Steps may start processes. The steps of a started process happen after its start.
//!
//! *Invariants*
//! 1. The subject is at the last node of the stack whenever the search looks at it or takes a step (checked
//!    before each step and after races are reversed).
//! 2. The process whose step is being tried at a node is that of its first branch (checked when the search
//!    goes back).

use crate::footprint::Footprint;
use crate::plan::{Choice, Sleeper};
use crate::wakeup::{Asleep, Branch, Item, insert};
use std::ops::ControlFlow;
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

    /// How many outcomes the next step of a process can have, at least one. Steps with several outcomes are
    /// those in which the program itself chooses.
    fn outcomes(&mut self, process: usize) -> usize {
        let _ = process;
        1
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

    /// Whether a step that the search saw later in another execution can be tried now and is the same. It
    /// always can, unless the subject is [broken](Subject::is_broken).
    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let _ = footprint;
        assert!(matches!(self.next(process), Next::Ready(_)), "a step to try is ready");
        true
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
    Ready(Footprint),
    /// A step for which it has to wait; the footprint has [`waits`](Footprint::waits) set.
    Waiting(Footprint),
}

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

/// A step of an execution.
#[derive(Clone, Debug)]
pub struct Step {
    /// The process that takes it.
    pub process: usize,
    /// The index of its outcome.
    pub outcome: usize,
    /// What it touches.
    pub footprint: Footprint,
    /// The index of this step among those of its process, from 1.
    pub number: u32,
    /// By process, how many of its steps happen before this one, including this one.
    pub clock: Arc<[u32]>,
    /// The positions of the steps that it races with.
    races: Vec<usize>,
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
        steps: Vec::new(),
        nodes: vec![Node::default()],
        born: Vec::new(),
        counts: Vec::new(),
        limits,
        summary: Summary::default(),
    };
    loop {
        let ended = search.descend();
        if search.subject.is_stopped() {
            search.summary.stopped = true;
            break;
        }
        if search.subject.is_broken() {
            search.summary.broken = true;
            break;
        }
        match ended {
            Some(ended) => {
                search.summary.executions += 1;
                search.summary.cut += u64::from(ended == Ended::Cut);
                if visit(search.subject, Execution { steps: &search.steps, ended, nodes: &search.nodes })
                    .is_break()
                {
                    search.summary.stopped = true;
                    break;
                }
                search.reverse_races();
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
        if !search.backtrack() {
            break;
        }
        if search.summary.executions >= limits.executions {
            search.summary.stopped = true;
            break;
        }
    }
    search.subject.rewind(0);
    let Search { steps, nodes, summary, .. } = search;
    if summary.stopped {
        drop_elsewhere((steps, nodes));
    }
    summary
}

/// Frees data that may be large on a separate thread, so that a stopped search ends without waiting for it.
pub(crate) fn drop_elsewhere<T: Send + 'static>(what: T) {
    std::thread::spawn(move || drop(what));
}

struct Search<'a, S> {
    subject: &'a mut S,
    steps: Vec<Step>,
    /// One per step, and one for the current end of the execution.
    nodes: Vec<Node>,
    /// Started processes, each with the position of the step that started it.
    born: Vec<(usize, usize)>,
    /// The number of steps that each process has taken.
    counts: Vec<usize>,
    limits: Limits,
    summary: Summary,
}

/// A point of the search.
#[derive(Debug, Default)]
struct Node {
    /// Processes whose next step was tried here or is covered by what was tried before.
    sleep: Vec<Asleep>,
    /// What to try; the first branch is being tried.
    branches: Vec<Branch>,
    /// The number of finished branches.
    done: usize,
    /// The outcomes of the first branch that are still to be tried, the current one last.
    outcomes: Vec<usize>,
    /// The outcomes tried so far, including the current one, and how many there are.
    tried: Vec<usize>,
    outcome_count: usize,
}

impl Node {
    /// Starts the first branch, whose step has this many outcomes. Returns false if none of them is to be
    /// tried.
    fn begin(&mut self, outcomes: usize) -> bool {
        let branch = &self.branches[0];
        let asleep = self.sleep.iter().find(|asleep| asleep.process == branch.process);
        let tried =
            |outcome: &usize| asleep.is_some_and(|asleep| asleep.all || asleep.outcomes.contains(outcome));
        let wanted = |outcome: &usize| branch.wants(*outcome) && !tried(outcome);
        self.outcomes = (0..outcomes).rev().filter(wanted).collect();
        self.tried = Vec::new();
        self.outcome_count = outcomes;
        !self.outcomes.is_empty()
    }

    /// Finishes the first branch: what was tried of it is asleep from now on.
    fn finish(&mut self) {
        let branch = self.branches.remove(0);
        self.done += 1;
        let (process, footprint) = (branch.process, branch.footprint.clone());
        let tried = std::mem::take(&mut self.tried);
        let count = self.outcome_count;
        match self.sleep.iter_mut().find(|asleep| asleep.process == process) {
            Some(asleep) => {
                asleep.outcomes.extend(tried);
                asleep.all |= asleep.outcomes.len() == count;
            }
            None => {
                let all = tried.len() == count;
                self.sleep.push(Asleep { process, footprint, outcomes: tried, all });
            }
        }
    }
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
            let ready: Vec<(usize, Footprint)> = (0..self.subject.processes())
                .filter_map(|process| match self.subject.next(process) {
                    Next::Ready(footprint) => Some((process, footprint)),
                    Next::Nothing | Next::Waiting(_) => None,
                })
                .collect();
            if ready.is_empty() {
                return Some(if self.subject.is_cut() { Ended::Cut } else { Ended::Complete });
            }
            if self.steps.len() >= self.limits.steps {
                return Some(Ended::Cut);
            }
            let node = self.nodes.last_mut().expect("there is a node for the current point");
            if node.branches.is_empty() {
                let asleep =
                    |process: usize| node.sleep.iter().any(|asleep| asleep.all && asleep.process == process);
                // The preferred process, or the one that has taken the fewest steps. So all processes take
                // part in an execution that is cut.
                let wish = self.subject.prefers();
                let awake = ready.into_iter().filter(|(process, _)| !asleep(*process));
                let (process, footprint) = awake.min_by_key(|(process, _)| {
                    (wish != Some(*process), self.counts.get(*process).copied().unwrap_or(0))
                })?;
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
        let mut asleep: Vec<Sleeper> = (node.sleep.iter().filter(|asleep| asleep.all))
            .map(|asleep| Sleeper { process: asleep.process, footprint: asleep.footprint.clone() })
            .collect();
        let mut choices = Vec::new();
        for (process, outcome, footprint) in branch.first_path(outcome) {
            asleep.retain(|other| other.process != process && !other.footprint.conflicts(footprint));
            choices.push(Choice { process, outcome });
        }
        self.subject.plan(choices, asleep);
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
            if node.begin(self.subject.outcomes(process).max(1)) {
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
        let (process, footprint) = (branch.process, branch.footprint.clone());
        let branches = branch.take_tree(outcome, node.outcomes.len());
        let asleep = |other: &&Asleep| other.process != process && !other.footprint.conflicts(&footprint);
        let sleep = node.sleep.iter().filter(asleep).cloned().collect();
        node.tried.push(outcome);
        let step = self.recorded(process, outcome, footprint);
        let started = self.subject.step(process, outcome);
        self.born.extend(started.into_iter().map(|child| (child, self.steps.len())));
        if self.counts.len() <= process {
            self.counts.resize(process + 1, 0);
        }
        self.counts[process] += 1;
        self.steps.push(step);
        self.nodes.push(Node { sleep, branches, ..Node::default() });
        self.summary.steps += 1;
    }

    /// What happens before the next step of a process because of its own steps and its start.
    fn base_clock(&self, process: usize) -> Vec<u32> {
        let last = self.steps.iter().rposition(|step| step.process == process);
        let born = || self.born.iter().find(|(child, _)| *child == process).map(|&(_, position)| position);
        last.or_else(born).map_or_else(Vec::new, |position| self.steps[position].clock.to_vec())
    }

    /// A step with its clock and its races.
    fn recorded(&self, process: usize, outcome: usize, footprint: Footprint) -> Step {
        let mut clock = self.base_clock(process);
        let mut races = Vec::new();
        // From the latest step back. A step that happens before a later conflicting step does not race.
        for (position, step) in self.steps.iter().enumerate().rev() {
            if !knows(&clock, step) && step.footprint.conflicts(&footprint) {
                join(&mut clock, &step.clock);
                races.push(position);
            }
        }
        let number = clock.get(process).copied().unwrap_or(0) + 1;
        if clock.len() <= process {
            clock.resize(process + 1, 0);
        }
        clock[process] = number;
        Step { process, outcome, footprint, number, clock: clock.into(), races }
    }

    /// Adds the sequences that reverse the races of the execution to the trees, unless the search is stopped.
    fn reverse_races(&mut self) {
        for position in 0..self.steps.len() {
            if self.subject.is_stopped() {
                return;
            }
            if self.steps[position].footprint.waits {
                let step = &self.steps[position];
                let (process, footprint) = (step.process, step.footprint.clone());
                self.reverse_waiting_races(process, &footprint, position);
            } else {
                for race in self.steps[position].races.clone() {
                    if self.subject.is_stopped() {
                        return;
                    }
                    let (process, footprint) =
                        (self.steps[position].process, self.steps[position].footprint.clone());
                    self.try_before(race, process, footprint, position);
                }
            }
        }
        for process in 0..self.subject.processes() {
            if let Next::Waiting(footprint) = self.subject.next(process) {
                self.reverse_waiting_races(process, &footprint, self.steps.len());
            }
        }
        self.check_position();
    }

    fn check_position(&self) {
        debug_assert_eq!(self.nodes.len(), self.steps.len() + 1, "every step has a node");
        debug_assert_eq!(
            self.subject.position(),
            self.steps.len(),
            "invariant 1: the subject is at the last node"
        );
    }

    /// The steps after `race` that do not happen after it, and then the step of a process that was taken, or
    /// waits, at a position.
    fn sequence(&self, race: usize, process: usize, footprint: Footprint, position: usize) -> Vec<Item> {
        let first = &self.steps[race];
        let own_last = self.steps[..position].iter().rposition(|step| step.process == process);
        let born = || self.born.iter().find(|(child, _)| *child == process).map(|&(_, position)| position);
        let before = own_last.or_else(born);
        let mut clock = before.map_or_else(Vec::new, |before| self.steps[before].clock.to_vec());
        let mut sequence = Vec::new();
        for step in self.steps[race + 1..].iter().filter(|step| !knows(&step.clock, first)) {
            if step.footprint.conflicts(&footprint) {
                join(&mut clock, &step.clock);
            }
            sequence.push(Item {
                process: step.process,
                outcome: Some(step.outcome),
                footprint: step.footprint.clone(),
                number: step.number,
                clock: step.clock.clone(),
            });
        }
        let number = clock.get(process).copied().unwrap_or(0) + 1;
        if clock.len() <= process {
            clock.resize(process + 1, 0);
        }
        clock[process] = number;
        sequence.push(Item { process, outcome: None, footprint, number, clock: clock.into() });
        sequence
    }

    /// Plans to try the second step of a race before the first, unless that would lead to executions already
    /// seen.
    fn try_before(&mut self, race: usize, process: usize, footprint: Footprint, position: usize) {
        let sequence = self.sequence(race, process, footprint, position);
        if self.nodes[race].sleep.iter().any(|asleep| asleep.covers(&sequence)) {
            return;
        }
        insert(&mut self.nodes[race].branches, sequence);
    }

    /// Reverses the races of a step that waits: from the latest step back, those with conflicting steps
    /// before which the process is ready. A step that happens before one of them does not race.
    fn reverse_waiting_races(&mut self, process: usize, footprint: &Footprint, position: usize) {
        let own_last = self.steps[..position].iter().rposition(|step| step.process == process);
        let born = || self.born.iter().find(|(child, _)| *child == process).map(|&(_, position)| position);
        let mut known =
            own_last.or_else(born).map_or_else(Vec::new, |before| self.steps[before].clock.to_vec());
        for race in (0..position).rev() {
            let step = &self.steps[race];
            if knows(&known, step) || !step.footprint.conflicts(footprint) {
                continue;
            }
            if self.subject.is_stopped() {
                return;
            }
            let sequence = self.sequence(race, process, footprint.clone(), position);
            let choice = |process: usize, outcome: usize| Choice { process, outcome };
            let before: Vec<(Choice, &Footprint)> = sequence[..sequence.len() - 1]
                .iter()
                .map(|item| (choice(item.process, item.outcome.unwrap_or(0)), &item.footprint))
                .collect();
            let taken: Vec<Choice> =
                self.steps[race..].iter().map(|step| choice(step.process, step.outcome)).collect();
            if self.subject.ready_after(race, &before, (process, footprint), &taken) {
                self.try_before(race, process, footprint.clone(), position);
                join(&mut known, &self.steps[race].clock);
            }
        }
    }

    /// Goes back to the last point where something is left to try, and takes that step. Returns false if
    /// there is none.
    fn backtrack(&mut self) -> bool {
        loop {
            self.nodes.pop();
            let Some(step) = self.steps.pop() else { return false };
            self.counts[step.process] -= 1;
            let position = self.steps.len();
            self.born.retain(|&(_, by)| by != position);
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

/// Whether a step happens before the holder of this clock.
fn knows(clock: &[u32], step: &Step) -> bool {
    clock.get(step.process).copied().unwrap_or(0) >= step.number
}

fn join(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}
