//! The ranges of cells, registers and results. They show how wide a variable of the other language must be,
//! and which checks are not needed.
//!
//! *Guarantee.* Every value that a cell, register or result ever holds under SC is in its range. The range of
//! a declared domain is never left, since a value outside faults or blocks.
//!
//! *How.* The least fixpoint of the assignments of all code, without regard to control flow. A bound that
//! keeps growing is moved to the next of a few thresholds.
//!
//! *Cost.* A few passes over all edges.

use palisade_base::{Id, IdVec, limits};
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, CellId, CodeId, Expr, Instr, Outside, RegId, Rmw, System, Type, UnaryOp,
};

/// A range of values, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub lo: i128,
    pub hi: i128,
}

/// All 64-bit integers.
const ALL: Range = Range { lo: Value::MIN as i128, hi: Value::MAX as i128 };
const BIT: Range = Range { lo: 0, hi: 1 };

/// Bounds that keep growing are moved to these values.
const THRESHOLDS: [i128; 9] = [0, 1, 15, 127, 255, 0x7fff, 0xffff, i32::MAX as i128, ALL.hi];

/// The number of passes before bounds are moved to thresholds.
const EXACT_PASSES: usize = 8;

impl Range {
    pub fn of(value: Value) -> Range {
        Range { lo: value.into(), hi: value.into() }
    }

    /// Whether all of it is between these bounds, both included.
    pub fn within(self, lo: i128, hi: i128) -> bool {
        lo <= self.lo && self.hi <= hi
    }

    /// Whether 32 bits are enough.
    pub fn fits_int(self) -> bool {
        self.within(i32::MIN.into(), i32::MAX.into())
    }

    /// The part of it that fits into 32 bits.
    pub fn as_int(self) -> Range {
        let (lo, hi) = (i32::MIN.into(), i32::MAX.into());
        Range { lo: self.lo.clamp(lo, hi), hi: self.hi.clamp(lo, hi) }
    }

    fn join(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The values that those of the range become in a type; `None` if it accepts none of them.
    fn clip(self, ty: Type) -> Option<Range> {
        let (lo, hi) = ty.domain.bounds().unwrap_or((Value::MIN, Value::MAX));
        if ty.outside == Outside::Wrap && !self.within(lo.into(), hi.into()) {
            return Some(Range { lo: lo.into(), hi: hi.into() });
        }
        let clipped = Range { lo: self.lo.max(lo.into()), hi: self.hi.min(hi.into()) };
        (clipped.lo <= clipped.hi).then_some(clipped)
    }
}

/// The ranges of a system.
#[derive(Debug)]
pub(crate) struct Ranges {
    pub cells: IdVec<CellId, Range>,
    /// By code. The ranges of private variables are those of the first code.
    pub registers: IdVec<CodeId, IdVec<RegId, Range>>,
    /// How many of the registers are private variables, which all codes share.
    pub privates: usize,
    /// The results of the procedures.
    pub results: IdVec<CodeId, Range>,
}

impl Ranges {
    pub fn new(system: &System) -> Ranges {
        let start = |cell: &palisade_program::running::Cell| match (cell.init, cell.ty.domain.bounds()) {
            (Some(value), _) => Range::of(value),
            (None, Some((lo, hi))) => Range { lo: lo.into(), hi: hi.into() },
            (None, None) => ALL,
        };
        let mut ranges = Ranges {
            cells: system.cells.iter().map(start).collect(),
            registers: system
                .codes
                .iter()
                .map(|code| code.registers.iter().map(|_| Range::of(0)).collect())
                .collect(),
            privates: system.privates,
            results: system.codes.iter().map(|_| Range::of(0)).collect(),
        };
        let mut pass = 0;
        while ranges.pass(system, pass > EXACT_PASSES) {
            pass += 1;
        }
        ranges
    }

    /// One pass over all edges. Returns whether anything grew.
    fn pass(&mut self, system: &System, widen: bool) -> bool {
        let mut grown = false;
        for (id, code) in system.codes.iter_enumerated() {
            for edge in code.edges() {
                limits::checkpoint();
                grown |= self.edge(system, id, &edge.instr, widen);
            }
        }
        grown
    }

    fn edge(&mut self, system: &System, id: CodeId, instr: &Instr, widen: bool) -> bool {
        let code = &system.codes[id];
        match instr {
            Instr::Assign(register, e) => {
                let value = self.expr(id, e);
                self.register(system, id, *register, value, widen)
            }
            Instr::Havoc(register, lo, hi) => {
                let value = Range { lo: (*lo).into(), hi: (*hi).into() };
                self.register(system, id, *register, value, widen)
            }
            Instr::Load(register, address) => {
                let value = self.read(id, address);
                self.register(system, id, *register, value, widen)
            }
            Instr::Store(address, e) => {
                let value = self.expr(id, e);
                self.write(system, id, address, value, widen)
            }
            Instr::Locked { rmw, result, address, operands } => {
                let old = self.read(id, address);
                let new = match (rmw, self.locked(id, instr)) {
                    (_, Some(computed)) => saturate(computed.lo, computed.hi),
                    (Rmw::Cas, None) => self.expr(id, &operands[1]),
                    (_, None) => self.expr(id, &operands[0]),
                };
                let answer = if *rmw == Rmw::Cas { BIT } else { old };
                self.register(system, id, *result, answer, widen)
                    | self.write(system, id, address, new, widen)
            }
            Instr::Call { code: callee, args, result } => {
                let mut grown = false;
                for (i, arg) in args.iter().enumerate() {
                    let value = self.expr(id, arg);
                    grown |=
                        self.register(system, *callee, RegId::from_index(self.privates + i), value, widen);
                }
                if let Some(register) = result {
                    grown |= self.register(system, id, *register, self.results[*callee], widen);
                }
                grown
            }
            Instr::Return(Some(e)) => {
                let value = self.expr(id, e);
                match code.result.map_or(Some(value), |ty| value.clip(ty)) {
                    Some(value) => grow(&mut self.results[id], value, widen),
                    None => false,
                }
            }
            _ => false,
        }
    }

    /// The result of a locked instruction's operation, before it is known whether it fits into 64 bits;
    /// `None` if there is no operation.
    pub fn locked(&self, code: CodeId, instr: &Instr) -> Option<Range> {
        let Instr::Locked { rmw, address, operands, .. } = instr else { return None };
        let op = match rmw {
            Rmw::Cas | Rmw::Exchange => return None,
            Rmw::FetchAdd => BinaryOp::Add,
            Rmw::FetchSub => BinaryOp::Sub,
            Rmw::FetchAnd => BinaryOp::BitAnd,
            Rmw::FetchOr => BinaryOp::BitOr,
            Rmw::FetchXor => BinaryOp::BitXor,
        };
        Some(binary_exact(op, self.read(code, address), self.expr(code, &operands[0])))
    }

    fn register(
        &mut self,
        system: &System,
        code: CodeId,
        register: RegId,
        value: Range,
        widen: bool,
    ) -> bool {
        let ty = system.codes[code].registers[register].ty;
        let home = self.home(code, register);
        value.clip(ty).is_some_and(|value| grow(&mut self.registers[home][register], value, widen))
    }

    fn write(&mut self, system: &System, code: CodeId, address: &Address, value: Range, widen: bool) -> bool {
        let mut grown = false;
        for cell in self.cells_of(code, address) {
            limits::checkpoint();
            if let Some(value) = value.clip(system.cells[cell].ty) {
                grown |= grow(&mut self.cells[cell], value, widen);
            }
        }
        grown
    }

    /// The cells that an address may refer to.
    fn cells_of(&self, code: CodeId, address: &Address) -> Vec<CellId> {
        let cells = |from: i128, to: i128| (from..=to).map(|i| CellId::from_index(i as usize)).collect();
        match address {
            Address::Cell(cell) => vec![*cell],
            Address::Element { base, len, index } => {
                let index = self.expr(code, index);
                let base = i128::from(base.0);
                cells(base + index.lo.max(0), base + index.hi.min(i128::from(*len) - 1))
            }
            Address::Pointer(pointer) => {
                let pointer = self.expr(code, pointer);
                cells(pointer.lo.max(1) - 1, pointer.hi.min(self.cells.len() as i128) - 1)
            }
        }
    }

    /// The range of a load from an address; 0 if it always faults.
    pub fn read(&self, code: CodeId, address: &Address) -> Range {
        let cells = self.cells_of(code, address);
        cells.iter().map(|cell| self.cells[*cell]).reduce(Range::join).unwrap_or(Range::of(0))
    }

    /// Whether evaluating an expression, as far as it does not fault, needs at most 32 bits.
    pub fn stays_int(&self, code: CodeId, e: &Expr) -> bool {
        match e {
            Expr::Const(value) => Range::of(*value).fits_int(),
            Expr::Reg(register) => self.register_range(code, *register).fits_int(),
            Expr::Unary(op, a) => self.stays_int(code, a) && unary_exact(*op, self.expr(code, a)).fits_int(),
            Expr::Binary(op, a, b) => {
                let (left, right) = (self.expr(code, a), self.expr(code, b));
                let shifts = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
                self.stays_int(code, a)
                    && self.stays_int(code, b)
                    && binary_exact(*op, left, right).fits_int()
                    && (!shifts || right.within(0, 30))
            }
        }
    }

    /// The code that stores the range of a register.
    fn home(&self, code: CodeId, register: RegId) -> CodeId {
        if register.index() < self.privates { CodeId(0) } else { code }
    }

    /// The range of a register.
    pub fn register_range(&self, code: CodeId, register: RegId) -> Range {
        self.registers[self.home(code, register)][register]
    }

    /// The range of an expression, where it does not fault.
    pub fn expr(&self, code: CodeId, e: &Expr) -> Range {
        match e {
            Expr::Const(value) => Range::of(*value),
            Expr::Reg(register) => self.register_range(code, *register),
            Expr::Unary(op, a) => unary(*op, self.expr(code, a)),
            Expr::Binary(op, a, b) => binary(*op, self.expr(code, a), self.expr(code, b)),
        }
    }
}

/// Extends a range by another. Returns whether it grew.
fn grow(range: &mut Range, value: Range, widen: bool) -> bool {
    let mut joined = range.join(value);
    if joined == *range {
        return false;
    }
    if widen {
        let up = |bound: i128| THRESHOLDS.into_iter().find(|t| *t >= bound).unwrap_or(ALL.hi);
        if joined.hi > range.hi {
            joined.hi = up(joined.hi);
        }
        if joined.lo < range.lo {
            joined.lo = (-up(-joined.lo) - 1).max(ALL.lo);
        }
    }
    *range = joined;
    true
}

/// The values that fit into 64 bits. A result outside is a fault and gives no value.
fn saturate(lo: i128, hi: i128) -> Range {
    Range { lo: lo.clamp(ALL.lo, ALL.hi), hi: hi.clamp(ALL.lo, ALL.hi) }
}

/// The result of a unary operator, before it is known whether it fits into 64 bits.
pub(crate) fn unary_exact(op: UnaryOp, a: Range) -> Range {
    match op {
        UnaryOp::Neg => Range { lo: -a.hi, hi: -a.lo },
        UnaryOp::Not => BIT,
        UnaryOp::BitNot => Range { lo: !a.hi, hi: !a.lo },
    }
}

fn unary(op: UnaryOp, a: Range) -> Range {
    let exact = unary_exact(op, a);
    saturate(exact.lo, exact.hi)
}

/// The result of a binary operator, before it is known whether it fits into 64 bits.
pub(crate) fn binary_exact(op: BinaryOp, a: Range, b: Range) -> Range {
    let corners = |f: &dyn Fn(i128, i128) -> i128| {
        let all = [f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)];
        Range { lo: *all.iter().min().expect("four"), hi: *all.iter().max().expect("four") }
    };
    match op {
        BinaryOp::Add => Range { lo: a.lo + b.lo, hi: a.hi + b.hi },
        BinaryOp::Sub => Range { lo: a.lo - b.hi, hi: a.hi - b.lo },
        BinaryOp::Mul => corners(&|x, y| x * y),
        BinaryOp::Div => {
            // The quotient is at most as large as the dividend, with any sign that the operands allow.
            let most = a.lo.abs().max(a.hi.abs());
            let negative = (a.lo < 0 && b.hi > 0) || (a.hi > 0 && b.lo < 0);
            let positive = (a.hi > 0 && b.hi > 0) || (a.lo < 0 && b.lo < 0);
            Range { lo: if negative { -most } else { 0 }, hi: if positive { most } else { 0 } }
        }
        BinaryOp::Rem => {
            let most = (b.lo.abs().max(b.hi.abs()) - 1).max(0);
            Range {
                lo: if a.lo < 0 { (-most).max(a.lo) } else { 0 },
                hi: if a.hi > 0 { most.min(a.hi) } else { 0 },
            }
        }
        BinaryOp::BitAnd if a.lo >= 0 || b.lo >= 0 => {
            let most = |r: Range| if r.lo >= 0 { r.hi } else { ALL.hi };
            Range { lo: 0, hi: most(a).min(most(b)) }
        }
        BinaryOp::BitOr | BinaryOp::BitXor if a.lo >= 0 && b.lo >= 0 => {
            let bits = 128 - (a.hi | b.hi).leading_zeros();
            Range { lo: 0, hi: (1 << bits) - 1 }
        }
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
            let most =
                [a.lo, a.hi, b.lo, b.hi].into_iter().map(|x| if x < 0 { !x } else { x }).max().unwrap_or(0);
            let bits = 128 - most.leading_zeros();
            Range { lo: -(1 << bits), hi: (1 << bits) - 1 }
        }
        BinaryOp::Shl => {
            let by = |y: i128| y.clamp(0, 63);
            corners(&|x, y| x << by(y))
        }
        BinaryOp::Shr => {
            let by = |y: i128| y.clamp(0, 63);
            corners(&|x, y| x >> by(y))
        }
        _ => BIT,
    }
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Range {
    let exact = binary_exact(op, a, b);
    saturate(exact.lo, exact.hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_program::running;

    /// Every result that does not fault is in the computed range.
    #[test]
    fn ranges_contain_all_results() {
        let bounds = [-9i64, -3, -1, 0, 1, 2, 5, 8];
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::BitAnd,
            BinaryOp::BitOr,
            BinaryOp::BitXor,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::Lt,
            BinaryOp::And,
        ];
        let pairs: Vec<(i64, i64)> = bounds
            .iter()
            .flat_map(|&lo| bounds.iter().filter(move |&&hi| lo <= hi).map(move |&hi| (lo, hi)))
            .collect();
        for op in ops {
            for &(alo, ahi) in &pairs {
                for &(blo, bhi) in &pairs {
                    let range = |lo: i64, hi: i64| Range { lo: lo.into(), hi: hi.into() };
                    let result = binary(op, range(alo, ahi), range(blo, bhi));
                    for a in alo..=ahi {
                        for b in blo..=bhi {
                            if let Ok(value) = running::binary(op, a, b) {
                                assert!(
                                    result.lo <= value.into() && i128::from(value) <= result.hi,
                                    "{a} {op:?} {b} = {value} is not in {result:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
