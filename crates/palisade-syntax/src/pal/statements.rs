//! Statements and blocks.

use super::parser::{Failed, Parse, Parser};
use super::slips;
use super::token::{Sign, TokenKind, Word};
use palisade_base::{Diagnostic, Origin, Span, limits};
use palisade_program::written::{BinaryOp, Block, Check, Expr, ExprKind, Name, Stmt, StmtKind, Type};

impl Parser<'_> {
    /// Parses `{ … }`. Errors inside are reported and skipped. It fails only if there is no block.
    pub fn block(&mut self) -> Parse<Block> {
        if !self.at(Sign::LeftBrace) {
            let help = match self.current.kind {
                TokenKind::Sign(Sign::Semicolon) => {
                    "write `{}` for an empty body; to wait for a condition, write `await condition;`"
                }
                _ => "put the body in `{ … }`, even if it is a single statement",
            };
            let mut diagnostic = self.unexpected("`{`").help(help);
            diagnostic.id = "missing-block";
            return Err(self.fail(diagnostic));
        }
        self.nested(Self::braced)
    }

    fn braced(&mut self) -> Parse<Block> {
        let opened = self.current.span;
        self.advance();
        let mut block = Block::new();
        loop {
            limits::checkpoint();
            match self.current.kind {
                TokenKind::Sign(Sign::RightBrace) => {
                    self.advance();
                    return Ok(block);
                }
                TokenKind::Word(Word::Shared | Word::Private | Word::Const | Word::Enum) => {
                    let diagnostic = Diagnostic::error(
                        "misplaced-declaration",
                        format!(
                            "`{}` declarations must be outside processes and procedures",
                            self.lexer.slice(self.current.span)
                        ),
                    );
                    self.report.push(
                        diagnostic
                            .at(self.current.span, "")
                            .at(opened, "inside this block")
                            .help("declare registers with `let`; if the block should have ended earlier, a `}` is missing"),
                    );
                    self.item();
                }
                TokenKind::End => break,
                TokenKind::Name(_) if self.at_import() => self.misplaced_import(opened),
                _ if self.at_item() => break,
                TokenKind::Sign(Sign::Semicolon) => {
                    let warning = Diagnostic::warning("stray-semicolon", "this `;` ends nothing")
                        .at(self.current.span, "");
                    self.report.push(warning.help("remove it, or write `skip;`"));
                    self.advance();
                }
                _ => match self.statement() {
                    Ok(statement) => block.push(statement),
                    Err(Failed) => self.skip_statement(),
                },
            }
        }
        if !self.unclosed {
            self.unclosed = true;
            let end = self.current.span;
            let message = format!("expected `}}`, found {}", self.found());
            self.report.push(
                Diagnostic::error("unclosed-block", message)
                    .at(opened, "this block is not closed")
                    .at(end, ""),
            );
        }
        Ok(block)
    }

    /// Parses a statement with its labels.
    fn statement(&mut self) -> Parse<Stmt> {
        self.grow(2)?;
        let mut labels: Vec<Name> = Vec::new();
        while let TokenKind::Name(symbol) = self.current.kind
            && self.next_is(Sign::Colon)
        {
            labels.push(self.lexer.names.name(symbol, self.current.span));
            self.grow(1)?;
            self.advance();
            self.advance();
        }
        self.note_labels(&labels);
        let (kind, span) = match labels.last() {
            Some(label) if self.at(Sign::RightBrace) => (StmtKind::Skip, label.span()),
            _ => self.unlabelled()?,
        };
        Ok(Stmt { labels, kind, origin: Origin(span) })
    }

    /// Parses a statement. The span is the whole statement, or the heading of a compound statement. Those that nest
    /// have functions of their own, so that deep nesting takes little of the stack.
    fn unlabelled(&mut self) -> Parse<(StmtKind, Span)> {
        let start = self.current.span;
        let TokenKind::Word(word) = self.current.kind else {
            return match self.current.kind {
                TokenKind::Sign(Sign::LeftBrace) => Ok((StmtKind::Block(self.block()?), start)),
                _ => self.assignment_or_effect(),
            };
        };
        match word {
            Word::If => self.conditional(),
            Word::While => {
                let (condition, heading) = self.heading()?;
                Ok((StmtKind::While { condition, body: self.block()? }, heading))
            }
            Word::For if self.at_for() => self.for_loop(),
            Word::Loop => {
                self.advance();
                Ok((StmtKind::Loop(self.block()?), start))
            }
            Word::Atomic => {
                self.advance();
                Ok((StmtKind::Atomic(self.block()?), start))
            }
            Word::Choose => self.choice(),
            _ => self.simple(word),
        }
    }

    /// Parses `choose { … } or { … }`.
    fn choice(&mut self) -> Parse<(StmtKind, Span)> {
        let start = self.current.span;
        self.advance();
        let mut alternatives = vec![self.block()?];
        while self.at_word(Word::Or) {
            self.advance();
            alternatives.push(self.block()?);
        }
        Ok((StmtKind::Choose(alternatives), start))
    }

    /// Parses a statement that ends with a semicolon and begins with this word.
    fn simple(&mut self, word: Word) -> Parse<(StmtKind, Span)> {
        let start = self.current.span;
        let kind = match word {
            Word::Skip => self.bare(StmtKind::Skip)?,
            Word::Fence => self.bare(StmtKind::Fence)?,
            Word::StoreFence => self.bare(StmtKind::StoreFence)?,
            Word::Break => self.bare(StmtKind::Break)?,
            Word::Continue => self.bare(StmtKind::Continue)?,
            Word::Let => {
                self.advance();
                self.register()?
            }
            Word::Assume => self.condition_statement(StmtKind::Assume)?,
            Word::Await => self.condition_statement(StmtKind::Await)?,
            Word::Assert => self.assertion()?,
            Word::Goto => {
                self.advance();
                let (_, label) = self.name("a label")?;
                self.note_jump(&label);
                StmtKind::Goto(label)
            }
            Word::Return => {
                self.advance();
                let value = if self.at(Sign::Semicolon) || self.at(Sign::RightBrace) {
                    None
                } else {
                    Some(self.expr()?)
                };
                StmtKind::Return(value)
            }
            Word::Spawn => {
                self.advance();
                let (_, template) = self.name("the name of a process template")?;
                let args = if self.at(Sign::LeftParen) { self.arguments()?.0 } else { Vec::new() };
                StmtKind::Spawn { template, args }
            }
            Word::Int | Word::Bool => {
                let diagnostic = self.c_declaration(word, "let", "registers");
                return Err(self.fail(diagnostic));
            }
            _ => match slips::word_as_statement(word, start) {
                Some(diagnostic) => {
                    self.report.push(diagnostic);
                    return self.foreign(word);
                }
                None => return self.assignment_or_effect(),
            },
        };
        self.semicolon()?;
        Ok((kind, self.since(start)))
    }

    /// Skips a statement of another language, but parses the statements inside it.
    fn foreign(&mut self, word: Word) -> Parse<(StmtKind, Span)> {
        if !matches!(word, Word::For | Word::Do) {
            return Err(Failed);
        }
        self.advance();
        if self.at(Sign::LeftParen) {
            while !matches!(
                self.current.kind,
                TokenKind::Sign(Sign::LeftBrace | Sign::RightBrace) | TokenKind::End
            ) {
                self.advance();
            }
        }
        self.skip_to_block()?;
        self.block()?;
        if word == Word::Do && self.at_word(Word::While) {
            return Err(Failed);
        }
        Ok((StmtKind::Skip, self.previous))
    }

    /// Parses a statement of one word.
    fn bare(&mut self, kind: StmtKind) -> Parse<StmtKind> {
        self.advance();
        if !self.at(Sign::LeftParen) {
            return Ok(kind);
        }
        let word = self.lexer.slice(self.previous);
        let diagnostic = self.unexpected("`;`").help(format!("write `{word};` without parentheses"));
        Err(self.fail(diagnostic))
    }

    /// Parses `assume`, `await` or `assert` with its condition.
    fn condition_statement(&mut self, make: fn(Expr) -> StmtKind) -> Parse<StmtKind> {
        self.advance();
        Ok(make(self.condition()?))
    }

    /// `assert(e);` or `assert(e) else CHECK;`
    fn assertion(&mut self) -> Parse<StmtKind> {
        self.advance();
        let condition = self.condition()?;
        if !self.at_word(Word::Else) {
            return Ok(StmtKind::Assert(condition, Check::Assertion));
        }
        self.advance();
        let (_, name) = self.name("the name of a check")?;
        match Check::of_name(name.as_str()) {
            Some(check) => Ok(StmtKind::Assert(condition, check)),
            None => {
                let message = format!("there is no check `{name}`");
                Err(self.fail(Diagnostic::error("unknown-name", message).at(name.span(), "")))
            }
        }
    }

    /// Parses what follows `let`.
    fn register(&mut self) -> Parse<StmtKind> {
        let (symbol, name) = self.name("the name of a register")?;
        self.declare(symbol, name.span());
        if self.at(Sign::LeftBracket) {
            let diagnostic =
                Diagnostic::error("register-array", "registers cannot be arrays").at(self.current.span, "");
            return Err(self.fail(
                diagnostic.help("declare a `private` array outside the process: `private a[3]: 0..7;`"),
            ));
        }
        let ty = if self.eat(Sign::Colon) { self.ty()? } else { Type::INT };
        self.note_register(&name, ty);
        let init = match self.eat(Sign::Equal) {
            false => None,
            true if self.at(Sign::Star) && self.next_is(Sign::Semicolon) => {
                let span = self.current.span;
                let Some((lo, hi)) = ty.domain.bounds() else {
                    let diagnostic =
                        Diagnostic::error("any-without-domain", "`*` needs a domain to choose from")
                            .at(span, "");
                    let help = format!("declare the domain, as in `let {name}: 0..3 = *;`");
                    return Err(self.fail(diagnostic.help(help)));
                };
                self.advance();
                // Any identity, whatever their number is. `any(0..2)` has a place in the source.
                let span = if self.is_identity(ty.domain) { Span::NONE } else { span };
                Some(Expr::new(ExprKind::Any { lo, hi }, span))
            }
            true => Some(self.expr()?),
        };
        Ok(StmtKind::Let { name, ty, init })
    }

    /// Parses `if c` or `while c`. After an error, continues at the block.
    fn heading(&mut self) -> Parse<(Expr, Span)> {
        let start = self.current.span;
        self.advance();
        let condition = match self.condition() {
            Ok(condition) if self.at(Sign::LeftBrace) || self.at(Sign::Semicolon) || self.on_new_line() => {
                condition
            }
            Ok(condition) => {
                let mut diagnostic = self.unexpected("`{`");
                diagnostic.help = Some("put the body in `{ … }`, even if it is a single statement".into());
                diagnostic.id = "missing-block";
                self.report.push(diagnostic);
                self.skip_to_block()?;
                condition
            }
            Err(Failed) => {
                self.skip_to_block()?;
                Expr::int(0)
            }
        };
        Ok((condition, self.since(start)))
    }

    /// Parses `if c { … } else …`.
    fn conditional(&mut self) -> Parse<(StmtKind, Span)> {
        let (condition, heading) = self.heading()?;
        let then = self.block()?;
        let mut otherwise = Block::new();
        if self.at_word(Word::Else) {
            self.advance();
            if self.at_word(Word::If) {
                let (kind, span) = self.nested(Self::conditional)?;
                otherwise.push(Stmt::new(kind, span));
            } else {
                otherwise = self.block()?;
            }
        }
        Ok((StmtKind::If { condition, then, otherwise }, heading))
    }

    /// Parses a statement that starts with an expression.
    fn assignment_or_effect(&mut self) -> Parse<(StmtKind, Span)> {
        let start = self.current.span;
        if let TokenKind::Name(symbol) = self.current.kind {
            let word = self.lexer.names.text(symbol);
            let followed_by_more = match self.next.kind {
                TokenKind::Name(_) | TokenKind::Number(_) | TokenKind::Sign(Sign::LeftBrace) => true,
                TokenKind::Word(word) => !word.starts_item(),
                _ => false,
            };
            // Two words on the same line: a misspelt keyword, or a declaration of another language.
            let same_line = {
                let between = Span { start: start.end, end: self.next.span.start };
                !self.lexer.slice(between).contains('\n')
            };
            if followed_by_more && same_line {
                let message = format!("`{}` does not start a statement", super::lexer::shorten(word));
                let mut diagnostic = Diagnostic::error("unknown-statement", message).at(start, "");
                diagnostic.help = slips::statement_help(word);
                return Err(self.fail(diagnostic));
            }
            if self.next_is(Sign::Equal) && self.constants.value(symbol, start).is_some() {
                let message =
                    format!("`{}` is a constant and cannot be assigned", self.lexer.names.text(symbol));
                return Err(self.fail(Diagnostic::error("not-a-place", message).at(start, "")));
            }
        }
        let left = self.expr()?;
        if self.at(Sign::Equal)
            && let Some(assigned) = self.assign_element(&left)?
        {
            return Ok(assigned);
        }
        let kind = match self.current.kind {
            TokenKind::Sign(Sign::Equal) => {
                let place = self.place_of(left, "cannot be assigned")?;
                self.check_not_loop_variable(&place)?;
                self.advance();
                StmtKind::Assign { place, value: self.expr()? }
            }
            TokenKind::Sign(sign @ (Sign::PlusPlus | Sign::MinusMinus)) => {
                let text = self.lexer.slice(left.span());
                let diagnostic = slips::increment(sign, text, self.current.span);
                return Err(self.fail(diagnostic));
            }
            TokenKind::Sign(sign) if slips::is_compound_assignment(sign) => {
                let operator = self.current.span;
                self.advance();
                let value = self.expr()?;
                let (place, value) = (self.lexer.slice(left.span()), self.lexer.slice(value.span()));
                let diagnostic = slips::compound_assignment(sign, place, value, operator);
                return Err(self.fail(diagnostic));
            }
            _ => {
                if let ExprKind::Binary(BinaryOp::Eq, place, value) = &left.kind {
                    let (place, value) = (self.lexer.slice(place.span()), self.lexer.slice(value.span()));
                    let diagnostic = Diagnostic::error(
                        "comparison-as-statement",
                        "the result of this comparison is not used",
                    )
                    .at(left.span(), "")
                    .help(format!(
                        "write `{place} = {value};` to assign, `await {place} == {value};` to wait"
                    ));
                    return Err(self.fail(diagnostic));
                }
                StmtKind::Eval(left)
            }
        };
        self.semicolon()?;
        Ok((kind, self.since(start)))
    }

    /// The error for `int x = 0;`, as C declares variables. `keyword` is the keyword that declares `what`
    /// here.
    pub fn c_declaration(&self, word: Word, keyword: &str, what: &str) -> Diagnostic {
        let name = match self.next.kind {
            TokenKind::Name(symbol) => self.lexer.names.text(symbol),
            _ => "x",
        };
        let domain = if word == Word::Bool { ": bool" } else { "" };
        Diagnostic::error("foreign-syntax", format!("{what} are declared with `{keyword}`"))
            .at(self.current.span, "")
            .help(format!(
                "write `{keyword} {name}{domain} = 0;`, or with a range: `{keyword} {name}: 0..3 = 0;`"
            ))
    }

    /// Parses the values of a finite domain.
    pub fn finite_domain(&mut self) -> Parse<(i64, i64)> {
        let start = self.current.span;
        let ty = self.ty()?;
        match ty.domain.bounds() {
            Some(_) if self.is_identity(ty.domain) => {
                let message = "`any` does not choose an identity";
                let diagnostic = Diagnostic::error("bad-identity", message).at(start, "");
                Err(self.fail(diagnostic.help("write `let other: id or none = *;`")))
            }
            Some(bounds) => Ok(bounds),
            None => {
                let diagnostic = Diagnostic::error("any-without-domain", "`any` needs a finite domain");
                Err(self.fail(diagnostic.at(start, "").help("write `any(0..3)`")))
            }
        }
    }
}
