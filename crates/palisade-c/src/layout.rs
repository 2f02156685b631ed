//! Addresses: where objects lie, and which of their scalars become cells.
//!
//! A scalar becomes a cell only if some access may touch it: by its address, by a pointer into its object, or,
//! if the address of the object is kept somewhere, by any pointer of the same size.

use crate::expr::Expr;
use crate::flat::{Access, Code, End, ObjectId, StepKind, Written};
use crate::link::Target;
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP, Leaf, Memory};
use crate::objects::{FIRST_ADDRESS, Object, ObjectKind, Objects, Part};
use crate::promote::leaf_name;
use crate::threads::ThreadCode;
use rustc_hash::{FxHashMap, FxHashSet};

/// Objects start at multiples of this.
const ALIGNMENT: i64 = 64;

/// Heap objects start at multiples of this where the program asks for an alignment.
const PAGE: i64 = 4096;

/// All objects are below this address: programs may keep tags in the upper 16 bits of pointers.
const END: i64 = FUNCTION_BASE;

/// How far apart objects are. A wrong index must not lead from one object into another, where it would not be
/// noticed. With few objects, no 32-bit index of elements of up to 16 bytes does.
fn stride(objects: usize) -> i64 {
    let objects = i64::try_from(objects).expect("fewer than 2^63 objects");
    (1 << 36).min(END / (objects + 2)) / ALIGNMENT * ALIGNMENT
}

/// A scalar that is a cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) object: ObjectId,
    pub(crate) offset: i64,
    pub(crate) size: u32,
    /// Whether it may hold what was never written.
    pub(crate) wide: bool,
    /// Whether it may be freed.
    pub(crate) heap: bool,
    /// Whether it is never written.
    pub(crate) constant: bool,
    /// Whether it belongs to a variable of one thread whose address may be used after the end of the variable.
    pub(crate) left: bool,
}

/// Where everything is.
pub(crate) struct Layout {
    /// The address of each object.
    addresses: Vec<Option<i64>>,
    /// The size of each object.
    sizes: Vec<i64>,
    pub(crate) cells: Vec<Cell>,
    index: FxHashMap<(ObjectId, i64, u32), usize>,
    /// The objects whose address is kept somewhere.
    exposed: FxHashSet<ObjectId>,
    /// Whether what was never written may be copied, to any cell.
    raw_copies: bool,
    by_object: FxHashMap<ObjectId, Vec<usize>>,
}

/// What accesses there are.
#[derive(Default)]
struct Uses {
    mentioned: FxHashSet<ObjectId>,
    exposed: FxHashSet<ObjectId>,
    exact: FxHashSet<(ObjectId, i64, u32)>,
    based: FxHashSet<(ObjectId, u32)>,
    anywhere: FxHashSet<u32>,
    raw_copies: bool,
    /// Locals whose functions return.
    left: FxHashSet<ObjectId>,
}

impl Layout {
    pub(crate) fn new(threads: &[ThreadCode], memory: &Memory<'_>) -> Layout {
        let mut uses = Uses::default();
        threads.iter().for_each(|thread| uses.collect(&thread.code));
        // Initial values that are addresses expose objects, also in turn.
        let mut open: Vec<ObjectId> = uses.mentioned.iter().copied().collect();
        while let Some(object) = open.pop() {
            for leaf in &memory.object(object).leaves {
                if let Some(init) = &leaf.init {
                    init.for_each_object(&mut |target| {
                        uses.exposed.insert(target);
                        if uses.mentioned.insert(target) {
                            open.push(target);
                        }
                    });
                }
            }
        }
        let mut layout = Layout {
            addresses: vec![None; memory.objects.len()],
            sizes: memory.objects.iter().map(|object| object.size).collect(),
            cells: Vec::new(),
            index: FxHashMap::default(),
            exposed: uses.exposed.clone(),
            raw_copies: uses.raw_copies,
            by_object: FxHashMap::default(),
        };
        let mut dangling: FxHashSet<ObjectId> =
            threads.iter().flat_map(|thread| used_after_leaving(&thread.code, &uses.left)).collect();
        dangling.extend(used_by_others(threads));
        let stride = stride(uses.mentioned.len());
        let mut next = FIRST_ADDRESS;
        let mut taken: FxHashSet<String> = FxHashSet::default();
        for (index, object) in memory.objects.iter().enumerate() {
            let id = ObjectId(u32::try_from(index).expect("fewer than 2^32 objects"));
            if !uses.mentioned.contains(&id) {
                continue;
            }
            let on_page = memory.aligned_heap && object.kind == ObjectKind::Heap;
            let align = object.align.max(if on_page { PAGE } else { ALIGNMENT });
            next = (next + align - 1) / align * align;
            layout.addresses[index] = Some(next);
            next = stride + (next + object.size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            for leaf in &object.leaves {
                let used = uses.exact.contains(&(id, leaf.offset, leaf.size))
                    || uses.based.contains(&(id, leaf.size))
                    || uses.exposed.contains(&id) && uses.anywhere.contains(&leaf.size);
                if !used {
                    continue;
                }
                let mut base = leaf_name(memory, object, leaf.offset, leaf.size);
                if base.is_empty() {
                    base = "temporary".to_owned();
                }
                let mut name = base.clone();
                let mut count = 1;
                while !taken.insert(name.clone()) {
                    count += 1;
                    name = format!("{base}#{count}");
                }
                layout.index.insert((id, leaf.offset, leaf.size), layout.cells.len());
                layout.by_object.entry(id).or_default().push(layout.cells.len());
                let heap = object.kind == ObjectKind::Heap;
                let (offset, size, constant) = (leaf.offset, leaf.size, object.constant);
                let left = object.kind.is_local()
                    && (uses.left.contains(&id) && uses.exposed.contains(&id) || dangling.contains(&id));
                let wide = leaf.init.is_none() || left;
                layout.cells.push(Cell { name, object: id, offset, size, wide, heap, constant, left });
            }
        }
        let any_wide = layout.cells.iter().any(|cell| cell.wide);
        if layout.raw_copies && any_wide {
            layout.cells.iter_mut().for_each(|cell| cell.wide = true);
        }
        layout
    }

    /// The address of a byte of an object.
    pub(crate) fn address(&self, object: ObjectId, offset: i64) -> i64 {
        self.addresses[object.0 as usize]
            .expect("objects that are mentioned have an address")
            .wrapping_add(offset)
    }

    /// The address of an object, if it has one.
    pub(crate) fn known_address(&self, object: ObjectId) -> Option<i64> {
        self.addresses.get(object.0 as usize).copied().flatten()
    }

    /// The addresses of an object: the first, and the end.
    pub(crate) fn range(&self, object: ObjectId) -> (i64, i64) {
        (self.address(object, 0), self.address(object, self.sizes[object.0 as usize]))
    }

    /// The cell of an access, if its address is a constant.
    pub(crate) fn cell(&self, access: &Access) -> Option<&Cell> {
        match access.pointer {
            Expr::Address(object, offset) => {
                self.index.get(&(object, offset, access.size)).map(|&index| &self.cells[index])
            }
            _ => None,
        }
    }

    /// The cells that an access may touch.
    pub(crate) fn may_touch<'s>(&'s self, access: &'s Access) -> Box<dyn Iterator<Item = &'s Cell> + 's> {
        if access.pointer.is_constant() {
            return Box::new(self.cell(access).into_iter());
        }
        let fits = move |cell: &&Cell| cell.size == access.size;
        match access.pointer.base() {
            Some(object) => {
                let all = self.by_object.get(&object).map_or(&[][..], Vec::as_slice);
                Box::new(all.iter().map(|&index| &self.cells[index]).filter(fits))
            }
            None => {
                let exposed = |cell: &&Cell| self.exposed.contains(&cell.object);
                Box::new(self.cells.iter().filter(fits).filter(exposed))
            }
        }
    }

    /// Whether an access may find what was never written.
    pub(crate) fn may_be_unwritten(&self, access: &Access) -> bool {
        self.may_touch(access).any(|cell| cell.wide)
    }

    /// Whether the address of an object is kept somewhere.
    pub(crate) fn is_exposed(&self, object: ObjectId) -> bool {
        self.exposed.contains(&object)
    }

    /// The indices of the cells of an object.
    pub(crate) fn cells_of(&self, object: ObjectId) -> &[usize] {
        self.by_object.get(&object).map_or(&[][..], Vec::as_slice)
    }

    /// The objects and functions, for explanations.
    pub(crate) fn objects(&self, memory: &Memory<'_>) -> Objects {
        let mut all = Vec::new();
        for (index, object) in memory.objects.iter().enumerate() {
            if let Some(address) = self.addresses[index] {
                let id = ObjectId(u32::try_from(index).expect("fewer than 2^32 objects"));
                let cells = self.by_object.get(&id).map_or(&[][..], Vec::as_slice);
                let cells =
                    cells.iter().map(|&cell| (self.cells[cell].offset, self.cells[cell].size)).collect();
                let (name, kind) = (object.name.clone(), object.kind);
                let part = |leaf: &Leaf| {
                    let name = leaf_name(memory, object, leaf.offset, leaf.size);
                    let size = 1 << leaf.size;
                    let unsigned = object.debug.is_some_and(|(module, ty)| {
                        let (debug, size) = (&memory.linked.modules[module].debug, 1 << leaf.size);
                        let offset = u64::try_from(leaf.offset).unwrap_or(0);
                        // What is in the objects of the C library is not what their types say.
                        debug.is_unsigned(ty, offset, size)
                            && !debug.path(ty, offset, Some(size)).contains(".__")
                    });
                    Part { name, offset: leaf.offset, size, unsigned }
                };
                let parts = object.leaves.iter().map(part).collect();
                all.push(Object { name, kind, address, size: object.size, cells, parts });
            }
        }
        for (address, target) in memory.functions() {
            let name = match target {
                Target::Function(function) => memory.linked.name(*function).to_owned(),
                Target::Library(name) | Target::Missing(name) => name.to_string(),
                Target::Global(_) => continue,
            };
            let kind = ObjectKind::Function;
            all.push(Object {
                name,
                kind,
                address,
                size: FUNCTION_STEP,
                cells: Vec::new(),
                parts: Vec::new(),
            });
        }
        Objects::new(all)
    }
}

/// The locals of a thread that it accesses by their own address after their function has returned.
fn used_after_leaving(code: &Code, left: &FxHashSet<ObjectId>) -> FxHashSet<ObjectId> {
    let mut used = FxHashSet::default();
    if left.is_empty() {
        return used;
    }
    // For each block, the objects that may be gone at its start.
    let mut gone: Vec<FxHashSet<ObjectId>> = vec![FxHashSet::default(); code.blocks.len()];
    let order = code.reachable();
    let mut changed = true;
    while changed {
        changed = false;
        for &id in &order {
            let mut now = gone[id.0 as usize].clone();
            for step in &code.block(id).steps {
                match &step.kind {
                    StepKind::Leave(object) => _ = now.insert(*object),
                    StepKind::Enter(object) => _ = now.remove(object),
                    kind => kind.for_each_access(&mut |access| {
                        let base = match access.pointer {
                            Expr::Address(object, _) => Some(object),
                            _ => access.pointer.base(),
                        };
                        used.extend(base.filter(|object| now.contains(object)));
                    }),
                }
            }
            code.block(id).end.for_each_successor(|to| {
                let before = gone[to.0 as usize].len();
                gone[to.0 as usize].extend(now.iter().copied());
                changed |= gone[to.0 as usize].len() > before;
            });
        }
    }
    used
}

/// The locals of functions that return in one thread and are accessed by another one.
fn used_by_others(threads: &[ThreadCode]) -> FxHashSet<ObjectId> {
    let uses: Vec<Uses> = threads
        .iter()
        .map(|thread| {
            let mut uses = Uses::default();
            uses.collect(&thread.code);
            uses
        })
        .collect();
    let mut used = FxHashSet::default();
    for (owner, of_owner) in uses.iter().enumerate() {
        for (_, of_other) in uses.iter().enumerate().filter(|(other, _)| *other != owner) {
            used.extend(of_owner.left.intersection(&of_other.mentioned));
        }
    }
    used
}

impl Uses {
    fn collect(&mut self, code: &Code) {
        for block in code.reachable() {
            let block = code.block(block);
            block.steps.iter().for_each(|step| self.step(&step.kind));
            if let End::Branch(condition, ..) = &block.end {
                self.expose(condition);
            }
        }
    }

    fn expose(&mut self, e: &Expr) {
        e.for_each_object(&mut |object| {
            self.mentioned.insert(object);
            self.exposed.insert(object);
        });
    }

    fn access(&mut self, access: &Access) {
        match (&access.pointer, access.pointer.base()) {
            (Expr::Address(object, offset), _) => {
                self.mentioned.insert(*object);
                self.exact.insert((*object, *offset, access.size));
            }
            (_, Some(object)) => {
                self.mentioned.insert(object);
                self.based.insert((object, access.size));
                // An index may be computed from the address of another object.
                access.pointer.for_each_object(&mut |other| {
                    if other != object {
                        self.mentioned.insert(other);
                        self.exposed.insert(other);
                    }
                });
            }
            (pointer, None) => {
                self.expose(pointer);
                self.anywhere.insert(access.size);
            }
        }
    }

    fn step(&mut self, kind: &StepKind) {
        match kind {
            StepKind::Leave(object) => _ = self.left.insert(*object),
            StepKind::Load { from, written, to: _ } => {
                self.raw_copies |= *written == Written::Copied;
                self.access(from);
            }
            StepKind::Store { to, value } => {
                self.access(to);
                self.expose(value);
            }
            StepKind::Locked { at, operand, .. } => {
                self.access(at);
                self.expose(operand);
            }
            StepKind::Cas { at, expected, new, .. } | StepKind::AwaitCas { at, expected, new } => {
                self.access(at);
                self.expose(expected);
                self.expose(new);
            }
            StepKind::AwaitLoad { from, condition, .. } => {
                self.access(from);
                self.expose(condition);
            }
            StepKind::Freeable(access) => self.access(access),
            StepKind::Atomic(steps) => steps.iter().for_each(|step| self.step(&step.kind)),
            StepKind::If(condition, then, otherwise) => {
                self.expose(condition);
                then.iter().chain(otherwise).for_each(|step| self.step(&step.kind));
            }
            other => other.for_each_expr(&mut |e| self.expose(e)),
        }
    }
}
