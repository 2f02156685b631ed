//! The fields of a witness file.

use crate::BuildRecord;
use palisade_program::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format written here.
pub const SCHEMA_VERSION: u32 = 1;

/// A witness as it is stored in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WitnessFile {
    /// The [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The program.
    pub program: ProgramRecord,
    /// `sc`, `tso` or `pso`.
    pub model: String,
    /// What locked instructions wait for under PSO: `whole-buffer` or `own-address`.
    pub interlocked: String,
    /// How many instances each template has.
    pub instantiation: Instances,
    /// The range of integers without a declared domain, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int_range: Option<[Value; 2]>,
    /// The constants that had other values than in the text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, Value>,
    /// The initial value of each cell, by name.
    pub memory: BTreeMap<String, Value>,
    /// The steps in order.
    pub steps: Vec<StepRecord>,
    /// Why the last state is bad.
    pub violation: ViolationRecord,
}

/// The program that a witness belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// The name of its file at the time.
    pub file: String,
    /// Its language.
    pub language: String,
    /// [`text_hash`](crate::text_hash) of its text.
    pub hash: String,
    /// How it was made from its text, if a compiler took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildRecord>,
}

/// How many instances each template has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instances {
    /// The number of instances of a template declared with `[*]`.
    pub any: u32,
    /// Overrides the count of every template.
    #[serde(default)]
    pub every: Option<u32>,
    /// Whether templates declared with several instances count as declared with `[*]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub several: bool,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// The number of the step, from 1.
    pub number: usize,
    /// The name of its process.
    pub process: String,
    /// The index of its thread.
    pub thread: u32,
    /// What the step does.
    #[serde(flatten)]
    pub action: ActionRecord,
    /// The file of the statement, if it is not the program's main file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the executed statement, or of the store that reaches memory.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column.
    #[serde(default)]
    pub column: Option<u32>,
    /// The source text.
    #[serde(default)]
    pub text: String,
    /// What the step did to memory and buffers.
    pub effect: EffectRecord,
    /// The numbers of the store steps of the same process that it overtook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtakes: Vec<usize>,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum ActionRecord {
    /// The process takes an edge.
    Execute {
        /// The index of the edge in the running code.
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
    /// The thread's own store buffer.
    Buffer,
    /// Memory.
    Memory,
}

/// What a step did to memory and buffers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EffectRecord {
    /// No access to memory.
    Local,
    /// A load.
    Read {
        /// The cell.
        cell: String,
        /// The value seen.
        value: Value,
        /// Where the value came from.
        from: Medium,
    },
    /// A store.
    Store {
        /// The cell.
        cell: String,
        /// The value stored.
        value: Value,
        /// Where the value went.
        to: Medium,
    },
    /// A pending store reached memory.
    Update {
        /// The cell.
        cell: String,
        /// The value.
        value: Value,
    },
    /// A locked instruction.
    Locked {
        /// The cell.
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
        /// The index of its thread.
        thread: u32,
        /// Its name.
        process: String,
    },
    /// The step caused a run-time error.
    Fault {
        /// The error.
        message: String,
    },
}

impl std::fmt::Display for EffectRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EffectRecord::Local => write!(f, "no access to memory"),
            EffectRecord::Read { cell, value, from: Medium::Memory } => write!(f, "{cell} read as {value}"),
            EffectRecord::Read { cell, value, from: Medium::Buffer } => {
                write!(f, "{cell} read as {value} from its own buffer")
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
                write!(f, "{cell} read as {read} and left unchanged")
            }
            EffectRecord::Fence => write!(f, "a fence"),
            EffectRecord::StoreFence => write!(f, "a store-store fence"),
            EffectRecord::Spawn { process, .. } => write!(f, "{process} started"),
            EffectRecord::Fault { message } => write!(f, "{message}"),
        }
    }
}

/// Why the last state is bad.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// The kind of violation.
    pub kind: ViolationKind,
    /// A description.
    pub message: String,
    /// The index of the property; absent for a run-time error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<usize>,
    /// The file, if it is not the program's main file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the first step of the cycle that is repeated forever, if there is one. All later steps
    /// belong to the cycle. If the run just stops, it is the number after that of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<usize>,
    /// The line of the property, or of the instruction that failed.
    #[serde(default)]
    pub line: Option<u32>,
}

/// Kinds of violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// A run-time error of the program, such as a failed assertion.
    Fault,
    /// A forbidden state.
    Forbid,
    /// A final condition that does not hold.
    Final,
    /// Two processes are about to access the same cell, and one of the accesses is plain.
    Race,
    /// A state in which some process waits and no process can ever move again.
    Deadlock,
    /// A state from which the goal of a `live` property is out of reach.
    Live,
    /// A run that a fair scheduler can continue forever.
    Terminates,
    /// A run in which a process is inside a labelled statement forever.
    Leaves,
    /// The happens-before relation has a cycle: the program is not robust. Nothing else needs to be wrong.
    Cycle,
}
