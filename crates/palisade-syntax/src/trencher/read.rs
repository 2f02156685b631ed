//! Parses text into a [`File`]. Tokens are separated by white space, and `#` begins a comment.

use super::file::{File, Instruction, RegisterId, State, StateId, Term, TermKind, Thread, Transition, Word};
use crate::limits::{MAX_NESTING, MAX_SIZE};
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, IdVec, Source, Span, limits};
use palisade_program::written::BinaryOp;
use rustc_hash::FxHashMap;

/// The words that begin a line. No register or state can have such a name: in Trencher a transition that
/// lacks an operand swallows the next line.
const LINES: [&str; 6] = ["thread", "initial", "final", "transition", "end", "memory_size"];

const INSTRUCTIONS: [&str; 8] = ["write", "read", "mfence", "local", "check", "noop", "lock", "unlock"];

/// More cells than any program in this format needs.
pub(super) const MAX_CELLS: u32 = 65_536;

/// Parses as much as possible. All syntax errors go into the report. Threads with errors are left out, so
/// that later messages concern only what was parsed.
pub(super) fn read<'a>(source: &'a Source, report: &mut Report) -> File<'a> {
    let mut reader = Reader { text: source.text(), at: 0, peeked: None, report, terms: 0, failed: false };
    let mut file = File { memory_size: None, threads: Vec::new() };
    let mut names: FxHashMap<&str, Span> = FxHashMap::default();
    let mut any_thread = false;
    while let Some((word, span)) = reader.next() {
        limits::checkpoint();
        match word {
            "memory_size" => reader.memory_size(&mut file, span),
            "thread" => {
                any_thread = true;
                reader.thread(&mut file, &mut names, span);
            }
            _ => {
                reader.unexpected(word, span, "`thread`", &["thread", "memory_size"]);
                reader.skip_to(&["thread", "memory_size"]);
            }
        }
    }
    if !any_thread && !reader.report.has_errors() {
        let diagnostic = Diagnostic::error("empty-program", "the file contains no thread")
            .at(Span::new(0..0), "")
            .help("write a thread as `thread NAME`, `initial STATE`, `transition STATE STATE INSTRUCTION`…, `end`");
        reader.report.push(diagnostic);
    }
    file
}

struct Reader<'a, 'r> {
    text: &'a str,
    at: usize,
    peeked: Option<Option<(&'a str, Span)>>,
    report: &'r mut Report,
    /// The size of the program so far, as [`MAX_SIZE`] counts it.
    terms: usize,
    /// Whether the current thread has an error.
    failed: bool,
}

/// An error that was reported.
struct Failed;

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Option<(&'a str, Span)> {
        if let Some(peeked) = self.peeked.take() {
            return peeked;
        }
        let bytes = self.text.as_bytes();
        loop {
            while self.at < bytes.len() && is_space(bytes[self.at]) {
                self.at += 1;
            }
            if self.at < bytes.len() && bytes[self.at] == b'#' {
                while self.at < bytes.len() && bytes[self.at] != b'\n' {
                    self.at += 1;
                }
                continue;
            }
            break;
        }
        let start = self.at;
        while self.at < bytes.len() && !is_space(bytes[self.at]) {
            self.at += 1;
        }
        // Both ends are next to ASCII characters, so this never splits a character.
        (start < self.at).then(|| (&self.text[start..self.at], Span::new(start..self.at)))
    }

    fn peek(&mut self) -> Option<(&'a str, Span)> {
        let next = self.next();
        self.peeked = Some(next);
        next
    }

    fn skip_to(&mut self, words: &[&str]) {
        while self.peek().is_some_and(|(word, _)| !words.contains(&word)) {
            self.next();
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        self.failed = true;
        self.report.push(diagnostic);
    }

    fn unexpected(&mut self, word: &str, span: Span, expected: &str, candidates: &[&'static str]) {
        let mut diagnostic =
            Diagnostic::error("unexpected-word", format!("expected {expected}, found `{}`", shown(word)))
                .at(span, "");
        let near = self.report.has_room().then(|| nearest(word, candidates.iter().copied())).flatten();
        if let Some(near) = near {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.error(diagnostic);
    }

    /// The position after the end of the text.
    fn end(&self) -> Span {
        let end = self.text.trim_end().len();
        Span::new(end..end)
    }

    /// A word that is not a keyword of the grammar.
    fn word(&mut self, what: &str) -> Result<Word<'a>, Failed> {
        match self.peek() {
            Some((word, span)) if !LINES.contains(&word) => {
                self.next();
                Ok(Word { text: word, span })
            }
            Some((word, span)) => {
                let message = format!("expected {what}, found `{word}`");
                self.error(Diagnostic::error("missing-operand", message).at(span, ""));
                Err(Failed)
            }
            None => {
                let message = format!("expected {what}, but the file ends here");
                let end = self.end();
                self.error(Diagnostic::error("unexpected-end", message).at(end, ""));
                Err(Failed)
            }
        }
    }

    fn memory_size(&mut self, file: &mut File<'a>, keyword: Span) {
        let Ok(size) = self.word("the number of memory cells") else { return };
        match size.text.parse::<u32>() {
            Ok(cells) if (1..=MAX_CELLS).contains(&cells) => {
                let span = keyword.to(size.span);
                if let Some((_, first)) = file.memory_size {
                    let diagnostic = Diagnostic::error("defined-twice", "`memory_size` is given twice");
                    self.error(diagnostic.at(span, "").at(first, "first given here"));
                }
                file.memory_size = Some((cells, span));
            }
            _ => {
                let message = format!("`{}` is not a valid memory size", shown(size.text));
                let diagnostic = Diagnostic::error("bad-number", message).at(size.span, "");
                self.error(diagnostic.help(format!("write a number of cells from 1 to {MAX_CELLS}")));
            }
        }
    }

    fn thread(&mut self, file: &mut File<'a>, names: &mut FxHashMap<&'a str, Span>, keyword: Span) {
        self.failed = false;
        let Ok(name) = self.word("the name of a thread") else {
            self.skip_to(&["thread"]);
            return;
        };
        let text = name.text;
        if let Some(&first) = names.get(text) {
            let message = format!("two threads are called `{}`", shown(text));
            self.error(
                Diagnostic::error("defined-twice", message).at(name.span, "").at(first, "first defined here"),
            );
        } else {
            names.insert(text, name.span);
        }
        let mut builder = Builder::default();
        let mut initial: Option<(StateId, Span)> = None;
        let mut last: Option<(StateId, Span)> = None;
        loop {
            let Some((word, span)) = self.peek() else {
                let end = self.end();
                let message = format!("thread `{}` has no `end`", shown(name.text));
                self.error(
                    Diagnostic::error("unexpected-end", message)
                        .at(end, "")
                        .at(keyword.to(name.span), "it begins here"),
                );
                break;
            };
            if word == "thread" || word == "memory_size" {
                let message = format!("thread `{}` has no `end` before this", shown(name.text));
                self.error(
                    Diagnostic::error("missing-end", message)
                        .at(span, "")
                        .at(keyword.to(name.span), "it begins here"),
                );
                break;
            }
            self.next();
            match word {
                "end" => break,
                "initial" | "final" => {
                    let Ok(state) = self.word("a state") else { continue };
                    let slot = if word == "initial" { &mut initial } else { &mut last };
                    if let Some((_, first)) = *slot {
                        let message = format!("thread `{}` has two `{word}` states", shown(name.text));
                        let diagnostic = Diagnostic::error("defined-twice", message);
                        self.error(diagnostic.at(span.to(state.span), "").at(first, "first given here"));
                    } else {
                        *slot = Some((builder.state(state), span.to(state.span)));
                    }
                }
                "transition" => {
                    if self.transition(&mut builder, span).is_err() {
                        self.skip_to(&LINES);
                    }
                }
                _ => {
                    self.unexpected(word, span, "`transition`, `initial` or `end`", &LINES);
                    self.skip_to(&LINES);
                }
            }
        }
        match initial {
            Some((initial, _)) if !self.failed => {
                let Builder { states, registers, transitions, .. } = builder;
                let last = last.map(|(state, _)| state);
                file.threads.push(Thread { name, initial, last, states, registers, transitions });
            }
            Some(_) => {}
            None => {
                let message = format!("thread `{}` has no initial state", shown(name.text));
                let diagnostic = Diagnostic::error("no-initial-state", message).at(keyword.to(name.span), "");
                self.error(diagnostic.help("write where it starts: `initial STATE`"));
            }
        }
    }

    fn transition(&mut self, builder: &mut Builder<'a>, keyword: Span) -> Result<(), Failed> {
        // Counts the statement and its jump.
        self.terms += 3;
        let from = self.word("the state the transition leaves")?;
        let to = self.word("the state the transition leads to")?;
        let word = self.word("an instruction")?;
        let mut end = word.span;
        let instruction = match word.text {
            "mfence" => Instruction::Fence,
            "noop" => Instruction::Noop,
            "lock" => Instruction::Lock,
            "unlock" => Instruction::Unlock,
            "write" => {
                let value = self.term(builder, "the value to write", 0)?;
                let address = self.term(builder, "the address to write to", 0)?;
                end = address.span;
                Instruction::Write { value, address }
            }
            "read" => {
                let register = self.register(builder)?;
                let address = self.term(builder, "the address to read", 0)?;
                end = address.span;
                Instruction::Read { register, address }
            }
            "local" => {
                let register = self.register(builder)?;
                let value = self.term(builder, "the value to assign", 0)?;
                end = value.span;
                Instruction::Local { register, value }
            }
            "check" => {
                let condition = self.term(builder, "the condition to check", 0)?;
                end = condition.span;
                Instruction::Check(condition)
            }
            other => {
                let message = format!("unknown instruction `{}`", shown(other));
                let near = self.report.has_room().then(|| nearest(other, INSTRUCTIONS)).flatten();
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the instructions are {}", INSTRUCTIONS.join(", ")),
                };
                self.error(Diagnostic::error("unknown-instruction", message).at(word.span, "").help(help));
                return Err(Failed);
            }
        };
        let (from_span, from, to) = (from.span, builder.state(from), builder.state(to));
        builder.states[from].out.push(builder.transitions.len());
        builder.transitions.push(Transition { from, to, from_span, instruction, span: keyword.to(end) });
        Ok(())
    }

    /// The register that an instruction sets.
    fn register(&mut self, builder: &mut Builder<'a>) -> Result<RegisterId, Failed> {
        let word = self.word("a register")?;
        if starts_number(word.text) || operator(word.text).is_some() || word.text == "!" {
            let message = format!("expected a register, found `{}`", shown(word.text));
            let diagnostic = Diagnostic::error("unexpected-word", message).at(word.span, "");
            self.error(diagnostic.help(
                "the register comes before the expression: `read REGISTER ADDRESS`, `local REGISTER VALUE`",
            ));
            return Err(Failed);
        }
        Ok(builder.register(word))
    }

    fn term(&mut self, builder: &mut Builder<'a>, what: &str, depth: u32) -> Result<Term, Failed> {
        let word = self.word(what)?;
        self.terms += 1;
        if depth > MAX_NESTING || self.terms > MAX_SIZE {
            let message = if depth > MAX_NESTING {
                format!("expressions can be nested at most {MAX_NESTING} levels deep")
            } else {
                "the program is too large".to_owned()
            };
            self.error(Diagnostic::error("too-large", message).at(word.span, ""));
            return Err(Failed);
        }
        if starts_number(word.text) {
            let Ok(value) = word.text.parse() else {
                let message = format!("`{}` is not a number", shown(word.text));
                let diagnostic = Diagnostic::error("bad-number", message).at(word.span, "");
                self.error(
                    diagnostic
                        .help("numbers are decimal and fit into 64 bits; names cannot begin with a digit"),
                );
                return Err(Failed);
            };
            return Ok(Term { kind: TermKind::Int(value), span: word.span });
        }
        if word.text == "!" {
            let operand = self.term(builder, "the operand of `!`", depth + 1)?;
            let span = word.span.to(operand.span);
            return Ok(Term { kind: TermKind::Not(Box::new(operand)), span });
        }
        let Some(op) = operator(word.text) else {
            return Ok(Term { kind: TermKind::Register(builder.register(word)), span: word.span });
        };
        let left = self.term(builder, &format!("the first operand of `{}`", word.text), depth + 1)?;
        let right = self.term(builder, &format!("the second operand of `{}`", word.text), depth + 1)?;
        let span = word.span.to(right.span);
        Ok(Term { kind: TermKind::Binary(op, Box::new(left), Box::new(right)), span })
    }
}

/// A thread under construction.
#[derive(Default)]
struct Builder<'a> {
    states: IdVec<StateId, State<'a>>,
    registers: IdVec<RegisterId, Word<'a>>,
    transitions: Vec<Transition>,
    state_names: FxHashMap<&'a str, StateId>,
    register_names: FxHashMap<&'a str, RegisterId>,
}

impl<'a> Builder<'a> {
    fn state(&mut self, name: Word<'a>) -> StateId {
        let states = &mut self.states;
        *self.state_names.entry(name.text).or_insert_with(|| states.push(State { name, out: Vec::new() }))
    }

    fn register(&mut self, name: Word<'a>) -> RegisterId {
        let registers = &mut self.registers;
        *self.register_names.entry(name.text).or_insert_with(|| registers.push(name))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Whether a word is meant to be a number.
fn starts_number(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn operator(word: &str) -> Option<BinaryOp> {
    Some(match word {
        "==" => BinaryOp::Eq,
        "!=" => BinaryOp::Ne,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "&&" => BinaryOp::And,
        "||" => BinaryOp::Or,
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "&" => BinaryOp::BitAnd,
        _ => return None,
    })
}

/// A word for a message, shortened if it is very long.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
