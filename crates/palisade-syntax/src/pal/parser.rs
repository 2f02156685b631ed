//! The parser's machinery: looking at tokens, reporting errors, and recovering from them.
//!
//! A parsing function that fails has already reported an error and returns [`Failed`]. Statements and items
//! catch that, skip to where the next one is likely to begin, and continue, so that one run reports every
//! error.

use super::aggregates::Aggregates;
use super::constants::Constants;
use super::identities::Identity;
use super::imports::{Imports, file_text};
use super::lexer::{Lexer, shorten};
use super::loops::Loops;
use super::token::{Sign, Symbol, Token, TokenKind, Word};
use crate::bound::Bound;
use crate::limits::{MAX_NESTING, MAX_SIZE};
use crate::report::Report;
use palisade_base::{Diagnostic, Source, Span};
use palisade_program::written::{Name, Program};

/// Parsing failed. A diagnostic says why.
pub(super) struct Failed;

/// The result of a parsing function.
pub(super) type Parse<T> = Result<T, Failed>;

/// A parser with one token of lookahead after the current one.
pub(super) struct Parser<'s> {
    pub lexer: Lexer<'s>,
    pub report: Report,
    pub current: Token,
    pub next: Token,
    /// The token before the current one.
    pub previous: Span,
    /// The current depth of nested statements and expressions.
    nesting: u32,
    /// The size of the program so far; see [`MAX_SIZE`].
    size: usize,
    pub constants: Constants,
    pub loops: Loops,
    /// The variables of quantifiers around the current place that range over the instances of a template.
    pub instances: Vec<(Symbol, Name)>,
    /// The variables of quantifiers.
    pub bound: Vec<Bound>,
    pub program: Program,
    /// Whether to suppress errors about a missing `}` in the current item.
    pub unclosed: bool,
    pub imports: Imports<'s>,
    pub aggregates: Aggregates,
    pub identity: Identity,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s Source) -> Parser<'s> {
        let mut lexer = Lexer::new(source.text());
        lexer.enter(file_text(source, 0));
        let mut report = Report::default();
        let current = lexer.next(&mut report);
        let next = lexer.next(&mut report);
        Parser {
            lexer,
            report,
            current,
            next,
            previous: Span::new(0..0),
            nesting: 0,
            size: 0,
            constants: Constants::default(),
            loops: Loops::default(),
            instances: Vec::new(),
            bound: Vec::new(),
            program: Program::default(),
            unclosed: false,
            imports: Imports::new(source),
            aggregates: Aggregates::default(),
            identity: Identity::default(),
        }
    }

    // Looking at tokens.

    pub fn at(&self, sign: Sign) -> bool {
        self.current.kind == TokenKind::Sign(sign)
    }

    pub fn at_word(&self, word: Word) -> bool {
        self.current.kind == TokenKind::Word(word)
    }

    pub fn next_is(&self, sign: Sign) -> bool {
        self.next.kind == TokenKind::Sign(sign)
    }

    pub fn at_end(&self) -> bool {
        self.current.kind == TokenKind::End
    }

    /// Whether an item starts here.
    pub fn at_item(&self) -> bool {
        matches!(self.current.kind, TokenKind::Word(word) if word.starts_item())
            || self.at_import()
            || self.at_struct()
    }

    /// Whether the current token is a name with this text. For words that are keywords only in one context.
    pub fn at_name(&self, text: &str) -> bool {
        matches!(self.current.kind, TokenKind::Name(symbol) if self.lexer.names.text(symbol) == text)
    }

    /// Whether the current token starts a line.
    pub fn on_new_line(&self) -> bool {
        self.lexer.slice(Span { start: self.previous.end, end: self.current.span.start }).contains('\n')
    }

    pub fn advance(&mut self) {
        self.previous = self.current.span;
        self.current = self.next;
        self.next = self.lexer.next(&mut self.report);
    }

    /// Takes the symbol if it is next.
    pub fn eat(&mut self, sign: Sign) -> bool {
        let there = self.at(sign);
        if there {
            self.advance();
        }
        there
    }

    /// The span from `start` to the last token taken.
    pub fn since(&self, start: Span) -> Span {
        start.to(self.previous)
    }

    // Reporting errors.

    /// Reports an error.
    pub fn fail(&mut self, diagnostic: Diagnostic) -> Failed {
        self.report.push(diagnostic);
        Failed
    }

    /// The current token, for messages.
    pub fn found(&self) -> String {
        match self.current.kind {
            TokenKind::End => "the end of the file".to_string(),
            TokenKind::Name(symbol) => format!("`{}`", shorten(self.lexer.names.text(symbol))),
            TokenKind::Number(_) | TokenKind::Path => {
                format!("`{}`", shorten(self.lexer.slice(self.current.span)))
            }
            TokenKind::Word(word) => format!("the keyword `{}`", word.text()),
            TokenKind::Sign(sign) => format!("`{}`", sign.text()),
        }
    }

    /// An error that names what was expected here.
    pub fn unexpected(&self, wanted: &str) -> Diagnostic {
        let message = format!("expected {wanted}, found {}", self.found());
        Diagnostic::error("unexpected-token", message).at(self.current.span, format!("expected {wanted}"))
    }

    /// Takes a symbol that must be next.
    pub fn expect(&mut self, sign: Sign) -> Parse<Span> {
        if self.eat(sign) {
            return Ok(self.previous);
        }
        let diagnostic = self.unexpected(&format!("`{}`", sign.text()));
        Err(self.fail(diagnostic))
    }

    /// Takes the comma between two of these things, if one is next. A `;` in its place is reported, and the rest is parsed.
    pub fn eat_separator(&mut self, things: &str) -> bool {
        if self.at(Sign::Semicolon) {
            let message = format!("{things} are separated by commas");
            let diagnostic =
                Diagnostic::error("foreign-syntax", message).at(self.current.span, "").help("write `,`");
            self.report.push(diagnostic);
            self.advance();
            return true;
        }
        self.eat(Sign::Comma)
    }

    /// Takes a closing symbol that must be next.
    pub fn close(&mut self, sign: Sign, opened: Span) -> Parse<()> {
        if self.eat(sign) {
            return Ok(());
        }
        let wanted = format!("`{}`", sign.text());
        let diagnostic = match self.current.kind {
            TokenKind::Sign(Sign::Equal) => assignment_in_condition(self.current.span),
            _ => self.unexpected(&wanted).at(opened, format!("to close this `{}`", self.lexer.slice(opened))),
        };
        Err(self.fail(diagnostic))
    }

    /// Takes a name that must be next.
    pub fn name(&mut self, what: &str) -> Parse<(Symbol, Name)> {
        let TokenKind::Name(symbol) = self.current.kind else {
            let mut diagnostic = self.unexpected(what);
            if let TokenKind::Word(word) = self.current.kind {
                diagnostic.id = "reserved-word";
                diagnostic =
                    diagnostic.help(format!("`{}` is a keyword and cannot be used as a name", word.text()));
            }
            return Err(self.fail(diagnostic));
        };
        let name = self.lexer.names.name(symbol, self.current.span);
        self.advance();
        Ok((symbol, name))
    }

    /// Takes the `;` that ends a statement or item. If it is missing at the end of a line, reports that and
    /// continues.
    pub fn semicolon(&mut self) -> Parse<()> {
        if self.eat(Sign::Semicolon) {
            return Ok(());
        }
        if self.at(Sign::Equal) {
            let help = "the left side of an assignment must be a variable, an array element or `*pointer`, and only one `=` can follow it";
            let diagnostic = self.unexpected("`;`").help(help);
            return Err(self.fail(diagnostic));
        }
        let end = Span { start: self.previous.end, end: self.previous.end };
        let can_continue = self.on_new_line() || self.at(Sign::RightBrace) || self.at_end() || self.at_item();
        let message = format!("expected `;`, found {}", self.found());
        let diagnostic = Diagnostic::error("missing-semicolon", message);
        if can_continue {
            self.report.push(diagnostic.at(end, "`;` is missing here"));
            return Ok(());
        }
        let span = self.current.span;
        Err(self.fail(diagnostic.at(span, "expected `;`")))
    }

    // Limits.

    /// Runs a parsing function one level deeper.
    pub fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= MAX_NESTING {
            let message = format!("more than {MAX_NESTING} levels of nesting");
            let span = self.current.span;
            return Err(self.fail(Diagnostic::error("too-deep", message).at(span, "")));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Adds to the size of the program. Stops parsing if it is too large.
    pub fn grow(&mut self, by: usize) -> Parse<()> {
        self.size += by;
        if self.size <= MAX_SIZE {
            return Ok(());
        }
        if !self.at_end() {
            let span = self.current.span;
            self.report.push(
                Diagnostic::error("too-large", "the program is too large")
                    .at(span, format!("more than {MAX_SIZE} expressions and statements up to here")),
            );
            self.unclosed = true;
            self.imports.give_up();
            self.lexer.give_up();
            self.advance();
            self.advance();
        }
        Err(Failed)
    }

    // Error recovery.

    /// After an error in a statement: skips past the next `;` or block, or to the `}` that closes the
    /// enclosing block, or to the next item.
    pub fn skip_statement(&mut self) {
        let mut depth = 0usize;
        while !self.at_end() && !self.at_item() {
            match self.current.kind {
                TokenKind::Sign(Sign::LeftBrace) => depth += 1,
                TokenKind::Sign(Sign::RightBrace) if depth == 0 => return,
                TokenKind::Sign(Sign::RightBrace) => depth -= 1,
                _ => {}
            }
            let ends = depth == 0 && (self.at(Sign::Semicolon) || self.at(Sign::RightBrace));
            self.advance();
            if ends && !self.at_word(Word::Else) && !self.at_word(Word::Or) {
                return;
            }
        }
    }

    /// After an error in an item: as for a statement, but a `}` without a `{` is skipped too.
    pub fn skip_item(&mut self) {
        self.skip_statement();
        while self.at(Sign::RightBrace) || self.at(Sign::Semicolon) {
            self.advance();
        }
    }

    /// After an error in a heading: skips to the block that follows. Fails if there is none.
    pub fn skip_to_block(&mut self) -> Parse<()> {
        loop {
            match self.current.kind {
                TokenKind::Sign(Sign::LeftBrace) => return Ok(()),
                TokenKind::Sign(Sign::Semicolon | Sign::RightBrace) | TokenKind::End => return Err(Failed),
                _ if self.at_item() => return Err(Failed),
                _ => self.advance(),
            }
        }
    }
}

/// The error for `=` in a condition.
pub(super) fn assignment_in_condition(span: Span) -> Diagnostic {
    Diagnostic::error("assignment-in-condition", "`=` assigns and has no value")
        .at(span, "")
        .help("compare with `==`")
}
