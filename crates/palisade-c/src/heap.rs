//! The heap: pools of objects per allocation site and thread, and lists of what a thread has freed.
//!
//! - An allocation returns the next object of the site's pool, or, by choice, one that the same thread has freed
//!   and that has the same layout. Its contents then count as never written.
//! - `free` marks all scalars of the object with ordinary stores, so that later accesses find the mark, and puts
//!   the object on the thread's own list.
//! - A pool or list that is too small is a limit ([`Check::Heap`]).
//!
//! Under [`Aim::Exit`] freed memory is not reused.
//!
//! *Difference from real allocators.* Memory that one thread has freed is never given to another, and memory is
//! reused only with the layout that it had. Both are stated with the answer.

use crate::expr::{self, Expr};
use crate::flat::{Access, Block, BlockId, Code, End, ObjectId, RegId, Step, StepKind, Written};
use crate::inline::Context;
use crate::memory::{Leaf, Memory, MemoryObject, Refusal, element_offset, leaves};
use crate::objects::ObjectKind;
use crate::{Aim, FREED, Language, Note, UNINITIALISED};
use palisade_base::{Id, Span};
use palisade_llvm::Module;
use palisade_llvm::debug::{Node, NodeId};
use palisade_llvm::types::{Type, TypeId};
use palisade_program::written::{BinaryOp, Check};

/// What answers about programs with a heap rest on.
pub(crate) const SUCCEED: &str = "allocations succeed";
pub(crate) const REUSE: &str =
    "memory freed by one thread is never given to another, and is reused only with the same layout";

/// `malloc` returns multiples of this.
const HEAP_ALIGNMENT: i64 = 16;

/// The most bytes of a heap object of Rust that are looked at.
const MAX_BYTES: i64 = 1 << 12;

/// The layout of heap objects.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) size: i64,
    pub(crate) leaves: Vec<Leaf>,
    debug: Option<(usize, NodeId)>,
}

impl Shape {
    /// Bytes, which become scalars once it is known how they are accessed.
    fn bytes(size: i64) -> Shape {
        let leaves = (0..size.min(MAX_BYTES)).map(|offset| Leaf { offset, size: 0, init: None }).collect();
        Shape { name: "heap".to_owned(), size, leaves, debug: None }
    }
}

/// The heap of all threads.
#[derive(Default)]
pub(crate) struct Heap {
    pub(crate) shapes: Vec<Shape>,
    /// The objects and their shapes.
    pub(crate) objects: Vec<(ObjectId, usize)>,
}

/// The pool of an allocation site, in the code of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// How many objects were allocated. It identifies the site.
    count: RegId,
    objects: Vec<ObjectId>,
    shape: usize,
}

impl Site {
    /// The register that counts its objects, and the objects.
    pub(crate) fn pool(&self) -> (RegId, Vec<ObjectId>) {
        (self.count, self.objects.clone())
    }
}

/// Expands the allocations whose size is known. Returns whether there were any.
pub(crate) fn expand_allocations(code: &mut Code, context: &mut Context<'_>) -> bool {
    let is_known = |step: &Step| matches!(&step.kind, StepKind::Allocate { size: Expr::Int(_), .. });
    let mut changed = false;
    // Expanding one adds blocks, which may hold the next one.
    loop {
        let reachable = code.reachable().into_iter();
        let found =
            reachable.filter_map(|id| code.block(id).steps.iter().position(is_known).map(|at| (id, at)));
        let Some((id, at)) = found.into_iter().next() else { return changed };
        expand_allocation(code, id, at, context);
        changed = true;
    }
}

/// Splits a block before a step. Returns the step, and the block with what follows it.
pub(crate) fn split(code: &mut Code, id: BlockId, at: usize) -> (Step, BlockId) {
    let mut rest = code.block_mut(id).steps.split_off(at).into_iter();
    let end = std::mem::replace(&mut code.block_mut(id).end, End::Stop);
    let end_span = code.block(id).end_span;
    let step = rest.next().expect("the step is there");
    let after = code.new_block();
    *code.block_mut(after) = Block { steps: rest.collect(), end, end_span };
    (step, after)
}

fn expand_allocation(code: &mut Code, id: BlockId, at: usize, context: &mut Context<'_>) {
    let (Step { kind, span }, after) = split(code, id, at);
    let StepKind::Allocate { to, size: Expr::Int(size), hint, zero, count } = kind else {
        unreachable!("only allocations of known size are expanded")
    };
    let refuse = |code: &mut Code, context: &mut Context<'_>, what: &str| {
        let kind = context.unsupported(what, span);
        code.block_mut(id).steps.push(Step { kind, span });
    };
    let found = match context.language {
        Language::C => shape(&context.memory, hint, size),
        Language::Rust | Language::Machine => Ok(Shape::bytes(size)),
    };
    let shape = match found {
        Ok(shape) => shape,
        Err(what) => return refuse(code, context, &what),
    };
    let shape = context.heap.add(shape);
    let known = code.sites.iter().position(|known| known.count == count && known.shape == shape);
    let site = known.unwrap_or_else(|| {
        let pool = context.options.pool.max(1);
        let objects = (0..pool).map(|_| context.heap.object(&mut context.memory, shape, span)).collect();
        code.sites.push(Site { count, objects, shape });
        code.sites.len() - 1
    });
    let objects = code.sites[site].objects.clone();
    // What is left at the end is attributed to the place that allocates it, so it is allocated only once then.
    let reused = has_frees(code) && context.options.aim != Aim::Exit;
    let freed = if reused { free_list(code, shape, context.options.pool.max(1)) } else { Vec::new() };
    let push = |code: &mut Code, block: BlockId, kind| code.block_mut(block).steps.push(Step { kind, span });
    let end = |code: &mut Code, block: BlockId, end| {
        let block = code.block_mut(block);
        block.end = end;
        block.end_span = span;
    };
    let ready = code.new_block();
    let fresh = code.new_block();
    // Something that the thread has freed. There is a choice only if there is something: no run gets stuck.
    let layout = context.heap.shapes[shape].leaves.clone();
    let open = context.language != Language::C;
    let mut here = id;
    for &register in &freed {
        let (choice, block, next) = (code.new_block(), code.new_block(), code.new_block());
        let given = expr::binary(BinaryOp::Ne, Expr::Reg(register), Expr::Int(0), &code.registers);
        end(code, here, End::Branch(given, choice, next));
        end(code, choice, End::Choose(vec![next, block]));
        here = next;
        push(code, block, StepKind::Assign(to, Expr::Reg(register)));
        push(code, block, StepKind::Assign(register, Expr::Int(0)));
        if open {
            push(code, block, StepKind::Fill { to: Expr::Reg(to), size: Expr::Int(size), byte: None });
        } else {
            for leaf in &layout {
                let store = store(code, to, leaf, UNINITIALISED);
                push(code, block, store);
            }
        }
        end(code, block, End::Goto(ready));
    }
    end(code, here, End::Goto(fresh));
    // The next object of the pool.
    let mut here = fresh;
    for (index, &object) in objects.iter().enumerate() {
        let index = i64::try_from(index).expect("pools are small");
        let (yes, no) = (code.new_block(), code.new_block());
        let equal = expr::binary(BinaryOp::Eq, Expr::Reg(count), Expr::Int(index), &code.registers);
        end(code, here, End::Branch(equal, yes, no));
        push(code, yes, StepKind::Assign(to, Expr::Address(object, 0)));
        push(code, yes, StepKind::Assign(count, Expr::Int(index + 1)));
        end(code, yes, End::Goto(ready));
        here = no;
    }
    push(code, here, StepKind::Assert(Expr::Int(0), Check::Heap));
    if zero && open {
        push(code, ready, StepKind::Fill { to: Expr::Reg(to), size: Expr::Int(size), byte: Some(0) });
    } else if zero {
        for leaf in &layout {
            let store = store(code, to, leaf, 0);
            push(code, ready, store);
        }
    }
    end(code, ready, End::Goto(after));
    context.notes.insert(Note(SUCCEED.to_owned()));
}

fn store(code: &Code, pointer: RegId, leaf: &Leaf, value: i64) -> StepKind {
    let pointer =
        expr::binary(BinaryOp::WordAdd, Expr::Reg(pointer), Expr::Int(leaf.offset), &code.registers);
    StepKind::Store { to: Access { pointer, size: leaf.size, plain: false }, value: Expr::Int(value) }
}

/// A register that is 0 when the thread starts.
fn at_entry(code: &mut Code, register: RegId) {
    let step = Step { kind: StepKind::Assign(register, Expr::Int(0)), span: Span::NONE };
    code.blocks[0].steps.insert(0, step);
}

fn has_frees(code: &Code) -> bool {
    let frees = |block: BlockId| {
        code.block(block).steps.iter().any(|step| matches!(step.kind, StepKind::Free { .. }))
    };
    code.reachable().into_iter().any(frees)
}

/// The list of freed objects of a shape, in the code of one thread. Every `free` may change it.
fn free_list(code: &mut Code, shape: usize, length: u32) -> Vec<RegId> {
    if let Some((_, list)) = code.free_lists.iter().find(|(known, _)| *known == shape) {
        return list.clone();
    }
    let list: Vec<RegId> = (0..length).map(|_| code.new_register("freed", 64)).collect();
    list.iter().for_each(|&register| at_entry(code, register));
    code.free_lists.push((shape, list.clone()));
    for block in &mut code.blocks {
        for step in &mut block.steps {
            if let StepKind::Free { lists, .. } = &mut step.kind {
                lists.extend(&list);
            }
        }
    }
    list
}

/// Replaces a `free` at the end of `id`. Control goes to `after`. `live` are the objects that are allocated
/// somewhere.
pub(crate) fn expand_free(
    code: &mut Code,
    id: BlockId,
    after: BlockId,
    pointer: &Expr,
    span: Span,
    heap: &Heap,
    live: &dyn Fn(ObjectId) -> bool,
) {
    let push = |code: &mut Code, block: BlockId, kind| code.block_mut(block).steps.push(Step { kind, span });
    let end = |code: &mut Code, block: BlockId, end| {
        let block = code.block_mut(block);
        block.end = end;
        block.end_span = span;
    };
    let register = code.new_register("", 64);
    push(code, id, StepKind::Assign(register, pointer.clone()));
    // Nothing happens for null.
    let mut here = code.new_block();
    let null = expr::binary(BinaryOp::Eq, Expr::Reg(register), Expr::Int(0), &code.registers);
    end(code, id, End::Branch(null, after, here));
    for (shape, layout) in heap.shapes.iter().enumerate() {
        let objects = heap.objects.iter().filter(|(object, of)| *of == shape && live(*object));
        let objects: Vec<ObjectId> = objects.map(|(object, _)| *object).collect();
        if objects.is_empty() {
            continue;
        }
        let found = code.new_block();
        for object in objects {
            let address = Expr::Address(object, 0);
            let equal = expr::binary(BinaryOp::Eq, Expr::Reg(register), address, &code.registers);
            let no = code.new_block();
            end(code, here, End::Branch(equal, found, no));
            here = no;
        }
        if let Some(first) = layout.leaves.first() {
            let pointer = Expr::Reg(register);
            push(code, found, StepKind::Freeable(Access { pointer, size: first.size, plain: false }));
        }
        for leaf in &layout.leaves {
            let StepKind::Store { to, value } = store(code, register, leaf, FREED) else { continue };
            // It is plain because another thread may still have a store to it pending, under PSO.
            push(code, found, StepKind::Store { to: Access { plain: true, ..to }, value });
        }
        let list = code.free_lists.iter().find(|(known, _)| *known == shape).map(|(_, list)| list.clone());
        let mut at = found;
        match list {
            None => end(code, at, End::Goto(after)),
            Some(list) => {
                for entry in list {
                    let (yes, no) = (code.new_block(), code.new_block());
                    let empty = expr::binary(BinaryOp::Eq, Expr::Reg(entry), Expr::Int(0), &code.registers);
                    end(code, at, End::Branch(empty, yes, no));
                    push(code, yes, StepKind::Assign(entry, Expr::Reg(register)));
                    end(code, yes, End::Goto(after));
                    at = no;
                }
                push(code, at, StepKind::Assert(Expr::Int(0), Check::Heap));
            }
        }
    }
    push(code, here, StepKind::Assert(Expr::Int(0), Check::Freeable));
}

/// Replaces a [`StepKind::Move`] at the end of `id`. Control goes to `after`. Nothing is copied from null, and `free`
/// finds out if there is no such object.
pub(crate) fn expand_move(
    code: &mut Code,
    (id, after): (BlockId, BlockId),
    (from, to, size): (&Expr, &Expr, &Expr),
    span: Span,
    heap: &Heap,
    live: &dyn Fn(ObjectId) -> bool,
) {
    let push = |code: &mut Code, block: BlockId, kind| code.block_mut(block).steps.push(Step { kind, span });
    let end = |code: &mut Code, block: BlockId, end| {
        let block = code.block_mut(block);
        (block.end, block.end_span) = (end, span);
    };
    // An allocation whose size is not known was refused.
    let size = size.as_int().unwrap_or(0);
    let (source, target) = (code.new_register("", 64), code.new_register("", 64));
    push(code, id, StepKind::Assign(source, from.clone()));
    push(code, id, StepKind::Assign(target, to.clone()));
    let mut here = id;
    for (shape, layout) in heap.shapes.iter().enumerate() {
        let objects = heap.objects.iter().filter(|(object, of)| *of == shape && live(*object));
        let objects: Vec<ObjectId> = objects.map(|(object, _)| *object).collect();
        if objects.is_empty() {
            continue;
        }
        let found = code.new_block();
        for object in objects {
            let address = Expr::Address(object, 0);
            let equal = expr::binary(BinaryOp::Eq, Expr::Reg(source), address, &code.registers);
            let no = code.new_block();
            end(code, here, End::Branch(equal, found, no));
            here = no;
        }
        for leaf in layout.leaves.iter().filter(|leaf| leaf.offset + (1 << leaf.size) <= size) {
            let at = |code: &Code, register| {
                let offset = Expr::Int(leaf.offset);
                let pointer = expr::binary(BinaryOp::WordAdd, Expr::Reg(register), offset, &code.registers);
                Access { pointer, size: leaf.size, plain: true }
            };
            let value = code.new_register("", 8 << leaf.size);
            let load = StepKind::Load { to: value, from: at(code, source), written: Written::Copied };
            let store = StepKind::Store { to: at(code, target), value: Expr::Reg(value) };
            push(code, found, load);
            push(code, found, store);
        }
        end(code, found, End::Goto(after));
    }
    end(code, here, End::Goto(after));
}

impl Heap {
    /// Objects of one shape have the same scalars, which are known now.
    pub(crate) fn take_leaves(&mut self, memory: &Memory<'_>) {
        for (object, shape) in &self.objects {
            self.shapes[*shape].leaves.clone_from(&memory.object(*object).leaves);
        }
    }

    /// The index of a shape.
    fn add(&mut self, shape: Shape) -> usize {
        let same = |known: &Shape| known.size == shape.size && known.leaves == shape.leaves;
        self.shapes.iter().position(same).unwrap_or_else(|| {
            self.shapes.push(shape);
            self.shapes.len() - 1
        })
    }

    /// The first scalar of an object, which shows whether it was freed.
    pub(crate) fn first_leaf(&self, object: ObjectId) -> Option<&Leaf> {
        let (_, shape) = self.objects.iter().find(|(known, _)| *known == object)?;
        self.shapes[*shape].leaves.first()
    }

    /// A new object of a shape.
    fn object(&mut self, memory: &mut Memory<'_>, shape: usize, span: Span) -> ObjectId {
        let named = |of: usize| self.shapes[of].name == self.shapes[shape].name;
        let number = 1 + self.objects.iter().filter(|(_, of)| named(*of)).count();
        let Shape { name, size, leaves, debug } = &self.shapes[shape];
        let object = memory.add(MemoryObject {
            name: format!("{name}#{number}"),
            kind: ObjectKind::Heap,
            constant: false,
            size: *size,
            align: HEAP_ALIGNMENT,
            leaves: leaves.clone(),
            debug: *debug,
            span,
        });
        self.objects.push((object, shape));
        object
    }
}

/// The shape of an object of a size, from the type with which the pointer is used.
fn shape(memory: &Memory<'_>, hint: Option<(usize, TypeId)>, size: i64) -> Result<Shape, Refusal> {
    if size <= 0 {
        return Err("an allocation of no bytes".to_owned());
    }
    let modules = memory.linked.modules;
    let (module, ty) = match hint.map_or_else(|| by_size(memory, size), |hint| Ok(Some(hint)))? {
        Some(found) => found,
        None if [1, 2, 4, 8].contains(&size) => {
            let leaf = Leaf { offset: 0, size: size.trailing_zeros(), init: None };
            return Ok(Shape { name: "heap".to_owned(), size, leaves: vec![leaf], debug: None });
        }
        None => return Err("an allocation whose type is not clear".to_owned()),
    };
    let one = leaves(&modules[module], ty)?;
    let step = modules[module].layouts.size(ty).and_then(|size| i64::try_from(size).ok());
    let whole = step.filter(|step| *step > 0).ok_or("an allocation of something without a size")?;
    // A struct that ends in an array of open length occurs once, followed by as many elements as there is room for.
    let (mut all, first, repeated, step) = match open_array(&modules[module], ty, size)? {
        Some((first, element, step)) => (one, first, leaves(&modules[module], element)?, step),
        None => (Vec::new(), 0, one, whole),
    };
    all.retain(|leaf| leaf.offset < first);
    for index in 0..=(size - first) / step {
        all.extend(repeated.iter().cloned().map(|mut leaf| {
            leaf.offset += first + index * step;
            leaf
        }));
        if all.len() > 1 << 12 {
            return Err("an allocation of many scalars".to_owned());
        }
    }
    all.retain(|leaf| leaf.offset + (1 << leaf.size) <= size);
    let (name, debug) = match modules[module].types.get(ty) {
        Type::Named(id) => {
            let full = &*modules[module].types.named()[*id].name;
            let name = full.trim_start_matches("struct.").trim_start_matches("union.");
            let one = size == whole || first > 0;
            (name.to_owned(), one.then(|| debug_type(memory, module, name)).flatten())
        }
        _ => ("heap".to_owned(), None),
    };
    Ok(Shape { name, size, leaves: all, debug })
}

/// The array of open length at the end of a struct that is allocated with room for elements of it: its offset, the
/// type of its elements, and their size. Its length is written as none, or, in the old way, as 1.
fn open_array(module: &Module, ty: TypeId, size: i64) -> Result<Option<(i64, TypeId, i64)>, Refusal> {
    let Type::Struct { fields, .. } = module.types.body(ty) else { return Ok(None) };
    let Some(&last) = fields.last() else { return Ok(None) };
    let Type::Array { element, length } = *module.types.body(last) else { return Ok(None) };
    let bytes = |ty| module.layouts.size(ty).and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
    let (whole, step) = (bytes(ty), bytes(element));
    // A whole number of structs is an array of them.
    let is_open = length == 0 || length == 1 && size % whole != 0;
    if !is_open || size <= whole || step == 0 {
        return Ok(None);
    }
    let first = element_offset(module, ty, fields.len() - 1)?;
    Ok((first > 0).then_some((first, element, step)))
}

/// The struct of a size, if all structs of that size have the same layout.
fn by_size(memory: &Memory<'_>, size: i64) -> Result<Option<(usize, TypeId)>, Refusal> {
    let mut found: Option<((usize, TypeId), Vec<Leaf>)> = None;
    for (index, module) in memory.linked.modules.iter().enumerate() {
        for ty in module.types.ids() {
            let is_struct = matches!(module.types.get(ty), Type::Named(_));
            if !is_struct || module.layouts.size(ty) != u64::try_from(size).ok() {
                continue;
            }
            let Ok(layout) = leaves(module, ty) else { continue };
            match &found {
                None => found = Some(((index, ty), layout)),
                Some((_, known)) if *known == layout => {}
                Some(_) => return Err("an allocation whose type is not clear".to_owned()),
            }
        }
    }
    Ok(found.map(|(found, _)| found))
}

/// The type of the source program with a name.
fn debug_type(memory: &Memory<'_>, module: usize, name: &str) -> Option<(usize, NodeId)> {
    let debug = &memory.linked.modules[module].debug;
    let named = |id: &NodeId| match debug.get(*id) {
        Some(Node::Type(ty)) => {
            let tag = matches!(&*ty.tag, "DW_TAG_structure_type" | "DW_TAG_union_type" | "DW_TAG_typedef");
            tag && ty.name.as_deref() == Some(name)
        }
        _ => false,
    };
    (0..debug.len()).map(NodeId::from_index).find(named).map(|id| (module, id))
}
