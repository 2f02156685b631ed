//! Debug information: where instructions come from in the source program, and what things are called there.
//!
//! Only what these two questions need is kept. All other metadata only annotates and is dropped, except for
//! the few kinds that change what an access does; those are part of the instruction.

mod names;

use palisade_base::{IdVec, define_id};
use std::collections::{BTreeMap, BTreeSet};

define_id! {
    /// A node of metadata, such as `!12`.
    NodeId
}

/// A node of metadata.
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// A list of nodes. What is not a node is `None`.
    Tuple(Box<[Option<NodeId>]>),
    /// `DIFile`
    File {
        /// The name, as the compiler was given it.
        name: Box<str>,
        /// The folder in which the compiler ran.
        directory: Box<str>,
    },
    /// `DILocation`
    Location {
        /// The line; 0 for code that belongs to no line.
        line: u32,
        /// The column; 0 if it is not known.
        column: u32,
        /// The function or block.
        scope: Option<NodeId>,
        /// The location of the call that was replaced by this code.
        inlined_at: Option<NodeId>,
    },
    /// A function, block, namespace, module or compile unit.
    Scope {
        /// Whether it is a function.
        function: bool,
        /// Its name, if it has one.
        name: Option<Box<str>>,
        /// What contains it.
        parent: Option<NodeId>,
        /// The file.
        file: Option<NodeId>,
        /// The line.
        line: u32,
    },
    /// A local variable, parameter or global variable.
    Variable {
        /// Its name; empty for what has none.
        name: Box<str>,
        /// Its type.
        ty: Option<NodeId>,
        /// For a parameter its number, from 1.
        parameter: Option<u32>,
        /// What contains it.
        scope: Option<NodeId>,
        /// The file.
        file: Option<NodeId>,
        /// The line.
        line: u32,
    },
    /// `DIGlobalVariableExpression`
    GlobalExpression {
        /// The variable.
        variable: Option<NodeId>,
        /// Which part of it, a `DIExpression`.
        expression: Option<NodeId>,
    },
    /// `DIExpression`: operations and their arguments, as they are written.
    Expression(Box<[Box<str>]>),
    /// A type or a member of one.
    Type(Box<SourceType>),
    /// `DISubrange`
    Range {
        /// The number of elements, if it is known.
        count: Option<u64>,
    },
    /// What is not needed.
    Other,
}

/// A type of the source program, or a member of a struct.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceType {
    /// What it is, such as `DW_TAG_structure_type`.
    pub tag: Box<str>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The type that it is derived from.
    pub base: Option<NodeId>,
    /// The size in bits, if it is known.
    pub bits: Option<u64>,
    /// The offset of a member in bits.
    pub offset_bits: u64,
    /// Whether it is a bit-field.
    pub bit_field: bool,
    /// The list of members, dimensions or variants.
    pub elements: Option<NodeId>,
    /// Whether it is a static member, which is not part of the object.
    pub is_static: bool,
}

/// A place in the source program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SourcePosition<'a> {
    /// The name of the file, as the compiler was given it.
    pub file: &'a str,
    /// The folder in which the compiler ran.
    pub directory: &'a str,
    /// The line, from 1; 0 for code that belongs to no line.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// The function.
    pub function: Option<&'a str>,
}

/// A variable of the source program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceVariable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: Option<NodeId>,
    /// For a parameter its number, from 1.
    pub parameter: Option<u32>,
    /// The line of its declaration.
    pub line: u32,
    /// Whether it belongs to a block inside a function, and not to the function itself.
    pub in_block: bool,
}

/// The debug information of a module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DebugInfo {
    pub(crate) nodes: IdVec<NodeId, Node>,
}

impl DebugInfo {
    /// A node.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no metadata.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The place of an instruction, then the places of the calls that were replaced by the code around it,
    /// innermost first. Without inlining there is one place.
    pub fn positions(&self, location: NodeId) -> Vec<SourcePosition<'_>> {
        let mut positions = Vec::new();
        let mut next = Some(location);
        while let Some(Node::Location { line, column, scope, inlined_at }) = next.and_then(|id| self.get(id))
        {
            // A chain that comes back to itself would never end.
            if positions.len() > self.nodes.len() {
                break;
            }
            let (file, function) = self.file_and_function(*scope);
            let (file, directory) = file.and_then(|file| self.file(file)).unwrap_or(("", ""));
            positions.push(SourcePosition { file, directory, line: *line, column: *column, function });
            next = *inlined_at;
        }
        positions
    }

    /// The place of an instruction.
    pub fn position(&self, location: NodeId) -> Option<SourcePosition<'_>> {
        let Some(Node::Location { line, column, scope, .. }) = self.get(location) else { return None };
        let (file, function) = self.file_and_function(*scope);
        let (file, directory) = file.and_then(|file| self.file(file)).unwrap_or(("", ""));
        Some(SourcePosition { file, directory, line: *line, column: *column, function })
    }

    /// The name and the folder of a file.
    pub fn file(&self, id: NodeId) -> Option<(&str, &str)> {
        match self.get(id) {
            Some(Node::File { name, directory }) => Some((name, directory)),
            _ => None,
        }
    }

    /// The names and the folders of all files, in the order in which they are defined.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.iter().filter_map(|node| match node {
            Node::File { name, directory } => Some((&**name, &**directory)),
            _ => None,
        })
    }

    /// The files that places refer to, each with its folder, and the lines of each.
    pub fn lines(&self) -> BTreeMap<(&str, &str), BTreeSet<u32>> {
        let mut all: BTreeMap<(&str, &str), BTreeSet<u32>> = BTreeMap::new();
        for node in self.nodes.iter() {
            let Node::Location { line, scope, .. } = node else { continue };
            let (file, _) = self.file_and_function(*scope);
            if let Some(file) = file.and_then(|file| self.file(file)).filter(|_| *line > 0) {
                all.entry(file).or_default().insert(*line);
            }
        }
        all
    }

    /// The innermost file and the function around a scope.
    fn file_and_function(&self, scope: Option<NodeId>) -> (Option<NodeId>, Option<&str>) {
        let mut innermost = None;
        let mut next = scope;
        for _ in 0..=self.nodes.len() {
            match next.and_then(|id| self.get(id)) {
                Some(Node::Scope { function, name, parent, file, .. }) => {
                    innermost = innermost.or(*file);
                    if *function {
                        return (innermost, name.as_deref());
                    }
                    next = *parent;
                }
                Some(Node::File { .. }) => return (innermost.or(next), None),
                _ => break,
            }
        }
        (innermost, None)
    }

    /// The name of a function of the source program.
    pub fn function_name(&self, subprogram: NodeId) -> Option<&str> {
        match self.get(subprogram) {
            Some(Node::Scope { function: true, name, .. }) => name.as_deref(),
            _ => None,
        }
    }

    /// A variable, from the node of the variable or that of a global variable with its expression.
    pub fn variable(&self, id: NodeId) -> Option<SourceVariable<'_>> {
        let id = match self.get(id)? {
            Node::GlobalExpression { variable, .. } => (*variable)?,
            _ => id,
        };
        match self.get(id)? {
            Node::Variable { name, ty, parameter, line, scope, .. } => {
                let scope = scope.and_then(|scope| self.get(scope));
                let in_block = matches!(scope, Some(Node::Scope { function: false, .. }));
                Some(SourceVariable { name, ty: *ty, parameter: *parameter, line: *line, in_block })
            }
            _ => None,
        }
    }
}
