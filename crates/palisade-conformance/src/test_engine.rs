//! An engine whose answers a test decides, for tests of the code that asks engines.

use palisade_engine::{Analysis, Engine, Limits, Outcome, Proof, Proofs, Stats, Suitability, Verdict};

type Answer = dyn Fn(&Analysis<'_>, &Limits) -> Verdict + Send + Sync;

/// An engine that answers with the verdict a closure returns.
pub struct TestEngine {
    name: &'static str,
    suits: Suitability,
    proofs: Proofs,
    answer: Box<Answer>,
}

impl TestEngine {
    /// An engine that tries every question and proves nothing.
    pub fn new(
        name: &'static str,
        answer: impl Fn(&Analysis<'_>, &Limits) -> Verdict + Send + Sync + 'static,
    ) -> TestEngine {
        TestEngine { name, suits: Suitability::Tries, proofs: Proofs::None, answer: Box::new(answer) }
    }

    /// The same, but it suits every question this well.
    pub fn suiting(self, suits: Suitability) -> TestEngine {
        TestEngine { suits, ..self }
    }

    /// The same, but it claims to give such proofs. Whenever it answers that the property holds, its proof is
    /// that a search visited all states.
    pub fn proving(self, proofs: Proofs) -> TestEngine {
        TestEngine { proofs, ..self }
    }
}

impl Engine for TestEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        self.suits
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        Outcome::new(self.name, (self.answer)(analysis, limits), Stats::new())
    }

    fn proofs(&self) -> Proofs {
        self.proofs
    }

    fn prove(&self, analysis: &Analysis<'_>, limits: &Limits) -> (Outcome, Option<Proof>) {
        let outcome = self.check(analysis, limits);
        let proves = self.proofs > Proofs::None && outcome.verdict == Verdict::Holds;
        (outcome, proves.then_some(Proof::AllStates))
    }
}
