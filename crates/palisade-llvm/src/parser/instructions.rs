//! Instructions that do not access memory.

use super::locals::Locals;
use super::{Parse, Parser};
use crate::debug::NodeId;
use crate::instructions::{BinaryOp, CastOp, FloatPredicate, Instruction, Op};
use crate::token::{Name, Token};
use crate::types::{Type, TypeId, Types};
use crate::values::Operand;
use palisade_base::Diagnostic;

/// What the attachments of an instruction say.
#[derive(Default)]
pub(super) struct Attachments {
    location: Option<NodeId>,
    nontemporal: bool,
    written: bool,
}

/// An operation and the type of its result.
type Parsed = (Op, TypeId);

impl<'a> Parser<'a> {
    /// One instruction. Returns whether it ends the block.
    pub(super) fn instruction(&mut self, locals: &mut Locals) -> Parse<bool> {
        let start = self.current.span;
        let result: Option<Name<'a>> = match self.token() {
            Token::Local(name) => {
                self.advance();
                self.sign(b'=')?;
                Some(name)
            }
            _ => None,
        };
        let Token::Word(opcode) = self.token() else {
            return Err(self.expected("an instruction", self.token()));
        };
        let (mut op, ty) = self.operation(opcode, locals)?;
        let attachments = self.attachments()?;
        if !self.current.starts_line
            && !matches!(self.token(), Token::Sign(b'}') | Token::Label(_) | Token::End)
        {
            return Err(self.unsupported(format!("{} at the end of an instruction", self.token())));
        }
        if let Op::Load { access, .. } | Op::Store { access, .. } = &mut op {
            access.nontemporal = attachments.nontemporal;
            access.written = attachments.written;
        }
        let location = attachments.location;
        let span = self.since(start);
        if self.debug_call(&op, location, locals) {
            return Ok(false);
        }
        let result = match (result, ty) {
            (Some(name), Types::VOID) => {
                let message = format!("`{opcode}` has no result to assign to `%{name}`");
                return Err(Box::new(Diagnostic::error("ir-syntax", message).at(start, "")));
            }
            (None, Types::VOID) => None,
            (name, ty) => Some(self.define_local(name, ty, start, locals)?),
        };
        let ends = op.is_terminator();
        locals.push(Instruction { op, result, ty, span, location });
        Ok(ends)
    }

    /// `, !dbg !5, !srcloc !6`
    fn attachments(&mut self) -> Parse<Attachments> {
        let mut attachments = Attachments::default();
        while self.at_sign(b',') {
            self.advance();
            match self.token() {
                // Relaxations of the memory model.
                Token::MetadataName("mmra") => return Err(self.unsupported("the attachment `!mmra`")),
                Token::MetadataName(name) => {
                    self.advance();
                    let node = self.metadata_node()?;
                    match name {
                        "dbg" => attachments.location = Some(node),
                        "nontemporal" => attachments.nontemporal = true,
                        "noundef" => attachments.written = true,
                        _ => {}
                    }
                }
                token => return Err(self.unsupported(format!("{token} at the end of an instruction"))),
            }
        }
        Ok(attachments)
    }

    fn operation(&mut self, opcode: &str, locals: &mut Locals) -> Parse<Parsed> {
        if let Some(op) = BinaryOp::of_word(opcode) {
            self.advance();
            return self.binary(op, locals);
        }
        if let Some(op) = CastOp::of_word(opcode) {
            self.advance();
            return self.cast(op, locals);
        }
        let parse: fn(&mut Self, &mut Locals) -> Parse<Parsed> = match opcode {
            "ret" => Self::ret,
            "br" => Self::br,
            "switch" => Self::switch,
            "indirectbr" => Self::indirect_branch,
            "unreachable" => |_, _| Ok((Op::Unreachable, Types::VOID)),
            "resume" => |parser, locals| {
                let (_, value) = parser.typed_operand(locals)?;
                Ok((Op::Resume(value), Types::VOID))
            },
            "call" | "tail" | "musttail" | "notail" => Self::call,
            "invoke" => Self::invoke,
            "callbr" => Self::call_branch,
            "alloca" => Self::alloca,
            "load" => Self::load,
            "store" => Self::store,
            "cmpxchg" => Self::compare_exchange,
            "atomicrmw" => Self::read_modify_write,
            "fence" => Self::fence,
            "getelementptr" => Self::get_element_ptr,
            "fneg" => |parser, locals| {
                parser.skip_fast_math();
                let (ty, value) = parser.typed_operand(locals)?;
                parser.check_float(ty)?;
                Ok((Op::FloatNegate(value), ty))
            },
            "icmp" => Self::compare,
            "fcmp" => Self::float_compare,
            "phi" => Self::phi,
            "select" => Self::select,
            "freeze" => |parser, locals| {
                let (ty, value) = parser.typed_operand(locals)?;
                Ok((Op::Freeze(value), ty))
            },
            "extractvalue" => Self::extract_value,
            "insertvalue" => Self::insert_value,
            "extractelement" => Self::extract_element,
            "insertelement" => Self::insert_element,
            "shufflevector" => Self::shuffle_vector,
            "va_arg" => Self::next_argument,
            "landingpad" => Self::landing_pad,
            _ => return Err(self.unsupported(format!("the instruction `{opcode}`"))),
        };
        // Calls read the word that may stand before `call` themselves.
        if !matches!(opcode, "tail" | "musttail" | "notail") {
            self.advance();
        }
        parse(self, locals)
    }

    /// `nnan ninf …`: promises about floats.
    pub(super) fn skip_fast_math(&mut self) {
        while matches!(
            self.token(),
            Token::Word("nnan" | "ninf" | "nsz" | "arcp" | "contract" | "afn" | "reassoc" | "fast")
        ) {
            self.advance();
        }
    }

    fn binary(&mut self, op: BinaryOp, locals: &mut Locals) -> Parse<Parsed> {
        if op.is_float() {
            self.skip_fast_math();
        }
        let flags = self.binary_flags(op)?;
        let (ty, left) = self.typed_operand(locals)?;
        self.check_binary(op, ty)?;
        self.sign(b',')?;
        let right = self.operand(ty, locals)?;
        Ok((Op::Binary { op, flags, left, right }, ty))
    }

    fn cast(&mut self, op: CastOp, locals: &mut Locals) -> Parse<Parsed> {
        self.skip_fast_math();
        let flags = self.flags();
        let (from, value) = self.typed_operand(locals)?;
        self.word("to")?;
        let to = self.ty()?;
        self.check_cast(op, from, to)?;
        Ok((Op::Cast { op, flags, value }, to))
    }

    fn ret(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let start = self.current.span;
        let ty = self.ty()?;
        if ty != locals.result {
            let types = &self.module.types;
            let (found, expected) = (types.display(ty), types.display(locals.result));
            let message = format!("a function that returns `{expected}` returns `{found}` here");
            return Err(Box::new(Diagnostic::error("type-mismatch", message).at(start, "")));
        }
        let value = match ty {
            Types::VOID => None,
            ty => Some(self.operand(ty, locals)?),
        };
        Ok((Op::Return(value), Types::VOID))
    }

    fn br(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        if self.token() == Token::Word("label") {
            return Ok((Op::Branch(self.label(locals)?), Types::VOID));
        }
        let (ty, condition) = self.typed_operand(locals)?;
        self.same_type(ty, Types::I1)?;
        self.sign(b',')?;
        let then = self.label(locals)?;
        self.sign(b',')?;
        let otherwise = self.label(locals)?;
        Ok((Op::BranchIf { condition, then, otherwise }, Types::VOID))
    }

    fn switch(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (ty, value) = self.typed_operand(locals)?;
        self.check_integer(ty)?;
        self.sign(b',')?;
        let default = self.label(locals)?;
        self.sign(b'[')?;
        let mut cases = Vec::new();
        while !self.eat_sign(b']') {
            let case = self.typed_constant()?;
            self.same_type(self.module.constants[case].ty, ty)?;
            self.sign(b',')?;
            cases.push((case, self.label(locals)?));
        }
        Ok((Op::Switch { value, default, cases: cases.into() }, Types::VOID))
    }

    fn indirect_branch(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let address = self.pointer_operand(locals)?;
        self.sign(b',')?;
        let targets = self.labels(locals)?;
        Ok((Op::IndirectBranch { address, targets }, Types::VOID))
    }

    /// `[label %a, label %b]`
    pub(super) fn labels(&mut self, locals: &mut Locals) -> Parse<Box<[crate::module::BlockId]>> {
        self.sign(b'[')?;
        let mut labels = Vec::new();
        while !self.at_sign(b']') {
            labels.push(self.label(locals)?);
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b']')?;
        Ok(labels.into())
    }

    fn compare(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let flags = self.flags();
        let predicate = self.int_predicate()?;
        let (ty, left) = self.typed_operand(locals)?;
        self.check_compare(ty)?;
        self.sign(b',')?;
        let right = self.operand(ty, locals)?;
        let result = self.compare_type(ty)?;
        Ok((Op::Compare { predicate, flags, left, right }, result))
    }

    fn float_compare(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        self.skip_fast_math();
        let found = match self.token() {
            Token::Word(word) => FloatPredicate::of_word(word),
            _ => None,
        };
        let Some(predicate) = found else {
            return Err(self.unsupported(format!("the comparison {}", self.token())));
        };
        self.advance();
        let (ty, left) = self.typed_operand(locals)?;
        self.check_float(ty)?;
        self.sign(b',')?;
        let right = self.operand(ty, locals)?;
        let result = self.compare_type(ty)?;
        Ok((Op::FloatCompare { predicate, left, right }, result))
    }

    fn phi(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        self.skip_fast_math();
        let ty = self.ty()?;
        let mut incoming = Vec::new();
        loop {
            self.sign(b'[')?;
            let value = self.operand(ty, locals)?;
            self.sign(b',')?;
            let from = self.block_name(locals)?;
            self.sign(b']')?;
            incoming.push((value, from));
            if !self.eat_comma() {
                break;
            }
        }
        Ok((Op::Phi(incoming.into()), ty))
    }

    fn select(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        self.skip_fast_math();
        let (condition_type, condition) = self.typed_operand(locals)?;
        self.sign(b',')?;
        let (ty, yes) = self.typed_operand(locals)?;
        self.sign(b',')?;
        let (other, no) = self.typed_operand(locals)?;
        self.same_type(other, ty)?;
        self.check_condition(condition_type, ty)?;
        Ok((Op::Select { condition, yes, no }, ty))
    }

    /// The indices of `extractvalue` and the type they lead to.
    fn value_path(&mut self, aggregate: TypeId) -> Parse<(Box<[u32]>, TypeId)> {
        let mut indices = Vec::new();
        let mut ty = aggregate;
        while self.eat_comma() {
            let index: u32 = self.number("an index")?;
            let part = match self.module.types.body(ty) {
                Type::Struct { .. } | Type::Array { .. } => self.module.types.element(ty, u64::from(index)),
                _ => None,
            };
            let Some(part) = part else {
                let message = format!("`{}` has no element {index}", self.module.types.display(ty));
                return Err(Box::new(Diagnostic::error("type-mismatch", message).at(self.last_span(), "")));
            };
            indices.push(index);
            ty = part;
        }
        match indices.is_empty() {
            true => Err(self.expected("an index", self.token())),
            false => Ok((indices.into(), ty)),
        }
    }

    fn extract_value(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (ty, aggregate) = self.typed_operand(locals)?;
        let (indices, part) = self.value_path(ty)?;
        Ok((Op::ExtractValue { aggregate, indices }, part))
    }

    fn insert_value(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (ty, aggregate) = self.typed_operand(locals)?;
        self.sign(b',')?;
        let (value_type, value) = self.typed_operand(locals)?;
        let (indices, part) = self.value_path(ty)?;
        self.same_type(value_type, part)?;
        Ok((Op::InsertValue { aggregate, value, indices }, ty))
    }

    /// A vector operand, its type and the type of its elements.
    fn vector_operand(&mut self, locals: &mut Locals) -> Parse<(TypeId, TypeId, Operand)> {
        let (ty, vector) = self.typed_operand(locals)?;
        match self.module.types.get(ty) {
            Type::Vector { element, .. } => Ok((ty, *element, vector)),
            _ => Err(self.wrong_operand(ty, "a vector")),
        }
    }

    fn extract_element(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (_, element, vector) = self.vector_operand(locals)?;
        self.sign(b',')?;
        let (index_type, index) = self.typed_operand(locals)?;
        self.check_integer(index_type)?;
        Ok((Op::ExtractElement { vector, index }, element))
    }

    fn insert_element(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (ty, element, vector) = self.vector_operand(locals)?;
        self.sign(b',')?;
        let (value_type, value) = self.typed_operand(locals)?;
        self.same_type(value_type, element)?;
        self.sign(b',')?;
        let (index_type, index) = self.typed_operand(locals)?;
        self.check_integer(index_type)?;
        Ok((Op::InsertElement { vector, value, index }, ty))
    }

    fn shuffle_vector(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (ty, element, left) = self.vector_operand(locals)?;
        self.sign(b',')?;
        let (other, right) = self.typed_operand(locals)?;
        self.same_type(other, ty)?;
        self.sign(b',')?;
        let (mask_type, mask) = self.typed_operand(locals)?;
        let Type::Vector { length, scalable, .. } = *self.module.types.get(mask_type) else {
            return Err(self.wrong_operand(mask_type, "a vector"));
        };
        let result = self.type_id(Type::Vector { element, length, scalable })?;
        Ok((Op::ShuffleVector { left, right, mask }, result))
    }

    fn next_argument(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let list = self.pointer_operand(locals)?;
        self.sign(b',')?;
        let ty = self.ty()?;
        Ok((Op::NextArgument { list }, ty))
    }

    fn landing_pad(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let ty = self.ty()?;
        let cleanup = self.eat_word("cleanup");
        let mut clauses = Vec::new();
        while let Token::Word("catch" | "filter") = self.token() {
            self.advance();
            clauses.push(self.typed_operand(locals)?.1);
        }
        Ok((Op::LandingPad { cleanup, clauses: clauses.into() }, ty))
    }
}
