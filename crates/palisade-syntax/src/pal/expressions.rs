//! Expressions and places, by precedence climbing. Operators bind as in Rust.
//!
//! Each parsing function also returns the height of the tree it built, so that the height stays below
//! [`MAX_EXPR_DEPTH`] however long a chain of operators is.

use super::constants::literal;
use super::parser::{Parse, Parser, assignment_in_condition};
use super::slips;
use super::token::{Sign, Symbol, TokenKind, Word};
use crate::limits::MAX_EXPR_DEPTH;
use palisade_base::{Diagnostic, Origin, Span, limits};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Name, Observation, Place, PlaceKind, ProcessRef, Rmw, Select, UnaryOp,
};

/// An expression and the height of its tree.
pub(super) type Tree = (Expr, u32);

impl Parser<'_> {
    /// Parses an expression.
    pub fn expr(&mut self) -> Parse<Expr> {
        Ok(self.tree()?.0)
    }

    /// Parses the condition of a statement. An assignment is reported and then treated as a comparison.
    pub fn condition(&mut self) -> Parse<Expr> {
        let condition = self.expr()?;
        if !self.at(Sign::Equal) {
            return Ok(condition);
        }
        self.report.push(assignment_in_condition(self.current.span));
        self.advance();
        self.expr()
    }

    fn tree(&mut self) -> Parse<Tree> {
        self.nested(|parser| parser.binary(0))
    }

    /// Parses an expression, with its height.
    pub fn expr_tree(&mut self) -> Parse<Tree> {
        self.tree()
    }

    /// Parses operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Parse<Tree> {
        let (mut left, mut height) = self.unary()?;
        let mut compared: Option<Span> = None;
        while let Some((op, strength)) = self.operator().filter(|&(_, strength)| strength >= least) {
            limits::checkpoint();
            let operator = self.current.span;
            if let (COMPARISON, Some(first)) = (strength, compared) {
                let diagnostic = Diagnostic::error("chained-comparison", "comparisons cannot be chained")
                    .at(operator, "")
                    .at(first, "this is the first comparison")
                    .help("write `a < b && b < c`, or put one of them in parentheses");
                self.report.push(diagnostic);
            }
            compared = (strength == COMPARISON).then_some(operator);
            self.advance();
            let (right, right_height) = self.binary(strength + 1)?;
            let span = left.span().to(right.span());
            height = self.height(height.max(right_height), operator)?;
            left = self.make(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)?;
        }
        Ok((left, height))
    }

    fn operator(&self) -> Option<(BinaryOp, u8)> {
        let TokenKind::Sign(sign) = self.current.kind else { return None };
        Some(match sign {
            Sign::OrOr => (BinaryOp::Or, 0),
            Sign::AndAnd => (BinaryOp::And, 1),
            Sign::EqualEqual => (BinaryOp::Eq, COMPARISON),
            Sign::NotEqual => (BinaryOp::Ne, COMPARISON),
            Sign::Less => (BinaryOp::Lt, COMPARISON),
            Sign::LessEqual => (BinaryOp::Le, COMPARISON),
            Sign::Greater => (BinaryOp::Gt, COMPARISON),
            Sign::GreaterEqual => (BinaryOp::Ge, COMPARISON),
            Sign::Or => (BinaryOp::BitOr, 3),
            Sign::Caret => (BinaryOp::BitXor, 4),
            Sign::And => (BinaryOp::BitAnd, 5),
            Sign::ShiftLeft => (BinaryOp::Shl, 6),
            Sign::ShiftRight => (BinaryOp::Shr, 6),
            Sign::Plus => (BinaryOp::Add, 7),
            Sign::Minus => (BinaryOp::Sub, 7),
            Sign::Star => (BinaryOp::Mul, 8),
            Sign::Slash => (BinaryOp::Div, 8),
            Sign::Percent => (BinaryOp::Rem, 8),
            Sign::WordLess => (BinaryOp::WordLt, COMPARISON),
            Sign::WordLessEqual => (BinaryOp::WordLe, COMPARISON),
            Sign::WordShiftLeft => (BinaryOp::WordShl, 6),
            Sign::WordShiftRight => (BinaryOp::WordShr, 6),
            Sign::WordPlus => (BinaryOp::WordAdd, 7),
            Sign::WordMinus => (BinaryOp::WordSub, 7),
            Sign::WordStar => (BinaryOp::WordMul, 8),
            Sign::WordSlash => (BinaryOp::WordDiv, 8),
            Sign::WordPercent => (BinaryOp::WordRem, 8),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parse<Tree> {
        let TokenKind::Sign(sign) = self.current.kind else { return self.primary() };
        match sign {
            Sign::Minus if matches!(self.next.kind, TokenKind::Number(_)) => self.negative(),
            Sign::Minus => self.operation(UnaryOp::Neg),
            Sign::Not => self.operation(UnaryOp::Not),
            Sign::Tilde => self.operation(UnaryOp::BitNot),
            Sign::Star => self.dereference(),
            Sign::And => self.address_of(),
            Sign::PlusPlus | Sign::MinusMinus => self.increment(sign),
            _ => self.primary(),
        }
    }

    fn operation(&mut self, op: UnaryOp) -> Parse<Tree> {
        let start = self.current.span;
        self.advance();
        let (operand, height) = self.nested(Self::unary)?;
        let height = self.height(height, start)?;
        Ok((self.make(ExprKind::Unary(op, Box::new(operand)), self.since(start))?, height))
    }

    fn dereference(&mut self) -> Parse<Tree> {
        let start = self.current.span;
        if matches!(self.next.kind, TokenKind::Sign(Sign::Semicolon | Sign::Comma | Sign::RightParen)) {
            let diagnostic = Diagnostic::error("any-without-domain", "`*` is not a value here")
                .at(start, "")
                .help("write `any(lo..hi)`; `*` alone is allowed only as an initial value");
            return Err(self.fail(diagnostic));
        }
        self.advance();
        let (pointer, height) = self.nested(Self::unary)?;
        let span = self.since(start);
        let place = Place::new(PlaceKind::Deref(Box::new(pointer)), span);
        let height = self.height(height, start)?;
        Ok((self.make(ExprKind::Read(place), span)?, height))
    }

    fn address_of(&mut self) -> Parse<Tree> {
        let start = self.current.span;
        self.advance();
        let (operand, height) = self.nested(Self::unary)?;
        let place = self.place_of(operand, "does not have an address")?;
        let height = self.height(height, start)?;
        Ok((self.make(ExprKind::AddressOf(place), self.since(start))?, height))
    }

    /// `++x`, which is not an expression here.
    fn increment(&mut self, sign: Sign) -> Parse<Tree> {
        let start = self.current.span;
        self.advance();
        let operand = self.nested(Self::unary)?.0;
        let text = self.lexer.slice(operand.span());
        let diagnostic = slips::increment(sign, text, start);
        Err(self.fail(diagnostic))
    }

    /// Parses `-3`. It does not count as nested, so that a constant can be used wherever its name can.
    fn negative(&mut self) -> Parse<Tree> {
        let start = self.current.span;
        self.advance();
        if self.current.kind == TokenKind::Number(MIN_MAGNITUDE) {
            self.advance();
            return Ok((self.make(ExprKind::Int(Value::MIN), self.since(start))?, 1));
        }
        let (number, height) = self.primary()?;
        let kind = ExprKind::Unary(UnaryOp::Neg, Box::new(number));
        Ok((self.make(kind, self.since(start))?, height + 1))
    }

    fn primary(&mut self) -> Parse<Tree> {
        let start = self.current.span;
        let kind = match self.current.kind {
            TokenKind::Number(value) => {
                let Ok(value) = Value::try_from(value) else {
                    let diagnostic =
                        Diagnostic::error("number-too-large", "this number does not fit into 64 bits")
                            .at(start, "")
                            .help(format!("the largest number is {}", Value::MAX));
                    return Err(self.fail(diagnostic));
                };
                self.advance();
                ExprKind::Int(value)
            }
            TokenKind::Word(word @ (Word::True | Word::False)) => {
                self.advance();
                ExprKind::Bool(word == Word::True)
            }
            TokenKind::Word(Word::Any) => {
                self.advance();
                let opened = self.expect(Sign::LeftParen)?;
                let (lo, hi) = self.finite_domain()?;
                self.close(Sign::RightParen, opened)?;
                ExprKind::Any { lo, hi }
            }
            TokenKind::Sign(Sign::LeftParen) => {
                self.advance();
                let (inner, height) = self.tree()?;
                self.close(Sign::RightParen, start)?;
                // The parentheses belong to the span of the expression, but not to its tree.
                return Ok((Expr { origin: Origin(self.since(start)), ..inner }, height));
            }
            TokenKind::Name(_) if self.at_quantifier() => return self.quantifier(),
            TokenKind::Name(symbol) => return self.named(symbol),
            TokenKind::Word(word) => match rmw(word) {
                Some(rmw) => return self.locked(rmw),
                None => {
                    let diagnostic = slips::word_in_expression(word, start);
                    let diagnostic = diagnostic.unwrap_or_else(|| self.unexpected("an expression"));
                    return Err(self.fail(diagnostic));
                }
            },
            _ => {
                let diagnostic = self.unexpected("an expression");
                return Err(self.fail(diagnostic));
            }
        };
        Ok((self.make(kind, self.since(start))?, 1))
    }

    /// Parses what starts with a name: a variable, an array element, a call, or an observation of a process.
    fn named(&mut self, symbol: Symbol) -> Parse<Tree> {
        let start = self.current.span;
        if let Some(variable) = self.constants.variable(symbol) {
            return self.part(variable);
        }
        let name = self.lexer.names.name(symbol, start);
        self.advance();
        match self.current.kind {
            TokenKind::Sign(Sign::LeftParen) => {
                let (mut args, height) = self.arguments()?;
                let span = self.since(start);
                if name.as_str() == "plain" && args.len() == 1 {
                    let place = self.place_of(args.remove(0), "cannot be accessed plainly")?;
                    let place = Place::new(place.kind, span).plainly();
                    return Ok((self.make(ExprKind::Read(place), span)?, height));
                }
                if self.at_observation() {
                    let values = args.iter().map(|arg| self.evaluate(arg)).collect::<Parse<_>>()?;
                    return self.observation(name, Select::Args(values), span);
                }
                if let [Expr { kind: ExprKind::Observe(Observation::At { process, label }), .. }] =
                    &mut args[..]
                    && name.as_str() == "count"
                {
                    if process.select != Select::Only {
                        let diagnostic =
                            Diagnostic::error("count-of-one", "`count` counts all instances of a template")
                                .at(process.origin.0, "")
                                .help(format!("write `count({}@{label})`", process.template));
                        return Err(self.fail(diagnostic));
                    }
                    let count =
                        Observation::Count { template: process.template.clone(), label: label.clone() };
                    return Ok((self.make(ExprKind::Observe(count), span)?, 1));
                }
                let height = self.height(height, start)?;
                Ok((self.make(ExprKind::Call(name, args), span)?, height))
            }
            TokenKind::Sign(Sign::LeftBracket) => {
                let opened = self.current.span;
                self.advance();
                let (index, height) = self.tree()?;
                self.close(Sign::RightBracket, opened)?;
                let span = self.since(start);
                if self.at_observation() {
                    let value = self.evaluate(&index)?;
                    let Ok(value) = u32::try_from(value) else {
                        let message = format!("{value} is not a valid instance number");
                        let diagnostic = Diagnostic::error("bad-count", message).at(index.span(), "");
                        return Err(self.fail(diagnostic));
                    };
                    return self.observation(name, Select::Index(value), span);
                }
                self.not_a_constant(symbol, start)?;
                if self.at(Sign::LeftBracket) {
                    let message = format!("`{name}` is not an array of arrays");
                    let help = "declare it before it is used: `shared m[2][3]: bool;`";
                    let diagnostic = Diagnostic::error("not-a-place", message).at(self.current.span, "");
                    return Err(self.fail(diagnostic.help(help)));
                }
                let height = self.height(height, start)?;
                let place = Place::new(PlaceKind::Element(name, Box::new(index)), span);
                Ok((self.make(ExprKind::Read(place), span)?, height))
            }
            TokenKind::Sign(Sign::At | Sign::Dot) => {
                let Some((_, template)) = self.instances.iter().find(|(known, _)| *known == symbol) else {
                    return self.observation(name, Select::Only, start);
                };
                let template = template.clone();
                let instance = self.constants.value(symbol, start).expect("it is bound to a number");
                let instance = u32::try_from(instance).expect("instances are counted from 0, and few");
                self.observation(template, Select::Index(instance), start)
            }
            _ => {
                if self.is_none(symbol) {
                    return Ok((literal(0, start), 2));
                }
                if let Some(value) = self.constants.value(symbol, start) {
                    self.grow(2)?;
                    return Ok((literal(value, start), 2));
                }
                self.check_in_loop(symbol, start)?;
                let place = Place::new(PlaceKind::Named(name), start);
                Ok((self.make(ExprKind::Read(place), start)?, 1))
            }
        }
    }

    fn at_observation(&self) -> bool {
        self.at(Sign::At) || self.at(Sign::Dot)
    }

    /// Parses the `@label` or `.register` after a process.
    fn observation(&mut self, template: Name, select: Select, span: Span) -> Parse<Tree> {
        let process = ProcessRef { template, select, origin: Origin(span) };
        let at_label = self.at(Sign::At);
        self.advance();
        let (_, name) = self.name(if at_label { "a label" } else { "a register" })?;
        let observation = if at_label {
            Observation::At { process, label: name }
        } else {
            self.loops.observed.push((process.template.clone(), name.clone()));
            Observation::Register { process, register: name }
        };
        Ok((self.make(ExprKind::Observe(observation), self.since(span))?, 1))
    }

    /// Parses `(place, operand, …)` of a locked instruction.
    fn locked(&mut self, rmw: Rmw) -> Parse<Tree> {
        let start = self.current.span;
        self.advance();
        if !self.at(Sign::LeftParen) {
            let diagnostic = self.unexpected(&format!("`(` after `{}`", rmw.name()));
            return Err(self.fail(diagnostic));
        }
        let (mut args, height) = self.arguments()?;
        let span = self.since(start);
        if args.len() != rmw.operands() + 1 {
            let (name, wanted) = (rmw.name(), rmw.operands() + 1);
            let operands = if rmw == Rmw::Cas { "expected, new" } else { "value" };
            let diagnostic = Diagnostic::error(
                "wrong-arity",
                format!("`{name}` takes {wanted} arguments, not {}", args.len()),
            );
            return Err(self.fail(diagnostic.at(span, "").help(format!("write `{name}(x, {operands})`"))));
        }
        let target = args.remove(0);
        if let ExprKind::AddressOf(_) = target.kind {
            let text = self.lexer.slice(target.span()).trim_start_matches(['&', ' ']);
            let diagnostic =
                Diagnostic::error("not-a-place", format!("`{}` takes the variable itself", rmw.name()))
                    .at(target.span(), "this is an address")
                    .help(format!("write `{}({text}, …)`; to use a pointer `p`, write `*p`", rmw.name()));
            return Err(self.fail(diagnostic));
        }
        let place = self.place_of(target, "cannot be written")?;
        let height = self.height(height, start)?;
        Ok((self.make(ExprKind::Locked(rmw, place, args), span)?, height))
    }

    /// Parses `(e, …)`. The height is that of the highest argument.
    pub fn arguments(&mut self) -> Parse<(Vec<Expr>, u32)> {
        let opened = self.expect(Sign::LeftParen)?;
        let mut args = Vec::new();
        let mut height = 0;
        while !self.at(Sign::RightParen) {
            let (arg, arg_height) = self.tree()?;
            args.push(arg);
            height = height.max(arg_height);
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(Sign::RightParen, opened)?;
        Ok((args, height))
    }

    /// The place that an expression reads. If it is not a place, reports the expression followed by
    /// `problem`.
    pub fn place_of(&mut self, expr: Expr, problem: &str) -> Parse<Place> {
        if let ExprKind::Read(place) = expr.kind {
            return Ok(place);
        }
        let text = super::lexer::shorten(self.lexer.slice(expr.span()));
        let diagnostic = Diagnostic::error("not-a-place", format!("`{text}` {problem}"))
            .at(expr.span(), "")
            .help("only variables, array elements `a[i]` and `*pointer` do");
        Err(self.fail(diagnostic))
    }

    /// Reports an error if the name is that of a constant.
    fn not_a_constant(&mut self, symbol: Symbol, span: Span) -> Parse<()> {
        if self.constants.value(symbol, span).is_none() {
            return Ok(());
        }
        let message = format!("`{}` is a constant, not an array", self.lexer.names.text(symbol));
        Err(self.fail(Diagnostic::error("not-a-place", message).at(span, "")))
    }

    pub fn make(&mut self, kind: ExprKind, span: Span) -> Parse<Expr> {
        self.grow(1)?;
        Ok(Expr::new(kind, span))
    }

    /// The height of a tree whose highest subtree has the given height.
    pub fn height(&mut self, below: u32, span: Span) -> Parse<u32> {
        if below < MAX_EXPR_DEPTH {
            return Ok(below + 1);
        }
        let message = format!("this expression is more than {MAX_EXPR_DEPTH} operators deep");
        let help = "compute parts of it into registers first";
        Err(self.fail(Diagnostic::error("too-deep", message).at(span, "").help(help)))
    }
}

/// The precedence of comparisons, which are not associative.
const COMPARISON: u8 = 2;

/// The magnitude of the smallest integer. It is an integer only after a minus sign.
const MIN_MAGNITUDE: u64 = 1 << 63;

/// The locked instruction of a keyword.
fn rmw(word: Word) -> Option<Rmw> {
    Rmw::ALL.into_iter().find(|(_, name)| *name == word.text()).map(|(rmw, _)| rmw)
}
