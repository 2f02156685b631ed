//! Processes with identities: `process P(me: id)[*]`.
//!
//! A program with identities stands for one program per number of processes. The written form contains the one
//! with [`Identities::number`] processes, in ordinary statements:
//! - An identity is a number from 1, and `none` is 0. `id or none` is an enumeration of these numbers.
//! - The parameter `me` is a range from 1, so that there is one process per identity.
//! - `flag[id]` is an array with a cell for each of these numbers. The cell of `none` belongs to no process.
//! - `for other in others { … }` is `{ let other = 0; while other < N { other = other + 1; if other != me { … } } }`.
//!
//! [`Program::with_identities`] gives the program with another number. Everything that depends on the number
//! can be found: types that are the enumeration, the arrays, the parameter, and the bounds of these loops. No
//! other comparison of registers has this shape, because no number of the program is the number of processes.

use super::{
    BinaryOp, Block, Domain, Expr, ExprKind, Name, Place, PlaceKind, Program, Stmt, StmtKind, Template, Type,
};
use super::{Count, Enum, Origin};
use crate::Value;
use palisade_base::Span;
use std::sync::Arc;

/// What a program with identities consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identities {
    /// The index of the enumeration of `none` and all identities.
    pub which: u32,
    /// The number of processes with identities in this form of the program.
    pub number: u32,
    /// The process that has them.
    pub process: Arc<str>,
    /// The arrays with one cell per identity.
    pub arrays: Vec<Arc<str>>,
}

/// The number of processes in the written form of a program whose number is open.
pub const WRITTEN_NUMBER: u32 = 2;

/// The loop over all others, in parts.
pub struct OthersLoop<'p> {
    /// The variable.
    pub variable: &'p Name,
    /// The identity of the process itself.
    pub me: &'p Name,
    /// The body.
    pub body: &'p Block,
}

fn read(name: &Name) -> Expr {
    let name = Name::generated(name.text.clone());
    Expr::new(ExprKind::Read(Place::new(PlaceKind::Named(name), Span::NONE)), Span::NONE)
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::new(ExprKind::Binary(op, Box::new(a), Box::new(b)), Span::NONE)
}

fn named(e: &Expr) -> Option<&Name> {
    match &e.kind {
        ExprKind::Read(Place { kind: PlaceKind::Named(name), .. }) => Some(name),
        _ => None,
    }
}

/// `for other in others { … }` as a statement. Only the first loop of a body with this variable declares it.
pub fn others_loop(
    variable: &Name,
    me: &Name,
    domain: Domain,
    number: u32,
    declare: bool,
    body: Block,
) -> StmtKind {
    let generated = |kind| Stmt::new(kind, Span::NONE);
    let place = Place::new(PlaceKind::Named(Name::generated(variable.text.clone())), Span::NONE);
    let next = binary(BinaryOp::Add, read(variable), Expr::int(1));
    let inside = vec![
        generated(StmtKind::Assign { place: place.clone(), value: next }),
        generated(StmtKind::If {
            condition: binary(BinaryOp::Ne, read(variable), read(me)),
            then: body,
            otherwise: Vec::new(),
        }),
    ];
    let condition = binary(BinaryOp::Lt, read(variable), Expr::int(number.into()));
    let ty = Type { domain, ..Type::INT };
    let first = match declare {
        true => StmtKind::Let { name: variable.clone(), ty, init: Some(Expr::int(0)) },
        false => StmtKind::Assign { place, value: Expr::int(0) },
    };
    StmtKind::Block(vec![generated(first), generated(StmtKind::While { condition, body: inside })])
}

impl Identities {
    /// The type of a cell or register that holds an identity or none.
    pub fn domain(&self) -> Domain {
        Domain::Enum { which: self.which, last: self.number.into() }
    }

    /// Whether this is the domain of identities.
    pub fn is_identity(&self, domain: Domain) -> bool {
        matches!(domain, Domain::Enum { which, .. } if which == self.which)
    }

    /// Whether an expression is any identity or none: `*`. The numbers `any(0..2)` that the user wrote have a place
    /// in the source.
    pub fn is_any(&self, e: &Expr) -> bool {
        e.kind == ExprKind::Any { lo: 0, hi: self.number.into() } && e.span() == Span::NONE
    }

    /// The loop over all others that a statement is.
    pub fn loop_of<'p>(&self, kind: &'p StmtKind) -> Option<OthersLoop<'p>> {
        let StmtKind::Block(block) = kind else { return None };
        let [_, Stmt { kind: StmtKind::While { condition, body }, .. }] = &block[..] else { return None };
        let ExprKind::Binary(BinaryOp::Lt, variable, bound) = &condition.kind else { return None };
        let [
            Stmt { kind: StmtKind::Assign { .. }, .. },
            Stmt { kind: StmtKind::If { condition, then, .. }, .. },
        ] = &body[..]
        else {
            return None;
        };
        let ExprKind::Binary(BinaryOp::Ne, _, me) = &condition.kind else { return None };
        // A loop that the user wrote has places in the source.
        if block.iter().chain(body).any(|stmt| stmt.origin.0 != Span::NONE) {
            return None;
        }
        let (variable, me) = (named(variable)?, named(me)?);
        let found = OthersLoop { variable, me, body: then };
        // The rest, where equality does not look at places in the source.
        let declare = matches!(block[0].kind, StmtKind::Let { .. });
        let (domain, number) = (self.domain(), self.number);
        let same = bound.kind == ExprKind::Int(number.into())
            && *kind == others_loop(variable, me, domain, number, declare, then.clone());
        same.then_some(found)
    }
}

/// The enumeration of `none` and this many identities.
pub fn identity_enum(number: u32, process: &str) -> Enum {
    let names = (1..=number).map(|identity| Name::generated(format!("{process}({identity})")));
    Enum {
        name: Name::generated("id"),
        values: std::iter::once(Name::generated("none")).chain(names).collect(),
        origin: Origin(Span::NONE),
    }
}

impl Program {
    /// Whether the number of processes with identities is open.
    pub fn has_open_identities(&self) -> bool {
        let of = |identities: &Identities| {
            let template = self.templates.iter().find(|t| t.name.as_str() == &*identities.process);
            template.is_some_and(|template| template.count == Count::Any)
        };
        self.identities.as_ref().is_some_and(of)
    }

    /// Whether [`Program::with_identities`] gives another program for this number of processes.
    pub fn has_other_identities(&self, number: u32) -> bool {
        self.has_open_identities() || self.identities.as_ref().is_some_and(|old| old.number != number)
    }

    /// The program with this number of processes with identities. Its statements, types and processes are
    /// ordinary ones. A program without identities stays as it is.
    pub fn with_identities(&self, number: u32) -> Program {
        let Some(old) = &self.identities else { return self.clone() };
        let mut program = self.clone();
        program.identities = Some(Identities { number, ..old.clone() });
        program.enums[old.which as usize] = identity_enum(number, &old.process);
        let renumber = |ty: &mut Type| {
            if old.is_identity(ty.domain) {
                ty.domain = Domain::Enum { which: old.which, last: number.into() };
            }
        };
        for shared in &mut program.shared {
            renumber(&mut shared.ty);
            if old.arrays.contains(&shared.name.text) {
                shared.len = Some(number + 1);
            }
        }
        program.privates.iter_mut().for_each(|private| renumber(&mut private.ty));
        for procedure in &mut program.procedures {
            procedure.params.iter_mut().for_each(|param| renumber(&mut param.ty));
            procedure.result.iter_mut().for_each(renumber);
            old.renumber(&mut procedure.body, number, &renumber);
        }
        for template in &mut program.templates {
            template.params.iter_mut().for_each(|param| renumber(&mut param.ty));
            if template.name.as_str() == &*old.process {
                one_per_identity(template, number);
            }
            old.renumber(&mut template.body, number, &renumber);
        }
        program
    }
}

fn one_per_identity(template: &mut Template, number: u32) {
    template.count = Count::Fixed(1);
    if let [param] = &mut template.params[..] {
        param.ty = Type::range(1, Value::from(number));
    }
}

impl Identities {
    /// The parsers limit how deep blocks nest.
    fn renumber(&self, block: &mut Block, number: u32, ty: &dyn Fn(&mut Type)) {
        for stmt in block {
            if let Some(OthersLoop { variable, me, body }) = self.loop_of(&stmt.kind) {
                let declare = matches!(&stmt.kind, StmtKind::Block(block) if matches!(block[0].kind, StmtKind::Let { .. }));
                let domain = Domain::Enum { which: self.which, last: number.into() };
                let mut body = body.clone();
                self.renumber(&mut body, number, ty);
                stmt.kind = others_loop(variable, me, domain, number, declare, body);
                continue;
            }
            if let StmtKind::Let { ty: of, init, .. } = &mut stmt.kind
                && self.is_identity(of.domain)
            {
                ty(of);
                if let Some(init) = init
                    && self.is_any(init)
                {
                    init.kind = ExprKind::Any { lo: 0, hi: number.into() };
                }
            }
            stmt.kind.blocks_mut().into_iter().for_each(|inner| self.renumber(inner, number, ty));
        }
    }
}
