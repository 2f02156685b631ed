//! `safe` with a proof that convinces.
//!
//! Engines that give no proofs are right nevertheless, and what is safe has a proof whoever has found out: another engine is asked for it. Both must be of one mind.

use crate::auto::{self, Said};
use crate::check::{CheckError, CheckOptions, EngineChoice, Proved, Wanted};
use crate::engines;
use palisade_certificate::{Refusal, verify};
use palisade_engine::{Budget, Outcome, Progress, Proof, Proofs, Reason, Task, Verdict};
use palisade_report::Certified;
use std::time::Instant;

/// A proof from another engine than the one that says `safe`. If none is found and it was to be checked, the answer becomes unknown.
pub(crate) fn by_another(
    task: &Task<'_>,
    outcome: &mut Outcome,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    wanted: Wanted,
) -> Result<(Option<Proved>, Option<Certified>), CheckError> {
    let safe = outcome.engine;
    let others = |task: &Task<'_>| {
        let mut others = match options.engine {
            // All have been asked.
            EngineChoice::Auto => Vec::new(),
            EngineChoice::Named(_) => engines::suited(task, wanted),
        };
        others.retain(|engine| engine.proofs() > Proofs::None && engine.name() != safe);
        others
    };
    let Said { asked, .. } = auto::ask_all(&others, task, budget, progress, wanted)?;
    let other = asked.outcome.engine;
    let why = match (asked.outcome.verdict, asked.proof) {
        (Verdict::Unsafe(_) | Verdict::Unknown(Reason::Unshown(_)), _) => {
            return Err(CheckError::Disagreement { safe, other });
        }
        (Verdict::Safe, Some(proof)) => {
            return Ok((Some(Proved { engine: other, proof }), asked.certified));
        }
        (Verdict::Safe, None) => None,
        (Verdict::Unknown(reason), _) => Some(reason),
    };
    if wanted == Wanted::Checked {
        let unproved =
            format!("engine `{safe}` says safe, but no engine gives a proof that could be checked");
        let unproved = Reason::Unsupported(unproved);
        outcome.verdict =
            Verdict::Unknown(match budget.check(0).err().or(why.as_ref().and_then(Reason::what_ran_out)) {
                Some(what) => Reason::exhausted(what, Some(unproved)),
                None => unproved,
            });
    }
    Ok((None, None))
}

/// Checks the proof of `safe`. If the budget runs out, the answer becomes unknown.
pub(crate) fn checked(
    task: &Task<'_>,
    outcome: &mut Outcome,
    proof: &Proof,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Option<Certified>, CheckError> {
    let engine = outcome.engine;
    let start = Instant::now();
    let verified = budget.within(|| verify(task, proof, budget, progress));
    match verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what))) {
        Ok(summary) => Ok(Some(Certified {
            engine,
            kind: palisade_certificate::kind(proof),
            elements: summary.elements as u64,
            seconds: start.elapsed().as_secs_f64(),
        })),
        Err(Refusal::Exhausted(what)) => {
            let reached = format!("engine `{engine}` says safe, but its proof was not checked to the end");
            outcome.verdict = Verdict::Unknown(Reason::exhausted(what, Some(Reason::Unsupported(reached))));
            Ok(None)
        }
        Err(refusal) => Err(CheckError::ProofRefused { engine, refusal: Box::new(refusal) }),
    }
}
