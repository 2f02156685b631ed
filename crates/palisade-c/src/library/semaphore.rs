//! Semaphores, barriers, and functions that run once.

use super::rwlock::Counted;
use crate::Wait;
use crate::expr::Expr;
use crate::flat::{Access, End, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::as_function;
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// What a thread gets that is the last one at a barrier.
const SERIAL_THREAD: i64 = -1;

/// The word of a barrier: how many have arrived, how many it takes, and its round. One that was destroyed takes none.
const ARRIVED: i64 = (1 << TAKES) - 1;
const TAKES: i64 = 16;
const ROUND: i64 = 32;

/// The word of a semaphore that was destroyed.
const DESTROYED: i64 = -1;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn semaphore_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "sem_init" => {
                let (at, value) = (self.long(operands)?, self.operand(operands, 2)?);
                let value = crate::expr::unsigned(32, value, &self.code.registers);
                self.step(StepKind::Store { to: Access { plain: true, ..at }, value });
            }
            "sem_destroy" => {
                let at = Access { plain: true, ..self.long(operands)? };
                let old = self.temporary(64);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                self.check_semaphore(old);
                self.step(StepKind::Store { to: at, value: Expr::Int(DESTROYED) });
            }
            "sem_post" => {
                let at = self.long(operands)?;
                let old = self.temporary(64);
                let operand = Expr::Int(1);
                self.step(StepKind::Locked { rmw: Rmw::FetchAdd, old, at, operand });
                self.check_semaphore(old);
            }
            "sem_wait" => {
                let at = self.long(operands)?;
                self.waits_for(Wait::Semaphore);
                let one_less = self.one_less();
                self.count(&at, one_less, true);
            }
            "sem_trywait" => {
                let at = self.long(operands)?;
                let one_less = self.one_less();
                let done = self.count(&at, one_less, false);
                return Ok(Some(self.select(done, Expr::Int(0), Expr::Int(-1), 32)));
            }
            "sem_getvalue" => {
                let (from, to) = (self.long(operands)?, self.operand(operands, 1)?);
                let value = self.temporary(64);
                self.step(StepKind::Load { to: value, from, written: Written::Needed });
                self.check_semaphore(value);
                let value = self.wrap(32, Expr::Reg(value));
                self.step(StepKind::Store { to: Access { pointer: to, size: 2, plain: false }, value });
            }
            "pthread_barrier_init" => {
                let (at, takes) = (self.long(operands)?, self.operand(operands, 2)?);
                let Some(takes) = takes.as_int().filter(|takes| (1..1000).contains(takes)) else {
                    return Err(self.refuse("a barrier for a number of threads that is not a constant"));
                };
                self.step(StepKind::Store {
                    to: Access { plain: true, ..at },
                    value: Expr::Int(takes << TAKES),
                });
            }
            "pthread_barrier_destroy" => {
                // Threads that were released may not have left yet: they only look at the round. So this is not a
                // plain access.
                let at = self.long(operands)?;
                let old = self.temporary(64);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                let takes = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED << TAKES));
                let usable = self.binary(BinaryOp::Ne, takes, Expr::Int(0));
                self.step(StepKind::Assert(usable, Check::NotDestroyed));
                let arrived = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED));
                let unused = self.binary(BinaryOp::Eq, arrived, Expr::Int(0));
                self.step(StepKind::Assert(unused, Check::NotInUse));
                let value = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(!((1 << ROUND) - 1)));
                self.step(StepKind::Store { to: at, value });
            }
            "pthread_barrier_wait" => {
                let at = self.long(operands)?;
                return Ok(Some(self.barrier(&at)));
            }
            "call_once" | "pthread_once" => {
                let at = Access { pointer: self.operand(operands, 0)?, size: 2, plain: false };
                let function = self.operand(operands, 1)?;
                self.once(&at, function)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Expr::Int(0)))
    }

    /// What a wait does to a semaphore.
    fn one_less(&self) -> Counted {
        Counted { least: 1, by: -1, destroyed_below: self.context.features.destroys_semaphores.then_some(0) }
    }

    /// A semaphore that was destroyed must not be used.
    fn check_semaphore(&mut self, word: RegId) {
        if self.context.features.destroys_semaphores {
            let usable = self.binary(BinaryOp::Ge, Expr::Reg(word), Expr::Int(0));
            self.step(StepKind::Assert(usable, Check::NotDestroyed));
        }
    }

    fn long(&mut self, operands: &[Operand]) -> Result<Access, Refused> {
        Ok(Access { pointer: self.operand(operands, 0)?, size: 3, plain: false })
    }

    /// Arrives at a barrier. The last one starts the next round, for which the others wait. Rounds are counted
    /// modulo 4: a thread that is so late that it misses a change just waits for the next one.
    fn barrier(&mut self, at: &Access) -> Expr {
        let old = self.temporary(64);
        let load = self.make_step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        let arrived = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED));
        let takes = self.binary(BinaryOp::WordShr, Expr::Reg(old), Expr::Int(TAKES));
        let takes = self.binary(BinaryOp::BitAnd, takes, Expr::Int(ARRIVED));
        let one_more = self.binary(BinaryOp::WordAdd, arrived, Expr::Int(1));
        let last = self.binary(BinaryOp::Eq, one_more, takes.clone());
        let round = self.binary(BinaryOp::WordShr, Expr::Reg(old), Expr::Int(ROUND));
        let next = self.binary(BinaryOp::WordAdd, round.clone(), Expr::Int(1));
        let next = self.binary(BinaryOp::BitAnd, next, Expr::Int(3));
        let next = self.binary(BinaryOp::WordShl, next, Expr::Int(ROUND));
        let kept = self.binary(BinaryOp::WordShl, takes.clone(), Expr::Int(TAKES));
        let reset = self.binary(BinaryOp::BitOr, next, kept);
        let counted = self.binary(BinaryOp::WordAdd, Expr::Reg(old), Expr::Int(1));
        let yes = self.make_step(StepKind::Store { to: at.clone(), value: reset });
        let no = self.make_step(StepKind::Store { to: at.clone(), value: counted });
        let change = self.make_step(StepKind::If(last.clone(), vec![yes], vec![no]));
        self.step(StepKind::Atomic(vec![load, change]));
        let usable = self.binary(BinaryOp::Ne, takes, Expr::Int(0));
        self.step(StepKind::Assert(usable, Check::NotDestroyed));
        let result = self.temporary(32);
        let (serial, wait, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(last, serial, wait));
        self.go_on(serial);
        self.step(StepKind::Assign(result, Expr::Int(SERIAL_THREAD)));
        self.end(End::Goto(after));
        self.go_on(wait);
        let mine = self.temporary(64);
        self.step(StepKind::Assign(mine, round));
        let temporary = self.temporary(64);
        let now = self.binary(BinaryOp::WordShr, Expr::Reg(temporary), Expr::Int(ROUND));
        let condition = self.binary(BinaryOp::Ne, now, Expr::Reg(mine));
        self.waits_for(Wait::Barrier);
        self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
        self.step(StepKind::Assign(result, Expr::Int(0)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// Runs a function once: 0 is new, 1 is running, 2 is done. As in glibc, a thread that finds it done does
    /// nothing more than load the word, and the end is a release store.
    fn once(&mut self, at: &Access, function: Expr) -> Result<(), Refused> {
        let function = function.as_int().and_then(|address| self.context.memory.function_at(address));
        let Some(function) = function.and_then(as_function) else {
            return Err(self.refuse("a function to run once that is not known by name"));
        };
        let word = self.temporary(32);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        let done = self.binary(BinaryOp::Eq, Expr::Reg(word), Expr::Int(2));
        let (slow, run, wait, after) =
            (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(done, after, slow));
        self.go_on(slow);
        let first = self.temporary(1);
        let (expected, new) = (Expr::Int(0), Expr::Int(1));
        self.step(StepKind::Cas { old: None, done: Some(first), at: at.clone(), expected, new });
        self.end(End::Branch(Expr::Reg(first), run, wait));
        self.go_on(run);
        if self.call(function, Vec::new()).is_ok() {
            self.step(StepKind::StoreFence);
            self.step(StepKind::Store { to: at.clone(), value: Expr::Int(2) });
            self.end(End::Goto(after));
        }
        self.go_on(wait);
        let temporary = self.temporary(32);
        let condition = self.binary(BinaryOp::Eq, Expr::Reg(temporary), Expr::Int(2));
        self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
        self.end(End::Goto(after));
        self.go_on(after);
        Ok(())
    }
}
