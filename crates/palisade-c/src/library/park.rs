//! Rust threads that wait for each other by name: `park`, `unpark` and `is_finished`.
//!
//! A thread that parks has a cell, its token. `unpark` sets it, and `park` waits until it is set and clears it. As with
//! condition variables, `park` may return for no reason, except where it is asked whether the program can finish. Which
//! thread `unpark` and `is_finished` are about may be known only once all threads are: `threads::expand` replaces these
//! steps.

use crate::expr::Expr;
use crate::flat::{Access, End, ObjectId, StepKind};
use crate::inline::{Context, Generator, Refused};
use crate::memory::ThreadNumber;
use crate::{Aim, Wait};
use palisade_llvm::values::Operand;
use palisade_program::written::BinaryOp;

impl Context<'_> {
    /// The token of a thread that parks.
    fn token(&mut self, thread: ThreadNumber) -> ObjectId {
        if let Some((_, token)) = self.tokens.iter().find(|(known, _)| *known == thread) {
            return *token;
        }
        let token = self.memory.add_cell(format!("thread{thread}.token"), 2, 0);
        self.tokens.push((thread, token));
        token
    }
}

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn park_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        match name {
            "std::thread::park" => self.park(),
            "std::thread::park_timeout" => self.park_for_a_while(),
            "std::thread::Thread::unpark" => {
                let thread = self.operand(operands, 0)?;
                self.step(StepKind::Unpark { thread });
            }
            "std::thread::JoinHandle::is_finished" => {
                let (thread, to) = (self.operand(operands, 0)?, self.temporary(32));
                self.step(StepKind::Finished { thread, to });
                return Ok(Some(self.binary(BinaryOp::Ne, Expr::Reg(to), Expr::Int(0))));
            }
            _ => return Ok(None),
        }
        Ok(Some(Expr::Int(0)))
    }

    fn own_token(&mut self) -> Access {
        let thread = self.thread;
        let token = self.context.token(thread);
        Access { pointer: Expr::Address(token, 0), size: 2, plain: false }
    }

    fn park(&mut self) {
        let at = self.own_token();
        let (waits, after) = (self.new_block(), self.new_block());
        // Waits of this thread may end by themselves.
        if !self.context.waiting.contains(&self.thread) {
            self.context.waiting.push(self.thread);
        }
        match self.context.options.aim {
            Aim::Safety | Aim::Exit => self.end(End::Choose(vec![waits, after])),
            Aim::Progress => self.end(End::Goto(waits)),
            Aim::Both => {
                let (may, any) = (self.temporary(1), self.new_block());
                self.step(StepKind::MayWakeAlone(may));
                self.end(End::Branch(Expr::Reg(may), any, waits));
                self.go_on(any);
                self.end(End::Choose(vec![waits, after]));
            }
        }
        self.go_on(waits);
        self.waits_for(Wait::Unpark);
        self.step(StepKind::AwaitCas { at, expected: Expr::Int(1), new: Expr::Int(0) });
        self.end(End::Goto(after));
        self.go_on(after);
    }

    /// The time may be over at any moment.
    fn park_for_a_while(&mut self) {
        let at = self.own_token();
        let old = Some(self.temporary(32));
        self.step(StepKind::Cas { old, done: None, at, expected: Expr::Int(1), new: Expr::Int(0) });
    }
}
