//! Asking one engine. No witness is believed unless the trusted machine confirms it.

use crate::answer::Answer;
use crate::error::{AskError, Bug};
use crate::progress::Deadlocks;
use crate::prove;
use crate::question::{Ask, Confirmed, Wanted};
use palisade_base::limits;
use palisade_engine::{
    Analysis, Certified, Engine, Exhausted, Limits, Outcome, Proof, Reason, Task, Verdict, peak_memory_bytes,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// An engine's answer, with the confirmed witness of a violation or the proof of a positive answer. Also
/// records how the proof was checked, if it was.
#[derive(Debug)]
pub(crate) struct EngineAnswer<Q: Ask> {
    pub(crate) outcome: Outcome<Q>,
    pub(crate) confirmed: Option<Confirmed<Q>>,
    pub(crate) proof: Option<Proof>,
    pub(crate) certified: Option<Certified>,
}

impl<Q: Ask> EngineAnswer<Q> {
    /// No engine answered, and why.
    pub(crate) fn nothing(why: Reason) -> EngineAnswer<Q> {
        EngineAnswer { outcome: Outcome::unknown("auto", why), confirmed: None, proof: None, certified: None }
    }

    /// The answer to the question, asked at `start`.
    pub(crate) fn answer(self, others: Vec<Outcome<Q>>, task: &Task<'_>, start: Instant) -> Answer<Q> {
        Answer {
            outcome: self.outcome,
            others,
            model: task.model,
            interlocked: task.interlocked,
            threads: task.threads,
            seconds: start.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory_bytes(),
            proof: None,
            ranking: None,
            finish: None,
            domains: Vec::new(),
            modulus: None,
            deadlocks: Deadlocks::IfStated,
            certified: self.certified,
            progress: None,
            reach: None,
            shortest: None,
            also_under_sc: None,
            addresses: None,
            confirmed: self.confirmed,
        }
    }
}

/// Asks one engine within `limits`. If the proof is to be checked, that is done here. If the limits are
/// reached during the check, there is no answer.
///
/// The witness is confirmed within the limits of the whole question, which may be more than the engine was
/// given.
pub(crate) fn ask<Q: Ask>(
    engine: &dyn Engine<Q>,
    analysis: &Analysis<'_>,
    limits: &Limits,
    whole: &Limits,
    wanted: Wanted,
) -> Result<EngineAnswer<Q>, AskError> {
    // The order matters: reaching a limit is not a panic.
    let answered = unless_it_panics(|| {
        limits.within(|| match wanted {
            Wanted::Answer => (engine.check(analysis, limits), None),
            Wanted::Proof | Wanted::Checked => engine.prove(analysis, limits),
        })
    });
    let answered = answered.map_err(|what| Bug::Panicked { engine: engine.name(), what })?;
    let ran_out = |what| (Outcome::unknown(engine.name(), Reason::Exhausted(what)), None);
    let (mut outcome, mut proof) = answered.unwrap_or_else(ran_out);
    if let Some(what) = outcome.verdict.reason().and_then(Reason::bug) {
        return Err(Bug::Contradiction { engine: outcome.engine, what: what.to_owned() }.into());
    }
    let confirmed = confirm(analysis, &mut outcome, whole)?;
    let mut certified = None;
    if let Some(found) = proof.take_if(|_| wanted == Wanted::Checked) {
        certified = prove::checked(analysis, &mut outcome, &found, limits)?;
        proof = certified.is_some().then_some(found);
    }
    Ok(EngineAnswer { outcome, confirmed, proof, certified })
}

/// What an engine answers, or the message of its panic. An engine that panicked is not asked again, so the
/// state it left does not matter.
fn unless_it_panics<T>(answer: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(answer)).map_err(|panic| {
        let panic = limits::unless_leaving(panic);
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

/// The confirmed witness of a violation. If the limits are reached before it is confirmed, the answer becomes
/// unknown.
pub(crate) fn confirm<Q: Ask>(
    analysis: &Analysis<'_>,
    outcome: &mut Outcome<Q>,
    limits: &Limits,
) -> Result<Option<Confirmed<Q>>, AskError> {
    let engine = outcome.engine;
    let Verdict::Violated(witness) = &mut outcome.verdict else { return Ok(None) };
    // A run that was found at the last moment is worth a little more time.
    match Q::confirm(analysis, witness, &limits.clone().with_grace()) {
        Ok(Ok(confirmed)) => Ok(Some(confirmed)),
        Ok(Err(error)) => Err(Bug::Unconfirmed { engine, word: Q::VIOLATED, error }.into()),
        Err(what) => {
            outcome.verdict = not_replayed::<Q>(engine, what);
            Ok(None)
        }
    }
}

pub(crate) fn not_replayed<Q: Ask>(engine: &str, what: Exhausted) -> Verdict {
    let found = format!("engine `{engine}` says `{}`, but its run was not replayed to the end", Q::VIOLATED);
    Verdict::Unknown(Reason::exhausted(what, Some(Reason::Observed(found))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_conformance::TestEngine;
    use palisade_engine::{Safety, Suitability, Witness};
    use palisade_memory::{Action, Model, Step};
    use palisade_program::Instantiation;
    use palisade_program::running::{EdgeId, ThreadId};
    use palisade_syntax::{Language, parse};
    use palisade_trace::Run;

    /// Answers `unsafe` with this run, whatever the program.
    fn liar(run: Run) -> TestEngine {
        let witness = Witness { instantiation: Instantiation { any: 1, every: None }, run };
        TestEngine::new("liar", move |_, _| Verdict::Violated(witness.clone())).suiting(Suitability::Decides)
    }

    #[test]
    fn a_run_that_does_not_replay_is_an_error_not_a_verdict() {
        let source = Source::new("p", "shared x: 0..1; process P { x = 1; assert(x == 0); }");
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let task = Task::new(&program, Model::Sc);
        let step =
            |edge| Step { thread: ThreadId(0), action: Action::Execute { edge: EdgeId(edge), choice: None } };
        let limits = Limits::unlimited(1);
        let check = |memory: i64, steps: &[Step], expected: Result<usize, &str>| {
            let liar = liar(Run { memory: vec![memory], steps: steps.to_vec() });
            let answer = ask::<Safety>(&liar, &task.analysis(), &limits, &limits, Wanted::Answer);
            match (answer, expected) {
                (Ok(EngineAnswer { confirmed: Some(confirmed), .. }), Ok(steps)) => {
                    assert_eq!(confirmed.replay.effects.len(), steps)
                }
                (Err(error), Err(part)) => {
                    let error = error.to_string();
                    assert!(error.contains(part) && error.contains("This is a bug in Palisade"), "{error}");
                }
                (found, _) => panic!("{steps:?}: {:?}", found.map(|answer| answer.outcome)),
            }
        };
        check(0, &[step(0), step(1), step(2)], Ok(3));
        check(1, &[step(0), step(1), step(2)], Err("does not start in an initial state"));
        check(0, &[step(1)], Err("step 1 is not possible"));
        check(0, &[step(0), step(1)], Err("violates nothing"));
        check(0, &[], Err("violates nothing"));
    }
}
