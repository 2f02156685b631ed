//! Functions: their headings and bodies.

use super::attributes::FoundAttributes;
use super::constants::is_value_word;
use super::globals::Heading;
use super::locals::Locals;
use super::types::is_type_word;
use super::{Parse, Parser};
use crate::module::{Function, Parameter, SymbolKind};
use crate::token::{Name, Token};
use crate::types::{Type, TypeId, Types};
use palisade_base::{Diagnostic, Span};

/// Attributes of results. Another word before the type of a function could be anything, so it is rejected.
fn is_result_attribute(word: &str) -> bool {
    matches!(
        word,
        "zeroext" | "signext" | "noext" | "inreg" | "noalias" | "nonnull" | "noundef" | "align" | "returned"
    )
}

/// Calling conventions: they decide where arguments are passed, not which.
fn is_calling_convention(word: &str) -> bool {
    word == "cc"
        || word.strip_prefix("cc").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        || (word.ends_with("cc") && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        || matches!(word, "ghccc" | "anyregcc" | "preserve_mostcc" | "preserve_allcc" | "preserve_nonecc")
}

impl<'a> Parser<'a> {
    /// `declare …`
    pub(super) fn declare(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        let mut subprogram = None;
        while let Token::MetadataName(name) = self.token() {
            self.advance();
            let node = self.metadata_node()?;
            subprogram = (name == "dbg").then_some(node).or(subprogram);
        }
        let (mut function, _) = self.function_heading(start, false)?;
        function.subprogram = function.subprogram.or(subprogram);
        self.add_function(function, start)
    }

    /// `define …`
    pub(super) fn define(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        let (mut function, mut locals) = self.function_heading(start, true)?;
        self.sign(b'{')?;
        self.body(&mut locals)?;
        if locals.failed {
            // The symbol counts as defined, so that its uses are not reported too.
            let symbol = function.symbol;
            self.symbol_mentions[symbol].defined = true;
            return Ok(());
        }
        if self.check_locals(&locals) {
            let body = locals.finish();
            self.check_dominance(&body);
            function.body = Some(body);
        }
        self.add_function(function, start)
    }

    fn add_function(&mut self, function: Function, span: Span) -> Parse<()> {
        let symbol = function.symbol;
        let id = self.module.functions.push(function);
        self.define_symbol(symbol, SymbolKind::Function(id), span)
    }

    /// The attributes and the calling convention before the type of a function.
    fn result_attributes(&mut self) -> Parse<()> {
        loop {
            match self.token() {
                Token::Word(word) if is_type_word(word) => return Ok(()),
                Token::Word("cc") => {
                    self.advance();
                    self.number::<u32>("the number of a calling convention")?;
                }
                // A word with arguments can only be an attribute.
                Token::Word(word) if is_result_attribute(word) || self.peek() == Token::Sign(b'(') => {
                    self.skip_attribute()?;
                }
                Token::Word(word) if is_calling_convention(word) => self.advance(),
                Token::Word(word) => {
                    return Err(self.unsupported(format!("`{word}` in the heading of a function")));
                }
                Token::Text(_) => self.skip_attribute()?,
                _ => return Ok(()),
            }
        }
    }

    fn function_heading(&mut self, start: Span, define: bool) -> Parse<(Function, Locals)> {
        let Heading { linkage, .. } = self.heading()?;
        self.result_attributes()?;
        let result = self.ty_without_parameters()?;
        let mut locals = Locals::new(result);
        let Token::Global(name) = self.token() else {
            return Err(self.expected("the name of a function", self.token()));
        };
        let symbol = self.symbol(name)?;
        self.advance();
        let (parameters, variadic) = self.parameters(define, &mut locals)?;
        let types: Box<[TypeId]> = parameters.iter().map(|parameter| parameter.ty).collect();
        let ty = self.type_id(Type::Function { result, parameters: types, variadic })?;
        let mut function = Function {
            symbol,
            ty,
            linkage: linkage.unwrap_or_default(),
            parameters,
            attributes: Default::default(),
            personality: None,
            span: self.since(start),
            subprogram: None,
            body: None,
        };
        self.function_properties(&mut function)?;
        Ok((function, locals))
    }

    /// The type of a result. `i32 @f(` is not a function type, since the name comes before the parameters.
    fn ty_without_parameters(&mut self) -> Parse<TypeId> {
        let ty = self.ty()?;
        if matches!(self.module.types.get(ty), Type::Function { .. } | Type::Label | Type::Metadata) {
            let shown = self.module.types.display(ty);
            return Err(self.error("type-mismatch", format!("a function cannot return `{shown}`")));
        }
        Ok(ty)
    }

    fn parameters(&mut self, define: bool, locals: &mut Locals) -> Parse<(Vec<Parameter>, bool)> {
        self.sign(b'(')?;
        let mut parameters = Vec::new();
        let mut variadic = false;
        while !self.at_sign(b')') {
            if self.token() == Token::Ellipsis {
                self.advance();
                variadic = true;
                break;
            }
            let span = self.current.span;
            let ty = self.ty()?;
            if ty == Types::VOID || matches!(self.module.types.get(ty), Type::Function { .. }) {
                let shown = self.module.types.display(ty);
                return Err(self.error("type-mismatch", format!("a parameter cannot have type `{shown}`")));
            }
            let passing = self.passing()?;
            let name = match self.token() {
                Token::Local(name) => {
                    self.advance();
                    Some(name)
                }
                Token::Word(word) if is_value_word(word) => {
                    return Err(self.expected("a parameter", Token::Word(word)));
                }
                _ => None,
            };
            let value = match define {
                true => Some(self.define_local(name, ty, span, locals)?),
                false => None,
            };
            parameters.push(Parameter { value, ty, passing });
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b')')?;
        Ok((parameters, variadic))
    }

    /// Everything between the parameters and the body.
    fn function_properties(&mut self, function: &mut Function) -> Parse<()> {
        let mut found = FoundAttributes::default();
        loop {
            match self.token() {
                // What starts a line belongs to the next item.
                _ if self.current.starts_line && !self.at_sign(b'{') => break,
                Token::Word("unnamed_addr" | "local_unnamed_addr") => self.advance(),
                Token::Word("addrspace") => {
                    if self.address_space()? != 0 {
                        return Err(self.unsupported("a function in another address space"));
                    }
                }
                Token::Word("section" | "partition") => {
                    self.advance();
                    self.text("a name")?;
                }
                Token::Word("comdat") => self.comdat()?,
                Token::Word("personality") => {
                    self.advance();
                    function.personality = Some(self.typed_constant()?);
                }
                Token::Word("prefix") => {
                    // Data before the function, which is not executed.
                    self.advance();
                    self.typed_constant()?;
                }
                Token::Word("gc" | "prologue") => {
                    return Err(self.unsupported(format!("{} in the heading of a function", self.token())));
                }
                Token::MetadataName(name) => {
                    self.advance();
                    let node = self.metadata_node()?;
                    if name == "dbg" {
                        function.subprogram = Some(node);
                    }
                }
                _ if self.function_attribute(&mut found)? => {}
                _ => break,
            }
        }
        function.attributes = found.into();
        Ok(())
    }

    /// The blocks of a function, up to the closing brace. Errors in instructions are reported here; parsing
    /// continues at the next line.
    fn body(&mut self, locals: &mut Locals) -> Parse<()> {
        if self.at_sign(b'}') {
            return Err(self.expected("an instruction", self.token()));
        }
        loop {
            match self.token() {
                Token::Sign(b'}') => {
                    self.advance();
                    return Ok(());
                }
                Token::End => return Err(self.expected("`}` at the end of the function", Token::End)),
                Token::Word("uselistorder" | "uselistorder_bb") => self.use_list_order()?,
                _ => {
                    if let Err(error) = self.block(locals) {
                        self.report_instruction(*error, locals);
                    }
                }
            }
        }
    }

    fn block(&mut self, locals: &mut Locals) -> Parse<()> {
        let span = self.current.span;
        let name: Option<Name<'a>> = match self.token() {
            Token::Label(name) => {
                self.advance();
                Some(name)
            }
            _ => None,
        };
        self.start_block(name, span, locals)?;
        loop {
            match self.token() {
                Token::Record(_) => {
                    if let Err(error) = self.debug_record(locals) {
                        self.report_instruction(*error, locals);
                    }
                    continue;
                }
                Token::Label(_) | Token::Sign(b'}') | Token::End if locals.failed => return Ok(()),
                Token::Label(_) | Token::Sign(b'}') | Token::End => {
                    locals.failed = true;
                    let token = self.token();
                    return Err(self.expected("an instruction that ends the block", token));
                }
                _ => {}
            }
            match self.instruction(locals) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => self.report_instruction(*error, locals),
            }
        }
    }

    /// Reports an error in an instruction and skips to the next line. If the instruction says where it comes
    /// from in the source program, so does the error.
    fn report_instruction(&mut self, error: Diagnostic, locals: &mut Locals) {
        locals.failed = true;
        let mut location = None;
        let mut brackets = 0_usize;
        let mut first = !matches!(self.token(), Token::Label(_) | Token::Sign(b'}'));
        loop {
            if self.current.starts_line && !first && brackets == 0 && !self.continues_instruction() {
                break;
            }
            first = false;
            match self.token() {
                Token::End => break,
                Token::Sign(b'[') => brackets += 1,
                Token::Sign(b']') => brackets = brackets.saturating_sub(1),
                Token::MetadataName("dbg") => {
                    if let Token::MetadataNode(_) = self.peek() {
                        self.advance();
                        location = self.metadata_node().ok();
                        continue;
                    }
                }
                // A brace at the start of a line ends the function, whatever was open.
                Token::Sign(b'}') if self.current.starts_line => break,
                _ => {}
            }
            self.advance();
        }
        self.report.push_from(error, location);
    }

    /// Whether the line that starts here belongs to the instruction before it.
    fn continues_instruction(&self) -> bool {
        match self.token() {
            Token::Word("to" | "unwind" | "catch" | "cleanup" | "filter") | Token::Sign(b']') => true,
            Token::Word(word) => is_type_word(word),
            _ => false,
        }
    }
}
