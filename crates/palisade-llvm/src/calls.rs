//! Calls, their arguments, and inline assembly.

use crate::debug::NodeId;
use crate::types::TypeId;
use crate::values::Operand;

/// A call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// The [function type](crate::types::Type::Function) with which it is called.
    pub ty: TypeId,
    /// The arguments, including those of `...`.
    pub arguments: Box<[Argument]>,
    /// Attributes of the call, such as `noreturn`.
    pub attributes: Attributes,
    /// Operand bundles: tags with operands, such as the facts of `llvm.assume`.
    pub bundles: Box<[Bundle]>,
}

/// What is called.
#[derive(Clone, PartialEq, Debug)]
pub enum Callee {
    /// A function, or a pointer to one.
    Value(Operand),
    /// Inline assembly.
    Assembly(Box<Assembly>),
}

/// Inline assembly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The template, with `$0`, `${1:w}` and so on for operands.
    pub template: Box<str>,
    /// The constraints of the operands and the clobbers, separated by commas.
    pub constraints: Box<str>,
    /// Whether it does more than compute its outputs.
    pub side_effects: bool,
    /// Whether the template is in Intel's syntax.
    pub intel: bool,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// What is passed.
    pub value: ArgumentValue,
    /// How it is passed.
    pub passing: Passing,
}

/// What is passed.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgumentValue {
    /// A value.
    Operand(Operand),
    /// A node of metadata.
    Node(NodeId),
    /// A string of metadata.
    Text(Box<str>),
}

/// Attributes of a parameter or argument that decide what is passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Passing {
    /// `byval(T)`: the callee gets the address of its own copy.
    pub by_value: Option<TypeId>,
    /// `sret(T)`: the address where a struct is returned.
    pub struct_return: Option<TypeId>,
    /// `elementtype(T)`: what an indirect operand of inline assembly points to.
    pub element: Option<TypeId>,
    /// `align N`
    pub align: Option<u64>,
    /// `nonnull`
    pub non_null: bool,
    /// `noundef`: passing `undef` or `poison` is undefined behaviour.
    pub no_undef: bool,
}

/// An operand bundle.
#[derive(Clone, PartialEq, Debug)]
pub struct Bundle {
    /// Its tag.
    pub tag: Box<str>,
    /// Its operands.
    pub operands: Box<[Operand]>,
}

/// Attributes of a function or call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Those that are written in place.
    pub words: Box<[Box<str>]>,
    /// Groups, such as `#3`.
    pub groups: Box<[u32]>,
}
