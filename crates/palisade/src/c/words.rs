//! What the addresses of a C program mean, in the words of C.

use palisade_c::{FREED, Object, ObjectKind, Objects, Problem, UNINITIALISED};
use palisade_program::Value;
use palisade_trace::Addresses;

/// The objects of a C program.
#[derive(Clone, Debug)]
pub(crate) struct CWords {
    pub(super) objects: Objects,
}

impl CWords {
    /// Whether an access through a bad pointer may be right: the translation cannot follow it.
    pub(super) fn is_limit(&self, pointer: Value) -> bool {
        matches!(self.objects.explain(pointer), Problem::MixedSize { .. })
    }
}

impl Addresses for CWords {
    fn bad_pointer(&self, pointer: Value) -> String {
        match self.objects.explain(pointer) {
            Problem::Null { address: 0 } => "null pointer dereferenced".to_owned(),
            Problem::Null { address } => format!("null pointer dereferenced (at offset {address})"),
            Problem::OutOfBounds { object: None, .. } => {
                "invalid pointer dereferenced: it points to no object".to_owned()
            }
            Problem::OutOfBounds { object: Some(object), offset, size } => {
                out_of_bounds(object, offset, size)
            }
            Problem::MixedSize { object, offset, size } => format!(
                "an access of {} at byte {offset} of `{}` that covers part of a variable, or several variables",
                bytes(size),
                object.name
            ),
            Problem::Function { object } => {
                format!("the code of function `{}` accessed as data", object.name)
            }
        }
    }

    fn value(&self, cell: Value, value: Value) -> Option<String> {
        if value == FREED || value == UNINITIALISED {
            return Some(if value == FREED { "freed" } else { "uninitialised" }.to_owned());
        }
        // Only cells of the size of a pointer hold pointers.
        let (_, size) = Objects::decode(cell);
        let object = self.objects.at(value).filter(|_| size == POINTER)?;
        match value - object.address {
            0 => Some(format!("&{}", object.name)),
            offset => Some(format!("&{}+{offset}", object.name)),
        }
    }

    fn is_allocated(&self, cell: Value) -> bool {
        let (address, _) = Objects::decode(cell);
        self.objects.at(address).is_some_and(|object| object.kind == ObjectKind::Heap)
    }

    fn is_freed(&self, value: Value) -> bool {
        value == FREED
    }

    fn is_uninitialised(&self, value: Value) -> bool {
        value == UNINITIALISED
    }
}

/// The size of a pointer in bytes.
const POINTER: Value = 8;
/// Objects further away than this are not what the program meant.
const NEAR: Value = 1 << 16;

fn out_of_bounds(object: &Object, offset: Value, size: Value) -> String {
    let whole = format!("`{}` ({})", object.name, bytes(object.size));
    let past = offset - object.size;
    if past < 0 {
        return format!("access out of bounds, to bytes {offset} to {} of {whole}", offset + size - 1);
    }
    if past > NEAR || object.kind == ObjectKind::Function {
        return "invalid pointer dereferenced: it points to no object".to_owned();
    }
    let place = if past == 0 { "just".to_owned() } else { bytes(past) };
    format!("access out of bounds, {place} past the end of {whole}")
}

fn bytes(number: Value) -> String {
    if number == 1 { "1 byte".to_owned() } else { format!("{number} bytes") }
}
