//! Changes of texts: formatting, and fences.

use crate::position::Lines;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, Command, Diagnostic, NumberOrString, TextEdit, Uri,
    WorkspaceEdit,
};
use palisade::Source;
use palisade::report::changed_lines;
use palisade::syntax::format_pal;
use serde_json::json;
use std::collections::HashMap;

/// The fences that make a program right.
#[derive(Clone, Debug)]
pub(crate) struct Fix {
    /// What it does, in words.
    pub(crate) title: String,
    /// What it achieves, in words.
    pub(crate) why: String,
    /// The changes of each file.
    pub(crate) changes: Vec<(Uri, Vec<TextEdit>)>,
}

/// The edits that turn a text into another one, by lines.
pub(crate) fn edits(before: &str, after: &str) -> Vec<TextEdit> {
    let lines = Lines::new(before);
    let starts: Vec<usize> = before
        .split_inclusive('\n')
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some(start)
        })
        .chain([before.len()])
        .collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    changed_lines(before, after)
        .into_iter()
        .map(|(old, fresh)| {
            let at = |line: usize| lines.position(before, starts[line.min(starts.len() - 1)]);
            TextEdit {
                range: lsp_types::Range::new(at(old.start), at(old.end)),
                new_text: new[fresh].concat(),
            }
        })
        .collect()
}

/// The edits that format a `.pal` program; none if it cannot be parsed.
pub(crate) fn formatting(source: &Source) -> Option<Vec<TextEdit>> {
    let formatted = format_pal(source).ok()?;
    Some(edits(source.main_text(), &formatted))
}

/// Quick fixes: the fences that were found, or the offer to look for them.
pub(crate) fn actions(
    uri: &Uri,
    fix: Option<&Fix>,
    diagnostics: Vec<Diagnostic>,
) -> Vec<CodeActionOrCommand> {
    let broken: Vec<Diagnostic> = diagnostics.into_iter().filter(fences_may_help).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    let action = match fix {
        Some(fix) => CodeAction {
            title: fix.title.clone(),
            edit: Some(WorkspaceEdit { changes: Some(changes(fix)), ..WorkspaceEdit::default() }),
            ..CodeAction::default()
        },
        None => CodeAction {
            title: "Look for fences".to_owned(),
            command: Some(Command {
                title: "Look for fences".to_owned(),
                command: "palisade.fences".to_owned(),
                arguments: Some(vec![json!(uri)]),
            }),
            ..CodeAction::default()
        },
    };
    let is_preferred = fix.is_some().then_some(true);
    let kind = Some(CodeActionKind::QUICKFIX);
    vec![CodeActionOrCommand::CodeAction(CodeAction {
        kind,
        is_preferred,
        diagnostics: Some(broken),
        ..action
    })]
}

#[allow(clippy::mutable_key_type, reason = "the type of the protocol's crate")]
fn changes(fix: &Fix) -> HashMap<Uri, Vec<TextEdit>> {
    fix.changes.iter().cloned().collect()
}

/// Whether a diagnostic is about a run that fences may rule out.
fn fences_may_help(diagnostic: &Diagnostic) -> bool {
    let ids = ["unsafe", "not-robust", "overtakes", "fences"];
    matches!(&diagnostic.code, Some(NumberOrString::String(id)) if ids.contains(&id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after edits that do not overlap.
    fn applied(text: &str, edits: &[TextEdit]) -> String {
        let lines = Lines::new(text);
        let mut text_after = text.to_owned();
        for edit in edits.iter().rev() {
            let (start, end) = (lines.byte(text, edit.range.start), lines.byte(text, edit.range.end));
            text_after.replace_range(start..end, &edit.new_text);
        }
        text_after
    }

    #[test]
    fn edits_turn_one_text_into_the_other() {
        let texts = ["", "a\n", "a", "a\nb\nc\n", "a\nx\nc\n", "b\r\nc\n", "a\nb\nc", "x\na\nb\n\nc\ny"];
        for before in texts {
            for after in texts {
                assert_eq!(applied(before, &edits(before, after)), after, "{before:?}");
            }
        }
    }

    #[test]
    fn only_lines_that_change_are_edited() {
        let found = edits("a\nb\nc\n", "a\nnew\nb\nc\n");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].range.start.line, found[0].range.end.line, found[0].new_text.as_str()),
            (1, 1, "new\n")
        );
    }
}
