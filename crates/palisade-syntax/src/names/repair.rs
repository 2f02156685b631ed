//! A program with errors, as far as it can be read.
//!
//! Every name keeps its place:
//!
//! - A missing `;` or `}` is written over a blank where it is missing, or at the end of the text.
//! - Other statements with errors become blank. If errors remain, the items around them do.
//! - What cannot be imported is taken to be a file with the constants and domains that the program lacks.
//!
//! *Guarantee*: the text that is found can be parsed. It has the tokens of the original, except those left out and at most
//! one `;` or `}` per error. Parses a text at most [`MAX_ROUNDS`] times.

use super::text::tokens;
use crate::pal::{Sign, TokenKind};
use crate::{Language, Parsed, read};
use palisade_base::{Diagnostic, Imported, Source, Span};
use palisade_program::print::is_legal_name;

/// How often a text is parsed at most. In the second half of them whole items are left out.
const MAX_ROUNDS: usize = 10;

/// The part of a program that can be parsed, and what it says. `None` if there is none.
pub(super) fn readable(original: &Source) -> Option<(Source, Parsed)> {
    let mut text = original.text().to_owned();
    let mut stand_in = String::from("\n");
    for round in 0..MAX_ROUNDS {
        let (source, is_complete) = program(original, &text, &stand_in);
        let errors = match read(Language::Pal, &source) {
            Ok(parsed) => return Some((source, parsed)),
            Err(found) => found.into_iter().filter(Diagnostic::is_error).collect::<Vec<_>>(),
        };
        let missing = if is_complete { String::new() } else { missing(&source, &errors) };
        if !missing.is_empty() {
            stand_in.push_str(&missing);
            continue;
        }
        let whole_items = round >= MAX_ROUNDS / 2;
        let next = Blanks { original, text: &text, tokens: tokens(&text) }.without(&errors, whole_items);
        if next == text {
            return None;
        }
        text = next;
    }
    None
}

/// The program with another text in which everything has the same place, and whether all its imports were found. One file
/// stands for all that were not.
fn program(original: &Source, text: &str, stand_in: &str) -> (Source, bool) {
    let mut spans: Vec<Span> = (0..original.files().len()).map(|file| original.file_span(file)).collect();
    if let Some(last) = spans.last_mut() {
        last.end = Span::new(0..text.len()).end;
    }
    let mut source = Source::new(original.name(), &text[spans[0].range()]);
    for (span, (name, _)) in spans.iter().zip(original.files()).skip(1) {
        source.add(name, &text[span.range()]);
    }
    let mut is_complete = true;
    for (file, span) in spans.iter().enumerate() {
        let text = &text[span.range()];
        for (_, place) in tokens(text).into_iter().filter(|(kind, _)| *kind == TokenKind::Path) {
            let path = text[place.range()].trim_matches('"');
            let target = match original.imported(file, path) {
                Some(known @ Imported::File(_)) => known.clone(),
                Some(Imported::Missing(..)) | None => {
                    is_complete = false;
                    Imported::File(spans.len())
                }
            };
            source.import(file, path, target);
        }
    }
    if !is_complete {
        source.add("", stand_in);
    }
    let declared = super::declared_constants(text);
    let given = original.constants().iter().filter(|(name, _)| declared.contains(name)).cloned();
    (source.with_constants(given.collect::<Vec<_>>()), is_complete)
}

/// Declarations of the constants and domains that a program lacks.
fn missing(source: &Source, errors: &[Diagnostic]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for error in errors {
        let name = source.slice(error.span());
        let line = match error.id {
            _ if !is_legal_name(name) => continue,
            "not-constant" => format!("const {name} = 3;\n"),
            "unexpected-token" if error.message.starts_with("expected a domain") => {
                format!("enum {name} {{ `a value of {name}` }}\n")
            }
            _ => continue,
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

/// A text in which parts are made blank.
struct Blanks<'a> {
    original: &'a Source,
    text: &'a str,
    tokens: Vec<(TokenKind, Span)>,
}

impl Blanks<'_> {
    /// The text without the parts that have errors.
    fn without(&self, errors: &[Diagnostic], whole_items: bool) -> String {
        let mut bytes = self.text.as_bytes().to_vec();
        for error in errors {
            let place = error.labels.last().map_or(error.span(), |label| label.span);
            let written = match error.id {
                "missing-semicolon" => self.write(&mut bytes, error.span(), b';'),
                "unclosed-block" => self.write(&mut bytes, place, b'}'),
                _ => false,
            };
            if !written && let Some(part) = self.part(error, whole_items) {
                let blank = |byte: &mut u8| *byte = if *byte == b'\n' { b'\n' } else { b' ' };
                bytes[part.range()].iter_mut().for_each(blank);
            }
        }
        String::from_utf8(bytes).expect("tokens begin and end between characters")
    }

    /// Writes a sign over the last blank before a place, or over the one that is there. Whether there is one.
    fn write(&self, bytes: &mut Vec<u8>, place: Span, sign: u8) -> bool {
        let at = place.start as usize;
        if sign == b'}' && self.original.files().len() == 1 && at >= self.original.text().len() {
            bytes.extend_from_slice(b"\n}");
            return true;
        }
        let here = (sign == b';').then_some(at);
        let before = (0..at).rev().find(|&index| bytes[index] != b'}');
        // The end of a file separates it from the next one.
        let ends_file = |index: usize| {
            let mut starts = (1..self.original.files().len()).map(|file| self.original.file_span(file).start);
            starts.any(|start| start as usize == index + 1)
        };
        let is_free =
            |&index: &usize| bytes.get(index).is_some_and(u8::is_ascii_whitespace) && !ends_file(index);
        let Some(index) = here.or(before).filter(is_free) else { return false };
        bytes[index] = sign;
        true
    }

    /// The statement or item with an error.
    fn part(&self, error: &Diagnostic, whole_item: bool) -> Option<Span> {
        let span = error.span();
        let before = self.tokens.partition_point(|(_, token)| token.start < span.end).checked_sub(1);
        let is_in_token = before.is_some_and(|token| span.start < self.tokens[token].1.end);
        if span.start < span.end && !is_in_token {
            // Characters that are not in the language, unless they are in a file that stands for others.
            return (self.text.len() >= span.end as usize).then_some(span);
        }
        // What is missing belongs to the token before it.
        let at = if span.start < span.end { span.start } else { span.start.saturating_sub(1) };
        let index = self.tokens.partition_point(|(_, span)| span.start <= at).saturating_sub(1);
        let last = self.tokens.len().checked_sub(1)?;
        let is_next = self.starts_item(index) || self.tokens[index].0 == TokenKind::Sign(Sign::RightBrace);
        let (from, to) = match (whole_item, self.tokens[index].0) {
            // The statement before this one has no end.
            (false, _) if is_next && index > 0 && !self.is_end(index - 1) => {
                (self.start(index - 1), index - 1)
            }
            (true, _) => {
                let from = (0..=index).rev().find(|&token| self.starts_item(token)).unwrap_or(0);
                (
                    from,
                    (index + 1..=last).find(|&token| self.starts_item(token)).map_or(last, |next| next - 1),
                )
            }
            (false, TokenKind::Sign(Sign::RightBrace)) => (index, index),
            // A block can do without its heading.
            (false, TokenKind::Sign(Sign::LeftBrace)) => match self.start(index) {
                start if start < index => (start, index - 1),
                _ => (index, self.end_of_block(index)),
            },
            (false, _) => {
                let is_end = |&token: &usize| self.is_end(token) || token == last;
                let end = (index..=last).find(is_end).unwrap_or(last);
                let next = (index + 1..=end).find(|&token| self.starts_item(token));
                let is_brace = end > index
                    && matches!(self.tokens[end].0, TokenKind::Sign(sign) if sign != Sign::Semicolon)
                    && self.is_end(end);
                (self.start(index), next.map_or(end - usize::from(is_brace), |next| next - 1))
            }
        };
        Some(self.tokens[from].1.to(self.tokens[to].1))
    }

    /// Where the statement with a token begins.
    fn start(&self, index: usize) -> usize {
        let begins = |&token: &usize| token == 0 || self.is_end(token - 1) || self.starts_item(token);
        (0..=index).rev().find(begins).unwrap_or(index)
    }

    fn end_of_block(&self, index: usize) -> usize {
        let mut depth = 0usize;
        for (token, &(kind, _)) in self.tokens.iter().enumerate().skip(index) {
            match kind {
                _ if self.starts_item(token) => return token - 1,
                TokenKind::Sign(Sign::LeftBrace) => depth += 1,
                TokenKind::Sign(Sign::RightBrace) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return token;
            }
        }
        self.tokens.len() - 1
    }

    /// Whether a statement cannot go on after a token.
    fn is_end(&self, token: usize) -> bool {
        let ends = [Sign::Semicolon, Sign::LeftBrace, Sign::RightBrace];
        matches!(self.tokens[token].0, TokenKind::Sign(sign) if ends.contains(&sign))
    }

    fn starts_item(&self, token: usize) -> bool {
        match (self.tokens[token].0, self.tokens.get(token + 1)) {
            (TokenKind::Word(word), _) => word.starts_item(),
            (TokenKind::Name(_), Some((next, span))) => match &self.text[self.tokens[token].1.range()] {
                "import" => *next == TokenKind::Path,
                "struct" => matches!(next, TokenKind::Name(_)) && !span.is_none(),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Symbol, known_symbols};
    use palisade_base::{Imported, Source};

    /// The names of a text with errors, each with the number of its mentions.
    fn check(text: &str, expected: &[(&str, usize)]) {
        let mut source = Source::new("t.pal", text);
        source.import(0, "gone.pal", Imported::Missing("it is gone".into(), String::new()));
        let found = known_symbols(&source).unwrap_or_else(|| panic!("nothing is known about {text}"));
        let mentions = |symbol: &Symbol| {
            for span in symbol.mentions() {
                assert_eq!(source.slice(span).trim_matches('`'), symbol.name, "{text}");
            }
            (symbol.name.clone(), symbol.mentions().len())
        };
        let found: Vec<(String, usize)> = found.symbols.iter().map(mentions).collect();
        let expected: Vec<(String, usize)> =
            expected.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_of_programs_with_errors() {
        // Names and types.
        check("const N = 3; shared x: bool; process P { x = 1; yy = N; }", &[("N", 2), ("x", 2), ("P", 1)]);
        // A statement, a heading, an item.
        check("shared x;\nprocess P { x = ; x = 1; }\n", &[("x", 2), ("P", 1)]);
        check(
            "shared x;\nprocess P { x = }\nprocess Q { let r = x; }\n",
            &[("x", 2), ("P", 1), ("Q", 1), ("r", 1)],
        );
        check("shared x;\nprocess P { while x = { let r = x; } }\n", &[("x", 2), ("P", 1), ("r", 1)]);
        check("shared x;\nbogus x;\nprocess P { x = 1; }\n", &[("x", 2), ("P", 1)]);
        check("shared x;\nprocess 9 { x = 1; }\nprocess Q { x = 2; }\n", &[("x", 2), ("Q", 1)]);
        // What is not written yet.
        check("shared x;\nprocess P { let r = x\n}\n", &[("x", 2), ("P", 1), ("r", 1)]);
        check("shared x\nprocess P { x = 1; }\n", &[("x", 2), ("P", 1)]);
        check(
            "shared x;\nprocess P {\n    x = 1;\n\nprocess Q { while x == 1 { x = 2; } }\n",
            &[("x", 4), ("P", 1), ("Q", 1)],
        );
        check("shared x;\nprocess P {\n    if x == 1 { x = 2;\n", &[("x", 3), ("P", 1)]);
        check("shared x;\nprocess P { x = 1; }}\n", &[("x", 2), ("P", 1)]);
        check("shared `é`;\nprocess P { /* ü */ `é` = ; }\n", &[("é", 1), ("P", 1)]);
        check("shared x;\nprocess P {if x == 1 {x = 2}}\n", &[("x", 2), ("P", 1)]);
    }

    #[test]
    fn names_of_programs_whose_imports_are_missing() {
        check(
            "import \"gone.pal\";\nshared a[N]: 0..N;\nshared s: State;\nprocess P { a[0] = s; lock(); }",
            &[("a", 2), ("s", 2), ("P", 1)],
        );
        check("import \"other.pal\";\nshared x;\n", &[("x", 1)]);
    }
}
