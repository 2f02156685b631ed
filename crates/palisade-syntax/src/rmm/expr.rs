//! Parses arithmetic and Boolean expressions.

use super::ast::{Expr, ExprKind, Op};
use super::parser::{Parse, Parser, Reported};
use super::stream::Mark;
use super::token::TokenKind;
use crate::limits::MAX_EXPR_DEPTH;
use palisade_base::Diagnostic;

impl<'a> Parser<'a, '_> {
    /// `e + e - e …`
    pub(super) fn expression(&mut self) -> Parse<Expr<'a>> {
        self.chain(Self::unit, |kind| match kind {
            TokenKind::Plus => Some(Op::Add),
            TokenKind::Minus => Some(Op::Sub),
            _ => None,
        })
    }

    /// `b && b || b …`
    pub(super) fn condition(&mut self) -> Parse<Expr<'a>> {
        self.chain(Self::conjunction, |kind| (kind == TokenKind::Bar).then_some(Op::Or))
    }

    fn conjunction(&mut self) -> Parse<Expr<'a>> {
        self.chain(Self::literal, |kind| (kind == TokenKind::And).then_some(Op::And))
    }

    /// `b` or `not b`
    fn literal(&mut self) -> Parse<Expr<'a>> {
        if self.peek() != TokenKind::Not {
            return self.atom();
        }
        let start = self.mark();
        self.next();
        let operand = self.atom()?;
        self.make(start, ExprKind::Not(Box::new(operand)))
    }

    /// `true`, `false`, `[b]` or a comparison.
    fn atom(&mut self) -> Parse<Expr<'a>> {
        let start = self.mark();
        match self.peek() {
            TokenKind::True | TokenKind::False => {
                let kind = self.next().kind;
                self.make(start, ExprKind::Bool(kind == TokenKind::True))
            }
            TokenKind::LeftBracket => {
                let open = self.next();
                let inside = self.nested(Self::condition)?;
                self.close_with(TokenKind::RightBracket, open.here)?;
                Ok(inside)
            }
            _ => {
                let left = self.expression()?;
                let op = match self.peek() {
                    TokenKind::Equal => Op::Eq,
                    TokenKind::NotEqual => Op::Ne,
                    TokenKind::Less => Op::Lt,
                    TokenKind::LessEqual => Op::Le,
                    TokenKind::Greater => Op::Gt,
                    TokenKind::GreaterEqual => Op::Ge,
                    _ => {
                        let help = "a condition compares numbers; group conditions with `[…]` and numbers with `(…)`";
                        self.unexpected("`=`, `!=`, `<`, `>`, `<=` or `>=`", Some(help));
                        return Err(Reported);
                    }
                };
                self.next();
                let right = self.expression()?;
                self.make(start, ExprKind::Binary(op, Box::new((left, right))))
            }
        }
    }

    /// `$r`, a number, `-e` or `(e)`.
    fn unit(&mut self) -> Parse<Expr<'a>> {
        let start = self.mark();
        match self.peek() {
            TokenKind::Register => {
                let register = self.word();
                self.make(start, ExprKind::Register(register.text))
            }
            TokenKind::Number => {
                let value = self.number()?;
                self.make(start, ExprKind::Int(value))
            }
            TokenKind::Minus => {
                self.next();
                let operand = self.nested(Self::unit)?;
                self.make(start, ExprKind::Neg(Box::new(operand)))
            }
            TokenKind::LeftParen => {
                let open = self.next();
                let inside = self.nested(Self::expression)?;
                self.close_with(TokenKind::RightParen, open.here)?;
                Ok(inside)
            }
            TokenKind::Name => {
                let name = self.peek_text();
                let help = format!(
                    "expressions can contain only registers; load the variable first: `read: ${name} := {name}`"
                );
                self.unexpected("a register or number", Some(&help));
                Err(Reported)
            }
            _ => {
                self.unexpected("a register or number", None);
                Err(Reported)
            }
        }
    }

    /// Parses operands joined by operators, which associate to the left.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Parse<Expr<'a>>,
        operator: fn(TokenKind) -> Option<Op>,
    ) -> Parse<Expr<'a>> {
        let start = self.mark();
        let mut left = operand(self)?;
        while let Some(op) = operator(self.peek()) {
            self.next();
            let right = operand(self)?;
            left = self.make(start, ExprKind::Binary(op, Box::new((left, right))))?;
        }
        Ok(left)
    }

    /// Makes an expression that starts at a position and ends here.
    fn make(&mut self, start: Mark, kind: ExprKind<'a>) -> Parse<Expr<'a>> {
        let below = match &kind {
            ExprKind::Register(_) | ExprKind::Int(_) | ExprKind::Bool(_) => 0,
            ExprKind::Neg(operand) | ExprKind::Not(operand) => operand.height,
            ExprKind::Binary(_, operands) => operands.0.height.max(operands.1.height),
        };
        if below >= MAX_EXPR_DEPTH {
            let error = Diagnostic::error("too-deep", "this expression has too many operands");
            self.report_once("", None, error.help("compute it in several statements"));
            return Err(Reported);
        }
        self.grow(1)?;
        Ok(Expr { kind, here: self.since(start), height: below + 1 })
    }
}
