//! Whether a program treats identities as names: they are compared, copied, stored and used as indices, and nothing
//! else depends on them.
//!
//! There are two sorts. *Identities* are `me`, registers and cells declared `id or none`, and `none`. Everything else is
//! *data*. [`Program::identities_are_names`] accepts a program if
//! - both sides of `==` and `!=` have one sort, and all other operators take data; so do conditions and assertions;
//! - what is stored, assigned, exchanged or compared in memory has the sort of the place;
//! - arrays with one cell per process have identities as indices, and all other arrays have data;
//! - the only number that is an identity is 0, which is `none`; any identity or none is written `*`;
//! - there are no addresses, procedures, private variables, plain accesses or processes that are started at run time;
//! - beside the processes with identities there are single processes only;
//! - properties count processes with identities, and do not name one of them or its cells.
//!
//! Loops over all others are generated. Their bounds and steps are not looked at, only their bodies.
//!
//! # What follows
//! Let P_N be the program with N processes, and π a permutation of 1 to N. π acts on states: it renames processes,
//! the cells of arrays with one cell per process, and what registers and cells of the sort of identities hold. By
//! induction over expressions, data has the same value before and after the renaming, and identities have renamed
//! values. Order is nowhere looked at, except by loops over all others. So, but for the order of these loops, π maps
//! steps of P_N to steps, starts to starts, and bad states to bad states.
//!
//! The same argument works for an injective renaming of the identities that a step involves into those of another
//! number M of processes: a step of one process in P_N, with its values in memory, is one in P_M if M is at least the
//! number of identities involved, its own included. [`Program::identities_are_names`] returns a bound on that number:
//! the process's own identity and those in its registers, and those that an expression holds at one time while it
//! is evaluated. An atomic block is one step. It has no loops, so it reads at most as many identities as there are
//! reads in its text.
//!
//! It also works for a step together with the local steps before it, with R registers for identities and H identities held
//! at one time. Such a sequence involves the identities of its first and last state and of its last step. Others are
//! only chosen, compared and forgotten on the way. They are renamed when they are chosen, and it matters only that the
//! new one differs from those that are in registers at the same time, now or later, and from those that the last step
//! compares it with. Those are the process's own identity, at most R - 1 in other registers now, as many that are in them at
//! the end, and H - 1 of the last step. So M has to be larger than 2R - 2 + H as well. If the sequence involves M
//! identities or more, the same argument gives one in P_M that involves all M.
//!
//! And it works for what a property says about cells. A state of P_N in which it holds can be renamed, as far as it looks
//! at cells, into one of P_M if M is at least the number of cells with identities that the property names. So that number
//! is counted as well.

use super::{
    BinaryOp, Block, Count, Expr, ExprKind, Identities, Init, InitValue, Name, Observation, Place, PlaceKind,
    Program, PropertyKind, Rmw, Start, Stmt, StmtKind, Template, Type, UnaryOp,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Identity,
    Data,
    /// The number 0: `none`, or data.
    Zero,
}

/// Why identities are more than names.
pub type NotNames = &'static str;

type Checked<T> = Result<T, NotNames>;

impl Program {
    /// How many identities one step of a process can involve, or the cells that a property compares can hold, if identities
    /// are only names. See the header.
    pub fn identities_are_names(&self) -> Result<usize, NotNames> {
        let Some(identities) = &self.identities else { return Err("no process has an identity") };
        if !self.procedures.is_empty() || !self.privates.is_empty() {
            return Err("there are procedures or private variables");
        }
        if self.has_plain() {
            return Err("there are plain accesses");
        }
        for shared in &self.shared {
            let is_identity = identities.is_identity(shared.ty.domain);
            let per_process = identities.arrays.contains(&shared.name.text);
            if shared.at.is_some() {
                return Err("a variable has an address");
            }
            if is_identity && shared.len.is_some() {
                return Err("an array holds identities");
            }
            let zero = |value: &InitValue| match value {
                InitValue::Any => true,
                InitValue::Const(value) => value.kind == ExprKind::Int(0),
            };
            let initial = match &shared.init {
                Init::Every(value) => !is_identity || zero(value),
                Init::Each(_) => !is_identity && !per_process,
            };
            if !initial {
                return Err("a variable starts with the identity of one process");
            }
        }
        let mut most = 0;
        for template in &self.templates {
            let has_identity = template.name.text == identities.process;
            let alone = template.count == Count::Fixed(1) && template.params.is_empty();
            if template.start != Start::Initially || !has_identity && !alone {
                return Err("there are several processes of another kind");
            }
            most = most.max(Sorts::of(self, identities, Some(template)).template(template)?);
        }
        for property in &self.properties {
            let mut sorts = Sorts::of(self, identities, None);
            if property.kind != PropertyKind::Forbid || sorts.expr(&property.condition)? == Sort::Identity {
                return Err("a property is not a condition that is forbidden");
            }
            let mut cells = BTreeSet::new();
            sorts.identity_cells(&property.condition, &mut cells);
            most = most.max(cells.len());
        }
        Ok(most)
    }
}

struct Sorts<'p> {
    program: &'p Program,
    identities: &'p Identities,
    /// The types of shared variables and registers.
    types: BTreeMap<&'p str, Type>,
    me: Option<&'p Name>,
    /// How many identities the expression holds at one time.
    held: usize,
    /// Whether the expression is in an atomic block.
    atomic: bool,
}

impl<'p> Sorts<'p> {
    fn of(program: &'p Program, identities: &'p Identities, template: Option<&'p Template>) -> Sorts<'p> {
        let types = program.shared.iter().map(|shared| (shared.name.as_str(), shared.ty));
        let mut sorts =
            Sorts { program, identities, types: types.collect(), me: None, held: 0, atomic: false };
        if let Some(template) = template {
            sorts.me = template.params.first().map(|param| &param.name);
            sorts.declare(&template.body);
        }
        sorts
    }

    fn declare(&mut self, block: &'p Block) {
        for stmt in block {
            if let StmtKind::Let { name, ty, .. } = &stmt.kind {
                self.types.insert(name.as_str(), *ty);
            }
            stmt.kind.blocks().into_iter().for_each(|inner| self.declare(inner));
        }
    }

    /// How many identities a step of the process involves, or must differ from one that is forgotten before it.
    fn template(&mut self, template: &'p Template) -> Checked<usize> {
        let most = self.block(&template.body, false)?;
        let registers = self.types.iter().filter(|(name, ty)| {
            let shared = self.program.shared.iter().any(|shared| shared.name.as_str() == **name);
            !shared && self.identities.is_identity(ty.domain)
        });
        let registers = registers.count();
        Ok(most + (1 + registers).max((2 * registers).saturating_sub(2)))
    }

    /// How many identities one step of the block holds, besides those in registers.
    fn block(&mut self, block: &'p Block, atomic: bool) -> Checked<usize> {
        let mut most = 0;
        for stmt in block {
            let here = self.stmt(stmt, atomic)?;
            most = if atomic { most + here } else { most.max(here) };
        }
        Ok(most)
    }

    fn stmt(&mut self, stmt: &'p Stmt, atomic: bool) -> Checked<usize> {
        if let Some(found) = self.identities.loop_of(&stmt.kind) {
            if atomic {
                return Err("an atomic block has a loop");
            }
            // The registers are declared; `found` borrows from the statement.
            return self.block(found.body, false);
        }
        self.held = 0;
        self.atomic = atomic;
        match &stmt.kind {
            StmtKind::Let { ty, init: Some(init), .. } => self.assigned(*ty, init)?,
            StmtKind::Assign { place, value } => {
                let sort = self.place(place)?;
                let held = std::mem::take(&mut self.held);
                let value = self.expr(value)?;
                fits(sort, value)?;
                self.held += held;
            }
            StmtKind::Eval(e) => _ = self.expr(e)?,
            StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => self.data(e)?,
            StmtKind::If { condition, .. } => self.data(condition)?,
            StmtKind::While { .. } | StmtKind::Loop(_) | StmtKind::Goto(_) | StmtKind::Continue if atomic => {
                return Err("an atomic block has a loop");
            }
            StmtKind::While { condition, .. } => self.data(condition)?,
            StmtKind::Spawn { .. } | StmtKind::Return(Some(_)) => {
                return Err("processes are started at run time");
            }
            StmtKind::Let { init: None, .. }
            | StmtKind::Skip
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Loop(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Goto(_)
            | StmtKind::Choose(_)
            | StmtKind::Atomic(_)
            | StmtKind::Block(_)
            | StmtKind::Return(None) => {}
        }
        let mut most = self.held;
        let inside = atomic || matches!(stmt.kind, StmtKind::Atomic(_));
        for inner in stmt.kind.blocks() {
            let inner = self.block(inner, inside)?;
            most = if inside { most + inner } else { most.max(inner) };
        }
        Ok(most)
    }

    fn assigned(&mut self, ty: Type, init: &Expr) -> Checked<()> {
        let is_identity = self.identities.is_identity(ty.domain);
        if is_identity && self.identities.is_any(init) {
            self.held += 1;
            return Ok(());
        }
        let sort = if is_identity { Sort::Identity } else { Sort::Data };
        let value = self.expr(init)?;
        fits(sort, value)
    }

    fn data(&mut self, e: &Expr) -> Checked<()> {
        let sort = self.expr(e)?;
        fits(Sort::Data, sort)
    }

    /// The sort of a place, or of what it holds.
    fn place(&mut self, place: &Place) -> Checked<Sort> {
        match &place.kind {
            PlaceKind::Named(name) if self.me == Some(name) => Ok(Sort::Identity),
            PlaceKind::Named(name) => {
                let ty = self.types.get(name.as_str()).ok_or("a name is not known")?;
                Ok(if self.identities.is_identity(ty.domain) { Sort::Identity } else { Sort::Data })
            }
            PlaceKind::Element(array, index) => {
                let expected = match self.identities.arrays.contains(&array.text) {
                    true => Sort::Identity,
                    false => Sort::Data,
                };
                let index = self.expr(index)?;
                fits(expected, index)?;
                let ty = self.types.get(array.as_str()).ok_or("a name is not known")?;
                Ok(if self.identities.is_identity(ty.domain) { Sort::Identity } else { Sort::Data })
            }
            PlaceKind::Deref(_) => Err("it computes with addresses"),
        }
    }

    fn expr(&mut self, e: &Expr) -> Checked<Sort> {
        match &e.kind {
            ExprKind::Int(0) => Ok(Sort::Zero),
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } => Ok(Sort::Data),
            ExprKind::Read(place) => {
                let sort = self.place(place)?;
                self.held += usize::from(sort == Sort::Identity);
                Ok(sort)
            }
            ExprKind::Unary(UnaryOp::Not | UnaryOp::Neg | UnaryOp::BitNot, a) => {
                self.data(a)?;
                Ok(Sort::Data)
            }
            ExprKind::Binary(op, a, b) => {
                let before = self.held;
                let a = self.expr(a)?;
                let between = self.held;
                let b = self.expr(b)?;
                let compares = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
                if compares && (a == Sort::Identity || b == Sort::Identity) {
                    fits(Sort::Identity, a)?;
                    fits(Sort::Identity, b)?;
                } else {
                    fits(Sort::Data, a)?;
                    fits(Sort::Data, b)?;
                    if matches!(op, BinaryOp::And | BinaryOp::Or) && !self.atomic {
                        // What the first operand held is not needed any more. In an atomic block, it still belongs to
                        // the step.
                        self.held = between.max(before + (self.held - between));
                    }
                }
                Ok(Sort::Data)
            }
            ExprKind::Locked(rmw, place, operands) => {
                let sort = self.place(place)?;
                for operand in operands {
                    let operand = self.expr(operand)?;
                    fits(sort, operand)?;
                }
                self.held += usize::from(sort == Sort::Identity);
                match (rmw, sort) {
                    (Rmw::Cas, _) => Ok(Sort::Data),
                    (Rmw::Exchange, sort) => Ok(sort),
                    (_, Sort::Data | Sort::Zero) => Ok(Sort::Data),
                    (_, Sort::Identity) => Err("it computes with identities"),
                }
            }
            ExprKind::AddressOf(_) => Err("it computes with addresses"),
            ExprKind::Call(..) => Err("there are procedures"),
            ExprKind::Observe(observation) => self.observation(observation),
        }
    }

    /// The cells with identities that a condition reads.
    fn identity_cells(&self, e: &'p Expr, cells: &mut BTreeSet<&'p str>) {
        match &e.kind {
            ExprKind::Read(Place { kind: PlaceKind::Named(name), .. }) => {
                if self.types.get(name.as_str()).is_some_and(|ty| self.identities.is_identity(ty.domain)) {
                    cells.insert(name.as_str());
                }
            }
            ExprKind::Unary(_, a) => self.identity_cells(a, cells),
            ExprKind::Read(Place { kind: PlaceKind::Element(_, index), .. }) => {
                self.identity_cells(index, cells)
            }
            ExprKind::Binary(_, a, b) => {
                self.identity_cells(a, cells);
                self.identity_cells(b, cells);
            }
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Any { .. }
            | ExprKind::Read(_)
            | ExprKind::Locked(..)
            | ExprKind::AddressOf(_)
            | ExprKind::Call(..)
            | ExprKind::Observe(_) => {}
        }
    }

    fn observation(&self, observation: &Observation) -> Checked<Sort> {
        match observation {
            Observation::Count { .. } => Ok(Sort::Data),
            Observation::At { process, .. } if process.template.text != self.identities.process => {
                Ok(Sort::Data)
            }
            _ => Err("a property is about one process with an identity, or about a register"),
        }
    }
}

fn fits(expected: Sort, found: Sort) -> Checked<()> {
    match found == expected || found == Sort::Zero {
        true => Ok(()),
        false => Err("it computes with identities, or takes numbers for identities"),
    }
}
