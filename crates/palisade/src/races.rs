//! Data races, which only explicit search looks for.
//!
//! All other questions are asked about the program with its plain accesses unmarked, which has the same runs.
//! So every engine can answer them, and proofs are about that program. Unless it is unsafe, explicit search then looks for
//! races.
//!
//! In C programs, `free` and the end of a local variable are plain stores of a mark. A store of another thread that
//! comes later finds the mark. Only under PSO can such a store come earlier and still be pending, so that it reaches
//! memory that is unused or in use for something else by then: that is a race between the store and the mark. Under
//! SC and TSO the marks need not be plain.

use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice, check, check_states};
use crate::coverage::CoverageWanted;
use crate::error::AskError;
use palisade_engine::{Limits, ONLY_EXPLICIT_FINDS_RACES, Reason, Verdict};
use palisade_memory::Model;
use palisade_program::written::Program;
use std::time::Instant;

/// The engine that looks for data races.
const EXPLICIT: &str = "explicit";

/// Checks a program with plain accesses.
pub(crate) fn check_with_races(
    program: &Program,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Answer, AskError> {
    let start = Instant::now();
    let unmarked = (options.model != Model::Pso).then(|| program.without_plain_stores_of(palisade_c::FREED));
    let program = unmarked.as_ref().unwrap_or(program);
    let mut answer = check(&program.without_plain(), options, limits)?;
    if matches!(answer.outcome.verdict, Verdict::Violated(_)) || !program.has_plain() {
        return Ok(answer);
    }
    let looks = match &options.engine {
        EngineChoice::Auto => true,
        EngineChoice::Named(name) => name == EXPLICIT,
    };
    if !looks {
        if matches!(answer.outcome.verdict, Verdict::Unknown(_)) {
            answer.add_note(format!("data races are not ruled out: {ONLY_EXPLICIT_FINDS_RACES}"));
            return Ok(answer);
        }
        let why = Reason::Unsupported(ONLY_EXPLICIT_FINDS_RACES.to_owned());
        answer.outcome.verdict = Verdict::Unknown(why);
        (answer.proof, answer.certified) = (None, None);
        return Ok(answer);
    }
    let options = CheckOptions {
        engine: EngineChoice::Named(EXPLICIT.to_owned()),
        prove: false,
        certify: false,
        coverage: CoverageWanted::No,
        ..options.clone()
    };
    let found = check_states(program, &options, limits)?;
    match (&found.outcome.verdict, &mut answer.outcome.verdict) {
        (Verdict::Violated(_), _) => {
            return Ok(Answer { seconds: start.elapsed().as_secs_f64(), ..found });
        }
        (Verdict::Holds, _) => {}
        // What is known of both holds within both bounds.
        (Verdict::Unknown(bound), Verdict::Unknown(known)) if bound.is_bound() && known.is_bound() => {
            let both = Reason::within([known.clone(), bound.clone()]);
            *known = both.expect("there are two bounds");
        }
        (Verdict::Unknown(reason), _) => {
            let note = format!("data races are not ruled out: {reason}");
            answer.add_note(note);
        }
    }
    answer.seconds = start.elapsed().as_secs_f64();
    Ok(answer)
}
