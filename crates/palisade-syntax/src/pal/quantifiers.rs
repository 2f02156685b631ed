//! `forall i in 0..2: e` and `exists p in P: e`
//!
//! The variable is a constant inside `e`, so `e` is parsed once for each of its values, and the results are joined
//! by `&&` or `||`: nothing else has to know quantifiers. The variable of a process is the number of the instance,
//! and `p@l` and `p.r` are about that instance.
//!
//! *Cost*: the text of `e` is read again for each value. What it becomes counts towards the size of the program,
//! which is limited.

use super::expressions::Tree;
use super::parser::{Parse, Parser};
use super::token::{Sign, Symbol, Token, TokenKind};
use crate::bound::{Bound, BoundKind};
use palisade_base::{Diagnostic, Span, limits};
use palisade_program::Value;
use palisade_program::written::{BinaryOp, Count, Expr, ExprKind, Name, Start};

/// The most values that a variable can have.
const MAX_VALUES: i128 = 100_000;

/// A place in the text to which the parser can return.
#[derive(Clone, Copy)]
pub(super) struct Checkpoint {
    lexer: usize,
    current: Token,
    next: Token,
    previous: Span,
}

/// A variable, and what it ranges over.
struct Range {
    symbol: Symbol,
    lo: Value,
    hi: Value,
    /// The template, if it ranges over instances.
    template: Option<Name>,
}

impl Parser<'_> {
    /// Whether a quantifier begins here. Its words are not reserved: no expression has two names in a row.
    pub fn at_quantifier(&self) -> bool {
        (self.at_name("forall") || self.at_name("exists")) && matches!(self.next.kind, TokenKind::Name(_))
    }

    /// Parses a quantifier, which reaches as far to the right as possible. Not inlined, so that other expressions
    /// need less stack.
    #[inline(never)]
    pub fn quantifier(&mut self) -> Parse<Tree> {
        let start = self.current.span;
        let op = if self.at_name("forall") { BinaryOp::And } else { BinaryOp::Or };
        self.advance();
        self.nested(|parser| parser.quantified(op, start))
    }

    /// Parses `i in 0..2, j in P: e` from a variable on.
    fn quantified(&mut self, op: BinaryOp, start: Span) -> Parse<Tree> {
        let declared = self.current.span;
        let range = self.variable_range()?;
        let more = self.eat(Sign::Comma);
        if !more {
            if !self.at(Sign::Colon) {
                let help =
                    "write `forall i in 0..2: …`, and several variables as `forall i in 0..2, j in 0..2: …`";
                let diagnostic = self.unexpected("`:`").help(help);
                return Err(self.fail(diagnostic));
            }
            self.advance();
        }
        let body = self.checkpoint();
        let previous = self.constants.bind(range.symbol, range.lo, declared);
        let hidden = self.instances.iter().position(|(symbol, _)| *symbol == range.symbol);
        let hidden = hidden.map(|index| self.instances.remove(index));
        if let Some(template) = range.template {
            self.instances.push((range.symbol, template));
        }
        let mut found: Vec<Tree> = Vec::new();
        let mut value = range.lo;
        let parsed = loop {
            limits::checkpoint();
            self.constants.set(range.symbol, value);
            let parsed =
                if more { self.nested(|parser| parser.quantified(op, start)) } else { self.expr_tree() };
            match parsed {
                // What an inner range without values becomes adds nothing.
                Ok((Expr { kind: ExprKind::Bool(neutral), .. }, _))
                    if more && range.lo <= range.hi && neutral == (op == BinaryOp::And) => {}
                Ok(tree) if range.lo <= range.hi => found.push(tree),
                // Without values, the text is read for its errors.
                Ok(_) => break Ok(()),
                Err(failed) => break Err(failed),
            }
            if value == range.hi {
                break Ok(());
            }
            value += 1;
            // Comments count too, so that a small text does not keep the parser busy.
            let length = self.previous.end.saturating_sub(body.previous.end) as usize;
            if let Err(failed) = self.grow(length / 4) {
                break Err(failed);
            }
            self.return_to(body);
        };
        self.instances.retain(|(symbol, _)| *symbol != range.symbol);
        self.instances.extend(hidden);
        let uses = self.constants.unbind(range.symbol, previous, body.previous.end);
        parsed?;
        let whole = self.since(start);
        let known = self.bound.iter_mut().find(|bound| bound.declared == declared);
        match known {
            Some(known) => known.uses.extend(uses),
            None => self.bound.push(Bound { kind: BoundKind::Quantifier, declared, whole, uses }),
        }
        if found.is_empty() {
            return Ok((self.make(ExprKind::Bool(op == BinaryOp::And), whole)?, 1));
        }
        self.join(op, found, whole)
    }

    /// `i in 0..2` or `p in P`
    fn variable_range(&mut self) -> Parse<Range> {
        let (symbol, name) = self.name("the name of a variable")?;
        if self.constants.is_constant(symbol) && !self.constants.is_bound(symbol) {
            // Reported with the place of the constant.
            self.declare(symbol, name.span());
        }
        let over_instances = self.at_name("in")
            && matches!(self.next.kind, TokenKind::Name(template) if self.is_template(template));
        if !over_instances {
            self.unknown_range()?;
            let (lo, hi, span) = self.in_range("forall")?;
            if i128::from(hi) - i128::from(lo) >= MAX_VALUES {
                let message = format!("`{name}` has more than {MAX_VALUES} values");
                return Err(self.fail(Diagnostic::error("too-large", message).at(span, "")));
            }
            return Ok(Range { symbol, lo, hi, template: None });
        }
        self.advance();
        let (_, template) = self.name("the name of a process")?;
        let count = self.instance_count(&template)?;
        Ok(Range { symbol, lo: 0, hi: count - 1, template: Some(template) })
    }

    /// Refuses `in Q` if nothing is called `Q`.
    fn unknown_range(&mut self) -> Parse<()> {
        let TokenKind::Name(symbol) = self.next.kind else { return Ok(()) };
        let is_known = self.constants.is_constant(symbol) || self.constants.enumeration(symbol).is_some();
        if !self.at_name("in") || is_known || self.imports.failed {
            return Ok(());
        }
        let (start, named) = (self.checkpoint(), self.next.span);
        self.advance();
        self.advance();
        let is_alone = self.at(Sign::Colon) || self.at(Sign::Comma);
        self.return_to(start);
        if !is_alone {
            return Ok(());
        }
        let message = format!("there is no process or enumeration `{}` before this", self.lexer.slice(named));
        let help = "declare it first, or write a range: `forall i in 0..3: …`";
        Err(self.fail(Diagnostic::error("unknown-name", message).at(named, "").help(help)))
    }

    fn is_template(&self, symbol: Symbol) -> bool {
        let text = self.lexer.names.text(symbol);
        self.program.templates.iter().any(|template| template.name.as_str() == text)
    }

    /// How many instances of a template there are from the start.
    fn instance_count(&mut self, name: &Name) -> Parse<Value> {
        let template = self.program.templates.iter().find(|template| template.name == *name);
        let template = template.expect("the caller has seen it");
        let copies = match (template.count, template.start) {
            (Count::Fixed(count), Start::Initially) => i128::from(count),
            _ => {
                let message = format!("the instances of `{name}` have no numbers");
                let help = format!("use `count`, as in `count({name}@cs) >= 2`");
                let diagnostic = Diagnostic::error("no-instances", message).at(name.span(), "");
                return Err(self.fail(diagnostic.help(help)));
            }
        };
        let sizes = template.params.iter().map(|param| match param.ty.domain.bounds() {
            Some((lo, hi)) => (i128::from(hi) - i128::from(lo) + 1).max(0),
            None => 0,
        });
        let count = sizes.fold(copies, i128::saturating_mul);
        match Value::try_from(count) {
            Ok(number) if count <= MAX_VALUES => Ok(number),
            _ => {
                let message = format!("`{name}` has more than {MAX_VALUES} instances");
                Err(self.fail(Diagnostic::error("too-large", message).at(name.span(), "")))
            }
        }
    }

    /// Joins trees from left to right, as a balanced tree.
    fn join(&mut self, op: BinaryOp, mut trees: Vec<Tree>, span: Span) -> Parse<Tree> {
        while trees.len() > 1 {
            let mut joined = Vec::with_capacity(trees.len().div_ceil(2));
            let mut rest = trees.into_iter();
            while let Some((left, left_height)) = rest.next() {
                let Some((right, right_height)) = rest.next() else {
                    joined.push((left, left_height));
                    break;
                };
                let height = self.height(left_height.max(right_height), span)?;
                let both = self.make(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)?;
                joined.push((both, height));
            }
            trees = joined;
        }
        let (joined, height) = trees.pop().expect("there is at least one tree");
        Ok((Expr::new(joined.kind, span), height))
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            lexer: self.lexer.position(),
            current: self.current,
            next: self.next,
            previous: self.previous,
        }
    }

    fn return_to(&mut self, place: Checkpoint) {
        self.lexer.return_to(place.lexer);
        (self.current, self.next, self.previous) = (place.current, place.next, place.previous);
    }
}
