//! Writes the code of a thread as a process.
//!
//! Blocks with one way in are nested in the branch that leads to them; the others get labels. A loop that only
//! waits becomes an `await`, which engines recognise.

mod steps;

use crate::expr::{Expr, width_bounds};
use crate::flat::{Access, BlockId, Code, End, RegId, StepKind, Written};
use crate::layout::{Cell, Layout};
use crate::liveness::Liveness;
use crate::statements::{drop_labels, mentioned, strip, targets};
use crate::threads::ThreadCode;
use crate::{Aim, UNINITIALISED};
use palisade_base::{Origin, Span};
use palisade_program::written::{
    self, BinaryOp, Count, ExprKind, Name, Place, PlaceKind, Rmw, Start, Stmt, StmtKind, Template, Type,
    UnaryOp,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// How deep branches are nested before labels are used.
const MAX_DEPTH: usize = 12;

/// The label at which a thread stays that has ended the program. It is not the name of a C variable.
pub(crate) const OVER: &str = "program.over";

/// What all processes have in common.
#[derive(Clone, Copy)]
pub(crate) struct Emitted<'a> {
    pub(crate) layout: &'a Layout,
    /// Whether memory is freed.
    pub(crate) frees: bool,
    /// How many threads may wait for conditions.
    pub(crate) waiting: usize,
    /// Whether data races are looked for, so that plain accesses are marked.
    pub(crate) races: bool,
    pub(crate) aim: Aim,
}

impl Emitted<'_> {
    /// The process of a thread.
    pub(crate) fn process(&self, thread: &ThreadCode) -> Template {
        Template {
            name: Name::generated(thread.name.as_str()),
            params: Vec::new(),
            count: Count::Fixed(1),
            start: Start::Initially,
            body: Emitter::new(&thread.code, *self).body(),
            origin: Origin::NONE,
        }
    }
}

struct Emitter<'a> {
    code: &'a Code,
    layout: &'a Layout,
    liveness: Liveness,
    frees: bool,
    waiting: usize,
    races: bool,
    aim: Aim,
    /// Whether the thread can end the program.
    ends_program: bool,
    /// Registers that may hold what was never written.
    wide: FxHashSet<RegId>,
    /// Registers that hold nothing but what was loaded to be copied.
    copied: FxHashSet<RegId>,
    names: Vec<Option<Name>>,
    taken: FxHashSet<String>,
    emitted: Vec<bool>,
    predecessors: Vec<u32>,
    labels: FxHashMap<BlockId, Name>,
    read: FxHashSet<RegId>,
}

/// The type of values of a width.
pub(crate) fn width_type(width: u32) -> Type {
    let (lo, hi) = width_bounds(width);
    if width == 1 { Type::BOOL } else { Type::wrapping(lo, hi) }
}

pub(crate) fn int(value: i64) -> written::Expr {
    if value < 0 && value != i64::MIN {
        let positive = written::Expr::int(-value);
        return written::Expr::new(ExprKind::Unary(UnaryOp::Neg, Box::new(positive)), Span::NONE);
    }
    written::Expr::int(value)
}

fn binary(op: BinaryOp, a: written::Expr, b: written::Expr) -> written::Expr {
    written::Expr::new(ExprKind::Binary(op, Box::new(a), Box::new(b)), Span::NONE)
}

fn read(place: Place) -> written::Expr {
    let span = place.span();
    written::Expr::new(ExprKind::Read(place), span)
}

impl<'a> Emitter<'a> {
    fn new(code: &'a Code, common: Emitted<'a>) -> Emitter<'a> {
        let Emitted { layout, frees, waiting, races, aim } = common;
        let mut wide: FxHashSet<RegId> = FxHashSet::default();
        let mut used = FxHashSet::default();
        let mut read = FxHashSet::default();
        let order = code.reachable();
        loop {
            let before = wide.len();
            for &block in &order {
                for step in &code.block(block).steps {
                    find_wide(&step.kind, layout, &mut wide);
                }
            }
            if wide.len() == before {
                break;
            }
        }
        for &block in &order {
            let block = code.block(block);
            for step in &block.steps {
                step.kind.for_each_read(&mut |register| _ = read.insert(register));
                step.kind.for_each_written(&mut |register| _ = used.insert(register));
            }
            if let End::Branch(condition, ..) = &block.end {
                condition.for_each_register(&mut |register| _ = read.insert(register));
            }
        }
        used.extend(read.iter().copied());
        let mut taken: FxHashSet<String> = layout.cells.iter().map(|cell| cell.name.clone()).collect();
        let mut names = vec![None; code.registers.len()];
        let mut temporaries = 0;
        for (index, register) in code.registers.iter().enumerate() {
            let id = RegId(u32::try_from(index).expect("fewer than 2^32 registers"));
            if !used.contains(&id) {
                continue;
            }
            let mut name = register.name.clone();
            let mut count = 1;
            while name.is_empty() || taken.contains(&name) {
                if register.name.is_empty() {
                    temporaries += 1;
                    name = format!("t{temporaries}");
                } else {
                    count += 1;
                    name = format!("{}#{count}", register.name);
                }
            }
            taken.insert(name.clone());
            names[index] = Some(Name::generated(name));
        }
        Emitter {
            code,
            layout,
            liveness: Liveness::new(code),
            frees,
            races,
            waiting,
            aim,
            ends_program: false,
            wide,
            copied: copied(code),
            names,
            taken,
            emitted: vec![false; code.blocks.len()],
            predecessors: code.predecessor_counts(),
            labels: FxHashMap::default(),
            read,
        }
    }

    fn body(mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        for block in self.code.reachable() {
            if !self.emitted[block.0 as usize] {
                let mut chain = Vec::new();
                self.chain(block, &mut chain, 0);
                body.extend(chain);
            }
        }
        if self.ends_program {
            // It is over, and no thread waits.
            let over = Name::generated(OVER);
            let mut stay = Stmt::new(StmtKind::Goto(over.clone()), Span::NONE);
            stay.labels.push(over);
            body.push(Stmt::new(StmtKind::Return(None), Span::NONE));
            body.push(stay);
        }
        strip(&mut body, None);
        let mut wanted = FxHashSet::default();
        targets(&body, &mut wanted);
        drop_labels(&mut body, &wanted);
        let mut used = FxHashSet::default();
        mentioned(&body, &mut used);
        let mut statements: Vec<Stmt> = Vec::new();
        for (register, name) in
            self.code.registers.iter().zip(&self.names).enumerate().filter_map(|(index, (register, name))| {
                let id = RegId(u32::try_from(index).expect("fewer than 2^32 registers"));
                let name = name.clone().filter(|name| used.contains(name))?;
                Some(((id, register.width), name))
            })
        {
            let (id, width) = register;
            let ty = if self.wide.contains(&id) { width_type(64) } else { width_type(width) };
            statements.push(Stmt::new(StmtKind::Let { name, ty, init: None }, Span::NONE));
        }
        statements.extend(body);
        statements
    }

    fn label(&mut self, block: BlockId) -> Name {
        if let Some(label) = self.labels.get(&block) {
            return label.clone();
        }
        let mut number = self.labels.len() + 1;
        while self.taken.contains(&format!("l{number}")) {
            number += 1;
        }
        let text = format!("l{number}");
        self.taken.insert(text.clone());
        let label = Name::generated(text);
        self.labels.insert(block, label.clone());
        label
    }

    /// Writes a block, and the blocks that only it leads to.
    fn chain(&mut self, block: BlockId, out: &mut Vec<Stmt>, depth: usize) {
        self.emitted[block.0 as usize] = true;
        let first = out.len();
        let code = self.code;
        let here = code.block(block);
        if let Some((wait, after)) = self.wait(block) {
            out.push(wait);
            let label = self.label(block);
            out[first].labels.push(label);
            self.follow(after, here.end_span, out, depth);
            return;
        }
        for step in &here.steps {
            self.step(step, out);
        }
        let span = here.end_span;
        match &here.end {
            End::Stop => out.push(Stmt::new(StmtKind::Return(None), span)),
            End::Over => {
                let over = self.over(span);
                out.push(over);
            }
            End::Goto(to) => self.follow(*to, span, out, depth),
            End::Branch(condition, yes, no) => {
                let (mut then, mut otherwise) = (Vec::new(), Vec::new());
                self.follow(*yes, span, &mut then, depth + 1);
                self.follow(*no, span, &mut otherwise, depth + 1);
                let condition = self.expr(condition);
                out.push(Stmt::new(StmtKind::If { condition, then, otherwise }, span));
            }
            End::Choose(all) => {
                let mut alternatives = Vec::new();
                for to in all {
                    let mut alternative = Vec::new();
                    self.follow(*to, span, &mut alternative, depth + 1);
                    alternatives.push(alternative);
                }
                out.push(Stmt::new(StmtKind::Choose(alternatives), span));
            }
        }
        let label = self.label(block);
        out[first].labels.push(label);
    }

    /// The end of the program.
    fn over(&mut self, span: Span) -> Stmt {
        if !self.aim.asks_finish() {
            // What other threads could do after it, they could also do before it.
            return Stmt::new(StmtKind::Return(None), span);
        }
        self.ends_program = true;
        Stmt::new(StmtKind::Goto(Name::generated(OVER)), span)
    }

    /// Goes on to a block: writes it here if nothing else leads to it.
    fn follow(&mut self, to: BlockId, span: Span, out: &mut Vec<Stmt>, depth: usize) {
        let only = self.predecessors[to.0 as usize] == 1 && !self.emitted[to.0 as usize];
        if only && depth < MAX_DEPTH {
            self.chain(to, out, depth);
        } else {
            let label = self.label(to);
            out.push(Stmt::new(StmtKind::Goto(label), span));
        }
    }

    /// A block that only leads to itself until a condition holds, as an `await`, and where control goes then.
    fn wait(&mut self, block: BlockId) -> Option<(Stmt, BlockId)> {
        let here = self.code.block(block);
        let End::Branch(condition, yes, no) = &here.end else { return None };
        let (condition, after) = match (*yes == block, *no == block) {
            (true, false) => (crate::expr::not(condition.clone()), *no),
            (false, true) => (condition.clone(), *yes),
            _ => return None,
        };
        let mut accesses: FxHashMap<RegId, (usize, &StepKind)> = FxHashMap::default();
        for (index, step) in here.steps.iter().enumerate() {
            let (register, access) = match &step.kind {
                StepKind::Load { to, from, .. } => (*to, from),
                StepKind::Locked { old, at, .. } if here.steps.len() == 1 => (*old, at),
                StepKind::Cas { old: None, done: Some(done), at, .. } if here.steps.len() == 1 => (*done, at),
                _ => return None,
            };
            if self.layout.may_be_unwritten(access) || self.liveness.live_in(after).contains(register) {
                return None;
            }
            accesses.insert(register, (index, &step.kind));
        }
        if accesses.len() != here.steps.len() || accesses.is_empty() {
            return None;
        }
        let mut order = Vec::new();
        let condition = self.inlined(&condition, &accesses, &mut order)?;
        let in_order = order.iter().copied().eq(0..here.steps.len());
        let span = here.steps.first().map_or(here.end_span, |step| step.span);
        in_order.then(|| (Stmt::new(StmtKind::Await(condition), span), after))
    }

    /// An expression in which registers are replaced by the accesses that assign them, in the order of evaluation.
    fn inlined(
        &self,
        e: &Expr,
        accesses: &FxHashMap<RegId, (usize, &StepKind)>,
        order: &mut Vec<usize>,
    ) -> Option<written::Expr> {
        Some(match e {
            Expr::Reg(register) => match accesses.get(register) {
                None => self.expr(e),
                Some((index, kind)) => {
                    let value = match kind {
                        StepKind::Load { from, .. } => {
                            let place = match &from.pointer {
                                Expr::Address(..) | Expr::Int(_) => self.place(from),
                                pointer => {
                                    let pointer = self.inlined(pointer, accesses, order)?;
                                    let place = deref(key(pointer, from.size));
                                    if from.plain && self.races { place.plainly() } else { place }
                                }
                            };
                            read(place)
                        }
                        StepKind::Locked { rmw, at, operand, .. } => {
                            let mut registers = false;
                            operand.for_each_register(&mut |r| registers |= accesses.contains_key(&r));
                            at.pointer.for_each_register(&mut |r| registers |= accesses.contains_key(&r));
                            if registers {
                                return None;
                            }
                            self.locked(*rmw, at, vec![self.expr(operand)])
                        }
                        StepKind::Cas { at, expected, new, .. } => {
                            self.locked(Rmw::Cas, at, vec![self.expr(expected), self.expr(new)])
                        }
                        _ => return None,
                    };
                    order.push(*index);
                    value
                }
            },
            Expr::Int(_) | Expr::Address(..) => self.expr(e),
            Expr::Not(a) => {
                let a = self.inlined(a, accesses, order)?;
                written::Expr::new(ExprKind::Unary(UnaryOp::Not, Box::new(a)), Span::NONE)
            }
            Expr::Binary(op, a, b) => {
                if matches!(op, BinaryOp::And | BinaryOp::Or) {
                    return None;
                }
                let a = self.inlined(a, accesses, order)?;
                let b = self.inlined(b, accesses, order)?;
                binary(*op, a, b)
            }
            Expr::Wrap(width, a) => wrapped(*width, self.inlined(a, accesses, order)?),
        })
    }

    fn name(&self, register: RegId) -> Name {
        self.names[register.0 as usize].clone().expect("registers that are used have a name")
    }

    fn register(&self, register: RegId) -> Place {
        Place::new(PlaceKind::Named(self.name(register)), Span::NONE)
    }

    fn expr(&self, e: &Expr) -> written::Expr {
        match e {
            Expr::Int(value) => int(*value),
            Expr::Reg(register) => read(self.register(*register)),
            Expr::Address(object, offset) => int(self.layout.address(*object, *offset)),
            Expr::Not(a) => {
                written::Expr::new(ExprKind::Unary(UnaryOp::Not, Box::new(self.expr(a))), Span::NONE)
            }
            Expr::Binary(op, a, b) => {
                // `x + -1` reads better as a difference.
                if let (BinaryOp::WordAdd, Expr::Int(value)) = (op, &**b)
                    && *value < 0
                    && *value != i64::MIN
                {
                    return binary(BinaryOp::WordSub, self.expr(a), int(-value));
                }
                binary(*op, self.expr(a), self.expr(b))
            }
            Expr::Wrap(width, a) => wrapped(*width, self.expr(a)),
        }
    }

    /// An expression that is assigned to something that wraps by itself.
    fn assigned(&self, e: &Expr, width: u32, wraps: bool) -> written::Expr {
        match e {
            Expr::Wrap(inner, a) if wraps && *inner == width && width > 1 => self.expr(a),
            e => self.expr(e),
        }
    }

    fn place(&self, access: &Access) -> Place {
        let place = self.any_place(access);
        if access.plain && self.races { place.plainly() } else { place }
    }

    /// The place of an access that the translation makes for itself.
    fn any_place(&self, access: &Access) -> Place {
        match self.layout.cell(access) {
            Some(cell) => Place::new(PlaceKind::Named(Name::generated(cell.name.as_str())), Span::NONE),
            None => deref(match self.constant(&access.pointer) {
                Some(address) => int(address.wrapping_mul(8).wrapping_add(access.size.into())),
                None => key(self.expr(&access.pointer), access.size),
            }),
        }
    }

    fn constant(&self, e: &Expr) -> Option<i64> {
        match e {
            Expr::Int(value) => Some(*value),
            Expr::Address(object, offset) => Some(self.layout.address(*object, *offset)),
            _ => None,
        }
    }

    fn locked(&self, rmw: Rmw, at: &Access, operands: Vec<written::Expr>) -> written::Expr {
        written::Expr::new(ExprKind::Locked(rmw, self.place(at), operands), Span::NONE)
    }

    fn assign(&self, register: RegId, value: written::Expr, span: Span) -> Stmt {
        Stmt::new(StmtKind::Assign { place: self.register(register), value }, span)
    }
}

/// The registers that hold nothing but what was loaded to be copied.
fn copied(code: &Code) -> FxHashSet<RegId> {
    let (mut copied, mut others) = (FxHashSet::default(), FxHashSet::default());
    for step in code.reachable().into_iter().flat_map(|block| &code.block(block).steps) {
        match &step.kind {
            StepKind::Load { to, written: Written::Copied, .. } => _ = copied.insert(*to),
            kind => kind.for_each_written(&mut |register| _ = others.insert(register)),
        }
    }
    copied.retain(|register| !others.contains(register));
    copied
}

fn named(cell: &Cell) -> Place {
    Place::new(PlaceKind::Named(Name::generated(cell.name.as_str())), Span::NONE)
}

fn deref(key: written::Expr) -> Place {
    Place::new(PlaceKind::Deref(Box::new(key)), Span::NONE)
}

/// The key of an access.
fn key(pointer: written::Expr, size: u32) -> written::Expr {
    let scaled = binary(BinaryOp::WordMul, pointer, int(8));
    if size == 0 { scaled } else { binary(BinaryOp::WordAdd, scaled, int(size.into())) }
}

fn wrapped(width: u32, e: written::Expr) -> written::Expr {
    if width == 1 {
        return binary(BinaryOp::BitAnd, e, int(1));
    }
    let by = 64 - i64::from(width);
    binary(BinaryOp::Shr, binary(BinaryOp::WordShl, e, int(by)), int(by))
}

/// Finds the registers that may hold what was never written.
fn find_wide(kind: &StepKind, layout: &Layout, wide: &mut FxHashSet<RegId>) {
    match kind {
        StepKind::Load { to, from: access, .. } | StepKind::Locked { old: to, at: access, .. }
            if layout.may_be_unwritten(access) =>
        {
            wide.insert(*to);
        }
        StepKind::Cas { old: Some(old), at, .. } if layout.may_be_unwritten(at) => {
            wide.insert(*old);
        }
        StepKind::Assign(to, Expr::Int(value)) if *value == UNINITIALISED => _ = wide.insert(*to),
        StepKind::Assign(to, Expr::Reg(from)) if wide.contains(from) => {
            wide.insert(*to);
        }
        StepKind::Atomic(steps) => steps.iter().for_each(|step| find_wide(&step.kind, layout, wide)),
        StepKind::If(_, then, otherwise) => {
            then.iter().chain(otherwise).for_each(|step| find_wide(&step.kind, layout, wide));
        }
        _ => {}
    }
}
