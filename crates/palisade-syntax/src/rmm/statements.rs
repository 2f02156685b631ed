//! Parses statements.

use super::ast::{Access, Cell, Statement, StatementKind};
use super::parser::{Parse, Parser, Reported};
use super::stream::Mark;
use super::token::{Here, TokenKind};
use crate::limits::MAX_NESTING;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, limits};

impl<'a> Parser<'a, '_> {
    /// The statements of a process, up to the next process or the end.
    pub(super) fn body(&mut self) -> Vec<Statement<'a>> {
        let mut statements = self.statements();
        while !matches!(self.peek(), TokenKind::Process | TokenKind::End) {
            limits::checkpoint();
            let help = match self.peek() {
                TokenKind::Data | TokenKind::Registers => "sections must come before `text`",
                _ => "it does not close anything",
            };
            self.unexpected("a statement or a process", Some(help));
            self.next();
            if self.peek() == TokenKind::Semicolon {
                self.next();
            }
            if !self.ends_statements() {
                statements.extend(self.statements());
            }
        }
        statements
    }

    /// Statements separated by `;`.
    fn statements(&mut self) -> Vec<Statement<'a>> {
        let mut statements = Vec::new();
        loop {
            limits::checkpoint();
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Reported) => self.skip_statement(),
            }
            match self.peek() {
                TokenKind::Semicolon => {
                    let semicolon = self.next();
                    if self.ends_statements() {
                        let error = Diagnostic::error("stray-semicolon", "a `;` after the last statement");
                        let help = "`;` separates statements; remove it after the last one";
                        self.messages.at(semicolon.here, "", error.help(help));
                        return statements;
                    }
                }
                _ if self.ends_statements() => return statements,
                _ => {
                    self.unexpected("`;`", Some("separate statements with `;`"));
                    if !self.starts_statement() {
                        self.skip_statement();
                        match self.peek() {
                            TokenKind::Semicolon => drop(self.next()),
                            _ => return statements,
                        }
                        if self.ends_statements() {
                            return statements;
                        }
                    }
                }
            }
        }
    }

    fn statement(&mut self) -> Parse<Statement<'a>> {
        self.nested(|parser| {
            let label = if parser.peek() == TokenKind::Name && parser.peek_second() == TokenKind::Colon {
                let label = parser.word();
                parser.next();
                parser.labels.push(label);
                u32::try_from(parser.labels.len() - 1).ok()
            } else {
                None
            };
            if label.is_some() && matches!(parser.peek(), TokenKind::Name | TokenKind::LeftBracket) {
                parser.misspelt()?;
            }
            let start = parser.mark();
            parser.grow(2)?;
            let (kind, here) = parser.unlabelled(start)?;
            Ok(Statement { label, kind, here })
        })
    }

    /// Reports a label that is a misspelt word such as `read`, judged by what follows it.
    fn misspelt(&mut self) -> Parse<()> {
        let Some(label) = self.labels.last().copied() else { return Ok(()) };
        let Some(word) = nearest(label.text, ["read", "write", "syncrd", "syncwr", "assume"]) else {
            return Ok(());
        };
        self.labels.pop();
        let error = Diagnostic::error("unexpected-token", format!("`{}` is not a statement", label.text));
        self.messages.at(label.here, "", error.help(format!("did you mean `{word}`?")));
        Err(Reported)
    }

    /// A statement without its label, and its place.
    fn unlabelled(&mut self, start: Mark) -> Parse<(StatementKind<'a>, Here)> {
        let kind = match self.peek() {
            TokenKind::Nop => self.word_alone(StatementKind::Nop),
            TokenKind::Fence => self.word_alone(StatementKind::Fence),
            TokenKind::StoreFence => self.word_alone(StatementKind::StoreFence),
            TokenKind::LoadFence => self.word_alone(StatementKind::LoadFence),
            TokenKind::Read => self.read(Access::Plain)?,
            TokenKind::SyncRead => self.read(Access::Synchronised)?,
            TokenKind::Write => self.write(Access::Plain)?,
            TokenKind::SyncWrite => self.write(Access::Synchronised)?,
            TokenKind::StoreLocked => {
                self.next();
                if self.peek() != TokenKind::Write {
                    self.unexpected("`write`", Some("only writes can be `slocked`"));
                    return Err(Reported);
                }
                self.write(Access::StoreLocked)?
            }
            TokenKind::Locked if self.peek_second() == TokenKind::Write => {
                self.next();
                self.write(Access::Locked)?
            }
            TokenKind::Locked => {
                self.next();
                let here = self.since(start);
                return Ok((StatementKind::Locked(self.alternatives()?), here));
            }
            TokenKind::Either => {
                self.next();
                let here = self.since(start);
                return Ok((StatementKind::Either(self.alternatives()?), here));
            }
            TokenKind::Cas => {
                self.next();
                self.expect(TokenKind::LeftParen, Some("write `cas(x,old,new)`"))?;
                let cell = self.cell()?;
                self.expect(TokenKind::Comma, Some("write `cas(x,old,new)`"))?;
                let old = self.expression()?;
                self.expect(TokenKind::Comma, Some("write `cas(x,old,new)`"))?;
                let new = self.expression()?;
                self.expect(TokenKind::RightParen, None)?;
                StatementKind::Cas(Box::new((cell, old, new)))
            }
            TokenKind::Register => {
                let register = self.word();
                self.expect(TokenKind::Assign, Some("write an assignment as `$r := e`"))?;
                StatementKind::Assign(Box::new((register, self.expression()?)))
            }
            TokenKind::Assume => {
                self.next();
                self.expect(TokenKind::Colon, Some("write `assume: $r = 0`"))?;
                StatementKind::Assume(Box::new(self.condition()?))
            }
            TokenKind::If => {
                self.next();
                let condition = self.condition()?;
                self.expect(TokenKind::Then, Some("write `if $r = 0 then …`"))?;
                let here = self.since(start);
                let then = unwrapped(self.statement()?);
                let mut otherwise = Vec::new();
                if self.peek() == TokenKind::Else {
                    self.next();
                    otherwise = unwrapped(self.statement()?);
                }
                return Ok((StatementKind::If(Box::new((condition, then, otherwise))), here));
            }
            TokenKind::While => {
                self.next();
                let condition = self.condition()?;
                self.expect(TokenKind::Do, Some("write `while $r = 0 do …`"))?;
                let here = self.since(start);
                let body = unwrapped(self.statement()?);
                return Ok((StatementKind::While(Box::new((condition, body))), here));
            }
            TokenKind::Goto => {
                self.next();
                if self.peek() != TokenKind::Name {
                    self.unexpected("a label", None);
                    return Err(Reported);
                }
                StatementKind::Goto(Box::new(self.word()))
            }
            TokenKind::LeftBrace => {
                let open = self.next();
                let statements = self.statements();
                self.close(open.here)?;
                return Ok((StatementKind::Block(statements), open.here));
            }
            _ => {
                self.no_statement();
                return Err(Reported);
            }
        };
        Ok((kind, self.since(start)))
    }

    fn no_statement(&mut self) {
        let word = self.peek_text();
        let help = match self.peek() {
            TokenKind::Name => match nearest(word, TokenKind::STATEMENT_WORDS) {
                Some(known) => Some(format!("did you mean `{known}`?")),
                None if self.peek_second() == TokenKind::Assign => Some(format!(
                    "to write to memory, use `write: {word} := …`; a register is called `${word}`"
                )),
                None if self.peek_second() == TokenKind::LeftParen => {
                    Some("define a macro before it is called: `macro NAME(a,b) … endmacro`".to_owned())
                }
                None => Some(format!("write a colon after a label: `{word}:`")),
            },
            _ => None,
        };
        self.unexpected("a statement", help.as_deref());
    }

    fn word_alone(&mut self, kind: StatementKind<'a>) -> StatementKind<'a> {
        self.next();
        kind
    }

    fn read(&mut self, access: Access) -> Parse<StatementKind<'a>> {
        let word = self.next().kind.describe().trim_matches('`');
        let help = format!("write `{word}: x = 0` or `{word}: $r := x`");
        self.expect(TokenKind::Colon, Some(&help))?;
        if self.peek() == TokenKind::Register {
            let register = self.word();
            self.expect(TokenKind::Assign, Some(&help))?;
            return Ok(StatementKind::Load(access, Box::new((register, self.cell()?))));
        }
        let cell = self.cell()?;
        self.expect(TokenKind::Equal, Some(&help))?;
        Ok(StatementKind::Await(access, Box::new((cell, self.expression()?))))
    }

    fn write(&mut self, access: Access) -> Parse<StatementKind<'a>> {
        let word = self.next().kind.describe().trim_matches('`');
        let help = format!("write `{word}: x := 0`");
        self.expect(TokenKind::Colon, Some(&help))?;
        let cell = self.cell()?;
        self.expect(TokenKind::Assign, Some(&help))?;
        Ok(StatementKind::Write(access, Box::new((cell, self.expression()?))))
    }

    /// `x`, `x[my]`, `x[N]` or `[e]`.
    fn cell(&mut self) -> Parse<Cell<'a>> {
        let start = self.mark();
        match self.peek() {
            TokenKind::Name => {
                let name = self.word();
                if self.peek() != TokenKind::LeftBracket {
                    return Ok(Cell::Global(name));
                }
                let open = self.next();
                let owner = match self.peek() {
                    TokenKind::My => {
                        self.next();
                        None
                    }
                    TokenKind::Number => Some(self.number()?),
                    _ => {
                        let help =
                            "`x[my]` is the process's own copy, `x[0]` that of the first other process";
                        self.unexpected("`my` or a number", Some(help));
                        return Err(Reported);
                    }
                };
                self.close_with(TokenKind::RightBracket, open.here)?;
                let here = self.since(start);
                Ok(owner.map_or(Cell::Own(name, here), |owner| Cell::Other(name, owner, here)))
            }
            TokenKind::LeftBracket => {
                let open = self.next();
                let pointer = self.expression()?;
                self.close_with(TokenKind::RightBracket, open.here)?;
                Ok(Cell::Pointer(pointer, self.since(start)))
            }
            TokenKind::Register => {
                self.unexpected(
                    "a memory location",
                    Some("a register is not a memory location; write `[$r]` for what it points to"),
                );
                Err(Reported)
            }
            _ => {
                self.unexpected(
                    "a memory location",
                    Some("a memory location is `x`, `x[my]`, `x[0]` or `[$r]`"),
                );
                Err(Reported)
            }
        }
    }

    /// `{ss or ss}`
    fn alternatives(&mut self) -> Parse<Vec<Vec<Statement<'a>>>> {
        let open = self.expect(TokenKind::LeftBrace, Some("put the alternatives in braces: `{ … or … }`"))?;
        let mut alternatives = vec![self.statements()];
        while self.peek() == TokenKind::Or {
            self.next();
            alternatives.push(self.statements());
        }
        self.close(open.here)?;
        Ok(alternatives)
    }

    fn close(&mut self, open: Here) -> Parse<()> {
        self.close_with(TokenKind::RightBrace, open)
    }

    /// Takes a closing symbol, or reports that it is missing and where it was opened.
    pub(super) fn close_with(&mut self, kind: TokenKind, open: Here) -> Parse<()> {
        if self.peek() == kind {
            self.next();
            return Ok(());
        }
        let message = format!("expected {}, found {}", kind.describe(), self.peek().describe());
        let error = Diagnostic::error("unexpected-token", message);
        self.report_once("", Some((open, "opened here")), error);
        Err(Reported)
    }

    /// Runs a parser one level deeper, unless that is too deep.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            let error = Diagnostic::error("too-deep", format!("more than {MAX_NESTING} levels of nesting"));
            self.report_once("", None, error);
            return Err(Reported);
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn ends_statements(&self) -> bool {
        matches!(
            self.peek(),
            TokenKind::RightBrace
                | TokenKind::Or
                | TokenKind::Process
                | TokenKind::Data
                | TokenKind::Registers
                | TokenKind::Text
                | TokenKind::End
        )
    }

    pub(super) fn starts_statement(&self) -> bool {
        match self.peek() {
            TokenKind::Name => self.peek_second() == TokenKind::Colon,
            kind => matches!(
                kind,
                TokenKind::Nop
                    | TokenKind::Fence
                    | TokenKind::StoreFence
                    | TokenKind::LoadFence
                    | TokenKind::Read
                    | TokenKind::SyncRead
                    | TokenKind::Write
                    | TokenKind::SyncWrite
                    | TokenKind::StoreLocked
                    | TokenKind::Locked
                    | TokenKind::Either
                    | TokenKind::Cas
                    | TokenKind::Register
                    | TokenKind::Assume
                    | TokenKind::If
                    | TokenKind::While
                    | TokenKind::Goto
                    | TokenKind::LeftBrace
            ),
        }
    }

    /// Skips to the end of a statement with an error: the next `;` outside braces, or the end of the
    /// enclosing list.
    fn skip_statement(&mut self) {
        let mut open = 0u32;
        loop {
            match self.peek() {
                TokenKind::End | TokenKind::Process => return,
                TokenKind::Semicolon if open == 0 => return,
                _ if open == 0 && self.ends_statements() => return,
                TokenKind::LeftBrace => open += 1,
                TokenKind::RightBrace => open -= 1,
                _ => {}
            }
            self.next();
        }
    }
}

/// The statements of a body: those of a block, or the statement itself.
fn unwrapped(statement: Statement<'_>) -> Vec<Statement<'_>> {
    match statement {
        Statement { label: None, kind: StatementKind::Block(statements), .. } => statements,
        statement => vec![statement],
    }
}
