//! A module: what one file of LLVM IR says.

use crate::calls::{Attributes, Passing};
use crate::debug::{DebugInfo, NodeId};
use crate::instructions::Instruction;
use crate::layout::{DataLayout, Layouts};
use crate::types::{TypeId, Types};
use crate::values::{Constant, ConstantId, Operand, ValueId};
use palisade_base::{IdVec, Span, define_id};
use rustc_hash::FxHashMap;

define_id! {
    /// A name that the linker sees: a variable, function or alias.
    SymbolId
}
define_id! {
    /// A global variable.
    GlobalId
}
define_id! {
    /// A function, declared or defined.
    FunctionId
}
define_id! {
    /// An alias.
    AliasId
}
define_id! {
    /// A basic block of a function, in the order of the text. Block 0 is the entry.
    BlockId
}

/// What one file says.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name of the file that was compiled.
    pub source_name: Option<Box<str>>,
    /// The machine that the text is for, such as `x86_64-pc-linux-gnu`.
    pub triple: Option<Box<str>>,
    /// Sizes and alignments of that machine.
    pub data_layout: DataLayout,
    /// All types.
    pub types: Types,
    /// The sizes of all types.
    pub layouts: Layouts,
    /// All constants.
    pub constants: IdVec<ConstantId, Constant>,
    /// All names.
    pub symbols: IdVec<SymbolId, Symbol>,
    /// Global variables.
    pub globals: IdVec<GlobalId, Global>,
    /// Functions.
    pub functions: IdVec<FunctionId, Function>,
    /// Aliases.
    pub aliases: IdVec<AliasId, Alias>,
    /// Assembly outside functions, one item per line of `module asm`.
    pub assembly: Vec<ModuleAssembly>,
    /// The attributes of the groups `#0`, `#1`, and so on, each with its value if it has one.
    pub attribute_groups: FxHashMap<u32, Vec<Attribute>>,
    /// Where things are in the source program, and what they are called there.
    pub debug: DebugInfo,
}

/// An attribute of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Box<str>,
    /// Its value, as it is written.
    pub value: Option<Box<str>>,
}

/// A line of assembly outside functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleAssembly {
    /// The line.
    pub text: Box<str>,
    /// Where it is written.
    pub span: Span,
}

/// A name and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// The name without the `@`; a number for what has no name.
    pub name: Box<str>,
    /// What it is.
    pub kind: SymbolKind,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolKind {
    /// A variable.
    Global(GlobalId),
    /// A function.
    Function(FunctionId),
    /// An alias.
    Alias(AliasId),
}

/// How the linker treats a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Linkage {
    /// Visible everywhere.
    #[default]
    External,
    /// Visible in this module only, without a symbol.
    Private,
    /// Visible in this module only.
    Internal,
    /// A copy of a definition elsewhere, for inlining.
    AvailableExternally,
    /// Merged with others of the same name, dropped if unused.
    LinkOnce,
    /// The same, where all definitions agree.
    LinkOnceOdr,
    /// Merged with others of the same name.
    Weak,
    /// The same, where all definitions agree.
    WeakOdr,
    /// A tentative definition of C.
    Common,
    /// Arrays that the linker concatenates.
    Appending,
    /// Null if no other module defines it.
    ExternWeak,
}

/// A global variable.
#[derive(Clone, PartialEq, Debug)]
pub struct Global {
    /// Its name.
    pub symbol: SymbolId,
    /// The type of its contents.
    pub ty: TypeId,
    /// The type of its address.
    pub pointer: TypeId,
    /// What it holds at first; `None` if it is defined elsewhere.
    pub initializer: Option<ConstantId>,
    /// How the linker treats it.
    pub linkage: Linkage,
    /// Whether each thread has its own.
    pub thread_local: bool,
    /// Whether it is never written.
    pub constant: bool,
    /// Whether something outside the program may change it before the program starts.
    pub externally_initialized: bool,
    /// The alignment in bytes; `None` is that of the type.
    pub align: Option<u64>,
    /// The section it is put into.
    pub section: Option<Box<str>>,
    /// Where it is written.
    pub span: Span,
    /// The variables of the source program that it holds.
    pub variables: Vec<NodeId>,
}

/// Another name for an address.
#[derive(Clone, PartialEq, Debug)]
pub struct Alias {
    /// Its name.
    pub symbol: SymbolId,
    /// The type of what is there.
    pub ty: TypeId,
    /// The address.
    pub target: ConstantId,
    /// How the linker treats it.
    pub linkage: Linkage,
    /// Whether it is an address per thread.
    pub thread_local: bool,
    /// Where it is written.
    pub span: Span,
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name.
    pub symbol: SymbolId,
    /// Its [type](crate::types::Type::Function).
    pub ty: TypeId,
    /// How the linker treats it.
    pub linkage: Linkage,
    /// Its parameters: the first values of the function.
    pub parameters: Vec<Parameter>,
    /// Its attributes.
    pub attributes: Attributes,
    /// What looks after unwinding.
    pub personality: Option<ConstantId>,
    /// Where it is written.
    pub span: Span,
    /// The function of the source program.
    pub subprogram: Option<NodeId>,
    /// What it does; `None` for a declaration.
    pub body: Option<Body>,
}

/// A parameter of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its value; in a declaration it only has a type.
    pub value: Option<ValueId>,
    /// Its type.
    pub ty: TypeId,
    /// How it is passed.
    pub passing: Passing,
}

/// What a function does.
#[derive(Clone, PartialEq, Debug)]
pub struct Body {
    /// Parameters and results.
    pub values: IdVec<ValueId, LocalValue>,
    /// The blocks.
    pub blocks: IdVec<BlockId, Block>,
    /// Where the variables of the source program are, in the order of the text.
    pub records: Vec<VariableRecord>,
}

/// A parameter or a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalValue {
    /// Its name without the `%`; a number for what has no name.
    pub name: Box<str>,
    /// Its type.
    pub ty: TypeId,
}

/// A basic block. Its last instruction is its only terminator.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Its label; a number for a block without a name.
    pub name: Box<str>,
    /// What happens in it.
    pub instructions: Vec<Instruction>,
    /// Where it starts.
    pub span: Span,
}

/// Says where a variable of the source program is from here on: a call of `llvm.dbg.declare` or a record
/// `#dbg_declare`, and the like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VariableRecord {
    /// What kind of statement.
    pub kind: RecordKind,
    /// The variable.
    pub variable: NodeId,
    /// The address or value. `None` if the variable was optimised out or depends on several values.
    pub place: Option<Operand>,
    /// What to do with the address or value, a `DIExpression`.
    pub expression: Option<NodeId>,
    /// The block.
    pub block: BlockId,
    /// The index of the instruction in the block that follows.
    pub before: u32,
    /// The place in the source program.
    pub location: Option<NodeId>,
}

/// What a [`VariableRecord`] states.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RecordKind {
    /// The variable is at this address from here on.
    Declare,
    /// The variable has this value.
    Value,
    /// The variable got this value from a store, or has it at an address.
    Assign,
}

impl Module {
    /// The symbol with this name (without the `@`).
    pub fn find(&self, name: &str) -> Option<SymbolKind> {
        self.symbols.iter().find(|symbol| &*symbol.name == name).map(|symbol| symbol.kind)
    }

    /// The function with this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        match self.find(name)? {
            SymbolKind::Function(id) => Some(&self.functions[id]),
            _ => None,
        }
    }

    /// The global variable with this name.
    pub fn global(&self, name: &str) -> Option<&Global> {
        match self.find(name)? {
            SymbolKind::Global(id) => Some(&self.globals[id]),
            _ => None,
        }
    }

    /// Whether a function or call has this attribute, in place or in one of its groups.
    pub fn has_attribute(&self, attributes: &Attributes, name: &str) -> bool {
        attributes.words.iter().any(|word| &**word == name)
            || attributes.groups.iter().any(|group| {
                let group = self.attribute_groups.get(group);
                group.is_some_and(|group| group.iter().any(|attribute| &*attribute.name == name))
            })
    }

    /// The type of an operand of a function.
    pub fn type_of(&self, body: &Body, operand: Operand) -> TypeId {
        match operand {
            Operand::Local(value) => body.values[value].ty,
            Operand::Constant(constant) => self.constants[constant].ty,
        }
    }
}
