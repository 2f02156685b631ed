//! Assembly in AT&T syntax, as gcc, clang and rustc write it, read into an [`Image`].
//!
//! *Problem.* An assembly file says the same as the object file that an assembler makes of it. Everything after the
//! reader should see no difference.
//!
//! *How.* The reader does what an assembler does: it turns the text into bytes, relocations and symbols. Those are
//! decoded by what reads object files, so that there is one path behind both, and a listing shows what was understood.
//! 1. `scan` removes comments, and `lexer` splits the text into statements. `expression` and `operand` read their parts.
//! 2. `directive` and `section` handle directives. `instruction` and `mnemonic` turn instructions into bytes, with the encoder of the
//!    library that also decodes them.
//! 3. `layout` gives everything a place, `values` computes expressions, and `finish` makes an image of it.
//!
//! *Guarantee.* The image is the one of the object file: the tests compare the two for what compilers write and for
//! random instructions. Whatever is not known is refused. A directive is refused with its place. An instruction is
//! refused by its text, and only if control can reach it: it becomes `nop` in the bytes, and a note in the image.
//! What assemblers read in different ways is refused, too. An instruction may have another length than in the object file
//! (`xchg %rax, %rax`, `int $3`, `%ds:x`, `cmpl $a, %ecx` with `a = 1`, and those that are not read). So nothing that is
//! computed depends on lengths:
//! - Distances between places in code are sizes of functions, or in tables of exceptions, which nothing refers to.
//! - Nothing refers to a place in code plus a number, or to a number of bytes after an instruction.
//! - Bytes in code are whole instructions, and gaps are filled with `nop`.
//! - Sections without code hold no instructions.
//!
//! What is absent: macros, conditions and repetitions (`.macro`, `.if`, `.rept`), which compilers do not write, and
//! Intel syntax.

mod directive;
mod expression;
mod finish;
mod instruction;
mod layout;
mod lexer;
mod mnemonic;
mod operand;
mod scan;
mod section;
mod symbols;
mod values;

use crate::image::{Image, SectionKind};
use expression::{Expression, Lookup, SymbolId};
use instruction::{Fix, Read};
use layout::{Piece, Position, Section};
use lexer::{Cursor, Statement};
use palisade_base::{Diagnostic, Span};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use symbols::{Meaning, Symbols};

/// Errors after this many are not reported.
const MAX_ERRORS: usize = 20;

/// Reads an assembly file.
///
/// # Errors
/// What is wrong with it, or not known.
pub(crate) fn read(name: &str, text: &str) -> Result<Image, Vec<Diagnostic>> {
    let mut reader = Reader::new();
    let plain = scan::without_comments(text).unwrap_or_else(|(why, span)| {
        reader.error(why, span);
        String::new()
    });
    if !reader.errors.is_empty() {
        return Err(reader.errors);
    }
    for statement in lexer::statements(&plain) {
        reader.statement(statement);
        if reader.errors.len() >= MAX_ERRORS || reader.ended {
            break;
        }
    }
    finish::image(reader, name, text)
}

/// What was read so far.
struct Reader {
    sections: Vec<Section>,
    /// The sections by their names, with what else distinguishes them.
    by_key: BTreeMap<String, usize>,
    /// For each section, the index in the image of the one that it is a part of.
    roots: Vec<usize>,
    /// For each section of the image, its first part.
    firsts: Vec<usize>,
    current: usize,
    previous: usize,
    /// Current and previous sections that `.pushsection` has kept.
    kept: Vec<(usize, usize)>,
    symbols: Symbols,
    errors: Vec<Diagnostic>,
    /// Instructions that are not read.
    unread: Vec<(Position, String)>,
    /// Names of source files, by their numbers.
    files: BTreeMap<u64, String>,
    /// The line of the source program that `.loc` has announced.
    announced: Option<Option<(String, u64)>>,
    /// The lines of the source program.
    rows: Vec<(Position, Option<(String, u64)>)>,
    /// The lines of this text.
    own_rows: Vec<(Position, u64)>,
    /// The statement that is read, and its place, if it was asked for.
    span: Span,
    here: Option<SymbolId>,
    /// How many bytes were not written one by one.
    filled: u64,
    /// The code ends with a prefix for sizes, which belongs to what follows.
    widened: bool,
    /// `.end` was read.
    ended: bool,
    /// How many symbols the value of an expression has depended on so far.
    work: Cell<u32>,
    /// Whether that value depends on how long instructions are, or on what is not loaded.
    measured: Cell<bool>,
    /// Labels of the text alone that relocations refer to, so that object files have them.
    kept_symbols: RefCell<BTreeSet<SymbolId>>,
}

impl Lookup for Reader {
    fn symbol(&mut self, name: &str) -> SymbolId {
        self.symbols.named(name, self.span)
    }

    fn here(&mut self) -> SymbolId {
        match self.here {
            Some(here) => here,
            None => {
                let at = self.position();
                *self.here.insert(self.symbols.unnamed(at, self.span))
            }
        }
    }

    fn numbered(&mut self, number: u64, forwards: bool) -> SymbolId {
        self.symbols.numbered(number, forwards, self.span)
    }
}

impl Reader {
    fn new() -> Reader {
        let mut reader = Reader {
            sections: Vec::new(),
            by_key: BTreeMap::new(),
            roots: Vec::new(),
            firsts: Vec::new(),
            current: 0,
            previous: 0,
            kept: Vec::new(),
            symbols: Symbols::default(),
            errors: Vec::new(),
            unread: Vec::new(),
            files: BTreeMap::new(),
            announced: None,
            rows: Vec::new(),
            own_rows: Vec::new(),
            span: Span::NONE,
            here: None,
            filled: 0,
            widened: false,
            ended: false,
            measured: Cell::new(false),
            work: Cell::new(0),
            kept_symbols: RefCell::default(),
        };
        // Object files have these first.
        for name in [".text", ".data", ".bss"] {
            reader.section(name, None, "");
        }
        reader
    }

    fn not_supported(&mut self, what: &str, span: Span) {
        self.error(format!("not supported: {what}"), span);
    }

    fn error(&mut self, message: impl Into<String>, span: Span) {
        let error = Diagnostic::error("assembly-error", message).at(span, "");
        self.errors.push(match error.message.starts_with("not supported") {
            true => error.help("an assembler may know it: give the object file that `cc -c` writes"),
            false => error,
        });
    }

    /// Where the next byte goes.
    fn position(&self) -> Position {
        let section = &self.sections[self.current];
        match section.pieces.last() {
            Some(Piece::Bytes(bytes, _)) => {
                Position { section: self.current, piece: section.pieces.len() - 1, offset: bytes.len() }
            }
            _ => Position { section: self.current, piece: section.pieces.len(), offset: 0 },
        }
    }

    /// Whether what is written here becomes part of the program.
    fn is_loaded(&self) -> bool {
        self.sections[self.current].kind != SectionKind::Other
    }

    fn statement(&mut self, statement: Statement<'_>) {
        let mut cursor = Cursor::new(statement.text, statement.start);
        loop {
            self.here = None;
            self.span = cursor.span();
            if cursor.is_at_end() {
                return;
            }
            let mut ahead = cursor.clone();
            let digits = ahead.take_while(|c| c.is_ascii_digit());
            if !digits.is_empty() {
                match digits.parse() {
                    Ok(number) if (digits == "0" || !digits.starts_with('0')) && ahead.eat(':') => {
                        let symbol = self.symbols.next_numbered(number, self.span);
                        self.define(symbol);
                        cursor = ahead;
                        continue;
                    }
                    _ => return self.error("a statement that begins with a number", self.span),
                }
            }
            let Some(word) = ahead.name() else {
                return self.error("a statement of a form that is not read", self.span);
            };
            match ahead.peek() {
                Some(':' | '=') if word == "." => return self.error("a place that is set", self.span),
                Some(':') => {
                    ahead.bump();
                    let symbol = self.symbols.named(&word, self.span);
                    self.define(symbol);
                    cursor = ahead;
                }
                Some('=') => {
                    ahead.bump();
                    return self.equate(&word, &mut ahead);
                }
                _ if cursor.peek() == Some('"') => {
                    return self
                        .error("not supported: a statement that begins with a name in quotes", self.span);
                }
                _ if word.starts_with('.') => return self.directive(&word, &mut ahead),
                _ => return self.instruction(&mut cursor, statement.line),
            }
        }
    }

    /// Puts a label here.
    fn define(&mut self, symbol: SymbolId) {
        let at = self.position();
        self.give(symbol, Meaning::Label(at));
    }

    fn give(&mut self, symbol: SymbolId, meaning: Meaning) {
        let known = self.symbols.get_mut(symbol);
        if known.meaning == Meaning::Elsewhere {
            known.meaning = meaning;
            return;
        }
        let name = known.name.clone();
        self.error(format!("`{name}` is defined twice"), self.span);
    }

    /// `name = expression`.
    fn equate(&mut self, name: &str, cursor: &mut Cursor<'_>) {
        let symbol = self.symbols.named(name, self.span);
        if let Some(value) = self.expression(cursor) {
            self.give(symbol, Meaning::Equal(value));
            self.end(cursor);
        }
    }

    /// An expression. What is wrong with it is reported.
    fn expression(&mut self, cursor: &mut Cursor<'_>) -> Option<Expression> {
        let before = cursor.clone();
        match expression::read(cursor, self) {
            Ok(found) => Some(found),
            Err(why) => {
                self.error(format!("not supported: {why}"), before.span());
                None
            }
        }
    }

    /// Nothing may follow.
    fn end(&mut self, cursor: &mut Cursor<'_>) {
        if !cursor.is_at_end() {
            self.error("the statement should end here", cursor.span());
        }
    }

    /// Appends bytes. Those that are not loaded do not matter.
    fn append(&mut self, bytes: &[u8], fixes: Vec<Fix>) {
        if !self.is_loaded() {
            return;
        }
        let (all, all_fixes) = self.sections[self.current].bytes();
        let start = all.len();
        all.extend(bytes);
        all_fixes.extend(fixes.into_iter().map(|fix| Fix { at: start + fix.at, ..fix }));
    }

    fn instruction(&mut self, cursor: &mut Cursor<'_>, line: u64) {
        if self.sections[self.current].kind != SectionKind::Code {
            return self.error("not supported: an instruction in a section without code", self.span);
        }
        let at = self.position();
        let text = cursor.rest();
        let mut prefixes = Vec::new();
        let mnemonic = loop {
            if cursor.is_at_end() {
                break None;
            }
            let before = cursor.span();
            let Some(word) = cursor.name().map(|word| word.to_ascii_lowercase()) else {
                return self
                    .error("not supported: something else than an instruction after a prefix", before);
            };
            match mnemonic::prefix(&word) {
                Some(byte) if prefixes.contains(&byte) => {
                    return self.error("not supported: the same prefix twice", before);
                }
                Some(byte) => prefixes.push(byte),
                None => break Some(word),
            }
        };
        let expects_size = std::mem::replace(&mut self.widened, false);
        let is_sized = |mnemonic: &str| matches!(mnemonic, "lea" | "leaq" | "call" | "callq");
        if expects_size && !mnemonic.as_deref().map_or(matches!(prefixes[..], [0x66 | 0x48]), is_sized) {
            return self.error("not supported: the prefix before this with such an instruction", self.span);
        }
        self.own_rows.push((at, line));
        if let Some(row) = self.announced.take() {
            self.rows.push((at, row));
        }
        let Some(mnemonic) = mnemonic else {
            self.widened = prefixes.iter().any(|byte| matches!(byte, 0x66 | 0x67 | 0x48));
            return self.append(&prefixes, Vec::new());
        };
        match instruction::read(&mnemonic, cursor, &prefixes, self) {
            Ok(Read::Bytes(bytes, fixes)) => {
                self.append(&prefixes, Vec::new());
                self.append(&bytes, fixes);
            }
            Ok(Read::Jump(condition, target)) => {
                self.append(&prefixes, Vec::new());
                let (long, span) = (false, self.span);
                self.sections[self.current].pieces.push(Piece::Jump { condition, target, long, span });
            }
            Ok(Read::Unread) if !prefixes.is_empty() => {
                self.error(format!("not supported: `{mnemonic}` after a prefix"), self.span);
            }
            Ok(Read::Unread) => {
                self.unread.push((at, text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")));
                self.append(&[0x90], Vec::new());
            }
            Err((why, span)) => self.error(format!("not supported: {why}"), span),
        }
    }
}
