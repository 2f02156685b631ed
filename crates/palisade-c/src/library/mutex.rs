//! Mutexes, of POSIX and C11, and spin locks.
//!
//! The first word of a mutex is 0, or the number of the thread that holds it. Locking is a locked compare and
//! exchange that is tried until it succeeds; unlocking is a locked exchange, as in glibc on x86.

use crate::expr::Expr;
use crate::flat::{Access, StepKind};
use crate::inline::{Generator, Refused};
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// The first word of a mutex that was destroyed.
const DESTROYED: i64 = -1;

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
                let at = self.mutex(operands)?;
                self.lock(at);
            }
            "pthread_mutex_trylock" | "mtx_trylock" | "pthread_spin_trylock" => {
                let at = self.mutex(operands)?;
                let done = self.temporary(1);
                self.check_mutex(&at);
                self.step(StepKind::Cas {
                    old: None,
                    done: Some(done),
                    at,
                    expected: Expr::Int(0),
                    new: Expr::Int(self.thread),
                });
                let busy = if name == "mtx_trylock" { THRD_BUSY } else { EBUSY };
                return Ok(Some(self.select(Expr::Reg(done), Expr::Int(0), Expr::Int(busy), 32)));
            }
            "pthread_mutex_unlock" | "mtx_unlock" | "pthread_spin_unlock" => {
                let at = self.mutex(operands)?;
                self.unlock(at);
            }
            "pthread_mutex_init" | "mtx_init" | "pthread_spin_init" => {
                let attribute = self.operand(operands, 1)?;
                let plain = attribute.as_int() == Some(0) || name == "pthread_spin_init";
                if !plain {
                    return Err(self.refuse(format!("`{name}` of a mutex that is not a plain one")));
                }
                let at = self.mutex(operands)?;
                self.step(StepKind::Store { to: at, value: Expr::Int(0) });
            }
            "pthread_mutex_destroy" | "mtx_destroy" | "pthread_spin_destroy" => {
                let at = self.mutex(operands)?;
                let old = self.temporary(32);
                self.step(StepKind::Load { to: old, from: at.clone(), raw: false });
                let free = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(0));
                self.step(StepKind::Assert(free, Check::Usable));
                self.step(StepKind::Store { to: at, value: Expr::Int(DESTROYED) });
            }
            _ => return Ok(None),
        }
        Ok(Some(Expr::Int(0)))
    }

    /// The first word of the mutex that is the first argument.
    fn mutex(&mut self, operands: &[Operand]) -> Result<Access, Refused> {
        let pointer = self.operand(operands, 0)?;
        Ok(Access { pointer, size: 2 })
    }

    /// A mutex that was destroyed or never initialised must not be used.
    fn check_mutex(&mut self, at: &Access) {
        if self.context.features.destroys_mutexes {
            let old = self.temporary(32);
            self.step(StepKind::Load { to: old, from: at.clone(), raw: false });
            let usable = self.binary(BinaryOp::Ne, Expr::Reg(old), Expr::Int(DESTROYED));
            self.step(StepKind::Assert(usable, Check::Usable));
        }
    }

    /// Waits for the mutex.
    pub(super) fn lock(&mut self, at: Access) {
        self.check_mutex(&at);
        let new = Expr::Int(self.thread);
        self.step(StepKind::AwaitCas { at, expected: Expr::Int(0), new });
    }

    /// Gives the mutex back.
    pub(super) fn unlock(&mut self, at: Access) {
        let old = self.temporary(32);
        self.step(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand: Expr::Int(0) });
        let held = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(self.thread));
        self.step(StepKind::Assert(held, Check::Held));
    }
}
