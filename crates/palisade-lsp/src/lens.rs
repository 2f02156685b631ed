//! The line above a program: check · robust · fences, each with the last answer.

use crate::questions::Asked;
use lsp_types::{CodeLens, Command, Range, Uri};
use serde_json::json;
use std::collections::BTreeMap;

/// The commands that clients can run. Each takes the address of a file.
pub(crate) const COMMANDS: [&str; 4] =
    ["palisade.check", "palisade.robust", "palisade.fences", "palisade.html"];

/// The lenses of a file.
pub(crate) fn lenses(uri: &Uri, answers: &BTreeMap<Asked, String>) -> Vec<CodeLens> {
    let lens = |asked: Asked| CodeLens {
        range: Range::default(),
        command: Some(Command {
            title: answers
                .get(&asked)
                .map_or_else(|| asked.name().to_owned(), |answer| format!("{}: {answer}", asked.name())),
            command: format!("palisade.{}", asked.name()),
            arguments: Some(vec![json!(uri)]),
        }),
        data: None,
    };
    [Asked::Check, Asked::Robust, Asked::Fences].into_iter().map(lens).collect()
}
