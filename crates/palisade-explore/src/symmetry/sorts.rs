//! Which values and cells belong to which thread: a guess that [`super::verify`] checks.
//!
//! *Idea.* Threads with the same text differ only in constants and cells. At each place of the text, these form a
//! *family*: one value, or one cell, per thread. A permutation of the threads permutes each family. Registers and
//! cells get *kinds* by unification: what is assigned from, or compared with, one another is of one kind. A register
//! has a kind at each location where it is live, because lowering uses registers for more than one purpose. A kind
//! knows its families, and the values that must stay where they are. Arithmetic makes new families from old ones: if
//! `a` and `b` are the nodes of two threads, then `a + 8` and `b + 8` are their second fields.
//!
//! *Guarantee.* None. A wrong guess is found by the check, and costs only the reduction.

use super::Conflict;
use palisade_automata::Pointers;
use palisade_base::limits;
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, CellId, CodeId, Edge, Expr, Fault, Instr, Liveness, Location, RegId, Rmw, System,
    UnaryOp, binary, unary,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// More families than this are not kept track of.
const MAX_FAMILIES: usize = 1024;

/// More registers at locations than this are not kept track of.
const MAX_KINDS: usize = 1 << 18;

/// A kind, before it is known which ones are the same.
pub(super) type Var = u32;

/// The threads that run one text: those of a block, or those of a role.
pub(super) struct Body {
    /// The block, if there is one.
    pub block: Option<usize>,
    /// The code of each thread.
    pub codes: Vec<CodeId>,
}

/// One item per thread of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Family<T> {
    pub block: usize,
    pub items: Vec<T>,
}

#[derive(Clone, Debug, Default)]
struct GuessedKind {
    families: Vec<Family<Value>>,
    fixed: BTreeSet<Value>,
}

/// An operator whose operands may be moved by permutations.
struct Operation<'a> {
    code: CodeId,
    op: Operator,
    left: (Var, &'a Expr),
    right: Option<(Var, &'a Expr)>,
    result: Var,
}

#[derive(Clone, Copy)]
enum Operator {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

impl Operator {
    fn apply(self, a: Value, b: Value) -> Result<Value, Fault> {
        match self {
            Operator::Unary(op) => unary(op, a),
            Operator::Binary(op) => binary(op, a, b),
        }
    }
}

/// How a kind of values leads to cells.
enum CellAccess {
    Element { base: CellId, len: u32 },
    Pointer,
}

/// The guess.
pub(super) struct Sorts<'a> {
    system: &'a System,
    pointers: &'a Pointers,
    parents: Vec<Var>,
    kinds: Vec<GuessedKind>,
    /// Of each body: the kind of the first register at the first location, and how many registers there are.
    registers: Vec<(Var, Var)>,
    liveness: &'a Liveness,
    /// By the expression of the first thread of the body.
    nodes: FxHashMap<*const Expr, Var>,
    operations: Vec<Operation<'a>>,
    accesses: Vec<(CellAccess, Var)>,
    cell_families: Vec<Family<CellId>>,
    family_of: FxHashMap<CellId, usize>,
    fixed_cells: FxHashSet<CellId>,
}

type Guess<T> = Result<T, Conflict>;

/// An edge of a body.
#[derive(Clone, Copy)]
struct At {
    body: usize,
    source: Location,
    target: Location,
}

/// The register that an instruction assigns.
pub(super) fn assigned(instr: &Instr) -> Option<RegId> {
    match instr {
        Instr::Assign(register, _)
        | Instr::Havoc(register, _, _)
        | Instr::Load(register, _)
        | Instr::Locked { result: register, .. } => Some(*register),
        _ => None,
    }
}

impl<'a> Sorts<'a> {
    /// Guesses the kinds of all registers and cells.
    pub fn guess(
        system: &'a System,
        pointers: &'a Pointers,
        liveness: &'a Liveness,
        bodies: &'a [Body],
    ) -> Guess<Sorts<'a>> {
        let mut sorts = Sorts {
            system,
            pointers,
            parents: Vec::new(),
            kinds: Vec::new(),
            registers: Vec::new(),
            liveness,
            nodes: FxHashMap::default(),
            operations: Vec::new(),
            accesses: Vec::new(),
            cell_families: Vec::new(),
            family_of: FxHashMap::default(),
            fixed_cells: FxHashSet::default(),
        };
        // The kinds of cells come first.
        system.cells.ids().for_each(|_| _ = sorts.fresh());
        for body in bodies {
            let code = &system.codes[body.codes[0]];
            let count = code.registers.len();
            if sorts.kinds.len() + count * code.location_count() > MAX_KINDS {
                return Err(Conflict::Never);
            }
            sorts.registers.push((sorts.kinds.len() as Var, count as Var));
            (0..count * code.location_count()).for_each(|_| _ = sorts.fresh());
            // Registers that are read before they are written are 0.
            let index = sorts.registers.len() - 1;
            let dead = liveness.dead(body.codes[0], code.entry);
            for register in code.registers.ids().filter(|register| !dead.contains(register)) {
                sorts.fix(sorts.register(index, code.entry, register), 0)?;
            }
        }
        for index in 0..bodies.len() {
            sorts.body(bodies, index)?;
        }
        while sorts.propagate()? {}
        for (id, cell) in system.cells.iter_enumerated() {
            if let (false, Some(init)) = (sorts.family_of.contains_key(&id), cell.init) {
                sorts.fix(id.0, init)?;
            }
        }
        Ok(sorts)
    }

    /// The families of all kinds, and for each kind its number among them.
    pub fn families(&self) -> (Vec<Vec<Family<Value>>>, FxHashMap<Var, u32>) {
        let mut all = vec![Vec::new()];
        let mut numbers = FxHashMap::default();
        for var in (0..self.kinds.len() as Var).filter(|&var| self.find(var) == var) {
            let families = &self.kinds[var as usize].families;
            let number = if families.is_empty() { 0 } else { all.len() as u32 };
            if number > 0 {
                all.push(families.clone());
            }
            numbers.insert(var, number);
        }
        (all, numbers)
    }

    pub fn cell_families(&self) -> &[Family<CellId>] {
        &self.cell_families
    }

    pub fn of_cell(&self, cell: CellId) -> Var {
        self.find(cell.0)
    }

    pub fn of_register(&self, body: usize, location: Location, register: RegId) -> Var {
        self.find(self.register(body, location, register))
    }

    fn register(&self, body: usize, location: Location, register: RegId) -> Var {
        let (first, count) = self.registers[body];
        first + location.0 * count + register.0
    }

    /// The kind of an expression of the first thread of a body.
    pub fn of_expr(&self, e: &Expr) -> Var {
        self.find(self.nodes[&std::ptr::from_ref(e)])
    }

    fn fresh(&mut self) -> Var {
        let var = self.kinds.len() as Var;
        self.parents.push(var);
        self.kinds.push(GuessedKind::default());
        var
    }

    fn find(&self, mut var: Var) -> Var {
        while self.parents[var as usize] != var {
            var = self.parents[var as usize];
        }
        var
    }

    fn unite(&mut self, a: Var, b: Var) -> Guess<bool> {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return Ok(false);
        }
        self.parents[b as usize] = a;
        let GuessedKind { families, fixed } = std::mem::take(&mut self.kinds[b as usize]);
        for value in fixed {
            self.fix(a, value)?;
        }
        for Family { block, items } in families {
            self.vary(a, block, items)?;
        }
        Ok(true)
    }

    /// Notes that no permutation moves a value of this kind.
    fn fix(&mut self, var: Var, value: Value) -> Guess<bool> {
        let var = self.find(var);
        let kind = &mut self.kinds[var as usize];
        for family in &kind.families {
            if let Some(member) = family.items.iter().position(|&item| item == value) {
                return Err(Conflict::Drop { block: family.block, member });
            }
        }
        Ok(kind.fixed.insert(value))
    }

    /// Notes that these values of this kind belong to the threads of a block.
    fn vary(&mut self, var: Var, block: usize, values: Vec<Value>) -> Guess<bool> {
        if values.iter().all(|value| *value == values[0]) {
            return self.fix(var, values[0]);
        }
        all_different(block, &values)?;
        let var = self.find(var);
        let kind = &mut self.kinds[var as usize];
        if let Some(member) = values.iter().position(|value| kind.fixed.contains(value)) {
            return Err(Conflict::Drop { block, member });
        }
        let family = Family { block, items: values };
        if kind.families.contains(&family) {
            return Ok(false);
        }
        let overlap = |other: &Family<Value>| other.items.iter().any(|item| family.items.contains(item));
        if kind.families.iter().any(overlap) || kind.families.len() >= MAX_FAMILIES {
            return Err(Conflict::Without(block));
        }
        kind.families.push(family);
        Ok(true)
    }

    /// Notes that these cells belong to the threads of a block.
    fn vary_cells(&mut self, block: usize, cells: &[CellId]) -> Guess<bool> {
        if cells.iter().all(|cell| *cell == cells[0]) {
            return self.fix_cell(cells[0]);
        }
        all_different(block, cells)?;
        if let Some(member) = cells.iter().position(|cell| self.fixed_cells.contains(cell)) {
            return Err(Conflict::Drop { block, member });
        }
        if let Some(known) = cells.iter().find_map(|cell| self.family_of.get(cell)) {
            let known = &self.cell_families[*known];
            let same = known.block == block && known.items == cells;
            return if same { Ok(false) } else { Err(Conflict::Without(block)) };
        }
        let number = self.cell_families.len();
        self.cell_families.push(Family { block, items: cells.to_vec() });
        for &cell in cells {
            self.family_of.insert(cell, number);
            self.unite(cells[0].0, cell.0)?;
        }
        let inits: Option<Vec<Value>> = cells.iter().map(|&cell| self.system.cells[cell].init).collect();
        if let Some(inits) = inits {
            self.vary(cells[0].0, block, inits)?;
        }
        Ok(true)
    }

    fn fix_cell(&mut self, cell: CellId) -> Guess<bool> {
        if let Some(&family) = self.family_of.get(&cell) {
            let Family { block, items } = &self.cell_families[family];
            let member = items.iter().position(|&item| item == cell).expect("the cell is in its family");
            return Err(Conflict::Drop { block: *block, member });
        }
        Ok(self.fixed_cells.insert(cell))
    }

    /// Notes a constant of each thread of a body.
    fn constants(&mut self, body: &Body, var: Var, values: Vec<Value>) -> Guess<bool> {
        match body.block {
            Some(block) => self.vary(var, block, values),
            None => self.fix(var, values[0]),
        }
    }

    fn cells(&mut self, body: &Body, cells: &[CellId]) -> Guess<bool> {
        match body.block {
            Some(block) => self.vary_cells(block, cells),
            None => self.fix_cell(cells[0]),
        }
    }

    fn body(&mut self, bodies: &'a [Body], index: usize) -> Guess<()> {
        let body = &bodies[index];
        let system = self.system;
        let edges: Vec<_> = body.codes.iter().map(|&code| system.codes[code].edges().as_slice()).collect();
        for edge in 0..edges[0].len() {
            limits::checkpoint();
            let instrs: Vec<&'a Instr> = edges.iter().map(|edges| &edges[edge].instr).collect();
            let Edge { source, target, .. } = edges[0][edge];
            self.instr(body, At { body: index, source, target }, &instrs)?;
            let dead = self.liveness.dead(body.codes[0], target);
            for register in system.codes[body.codes[0]].registers.ids() {
                if assigned(instrs[0]) != Some(register) && !dead.contains(&register) {
                    let before = self.register(index, source, register);
                    self.unite(before, self.register(index, target, register))?;
                }
            }
        }
        Ok(())
    }

    fn instr(&mut self, body: &'a Body, index: At, instrs: &[&'a Instr]) -> Guess<()> {
        let after = |sorts: &Sorts<'_>, r: RegId| sorts.register(index.body, index.target, r);
        match instrs[0] {
            Instr::Assign(r, _) => {
                let exprs = pick(instrs, |instr| match instr {
                    Instr::Assign(_, e) => e,
                    _ => unreachable!("one text"),
                });
                let value = self.expr(body, index, &exprs)?;
                self.unite(after(self, *r), value)?;
            }
            Instr::Assume(_) | Instr::Assert(..) => {
                let exprs = pick(instrs, |instr| match instr {
                    Instr::Assume(e) | Instr::Assert(e, _) => e,
                    _ => unreachable!("one text"),
                });
                self.expr(body, index, &exprs)?;
            }
            Instr::Load(r, _) => {
                for cell in self.address(body, index, instrs)? {
                    self.unite(after(self, *r), cell.0)?;
                }
            }
            Instr::Store(..) => {
                let exprs = pick(instrs, |instr| match instr {
                    Instr::Store(_, e) => e,
                    _ => unreachable!("one text"),
                });
                let value = self.expr(body, index, &exprs)?;
                for cell in self.address(body, index, instrs)? {
                    self.unite(value, cell.0)?;
                }
            }
            Instr::Locked { rmw, result, operands, .. } => {
                let cells = self.address(body, index, instrs)?;
                for operand in 0..operands.len() {
                    let exprs = pick(instrs, |instr| match instr {
                        Instr::Locked { operands, .. } => &operands[operand],
                        _ => unreachable!("one text"),
                    });
                    let value = self.expr(body, index, &exprs)?;
                    if matches!(rmw, Rmw::Cas | Rmw::Exchange) {
                        for cell in &cells {
                            self.unite(value, cell.0)?;
                        }
                    }
                }
                for cell in cells.iter().filter(|_| *rmw != Rmw::Cas) {
                    self.unite(after(self, *result), cell.0)?;
                }
            }
            Instr::Nop
            | Instr::Havoc(..)
            | Instr::Fence
            | Instr::StoreFence
            | Instr::AtomicBegin
            | Instr::AtomicEnd => {}
            Instr::Call { .. } | Instr::Return(_) | Instr::Spawn(..) => return Err(Conflict::Never),
        }
        Ok(())
    }

    /// The cells that an instruction may access, in any thread of the body.
    fn address(&mut self, body: &'a Body, index: At, instrs: &[&'a Instr]) -> Guess<Vec<CellId>> {
        let addresses = pick(instrs, |instr| match instr {
            Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. } => address,
            _ => unreachable!("these access memory"),
        });
        match addresses[0] {
            Address::Cell(_) => {
                let cells: Vec<CellId> = addresses.iter().map(|address| base(address)).collect();
                self.cells(body, &cells)?;
            }
            Address::Element { base: array, len, .. } => {
                let bases: Vec<CellId> = addresses.iter().map(|address| base(address)).collect();
                let value = self.expr(body, index, &pick(&addresses, |address| inner(address)))?;
                if bases.iter().all(|other| other == array) {
                    self.accesses.push((CellAccess::Element { base: *array, len: *len }, value));
                } else {
                    for offset in 0..*len {
                        let cells: Vec<CellId> = bases.iter().map(|array| CellId(array.0 + offset)).collect();
                        self.cells(body, &cells)?;
                    }
                }
            }
            Address::Pointer(_) => {
                let value = self.expr(body, index, &pick(&addresses, |address| inner(address)))?;
                self.accesses.push((CellAccess::Pointer, value));
            }
        }
        let mut all = Vec::new();
        for (address, &code) in addresses.iter().zip(&body.codes) {
            all.extend(self.pointers.cells(self.system, code, address).ok_or(Conflict::Never)?);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    fn expr(&mut self, body: &'a Body, index: At, exprs: &[&'a Expr]) -> Guess<Var> {
        let var = match exprs[0] {
            Expr::Reg(register) => self.register(index.body, index.source, *register),
            Expr::Const(_) => {
                let var = self.fresh();
                let values = exprs.iter().map(|e| match e {
                    Expr::Const(value) => *value,
                    _ => unreachable!("one text"),
                });
                self.constants(body, var, values.collect())?;
                var
            }
            Expr::Unary(op, a) => {
                let operands = pick(exprs, |e| operand(e, 0));
                let left = self.expr(body, index, &operands)?;
                let result = self.fresh();
                if *op != UnaryOp::Not {
                    let (code, op) = (body.codes[0], Operator::Unary(*op));
                    let left = (left, &**a);
                    self.operations.push(Operation { code, op, left, right: None, result });
                }
                result
            }
            Expr::Binary(op, a, b) => {
                let left = self.expr(body, index, &pick(exprs, |e| operand(e, 0)))?;
                let right = self.expr(body, index, &pick(exprs, |e| operand(e, 1)))?;
                let result = self.fresh();
                match op {
                    BinaryOp::Eq | BinaryOp::Ne => _ = self.unite(left, right)?,
                    op if is_truth(*op) => {}
                    op => {
                        let (code, op) = (body.codes[0], Operator::Binary(*op));
                        let (left, right) = ((left, &**a), Some((right, &**b)));
                        self.operations.push(Operation { code, op, left, right, result });
                    }
                }
                result
            }
        };
        self.nodes.insert(std::ptr::from_ref(exprs[0]), var);
        Ok(var)
    }

    /// Makes new families from old ones. Returns whether there were new ones.
    fn propagate(&mut self) -> Guess<bool> {
        let mut changed = false;
        for index in 0..self.operations.len() {
            limits::checkpoint();
            for (block, values) in self.results(index)? {
                changed |= self.vary(self.operations[index].result, block, values)?;
            }
        }
        for index in 0..self.accesses.len() {
            let (place, var) = &self.accesses[index];
            let families = self.kinds[self.find(*var) as usize].families.clone();
            let cell = |value: Value| match place {
                CellAccess::Element { base, len } => {
                    u32::try_from(value).ok().filter(|i| i < len).map(|i| CellId(base.0 + i))
                }
                CellAccess::Pointer => self.system.cell_at(value),
            };
            let mut found = Vec::new();
            for Family { block, items } in families {
                let cells: Vec<Option<CellId>> = items.iter().map(|&value| cell(value)).collect();
                if cells.iter().any(Option::is_some) {
                    let cells: Option<Vec<CellId>> = cells.into_iter().collect();
                    found.push((block, cells.ok_or(Conflict::Without(block))?));
                }
            }
            for (block, cells) in found {
                changed |= self.vary_cells(block, &cells)?;
            }
        }
        Ok(changed)
    }

    /// The families that an operator makes.
    fn results(&self, index: usize) -> Guess<Vec<(usize, Vec<Value>)>> {
        let Operation { code, op, left, right, .. } = &self.operations[index];
        let kind = |var: Var| &self.kinds[self.find(var) as usize];
        let mut found = Vec::new();
        let mut add = |block: usize, values: Vec<Result<Value, Fault>>| {
            if values.iter().any(Result::is_ok) {
                let values: Result<Vec<Value>, Fault> = values.into_iter().collect();
                found.push((block, values.map_err(|_| Conflict::Without(block))?));
            }
            Ok::<(), Conflict>(())
        };
        let Some(right) = right else {
            for Family { block, items } in &kind(left.0).families {
                add(*block, items.iter().map(|&value| op.apply(value, 0)).collect())?;
            }
            return Ok(found);
        };
        // The values of an operand that no permutation moves.
        let still = |(var, e): (Var, &Expr), block: usize| {
            let moved = |value: &Value| kind(var).families.iter().any(|family| family.items.contains(value));
            let values = self.pointers.values(*code, e).ok_or(Conflict::Without(block))?;
            Ok::<_, Conflict>(values.into_iter().filter(|value| !moved(value)).collect::<Vec<_>>())
        };
        for Family { block, items } in &kind(left.0).families {
            for other in still(*right, *block)? {
                add(*block, items.iter().map(|&value| op.apply(value, other)).collect())?;
            }
            for family in kind(right.0).families.iter().filter(|family| family.block == *block) {
                let pairs = items.iter().zip(&family.items);
                add(*block, pairs.map(|(&a, &b)| op.apply(a, b)).collect())?;
            }
        }
        for Family { block, items } in &kind(right.0).families {
            for other in still(*left, *block)? {
                add(*block, items.iter().map(|&value| op.apply(other, value)).collect())?;
            }
        }
        Ok(found)
    }
}

/// Whether an operator only says yes or no.
pub(super) fn is_truth(op: BinaryOp) -> bool {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or, WordLe, WordLt};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or | WordLt | WordLe)
}

fn all_different<T: PartialEq>(block: usize, items: &[T]) -> Guess<()> {
    let first = |item: &T| items.iter().position(|other| other == item).expect("it is there");
    let labels: Vec<usize> = items.iter().map(first).collect();
    if labels.iter().enumerate().all(|(index, &label)| index == label) {
        return Ok(());
    }
    Err(Conflict::Split { block, labels })
}

fn pick<'t, T: ?Sized, U: ?Sized>(all: &[&'t T], part: impl Fn(&'t T) -> &'t U) -> Vec<&'t U> {
    all.iter().map(|one| part(one)).collect()
}

/// An operand of an expression that has one.
pub(super) fn operand(e: &Expr, index: usize) -> &Expr {
    match (e, index) {
        (Expr::Unary(_, a) | Expr::Binary(_, a, _), 0) => a,
        (Expr::Binary(_, _, b), 1) => b,
        _ => unreachable!("one text"),
    }
}

fn base(address: &Address) -> CellId {
    match address {
        Address::Cell(cell) | Address::Element { base: cell, .. } => *cell,
        Address::Pointer(_) => unreachable!("one text"),
    }
}

fn inner(address: &Address) -> &Expr {
    match address {
        Address::Element { index: e, .. } | Address::Pointer(e) => e,
        Address::Cell(_) => unreachable!("one text"),
    }
}
