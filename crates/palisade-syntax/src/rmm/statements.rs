//! Tokens to syntax tree: statements.

use super::ast::{Access, Cell, Kind as Does, Statement};
use super::parser::{Parse, Parser, Reported};
use super::stream::Mark;
use super::token::{Here, Kind};
use crate::limits::MAX_NESTING;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, limits};

impl<'a> Parser<'a, '_> {
    /// The statements of a process, up to the next process or the end.
    pub(super) fn body(&mut self) -> Vec<Statement<'a>> {
        let mut statements = self.statements();
        while !matches!(self.peek(), Kind::Process | Kind::End) {
            limits::go_on();
            let help = match self.peek() {
                Kind::Data | Kind::Registers => "sections stand in front of `text`",
                _ => "it closes nothing",
            };
            self.unexpected("a statement or a process", Some(help));
            self.next();
            if self.peek() == Kind::Semicolon {
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
            limits::go_on();
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Reported) => self.skip_statement(),
            }
            match self.peek() {
                Kind::Semicolon => {
                    let semicolon = self.next();
                    if self.ends_statements() {
                        let error = Diagnostic::error("stray-semicolon", "a `;` behind the last statement");
                        let help = "`;` separates statements; the last one has none";
                        self.messages.at(semicolon.here, "", error.help(help));
                        return statements;
                    }
                }
                _ if self.ends_statements() => return statements,
                _ => {
                    self.unexpected("`;`", Some("statements are separated by `;`"));
                    if !self.starts_statement() {
                        self.skip_statement();
                        match self.peek() {
                            Kind::Semicolon => drop(self.next()),
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
            let label = if parser.peek() == Kind::Name && parser.peek_second() == Kind::Colon {
                let label = parser.word();
                parser.next();
                parser.labels.push(label);
                u32::try_from(parser.labels.len() - 1).ok()
            } else {
                None
            };
            if label.is_some() && matches!(parser.peek(), Kind::Name | Kind::LeftBracket) {
                parser.misspelt()?;
            }
            let start = parser.mark();
            parser.grow(2)?;
            let (kind, here) = parser.unlabelled(start)?;
            Ok(Statement { label, kind, here })
        })
    }

    /// Reports a label that should be a word such as `read`, seen from what stands behind it.
    fn misspelt(&mut self) -> Parse<()> {
        let Some(label) = self.labels.last().copied() else { return Ok(()) };
        let Some(word) = nearest(label.text, ["read", "write", "syncrd", "syncwr", "assume"]) else {
            return Ok(());
        };
        self.labels.pop();
        let error = Diagnostic::error("unexpected-token", format!("there is no statement `{}`", label.text));
        self.messages.at(label.here, "", error.help(format!("did you mean `{word}`?")));
        Err(Reported)
    }

    /// A statement without its label, and its place.
    fn unlabelled(&mut self, start: Mark) -> Parse<(Does<'a>, Here)> {
        let kind = match self.peek() {
            Kind::Nop => self.word_alone(Does::Nop),
            Kind::Fence => self.word_alone(Does::Fence),
            Kind::StoreFence => self.word_alone(Does::StoreFence),
            Kind::LoadFence => self.word_alone(Does::LoadFence),
            Kind::Read => self.read(Access::Plain)?,
            Kind::SyncRead => self.read(Access::Synchronised)?,
            Kind::Write => self.write(Access::Plain)?,
            Kind::SyncWrite => self.write(Access::Synchronised)?,
            Kind::StoreLocked => {
                self.next();
                if self.peek() != Kind::Write {
                    self.unexpected("`write`", Some("only writes can be `slocked`"));
                    return Err(Reported);
                }
                self.write(Access::StoreLocked)?
            }
            Kind::Locked if self.peek_second() == Kind::Write => {
                self.next();
                self.write(Access::Locked)?
            }
            Kind::Locked => {
                self.next();
                let here = self.since(start);
                return Ok((Does::Locked(self.alternatives()?), here));
            }
            Kind::Either => {
                self.next();
                let here = self.since(start);
                return Ok((Does::Either(self.alternatives()?), here));
            }
            Kind::Cas => {
                self.next();
                self.expect(Kind::LeftParen, Some("it is written `cas(x,old,new)`"))?;
                let cell = self.cell()?;
                self.expect(Kind::Comma, Some("it is written `cas(x,old,new)`"))?;
                let old = self.expression()?;
                self.expect(Kind::Comma, Some("it is written `cas(x,old,new)`"))?;
                let new = self.expression()?;
                self.expect(Kind::RightParen, None)?;
                Does::Cas(Box::new((cell, old, new)))
            }
            Kind::Register => {
                let register = self.word();
                self.expect(Kind::Assign, Some("assignments are written `$r := e`"))?;
                Does::Assign(Box::new((register, self.expression()?)))
            }
            Kind::Assume => {
                self.next();
                self.expect(Kind::Colon, Some("it is written `assume: $r = 0`"))?;
                Does::Assume(Box::new(self.condition()?))
            }
            Kind::If => {
                self.next();
                let condition = self.condition()?;
                self.expect(Kind::Then, Some("it is written `if $r = 0 then …`"))?;
                let here = self.since(start);
                let then = unwrapped(self.statement()?);
                let mut otherwise = Vec::new();
                if self.peek() == Kind::Else {
                    self.next();
                    otherwise = unwrapped(self.statement()?);
                }
                return Ok((Does::If(Box::new((condition, then, otherwise))), here));
            }
            Kind::While => {
                self.next();
                let condition = self.condition()?;
                self.expect(Kind::Do, Some("it is written `while $r = 0 do …`"))?;
                let here = self.since(start);
                let body = unwrapped(self.statement()?);
                return Ok((Does::While(Box::new((condition, body))), here));
            }
            Kind::Goto => {
                self.next();
                if self.peek() != Kind::Name {
                    self.unexpected("a label", None);
                    return Err(Reported);
                }
                Does::Goto(Box::new(self.word()))
            }
            Kind::LeftBrace => {
                let open = self.next();
                let statements = self.statements();
                self.close(open.here)?;
                return Ok((Does::Block(statements), open.here));
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
            Kind::Name => match nearest(word, Kind::STATEMENT_WORDS) {
                Some(known) => Some(format!("did you mean `{known}`?")),
                None if self.peek_second() == Kind::Assign => Some(format!(
                    "memory is written with `write: {word} := …`, registers are called `${word}`"
                )),
                None if self.peek_second() == Kind::LeftParen => {
                    Some("a macro is defined before it is called: `macro NAME(a,b) … endmacro`".to_owned())
                }
                None => Some(format!("a label has a colon behind it: `{word}:`")),
            },
            _ => None,
        };
        self.unexpected("a statement", help.as_deref());
    }

    fn word_alone(&mut self, kind: Does<'a>) -> Does<'a> {
        self.next();
        kind
    }

    fn read(&mut self, access: Access) -> Parse<Does<'a>> {
        let word = self.next().kind.describe().trim_matches('`');
        let help = format!("it is written `{word}: x = 0` or `{word}: $r := x`");
        self.expect(Kind::Colon, Some(&help))?;
        if self.peek() == Kind::Register {
            let register = self.word();
            self.expect(Kind::Assign, Some(&help))?;
            return Ok(Does::Load(access, Box::new((register, self.cell()?))));
        }
        let cell = self.cell()?;
        self.expect(Kind::Equal, Some(&help))?;
        Ok(Does::Await(access, Box::new((cell, self.expression()?))))
    }

    fn write(&mut self, access: Access) -> Parse<Does<'a>> {
        let word = self.next().kind.describe().trim_matches('`');
        let help = format!("it is written `{word}: x := 0`");
        self.expect(Kind::Colon, Some(&help))?;
        let cell = self.cell()?;
        self.expect(Kind::Assign, Some(&help))?;
        Ok(Does::Write(access, Box::new((cell, self.expression()?))))
    }

    /// `x`, `x[my]`, `x[N]` or `[e]`.
    fn cell(&mut self) -> Parse<Cell<'a>> {
        let start = self.mark();
        match self.peek() {
            Kind::Name => {
                let name = self.word();
                if self.peek() != Kind::LeftBracket {
                    return Ok(Cell::Global(name));
                }
                let open = self.next();
                let owner = match self.peek() {
                    Kind::My => {
                        self.next();
                        None
                    }
                    Kind::Number => Some(self.number()?),
                    _ => {
                        let help = "`x[my]` is the own copy, `x[0]` that of the first other process";
                        self.unexpected("`my` or a number", Some(help));
                        return Err(Reported);
                    }
                };
                self.close_with(Kind::RightBracket, open.here)?;
                let here = self.since(start);
                Ok(owner.map_or(Cell::Own(name, here), |owner| Cell::Other(name, owner, here)))
            }
            Kind::LeftBracket => {
                let open = self.next();
                let pointer = self.expression()?;
                self.close_with(Kind::RightBracket, open.here)?;
                Ok(Cell::Pointer(pointer, self.since(start)))
            }
            Kind::Register => {
                self.unexpected(
                    "a memory location",
                    Some("a register is no memory location; `[$r]` is what it points to"),
                );
                Err(Reported)
            }
            _ => {
                self.unexpected(
                    "a memory location",
                    Some("memory locations are `x`, `x[my]`, `x[0]` and `[$r]`"),
                );
                Err(Reported)
            }
        }
    }

    /// `{ss or ss}`
    fn alternatives(&mut self) -> Parse<Vec<Vec<Statement<'a>>>> {
        let open = self.expect(Kind::LeftBrace, Some("the alternatives stand in braces: `{ … or … }`"))?;
        let mut alternatives = vec![self.statements()];
        while self.peek() == Kind::Or {
            self.next();
            alternatives.push(self.statements());
        }
        self.close(open.here)?;
        Ok(alternatives)
    }

    fn close(&mut self, open: Here) -> Parse<()> {
        self.close_with(Kind::RightBrace, open)
    }

    /// Takes a closing sign, or reports that it is missing and where it was opened.
    pub(super) fn close_with(&mut self, kind: Kind, open: Here) -> Parse<()> {
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
            let error = Diagnostic::error("too-deep", format!("nested more than {MAX_NESTING} levels deep"));
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
            Kind::RightBrace
                | Kind::Or
                | Kind::Process
                | Kind::Data
                | Kind::Registers
                | Kind::Text
                | Kind::End
        )
    }

    pub(super) fn starts_statement(&self) -> bool {
        match self.peek() {
            Kind::Name => self.peek_second() == Kind::Colon,
            kind => matches!(
                kind,
                Kind::Nop
                    | Kind::Fence
                    | Kind::StoreFence
                    | Kind::LoadFence
                    | Kind::Read
                    | Kind::SyncRead
                    | Kind::Write
                    | Kind::SyncWrite
                    | Kind::StoreLocked
                    | Kind::Locked
                    | Kind::Either
                    | Kind::Cas
                    | Kind::Register
                    | Kind::Assume
                    | Kind::If
                    | Kind::While
                    | Kind::Goto
                    | Kind::LeftBrace
            ),
        }
    }

    /// Skips to the end of a statement that could not be read: the next `;` outside braces, or what ends the
    /// list it is in.
    fn skip_statement(&mut self) {
        let mut open = 0u32;
        loop {
            match self.peek() {
                Kind::End | Kind::Process => return,
                Kind::Semicolon if open == 0 => return,
                _ if open == 0 && self.ends_statements() => return,
                Kind::LeftBrace => open += 1,
                Kind::RightBrace => open -= 1,
                _ => {}
            }
            self.next();
        }
    }
}

/// The statements of a body: those of the block it is, or itself.
fn unwrapped(statement: Statement<'_>) -> Vec<Statement<'_>> {
    match statement {
        Statement { label: None, kind: Does::Block(statements), .. } => statements,
        statement => vec![statement],
    }
}
