//! Fences in Trencher's format: each is a transition of its own, through a fresh state.

use super::changes::Edits;
use super::fence::{FenceKind, Requests};
use super::lines::{indentation, line_end, margin, newline};
use super::statements::{Shape, Statements, no_statement};
use super::tokens::{Comments, start_of};
use palisade_base::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

const COMMENTS: Comments = Comments { line: &["#"], block: None, nest: false };

pub(super) fn edits(
    text: &str,
    requests: &Requests,
    statements: &Statements,
    errors: &mut Vec<Diagnostic>,
) -> Edits {
    let words = words(text);
    let mut names: FxHashSet<String> = words.iter().map(|word| word.text.to_owned()).collect();
    let transitions = transitions(&words);
    // The transitions that leave each state of each thread.
    let mut leaving: FxHashMap<(usize, &str), Vec<&Transition<'_>>> = FxHashMap::default();
    for transition in &transitions {
        leaving.entry((transition.thread, transition.from.text)).or_default().push(transition);
    }
    let mut edits = Edits::default();
    // States with a fence before all of their transitions.
    let mut fenced: FxHashSet<(usize, &str)> = FxHashSet::default();
    let mut single = Vec::new();
    for (&span, sides) in requests {
        let found = transitions.binary_search_by_key(&start_of(span), |transition| transition.start);
        let Ok(found) = found.map(|found| &transitions[found]) else {
            errors.push(no_statement(span).help("a fence goes before or after a transition"));
            continue;
        };
        if [sides.before, sides.after].contains(&Some(FenceKind::StoreStore)) {
            errors.push(no_store_fence(span));
            continue;
        }
        let state = (found.thread, found.from.text);
        if sides.before.is_some() && statements.get(&span) == Some(&Shape::Choice) && fenced.insert(state) {
            let fresh = fresh(found.from.text, &mut names);
            leaving[&state]
                .iter()
                .for_each(|transition| edits.replace(transition.from.range(), fresh.clone()));
            put_before(&mut edits, text, found, &fresh);
        }
        single.push((span, found, *sides));
    }
    for (span, transition, sides) in single {
        if sides.before.is_some() && !fenced.contains(&(transition.thread, transition.from.text)) {
            let fresh = fresh(transition.from.text, &mut names);
            edits.replace(transition.from.range(), fresh.clone());
            put_before(&mut edits, text, transition, &fresh);
        }
        if sides.after.is_some() {
            let fresh = fresh(transition.to.text, &mut names);
            edits.replace(transition.to.range(), fresh.clone());
            let fence = format!("transition {fresh} {} mfence", transition.to.text);
            let end = span.end as usize;
            if margin(text, transition.start).is_some() && COMMENTS.fill_line(text, end) {
                let line = format!("{}{}{fence}", newline(text, end), indentation(text, transition.start));
                edits.after(line_end(text, end), transition.start, line, None);
            } else {
                edits.after(end, transition.start, format!(" {fence}"), None);
            }
        }
    }
    edits
}

fn put_before(edits: &mut Edits, text: &str, transition: &Transition<'_>, fresh: &str) {
    let start = transition.start;
    let gap =
        margin(text, start).map_or(" ".to_owned(), |margin| format!("{}{margin}", newline(text, start)));
    edits.before(start, start, format!("transition {} {fresh} mfence{gap}", transition.from.text), None);
}

/// A state name that is not used yet.
fn fresh(state: &str, names: &mut FxHashSet<String>) -> String {
    let mut name = format!("{state}_f");
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{state}_f{number}");
        number += 1;
    }
    name
}

#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.text.len()
    }
}

struct Transition<'a> {
    /// The index of its thread in the file.
    thread: usize,
    start: usize,
    from: Word<'a>,
    to: Word<'a>,
}

/// The transitions in the order of the text.
fn transitions<'a>(words: &[Word<'a>]) -> Vec<Transition<'a>> {
    let mut thread = 0;
    let mut found = Vec::new();
    for window in words.windows(3) {
        match window {
            [word, _, _] if word.text == "thread" => thread += 1,
            [word, from, to] if word.text == "transition" => {
                found.push(Transition { thread, start: word.start, from: *from, to: *to });
            }
            _ => {}
        }
    }
    found
}

/// The words between white space, without comments.
fn words(text: &str) -> Vec<Word<'_>> {
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if bytes[at] == b'#' {
            at = text[at..].find('\n').map_or(bytes.len(), |newline| at + newline);
        } else if is_space(bytes[at]) {
            at += 1;
        } else {
            while at < bytes.len() && !is_space(bytes[at]) {
                at += 1;
            }
            words.push(Word { text: &text[start..at], start });
        }
    }
    words
}

fn no_store_fence(span: Span) -> Diagnostic {
    Diagnostic::error("no-store-fence", "Trencher's format has no store-store fence")
        .at(span, "")
        .help("use a full fence, `mfence`")
}
