//! Whether an `unsafe` program also breaks without store buffers.

use crate::Input;
use crate::answer::Answer;
use crate::check::{CheckOptions, EngineChoice, check};
use crate::error::AskError;
use crate::progress::Deadlocks;
use palisade_engine::{Limits, Safety, Silent, Verdict};
use palisade_memory::{Model, Violation};
use std::sync::Arc;

/// How many states the search under SC may visit. The remark is worth a moment, not a second search.
const WORK: u64 = 1 << 14;

impl Answer<Safety> {
    /// The same answer. If it is `unsafe` under TSO or PSO, it now says whether the program is unsafe under
    /// SC, if a small search finds that out.
    pub fn compared_with_sc(
        mut self,
        input: &Input,
        options: &CheckOptions,
        limits: &Limits,
    ) -> Result<Answer, AskError> {
        if self.model == Model::Sc || self.outcome.verdict.witness().is_none() {
            return Ok(self);
        }
        let violation = self.confirmed.as_ref().and_then(|confirmed| confirmed.replay.violation);
        let under_sc = CheckOptions {
            deadlocks: match violation {
                Some(Violation::Deadlock) => Deadlocks::Asked,
                _ => options.deadlocks,
            },
            model: Model::Sc,
            engine: EngineChoice::Named("explicit".to_owned()),
            prove: false,
            certify: false,
            ..options.clone()
        };
        let limits = limits.clone().at_most_work(WORK).with_progress(Arc::new(Silent));
        let answer = check(&input.program, &under_sc, &limits)?;
        self.also_under_sc = match answer.outcome.verdict {
            _ if answer.exceeds_limits(input) => None,
            Verdict::Holds => Some(false),
            Verdict::Violated(_) => Some(true),
            Verdict::Unknown(_) => None,
        };
        Ok(self)
    }
}
