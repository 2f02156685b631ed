//! The code of one thread: blocks of steps over registers and objects, after inlining and before addresses
//! exist. The passes work on it; `emit` writes it down.
//!
//! *Invariants.*
//! 1. An expression reads registers only, and its evaluation cannot fail. What can fail is a step of its own, or
//!    is checked by a step before it.
//! 2. The value of an expression of width w is canonical: sign-extended, for `i1` 0 or 1.
//! 3. Every access to memory is a step. Steps are in the order of the source.

use crate::expr::Expr;
use crate::heap::Site;
use palisade_base::{Span, define_id};
use palisade_llvm::types::TypeId;
use palisade_program::written::{Check, Rmw};

define_id! {
    /// A register of a thread.
    RegId
}
define_id! {
    /// A block of a thread's code.
    BlockId
}
define_id! {
    /// An object in memory.
    ObjectId
}

/// A register.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    /// What it is called in the source; empty for intermediate results.
    pub(crate) name: String,
    /// The number of bits of its values.
    pub(crate) width: u32,
}

/// The code of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) registers: Vec<Register>,
    /// Block 0 is the entry.
    pub(crate) blocks: Vec<Block>,
    /// The allocation sites, and the lists of freed objects by shape.
    pub(crate) sites: Vec<Site>,
    pub(crate) free_lists: Vec<(usize, Vec<RegId>)>,
    /// Whether an assertion of the program turned out to always hold.
    pub(crate) asserted: bool,
}

/// Steps without branches.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
    pub(crate) end_span: Span,
}

/// A step and where it comes from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) span: Span,
}

/// An access: 2^size bytes at an address.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Access {
    pub(crate) pointer: Expr,
    pub(crate) size: u32,
    /// Whether the program makes it as a plain access, which must not race with others.
    pub(crate) plain: bool,
}

/// Whether what a load finds must have been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// It is used, so it must.
    Needed,
    /// Only some of its bits are used. If it was not written, that is a limit: a bit-field may be assigned while
    /// the bits around it were never.
    Partly,
    /// It is copied as it is.
    Copied,
    /// It is looked at, and may be anything.
    Any,
}

impl Written {
    /// What a check of it is about.
    pub(crate) fn check(self) -> Option<Check> {
        match self {
            Written::Needed => Some(Check::Initialised),
            Written::Partly => Some(Check::Value),
            Written::Copied | Written::Any => None,
        }
    }
}

/// What a step does.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum StepKind {
    Assign(RegId, Expr),
    /// Loads what must have been written, except in a copy.
    Load {
        to: RegId,
        from: Access,
        written: Written,
    },
    Store {
        to: Access,
        value: Expr,
    },
    /// A locked instruction other than compare and exchange.
    Locked {
        rmw: Rmw,
        old: RegId,
        at: Access,
        operand: Expr,
    },
    /// Compare and exchange: the old value, and whether the exchange happened.
    Cas {
        old: Option<RegId>,
        done: Option<RegId>,
        at: Access,
        expected: Expr,
        new: Expr,
    },
    /// Waits until the exchange happens.
    AwaitCas {
        at: Access,
        expected: Expr,
        new: Expr,
    },
    /// Waits until the condition holds for what is loaded, then continues with what was loaded last.
    AwaitLoad {
        temporary: RegId,
        from: Access,
        condition: Expr,
    },
    /// Takes no time, as seen by others, after the thread's own stores have reached memory.
    Atomic(Vec<Step>),
    /// Only inside [`StepKind::Atomic`].
    If(Expr, Vec<Step>, Vec<Step>),
    Fence,
    StoreFence,
    Assert(Expr, Check),
    Assume(Expr),
    /// Any value of a range. If it has too many values, `wide` is the index of the refusal that says so.
    Any {
        to: RegId,
        lo: i64,
        hi: i64,
        wide: Option<usize>,
    },
    /// The number of a thread that may wait for conditions.
    AnyWaiting(RegId),
    /// Whether waits for conditions may end without a signal in this run. Only under [`Aim::Both`](crate::Aim).
    MayWakeAlone(RegId),
    /// The local object exists from here on, with contents that were never written.
    Enter(ObjectId),
    /// The declaration of the local object is reached again while the object exists: what is in it counts as never
    /// written.
    Redeclare(ObjectId),
    /// The function of the local object has returned: what is in it must not be used any more.
    Leave(ObjectId),
    /// The register was assigned before it is read here.
    Initialised(RegId, Check),
    /// The register holds what was never written.
    Uninitialise(RegId),
    /// What cannot be translated, by its index in `Context::unsupported`. It matters only if control can reach it.
    Unsupported(usize),
    /// Allocates an object, and counts the allocations of the site. The type as which it is used may be known, by
    /// module.
    Allocate {
        to: RegId,
        size: Expr,
        hint: Option<(usize, TypeId)>,
        zero: bool,
        count: RegId,
    },
    /// Frees an object, and may change the lists of freed objects.
    Free {
        pointer: Expr,
        lists: Vec<RegId>,
    },
    /// Copies the contents of an object, up to a number of bytes, to a new one.
    Move {
        from: Expr,
        to: Expr,
        size: Expr,
    },
    /// Copies bytes of objects whose scalars are not known yet.
    Copy {
        from: Expr,
        to: Expr,
        size: Expr,
    },
    /// Sets bytes of objects whose scalars are not known yet: all to one value, or as if they were never written.
    Fill {
        to: Expr,
        size: Expr,
        byte: Option<u8>,
    },
    /// The object whose first scalar this is has not been freed.
    Freeable(Access),
    /// Starts a thread.
    Start {
        thread: Expr,
        entry: Expr,
        argument: Expr,
    },
    /// Waits for a thread to end.
    Join {
        thread: Expr,
        result: Option<RegId>,
    },
    /// A thread is not to be joined.
    Detach {
        thread: Expr,
    },
    /// Sets the token of a thread that parks.
    Unpark {
        thread: Expr,
    },
    /// Whether a thread has ended.
    Finished {
        thread: Expr,
        to: RegId,
    },
    /// Waits until all threads that were started have ended.
    AwaitThreads,
    /// The end of the program in `main`, under [`Aim::Exit`](crate::Aim): it returns, or exits.
    ProgramEnds {
        returns: bool,
    },
}

/// How a block ends.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum End {
    Goto(BlockId),
    Branch(Expr, BlockId, BlockId),
    /// One of several blocks, by choice.
    Choose(Vec<BlockId>),
    /// The thread does not continue.
    Stop,
    /// The whole program ends: `main` returns, or a thread calls `exit`.
    Over,
}

impl End {
    /// Visits the blocks that follow.
    pub(crate) fn for_each_successor(&self, mut visit: impl FnMut(BlockId)) {
        match self {
            End::Goto(to) => visit(*to),
            End::Branch(_, yes, no) => {
                visit(*yes);
                visit(*no);
            }
            End::Choose(all) => all.iter().copied().for_each(visit),
            End::Stop | End::Over => {}
        }
    }

    /// Visits the blocks that follow, to change them.
    pub(crate) fn for_each_successor_mut(&mut self, mut visit: impl FnMut(&mut BlockId)) {
        match self {
            End::Goto(to) => visit(to),
            End::Branch(_, yes, no) => {
                visit(yes);
                visit(no);
            }
            End::Choose(all) => all.iter_mut().for_each(visit),
            End::Stop | End::Over => {}
        }
    }
}

impl StepKind {
    /// Visits all expressions, those of addresses included.
    pub(crate) fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            StepKind::Assign(_, e) | StepKind::Assert(e, _) | StepKind::Assume(e) => visit(e),
            StepKind::Load { from, .. } => visit(&from.pointer),
            StepKind::Store { to, value } => {
                visit(value);
                visit(&to.pointer);
            }
            StepKind::Locked { at, operand, .. } => {
                visit(operand);
                visit(&at.pointer);
            }
            StepKind::Cas { at, expected, new, .. } | StepKind::AwaitCas { at, expected, new } => {
                visit(expected);
                visit(new);
                visit(&at.pointer);
            }
            StepKind::AwaitLoad { from, condition, .. } => {
                visit(&from.pointer);
                visit(condition);
            }
            StepKind::Atomic(steps) => steps.iter().for_each(|step| step.kind.for_each_expr(visit)),
            StepKind::If(condition, then, otherwise) => {
                visit(condition);
                then.iter().chain(otherwise).for_each(|step| step.kind.for_each_expr(visit));
            }
            StepKind::Start { thread, entry, argument } => {
                visit(thread);
                visit(entry);
                visit(argument);
            }
            StepKind::Join { thread, .. }
            | StepKind::Detach { thread }
            | StepKind::Unpark { thread }
            | StepKind::Finished { thread, .. } => visit(thread),
            StepKind::Allocate { size, .. } => visit(size),
            StepKind::Free { pointer, .. } => visit(pointer),
            StepKind::Move { from, to, size } | StepKind::Copy { from, to, size } => {
                visit(from);
                visit(to);
                visit(size);
            }
            StepKind::Fill { to, size, .. } => {
                visit(to);
                visit(size);
            }
            StepKind::Freeable(access) => visit(&access.pointer),
            StepKind::Fence
            | StepKind::StoreFence
            | StepKind::AwaitThreads
            | StepKind::ProgramEnds { .. }
            | StepKind::Any { .. }
            | StepKind::AnyWaiting(_)
            | StepKind::MayWakeAlone(_)
            | StepKind::Enter(_)
            | StepKind::Redeclare(_)
            | StepKind::Leave(_)
            | StepKind::Initialised(..)
            | StepKind::Uninitialise(_)
            | StepKind::Unsupported(_) => {}
        }
    }

    /// Visits all expressions, to change them.
    pub(crate) fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            StepKind::Assign(_, e) | StepKind::Assert(e, _) | StepKind::Assume(e) => visit(e),
            StepKind::Load { from, .. } => visit(&mut from.pointer),
            StepKind::Store { to, value } => {
                visit(value);
                visit(&mut to.pointer);
            }
            StepKind::Locked { at, operand, .. } => {
                visit(operand);
                visit(&mut at.pointer);
            }
            StepKind::Cas { at, expected, new, .. } | StepKind::AwaitCas { at, expected, new } => {
                visit(expected);
                visit(new);
                visit(&mut at.pointer);
            }
            StepKind::AwaitLoad { from, condition, .. } => {
                visit(&mut from.pointer);
                visit(condition);
            }
            StepKind::Atomic(steps) => steps.iter_mut().for_each(|step| step.kind.for_each_expr_mut(visit)),
            StepKind::If(condition, then, otherwise) => {
                visit(condition);
                then.iter_mut().chain(otherwise).for_each(|step| step.kind.for_each_expr_mut(visit));
            }
            StepKind::Start { thread, entry, argument } => {
                visit(thread);
                visit(entry);
                visit(argument);
            }
            StepKind::Join { thread, .. }
            | StepKind::Detach { thread }
            | StepKind::Unpark { thread }
            | StepKind::Finished { thread, .. } => visit(thread),
            StepKind::Allocate { size, .. } => visit(size),
            StepKind::Free { pointer, .. } => visit(pointer),
            StepKind::Move { from, to, size } | StepKind::Copy { from, to, size } => {
                visit(from);
                visit(to);
                visit(size);
            }
            StepKind::Fill { to, size, .. } => {
                visit(to);
                visit(size);
            }
            StepKind::Freeable(access) => visit(&mut access.pointer),
            StepKind::Fence
            | StepKind::StoreFence
            | StepKind::AwaitThreads
            | StepKind::ProgramEnds { .. }
            | StepKind::Any { .. }
            | StepKind::AnyWaiting(_)
            | StepKind::MayWakeAlone(_)
            | StepKind::Enter(_)
            | StepKind::Redeclare(_)
            | StepKind::Leave(_)
            | StepKind::Initialised(..)
            | StepKind::Uninitialise(_)
            | StepKind::Unsupported(_) => {}
        }
    }

    /// Visits the registers that the step reads.
    pub(crate) fn for_each_read(&self, visit: &mut dyn FnMut(RegId)) {
        if let StepKind::Initialised(register, _) = self {
            visit(*register);
        }
        if let StepKind::Free { lists, .. } = self {
            lists.iter().copied().for_each(&mut *visit);
        }
        if let StepKind::Allocate { count, .. } = self {
            visit(*count);
        }
        self.for_each_expr(&mut |e| e.for_each_register(visit));
    }

    /// Visits the registers that the step may write.
    pub(crate) fn for_each_written(&self, visit: &mut dyn FnMut(RegId)) {
        match self {
            StepKind::Free { lists, .. } => lists.iter().copied().for_each(visit),
            StepKind::Allocate { to, count, .. } => {
                visit(*to);
                visit(*count);
            }
            StepKind::Assign(to, _)
            | StepKind::Load { to, .. }
            | StepKind::Finished { to, .. }
            | StepKind::Any { to, .. }
            | StepKind::AnyWaiting(to)
            | StepKind::MayWakeAlone(to)
            | StepKind::Uninitialise(to) => visit(*to),
            StepKind::Locked { old, .. } => visit(*old),
            StepKind::Cas { old, done, .. } => old.iter().chain(done).copied().for_each(visit),
            StepKind::AwaitLoad { temporary, .. } => visit(*temporary),
            StepKind::Join { result, .. } => result.iter().copied().for_each(visit),
            StepKind::Atomic(steps) => steps.iter().for_each(|step| step.kind.for_each_written(visit)),
            StepKind::If(_, then, otherwise) => {
                then.iter().chain(otherwise).for_each(|step| step.kind.for_each_written(visit));
            }
            StepKind::Store { .. }
            | StepKind::AwaitCas { .. }
            | StepKind::Fence
            | StepKind::StoreFence
            | StepKind::Assert(..)
            | StepKind::Assume(_)
            | StepKind::Enter(_)
            | StepKind::Redeclare(_)
            | StepKind::Leave(_)
            | StepKind::Initialised(..)
            | StepKind::Unsupported(_)
            | StepKind::Freeable(_)
            | StepKind::Move { .. }
            | StepKind::Copy { .. }
            | StepKind::Fill { .. }
            | StepKind::AwaitThreads
            | StepKind::ProgramEnds { .. }
            | StepKind::Detach { .. }
            | StepKind::Unpark { .. }
            | StepKind::Start { .. } => {}
        }
    }

    /// Whether the registers that the step writes may also keep their values.
    pub(crate) fn may_not_write(&self) -> bool {
        matches!(
            self,
            StepKind::Atomic(_) | StepKind::If(..) | StepKind::Free { .. } | StepKind::Allocate { .. }
        )
    }

    /// Visits the accesses to memory, including those inside an atomic section.
    pub(crate) fn for_each_access(&self, visit: &mut dyn FnMut(&Access)) {
        match self {
            StepKind::Load { from: access, .. }
            | StepKind::Store { to: access, .. }
            | StepKind::Locked { at: access, .. }
            | StepKind::Cas { at: access, .. }
            | StepKind::AwaitCas { at: access, .. }
            | StepKind::AwaitLoad { from: access, .. }
            | StepKind::Freeable(access) => visit(access),
            StepKind::Atomic(steps) => steps.iter().for_each(|step| step.kind.for_each_access(visit)),
            StepKind::If(_, then, otherwise) => {
                then.iter().chain(otherwise).for_each(|step| step.kind.for_each_access(visit));
            }
            _ => {}
        }
    }
}

impl Code {
    /// The blocks that control can reach, entry first, each after one of those that lead to it.
    pub(crate) fn reachable(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        // Postorder, then reversed.
        let mut order = Vec::new();
        let mut stack = vec![(BlockId(0), false)];
        while let Some((block, done)) = stack.pop() {
            if done {
                order.push(block);
                continue;
            }
            if std::mem::replace(&mut seen[block.0 as usize], true) {
                continue;
            }
            stack.push((block, true));
            let mut next = Vec::new();
            self.blocks[block.0 as usize].end.for_each_successor(|to| next.push(to));
            // The last one pushed is visited first and ends up last in the reversed order.
            next.into_iter().for_each(|to| stack.push((to, false)));
        }
        order.reverse();
        order
    }

    /// How many edges lead to each block from blocks that control can reach. The entry has one more.
    pub(crate) fn predecessor_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.blocks.len()];
        counts[0] = 1;
        for block in self.reachable() {
            self.blocks[block.0 as usize].end.for_each_successor(|to| counts[to.0 as usize] += 1);
        }
        counts
    }

    pub(crate) fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    pub(crate) fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.0 as usize]
    }

    /// Adds an empty block.
    pub(crate) fn new_block(&mut self) -> BlockId {
        self.blocks.push(Block { steps: Vec::new(), end: End::Stop, end_span: Span::NONE });
        BlockId(u32::try_from(self.blocks.len() - 1).expect("fewer than 2^32 blocks"))
    }

    /// Adds a register.
    pub(crate) fn new_register(&mut self, name: impl Into<String>, width: u32) -> RegId {
        self.registers.push(Register { name: name.into(), width });
        RegId(u32::try_from(self.registers.len() - 1).expect("fewer than 2^32 registers"))
    }

    pub(crate) fn width(&self, register: RegId) -> u32 {
        self.registers[register.0 as usize].width
    }
}
