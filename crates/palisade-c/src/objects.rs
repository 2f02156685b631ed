//! What lies where in the memory of a translated program, and what is wrong with an address.

/// The objects of a program, by address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Objects {
    /// In increasing order of addresses.
    objects: Vec<Object>,
}

/// A global or local variable, a heap object, or a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// The address of its first byte.
    pub address: i64,
    /// Its size in bytes.
    pub size: i64,
    /// Its cells: offset in bytes, and the binary logarithm of the size in bytes.
    pub cells: Vec<(i64, u32)>,
    /// The variables in it, in increasing order of offsets.
    pub parts: Vec<Part>,
}

/// A variable in an object: all of it, a member or an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// Its offset in bytes.
    pub offset: i64,
    /// Its size in bytes.
    pub size: i64,
    /// Whether it is an unsigned number.
    pub unsigned: bool,
}

impl Object {
    /// The variables that an access touches.
    pub fn touched(&self, offset: i64, size: i64) -> Vec<&Part> {
        let touches = |part: &&Part| part.offset < offset + size && offset < part.offset + part.size;
        self.parts.iter().filter(touches).collect()
    }
}

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObjectKind {
    /// A global variable.
    Global,
    /// A local variable of a function.
    Local,
    /// A local variable of a block inside a function.
    BlockLocal,
    /// A variable of one thread.
    ThreadLocal,
    /// A heap object.
    Heap,
    /// A function.
    Function,
}

impl ObjectKind {
    /// Whether it is a variable of one thread.
    pub fn is_local(self) -> bool {
        matches!(self, ObjectKind::Local | ObjectKind::BlockLocal | ObjectKind::ThreadLocal)
    }
}

/// What is wrong with an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem<'a> {
    /// The pointer is null, or so close to it that it was computed from null.
    Null {
        /// The address.
        address: i64,
    },
    /// The access is outside every object.
    OutOfBounds {
        /// The object nearest to it, if there is one.
        object: Option<&'a Object>,
        /// The offset from its start, or the address.
        offset: i64,
        /// The number of bytes.
        size: i64,
    },
    /// The access covers part of a variable, or several variables. It is a limit of the translation: the program
    /// may be correct.
    MixedSize {
        /// The object.
        object: &'a Object,
        /// The offset from its start.
        offset: i64,
        /// The number of bytes.
        size: i64,
    },
    /// The address is that of a function.
    Function {
        /// The function.
        object: &'a Object,
    },
}

/// How far addresses computed from a null pointer reach.
pub(crate) const NULL_REGION: i64 = 4096;

/// The address of the first object. Addresses just below it are not taken for those computed from a null pointer.
pub(crate) const FIRST_ADDRESS: i64 = 2 * NULL_REGION;

impl Objects {
    /// The objects, in any order.
    pub(crate) fn new(mut objects: Vec<Object>) -> Objects {
        objects.sort_by_key(|object| object.address);
        Objects { objects }
    }

    /// The objects, in increasing order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter()
    }

    /// The object that contains an address.
    pub fn at(&self, address: i64) -> Option<&Object> {
        self.below(address).filter(|object| address - object.address < object.size)
    }

    /// The last object that starts at an address or before it.
    fn below(&self, address: i64) -> Option<&Object> {
        let after = self.objects.partition_point(|object| object.address <= address);
        after.checked_sub(1).map(|index| &self.objects[index])
    }

    /// The object that contains an address or is nearest to it.
    fn nearest(&self, address: i64) -> Option<&Object> {
        let below = self.below(address);
        let above = self.objects.get(self.objects.partition_point(|object| object.address <= address));
        let past = below.map_or(i64::MAX, |below| address.saturating_sub(below.address + below.size - 1));
        let is_above = above.is_some_and(|above| above.address.saturating_sub(address) < past);
        if is_above { above } else { below }
    }

    /// The address and the number of bytes of the access with a key, the value of a bad pointer.
    pub fn decode(key: i64) -> (i64, i64) {
        (key >> 3, 1 << (key & 7))
    }

    /// What is wrong with the access with a key for which there is no cell.
    pub fn explain(&self, key: i64) -> Problem<'_> {
        let (address, size) = Objects::decode(key);
        if (0..NULL_REGION).contains(&address) {
            return Problem::Null { address };
        }
        let Some(object) = self.nearest(address) else {
            return Problem::OutOfBounds { object: None, offset: address, size };
        };
        let offset = address - object.address;
        if offset < 0 {
            return Problem::OutOfBounds { object: Some(object), offset, size };
        }
        if object.kind == ObjectKind::Function && offset < object.size {
            return Problem::Function { object };
        }
        if offset < object.size && size <= object.size - offset {
            return Problem::MixedSize { object, offset, size };
        }
        Problem::OutOfBounds { object: Some(object), offset, size }
    }
}
