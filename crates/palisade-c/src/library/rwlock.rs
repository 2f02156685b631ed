//! Reader-writer locks, and words that are counted up and down.
//!
//! Names that begin with `pthread_rwlock_` are those of POSIX. As in the GNU C library, a waiting writer does not keep
//! readers out, and answers say so. Names that begin with [`PREFERS_WRITERS`] are those of locks on which a waiting writer
//! may keep readers out, as in Rust's library:
//! - A writer that finds the lock held announces that it waits, waits until the lock is free, withdraws the announcement, and
//!   tries again. So readers can come before it at any time but while it is announced.
//! - A reader waits until no writer is announced, then for the lock. A writer that is announced in between has come too
//!   late, as if the reader had been faster.
//!
//! The first word of a lock is the number of readers, or minus the number of the thread that writes. Which locks a thread
//! holds as a reader is kept in registers of the thread, by address, so that it cannot release what others hold.

use super::mutex::{EBUSY, MAX_OWNER};
use crate::expr::{self, Expr};
use crate::flat::{Access, End, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::{Note, Wait};
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check, Rmw};

/// How the names of locks begin on which waiting writers may keep readers out.
const PREFERS_WRITERS: &str = "palisade_rwlock_";

/// The first word of a lock that was destroyed.
const DESTROYED: i64 = i32::MIN as i64;

/// Writers have smaller numbers.
const MAX_WRITER: i64 = 1000;

/// How many locks a thread may hold as a reader at the same time.
const MAX_READ: usize = 4;

/// A word that is counted.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    /// The word may be changed if it is at least this much.
    pub(super) least: i64,
    pub(super) by: i64,
    /// All numbers below this are marks of words that were destroyed, if there are such marks.
    pub(super) destroyed_below: Option<i64>,
}

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn rwlock_function(
        &mut self,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        let posix = name.strip_prefix("pthread_rwlock_");
        let Some(function) = posix.or_else(|| name.strip_prefix(PREFERS_WRITERS)) else { return Ok(None) };
        let prefers_writers = posix.is_none();
        let known =
            ["init", "destroy", "rdlock", "wrlock", "tryrdlock", "trywrlock", "unlock"].contains(&function);
        if !known {
            return Ok(None);
        }
        let at = Access { pointer: self.operand(operands, 0)?, size: 2, plain: false };
        let destroys = self.context.features.destroys_rwlocks;
        let reader = Counted { least: 0, by: 1, destroyed_below: destroys.then_some(-MAX_WRITER) };
        let me = self.owner();
        match function {
            "init" => {
                let at = Access { plain: true, ..at };
                let old = self.temporary(32);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Any });
                let held = self.held(old);
                self.step(StepKind::Assert(expr::not(held), Check::NotInUse));
                self.step(StepKind::Store { to: at, value: Expr::Int(0) });
            }
            "destroy" => {
                let at = Access { plain: true, ..at };
                let old = self.temporary(32);
                self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
                self.check_not_destroyed(old);
                let free = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(0));
                self.step(StepKind::Assert(free, Check::NotInUse));
                self.step(StepKind::Store { to: at, value: Expr::Int(DESTROYED) });
            }
            "wrlock" if prefers_writers => self.wait_to_write(&at, me),
            "wrlock" => {
                self.check_rwlock(&at);
                let new = Expr::Int(-me);
                self.waits_for(Wait::ReadWriteLock);
                self.step(StepKind::AwaitCas { at, expected: Expr::Int(0), new });
            }
            "trywrlock" => {
                self.check_rwlock(&at);
                let (done, new) = (self.temporary(1), Expr::Int(-me));
                self.step(StepKind::Cas { old: None, done: Some(done), at, expected: Expr::Int(0), new });
                return Ok(Some(self.select(Expr::Reg(done), Expr::Int(0), Expr::Int(EBUSY), 32)));
            }
            "rdlock" => {
                match prefers_writers {
                    true => self.wait_for_writers(&at),
                    false => self.readers_overtake(),
                }
                self.waits_for(Wait::ReadWriteLock);
                self.count(&at, reader, true);
                self.now_reads(&at.pointer);
            }
            "tryrdlock" => {
                let result = self.temporary(32);
                let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
                match prefers_writers {
                    true => {
                        let (waiting, free) = (self.temporary(32), self.new_block());
                        let from = self.announced(&at);
                        self.step(StepKind::Load { to: waiting, from, written: Written::Needed });
                        let nobody = self.binary(BinaryOp::Eq, Expr::Reg(waiting), Expr::Int(0));
                        self.end(End::Branch(nobody, free, no));
                        self.go_on(free);
                    }
                    false => self.readers_overtake(),
                }
                let done = self.count(&at, reader, false);
                self.end(End::Branch(done, yes, no));
                self.go_on(yes);
                self.now_reads(&at.pointer);
                self.step(StepKind::Assign(result, Expr::Int(0)));
                self.end(End::Goto(after));
                self.go_on(no);
                self.step(StepKind::Assign(result, Expr::Int(EBUSY)));
                self.end(End::Goto(after));
                self.go_on(after);
                return Ok(Some(Expr::Reg(result)));
            }
            _ => self.rwlock_unlock(at, me),
        }
        Ok(Some(Expr::Int(0)))
    }

    /// The number of writers that are announced: the second word of a lock.
    fn announced(&self, at: &Access) -> Access {
        Access { pointer: self.binary(BinaryOp::WordAdd, at.pointer.clone(), Expr::Int(4)), ..at.clone() }
    }

    /// Takes a lock as a writer that keeps readers out while it waits.
    fn wait_to_write(&mut self, at: &Access, me: i64) {
        let (again, held, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Goto(again));
        self.go_on(again);
        let (done, new) = (self.temporary(1), Expr::Int(-me));
        self.step(StepKind::Cas { old: None, done: Some(done), at: at.clone(), expected: Expr::Int(0), new });
        self.end(End::Branch(Expr::Reg(done), after, held));
        self.go_on(held);
        let announced = self.announced(at);
        let announce = |generator: &mut Self, rmw| {
            let (old, at, operand) = (generator.temporary(32), announced.clone(), Expr::Int(1));
            generator.step(StepKind::Locked { rmw, old, at, operand });
        };
        announce(self, Rmw::FetchAdd);
        let temporary = self.temporary(32);
        let condition = self.binary(BinaryOp::Eq, Expr::Reg(temporary), Expr::Int(0));
        self.waits_for(Wait::ReadWriteLock);
        self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
        announce(self, Rmw::FetchSub);
        self.end(End::Goto(again));
        self.go_on(after);
    }

    /// Waits until no writer is announced.
    fn wait_for_writers(&mut self, at: &Access) {
        let (temporary, from) = (self.temporary(32), self.announced(at));
        let condition = self.binary(BinaryOp::Eq, Expr::Reg(temporary), Expr::Int(0));
        self.waits_for(Wait::ReadWriteLock);
        self.step(StepKind::AwaitLoad { temporary, from, condition });
    }

    /// What answers about POSIX locks rest on.
    fn readers_overtake(&mut self) {
        let note =
            "a writer that waits for a reader-writer lock does not keep readers out, as in the GNU C library";
        self.context.notes.insert(Note(note.to_owned()));
    }

    /// Whether a word is that of a lock that is held, rather than of memory that was used for something else.
    fn held(&self, word: RegId) -> Expr {
        let compare = |op, bound| self.binary(op, Expr::Reg(word), Expr::Int(bound));
        let near =
            self.binary(BinaryOp::And, compare(BinaryOp::Ge, -MAX_OWNER), compare(BinaryOp::Le, MAX_OWNER));
        self.binary(BinaryOp::And, near, compare(BinaryOp::Ne, 0))
    }

    fn check_not_destroyed(&mut self, word: RegId) {
        if self.context.features.destroys_rwlocks {
            let usable = self.binary(BinaryOp::Ne, Expr::Reg(word), Expr::Int(DESTROYED));
            self.step(StepKind::Assert(usable, Check::NotDestroyed));
        }
    }

    /// A lock that was destroyed must not be used.
    fn check_rwlock(&mut self, at: &Access) {
        if self.context.features.destroys_rwlocks {
            let word = self.temporary(32);
            self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
            self.check_not_destroyed(word);
        }
    }

    fn rwlock_unlock(&mut self, at: Access, me: i64) {
        let old = self.temporary(32);
        self.step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        self.check_not_destroyed(old);
        let writes = self.binary(BinaryOp::Lt, Expr::Reg(old), Expr::Int(0));
        let (writer, reader, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(writes, writer, reader));
        self.go_on(writer);
        let mine = self.binary(BinaryOp::Eq, Expr::Reg(old), Expr::Int(-me));
        self.step(StepKind::Assert(mine, Check::Held));
        let nothing = self.temporary(32);
        let operand = Expr::Int(0);
        self.step(StepKind::Locked { rmw: Rmw::Exchange, old: nothing, at: at.clone(), operand });
        self.end(End::Goto(after));
        self.go_on(reader);
        self.reads_no_longer(&at.pointer);
        let before = self.temporary(32);
        let operand = Expr::Int(1);
        self.step(StepKind::Locked { rmw: Rmw::FetchSub, old: before, at, operand });
        self.end(End::Goto(after));
        self.go_on(after);
    }

    /// The registers that hold the addresses of the locks that the thread holds as a reader, or 0.
    fn read_locks(&mut self) -> [RegId; MAX_READ] {
        if let Some(known) = self.read_locks {
            return known;
        }
        let registers = std::array::from_fn(|_| self.code.new_register("reads", 64));
        for register in registers {
            let nothing_yet = self.make_step(StepKind::Assign(register, Expr::Int(0)));
            self.code.blocks[0].steps.insert(0, nothing_yet);
        }
        self.read_locks = Some(registers);
        registers
    }

    /// The thread holds a lock as a reader, perhaps once more.
    fn now_reads(&mut self, lock: &Expr) {
        self.exchange_read_lock(&Expr::Int(0), lock, Check::Value);
    }

    /// The thread releases a lock that it must hold as a reader.
    fn reads_no_longer(&mut self, lock: &Expr) {
        self.exchange_read_lock(lock, &Expr::Int(0), Check::Held);
    }

    /// Replaces the first register that holds `old` by `new`.
    fn exchange_read_lock(&mut self, old: &Expr, new: &Expr, otherwise: Check) {
        let after = self.new_block();
        for register in self.read_locks() {
            let (yes, no) = (self.new_block(), self.new_block());
            let same = self.binary(BinaryOp::Eq, Expr::Reg(register), old.clone());
            self.end(End::Branch(same, yes, no));
            self.go_on(yes);
            self.step(StepKind::Assign(register, new.clone()));
            self.end(End::Goto(after));
            self.go_on(no);
        }
        self.step(StepKind::Assert(Expr::Int(0), otherwise));
        self.end(End::Stop);
        self.go_on(after);
    }

    /// Adds to a word, as a load and a compare and exchange. Waits until that is possible, or returns whether it was.
    pub(super) fn count(&mut self, at: &Access, counted: Counted, wait: bool) -> Expr {
        let Counted { least, by, destroyed_below } = counted;
        let width = 8 << at.size;
        let (again, change, after) = (self.new_block(), self.new_block(), self.new_block());
        let result = self.temporary(1);
        self.end(End::Goto(again));
        self.go_on(again);
        if wait {
            let temporary = self.temporary(width);
            let condition = match destroyed_below {
                None => self.binary(BinaryOp::Ge, Expr::Reg(temporary), Expr::Int(least)),
                // A mark ends the wait as well: as an unsigned number it is large.
                Some(mark) => {
                    let moved = self.binary(BinaryOp::WordSub, Expr::Reg(temporary), Expr::Int(mark));
                    expr::not(self.binary(BinaryOp::WordLt, moved, Expr::Int(least - mark)))
                }
            };
            self.step(StepKind::AwaitLoad { temporary, from: at.clone(), condition });
        }
        let word = self.temporary(width);
        self.step(StepKind::Load { to: word, from: at.clone(), written: Written::Needed });
        if let Some(mark) = destroyed_below {
            let usable = self.binary(BinaryOp::Ge, Expr::Reg(word), Expr::Int(mark));
            self.step(StepKind::Assert(usable, Check::NotDestroyed));
        }
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
