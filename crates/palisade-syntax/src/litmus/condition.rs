//! The question that a test asks: `locations [...]`, `filter P`, and `exists P`, `~exists P` or `forall P`.
//!
//! Anything after it in `<<…>>` is a remark of another tool and is skipped.
//!
//! As in herd, `~` binds most tightly, then `=>`, `/\` and `\/`.

use super::lexer::{Sign, TokenKind};
use super::parser::{Failed, Outcome, Parser};
use super::test::{Atom, Condition, Location, Quantifier, Side};
use crate::limits::MAX_NESTING;
use palisade_base::{Diagnostic, Severity, Span};

type Questions<'a> = (Vec<Location<'a>>, Option<Condition<'a>>, Option<(Quantifier, Condition<'a>, Span)>);

impl<'a> Parser<'a, '_> {
    /// Parses everything after the code.
    pub(super) fn questions(&mut self) -> Questions<'a> {
        let mut locations = Vec::new();
        let mut filter = None;
        if self.is_word("locations") {
            self.advance();
            if self.locations(&mut locations).is_err() {
                self.skip_to_question();
            }
        }
        if self.is_word("filter") {
            self.advance();
            match self.condition() {
                Ok(condition) => filter = Some(condition),
                Err(Failed) => self.skip_to_question(),
            }
        }
        let question = self.question().ok().flatten();
        (locations, filter, question)
    }

    fn skip_to_question(&mut self) {
        while self.peek() != TokenKind::End && !["exists", "forall", "filter", "final"].contains(&self.here())
        {
            self.advance();
        }
    }

    fn locations(&mut self, locations: &mut Vec<Location<'a>>) -> Outcome<()> {
        self.expect(Sign::LeftBracket)?;
        loop {
            while self.eat(Sign::Semicolon) {}
            if self.eat(Sign::RightBracket) {
                return Ok(());
            }
            locations.push(self.location()?);
            // A type may follow.
            while self.peek() == TokenKind::Word || self.is(Sign::Star) {
                self.advance();
            }
            if !self.is(Sign::Semicolon) && !self.is(Sign::RightBracket) {
                return self.expected("`;` or `]`");
            }
        }
    }

    fn question(&mut self) -> Outcome<Option<(Quantifier, Condition<'a>, Span)>> {
        self.skip_trailers(Severity::Error);
        let start = self.span();
        let quantifier = match self.peek() {
            TokenKind::End => return Ok(None),
            TokenKind::Sign(Sign::LeftParen) => Quantifier::Reachable,
            TokenKind::Sign(Sign::Not) => self.negated_exists()?,
            TokenKind::Word => match self.here() {
                "not" => self.negated_exists()?,
                "exists" | "final" => {
                    self.advance();
                    Quantifier::Reachable
                }
                "forall" => {
                    self.advance();
                    Quantifier::Always
                }
                _ => return self.no_question(),
            },
            _ => return self.no_question(),
        };
        let condition = self.condition()?;
        let span = start.to(self.previous());
        self.eat(Sign::Semicolon);
        if self.is_word("with") {
            // Expectations for other models are not part of the question.
            while self.peek() != TokenKind::End {
                self.advance();
            }
        }
        self.skip_trailers(Severity::Warning);
        if self.peek() != TokenKind::End {
            let message =
                format!("expected the end of the test, found `{}`", super::parser::shown(self.here()));
            let diagnostic = Diagnostic::error("unexpected-token", message).at(self.span(), "");
            return self.fail(diagnostic.help("combine conditions with `/\\` and `\\/`"));
        }
        Ok(Some((quantifier, condition, span)))
    }

    /// Skips `<<…>>`. A remark without `>>` extends to the end of the text. That is an error if it can hide
    /// the question.
    fn skip_trailers(&mut self, unfinished: Severity) {
        while self.is(Sign::Trailer) {
            if !self.here().ends_with(">>") {
                let start = self.span().range().start;
                let id = "unfinished-trailer";
                let message = "`<<` without `>>`: everything after it is skipped";
                let diagnostic = match unfinished {
                    Severity::Error => Diagnostic::error(id, message),
                    Severity::Warning => Diagnostic::warning(id, message),
                };
                let diagnostic = diagnostic.at(Span::new(start..start + 2), "");
                self.report.push(diagnostic.help("add `>>` at the end of the remark"));
            }
            self.advance();
        }
    }

    fn no_question<T>(&mut self) -> Outcome<T> {
        self.expected("`exists`, `~exists` or `forall`")
    }

    fn negated_exists(&mut self) -> Outcome<Quantifier> {
        self.advance();
        if !self.is_word("exists") {
            return self.expected("`exists`");
        }
        self.advance();
        Ok(Quantifier::Unreachable)
    }

    fn condition(&mut self) -> Outcome<Condition<'a>> {
        self.joined(Sign::Or)
    }

    /// Conditions joined by `\/`, or by `/\`.
    fn joined(&mut self, sign: Sign) -> Outcome<Condition<'a>> {
        let mut parts = Vec::new();
        loop {
            parts.push(if sign == Sign::Or { self.joined(Sign::And)? } else { self.implication()? });
            if !self.eat(sign) {
                break;
            }
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ if sign == Sign::Or => Condition::Or(parts),
            _ => Condition::And(parts),
        })
    }

    fn implication(&mut self) -> Outcome<Condition<'a>> {
        let left = self.negation()?;
        if !self.eat(Sign::Implies) {
            return Ok(left);
        }
        let right = self.nested(Self::implication)?;
        Ok(Condition::Implies(Box::new(left), Box::new(right)))
    }

    fn negation(&mut self) -> Outcome<Condition<'a>> {
        let start = self.span();
        if self.is_word("not") || self.is(Sign::Not) {
            self.advance();
            let operand = self.nested(Self::negation)?;
            return Ok(Condition::Not(Box::new(operand), start.to(self.previous())));
        }
        if self.eat(Sign::LeftParen) {
            let inside = self.nested(Self::condition)?;
            self.expect(Sign::RightParen)?;
            return Ok(inside);
        }
        if self.is_word("true") || self.is_word("false") {
            let value = self.is_word("true");
            return Ok(Condition::Constant(value, self.advance().span));
        }
        self.atom()
    }

    /// Parses one level deeper.
    fn nested(&mut self, parse: fn(&mut Self) -> Outcome<Condition<'a>>) -> Outcome<Condition<'a>> {
        if self.depth >= MAX_NESTING {
            let message = format!("conditions can be nested at most {MAX_NESTING} levels deep");
            let span = self.span();
            return self.fail(Diagnostic::error("too-deep", message).at(span, ""));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn atom(&mut self) -> Outcome<Condition<'a>> {
        let start = self.span();
        if matches!(self.here(), "fault" | "Fault") && self.text_ahead(1) == "(" {
            let diagnostic =
                Diagnostic::error("unsupported-condition", "conditions on faults are not supported");
            return self.fail(diagnostic.at(start, ""));
        }
        self.conditions += 1;
        let left = self.location()?;
        let equal = match self.peek() {
            TokenKind::Sign(Sign::Equal | Sign::EqualEqual) => true,
            TokenKind::Sign(Sign::NotEqual) => false,
            _ => return self.expected("`=`"),
        };
        self.advance();
        let right = self.right_side()?;
        Ok(Condition::Atom(Box::new(Atom { left, equal, right, span: start.to(self.previous()) })))
    }

    fn right_side(&mut self) -> Outcome<Side<'a>> {
        if self.eat(Sign::LeftBrace) {
            let mut elements = Vec::new();
            loop {
                elements.push(self.constant()?);
                if !self.eat(Sign::Comma) {
                    break;
                }
            }
            self.expect(Sign::RightBrace)?;
            return Ok(Side::Elements(elements));
        }
        let is_location = self.is(Sign::LeftBracket)
            || self.is(Sign::Star)
            || self.ahead(1) == TokenKind::Sign(Sign::Colon)
                && matches!(self.peek(), TokenKind::Number(_) | TokenKind::Word);
        if is_location {
            return Ok(Side::Location(self.location()?));
        }
        let (constant, span) = self.constant()?;
        Ok(Side::Constant(constant, span))
    }
}
