//! The fields of a witness file.

use palisade_program::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form written here.
pub const SCHEMA_VERSION: u32 = 1;

/// A witness as it is kept in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WitnessFile {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which program.
    pub program: ProgramRecord,
    /// `sc`, `tso` or `pso`.
    pub model: String,
    /// What locked instructions wait for under PSO: `whole-buffer` or `own-address`.
    pub interlocked: String,
    /// How often the templates are instantiated.
    pub instantiation: Instances,
    /// The range that integers without a declared domain were limited to, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int_range: Option<[Value; 2]>,
    /// What the cells hold at the start, by name.
    pub memory: BTreeMap<String, Value>,
    /// The steps in order.
    pub steps: Vec<StepRecord>,
    /// What is bad at the end.
    pub violation: ViolationRecord,
}

/// Which program a witness belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Its file, as it was named then.
    pub file: String,
    /// Its language.
    pub language: String,
    /// [`text_hash`](crate::text_hash) of its text.
    pub hash: String,
}

/// How often the templates are instantiated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instances {
    /// Instances of a template declared with any number.
    pub any: u32,
    /// Overrides every template's count.
    #[serde(default)]
    pub every: Option<u32>,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// From 1.
    pub number: usize,
    /// Whose, by name.
    pub process: String,
    /// Whose, by index.
    pub thread: u32,
    /// What is done.
    #[serde(flatten)]
    pub action: ActionRecord,
    /// Line of what is executed, or of the store that reaches memory.
    #[serde(default)]
    pub line: Option<u32>,
    /// Its column.
    #[serde(default)]
    pub column: Option<u32>,
    /// Its text.
    #[serde(default)]
    pub text: String,
    /// What it did.
    pub effect: EffectRecord,
    /// The numbers of the store steps of the same process that it overtook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtakes: Vec<usize>,
}

/// What is done in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum ActionRecord {
    /// The process takes an edge.
    Execute {
        /// Index of the edge in the code that runs.
        edge: u32,
        /// The value chosen for `any`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Value>,
    },
    /// A pending store reaches memory.
    Update {
        /// Its position in the buffer, oldest first.
        position: usize,
    },
}

/// Where a value is read from or stored to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// The own store buffer.
    Buffer,
    /// Memory.
    Memory,
}

/// What a step did to memory and buffers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EffectRecord {
    /// Nothing that concerns memory.
    Local,
    /// A load.
    Read {
        /// Of this cell.
        cell: String,
        /// The value seen.
        value: Value,
        /// Where it was.
        from: Medium,
    },
    /// A store.
    Store {
        /// To this cell.
        cell: String,
        /// The value stored.
        value: Value,
        /// Where it went.
        to: Medium,
    },
    /// A pending store reached memory.
    Update {
        /// This cell.
        cell: String,
        /// With this value.
        value: Value,
    },
    /// A locked instruction.
    Locked {
        /// On this cell.
        cell: String,
        /// The value before.
        read: Value,
        /// The value written, unless it was a failed cas.
        wrote: Option<Value>,
    },
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// A process was started.
    Spawn {
        /// Its index.
        thread: u32,
        /// Its name.
        process: String,
    },
    /// The step ran into an error of the program.
    Fault {
        /// Which.
        message: String,
    },
}

impl std::fmt::Display for EffectRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EffectRecord::Local => write!(f, "no access to memory"),
            EffectRecord::Read { cell, value, from: Medium::Memory } => write!(f, "{cell} read as {value}"),
            EffectRecord::Read { cell, value, from: Medium::Buffer } => {
                write!(f, "{cell} read as {value} from the own buffer")
            }
            EffectRecord::Store { cell, value, to: Medium::Memory } => {
                write!(f, "{value} stored to {cell} in memory")
            }
            EffectRecord::Store { cell, value, to: Medium::Buffer } => write!(f, "{value} stored to {cell}"),
            EffectRecord::Update { cell, value } => write!(f, "{cell} becomes {value} in memory"),
            EffectRecord::Locked { cell, read, wrote: Some(wrote) } => {
                write!(f, "{cell} read as {read} and set to {wrote}")
            }
            EffectRecord::Locked { cell, read, wrote: None } => {
                write!(f, "{cell} read as {read} and left so")
            }
            EffectRecord::Fence => write!(f, "a fence"),
            EffectRecord::StoreFence => write!(f, "a store-store fence"),
            EffectRecord::Spawn { process, .. } => write!(f, "{process} started"),
            EffectRecord::Fault { message } => write!(f, "{message}"),
        }
    }
}

/// What is bad at the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// What kind of thing.
    pub kind: ViolationKind,
    /// In words.
    pub message: String,
    /// Index of the property, unless it is an error of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<usize>,
    /// Line of the property or of the instruction that went wrong.
    #[serde(default)]
    pub line: Option<u32>,
}

/// Kinds of violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// An error of the program, such as a failed assertion.
    Fault,
    /// A forbidden state.
    Forbid,
    /// A final condition that does not hold.
    Final,
    /// Happens-before has a cycle: the program is not robust. Nothing else needs to be wrong.
    Cycle,
}
