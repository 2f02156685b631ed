//! Checking a certificate against its program.

use crate::AskError;
use crate::progress::undecided;
use palisade_certificate::{
    Certificate, Refusal, Summary, verify, verify_fair, verify_progress, verify_ranking,
};
use palisade_engine::{Limits, Options, Task};
use palisade_program::written::{Program, Progress, ProgressKind};

/// Checks that a certificate proves the program safe for the question that it records. The code that checks
/// it shares nothing with the engines. What the program says must stay possible is checked too.
pub fn certify(program: &Program, certificate: &Certificate, limits: &Limits) -> Result<Summary, Refusal> {
    if let Err(error) = AskError::check_threads(program, certificate.threads) {
        return Err(Refusal::Unfit(error.to_string()));
    }
    let task = Task {
        program,
        threads: certificate.threads,
        model: certificate.model,
        interlocked: certificate.interlocked,
        options: Options::default(),
    };
    let verified = limits.within(|| verify(&task, &certificate.proof, limits));
    let summary = verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    if program.progress.is_empty() && !certificate.deadlocks {
        return match certificate.ranking {
            None => Ok(summary),
            Some(_) => Err(Refusal::Unfit("it ranks states, but nothing must stay possible".into())),
        };
    }
    if let Some(why) = undecided(program) {
        return Err(Refusal::Unsuited(why.to_string()));
    }
    let stated = |progress: &Progress| progress.kind == ProgressKind::DeadlockFree;
    let deadlocks = certificate.deadlocks || program.progress.iter().any(stated);
    let verified = limits.within(|| match &certificate.ranking {
        Some(ranking) => verify_ranking(&task, deadlocks, ranking, limits),
        None => verify_progress(&task, deadlocks, limits),
    });
    verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    if program.progress.iter().any(|progress| progress.kind.is_fair()) {
        let verified = limits.within(|| verify_fair(&task, limits));
        verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    }
    Ok(summary)
}
