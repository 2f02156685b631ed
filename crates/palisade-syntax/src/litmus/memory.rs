//! Memory operands: which variable they refer to, and how they are loaded and stored.

use super::ir::Mem;
use super::registers::{Register, Width};
use super::state::{State, Unresolved};
use super::values::{Facts, Val};
use super::variables::VarId;
use crate::generate::{named, read};
use palisade_base::{Diagnostic, Span};
use palisade_program::written::{BinaryOp, Check, Expr, ExprKind, Name, Place, PlaceKind, StmtKind};
use std::sync::Arc;

/// A resolved memory operand.
pub(super) struct Located {
    pub(super) place: Option<Place>,
    /// The width of the variable.
    pub(super) var_width: Width,
    /// How many of its bits are accessed.
    pub(super) width: Width,
    /// The variable, or the variables that it can be.
    target: Target,
}

enum Target {
    One(VarId),
    Some(u64),
}

impl State<'_, '_> {
    /// The value of a constant operand.
    pub(super) fn address(&mut self, var: VarId, bytes: i64, span: Span) -> Result<Val, Unresolved> {
        let place = self.element(var, bytes, span)?;
        let variables = self.variables;
        let cell = bytes / variables.width(var).bytes();
        let facts =
            Facts { points: self.knowledge.bit(var), ..Facts::exactly(variables.all[var].address + cell) };
        Ok(Val::new(place.map(|place| Expr::new(ExprKind::AddressOf(place), span)), facts))
    }

    /// The element of a variable at this byte offset.
    fn element(&mut self, var: VarId, bytes: i64, span: Span) -> Result<Option<Place>, Unresolved> {
        let variables = self.variables;
        let variable = &variables.all[var];
        let size = variables.width(var).bytes();
        let len = variable.len.unwrap_or(1);
        let cell = u32::try_from(bytes / size).ok().filter(|&cell| cell < len);
        let (Some(cell), 0) = (cell, bytes % size) else {
            return self.fail(|| {
                let message = format!(
                    "byte {bytes} of `{}` is outside the variable or not the start of an element",
                    variable.name
                );
                Diagnostic::error("outside-variable", message).at(span, "").at(variable.span, "")
            });
        };
        Ok(self.build.then(|| match variable.len {
            None => named(&variable.name, span),
            Some(_) => self.array_element(&variable.name, Expr::int(cell.into()), span),
        }))
    }

    fn array_element(&self, name: &Arc<str>, index: Expr, span: Span) -> Place {
        Place::new(PlaceKind::Element(Name::new(name.clone(), span), Box::new(index)), span)
    }

    /// Resolves a memory operand. The width is that of the instruction, if it has one.
    pub(super) fn locate(&mut self, memory: &Mem, width: Option<Width>) -> Result<Located, Unresolved> {
        let span = memory.span;
        let (place, target, var_width) = match (memory.var, memory.base) {
            (Some(var), None) if memory.index.is_none() => {
                (self.element(var, memory.displacement, span)?, Target::One(var), self.variables.width(var))
            }
            (Some(var), _) => {
                let place = self.indexed(var, memory)?;
                (place, Target::One(var), self.variables.width(var))
            }
            (None, _) => self.pointed(memory)?,
        };
        let width = width.unwrap_or(var_width);
        if width > var_width {
            let variables = self.variables;
            let name = match target {
                Target::One(var) => format!("`{}`", variables.all[var].name),
                Target::Some(_) => "the variable".to_owned(),
            };
            return self.fail(|| {
                let message = format!("this accesses {width} bits, but {name} has only {var_width}");
                mixed_size(message, span)
            });
        }
        Ok(Located { place, var_width, width, target })
    }

    /// The sum of the registers and the displacement of an address, in cells of the given size. The register
    /// that holds the address of a variable is not included. If the sum may not be a whole number of cells,
    /// an assertion that it is one is emitted.
    fn cells(&mut self, base: Option<Register>, memory: &Mem, size: i64) -> Val {
        let maker = self.maker();
        let index = memory.index.filter(|(_, scale)| *scale > 0);
        let whole = memory.displacement % size == 0
            && index.is_none_or(|(_, scale)| scale % size == 0)
            && base.is_none();
        // If every part is a whole number of cells, count cells. Otherwise count bytes first.
        let unit = if whole { size } else { 1 };
        let mut sum = maker.constant(memory.displacement / unit);
        let scaled = index.map(|(register, scale)| (register, scale / unit));
        for (register, scale) in base.map(|base| (base, 1)).into_iter().chain(scaled) {
            let value = self.read_register(register);
            let shift = u32::try_from(scale).unwrap_or(1).trailing_zeros();
            let facts = Facts::between(value.facts.least << shift, value.facts.greatest << shift);
            let value = if shift == 0 { value } else { maker.shift(BinaryOp::Shl, value, shift, facts) };
            let nothing_yet = sum.facts == Facts::exactly(0);
            sum = if nothing_yet { value } else { maker.binary(BinaryOp::Add, sum, value, any_number()) };
        }
        let constant = base.is_none() && index.is_none() && whole;
        if constant || sum.facts == Facts::exactly(0) {
            return maker.constant(i64::try_from(sum.facts.least).unwrap_or(i64::MAX));
        }
        if unit == size {
            return sum;
        }
        let rest = maker.binary(BinaryOp::Rem, sum.clone(), maker.constant(size), any_number());
        let aligned = maker.compare(BinaryOp::Eq, rest, maker.constant(0));
        if let Some(aligned) = aligned.expr {
            self.emit(StmtKind::Assert(aligned, Check::Assertion));
        }
        let facts = Facts::between(sum.facts.least / i128::from(size), sum.facts.greatest / i128::from(size));
        maker.binary(BinaryOp::Div, sum, maker.constant(size), facts)
    }

    /// `x(%rax)`: a variable and an offset in registers.
    fn indexed(&mut self, var: VarId, memory: &Mem) -> Result<Option<Place>, Unresolved> {
        let cells = self.cells(memory.base, memory, self.variables.width(var).bytes());
        let variables = self.variables;
        let variable = &variables.all[var];
        if variable.len.is_some() {
            return Ok(cells.expr.map(|index| self.array_element(&variable.name, index, memory.span)));
        }
        if cells.facts.least != 0 || cells.facts.greatest != 0 {
            let maker = self.maker();
            if let Some(inside) = maker.compare(BinaryOp::Eq, cells, maker.constant(0)).expr {
                self.emit(StmtKind::Assert(inside, Check::Assertion));
            }
        }
        Ok(self.build.then(|| named(&variable.name, memory.span)))
    }

    /// `(%rax)`: an address in a register.
    fn pointed(&mut self, memory: &Mem) -> Result<(Option<Place>, Target, Width), Unresolved> {
        let points = |state: &Self, register: Option<Register>| {
            register.map_or(0, |register| state.read_register(register).facts.points)
        };
        let mut memory = *memory;
        if points(self, memory.base) == 0
            && let Some((index, 1)) = memory.index
            && points(self, Some(index)) != 0
        {
            (memory.base, memory.index) = (Some(index), memory.base.map(|base| (base, 1)));
        }
        let holder = memory.base.filter(|base| points(self, Some(*base)) != 0);
        let Some(holder) = holder else {
            return self.fail(|| {
                Diagnostic::error(
                    "not-an-address",
                    "no register in this operand can hold the address of a variable",
                )
                .at(memory.span, "")
                .help("set a register to an address in the initial state: `0:RAX=x;`")
            });
        };
        let pointer = self.read_register(holder);
        let targets = pointer.facts.points;
        let widths = self.knowledge.pointed_widths(targets);
        let [var_width] = widths[..] else {
            return self.fail(|| {
                let message = "this can access variables of different widths".to_owned();
                mixed_size(message, memory.span)
            });
        };
        let span = memory.span;
        if memory.index.is_none() && memory.displacement % var_width.bytes() != 0 {
            return self.fail(|| {
                let message = format!("this does not access a whole element of {var_width} bits");
                Diagnostic::error("outside-variable", message).at(span, "")
            });
        }
        let cells = self.cells(None, &memory, var_width.bytes());
        if cells.facts.least == 0 && cells.facts.greatest == 0 {
            let place = pointer.expr.map(|pointer| Place::new(PlaceKind::Deref(Box::new(pointer)), span));
            return Ok((place, Target::Some(targets), var_width));
        }
        if !self.knowledge.points_into_array(targets) {
            return self.fail(|| {
                Diagnostic::error(
                    "outside-variable",
                    "this address is outside every variable that it can point to",
                )
                .at(span, "")
            });
        }
        let address = self.maker().binary(BinaryOp::Add, pointer, cells, any_number());
        let place = address.expr.map(|address| Place::new(PlaceKind::Deref(Box::new(address)), span));
        Ok((place, Target::Some(targets), var_width))
    }

    fn target_facts(&self, target: &Target) -> Facts {
        match target {
            Target::One(var) => self.knowledge.variable(*var),
            Target::Some(points) => self.knowledge.pointed(*points),
        }
    }

    /// The value of a memory operand.
    pub(super) fn load(&self, located: &Located) -> Val {
        let facts = self.target_facts(&located.target);
        let whole = Val { loads: true, ..Val::new(located.place.clone().map(read), facts) };
        let mut value = self.maker().sign_extend(whole, located.width);
        value.facts.points = facts.points;
        value
    }

    /// Records that a value is stored to a memory operand.
    pub(super) fn note_store(&mut self, located: &Located, facts: &Facts) {
        match located.target {
            Target::One(var) => self.knowledge.learn(var, facts),
            Target::Some(points) => self.knowledge.learn_pointed(points, facts),
        }
    }

    /// Rejects a change of only part of a variable.
    pub(super) fn whole_variable(&mut self, located: &Located, span: Span) -> Result<(), Unresolved> {
        if located.width == located.var_width {
            return Ok(());
        }
        let (width, var_width) = (located.width, located.var_width);
        self.fail(|| {
            let message = format!("this changes {width} bits of a {var_width}-bit variable");
            mixed_size(message, span)
        })
    }

    /// `x = v;`
    pub(super) fn store(&mut self, located: &Located, value: Val) {
        self.note_store(located, &value.facts);
        self.emit_assign(located.place.clone(), value);
    }
}

/// Nothing else is known about sums in addresses. A sum that overflows is a fault, and so is an access to the
/// address it would give.
fn any_number() -> Facts {
    Facts::between(i64::MIN.into(), i64::MAX.into())
}

fn mixed_size(message: String, span: Span) -> Diagnostic {
    Diagnostic::error("mixed-size", message)
        .at(span, "")
        .help("accesses to parts of a variable are not modelled; declare it with the width that is accessed")
}
