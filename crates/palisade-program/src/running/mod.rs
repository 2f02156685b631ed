//! The running form: control-flow graphs with typed ids, one instruction per edge.
//!
//! *Invariants* of a [`System`], established by [`crate::lower()`]; tests check them
//! ([`System::check_invariants`]):
//! 1. Every id in it is in range.
//! 2. Expressions on edges are pure: they read only registers of their own code.
//! 3. The edges of a code are sorted by source location.
//! 4. The exit of a code has no edges.
//! 5. The first [`System::privates`] registers of all codes have the same types.
//! 6. `AtomicBegin` and `AtomicEnd` edges nest properly on every path of a code.

mod addresses;
mod code;
mod eval;
mod invariants;
mod liveness;
mod property;
mod structure;

pub use crate::written::{BinaryOp, Check, Domain, Outside, Rmw, Type, UnaryOp};
pub use addresses::Addresses;
pub(crate) use addresses::in_order;
pub use code::{Address, Code, Edge, Expr, Instr, Register, RegisterOrigin};
pub use eval::{Fault, binary, unary};
pub use liveness::Liveness;
pub use property::{Condition, FairKind, FairProperty, Goal, GoalKind, Property, PropertyKind, Stay};
pub use structure::Structure;

use crate::Value;
use palisade_base::{IdVec, Span, define_id};

define_id!(
    /// One memory cell: a shared scalar or one element of a shared array.
    CellId
);
define_id!(
    /// The code of a role or of a procedure.
    CodeId
);
define_id!(
    /// A template with values for its parameters.
    RoleId
);
define_id!(
    /// A template, in the order of the written program.
    TemplateId
);
define_id!(
    /// A thread of a run. The instances that start initially come first, then spawned threads in the order of
    /// their creation.
    ThreadId
);
define_id!(
    /// A register of one code.
    RegId
);
define_id!(
    /// A control location of one code.
    Location
);
define_id!(
    /// An edge of one code.
    EdgeId
);

/// A program ready to run.
#[derive(Clone, Debug)]
pub struct System {
    /// The names of the values of each enumeration: see [`System::value_name`].
    pub enums: Vec<Vec<String>>,
    /// The memory cells.
    pub cells: IdVec<CellId, Cell>,
    /// Which cell is at which address.
    pub addresses: Addresses,
    /// All codes: one per role and one per procedure.
    pub codes: IdVec<CodeId, Code>,
    /// Templates with parameter values.
    pub roles: IdVec<RoleId, Role>,
    /// The templates' names and parameter domains, for `spawn`.
    pub templates: IdVec<TemplateId, TemplateInfo>,
    /// The number of private variables. They are the first registers of every code, with the same types. A
    /// call passes them to the procedure, and a return passes them back.
    pub privates: usize,
    /// The processes that exist at the start.
    pub instances: IdVec<ThreadId, Instance>,
    /// The properties that must hold, in addition to the absence of faults.
    pub properties: Vec<Property>,
    /// What must stay reachable, in the order of the `live` properties of the program.
    pub goals: Vec<Goal>,
    /// What holds in every fair run, in the order of the program. Only [`crate::lower_retrying`] lists it.
    pub fair: Vec<FairProperty>,
}

/// A memory cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Its name: `x` or `flag[1]`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its initial value; `None` means any value of its domain, which is then finite.
    pub init: Option<Value>,
    /// Its address, which no other cell has. Unless the program places it, cell `i` has address `i + 1`.
    pub address: Value,
    /// Its declaration.
    pub span: Span,
}

/// A template with values for its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// The template.
    pub template: TemplateId,
    /// The values of its parameters.
    pub args: Vec<Value>,
    /// Its code. Parameters are already replaced by their values.
    pub code: CodeId,
    /// Its name: `P(0)`, or `P` without parameters.
    pub name: String,
}

/// What `spawn` needs to know about a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateInfo {
    /// Its name.
    pub name: String,
    /// Its roles, in the order of [`System::roles`].
    pub roles: Vec<RoleId>,
}

/// A process that exists at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The role that it runs.
    pub role: RoleId,
    /// Its name: `P(0)`, `Worker[2]` or `Main`.
    pub name: String,
}

impl System {
    /// The role of a template with these arguments, if they are in the parameters' domains.
    pub fn role(&self, template: TemplateId, args: &[Value]) -> Option<RoleId> {
        self.templates[template].roles.iter().copied().find(|&role| self.roles[role].args == args)
    }

    /// The code a role runs.
    pub fn role_code(&self, role: RoleId) -> &Code {
        &self.codes[self.roles[role].code]
    }

    /// The name of a value of a domain, if the domain is an enumeration.
    pub fn value_name(&self, domain: Domain, value: Value) -> Option<&str> {
        let Domain::Enum { which, .. } = domain else { return None };
        let values = self.enums.get(which as usize)?;
        values.get(usize::try_from(value).ok()?).map(String::as_str)
    }

    /// The cell at an address, if there is one.
    pub fn cell_at(&self, address: Value) -> Option<CellId> {
        self.addresses.cell(address)
    }
}
