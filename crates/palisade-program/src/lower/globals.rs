//! The names outside bodies: the cells of shared variables, and the procedures and templates.

use super::{fold, instances};
use crate::Value;
use crate::running::in_order;
use crate::running::{Addresses, Cell, CellId, CodeId, Expr as Running, Fault, TemplateId};
use crate::written::{
    BinaryOp, Expr, ExprKind, Init, InitValue, PlaceKind, Placement, Private, Procedure, Program, Shared,
    Type,
};
use palisade_base::{Id, IdVec};
use rustc_hash::FxHashMap;

/// The global names of a program.
pub(crate) struct Globals<'p> {
    pub(super) shared: FxHashMap<&'p str, Memory>,
    pub(super) privates: &'p [Private],
    pub(super) procedures: FxHashMap<&'p str, (CodeId, &'p Procedure)>,
    pub(super) templates: FxHashMap<&'p str, TemplateId>,
    first_procedure: CodeId,
    cells: IdVec<CellId, Cell>,
    addresses: Addresses,
}

/// The cells of a shared variable.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// The first cell.
    pub(crate) base: CellId,
    /// The number of cells of an array.
    pub(crate) len: Option<u32>,
    /// The type of the cells.
    pub(crate) ty: Type,
    /// The addresses of the cells.
    pub(crate) at: Placement,
}

impl Memory {
    /// The address of a cell of the variable.
    pub(crate) fn address(&self, index: u32) -> Value {
        self.at.address.saturating_add(self.at.step.saturating_mul(index.into()))
    }
}

/// Where the cells of each shared variable are. The first declaration of a name counts.
pub(crate) fn layout(shared: &[Shared]) -> FxHashMap<&str, Memory> {
    let mut next = 0u32;
    let mut map = FxHashMap::default();
    for variable in shared {
        let in_order = Placement { address: in_order(CellId(next)), step: 1 };
        let at = variable.at.unwrap_or(in_order);
        let memory = Memory { base: CellId(next), len: variable.len, ty: variable.ty, at };
        map.entry(variable.name.as_str()).or_insert(memory);
        next = next.saturating_add(variable.len.unwrap_or(1));
    }
    map
}

/// The number of cells of all shared variables.
pub(crate) fn cell_count(shared: &[Shared]) -> u64 {
    shared.iter().map(|variable| u64::from(variable.len.unwrap_or(1))).sum()
}

impl<'p> Globals<'p> {
    pub(super) fn new(program: &'p Program) -> Globals<'p> {
        let roles: usize = program.templates.iter().map(|t| instances::combinations(&t.params).count()).sum();
        let procedures = program.procedures.iter().enumerate();
        let shared = layout(&program.shared);
        let cells = cells(program, &shared);
        Globals {
            shared,
            privates: &program.privates,
            procedures: procedures
                .map(|(i, p)| (p.name.as_str(), (CodeId::from_index(roles + i), p)))
                .collect(),
            templates: program
                .templates
                .iter()
                .enumerate()
                .map(|(i, t)| (t.name.as_str(), TemplateId::from_index(i)))
                .collect(),
            first_procedure: CodeId::from_index(roles),
            addresses: Addresses::new(&cells),
            cells,
        }
    }

    /// The cell at an address, if there is one.
    pub(super) fn cell_at(&self, address: Value) -> Option<CellId> {
        self.addresses.cell(address)
    }

    /// The address of a cell.
    pub(super) fn address(&self, cell: CellId) -> Value {
        self.cells[cell].address
    }

    /// The memory cells of the program, and where they are.
    pub(super) fn memory(&self) -> (IdVec<CellId, Cell>, Addresses) {
        (self.cells.clone(), self.addresses.clone())
    }

    /// The id of the first procedure's code. The codes of the roles come before it.
    pub(super) fn first_procedure(&self) -> CodeId {
        self.first_procedure
    }
}

/// The memory cells of a program.
fn cells(program: &Program, shared: &FxHashMap<&str, Memory>) -> IdVec<CellId, Cell> {
    let mut cells = IdVec::new();
    for variable in &program.shared {
        let initial = |init: &InitValue| match init {
            InitValue::Any => None,
            InitValue::Const(e) => Some(constant(e, shared).unwrap_or_else(|_| {
                panic!("validation: the initial value of `{}` is a constant", variable.name)
            })),
        };
        let all = match &variable.init {
            Init::Every(init) => Some(initial(init)),
            Init::Each(_) => None,
        };
        for i in 0..variable.len.unwrap_or(1) {
            let init = match &variable.init {
                Init::Every(_) => all.flatten(),
                Init::Each(each) => {
                    initial(each.get(i as usize).expect("validation: one initial value per cell"))
                }
            };
            let name = match variable.len {
                Some(_) => element_name(variable.name.as_str(), i),
                None => variable.name.to_string(),
            };
            let address = shared[variable.name.as_str()].address(i);
            cells.push(Cell { name, ty: variable.ty, init, address, span: variable.origin.0 });
        }
    }
    cells
}

/// The name of a cell of an array: `a[2]`. In the name of an array, `[]` and the lengths after it stand for indices: the
/// cells of `node[].next` are `node[0].next`, `node[1].next`, …, and those of `m[][3]` are `m[0][0]` to `m[0][2]`,
/// `m[1][0]`, ….
pub fn element_name(array: &str, index: u32) -> String {
    let plain = || format!("{array}[{index}]");
    let Some((before, after)) = array.split_once("[]") else { return plain() };
    let mut parts = after.split('[');
    let mut texts = vec![parts.next().unwrap_or_default()];
    let mut lengths = Vec::new();
    for part in parts {
        match part.split_once(']').map(|(length, text)| (length.parse::<u32>(), text)) {
            Some((Ok(length @ 1..), text)) => {
                lengths.push(length);
                texts.push(text);
            }
            _ => return plain(),
        }
    }
    let mut rest = index;
    let mut indices: Vec<u32> = Vec::new();
    for length in lengths.iter().rev() {
        indices.push(rest % length);
        rest /= length;
    }
    indices.push(rest);
    let pairs = indices.iter().rev().zip(texts);
    pairs.fold(before.to_owned(), |name, (index, text)| format!("{name}[{index}]{text}"))
}

/// Why an expression is not a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotConstant {
    /// It depends on a register, memory, a process or a choice.
    Depends,
    /// Its evaluation faults.
    Faults(Fault),
}

/// The value of an expression of literals, operators and addresses of cells.
pub(crate) fn constant(e: &Expr, shared: &FxHashMap<&str, Memory>) -> Result<Value, NotConstant> {
    let eval = |e: &Expr| constant(e, shared);
    match &e.kind {
        ExprKind::Int(value) => Ok(*value),
        ExprKind::Bool(value) => Ok((*value).into()),
        ExprKind::Unary(op, a) => crate::running::unary(*op, eval(a)?).map_err(NotConstant::Faults),
        ExprKind::Binary(BinaryOp::And, a, b) => Ok((eval(a)? != 0 && eval(b)? != 0).into()),
        ExprKind::Binary(BinaryOp::Or, a, b) => Ok((eval(a)? != 0 || eval(b)? != 0).into()),
        ExprKind::Binary(op, a, b) => {
            crate::running::binary(*op, eval(a)?, eval(b)?).map_err(NotConstant::Faults)
        }
        ExprKind::AddressOf(place) => match &place.kind {
            PlaceKind::Named(name) => {
                let memory = shared.get(name.as_str()).ok_or(NotConstant::Depends)?;
                Ok(memory.address(0))
            }
            PlaceKind::Element(name, index) => {
                let memory = shared.get(name.as_str()).ok_or(NotConstant::Depends)?;
                let index = eval(index)?;
                match fold::element(memory.base, memory.len.unwrap_or(1), &Running::Const(index)) {
                    Some(cell) => Ok(memory.address(cell.0 - memory.base.0)),
                    None => Err(NotConstant::Faults(Fault::OutOfBounds(index))),
                }
            }
            PlaceKind::Deref(pointer) => eval(pointer),
        },
        ExprKind::Read(_)
        | ExprKind::Locked(..)
        | ExprKind::Call(..)
        | ExprKind::Any { .. }
        | ExprKind::Observe(_) => Err(NotConstant::Depends),
    }
}
