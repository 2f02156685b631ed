//! Variables with parts: structs, arrays of arrays, and private arrays.
//!
//! They are read as plain variables and arrays, so that nothing else has to know them:
//!
//! - `shared node[4]: Node;` is one array per field. `node[i].next` is the cell `i` of the array `` `node[].next` ``.
//! - `shared m[2][3];` is one array of six cells. `m[i][j]` is its cell `i * 3 + j`.
//! - `private a[3];` is three private variables. `a[i]` in an expression is the sum of `(i == k) * a[k]`, and
//!   `a[i] = e;` computes `e` and then assigns one of the three.
//!
//! *Why this is exact.* Each access stays one load or one store of one cell: the indices are evaluated once, from left to
//! right, except those of private arrays, which must not access memory or call. The first index of a shared array is
//! out of bounds exactly if the index of the cell is: the others are known to be in their ranges ([`Parser::interval`]),
//! or else the program is refused with the advice to copy the index to a register with a domain. That assignment
//! faults where the access would. So `i * 3 + j` is less than 0 or more than 5 exactly if `i` is out of bounds.
//!
//! The names of arrays say how their cells are shown: `[]` and `[3]` in a name stand for indices
//! (`palisade_program::element_name`).

use super::constants::{Use, literal};
use super::expressions::Tree;
use super::parser::{Parse, Parser};
use super::token::{Sign, Symbol, TokenKind};
use crate::bound::{Bound, BoundKind};
use palisade_base::{Diagnostic, Origin, Span};
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Init, InitValue, Name, Place, PlaceKind, Placement, Private, Rmw,
    Shared, Stmt, StmtKind, Type, UnaryOp,
};
use palisade_program::{Value, element_name};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most elements of a private array. Each is a variable.
const MAX_PRIVATE: u64 = 256;

/// The most dimensions of a variable, and the most parts of a name.
const MAX_DIMENSIONS: usize = 16;

/// What the parser knows about variables.
#[derive(Default)]
pub(super) struct Aggregates {
    structs: Vec<Struct>,
    variables: Vec<Variable>,
    /// The bounds of shared and private variables, by name.
    global: FxHashMap<Arc<str>, (Value, Value)>,
    /// The bounds of the parameters and registers of the body that is being parsed.
    local: FxHashMap<Arc<str>, (Value, Value)>,
    /// The last element of a private array that was read by a computed index.
    element: Option<Element>,
    temporaries: u32,
}

struct Struct {
    fields: Vec<Field>,
    /// Its entry in the list of names.
    bound: usize,
}

struct Field {
    name: Name,
    part: Part,
    bound: usize,
}

/// A variable or field: the lengths of its dimensions, and what an element is.
#[derive(Clone)]
struct Part {
    lengths: Vec<u32>,
    kind: PartKind,
}

#[derive(Clone)]
enum PartKind {
    /// A number, with the initial value that its struct gives it.
    Cell(Type, Option<InitValue>),
    Struct(usize),
}

struct Variable {
    name: Name,
    medium: Medium,
    part: Part,
    bound: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Shared,
    Private,
}

/// An element of a private array, by a computed index.
struct Element {
    span: Span,
    index: Expr,
    /// The possible values of the index, with the variables.
    choices: Vec<(Value, Name)>,
    ty: Type,
}

/// One variable or array of the program that a variable consists of.
struct Leaf {
    name: String,
    lengths: Vec<u32>,
    ty: Type,
    initial: Option<InitValue>,
}

/// A declared name with what follows it.
pub(super) struct Declared {
    pub symbol: Symbol,
    pub name: Name,
    pub lengths: Vec<u32>,
    pub at: Option<Placement>,
}

/// What a declaration says about all its names.
pub(super) struct Common {
    pub kind: ParsedKind,
    pub init: Option<Init>,
    pub origin: Origin,
}

/// A domain or a struct.
#[derive(Clone, Copy)]
pub(super) enum ParsedKind {
    Type(Type),
    Struct(usize),
}

impl Parser<'_> {
    /// Whether a struct is declared here. The word is not reserved.
    pub fn at_struct(&self) -> bool {
        matches!(self.next.kind, TokenKind::Name(_)) && self.at_name("struct")
    }

    /// `struct Node { value: 0..7, next: int = 0, slot[4]: bool }`
    pub fn struct_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        let (symbol, name) = self.name("the name of a struct")?;
        let opened = self.expect(Sign::LeftBrace)?;
        let mut fields: Vec<Field> = Vec::new();
        while !self.at(Sign::RightBrace) {
            self.grow(2)?;
            let (_, field) = self.name("the name of a field")?;
            if let Some(first) = fields.iter().find(|known| known.name == field) {
                let message = format!("the field `{field}` is declared twice");
                let first = first.name.span();
                self.report.push(
                    Diagnostic::error("duplicate-name", message)
                        .at(field.span(), "")
                        .at(first, "first declared here"),
                );
            }
            let lengths = self.lengths("number of elements")?;
            let kind = match self.eat(Sign::Colon) {
                true => self.type_or_struct()?,
                false => ParsedKind::Type(Type::INT),
            };
            let kind = match (kind, self.eat(Sign::Equal)) {
                (ParsedKind::Struct(inner), false) => PartKind::Struct(inner),
                (ParsedKind::Type(ty), false) => PartKind::Cell(ty, None),
                (ParsedKind::Type(ty), true) => PartKind::Cell(ty, Some(self.init_value()?)),
                (ParsedKind::Struct(_), true) => {
                    let message = "the initial values of a struct are those of its fields";
                    return Err(self.fail(Diagnostic::error("not-constant", message).at(self.previous, "")));
                }
            };
            let bound = self.note_name(BoundKind::Field, &field, self.since(field.span()));
            fields.push(Field { name: field, part: Part { lengths, kind }, bound });
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(Sign::RightBrace, opened)?;
        if fields.is_empty() {
            let message = format!("the struct `{name}` has no fields");
            let help = format!("write `struct {name} {{ value: 0..7, next: int }}`");
            return Err(self.fail(Diagnostic::error("empty-domain", message).at(name.span(), "").help(help)));
        }
        let index = self.aggregates.structs.len();
        self.declare_value(symbol, Use::Struct(index as u32, name.span()), name.span());
        let bound = self.note_name(BoundKind::Struct, &name, self.since(start));
        self.aggregates.structs.push(Struct { fields, bound });
        Ok(())
    }

    /// `[2][3]`, or nothing.
    pub fn lengths(&mut self, what: &str) -> Parse<Vec<u32>> {
        let mut lengths = Vec::new();
        while self.at(Sign::LeftBracket) {
            let opened = self.current.span;
            self.advance();
            let length = self.constant_count(what)?;
            self.close(Sign::RightBracket, opened)?;
            if lengths.len() == MAX_DIMENSIONS {
                let message = format!("more than {MAX_DIMENSIONS} dimensions");
                return Err(self.fail(Diagnostic::error("too-deep", message).at(opened, "")));
            }
            // An inner array without elements would make the number of cells meaningless.
            if length == 0 && (!lengths.is_empty() || self.at(Sign::LeftBracket)) {
                let message = "an array of arrays has elements";
                return Err(self.fail(Diagnostic::error("bad-count", message).at(self.since(opened), "")));
            }
            lengths.push(length);
        }
        Ok(lengths)
    }

    /// A domain, or the name of a struct.
    pub fn type_or_struct(&mut self) -> Parse<ParsedKind> {
        if let TokenKind::Name(symbol) = self.current.kind
            && let Some(index) = self.constants.structure(symbol)
        {
            let bound = self.aggregates.structs[index].bound;
            self.bound[bound].uses.push(self.current.span);
            self.advance();
            return Ok(ParsedKind::Struct(index));
        }
        Ok(ParsedKind::Type(self.ty()?))
    }

    /// Notes a name that is not in the program, for editors.
    fn note_name(&mut self, kind: BoundKind, name: &Name, whole: Span) -> usize {
        self.bound.push(Bound { kind, declared: name.span(), whole, uses: Vec::new() });
        self.bound.len() - 1
    }

    /// Notes the bounds of a shared or private variable.
    fn note_global(&mut self, name: &Name, ty: Type) {
        if let Some((lo, hi)) = ty.domain.bounds() {
            self.aggregates.global.insert(name.text.clone(), (lo.min(0), hi.max(0)));
        }
    }

    /// Notes the bounds of a register, which is 0 at first.
    pub fn note_register(&mut self, name: &Name, ty: Type) {
        if let Some((lo, hi)) = ty.domain.bounds() {
            self.aggregates.local.insert(name.text.clone(), (lo.min(0), hi.max(0)));
        }
    }

    /// Notes the bounds of a parameter or of the variable of a loop.
    pub fn note_bounds(&mut self, name: &Name, lo: Value, hi: Value) {
        self.aggregates.local.insert(name.text.clone(), (lo, hi.max(lo)));
    }

    /// Forgets the variable of a loop that is over.
    pub fn forget_bounds(&mut self, name: &Name) {
        self.aggregates.local.remove(&name.text);
    }

    /// At the start of a body.
    pub fn forget_registers(&mut self) {
        self.aggregates.local.clear();
    }

    /// Adds a shared variable.
    pub fn add_shared(&mut self, declared: Declared, common: &Common) -> Parse<()> {
        let Declared { symbol, name, lengths, at } = declared;
        if let (ParsedKind::Type(ty), 0 | 1) = (common.kind, lengths.len()) {
            self.declare(symbol, name.span());
            self.note_global(&name, ty);
            let init = common.init.clone().unwrap_or_else(zero);
            let len = lengths.first().copied();
            self.program.shared.push(Shared { name, len, ty, init, at, origin: common.origin });
            return Ok(());
        }
        let leaves = self.declare_parts(symbol, name.clone(), lengths, common, Medium::Shared)?;
        if let (Some(at), ParsedKind::Struct(_)) = (at, common.kind) {
            let message = format!("`{name}` consists of several variables, which are not at {}", at.address);
            return Err(self.fail(Diagnostic::error("bad-count", message).at(name.span(), "")));
        }
        if let (Some(Init::Each(_)), ParsedKind::Struct(_)) = (&common.init, common.kind) {
            let message = format!("`{name}` is not one array, so it has no list of initial values");
            let help = "give the fields initial values: `struct Node { value: 0..7 = 3 }`";
            return Err(self.fail(Diagnostic::error("bad-count", message).at(name.span(), "").help(help)));
        }
        for leaf in leaves {
            let own = leaf.initial.map_or_else(zero, Init::Every);
            let init = common.init.clone().unwrap_or(own);
            let len = match leaf.lengths.is_empty() {
                true => None,
                false => Some(self.total(&leaf.lengths, name.span())?),
            };
            let name = Name::new(leaf.name, Span::NONE);
            self.note_global(&name, leaf.ty);
            self.grow(2)?;
            self.program.shared.push(Shared { name, len, ty: leaf.ty, init, at, origin: common.origin });
        }
        Ok(())
    }

    /// Adds a private variable.
    pub fn add_private(&mut self, declared: Declared, common: &Common) -> Parse<()> {
        let Declared { symbol, name, lengths, .. } = declared;
        let origin = common.origin;
        if let (ParsedKind::Type(ty), true) = (common.kind, lengths.is_empty()) {
            self.declare(symbol, name.span());
            self.note_global(&name, ty);
            self.program.privates.push(Private { name, ty, origin });
            return Ok(());
        }
        for leaf in self.declare_parts(symbol, name.clone(), lengths, common, Medium::Private)? {
            let count = leaf.lengths.iter().map(|&length| u64::from(length)).product::<u64>();
            if count > MAX_PRIVATE {
                let message = format!("a private array has at most {MAX_PRIVATE} elements, not {count}");
                return Err(self.fail(Diagnostic::error("too-large", message).at(name.span(), "")));
            }
            if leaf.initial.is_some() {
                let message = "private variables start at 0";
                return Err(self.fail(Diagnostic::error("bad-count", message).at(name.span(), "")));
            }
            for index in 0..count as u32 {
                self.grow(2)?;
                let name = Name::new(private_name(&leaf.name, &leaf.lengths, index), Span::NONE);
                self.note_global(&name, leaf.ty);
                self.program.privates.push(Private { name, ty: leaf.ty, origin });
            }
        }
        Ok(())
    }

    fn declare_parts(
        &mut self,
        symbol: Symbol,
        name: Name,
        lengths: Vec<u32>,
        common: &Common,
        medium: Medium,
    ) -> Parse<Vec<Leaf>> {
        let kind = match common.kind {
            ParsedKind::Type(ty) => PartKind::Cell(ty, None),
            ParsedKind::Struct(index) => PartKind::Struct(index),
        };
        let part = Part { lengths, kind };
        let index = self.aggregates.variables.len() as u32;
        self.declare_value(symbol, Use::Variable(index, name.span()), name.span());
        let bound_kind = match medium {
            Medium::Shared => BoundKind::Shared,
            Medium::Private => BoundKind::Private,
        };
        let bound = self.note_name(bound_kind, &name, common.origin.0);
        let mut leaves = Vec::new();
        self.collect_leaves(&part, &mut vec![(name.to_string(), Vec::new())], &mut leaves, name.span())?;
        self.aggregates.variables.push(Variable { name, medium, part, bound });
        Ok(leaves)
    }

    /// The variables that a part consists of. Structs contain only those declared before them, so this ends.
    fn collect_leaves(
        &mut self,
        part: &Part,
        path: &mut Vec<(String, Vec<u32>)>,
        leaves: &mut Vec<Leaf>,
        span: Span,
    ) -> Parse<()> {
        self.grow(1)?;
        path.last_mut().expect("the variable itself").1.clone_from(&part.lengths);
        match &part.kind {
            PartKind::Cell(ty, initial) => {
                let (name, lengths) = leaf_name(path);
                leaves.push(Leaf { name, lengths, ty: *ty, initial: initial.clone() });
            }
            PartKind::Struct(index) => {
                if path.len() == MAX_DIMENSIONS {
                    let message = format!("structs nest at most {MAX_DIMENSIONS} levels deep");
                    return Err(self.fail(Diagnostic::error("too-deep", message).at(span, "")));
                }
                let fields: Vec<(String, Part)> = self.aggregates.structs[*index]
                    .fields
                    .iter()
                    .map(|field| (field.name.to_string(), field.part.clone()))
                    .collect();
                for (name, part) in fields {
                    path.push((name, Vec::new()));
                    self.collect_leaves(&part, path, leaves, span)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// The number of cells.
    fn total(&mut self, lengths: &[u32], span: Span) -> Parse<u32> {
        let total = lengths.iter().try_fold(1u32, |total, &length| total.checked_mul(length));
        total.ok_or_else(|| {
            self.fail(Diagnostic::error("too-large", "the variable has too many cells").at(span, ""))
        })
    }

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
        let inner = if medium == Medium::Private { 0 } else { 1 };
        for ((index, _), length) in indices.iter().skip(inner) {
            self.check_index(index, *length)?;
        }
        let mut height = self.height(height, start)?;
        for _ in &indices {
            height = self.height(height + 1, start)?;
        }
        let trees: Vec<Expr> = indices.into_iter().map(|((index, _), _)| index).collect();
        if medium == Medium::Private {
            return self.private_part(&leaf, &lengths, trees, ty, span, height);
        }
        let name = Name::new(leaf, Span::NONE);
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
    fn flat(&mut self, indices: Vec<Expr>, lengths: &[u32]) -> Parse<Option<Expr>> {
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

    /// Reports an error unless an index is known to be in its range.
    fn check_index(&mut self, index: &Expr, length: u32) -> Parse<()> {
        let last = i128::from(length) - 1;
        let found = self.interval(index);
        if found.is_some_and(|(lo, hi)| 0 <= lo && hi <= last) {
            return Ok(());
        }
        let text = self.lexer.slice(index.span()).to_owned();
        let message = match found {
            Some((lo, hi)) if lo > last || hi < 0 => format!("`{text}` is not an index from 0 to {last}"),
            Some((lo, hi)) => format!("`{text}` can be {lo} to {hi}, but the index is from 0 to {last}"),
            None => format!("it is not known whether `{text}` is an index from 0 to {last}"),
        };
        let help = format!("copy it to a register with that domain first: `let k: 0..{last} = {text};`");
        let diagnostic = Diagnostic::error("bad-index", message).at(index.span(), "");
        Err(self.fail(if is_constant(index) { diagnostic } else { diagnostic.help(help) }))
    }

    /// An element of a private array.
    fn private_part(
        &mut self,
        leaf: &str,
        lengths: &[u32],
        indices: Vec<Expr>,
        ty: Type,
        span: Span,
        height: u32,
    ) -> Parse<Tree> {
        let variable = |index: u32| Name::new(private_name(leaf, lengths, index), Span::NONE);
        for index in &indices {
            if !self.is_local(index) {
                let message = "the index of a private array must not access memory or call";
                let help = "copy it to a register first: `let k = …;`";
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

    /// Numbers between which the value of an expression is, if they are known: from the domains of the variables in
    /// it. Whatever is stored, assigned or passed was checked against its domain, wrapped or blocked.
    fn interval(&self, expr: &Expr) -> Option<(i128, i128)> {
        let boolean = Some((0, 1));
        let bounds = |(lo, hi): (Value, Value)| (i128::from(lo), i128::from(hi));
        let fits = |(lo, hi): (i128, i128)| {
            let is_value = |number: i128| Value::try_from(number).is_ok();
            (is_value(lo) && is_value(hi)).then_some((lo, hi))
        };
        match &expr.kind {
            ExprKind::Int(value) => Some(bounds((*value, *value))),
            ExprKind::Bool(value) => Some(bounds(((*value).into(), (*value).into()))),
            ExprKind::Any { lo, hi } => Some(bounds((*lo, *hi))),
            ExprKind::Read(place) | ExprKind::Locked(_, place, _) => {
                if let ExprKind::Locked(Rmw::Cas, ..) = expr.kind {
                    return boolean;
                }
                let (PlaceKind::Named(name) | PlaceKind::Element(name, _)) = &place.kind else { return None };
                let known = self.aggregates.local.get(&name.text);
                known.or_else(|| self.aggregates.global.get(&name.text)).map(|&known| bounds(known))
            }
            ExprKind::Unary(UnaryOp::Not, _) => boolean,
            ExprKind::Unary(UnaryOp::Neg, a) => self.interval(a).and_then(|(lo, hi)| fits((-hi, -lo))),
            ExprKind::Binary(op, a, b) => {
                if let BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge = op
                {
                    return boolean;
                }
                if let BinaryOp::And | BinaryOp::Or | BinaryOp::WordLt | BinaryOp::WordLe = op {
                    return boolean;
                }
                let (b_lo, b_hi) = self.interval(b)?;
                // `e % 3` is known even if `e` is not.
                let (a_lo, a_hi) = match (op, self.interval(a)) {
                    (_, Some(known)) => known,
                    (BinaryOp::Rem, None) => (i128::from(Value::MIN), i128::from(Value::MAX)),
                    (_, None) => return None,
                };
                match op {
                    BinaryOp::Add => fits((a_lo + b_lo, a_hi + b_hi)),
                    BinaryOp::Sub => fits((a_lo - b_hi, a_hi - b_lo)),
                    BinaryOp::Mul => {
                        let ends = [a_lo * b_lo, a_lo * b_hi, a_hi * b_lo, a_hi * b_hi];
                        let least = ends.into_iter().min().expect("there are four");
                        fits((least, ends.into_iter().max().expect("there are four")))
                    }
                    BinaryOp::Rem if b_lo > 0 => {
                        let most = b_hi - 1;
                        Some((
                            if a_lo < 0 { a_lo.max(-most) } else { 0 },
                            if a_hi > 0 { a_hi.min(most) } else { 0 },
                        ))
                    }
                    BinaryOp::Div if b_lo > 0 => Some((a_lo.min(0), a_hi.max(0))),
                    BinaryOp::BitAnd if a_lo >= 0 && b_lo >= 0 => Some((0, a_hi.min(b_hi))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn zero() -> Init {
    Init::Every(InitValue::Const(Expr::int(0)))
}

fn named(name: Name) -> Place {
    Place::new(PlaceKind::Named(name), Span::NONE)
}

fn binary(op: BinaryOp, a: Expr, b: Expr, span: Span) -> Expr {
    Expr::new(ExprKind::Binary(op, Box::new(a), Box::new(b)), span)
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

/// The name of the array for a path such as `node[4].next`, and its lengths: `node[].next`. With one dimension at its
/// end, it is the name of a plain array.
fn leaf_name(path: &[(String, Vec<u32>)]) -> (String, Vec<u32>) {
    let lengths: Vec<u32> = path.iter().flat_map(|(_, lengths)| lengths.iter().copied()).collect();
    let is_plain = lengths.len() == path.last().map_or(0, |(_, lengths)| lengths.len()) && lengths.len() <= 1;
    let mut name = String::new();
    let mut first = true;
    for (index, (part, lengths)) in path.iter().enumerate() {
        name += if index > 0 { "." } else { "" };
        name += part;
        for length in lengths.iter().filter(|_| !is_plain) {
            name += &if std::mem::take(&mut first) { "[]".to_owned() } else { format!("[{length}]") };
        }
    }
    (name, lengths)
}

/// The name of a private variable that is an element.
fn private_name(leaf: &str, lengths: &[u32], index: u32) -> String {
    if lengths.is_empty() { leaf.to_owned() } else { element_name(leaf, index) }
}
