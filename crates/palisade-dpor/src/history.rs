//! The execution so far: its steps, which of them happen before which, and which of them race.
//!
//! A step happens after
//! 1. the earlier steps of its process, and the step that started the process;
//! 2. the steps that its footprint [names](Footprint::after): it cannot be taken without them;
//! 3. the earlier steps that conflict with it (`footprint.rs`).
//!
//! Two steps race if they conflict and nothing else orders them. Clocks represent what happens before a step.

use crate::footprint::{Footprint, Party, StepId, conflict, may_conflict};
use crate::plan::{Choice, Plan, Sleeper};
use crate::wakeup::{Branch, Item};
use smallvec::SmallVec;
use std::sync::Arc;

/// A step of an execution.
#[derive(Clone, Debug)]
pub struct Step {
    /// The process that takes it.
    pub process: usize,
    /// The index of its outcome.
    pub outcome: usize,
    /// What it touches.
    pub footprint: Arc<Footprint>,
    /// The index of this step among those of its process, from 1.
    pub number: u32,
    /// By process, how many of its steps happen before this one, including this one.
    pub clock: Arc<[u32]>,
    /// The positions of the steps that it races with.
    pub(crate) races: SmallVec<[usize; 4]>,
}

impl Step {
    pub(crate) fn party(&self) -> Party<'_, impl Fn(StepId) -> bool + Copy> {
        let clock = &self.clock;
        Party { process: self.process, footprint: &self.footprint, knows: |step| knows(clock, step) }
    }

    fn id(&self) -> StepId {
        StepId { process: self.process as u32, number: self.number }
    }

    /// Whether it happens before another step.
    fn before(&self, other: &Step) -> bool {
        knows(&other.clock, self.id())
    }
}

/// Room for most sequences. Larger pieces of memory take longer to allocate.
const USUAL_SEQUENCE: usize = 16;

/// A clock that is being computed: by process, how many of its steps happen before.
pub(crate) type Clock = SmallVec<[u32; 16]>;

/// An execution in progress.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub steps: Vec<Step>,
    /// By step, the [mask](Footprint::mask) of what it touches, and which step of its process it is. Most steps are
    /// passed over by these alone.
    marks: Vec<(u64, StepId)>,
    /// By process, the positions of its steps.
    positions: Vec<Vec<usize>>,
    /// Started processes, each with the position of the step that started it.
    born: Vec<(usize, usize)>,
}

/// A step that was taken at a position, or that waits to be taken there.
#[derive(Clone, Copy)]
pub(crate) struct Late<'a> {
    pub process: usize,
    pub footprint: &'a Arc<Footprint>,
    pub position: usize,
}

impl History {
    /// How many steps a process has taken.
    pub fn count(&self, process: usize) -> usize {
        self.positions.get(process).map_or(0, Vec::len)
    }

    /// Adds a step, which has started some processes.
    pub fn push(&mut self, step: Step, started: Vec<usize>) {
        let position = self.steps.len();
        self.born.extend(started.into_iter().map(|child| (child, position)));
        if self.positions.len() <= step.process {
            self.positions.resize(step.process + 1, Vec::new());
        }
        self.positions[step.process].push(position);
        self.marks.push((step.footprint.mask(), step.id()));
        self.steps.push(step);
    }

    /// Takes back the last step.
    pub fn pop(&mut self) -> Option<Step> {
        let step = self.steps.pop()?;
        self.marks.pop();
        self.positions[step.process].pop();
        let position = self.steps.len();
        while self.born.last().is_some_and(|&(_, by)| by == position) {
            self.born.pop();
        }
        Some(step)
    }

    /// How an execution begins that tries a branch after this many steps, with the outcome of the branch's own
    /// step if it is known.
    pub fn plan(
        &self,
        from: usize,
        mut asleep: Vec<Sleeper>,
        branch: &Branch,
        outcome: Option<usize>,
    ) -> Plan {
        let before = |of: usize| {
            self.positions.get(of).map_or(0, |own| own.partition_point(|&position| position < from))
        };
        let mut choices: Vec<Choice> = Vec::new();
        for (process, outcome, footprint) in branch.first_path(outcome) {
            let planned = |of: usize| choices.iter().filter(|choice| choice.process == of).count();
            let taken = |of: usize| before(of) + planned(of);
            asleep.retain(|other| !other.is_woken_by(process, footprint, taken));
            choices.push(Choice { process, outcome });
        }
        Plan { from, choices, asleep }
    }

    /// Whether a step was taken.
    pub fn has(&self, step: StepId) -> bool {
        self.count(step.process as usize) >= step.number as usize
    }

    /// Where a step was taken.
    fn position_of(&self, step: StepId) -> Option<usize> {
        self.positions.get(step.process as usize)?.get((step.number as usize).checked_sub(1)?).copied()
    }

    /// What happens before a step, whatever it conflicts with.
    fn base_clock(&self, late: Late<'_>) -> Clock {
        let own = self.positions.get(late.process).map_or(&[][..], Vec::as_slice);
        let last = own[..own.partition_point(|&at| at < late.position)].last().copied();
        let born =
            || self.born.iter().find(|(child, _)| *child == late.process).map(|&(_, position)| position);
        let mut clock =
            last.or_else(born).map_or_else(Clock::new, |at| Clock::from_slice(&self.steps[at].clock));
        for &step in late.footprint.after.iter().filter(|step| step.number > 0) {
            let at = self.position_of(step).expect("a step is ready only after the steps that it names");
            join(&mut clock, &self.steps[at].clock);
        }
        clock
    }

    /// The next step, with its clock and its races.
    pub fn next_step(&self, process: usize, outcome: usize, footprint: Arc<Footprint>) -> Step {
        let late = Late { process, footprint: &footprint, position: self.steps.len() };
        let mut clock = self.base_clock(late);
        let mut races = SmallVec::new();
        let mask = footprint.mask();
        if mask != 0 {
            let next = Party { process, footprint: &footprint, knows: |step: StepId| self.has(step) };
            // From the latest step back. A step that happens before a later conflicting step does not race.
            for (position, &(other, id)) in self.marks.iter().enumerate().rev() {
                if !may_conflict(other, mask) || knows(&clock, id) {
                    continue;
                }
                let step = &self.steps[position];
                if conflict(step.party(), next) {
                    join(&mut clock, &step.clock);
                    races.push(position);
                }
            }
        }
        let number = tick(&mut clock, process);
        Step { process, outcome, footprint, number, clock: Arc::from(clock.as_slice()), races }
    }

    /// The steps after `race` that do not happen after it: what is left of an execution in which `race` comes
    /// late. Also returns the clock of a late step that comes after all of them.
    pub fn without(&self, race: usize, late: Late<'_>) -> (Vec<Item<'_>>, u32, Clock) {
        let first = &self.steps[race];
        let mut clock = self.base_clock(late);
        let is_left = |at: usize| at < race || (at > race && !first.before(&self.steps[at]));
        let last = Party {
            process: late.process,
            footprint: late.footprint,
            knows: |step: StepId| self.position_of(step).is_some_and(is_left),
        };
        let mask = late.footprint.mask();
        let mut sequence = Vec::with_capacity((self.steps.len() - race).min(USUAL_SEQUENCE));
        let (of, number) = (first.process, first.number);
        for (step, &(other, _)) in self.steps[race + 1..].iter().zip(&self.marks[race + 1..]) {
            if step.clock.get(of).is_some_and(|&known| known >= number) {
                continue;
            }
            if may_conflict(other, mask) && step.process != late.process && conflict(step.party(), last) {
                join(&mut clock, &step.clock);
            }
            sequence.push(Item {
                process: step.process,
                outcome: Some(step.outcome),
                footprint: &step.footprint,
                number: step.number,
                clock: &step.clock,
                shared_clock: Some(&step.clock),
            });
        }
        // What comes before `race` is not part of the sequence, so it does not matter whether it happens before
        // the late step; except for writes of the same memory, which do.
        clock.resize(clock.len().max(self.positions.len()), 0);
        for (known, positions) in clock.iter_mut().zip(&self.positions) {
            *known = (*known).max(positions.partition_point(|&at| at < race) as u32);
        }
        let number = tick(&mut clock, late.process);
        (sequence, number, clock)
    }

    /// The steps that a waiting step may race with, from the latest back: those that conflict with it and do
    /// not happen before one that is known to be a race.
    pub fn waiting_races(&self, late: Late<'_>) -> WaitingRaces {
        WaitingRaces { known: self.base_clock(late), next: late.position }
    }
}

/// Goes through the steps that a waiting step may race with.
pub(crate) struct WaitingRaces {
    known: Clock,
    next: usize,
}

impl WaitingRaces {
    /// The next earlier one.
    pub fn next(&mut self, history: &History, late: Late<'_>) -> Option<usize> {
        let at = |step: StepId| history.position_of(step).is_some_and(|at| at < late.position);
        let waiting = Party { process: late.process, footprint: late.footprint, knows: at };
        let mask = late.footprint.mask();
        while self.next > 0 {
            self.next -= 1;
            let step = &history.steps[self.next];
            if may_conflict(history.marks[self.next].0, mask)
                && !knows(&self.known, step.id())
                && conflict(step.party(), waiting)
            {
                return Some(self.next);
            }
        }
        None
    }

    /// The last one is a race, so steps that happen before it are not.
    pub fn is_race(&mut self, history: &History) {
        join(&mut self.known, &history.steps[self.next].clock);
    }
}

/// Whether a step happens before the holder of this clock.
pub(crate) fn knows(clock: &[u32], step: StepId) -> bool {
    clock.get(step.process as usize).is_some_and(|&known| known >= step.number)
}

fn join(into: &mut Clock, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

/// Counts a step of a process, and returns which one it is.
fn tick(clock: &mut Clock, process: usize) -> u32 {
    if clock.len() <= process {
        clock.resize(process + 1, 0);
    }
    clock[process] += 1;
    clock[process]
}
