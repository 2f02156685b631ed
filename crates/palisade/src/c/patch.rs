//! Fences and stronger accesses in the text of a C program.
//!
//! *Problem.* All that is known about a statement is a position in it. The source text, with its macros, is not
//! what the compiler sees.
//!
//! *How.* The statement around a position is found from the tokens ([`super::tokens`]): it reaches from the end
//! of what comes before it to its semicolon. A fence goes to a line of its own if the statement has one. A
//! statement without braces after `if`, `else`, `while`, `for` or `do` gets braces.
//!
//! *What is refused.* There is no room for a fence in the head of a loop or an `if`, after a jump, in the
//! definition of a macro, and outside functions.
//!
//! *Guarantee.* None: a macro can hide more than one statement. The caller compiles and checks the text again
//! before writing it.

use super::stronger::{Replacement, replacement};
use super::tokens::Tokens;
use palisade_base::{Diagnostic, Source};
use palisade_fences::AccessAt;
use palisade_syntax::edit::{FenceAt, FenceKind, Side};
use std::collections::BTreeMap;
use std::ops::Range;

/// A file of the program, before and after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePatch {
    /// Its name in the source of the program.
    pub name: String,
    /// Its text.
    pub before: String,
    /// Its text with the fences.
    pub after: String,
}

/// Inserts fences into the files of a program. The main file is returned in any case, other files if they change.
/// Every fence that has no room is reported.
pub(crate) fn insert(source: &Source, fences: &[FenceAt]) -> Result<Vec<FilePatch>, Vec<Diagnostic>> {
    change(source, fences, &[])
}

/// Inserts fences, and makes accesses stronger.
pub(crate) fn change(
    source: &Source,
    fences: &[FenceAt],
    accesses: &[(AccessAt, FenceKind)],
) -> Result<Vec<FilePatch>, Vec<Diagnostic>> {
    let mut by_file: BTreeMap<&str, Vec<FenceAt>> = BTreeMap::from([(source.name(), Vec::new())]);
    let mut replaced: BTreeMap<&str, Vec<Replacement>> = BTreeMap::new();
    let mut errors = Vec::new();
    for &(access, kind) in accesses {
        match replacement(source, access, kind) {
            Some((name, replacement)) => {
                by_file.entry(name).or_default();
                replaced.entry(name).or_default().push(replacement);
            }
            None => {
                let why = "the source does not show how to make this access stronger";
                errors.push(no_room(why).at(access.span, "a stronger access is needed here"));
            }
        }
    }
    for fence in fences {
        match fence.span.is_none() {
            true => errors.push(no_room("this step of the program does not belong to any line of its files")),
            false => by_file.entry(source.file(fence.span)).or_default().push(*fence),
        }
    }
    let mut patches = Vec::new();
    for (name, fences) in by_file {
        let Some((start, before)) = text_of(source, name) else { continue };
        let tokens = Tokens::new(before);
        let mut insertions: BTreeMap<usize, String> = BTreeMap::new();
        for fence in fences {
            let range = fence.span.start as usize - start..fence.span.end as usize - start;
            match Statement::around(&tokens, range).and_then(|statement| statement.check(fence.side)) {
                Ok(statement) => {
                    let word = word(before, fence.kind);
                    for (offset, text) in statement.insertions(fence.side, word) {
                        insertions.entry(offset).or_default().push_str(&text);
                    }
                }
                Err(why) => errors.push(no_room(why).at(fence.span, "a fence is needed here")),
            }
        }
        let insertions =
            insertions.into_iter().map(|(offset, text)| Replacement { range: offset..offset, text });
        let mut edits: Vec<Replacement> =
            insertions.chain(replaced.remove(name).unwrap_or_default()).collect();
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let mut after = before.to_owned();
        for edit in edits.iter().rev() {
            after.replace_range(edit.range.clone(), &edit.text);
        }
        patches.push(FilePatch { name: name.to_owned(), before: before.to_owned(), after });
    }
    if errors.is_empty() { Ok(patches) } else { Err(errors) }
}

fn no_room(why: &str) -> Diagnostic {
    Diagnostic::error("no-room-for-fence", format!("the fence cannot be placed here: {why}")).help(
        "rewrite the statement so that its accesses are statements of their own, or use --never for its line",
    )
}

/// The statement around a part of a text: from its first byte, after its labels, to its semicolon. In the head of a
/// loop or an `if`, and in a `return`, the part itself. `None` in the definition of a macro, and outside functions.
pub(super) fn statement_range(tokens: &Tokens<'_>, range: Range<usize>) -> Option<Range<usize>> {
    match Statement::around(tokens, range.clone()) {
        Ok(statement) => Some(statement.start..statement.end),
        Err(IN_A_HEAD) => Some(range),
        Err(_) => None,
    }
}

/// The text of a file of a source, and where it begins.
pub(super) fn text_of<'a>(source: &'a Source, name: &str) -> Option<(usize, &'a str)> {
    let mut starts =
        source.files().filter_map(|(name, _)| Some((name, source.line_of(name, 1)?.start as usize)));
    let start = starts.find(|(other, _)| *other == name)?.1;
    let end = starts.next().map_or(source.text().len(), |(_, start)| start);
    Some((start, &source.text()[start..end]))
}

/// The fence as it is written in a file.
fn word(text: &str, kind: FenceKind) -> &'static str {
    match (kind, text.contains("stdatomic.h")) {
        (FenceKind::Full, true) => "atomic_thread_fence(memory_order_seq_cst);",
        (FenceKind::Full, false) => "__atomic_thread_fence(__ATOMIC_SEQ_CST);",
        (FenceKind::StoreStore, true) => "atomic_thread_fence(memory_order_release);",
        (FenceKind::StoreStore, false) => "__atomic_thread_fence(__ATOMIC_RELEASE);",
    }
}

/// A statement that ends with a semicolon.
#[derive(Debug)]
struct Statement<'a> {
    text: &'a str,
    /// Its first byte, after its labels, and the byte after its semicolon.
    start: usize,
    end: usize,
    /// Its first word.
    first: &'a str,
    /// If it is the body of an `if`, `else` or loop without braces: the end of what comes before it.
    body_of: Option<usize>,
}

const HEADS: [&str; 4] = ["if", "while", "for", "switch"];
const JUMPS: [&str; 4] = ["return", "goto", "break", "continue"];

const IN_A_HEAD: &str = "it belongs inside the condition of a loop, an `if` or a `switch`";

impl<'a> Statement<'a> {
    /// The statement around a position. If a loop or an `if` begins there, and its body is in the same part of the
    /// text, the body is meant: conditions seldom store. If a label is there, the statement after it is meant.
    fn around(tokens: &Tokens<'a>, range: Range<usize>) -> Result<Statement<'a>, &'static str> {
        let position = range.start;
        if tokens.directives.iter().any(|directive| directive.contains(&position)) {
            return Err("it belongs inside the definition of a macro");
        }
        let mut token = tokens.tokens.partition_point(|token| token.range.end <= position);
        let is_meant = |&token: &usize| tokens.tokens[token].range.end <= range.end;
        while let Some(inner) = labelled(tokens, token).or_else(|| body(tokens, token)).filter(is_meant) {
            token = inner;
        }
        let around = tokens.around(token);
        let Some(block) = around.iter().position(|&opening| opens_block(tokens, opening)) else {
            return Err("the statement is not in a function");
        };
        if around[..block].iter().any(|&opening| is_head(tokens, opening)) {
            return Err(IN_A_HEAD);
        }
        let (first, body_of) = first_token(tokens, token)?;
        let word = tokens.get(first);
        if HEADS.contains(&word) || word == "do" || word == "else" {
            return Err(IN_A_HEAD);
        }
        let last = last_token(tokens, first).ok_or("the statement does not end with a semicolon")?;
        Ok(Statement {
            text: tokens.text,
            start: tokens.tokens[first].range.start,
            end: tokens.tokens[last].range.end,
            first: word,
            body_of: body_of.map(|index| tokens.tokens[index].range.end),
        })
    }

    /// The statement, if there is room on a side of it.
    fn check(self, side: Side) -> Result<Statement<'a>, &'static str> {
        match side {
            Side::After if JUMPS.contains(&self.first) => Err("it belongs inside a jump or a `return`"),
            _ => Ok(self),
        }
    }

    /// What to insert, and where.
    fn insertions(&self, side: Side, fence: &str) -> Vec<(usize, String)> {
        let indent = self.indent(self.start);
        // Comments after the statement stay with it.
        let line_end = self.text[self.end..].find('\n').map_or(self.text.len(), |end| self.end + end);
        let newline = if self.text[..line_end].ends_with('\r') { "\r\n" } else { "\n" };
        let line_end = line_end + 1 - newline.len();
        let rest = self.text[self.end..line_end].trim();
        let has_own_line = self.text[..self.start].ends_with(['\n', ' ', '\t'])
            && self.text[line_start(self.text, self.start)..self.start].trim().is_empty()
            && (rest.is_empty() || rest.starts_with("//"));
        let mut all = Vec::new();
        match (has_own_line, side) {
            (true, Side::After) => all.push((line_end, format!("{newline}{indent}{fence}"))),
            (false, Side::After) => all.push((self.end, format!(" {fence}"))),
            (true, Side::Before) => all.push((self.start, format!("{fence}{newline}{indent}"))),
            (false, Side::Before) => all.push((self.start, format!("{fence} "))),
        }
        if let Some(head) = self.body_of {
            all.insert(0, (head, " {".to_owned()));
            match has_own_line {
                true => all.push((line_end, format!("{newline}{}}}", self.indent(head)))),
                false => all.push((self.end, " }".to_owned())),
            }
        }
        all
    }

    /// The white space at the start of the line of a position.
    fn indent(&self, position: usize) -> &'a str {
        let line = &self.text[line_start(self.text, position)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }
}

fn line_start(text: &str, position: usize) -> usize {
    text[..position].rfind('\n').map_or(0, |end| end + 1)
}

/// The first token after a label, if a label begins with a token.
fn labelled(tokens: &Tokens<'_>, token: usize) -> Option<usize> {
    let is_name = |word: &str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let colon = match tokens.get(token) {
        "case" => (token + 1..tokens.tokens.len())
            .take_while(|&token| !matches!(tokens.get(token), ";" | "{" | "}"))
            .find(|&token| tokens.get(token) == ":" && is_label(tokens, token))?,
        word if is_name(word) && tokens.get(token + 1) == ":" => token + 1,
        _ => return None,
    };
    Some(colon + 1).filter(|&after| after < tokens.tokens.len())
}

/// The first token of the body, if a loop, an `if` or an `else` begins with a token and its body has no braces.
fn body(tokens: &Tokens<'_>, token: usize) -> Option<usize> {
    let body = match tokens.get(token) {
        "do" | "else" => token + 1,
        word if HEADS.contains(&word) => tokens.closing(token + 1)? + 1,
        _ => return None,
    };
    let is_statement = body < tokens.tokens.len() && !matches!(tokens.get(body), "{" | ";");
    is_statement.then_some(body)
}

/// Whether an opening bracket begins the head of a loop, an `if` or a `switch`.
fn is_head(tokens: &Tokens<'_>, opening: usize) -> bool {
    opening > 0 && HEADS.contains(&tokens.get(opening - 1))
}

/// Whether an opening bracket begins a block, and not the initial value of a variable.
fn opens_block(tokens: &Tokens<'_>, opening: usize) -> bool {
    tokens.get(opening) == "{" && (opening == 0 || tokens.get(opening - 1) != "=")
}

/// The first token of the statement around a token, after its labels; and the last token before it, if the
/// statement is a body without braces.
fn first_token(tokens: &Tokens<'_>, token: usize) -> Result<(usize, Option<usize>), &'static str> {
    let mut at = token;
    while let Some(before) = at.checked_sub(1) {
        match tokens.get(before) {
            ";" | "}" => return Ok((at, None)),
            "{" if opens_block(tokens, before) => return Ok((at, None)),
            "else" | "do" => return Ok((at, Some(before))),
            ")" if ends_macro(tokens, before) => return Ok((at, None)),
            ")" | "]" => {
                let opening = tokens.opening(before).ok_or("its brackets do not match")?;
                if is_head(tokens, opening) {
                    return Ok((at, Some(before)));
                }
                at = opening;
                continue;
            }
            ":" if is_label(tokens, before) => return Ok((at, None)),
            _ => {}
        }
        at = before;
    }
    Ok((at, None))
}

/// Whether a token ends a statement that is the use of a macro, without a semicolon: `M(x)` at the end of a block, or
/// with a word in the next line.
fn ends_macro(tokens: &Tokens<'_>, closing: usize) -> bool {
    const OTHERS: [&str; 4] = ["return", "sizeof", "__attribute__", "typeof"];
    let is_word = |token: usize| tokens.get(token).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let Some(opening) = tokens.opening(closing).filter(|_| tokens.get(closing) == ")") else { return false };
    let Some(name) = opening.checked_sub(1).filter(|&name| is_word(name)) else { return false };
    let starts = name == 0 || matches!(tokens.get(name - 1), ";" | "{" | "}" | ")" | ":" | "else" | "do");
    let Some(next) = tokens.tokens.get(closing + 1) else { return false };
    let between = &tokens.text[tokens.tokens[closing].range.end..next.range.start];
    let is_use = starts && !HEADS.contains(&tokens.get(name)) && !OTHERS.contains(&tokens.get(name));
    is_use && (tokens.get(closing + 1) == "}" || is_word(closing + 1) && between.contains('\n'))
}

/// Whether a colon ends a label, and is not part of `a ? b : c`.
fn is_label(tokens: &Tokens<'_>, colon: usize) -> bool {
    let mut at = colon;
    while let Some(before) = at.checked_sub(1) {
        match tokens.get(before) {
            "case" | "default" => return true,
            ";" | "{" | "}" | ":" => return at + 1 == colon,
            "?" => return false,
            _ => {}
        }
        at = before;
    }
    false
}

/// The semicolon of the statement that begins with a token.
fn last_token(tokens: &Tokens<'_>, first: usize) -> Option<usize> {
    let mut depth = 0;
    for index in first..tokens.tokens.len() {
        match tokens.get(index) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ";" if depth == 0 => return Some(index),
            _ => {}
        }
        if depth == 0 && ends_macro(tokens, index) {
            return Some(index);
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Span;

    const FENCE: &str = "__atomic_thread_fence(__ATOMIC_SEQ_CST);";

    /// Inserts a fence next to the statement with `@`, which may end with `$`. `F` stands for the fence in what is
    /// expected.
    fn check(text: &str, side: Side, expected: Result<&str, &str>) {
        let position = text.find('@').expect("the position is marked");
        let end = text.find('$').map_or(position + 1, |end| end - 1);
        let source = Source::new("a.c", text.replace(['@', '$'], ""));
        let span = Span::new(position..end);
        let found = insert(&source, &[FenceAt { span, side, kind: FenceKind::Full }]);
        match (found, expected) {
            (Ok(patches), Ok(expected)) => {
                assert_eq!(patches[0].after.replace(FENCE, "F"), expected, "{text}")
            }
            (Err(errors), Err(expected)) => {
                assert!(errors[0].message.contains(expected), "{text}: {:?}", errors[0]);
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn after_statements() {
        let after = |text, expected| check(text, Side::After, expected);
        after("f() {\n  @x = 1;  // a\n  y = 2;\n}", Ok("f() {\n  x = 1;  // a\n  F\n  y = 2;\n}"));
        after("f() { x = 1; @y = 2; }", Ok("f() { x = 1; y = 2; F }"));
        after("f() {\n\tg(1,\n\t  @&x);\n}", Ok("f() {\n\tg(1,\n\t  &x);\n\tF\n}"));
        after("f() {\n  if (a)\n    @x = 1;\n}", Ok("f() {\n  if (a) {\n    x = 1;\n    F\n  }\n}"));
        after("f() { if (a) @x = 1; else y = 1; }", Ok("f() { if (a) { x = 1; F } else y = 1; }"));
        after("f() { if (a) x = 1; else @y = 1; }", Ok("f() { if (a) x = 1; else { y = 1; F } }"));
        after("f() { do @x = 1; while (g(y)); }", Ok("f() { do { x = 1; F } while (g(y)); }"));
        after("f() { switch (a) { case 1: @x = 1; } }", Ok("f() { switch (a) { case 1: x = 1; F } }"));
        after("f() { a: @x = b ? 1 : 2; }", Ok("f() { a: x = b ? 1 : 2; F }"));
        after("f() { x = b ? 1 : @y; }", Ok("f() { x = b ? 1 : y; F }"));
        after("f() { @while (i--) x = 1;$ }", Ok("f() { while (i--) { x = 1; F } }"));
        after("f() { @while (i--) if (a) x = 1;$ }", Ok("f() { while (i--) if (a) { x = 1; F } }"));
        after("f() { @do x = 1; while (i--);$ }", Ok("f() { do { x = 1; F } while (i--); }"));
        after("f() { if (a) y = 1; @else x = 1;$ }", Ok("f() { if (a) y = 1; else { x = 1; F } }"));
        after("f() {\r\n  @x = 1;\r\n}\r\n", Ok("f() {\r\n  x = 1;\r\n  F\r\n}\r\n"));
        after("f() {\n  M(@x)\n  y = 1;\n}", Ok("f() {\n  M(x)\n  F\n  y = 1;\n}"));
        after("f() { M(@x) }", Ok("f() { M(x) F }"));
        after("f() {\n  y =\n  g(@1)\n  + h;\n}", Ok("f() {\n  y =\n  g(1)\n  + h;\n  F\n}"));
        after("f() { struct s x = { @1, 2 }; }", Ok("f() { struct s x = { 1, 2 }; F }"));
    }

    #[test]
    fn before_statements() {
        let before = |text, expected| check(text, Side::Before, expected);
        before("f() {\n  x = 1;\n  r = @y;\n}", Ok("f() {\n  x = 1;\n  F\n  r = y;\n}"));
        before("f() { x = 1; r = @y; }", Ok("f() { x = 1; F r = y; }"));
        before("f() {\n  M(x)\n  r = @y;\n}", Ok("f() {\n  M(x)\n  F\n  r = y;\n}"));
        before("f() { a: r = @y; }", Ok("f() { a: F r = y; }"));
        before("f() { if (a) return @y; }", Ok("f() { if (a) { F return y; } }"));
    }

    #[test]
    fn no_room() {
        let after = |text, expected| check(text, Side::After, Err(expected));
        after("f() { while (@g(&x)) ; }", "inside the condition");
        after("f() { @while (g(&x)) ;$ }", "inside the condition");
        after("f() { @while (g(&x)) {$ } }", "inside the condition");
        after("f() { for (;; x = @1) ; }", "inside the condition");
        after("f() { for (;@g(); ) ; }", "inside the condition");
        after("f() { for (x = @1;;) ; }", "inside the condition");
        after("f() { return @g(&x); }", "inside a jump");
        after("#define S x = @1\nf() { S; }", "inside the definition of a macro");
        after("int x = @1;", "not in a function");
        after("f() { M(@x) + 1 }", "does not end with a semicolon");
    }

    #[test]
    fn several_files_and_fences() {
        let mut source = Source::new("a.c", "#include <stdatomic.h>\nf() { x = 1; y = 2; }\n");
        let header = source.add("b.h", "g() { z = 1; }\n");
        let at = |text: &str| source.text().find(text).map(|at| Span::new(at..at + 1)).expect("it is there");
        let fence = |span, kind| FenceAt { span, side: Side::After, kind };
        let fences = [
            fence(at("y = 2"), FenceKind::Full),
            fence(at("x = 1"), FenceKind::StoreStore),
            fence(at("z = 1"), FenceKind::Full),
        ];
        let patches = insert(&source, &fences).expect("there is room");
        assert_eq!((patches.len(), patches[0].name.as_str(), patches[1].name.as_str()), (2, "a.c", "b.h"));
        assert_eq!(
            patches[0].after,
            "#include <stdatomic.h>\nf() { x = 1; atomic_thread_fence(memory_order_release); y = 2; atomic_thread_fence(memory_order_seq_cst); }\n"
        );
        assert_eq!(patches[1].before, source.slice(header));
        assert_eq!(patches[1].after, format!("g() {{ z = 1; {FENCE} }}\n"));
    }
}
