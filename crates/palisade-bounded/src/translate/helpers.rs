//! The procedures that replace accesses to memory, one for each kind of access and variable that occurs.

use super::build::{
    self, address, assign, call, element, equals, give, param, place, pointed, read, run, stmt, truth, var,
    when,
};
use super::names::Names;
use super::{Role, Set, Translator};
use palisade_base::{Span, limits};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Check, Expr, Outside, Place, Procedure, Program, Rmw, Stmt, StmtKind, Type,
};

/// A shared variable and its queues.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) len: Option<u32>,
    ty: Type,
    /// Its first cell.
    base: u32,
    /// `mask_d_x` for each distance (nearest first) and each cell. Empty if nothing is ever pending.
    pub(super) masks: Vec<Vec<String>>,
    /// `queue_d_x`, in the same order.
    pub(super) queues: Vec<Vec<String>>,
}

/// The parameters and registers of helpers. Operands come before the index or pointer, since they are
/// evaluated first.
pub(super) struct Locals {
    pub(super) operands: [String; 2],
    index: String,
    pub(super) pointer: String,
    /// The operand, after the check that it fits the variable.
    fitted: String,
    /// The pointer, after the check that it is the address of a cell.
    checked: String,
}

impl Locals {
    pub(super) fn new(names: &mut Names) -> Locals {
        Locals {
            operands: [names.fresh("v"), names.fresh("u")],
            index: names.fresh("i"),
            pointer: names.fresh("p"),
            fitted: names.fresh("w"),
            checked: names.fresh("c"),
        }
    }
}

/// The target of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target {
    /// A variable, by its number.
    Variable(usize),
    /// The cell at an address.
    Pointer,
}

/// Whether a new round may begin before the access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Rests {
    /// It may.
    Before,
    /// It may not, because one could have begun just now.
    No,
}

/// An access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Helper {
    /// A load.
    Load(Target, Rests),
    /// A store.
    Store(Target, Rests),
    /// A locked instruction.
    Locked(Rmw, Target, Rests),
}

impl Helper {
    /// The preferred name of the helper.
    pub(super) fn wanted_name(self, variables: &[Variable]) -> String {
        let of = |target| match target {
            Target::Variable(number) => variables[number].name.as_str(),
            Target::Pointer => "at",
        };
        match self {
            Helper::Load(target, Rests::No) => format!("view_{}", of(target)),
            Helper::Load(target, Rests::Before) => format!("load_{}", of(target)),
            Helper::Store(target, Rests::No) => format!("store_{}", of(target)),
            Helper::Store(target, Rests::Before) => format!("write_{}", of(target)),
            Helper::Locked(rmw, target, Rests::No) => format!("{}_now_{}", rmw.name(), of(target)),
            Helper::Locked(rmw, target, Rests::Before) => format!("{}_{}", rmw.name(), of(target)),
        }
    }
}

impl Variable {
    /// All variables of a program. Those that no store can leave pending have no queues.
    pub(super) fn all(
        program: &Program,
        queues: u32,
        stored: &Option<Set<'_>>,
        names: &mut Names,
    ) -> Vec<Variable> {
        let mut base = 0;
        let mut all = Vec::new();
        for variable in &program.shared {
            let cells = variable.len.unwrap_or(1);
            let buffered = stored.as_ref().is_none_or(|stored| stored.contains(variable.name.as_str()));
            let distances = if buffered { queues } else { 0 };
            let mut name_all = |kind: &str| {
                let mut name = |distance: u32, cell: u32| {
                    limits::checkpoint();
                    names.fresh(match variable.len {
                        Some(_) => format!("{kind}_{distance}_{}_{cell}", variable.name),
                        None => format!("{kind}_{distance}_{}", variable.name),
                    })
                };
                let cells = |distance| (0..cells).map(|cell| name(distance, cell)).collect::<Vec<_>>();
                (1..=distances).map(cells).collect::<Vec<_>>()
            };
            all.push(Variable {
                masks: name_all("mask"),
                queues: name_all("queue"),
                name: variable.name.to_string(),
                len: variable.len,
                ty: variable.ty,
                base,
            });
            base += cells;
        }
        all
    }

    /// The type of a queue entry: a value of the variable, or 0 if there is nothing.
    pub(super) fn queued(&self) -> Type {
        match self.ty.domain.bounds() {
            Some((lo, hi)) if lo > 0 || hi < 0 => Type::range(lo.min(0), hi.max(0)),
            _ => Type { outside: Outside::Fault, ..self.ty },
        }
    }

    fn cells(&self) -> u32 {
        self.len.unwrap_or(1)
    }

    /// A cell of the variable.
    fn cell(&self, index: Expr) -> Place {
        if self.len.is_some() { element(&self.name, index) } else { place(&self.name) }
    }

    /// Writes the values that are due to memory, with a statement after each write, and moves the queues up
    /// by one.
    pub(super) fn move_up(&self, written: &Stmt) -> Block {
        let mut block = Block::new();
        if self.masks.is_empty() {
            return block;
        }
        for cell in 0..self.cells() as usize {
            limits::checkpoint();
            let due = assign(self.cell(Expr::int(cell as Value)), var(&self.queues[0][cell]));
            block.push(when(var(&self.masks[0][cell]), vec![due, written.clone()]));
            for distance in 0..self.masks.len() {
                let next = |of: &[Vec<String>], nothing| match of.get(distance + 1) {
                    Some(next) => var(&next[cell]),
                    None => nothing,
                };
                let (mask, queue) = (&self.masks[distance][cell], &self.queues[distance][cell]);
                block.push(assign(place(mask), next(&self.masks, truth(false))));
                block.push(assign(place(queue), next(&self.queues, Expr::int(0))));
            }
        }
        block
    }

    /// Returns the newest pending value of a cell, if there is one.
    fn newest(&self, cell: usize) -> Block {
        let entries = self.masks.iter().zip(&self.queues).rev();
        entries.map(|(masks, queues)| when(var(&masks[cell]), vec![give(var(&queues[cell]))])).collect()
    }

    /// Puts a value into the queue of the round given by `r_TSO`.
    fn enqueue(&self, r_tso: &str, cell: usize, value: &str) -> Block {
        let entries = self.masks.iter().zip(&self.queues).zip(1..);
        entries
            .map(|((masks, queues), distance)| {
                let put =
                    vec![assign(place(&masks[cell]), truth(true)), assign(place(&queues[cell]), var(value))];
                when(equals(var(r_tso), distance), put)
            })
            .collect()
    }

    /// The code for a cell that is known only at run time.
    fn for_each_cell(&self, index: &str, code: impl Fn(usize) -> Block) -> Block {
        match self.len {
            None => code(0),
            Some(len) => (0..len)
                .inspect(|_| limits::checkpoint())
                .map(|cell| when(equals(var(index), cell.into()), code(cell as usize)))
                .filter(|stmt| !matches!(&stmt.kind, StmtKind::If { then, .. } if then.is_empty()))
                .collect(),
        }
    }
}

impl Translator<'_> {
    /// Writes a helper.
    pub(super) fn helper(&mut self, helper: Helper) -> Procedure {
        let name = self.helpers[&helper].clone();
        match helper {
            Helper::Load(target, Rests::No) => match target {
                Target::Variable(number) => self.view(name, number),
                Target::Pointer => self.view_at(name),
            },
            Helper::Store(target, Rests::No) => match target {
                Target::Variable(number) => self.store(name, number),
                Target::Pointer => self.store_at(name),
            },
            Helper::Locked(rmw, target, Rests::No) => self.locked(name, rmw, target),
            Helper::Load(target, Rests::Before) => self.resting(name, Helper::Load(target, Rests::No)),
            Helper::Store(target, Rests::Before) => self.resting(name, Helper::Store(target, Rests::No)),
            Helper::Locked(rmw, target, Rests::Before) => {
                self.resting(name, Helper::Locked(rmw, target, Rests::No))
            }
        }
    }

    /// An access before which a new round may begin.
    fn resting(&mut self, name: String, access: Helper) -> Procedure {
        let target = match access {
            Helper::Load(target, _) | Helper::Store(target, _) | Helper::Locked(_, target, _) => target,
        };
        let operands = match access {
            Helper::Load(..) => 0,
            Helper::Store(..) => 1,
            Helper::Locked(rmw, ..) => rmw.operands(),
        };
        let mut params: Vec<_> =
            self.local.operands[..operands].iter().map(|p| param(p, Type::INT)).collect();
        params.extend(self.address_param(target).map(|p| param(p, Type::INT)));
        let args = params.iter().map(|param| var(param.name.as_str())).collect();
        let result = match access {
            Helper::Store(..) => None,
            Helper::Load(target, _) => Some(self.value_type(target)),
            Helper::Locked(rmw, target, _) => Some(self.locked_type(rmw, target)),
        };
        let access = call(&self.helper_name(access), args, Span::NONE);
        let then = if result.is_some() { give(access) } else { stmt(StmtKind::Eval(access)) };
        build::procedure(&name, params, result, vec![run(&self.new_round), then])
    }

    fn value_type(&self, target: Target) -> Type {
        match target {
            Target::Variable(number) => Type { outside: Outside::Fault, ..self.variables[number].ty },
            Target::Pointer => Type::INT,
        }
    }

    fn locked_type(&self, rmw: Rmw, target: Target) -> Type {
        if rmw == Rmw::Cas { Type::BOOL } else { self.value_type(target) }
    }

    /// The parameter that selects the cell.
    fn address_param(&self, target: Target) -> Option<&str> {
        match target {
            Target::Variable(number) => self.variables[number].len.map(|_| self.local.index.as_str()),
            Target::Pointer => Some(&self.local.pointer),
        }
    }

    /// `view_x`: the newest pending store if there is one, otherwise memory.
    fn view(&mut self, name: String, number: usize) -> Procedure {
        let variable = &self.variables[number];
        let i = &self.local.index;
        let mut body = Block::new();
        if !variable.masks.is_empty() {
            body = variable.for_each_cell(i, |cell| variable.newest(cell));
        }
        body.push(self.set_may_end(truth(true)));
        body.push(give(read(variable.cell(var(i)))));
        self.roles.insert(name.clone(), Role::Load { base: variable.base });
        let params = variable.len.iter().map(|_| param(i, Type::INT)).collect();
        let result = self.value_type(Target::Variable(number));
        build::procedure(&name, params, Some(result), body)
    }

    /// `store_x`: into memory or into a queue.
    fn store(&mut self, name: String, number: usize) -> Procedure {
        let variable = &self.variables[number];
        let (v, w, i) = (&self.local.operands[0], &self.local.fitted, &self.local.index);
        let mut body = Block::new();
        let (params, value) = match variable.len {
            None => (vec![param(v, variable.ty)], v),
            Some(len) => {
                // The index is checked before the value.
                body.push(when(outside(i, len.into()), vec![assign(variable.cell(var(i)), var(v))]));
                let kind = StmtKind::Let { name: build::name(w), ty: variable.ty, init: Some(var(v)) };
                body.push(stmt(kind));
                (vec![param(v, Type::INT), param(i, Type::INT)], w)
            }
        };
        let at_once = assign(variable.cell(var(i)), var(value));
        match &self.r_tso {
            Some(r_tso) => {
                body.push(run(&self.delay));
                let queue = variable.for_each_cell(i, |cell| variable.enqueue(r_tso, cell, value));
                body.push(when(equals(var(r_tso), 0), vec![at_once]));
                body.extend(queue);
                body.push(self.set_may_end(equals(var(r_tso), 0)));
            }
            None => body.extend([at_once, self.set_may_end(truth(true))]),
        }
        let role = Role::Store { base: variable.base, array: variable.len.is_some() };
        self.roles.insert(name.clone(), role);
        build::procedure(&name, params, None, body)
    }

    fn locked(&mut self, name: String, rmw: Rmw, target: Target) -> Procedure {
        let mut params: Vec<_> =
            self.local.operands[..rmw.operands()].iter().map(|p| param(p, Type::INT)).collect();
        params.extend(self.address_param(target).map(|p| param(p, Type::INT)));
        let operands: Vec<_> = self.local.operands[..rmw.operands()].iter().map(|p| var(p)).collect();
        let mut body = Block::new();
        let cell = match target {
            Target::Variable(number) => {
                let variable = &self.variables[number];
                if let Some(len) = variable.len {
                    let faults =
                        give(build::locked(rmw, variable.cell(var(&self.local.index)), operands.clone()));
                    body.push(when(outside(&self.local.index, len.into()), vec![faults]));
                }
                variable.cell(var(&self.local.index))
            }
            Target::Pointer => {
                let checked = self.checked_pointer(var(&self.local.pointer.clone()));
                let kind = StmtKind::Let {
                    name: build::name(&self.local.checked),
                    ty: Type::INT,
                    init: Some(checked),
                };
                body.push(stmt(kind));
                pointed(var(&self.local.checked))
            }
        };
        body.extend(self.drained());
        body.push(self.set_may_end(truth(true)));
        body.push(give(build::locked(rmw, cell, operands)));
        build::procedure(&name, params, Some(self.locked_type(rmw, target)), body)
    }

    /// `view_at`: the variable with the address, found at run time.
    fn view_at(&mut self, name: String) -> Procedure {
        let mut body = self.find_variable(|this, number, args| {
            let view = this.helper_name(Helper::Load(Target::Variable(number), Rests::No));
            vec![give(call(&view, args, Span::NONE))]
        });
        body.push(stmt(StmtKind::Assert(truth(false), Check::Assertion)));
        let pointer = param(&self.local.pointer, Type::INT);
        build::procedure(&name, vec![pointer], Some(Type::INT), body)
    }

    fn store_at(&mut self, name: String) -> Procedure {
        let mut body = self.find_variable(|this, number, mut args| {
            let store = this.helper_name(Helper::Store(Target::Variable(number), Rests::No));
            args.insert(0, var(&this.local.operands[0]));
            vec![stmt(StmtKind::Eval(call(&store, args, Span::NONE))), stmt(StmtKind::Return(None))]
        });
        body.push(stmt(StmtKind::Assert(truth(false), Check::Assertion)));
        let params = vec![param(&self.local.operands[0], Type::INT), param(&self.local.pointer, Type::INT)];
        build::procedure(&name, params, None, body)
    }

    /// Runs the code for the variable that `p` points to, with the index if it is an array.
    fn find_variable(&mut self, mut then: impl FnMut(&mut Self, usize, Vec<Expr>) -> Block) -> Block {
        let mut block = Block::new();
        let p = self.local.pointer.clone();
        for number in 0..self.variables.len() {
            let (name, len) = (self.variables[number].name.clone(), self.variables[number].len);
            let (condition, args) = match len {
                None => {
                    let here = build::binary(BinaryOp::Eq, var(&p), address(place(&name)));
                    (here, Vec::new())
                }
                Some(len) => {
                    let cell = |index: u32| address(element(&name, Expr::int(index.into())));
                    let from = build::binary(BinaryOp::Ge, var(&p), cell(0));
                    let to = build::binary(BinaryOp::Le, var(&p), cell(len - 1));
                    let index = build::binary(BinaryOp::Sub, var(&p), cell(0));
                    (build::binary(BinaryOp::And, from, to), vec![index])
                }
            };
            let code = then(self, number, args);
            block.push(when(condition, code));
        }
        block
    }
}

/// `i < 0 || i >= len`
fn outside(index: &str, len: Value) -> Expr {
    let below = build::binary(BinaryOp::Lt, var(index), Expr::int(0));
    let above = build::binary(BinaryOp::Ge, var(index), Expr::int(len));
    build::binary(BinaryOp::Or, below, above)
}
