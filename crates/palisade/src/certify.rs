//! Checking a certificate against its program.

use crate::AskError;
use crate::progress::undecided;
use crate::read::Input;
use palisade_certificate::{
    Certificate, Refusal, Summary, narrowed, verify, verify_fair, verify_progress, verify_ranking, wrapped,
};
use palisade_engine::proof::Ranking;
use palisade_engine::{Limits, Options, Task, Threads};
use palisade_program::written::{Program, Progress, ProgressKind};

/// Checks that a certificate proves a program safe, like [`certify`]. For a C program the certificate may also prove
/// that it is free of deadlocks and can finish: that is checked on its translation for this question.
pub fn certify_input(input: &Input, certificate: &Certificate, limits: &Limits) -> Result<Summary, Refusal> {
    let summary = certify(&input.program, certificate, limits)?;
    let Some(ranking) = &certificate.finish else { return Ok(summary) };
    let Some(Ok(other)) = input.for_progress() else {
        return Err(Refusal::Unfit(
            "it says that the program can finish, but the program cannot be translated for that question"
                .into(),
        ));
    };
    let verified = limits.within(|| certify_finish(&other.program, certificate, ranking, limits));
    verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    Ok(summary)
}

/// Checks that the translation of a C program for this question is free of deadlocks and can finish.
fn certify_finish(
    program: &Program,
    certificate: &Certificate,
    ranking: &Ranking,
    limits: &Limits,
) -> Result<Summary, Refusal> {
    if let Some(why) = undecided(program) {
        return Err(Refusal::Unsuited(why.to_string()));
    }
    verify_ranking(&task(program, certificate), true, ranking, limits)
}

fn task<'p>(program: &'p Program, certificate: &Certificate) -> Task<'p> {
    Task {
        program,
        threads: certificate.threads,
        model: certificate.model,
        interlocked: certificate.interlocked,
        options: Options::default(),
    }
}

/// Checks that a certificate proves the program safe for the question that it records. The code that checks
/// it shares nothing with the engines. What the program says must stay possible is checked too.
pub fn certify(program: &Program, certificate: &Certificate, limits: &Limits) -> Result<Summary, Refusal> {
    // Proofs are not about data races.
    let mut program = program.without_plain();
    if let Err(error) = AskError::check_threads(&program, certificate.threads) {
        return Err(Refusal::Unfit(error.to_string()));
    }
    if let Threads::Each(number) = certificate.threads {
        program = program.with_identities(number);
    }
    let program = &program;
    let narrow = narrowed(program, &certificate.domains)?;
    let narrow = match certificate.modulus {
        Some(modulus) => wrapped(&narrow, modulus)?,
        None => narrow,
    };
    let verified = limits.within(|| verify(&task(&narrow, certificate), &certificate.proof, limits));
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
    let task = task(program, certificate);
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
