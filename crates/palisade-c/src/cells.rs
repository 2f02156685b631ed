//! The cells through which threads are started, joined and detached, and the steps that use them.

use crate::expr::{self, Expr};
use crate::flat::{Access, Code, ObjectId, RegId, StepKind, Written};
use crate::inline::Generator;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// The cells through which a thread is started and joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cells {
    pub(crate) started: ObjectId,
    pub(crate) entry: ObjectId,
    pub(crate) argument: ObjectId,
    pub(crate) ended: ObjectId,
    pub(crate) result: ObjectId,
    pub(crate) detached: ObjectId,
}

impl Cells {
    /// All of them.
    pub(crate) fn all(self) -> [ObjectId; 6] {
        [self.started, self.entry, self.argument, self.ended, self.result, self.detached]
    }
}

/// An access to one of the cells that hold a number.
pub(crate) fn number_at(cell: ObjectId) -> Access {
    Access { pointer: Expr::Address(cell, 0), size: 2, plain: false }
}

/// Joins a thread: waits for its end, and marks it as joined. It must not have been before.
pub(crate) fn join(code: &mut Code, cells: Cells, result: Option<RegId>, detaches: bool) -> Vec<StepKind> {
    let (temporary, old) = (code.new_register("", 32), code.new_register("", 32));
    let ended = || Access { pointer: Expr::Address(cells.ended, 0), size: 2, plain: false };
    let condition = expr::binary(BinaryOp::Ne, Expr::Reg(temporary), Expr::Int(0), &code.registers);
    let once = expr::binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(1), &code.registers);
    let mut steps = vec![
        StepKind::AwaitLoad { temporary, from: ended(), condition },
        StepKind::Locked { rmw: Rmw::Exchange, old, at: ended(), operand: Expr::Int(2) },
        StepKind::Assert(once, Check::Joinable),
    ];
    if detaches {
        let detached = code.new_register("", 32);
        let from = Access { pointer: Expr::Address(cells.detached, 0), size: 2, plain: false };
        let attached = expr::binary(BinaryOp::Eq, Expr::Reg(detached), Expr::Int(0), &code.registers);
        steps.push(StepKind::Load { to: detached, from, written: Written::Needed });
        steps.push(StepKind::Assert(attached, Check::Joinable));
    }
    if let Some(to) = result {
        let from = Access { pointer: Expr::Address(cells.result, 0), size: 3, plain: false };
        steps.push(StepKind::Load { to, from, written: Written::Needed });
    }
    steps
}

/// Detaches a thread. It must have been neither joined nor detached before.
pub(crate) fn detach(code: &mut Code, cells: Cells) -> Vec<StepKind> {
    let (old, ended) = (code.new_register("", 32), code.new_register("", 32));
    let access = |object| Access { pointer: Expr::Address(object, 0), size: 2, plain: false };
    let first = expr::binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(0), &code.registers);
    let unjoined = expr::binary(BinaryOp::Ne, Expr::Reg(ended), Expr::Int(2), &code.registers);
    vec![
        StepKind::Locked { rmw: Rmw::Exchange, old, at: access(cells.detached), operand: Expr::Int(1) },
        StepKind::Assert(first, Check::Joinable),
        StepKind::Load { to: ended, from: access(cells.ended), written: Written::Needed },
        StepKind::Assert(unjoined, Check::Joinable),
    ]
}

/// Joins threads that are joined together and only here: waits until all have ended.
pub(crate) fn join_all(code: &mut Code, cells: Cells, count: i64) -> Vec<StepKind> {
    let temporary = code.new_register("", 32);
    let condition = expr::binary(BinaryOp::Eq, Expr::Reg(temporary), Expr::Int(count), &code.registers);
    let from = Access { pointer: Expr::Address(cells.ended, 0), size: 2, plain: false };
    vec![StepKind::Fence, StepKind::AwaitLoad { temporary, from, condition }]
}

/// Waits until a cell is 1.
pub(crate) fn await_cell(generator: &mut Generator<'_, '_>, cell: ObjectId) {
    let temporary = generator.temporary(32);
    let condition = generator.binary(BinaryOp::Ne, Expr::Reg(temporary), Expr::Int(0));
    let from = Access { pointer: Expr::Address(cell, 0), size: 2, plain: false };
    generator.step(StepKind::AwaitLoad { temporary, from, condition });
}

/// Sets a cell to 1 by a locked exchange, which is a fence.
pub(crate) fn set_cell(generator: &mut Generator<'_, '_>, cell: ObjectId) {
    let old = generator.temporary(32);
    let at = Access { pointer: Expr::Address(cell, 0), size: 2, plain: false };
    generator.step(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand: Expr::Int(1) });
}

pub(crate) fn load_cell(generator: &mut Generator<'_, '_>, cell: ObjectId, size: u32) -> Expr {
    let to = generator.temporary(8 << size);
    let from = Access { pointer: Expr::Address(cell, 0), size, plain: false };
    generator.step(StepKind::Load { to, from, written: Written::Needed });
    Expr::Reg(to)
}
