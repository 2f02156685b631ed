//! What happened in a run of a program: which process took which step, and what every process was about to do
//! at every point.

use crate::footprint::Footprint;
use crate::plan::Choice;
use std::sync::Arc;

/// What happened in a run. It is written during the run: [`will`](Recording::will),
/// [`waits`](Recording::waits) and [`ends`](Recording::ends) state what processes are about to do, and
/// [`step`](Recording::step) that a step was taken.
///
/// Most steps change what one process is about to do, so only changes are kept: memory grows with the steps,
/// not with steps times processes.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    processes: Vec<Ahead>,
    /// Processes that are store buffers, each with its thread.
    buffers: Vec<(usize, usize)>,
    pub(crate) steps: Vec<RecordedStep>,
    pub(crate) is_cut: bool,
}

/// What a process was about to do: from which position on, and what. Positions increase. There is nothing
/// before the first position.
type Ahead = Vec<(usize, Option<Pending>)>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pending {
    pub footprint: Arc<Footprint>,
    pub ready: bool,
    pub label: Label,
}

/// An opaque label for a step. It is stored and handed back, and has no meaning here.
pub type Label = [u64; 2];

/// The next step of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Foreseen {
    /// A step.
    Step {
        /// What it touches.
        footprint: Footprint,
        /// Its label, if that is still known.
        label: Option<Label>,
        /// Whether it can be taken now.
        ready: bool,
    },
    /// Nothing: the process has ended, or does not exist.
    Nothing,
}

impl Foreseen {
    pub(crate) fn of(pending: Option<&Pending>) -> Foreseen {
        pending.map_or(Foreseen::Nothing, |pending| Foreseen::Step {
            footprint: Footprint::clone(&pending.footprint),
            label: Some(pending.label),
            ready: pending.ready,
        })
    }
}

impl RecordedStep {
    pub(crate) fn foreseen(&self) -> Foreseen {
        Foreseen::Step { footprint: Footprint::clone(&self.footprint), label: Some(self.label), ready: true }
    }
}

/// The first point at which the program did not repeat itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The number of steps before it.
    pub position: usize,
    /// A process that was about to do something else.
    pub process: usize,
    /// Its next step in the earlier run.
    pub expected: Foreseen,
    /// Its next step in this run.
    pub happened: Foreseen,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordedStep {
    pub choice: Choice,
    pub outcomes: usize,
    pub footprint: Arc<Footprint>,
    label: Label,
    pub open: Option<(u64, bool)>,
    pub held: Option<u64>,
    pub started: Vec<usize>,
}

impl Recording {
    /// An empty recording.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// The process will touch this next, and is ready to. A process that is named for the first time was
    /// started by the last step, if there is one.
    pub fn will(&mut self, process: usize, footprint: impl Into<Arc<Footprint>>) {
        self.will_as(process, footprint, Label::default());
    }

    /// The same, with a label for the step.
    pub fn will_as(&mut self, process: usize, footprint: impl Into<Arc<Footprint>>, label: Label) {
        self.will_when(process, footprint, label, true);
    }

    /// The same, and whether it is ready; see [`waits`](Recording::waits).
    pub fn will_when(
        &mut self,
        process: usize,
        footprint: impl Into<Arc<Footprint>>,
        label: Label,
        ready: bool,
    ) {
        if self.processes.len() <= process {
            self.processes.resize(process + 1, Ahead::new());
        }
        if self.processes[process].is_empty()
            && let Some(step) = self.steps.last_mut()
        {
            step.started.push(process);
        }
        let footprint = footprint.into();
        debug_assert!(ready || is_awaited(&footprint), "{AWAITED}");
        self.set(process, Some(Pending { footprint, ready, label }));
    }

    /// A process is a store buffer of a thread. This matters only to
    /// [`explore_preemptions`](crate::explore_preemptions), and may be repeated.
    pub fn buffers_for(&mut self, buffer: usize, thread: usize) {
        if !self.buffers.contains(&(buffer, thread)) {
            self.buffers.push((buffer, thread));
        }
    }

    /// Processes that are store buffers, each with its thread.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.buffers.iter().copied()
    }

    /// Whether a process has to wait for its next step. Its footprint must have [`waits`](Footprint::waits)
    /// set, or name the steps that it waits for ([`after`](Footprint::after)).
    pub fn waits(&mut self, process: usize, waits: bool) {
        let Some(pending) = self.now(process) else { return };
        debug_assert!(!waits || is_awaited(&pending.footprint), "{AWAITED}");
        if pending.ready == waits {
            let pending = Pending { ready: !waits, ..pending.clone() };
            self.set(process, Some(pending));
        }
    }

    /// The last step has ended the whole program: what a process was about to do does not happen any more. It could have
    /// happened before, so the search tries that. The last step must touch [everything](Footprint::everything).
    pub fn is_prevented(&mut self, process: usize) {
        if let Some(pending) = self.now(process) {
            let pending = Pending { ready: false, ..pending.clone() };
            self.set(process, Some(pending));
        }
    }

    /// A process takes no further steps.
    pub fn ends(&mut self, process: usize) {
        if self.now(process).is_some() {
            self.set(process, None);
        }
    }

    /// A process takes its next step, which could have had this many outcomes. What it does after that must
    /// be recorded before the next step.
    ///
    /// `open` saves runs. It is about an object that the step touches and that others wait for: its address,
    /// and whether a process that waits for it, and touches nothing else, would have been ready before this
    /// step. For a mutex: whether it was free.
    ///
    /// # Panics
    /// If the next step of the process was not recorded.
    pub fn step(&mut self, choice: Choice, outcomes: usize, open: Option<(u64, bool)>) {
        let pending = self.now(choice.process).expect("a step is recorded only after it was announced");
        let (footprint, label) = (pending.footprint.clone(), pending.label);
        let (held, started) = (None, Vec::new());
        self.steps.push(RecordedStep { choice, outcomes, footprint, label, open, held, started });
        self.set(choice.process, None);
    }

    /// The last step was [conditional](Footprint::writes), and has written nothing. Steps that are not conditional
    /// stay as they were announced.
    pub fn fails(&mut self) {
        if let Some(step) = self.steps.last_mut().filter(|step| step.footprint.is_conditional()) {
            step.footprint = step.footprint.settled(true);
        }
    }

    /// The number that the last step has replaced in memory, if it touches one range, of at most 8 bytes. This saves
    /// runs to find out whether a [conditional](Footprint::writes) step fails.
    pub fn held(&mut self, number: u64) {
        if let Some(step) = self.steps.last_mut() {
            step.held = Some(number);
        }
    }

    /// The run was cut off here: processes might have continued.
    pub fn cut(&mut self) {
        self.is_cut = true;
        (0..self.processes.len()).for_each(|process| self.ends(process));
    }

    /// From now on, the process is about to do this.
    fn set(&mut self, process: usize, pending: Option<Pending>) {
        let position = self.steps.len();
        match self.processes[process].last_mut() {
            Some((from, last)) if *from == position => *last = pending,
            _ => self.processes[process].push((position, pending)),
        }
    }

    /// Goes back to the point before a step: what was recorded from that step on is forgotten. The step must have been
    /// taken.
    ///
    /// # Panics
    /// If it was not.
    pub fn rewind(&mut self, step: usize) {
        assert!(step < self.steps.len(), "a recording goes back to the point before one of its steps");
        self.steps.truncate(step);
        for ahead in &mut self.processes {
            while ahead.last().is_some_and(|(from, _)| *from > step) {
                ahead.pop();
            }
        }
        self.is_cut = false;
    }

    /// The number of steps taken.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step was taken.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The choices that were made.
    pub fn choices(&self) -> impl ExactSizeIterator<Item = Choice> {
        self.steps.iter().map(|step| step.choice)
    }

    /// Whether no process is about to do anything.
    pub fn is_over(&self) -> bool {
        (0..self.processes.len()).all(|process| self.now(process).is_none())
    }

    /// Whether some process is waiting now and none is ready.
    pub fn is_stuck(&self) -> bool {
        let mut pending = (0..self.processes.len()).filter_map(|process| self.now(process)).peekable();
        pending.peek().is_some() && pending.all(|pending| !pending.ready)
    }

    /// The first point at which another run of the same program differs from this one. As long as both make
    /// the same choices, processes must be about to do the same.
    pub fn difference(&self, other: &Recording) -> Option<Divergence> {
        let common = self.choices().zip(other.choices()).take_while(|(a, b)| a == b).count();
        let ended = self.is_cut || other.is_cut;
        let last = common.min(if ended { self.len().min(other.len()).saturating_sub(1) } else { common });
        let outcomes = |recording: &Recording, position: usize| {
            let step = &recording.steps[position];
            (step.outcomes, step.footprint.may_write())
        };
        let chosen = (0..common.min(last + 1))
            .find(|&position| outcomes(self, position) != outcomes(other, position))
            .map(|position| (position, self.steps[position].choice.process));
        let processes = 0..self.processes.len().max(other.processes.len());
        let pending = processes.filter_map(|process| {
            let position = first_difference(self.ahead(process), other.ahead(process), last)?;
            Some((position, process))
        });
        // At the same position, what processes are about to do counts before the outcomes of the step.
        let first = pending.min();
        let (position, process) = match (first, chosen) {
            (Some(first), Some(chosen)) => {
                if chosen.0 < first.0 {
                    chosen
                } else {
                    first
                }
            }
            (first, chosen) => first.or(chosen)?,
        };
        Some(Divergence {
            position,
            process,
            expected: Foreseen::of(self.pending(position, process)),
            happened: Foreseen::of(other.pending(position, process)),
        })
    }

    /// Whether two recordings say the same.
    pub fn is_same(&self, other: &Recording) -> bool {
        let all = 0..self.processes.len().max(other.processes.len());
        self.steps == other.steps
            && self.is_cut == other.is_cut
            && all.into_iter().all(|process| self.ahead(process) == other.ahead(process))
    }

    /// The step of a process with this index, if it has taken that many.
    fn step_of(&self, process: usize, index: usize) -> Option<Foreseen> {
        let mut own = self.steps.iter().filter(|step| step.choice.process == process);
        own.nth(index).map(RecordedStep::foreseen)
    }

    /// Where another run departs from a path, compared with this one.
    pub(crate) fn departure(&self, path: &[Choice], other: &Recording) -> Option<Divergence> {
        let position = other.choices().zip(path).take_while(|(taken, wanted)| taken == *wanted).count();
        let process = path.get(position)?.process;
        let index = path[..position].iter().filter(|choice| choice.process == process).count();
        let happened = Foreseen::of(other.pending(position, process));
        let last = || Foreseen::of(self.now(process));
        let expected = self.step_of(process, index).unwrap_or_else(last);
        Some(Divergence { position, process, expected, happened })
    }

    /// The number of processes that were named.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// What a process was about to do after this many steps, or at the end if there are fewer.
    pub(crate) fn pending(&self, position: usize, process: usize) -> Option<&Pending> {
        let ahead = self.ahead(process);
        let later = ahead.partition_point(|(from, _)| *from <= position);
        ahead[..later].last().and_then(|(_, pending)| pending.as_ref())
    }

    /// What a process is about to do now.
    fn now(&self, process: usize) -> Option<&Pending> {
        self.ahead(process).last().and_then(|(_, pending)| pending.as_ref())
    }

    fn ahead(&self, process: usize) -> &[(usize, Option<Pending>)] {
        self.processes.get(process).map_or(&[], Vec::as_slice)
    }
}

const AWAITED: &str = "the footprint of a waiting step has `waits` set or names what it waits for";

/// Whether others can make a step ready.
fn is_awaited(footprint: &Footprint) -> bool {
    footprint.waits || !footprint.after.is_empty()
}

/// What a process is about to do after this many changes, and whether it is ready.
fn does(ahead: &[(usize, Option<Pending>)], changes: usize) -> Option<(&Footprint, bool)> {
    let pending = ahead[..changes].last().and_then(|(_, pending)| pending.as_ref());
    pending.map(|pending| (&*pending.footprint, pending.ready))
}

/// The first position, up to the last one given, at which a process was about to do different things in two
/// runs.
fn first_difference(
    before: &[(usize, Option<Pending>)],
    now: &[(usize, Option<Pending>)],
    last: usize,
) -> Option<usize> {
    let (mut a, mut b) = (0, 0);
    loop {
        let from = |ahead: &[(usize, Option<Pending>)], next: usize| ahead.get(next).map(|(from, _)| *from);
        let position = from(before, a).into_iter().chain(from(now, b)).min().filter(|&at| at <= last)?;
        a += usize::from(from(before, a) == Some(position));
        b += usize::from(from(now, b) == Some(position));
        if does(before, a) != does(now, b) {
            return Some(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::footprint::Mode;
    use palisade_conformance::random::Random;
    use palisade_conformance::seeds;

    /// A run of a few processes in which everything is random.
    fn recording(random: &mut Random, steps: usize) -> Recording {
        let mut recording = Recording::new();
        let footprint = |random: &mut Random| {
            let waits = random.percent(30);
            Footprint { waits, ..Footprint::one(random.below(2) as u64, 1, Mode::Write) }
        };
        for _ in 0..steps {
            for process in 0..random.between(1, 4) {
                let pending = recording.now(process).cloned();
                match random.below(4) {
                    0 => recording.ends(process),
                    1 => recording.waits(process, pending.is_some_and(|pending| pending.footprint.waits)),
                    _ => recording.will(process, footprint(random)),
                }
            }
            recording.will(0, footprint(random));
            let ready = (0..recording.processes()).find(|&process| recording.now(process).is_some());
            let process = ready.expect("process 0 is about to do something");
            recording.step(Choice { process, outcome: 0 }, random.between(1, 3), None);
        }
        recording
    }

    /// The first difference, from comparing all processes at all positions.
    fn difference(a: &Recording, b: &Recording) -> Option<(usize, usize)> {
        let common = a.choices().zip(b.choices()).take_while(|(a, b)| a == b).count();
        (0..=common).find_map(|position| {
            let does = |run: &Recording, process: usize| {
                run.pending(position, process).map(|pending| (pending.footprint.clone(), pending.ready))
            };
            let processes = 0..a.processes().max(b.processes());
            let differs = processes.into_iter().find(|&process| does(a, process) != does(b, process));
            let outcomes = || position < common && a.steps[position].outcomes != b.steps[position].outcomes;
            let chosen = || outcomes().then(|| a.steps[position].choice.process);
            Some((position, differs.or_else(chosen)?))
        })
    }

    /// Going back forgets exactly what came later.
    #[test]
    fn going_back() {
        for seed in seeds(100) {
            let whole = recording(&mut Random::new(seed), 6);
            for step in 0..whole.len() {
                let mut back = whole.clone();
                back.rewind(step);
                assert_eq!((back.len(), &back.steps[..]), (step, &whole.steps[..step]), "seed {seed}");
                for process in 0..whole.processes() {
                    for position in 0..=step {
                        let [now, then] = [&back, &whole].map(|run| run.pending(position, process));
                        assert_eq!(now, then, "seed {seed}, {step}, {position}, {process}");
                    }
                    assert_eq!(
                        back.now(process),
                        whole.pending(step, process),
                        "seed {seed}, {step}, {process}"
                    );
                }
            }
        }
    }

    #[test]
    fn differential_first_difference() {
        let seeds = seeds(300);
        let mut different = 0;
        for seed in seeds.range() {
            let run = |changes: u64| {
                let mut recording = recording(&mut Random::new(seed), 6);
                let mut random = Random::new(seed ^ changes);
                let steps = random.below(3);
                let more = self::recording(&mut random, steps);
                for step in &more.steps {
                    recording.will(step.choice.process, Footprint::clone(&step.footprint));
                    recording.step(step.choice, step.outcomes, None);
                }
                recording
            };
            let (a, b) = (run(1 << 32), run(2 << 32));
            let expected = difference(&a, &b);
            different += usize::from(expected.is_some());
            let found = a.difference(&b).map(|found| (found.position, found.process));
            assert_eq!(found, expected, "seed {seed}");
        }
        assert!(!seeds.suffice() || different > 50, "{different}");
    }

    #[test]
    fn memory_grows_with_the_steps() {
        let mut recording = Recording::new();
        for process in 0..500 {
            recording.will(process, Footprint::nothing());
            recording.step(Choice { process: 0, outcome: 0 }, 1, None);
            recording.will(0, Footprint::nothing());
        }
        let kept: usize = recording.processes.iter().map(Vec::len).sum();
        assert!(kept <= 3 * recording.len(), "{kept}");
    }
}
