//! The search for programs that can only be run from their start, again and again: a process of the operating
//! system, or threads under a scheduler.
//!
//! *Problem.* [`explore`] goes back to a point of an execution and continues from there. A real program
//! cannot go back. It has to be run again, with the same choices up to that point.
//!
//! *How.* An [`Executions`] runs the program with given choices and then to its end, and returns a
//! [`Recording`]: which process took which step, and what every process was about to do at every point. The
//! search walks through the recording as if it were the program. The program is run again only where the
//! search takes a step that is not in the recording. That run gets all steps planned from there on, so there
//! is about one run per execution seen.
//!
//! *Guarantee.* That of [`explore`], if the program repeats itself: the same choices have the same effects.
//! Every run is compared with the previous one as far as their choices agree. If they differ, the search ends
//! and [`Summary::broken`] is set. Steps that are tried before steps they do not depend on are checked as
//! well: such a step has to touch what it touched after them. [`Divergence`] gives the first difference.
//!
//! *Requirements on the implementation of [`Executions`]:*
//! 1. One process runs at a time. There is a decision before every step that touches what others can touch,
//!    never between the step and its access.
//! 2. Footprints give what a step *may* touch, whatever memory holds: a compare-and-swap writes, whether it
//!    succeeds or not.
//! 3. A process has the same number in all executions in which it exists (by its parent and its index among
//!    the parent's children). Addresses are the same as far as executions agree.
//! 4. Synchronisation objects are memory. A mutex is an address that locking and unlocking write. The end of
//!    a process is an address that its last step writes and a join reads. A condition variable is an address.
//!    Steps that wait say so ([`Footprint::waits`]).
//! 5. A step that ends all processes (`exit`) touches [everything](Footprint::everything).
//! 6. A loop that only reads memory and returns to its earlier state would add steps without bound. Once an
//!    iteration has changed nothing, neither in the process nor in memory, the process may *end* there
//!    ([`Recording::ends`]). An execution in which it continues later is the same, without that iteration, as
//!    one in which it reads later, and the search covers that one anyway. The reads of the iteration race
//!    with the writes of others as usual. If the values that the iteration read are still there at the end of
//!    the execution, the process would have looped forever.

use crate::explore::{Execution, Limits, Next, Subject, Summary, drop_elsewhere, explore};
use crate::footprint::Footprint;
use crate::plan::{Choice, Sleeper};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A program that can be run from its start as often as needed.
pub trait Executions {
    /// Runs the program. First come the requested steps. If the process of such a step is not ready, the run
    /// ends before that step. Then come any steps of processes that are ready, preferably not of sleeping
    /// ones, until there are none or the number of steps is reached. A run that ends because of that number
    /// is not [cut](Recording::cut): the search requested no more.
    fn run(&mut self, request: &Request<'_>) -> Recording;

    /// Whether the search should end as soon as it can. This is called at every step.
    fn is_stopped(&mut self) -> bool {
        false
    }
}

/// A request to run the program.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The first steps.
    pub choices: &'a [Choice],
    /// Processes that are asleep after these steps, each until a step is taken that conflicts with its own.
    /// Taking their steps is not wrong, but the run is not used from there on.
    pub asleep: &'a [Sleeper],
    /// The maximum number of steps.
    pub steps: usize,
    /// Which process to prefer after the first steps. Ignoring this costs more runs, but is not wrong.
    pub preference: Preference,
}

/// Which process to prefer where a run is free to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preference {
    /// Any process. It is good if all processes take steps early in an execution.
    Any,
    /// The process of the last step, if it is ready.
    SameProcess,
}

/// What happened in a run. It is written during the run: [`will`](Recording::will),
/// [`waits`](Recording::waits) and [`ends`](Recording::ends) state what processes are about to do, and
/// [`step`](Recording::step) that a step was taken.
///
/// Most steps change what one process is about to do, so only changes are kept: memory grows with the steps,
/// not with steps times processes.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    processes: Vec<Ahead>,
    pub(crate) steps: Vec<RecordedStep>,
    pub(crate) is_cut: bool,
}

/// What a process was about to do: from which position on, and what. Positions increase. There is nothing
/// before the first position.
type Ahead = Vec<(usize, Option<Pending>)>;

#[derive(Clone, Debug)]
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
    fn of(pending: Option<&Pending>) -> Foreseen {
        pending.map_or(Foreseen::Nothing, |pending| Foreseen::Step {
            footprint: Footprint::clone(&pending.footprint),
            label: Some(pending.label),
            ready: pending.ready,
        })
    }
}

impl RecordedStep {
    fn foreseen(&self) -> Foreseen {
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

#[derive(Clone, Debug)]
pub(crate) struct RecordedStep {
    pub choice: Choice,
    pub outcomes: usize,
    pub footprint: Arc<Footprint>,
    label: Label,
    open: Option<(u64, bool)>,
    pub started: Vec<usize>,
}

impl Recording {
    /// An empty recording.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// The process will touch this next, and is ready to. A process that is named for the first time was
    /// started by the last step, if there is one.
    pub fn will(&mut self, process: usize, footprint: Footprint) {
        self.will_as(process, footprint, Label::default());
    }

    /// The same, with a label for the step.
    pub fn will_as(&mut self, process: usize, footprint: Footprint, label: Label) {
        if self.processes.len() <= process {
            self.processes.resize(process + 1, Ahead::new());
        }
        if self.processes[process].is_empty()
            && let Some(step) = self.steps.last_mut()
        {
            step.started.push(process);
        }
        self.set(process, Some(Pending { footprint: Arc::new(footprint), ready: true, label }));
    }

    /// Whether a process has to wait for its next step. Its footprint must have [`waits`](Footprint::waits)
    /// set.
    pub fn waits(&mut self, process: usize, waits: bool) {
        let Some(pending) = self.now(process) else { return };
        debug_assert!(pending.footprint.waits || !waits, "the footprint of a waiting step has `waits` set");
        if pending.ready == waits {
            let pending = Pending { ready: !waits, ..pending.clone() };
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
        self.steps.push(RecordedStep { choice, outcomes, footprint, label, open, started: Vec::new() });
        self.set(choice.process, None);
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
        let outcomes = |recording: &Recording, position: usize| recording.steps[position].outcomes;
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

/// Runs the program once per trace, as [`explore`] does. If the program did not repeat itself, the result
/// says where. `visit` sees each execution when it has ended; the last run was that execution.
pub fn explore_executions<E: Executions>(
    executions: &mut E,
    limits: Limits,
    mut visit: impl FnMut(&mut E, Execution<'_>) -> ControlFlow<()>,
) -> (Summary, Option<Divergence>) {
    let mut replayed = Replayed {
        executions,
        steps: limits.steps,
        path: Vec::new(),
        recording: None,
        before: None,
        agreed: 0,
        planned: (0, Vec::new(), Vec::new()),
        is_broken: false,
        divergence: None,
    };
    replayed.run(&[], &[]);
    let summary = explore(&mut replayed, limits, |replayed, execution| visit(replayed.executions, execution));
    if summary.stopped {
        drop_elsewhere(replayed.recording);
    }
    (summary, replayed.divergence)
}

/// A program that is run again and again, as a subject of the search.
struct Replayed<'a, E> {
    executions: &'a mut E,
    steps: usize,
    /// The steps up to where the search is.
    path: Vec<Choice>,
    recording: Option<Recording>,
    /// The previous recording.
    before: Option<Recording>,
    /// How many choices of the path agree with the recording.
    agreed: usize,
    /// What the search is going to do from a position on, and which processes are asleep then.
    planned: (usize, Vec<Choice>, Vec<Sleeper>),
    is_broken: bool,
    divergence: Option<Divergence>,
}

impl<E: Executions> Replayed<'_, E> {
    /// The recording, run again if it does not lead to where the search is.
    fn recording(&mut self) -> Option<&Recording> {
        if self.is_broken {
            return None;
        }
        if self.recording.is_none() || self.agreed < self.path.len() {
            let (from, planned, asleep) = std::mem::take(&mut self.planned);
            let follows = self.path.get(from..).is_some_and(|path| planned.starts_with(path));
            let mut choices = self.path.clone();
            if follows {
                choices.extend(&planned[self.path.len() - from..]);
                self.run(&choices, &asleep);
                self.planned = (from, planned, asleep);
            } else {
                self.run(&choices, &[]);
            }
        }
        if self.is_broken { None } else { self.recording.as_ref() }
    }

    fn run(&mut self, choices: &[Choice], asleep: &[Sleeper]) {
        let request =
            Request { choices, asleep, steps: self.steps.max(choices.len()), preference: Preference::Any };
        let recording = self.executions.run(&request);
        let same_path = recording.choices().take(self.path.len()).eq(self.path.iter().copied());
        let old = self.recording.as_ref();
        let difference = old.and_then(|old| old.difference(&recording));
        if !self.is_broken && (!same_path || difference.is_some()) {
            self.is_broken = true;
            self.divergence =
                difference.or_else(|| old.unwrap_or(&recording).departure(&self.path, &recording));
        }
        self.agreed = self.path.len();
        self.before = self.recording.replace(recording);
    }

    /// The next step in the recording.
    fn next_recorded(&mut self) -> Option<&RecordedStep> {
        let at = self.path.len();
        self.recording().and_then(|recording| recording.steps.get(at))
    }
}

impl<E: Executions> Subject for Replayed<'_, E> {
    fn processes(&self) -> usize {
        self.recording.as_ref().map_or(0, |recording| recording.processes())
    }

    fn next(&mut self, process: usize) -> Next {
        let at = self.path.len();
        let Some(recording) = self.recording() else { return Next::Nothing };
        match recording.pending(at, process) {
            None => Next::Nothing,
            Some(Pending { footprint, ready: true, .. }) => Next::Ready(Footprint::clone(footprint)),
            Some(Pending { footprint, ready: false, .. }) => Next::Waiting(Footprint::clone(footprint)),
        }
    }

    fn outcomes(&mut self, process: usize) -> usize {
        if let Some(taken) = self.next_recorded().filter(|taken| taken.choice.process == process) {
            return taken.outcomes;
        }
        if self.is_broken {
            return 1;
        }
        // Only a run that takes the step shows this.
        let (from, planned, asleep) = self.planned.clone();
        let mut choices = self.path.clone();
        if from == self.path.len() && planned.first().is_some_and(|first| first.process == process) {
            choices.extend(&planned);
            self.run(&choices, &asleep);
        } else {
            choices.push(Choice { process, outcome: 0 });
            self.run(&choices, &[]);
        }
        self.next_recorded().map_or(1, |taken| taken.outcomes)
    }

    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize> {
        let (at, choice) = (self.path.len(), Choice { process, outcome });
        let follows = self.agreed == at && self.next_recorded().is_some_and(|taken| taken.choice == choice);
        self.agreed += usize::from(follows);
        self.path.push(choice);
        self.recording()
            .and_then(|recording| recording.steps.get(at))
            .map_or_else(Vec::new, |step| step.started.clone())
    }

    fn rewind(&mut self, steps: usize) {
        self.path.truncate(steps);
        self.agreed = self.agreed.min(steps);
    }

    fn position(&self) -> usize {
        self.path.len()
    }

    fn plan(&mut self, choices: Vec<Choice>, asleep: Vec<Sleeper>) {
        self.planned = (self.path.len(), choices, asleep);
    }

    fn prefers(&mut self) -> Option<usize> {
        self.next_recorded().map(|taken| taken.choice.process)
    }

    fn ready_after(
        &mut self,
        from: usize,
        sequence: &[(Choice, &Footprint)],
        (process, footprint): (usize, &Footprint),
        _: &[Choice],
    ) -> bool {
        let Some(recording) = self.recording() else { return false };
        let race = &recording.steps[from];
        if let (Some((address, open)), [touch]) = (race.open, footprint.touches.as_slice()) {
            let elsewhere = |other: &Footprint| {
                !other.everything && !other.touches.iter().any(|other| other.overlaps(touch))
            };
            if touch.address == address && sequence.iter().all(|(_, other)| elsewhere(other)) {
                return open;
            }
        }
        let mut choices = self.path[..from].to_vec();
        choices.extend(sequence.iter().map(|(choice, _)| *choice));
        let run = self.executions.run(&Request {
            choices: &choices,
            asleep: &[],
            steps: choices.len(),
            preference: Preference::Any,
        });
        let pending = run.pending(choices.len(), process);
        run.choices().eq(choices) && pending.is_some_and(|pending| pending.ready)
    }

    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let at = self.path.len();
        let Some(recording) = self.recording() else { return false };
        let now = recording.pending(at, process);
        if now.is_some_and(|now| now.ready && *now.footprint == *footprint) {
            return true;
        }
        // The step was seen after others that it does not depend on, usually in the previous run.
        let happened = Foreseen::of(now);
        let is_it = |step: &&RecordedStep| step.choice.process == process && *step.footprint == *footprint;
        let seen = self.before.iter().chain(&self.recording).find_map(|run| run.steps.iter().find(is_it));
        let unlabelled = || Foreseen::Step { footprint: footprint.clone(), label: None, ready: true };
        let expected = seen.map_or_else(unlabelled, RecordedStep::foreseen);
        self.is_broken = true;
        self.divergence.get_or_insert(Divergence { position: at, process, expected, happened });
        false
    }

    fn is_cut(&self) -> bool {
        self.recording
            .as_ref()
            .is_some_and(|recording| recording.is_cut && recording.len() == self.path.len())
    }

    fn is_stopped(&mut self) -> bool {
        self.executions.is_stopped()
    }

    fn is_broken(&self) -> bool {
        self.is_broken
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
