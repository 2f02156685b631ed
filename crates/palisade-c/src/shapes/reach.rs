//! Which objects the pointers of all threads may reach, and at which offsets.
//!
//! *Source.* Andersen, "Program analysis and specialization for the C programming language", 1994: sets that only grow,
//! without regard to the order of steps. The contents of objects are kept apart by offset.

use super::Together;
use crate::expr::{Expr, gives_truth};
use crate::flat::{Access, Code, ObjectId, RegId, StepKind};
use crate::heap::Heap;
use crate::memory::{Memory, ThreadNumber};
use palisade_program::written::BinaryOp;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A pointer that may reach more places of one object may reach all of it.
const MAX_PLACES: usize = 64;

/// Where in an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Offset {
    At(i64),
    /// From a start on, again and again after as many bytes.
    Every(i64, i64),
    Any,
}

pub(super) type Place = (ObjectId, Offset);

/// Bytes that are copied from one object to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Copied {
    pub(super) from: (ObjectId, i64),
    pub(super) to: (ObjectId, i64),
    pub(super) size: i64,
}

/// How values get from one thread to another besides through memory.
#[derive(Clone, Default, Debug)]
pub(crate) struct Calls {
    /// The cells that hold the arguments of threads.
    pub(crate) arguments: Vec<(ThreadNumber, ObjectId)>,
    /// The cells that hold their results.
    pub(crate) results: Vec<(ThreadNumber, ObjectId)>,
}

/// What is reached.
#[derive(Debug, Default)]
pub(super) struct Reach {
    registers: FxHashMap<(usize, RegId), BTreeSet<Place>>,
    contents: FxHashMap<ObjectId, FxHashMap<Option<i64>, BTreeSet<Place>>>,
    /// How objects are accessed.
    pub(super) accesses: FxHashMap<ObjectId, BTreeSet<Together>>,
    pub(super) copies: BTreeSet<Copied>,
    /// The heap objects of each shape, and the lists of freed objects by thread and register.
    shapes: FxHashMap<ObjectId, usize>,
    lists: FxHashMap<(usize, RegId), usize>,
    changed: bool,
}

impl Reach {
    pub(super) fn new(codes: &[&mut Code], calls: &Calls, memory: &Memory<'_>, heap: &Heap) -> Reach {
        let mut reach = Reach { shapes: heap.objects.iter().copied().collect(), ..Reach::default() };
        for (thread, code) in codes.iter().enumerate() {
            for (shape, list) in &code.free_lists {
                reach.lists.extend(list.iter().map(|register| ((thread, *register), *shape)));
            }
        }
        for (index, object) in memory.objects.iter().enumerate() {
            let id = ObjectId(u32::try_from(index).expect("fewer than 2^32 objects"));
            for leaf in &object.leaves {
                if let Some(Expr::Address(target, offset)) = leaf.init {
                    reach.put(id, Some(leaf.offset), [(target, Offset::At(offset))].into());
                }
            }
        }
        reach.changed = true;
        while std::mem::take(&mut reach.changed) {
            for (thread, code) in codes.iter().enumerate() {
                for block in code.reachable() {
                    for step in &code.block(block).steps {
                        reach.step(thread, &step.kind, calls, memory);
                    }
                }
            }
        }
        for (thread, code) in codes.iter().enumerate() {
            for block in code.reachable() {
                for step in &code.block(block).steps {
                    step.kind.for_each_access(&mut |access| reach.access(thread, access, memory));
                }
            }
        }
        reach
    }

    /// What an expression may point to.
    pub(super) fn places(&self, thread: usize, e: &Expr) -> BTreeSet<Place> {
        match e {
            Expr::Int(_) | Expr::Not(_) => BTreeSet::new(),
            Expr::Reg(register) => self.registers.get(&(thread, *register)).cloned().unwrap_or_default(),
            Expr::Address(object, offset) => [(*object, Offset::At(*offset))].into(),
            Expr::Wrap(_, a) => self.places(thread, a),
            Expr::Binary(op, ..) if gives_truth(*op) => BTreeSet::new(),
            Expr::Binary(op, a, b) => {
                let (left, right) = (self.places(thread, a), self.places(thread, b));
                match (op, &**a, &**b) {
                    (BinaryOp::WordAdd, _, Expr::Int(by)) => shifted(&left, |at| at.wrapping_add(*by)),
                    (BinaryOp::WordAdd, Expr::Int(by), _) => shifted(&right, |at| at.wrapping_add(*by)),
                    (BinaryOp::WordSub, _, Expr::Int(by)) => shifted(&left, |at| at.wrapping_sub(*by)),
                    (BinaryOp::BitAnd, _, Expr::Int(mask)) => shifted(&left, |at| at & mask),
                    (BinaryOp::BitOr, _, Expr::Int(bits)) => shifted(&left, |at| at | bits),
                    (BinaryOp::WordAdd, _, index) if right.is_empty() => every(&left, index),
                    (BinaryOp::WordAdd, index, _) if left.is_empty() => every(&right, index),
                    _ => left.into_iter().chain(right).map(|(object, _)| (object, Offset::Any)).collect(),
                }
            }
        }
    }

    fn assign(&mut self, thread: usize, register: RegId, places: BTreeSet<Place>) {
        if places.is_empty() {
            return;
        }
        let known = self.registers.entry((thread, register)).or_default();
        self.changed |= extend(known, places);
    }

    fn put(&mut self, object: ObjectId, offset: Option<i64>, places: BTreeSet<Place>) {
        if places.is_empty() {
            return;
        }
        let known = self.contents.entry(object).or_default().entry(offset).or_default();
        self.changed |= extend(known, places);
    }

    fn get(&self, (object, offset): Place) -> BTreeSet<Place> {
        let Some(contents) = self.contents.get(&object) else { return BTreeSet::new() };
        match offset {
            Offset::At(at) => {
                [Some(at), None].iter().filter_map(|key| contents.get(key)).flatten().copied().collect()
            }
            Offset::Every(..) | Offset::Any => contents.values().flatten().copied().collect(),
        }
    }

    fn store(&mut self, thread: usize, pointer: &Expr, places: BTreeSet<Place>) {
        if places.is_empty() {
            return;
        }
        for (object, offset) in self.places(thread, pointer) {
            let key = match offset {
                Offset::At(at) => Some(at),
                Offset::Every(..) | Offset::Any => None,
            };
            self.put(object, key, places.clone());
        }
    }

    fn load(&mut self, thread: usize, to: RegId, pointer: &Expr) {
        let found = self.places(thread, pointer).into_iter().flat_map(|place| self.get(place)).collect();
        self.assign(thread, to, found);
    }

    fn step(&mut self, thread: usize, kind: &StepKind, calls: &Calls, memory: &Memory<'_>) {
        match kind {
            StepKind::Assign(to, e) => self.assign(thread, *to, self.places(thread, e)),
            StepKind::Load { to, from, .. } | StepKind::AwaitLoad { temporary: to, from, .. } => {
                self.load(thread, *to, &from.pointer);
            }
            StepKind::Store { to, value } => self.store(thread, &to.pointer, self.places(thread, value)),
            StepKind::Locked { old, at, operand, .. } => {
                self.load(thread, *old, &at.pointer);
                self.store(thread, &at.pointer, self.places(thread, operand));
            }
            StepKind::Cas { old, at, new, .. } => {
                old.iter().for_each(|old| self.load(thread, *old, &at.pointer));
                self.store(thread, &at.pointer, self.places(thread, new));
            }
            StepKind::AwaitCas { at, new, .. } => self.store(thread, &at.pointer, self.places(thread, new)),
            StepKind::Atomic(steps) => {
                steps.iter().for_each(|step| self.step(thread, &step.kind, calls, memory));
            }
            StepKind::If(_, then, otherwise) => {
                let both = then.iter().chain(otherwise);
                both.for_each(|step| self.step(thread, &step.kind, calls, memory));
            }
            StepKind::Free { pointer, lists } => {
                let places = self.places(thread, pointer);
                for list in lists {
                    let shape = self.lists.get(&(thread, *list)).copied();
                    let fits = |(object, offset): &&Place| {
                        *offset == Offset::At(0) && self.shapes.get(object).copied() == shape
                    };
                    let places = places.iter().filter(fits).copied().collect();
                    self.assign(thread, *list, places);
                }
            }
            StepKind::Copy { from, to, size } | StepKind::Move { from, to, size } => {
                if let Some(size) = size.as_int() {
                    self.copy(thread, from, to, size, memory);
                }
            }
            StepKind::Start { thread: started, argument, .. } => {
                let places = self.places(thread, argument);
                of_thread(&calls.arguments, started).for_each(|cell| self.put(cell, Some(0), places.clone()));
            }
            StepKind::Join { thread: ended, result: Some(result) } => {
                let cells = of_thread(&calls.results, ended);
                let found = cells.flat_map(|cell| self.get((cell, Offset::At(0)))).collect();
                self.assign(thread, *result, found);
            }
            _ => {}
        }
    }

    fn copy(&mut self, thread: usize, from: &Expr, to: &Expr, size: i64, memory: &Memory<'_>) {
        let (sources, targets) = (self.places(thread, from), self.places(thread, to));
        for &(source, start) in &sources {
            for &(target, at) in &targets {
                let (Offset::At(start), Offset::At(at)) = (start, at) else {
                    // Anything may get anywhere.
                    let all = self.get((source, Offset::Any));
                    self.put(target, None, all);
                    continue;
                };
                let size = size.min(memory.object(source).size - start).min(memory.object(target).size - at);
                if size <= 0 {
                    continue;
                }
                let copied = Copied { from: (source, start), to: (target, at), size };
                self.changed |= self.copies.insert(copied);
                let contents = self.contents.get(&source).into_iter().flatten();
                let moved: Vec<(Option<i64>, BTreeSet<Place>)> = contents
                    .filter_map(|(key, places)| match key {
                        None => Some((None, places.clone())),
                        Some(offset) if (start..start + size).contains(offset) => {
                            Some((Some(offset - start + at), places.clone()))
                        }
                        Some(_) => None,
                    })
                    .collect();
                moved.into_iter().for_each(|(key, places)| self.put(target, key, places));
            }
        }
    }

    /// Notes the bytes of an access.
    fn access(&mut self, thread: usize, access: &Access, memory: &Memory<'_>) {
        for (object, offset) in self.places(thread, &access.pointer) {
            let size = memory.object(object).size;
            let length = 1 << access.size;
            let known = self.accesses.entry(object).or_default();
            match offset {
                Offset::At(at) => _ = known.insert((at, access.size)),
                Offset::Every(start, stride) => {
                    let first = start.rem_euclid(stride);
                    let mut at = first;
                    while at + length <= size {
                        known.insert((at, access.size));
                        at += stride;
                    }
                }
                // Where nothing else says how the object is accessed, it is an array.
                Offset::Any => {
                    let mut at = 0;
                    while at + length <= size {
                        let free =
                            !known.iter().any(|&(other, log)| other < at + length && at < other + (1 << log));
                        if free {
                            known.insert((at, access.size));
                        }
                        at += length;
                    }
                }
            }
        }
    }
}

/// The cells of a thread, or of all threads if its number is not known.
fn of_thread(cells: &[(ThreadNumber, ObjectId)], thread: &Expr) -> impl Iterator<Item = ObjectId> {
    let known = thread.as_int();
    cells.iter().filter(move |(number, _)| known.is_none_or(|known| known == *number)).map(|(_, cell)| *cell)
}

/// Adds places. An object that would be reached at too many offsets is reached anywhere. Returns whether any were new.
fn extend(known: &mut BTreeSet<Place>, places: BTreeSet<Place>) -> bool {
    let mut changed = false;
    for (object, offset) in places {
        if known.contains(&(object, Offset::Any)) || !known.insert((object, offset)) {
            continue;
        }
        changed = true;
        let of_object = |place: &&Place| place.0 == object;
        if offset == Offset::Any || known.iter().filter(of_object).count() > MAX_PLACES {
            known.retain(|place| place.0 != object);
            known.insert((object, Offset::Any));
        }
    }
    changed
}

fn shifted(places: &BTreeSet<Place>, by: impl Fn(i64) -> i64) -> BTreeSet<Place> {
    let each = places.iter().map(|&(object, offset)| match offset {
        Offset::At(at) => (object, Offset::At(by(at))),
        Offset::Every(start, stride) => (object, Offset::Every(by(start), stride)),
        Offset::Any => (object, Offset::Any),
    });
    each.collect()
}

/// An element of an array.
fn every(places: &BTreeSet<Place>, index: &Expr) -> BTreeSet<Place> {
    let stride = match index {
        Expr::Binary(BinaryOp::WordMul, _, by) => by.as_int().filter(|by| *by > 0),
        Expr::Binary(BinaryOp::WordShl, _, by) => {
            by.as_int().filter(|by| (0..32).contains(by)).map(|by| 1 << by)
        }
        _ => None,
    };
    let each = places.iter().map(|&(object, offset)| match (offset, stride) {
        (Offset::At(start), Some(stride)) => (object, Offset::Every(start, stride)),
        _ => (object, Offset::Any),
    });
    each.collect()
}
