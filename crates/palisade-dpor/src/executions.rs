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
//! 2. Footprints give what a step *may* touch, whatever memory holds: a compare-and-swap may write. If it was announced
//!    as [conditional](Footprint::writes) and has failed, this is recorded once it was taken ([`Recording::fails`]).
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
//! 7. A store buffer is a process with a number of its own. Its steps write memory, and come
//!    [after](Footprint::after) the step of the thread that stored. A thread that waits for an empty buffer is
//!    about to take a step after the last step of the buffer, and is not ready before. A load names its own
//!    newest store since then, by byte ([`Touch::own`](crate::Touch::own)), even if that store has reached
//!    memory in the meantime: what a load touches must not depend on how far the buffer has got.
//!    Under PSO there is a buffer for every thread and address. Every clock has an entry per process, so this
//!    costs memory if there are many.

use crate::explore::{Execution, Limits, Summary, drop_elsewhere, explore};
use crate::footprint::{Footprint, Mode, Writes};
use crate::plan::{Choice, Plan, Sleeper};
use crate::recording::{Divergence, Foreseen, Pending, RecordedStep, Recording};
use crate::subject::{Next, Subject};
use std::ops::ControlFlow;

/// A program that can be run from its start as often as needed.
pub trait Executions {
    /// Runs the program. First come the requested steps. If the process of such a step is not ready, the run
    /// ends before that step. Then come any steps of processes that are ready, preferably not of sleeping
    /// ones, until there are none or the number of steps is reached. A run that ends because of that number
    /// is not [cut](Recording::cut): the search requested no more.
    fn run(&mut self, request: &Request<'_>) -> Recording;

    /// The same for a run that is compared with the one before: as long as both make the same choices, processes must
    /// be about to do the same. An implementation that knows how much of the two is the same need not record and
    /// compare that again.
    fn run_again(&mut self, request: &Request<'_>, before: Recording) -> Again {
        let recording = self.run(request);
        let difference = before.difference(&recording);
        Again { recording, before: Some(before), difference }
    }

    /// The recording before the last one, if [`run_again`](Executions::run_again) has not returned it. It is needed
    /// only if the program did not repeat itself.
    fn before(&mut self) -> Option<Recording> {
        None
    }

    /// How many more runs to announce [ahead](Executions::expect) of time.
    fn appetite(&self) -> usize {
        0
    }

    /// The search is going to request this run later, unless it is stopped, and before those it has announced so far.
    fn expect(&mut self, request: &Request<'_>) {
        let _ = request;
    }

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

/// A run that was compared with the one before.
#[derive(Debug)]
pub struct Again {
    /// The run.
    pub recording: Recording,
    /// The run before, unless its memory was used for this one.
    pub before: Option<Recording>,
    /// The first difference.
    pub difference: Option<Divergence>,
}

/// Which process to prefer where a run is free to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preference {
    /// Any process. It is good if all processes take steps early in an execution.
    Any,
    /// A store buffer, if there is one that is ready. Otherwise the thread of the last step of a thread, if it
    /// is ready.
    SameProcess,
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
        let Again { recording, before, difference } = match self.recording.take() {
            Some(before) => self.executions.run_again(&request, before),
            None => Again { recording: self.executions.run(&request), before: None, difference: None },
        };
        self.before = before;
        let same_path = recording.choices().take(self.path.len()).eq(self.path.iter().copied());
        if !self.is_broken && (!same_path || difference.is_some()) {
            self.is_broken = true;
            self.divergence = difference.or_else(|| {
                let before = self.before.take().or_else(|| self.executions.before());
                before.as_ref().unwrap_or(&recording).departure(&self.path, &recording)
            });
        }
        self.agreed = self.path.len();
        self.recording = Some(recording);
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
            Some(Pending { footprint, ready: true, .. }) => Next::Ready(footprint.clone()),
            Some(Pending { footprint, ready: false, .. }) => Next::Waiting(footprint.clone()),
        }
    }

    fn is_ready(&mut self, process: usize) -> bool {
        let at = self.path.len();
        self.recording().and_then(|recording| recording.pending(at, process)).is_some_and(|next| next.ready)
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

    fn fails_now(&mut self, process: usize) -> bool {
        let taken = self.next_recorded().filter(|taken| taken.choice.process == process);
        taken.is_some_and(|taken| !taken.footprint.may_write())
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

    fn appetite(&self) -> usize {
        self.executions.appetite()
    }

    fn foresee(&mut self, plans: Vec<Plan>) {
        for Plan { from, choices, asleep } in plans.into_iter().rev() {
            let mut all = self.path[..from].to_vec();
            all.extend(choices);
            let steps = self.steps.max(all.len());
            let request = Request { choices: &all, asleep: &asleep, steps, preference: Preference::Any };
            self.executions.expect(&request);
        }
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
        if race.footprint.everything && sequence.is_empty() {
            // Before the program ended, it was ready or not.
            return recording.pending(from, process).is_some_and(|pending| pending.ready);
        }
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

    fn fails_after(
        &mut self,
        from: usize,
        sequence: &[(Choice, &Footprint)],
        (process, footprint): (usize, &Footprint),
        _: &[Choice],
    ) -> bool {
        let Some(recording) = self.recording() else { return false };
        let race = &recording.steps[from];
        if let (Some(held), Writes::IfHolds(number)) = (race.held, footprint.writes)
            && let ([replaced], [touch]) = (race.footprint.touches.as_slice(), footprint.touches.as_slice())
        {
            let writes = |other: &Footprint| {
                let mut touches = other.touches.iter();
                other.everything || touches.any(|other| other.mode == Mode::Write && other.overlaps(touch))
            };
            let is_same = (replaced.address, replaced.size) == (touch.address, touch.size);
            if is_same && !sequence.iter().any(|(_, other)| writes(other)) {
                return held != number;
            }
        }
        let mut choices = self.path[..from].to_vec();
        choices.extend(sequence.iter().map(|(choice, _)| *choice));
        choices.push(Choice { process, outcome: 0 });
        let run = self.executions.run(&Request {
            choices: &choices,
            asleep: &[],
            steps: choices.len(),
            preference: Preference::Any,
        });
        let taken = run.steps.get(choices.len() - 1).filter(|_| run.choices().eq(choices.iter().copied()));
        taken.is_some_and(|taken| !taken.footprint.may_write())
    }

    fn can_try(&mut self, process: usize, footprint: &Footprint) -> bool {
        let at = self.path.len();
        let Some(recording) = self.recording() else { return false };
        let now = recording.pending(at, process);
        if now.is_some_and(|now| now.ready && now.footprint.is_same_step(footprint)) {
            return true;
        }
        // The step was seen after others that it does not depend on, usually in the previous run.
        let happened = Foreseen::of(now);
        let earlier = self.before.take().or_else(|| self.executions.before());
        let is_it =
            |step: &&RecordedStep| step.choice.process == process && step.footprint.is_same_step(footprint);
        let seen = earlier.iter().chain(&self.recording).find_map(|run| run.steps.iter().find(is_it));
        let unlabelled = || Foreseen::Step { footprint: footprint.clone(), label: None, ready: true };
        let expected = seen.map_or_else(unlabelled, RecordedStep::foreseen);
        self.is_broken = true;
        self.divergence.get_or_insert(Divergence { position: at, process, expected, happened });
        false
    }

    fn succeeds_differently(&mut self, process: usize, footprint: &Footprint) {
        let at = self.path.len();
        let taken = self.next_recorded().map(RecordedStep::foreseen);
        let expected = Foreseen::Step { footprint: footprint.clone(), label: None, ready: true };
        let happened = taken.unwrap_or(Foreseen::Nothing);
        self.is_broken = true;
        self.divergence.get_or_insert(Divergence { position: at, process, expected, happened });
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
