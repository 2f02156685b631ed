//! Every value is defined before it is used, on all paths, and a phi has a value for every predecessor of its block.

use super::Parser;
use crate::flow::Flow;
use crate::instructions::Op;
use crate::module::{BlockId, Body};
use crate::values::{Operand, ValueId};
use palisade_base::{Diagnostic, IdVec, Span};

/// Where a value is defined. Parameters have no place.
#[derive(Clone, Copy)]
struct Definition {
    block: BlockId,
    index: usize,
    /// For an `invoke`, the block where the value exists.
    normal: Option<BlockId>,
}

impl Parser<'_> {
    /// Checks a finished body.
    pub(super) fn check_dominance(&mut self, body: &Body) {
        let flow = Flow::new(body);
        let entry = BlockId(0);
        if !flow.predecessors(entry).is_empty() {
            self.broken("the first block cannot be branched to".into(), body.blocks[entry].span);
        }
        let definitions = definitions(body);
        for (block, contents) in body.blocks.iter_enumerated() {
            let mut phis = true;
            for (index, instruction) in contents.instructions.iter().enumerate() {
                if let Op::Phi(incoming) = &instruction.op {
                    if !phis {
                        self.broken("a `phi` comes after other instructions".into(), instruction.span);
                    }
                    self.check_phi(&flow, block, incoming, instruction.span, body, &definitions);
                    continue;
                }
                phis = false;
                instruction.op.for_each_operand(|operand| {
                    let Operand::Local(value) = operand else { return };
                    let Some(definition) = definitions[value] else { return };
                    let before =
                        definition.block == block && definition.index < index && definition.normal.is_none();
                    let far = definition.block != block && defined_at(&flow, definition, block);
                    if !before && !far && flow.is_reachable(block) {
                        self.undefined_use(value, instruction.span, body);
                    }
                });
            }
        }
    }

    fn check_phi(
        &mut self,
        flow: &Flow,
        block: BlockId,
        incoming: &[(Operand, BlockId)],
        span: Span,
        body: &Body,
        definitions: &IdVec<ValueId, Option<Definition>>,
    ) {
        let mut found: Vec<BlockId> = incoming.iter().map(|(_, from)| *from).collect();
        let mut ways = flow.predecessors(block).to_vec();
        found.sort_unstable();
        ways.sort_unstable();
        if found != ways {
            let message = "this `phi` does not have one value for each predecessor of its block";
            self.broken(message.into(), span);
        }
        for &(operand, from) in incoming {
            let Operand::Local(value) = operand else { continue };
            let Some(definition) = definitions[value] else { continue };
            // The value is used at the end of the block that control comes from.
            let here = definition.block == from && definition.normal.is_none_or(|normal| normal == block);
            if !here && !defined_at(flow, definition, from) && flow.is_reachable(from) {
                self.undefined_use(value, span, body);
            }
        }
    }

    fn undefined_use(&mut self, value: ValueId, span: Span, body: &Body) {
        let message = format!(
            "`%{}` is used here, but not defined on every path to this point",
            body.values[value].name
        );
        self.broken(message, span);
    }

    fn broken(&mut self, message: String, span: Span) {
        self.report.push(Diagnostic::error("ir-order", message).at(span, ""));
    }
}

/// Whether a value exists throughout a block other than its own.
fn defined_at(flow: &Flow, definition: Definition, block: BlockId) -> bool {
    match definition.normal {
        None => flow.dominates(definition.block, block),
        Some(normal) => flow.predecessors(normal) == [definition.block] && flow.dominates(normal, block),
    }
}

fn definitions(body: &Body) -> IdVec<ValueId, Option<Definition>> {
    let mut definitions: IdVec<ValueId, Option<Definition>> = body.values.iter().map(|_| None).collect();
    for (block, contents) in body.blocks.iter_enumerated() {
        for (index, instruction) in contents.instructions.iter().enumerate() {
            let normal = match instruction.op {
                Op::Invoke { normal, .. } => Some(normal),
                _ => None,
            };
            if let Some(result) = instruction.result {
                definitions[result] = Some(Definition { block, index, normal });
            }
        }
    }
    definitions
}
