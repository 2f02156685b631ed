//! Arbitrary values of a wide type, if the assumptions that follow leave few of them.
//!
//! *Problem.* `__VERIFIER_nondet_int()` has 2^32 values, too many to try. Programs often restrict them right away:
//! `__VERIFIER_assume(0 <= n && n < 4)`.
//!
//! *How.* From the place of the choice, all paths are followed as long as nothing happens on them that others, or a
//! check, could notice: assignments, branches and assumptions. Each path has a range for the value, which branches and
//! assumptions narrow. A path on which an assumption fails ends there. The values in the ranges of all other paths are
//! kept.
//!
//! *Guarantee.* A value is left out only if an assumption fails on every path that the thread can take with it, before
//! anything else can be noticed. Ranges may be too large, never too small.

use crate::expr::{Expr, gives_truth, width_bounds};
use crate::flat::{BlockId, Code, End, RegId, StepKind};
use palisade_program::written::BinaryOp;
use rustc_hash::FxHashMap;

/// The maximum number of values that are tried one by one.
pub(crate) const MAX_CHOICES: i64 = 1 << 16;

/// How many steps are followed for one choice.
const MAX_STEPS: usize = 4096;

/// Narrows the wide choices of a thread. Those that stay wide become steps that are refused, if control can reach them.
pub(crate) fn narrow(code: &mut Code) {
    for block in code.reachable() {
        for index in 0..code.block(block).steps.len() {
            let StepKind::Any { to, lo, hi, wide: Some(refusal) } = code.block(block).steps[index].kind
            else {
                continue;
            };
            let mut ways = Ways { code, value: to, found: None, steps: 0 };
            let known = Known { range: (lo, hi), meaning: FxHashMap::default() };
            let kept = ways.follow(block, index + 1, known).map(|()| ways.found);
            code.block_mut(block).steps[index].kind = match kept {
                // Every path fails: there is no run to judge.
                Some(None) => StepKind::Assume(Expr::Int(0)),
                Some(Some((lo, hi))) if hi.checked_sub(lo).is_some_and(|count| count < MAX_CHOICES) => {
                    StepKind::Any { to, lo, hi, wide: None }
                }
                _ => StepKind::Unsupported(refusal),
            };
        }
    }
}

/// What is known on a path.
#[derive(Clone)]
struct Known {
    /// The range of the value.
    range: (i64, i64),
    /// What registers hold that were assigned on the way.
    meaning: FxHashMap<RegId, Expr>,
}

struct Ways<'a> {
    code: &'a Code,
    /// The register of the value.
    value: RegId,
    /// The smallest range with the values of all paths so far.
    found: Option<(i64, i64)>,
    steps: usize,
}

impl Ways<'_> {
    /// Follows all paths from a step. `None` if there are too many.
    fn follow(&mut self, block: BlockId, from: usize, mut known: Known) -> Option<()> {
        let code = self.code;
        for step in &code.block(block).steps[from..] {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            match &step.kind {
                StepKind::Assign(to, e) if *to != self.value => {
                    let e = self.resolved(e, &known);
                    known.forget(*to);
                    known.meaning.insert(*to, e);
                }
                StepKind::Assume(condition) => {
                    let condition = self.resolved(condition, &known);
                    match self.narrowed(&condition, true, known.range) {
                        Some(range) => known.range = range,
                        None => return Some(()),
                    }
                }
                StepKind::Initialised(..)
                | StepKind::Enter(_)
                | StepKind::Redeclare(_)
                | StepKind::Leave(_) => {}
                StepKind::Uninitialise(register) if *register != self.value => known.forget(*register),
                _ => return self.keep(known.range),
            }
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        match &code.block(block).end {
            End::Goto(to) => self.follow(*to, 0, known),
            End::Branch(condition, yes, no) => {
                let condition = self.resolved(condition, &known);
                for (truth, to) in [(true, *yes), (false, *no)] {
                    if let Some(range) = self.narrowed(&condition, truth, known.range) {
                        self.follow(to, 0, Known { range, ..known.clone() })?;
                    }
                }
                Some(())
            }
            End::Choose(_) | End::Stop | End::Over => self.keep(known.range),
        }
    }

    /// Keeps the values of a range.
    fn keep(&mut self, (lo, hi): (i64, i64)) -> Option<()> {
        self.found = Some(self.found.map_or((lo, hi), |(least, most)| (least.min(lo), most.max(hi))));
        Some(())
    }

    /// An expression in terms of registers that were not assigned on the way.
    fn resolved(&self, e: &Expr, known: &Known) -> Expr {
        e.substitute(&|register| known.meaning.get(&register).cloned(), &self.code.registers)
    }

    /// The values of a range for which a condition may be true, or false. `None` if there are none.
    fn narrowed(&self, condition: &Expr, truth: bool, range: (i64, i64)) -> Option<(i64, i64)> {
        match condition {
            Expr::Int(value) => ((*value != 0) == truth).then_some(range),
            Expr::Not(a) => self.narrowed(a, !truth, range),
            Expr::Binary(BinaryOp::And, a, b) if truth => {
                self.narrowed(b, true, self.narrowed(a, true, range)?)
            }
            Expr::Binary(BinaryOp::Or, a, b) if !truth => {
                self.narrowed(b, false, self.narrowed(a, false, range)?)
            }
            Expr::Binary(BinaryOp::Ne, a, b) if **b == Expr::Int(0) && is_truth(a) => {
                self.narrowed(a, truth, range)
            }
            Expr::Binary(BinaryOp::Eq, a, b) if **b == Expr::Int(0) && is_truth(a) => {
                self.narrowed(a, !truth, range)
            }
            Expr::Binary(op, a, b) => match (&**a, &**b) {
                (a, Expr::Int(c)) if self.is_value(a) => compared(*op, *c, truth, range),
                (Expr::Int(c), b) if self.is_value(b) => match (op, flipped(*op)) {
                    (_, Some(op)) => compared(op, *c, truth, range),
                    (BinaryOp::WordLt, None) => compared(BinaryOp::WordLe, *c, !truth, range),
                    (BinaryOp::WordLe, None) => compared(BinaryOp::WordLt, *c, !truth, range),
                    _ => Some(range),
                },
                _ => Some(range),
            },
            _ => Some(range),
        }
    }

    /// Whether an expression is the value itself.
    fn is_value(&self, e: &Expr) -> bool {
        match e {
            Expr::Reg(register) => *register == self.value,
            // The value fits in its width.
            Expr::Wrap(width, a) => {
                let (lo, hi) = width_bounds(*width);
                let (least, most) = width_bounds(self.code.width(self.value));
                self.is_value(a) && lo <= least && most <= hi
            }
            _ => false,
        }
    }
}

impl Known {
    /// A register gets another value.
    fn forget(&mut self, register: RegId) {
        self.meaning.remove(&register);
        self.meaning.retain(|_, e| {
            let mut mentions = false;
            e.for_each_register(&mut |other| mentions |= other == register);
            !mentions
        });
    }
}

/// Whether an expression is 0 or 1.
fn is_truth(e: &Expr) -> bool {
    match e {
        Expr::Not(_) => true,
        Expr::Binary(op, ..) => gives_truth(*op),
        _ => false,
    }
}

/// The comparison with its sides exchanged, if it is followed.
fn flipped(op: BinaryOp) -> Option<BinaryOp> {
    match op {
        BinaryOp::Eq | BinaryOp::Ne => Some(op),
        BinaryOp::Lt => Some(BinaryOp::Gt),
        BinaryOp::Le => Some(BinaryOp::Ge),
        BinaryOp::Gt => Some(BinaryOp::Lt),
        BinaryOp::Ge => Some(BinaryOp::Le),
        _ => None,
    }
}

/// The values of a range for which a comparison with a constant is true, or false. `None` if there are none.
fn compared(op: BinaryOp, c: i64, truth: bool, (lo, hi): (i64, i64)) -> Option<(i64, i64)> {
    let some = |(lo, hi): (i64, i64)| (lo <= hi).then_some((lo, hi));
    let below = |c: i64| c.checked_sub(1).and_then(|c| some((lo, hi.min(c))));
    let above = |c: i64| c.checked_add(1).and_then(|c| some((lo.max(c), hi)));
    match (op, truth) {
        (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => below(c),
        (BinaryOp::Le, true) | (BinaryOp::Gt, false) => some((lo, hi.min(c))),
        (BinaryOp::Gt, true) | (BinaryOp::Le, false) => above(c),
        (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => some((lo.max(c), hi)),
        (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => some((lo.max(c), hi.min(c))),
        (BinaryOp::Eq, false) | (BinaryOp::Ne, true) => match (lo == c, hi == c) {
            (true, true) => None,
            (true, false) => above(c),
            (false, true) => below(c),
            (false, false) => Some((lo, hi)),
        },
        // Compared as unsigned numbers, small ones are not negative.
        (BinaryOp::WordLt, true) if c >= 0 => c.checked_sub(1).and_then(|c| some((lo.max(0), hi.min(c)))),
        (BinaryOp::WordLe, true) if c >= 0 => some((lo.max(0), hi.min(c))),
        _ => Some((lo, hi)),
    }
}
