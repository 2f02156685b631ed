//! The formatter of `.pal`: the same program, laid out the same way everywhere.
//!
//! It works on tokens, not on the written program: constants, parentheses and comments are what the author
//! wrote. Like gofmt, it decides about indentation and spaces, and leaves decisions about line breaks to the author
//! where both ways read well:
//!
//! - One item or statement per line, four spaces per level. Labels are one level further out.
//! - A block that is written on one line stays on one line. `{` stays with its heading, `else` and `or` with
//!   the `}` before them.
//! - A line break inside a statement is kept. The rest of the statement is indented by one level.
//! - Several blank lines become one. There are none at the start and the end of a block.
//! - Comments keep their text and their place among the tokens (`comments.rs`).
//!
//! *Guarantee*: the tokens and comments of the result are those of the input, which is asserted, so the result
//! parses into the same program. Formatting the result again changes nothing (tested). Linear time.

mod comments;
mod layout;
mod pieces;
mod spacing;

use crate::{Language, read};
use palisade_base::{Diagnostic, Source};
use std::borrow::Cow;

/// Errors about an import itself.
const IMPORTS: [&str; 2] = ["bad-import", "import-cycle"];

/// The text of a `.pal` program, formatted; of several files the main one. A text that does not parse is refused, with everything that is
/// wrong with it. Names and types do not matter, nor do the files that it imports.
pub fn format(source: &Source) -> Result<String, Vec<Diagnostic>> {
    read(Language::Pal, source).map(drop).or_else(|mut errors| {
        let main = source.file_span(0);
        errors.retain(|error| !IMPORTS.contains(&error.id) && main.to(error.span()) == main);
        let is_refused = errors.iter().any(Diagnostic::is_error);
        if is_refused { Err(errors) } else { Ok(()) }
    })?;
    let text = source.main_text();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = with_plain_line_ends(text);
    let pieces = pieces::pieces(&plain);
    let formatted = layout::lines(&plain, &pieces);
    assert!(
        pieces::same(&pieces, &pieces::pieces(&formatted)),
        "formatting changes neither tokens nor comments"
    );
    // A file keeps the kind of its first line end.
    let first = text.find('\n').filter(|&end| text[..end].ends_with('\r'));
    Ok(if first.is_some() { formatted.replace('\n', "\r\n") } else { formatted })
}

/// The text with `\n` at the end of every line.
fn with_plain_line_ends(text: &str) -> Cow<'_, str> {
    if !text.contains("\r\n") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                plain.push_str(line.trim_end_matches('\r'));
                plain.push('\n');
            }
            None => plain.push_str(line),
        }
    }
    Cow::Owned(plain)
}
