//! Private arrays: elements by a computed index.

use super::super::constants::literal;
use super::super::expressions::Tree;
use super::super::parser::{Parse, Parser};
use super::{Element, binary, named, private_name};
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind, Type,
};

impl Parser<'_> {
    /// An element of a private array.
    pub(super) fn private_part(
        &mut self,
        leaf: &str,
        lengths: &[u32],
        indices: Vec<Expr>,
        ty: Type,
        span: Span,
        height: u32,
    ) -> Parse<Tree> {
        let variable = |index: u32| Name::new(private_name(leaf, lengths, index), Span::NONE);
        for (index, length) in indices.iter().zip(lengths) {
            if !self.is_local(index) {
                let message = "the index of a private array must not access memory or call";
                let help =
                    format!("copy it to a register first: `let k: 0..{} = …;`", length.saturating_sub(1));
                return Err(
                    self.fail(Diagnostic::error("bad-index", message).at(index.span(), "").help(help))
                );
            }
        }
        let Some(index) = self.flat(indices, lengths)? else {
            let place = Place::new(PlaceKind::Named(variable(0)), span);
            return Ok((self.make(ExprKind::Read(place), span)?, 1));
        };
        let (lo, hi) = self.interval(&index).expect("the indices are in their ranges");
        let read = |name: Name| Expr::new(ExprKind::Read(Place::new(PlaceKind::Named(name), span)), span);
        let choices: Vec<(Value, Name)> =
            (lo..=hi).map(|value| (value as Value, variable(value as u32))).collect();
        if let [(_, only)] = &choices[..] {
            return Ok((self.make(read(only.clone()).kind, span)?, 1));
        }
        self.grow(choices.len().saturating_mul(6))?;
        let mut sum: Option<Expr> = None;
        for (value, name) in &choices {
            let chosen = binary(BinaryOp::Eq, index.clone(), literal(*value, Span::NONE), span);
            let term = binary(BinaryOp::Mul, chosen, read(name.clone()), span);
            sum = Some(match sum {
                None => term,
                Some(sum) => binary(BinaryOp::Add, sum, term, span),
            });
        }
        let height = self.height(height + choices.len() as u32 + 2, span)?;
        self.aggregates.element = Some(Element { span, index, choices, ty });
        Ok((sum.expect("there is at least one choice"), height))
    }

    /// The assignment to an element of a private array, if that is what the left side is. Parses from `=` on.
    pub fn assign_element(&mut self, left: &Expr) -> Parse<Option<(StmtKind, Span)>> {
        let Some(element) = self.aggregates.element.take_if(|element| element.span == left.span()) else {
            return Ok(None);
        };
        self.advance();
        let value = self.expr()?;
        self.semicolon()?;
        let span = self.since(element.span);
        self.grow(element.choices.len().saturating_mul(6))?;
        self.aggregates.temporaries += 1;
        let text = self.lexer.slice(element.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let temporary = Name::new(format!("{text} ({})", self.aggregates.temporaries), Span::NONE);
        let value_of = Expr::new(ExprKind::Read(named(temporary.clone())), Span::NONE);
        let assign = |name: &Name| {
            let kind = StmtKind::Assign { place: named(name.clone()), value: value_of.clone() };
            vec![Stmt::new(kind, Span::NONE)]
        };
        let (lo, hi) = (element.choices[0].0, element.choices[element.choices.len() - 1].0);
        let index_name = Name::new(format!("index of {text} ({})", self.aggregates.temporaries), Span::NONE);
        let index = Expr::new(ExprKind::Read(named(index_name.clone())), Span::NONE);
        // The value first, as in every assignment. The index is kept, because the element may be part of it.
        let kept = StmtKind::Let { name: temporary, ty: element.ty, init: Some(value) };
        let kept_index =
            StmtKind::Let { name: index_name, ty: Type::range(lo.min(0), hi), init: Some(element.index) };
        let mut block: Block = vec![Stmt::new(kept, span), Stmt::new(kept_index, Span::NONE)];
        for (choice, name) in &element.choices {
            let condition = binary(BinaryOp::Eq, index.clone(), literal(*choice, Span::NONE), Span::NONE);
            let kind = StmtKind::If { condition, then: assign(name), otherwise: Vec::new() };
            block.push(Stmt::new(kind, Span::NONE));
        }
        Ok(Some((StmtKind::Block(block), Span::NONE)))
    }

    /// Whether an expression only reads registers and private variables.
    fn is_local(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => true,
            ExprKind::Unary(_, a) => self.is_local(a),
            ExprKind::Binary(_, a, b) => self.is_local(a) && self.is_local(b),
            ExprKind::Read(Place { kind: PlaceKind::Named(name), .. }) => {
                self.aggregates.local.contains_key(&name.text)
                    || self.program.privates.iter().any(|private| private.name == *name)
            }
            _ => false,
        }
    }
}
