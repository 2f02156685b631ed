//! The types of a module. Equal types have the same id, so that ids can be compared instead of types.
//!
//! Pointers are opaque (`ptr`) since LLVM 15, and have a pointee before that. Both are kept as they were
//! written.

use crate::limits::{MAX_INTEGER_BITS, MAX_NESTING};
use palisade_base::{IdVec, define_id};
use rustc_hash::FxHashMap;
use std::fmt;

define_id! {
    /// A type of a module.
    TypeId
}
define_id! {
    /// A struct that has a name, such as `%struct.node`.
    NamedTypeId
}

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// No value.
    Void,
    /// A basic block, as an operand.
    Label,
    /// A value that only exception handling and coroutines use.
    Token,
    /// Metadata, as an operand of a call.
    Metadata,
    /// An integer of this many bits, without a sign.
    Integer(u32),
    /// A floating-point number.
    Float(FloatKind),
    /// An address.
    Pointer {
        /// What it points to, where the text still says so.
        pointee: Option<TypeId>,
        /// The address space: 0 is ordinary memory. On x86, 256 to 258 are relative to a segment register.
        address_space: u32,
    },
    /// Several elements one after another.
    Array {
        /// The type of each element.
        element: TypeId,
        /// The number of elements.
        length: u64,
    },
    /// A SIMD vector.
    Vector {
        /// The type of each element.
        element: TypeId,
        /// The number of elements.
        length: u64,
        /// Whether the length is a multiple that only the machine knows.
        scalable: bool,
    },
    /// A struct without a name.
    Struct {
        /// The types of the fields.
        fields: Box<[TypeId]>,
        /// Whether there is no padding.
        packed: bool,
    },
    /// A struct with a name; its body is in the table of types.
    Named(NamedTypeId),
    /// A function.
    Function {
        /// What it returns.
        result: TypeId,
        /// What it takes.
        parameters: Box<[TypeId]>,
        /// Whether more arguments may follow.
        variadic: bool,
    },
}

/// The formats of floating-point numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatKind {
    /// 16 bits.
    Half,
    /// 16 bits with the exponent of `float`.
    Bfloat,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// 80 bits.
    X86Fp80,
    /// 128 bits.
    Fp128,
    /// A pair of doubles.
    PpcFp128,
}

impl FloatKind {
    /// All formats.
    pub const ALL: [FloatKind; 7] = [
        FloatKind::Half,
        FloatKind::Bfloat,
        FloatKind::Float,
        FloatKind::Double,
        FloatKind::X86Fp80,
        FloatKind::Fp128,
        FloatKind::PpcFp128,
    ];

    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            FloatKind::Half => "half",
            FloatKind::Bfloat => "bfloat",
            FloatKind::Float => "float",
            FloatKind::Double => "double",
            FloatKind::X86Fp80 => "x86_fp80",
            FloatKind::Fp128 => "fp128",
            FloatKind::PpcFp128 => "ppc_fp128",
        }
    }

    /// The number of bits.
    pub fn bits(self) -> u32 {
        match self {
            FloatKind::Half | FloatKind::Bfloat => 16,
            FloatKind::Float => 32,
            FloatKind::Double => 64,
            FloatKind::X86Fp80 => 80,
            FloatKind::Fp128 | FloatKind::PpcFp128 => 128,
        }
    }
}

/// What a named struct stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedType {
    /// Its name, without the `%`.
    pub name: Box<str>,
    /// The [`Type::Struct`] it stands for; `None` for an opaque struct, of which nothing is known.
    pub body: Option<TypeId>,
}

/// A type that cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadType {
    /// More than [`MAX_NESTING`] levels.
    TooDeep,
    /// An integer without bits or with too many.
    Width,
}

/// The types of a module.
#[derive(Clone, Debug)]
pub struct Types {
    ids: FxHashMap<Type, TypeId>,
    types: IdVec<TypeId, Type>,
    /// How deeply each type is nested.
    depths: IdVec<TypeId, u32>,
    pub(crate) named: IdVec<NamedTypeId, NamedType>,
}

impl Types {
    /// `void`.
    pub const VOID: TypeId = TypeId(0);
    /// `label`.
    pub const LABEL: TypeId = TypeId(1);
    /// `metadata`.
    pub const METADATA: TypeId = TypeId(2);
    /// `token`.
    pub const TOKEN: TypeId = TypeId(3);
    /// `i1`.
    pub const I1: TypeId = TypeId(4);
    /// `ptr`.
    pub const PTR: TypeId = TypeId(5);
    /// `i8`.
    pub const I8: TypeId = TypeId(6);

    pub(crate) fn new() -> Types {
        let mut types = Types {
            ids: FxHashMap::default(),
            types: IdVec::new(),
            depths: IdVec::new(),
            named: IdVec::new(),
        };
        let fixed = [
            (Type::Void, Types::VOID),
            (Type::Label, Types::LABEL),
            (Type::Metadata, Types::METADATA),
            (Type::Token, Types::TOKEN),
            (Type::Integer(1), Types::I1),
            (Type::Pointer { pointee: None, address_space: 0 }, Types::PTR),
            (Type::Integer(8), Types::I8),
        ];
        for (ty, id) in fixed {
            assert_eq!(types.id(ty), Ok(id), "the fixed types come first");
        }
        types
    }

    /// The id of a type. A new type gets the next id.
    pub(crate) fn id(&mut self, ty: Type) -> Result<TypeId, BadType> {
        if let Some(&id) = self.ids.get(&ty) {
            return Ok(id);
        }
        if matches!(ty, Type::Integer(bits) if bits == 0 || bits > MAX_INTEGER_BITS) {
            return Err(BadType::Width);
        }
        let mut depth = 0;
        for_each_part(&ty, |part| depth = depth.max(self.depths[part] + 1));
        if depth > MAX_NESTING {
            return Err(BadType::TooDeep);
        }
        let id = self.types.push(ty.clone());
        self.depths.push(depth);
        self.ids.insert(ty, id);
        Ok(id)
    }

    /// The type with an id.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    /// The number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are no types. There always are some.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        self.types.ids()
    }

    /// All named structs.
    pub fn named(&self) -> &IdVec<NamedTypeId, NamedType> {
        &self.named
    }

    /// The named struct with this name (without the `%`).
    pub fn find_named(&self, name: &str) -> Option<TypeId> {
        let (id, _) = self.named.iter_enumerated().find(|(_, named)| &*named.name == name)?;
        self.ids.get(&Type::Named(id)).copied()
    }

    /// The type itself, or the body of a named struct. An opaque struct stays as it is.
    pub fn body(&self, id: TypeId) -> &Type {
        match self.get(id) {
            Type::Named(named) => self.named[*named].body.map_or(self.get(id), |body| self.get(body)),
            ty => ty,
        }
    }

    /// The fields of a struct, named or not.
    pub fn fields(&self, id: TypeId) -> Option<&[TypeId]> {
        match self.body(id) {
            Type::Struct { fields, .. } => Some(fields),
            _ => None,
        }
    }

    /// The type of element `index` of a struct, array or vector.
    pub fn element(&self, id: TypeId, index: u64) -> Option<TypeId> {
        match self.body(id) {
            Type::Struct { fields, .. } => fields.get(usize::try_from(index).ok()?).copied(),
            Type::Array { element, length } if index < *length => Some(*element),
            Type::Vector { element, length, scalable } if *scalable || index < *length => Some(*element),
            _ => None,
        }
    }

    /// The number of bits of an integer type.
    pub fn integer_bits(&self, id: TypeId) -> Option<u32> {
        match self.get(id) {
            Type::Integer(bits) => Some(*bits),
            _ => None,
        }
    }

    /// Whether this is a pointer.
    pub fn is_pointer(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Pointer { .. })
    }

    /// Whether values of this type exist in registers or memory.
    pub fn is_first_class(&self, id: TypeId) -> bool {
        !matches!(self.get(id), Type::Void | Type::Function { .. } | Type::Label | Type::Metadata)
    }

    /// The type of each element of a vector; other types as they are.
    pub fn scalar(&self, id: TypeId) -> TypeId {
        match self.get(id) {
            Type::Vector { element, .. } => *element,
            _ => id,
        }
    }

    /// The type as it is written.
    pub fn display(&self, id: TypeId) -> DisplayType<'_> {
        DisplayType { types: self, id }
    }
}

/// The types a type is made of.
fn for_each_part(ty: &Type, mut visit: impl FnMut(TypeId)) {
    match ty {
        Type::Pointer { pointee, .. } => pointee.iter().copied().for_each(visit),
        Type::Array { element, .. } | Type::Vector { element, .. } => visit(*element),
        Type::Struct { fields, .. } => fields.iter().copied().for_each(visit),
        Type::Function { result, parameters, .. } => {
            visit(*result);
            parameters.iter().copied().for_each(visit);
        }
        _ => {}
    }
}

/// A type in the form of the text.
pub struct DisplayType<'a> {
    types: &'a Types,
    id: TypeId,
}

impl fmt::Display for DisplayType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |id: TypeId| self.types.display(id);
        let list = |f: &mut fmt::Formatter<'_>, ids: &[TypeId]| -> fmt::Result {
            for (index, &id) in ids.iter().enumerate() {
                write!(f, "{}{}", if index == 0 { "" } else { ", " }, show(id))?;
            }
            Ok(())
        };
        match self.types.get(self.id) {
            Type::Void => f.write_str("void"),
            Type::Label => f.write_str("label"),
            Type::Token => f.write_str("token"),
            Type::Metadata => f.write_str("metadata"),
            Type::Integer(bits) => write!(f, "i{bits}"),
            Type::Float(kind) => f.write_str(kind.name()),
            Type::Pointer { pointee, address_space } => {
                match pointee {
                    Some(pointee) => write!(f, "{}", show(*pointee))?,
                    None => f.write_str("ptr")?,
                }
                if *address_space != 0 {
                    write!(f, " addrspace({address_space})")?;
                }
                f.write_str(if pointee.is_some() { "*" } else { "" })
            }
            Type::Array { element, length } => write!(f, "[{length} x {}]", show(*element)),
            Type::Vector { element, length, scalable } => {
                let vscale = if *scalable { "vscale x " } else { "" };
                write!(f, "<{vscale}{length} x {}>", show(*element))
            }
            Type::Struct { fields, packed } => {
                let (open, close) = if *packed { ("<{", "}>") } else { ("{", "}") };
                if fields.is_empty() {
                    return write!(f, "{open}{close}");
                }
                write!(f, "{open} ")?;
                list(f, fields)?;
                write!(f, " {close}")
            }
            Type::Named(named) => write!(f, "%{}", self.types.named[*named].name),
            Type::Function { result, parameters, variadic } => {
                write!(f, "{} (", show(*result))?;
                list(f, parameters)?;
                if *variadic {
                    f.write_str(if parameters.is_empty() { "..." } else { ", ..." })?;
                }
                f.write_str(")")
            }
        }
    }
}
