//! Operands in the form of the text, for messages.

use crate::module::{Body, Module};
use crate::types::Type;
use crate::values::{ConstantId, ConstantKind, Expression, Operand};
use std::fmt;

/// An operand, with its module and function.
pub struct DisplayOperand<'a> {
    module: &'a Module,
    body: Option<&'a Body>,
    operand: Operand,
}

impl Module {
    /// An operand of a function, without its type.
    pub fn display<'a>(&'a self, body: &'a Body, operand: Operand) -> DisplayOperand<'a> {
        DisplayOperand { module: self, body: Some(body), operand }
    }

    /// A constant, without its type.
    pub fn display_constant(&self, constant: ConstantId) -> DisplayOperand<'_> {
        DisplayOperand { module: self, body: None, operand: Operand::Constant(constant) }
    }

    /// A constant with its type.
    fn typed(&self, constant: ConstantId) -> String {
        let ty = self.types.display(self.constants[constant].ty);
        format!("{ty} {}", self.display_constant(constant))
    }
}

impl fmt::Display for DisplayOperand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = match self.operand {
            Operand::Local(value) => {
                let name = self.body.map_or("?", |body| &body.values[value].name);
                return write!(f, "%{name}");
            }
            Operand::Constant(constant) => &self.module.constants[constant],
        };
        let module = self.module;
        match &constant.kind {
            ConstantKind::Integer(value) => match module.types.get(constant.ty) {
                Type::Integer(1) => f.write_str(if *value == 1 { "true" } else { "false" }),
                Type::Integer(bits) => write!(f, "{}", signed(*value, *bits)),
                _ => write!(f, "{value}"),
            },
            ConstantKind::Float(text) => f.write_str(text),
            ConstantKind::Null => f.write_str("null"),
            ConstantKind::Undef => f.write_str("undef"),
            ConstantKind::Poison => f.write_str("poison"),
            ConstantKind::Zero => f.write_str("zeroinitializer"),
            ConstantKind::NoToken => f.write_str("none"),
            ConstantKind::Bytes(bytes) => write!(f, "c\"{}\"", bytes.escape_ascii()),
            ConstantKind::Aggregate(elements) => {
                let elements: Vec<String> = elements.iter().map(|&element| module.typed(element)).collect();
                let (open, close) = match module.types.body(constant.ty) {
                    Type::Array { .. } => ("[", "]"),
                    Type::Vector { .. } => ("<", ">"),
                    Type::Struct { packed: true, .. } => ("<{ ", " }>"),
                    _ => ("{ ", " }"),
                };
                write!(f, "{open}{}{close}", elements.join(", "))
            }
            ConstantKind::Splat(element) => write!(f, "splat ({})", module.typed(*element)),
            ConstantKind::Symbol(symbol) => write!(f, "@{}", module.symbols[*symbol].name),
            ConstantKind::BlockAddress { function, block } => {
                let function = &module.functions[*function];
                let block = function.body.as_ref().map_or("?", |body| &body.blocks[*block].name);
                write!(f, "blockaddress(@{}, %{block})", module.symbols[function.symbol].name)
            }
            ConstantKind::Expression(expression) => match expression {
                Expression::Cast { op, value } => {
                    let to = module.types.display(constant.ty);
                    write!(f, "{} ({} to {to})", op.word(), module.typed(*value))
                }
                Expression::GetElementPtr { source, base, indices, .. } => {
                    write!(f, "getelementptr ({}, {}", module.types.display(*source), module.typed(*base))?;
                    indices.iter().try_for_each(|&index| write!(f, ", {}", module.typed(index)))?;
                    f.write_str(")")
                }
                Expression::Binary { op, left, right, .. } => {
                    write!(f, "{} ({}, {})", op.word(), module.typed(*left), module.typed(*right))
                }
                Expression::Compare { predicate, left, right } => {
                    let (left, right) = (module.typed(*left), module.typed(*right));
                    write!(f, "icmp {} ({left}, {right})", predicate.word())
                }
                Expression::Select { condition, yes, no } => {
                    let (yes, no) = (module.typed(*yes), module.typed(*no));
                    write!(f, "select ({}, {yes}, {no})", module.typed(*condition))
                }
            },
        }
    }
}

/// The lowest bits as a signed number.
fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.min(128);
    ((value << unused) as i128) >> unused
}
