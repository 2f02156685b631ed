//! Checking a certificate against its program.

use palisade_certificate::{Certificate, Refusal, Summary, verify};
use palisade_engine::{Budget, Options, Progress, Task};
use palisade_memory::Model;
use palisade_program::written::Program;

/// Why a certificate does not convince.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertifyError {
    /// It is of a model that there is not.
    #[error("there is no memory model `{0}`")]
    NoSuchModel(String),
    /// The proof has a gap.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Checks that a certificate shows the program to be safe, with code that shares nothing with the engines.
pub fn certify(
    program: &Program,
    certificate: &Certificate,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Summary, CertifyError> {
    let model = Model::ALL.into_iter().find(|model| model.name() == certificate.model);
    let model = model.ok_or_else(|| CertifyError::NoSuchModel(certificate.model.clone()))?;
    let task = Task {
        program,
        threads: certificate.threads,
        model,
        interlocked: certificate.interlocked,
        options: Options::default(),
    };
    Ok(verify(&task, &certificate.proof, budget, progress)?)
}
