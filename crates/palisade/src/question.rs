//! The questions that can be asked, the engines that answer them, and how witnesses are confirmed.

use crate::engines::{self, deadlock_engines, engines, fair_engines, goal_engines, robustness_engines};
use crate::scout::Scout;
use palisade_certificate::can_reach;
use palisade_engine::{
    Analysis, DeadlockFreedom, Engine, Exhausted, FairProgress, GoalsReachable, Limits, Robustness, Safety,
    Suitability, TriangularRaces, Witness,
};
use palisade_memory::{Machine, Model, Violation};
use palisade_program::running::{Instr, Outside, Structure, System, Type};
use palisade_program::{lower, lower_retrying};
use palisade_report::Explain;
use palisade_trace::{
    NoTriangle, NotViolating, Replay, ReplayError, Violating, replay, replay_lasso, replay_to_deadlock,
    shorten, take, triangle, violating,
};

/// What engines are asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wanted {
    /// An answer.
    Answer,
    /// An answer, with a proof if it is positive.
    Proof,
    /// An answer, with a checked proof if it is positive.
    Checked,
}

/// A question that the library can ask.
pub trait Ask: Explain {
    /// Whether the question may be asked under SC instead, once the program is known to be robust.
    const USES_ROBUSTNESS: bool = false;
    /// The memory model whose runs are witnesses, if it differs from the model in question.
    const WITNESSES_UNDER: Option<Model> = None;
    /// What the engines are for, in error messages: empty, or a phrase such as ` for robustness`.
    const PURPOSE: &'static str = "";

    /// All engines for the question, the preferred one first.
    fn engines() -> &'static [&'static dyn Engine<Self>];

    /// Replays a witness on the trusted machine and checks that it shows a violation. May shorten it.
    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<Self>, Unconfirmed>, Exhausted>;

    /// An engine that has no answer of its own but helps the others.
    #[doc(hidden)]
    fn scout(_: &Analysis<'_>) -> Option<&'static dyn Engine<Self>> {
        None
    }
}

/// A witness that was replayed on the trusted machine, with the running form of the program that has this
/// run.
#[derive(Clone, Debug)]
pub struct Confirmed<Q: Ask> {
    pub(crate) system: System,
    pub(crate) replay: Replay,
    pub(crate) shows: Q::Shows,
}

/// Why a witness does not show a violation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unconfirmed {
    /// The machine cannot take the run, or nothing is wrong at its end.
    #[error("it does not replay: {0}")]
    Replay(ReplayError),
    /// Its happens-before has no cycle.
    #[error(transparent)]
    NoCycle(NotViolating),
    /// Every goal is reachable from its last state.
    #[error("every goal is reachable from the last state of the run")]
    AllReachable,
    /// It does not end with a triangular race.
    #[error(transparent)]
    NoTriangle(NoTriangle),
}

impl Ask for Safety {
    const USES_ROBUSTNESS: bool = true;

    fn engines() -> &'static [&'static dyn Engine] {
        engines()
    }

    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<Safety>, Unconfirmed>, Exhausted> {
        let (system, replayed) = limits.within(|| {
            let system = lower(analysis.task.program, witness.instantiation);
            let replayed = replay(analysis.machine(&system), &witness.run);
            (system, replayed)
        })?;
        let mut confirmed = match replayed {
            Ok(replay) => replay,
            Err(error) => return Ok(Err(Unconfirmed::Replay(error))),
        };
        let machine = analysis.machine(&system);
        // If there is no time to shorten the run, it keeps its length.
        let shorter = limits.within(|| {
            let run = shorten(machine, witness.run.clone());
            replay(machine, &run).map(|replay| (run, replay))
        });
        match shorter {
            Ok(Ok((run, replay))) => (witness.run, confirmed) = (run, replay),
            Ok(Err(error)) => return Ok(Err(Unconfirmed::Replay(error))),
            Err(_) => {}
        }
        Ok(Ok(Confirmed { system, replay: confirmed, shows: () }))
    }

    fn scout(analysis: &Analysis<'_>) -> Option<&'static dyn Engine> {
        // Lazy reachability itself finds out whether a program is robust.
        (engines::LAZY.suits(analysis) == Suitability::No).then_some(&Scout)
    }
}

impl Ask for DeadlockFreedom {
    const USES_ROBUSTNESS: bool = true;
    const PURPOSE: &'static str = " for deadlocks";

    fn engines() -> &'static [&'static dyn Engine<DeadlockFreedom>] {
        deadlock_engines()
    }

    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<DeadlockFreedom>, Unconfirmed>, Exhausted> {
        let (system, replayed) = limits.within(|| {
            let system = lower_retrying(analysis.task.program, witness.instantiation);
            let replayed = replay_to_deadlock(analysis.machine(&system), &witness.run);
            (system, replayed)
        })?;
        Ok(replayed.map_err(Unconfirmed::Replay).map(|replay| Confirmed { system, replay, shows: () }))
    }

    fn scout(analysis: &Analysis<'_>) -> Option<&'static dyn Engine<DeadlockFreedom>> {
        may_need_sc::<DeadlockFreedom>(analysis).then_some(&Scout)
    }
}

impl Ask for GoalsReachable {
    const USES_ROBUSTNESS: bool = true;
    const PURPOSE: &'static str = " for what must stay reachable";

    fn engines() -> &'static [&'static dyn Engine<GoalsReachable>] {
        goal_engines()
    }

    /// Replays the run, and searches for a goal that is out of reach of its last state with the code that
    /// checks certificates. If the program was found robust, that search is one under SC, which is exact then
    /// (see `palisade-explore`): under the model there may be infinitely many states.
    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<GoalsReachable>, Unconfirmed>, Exhausted> {
        let (system, replayed) = limits.within(|| {
            let system = lower_retrying(analysis.task.program, witness.instantiation);
            let replayed = take(analysis.machine(&system), &witness.run);
            (system, replayed)
        })?;
        let replay = match replayed {
            Ok(replay) => replay,
            Err(error) => return Ok(Err(Unconfirmed::Replay(error))),
        };
        let last = replay.states.last().expect("a run has a first state");
        let drained = last.threads.iter().all(|thread| thread.buffer.is_empty());
        let mut machine = analysis.machine(&system);
        if analysis.facts().is_robust() && drained {
            machine.model = Model::Sc;
        }
        let mut out_of_reach = None;
        for (index, goal) in system.goals.iter().enumerate() {
            if last.fault.is_none() && !can_reach(machine, last, goal, limits)? {
                out_of_reach = Some(Violation::Unreachable(index));
                break;
            }
        }
        Ok(match out_of_reach {
            None => Err(Unconfirmed::AllReachable),
            Some(violation) => {
                let replay = Replay { violation: Some(violation), ..replay };
                Ok(Confirmed { system, replay, shows: () })
            }
        })
    }

    fn scout(analysis: &Analysis<'_>) -> Option<&'static dyn Engine<GoalsReachable>> {
        may_need_sc::<GoalsReachable>(analysis).then_some(&Scout)
    }
}

impl Ask for FairProgress {
    const USES_ROBUSTNESS: bool = true;
    const PURPOSE: &'static str = " for `terminates` and `leaves`";

    fn engines() -> &'static [&'static dyn Engine<FairProgress>] {
        fair_engines()
    }

    /// Replays the run, and checks that its last steps are a cycle that a fair scheduler can repeat.
    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<FairProgress>, Unconfirmed>, Exhausted> {
        let (system, replayed) = limits.within(|| {
            let system = lower_retrying(analysis.task.program, witness.instantiation);
            let replayed = replay_lasso(analysis.machine(&system), &witness.run);
            (system, replayed)
        })?;
        Ok(replayed.map_err(Unconfirmed::Replay).map(|replay| Confirmed { system, replay, shows: () }))
    }

    /// The argument in `palisade-explore` also asks that no memory value blocks a thread, and that no threads
    /// are started.
    fn scout(analysis: &Analysis<'_>) -> Option<&'static dyn Engine<FairProgress>> {
        let system = analysis.system(1);
        let blocks = |ty: &Type| ty.outside == Outside::Block;
        let mut registers = system.codes.iter().flat_map(|code| &code.registers);
        let blocking = registers.any(|register| blocks(&register.ty))
            || system.cells.iter().any(|cell| blocks(&cell.ty))
            || system.codes.iter().filter_map(|code| code.result.as_ref()).any(blocks);
        let fits = !blocking && !Structure::new(&system).spawns;
        (fits && may_need_sc::<FairProgress>(analysis)).then_some(&Scout)
    }
}

/// Whether no engine decides the question under the memory model in every case, and SC would be enough if the
/// program is robust. `palisade-explore` has the argument, and the reason why there may be no atomic
/// sections.
fn may_need_sc<Q: Ask>(analysis: &Analysis<'_>) -> bool {
    let system = analysis.system(1);
    let mut edges = system.codes.iter().flat_map(|code| code.edges());
    Q::engines().iter().all(|engine| engine.suits(analysis) < Suitability::Decides)
        && !edges.any(|edge| edge.instr == Instr::AtomicBegin)
}

impl Ask for Robustness {
    const PURPOSE: &'static str = " for robustness";

    fn engines() -> &'static [&'static dyn Engine<Robustness>] {
        robustness_engines()
    }

    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<Robustness>, Unconfirmed>, Exhausted> {
        let (system, found) = limits.within(|| {
            let system = lower(analysis.task.program, witness.instantiation);
            let found = violating(analysis.machine(&system), &witness.run);
            (system, found)
        })?;
        Ok(found.map_err(Unconfirmed::NoCycle).map(|violating| {
            let Violating { replay, happens_before, cycle } = violating;
            // The run is not about a violation in its last state.
            let replay = Replay { violation: None, ..replay };
            Confirmed { system, replay, shows: (happens_before, cycle) }
        }))
    }
}

impl Ask for TriangularRaces {
    const WITNESSES_UNDER: Option<Model> = Some(Model::Sc);
    const PURPOSE: &'static str = " for triangular races";

    fn engines() -> &'static [&'static dyn Engine<TriangularRaces>] {
        &[&palisade_robust::Triangles]
    }

    fn confirm(
        analysis: &Analysis<'_>,
        witness: &mut Witness,
        limits: &Limits,
    ) -> Result<Result<Confirmed<TriangularRaces>, Unconfirmed>, Exhausted> {
        let (system, found) = limits.within(|| {
            let system = lower(analysis.task.program, witness.instantiation);
            let found = triangle(Machine::new(&system, Model::Sc), &witness.run);
            (system, found)
        })?;
        Ok(found.map_err(Unconfirmed::NoTriangle).map(|(replay, race)| {
            let replay = Replay { violation: None, ..replay };
            Confirmed { system, replay, shows: race }
        }))
    }
}
