//! Condition variables of POSIX and C11.
//!
//! The first word of a condition variable has one bit per thread that waits. A waiting thread sets its bit by a
//! locked instruction, unlocks the mutex, waits until another thread clears the bit, and locks the mutex again. It may
//! also continue without a signal: then it unlocks the mutex and locks it again. This is left out where the question is
//! whether the program can finish. As in glibc, a signal first loads the word, without a fence, and does nothing if no
//! thread waits. Otherwise it clears the bit of any of the waiting threads. A condition variable that was destroyed is
//! marked.
//!
//! POSIX allows a condition variable to be destroyed, and its memory freed, once no thread waits any more, although
//! threads that were woken may not have left yet. As in glibc, these have a second bit until they leave, and destroying
//! waits for them. They can always leave, and no other thread sees whether they have. So no run is lost.

use crate::expr::Expr;
use crate::flat::{Access, BlockId, End, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::{Aim, Wait};
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// What a wait returns whose time is over: `ETIMEDOUT`, and `thrd_timedout` of glibc.
const ETIMEDOUT: i64 = 110;
const THRD_TIMEDOUT: i64 = 4;

/// The word of a condition variable that was destroyed: a bit that no thread has.
const DESTROYED: i64 = i64::MIN;

/// How many threads may wait.
const MAX_WAITING: usize = 62;

/// The same, where condition variables are destroyed.
const MAX_WAITING_AND_LEAVING: usize = 31;

/// The bits of threads that wait, and by how much the bits of those that have not left are shifted, where condition
/// variables are destroyed.
const WAITING: i64 = (1 << MAX_WAITING_AND_LEAVING) - 1;
const INSIDE: usize = MAX_WAITING_AND_LEAVING;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn condition_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "pthread_cond_init" | "cnd_init" => {
                let at = Access { plain: true, ..self.word(operands)? };
                self.step(StepKind::Store { to: at, value: Expr::Int(0) });
            }
            "pthread_cond_destroy" | "cnd_destroy" => {
                // Threads that were woken may not have left yet, so this is not a plain access.
                let at = self.word(operands)?;
                let old = self.temporary(64);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                self.check_condition(old);
                let waiting = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(WAITING));
                let unused = self.binary(BinaryOp::Eq, waiting, Expr::Int(0));
                self.step(StepKind::Assert(unused, Check::NotInUse));
                let temporary = self.temporary(64);
                let inside = Expr::Int(WAITING << INSIDE);
                let inside = self.binary(BinaryOp::BitAnd, Expr::Reg(temporary), inside);
                let condition = self.binary(BinaryOp::Eq, inside, Expr::Int(0));
                self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
                self.step(StepKind::Store { to: at, value: Expr::Int(DESTROYED) });
            }
            "pthread_cond_signal" | "cnd_signal" => {
                let at = self.word(operands)?;
                self.signal(&at);
            }
            "pthread_cond_broadcast" | "cnd_broadcast" => {
                let at = self.word(operands)?;
                self.broadcast(&at);
            }
            "pthread_cond_wait" | "cnd_wait" => {
                return self.wait(name, operands, None).map(Some);
            }
            "pthread_cond_timedwait" | "pthread_cond_clockwait" => {
                return self.wait(name, operands, Some(ETIMEDOUT)).map(Some);
            }
            "cnd_timedwait" => return self.wait(name, operands, Some(THRD_TIMEDOUT)).map(Some),
            _ => return Ok(None),
        }
        Ok(Some(Expr::Int(0)))
    }

    fn word(&mut self, operands: &[Operand]) -> Result<Access, Refused> {
        Ok(Access { pointer: self.operand(operands, 0)?, size: 3, plain: false })
    }

    /// A condition variable that was destroyed must not be used.
    fn check_condition(&mut self, word: RegId) {
        if self.context.features.destroys_conditions {
            let usable = self.binary(BinaryOp::Ge, Expr::Reg(word), Expr::Int(0));
            self.step(StepKind::Assert(usable, Check::NotDestroyed));
        }
    }

    fn wait(&mut self, name: &str, operands: &[Operand], late: Option<i64>) -> Result<Expr, Refused> {
        let at = self.word(operands)?;
        let mutex = self.operand(operands, 1)?;
        let of_c = name.starts_with("cnd_");
        let mutex = Access { pointer: mutex, size: if of_c { 3 } else { 2 }, plain: false };
        let (thread, destroyed) = (self.thread, self.context.features.destroys_conditions);
        let waiting = &mut self.context.waiting;
        let bit = waiting.iter().position(|known| *known == thread).unwrap_or_else(|| {
            waiting.push(thread);
            waiting.len() - 1
        });
        let room = if destroyed { MAX_WAITING_AND_LEAVING } else { MAX_WAITING };
        if bit >= room {
            return Err(self.refuse(format!("more than {room} threads that wait for conditions")));
        }
        let inside = if destroyed { 1i64 << (bit + INSIDE) } else { 0 };
        let bit = 1i64 << bit;
        let result = self.temporary(32);
        let after = self.new_block();
        if !of_c {
            self.needs_mutex(&mutex, result, after);
        }
        let (registered, again) = (self.new_block(), self.new_block());
        self.without_signal(&mutex, late, result, registered, again);
        self.go_on(registered);
        let old = self.temporary(64);
        self.step(StepKind::Locked {
            rmw: Rmw::FetchOr,
            old,
            at: at.clone(),
            operand: Expr::Int(bit | inside),
        });
        self.check_condition(old);
        self.unlock(mutex.clone(), 0);
        let woken = self.new_block();
        self.end(End::Goto(woken));
        self.go_on(woken);
        let word = self.temporary(64);
        let mine = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(bit));
        let cleared = self.binary(BinaryOp::Eq, mine, Expr::Int(0));
        match late {
            // A thread that waits for the signal can still run out of time.
            Some(late) if self.context.options.aim.asks_finish() => {
                let (by_signal, not_yet, timeout) = (self.new_block(), self.new_block(), self.new_block());
                self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
                self.end(End::Branch(cleared, by_signal, not_yet));
                self.go_on(not_yet);
                self.end(End::Choose(vec![woken, timeout]));
                self.go_on(timeout);
                let old = self.temporary(64);
                let operand = Expr::Int(!(bit | inside));
                self.step(StepKind::Locked { rmw: Rmw::FetchAnd, old, at: at.clone(), operand });
                self.step(StepKind::Assign(result, Expr::Int(late)));
                self.end(End::Goto(again));
                self.go_on(by_signal);
            }
            _ => {
                self.waits_for(Wait::Condition);
                self.step(StepKind::AwaitLoad { temporary: word, from: at.clone(), condition: cleared });
            }
        }
        if inside != 0 {
            let (old, operand) = (self.temporary(64), Expr::Int(!inside));
            self.step(StepKind::Locked { rmw: Rmw::FetchAnd, old, at, operand });
        }
        self.step(StepKind::Assign(result, Expr::Int(0)));
        self.end(End::Goto(again));
        self.go_on(again);
        self.lock(mutex);
        self.end(End::Goto(after));
        self.go_on(after);
        Ok(Expr::Reg(result))
    }

    /// A wait that ends without a signal, by itself or because its time is over, by choice. Such a thread only
    /// unlocks the mutex and locks it again: what it could do to the signals of others, one that is woken can do as
    /// well. So it does not access the condition variable, which may no longer exist by then.
    fn without_signal(
        &mut self,
        mutex: &Access,
        late: Option<i64>,
        result: RegId,
        registered: BlockId,
        again: BlockId,
    ) {
        let aim = self.context.options.aim;
        let mut ways = vec![registered];
        let mut values = Vec::new();
        if aim != Aim::Progress {
            values.push(0);
        }
        values.extend(late.filter(|_| !aim.asks_finish()));
        if aim == Aim::Both {
            let (may, any) = (self.temporary(1), self.new_block());
            self.step(StepKind::MayWakeAlone(may));
            self.end(End::Branch(Expr::Reg(may), any, registered));
            self.go_on(any);
        }
        let blocks: Vec<BlockId> = values.iter().map(|_| self.new_block()).collect();
        ways.extend(&blocks);
        self.end(if blocks.is_empty() { End::Goto(registered) } else { End::Choose(ways) });
        for (block, value) in blocks.into_iter().zip(values) {
            self.go_on(block);
            self.unlock(mutex.clone(), 0);
            self.step(StepKind::Assign(result, Expr::Int(value)));
            self.end(End::Goto(again));
        }
    }

    /// Whether some thread waits, by the word.
    fn some_wait(&self, word: RegId) -> Expr {
        let waiting = match self.context.features.destroys_conditions {
            true => self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(WAITING)),
            false => Expr::Reg(word),
        };
        self.binary(BinaryOp::Ne, waiting, Expr::Int(0))
    }

    fn signal(&mut self, at: &Access) {
        let (again, choose, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Goto(again));
        self.go_on(again);
        let word = self.temporary(64);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        self.check_condition(word);
        let some = self.some_wait(word);
        self.end(End::Branch(some, choose, after));
        self.go_on(choose);
        let index = self.temporary(64);
        self.step(StepKind::AnyWaiting(index));
        let bit = Expr::Binary(BinaryOp::WordShl, Box::new(Expr::Int(1)), Box::new(Expr::Reg(index)));
        let mask = self.temporary(64);
        self.step(StepKind::Assign(mask, bit));
        let set = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Reg(mask));
        let set = self.binary(BinaryOp::Ne, set, Expr::Int(0));
        if !self.context.options.aim.asks_finish() {
            self.step(StepKind::Assume(set));
        } else {
            // A thread that does not wait is not a valid choice: another one is chosen.
            let chosen = self.new_block();
            self.end(End::Branch(set, chosen, choose));
            self.go_on(chosen);
        }
        let old = self.temporary(64);
        let operand = self.binary(BinaryOp::BitXor, Expr::Reg(mask), Expr::Int(-1));
        self.step(StepKind::Locked { rmw: Rmw::FetchAnd, old, at: at.clone(), operand });
        // Another thread may have woken this one in between.
        let still = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Reg(mask));
        let still = self.binary(BinaryOp::Ne, still, Expr::Int(0));
        self.end(End::Branch(still, after, again));
        self.go_on(after);
    }

    fn broadcast(&mut self, at: &Access) {
        let (wake, after) = (self.new_block(), self.new_block());
        let word = self.temporary(64);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        self.check_condition(word);
        let some = self.some_wait(word);
        self.end(End::Branch(some, wake, after));
        self.go_on(wake);
        let old = self.temporary(64);
        let (rmw, operand) = match self.context.features.destroys_conditions {
            true => (Rmw::FetchAnd, !WAITING),
            false => (Rmw::Exchange, 0),
        };
        self.step(StepKind::Locked { rmw, old, at: at.clone(), operand: Expr::Int(operand) });
        self.end(End::Goto(after));
        self.go_on(after);
    }
}
