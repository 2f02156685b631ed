//! Mutexes, of POSIX and C11, and spin locks.
//!
//! The first word of a mutex is 0, or the number of the thread that holds it. A recursive mutex has a flag in it, and
//! how many more times it is held; an error-checking mutex has another flag. Locking is a locked compare and
//! exchange that is tried until it succeeds; unlocking is a locked exchange, as in glibc on x86.
//!
//! A mutex that was destroyed is marked. Initialising and destroying are plain accesses, so that another thread that is
//! about to use the mutex races with them.

use crate::Wait;
use crate::expr::Expr;
use crate::flat::{Access, BlockId, End, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// The first word of a mutex that was destroyed.
const DESTROYED: i64 = -1;

/// The flag of a recursive mutex.
pub(crate) const RECURSIVE: i64 = 1 << 30;

/// The flag of a mutex that checks for errors.
pub(crate) const CHECKING: i64 = 1 << 29;

const FLAGS: i64 = RECURSIVE | CHECKING;

/// The part of the word that is the number of the thread.
pub(crate) const OWNER: i64 = 0xffff;

/// One more time that the mutex is held.
const AGAIN: i64 = 1 << 16;

/// How many more times the mutex is held.
const COUNT: i64 = CHECKING - AGAIN;

/// No thread has a larger number.
pub(super) const MAX_OWNER: i64 = crate::threads::MAX_THREADS as i64;

/// What `trylock` returns if the mutex is held: `EBUSY`, and `thrd_busy` of glibc.
pub(super) const EBUSY: i64 = 16;
const THRD_BUSY: i64 = 1;

/// What a mutex that checks for errors returns to a thread that locks it again, and what it returns, like a recursive
/// one of POSIX, to a thread that unlocks it without holding it.
const EDEADLK: i64 = 35;
const EPERM: i64 = 1;

/// The kinds of mutexes of POSIX, as glibc numbers them.
const KIND_RECURSIVE: i64 = 1;
const KIND_CHECKING: i64 = 2;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn mutex_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "pthread_mutex_lock" | "mtx_lock" | "pthread_spin_lock" => {
                let at = self.mutex(name, operands)?;
                return Ok(Some(self.lock(at)));
            }
            "pthread_mutex_trylock" | "mtx_trylock" | "pthread_spin_trylock" => {
                let at = self.mutex(name, operands)?;
                let busy = if name == "mtx_trylock" { THRD_BUSY } else { EBUSY };
                return Ok(Some(self.try_lock(at, busy)));
            }
            "pthread_mutex_unlock" | "mtx_unlock" | "pthread_spin_unlock" => {
                let at = self.mutex(name, operands)?;
                let errors = if name.starts_with("pthread_mutex") { FLAGS } else { 0 };
                return Ok(Some(self.unlock(at, errors)));
            }
            "pthread_mutexattr_init" => {
                let pointer = self.operand(operands, 0)?;
                self.step(StepKind::Store {
                    to: Access { pointer, size: 2, plain: false },
                    value: Expr::Int(0),
                });
            }
            "pthread_mutexattr_settype" => {
                let (pointer, kind) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                self.step(StepKind::Store { to: Access { pointer, size: 2, plain: false }, value: kind });
            }
            "pthread_mutex_init" => {
                let attribute = self.operand(operands, 1)?;
                let at = self.mutex(name, operands)?;
                let kind = if attribute.as_int() == Some(0) {
                    Expr::Int(0)
                } else {
                    let kind = self.temporary(32);
                    let from = Access { pointer: attribute, size: 2, plain: false };
                    self.step(StepKind::Load { to: kind, from, written: Written::Needed });
                    Expr::Reg(kind)
                };
                self.init_mutex(at, kind);
            }
            "mtx_init" => {
                let kind = self.operand(operands, 1)?;
                let kind = self.binary(BinaryOp::BitAnd, kind, Expr::Int(1));
                let at = self.mutex(name, operands)?;
                self.init_mutex(at, kind);
            }
            "pthread_spin_init" => {
                let at = self.mutex(name, operands)?;
                self.init_mutex(at, Expr::Int(0));
            }
            "pthread_mutex_destroy" | "mtx_destroy" | "pthread_spin_destroy" => {
                let at = self.mutex(name, operands)?;
                let at = Access { plain: true, ..at };
                let old = self.temporary(8 << at.size);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                let usable = self.binary(BinaryOp::Ne, Expr::Reg(old), Expr::Int(DESTROYED));
                self.step(StepKind::Assert(usable, Check::NotDestroyed));
                let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(OWNER));
                let free = self.binary(BinaryOp::Eq, owner, Expr::Int(0));
                self.step(StepKind::Assert(free, Check::NotInUse));
                self.step(StepKind::Store { to: at, value: Expr::Int(DESTROYED) });
            }
            _ => return self.rwlock_function(name, operands),
        }
        Ok(Some(Expr::Int(0)))
    }

    /// The first word of the mutex that is the first argument.
    fn mutex(&mut self, name: &str, operands: &[Operand]) -> Result<Access, Refused> {
        let pointer = self.operand(operands, 0)?;
        Ok(Access { pointer, size: if name.starts_with("mtx_") { 3 } else { 2 }, plain: false })
    }

    /// Initialises a mutex of a kind. It must not be held. What was there before may be anything else.
    fn init_mutex(&mut self, at: Access, kind: Expr) {
        let at = Access { plain: true, ..at };
        let old = self.temporary(8 << at.size);
        self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Any });
        let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(!(FLAGS | COUNT)));
        let none = self.binary(BinaryOp::Le, owner.clone(), Expr::Int(0));
        let other = self.binary(BinaryOp::Gt, owner, Expr::Int(MAX_OWNER));
        let free = self.binary(BinaryOp::Or, none, other);
        self.step(StepKind::Assert(free, Check::NotInUse));
        let is = |kind: &Expr, number| self.binary(BinaryOp::Eq, kind.clone(), Expr::Int(number));
        let (recursive, checking) = (is(&kind, KIND_RECURSIVE), is(&kind, KIND_CHECKING));
        let flag = self.select(checking, Expr::Int(CHECKING), Expr::Int(0), 64);
        let flag = self.select(recursive, Expr::Int(RECURSIVE), flag, 64);
        let value = self.wrap(8 << at.size, flag);
        self.step(StepKind::Store { to: at, value });
    }

    /// A mutex that was destroyed or never initialised must not be used.
    fn check_mutex(&mut self, at: &Access) {
        if self.context.features.destroys_mutexes {
            let old = self.temporary(8 << at.size);
            self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
            let usable = self.binary(BinaryOp::Ne, Expr::Reg(old), Expr::Int(DESTROYED));
            self.step(StepKind::Assert(usable, Check::NotDestroyed));
        }
    }

    /// Where mutexes may be of another kind than the usual one: loads the word. If the thread holds the mutex and it is
    /// recursive, that is counted and control goes to `after`. If it checks for errors, `result` becomes `error` and
    /// control goes to `after`. Otherwise control goes on; the flags of the word are returned.
    fn lock_again(&mut self, at: &Access, after: BlockId, result: RegId, error: i64) -> Expr {
        if !self.context.features.unusual_mutexes {
            return Expr::Int(0);
        }
        let (word, me) = (self.temporary(8 << at.size), self.owner());
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        let mine = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(OWNER | FLAGS));
        for (flag, counted) in [(RECURSIVE, true), (CHECKING, false)] {
            let held = self.binary(BinaryOp::Eq, mine.clone(), Expr::Int(me | flag));
            let (yes, no) = (self.new_block(), self.new_block());
            self.end(End::Branch(held, yes, no));
            self.go_on(yes);
            if counted {
                let next = self.binary(BinaryOp::WordAdd, Expr::Reg(word), Expr::Int(AGAIN));
                let next = self.wrap(8 << at.size, next);
                self.step(StepKind::Store { to: at.clone(), value: next });
            } else {
                self.step(StepKind::Assign(result, Expr::Int(error)));
            }
            self.end(End::Goto(after));
            self.go_on(no);
        }
        let flags = self.temporary(8 << at.size);
        let e = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(FLAGS));
        self.step(StepKind::Assign(flags, e));
        Expr::Reg(flags)
    }

    /// Waits for the mutex. Returns 0, or an error.
    pub(super) fn lock(&mut self, at: Access) -> Expr {
        self.check_mutex(&at);
        let result = self.temporary(32);
        self.step(StepKind::Assign(result, Expr::Int(0)));
        let after = self.new_block();
        let flags = self.lock_again(&at, after, result, EDEADLK);
        let me = self.owner();
        let new = self.binary(BinaryOp::BitOr, flags.clone(), Expr::Int(me));
        self.waits_for(Wait::Mutex);
        self.step(StepKind::AwaitCas { at, expected: flags, new });
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// Takes the mutex if it is free: 0, else the given number.
    fn try_lock(&mut self, at: Access, busy: i64) -> Expr {
        self.check_mutex(&at);
        let result = self.temporary(32);
        self.step(StepKind::Assign(result, Expr::Int(0)));
        let after = self.new_block();
        let flags = self.lock_again(&at, after, result, busy);
        let me = self.owner();
        let new = self.binary(BinaryOp::BitOr, flags.clone(), Expr::Int(me));
        let done = self.temporary(1);
        self.step(StepKind::Cas { old: None, done: Some(done), at, expected: flags, new });
        let failed = self.new_block();
        self.end(End::Branch(Expr::Reg(done), after, failed));
        self.go_on(failed);
        self.step(StepKind::Assign(result, Expr::Int(busy)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// Releases the mutex. Returns 0, or an error: if the thread does not hold a mutex that has one of the flags
    /// `errors`. For other mutexes this is undefined.
    pub(super) fn unlock(&mut self, at: Access, errors: i64) -> Expr {
        let (old, me) = (self.temporary(8 << at.size), self.owner());
        if !self.context.features.unusual_mutexes {
            self.step(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand: Expr::Int(0) });
            let held = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(me));
            self.step(StepKind::Assert(held, Check::Held));
            return Expr::Int(0);
        }
        let result = self.temporary(32);
        self.step(StepKind::Assign(result, Expr::Int(0)));
        self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(OWNER));
        let held = self.binary(BinaryOp::Eq, owner, Expr::Int(me));
        let (mine, other, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(held, mine, other));
        self.go_on(other);
        let usable = self.binary(BinaryOp::Ne, Expr::Reg(old), Expr::Int(DESTROYED));
        self.step(StepKind::Assert(usable, Check::NotDestroyed));
        let defined = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(errors));
        let defined = self.binary(BinaryOp::Ne, defined, Expr::Int(0));
        self.step(StepKind::Assert(defined, Check::Held));
        self.step(StepKind::Assign(result, Expr::Int(EPERM)));
        self.end(End::Goto(after));
        self.go_on(mine);
        let count = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(COUNT));
        let several = self.binary(BinaryOp::Ne, count, Expr::Int(0));
        let (yes, no) = (self.new_block(), self.new_block());
        self.end(End::Branch(several, yes, no));
        self.go_on(yes);
        let less = self.binary(BinaryOp::WordSub, Expr::Reg(old), Expr::Int(AGAIN));
        let less = self.wrap(8 << at.size, less);
        self.step(StepKind::Store { to: at.clone(), value: less });
        self.end(End::Goto(after));
        self.go_on(no);
        let flags = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(FLAGS));
        let nothing = self.temporary(8 << at.size);
        self.step(StepKind::Locked { rmw: Rmw::Exchange, old: nothing, at, operand: flags });
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// A thread must hold the mutex that it gives to a wait. For one that checks for errors, the wait returns one:
    /// `result` is set, and control goes to `after`. For others this is undefined, and found when the mutex is
    /// unlocked.
    pub(super) fn needs_mutex(&mut self, at: &Access, result: RegId, after: BlockId) {
        if !self.context.features.unusual_mutexes {
            return;
        }
        let (word, me) = (self.temporary(8 << at.size), self.owner());
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        let usable = self.binary(BinaryOp::Ne, Expr::Reg(word), Expr::Int(DESTROYED));
        self.step(StepKind::Assert(usable, Check::NotDestroyed));
        let checking = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(CHECKING));
        let checking = self.binary(BinaryOp::Ne, checking, Expr::Int(0));
        let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(OWNER));
        let other = self.binary(BinaryOp::Ne, owner, Expr::Int(me));
        let error = self.binary(BinaryOp::And, checking, other);
        let (yes, no) = (self.new_block(), self.new_block());
        self.end(End::Branch(error, yes, no));
        self.go_on(yes);
        self.step(StepKind::Assign(result, Expr::Int(EPERM)));
        self.end(End::Goto(after));
        self.go_on(no);
    }
}
