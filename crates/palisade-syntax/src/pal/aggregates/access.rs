//! Accesses to parts: `node[i].next`, `m[i][j]`.

use super::super::constants::literal;
use super::super::expressions::Tree;
use super::super::parser::{Parse, Parser};
use super::super::token::Sign;
use super::{Medium, Part, PartKind, Variable, binary, leaf_name};
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::written::{BinaryOp, Expr, ExprKind, Name, Place, PlaceKind};

impl Parser<'_> {
    /// Parses a part of a variable, from its name on.
    #[inline(never)]
    pub fn part(&mut self, variable: usize) -> Parse<Tree> {
        let start = self.current.span;
        let Variable { name, medium, part, bound } = &self.aggregates.variables[variable];
        let (medium, mut part, bound) = (*medium, part.clone(), *bound);
        let mut path = vec![(name.to_string(), Vec::new())];
        self.bound[bound].uses.push(start);
        self.advance();
        let mut indices: Vec<(Tree, u32)> = Vec::new();
        let ty = loop {
            for &length in &part.lengths {
                if !self.at(Sign::LeftBracket) {
                    let what = self.lexer.slice(self.since(start)).to_owned();
                    let help = format!("write `{what}[0]`, or another index");
                    let diagnostic = self.unexpected("`[`").help(help);
                    return Err(self.fail(diagnostic));
                }
                let opened = self.current.span;
                self.advance();
                let index = self.expr_tree()?;
                self.close(Sign::RightBracket, opened)?;
                indices.push((index, length));
            }
            path.last_mut().expect("the variable itself").1.clone_from(&part.lengths);
            match part.kind {
                PartKind::Cell(ty, _) => break ty,
                PartKind::Struct(index) => {
                    part = self.field(index, start)?;
                    path.push((self.lexer.slice(self.previous).trim_matches('`').to_owned(), Vec::new()));
                }
            }
        };
        let span = self.since(start);
        if self.at(Sign::LeftBracket) || self.at(Sign::Dot) {
            let what = self.lexer.slice(span).to_owned();
            let message = format!("`{what}` is a number and has no parts");
            return Err(self.fail(Diagnostic::error("not-a-place", message).at(self.current.span, "")));
        }
        let (leaf, lengths) = leaf_name(&path);
        let height = indices.iter().map(|((_, height), _)| *height).max().unwrap_or(0);
        let mut height = self.height(height, start)?;
        for _ in &indices {
            height = self.height(height + 1, start)?;
        }
        if medium == Medium::Private {
            for ((index, _), length) in &indices {
                self.check_index(index, *length)?;
            }
            let trees = indices.into_iter().map(|((index, _), _)| index).collect();
            return self.private_part(&leaf, &lengths, trees, ty, span, height);
        }
        let name = Name::new(leaf, Span::NONE);
        let is_placed = self.program.shared.iter().any(|shared| shared.name == name && shared.at.is_some());
        let mut trees: Vec<Expr> = Vec::new();
        for (dimension, ((index, _), length)) in indices.into_iter().enumerate() {
            if dimension == 0 || self.is_in_range(&index, length) {
                trees.push(index);
            } else if is_placed || is_constant(&index) {
                self.check_index(&index, length)?;
            } else {
                height = self.height(height + 3, start)?;
                trees.push(self.checked_index(&name, &lengths, index, length, span)?);
            }
        }
        let kind = match self.flat(trees, &lengths)? {
            None => PlaceKind::Named(name),
            Some(index) => PlaceKind::Element(name, Box::new(index)),
        };
        Ok((self.make(ExprKind::Read(Place::new(kind, span)), span)?, height))
    }

    /// Parses `.field` of a struct.
    fn field(&mut self, index: usize, start: Span) -> Parse<Part> {
        if !self.at(Sign::Dot) {
            let what = self.lexer.slice(self.since(start)).to_owned();
            let first = self.aggregates.structs[index].fields[0].name.clone();
            let diagnostic =
                self.unexpected("`.`").help(format!("`{what}` is a struct: write `{what}.{first}`"));
            return Err(self.fail(diagnostic));
        }
        self.advance();
        let (_, name) = self.name("the name of a field")?;
        let fields = &self.aggregates.structs[index].fields;
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known = fields.iter().map(|field| field.name.as_str());
            let help = match crate::suggest::nearest(name.as_str(), known.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its fields are {}", known.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no field `{name}`");
            return Err(self.fail(Diagnostic::error("unknown-name", message).at(name.span(), "").help(help)));
        };
        self.bound[field.bound].uses.push(name.span());
        Ok(field.part.clone())
    }

    /// The index of a cell, given the indices of the dimensions; `None` if there are none.
    pub(super) fn flat(&mut self, indices: Vec<Expr>, lengths: &[u32]) -> Parse<Option<Expr>> {
        let mut flat: Option<Expr> = None;
        for (index, &length) in indices.into_iter().zip(lengths) {
            flat = Some(match flat {
                None => index,
                Some(outer) => {
                    self.grow(4)?;
                    let span = outer.span().to(index.span());
                    let row = binary(BinaryOp::Mul, outer, Expr::int(length.into()), span);
                    binary(BinaryOp::Add, row, index, span)
                }
            });
        }
        let Some(flat) = flat else { return Ok(None) };
        // Properties take constants.
        Ok(Some(match (lengths.len(), self.interval(&flat)) {
            (2.., Some((lo, hi))) if lo == hi && is_constant(&flat) => {
                literal(Value::try_from(lo).unwrap_or(Value::MAX), flat.span())
            }
            _ => flat,
        }))
    }

    /// Whether an index is known to be in its range.
    fn is_in_range(&self, index: &Expr, length: u32) -> bool {
        self.interval(index).is_some_and(|(lo, hi)| 0 <= lo && hi < i128::from(length))
    }

    /// An inner index that faults if it is out of its range. With `n` cells in all, and `n / length` as the factor `f`, it is
    /// `(&a[index * f] - &a[0]) / f`: `a` has the cell `index * f` exactly if the index is from 0 to `length - 1`.
    fn checked_index(
        &mut self,
        array: &Name,
        lengths: &[u32],
        index: Expr,
        length: u32,
        span: Span,
    ) -> Parse<Expr> {
        self.grow(10)?;
        let total: u64 = lengths.iter().map(|&length| u64::from(length)).product();
        let factor = || Expr::int((total / u64::from(length.max(1))) as Value);
        let address = |index: Expr| {
            let place = Place::new(PlaceKind::Element(array.clone(), Box::new(index)), span);
            Expr::new(ExprKind::AddressOf(place), span)
        };
        let scaled = binary(BinaryOp::Mul, index, factor(), span);
        let distance = binary(BinaryOp::Sub, address(scaled), address(Expr::int(0)), span);
        Ok(binary(BinaryOp::Div, distance, factor(), span))
    }

    /// Reports an error unless an index is known to be in its range.
    fn check_index(&mut self, index: &Expr, length: u32) -> Parse<()> {
        if self.is_in_range(index, length) {
            return Ok(());
        }
        let last = i128::from(length) - 1;
        let found = self.interval(index);
        let text = self.lexer.slice(index.span()).to_owned();
        let message = match found {
            Some((lo, hi)) if lo > last || hi < 0 => format!("`{text}` is not an index from 0 to {last}"),
            Some((lo, hi)) => format!("`{text}` can be {lo} to {hi}, but the index is from 0 to {last}"),
            None => format!("it is not known whether `{text}` is an index from 0 to {last}"),
        };
        let is_register = match &index.kind {
            ExprKind::Read(Place { kind: PlaceKind::Named(name), .. }) => {
                self.program.shared.iter().all(|shared| shared.name != *name)
            }
            _ => false,
        };
        let words = || text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = ["k", "index"].into_iter().find(|name| words().all(|word| word != *name)).unwrap_or("at");
        let help = match found {
            None if is_register => {
                format!("declare it with a domain: `let {text}: 0..{last}`")
            }
            _ => format!("copy it to a register with that domain first: `let {name}: 0..{last} = {text};`"),
        };
        let diagnostic = Diagnostic::error("bad-index", message).at(index.span(), "");
        Err(self.fail(if is_constant(index) { diagnostic } else { diagnostic.help(help) }))
    }
}

/// Whether an expression consists of literals.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) => true,
        ExprKind::Unary(_, a) => is_constant(a),
        ExprKind::Binary(_, a, b) => is_constant(a) && is_constant(b),
        _ => false,
    }
}
