//! Checking a certificate against its program.

use palisade_certificate::{Certificate, Refusal, Summary, verify};
use palisade_engine::{Limits, Options, Task};
use palisade_program::written::Program;

/// Checks that a certificate proves the program safe for the question that it records. The code that checks
/// it shares nothing with the engines.
pub fn certify(program: &Program, certificate: &Certificate, limits: &Limits) -> Result<Summary, Refusal> {
    let task = Task {
        program,
        threads: certificate.threads,
        model: certificate.model,
        interlocked: certificate.interlocked,
        options: Options::default(),
    };
    let verified = limits.within(|| verify(&task, &certificate.proof, limits));
    verified.unwrap_or_else(|what| Err(Refusal::Exhausted(what)))
}
