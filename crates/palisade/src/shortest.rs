//! `check --shortest`: the run of an `unsafe` answer, replaced by a shortest one.

use crate::Input;
use crate::answer::Answer;
use crate::check::CheckOptions;
use crate::error::{AskError, Bug};
use crate::question::Unconfirmed;
use palisade_engine::{Limits, Reason, Safety, Verdict};
use palisade_explore::Shortest;
use palisade_memory::Violation;
use palisade_program::lower;
use palisade_trace::replay;

impl Answer<Safety> {
    /// The same answer with a shortest run: one with the fewest steps of the machine. Every instruction
    /// counts, and every store that reaches memory. The run is replayed on the trusted machine. If none is
    /// found within the limits, the run stays, and [`shortest`](Answer::shortest) says why. Other answers
    /// stay as they are.
    pub fn with_shortest_run(
        mut self,
        input: &mut Input,
        options: &CheckOptions,
        limits: &Limits,
    ) -> Result<Answer, AskError> {
        let Verdict::Violated(witness) = &mut self.outcome.verdict else { return Ok(self) };
        let violation = self.confirmed.as_ref().and_then(|confirmed| confirmed.replay.violation);
        if let Some(Violation::Deadlock | Violation::Unreachable(_) | Violation::Forever { .. }) = violation {
            let why =
                "shortest runs are searched for only with bad states, not with deadlocks or endless runs";
            self.shortest = Some(Err(Reason::Observed(why.to_owned())));
            return Ok(self);
        }
        // Runs of a C program that exceed its room show nothing, however short they are.
        let within = input.within_limits();
        let program = &within.as_ref().unwrap_or(input).program;
        let task = options.task(program);
        let system = match limits.within(|| lower(program, witness.instantiation)) {
            Ok(system) => system,
            Err(what) => {
                self.shortest = Some(Err(Reason::Exhausted(what)));
                return Ok(self);
            }
        };
        let machine = task.machine(&system);
        let (run, known) = match palisade_explore::shortest(machine, &options.options, limits) {
            Shortest::Known(run) => (Some(run), Ok(())),
            Shortest::Perhaps(run, reason) => (Some(run), Err(reason)),
            Shortest::Unknown(reason) => (None, Err(reason)),
            Shortest::Nothing => {
                let what = "no run breaks the program, but one was replayed".to_owned();
                return Err(Bug::Contradiction { engine: "explicit", what }.into());
            }
        };
        let known = match known {
            Ok(()) if task.is_parameterized() => {
                let why = "runs with other numbers of processes were not searched";
                Err(Reason::Observed(why.to_owned()))
            }
            known => known,
        };
        // A run that was found at the last moment is worth a little more time.
        let shorter = run.filter(|run| run.steps.len() <= witness.run.steps.len());
        if let Some(run) = shorter {
            match limits.clone().with_grace().within(|| replay(machine, &run)) {
                Err(what) => {
                    self.shortest = Some(Err(Reason::Exhausted(what)));
                    return Ok(self);
                }
                Ok(Err(error)) => {
                    let error = Unconfirmed::Replay(error);
                    return Err(Bug::Unconfirmed { engine: "explicit", word: "unsafe", error }.into());
                }
                Ok(Ok(replayed)) if input.is_limit(&replayed) => {
                    let why = "shorter runs do something that Palisade does not follow";
                    self.shortest = Some(Err(Reason::Observed(why.to_owned())));
                    return Ok(self);
                }
                Ok(Ok(replayed)) => {
                    let confirmed = self.confirmed.as_mut().expect("a violation has a replayed run");
                    (confirmed.replay, witness.run) = (replayed, run);
                    if let Some(within) = within {
                        (confirmed.system, *input) = (system, within);
                    }
                }
            }
        }
        self.shortest = Some(known);
        Ok(self)
    }
}
