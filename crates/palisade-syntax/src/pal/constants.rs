//! Named constants, and the values of constant expressions.
//!
//! A constant is replaced by its value as soon as its name is read, so it must be declared before it is used.

use super::parser::{Failed, Parse, Parser};
use super::token::Symbol;
use crate::suggest;
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::running::{Fault, binary, unary};
use palisade_program::written::{BinaryOp, Domain, Expr, ExprKind, PlaceKind, UnaryOp};

/// What names mean, as far as the parser needs to know.
#[derive(Default)]
pub(super) struct Constants {
    /// The use of each name, by symbol.
    uses: Vec<Use>,
    /// The symbols of all constants, for suggestions.
    declared: Vec<Symbol>,
    /// Where the variables of quantifiers are used.
    bound_uses: Vec<(Symbol, Span)>,
    /// The variables of quantifiers around the current place.
    bound: Vec<Symbol>,
    /// Values given from outside, and whether there is a constant for each.
    given: Vec<(String, Value, bool)>,
}

/// What a name means.
#[derive(Clone, Copy, Default)]
pub(super) enum Use {
    /// Not seen yet.
    #[default]
    Free,
    /// First used here, as the name of something that is not a constant.
    Other(Span),
    /// A constant, declared here.
    Constant(Value, Span),
    /// An enumeration, declared here.
    Enumeration(Domain, Span),
    /// The struct with this number, declared here.
    Struct(u32, Span),
    /// The variable with parts with this number, declared here.
    Variable(u32, Span),
}

impl Use {
    fn describe(self) -> &'static str {
        match self {
            Use::Enumeration(..) => "the enumeration",
            Use::Struct(..) => "the struct",
            Use::Variable(..) => "the variable",
            Use::Free | Use::Other(_) | Use::Constant(..) => "the constant",
        }
    }
}

impl Constants {
    /// The domain if the name is that of an enumeration.
    pub fn enumeration(&mut self, symbol: Symbol) -> Option<Domain> {
        match *self.of(symbol) {
            Use::Enumeration(domain, _) => Some(domain),
            _ => None,
        }
    }

    /// The number of the struct if the name is that of one.
    pub fn structure(&mut self, symbol: Symbol) -> Option<usize> {
        match *self.of(symbol) {
            Use::Struct(index, _) => Some(index as usize),
            _ => None,
        }
    }

    /// The number of the variable if the name is that of one with parts.
    pub fn variable(&mut self, symbol: Symbol) -> Option<usize> {
        match *self.of(symbol) {
            Use::Variable(index, _) => Some(index as usize),
            _ => None,
        }
    }

    /// Whether the name means nothing to the parser so far.
    pub fn is_undeclared(&mut self, symbol: Symbol) -> bool {
        matches!(self.of(symbol), Use::Free)
    }

    fn of(&mut self, symbol: Symbol) -> &mut Use {
        let index = symbol.0 as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, Use::Free);
        }
        &mut self.uses[index]
    }

    /// Sets the values that constants have instead of those in the text.
    pub fn give(&mut self, given: &[(String, Value)]) {
        self.given = given.iter().map(|(name, value)| (name.clone(), *value, false)).collect();
    }

    /// The value if the name is a constant. Otherwise the name can no longer become one.
    pub fn value(&mut self, symbol: Symbol, span: Span) -> Option<Value> {
        if self.bound.contains(&symbol) {
            self.bound_uses.push((symbol, span));
        }
        let seen = self.of(symbol);
        match *seen {
            Use::Constant(value, _) => Some(value),
            Use::Other(_) | Use::Enumeration(..) | Use::Struct(..) | Use::Variable(..) => None,
            Use::Free => {
                *seen = Use::Other(span);
                None
            }
        }
    }
}

impl Constants {
    /// Whether the name is a constant, or the variable of a quantifier around this place.
    pub fn is_constant(&mut self, symbol: Symbol) -> bool {
        matches!(self.of(symbol), Use::Constant(..))
    }

    /// Makes a name the variable of a quantifier. Returns what it means elsewhere.
    pub fn bind(&mut self, symbol: Symbol, value: Value, span: Span) -> Use {
        self.bound.push(symbol);
        std::mem::replace(self.of(symbol), Use::Constant(value, span))
    }

    /// Gives the variable of a quantifier its next value.
    pub fn set(&mut self, symbol: Symbol, value: Value) {
        if let Use::Constant(current, _) = self.of(symbol) {
            *current = value;
        }
    }

    /// Whether the name is the variable of a quantifier around this place.
    pub fn is_bound(&self, symbol: Symbol) -> bool {
        self.bound.contains(&symbol)
    }

    /// Ends the scope of the variable of a quantifier, which began here. Returns where it was used.
    pub fn unbind(&mut self, symbol: Symbol, previous: Use, scope: u32) -> Vec<Span> {
        self.bound.pop();
        *self.of(symbol) = previous;
        let is_own = |&(used, span): &(Symbol, Span)| used == symbol && span.start >= scope;
        let (own, others) = std::mem::take(&mut self.bound_uses).into_iter().partition(is_own);
        self.bound_uses = others;
        let own: Vec<(Symbol, Span)> = own;
        let mut uses: Vec<Span> = own.into_iter().map(|(_, span)| span).collect();
        uses.sort_unstable();
        uses.dedup();
        uses
    }
}

impl Parser<'_> {
    /// Declares a constant. A value that was given from outside replaces the one in the text.
    pub fn declare_constant(&mut self, symbol: Symbol, value: Value, span: Span) {
        let name = self.lexer.names.text(symbol);
        let given = self.constants.given.iter_mut().find(|(given, ..)| given == name);
        let value = given.map_or(value, |(_, value, used)| {
            *used = true;
            *value
        });
        if self.declare_value(symbol, Use::Constant(value, span), span) {
            self.constants.declared.push(symbol);
        }
    }

    /// Declares a constant, an enumeration or one of its values. Whether that is possible.
    pub fn declare_value(&mut self, symbol: Symbol, meaning: Use, span: Span) -> bool {
        let name = self.lexer.names.text(symbol);
        let diagnostic = match *self.constants.of(symbol) {
            Use::Free => {
                *self.constants.of(symbol) = meaning;
                return true;
            }
            Use::Constant(_, first)
            | Use::Enumeration(_, first)
            | Use::Struct(_, first)
            | Use::Variable(_, first) => {
                Diagnostic::error("duplicate-name", format!("`{name}` is declared twice"))
                    .at(span, "")
                    .at(first, "first declared here")
            }
            Use::Other(first) => Diagnostic::error(
                "late-constant",
                format!("{} `{name}` is used before it is declared", meaning.describe()),
            )
            .at(span, "declared here")
            .at(first, "used here")
            .help("declare it before its first use, and do not use its name for anything else"),
        };
        self.report.push(diagnostic);
        false
    }

    /// Reports values that were given for constants that the program does not have.
    pub fn check_given_constants(&mut self) {
        let names = &self.lexer.names;
        let known = || self.constants.declared.iter().map(|&symbol| names.text(symbol));
        let missing = self.constants.given.iter().filter(|(_, _, used)| !used);
        let missing: Vec<Diagnostic> = missing
            .map(|(name, value, _)| {
                let message = format!("`-D {name}={value}`: the program has no constant `{name}`");
                let help = match suggest::nearest(name, known()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known().next().is_none() => {
                        format!("declare it with the value that it has without -D: `const {name} = {value};`")
                    }
                    None => format!("its constants are {}", known().collect::<Vec<_>>().join(", ")),
                };
                Diagnostic::error("unknown-constant", message).help(help)
            })
            .collect();
        missing.into_iter().for_each(|diagnostic| self.report.push(diagnostic));
    }

    /// Declares a name that is not a constant.
    pub fn declare(&mut self, symbol: Symbol, span: Span) {
        let seen = self.constants.of(symbol);
        match *seen {
            Use::Free => *seen = Use::Other(span),
            Use::Other(_) => {}
            Use::Constant(_, first)
            | Use::Enumeration(_, first)
            | Use::Struct(_, first)
            | Use::Variable(_, first) => {
                let what = seen.describe().trim_start_matches("the ");
                let article = if what.starts_with('e') { "an" } else { "a" };
                let name = self.lexer.names.text(symbol);
                let message = format!("`{name}` is already the name of {article} {what}");
                self.report.push(
                    Diagnostic::error("duplicate-name", message)
                        .at(span, "")
                        .at(first, format!("the {what} is declared here")),
                );
            }
        }
    }

    /// Parses an expression and evaluates it.
    pub fn constant(&mut self) -> Parse<Value> {
        let expr = self.expr()?;
        self.evaluate(&expr)
    }

    /// Parses a constant that is a count.
    pub fn constant_count(&mut self, what: &str) -> Parse<u32> {
        let start = self.current.span;
        let value = self.constant()?;
        u32::try_from(value).map_err(|_| {
            let message = format!("{value} is not a valid {what}");
            let span = self.since(start);
            self.fail(Diagnostic::error("bad-count", message).at(span, ""))
        })
    }

    /// The value of an expression of literals and operators.
    pub fn evaluate(&mut self, expr: &Expr) -> Parse<Value> {
        let (span, problem) = match evaluate(expr) {
            Ok(value) => return Ok(value),
            Err(refusal) => refusal,
        };
        let diagnostic = match problem {
            Problem::Fault(fault) => Diagnostic::error("constant-fault", fault.to_string()).at(span, ""),
            // It may be declared in a file that could not be imported, which is reported.
            Problem::NotConstant if self.imports.failed => return Err(Failed),
            Problem::NotConstant => {
                let text = self.lexer.slice(span);
                let diagnostic =
                    Diagnostic::error("not-constant", "the value must be known before the program runs")
                        .at(span, "this is not a constant");
                let names = &self.lexer.names;
                let known = self.constants.declared.iter().map(|&symbol| names.text(symbol));
                match suggest::nearest(text, known) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("use numbers and names declared with `const`"),
                }
            }
        };
        Err(self.fail(diagnostic))
    }
}

enum Problem {
    NotConstant,
    Fault(Fault),
}

fn evaluate(expr: &Expr) -> Result<Value, (Span, Problem)> {
    let fault = |fault| (expr.span(), Problem::Fault(fault));
    match &expr.kind {
        ExprKind::Int(value) => Ok(*value),
        ExprKind::Bool(value) => Ok((*value).into()),
        ExprKind::Unary(op, a) => unary(*op, evaluate(a)?).map_err(fault),
        ExprKind::Binary(BinaryOp::And, a, b) => Ok((evaluate(a)? != 0 && evaluate(b)? != 0).into()),
        ExprKind::Binary(BinaryOp::Or, a, b) => Ok((evaluate(a)? != 0 || evaluate(b)? != 0).into()),
        ExprKind::Binary(op, a, b) => binary(*op, evaluate(a)?, evaluate(b)?).map_err(fault),
        ExprKind::Read(place) => match &place.kind {
            PlaceKind::Named(name) => Err((name.span(), Problem::NotConstant)),
            _ => Err((expr.span(), Problem::NotConstant)),
        },
        _ => Err((expr.span(), Problem::NotConstant)),
    }
}

/// The expression for a value. Negative values are negated literals.
pub(super) fn literal(value: Value, span: Span) -> Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => {
            let operand = Expr::new(ExprKind::Int(positive), span);
            Expr::new(ExprKind::Unary(UnaryOp::Neg, Box::new(operand)), span)
        }
        _ => Expr::new(ExprKind::Int(value), span),
    }
}
