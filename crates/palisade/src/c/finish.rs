//! Whether a C program can get stuck, and whether it can always finish.
//!
//! *Problem.* A thread that waits forever for a lock or for a signal breaks the program without any assertion. In C
//! no wait is an assumption, so this is asked about every program that is otherwise safe.
//!
//! *What is asked*, about the program in which waits on condition variables end only by signals and timeouts
//! ([`Aim::Progress`](super::Aim)):
//! 1. Can all running threads get stuck before the program is over?
//! 2. From every state, can the program still finish: can `main` return, or a thread call `exit`? This is not
//!    asked of a program that has no path to its end. Without `main`: can all threads end?
//!
//! A program that has ended is not stuck, whatever its threads were waiting for.
//!
//! *Guarantee.*
//! - A run to a deadlock, or to a state from which the program cannot finish, is replayed on the trusted machine
//!   like every other run.
//! - Whatever was not decided is stated next to the verdict: it is never a plain `safe`.

use super::any::UNKNOWN_NUMBER;
use super::{Aim, Input};
use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice};
use crate::coverage::CoverageWanted;
use crate::error::{AskError, Bug};
use crate::progress::{Deadlocks, answer_about, undecided};
use palisade_c::Finish;
use palisade_certificate::{Refusal, verify_ranking};
use palisade_engine::{DeadlockFreedom, GoalsReachable, Limits, Reason, Verdict};
use palisade_program::Waits;
use palisade_program::written::Program;
use std::time::Instant;

/// The engine that answers these questions.
const EXPLICIT: &str = "explicit";

/// Without a time limit, at most this many states are visited for each of the questions. The answer about bad states
/// is worth more than an endless search for an answer about the end.
const BUDGET: u64 = 1 << 21;

/// The maximum number of states in a proof that the program can finish. Each is kept as a whole.
const RANKED: u64 = 1 << 18;

/// Adds to a positive answer what is known about the end of the program. If it can get stuck, the input becomes the
/// program that has the run.
pub(super) fn with_finish(
    input: &mut Input,
    answer: Answer,
    options: &CheckOptions,
    start: Instant,
    limits: &Limits,
) -> Result<Answer, AskError> {
    let asked = input.c.as_ref().is_some_and(|c| c.asks_finish() && !c.build.within_limits);
    if !asked || answer.outcome.verdict != Verdict::Holds {
        return Ok(answer);
    }
    if let EngineChoice::Named(name) = &options.engine
        && name != EXPLICIT
    {
        let why =
            format!("engine `{name}` does not look for deadlocks; use explicit or auto, or --no-deadlock");
        return Ok(super::check::unknown(answer, Reason::Unsupported(why)));
    }
    let mut answer = answer;
    let Some(Ok(other)) = input.for_progress() else {
        answer.add_note(
            "whether it can get stuck is not known: it could not be translated for that question".to_owned(),
        );
        return Ok(answer);
    };
    let finish = other.c.as_ref().map(|c| c.finish.clone());
    let Some(finish) = finish else { return Ok(answer) };
    if let Finish::NotFollowed(why) = finish {
        answer.add_note(format!("deadlocks are not ruled out: {why}"));
        return Ok(answer);
    }
    if let (Some(c), Some(of_other)) = (&mut input.c, &other.c) {
        let more = of_other.notes.iter().filter(|note| !c.notes.contains(note)).cloned().collect::<Vec<_>>();
        c.notes.extend(more);
    }
    let wanted = options;
    let options =
        CheckOptions { prove: false, certify: false, coverage: CoverageWanted::No, ..options.clone() };
    let limits = limits.clone().at_most_work(BUDGET);
    let program = &other.program;
    let stuck = answer_about::<DeadlockFreedom>(program, &options, &answer, start, &limits)?;
    match &stuck.outcome.verdict {
        Verdict::Violated(_) => {
            *input = other;
            return Ok(stuck);
        }
        Verdict::Holds => answer.add_note("free of deadlocks".to_owned()),
        Verdict::Unknown(reason) => answer.add_note(format!("deadlocks are not ruled out: {reason}")),
    }
    let mut all_hold = stuck.outcome.verdict == Verdict::Holds;
    let (can, whether) = match finish {
        Finish::Over => ("`main` can always finish", "whether `main` can always finish is not known"),
        Finish::AllEnded => ("all threads can always end", "whether all threads can always end is not known"),
        Finish::Never | Finish::NotFollowed(_) => {
            prove_finish(&mut answer, program, wanted, all_hold, &limits)?;
            return Ok(answer);
        }
    };
    let goals = answer_about::<GoalsReachable>(program, &options, &answer, start, &limits)?;
    match &goals.outcome.verdict {
        Verdict::Violated(_) => {
            *input = other;
            return Ok(goals);
        }
        Verdict::Holds => answer.add_note(can.to_owned()),
        Verdict::Unknown(reason) => answer.add_note(format!("{whether}: {reason}")),
    }
    all_hold &= goals.outcome.verdict == Verdict::Holds;
    prove_finish(&mut answer, program, wanted, all_hold, &limits)?;
    Ok(answer)
}

/// Adds the proof that a program never gets stuck and can finish, if a proof is wanted and there is one. It ranks all
/// states of the trusted machine, so it exists only for programs with few states. If the proof is to be checked, this
/// is done here, and the answer says what the proof leaves out.
fn prove_finish(
    answer: &mut Answer,
    program: &Program,
    options: &CheckOptions,
    all_hold: bool,
    limits: &Limits,
) -> Result<(), AskError> {
    if !(options.prove || options.certify) || answer.proof.is_none() {
        return Ok(());
    }
    let mut task = options.task(program);
    task.options.waits = Waits::Retry;
    let limits = limits.clone().at_most_work(RANKED);
    let found = match (all_hold, undecided(program)) {
        (true, None) => palisade_explore::ranking(&task, true, &limits),
        _ => Ok(None),
    };
    match found {
        Ok(Some(ranking)) if options.certify => {
            let checked = limits.within(|| verify_ranking(&task, true, &ranking, &limits));
            match checked.unwrap_or_else(|what| Err(Refusal::Exhausted(what))) {
                Ok(_) => answer.finish = Some(ranking),
                Err(Refusal::Exhausted(_)) => {}
                Err(refusal) => {
                    return Err(Bug::ProofRefused { engine: EXPLICIT, refusal: Box::new(refusal) }.into());
                }
            }
        }
        Ok(Some(ranking)) => answer.finish = Some(ranking),
        // Both questions were answered by a search with reductions. Now a search of all states contradicts it.
        Ok(None) if all_hold && undecided(program).is_none() => {
            let what = "all of them lead to the end, but not in the proof".to_owned();
            return Err(Bug::Contradiction { engine: EXPLICIT, what }.into());
        }
        Ok(None) | Err(_) => {}
    }
    if answer.finish.is_none() {
        answer.add_note("the proof leaves out deadlocks and the end".to_owned());
    }
    Ok(())
}

/// Makes a C program state what is asked about its end, so that fences are found that keep it possible, and says
/// whether deadlocks are asked about. Returns why not, if that is not possible.
///
/// The program that states it has the same bad runs as before ([`Aim::Both`]).
pub fn state_finish(input: &mut Input) -> Result<Deadlocks, &'static str> {
    if input.c.as_ref().is_some_and(|c| c.any_threads() && c.recipe.options.finish) {
        return Err(UNKNOWN_NUMBER);
    }
    if !input.c.as_ref().is_some_and(|c| c.asks_finish()) {
        return Ok(Deadlocks::IfStated);
    }
    let Some(Ok(other)) = input.translated_for(Aim::Both) else {
        return Err("it could not be translated for that question");
    };
    let deadlocks = match other.c.as_ref().map(|c| (&c.finish, c.spurious)) {
        Some((Finish::NotFollowed(why), _)) => return Err(why),
        // A program that cannot get stuck before its end is checked for deadlocks, too.
        Some((Finish::Over | Finish::AllEnded, _)) | None => Deadlocks::IfStated,
        Some((Finish::Never, false)) => Deadlocks::Asked,
        Some((Finish::Never, true)) => {
            return Err("it never ends, and its waits on condition variables can end spuriously");
        }
    };
    *input = other;
    Ok(deadlocks)
}
