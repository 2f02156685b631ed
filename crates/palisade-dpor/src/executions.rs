//! The search for programs that can only be run from their start, again and again: a process of the operating system, threads under a scheduler.
//!
//! *Problem.* [`explore`] goes back to a point of an execution and on from there. A real program cannot go back; it has to be run anew, with the same choices up to that point.
//!
//! *How.* An [`Executions`] runs the program with given choices and then on to its end, and hands back a [`Recording`]: who took which step, and what every process was about to do at every
//! point. The search walks through the recording as if it were the program. Only where it takes another step than the recording is the program run again, with everything that is planned from
//! there on, so that there is about one run per execution seen.
//!
//! *Guarantee.* That of [`explore`], if the program does the same again given the same choices. Every run is compared with the one before as far as their choices agree; if
//! they differ the search ends and [`Summary::broken`] says so. So is every step that is tried before steps it does not depend on: it has to touch what it touched after them.
//! [`Divergence`] says where they differ first.
//!
//! *What whoever runs a program has to see to:*
//! 1. One process runs at a time. A decision comes before every step that touches what others can touch, never between the step and what it touches.
//! 2. Footprints say what a step *may* touch, whatever memory holds: a compare-and-swap writes, whether it succeeds or not.
//! 3. Processes are numbered the same in all executions in which they exist (parent, and which of its children), and so are addresses as far as executions agree.
//! 4. Objects that processes meet at are memory: a mutex is an address that taking and giving back write; a process' end is an address that its last step writes and whoever joins it reads;
//!    a condition variable is an address. Steps that wait say so ([`Footprint::waits`]).
//! 5. A step that ends all processes (`exit`) touches [everything](Footprint::everything).
//! 6. A loop that only looks at memory and comes back to where it was is no end of steps: once a round of it has changed nothing, neither in the process nor in memory, its process may *end*
//!    there ([`Recording::ends`]). An execution in which it goes on later is the same, without that round, as one in which it looks later, and the search has that one anyway. What the round read races with
//!    what others write, as always. If at the end of the execution what the round read is still there, the process would have gone round for ever.

use crate::explore::{Execution, Limits, Next, Subject, Summary, drop_elsewhere, explore};
use crate::footprint::Footprint;
use crate::plan::{Choice, Sleeper};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Something that can be run from its start, as often as wanted.
pub trait Executions {
    /// Runs the program: first the steps that are asked for, each if its process is ready, or else the run ends before it; then any steps of processes that are ready, preferably none
    /// that are asleep, until there are none or the number of steps is reached. A run that ends because of that number is not [cut](Recording::cut): the search has asked for no more.
    fn run(&mut self, request: &Request<'_>) -> Recording;

    /// Whether the search is to end as soon as it can. It is asked at every step.
    fn is_stopped(&mut self) -> bool {
        false
    }
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The first steps.
    pub choices: &'a [Choice],
    /// Processes that are asleep behind them: each until a step is taken that conflicts with its own. To take their steps is not wrong, but the run will not be used from there on.
    pub asleep: &'a [Sleeper],
    /// How many steps to take at most.
    pub steps: usize,
    /// Whom to prefer behind the first steps. Whoever does otherwise makes for more runs, not for wrong ones.
    pub then: Then,
}

/// Whom to prefer where a run is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// Anybody; it is good if an execution has something of everybody early.
    Anybody,
    /// The process of the last step, if it is ready.
    TheSame,
}

/// What happened in a run. It is written as the run goes on: [`will`](Recording::will), [`waits`](Recording::waits) and [`ends`](Recording::ends) say how things stand, and [`step`](Recording::step) that a step was taken.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The points before each step.
    points: Vec<Point>,
    now: Point,
    pub(crate) steps: Vec<Taken>,
    known: Vec<bool>,
    pub(crate) is_cut: bool,
}

/// What every process would do next.
pub(crate) type Point = Vec<Option<Pending>>;

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub footprint: Arc<Footprint>,
    pub ready: bool,
    pub label: Label,
}

/// What a step is to whoever runs the program. It is kept and handed back, and means nothing here.
pub type Label = [u64; 2];

/// What a process would do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Foreseen {
    /// This step, if it is ready to.
    Step {
        /// What it touches.
        footprint: Footprint,
        /// What it is, if that is still known.
        label: Option<Label>,
        /// Whether it can be taken.
        ready: bool,
    },
    /// Nothing: it has ended, or does not exist.
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

impl Taken {
    fn foreseen(&self) -> Foreseen {
        Foreseen::Step { footprint: Footprint::clone(&self.footprint), label: Some(self.label), ready: true }
    }
}

/// The first point at which the program did not do the same again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// After so many steps.
    pub position: usize,
    /// A process that was about to do something else.
    pub process: usize,
    /// What it was about to do before.
    pub expected: Foreseen,
    /// What it was about to do this time.
    pub happened: Foreseen,
}

#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub choice: Choice,
    pub outcomes: usize,
    pub footprint: Arc<Footprint>,
    label: Label,
    open: Option<(u64, bool)>,
    pub started: Vec<usize>,
}

impl Recording {
    /// Nothing has happened yet.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// A process will touch this next, and is ready to. A process that is named for the first time was started by the last step, if there is one.
    pub fn will(&mut self, process: usize, footprint: Footprint) {
        self.will_as(process, footprint, Label::default());
    }

    /// The same, with what the step is to whoever runs the program.
    pub fn will_as(&mut self, process: usize, footprint: Footprint, label: Label) {
        if self.known.len() <= process {
            self.known.resize(process + 1, false);
            self.now.resize(process + 1, None);
        }
        if !self.known[process] {
            self.known[process] = true;
            if let Some(step) = self.steps.last_mut() {
                step.started.push(process);
            }
        }
        self.now[process] = Some(Pending { footprint: Arc::new(footprint), ready: true, label });
    }

    /// Whether a process has to wait for its next step. Its footprint has to say that it [waits](Footprint::waits).
    pub fn waits(&mut self, process: usize, waits: bool) {
        if let Some(pending) = self.now.get_mut(process).and_then(Option::as_mut) {
            debug_assert!(pending.footprint.waits || !waits, "who waits says so in its footprint");
            pending.ready = !waits;
        }
    }

    /// A process takes no more steps.
    pub fn ends(&mut self, process: usize) {
        if let Some(pending) = self.now.get_mut(process) {
            *pending = None;
        }
    }

    /// A process takes its next step, which could have had so many outcomes. What it does after that must be said before the next step.
    ///
    /// `open` spares runs. For an object that the step touches and others wait for, by its address: whether somebody who waits for it, and touches nothing else, would have been ready before
    /// this step. For a mutex, whether it was free.
    ///
    /// # Panics
    /// If nobody has said what the process will do.
    pub fn step(&mut self, choice: Choice, outcomes: usize, open: Option<(u64, bool)>) {
        let pending = self.now.get(choice.process).and_then(Option::as_ref);
        let pending = pending.expect("a process says what it will do before it does");
        let (footprint, label) = (pending.footprint.clone(), pending.label);
        self.points.push(self.now.clone());
        self.now[choice.process] = None;
        self.steps.push(Taken { choice, outcomes, footprint, label, open, started: Vec::new() });
    }

    /// The run was broken off here: processes might have gone on.
    pub fn cut(&mut self) {
        self.is_cut = true;
        self.now.iter_mut().for_each(|pending| *pending = None);
    }

    /// How many steps were taken.
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

    /// Whether some process waits now and none is ready.
    pub fn is_stuck(&self) -> bool {
        let mut pending = self.now.iter().flatten().peekable();
        pending.peek().is_some() && pending.all(|pending| !pending.ready)
    }

    /// Where another run of the same program does not agree with this one: as long as they make the same choices, processes are about to do the same.
    pub fn difference(&self, other: &Recording) -> Option<Divergence> {
        let common = self.choices().zip(other.choices()).take_while(|(a, b)| a == b).count();
        let ended = self.is_cut || other.is_cut;
        let last = common.min(if ended { self.len().min(other.len()).saturating_sub(1) } else { common });
        (0..=last).find_map(|position| {
            let (before, now) = (self.point(position), other.point(position));
            let process = (0..before.len().max(now.len())).find(|&process| {
                let (before, now) = (pending(before, process), pending(now, process));
                before.map(|pending| (&pending.footprint, pending.ready))
                    != now.map(|pending| (&pending.footprint, pending.ready))
            });
            let outcomes = |recording: &Recording| recording.steps[position].outcomes;
            let differs = position < common && outcomes(self) != outcomes(other);
            let process = process.or_else(|| differs.then(|| self.steps[position].choice.process))?;
            Some(Divergence {
                position,
                process,
                expected: Foreseen::of(pending(before, process)),
                happened: Foreseen::of(pending(now, process)),
            })
        })
    }

    /// What a process did as its step with this index, if it has taken so many.
    fn step_of(&self, process: usize, index: usize) -> Option<Foreseen> {
        let mut own = self.steps.iter().filter(|step| step.choice.process == process);
        own.nth(index).map(Taken::foreseen)
    }

    /// Where a run does not follow a path, seen from this one.
    pub(crate) fn departure(&self, path: &[Choice], other: &Recording) -> Option<Divergence> {
        let position = other.choices().zip(path).take_while(|(taken, wanted)| taken == *wanted).count();
        let process = path.get(position)?.process;
        let index = path[..position].iter().filter(|choice| choice.process == process).count();
        let happened = Foreseen::of(pending(other.point(position), process));
        let last = || self.now.get(process).map(|pending| Foreseen::of(pending.as_ref()));
        let expected = self.step_of(process, index).or_else(last).unwrap_or(Foreseen::Nothing);
        Some(Divergence { position, process, expected, happened })
    }

    pub(crate) fn point(&self, position: usize) -> &Point {
        self.points.get(position).unwrap_or(&self.now)
    }
}

fn pending(point: &Point, process: usize) -> Option<&Pending> {
    point.get(process).and_then(Option::as_ref)
}

/// Runs the program once per trace, as [`explore`] does. If it was broken the answer says where. `visit` sees each execution when it has ended; the last run was that execution.
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

/// A program that is run again, as a subject of the search.
struct Replayed<'a, E> {
    executions: &'a mut E,
    steps: usize,
    /// Where the search is.
    path: Vec<Choice>,
    recording: Option<Recording>,
    /// The one before it.
    before: Option<Recording>,
    /// As many choices of the path are those of the recording.
    agreed: usize,
    /// What the search is going to do, from a position on, and who is asleep then.
    planned: (usize, Vec<Choice>, Vec<Sleeper>),
    is_broken: bool,
    divergence: Option<Divergence>,
}

impl<E: Executions> Replayed<'_, E> {
    /// The recording, run anew if it does not lead to where the search is.
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
        let request = Request { choices, asleep, steps: self.steps.max(choices.len()), then: Then::Anybody };
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

    /// The step of the recording that comes next.
    fn next_taken(&mut self) -> Option<&Taken> {
        let at = self.path.len();
        self.recording().and_then(|recording| recording.steps.get(at))
    }
}

impl<E: Executions> Subject for Replayed<'_, E> {
    fn processes(&self) -> usize {
        self.recording.as_ref().map_or(0, |recording| recording.known.len())
    }

    fn next(&mut self, process: usize) -> Next {
        let at = self.path.len();
        let Some(recording) = self.recording() else { return Next::Nothing };
        match recording.point(at).get(process).and_then(Option::as_ref) {
            None => Next::Nothing,
            Some(Pending { footprint, ready: true, .. }) => Next::Ready(Footprint::clone(footprint)),
            Some(Pending { footprint, ready: false, .. }) => Next::Waiting(Footprint::clone(footprint)),
        }
    }

    fn outcomes(&mut self, process: usize) -> usize {
        if let Some(taken) = self.next_taken().filter(|taken| taken.choice.process == process) {
            return taken.outcomes;
        }
        if self.is_broken {
            return 1;
        }
        // Only a run that takes the step tells.
        let (from, planned, asleep) = self.planned.clone();
        let mut choices = self.path.clone();
        if from == self.path.len() && planned.first().is_some_and(|first| first.process == process) {
            choices.extend(&planned);
            self.run(&choices, &asleep);
        } else {
            choices.push(Choice { process, outcome: 0 });
            self.run(&choices, &[]);
        }
        self.next_taken().map_or(1, |taken| taken.outcomes)
    }

    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize> {
        let (at, choice) = (self.path.len(), Choice { process, outcome });
        let follows = self.agreed == at && self.next_taken().is_some_and(|taken| taken.choice == choice);
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

    fn plan(&mut self, choices: Vec<Choice>, asleep: Vec<Sleeper>) {
        self.planned = (self.path.len(), choices, asleep);
    }

    fn prefers(&mut self) -> Option<usize> {
        self.next_taken().map(|taken| taken.choice.process)
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
            then: Then::Anybody,
        });
        let pending = run.point(choices.len()).get(process).and_then(Option::as_ref);
        run.choices().eq(choices) && pending.is_some_and(|pending| pending.ready)
    }

    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let at = self.path.len();
        let Some(recording) = self.recording() else { return false };
        let now = pending(recording.point(at), process);
        if now.is_some_and(|now| now.ready && *now.footprint == *footprint) {
            return true;
        }
        // The step was seen after others that it does not depend on, mostly in the run before this one.
        let happened = Foreseen::of(now);
        let is_it = |step: &&Taken| step.choice.process == process && *step.footprint == *footprint;
        let seen = self.before.iter().chain(&self.recording).find_map(|run| run.steps.iter().find(is_it));
        let unlabelled = || Foreseen::Step { footprint: footprint.clone(), label: None, ready: true };
        let expected = seen.map_or_else(unlabelled, Taken::foreseen);
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
