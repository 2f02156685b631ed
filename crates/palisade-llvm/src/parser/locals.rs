//! The values and blocks of the function that is being read.
//!
//! What has no name has a number. Parameters, blocks and results share the numbers, in the order of the text.

use super::names::Names;
use super::{Mention, Parse, Parser};
use crate::instructions::Instruction;
use crate::module::{Block, BlockId, Body, LocalValue, VariableRecord};
use crate::token::{Name, Token};
use crate::types::TypeId;
use crate::values::{Operand, ValueId};
use palisade_base::{Diagnostic, Id, IdVec, Span};

/// The values and blocks of a function.
pub(super) struct Locals {
    values: Names<ValueId>,
    body: IdVec<ValueId, LocalValue>,
    value_mentions: IdVec<ValueId, Mention>,
    block_names: Names<BlockId>,
    /// Blocks in the order of their first mention.
    blocks: IdVec<BlockId, Block>,
    block_mentions: IdVec<BlockId, Mention>,
    /// The blocks in the order of the text.
    order: Vec<BlockId>,
    /// The next number of what has no name.
    next_number: u32,
    pub(super) records: Vec<VariableRecord>,
    /// Whether something in this function was not understood.
    pub(super) failed: bool,
    /// What the function returns.
    pub(super) result: TypeId,
}

impl Locals {
    pub(super) fn new(result: TypeId) -> Locals {
        Locals {
            values: Names::default(),
            body: IdVec::new(),
            value_mentions: IdVec::new(),
            block_names: Names::default(),
            blocks: IdVec::new(),
            block_mentions: IdVec::new(),
            order: Vec::new(),
            next_number: 0,
            records: Vec::new(),
            failed: false,
            result,
        }
    }

    /// The block that is being read.
    pub(super) fn current(&self) -> BlockId {
        *self.order.last().expect("instructions are in a block")
    }

    pub(super) fn block_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block]
    }

    pub(super) fn value_type(&self, value: ValueId) -> TypeId {
        self.body[value].ty
    }

    /// Appends an instruction to the current block.
    pub(super) fn push(&mut self, instruction: Instruction) {
        let block = self.current();
        self.blocks[block].instructions.push(instruction);
    }

    fn new_value(&mut self, name: Name<'_>, text: &str, ty: TypeId, mention: Mention) -> ValueId {
        let id = self.body.push(LocalValue { name: text.into(), ty });
        self.value_mentions.push(mention);
        self.values.insert(name, text, id);
        id
    }

    fn new_block(&mut self, name: Name<'_>, text: &str, mention: Mention) -> BlockId {
        let id = self.blocks.push(Block { name: text.into(), instructions: Vec::new(), span: mention.span });
        self.block_mentions.push(mention);
        self.block_names.insert(name, text, id);
        id
    }

    /// The finished body, with the blocks in the order of the text.
    pub(super) fn finish(self) -> Body {
        let mut places: IdVec<BlockId, BlockId> = self.blocks.ids().collect();
        for (place, &block) in self.order.iter().enumerate() {
            places[block] = BlockId::from_index(place);
        }
        let mut blocks: Vec<Option<Block>> = self.blocks.iter().map(|_| None).collect();
        for (place, mut block) in places.iter().zip(self.blocks) {
            for instruction in &mut block.instructions {
                instruction.op.for_each_block_mut(|block| *block = places[*block]);
            }
            blocks[place.index()] = Some(block);
        }
        let mut records = self.records;
        records.iter_mut().for_each(|record| record.block = places[record.block]);
        Body { values: self.body, blocks: blocks.into_iter().flatten().collect(), records }
    }
}

impl<'a> Parser<'a> {
    /// A value of a type: a local or a constant.
    pub(super) fn operand(&mut self, ty: TypeId, locals: &mut Locals) -> Parse<Operand> {
        match self.token() {
            Token::Local(name) => self.local(name, ty, locals).map(Operand::Local),
            _ => self.constant(ty).map(Operand::Constant),
        }
    }

    /// A type and a value of it.
    pub(super) fn typed_operand(&mut self, locals: &mut Locals) -> Parse<(TypeId, Operand)> {
        let ty = self.ty()?;
        if !self.module.types.is_first_class(ty) {
            let shown = self.module.types.display(ty);
            return Err(self.error("type-mismatch", format!("a value cannot have type `{shown}`")));
        }
        Ok((ty, self.operand(ty, locals)?))
    }

    pub(super) fn operand_type(&self, operand: Operand, locals: &Locals) -> TypeId {
        match operand {
            Operand::Local(value) => locals.value_type(value),
            Operand::Constant(constant) => self.module.constants[constant].ty,
        }
    }

    fn local(&mut self, name: Name<'a>, ty: TypeId, locals: &mut Locals) -> Parse<ValueId> {
        let text = self.name_text(name)?;
        let id = match locals.values.get(name, &text) {
            Some(id) => {
                self.check_local(name, locals.body[id].ty, ty)?;
                id
            }
            None => locals.new_value(name, &text, ty, Mention { defined: false, span: self.current.span }),
        };
        self.advance();
        Ok(id)
    }

    fn check_local(&self, name: Name<'_>, known: TypeId, used: TypeId) -> Parse<()> {
        if known == used {
            return Ok(());
        }
        let types = &self.module.types;
        let (known, used) = (types.display(known), types.display(used));
        Err(self.error("type-mismatch", format!("`%{name}` has type `{known}` but is used as `{used}`")))
    }

    /// Defines a parameter or result. Without a name it gets the next number.
    pub(super) fn define_local(
        &mut self,
        name: Option<Name<'a>>,
        ty: TypeId,
        span: Span,
        locals: &mut Locals,
    ) -> Parse<ValueId> {
        let name = self.numbered(name, span, locals)?;
        let text = self.name_text(name)?;
        let mention = Mention { defined: true, span };
        match locals.values.get(name, &text) {
            None => Ok(locals.new_value(name, &text, ty, mention)),
            Some(id) if locals.value_mentions[id].defined => {
                let message = format!("`%{name}` is defined twice");
                Err(Box::new(Diagnostic::error("duplicate-name", message).at(span, "")))
            }
            Some(id) => {
                if locals.body[id].ty != ty {
                    let types = &self.module.types;
                    let (known, defined) = (types.display(locals.body[id].ty), types.display(ty));
                    let message = format!("`%{name}` has type `{defined}` but is used as `{known}`");
                    let used = locals.value_mentions[id].span;
                    let error = Diagnostic::error("type-mismatch", message).at(span, "");
                    return Err(Box::new(error.at(used, "used here")));
                }
                locals.value_mentions[id] = mention;
                Ok(id)
            }
        }
    }

    /// The name, or the next number. Numbers must ascend.
    fn numbered(&self, name: Option<Name<'a>>, span: Span, locals: &mut Locals) -> Parse<Name<'a>> {
        let name = name.unwrap_or(Name::Number(locals.next_number));
        if let Name::Number(number) = name {
            if number < locals.next_number || number == u32::MAX {
                let message = format!("the number {number} is out of order: {} is next", locals.next_number);
                return Err(Box::new(Diagnostic::error("ir-syntax", message).at(span, "")));
            }
            locals.next_number = number + 1;
        }
        Ok(name)
    }

    /// `label %name`
    pub(super) fn label(&mut self, locals: &mut Locals) -> Parse<BlockId> {
        self.word("label")?;
        self.block_name(locals)
    }

    /// `%name` where only a block can be.
    pub(super) fn block_name(&mut self, locals: &mut Locals) -> Parse<BlockId> {
        let Token::Local(name) = self.token() else {
            return Err(self.expected("a block", self.token()));
        };
        let text = self.name_text(name)?;
        let id = match locals.block_names.get(name, &text) {
            Some(id) => id,
            None => locals.new_block(name, &text, Mention { defined: false, span: self.current.span }),
        };
        self.advance();
        Ok(id)
    }

    /// Starts a block. Without a label it gets the next number.
    pub(super) fn start_block(
        &mut self,
        name: Option<Name<'a>>,
        span: Span,
        locals: &mut Locals,
    ) -> Parse<()> {
        let name = self.numbered(name, span, locals)?;
        let text = self.name_text(name)?;
        let mention = Mention { defined: true, span };
        let id = match locals.block_names.get(name, &text) {
            None => locals.new_block(name, &text, mention),
            Some(id) if locals.block_mentions[id].defined => {
                let message = format!("the block `{name}` is defined twice");
                return Err(Box::new(Diagnostic::error("duplicate-name", message).at(span, "")));
            }
            Some(id) => {
                locals.block_mentions[id] = mention;
                locals.blocks[id].span = span;
                id
            }
        };
        locals.order.push(id);
        Ok(())
    }

    /// Whether all values and blocks that were used are defined. Those that are not are reported.
    pub(super) fn check_locals(&mut self, locals: &Locals) -> bool {
        let mut complete = true;
        let values = locals.body.iter().zip(locals.value_mentions.iter());
        let values = values.map(|(value, mention)| ("value", &value.name, mention));
        let blocks = locals.blocks.iter().zip(locals.block_mentions.iter());
        let blocks = blocks.map(|(block, mention)| ("block", &block.name, mention));
        for (what, name, mention) in values.chain(blocks).filter(|(_, _, mention)| !mention.defined) {
            complete = false;
            let message = format!("the {what} `%{name}` is used but never defined");
            self.report.push(Diagnostic::error("undefined-name", message).at(mention.span, ""));
        }
        // Values and blocks share one space of names.
        for block in locals.blocks.iter() {
            if locals.values.get(Name::Plain(&block.name), &block.name).is_some()
                && locals.block_names.get(Name::Plain(&block.name), &block.name).is_some()
            {
                let message = format!("`%{}` is both a value and a block", block.name);
                self.report.push(Diagnostic::error("duplicate-name", message).at(block.span, ""));
            }
        }
        complete
    }
}
