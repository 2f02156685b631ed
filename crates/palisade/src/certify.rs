//! Checking a certificate against its program.

use palisade_certificate::{Certificate, Refusal, Summary, verify, verify_fair, verify_progress};
use palisade_engine::{Limits, Options, Task};
use palisade_program::written::{Program, ProgressKind};

/// Checks that a certificate proves the program safe for the question that it records. The code that checks
/// it shares nothing with the engines. What the program says must stay possible is checked too.
pub fn certify(program: &Program, certificate: &Certificate, limits: &Limits) -> Result<Summary, Refusal> {
    let task = Task {
        program,
        threads: certificate.threads,
        model: certificate.model,
        interlocked: certificate.interlocked,
        options: Options::default(),
    };
    let verified = limits.within(|| verify(&task, &certificate.proof, limits));
    let summary = verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    if program.progress.is_empty() {
        return Ok(summary);
    }
    // What must stay possible needs no data from an engine.
    let deadlocks = program.progress.iter().any(|progress| progress.kind == ProgressKind::DeadlockFree);
    let verified = limits.within(|| verify_progress(&task, deadlocks, limits));
    verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    if program.progress.iter().any(|progress| progress.kind.is_fair()) {
        let verified = limits.within(|| verify_fair(&task, limits));
        verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))?;
    }
    Ok(summary)
}
