//! Sizes, alignments and offsets of types, by the data layout of the module.
//!
//! *Source.* The section "Data Layout" of the LLVM language reference.

use crate::types::{FloatKind, Type, TypeId, Types};
use palisade_base::IdVec;

/// Sizes and alignments of a machine: the string after `target datalayout`. Alignments are in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataLayout {
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
    /// Pointers, by address space; space 0 is always there.
    pointers: Vec<(u32, PointerLayout)>,
    /// Alignments of integers by their bits, in ascending order.
    integers: Vec<(u32, u64)>,
    floats: Vec<(u32, u64)>,
    vectors: Vec<(u32, u64)>,
    /// The least alignment of structs.
    aggregate: u64,
}

/// The size of pointers of an address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointerLayout {
    /// Bits of a pointer.
    pub bits: u32,
    /// Alignment in bytes.
    pub align: u64,
    /// Bits of the offsets that are added to it.
    pub index_bits: u32,
}

impl Default for DataLayout {
    /// What LLVM assumes where the text does not say anything else.
    fn default() -> DataLayout {
        DataLayout {
            big_endian: false,
            pointers: vec![(0, PointerLayout { bits: 64, align: 8, index_bits: 64 })],
            integers: vec![(1, 1), (8, 1), (16, 2), (32, 4), (64, 4)],
            floats: vec![(16, 2), (32, 4), (64, 8), (128, 16)],
            vectors: vec![(64, 8), (128, 16)],
            aggregate: 1,
        }
    }
}

impl DataLayout {
    /// Reads the string. The error is the part that is not understood.
    pub fn parse(text: &str) -> Result<DataLayout, String> {
        let mut layout = DataLayout::default();
        for part in text.split('-').filter(|part| !part.is_empty()) {
            layout.part(part).ok_or_else(|| part.to_owned())?;
        }
        Ok(layout)
    }

    fn part(&mut self, part: &str) -> Option<()> {
        let mut fields = part.split(':');
        let first = fields.next()?;
        let numbers: Vec<&str> = fields.collect();
        let bits = |at: usize| -> Option<u32> { numbers.get(at)?.parse().ok() };
        let bytes = |at: usize| -> Option<u64> { alignment(bits(at)?) };
        let mut letters = first.chars();
        let letter = letters.next()?;
        let rest = letters.as_str();
        match letter {
            'e' if part == "e" => self.big_endian = false,
            'E' if part == "E" => self.big_endian = true,
            'p' => {
                // LLVM 22 has flags before the number, for pointers that are more than an address.
                let space: u32 = if rest.is_empty() { 0 } else { rest.parse().ok()? };
                let size = bits(0).filter(|&bits| bits > 0 && bits <= 1 << 16)?;
                let index_bits = if numbers.len() > 3 { bits(3)? } else { size };
                set(
                    &mut self.pointers,
                    space,
                    PointerLayout { bits: size, align: bytes(1)?.max(1), index_bits },
                );
            }
            'i' => set(&mut self.integers, rest.parse().ok().filter(|&bits| bits > 0)?, bytes(0)?.max(1)),
            'f' => set(&mut self.floats, rest.parse().ok()?, bytes(0)?.max(1)),
            'v' => set(&mut self.vectors, rest.parse().ok()?, bytes(0)?.max(1)),
            'a' if rest.is_empty() || rest == "0" => self.aggregate = bytes(0)?.max(1),
            // The stack's alignment, name mangling, native widths, pointers that are not integers, and the
            // address spaces of functions, variables and the stack do not change sizes.
            'S' | 'm' | 'n' | 'F' | 'P' | 'G' | 'A' => {}
            _ => return None,
        }
        Some(())
    }

    /// The layout of pointers of an address space.
    pub fn pointer(&self, address_space: u32) -> PointerLayout {
        let of = |space: u32| self.pointers.iter().find(|(other, _)| *other == space);
        of(address_space).or_else(|| of(0)).expect("space 0 is always there").1
    }

    /// The alignment of an integer: that of the next larger one, or of the largest one that there is.
    fn integer_align(&self, bits: u32) -> u64 {
        let larger = self.integers.iter().find(|(width, _)| *width >= bits);
        larger.or(self.integers.last()).expect("there are defaults").1
    }

    fn float_align(&self, kind: FloatKind) -> u64 {
        let bits = kind.bits();
        let exact = self.floats.iter().find(|(width, _)| *width == bits);
        exact.map_or_else(|| u64::from(bits.div_ceil(8)).next_power_of_two(), |(_, align)| *align)
    }

    fn vector_align(&self, bits: u64) -> Option<u64> {
        match self.vectors.iter().find(|(width, _)| u64::from(*width) == bits) {
            Some((_, align)) => Some(*align),
            None => bits.div_ceil(8).max(1).checked_next_power_of_two(),
        }
    }
}

/// An alignment in bytes from one in bits; 0 means that there is none.
fn alignment(bits: u32) -> Option<u64> {
    (bits.is_multiple_of(8) && (bits == 0 || bits.is_power_of_two())).then_some(u64::from(bits / 8))
}

/// Replaces or inserts an entry of a list in ascending order.
fn set<T>(entries: &mut Vec<(u32, T)>, key: u32, value: T) {
    match entries.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(at) => entries[at].1 = value,
        Err(at) => entries.insert(at, (key, value)),
    }
}

/// The size of one type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeLayout {
    /// The bytes that a store writes.
    pub store_size: u64,
    /// The distance in bytes between elements of an array.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The offsets in bytes of a struct's fields.
    pub offsets: Box<[u64]>,
}

impl TypeLayout {
    fn scalar(bits: u64, align: u64) -> Option<TypeLayout> {
        let store_size = bits.div_ceil(8);
        let size = store_size.checked_next_multiple_of(align)?;
        Some(TypeLayout { store_size, size, align, offsets: Box::default() })
    }
}

/// The sizes of all types of a module. Types such as `void`, functions and opaque structs have none, and
/// neither have types that would need more than 2^64 bytes or that contain themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layouts {
    layouts: IdVec<TypeId, Option<TypeLayout>>,
}

impl Layouts {
    /// Computes all sizes. Named structs may contain one another to any depth, so there is a stack instead of
    /// a recursion.
    pub(crate) fn new(types: &Types, data: &DataLayout) -> Layouts {
        let mut layouts: IdVec<TypeId, Option<TypeLayout>> = types.ids().map(|_| None).collect();
        let mut progress: IdVec<TypeId, Progress> = types.ids().map(|_| Progress::New).collect();
        let mut stack = Vec::new();
        for root in types.ids() {
            stack.push(root);
            while let Some(&id) = stack.last() {
                match progress[id] {
                    Progress::New => {
                        progress[id] = Progress::Open;
                        for_each_contained(types, id, |part| {
                            if progress[part] == Progress::New {
                                stack.push(part);
                            }
                        });
                    }
                    Progress::Open => {
                        layouts[id] = layout(types, data, &layouts, id);
                        progress[id] = Progress::Done;
                        stack.pop();
                    }
                    Progress::Done => _ = stack.pop(),
                }
            }
        }
        Layouts { layouts }
    }

    /// The layout of a type, if it has one.
    pub fn get(&self, id: TypeId) -> Option<&TypeLayout> {
        self.layouts.get(id)?.as_ref()
    }

    /// The distance in bytes between elements of an array of this type.
    pub fn size(&self, id: TypeId) -> Option<u64> {
        self.get(id).map(|layout| layout.size)
    }

    /// The bytes that a store of this type writes.
    pub fn store_size(&self, id: TypeId) -> Option<u64> {
        self.get(id).map(|layout| layout.store_size)
    }

    /// The alignment in bytes.
    pub fn align(&self, id: TypeId) -> Option<u64> {
        self.get(id).map(|layout| layout.align)
    }

    /// The offset in bytes of a field of a struct.
    pub fn field_offset(&self, id: TypeId, field: usize) -> Option<u64> {
        self.get(id)?.offsets.get(field).copied()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    New,
    Open,
    Done,
}

/// The types that a value of this type contains, as opposed to points to.
fn for_each_contained(types: &Types, id: TypeId, mut visit: impl FnMut(TypeId)) {
    match types.get(id) {
        Type::Array { element, .. } | Type::Vector { element, .. } => visit(*element),
        Type::Struct { fields, .. } => fields.iter().copied().for_each(visit),
        Type::Named(named) => types.named()[*named].body.into_iter().for_each(visit),
        _ => {}
    }
}

/// The layout of a type whose parts have theirs. A part without one, also because it is still open, has none.
fn layout(
    types: &Types,
    data: &DataLayout,
    layouts: &IdVec<TypeId, Option<TypeLayout>>,
    id: TypeId,
) -> Option<TypeLayout> {
    match types.get(id) {
        Type::Void | Type::Label | Type::Token | Type::Metadata | Type::Function { .. } => None,
        Type::Integer(bits) => TypeLayout::scalar(u64::from(*bits), data.integer_align(*bits)),
        Type::Float(kind) => TypeLayout::scalar(u64::from(kind.bits()), data.float_align(*kind)),
        Type::Pointer { address_space, .. } => {
            let pointer = data.pointer(*address_space);
            TypeLayout::scalar(u64::from(pointer.bits), pointer.align)
        }
        Type::Array { element, length } => {
            let element = layouts[*element].as_ref()?;
            let size = element.size.checked_mul(*length)?;
            Some(TypeLayout { store_size: size, size, align: element.align, offsets: Box::default() })
        }
        Type::Vector { scalable: true, .. } => None,
        Type::Vector { element, length, scalable: false } => {
            let bits = match types.get(*element) {
                Type::Integer(bits) => u64::from(*bits),
                Type::Float(kind) => u64::from(kind.bits()),
                Type::Pointer { address_space, .. } => u64::from(data.pointer(*address_space).bits),
                _ => return None,
            };
            let bits = bits.checked_mul(*length)?;
            TypeLayout::scalar(bits, data.vector_align(bits)?)
        }
        Type::Struct { fields, packed } => {
            let mut end: u64 = 0;
            let mut align = if *packed { 1 } else { data.aggregate };
            let mut offsets = Vec::with_capacity(fields.len());
            for field in fields {
                let field = layouts[*field].as_ref()?;
                if !packed {
                    end = end.checked_next_multiple_of(field.align)?;
                    align = align.max(field.align);
                }
                offsets.push(end);
                end = end.checked_add(field.size)?;
            }
            let size = end.checked_next_multiple_of(align)?;
            Some(TypeLayout { store_size: size, size, align, offsets: offsets.into() })
        }
        Type::Named(named) => layouts[types.named()[*named].body?].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: &str = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";

    /// The size of the bytes stored, the size, and the alignment of a type.
    #[track_caller]
    fn check(data: &str, ty: &str, expected: Option<(u64, u64, u64)>) {
        let text = format!("target datalayout = \"{data}\"\n%o = type opaque\n@g = external global {ty}\n");
        let module = crate::read(&palisade_base::Source::new("t.ll", text)).expect("the text is right");
        let global = module.globals.iter().next().expect("there is a variable");
        let found = module.layouts.get(global.ty).map(|found| (found.store_size, found.size, found.align));
        assert_eq!(found, expected, "{ty}");
    }

    #[test]
    fn scalars() {
        let sizes = [
            ("i1", 1, 1, 1),
            ("i7", 1, 1, 1),
            ("i8", 1, 1, 1),
            ("i9", 2, 2, 2),
            ("i24", 3, 4, 4),
            ("i32", 4, 4, 4),
            ("i48", 6, 8, 8),
            ("i64", 8, 8, 8),
            ("i65", 9, 16, 16),
            ("i128", 16, 16, 16),
            ("i256", 32, 32, 16),
            ("ptr", 8, 8, 8),
            ("i8*", 8, 8, 8),
            ("ptr addrspace(270)", 4, 4, 4),
            ("ptr addrspace(5)", 8, 8, 8),
            ("half", 2, 2, 2),
            ("float", 4, 4, 4),
            ("double", 8, 8, 8),
            ("x86_fp80", 10, 16, 16),
            ("fp128", 16, 16, 16),
            ("<4 x i32>", 16, 16, 16),
            ("<3 x i32>", 12, 16, 16),
            ("<8 x i1>", 1, 1, 1),
            ("<2 x ptr>", 16, 16, 16),
        ];
        for (ty, store, size, align) in sizes {
            check(X86_64, ty, Some((store, size, align)));
        }
    }

    /// Before LLVM 18, `i128` was aligned like `i64`.
    #[test]
    fn the_layout_of_the_text_counts() {
        check("e-m:e-i64:64-f80:128-n8:16:32:64-S128", "i128", Some((16, 16, 8)));
        check("", "i64", Some((8, 8, 4)));
        check("E-p:32:32", "ptr", Some((4, 4, 4)));
        check("e-p:32:32-a:0:32", "{ i8, ptr }", Some((8, 8, 4)));
        check("e-a:64", "{ i8 }", Some((8, 8, 8)));
        check("e-f80:32", "x86_fp80", Some((10, 12, 4)));
    }

    #[test]
    fn aggregates() {
        check(X86_64, "{ i8, i32, i8 }", Some((12, 12, 4)));
        check(X86_64, "<{ i8, i32, i8 }>", Some((6, 6, 1)));
        check(X86_64, "{ i8, <{ i8, i64 }>, i16 }", Some((12, 12, 2)));
        check(X86_64, "[3 x { i32, i8 }]", Some((24, 24, 4)));
        check(X86_64, "[0 x i64]", Some((0, 0, 8)));
        check(X86_64, "{}", Some((0, 0, 1)));
        check(X86_64, "[18446744073709551615 x i8]", Some((u64::MAX, u64::MAX, 1)));
        check(X86_64, "[18446744073709551615 x i16]", None);
        check(X86_64, "{ i8, [18446744073709551615 x i8] }", None);
        check(X86_64, "%o", None);
        check(X86_64, "{ i8, %o }", None);
        check(X86_64, "<vscale x 4 x i32>", None);
    }

    #[test]
    fn fields_have_offsets() {
        let text = format!(
            "target datalayout = \"{X86_64}\"\n%a = type {{ i8, %b, i64 }}\n%b = type <{{ i8, i32 }}>\n\
             @g = external global %a\n"
        );
        let module = crate::read(&palisade_base::Source::new("t.ll", text)).expect("the text is right");
        let ty = module.global("g").expect("it is there").ty;
        let offsets: Vec<_> = (0..4).map(|field| module.layouts.field_offset(ty, field)).collect();
        assert_eq!(offsets, [Some(0), Some(1), Some(8), None]);
        assert_eq!(module.layouts.size(ty), Some(16));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, part) in [("e-q5", "q5"), ("e-i32:7", "i32:7"), ("p:x:8", "p:x:8"), ("i0:8", "i0:8")] {
            assert_eq!(DataLayout::parse(text), Err(part.to_owned()));
        }
    }
}
