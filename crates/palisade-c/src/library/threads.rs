//! Threads of POSIX and C11: create, join, exit, self.
//!
//! A thread is known by a number, which is also its `pthread_t`. The number of a new thread follows from that of
//! its creator and from how many the creator has started before. `thrd_create` stores it before the thread runs.
//! `pthread_create` may store it later, by a plain access, with which accesses of the new thread can race.

use crate::Aim;
use crate::expr::Expr;
use crate::flat::{Access, End, StepKind};
use crate::inline::{Generator, Refused};
use crate::memory::ThreadNumber;
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check};

/// No thread starts more threads than this.
pub(crate) const MAX_CHILDREN: i64 = 99;

/// When the number of a new thread is stored for its creator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    BeforeStart,
    AfterStart,
}

/// The number of the first thread that a thread starts.
pub(crate) fn first_child(thread: ThreadNumber) -> ThreadNumber {
    if thread == 1 { 2 } else { thread * 100 + 1 }
}

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn thread_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "pthread_create" => {
                let handle = self.operand(operands, 0)?;
                let (entry, argument) = (self.operand(operands, 2)?, self.operand(operands, 3)?);
                self.create(handle, entry, argument, Stored::AfterStart)?;
            }
            "thrd_create" => {
                let handle = self.operand(operands, 0)?;
                let (entry, argument) = (self.operand(operands, 1)?, self.operand(operands, 2)?);
                self.create(handle, entry, argument, Stored::BeforeStart)?;
            }
            "pthread_join" | "thrd_join" => {
                let (thread, to) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                let size = if name == "thrd_join" { 2 } else { 3 };
                if to.as_int() == Some(0) {
                    self.step(StepKind::Join { thread, result: None });
                } else {
                    let result = self.temporary(64);
                    self.step(StepKind::Join { thread, result: Some(result) });
                    let value = self.wrap(8 << size, Expr::Reg(result));
                    let store =
                        StepKind::Store { to: Access { pointer: to.clone(), size, plain: false }, value };
                    if matches!(to, Expr::Address(..)) {
                        self.step(store);
                    } else {
                        let (yes, after) = (self.new_block(), self.new_block());
                        let given = self.binary(BinaryOp::Ne, to, Expr::Int(0));
                        self.end(End::Branch(given, yes, after));
                        self.go_on(yes);
                        self.step(store);
                        self.end(End::Goto(after));
                        self.go_on(after);
                    }
                }
            }
            "pthread_exit" | "thrd_exit" => {
                let value = self.operand(operands, 0)?;
                self.step(StepKind::Assign(self.result, value));
                self.leave_all();
                if self.is_main() && self.context.options.aim != Aim::Safety {
                    // The program goes on until the last thread has ended.
                    self.step(StepKind::AwaitThreads);
                    self.program_ends(false);
                    self.end(End::Over);
                } else {
                    self.end(End::Goto(self.exit));
                }
                return Err(Refused);
            }
            "pthread_attr_setdetachstate" => {
                let state = self.operand(operands, 1)?;
                if state.as_int() != Some(0) {
                    let note = "threads that are created as detached ones are not joined".to_owned();
                    self.context.notes.insert(crate::Note(note));
                }
            }
            "pthread_self" | "thrd_current" => return Ok(Some(Expr::Int(self.thread))),
            "pthread_equal" | "thrd_equal" => {
                let (a, b) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                return Ok(Some(self.binary(BinaryOp::Eq, a, b)));
            }
            "pthread_detach" | "thrd_detach" => {
                let thread = self.operand(operands, 0)?;
                self.step(StepKind::Detach { thread });
            }
            _ => return Ok(None),
        }
        Ok(Some(Expr::Int(0)))
    }

    /// The end of the program, if this is `main` and somebody asks what is left then.
    pub(crate) fn program_ends(&mut self, returns: bool) {
        if self.is_main() && self.context.options.aim == Aim::Exit {
            self.step(StepKind::ProgramEnds { returns });
        }
    }

    fn create(&mut self, handle: Expr, entry: Expr, argument: Expr, stored: Stored) -> Result<(), Refused> {
        let count = Expr::Reg(self.started);
        let room = self.binary(BinaryOp::Lt, count.clone(), Expr::Int(MAX_CHILDREN));
        self.step(StepKind::Assert(room, Check::Threads));
        let number = self.temporary(64);
        let first = Expr::Int(first_child(self.thread));
        let sum = self.binary(BinaryOp::WordAdd, count.clone(), first);
        self.step(StepKind::Assign(number, sum));
        let next = self.binary(BinaryOp::WordAdd, count, Expr::Int(1));
        self.step(StepKind::Assign(self.started, next));
        let plain = stored == Stored::AfterStart;
        let to = Access { pointer: handle, size: 3, plain };
        let store = StepKind::Store { to, value: Expr::Reg(number) };
        let start = StepKind::Start { thread: Expr::Reg(number), entry, argument };
        match stored {
            Stored::BeforeStart => [store, start],
            Stored::AfterStart => [start, store],
        }
        .into_iter()
        .for_each(|kind| self.step(kind));
        Ok(())
    }
}
