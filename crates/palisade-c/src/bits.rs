//! Where the behaviour of a program depends on the numeric values of addresses.
//!
//! *Problem.* Objects have fixed addresses here. A program that looks at single bits of an address, or at the order of
//! addresses of different objects, is judged for this layout only, and the answer has to say so.
//!
//! *How.* A points-to analysis of the finished code, over all threads, without regard to the order of steps. Every
//! value is described by an [`AbstractValue`]. Everything that gives the same result in any layout is allowed:
//! - adding to an address, and differences and comparisons of addresses in the same object;
//! - whether two addresses are equal, and comparisons with numbers that no object has as its address;
//! - the bits below the alignment of the object, and the upper 16 bits: setting, clearing and reading tags there;
//! - shifting an address up by at most 16 bits, and down again.
//!
//! Everything else is reported with its place, at the step that computes it.
//!
//! *Guarantee.* If no place is reported, no run depends on the layout, apart from pointers that leave their object.
//! Places may be reported whose results do not matter.

use crate::expr::Expr;
use crate::flat::{Access, Code, End, ObjectId, RegId, Step, StepKind};
use crate::layout::Layout;
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP, Memory};
use crate::threads::ThreadCode;
use palisade_base::Span;
use palisade_program::written::{BinaryOp, Check, Rmw};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses are below this bit.
const ADDRESS_BITS: u32 = 47;

/// No object is below this address.
const FIRST: i64 = 4096;

/// How far an address may be shifted up.
const MAX_SHIFT: u32 = 16;

/// At most this many offsets into one object are distinguished.
const MAX_OFFSETS: usize = 32;

/// What a value may be.
#[derive(Clone, PartialEq, Eq, Debug)]
enum AbstractValue {
    /// The same in every layout.
    Number,
    /// That, or an address, shifted up by some bits, with tags.
    Address { targets: Targets, shift: u32 },
    /// The lowest bits of an address: those below this one are the same in every layout.
    Low(u32),
    /// Computed from an address in a way that depends on the layout. This has been reported.
    Bits,
}

/// The places that an address may point to: objects, with the offsets, or without any if they are not known.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Targets {
    Known(BTreeMap<ObjectId, Option<BTreeSet<i64>>>),
    /// Everything whose address is kept somewhere.
    Any,
}

/// The places of steps whose results depend on the layout, in increasing order.
pub(crate) fn uses_of_bits(threads: &[ThreadCode], layout: &Layout, memory: &Memory<'_>) -> Vec<Span> {
    let mut analysis = Analysis {
        layout,
        memory,
        cells: layout.cells.iter().map(|_| AbstractValue::Number).collect(),
        registers: threads
            .iter()
            .map(|thread| vec![AbstractValue::Number; thread.code.registers.len()])
            .collect(),
        anywhere: FxHashMap::default(),
        changed: false,
        found: BTreeSet::new(),
    };
    for (index, cell) in layout.cells.iter().enumerate() {
        let leaves = &memory.object(cell.object).leaves;
        let leaf = leaves.iter().find(|leaf| leaf.offset == cell.offset && leaf.size == cell.size);
        if let Some(init) = leaf.and_then(|leaf| leaf.init.as_ref()) {
            analysis.cells[index] = analysis.constant(init);
        }
    }
    loop {
        analysis.changed = false;
        analysis.found.clear();
        for (index, thread) in threads.iter().enumerate() {
            analysis.thread(index, &thread.code);
        }
        if !analysis.changed {
            return analysis.found.into_iter().collect();
        }
    }
}

struct Analysis<'a> {
    layout: &'a Layout,
    memory: &'a Memory<'a>,
    /// What the cells may hold.
    cells: Vec<AbstractValue>,
    /// What the registers of each thread may hold.
    registers: Vec<Vec<AbstractValue>>,
    /// What is stored through pointers that may point anywhere, by size.
    anywhere: FxHashMap<u32, AbstractValue>,
    changed: bool,
    found: BTreeSet<Span>,
}

/// Where an expression is evaluated.
struct At<'a> {
    thread: usize,
    code: &'a Code,
    span: Span,
}

impl Analysis<'_> {
    fn thread(&mut self, thread: usize, code: &Code) {
        for id in code.reachable() {
            let block = code.block(id);
            block.steps.iter().for_each(|step| self.step(thread, code, step));
            if let End::Branch(condition, ..) = &block.end {
                self.value(condition, &At { thread, code, span: block.end_span });
            }
        }
    }

    fn step(&mut self, thread: usize, code: &Code, step: &Step) {
        let at = &At { thread, code, span: step.span };
        match &step.kind {
            StepKind::Assign(to, e) => {
                let kind = self.value(e, at);
                self.assign(thread, *to, kind);
            }
            StepKind::Load { to, from, .. } => {
                let kind = self.load(from, at);
                self.assign(thread, *to, kind);
            }
            StepKind::Store { to, value } => {
                let kind = self.value(value, at);
                self.store(to, &kind, at);
            }
            StepKind::Locked { rmw, old, at: access, operand } => {
                let (before, operand_value) = (self.load(access, at), self.value(operand, at));
                let op = match rmw {
                    Rmw::FetchAdd => Some(BinaryOp::WordAdd),
                    Rmw::FetchSub => Some(BinaryOp::WordSub),
                    Rmw::FetchAnd => Some(BinaryOp::BitAnd),
                    Rmw::FetchOr => Some(BinaryOp::BitOr),
                    Rmw::FetchXor => Some(BinaryOp::BitXor),
                    _ => None,
                };
                let after = match op {
                    Some(op) => {
                        let before = (before.clone(), &Expr::Reg(*old));
                        self.binary(op, before, (operand_value, operand), at)
                    }
                    None => operand_value,
                };
                self.store(access, &after, at);
                self.assign(thread, *old, before);
            }
            StepKind::Cas { old, done: _, at: access, expected, new } => {
                let before = self.load(access, at);
                self.exchange(access, before.clone(), expected, new, at);
                if let Some(old) = old {
                    self.assign(thread, *old, before);
                }
            }
            StepKind::AwaitCas { at: access, expected, new } => {
                let before = self.load(access, at);
                self.exchange(access, before, expected, new, at);
            }
            StepKind::AwaitLoad { temporary, from, condition } => {
                let kind = self.load(from, at);
                self.assign(thread, *temporary, kind);
                self.value(condition, at);
            }
            StepKind::Atomic(steps) => steps.iter().for_each(|step| self.step(thread, code, step)),
            StepKind::If(condition, then, otherwise) => {
                self.value(condition, at);
                then.iter().chain(otherwise).for_each(|step| self.step(thread, code, step));
            }
            // Whether pieces of memory overlap is the same in every layout.
            StepKind::Assert(_, Check::Disjoint) => {}
            other => other.for_each_expr(&mut |e| _ = self.value(e, at)),
        }
    }

    fn exchange(&mut self, access: &Access, before: AbstractValue, expected: &Expr, new: &Expr, at: &At<'_>) {
        let expected_value = self.value(expected, at);
        // The value that is there has no expression, but it is not a constant.
        let there = &Expr::Binary(BinaryOp::WordAdd, Box::new(Expr::Int(0)), Box::new(Expr::Int(0)));
        self.binary(BinaryOp::Eq, (before, there), (expected_value, expected), at);
        let kind = self.value(new, at);
        self.store(access, &kind, at);
    }

    fn assign(&mut self, thread: usize, to: RegId, kind: AbstractValue) {
        let known = &mut self.registers[thread][to.0 as usize];
        self.changed |= known.join(&kind);
    }

    /// The cells that an access may touch; `None` for all whose address is kept somewhere.
    fn touched(&mut self, access: &Access, at: &At<'_>) -> Option<Vec<usize>> {
        match self.value(&access.pointer, at) {
            AbstractValue::Address { targets: Targets::Known(targets), shift: 0 } => {
                let mut cells = Vec::new();
                for (object, offsets) in targets {
                    let of_object = self.layout.cells_of(object).iter().copied();
                    let fits = |index: &usize| {
                        let cell = &self.layout.cells[*index];
                        let inside = offsets.as_ref().is_none_or(|offsets| offsets.contains(&cell.offset));
                        cell.size == access.size && inside
                    };
                    cells.extend(of_object.filter(fits));
                }
                Some(cells)
            }
            _ => None,
        }
    }

    fn is_exposed(&self, index: usize, size: u32) -> bool {
        let cell = &self.layout.cells[index];
        cell.size == size && self.layout.is_exposed(cell.object)
    }

    fn load(&mut self, access: &Access, at: &At<'_>) -> AbstractValue {
        let mut kind = AbstractValue::Number;
        let touched = self.touched(access, at);
        let cells = match touched {
            Some(cells) => cells,
            None => (0..self.cells.len()).filter(|&index| self.is_exposed(index, access.size)).collect(),
        };
        for index in cells {
            kind.join(&self.cells[index]);
            if self.is_exposed(index, access.size)
                && let Some(anywhere) = self.anywhere.get(&access.size)
            {
                kind.join(anywhere);
            }
        }
        kind
    }

    fn store(&mut self, access: &Access, kind: &AbstractValue, at: &At<'_>) {
        match self.touched(access, at) {
            Some(cells) => {
                for index in cells {
                    self.changed |= self.cells[index].join(kind);
                }
            }
            None => {
                let known = self.anywhere.entry(access.size).or_insert(AbstractValue::Number);
                self.changed |= known.join(kind);
            }
        }
    }

    fn constant(&self, e: &Expr) -> AbstractValue {
        match e {
            Expr::Address(object, offset) => AbstractValue::Address {
                targets: Targets::Known([(*object, Some([*offset].into()))].into()),
                shift: 0,
            },
            Expr::Int(value) if is_function(*value) => {
                AbstractValue::Address { targets: Targets::Known(BTreeMap::new()), shift: 0 }
            }
            _ => AbstractValue::Number,
        }
    }

    /// The abstract value of an expression.
    fn value(&mut self, e: &Expr, at: &At<'_>) -> AbstractValue {
        match e {
            Expr::Int(_) | Expr::Address(..) => self.constant(e),
            Expr::Reg(register) => self.registers[at.thread][register.0 as usize].clone(),
            Expr::Not(a) => {
                self.value(a, at);
                AbstractValue::Number
            }
            Expr::Wrap(width, a) => match self.value(a, at) {
                AbstractValue::Address { targets, shift } => {
                    let known = self.aligned_bits(&targets) + shift;
                    if *width <= known { AbstractValue::Number } else { AbstractValue::Low(known) }
                }
                AbstractValue::Low(known) if *width <= known => AbstractValue::Number,
                kind => kind,
            },
            Expr::Binary(op, a, b) => {
                let (left, right) = (self.value(a, at), self.value(b, at));
                self.binary(*op, (left, a), (right, b), at)
            }
        }
    }

    /// How many of the lowest bits of addresses are those of the offset.
    fn aligned_bits(&self, targets: &Targets) -> u32 {
        match targets {
            Targets::Known(targets) => {
                let bits = targets.keys().map(|object| self.memory.object(*object).align.trailing_zeros());
                bits.min().unwrap_or(0)
            }
            Targets::Any => 0,
        }
    }

    /// The bits of an address that depend on the layout.
    fn open_bits(&self, targets: &Targets, shift: u32) -> i64 {
        let low = self.aligned_bits(targets);
        ((1i64 << ADDRESS_BITS) - (1i64 << low)) << shift
    }

    fn report(&mut self, at: &At<'_>) -> AbstractValue {
        self.found.insert(at.span);
        AbstractValue::Bits
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: (AbstractValue, &Expr),
        b: (AbstractValue, &Expr),
        at: &At<'_>,
    ) -> AbstractValue {
        use BinaryOp::{BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Ne, WordAdd, WordLe, WordLt, WordSub};
        let commutes = matches!(op, WordAdd | BitAnd | BitOr | BitXor | Eq | Ne);
        let compares = matches!(op, Eq | Ne | Lt | Le | Gt | Ge | WordLt | WordLe);
        match (&a.0, &b.0) {
            (AbstractValue::Number, AbstractValue::Number) => AbstractValue::Number,
            (AbstractValue::Bits, _) | (_, AbstractValue::Bits) => AbstractValue::Bits,
            (AbstractValue::Low(known), AbstractValue::Number) if op == BitAnd => match bounded(b.1, at) {
                Some(bits) if bits <= *known => AbstractValue::Number,
                _ => AbstractValue::Low(*known),
            },
            (AbstractValue::Number, AbstractValue::Low(_)) if op == BitAnd => self.binary(op, b, a, at),
            (AbstractValue::Low(_), _) | (_, AbstractValue::Low(_)) => self.report(at),
            (AbstractValue::Number, AbstractValue::Address { .. }) if commutes => self.binary(op, b, a, at),
            (
                AbstractValue::Address { targets: x, shift: i },
                AbstractValue::Address { targets: y, shift: j },
            ) => {
                let same = i == j && x.one_object().is_some() && x.one_object() == y.one_object();
                let fine = match op {
                    Eq | Ne => i == j,
                    WordSub => same && *i == 0,
                    _ => compares && same,
                };
                if fine { AbstractValue::Number } else { self.report(at) }
            }
            (_, AbstractValue::Address { .. }) if compares => {
                if is_no_address(a.1, at) {
                    AbstractValue::Number
                } else {
                    self.report(at)
                }
            }
            (_, AbstractValue::Address { .. }) => self.report(at),
            (AbstractValue::Address { .. }, _) if compares => {
                if is_no_address(b.1, at) {
                    AbstractValue::Number
                } else {
                    self.report(at)
                }
            }
            (AbstractValue::Address { targets, shift }, _) => {
                let (targets, shift) = (targets.clone(), *shift);
                self.with_number(op, targets, shift, b.1, at)
            }
        }
    }

    /// An operation on an address and a number.
    fn with_number(
        &mut self,
        op: BinaryOp,
        targets: Targets,
        shift: u32,
        by: &Expr,
        at: &At<'_>,
    ) -> AbstractValue {
        let open = self.open_bits(&targets, shift);
        let low = self.aligned_bits(&targets) + shift;
        let constant = by.as_int();
        let same = |targets: Targets| AbstractValue::Address { targets, shift };
        match (op, constant) {
            (BinaryOp::WordAdd | BinaryOp::WordSub, Some(by)) if shift == 0 => {
                let by = if op == BinaryOp::WordAdd { by } else { by.wrapping_neg() };
                let tag = by & ((1 << ADDRESS_BITS) - 1) == 0;
                same(if tag { targets } else { targets.moved(|offset| offset.wrapping_add(by), self.memory) })
            }
            (BinaryOp::WordAdd | BinaryOp::WordSub, None) if shift == 0 => same(targets.anywhere_inside()),
            // A counter below the address.
            (BinaryOp::WordAdd | BinaryOp::WordSub, _)
                if bounded(by, at).is_some_and(|bits| bits <= shift) =>
            {
                same(targets)
            }
            (BinaryOp::BitAnd, Some(mask)) => match mask & open {
                0 => AbstractValue::Number,
                all if all == open && shift == 0 => {
                    same(targets.moved(|offset| offset & (mask | open), self.memory))
                }
                all if all == open => same(targets),
                _ => self.report(at),
            },
            (BinaryOp::BitAnd, None) if bounded(by, at).is_some_and(|bits| bits <= low) => {
                AbstractValue::Number
            }
            (BinaryOp::BitOr | BinaryOp::BitXor, Some(bits)) if bits & open == 0 => {
                let low = bits & ((1 << low) - 1);
                match (shift, op) {
                    (0, BinaryOp::BitOr) => same(targets.moved(|offset| offset | low, self.memory)),
                    (0, _) => same(targets.moved(|offset| offset ^ low, self.memory)),
                    _ => same(targets),
                }
            }
            (BinaryOp::BitOr | BinaryOp::BitXor, None) if bounded(by, at).is_some_and(|bits| bits <= low) => {
                same(if shift == 0 { targets.anywhere_inside() } else { targets })
            }
            (BinaryOp::BitOr | BinaryOp::BitXor, None) if is_above(by, ADDRESS_BITS + shift) => same(targets),
            (BinaryOp::WordShl, Some(by)) if (0..=i64::from(MAX_SHIFT - shift)).contains(&by) => {
                AbstractValue::Address { targets, shift: shift + by as u32 }
            }
            (BinaryOp::Shr | BinaryOp::WordShr, Some(by)) if (0..=i64::from(shift)).contains(&by) => {
                AbstractValue::Address { targets, shift: shift - by as u32 }
            }
            (BinaryOp::Shr | BinaryOp::WordShr, Some(by))
                if (i64::from(ADDRESS_BITS + shift)..64).contains(&by) =>
            {
                AbstractValue::Number
            }
            (BinaryOp::WordRem, Some(by)) if by > 0 && by.count_ones() == 1 && by.trailing_zeros() <= low => {
                AbstractValue::Number
            }
            _ => self.report(at),
        }
    }
}

/// Whether a number is the address of a function.
pub(crate) fn is_function(value: i64) -> bool {
    (FUNCTION_BASE..FUNCTION_BASE + (FUNCTION_STEP << 16)).contains(&value)
}

/// How many bits are enough for the value of an expression, if it is not negative.
fn bounded(e: &Expr, at: &At<'_>) -> Option<u32> {
    let (lo, hi) = e.bounds(&at.code.registers);
    (lo >= 0).then(|| 64 - hi.leading_zeros())
}

/// Whether no object has the value of an expression as its address.
fn is_no_address(e: &Expr, at: &At<'_>) -> bool {
    let (lo, hi) = e.bounds(&at.code.registers);
    let above = 1 << ADDRESS_BITS;
    (lo >= 0 && hi <= FIRST) || hi < 0 || lo >= above
}

/// Whether the bits of a value below this one are 0, by its form.
fn is_above(e: &Expr, bit: u32) -> bool {
    match e {
        Expr::Binary(BinaryOp::WordShl, _, by) => by.as_int().is_some_and(|by| by >= i64::from(bit)),
        Expr::Binary(BinaryOp::BitAnd, _, mask) => {
            mask.as_int().is_some_and(|mask| mask.trailing_zeros() >= bit)
        }
        _ => false,
    }
}

impl AbstractValue {
    /// Whatever one of both may be. Returns whether it changed.
    fn join(&mut self, other: &AbstractValue) -> bool {
        let joined = match (&*self, other) {
            (AbstractValue::Number, kind) | (kind, AbstractValue::Number) => kind.clone(),
            (AbstractValue::Bits, _) | (_, AbstractValue::Bits) => AbstractValue::Bits,
            (AbstractValue::Low(a), AbstractValue::Low(b)) => AbstractValue::Low(*a.min(b)),
            (
                AbstractValue::Address { targets: a, shift: i },
                AbstractValue::Address { targets: b, shift: j },
            ) if i == j => AbstractValue::Address { targets: a.union(b), shift: *i },
            _ => AbstractValue::Low(0),
        };
        let changed = joined != *self;
        *self = joined;
        changed
    }
}

impl Targets {
    fn one_object(&self) -> Option<ObjectId> {
        match self {
            Targets::Known(targets) if targets.len() == 1 => targets.keys().next().copied(),
            _ => None,
        }
    }

    fn union(&self, other: &Targets) -> Targets {
        let (Targets::Known(a), Targets::Known(b)) = (self, other) else { return Targets::Any };
        let mut all = a.clone();
        for (object, offsets) in b {
            let known = all.entry(*object).or_insert_with(|| Some(BTreeSet::new()));
            match (known.as_mut(), offsets) {
                (Some(known), Some(offsets)) => known.extend(offsets),
                _ => *known = None,
            }
            if known.as_ref().is_some_and(|known| known.len() > MAX_OFFSETS) {
                *known = None;
            }
        }
        Targets::Known(all)
    }

    /// The same objects, at other offsets. What leaves its object may come back, by any number.
    fn moved(self, by: impl Fn(i64) -> i64, memory: &Memory<'_>) -> Targets {
        let Targets::Known(mut targets) = self else { return Targets::Any };
        for (object, known) in &mut targets {
            let inside = 0..=memory.object(*object).size;
            let moved = known.take().map(|known| known.into_iter().map(&by).collect::<BTreeSet<i64>>());
            *known = moved.filter(|offsets| offsets.iter().all(|offset| inside.contains(offset)));
        }
        Targets::Known(targets)
    }

    /// The same objects, at any offset.
    fn anywhere_inside(self) -> Targets {
        let Targets::Known(mut targets) = self else { return Targets::Any };
        targets.values_mut().for_each(|offsets| *offsets = None);
        Targets::Known(targets)
    }
}
