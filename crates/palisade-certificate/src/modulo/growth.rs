//! Which variables seem to grow without bound.
//!
//! Draw an edge from a variable without a domain to another one if the second is assigned an expression that contains
//! the value of the first, and mark the edge if that value goes through arithmetic. A cycle with a marked edge may go
//! on forever. The variables of such cycles are taken modulo a number, and so are all that values flow to from there, or
//! to there: a number of unknown size must not be added to them. The others keep their values.
//!
//! Nothing depends on this choice except whether there is a proof: [`super::wrapped`] refuses programs in which values
//! that are taken modulo a number flow to a variable that keeps its values.

use palisade_program::written::{
    BinaryOp, Block, Domain, Expr, ExprKind, Place, PlaceKind, Program, Rmw, StmtKind, UnaryOp,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A body, by its index among the templates and then the procedures.
pub(super) type BodyIndex = usize;

/// A shared variable, or a register of a body.
pub(super) type Variable<'p> = (Option<BodyIndex>, &'p str);

/// All bodies, in the order of their indices.
pub(super) fn bodies(program: &Program) -> impl Iterator<Item = &Block> {
    let templates = program.templates.iter().map(|template| &template.body);
    templates.chain(program.procedures.iter().map(|procedure| &procedure.body))
}

/// The variables that seem to grow without bound, and those that exchange values with them.
pub(super) fn growing(program: &Program) -> FxHashSet<Variable<'_>> {
    let shared = program.shared.iter().filter(|shared| shared.ty.domain == Domain::Int);
    let mut flows =
        Flows { ints: shared.map(|shared| (None, shared.name.as_str())).collect(), ..Flows::default() };
    for (index, body) in bodies(program).enumerate() {
        flows.declare(index, body);
    }
    let privates = program.privates.iter().map(|private| private.name.as_str());
    let templates = program.templates.iter().map(|template| &template.params);
    let params = templates.chain(program.procedures.iter().map(|procedure| &procedure.params));
    for (index, (body, params)) in bodies(program).zip(params).enumerate() {
        flows.others = params.iter().map(|param| param.name.as_str()).chain(privates.clone()).collect();
        flows.block(index, body);
    }
    flows.growing()
}

#[derive(Default)]
struct Flows<'p> {
    /// The variables without a domain.
    ints: FxHashSet<Variable<'p>>,
    /// All registers.
    registers: FxHashSet<Variable<'p>>,
    /// Other names of the body: parameters and private variables.
    others: FxHashSet<&'p str>,
    /// From where, to where, and whether through arithmetic.
    edges: Vec<(Variable<'p>, Variable<'p>, bool)>,
}

impl<'p> Flows<'p> {
    fn declare(&mut self, index: BodyIndex, block: &'p Block) {
        for stmt in block {
            if let StmtKind::Let { name, ty, .. } = &stmt.kind {
                self.registers.insert((Some(index), name.as_str()));
                if ty.domain == Domain::Int {
                    self.ints.insert((Some(index), name.as_str()));
                }
            }
            stmt.kind.blocks().into_iter().for_each(|inner| self.declare(index, inner));
        }
    }

    /// The variable without a domain that a place belongs to.
    fn variable(&self, index: BodyIndex, place: &'p Place) -> Option<Variable<'p>> {
        let (PlaceKind::Named(name) | PlaceKind::Element(name, _)) = &place.kind else { return None };
        let name = name.as_str();
        let variable = match self.registers.contains(&(Some(index), name)) {
            true => (Some(index), name),
            false if self.others.contains(name) => return None,
            false => (None, name),
        };
        self.ints.contains(&variable).then_some(variable)
    }

    fn block(&mut self, index: BodyIndex, block: &'p Block) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Let { name, init: Some(init), .. } => {
                    self.expr(index, init);
                    let target = (Some(index), name.as_str());
                    self.flow(index, init, Some(target).filter(|target| self.ints.contains(target)), false);
                }
                StmtKind::Assign { place, value } => {
                    self.expr(index, value);
                    self.place(index, place);
                    self.flow(index, value, self.variable(index, place), false);
                }
                StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                    self.expr(index, e);
                }
                StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => {
                    self.expr(index, condition)
                }
                StmtKind::Return(Some(e)) => self.expr(index, e),
                StmtKind::Spawn { args, .. } => args.iter().for_each(|arg| self.expr(index, arg)),
                StmtKind::Let { init: None, .. }
                | StmtKind::Return(None)
                | StmtKind::Skip
                | StmtKind::Fence
                | StmtKind::StoreFence
                | StmtKind::Loop(_)
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Goto(_)
                | StmtKind::Choose(_)
                | StmtKind::Atomic(_)
                | StmtKind::Block(_) => {}
            }
            stmt.kind.blocks().into_iter().for_each(|inner| self.block(index, inner));
        }
    }

    /// Adds what locked instructions in an expression store.
    fn expr(&mut self, index: BodyIndex, e: &'p Expr) {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => {}
            ExprKind::Read(place) | ExprKind::AddressOf(place) => self.place(index, place),
            ExprKind::Unary(_, a) => self.expr(index, a),
            ExprKind::Binary(_, a, b) => {
                self.expr(index, a);
                self.expr(index, b);
            }
            ExprKind::Call(_, args) => args.iter().for_each(|arg| self.expr(index, arg)),
            ExprKind::Locked(rmw, place, operands) => {
                operands.iter().for_each(|operand| self.expr(index, operand));
                self.place(index, place);
                let target = self.variable(index, place);
                match (rmw, target, operands.last()) {
                    (Rmw::Cas | Rmw::Exchange, _, Some(stored)) => self.flow(index, stored, target, false),
                    (_, Some(cell), Some(operand)) => {
                        self.edges.push((cell, cell, true));
                        self.flow(index, operand, target, true);
                    }
                    _ => {}
                }
            }
        }
    }

    fn place(&mut self, index: BodyIndex, place: &'p Place) {
        match &place.kind {
            PlaceKind::Named(_) => {}
            PlaceKind::Element(_, e) | PlaceKind::Deref(e) => self.expr(index, e),
        }
    }

    /// Adds edges from the variables whose values are in an expression.
    fn flow(&mut self, index: BodyIndex, e: &'p Expr, target: Option<Variable<'p>>, computed: bool) {
        let Some(to) = target else { return };
        match &e.kind {
            ExprKind::Read(place) => {
                self.edges.extend(self.variable(index, place).map(|from| (from, to, computed)));
            }
            ExprKind::Locked(rmw, place, _) if *rmw != Rmw::Cas => {
                self.edges.extend(self.variable(index, place).map(|from| (from, to, computed)));
            }
            ExprKind::Unary(op, a) if *op != UnaryOp::Not => self.flow(index, a, target, true),
            ExprKind::Binary(op, a, b) if !is_truth(*op) => {
                self.flow(index, a, target, true);
                self.flow(index, b, target, true);
            }
            _ => {}
        }
    }

    fn growing(self) -> FxHashSet<Variable<'p>> {
        let mut targets: FxHashMap<Variable<'p>, Vec<Variable<'p>>> = FxHashMap::default();
        for &(from, to, _) in &self.edges {
            targets.entry(from).or_default().push(to);
        }
        let cycle = |(from, to, computed): &&(Variable<'p>, Variable<'p>, bool)| {
            *computed && reached(&targets, *to).contains(from)
        };
        let starts: Vec<Variable<'p>> = self.edges.iter().filter(cycle).map(|(_, to, _)| *to).collect();
        for &(from, to, _) in &self.edges {
            targets.entry(to).or_default().push(from);
        }
        let mut growing = FxHashSet::default();
        for start in starts {
            if !growing.contains(&start) {
                growing.extend(reached(&targets, start));
            }
        }
        growing
    }
}

/// The variables that edges lead to from a variable, and itself.
fn reached<'p>(
    targets: &FxHashMap<Variable<'p>, Vec<Variable<'p>>>,
    start: Variable<'p>,
) -> FxHashSet<Variable<'p>> {
    let mut reached = FxHashSet::from_iter([start]);
    let mut open = vec![start];
    while let Some(variable) = open.pop() {
        palisade_base::limits::checkpoint();
        for &next in targets.get(&variable).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Whether an operator gives 0 or 1, whatever its operands are.
pub(super) fn is_truth(op: BinaryOp) -> bool {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or, WordLe, WordLt};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or | WordLt | WordLe)
}
