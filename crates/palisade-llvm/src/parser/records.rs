//! Statements about the variables of the source program: calls of `llvm.dbg.*` up to LLVM 18, records since
//! LLVM 19.

use super::locals::Locals;
use super::{Parse, Parser};
use crate::calls::{ArgumentValue, Callee};
use crate::debug::NodeId;
use crate::instructions::Op;
use crate::module::{RecordKind, VariableRecord};
use crate::token::Token;
use crate::values::{ConstantKind, Operand};

impl Parser<'_> {
    /// If a call is a statement about a variable, keeps the statement instead of the call.
    pub(super) fn debug_call(&mut self, op: &Op, location: Option<NodeId>, locals: &mut Locals) -> bool {
        let Op::Call(call) = op else { return false };
        let Callee::Value(Operand::Constant(callee)) = call.callee else { return false };
        let ConstantKind::Symbol(symbol) = self.module.constants[callee].kind else { return false };
        let kind = match &*self.module.symbols[symbol].name {
            "llvm.dbg.declare" => Some(RecordKind::Declare),
            "llvm.dbg.value" => Some(RecordKind::Value),
            "llvm.dbg.assign" => Some(RecordKind::Assign),
            "llvm.dbg.label" => None,
            _ => return false,
        };
        if let Some(kind) = kind {
            let values: Vec<&ArgumentValue> = call.arguments.iter().map(|argument| &argument.value).collect();
            if let [place, ArgumentValue::Node(variable), ArgumentValue::Node(expression), ..] = values[..] {
                let place = match place {
                    ArgumentValue::Operand(operand) => Some(*operand),
                    _ => None,
                };
                self.push_record(kind, *variable, place, Some(*expression), location, locals);
            }
        }
        true
    }

    /// `#dbg_declare(ptr %x, !5, !DIExpression(), !6)`
    pub(super) fn debug_record(&mut self, locals: &mut Locals) -> Parse<()> {
        let Token::Record(name) = self.token() else {
            return Err(self.expected("a debug record", self.token()));
        };
        let kind = match name {
            "dbg_declare" => RecordKind::Declare,
            "dbg_value" => RecordKind::Value,
            "dbg_assign" => RecordKind::Assign,
            // Labels, and whatever later versions add: records say nothing about what the program does.
            _ => {
                self.advance();
                return self.skip_brackets();
            }
        };
        self.advance();
        self.sign(b'(')?;
        let mut values = Vec::new();
        while !self.at_sign(b')') {
            values.push(self.metadata_argument(locals)?);
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b')')?;
        // The place comes first, the location last.
        if let [place, ArgumentValue::Node(variable), ArgumentValue::Node(expression), .., last] = &values[..]
        {
            let place = match place {
                ArgumentValue::Operand(operand) => Some(*operand),
                _ => None,
            };
            let location = match last {
                ArgumentValue::Node(location) => Some(*location),
                _ => None,
            };
            self.push_record(kind, *variable, place, Some(*expression), location, locals);
        }
        Ok(())
    }

    fn push_record(
        &mut self,
        kind: RecordKind,
        variable: NodeId,
        place: Option<Operand>,
        expression: Option<NodeId>,
        location: Option<NodeId>,
        locals: &mut Locals,
    ) {
        let block = locals.current();
        let before = locals.block_mut(block).instructions.len() as u32;
        let record = VariableRecord { kind, variable, place, expression, block, before, location };
        locals.records.push(record);
    }
}
