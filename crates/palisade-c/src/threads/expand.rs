//! What it means to start, join and detach threads, and to free memory, once all threads are known.
//!
//! The steps that stand for this are replaced by accesses to the cells of the threads, and by comparisons where it is
//! not known which thread or object is meant.

use super::Threads;
use crate::cells::{Cells, detach, join, join_all, number_at};
use crate::expr::{self, Expr};
use crate::flat::{Access, BlockId, Code, End, ObjectId, Step, StepKind, Written};
use crate::groups::{self, Groups};
use crate::inline::RESULT;
use crate::library::first_child;
use crate::memory::{ThreadNumber, as_function};
use crate::{Aim, ThreadCell, exit, heap, library, propagate, tidy};
use palisade_base::Span;
use palisade_program::written::{BinaryOp, Check, Rmw};
use rustc_hash::FxHashSet;

impl Threads<'_, '_> {
    /// Replaces the steps that start and join threads by what they do.
    pub(super) fn expand(&mut self) {
        let joined = self.results_wanted();
        let allocated = self.allocated();
        let groups = self.groups(&joined);
        self.cells.extend(self.thread_cells(&groups));
        for index in 0..self.threads.len() {
            let mut code = std::mem::take(&mut self.threads[index].code);
            let number = self.threads[index].number;
            if number == 1 {
                alone(&mut code);
            }
            let mut block = 0;
            while block < code.blocks.len() {
                let at = code.blocks[block].steps.iter().position(|step| {
                    let kind = &step.kind;
                    matches!(
                        kind,
                        StepKind::Start { .. }
                            | StepKind::Join { .. }
                            | StepKind::Detach { .. }
                            | StepKind::Unpark { .. }
                            | StepKind::Finished { .. }
                            | StepKind::AwaitThreads
                            | StepKind::ProgramEnds { .. }
                            | StepKind::Move { .. }
                            | StepKind::Free { .. }
                    )
                });
                let Some(at) = at else {
                    block += 1;
                    continue;
                };
                let id = BlockId(u32::try_from(block).expect("fewer than 2^32 blocks"));
                self.expand_step(&mut code, id, at, number, &joined, &allocated, &groups);
            }
            // If a thread is not joined for its result, the result is not read.
            let unread = self.slots.get(&number).and_then(|slot| slot.cells);
            if let Some(cells) = unread.filter(|_| !joined.contains(&number)) {
                for block in &mut code.blocks {
                    block.steps.retain(|step| match &step.kind {
                        StepKind::Store { to, .. } => to.pointer != Expr::Address(cells.result, 0),
                        StepKind::Initialised(register, Check::Returned) => *register != RESULT,
                        _ => true,
                    });
                }
            }
            while propagate::fold(&mut code) | tidy::tidy(&mut code) {}
            self.threads[index].code = code;
        }
    }

    /// The threads that are started and joined together. They wait for, and set, the cells of the last ones.
    fn groups(&mut self, joined: &FxHashSet<ThreadNumber>) -> Groups {
        let cells = |number: &ThreadNumber| self.slots.get(number).and_then(|slot| slot.cells);
        let numbers: Vec<ThreadNumber> =
            self.slots.keys().copied().filter(|number| cells(number).is_some()).collect();
        let codes: Vec<&Code> = self.threads.iter().map(|thread| &thread.code).collect();
        // At the end it matters of each thread by itself whether it has ended.
        let groups = match self.context.options.aim {
            Aim::Exit => Groups::default(),
            Aim::Safety | Aim::Progress | Aim::Both => groups::find(&codes, &numbers, joined),
        };
        for thread in &mut self.threads {
            let Some(own) = cells(&thread.number) else { continue };
            if let Some(group) = groups.started_with.get(&thread.number).and_then(cells) {
                groups::wait_for(&mut thread.code, own.started, group.started);
            }
            match groups.joined_with.get(&thread.number) {
                Some((last, count)) if *count > 1 => {
                    let group = cells(last).map(|cells| cells.ended);
                    groups::count_end(&mut thread.code, own.ended, group);
                }
                Some(_) => {}
                None if groups.unjoined.contains(&thread.number) => {
                    groups::count_end(&mut thread.code, own.ended, None);
                }
                None => {}
            }
        }
        groups
    }

    /// What the cells of threads say.
    fn thread_cells(&self, groups: &Groups) -> Vec<(ObjectId, ThreadCell)> {
        let mut found = Vec::new();
        for thread in &self.threads {
            let Some(cells) = self.slots.get(&thread.number).and_then(|slot| slot.cells) else { continue };
            let last =
                |number: &ThreadNumber| groups.joined_with.get(number).map_or(*number, |(last, _)| *last);
            let together = self.threads.iter().filter(|other| last(&other.number) == thread.number);
            let names = together.map(|thread| thread.name.clone()).collect();
            found.push((cells.started, ThreadCell::Started));
            found.push((cells.ended, ThreadCell::Ended(names)));
            found.push((cells.detached, ThreadCell::Detached));
        }
        found
    }

    /// The heap objects that some thread hands out.
    fn allocated(&self) -> FxHashSet<ObjectId> {
        let mut found = FxHashSet::default();
        for thread in &self.threads {
            for block in thread.code.reachable() {
                for step in &thread.code.block(block).steps {
                    step.kind
                        .for_each_expr(&mut |e| e.for_each_object(&mut |object| _ = found.insert(object)));
                }
            }
        }
        found
    }

    /// The threads whose results may be read.
    fn results_wanted(&self) -> FxHashSet<ThreadNumber> {
        let mut wanted = FxHashSet::default();
        for thread in &self.threads {
            for block in thread.code.reachable() {
                for step in &thread.code.block(block).steps {
                    match &step.kind {
                        StepKind::Join { thread: Expr::Int(number), result: Some(_) } => {
                            wanted.insert(*number);
                        }
                        StepKind::Join { result: Some(_), .. } => wanted.extend(self.slots.keys()),
                        _ => {}
                    }
                }
            }
        }
        wanted
    }

    /// Replaces one step. What follows it in the block moves to a new one.
    #[allow(clippy::too_many_arguments)]
    fn expand_step(
        &self,
        code: &mut Code,
        id: BlockId,
        at: usize,
        creator: ThreadNumber,
        joined: &FxHashSet<ThreadNumber>,
        allocated: &FxHashSet<ObjectId>,
        groups: &Groups,
    ) {
        let (step, after) = heap::split(code, id, at);
        let span = step.span;
        if let StepKind::Free { pointer, .. } = &step.kind {
            let live = |object: ObjectId| allocated.contains(&object);
            heap::expand_free(code, id, after, pointer, span, &self.context.heap, &live);
            return;
        }
        if let StepKind::Move { from, to, size } = &step.kind {
            let live = |object: ObjectId| allocated.contains(&object);
            heap::expand_move(code, (id, after), (from, to, size), span, &self.context.heap, &live);
            return;
        }
        if let StepKind::Unpark { thread } = &step.kind {
            self.unpark(code, (id, after), thread, span);
            return;
        }
        if step.kind == StepKind::AwaitThreads {
            self.await_threads(code, id, after, span, groups);
            return;
        }
        if let StepKind::ProgramEnds { returns } = step.kind {
            let checks = exit::Checks { running: returns, detaches: self.context.features.detaches };
            let mut threads: Vec<(ThreadNumber, Cells)> =
                self.slots.iter().filter_map(|(number, slot)| Some((*number, slot.cells?))).collect();
            threads.sort_unstable_by_key(|(number, _)| *number);
            let threads: Vec<Cells> = threads.into_iter().map(|(_, cells)| cells).collect();
            exit::expand_end(code, (id, after), span, &threads, checks);
            return;
        }
        let thread = match &step.kind {
            StepKind::Start { thread, .. }
            | StepKind::Join { thread, .. }
            | StepKind::Detach { thread }
            | StepKind::Finished { thread, .. } => thread.clone(),
            _ => unreachable!("only these are expanded"),
        };
        let mut numbers: Vec<ThreadNumber> =
            self.slots.iter().filter(|(_, slot)| slot.cells.is_some()).map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        if matches!(step.kind, StepKind::Start { .. }) {
            let first = first_child(creator);
            numbers.retain(|number| (first..first + library::MAX_CHILDREN).contains(number));
        }
        let mut here = id;
        for number in numbers {
            let equal = expr::binary(BinaryOp::Eq, thread.clone(), Expr::Int(number), &code.registers);
            if equal == Expr::Int(0) {
                continue;
            }
            let yes = if equal == Expr::Int(1) { here } else { code.new_block() };
            let cells = self.slots[&number].cells.expect("threads that exist have cells");
            let steps = match &step.kind {
                StepKind::Start { entry, argument, .. } => {
                    self.start(code, number, cells, entry, argument, groups)
                }
                StepKind::Join { result, .. } => {
                    let result = result.filter(|_| joined.contains(&number));
                    match groups.joined_with.get(&number) {
                        Some((last, _)) if *last != number => Vec::new(),
                        Some((_, count)) => join_all(code, cells, *count),
                        None => join(code, cells, result, self.context.features.detaches),
                    }
                }
                StepKind::Detach { .. } => detach(code, cells),
                StepKind::Finished { to, .. } => {
                    vec![StepKind::Load { to: *to, from: number_at(cells.ended), written: Written::Needed }]
                }
                _ => unreachable!("only these are expanded"),
            };
            let block = code.block_mut(yes);
            block.steps.extend(steps.into_iter().map(|kind| Step { kind, span }));
            block.end = End::Goto(after);
            block.end_span = span;
            if equal == Expr::Int(1) {
                return;
            }
            let no = code.new_block();
            let block = code.block_mut(here);
            block.end = End::Branch(equal, yes, no);
            block.end_span = span;
            here = no;
        }
        let check =
            if matches!(step.kind, StepKind::Start { .. }) { Check::Threads } else { Check::Joinable };
        let block = code.block_mut(here);
        block.steps.push(Step { kind: StepKind::Assert(Expr::Int(0), check), span });
    }

    /// Sets the token of a thread, if it ever parks.
    fn unpark(&self, code: &mut Code, (from, to): (BlockId, BlockId), thread: &Expr, span: Span) {
        let mut here = from;
        for (number, token) in &self.context.tokens {
            let equal = expr::binary(BinaryOp::Eq, thread.clone(), Expr::Int(*number), &code.registers);
            let (yes, no) = (code.new_block(), code.new_block());
            let old = code.new_register("", 32);
            let block = code.block_mut(here);
            (block.end, block.end_span) = (End::Branch(equal, yes, no), span);
            let set =
                StepKind::Locked { rmw: Rmw::Exchange, old, at: number_at(*token), operand: Expr::Int(1) };
            let block = code.block_mut(yes);
            block.steps.push(Step { kind: set, span });
            (block.end, block.end_span) = (End::Goto(to), span);
            here = no;
        }
        let block = code.block_mut(here);
        (block.end, block.end_span) = (End::Goto(to), span);
    }

    /// Waits for all threads that were started, those first that may start others.
    fn await_threads(&self, code: &mut Code, from: BlockId, to: BlockId, span: Span, groups: &Groups) {
        let mut numbers: Vec<(ThreadNumber, Cells)> =
            self.slots.iter().filter_map(|(number, slot)| Some((*number, slot.cells?))).collect();
        // The threads that a thread starts have larger numbers than it has.
        numbers.sort_unstable_by_key(|(number, _)| *number);
        let mut here = from;
        for (number, cells) in numbers {
            let group = groups.started_with.get(&number).and_then(|last| self.slots[last].cells);
            let started = group.unwrap_or(cells).started;
            let (flag, temporary) = (code.new_register("", 32), code.new_register("", 32));
            let is_set =
                |register| Expr::Binary(BinaryOp::Ne, Box::new(Expr::Reg(register)), Box::new(Expr::Int(0)));
            let access = |object| Access { pointer: Expr::Address(object, 0), size: 2, plain: false };
            let load = StepKind::Load { to: flag, from: access(started), written: Written::Needed };
            let wait =
                StepKind::AwaitLoad { temporary, from: access(cells.ended), condition: is_set(temporary) };
            let (yes, next) = (code.new_block(), code.new_block());
            let block = code.block_mut(here);
            block.steps.push(Step { kind: load, span });
            (block.end, block.end_span) = (End::Branch(is_set(flag), yes, next), span);
            let block = code.block_mut(yes);
            block.steps.push(Step { kind: wait, span });
            (block.end, block.end_span) = (End::Goto(next), span);
            here = next;
        }
        let block = code.block_mut(here);
        (block.end, block.end_span) = (End::Goto(to), span);
    }

    fn start(
        &self,
        code: &mut Code,
        number: ThreadNumber,
        cells: Cells,
        entry: &Expr,
        argument: &Expr,
        groups: &Groups,
    ) -> Vec<StepKind> {
        let slot = &self.slots[&number];
        // A thread whose code has its function or argument built in is started with no other one.
        let other_entry = slot.only_entry().is_some_and(|only| match entry {
            Expr::Int(address) => {
                self.context.memory.function_at(*address).and_then(as_function) != Some(only)
            }
            _ => true,
        });
        let other_argument = match slot.arguments.as_slice() {
            [only] if only.is_constant() => argument != only,
            _ => false,
        };
        if other_entry || other_argument {
            return vec![StepKind::Assert(Expr::Int(0), Check::Threads)];
        }
        let mut steps = Vec::new();
        let mut store = |object, value: &Expr| {
            let to = Access { pointer: Expr::Address(object, 0), size: 3, plain: false };
            steps.push(StepKind::Store { to, value: value.clone() });
        };
        if slot.only_entry().is_none() {
            store(cells.entry, entry);
        }
        if !matches!(slot.arguments.as_slice(), [only] if only.is_constant()) {
            store(cells.argument, argument);
        }
        if groups.started_with.get(&number).is_some_and(|last| *last != number) {
            return steps;
        }
        let old = code.new_register("", 32);
        let at = Access { pointer: Expr::Address(cells.started, 0), size: 2, plain: false };
        steps.push(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand: Expr::Int(1) });
        steps
    }
}

/// Before the first thread starts there are no other accesses, so these need not be looked at for races.
fn alone(code: &mut Code) {
    let starts = |step: &Step| matches!(step.kind, StepKind::Start { .. });
    let mut after: FxHashSet<BlockId> = FxHashSet::default();
    let mut open = Vec::new();
    for block in code.reachable() {
        if code.block(block).steps.iter().any(starts) {
            code.block(block).end.for_each_successor(|to| open.push(to));
        }
    }
    while let Some(block) = open.pop() {
        if after.insert(block) {
            code.block(block).end.for_each_successor(|to| open.push(to));
        }
    }
    for block in code.reachable().into_iter().filter(|block| !after.contains(block)) {
        for step in &mut code.block_mut(block).steps {
            match &mut step.kind {
                StepKind::Start { .. } => break,
                StepKind::Load { from: access, .. } | StepKind::Store { to: access, .. } => {
                    access.plain = false;
                }
                _ => {}
            }
        }
    }
}
