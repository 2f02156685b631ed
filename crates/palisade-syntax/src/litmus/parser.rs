//! Parses tokens into a [`Test`]: the cursor that the parts of the parser share, and the names of registers
//! and variables.
//!
//! Each part reports what is wrong and continues at the next `;`, so that one mistake gives one message.

use super::heading::Arch;
use super::lexer::{Sign, Token, TokenKind};
use super::registers::{Register, register, register_names};
use super::test::{Constant, Location, Test, Thread, Word};
use crate::limits::MAX_SIZE;
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Span};

/// An error that was reported.
pub(super) struct Failed;

pub(super) type Outcome<T> = Result<T, Failed>;

/// Parses a test from the tokens after its heading.
pub(super) fn parse<'a>(text: &'a str, arch: Arch, tokens: &[Token], report: &mut Report) -> Test<'a> {
    let mut parser = Parser { text, arch, tokens, at: 0, report, depth: 0, conditions: 0 };
    let init = parser.init();
    let threads = parser.code();
    let (locations, filter, question) = parser.questions();
    parser.check_size(&threads);
    Test { arch, init, threads, locations, filter, question }
}

pub(super) struct Parser<'a, 't> {
    pub(super) text: &'a str,
    pub(super) arch: Arch,
    tokens: &'t [Token],
    at: usize,
    pub(super) report: &'t mut Report,
    /// How deeply the current condition is nested.
    pub(super) depth: u32,
    /// The number of comparisons in conditions.
    pub(super) conditions: usize,
}

impl<'a> Parser<'a, '_> {
    pub(super) fn peek(&self) -> TokenKind {
        self.ahead(0)
    }

    /// The kind of the token `count` positions ahead.
    pub(super) fn ahead(&self, count: usize) -> TokenKind {
        self.tokens.get(self.at + count).map_or(TokenKind::End, |token| token.kind)
    }

    /// The span of the next token.
    pub(super) fn span(&self) -> Span {
        self.tokens[self.at.min(self.tokens.len() - 1)].span
    }

    /// The span of the previous token.
    pub(super) fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.tokens[self.at.min(self.tokens.len() - 1)];
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn is(&self, sign: Sign) -> bool {
        self.peek() == TokenKind::Sign(sign)
    }

    pub(super) fn eat(&mut self, sign: Sign) -> bool {
        let found = self.is(sign);
        if found {
            self.at += 1;
        }
        found
    }

    /// The text of the next token.
    pub(super) fn here(&self) -> &'a str {
        &self.text[self.span().range()]
    }

    /// The text of a token further ahead.
    pub(super) fn text_ahead(&self, count: usize) -> &'a str {
        self.tokens.get(self.at + count).map_or("", |token| &self.text[token.span.range()])
    }

    /// Whether the next token is this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.peek() == TokenKind::Word && self.here() == word
    }

    pub(super) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Outcome<T> {
        self.report.push(diagnostic);
        Err(Failed)
    }

    /// Rejects tests whose program would exceed the size limit of the other languages. Every token becomes at
    /// most one expression, and an instruction becomes a few statements.
    fn check_size(&mut self, threads: &[Thread<'a>]) {
        let instructions: usize = threads.iter().map(|thread| thread.code.len()).sum();
        let conditions = self.conditions;
        if 4 * instructions + 4 * conditions > MAX_SIZE {
            let message = "the test is too large".to_owned();
            let help = format!(
                "it has {instructions} instructions and {conditions} conditions; split it into smaller tests"
            );
            self.report.push(Diagnostic::error("too-large", message).at(Span::new(0..0), "").help(help));
        }
    }

    /// Reports that something else was expected here.
    pub(super) fn expected<T>(&mut self, what: &str) -> Outcome<T> {
        let diagnostic = if self.peek() == TokenKind::End {
            let end = self.text.trim_end().len();
            Diagnostic::error("unexpected-end", format!("expected {what}, but the file ends here"))
                .at(Span::new(end..end), "")
        } else {
            let message = format!("expected {what}, found `{}`", shown(self.here()));
            Diagnostic::error("unexpected-token", message).at(self.span(), "")
        };
        self.fail(diagnostic)
    }

    pub(super) fn expect(&mut self, sign: Sign) -> Outcome<Span> {
        if self.is(sign) { Ok(self.advance().span) } else { self.expected(&format!("`{}`", sign.text())) }
    }

    pub(super) fn word(&mut self, what: &str) -> Outcome<Word<'a>> {
        if self.peek() != TokenKind::Word {
            return self.expected(what);
        }
        let (text, span) = (self.here(), self.span());
        self.advance();
        Ok(Word { text, span })
    }

    /// A number with an optional sign.
    pub(super) fn number(&mut self) -> Outcome<(i128, Span)> {
        let start = self.span();
        let negative = self.eat(Sign::Minus);
        let TokenKind::Number(value) = self.peek() else { return self.expected("a number") };
        let span = start.to(self.advance().span);
        let value = i128::from(value);
        Ok((if negative { -value } else { value }, span))
    }

    /// A small number without sign.
    pub(super) fn count(&mut self, what: &str, most: u32) -> Outcome<u32> {
        let span = self.span();
        let TokenKind::Number(value) = self.peek() else { return self.expected(what) };
        self.advance();
        match u32::try_from(value) {
            Ok(value) if value <= most => Ok(value),
            _ => self
                .fail(Diagnostic::error("bad-number", format!("{what} must be at most {most}")).at(span, "")),
        }
    }

    /// A register name, without its `%`.
    pub(super) fn register(&mut self, word: Word<'_>) -> Outcome<Register> {
        match register(word.text, self.arch) {
            Some(register) => Ok(register),
            None => {
                let message = format!("unknown register `{}`", shown(word.text));
                let help = if register(word.text, Arch::X86_64).is_some() {
                    "this register exists only on X86_64, but the test is for X86".to_owned()
                } else {
                    let near = self
                        .report
                        .has_room()
                        .then(|| nearest(word.text, register_names(self.arch)))
                        .flatten();
                    match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "the registers are eax, ebx, ecx, edx, esi, edi, ebp and esp, and on X86_64 also rax … and r8 to r15".to_owned(),
                    }
                };
                self.fail(Diagnostic::error("unknown-register", message).at(word.span, "").help(help))
            }
        }
    }

    /// The number of a thread, written `0` or `P0`, and the colon after it, if they come next.
    fn thread_prefix(&mut self) -> Option<(u32, Span)> {
        if self.ahead(1) != TokenKind::Sign(Sign::Colon) {
            return None;
        }
        let number = match self.peek() {
            TokenKind::Number(number) => u32::try_from(number).unwrap_or(u32::MAX),
            TokenKind::Word => thread_number(self.here())?,
            _ => return None,
        };
        let span = self.advance().span;
        self.advance();
        Some((number, span))
    }

    /// `0:EAX`, `x`, `[x]`, `*x` or `x[1]`.
    pub(super) fn location(&mut self) -> Outcome<Location<'a>> {
        let start = self.span();
        if let Some((thread, _)) = self.thread_prefix() {
            self.eat(Sign::Percent);
            let word = self.word("a register")?;
            let register = self.register(word)?;
            return Ok(Location::Register { thread, register, span: start.to(word.span) });
        }
        if self.eat(Sign::LeftBracket) {
            let name = self.word("a variable")?;
            let element = self.element()?;
            let end = self.expect(Sign::RightBracket)?;
            return Ok(Location::Variable { name, element, span: start.to(end) });
        }
        self.eat(Sign::Star);
        let name = self.word("a variable, or a register such as `0:EAX`")?;
        let element = self.element()?;
        Ok(Location::Variable { name, element, span: start.to(self.previous()) })
    }

    /// `[1]` after the name of an array.
    pub(super) fn element(&mut self) -> Outcome<Option<u32>> {
        if !self.is(Sign::LeftBracket) || !matches!(self.ahead(1), TokenKind::Number(_)) {
            return Ok(None);
        }
        self.advance();
        let element = self.count("an index", MAX_ELEMENTS)?;
        self.expect(Sign::RightBracket)?;
        Ok(Some(element))
    }

    /// A number or an address.
    pub(super) fn constant(&mut self) -> Outcome<(Constant<'a>, Span)> {
        let start = self.span();
        if matches!(self.peek(), TokenKind::Number(_)) || self.is(Sign::Minus) {
            let (number, span) = self.number()?;
            return Ok((Constant::Number(number), span));
        }
        self.eat(Sign::Ampersand);
        let name = self.word("a number or the name of a variable")?;
        let element = self.element()?;
        Ok((Constant::Address(name, element.unwrap_or(0)), start.to(self.previous())))
    }
}

/// Longer arrays are rejected.
pub(super) const MAX_ELEMENTS: u32 = 65_536;

/// `3` for `P3`.
pub(super) fn thread_number(word: &str) -> Option<u32> {
    word.strip_prefix('P').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// A word for a message, shortened if it is very long.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
