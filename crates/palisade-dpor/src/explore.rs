//! The search: one execution per partial order.
//!
//! *Problem.* Run a terminating program so that every one of its Mazurkiewicz traces (partial orders of executions, by the conflicts of their steps) is seen, and none twice.
//!
//! *Source.* Optimal-DPOR, Algorithm 2 of Abdulla, Aronis, Jonsson and Sagonas, JACM 64(4), 2017. When an execution has ended, each of its races (two steps that conflict, with nothing
//! between them) is turned round: the steps that do not happen after the first, then the second, become a sequence to be tried where the first was. Sleep
//! sets and wakeup trees leave out what leads to executions already seen.
//!
//! *Guarantee.* Without limits, every trace is seen exactly once, and no execution is broken off because it could only lead to traces already seen. The paper proves it for steps with
//! one outcome that do not wait; for the others `tests/suite/counts.rs` compares with all interleavings, and [`Summary::broken_off`] counts. If an execution was cut
//! at the limit of its length, traces may be missing.
//!
//! *Differences from the paper.*
//! 1. Steps have outcomes; see `wakeup.rs`.
//! 2. Steps may wait (locks). Such a step races with the latest conflicting steps, back through the execution, before which it is ready; whether it is ready is found
//!    out by running the subject. A process that waits when nobody can go on has races too: with them a deadlock leads to the orders without it.
//! 3. Steps may start processes; what these do happens after.
//!
//! *Invariants*: (1) the subject is where the last node of the stack is; (2) the process whose step is being tried at a node is its first branch.

use crate::footprint::Footprint;
use crate::plan::{Choice, Sleeper};
use crate::wakeup::{Asleep, Branch, Item, insert};
use std::ops::ControlFlow;

/// Something whose processes take steps one by one.
///
/// Processes have numbers that are the same in every execution in which they exist: the one that process 2 starts third must not get its number from the order in which
/// processes happen to be started.
pub trait Subject {
    /// All numbers of processes that exist now are below this.
    fn processes(&self) -> usize;

    /// What a process would do next.
    fn next(&mut self, process: usize) -> Next;

    /// How many outcomes the next step of a process can have, at least one. Steps with several are those in which the program itself chooses.
    fn outcomes(&mut self, process: usize) -> usize {
        let _ = process;
        1
    }

    /// A process that is ready takes its next step. The answer is the processes that exist from now on.
    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize>;

    /// Goes back to where it was after so many steps of the present execution.
    fn rewind(&mut self, steps: usize);

    /// What the search is going to do from here: these steps, and then any that are not steps of processes asleep. For subjects to which it is dear to go back: they can
    /// make all of it at once.
    fn plan(&mut self, choices: Vec<Choice>, asleep: Vec<Sleeper>) {
        let _ = (choices, asleep);
    }

    /// The process that the subject would like to take the next step, where it is free.
    fn prefers(&mut self) -> Option<usize> {
        None
    }

    /// Whether a process is ready after the steps of a sequence, taken from a point of the present execution on, each when its turn comes. `taken` are the steps of the execution from that
    /// point on; the subject is back behind them afterwards. The sequence comes with what its steps touch, and the process with what it waits to touch.
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

    /// Whether a step that the search has seen later in another execution can be tried now, and is the same. It always is, unless the subject is [broken](Subject::is_broken).
    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let _ = footprint;
        assert!(matches!(self.next(process), Next::Ready(_)), "what is to be tried is possible");
        true
    }

    /// Whether the execution was broken off by the subject itself where it is now, so that what would come is not known.
    fn is_cut(&self) -> bool {
        false
    }

    /// Whether the search is to end as soon as it can. It is asked at every step.
    fn is_stopped(&mut self) -> bool {
        false
    }

    /// Whether the subject is broken, so that the search cannot go on: it did not do the same again.
    fn is_broken(&self) -> bool {
        false
    }
}

/// What a process would do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing any more, or it does not exist.
    Nothing,
    /// A step.
    Ready(Footprint),
    /// A step for which it has to wait; the footprint [says so](Footprint::waits).
    Waiting(Footprint),
}

/// How far to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Executions are cut after so many steps.
    pub steps: usize,
    /// The search stops after so many executions.
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
    /// Whose.
    pub process: usize,
    /// Which of its outcomes.
    pub outcome: usize,
    /// What it touches.
    pub footprint: Footprint,
    /// How many steps of its process there are up to this one.
    pub number: u32,
    /// By process, how many steps happen before it, itself included.
    pub clock: Vec<u32>,
    /// The steps that it races with, by position.
    races: Vec<usize>,
}

/// An execution, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// Its steps.
    pub steps: &'a [Step],
    /// Why it ends.
    pub ended: Ended,
    nodes: &'a [Node],
}

impl Execution<'_> {
    /// About how much of the search is behind it, from 0 to 1, by what is known to be tried: at every point on the way the branches that are done, are being tried and are waiting count alike. New branches are found
    /// on the way, so it may shrink.
    pub fn behind(&self) -> f64 {
        let (mut behind, mut share) = (0.0, 1.0);
        for node in self.nodes {
            let branches = (node.done + node.branches.len()).max(1) as f64;
            behind += share * node.done as f64 / branches;
            share /= branches;
        }
        behind
    }
}

/// Why an execution ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// No process can go on.
    Complete,
    /// The limit was reached.
    Cut,
}

/// What a search saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Executions shown.
    pub executions: u64,
    /// Executions that were cut at the limit; they are among the executions.
    pub cut: u64,
    /// Executions that were broken off because they could only lead to traces already seen; they are not among the executions.
    pub broken_off: u64,
    /// Steps taken.
    pub steps: u64,
    /// Whether the search was stopped before its end: by whoever sees the executions, or by the limit of their number.
    pub stopped: bool,
    /// Whether the search was stopped because the subject did not do the same again.
    pub broken: bool,
}

impl Summary {
    /// Whether every trace was seen.
    pub fn is_complete(&self) -> bool {
        self.cut == 0 && !self.stopped && !self.broken
    }
}

/// Runs the subject once per trace. `visit` sees each execution when it has ended, with the subject at its end, and may stop the search. Afterwards
/// the subject is at its start.
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
                search.turn_races_round();
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

/// Frees what may be large on a thread of its own: whoever said stop does not wait for it.
pub(crate) fn drop_elsewhere<T: Send + 'static>(what: T) {
    std::thread::spawn(move || drop(what));
}

struct Search<'a, S> {
    subject: &'a mut S,
    steps: Vec<Step>,
    /// One per step, and one for where the execution is now.
    nodes: Vec<Node>,
    /// Processes that were started, and by the step at which position.
    born: Vec<(usize, usize)>,
    /// How many steps each process has taken.
    counts: Vec<usize>,
    limits: Limits,
    summary: Summary,
}

/// A point of the search.
#[derive(Debug, Default)]
struct Node {
    /// Processes whose next step was tried here or is covered by what was tried before.
    sleep: Vec<Asleep>,
    /// What is to be tried; the first is being tried.
    branches: Vec<Branch>,
    /// How many branches are done.
    done: usize,
    /// The outcomes of the first branch that are still to be tried, the present one last.
    outcomes: Vec<usize>,
    /// The outcomes that were tried, the present one included, and how many there are.
    tried: Vec<usize>,
    outcome_count: usize,
}

impl Node {
    /// Begins with the first branch, whose step has so many outcomes. False if nothing of it is to be tried.
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

    /// The first branch is done: what was tried of it is asleep from now on.
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
    /// Takes steps until the execution has ended; `None` if it is not worth going on, or the search is stopped.
    fn descend(&mut self) -> Option<Ended> {
        loop {
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
            let node = self.nodes.last_mut().expect("there is a node for the present point");
            if node.branches.is_empty() {
                let asleep =
                    |process: usize| node.sleep.iter().any(|asleep| asleep.all && asleep.process == process);
                // Who is wished for, or the one that has taken the fewest steps: an execution that is cut has something of everybody.
                let wish = self.subject.prefers();
                let awake = ready.into_iter().filter(|(process, _)| !asleep(*process));
                let (process, footprint) = awake.min_by_key(|(process, _)| {
                    (wish != Some(*process), self.counts.get(*process).copied().unwrap_or(0))
                })?;
                node.branches.push(Branch::leaf(process, footprint));
                if wish.is_some_and(|wish| wish != process) {
                    self.tell_plan(None);
                }
            }
            if !self.try_branches() {
                return None;
            }
        }
    }

    /// Tells the subject what is going to be tried from the present node on, with which outcome of the first step if that is known.
    fn tell_plan(&mut self, outcome: Option<usize>) {
        let node = self.nodes.last().expect("there is a node for the present point");
        let Some(branch) = node.branches.first() else { return };
        let mut asleep: Vec<Sleeper> = (node.sleep.iter().filter(|asleep| asleep.all))
            .map(|asleep| Sleeper { process: asleep.process, footprint: asleep.footprint.clone() })
            .collect();
        let mut choices = Vec::new();
        for (process, outcome, footprint) in branch.first_way(outcome) {
            asleep.retain(|other| other.process != process && !other.footprint.conflicts(footprint));
            choices.push(Choice { process, outcome });
        }
        self.subject.plan(choices, asleep);
    }

    /// Takes the first step that the branches of the present node say. False if there is nothing left to try.
    fn try_branches(&mut self) -> bool {
        let node = self.nodes.last_mut().expect("there is a node for the present point");
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

    /// Takes the step that the present node says.
    fn take(&mut self) {
        let node = self.nodes.last_mut().expect("there is a node for the present point");
        let outcome = *node.outcomes.last().expect("there is something to try");
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
        last.or_else(born).map_or_else(Vec::new, |position| self.steps[position].clock.clone())
    }

    /// A step with its clock and its races.
    fn recorded(&self, process: usize, outcome: usize, footprint: Footprint) -> Step {
        let mut clock = self.base_clock(process);
        let mut races = Vec::new();
        // From the latest step back: what happens before a later conflicting step is no race.
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
        Step { process, outcome, footprint, number, clock, races }
    }

    /// Puts what the races of the execution ask for into the trees, unless the search is stopped.
    fn turn_races_round(&mut self) {
        for position in 0..self.steps.len() {
            if self.subject.is_stopped() {
                return;
            }
            if self.steps[position].footprint.waits {
                let step = &self.steps[position];
                let (process, footprint) = (step.process, step.footprint.clone());
                self.turn_waiting_round(process, &footprint, position);
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
                self.turn_waiting_round(process, &footprint, self.steps.len());
            }
        }
    }

    /// The steps after `race` that do not happen after it, and then the step of a process that was taken, or waits, at a position.
    fn sequence(&self, race: usize, process: usize, footprint: Footprint, position: usize) -> Vec<Item> {
        let first = &self.steps[race];
        let own_last = self.steps[..position].iter().rposition(|step| step.process == process);
        let born = || self.born.iter().find(|(child, _)| *child == process).map(|&(_, position)| position);
        let before = own_last.or_else(born);
        let mut clock = before.map_or_else(Vec::new, |before| self.steps[before].clock.clone());
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
        sequence.push(Item { process, outcome: None, footprint, number, clock });
        sequence
    }

    /// Has the second step of a race tried before the first, unless that would lead to executions already seen.
    fn try_before(&mut self, race: usize, process: usize, footprint: Footprint, position: usize) {
        let sequence = self.sequence(race, process, footprint, position);
        if self.nodes[race].sleep.iter().any(|asleep| asleep.covers(&sequence)) {
            return;
        }
        insert(&mut self.nodes[race].branches, sequence);
    }

    /// Turns the races of a step that waits round: from the latest step back, with those conflicting steps before which the process is ready. What happens before one of them is no race.
    fn turn_waiting_round(&mut self, process: usize, footprint: &Footprint, position: usize) {
        let own_last = self.steps[..position].iter().rposition(|step| step.process == process);
        let born = || self.born.iter().find(|(child, _)| *child == process).map(|&(_, position)| position);
        let mut known =
            own_last.or_else(born).map_or_else(Vec::new, |before| self.steps[before].clock.clone());
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

    /// Goes back to the last point where something is left to try, and takes that step. False if there is none.
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
                self.tell_plan(None);
                if !self.try_branches() {
                    continue;
                }
            } else {
                let outcome = node.outcomes.last().copied();
                self.subject.rewind(position);
                self.tell_plan(outcome);
                self.take();
            }
            return true;
        }
    }
}

/// Whether a step happens before whoever has this clock.
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
