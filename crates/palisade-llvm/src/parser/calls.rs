//! Calls and inline assembly.

use super::attributes::FoundAttributes;
use super::locals::Locals;
use super::types::is_type_word;
use super::{Parse, Parser};
use crate::calls::{Argument, ArgumentValue, Assembly, Bundle, Call, Callee, Passing};
use crate::instructions::Op;
use crate::lexer::{Lexed, Lexer};
use crate::token::Token;
use crate::types::{Type, TypeId, Types};

type Parsed = (Op, TypeId);

/// A place in the text to which the parser can go back.
#[derive(Clone, Copy)]
struct Checkpoint<'a> {
    lexer: Lexer<'a>,
    current: Lexed<'a>,
    last_end: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn call(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        // These words say whether the caller's frame may be reused, which no result depends on.
        if let Token::Word("tail" | "musttail" | "notail") = self.token() {
            self.advance();
            self.word("call")?;
        }
        let (call, result) = self.call_parts(locals)?;
        Ok((Op::Call(Box::new(call)), result))
    }

    pub(super) fn invoke(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (call, result) = self.call_parts(locals)?;
        self.word("to")?;
        let normal = self.label(locals)?;
        self.word("unwind")?;
        let unwind = self.label(locals)?;
        Ok((Op::Invoke { call: Box::new(call), normal, unwind }, result))
    }

    pub(super) fn call_branch(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let (call, result) = self.call_parts(locals)?;
        self.word("to")?;
        let fallthrough = self.label(locals)?;
        let targets = self.labels(locals)?;
        Ok((Op::CallBranch { call: Box::new(call), fallthrough, targets }, result))
    }

    /// A call and the type of its result.
    fn call_parts(&mut self, locals: &mut Locals) -> Parse<(Call, TypeId)> {
        self.call_words()?;
        let written = self.ty()?;
        let callee_start = self.checkpoint();
        let assembly = self.skip_callee()?;
        let arguments_span = self.current.span;
        let (arguments, types) = self.arguments(locals)?;
        let ty = match *self.module.types.get(written) {
            Type::Function { .. } => written,
            _ => self.type_id(Type::Function {
                result: written,
                parameters: types.clone().into(),
                variadic: false,
            })?,
        };
        let Type::Function { result, parameters, variadic } = self.module.types.get(ty) else {
            unreachable!("the type was just made")
        };
        let result = *result;
        let fits = match variadic {
            true => types.starts_with(parameters),
            false => types[..] == parameters[..],
        };
        if !fits {
            let message = format!("the arguments do not fit `{}`", self.module.types.display(ty));
            return Err(Box::new(
                palisade_base::Diagnostic::error("type-mismatch", message).at(arguments_span, ""),
            ));
        }
        let after = self.checkpoint();
        let callee = match assembly {
            Some(assembly) => Callee::Assembly(Box::new(assembly)),
            None => {
                self.go_to(callee_start);
                let pointer = self.pointer_to(ty)?;
                let callee = self.operand(pointer, locals)?;
                self.go_to(after);
                Callee::Value(callee)
            }
        };
        let mut found = FoundAttributes::default();
        while !self.ends_attributes() && self.function_attribute(&mut found)? {}
        let bundles = self.bundles(locals)?;
        let call = Call { callee, ty, arguments, attributes: found.into(), bundles };
        Ok((call, result))
    }

    fn checkpoint(&self) -> Checkpoint<'a> {
        Checkpoint { lexer: self.lexer, current: self.current, last_end: self.last_end }
    }

    fn go_to(&mut self, checkpoint: Checkpoint<'a>) {
        self.lexer = checkpoint.lexer;
        self.current = checkpoint.current;
        self.last_end = checkpoint.last_end;
    }

    /// What stands between `call` and the type: promises about floats, the calling convention, attributes of
    /// the result.
    fn call_words(&mut self) -> Parse<()> {
        loop {
            match self.token() {
                Token::Word(word) if is_type_word(word) => return Ok(()),
                Token::Word("cc") => {
                    self.advance();
                    self.number::<u32>("the number of a calling convention")?;
                }
                Token::Word("addrspace") => {
                    if self.address_space()? != 0 {
                        return Err(self.unsupported("a call into another address space"));
                    }
                }
                Token::Word(_) | Token::Text(_) => self.skip_attribute()?,
                _ => return Ok(()),
            }
        }
    }

    /// Skips the callee. Assembly is read at once, since it has no type.
    fn skip_callee(&mut self) -> Parse<Option<Assembly>> {
        match self.token() {
            Token::Word("asm") => self.assembly().map(Some),
            Token::Local(_) | Token::Global(_) => {
                self.advance();
                Ok(None)
            }
            Token::Word("null" | "undef" | "poison") => {
                self.advance();
                Ok(None)
            }
            Token::Word(_) => {
                while let Token::Word(_) = self.token() {
                    self.advance();
                }
                match self.at_sign(b'(') {
                    true => self.skip_brackets().map(|()| None),
                    false => Err(self.expected("a function", self.token())),
                }
            }
            token => Err(self.expected("a function", token)),
        }
    }

    /// `asm sideeffect "mfence", "~{memory}"`
    fn assembly(&mut self) -> Parse<Assembly> {
        self.advance();
        let (mut side_effects, mut intel) = (false, false);
        while let Token::Word(word) = self.token() {
            match word {
                "sideeffect" => side_effects = true,
                "inteldialect" => intel = true,
                "alignstack" => {}
                _ => return Err(self.unsupported(format!("`asm` with `{word}`"))),
            }
            self.advance();
        }
        let template = self.text("assembly in quotes")?;
        self.sign(b',')?;
        let constraints = self.text("constraints in quotes")?;
        Ok(Assembly { template, constraints, side_effects, intel })
    }

    fn arguments(&mut self, locals: &mut Locals) -> Parse<(Box<[Argument]>, Vec<TypeId>)> {
        self.sign(b'(')?;
        let mut arguments = Vec::new();
        let mut types = Vec::new();
        while !self.at_sign(b')') {
            let ty = self.ty()?;
            let passing = match ty {
                Types::METADATA => Passing::default(),
                _ => self.passing()?,
            };
            let value = match ty {
                Types::METADATA => self.metadata_argument(locals)?,
                _ if !self.module.types.is_first_class(ty) => {
                    return Err(self.wrong_operand(ty, "the type of an argument"));
                }
                _ => ArgumentValue::Operand(self.operand(ty, locals)?),
            };
            types.push(ty);
            arguments.push(Argument { value, passing });
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b')')?;
        Ok((arguments.into(), types))
    }

    /// Whether the attributes of a call end here: at the next line, or where the targets of an `invoke`
    /// follow.
    fn ends_attributes(&self) -> bool {
        self.current.starts_line || self.token() == Token::Word("to")
    }

    /// `[ "tag"(i32 1) ]`
    fn bundles(&mut self, locals: &mut Locals) -> Parse<Box<[Bundle]>> {
        let mut bundles = Vec::new();
        if self.eat_sign(b'[') {
            while !self.at_sign(b']') {
                let tag = self.text("the tag of an operand bundle")?;
                self.sign(b'(')?;
                let mut operands = Vec::new();
                while !self.at_sign(b')') {
                    operands.push(self.typed_operand(locals)?.1);
                    if !self.eat_sign(b',') {
                        break;
                    }
                }
                self.sign(b')')?;
                bundles.push(Bundle { tag, operands: operands.into() });
                if !self.eat_sign(b',') {
                    break;
                }
            }
            self.sign(b']')?;
        }
        Ok(bundles.into())
    }
}
