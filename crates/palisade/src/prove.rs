//! `safe` with a proof that the checker accepts.
//!
//! Engines that give no proofs are still right, and a safe program has a proof, whichever engine found it to be
//! safe. So another engine is asked for the proof. Both must agree.

use crate::answer::Proved;
use crate::ask::EngineAnswer;
use crate::check::{CheckOptions, EngineChoice};
use crate::engines;
use crate::error::{AskError, Bug};
use crate::portfolio::{self, PortfolioAnswer};
use crate::question::{Ask, Wanted};
use palisade_certificate::{Refusal, verify};
use palisade_engine::{Analysis, Certified, Limits, Outcome, Proof, Proofs, Reason, Safety, Verdict};
use std::time::Instant;

/// A proof from an engine other than the one that answered `safe`. If no proof is found and it was to be
/// checked, the answer becomes unknown.
pub(crate) fn by_another(
    analysis: &Analysis<'_>,
    outcome: &mut Outcome,
    options: &CheckOptions,
    limits: &Limits,
    wanted: Wanted,
) -> Result<(Option<Proved>, Option<Certified>), AskError> {
    let safe = outcome.engine;
    let others = |analysis: &Analysis<'_>| {
        let mut others = match options.engine {
            // All engines have already been asked.
            EngineChoice::Auto => Vec::new(),
            EngineChoice::Named(_) => engines::suited::<Safety>(analysis, wanted),
        };
        others.retain(|engine| engine.proofs() > Proofs::None && engine.name() != safe);
        others
    };
    let PortfolioAnswer { answer, .. } = portfolio::ask_all(&others, analysis, limits, wanted)?;
    let EngineAnswer { outcome: other, proof, certified, .. } = answer;
    let why = match (other.verdict, proof) {
        (Verdict::Violated(_) | Verdict::Unknown(Reason::Unshown(_)), _) => {
            return Err(disagreement::<Safety>(safe, other.engine));
        }
        (Verdict::Holds, Some(proof)) => {
            return Ok((Some(Proved { engine: other.engine, proof }), certified));
        }
        (Verdict::Holds, None) => None,
        (Verdict::Unknown(reason), _) => Some(reason),
    };
    if wanted == Wanted::Checked {
        let unproved =
            format!("engine `{safe}` says `safe`, but no engine gives a proof that could be checked");
        let unproved = Reason::Observed(unproved);
        outcome.verdict =
            Verdict::Unknown(match limits.check(0).err().or(why.as_ref().and_then(Reason::what_ran_out)) {
                Some(what) => Reason::exhausted(what, Some(unproved)),
                None => unproved,
            });
    }
    Ok((None, None))
}

/// One engine gives a positive answer, and the other contradicts it.
pub(crate) fn disagreement<Q: Ask>(holds: &'static str, other: &'static str) -> AskError {
    Bug::Disagreement { holds, word: Q::HOLDS, other }.into()
}

/// Checks the proof of a positive answer. If the limits are reached, the answer becomes unknown.
pub(crate) fn checked<Q: Ask>(
    analysis: &Analysis<'_>,
    outcome: &mut Outcome<Q>,
    proof: &Proof,
    limits: &Limits,
) -> Result<Option<Certified>, AskError> {
    let engine = outcome.engine;
    let start = Instant::now();
    let verified = limits.within(|| verify(&analysis.task, proof, limits));
    match verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what))) {
        Ok(summary) => Ok(Some(Certified {
            engine,
            kind: proof.kind(),
            elements: summary.elements as u64,
            seconds: start.elapsed().as_secs_f64(),
        })),
        Err(Refusal::Exhausted(what)) => {
            let reached =
                format!("engine `{engine}` says `{}`, but its proof was not checked to the end", Q::HOLDS);
            outcome.verdict = Verdict::Unknown(Reason::exhausted(what, Some(Reason::Observed(reached))));
            Ok(None)
        }
        Err(refusal) => Err(Bug::ProofRefused { engine, refusal: Box::new(refusal) }.into()),
    }
}
