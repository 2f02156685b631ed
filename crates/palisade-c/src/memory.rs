//! The objects of a program before they have addresses: globals, thread-locals, locals, heap objects, and the
//! cells of the thread library. An object consists of leaves: the scalars of its type.
//!
//! Globals become objects when something first mentions them.

use crate::Language;
use crate::expr::{Expr, wrap_int};
use crate::flat::ObjectId;
use crate::link::{FunctionRef, GlobalRef, Linked, Target};
use crate::objects::ObjectKind;
use palisade_base::Span;
use palisade_llvm::Module;
use palisade_llvm::debug::{Node, NodeId};
use palisade_llvm::instructions::{BinaryOp as IrBinary, CastOp};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{ConstantId, ConstantKind, Expression};
use palisade_program::written::BinaryOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of scalars of one object.
const MAX_LEAVES: usize = 1 << 16;

/// A thread: `main` is 1. The k-th thread that thread n starts is `n * 100 + k` for n > 1, and `k + 1` for `main`.
pub(crate) type ThreadNumber = i64;

/// A scalar of an object.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Leaf {
    /// Its offset in bytes.
    pub(crate) offset: i64,
    /// The binary logarithm of its size in bytes.
    pub(crate) size: u32,
    /// What it holds at first; `None` if it was never written.
    pub(crate) init: Option<Expr>,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct MemoryObject {
    pub(crate) name: String,
    pub(crate) kind: ObjectKind,
    /// Whether it is never written.
    pub(crate) constant: bool,
    /// Its size in bytes.
    pub(crate) size: i64,
    /// Its address is a multiple of this power of 2 in every layout of memory.
    pub(crate) align: i64,
    /// In increasing order of offsets.
    pub(crate) leaves: Vec<Leaf>,
    /// The module and debug type that name its parts.
    pub(crate) debug: Option<(usize, NodeId)>,
    pub(crate) span: Span,
}

/// The value of a constant or of an instruction.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Val {
    Scalar(Expr),
    Aggregate(Vec<Val>),
    /// Any value. Using it is an error of the program, unless it is only passed on.
    Undefined,
}

/// Why something is refused.
pub(crate) type Refusal = String;

/// The objects and function addresses of a program.
pub(crate) struct Memory<'a> {
    pub(crate) linked: &'a Linked<'a>,
    pub(crate) objects: Vec<MemoryObject>,
    globals: FxHashMap<(GlobalRef, Option<ThreadNumber>), ObjectId>,
    functions: Vec<Target>,
    /// Whether the program allocates memory with an alignment.
    pub(crate) aligned_heap: bool,
    /// The objects whose scalars are not known yet: the leaves are bytes and pointers.
    pub(crate) open: FxHashSet<ObjectId>,
    language: Language,
    /// The variables of the C library that hold streams.
    streams: Vec<(Box<str>, ObjectId)>,
}

/// The names of these variables.
const STREAMS: [&str; 6] = ["stdin", "stdout", "stderr", "__stdinp", "__stdoutp", "__stderrp"];

/// Functions lie above all objects, this far apart.
pub(crate) const FUNCTION_BASE: i64 = 1 << 46;
pub(crate) const FUNCTION_STEP: i64 = 16;

impl<'a> Memory<'a> {
    pub(crate) fn new(linked: &'a Linked<'a>, language: Language) -> Memory<'a> {
        Memory {
            linked,
            open: FxHashSet::default(),
            language,
            objects: Vec::new(),
            globals: FxHashMap::default(),
            functions: Vec::new(),
            aligned_heap: linked.modules.iter().any(|module| {
                ["aligned_alloc", "memalign", "posix_memalign"].iter().any(|name| module.find(name).is_some())
            }),
            streams: Vec::new(),
        }
    }

    pub(crate) fn object(&self, id: ObjectId) -> &MemoryObject {
        &self.objects[id.0 as usize]
    }

    pub(crate) fn add(&mut self, object: MemoryObject) -> ObjectId {
        self.objects.push(object);
        let id = ObjectId(u32::try_from(self.objects.len() - 1).expect("fewer than 2^32 objects"));
        self.open_bytes(id);
        id
    }

    /// Types of Rust, and objects of machine code, are bytes in LLVM IR, so the scalars of an object follow from how it
    /// is accessed.
    fn open_bytes(&mut self, id: ObjectId) {
        if self.language != Language::C && self.object(id).leaves.iter().any(|leaf| leaf.size == 0) {
            self.open.insert(id);
        }
    }

    /// A cell of the translation itself.
    pub(crate) fn add_cell(&mut self, name: String, size: u32, init: i64) -> ObjectId {
        let leaf = Leaf { offset: 0, size, init: Some(Expr::Int(init)) };
        self.add(MemoryObject {
            name,
            kind: ObjectKind::Global,
            constant: false,
            size: 1 << size,
            align: 1 << size,
            leaves: vec![leaf],
            debug: None,
            span: Span::NONE,
        })
    }

    /// The thread-local variables of a thread.
    pub(crate) fn thread_locals(&self, thread: ThreadNumber) -> Vec<ObjectId> {
        let own = self.globals.iter().filter(|((_, of), _)| *of == Some(thread));
        let mut found: Vec<ObjectId> = own.map(|(_, object)| *object).collect();
        found.sort_unstable();
        found
    }

    /// The address of a function.
    pub(crate) fn function_address(&mut self, function: Target) -> i64 {
        let index = self.functions.iter().position(|known| *known == function).unwrap_or_else(|| {
            self.functions.push(function);
            self.functions.len() - 1
        });
        FUNCTION_BASE + FUNCTION_STEP * i64::try_from(index).expect("few functions")
    }

    /// The function with an address.
    pub(crate) fn function_at(&self, address: i64) -> Option<&Target> {
        let offset = address.checked_sub(FUNCTION_BASE)?;
        if offset % FUNCTION_STEP != 0 {
            return None;
        }
        self.functions.get(usize::try_from(offset / FUNCTION_STEP).ok()?)
    }

    /// The functions with addresses, and their addresses.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (i64, &Target)> {
        let address = |index: usize| FUNCTION_BASE + FUNCTION_STEP * index as i64;
        self.functions.iter().enumerate().map(move |(index, target)| (address(index), target))
    }

    /// The value of a symbol: the address of what it stands for.
    pub(crate) fn symbol(
        &mut self,
        module: usize,
        symbol: palisade_llvm::module::SymbolId,
        thread: ThreadNumber,
    ) -> Result<Expr, Refusal> {
        match self.linked.resolve(module, symbol) {
            Some(Target::Global(global)) => Ok(Expr::Address(self.global(global, thread)?, 0)),
            Some(target @ (Target::Function(_) | Target::Library(_))) => {
                Ok(Expr::Int(self.function_address(target)))
            }
            Some(Target::Missing(name)) if STREAMS.contains(&&*name) => {
                Ok(Expr::Address(self.stream(&name), 0))
            }
            Some(Target::Missing(name)) => Err(format!("no translation unit defines the variable `{name}`")),
            None => Err("an alias of a computed address".to_owned()),
        }
    }

    /// The variable of the C library that holds a stream. Programs only pass the stream on.
    fn stream(&mut self, name: &str) -> ObjectId {
        if let Some((_, known)) = self.streams.iter().find(|(known, _)| &**known == name) {
            return *known;
        }
        let mut add = |name: String, size, init| {
            let object = self.add_cell(name, size, 0);
            let stream = &mut self.objects[object.0 as usize];
            stream.constant = true;
            stream.leaves[0].init = Some(init);
            object
        };
        let stream = add(format!("*{name}"), 0, Expr::Int(0));
        let variable = add(name.to_owned(), 3, Expr::Address(stream, 0));
        self.streams.push((name.into(), variable));
        variable
    }

    /// The object of a global variable, for a thread.
    pub(crate) fn global(&mut self, global: GlobalRef, thread: ThreadNumber) -> Result<ObjectId, Refusal> {
        let module = &self.linked.modules[global.module];
        let definition = &module.globals[global.global];
        let key = (global, definition.thread_local.then_some(thread));
        if let Some(&known) = self.globals.get(&key) {
            return Ok(known);
        }
        let symbol = &module.symbols[definition.symbol].name;
        let variable = definition.variables.first().and_then(|&node| module.debug.variable(node));
        let name = variable.as_ref().map_or(&**symbol, |variable| variable.name).to_owned();
        let kind = if key.1.is_some() { ObjectKind::ThreadLocal } else { ObjectKind::Global };
        let debug = variable.and_then(|variable| variable.ty).map(|ty| (global.module, ty));
        let is_spin_lock = debug.is_some_and(|(_, ty)| is_spin_lock(module, ty));
        let size = module.layouts.size(definition.ty).ok_or("a variable without a size")?;
        let size = i64::try_from(size).map_err(|_| "a variable that is too large".to_owned())?;
        let constant = definition.constant;
        let align = alignment(module, definition.ty, definition.align);
        let (span, none) = (Span::NONE, Vec::new());
        let object = MemoryObject { name, kind, constant, size, align, leaves: none, debug, span };
        let id = self.add(object);
        self.globals.insert(key, id);
        let mut leaves = leaves(module, definition.ty)?;
        let initializer = definition.initializer.ok_or("a variable that is defined elsewhere")?;
        self.initialise(global.module, initializer, 0, thread, &mut leaves)?;
        let spin_lock = is_spin_lock.then_some(0);
        for offset in never_initialised(module, definition.ty).into_iter().chain(spin_lock) {
            let first = leaves.iter_mut().find(|leaf| leaf.offset == offset);
            first
                .into_iter()
                .filter(|leaf| leaf.init == Some(Expr::Int(0)))
                .for_each(|leaf| leaf.init = None);
        }
        self.objects[id.0 as usize].leaves = leaves;
        self.open_bytes(id);
        Ok(id)
    }

    /// Sets the initial values of the leaves that a constant covers.
    fn initialise(
        &mut self,
        module_index: usize,
        constant: ConstantId,
        offset: i64,
        thread: ThreadNumber,
        leaves: &mut [Leaf],
    ) -> Result<(), Refusal> {
        let module = &self.linked.modules[module_index];
        let ty = module.constants[constant].ty;
        let range = |size: u64| offset..offset + i64::try_from(size).unwrap_or(i64::MAX >> 1);
        match &module.constants[constant].kind {
            ConstantKind::Zero | ConstantKind::Null => {
                let range = range(module.layouts.size(ty).unwrap_or(0));
                let inside = leaves.iter_mut().filter(|leaf| range.contains(&leaf.offset));
                inside.for_each(|leaf| leaf.init = Some(Expr::Int(0)));
                Ok(())
            }
            // Padding, and members of a union that are not initialised: zero in static storage of C. In Rust, they are
            // as little written as others.
            ConstantKind::Undef | ConstantKind::Poison => {
                let range = range(module.layouts.size(ty).unwrap_or(0));
                let value = (self.language == Language::C).then_some(Expr::Int(0));
                let inside = leaves.iter_mut().filter(|leaf| range.contains(&leaf.offset));
                inside.for_each(|leaf| leaf.init = value.clone());
                Ok(())
            }
            ConstantKind::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let at = offset + i64::try_from(index).unwrap_or(0);
                    set(leaves, at, Expr::Int(i64::from(*byte as i8)));
                }
                Ok(())
            }
            ConstantKind::Aggregate(elements) => {
                for (index, &element) in elements.iter().enumerate() {
                    let at = offset + element_offset(module, ty, index)?;
                    self.initialise(module_index, element, at, thread, leaves)?;
                }
                if matches!(module.types.get(ty), Type::Named(id)
                    if &*module.types.named()[*id].name == "union.pthread_mutex_t")
                {
                    return unusual_mutex(leaves, offset);
                }
                Ok(())
            }
            _ => match self.constant(module_index, constant, thread)? {
                Val::Scalar(value) if value.is_constant() => {
                    set(leaves, offset, value);
                    Ok(())
                }
                _ => Err("an initial value of this form".to_owned()),
            },
        }
    }

    /// The value of a constant.
    pub(crate) fn constant(
        &mut self,
        module_index: usize,
        constant: ConstantId,
        thread: ThreadNumber,
    ) -> Result<Val, Refusal> {
        let module = &self.linked.modules[module_index];
        let constant = &module.constants[constant];
        let scalar = |e| Ok(Val::Scalar(e));
        match &constant.kind {
            ConstantKind::Integer(bits) => match module.types.integer_bits(constant.ty) {
                Some(width) if width <= 64 => scalar(Expr::Int(wrap_int(width, *bits as i64))),
                _ => Err("an integer of more than 64 bits".to_owned()),
            },
            ConstantKind::Null => scalar(Expr::Int(0)),
            ConstantKind::Undef | ConstantKind::Poison => Ok(Val::Undefined),
            ConstantKind::Zero => match module.types.body(constant.ty) {
                Type::Integer(_) | Type::Pointer { .. } => scalar(Expr::Int(0)),
                Type::Struct { .. } | Type::Array { .. } => zero(module, constant.ty),
                _ => Err("a zero of this type".to_owned()),
            },
            ConstantKind::Aggregate(elements) => {
                let elements = elements.iter().map(|&e| self.constant(module_index, e, thread));
                Ok(Val::Aggregate(elements.collect::<Result<_, _>>()?))
            }
            ConstantKind::Symbol(symbol) => scalar(self.symbol(module_index, *symbol, thread)?),
            ConstantKind::Expression(expression) => {
                let expression = expression.clone();
                scalar(self.constant_expression(module_index, &expression, constant.ty, thread)?)
            }
            ConstantKind::Float(_) => Err("floating-point numbers".to_owned()),
            ConstantKind::BlockAddress { .. } => Err("addresses of labels".to_owned()),
            _ => Err("a constant of this form".to_owned()),
        }
    }

    fn constant_scalar(
        &mut self,
        module: usize,
        constant: ConstantId,
        thread: ThreadNumber,
    ) -> Result<Expr, Refusal> {
        match self.constant(module, constant, thread)? {
            Val::Scalar(e) => Ok(e),
            _ => Err("a constant of this form".to_owned()),
        }
    }

    fn constant_expression(
        &mut self,
        module_index: usize,
        expression: &Expression,
        ty: TypeId,
        thread: ThreadNumber,
    ) -> Result<Expr, Refusal> {
        let module = &self.linked.modules[module_index];
        match expression {
            Expression::Cast { op: CastOp::BitCast | CastOp::IntToPtr, value } => {
                self.constant_scalar(module_index, *value, thread)
            }
            Expression::Cast { op: CastOp::PtrToInt, value } if module.types.integer_bits(ty) == Some(64) => {
                self.constant_scalar(module_index, *value, thread)
            }
            Expression::GetElementPtr { source, base, indices, .. } => {
                let base = self.constant_scalar(module_index, *base, thread)?;
                let indices: Vec<Expr> = indices
                    .iter()
                    .map(|&index| self.constant_scalar(module_index, index, thread))
                    .collect::<Result<_, _>>()?;
                let offset = offset(module, *source, &indices, &[])?;
                Ok(crate::expr::binary(BinaryOp::WordAdd, base, offset, &[]))
            }
            Expression::Cast { op: CastOp::PtrToInt | CastOp::Trunc, value } => {
                let width = width(module, ty).ok_or("a constant expression of this form")?;
                let value = self.constant_scalar(module_index, *value, thread)?;
                Ok(crate::expr::wrap(width, value, &[]))
            }
            Expression::Cast { op: CastOp::ZExt, value } => {
                let from = width(module, module.constants[*value].ty);
                let from = from.ok_or("a constant expression of this form")?;
                let value = self.constant_scalar(module_index, *value, thread)?;
                Ok(crate::expr::unsigned(from, value, &[]))
            }
            Expression::Binary { op, left, right, .. } if module.types.integer_bits(ty) == Some(64) => {
                let op = match op {
                    IrBinary::Add => BinaryOp::WordAdd,
                    IrBinary::Sub => BinaryOp::WordSub,
                    IrBinary::Mul => BinaryOp::WordMul,
                    IrBinary::And => BinaryOp::BitAnd,
                    IrBinary::Or => BinaryOp::BitOr,
                    IrBinary::Xor => BinaryOp::BitXor,
                    // Only by constants for which they cannot fail.
                    IrBinary::Shl => BinaryOp::WordShl,
                    IrBinary::LShr => BinaryOp::WordShr,
                    IrBinary::AShr => BinaryOp::Shr,
                    IrBinary::UDiv => BinaryOp::WordDiv,
                    IrBinary::URem => BinaryOp::WordRem,
                    _ => return Err("a constant expression of this form".to_owned()),
                };
                let left = self.constant_scalar(module_index, *left, thread)?;
                let right = self.constant_scalar(module_index, *right, thread)?;
                let by = right.as_int();
                let fine = match op {
                    BinaryOp::WordShl | BinaryOp::WordShr | BinaryOp::Shr => {
                        by.is_some_and(|by| (0..64).contains(&by))
                    }
                    BinaryOp::WordDiv | BinaryOp::WordRem => by.is_some_and(|by| by != 0),
                    _ => true,
                };
                if !fine {
                    return Err("a constant expression of this form".to_owned());
                }
                Ok(crate::expr::binary(op, left, right, &[]))
            }
            Expression::Compare { predicate, left, right } => {
                let left = self.constant_scalar(module_index, *left, thread)?;
                let right = self.constant_scalar(module_index, *right, thread)?;
                Ok(crate::arithmetic::compare(*predicate, left, right, &[]))
            }
            _ => Err("a constant expression of this form".to_owned()),
        }
    }
}

/// Objects of the thread library for which there is no initial value: they must be initialised by a call, also those
/// that are global.
const NO_INITIALIZER: [&str; 4] = ["union.sem_t", "union.pthread_barrier_t", "union.mtx_t", "union.cnd_t"];

/// Whether a type of the source program is that of spin locks. They are plain numbers, and must be initialised, too.
fn is_spin_lock(module: &Module, ty: NodeId) -> bool {
    match module.debug.get(ty) {
        Some(Node::Type(ty)) => ty.name.as_deref() == Some("pthread_spinlock_t"),
        _ => false,
    }
}

/// The offsets of such objects in a variable of a type.
fn never_initialised(module: &Module, ty: TypeId) -> Vec<i64> {
    let mut found = Vec::new();
    let mut open = vec![(ty, 0)];
    while let Some((ty, offset)) = open.pop() {
        if let Type::Named(id) = module.types.get(ty)
            && NO_INITIALIZER.contains(&&*module.types.named()[*id].name)
        {
            found.push(offset);
            continue;
        }
        let count = match module.types.body(ty) {
            Type::Struct { fields, .. } => fields.len(),
            Type::Array { element, length }
                if matches!(module.types.body(*element), Type::Struct { .. } | Type::Array { .. }) =>
            {
                usize::try_from(*length).unwrap_or(0).min(MAX_LEAVES)
            }
            _ => 0,
        };
        for index in 0..count {
            let element = module.types.element(ty, u64::try_from(index).unwrap_or(0));
            if let (Some(element), Ok(at)) = (element, element_offset(module, ty, index)) {
                open.push((element, offset + at));
            }
        }
    }
    found
}

/// The kind of a mutex that has an initial value, in the form that the library has for it.
fn unusual_mutex(leaves: &mut [Leaf], offset: i64) -> Result<(), Refusal> {
    let kind = leaves.iter().find(|leaf| leaf.offset == offset + 16).and_then(|leaf| leaf.init.clone());
    match kind {
        None | Some(Expr::Int(0 | 3)) => {}
        Some(Expr::Int(1)) => set(leaves, offset, Expr::Int(crate::library::RECURSIVE)),
        Some(Expr::Int(2)) => set(leaves, offset, Expr::Int(crate::library::CHECKING)),
        Some(_) => return Err("a mutex of this kind".to_owned()),
    }
    Ok(())
}

fn set(leaves: &mut [Leaf], offset: i64, value: Expr) {
    if let Ok(index) = leaves.binary_search_by_key(&offset, |leaf| leaf.offset) {
        leaves[index].init = Some(value);
    }
}

/// Zero of a type.
fn zero(module: &Module, ty: TypeId) -> Result<Val, Refusal> {
    match module.types.body(ty) {
        Type::Integer(_) | Type::Pointer { .. } => Ok(Val::Scalar(Expr::Int(0))),
        Type::Struct { fields, .. } => {
            Ok(Val::Aggregate(fields.iter().map(|&field| zero(module, field)).collect::<Result<_, _>>()?))
        }
        Type::Array { element, length } if *length <= MAX_LEAVES as u64 => {
            let element = zero(module, *element)?;
            Ok(Val::Aggregate(vec![element; usize::try_from(*length).unwrap_or(0)]))
        }
        _ => Err("a zero of this type".to_owned()),
    }
}

/// The binary logarithm of the size in bytes of an access of a scalar type.
pub(crate) fn access_size(module: &Module, ty: TypeId) -> Option<u32> {
    match module.types.get(ty) {
        Type::Integer(_) | Type::Pointer { .. } => match module.layouts.store_size(ty)? {
            1 => Some(0),
            2 => Some(1),
            4 => Some(2),
            8 => Some(3),
            _ => None,
        },
        _ => None,
    }
}

/// The width of the values of a scalar type.
pub(crate) fn width(module: &Module, ty: TypeId) -> Option<u32> {
    match module.types.get(ty) {
        Type::Integer(bits) if *bits <= 64 => Some(*bits),
        Type::Pointer { address_space: 0, .. } => Some(64),
        _ => None,
    }
}

/// Compilers align arrays of some size like this, which C does not promise.
const USUAL_ALIGNMENT: i64 = 16;

/// The alignment that a variable has in every layout of memory: that of its type, or the larger one that the program
/// wants.
pub(crate) fn alignment(module: &Module, ty: TypeId, given: Option<u64>) -> i64 {
    let number = |bytes: Option<u64>| bytes.and_then(|bytes| i64::try_from(bytes).ok());
    // Machine code says how things are aligned, and has no types.
    if module.triple.as_deref() == Some(palisade_llvm::MACHINE_CODE) {
        return number(given).unwrap_or(1).max(1);
    }
    let of_type = number(module.layouts.align(ty)).unwrap_or(1);
    of_type.max(number(given).filter(|given| *given > USUAL_ALIGNMENT).unwrap_or(1)).max(1)
}

/// The leaves of a type, not initialised. Scalars of an odd size have no leaf: they cannot be accessed.
pub(crate) fn leaves(module: &Module, ty: TypeId) -> Result<Vec<Leaf>, Refusal> {
    let mut found = Vec::new();
    collect_leaves(module, ty, 0, &mut found)?;
    found.sort_by_key(|leaf| leaf.offset);
    Ok(found)
}

fn collect_leaves(module: &Module, ty: TypeId, offset: i64, found: &mut Vec<Leaf>) -> Result<(), Refusal> {
    if found.len() > MAX_LEAVES {
        return Err(format!("a variable of more than {MAX_LEAVES} scalars"));
    }
    match module.types.body(ty) {
        Type::Integer(_) | Type::Pointer { .. } | Type::Float(_) => {
            let size = match module.layouts.store_size(ty) {
                Some(size @ (1 | 2 | 4 | 8)) => size.trailing_zeros(),
                _ => return Ok(()),
            };
            found.push(Leaf { offset, size, init: None });
        }
        Type::Struct { fields, .. } => {
            for (index, &field) in fields.iter().enumerate() {
                collect_leaves(module, field, offset + element_offset(module, ty, index)?, found)?;
            }
        }
        Type::Array { element, length } => {
            let size = module.layouts.size(*element).ok_or("an array of elements without a size")?;
            let size = i64::try_from(size).map_err(|_| "a variable that is too large".to_owned())?;
            if size == 0 {
                return Ok(());
            }
            if *length > MAX_LEAVES as u64 {
                return Err(format!("a variable of more than {MAX_LEAVES} scalars"));
            }
            for index in 0..i64::try_from(*length).unwrap_or(0) {
                collect_leaves(module, *element, offset + index * size, found)?;
            }
        }
        _ => return Err(format!("a variable of type `{}`", module.types.display(ty))),
    }
    Ok(())
}

/// The offset of an element of a struct or array.
pub(crate) fn element_offset(module: &Module, ty: TypeId, index: usize) -> Result<i64, Refusal> {
    let offset = match module.types.body(ty) {
        Type::Struct { .. } => module.layouts.field_offset(ty, index),
        Type::Array { element, .. } => {
            module.layouts.size(*element).and_then(|size| size.checked_mul(u64::try_from(index).ok()?))
        }
        _ => None,
    };
    offset.and_then(|offset| i64::try_from(offset).ok()).ok_or_else(|| "an element of this type".to_owned())
}

/// The offset of a `getelementptr` with these indices.
pub(crate) fn offset(
    module: &Module,
    source: TypeId,
    indices: &[Expr],
    registers: &[crate::flat::Register],
) -> Result<Expr, Refusal> {
    let binary = |op, a, b| crate::expr::binary(op, a, b, registers);
    let mut sum = Expr::Int(0);
    let mut ty = source;
    for (position, index) in indices.iter().enumerate() {
        let scaled = |element: TypeId| -> Result<Expr, Refusal> {
            let size = module.layouts.size(element).and_then(|size| i64::try_from(size).ok());
            let size = size.ok_or("an address of something without a size")?;
            Ok(binary(BinaryOp::WordMul, index.clone(), Expr::Int(size)))
        };
        let step = if position == 0 {
            scaled(ty)?
        } else {
            match module.types.body(ty) {
                Type::Struct { .. } => {
                    let field = index.as_int().and_then(|index| usize::try_from(index).ok());
                    let field = field.ok_or("a field that is not a constant")?;
                    let at = element_offset(module, ty, field)?;
                    let fields = module.types.fields(ty).ok_or("a struct without fields")?;
                    ty = *fields.get(field).ok_or("a field that does not exist")?;
                    Expr::Int(at)
                }
                Type::Array { element, .. } => {
                    ty = *element;
                    scaled(ty)?
                }
                _ => return Err("an address of this form".to_owned()),
            }
        };
        sum = binary(BinaryOp::WordAdd, sum, step);
    }
    Ok(sum)
}

/// The function that a target is, if it is defined.
pub(crate) fn as_function(target: &Target) -> Option<FunctionRef> {
    match target {
        Target::Function(function) => Some(*function),
        _ => None,
    }
}
