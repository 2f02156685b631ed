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
//! or are checked when they are evaluated ([`Parser::checked_index`]). So `i * 3 + j` is less than 0 or more than 5 exactly if
//! `i` is out of bounds. Indices of private arrays, and of arrays at chosen addresses, must be known to be in range, or else the
//! program is refused with the advice to copy the index to a register with a domain. That assignment faults where the
//! access would.
//!
//! The names of arrays say how their cells are shown: `[]` and `[3]` in a name stand for indices
//! (`palisade_program::element_name`).

mod access;
mod bounds;
mod private;

use super::constants::Use;
use super::parser::{Parse, Parser};
use super::token::{Sign, Symbol, TokenKind};
use crate::bound::{Bound, BoundKind};
use palisade_base::{Diagnostic, Origin, Span};
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Init, InitValue, Name, Place, PlaceKind, Placement, Private, Shared, Type,
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
            if !self.eat_separator("fields") {
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

    /// Adds a shared variable.
    pub fn add_shared(&mut self, declared: Declared, common: &Common) -> Parse<()> {
        let Declared { symbol, name, lengths, at } = declared;
        self.check_identity_array(&name, common)?;
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
