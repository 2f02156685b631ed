//! Answers about safety: what is bad at the end of a run, and how a proof was checked.

use crate::{Explain, Finding, explain, forever};
use palisade_engine::{ProofKind, Safety};
use palisade_trace::Evidence;
use serde_json::Value;

impl Explain for Safety {
    type Shows = ();
    const COMMAND: &'static str = "check";

    fn violation(evidence: &Evidence<'_>, (): &()) -> String {
        explain(evidence)
    }

    fn shown_json(evidence: &Evidence<'_>, (): &()) -> Option<(&'static str, Value)> {
        forever::json(evidence)
    }

    fn good(finding: &Finding<'_>) -> Option<String> {
        let checked = match finding.certified?.kind {
            ProofKind::AllStates => "proof checked by visiting all states",
            _ => "proof checked",
        };
        Some(checked.to_owned())
    }
}
