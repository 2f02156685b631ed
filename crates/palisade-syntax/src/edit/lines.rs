//! The lines of a text: where they begin and end, and how they are indented.

/// The start of the line that contains a position.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The end of the line that contains a position, without the line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if end > at && text.as_bytes()[end - 1] == b'\r' { end - 1 } else { end }
}

/// The line break at the end of the line that contains a position.
pub(super) fn newline(text: &str, at: usize) -> &'static str {
    if text[line_end(text, at)..].starts_with('\r') { "\r\n" } else { "\n" }
}

/// What precedes a position on its line, if that is only white space.
pub(super) fn margin(text: &str, at: usize) -> Option<&str> {
    let margin = &text[line_start(text, at)..at];
    margin.chars().all(|c| c == ' ' || c == '\t').then_some(margin)
}

/// The white space at the start of the line that contains a position.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
