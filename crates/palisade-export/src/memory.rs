//! Shared memory in the other language: one variable per declaration. Programs with pointers have one array
//! for all cells instead, in which a pointer is an index.

use crate::names::Names;
use crate::ranges::{Range, Ranges};
use crate::text::Text;
use palisade_base::{Id, Span};
use palisade_program::Value;
use palisade_program::running::{Address, CellId, Instr, System, Type};
use palisade_program::written::Program;
use std::cell::Cell;

/// A declaration.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub name: String,
    /// `None` for a scalar.
    pub len: Option<u32>,
    /// Whether the text mentions it.
    mentioned: Cell<bool>,
    pub base: CellId,
    pub ty: Type,
    pub span: Span,
}

impl Variable {
    /// Its cells.
    pub fn cells(&self) -> impl Iterator<Item = CellId> + use<> {
        let first = self.base.index();
        (first..first + self.len.unwrap_or(1) as usize).map(CellId::from_index)
    }

    /// Its name, for text that mentions it.
    fn mention(&self) -> &str {
        self.mentioned.set(true);
        &self.name
    }

    /// Whether the text written so far mentions it.
    pub fn is_mentioned(&self) -> bool {
        self.mentioned.get()
    }
}

/// All declarations.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub variables: Vec<Variable>,
    /// The name of the array that holds all cells, the first at index 1.
    pub array: Option<String>,
    cells: usize,
}

impl Memory {
    pub fn new(program: &Program, system: &System, names: &mut Names) -> Memory {
        let mut base = 0;
        let mut variables = Vec::new();
        for shared in &program.shared {
            let name = names.fresh(shared.name.as_str());
            let span = shared.origin.0;
            variables.push(Variable {
                name,
                len: shared.len,
                mentioned: Cell::new(false),
                base: CellId::from_index(base),
                ty: shared.ty,
                span,
            });
            base += shared.len.unwrap_or(1) as usize;
        }
        let array = has_pointers(system).then(|| names.fresh("memory"));
        Memory { variables, array, cells: system.cells.len() }
    }

    /// Declares the array of all cells, with a macro for each variable.
    pub fn declare_array(&self, declared: &str, array: &str, text: &mut Text<'_>) {
        text.line(&format!("{declared:<55} /* a pointer is an index; 0 is not valid */"));
        for variable in &self.variables {
            let first = variable.base.index() + 1;
            let macro_ = match variable.len {
                None => format!("#define {} {array}[{first}]", variable.name),
                Some(_) => format!("#define {}(i) {array}[{first} + (i)]", variable.name),
            };
            text.commented(&macro_, variable.span);
        }
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.cells
    }

    fn variable(&self, cell: CellId) -> &Variable {
        let index = self.variables.partition_point(|variable| variable.base <= cell);
        // Arrays without cells share their first cell with the variable that follows.
        &self.variables[index - 1]
    }

    /// A cell.
    pub fn cell(&self, cell: CellId) -> String {
        let variable = self.variable(cell);
        match variable.len {
            None => variable.mention().to_owned(),
            Some(_) => self.element(variable.base, &(cell.0 - variable.base.0).to_string()),
        }
    }

    /// A cell of an array.
    pub fn element(&self, base: CellId, index: &str) -> String {
        let name = self.variable(base).mention();
        match self.array {
            None => format!("{name}[{index}]"),
            Some(_) => format!("{name}({index})"),
        }
    }

    /// The cell a pointer points to.
    pub fn pointer(&self, pointer: &str) -> String {
        let array = self.array.as_ref().expect("programs with pointers keep all cells in one array");
        format!("{array}[{pointer}]")
    }

    /// The declarations that an address may refer to, each with its first and last address.
    pub fn reached(&self, address: &Address) -> Vec<(&Variable, Value, Value)> {
        let bounds = |variable: &Variable| {
            let first = Value::from(variable.base.0) + 1;
            (first, first + Value::from(variable.len.unwrap_or(1)) - 1)
        };
        let one = |cell: CellId| {
            let variable = self.variable(cell);
            let (first, last) = bounds(variable);
            vec![(variable, first, last)]
        };
        match address {
            Address::Cell(cell) => one(*cell),
            Address::Element { base, .. } => one(*base),
            Address::Pointer(_) => {
                let all =
                    self.variables.iter().map(|variable| (variable, bounds(variable).0, bounds(variable).1));
                all.filter(|(_, first, last)| first <= last).collect()
            }
        }
    }

    /// The range of the cells of a declaration.
    pub fn range(&self, ranges: &Ranges, variable: &Variable) -> Range {
        let cells = variable.cells().map(|cell| ranges.cells[cell]);
        cells.reduce(|a, b| Range { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi) }).unwrap_or(Range::of(0))
    }
}

fn has_pointers(system: &System) -> bool {
    let follows = |instr: &Instr| match instr {
        Instr::Load(_, address) | Instr::Store(address, _) | Instr::Locked { address, .. } => {
            matches!(address, Address::Pointer(_))
        }
        _ => false,
    };
    system.codes.iter().any(|code| code.edges().iter().any(|edge| follows(&edge.instr)))
}
