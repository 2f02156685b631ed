//! Threads of POSIX and C11: create, join, exit, self.
//!
//! A thread is known by a number, which is also its `pthread_t`. The number of a new thread follows from that of
//! its creator and from how many the creator has started before. `thrd_create` stores it before the thread runs.
//! `pthread_create` may store it later, by a plain access, with which accesses of the new thread can race.

use crate::expr::Expr;
use crate::flat::{Access, End, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::ThreadNumber;
use crate::{Aim, Identity};
use palisade_llvm::instructions::Instruction;
use palisade_llvm::values::{Operand, ValueId};
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
        instruction: &Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "pthread_create" => {
                let (handle, attribute) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                let (entry, argument) = (self.operand(operands, 2)?, self.operand(operands, 3)?);
                let detached = self.detach_state(attribute);
                let thread = self.create(handle, entry, argument, Stored::AfterStart);
                self.detach_if(detached, thread);
            }
            "thrd_create" => {
                let handle = self.operand(operands, 0)?;
                let (entry, argument) = (self.operand(operands, 1)?, self.operand(operands, 2)?);
                self.create(handle, entry, argument, Stored::BeforeStart);
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
                let (attribute, state) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                self.attribute(attribute.clone());
                let to = Access { pointer: attribute, size: 3, plain: true };
                self.step(StepKind::Store { to, value: state });
            }
            "pthread_attr_init" => {
                let to = Access { pointer: self.operand(operands, 0)?, size: 3, plain: true };
                self.step(StepKind::Store { to, value: Expr::Int(0) });
            }
            "pthread_attr_destroy" | "pthread_attr_setstacksize" => {
                let attribute = self.operand(operands, 0)?;
                self.attribute(attribute);
            }
            "pthread_self" | "thrd_current" => {
                let note = "the handles of threads are small numbers, in the order in which threads start";
                if instruction.result.is_some_and(|result| !self.is_only_compared(result)) {
                    self.context.notes.insert(crate::Note(note.to_owned()));
                }
                return Ok(Some(match self.context.options.identity {
                    Identity::Known => Expr::Int(self.thread),
                    Identity::WithoutHandle | Identity::Unknown => self.unknown(),
                }));
            }
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

    /// Whether the handle of a thread is only given to functions, such as `pthread_equal`.
    fn is_only_compared(&self, handle: ValueId) -> bool {
        let instructions = self.body().blocks.iter().flat_map(|block| &block.instructions);
        let mut others = instructions.filter(|instruction| instruction.op.call().is_none());
        !others.any(|instruction| {
            let mut used = false;
            instruction.op.for_each_operand(|operand| used |= operand == Operand::Local(handle));
            used
        })
    }

    /// The end of the program, if this is `main` and the question is what is left then.
    pub(crate) fn program_ends(&mut self, returns: bool) {
        if self.is_main() && self.context.options.aim == Aim::Exit {
            self.step(StepKind::ProgramEnds { returns });
        }
    }

    /// The first word of the attributes of threads: whether they are detached. They must have been initialised.
    fn attribute(&mut self, pointer: Expr) -> RegId {
        let to = self.temporary(64);
        let from = Access { pointer, size: 3, plain: true };
        self.step(StepKind::Load { to, from, written: Written::Needed });
        to
    }

    /// Whether a thread with these attributes is detached. Without any it is not.
    fn detach_state(&mut self, attribute: Expr) -> Expr {
        if attribute.as_int() == Some(0) {
            return Expr::Int(0);
        }
        let state = self.temporary(64);
        self.step(StepKind::Assign(state, Expr::Int(0)));
        let (given, after) = (self.new_block(), self.new_block());
        let some = self.binary(BinaryOp::Ne, attribute.clone(), Expr::Int(0));
        self.end(End::Branch(some, given, after));
        self.go_on(given);
        let found = self.attribute(attribute);
        self.step(StepKind::Assign(state, Expr::Reg(found)));
        self.end(End::Goto(after));
        self.go_on(after);
        Expr::Reg(state)
    }

    /// Detaches a new thread if it was created so.
    fn detach_if(&mut self, detached: Expr, thread: RegId) {
        if !self.context.features.detaches || detached.as_int() == Some(0) {
            return;
        }
        let (yes, after) = (self.new_block(), self.new_block());
        let is_set = self.binary(BinaryOp::Ne, detached, Expr::Int(0));
        self.end(End::Branch(is_set, yes, after));
        self.go_on(yes);
        self.step(StepKind::Detach { thread: Expr::Reg(thread) });
        self.end(End::Goto(after));
        self.go_on(after);
    }

    /// Starts a thread. Returns its number.
    fn create(&mut self, handle: Expr, entry: Expr, argument: Expr, stored: Stored) -> RegId {
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
        number
    }
}
