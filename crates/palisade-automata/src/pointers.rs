//! Which cells a pointer may point to.
//!
//! *Problem.* A pointer could point anywhere. A search that assumes so has to treat every access through a
//! pointer as an access to all of memory.
//!
//! *Idea.* Points-to analysis in the manner of Andersen (1994), on values instead of names, because pointers are
//! numbers here: for each register and each cell, the set of the values that it may ever hold, without regard to
//! the order of steps. A set that grows beyond [`MAX_VALUES`] becomes "any value".
//!
//! *Guarantee.* The sets are over-approximations under every memory model. They contain the initial values, and
//! they are closed under every instruction: what an instruction may compute from values in the sets of its
//! operands is in the set of its target. A load returns the initial value of its cell or a value that some store
//! wrote to it, whatever buffers do. Steps that cause a fault, and values that a domain rejects, assign nothing.
//!
//! [`counters`] bounds the values of cells that only count. These bounds are assumed, and it is checked that no other
//! instruction may write such a cell. By induction over runs, all sets hold: up to a step that writes the cell in
//! another way, the sets hold, and then there is no such step.
//!
//! *Cost.* Each set changes at most [`MAX_VALUES`] + 1 times.

use crate::counters::counters;
use palisade_base::{Id, IdVec, limits};
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, CellId, Code, CodeId, Expr, Instr, Outside, RegId, Rmw, System, Type, UnaryOp, binary,
    unary,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The largest set that is kept.
const MAX_VALUES: usize = 64;

/// The largest number of pairs of operands that are tried.
const MAX_PAIRS: usize = 1024;

/// The values that something may hold.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Possible {
    /// One of these, in increasing order.
    Few(Vec<Value>),
    Any,
}

impl Possible {
    const NONE: Possible = Possible::Few(Vec::new());

    fn only(value: Value) -> Possible {
        Possible::Few(vec![value])
    }

    fn of(values: impl IntoIterator<Item = Value>) -> Possible {
        let mut all: Vec<Value> = values.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > MAX_VALUES { Possible::Any } else { Possible::Few(all) }
    }

    fn range(lo: Value, hi: Value) -> Possible {
        if hi.abs_diff(lo) < MAX_VALUES as u64 { Possible::Few((lo..=hi).collect()) } else { Possible::Any }
    }

    /// Adds values. Returns whether there were new ones.
    fn add(&mut self, more: &Possible) -> bool {
        let (Possible::Few(mine), Possible::Few(others)) = (&*self, more) else {
            let changed = *self != Possible::Any && *more == Possible::Any;
            if changed {
                *self = Possible::Any;
            }
            return changed;
        };
        if others.iter().all(|value| mine.binary_search(value).is_ok()) {
            return false;
        }
        *self = Possible::of(mine.iter().chain(others).copied());
        true
    }

    /// What these values become when they are assigned to something of a type.
    fn assigned(self, ty: Type) -> Possible {
        match (self, ty.domain.bounds()) {
            (all, None) => all,
            (Possible::Any, Some((lo, hi))) => Possible::range(lo, hi),
            (Possible::Few(values), Some(_)) => Possible::of(values.into_iter().filter_map(|value| {
                let wrapped = (ty.outside == Outside::Wrap).then(|| ty.wrapped(value.into())).flatten();
                wrapped.or(ty.domain.contains(value).then_some(value))
            })),
        }
    }
}

/// Which values registers and cells may hold.
#[derive(Clone, Debug)]
pub struct Pointers {
    /// By code and register. All codes share the private variables; code 0 holds them.
    registers: IdVec<CodeId, Vec<Possible>>,
    results: IdVec<CodeId, Possible>,
    cells: IdVec<CellId, Possible>,
    privates: usize,
    /// Cells that only count, as far as is known.
    counters: FxHashSet<CellId>,
    /// Those that something else may write.
    disturbed: FxHashSet<CellId>,
}

impl Pointers {
    /// Analyses a program, as far as its accesses through pointers need it. Without such accesses, nothing is
    /// known about the values of its registers and cells.
    pub fn new(system: &System) -> Pointers {
        let mut edges = system.codes.iter().flat_map(|code| code.edges().iter());
        if edges.any(|edge| is_pointer(&edge.instr)) {
            Pointers::of_all(system)
        } else {
            Pointers::at_start(system, &FxHashMap::default())
        }
    }

    /// Analyses all registers and cells of a program.
    pub fn of_all(system: &System) -> Pointers {
        let mut counters = counters(system, MAX_VALUES);
        loop {
            let mut pointers = Pointers::at_start(system, &counters);
            while pointers.sweep(system) {}
            if pointers.disturbed.is_empty() {
                return pointers;
            }
            counters.retain(|cell, _| !pointers.disturbed.contains(cell));
        }
    }

    /// The values before the first step, and those of counters.
    fn at_start(system: &System, counters: &FxHashMap<CellId, Vec<Value>>) -> Pointers {
        let registers = |code: &Code| vec![Possible::only(0); code.registers.len()];
        let initial = |cell: &palisade_program::running::Cell| match (cell.init, cell.ty.domain.bounds()) {
            (Some(value), _) => Possible::only(value),
            (None, Some((lo, hi))) => Possible::range(lo, hi),
            (None, None) => Possible::Any,
        };
        Pointers {
            registers: system.codes.iter().map(registers).collect(),
            results: system.codes.iter().map(|_| Possible::only(0)).collect(),
            cells: system
                .cells
                .iter_enumerated()
                .map(|(id, cell)| {
                    counters.get(&id).map_or_else(|| initial(cell), |all| Possible::Few(all.clone()))
                })
                .collect(),
            privates: system.privates,
            counters: counters.keys().copied().collect(),
            disturbed: FxHashSet::default(),
        }
    }

    /// The values that an expression of a code may have; `None` for any value. Only after [`Pointers::of_all`].
    pub fn values(&self, code: CodeId, e: &Expr) -> Option<Vec<Value>> {
        match self.value(code, e) {
            Possible::Few(values) => Some(values),
            Possible::Any => None,
        }
    }

    /// The values that a cell may hold; `None` for any value. Only after [`Pointers::of_all`].
    pub fn held(&self, cell: CellId) -> Option<&[Value]> {
        match &self.cells[cell] {
            Possible::Few(values) => Some(values),
            Possible::Any => None,
        }
    }

    /// The cells that an address of a code may name; `None` for all of memory.
    pub fn cells(&self, system: &System, code: CodeId, address: &Address) -> Option<Vec<CellId>> {
        match address {
            Address::Cell(cell) => Some(vec![*cell]),
            Address::Element { base, len, .. } => {
                Some((0..*len).map(|index| CellId::from_index(base.index() + index as usize)).collect())
            }
            Address::Pointer(pointer) => match self.value(code, pointer) {
                Possible::Few(values) => {
                    Some(values.iter().filter_map(|&value| system.cell_at(value)).collect())
                }
                Possible::Any => None,
            },
        }
    }

    /// Applies every instruction once. Returns whether a set grew.
    fn sweep(&mut self, system: &System) -> bool {
        let mut changed = false;
        for (id, code) in system.codes.iter_enumerated() {
            for edge in code.edges().iter() {
                limits::checkpoint();
                changed |= self.apply(system, id, &edge.instr);
            }
        }
        changed
    }

    fn apply(&mut self, system: &System, code: CodeId, instr: &Instr) -> bool {
        match instr {
            Instr::Assign(register, e) => {
                let value = self.value(code, e);
                self.assign(system, code, *register, value)
            }
            Instr::Havoc(register, lo, hi) => self.assign(system, code, *register, Possible::range(*lo, *hi)),
            Instr::Load(register, address) => {
                let value = self.memory(system, code, address);
                self.assign(system, code, *register, value)
            }
            Instr::Store(address, e) => {
                let value = self.value(code, e);
                self.write(system, code, address, |_, _| value.clone())
            }
            Instr::Locked { rmw, result, address, operands } => {
                let old = self.memory(system, code, address);
                let operands: Vec<Possible> = operands.iter().map(|e| self.value(code, e)).collect();
                let answer = if *rmw == Rmw::Cas { Possible::range(0, 1) } else { old };
                let assigned = self.assign(system, code, *result, answer);
                if matches!(address, Address::Cell(cell) if self.counters.contains(cell)) {
                    return assigned;
                }
                let wrote = self.write(system, code, address, |ty, old| match rmw {
                    Rmw::Cas => operands[1].clone(),
                    Rmw::Exchange => operands[0].clone(),
                    Rmw::FetchAdd => sums(ty, old, &operands[0], 1),
                    Rmw::FetchSub => sums(ty, old, &operands[0], -1),
                    Rmw::FetchAnd => pairs(BinaryOp::BitAnd, old, &operands[0]),
                    Rmw::FetchOr => pairs(BinaryOp::BitOr, old, &operands[0]),
                    Rmw::FetchXor => pairs(BinaryOp::BitXor, old, &operands[0]),
                });
                assigned || wrote
            }
            Instr::Call { code: callee, args, result } => {
                let mut changed = false;
                for (i, arg) in args.iter().enumerate() {
                    let value = self.value(code, arg);
                    changed |= self.assign(system, *callee, RegId::from_index(self.privates + i), value);
                }
                if let Some(result) = result {
                    changed |= self.assign(system, code, *result, self.results[*callee].clone());
                }
                changed
            }
            Instr::Return(Some(e)) => {
                let value = self.value(code, e);
                let value = system.codes[code].result.map_or(value.clone(), |ty| value.assigned(ty));
                self.results[code].add(&value)
            }
            Instr::Nop
            | Instr::Assume(_)
            | Instr::Assert(..)
            | Instr::Fence
            | Instr::StoreFence
            | Instr::AtomicBegin
            | Instr::AtomicEnd
            | Instr::Return(None)
            | Instr::Spawn(..) => false,
        }
    }

    fn register(&mut self, code: CodeId, register: RegId) -> &mut Possible {
        let code = if register.index() < self.privates { CodeId(0) } else { code };
        &mut self.registers[code][register.index()]
    }

    fn assign(&mut self, system: &System, code: CodeId, register: RegId, value: Possible) -> bool {
        let value = value.assigned(system.codes[code].registers[register].ty);
        self.register(code, register).add(&value)
    }

    /// What a load of an address may return.
    fn memory(&self, system: &System, code: CodeId, address: &Address) -> Possible {
        let Some(cells) = self.cells(system, code, address) else { return Possible::Any };
        let mut all = Possible::NONE;
        cells.into_iter().for_each(|cell| _ = all.add(&self.cells[cell]));
        all
    }

    /// Adds what is written to the cells that an address may name, given their type and what they may hold.
    fn write(
        &mut self,
        system: &System,
        code: CodeId,
        address: &Address,
        value: impl Fn(Type, &Possible) -> Possible,
    ) -> bool {
        let cells = self.cells(system, code, address).unwrap_or_else(|| system.cells.ids().collect());
        let mut changed = false;
        for cell in cells {
            if self.counters.contains(&cell) {
                self.disturbed.insert(cell);
            }
            let ty = system.cells[cell].ty;
            let value = value(ty, &self.cells[cell]).assigned(ty);
            changed |= self.cells[cell].add(&value);
        }
        changed
    }

    fn value(&self, code: CodeId, e: &Expr) -> Possible {
        match e {
            Expr::Const(value) => Possible::only(*value),
            Expr::Reg(register) => {
                let code = if register.index() < self.privates { CodeId(0) } else { code };
                self.registers[code][register.index()].clone()
            }
            Expr::Unary(op, a) => match (op, self.value(code, a)) {
                (_, Possible::Few(values)) => {
                    Possible::of(values.into_iter().filter_map(|value| unary(*op, value).ok()))
                }
                (UnaryOp::Not, Possible::Any) => Possible::range(0, 1),
                (UnaryOp::Neg | UnaryOp::BitNot, Possible::Any) => Possible::Any,
            },
            Expr::Binary(op, a, b) => pairs(*op, &self.value(code, a), &self.value(code, b)),
        }
    }
}

/// Whether an instruction accesses memory through a pointer.
fn is_pointer(instr: &Instr) -> bool {
    let (Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. }) = instr else {
        return false;
    };
    matches!(address, Address::Pointer(_))
}

/// The results of an operator for all pairs of operands.
fn pairs(op: BinaryOp, a: &Possible, b: &Possible) -> Possible {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or, WordLe, WordLt};
    match (a, b) {
        (Possible::Few(a), Possible::Few(b)) if a.len() * b.len() <= MAX_PAIRS => {
            let both = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
            // `&&` and `||` do not evaluate the second operand if the first decides.
            let short = a.iter().filter(|&&a| op == And && a == 0 || op == Or && a != 0);
            let short = short.map(|&a| Value::from(a != 0));
            Possible::of(both.filter_map(|(a, b)| binary(op, a, b).ok()).chain(short))
        }
        _ if matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or | WordLt | WordLe) => Possible::range(0, 1),
        _ => Possible::Any,
    }
}

/// What a locked addition (sign 1) or subtraction (sign -1) may write.
fn sums(ty: Type, a: &Possible, b: &Possible, sign: i128) -> Possible {
    match (a, b) {
        (Possible::Few(a), Possible::Few(b)) if a.len() * b.len() <= MAX_PAIRS => {
            let both = a.iter().flat_map(|&a| b.iter().map(move |&b| i128::from(a) + sign * i128::from(b)));
            Possible::of(both.filter_map(|sum| ty.wrapped(sum).or(Value::try_from(sum).ok())))
        }
        _ => Possible::Any,
    }
}
