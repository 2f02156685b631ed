//! The heading of a litmus test: the architecture, the name, and everything before the initial state.

use super::lexer::skip_blanks;
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Span};

/// The architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arch {
    X86,
    X86_64,
}

/// The contents of the heading.
pub(super) struct Heading<'a> {
    pub(super) arch: Arch,
    /// The name of the test.
    pub(super) name: &'a str,
    /// Where the opening brace of the initial state is.
    pub(super) init: usize,
}

/// Parses the heading. Without one, nothing after it can be parsed.
pub(super) fn heading<'a>(text: &'a str, report: &mut Report) -> Option<Heading<'a>> {
    let start = skip_blanks(text, 0, report);
    let Some(line) = text[start..].lines().next().filter(|line| !line.trim().is_empty()) else {
        let diagnostic = Diagnostic::error("empty-program", "the file contains no litmus test");
        report.push(diagnostic.at(Span::new(0..0), "").help("a test begins with a line such as `X86_64 SB`"));
        return None;
    };
    let word = line.split([' ', '\t', '\r', '"', '{', '(']).next().unwrap_or("");
    let span = Span::new(start..start + word.len().max(1));
    let arch = match word {
        "X86" => Arch::X86,
        "X86_64" => Arch::X86_64,
        _ => {
            report.push(unknown_architecture(word, span));
            return None;
        }
    };
    let rest = &line[word.len()..];
    let name = rest.trim_start().split([' ', '\t', '\r', '"', '{', '(']).next().unwrap_or("");
    if name.is_empty() {
        let diagnostic = Diagnostic::error("missing-name", "the test has no name").at(span, "");
        report.push(
            diagnostic.help("the first line must contain the architecture and a name, such as `X86_64 SB`"),
        );
    }
    let mut at = start + word.len() + (rest.len() - rest.trim_start().len()) + name.len();
    loop {
        at = skip_blanks(text, at, report);
        let rest = &text[at..];
        let line = rest.lines().next().unwrap_or("");
        match rest.as_bytes().first() {
            Some(b'{') => return Some(Heading { arch, name, init: at }),
            Some(b'"') => at = skip_string(text, at, report),
            Some(_) if is_information(line) => at += line.len(),
            Some(_) if !line.contains('|') && !line.contains(';') => {
                at += line.find('{').unwrap_or(line.len());
            }
            _ => break,
        }
    }
    let end = text.trim_end().len();
    let first = text[at..].chars().next().filter(|_| at < end);
    let place = first.map_or(Span::new(end..end), |first| Span::new(at..at + first.len_utf8()));
    let diagnostic =
        Diagnostic::error("missing-initial-state", "the initial state is missing before this line");
    report.push(
        diagnostic.at(place, "").help("write it in braces before the code, or write `{}` if everything is 0"),
    );
    None
}

fn unknown_architecture(word: &str, span: Span) -> Diagnostic {
    let other = ["AArch64", "ARM", "PPC", "RISCV", "MIPS", "C", "LISA", "Bell", "CPP", "JAVA", "BPF", "ASL"];
    if other.contains(&word) {
        let message = format!("litmus tests for {word} are not supported");
        return Diagnostic::error("unsupported-architecture", message)
            .at(span, "")
            .help("Palisade supports tests for X86 and X86_64");
    }
    let help = match nearest(word, ["X86", "X86_64"]) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the first line must contain the architecture and a name, such as `X86_64 SB`".to_owned(),
    };
    Diagnostic::error("unsupported-architecture", "a litmus test begins with `X86` or `X86_64`")
        .at(span, "")
        .help(help)
}

/// The position after the string that begins at this position.
fn skip_string(text: &str, start: usize, report: &mut Report) -> usize {
    match text[start + 1..].find('"') {
        Some(length) => start + length + 2,
        None => {
            let diagnostic = Diagnostic::error("unfinished-string", "this string is not closed");
            report.push(diagnostic.at(Span::new(start..start + 1), "").help("end it with a second `\"`"));
            text.len()
        }
    }
}

/// Whether a line is a `Key=value` line.
fn is_information(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        let key = key.trim_end();
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-');
        key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_key)
    })
}
