//! Mutexes, of POSIX and C11, spin locks and reader-writer locks.
//!
//! The first word of a mutex is 0, or the number of the thread that holds it; a recursive mutex has a flag in it,
//! and how often it is held in addition. Locking is a locked compare and exchange that is tried until it
//! succeeds; unlocking is a locked exchange, as in glibc on x86.

use crate::Wait;
use crate::expr::Expr;
use crate::flat::{Access, End, StepKind, Written};
use crate::inline::{Generator, Refused};
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// The first word of a mutex that was destroyed.
const DESTROYED: i64 = -1;

/// The flag of a recursive mutex.
pub(crate) const RECURSIVE: i64 = 1 << 30;

/// The part of the word that is the number of the thread.
pub(crate) const OWNER: i64 = 0xffff;

/// One more time that the mutex is held.
const AGAIN: i64 = 1 << 16;

/// What `trylock` returns if the mutex is held: `EBUSY`, and `thrd_busy` of glibc.
const EBUSY: i64 = 16;
const THRD_BUSY: i64 = 1;

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
                self.lock(at);
            }
            "pthread_mutex_trylock" | "mtx_trylock" | "pthread_spin_trylock" => {
                let at = self.mutex(name, operands)?;
                let busy = if name == "mtx_trylock" { THRD_BUSY } else { EBUSY };
                return Ok(Some(self.try_lock(at, busy)));
            }
            "pthread_mutex_unlock" | "mtx_unlock" | "pthread_spin_unlock" => {
                let at = self.mutex(name, operands)?;
                self.unlock(at);
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
                self.init_mutex(at, kind)?;
            }
            "mtx_init" => {
                let kind = self.operand(operands, 1)?;
                let kind = self.binary(BinaryOp::BitAnd, kind, Expr::Int(1));
                let at = self.mutex(name, operands)?;
                self.init_mutex(at, kind)?;
            }
            "pthread_spin_init" => {
                let at = self.mutex(name, operands)?;
                self.step(StepKind::Store { to: at, value: Expr::Int(0) });
            }
            "pthread_mutex_destroy" | "mtx_destroy" | "pthread_spin_destroy" => {
                let at = self.mutex(name, operands)?;
                let old = self.temporary(8 << at.size);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(OWNER));
                let free = self.binary(BinaryOp::Eq, owner, Expr::Int(0));
                self.step(StepKind::Assert(free, Check::Usable));
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

    fn init_mutex(&mut self, at: Access, kind: Expr) -> Result<(), Refused> {
        match kind {
            Expr::Int(0 | 3) => self.step(StepKind::Store { to: at, value: Expr::Int(0) }),
            Expr::Int(1) => self.step(StepKind::Store { to: at, value: Expr::Int(RECURSIVE) }),
            Expr::Int(_) => return Err(self.refuse("a mutex that checks for errors")),
            kind => {
                // Normal, recursive and adaptive ones.
                let known = self.binary(BinaryOp::BitAnd, kind.clone(), Expr::Int(!1));
                let normal = self.binary(BinaryOp::Eq, known, Expr::Int(0));
                self.step(StepKind::Assert(normal, Check::Value));
                let value = self.binary(BinaryOp::WordMul, kind, Expr::Int(RECURSIVE));
                self.step(StepKind::Store { to: at, value });
            }
        }
        Ok(())
    }

    /// A mutex that was destroyed or never initialised must not be used.
    fn check_mutex(&mut self, at: &Access) {
        if self.context.features.destroys_mutexes {
            let old = self.temporary(8 << at.size);
            self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
            let usable = self.binary(BinaryOp::Ne, Expr::Reg(old), Expr::Int(DESTROYED));
            self.step(StepKind::Assert(usable, Check::Usable));
        }
    }

    /// Where mutexes may be recursive: loads the word. If the thread holds the mutex and it is recursive, that is
    /// counted and control goes to `after`. Otherwise control goes on; the flag of the word is returned.
    fn lock_again(&mut self, at: &Access, after: crate::flat::BlockId) -> Expr {
        if !self.context.features.recursive_mutexes {
            return Expr::Int(0);
        }
        let (word, me) = (self.temporary(8 << at.size), self.owner());
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        let mine = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(OWNER | RECURSIVE));
        let mine = self.binary(BinaryOp::Eq, mine, Expr::Int(me | RECURSIVE));
        let (yes, no) = (self.new_block(), self.new_block());
        self.end(End::Branch(mine, yes, no));
        self.go_on(yes);
        let next = self.binary(BinaryOp::WordAdd, Expr::Reg(word), Expr::Int(AGAIN));
        let next = self.wrap(8 << at.size, next);
        self.step(StepKind::Store { to: at.clone(), value: next });
        self.end(End::Goto(after));
        self.go_on(no);
        let flag = self.temporary(8 << at.size);
        let e = self.binary(BinaryOp::BitAnd, Expr::Reg(word), Expr::Int(RECURSIVE));
        self.step(StepKind::Assign(flag, e));
        Expr::Reg(flag)
    }

    /// Waits for the mutex.
    pub(super) fn lock(&mut self, at: Access) {
        self.check_mutex(&at);
        let after = self.new_block();
        let flag = self.lock_again(&at, after);
        let me = self.owner();
        let new = self.binary(BinaryOp::BitOr, flag.clone(), Expr::Int(me));
        self.waits_for(Wait::Mutex);
        self.step(StepKind::AwaitCas { at, expected: flag, new });
        self.end(End::Goto(after));
        self.go_on(after);
    }

    /// Takes the mutex if it is free: 0, else the given number.
    fn try_lock(&mut self, at: Access, busy: i64) -> Expr {
        self.check_mutex(&at);
        let result = self.temporary(32);
        self.step(StepKind::Assign(result, Expr::Int(0)));
        let after = self.new_block();
        let flag = self.lock_again(&at, after);
        let me = self.owner();
        let new = self.binary(BinaryOp::BitOr, flag.clone(), Expr::Int(me));
        let done = self.temporary(1);
        self.step(StepKind::Cas { old: None, done: Some(done), at, expected: flag, new });
        let failed = self.new_block();
        self.end(End::Branch(Expr::Reg(done), after, failed));
        self.go_on(failed);
        self.step(StepKind::Assign(result, Expr::Int(busy)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(result)
    }

    /// Gives the mutex back.
    pub(super) fn unlock(&mut self, at: Access) {
        let (old, me) = (self.temporary(8 << at.size), self.owner());
        if !self.context.features.recursive_mutexes {
            self.step(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand: Expr::Int(0) });
            let held = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(me));
            self.step(StepKind::Assert(held, Check::Held));
            return;
        }
        self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        let owner = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(OWNER));
        let held = self.binary(BinaryOp::Eq, owner, Expr::Int(me));
        self.step(StepKind::Assert(held, Check::Held));
        let count = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(RECURSIVE - AGAIN));
        let several = self.binary(BinaryOp::Ne, count, Expr::Int(0));
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(several, yes, no));
        self.go_on(yes);
        let less = self.binary(BinaryOp::WordSub, Expr::Reg(old), Expr::Int(AGAIN));
        let less = self.wrap(8 << at.size, less);
        self.step(StepKind::Store { to: at.clone(), value: less });
        self.end(End::Goto(after));
        self.go_on(no);
        let flag = self.binary(BinaryOp::BitAnd, Expr::Reg(old), Expr::Int(RECURSIVE));
        let nothing = self.temporary(8 << at.size);
        self.step(StepKind::Locked { rmw: Rmw::Exchange, old: nothing, at, operand: flag });
        self.end(End::Goto(after));
        self.go_on(after);
    }

    /// Reader-writer locks: the first word is the number of readers, or minus the number of the writer.
    fn rwlock_function(&mut self, name: &str, operands: &[Operand]) -> Result<Option<Expr>, Refused> {
        let at = match name {
            "pthread_rwlock_init"
            | "pthread_rwlock_destroy"
            | "pthread_rwlock_rdlock"
            | "pthread_rwlock_wrlock"
            | "pthread_rwlock_tryrdlock"
            | "pthread_rwlock_trywrlock"
            | "pthread_rwlock_unlock" => {
                Access { pointer: self.operand(operands, 0)?, size: 2, plain: false }
            }
            _ => return Ok(None),
        };
        let me = self.owner();
        match name {
            "pthread_rwlock_init" => self.step(StepKind::Store { to: at, value: Expr::Int(0) }),
            "pthread_rwlock_destroy" => {
                let old = self.temporary(32);
                self.step(StepKind::Load { to: old, from: at, written: Written::Needed });
                let free = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(0));
                self.step(StepKind::Assert(free, Check::Usable));
            }
            "pthread_rwlock_wrlock" => {
                let new = Expr::Int(-me);
                self.waits_for(Wait::ReadWriteLock);
                self.step(StepKind::AwaitCas { at, expected: Expr::Int(0), new });
            }
            "pthread_rwlock_trywrlock" => {
                let (done, new) = (self.temporary(1), Expr::Int(-me));
                self.step(StepKind::Cas { old: None, done: Some(done), at, expected: Expr::Int(0), new });
                return Ok(Some(self.select(Expr::Reg(done), Expr::Int(0), Expr::Int(EBUSY), 32)));
            }
            "pthread_rwlock_rdlock" => {
                self.waits_for(Wait::ReadWriteLock);
                self.count(&at, 0, 1, true);
            }
            "pthread_rwlock_tryrdlock" => {
                let done = self.count(&at, 0, 1, false);
                return Ok(Some(self.select(done, Expr::Int(0), Expr::Int(EBUSY), 32)));
            }
            _ => {
                let old = self.temporary(32);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                let writes = self.binary(BinaryOp::Lt, Expr::Reg(old), Expr::Int(0));
                let (writer, reader, after) = (self.new_block(), self.new_block(), self.new_block());
                self.end(End::Branch(writes, writer, reader));
                self.go_on(writer);
                let mine = {
                    let owner = me;
                    self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(-owner))
                };
                self.step(StepKind::Assert(mine, Check::Held));
                let nothing = self.temporary(32);
                let operand = Expr::Int(0);
                self.step(StepKind::Locked { rmw: Rmw::Exchange, old: nothing, at: at.clone(), operand });
                self.end(End::Goto(after));
                self.go_on(reader);
                let before = self.temporary(32);
                let operand = Expr::Int(1);
                self.step(StepKind::Locked { rmw: Rmw::FetchSub, old: before, at, operand });
                let held = self.binary(BinaryOp::Gt, Expr::Reg(before), Expr::Int(0));
                self.step(StepKind::Assert(held, Check::Held));
                self.end(End::Goto(after));
                self.go_on(after);
            }
        }
        Ok(Some(Expr::Int(0)))
    }

    /// Adds to a word that is at least `least`, as a load and a compare and exchange. Waits until that is
    /// possible, or returns whether it was.
    pub(super) fn count(&mut self, at: &Access, least: i64, by: i64, wait: bool) -> Expr {
        let width = 8 << at.size;
        let (again, change, after) = (self.new_block(), self.new_block(), self.new_block());
        let result = self.temporary(1);
        self.end(End::Goto(again));
        self.go_on(again);
        if wait {
            let temporary = self.temporary(width);
            let condition = self.binary(BinaryOp::Ge, Expr::Reg(temporary), Expr::Int(least));
            self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
        }
        let word = self.temporary(width);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        let enough = self.binary(BinaryOp::Ge, Expr::Reg(word), Expr::Int(least));
        let failed = if wait { again } else { self.new_block() };
        self.end(End::Branch(enough, change, failed));
        self.go_on(change);
        let sum = self.binary(BinaryOp::WordAdd, Expr::Reg(word), Expr::Int(by));
        let (new, done) = (self.wrap(width, sum), self.temporary(1));
        let expected = Expr::Reg(word);
        self.step(StepKind::Cas { old: None, done: Some(done), at: at.clone(), expected, new });
        self.step(StepKind::Assign(result, Expr::Int(1)));
        self.end(End::Branch(Expr::Reg(done), after, again));
        if !wait {
            self.go_on(failed);
            self.step(StepKind::Assign(result, Expr::Int(0)));
            self.end(End::Goto(after));
        }
        self.go_on(after);
        Expr::Reg(result)
    }
}
