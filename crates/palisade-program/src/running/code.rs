//! Control-flow graphs.

use super::{
    Addresses, BinaryOp, CellId, Check, CodeId, EdgeId, Fault, Location, RegId, Rmw, Stay, TemplateId, Type,
    UnaryOp, binary, unary,
};
use crate::Value;
use palisade_base::{Id, IdVec, Span};
use std::ops::Range;

/// The code of a role or procedure.
#[derive(Clone, Debug)]
pub struct Code {
    /// The name of the template or procedure.
    pub name: String,
    /// The registers. The private variables come first, then a procedure's parameters. All registers are 0
    /// when a process starts or a procedure is entered, except parameters and, in procedures, private
    /// variables.
    pub registers: IdVec<RegId, Register>,
    /// How many registers are parameters. It is 0 for roles, whose parameters are constants.
    pub params: usize,
    /// The type of a procedure's result; `None` if it returns nothing, and for roles.
    pub result: Option<Type>,
    /// Where control starts.
    pub entry: Location,
    /// Where control ends. A thread whose only frame is here has ended.
    pub exit: Location,
    /// Edges sorted by source.
    edges: IdVec<EdgeId, Edge>,
    /// For each location, its first edge. There is one entry more than there are locations.
    first_edge: Vec<u32>,
    /// The labels and their locations, in the order of the text.
    pub labels: Vec<(String, Location)>,
    /// The edges of waits that do not end the wait, in increasing order: those inside an attempt, and those
    /// by which the next attempt starts. Only [`crate::lower_retrying`] lists them.
    pub attempts: Vec<EdgeId>,
    /// The edges with plain loads and stores, in increasing order. A plain access that meets another access to
    /// the same cell is a data race, unless both are loads.
    pub plain: Vec<EdgeId>,
    /// The labelled statements of this body that a `leaves` mentions. Only [`crate::lower_retrying`] lists
    /// them.
    pub stays: Vec<Stay>,
}

/// A register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its name. Temporaries are called `%0`, `%1`, ….
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it comes from.
    pub origin: RegisterOrigin,
}

/// Where a register comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisterOrigin {
    /// The program declares it.
    Declared,
    /// It was added for an intermediate value. Every value that is assigned to it fits its type.
    Temporary,
}

impl Register {
    /// A register that the program declares.
    pub fn declared(name: impl Into<String>, ty: Type) -> Register {
        Register { name: name.into(), ty, origin: RegisterOrigin::Declared }
    }

    /// A register for an intermediate value. Its name is `%` and the suffix.
    pub fn temporary(suffix: impl std::fmt::Display, ty: Type) -> Register {
        Register { name: format!("%{suffix}"), ty, origin: RegisterOrigin::Temporary }
    }

    /// Whether it was added for an intermediate value.
    pub fn is_temporary(&self) -> bool {
        self.origin == RegisterOrigin::Temporary
    }
}

/// An edge of a control-flow graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The source location.
    pub source: Location,
    /// The target location.
    pub target: Location,
    /// The instruction.
    pub instr: Instr,
    /// The source text of the instruction.
    pub span: Span,
}

/// One instruction. Expressions read registers only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instr {
    /// Does nothing.
    Nop,
    /// `r := e`
    Assign(RegId, Expr),
    /// `r := any value of lo..=hi`
    Havoc(RegId, Value, Value),
    /// Possible only if the expression is true.
    Assume(Expr),
    /// A fault if the expression is false.
    Assert(Expr, Check),
    /// `r := [a]`: the thread's newest pending store to the cell, else the value in memory.
    Load(RegId, Address),
    /// `[a] := e`: goes to the buffer.
    Store(Address, Expr),
    /// Possible only with an empty buffer.
    Fence,
    /// Separates earlier from later stores.
    StoreFence,
    /// Locked read-modify-write; operands as in [`Rmw`]. Possible only with an empty buffer.
    Locked {
        /// The operation.
        rmw: Rmw,
        /// The register for the result.
        result: RegId,
        /// The cell.
        address: Address,
        /// The operands other than the cell.
        operands: Vec<Expr>,
    },
    /// Opens an atomic section. Possible only with an empty buffer, and if no other thread's section is open.
    AtomicBegin,
    /// Closes the atomic section.
    AtomicEnd,
    /// Enters a procedure.
    Call {
        /// The procedure's code.
        code: CodeId,
        /// The arguments.
        args: Vec<Expr>,
        /// The register for the result.
        result: Option<RegId>,
    },
    /// Leaves the procedure. The edge leads to the exit. A procedure with a result type that returns no value
    /// returns 0.
    Return(Option<Expr>),
    /// Starts a thread.
    Spawn(TemplateId, Vec<Expr>),
}

/// An address: which cell an instruction accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A fixed cell.
    Cell(CellId),
    /// `base[index]` of an array of `len` cells.
    Element {
        /// The first cell of the array.
        base: CellId,
        /// The number of its cells.
        len: u32,
        /// The index, from 0.
        index: Expr,
    },
    /// The cell whose [address](super::Cell::address) is the value of the expression.
    Pointer(Expr),
}

impl Address {
    /// The cell that it refers to, given the register values.
    pub fn resolve(&self, addresses: &Addresses, registers: &[Value]) -> Result<CellId, Fault> {
        match self {
            Address::Cell(cell) => Ok(*cell),
            Address::Element { base, len, index } => {
                let index = index.eval(registers)?;
                match u32::try_from(index) {
                    Ok(offset) if offset < *len => Ok(CellId(base.0 + offset)),
                    _ => Err(Fault::OutOfBounds(index)),
                }
            }
            Address::Pointer(pointer) => {
                let address = pointer.eval(registers)?;
                addresses.cell(address).ok_or(Fault::BadPointer(address))
            }
        }
    }

    /// Calls `visit` for every register it reads.
    pub fn registers(&self, visit: &mut dyn FnMut(RegId)) {
        match self {
            Address::Cell(_) => {}
            Address::Element { index: e, .. } | Address::Pointer(e) => e.registers(visit),
        }
    }
}

/// A pure expression over registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A constant.
    Const(Value),
    /// The value of a register.
    Reg(RegId),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands; `&&` and `||` evaluate the second only if needed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Its value for the given register values.
    pub fn eval(&self, registers: &[Value]) -> Result<Value, Fault> {
        match self {
            Expr::Const(value) => Ok(*value),
            Expr::Reg(reg) => Ok(registers[reg.index()]),
            Expr::Unary(op, a) => unary(*op, a.eval(registers)?),
            Expr::Binary(BinaryOp::And, a, b) => {
                Ok((a.eval(registers)? != 0 && b.eval(registers)? != 0).into())
            }
            Expr::Binary(BinaryOp::Or, a, b) => {
                Ok((a.eval(registers)? != 0 || b.eval(registers)? != 0).into())
            }
            Expr::Binary(op, a, b) => binary(*op, a.eval(registers)?, b.eval(registers)?),
        }
    }

    /// Calls `visit` for every register it reads.
    pub fn registers(&self, visit: &mut dyn FnMut(RegId)) {
        match self {
            Expr::Const(_) => {}
            Expr::Reg(reg) => visit(*reg),
            Expr::Unary(_, a) => a.registers(visit),
            Expr::Binary(_, a, b) => {
                a.registers(visit);
                b.registers(visit);
            }
        }
    }
}

impl Code {
    /// A code from its parts. Sorts the edges by source, keeping the order of edges with the same source.
    ///
    /// # Panics
    /// If the exit has edges.
    pub fn new(
        name: String,
        entry: Location,
        exit: Location,
        locations: usize,
        mut edges: Vec<Edge>,
    ) -> Code {
        edges.sort_by_key(|edge| edge.source);
        let first_edge = (0..=locations)
            .map(|location| edges.partition_point(|edge| edge.source.index() < location) as u32)
            .collect();
        let code = Code {
            name,
            registers: IdVec::new(),
            params: 0,
            result: None,
            entry,
            exit,
            edges: edges.into(),
            first_edge,
            labels: Vec::new(),
            attempts: Vec::new(),
            plain: Vec::new(),
            stays: Vec::new(),
        };
        assert!(code.edges_from(exit).is_empty(), "invariant 4: the exit has no edges");
        code
    }

    /// The number of locations.
    pub fn location_count(&self) -> usize {
        self.first_edge.len() - 1
    }

    /// All edges.
    pub fn edges(&self) -> &IdVec<EdgeId, Edge> {
        &self.edges
    }

    /// The ids of the edges that leave a location.
    pub fn edges_from(&self, location: Location) -> Range<u32> {
        self.first_edge[location.index()]..self.first_edge[location.index() + 1]
    }

    /// The location of a label.
    pub fn label(&self, name: &str) -> Option<Location> {
        self.labels.iter().find(|(label, _)| label == name).map(|&(_, location)| location)
    }

    /// The register with a name.
    pub fn register(&self, name: &str) -> Option<RegId> {
        self.registers.iter_enumerated().find(|(_, register)| register.name == name).map(|(id, _)| id)
    }
}
