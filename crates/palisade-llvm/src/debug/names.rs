//! The name of a part of an object: offset 8 of a `struct node` is `.next`.

use super::{DebugInfo, Node, NodeId, SourceType};
use std::fmt::Write as _;

/// Types nest no deeper than this in practice; a chain that is longer may be a loop.
const MAX_STEPS: usize = 200;

/// How many members are looked at for one name. Types that contain themselves could be followed without end.
const MAX_MEMBERS: usize = 10_000;

/// The way to a part of an object.
#[derive(Default)]
struct Path {
    text: String,
    /// The type of the part, if it has no parts itself.
    part: Option<NodeId>,
}

impl DebugInfo {
    /// The part of an object of type `ty` at `offset` bytes, in the notation of C, to be put after the name
    /// of the object: `.next`, `[2].key`, or nothing for the object itself. `size` is the number of bytes
    /// that are accessed; it decides between the members of a union.
    ///
    /// Where the type does not say what is there, the rest is a number of bytes: `.key+2`. Several bit-fields
    /// in the same bytes are all listed: `.a/b`.
    pub fn path(&self, ty: NodeId, offset: u64, size: Option<u64>) -> String {
        let mut path = Path::default();
        let rest = self.descend(ty, offset, size, &mut path, MAX_STEPS);
        if rest > 0 {
            let _ = write!(path.text, "+{rest}");
        }
        path.text
    }

    /// Whether the part of an object that is accessed is an unsigned number.
    pub fn is_unsigned(&self, ty: NodeId, offset: u64, size: u64) -> bool {
        let mut path = Path::default();
        let rest = self.descend(ty, offset, Some(size), &mut path, MAX_STEPS);
        let part = path.part.and_then(|part| self.resolve_type(part)).filter(|_| rest == 0);
        part.is_some_and(|part| {
            part.bits == size.checked_mul(8)
                && &*part.tag == "DW_TAG_base_type"
                && part.name.as_deref().is_some_and(|name| name.starts_with("unsigned "))
        })
    }

    /// The type, without typedefs, qualifiers and `_Atomic`.
    pub fn resolve_type(&self, ty: NodeId) -> Option<&SourceType> {
        let mut next = ty;
        for _ in 0..MAX_STEPS {
            let Some(Node::Type(ty)) = self.get(next) else { return None };
            match &*ty.tag {
                "DW_TAG_typedef"
                | "DW_TAG_const_type"
                | "DW_TAG_volatile_type"
                | "DW_TAG_restrict_type"
                | "DW_TAG_atomic_type"
                | "DW_TAG_immutable_type" => next = ty.base?,
                _ => return Some(ty),
            }
        }
        None
    }

    /// The size of a type in bits.
    fn type_bits(&self, ty: NodeId) -> Option<u64> {
        let resolved = self.resolve_type(ty)?;
        resolved.bits.or_else(|| match &*resolved.tag {
            "DW_TAG_array_type" => {
                let counts = self.dimensions(resolved).into_iter();
                let count = counts.map(|count| count.unwrap_or(0)).try_fold(1_u64, u64::checked_mul)?;
                // The element is not looked up by recursion without end: its type has a size or is an array
                // itself.
                let element = self.resolve_type(resolved.base?)?;
                element.bits?.checked_mul(count)
            }
            _ => None,
        })
    }

    /// The numbers of elements of an array, outermost first.
    fn dimensions(&self, array: &SourceType) -> Vec<Option<u64>> {
        self.elements(array)
            .into_iter()
            .map(|id| match self.get(id) {
                Some(Node::Range { count }) => *count,
                _ => None,
            })
            .collect()
    }

    fn elements(&self, ty: &SourceType) -> Vec<NodeId> {
        match ty.elements.and_then(|elements| self.get(elements)) {
            Some(Node::Tuple(items)) => items.iter().flatten().copied().collect(),
            _ => Vec::new(),
        }
    }

    /// Appends the path, and returns the bytes that are left where no name is known.
    fn descend(&self, ty: NodeId, offset: u64, size: Option<u64>, path: &mut Path, steps: usize) -> u64 {
        let Some(steps) = steps.checked_sub(1) else { return offset };
        let Some(resolved) = self.resolve_type(ty) else { return offset };
        match &*resolved.tag {
            "DW_TAG_array_type" => self.descend_array(resolved, offset, size, path, steps),
            "DW_TAG_structure_type" | "DW_TAG_class_type" | "DW_TAG_union_type" => {
                self.descend_struct(resolved, offset, size, path, steps)
            }
            _ => {
                path.part = Some(ty);
                offset
            }
        }
    }

    fn descend_array(
        &self,
        array: &SourceType,
        offset: u64,
        size: Option<u64>,
        path: &mut Path,
        steps: usize,
    ) -> u64 {
        let whole = |bits: u64| size.is_some_and(|size| offset == 0 && size.checked_mul(8) == Some(bits));
        let Some(element) = array.base else { return offset };
        let Some(stride) = self.type_bits(element).map(|bits| bits / 8).filter(|&bytes| bytes > 0) else {
            return offset;
        };
        if array.bits.is_some_and(|bits| bits / 8 != stride && whole(bits)) {
            return offset;
        }
        let mut index = offset / stride;
        // All dimensions but the first say how many elements there are per step of the dimension before them.
        let dimensions = self.dimensions(array);
        let inner: Option<Vec<u64>> =
            dimensions.iter().skip(1).map(|count| count.filter(|&n| n > 0)).collect();
        let mut indices = Vec::new();
        for count in inner.unwrap_or_default().into_iter().rev() {
            indices.push(index % count);
            index /= count;
        }
        indices.push(index);
        for index in indices.iter().rev() {
            let _ = write!(path.text, "[{index}]");
        }
        self.descend(element, offset % stride, size, path, steps)
    }

    fn descend_struct(
        &self,
        ty: &SourceType,
        offset: u64,
        size: Option<u64>,
        path: &mut Path,
        steps: usize,
    ) -> u64 {
        let wanted = size.and_then(|size| size.checked_mul(8));
        let Some(start) = offset.checked_mul(8) else { return offset };
        let end = start.saturating_add(wanted.unwrap_or(8).max(8));
        let mut found: Vec<(&SourceType, u64)> = Vec::new();
        for id in self.elements(ty) {
            let Some(Node::Type(member)) = self.get(id) else { continue };
            if member.is_static || !matches!(&*member.tag, "DW_TAG_member" | "DW_TAG_inheritance") {
                continue;
            }
            let Some(bits) = member.bits.or_else(|| self.type_bits(member.base?)) else { continue };
            let member_end = member.offset_bits.saturating_add(bits);
            let inside = if member.bit_field {
                member.offset_bits < end && start < member_end
            } else {
                (member.offset_bits..member_end).contains(&start)
            };
            if inside {
                found.push((member, bits));
            }
        }
        let exact = |&&(member, bits): &&(&SourceType, u64)| {
            member.offset_bits == start && Some(bits) == wanted && !member.bit_field
        };
        // The whole struct has no part to name, unless a member is all of it.
        let whole = start == 0 && wanted.is_some() && wanted == ty.bits;
        if whole && !found.iter().any(|member| exact(&member)) {
            return 0;
        }
        if found.iter().any(|(member, _)| member.bit_field) {
            let names = found.iter().filter(|(member, _)| member.bit_field);
            let names: Vec<&str> = names.filter_map(|(member, _)| member.name.as_deref()).collect();
            if !names.is_empty() {
                let _ = write!(path.text, ".{}", names.join("/"));
                return 0;
            }
        }
        // In a struct there is one; in a union the one that is accessed as a whole is meant, or else the
        // first.
        let mut fuel = MAX_MEMBERS;
        let chosen = found.iter().find(exact).or_else(|| {
            let mut by_parts = found.iter().filter(|(member, _)| {
                let Some(base) = member.base else { return false };
                self.has_part(base, offset - member.offset_bits / 8, size, &mut fuel)
            });
            by_parts.next().or(found.first())
        });
        let Some(&(member, _)) = chosen else { return offset };
        if let Some(name) = member.name.as_deref().filter(|name| !name.is_empty()) {
            // Rust calls the fields of tuples `__0`.
            let _ = write!(path.text, ".{name}");
        }
        let Some(base) = member.base else { return offset - member.offset_bits / 8 };
        self.descend(base, offset - member.offset_bits / 8, size, path, steps)
    }

    /// Whether a type has a part of exactly this size at this offset. Parts are looked at while there is
    /// `fuel`.
    fn has_part(&self, ty: NodeId, offset: u64, size: Option<u64>, fuel: &mut usize) -> bool {
        let Some(wanted) = size.and_then(|size| size.checked_mul(8)) else { return false };
        let mut open = vec![(ty, offset)];
        while let Some((ty, offset)) = open.pop() {
            let Some(rest) = fuel.checked_sub(1) else { return false };
            *fuel = rest;
            let Some(resolved) = self.resolve_type(ty) else { continue };
            if offset == 0 && self.type_bits(ty) == Some(wanted) {
                return true;
            }
            match &*resolved.tag {
                "DW_TAG_array_type" => {
                    let Some(element) = resolved.base else { continue };
                    let stride = self.type_bits(element).map(|bits| bits / 8).filter(|&bytes| bytes > 0);
                    open.extend(stride.map(|stride| (element, offset % stride)));
                }
                "DW_TAG_structure_type" | "DW_TAG_class_type" | "DW_TAG_union_type" => {
                    for id in self.elements(resolved) {
                        let Some(Node::Type(member)) = self.get(id) else { continue };
                        let (Some(base), Some(bits)) = (member.base, member.bits) else { continue };
                        let at = member.offset_bits / 8;
                        let inside = offset >= at && offset - at < bits.div_ceil(8);
                        if inside && !member.is_static && !member.bit_field {
                            open.push((base, offset - at));
                        }
                    }
                }
                _ => {}
            }
        }
        false
    }
}
