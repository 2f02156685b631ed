//! What the addresses of a C program mean, in C terms.

use palisade_base::Span;
use palisade_c::{FREED, Object, ObjectKind, Objects, Problem, ThreadCell, UNINITIALISED, Wait, WaitTable};
use palisade_program::Value;
use palisade_trace::{Addresses, Awaited, BadAccess, Ended};

/// The objects of a C program.
#[derive(Clone, Debug)]
pub(crate) struct CWords {
    pub(super) objects: Objects,
    pub(super) waits: WaitTable,
}

impl CWords {
    /// Whether an access through a bad pointer may be right: the translation cannot follow it.
    pub(super) fn is_limit(&self, pointer: Value) -> bool {
        matches!(self.objects.explain(pointer), Problem::MixedSize { .. })
    }
}

impl CWords {
    /// Whether the variable with this address and size is unsigned.
    fn is_unsigned(&self, address: Value, size: Value) -> bool {
        let Some(object) = self.objects.at(address) else { return false };
        let offset = address - object.address;
        object.parts.iter().any(|part| part.offset == offset && part.size == size && part.unsigned)
    }
}

impl Addresses for CWords {
    fn bad_pointer(&self, pointer: Value, access: BadAccess) -> String {
        match self.objects.explain(pointer) {
            Problem::Null { address: 0 } => "null pointer dereferenced".to_owned(),
            Problem::Null { address } => format!("null pointer dereferenced (at offset {address})"),
            Problem::OutOfBounds { object: None, .. } => {
                "invalid pointer dereferenced: it points to no object".to_owned()
            }
            Problem::OutOfBounds { object: Some(object), offset, size } => {
                out_of_bounds(object, offset, size)
            }
            Problem::MixedSize { object, offset, size } => mixed_size(object, offset, size, access),
            Problem::Function { object } => {
                format!("the code of function `{}` accessed as data", object.name)
            }
        }
    }

    fn value(&self, cell: Value, value: Value) -> Option<String> {
        if value == FREED || value == UNINITIALISED {
            return Some(if value == FREED { "freed" } else { "uninitialised" }.to_owned());
        }
        let (address, size) = Objects::decode(cell);
        if value < 0 && self.is_unsigned(address, size) {
            let mask = if size == POINTER { u64::MAX } else { (1 << (8 * size)) - 1 };
            return Some((value as u64 & mask).to_string());
        }
        // Only cells of the size of a pointer hold pointers.
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

    fn ended(&self, cell: Value) -> Option<Ended> {
        let (address, _) = Objects::decode(cell);
        match self.objects.at(address)?.kind {
            ObjectKind::Local => Some(Ended::Function),
            ObjectKind::BlockLocal => Some(Ended::Block),
            ObjectKind::ThreadLocal => Some(Ended::Thread),
            ObjectKind::Global | ObjectKind::Heap | ObjectKind::Function => None,
        }
    }

    fn is_uninitialised(&self, value: Value) -> bool {
        value == UNINITIALISED
    }

    fn awaited(&self, place: Span, cell: Value, name: &str, value: Value) -> Option<Awaited> {
        match self.waits.cell(cell) {
            Some(ThreadCell::Started) => return Some(Awaited::Start),
            Some(ThreadCell::Ended(threads)) => return Some(Awaited::Ends(threads.clone())),
            Some(ThreadCell::Detached) | None => {}
        }
        Some(Awaited::Other(match self.waits.call(place)? {
            Wait::Mutex => match self.waits.holder(value) {
                Some(holder) => format!("for mutex {name}, which {holder} holds"),
                None => format!("for mutex {name}"),
            },
            Wait::ReadWriteLock if value < 0 => format!("for lock {name}, which a writer holds"),
            Wait::ReadWriteLock => format!("for lock {name}, which readers hold"),
            Wait::Condition => format!("for a signal of {name}"),
            Wait::Semaphore => format!("for semaphore {name}, which is {value}"),
            Wait::Barrier => format!("for other threads at barrier {name}"),
            Wait::Unpark => "to be unparked".to_owned(),
        }))
    }

    fn is_made(&self, cell: Value) -> bool {
        self.waits.is_made(cell)
    }
}

/// An access that covers part of a variable, or several of them.
fn mixed_size(object: &Object, offset: Value, size: Value, access: BadAccess) -> String {
    let done = match access {
        BadAccess::Read => "read",
        BadAccess::Write => "written",
        BadAccess::Exchange => "exchanged",
    };
    match object.touched(offset, size).as_slice() {
        [] => format!("{} of `{}` that no variable uses {} {done}", bytes(size), object.name, are(size)),
        [part] if part.offset <= offset && offset + size <= part.offset + part.size => {
            format!("{} of the {}-byte `{}` {} {done}", bytes(size), part.size, part.name, are(size))
        }
        [part] => format!("`{}` and bytes around it are {done} at once", part.name),
        [first, second] => format!("`{}` and `{}` are {done} at once", first.name, second.name),
        parts => {
            let (first, last) = (&parts[0].name, &parts[parts.len() - 1].name);
            format!("{} variables, `{first}` to `{last}`, are {done} at once", parts.len())
        }
    }
}

fn are(number: Value) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// The size of a pointer in bytes.
const POINTER: Value = 8;
/// Objects further away than this are not what the program meant.
const NEAR: Value = 1 << 16;

fn out_of_bounds(object: &Object, offset: Value, size: Value) -> String {
    let whole = format!("`{}` ({})", object.name, bytes(object.size));
    let past = offset - object.size;
    if (-NEAR..0).contains(&offset) && object.kind != ObjectKind::Function {
        return format!("access out of bounds, {} before the start of {whole}", bytes(-offset));
    }
    if past < 0 && offset >= 0 {
        return format!("access out of bounds, to bytes {offset} to {} of {whole}", offset + size - 1);
    }
    if past.abs() > NEAR || object.kind == ObjectKind::Function {
        return "invalid pointer dereferenced: it points to no object".to_owned();
    }
    let place = if past == 0 { "just".to_owned() } else { bytes(past) };
    format!("access out of bounds, {place} past the end of {whole}")
}

fn bytes(number: Value) -> String {
    if number == 1 { "1 byte".to_owned() } else { format!("{number} bytes") }
}
