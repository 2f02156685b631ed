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

/// The word of a barrier: how many have arrived, how many it takes, how many were released and have not left yet, and
/// its round, which is 0 or 1. One that was destroyed takes none.
const ARRIVED: i64 = (1 << TAKES) - 1;
const TAKES: i64 = 16;
const INSIDE: i64 = 32;
const ROUND: i64 = 48;

/// `SEM_VALUE_MAX` of glibc.
pub(crate) const MAX_SEMAPHORE: i64 = i32::MAX as i64;

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
                let at = Access { plain: true, ..at };
                if self.context.features.large_semaphores {
                    return Ok(Some(self.init_large(at, value)));
                }
                self.step(StepKind::Store { to: at, value });
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
                if self.context.features.large_semaphores {
                    return Ok(Some(self.post_large(&at)));
                }
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
                // Threads that were released may not have left yet, so this is not a plain access. As in glibc,
                // destroying waits for them: the memory may be used for something else then.
                let at = self.long(operands)?;
                let old = self.temporary(64);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                let takes = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED << TAKES));
                let usable = self.binary(BinaryOp::Ne, takes, Expr::Int(0));
                self.step(StepKind::Assert(usable, Check::NotDestroyed));
                let arrived = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED));
                let unused = self.binary(BinaryOp::Eq, arrived, Expr::Int(0));
                self.step(StepKind::Assert(unused, Check::NotInUse));
                self.await_leaving(&at);
                self.step(StepKind::Store { to: at, value: Expr::Int(0) });
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

    /// Initialises a semaphore, or returns -1 if the value is too large.
    fn init_large(&mut self, at: Access, value: Expr) -> Expr {
        let fits = self.binary(BinaryOp::Le, value.clone(), Expr::Int(MAX_SEMAPHORE));
        let (result, yes, after) = (self.temporary(32), self.new_block(), self.new_block());
        self.step(StepKind::Assign(result, Expr::Int(-1)));
        self.end(End::Branch(fits, yes, after));
        self.go_on(yes);
        self.step(StepKind::Store { to: at, value });
        self.step(StepKind::Assign(result, Expr::Int(0)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// Posts a semaphore that may have its largest value, as glibc does: -1 is returned then, without a fence.
    fn post_large(&mut self, at: &Access) -> Expr {
        let (result, again, change, after) =
            (self.temporary(32), self.new_block(), self.new_block(), self.new_block());
        self.step(StepKind::Assign(result, Expr::Int(-1)));
        self.end(End::Goto(again));
        self.go_on(again);
        let word = self.temporary(64);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        self.check_semaphore(word);
        let room = self.binary(BinaryOp::Lt, Expr::Reg(word), Expr::Int(MAX_SEMAPHORE));
        self.end(End::Branch(room, change, after));
        self.go_on(change);
        let (done, posted) = (self.temporary(1), self.new_block());
        let new = self.binary(BinaryOp::WordAdd, Expr::Reg(word), Expr::Int(1));
        let expected = Expr::Reg(word);
        self.step(StepKind::Cas { old: None, done: Some(done), at: at.clone(), expected, new });
        self.end(End::Branch(Expr::Reg(done), posted, again));
        self.go_on(posted);
        self.step(StepKind::Assign(result, Expr::Int(0)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
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

    /// Waits until all threads that were released by a barrier have left it. They can always do so, and no one else
    /// sees whether they have: no run is lost.
    fn await_leaving(&mut self, at: &Access) {
        let temporary = self.temporary(64);
        let inside = self.binary(BinaryOp::BitAnd, Expr::Reg(temporary), Expr::Int(ARRIVED << INSIDE));
        let condition = self.binary(BinaryOp::Eq, inside, Expr::Int(0));
        self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
    }

    /// Arrives at a barrier. The last one starts the next round, for which the others wait. No thread arrives for a
    /// round before those of the last one have left, so two rounds can be distinguished by a bit.
    fn barrier(&mut self, at: &Access) -> Expr {
        let (again, wait_first, arrived_now) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Goto(again));
        self.go_on(wait_first);
        self.await_leaving(at);
        self.end(End::Goto(again));
        self.go_on(again);
        let old = self.temporary(64);
        let load = self.make_step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        let field = |of: Expr, from: i64| {
            let moved = self.binary(BinaryOp::WordShr, of, Expr::Int(from));
            self.binary(BinaryOp::BitAnd, moved, Expr::Int(ARRIVED))
        };
        let arrived = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(ARRIVED));
        let (takes, inside) = (field(Expr::Reg(old), TAKES), field(Expr::Reg(old), INSIDE));
        let all_left = self.binary(BinaryOp::Eq, inside, Expr::Int(0));
        let one_more = self.binary(BinaryOp::WordAdd, arrived.clone(), Expr::Int(1));
        let last = self.binary(BinaryOp::Eq, one_more, takes.clone());
        let round = self.binary(BinaryOp::WordShr, Expr::Reg(old), Expr::Int(ROUND));
        let next = self.binary(BinaryOp::BitXor, round.clone(), Expr::Int(1));
        let next = self.binary(BinaryOp::WordShl, next, Expr::Int(ROUND));
        let released = self.binary(BinaryOp::WordShl, arrived, Expr::Int(INSIDE));
        let kept = self.binary(BinaryOp::WordShl, takes.clone(), Expr::Int(TAKES));
        let reset = self.binary(BinaryOp::BitOr, next, kept);
        let reset = self.binary(BinaryOp::BitOr, reset, released);
        let counted = self.binary(BinaryOp::WordAdd, Expr::Reg(old), Expr::Int(1));
        let yes = self.make_step(StepKind::Store { to: at.clone(), value: reset });
        let no = self.make_step(StepKind::Store { to: at.clone(), value: counted });
        let change = self.make_step(StepKind::If(last.clone(), vec![yes], vec![no]));
        let arrive = self.make_step(StepKind::If(all_left.clone(), vec![change], Vec::new()));
        self.step(StepKind::Atomic(vec![load, arrive]));
        self.end(End::Branch(all_left, arrived_now, wait_first));
        self.go_on(arrived_now);
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
        let (old, operand) = (self.temporary(64), Expr::Int(1 << INSIDE));
        self.step(StepKind::Locked { rmw: Rmw::FetchSub, old, at: at.clone(), operand });
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
