//! Control-flow graphs.

use super::{
    BinaryOp, CellId, CodeId, EdgeId, Fault, Location, RegId, Rmw, TemplateId, Type, UnaryOp, binary, unary,
};
use crate::Value;
use palisade_base::{Id, IdVec, Span};
use std::ops::Range;

/// The code of a role or procedure.
#[derive(Clone, Debug)]
pub struct Code {
    /// Name of the template or procedure.
    pub name: String,
    /// Registers. The private variables come first, then a procedure's parameters. All start at 0 when a
    /// process starts or a procedure is entered, except parameters and, in procedures, private variables.
    pub registers: IdVec<RegId, Register>,
    /// How many of the registers are parameters (0 for roles, whose parameters are constants).
    pub params: usize,
    /// What a procedure returns; `None` if it returns nothing, and for roles.
    pub result: Option<Type>,
    /// Where control starts.
    pub entry: Location,
    /// Where it ends. A thread whose only frame is here has ended.
    pub exit: Location,
    /// Edges sorted by source.
    edges: IdVec<EdgeId, Edge>,
    /// For each location the first of its edges; one entry more than there are locations.
    first_edge: Vec<u32>,
    /// Labels and where they are, in the order of the text.
    pub labels: Vec<(String, Location)>,
}

/// A register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its name; temporaries that lowering made are called `%0`, `%1`, ….
    pub name: String,
    /// What it can hold.
    pub ty: Type,
}

/// An edge of a control-flow graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// From.
    pub source: Location,
    /// To.
    pub target: Location,
    /// What happens on the way.
    pub instr: Instr,
    /// What was written there.
    pub span: Span,
}

/// One instruction. Expressions read registers only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instr {
    /// Nothing.
    Nop,
    /// `r := e`
    Assign(RegId, Expr),
    /// `r := any value of lo..=hi`
    Havoc(RegId, Value, Value),
    /// Possible only if true.
    Assume(Expr),
    /// A fault if false.
    Assert(Expr),
    /// `r := [a]`, from the newest own pending store to the cell, else from memory.
    Load(RegId, Address),
    /// `[a] := e`, into the buffer.
    Store(Address, Expr),
    /// Possible only with an empty buffer.
    Fence,
    /// Separates earlier from later stores.
    StoreFence,
    /// Locked read-modify-write; operands as in [`Rmw`]. Possible only with an empty buffer.
    Locked {
        /// Which.
        rmw: Rmw,
        /// Register for the result.
        result: RegId,
        /// The cell.
        address: Address,
        /// Operands besides the cell.
        operands: Vec<Expr>,
    },
    /// Opens an atomic section. Possible only with an empty buffer (and when no other thread's section is
    /// open).
    AtomicBegin,
    /// Closes it.
    AtomicEnd,
    /// Enters a procedure.
    Call {
        /// Which.
        code: CodeId,
        /// Arguments.
        args: Vec<Expr>,
        /// Register for the result.
        result: Option<RegId>,
    },
    /// Leaves the procedure. The edge leads to the exit. A procedure with a result that returns none returns
    /// 0.
    Return(Option<Expr>),
    /// Starts a thread.
    Spawn(TemplateId, Vec<Expr>),
}

/// Which cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// This one.
    Cell(CellId),
    /// `base[index]` of an array of `len` cells.
    Element {
        /// First cell of the array.
        base: CellId,
        /// Number of its cells.
        len: u32,
        /// Which of them, from 0.
        index: Expr,
    },
    /// The cell whose address (its id + 1) is the value of the expression.
    Pointer(Expr),
}

impl Address {
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
    /// Its value for given registers.
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
    /// A code from its parts; sorts the edges (those of one location stay in order).
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
