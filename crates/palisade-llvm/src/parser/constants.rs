//! Constants and constant expressions.

use super::{BlockAddress, Mention, Parse, Parser};
use crate::instructions::{BinaryOp, CastOp, Flags, IntPredicate};
use crate::module::{AliasId, Symbol, SymbolId, SymbolKind};
use crate::token::{Name, Token, shorten, unescape};
use crate::types::{Type, TypeId, Types};
use crate::values::{Constant, ConstantId, ConstantKind, Expression, integer_bits};
use palisade_base::Diagnostic;

/// Whether a constant starts with this word. In an argument, all other words are attributes.
pub(super) fn is_value_word(word: &str) -> bool {
    matches!(
        word,
        "null"
            | "undef"
            | "poison"
            | "zeroinitializer"
            | "true"
            | "false"
            | "none"
            | "splat"
            | "getelementptr"
            | "icmp"
            | "fcmp"
            | "select"
            | "blockaddress"
            | "dso_local_equivalent"
            | "no_cfi"
            | "ptrauth"
            | "extractelement"
            | "insertelement"
            | "shufflevector"
            | "extractvalue"
            | "insertvalue"
            | "vscale"
            | "fneg"
            | "asm"
    ) || CastOp::of_word(word).is_some()
        || BinaryOp::of_word(word).is_some()
}

impl<'a> Parser<'a> {
    pub(super) fn push_constant(&mut self, ty: TypeId, kind: ConstantKind) -> ConstantId {
        self.module.constants.push(Constant { ty, kind })
    }

    /// A type and a constant of it.
    pub(super) fn typed_constant(&mut self) -> Parse<ConstantId> {
        let ty = self.ty()?;
        self.constant(ty)
    }

    /// A constant of a type.
    pub(super) fn constant(&mut self, ty: TypeId) -> Parse<ConstantId> {
        self.nested(|parser| {
            let kind = parser.constant_kind(ty)?;
            Ok(parser.push_constant(ty, kind))
        })
    }

    /// The error for a constant that cannot have this type.
    fn wrong_constant(&self, ty: TypeId) -> Box<Diagnostic> {
        let message = format!("{} is not a value of type `{}`", self.token(), self.module.types.display(ty));
        self.error("type-mismatch", message)
    }

    fn constant_kind(&mut self, ty: TypeId) -> Parse<ConstantKind> {
        let types = &self.module.types;
        let token = self.token();
        match token {
            Token::Integer(text) => self.integer(text, ty),
            Token::Float(text) => match types.get(ty) {
                Type::Float(_) => {
                    self.advance();
                    Ok(ConstantKind::Float(text.into()))
                }
                _ => Err(self.wrong_constant(ty)),
            },
            Token::Bytes(raw) => self.bytes(raw, ty),
            Token::Global(name) => {
                if !types.is_pointer(ty) {
                    return Err(self.wrong_constant(ty));
                }
                let symbol = self.symbol(name)?;
                self.note_symbol_use(symbol, ty);
                self.advance();
                Ok(ConstantKind::Symbol(symbol))
            }
            Token::Sign(b'[') => self.aggregate(ty, b'[', b']'),
            Token::Sign(b'{') => self.aggregate(ty, b'{', b'}'),
            Token::Sign(b'<') => {
                if self.peek() != Token::Sign(b'{') {
                    return self.aggregate(ty, b'<', b'>');
                }
                self.advance();
                let kind = self.aggregate(ty, b'{', b'}')?;
                self.sign(b'>')?;
                Ok(kind)
            }
            Token::Word(word) => self.constant_word(word, ty),
            Token::Local(_) => Err(self.error("ir-syntax", format!("expected a constant, found {token}"))),
            token => Err(self.expected("a value", token)),
        }
    }

    fn integer(&mut self, text: &str, ty: TypeId) -> Parse<ConstantKind> {
        let Some(bits) = self.module.types.integer_bits(ty) else { return Err(self.wrong_constant(ty)) };
        let (negative, digits, radix) = match (text.strip_prefix('-'), text.strip_prefix("u0x")) {
            (Some(digits), _) => (true, digits, 10),
            (None, Some(digits)) => (false, digits, 16),
            (None, None) => (false, text.strip_prefix('+').unwrap_or(text), 10),
        };
        if text.starts_with('s') {
            return Err(self.unsupported("a signed number in hexadecimal"));
        }
        let value = u128::from_str_radix(digits, radix).ok();
        match value.and_then(|value| integer_bits(bits, negative, value)) {
            Some(value) => {
                self.advance();
                Ok(ConstantKind::Integer(value))
            }
            None if bits > 128 => {
                Err(self
                    .unsupported(format!("the number `{}`, which has more than 128 bits,", shorten(text))))
            }
            None => Err(self.error("ir-number", format!("`{}` does not fit into i{bits}", shorten(text)))),
        }
    }

    /// `c"text"`
    fn bytes(&mut self, raw: &str, ty: TypeId) -> Parse<ConstantKind> {
        let bytes = unescape(raw);
        let fits = match self.module.types.get(ty) {
            Type::Array { element, length } => *element == Types::I8 && *length == bytes.len() as u64,
            _ => false,
        };
        if !fits {
            let shown = self.module.types.display(ty);
            let message = format!("these {} bytes are not a value of type `{shown}`", bytes.len());
            return Err(self.error("type-mismatch", message));
        }
        self.advance();
        Ok(ConstantKind::Bytes(bytes.into()))
    }

    /// The elements of an array, struct or vector.
    fn aggregate(&mut self, ty: TypeId, open: u8, close: u8) -> Parse<ConstantKind> {
        let start = self.current.span;
        let wrong = |parser: &Self| {
            let shown = parser.module.types.display(ty);
            let message = format!("these elements are not a value of type `{shown}`");
            Box::new(Diagnostic::error("type-mismatch", message).at(parser.since(start), ""))
        };
        let length = match (self.module.types.body(ty), open) {
            (Type::Array { length, .. }, b'[') => *length,
            (Type::Vector { length, scalable: false, .. }, b'<') => *length,
            (Type::Struct { fields, .. }, b'{') => fields.len() as u64,
            (Type::Named(_), b'{') => return Err(self.undefined_struct(ty)),
            _ => return Err(wrong(self)),
        };
        self.sign(open)?;
        let mut elements = Vec::new();
        while !self.at_sign(close) {
            let element = self.typed_constant()?;
            if self.module.types.element(ty, elements.len() as u64) != Some(self.module.constants[element].ty)
            {
                return Err(wrong(self));
            }
            elements.push(element);
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(close)?;
        if elements.len() as u64 != length {
            return Err(wrong(self));
        }
        Ok(ConstantKind::Aggregate(elements.into()))
    }

    /// LLVM writes types before the values that use them.
    fn undefined_struct(&self, ty: TypeId) -> Box<Diagnostic> {
        let shown = self.module.types.display(ty);
        self.error("type-mismatch", format!("the struct `{shown}` has no known fields here"))
    }

    fn constant_word(&mut self, word: &str, ty: TypeId) -> Parse<ConstantKind> {
        let types = &self.module.types;
        let simple = match word {
            "true" | "false" if ty == Types::I1 => ConstantKind::Integer(u128::from(word == "true")),
            "null" if types.is_pointer(ty) => ConstantKind::Null,
            "none" if ty == Types::TOKEN => ConstantKind::NoToken,
            "undef" if types.is_first_class(ty) => ConstantKind::Undef,
            "poison" if types.is_first_class(ty) => ConstantKind::Poison,
            "zeroinitializer" if types.is_first_class(ty) => ConstantKind::Zero,
            "true" | "false" | "null" | "none" | "undef" | "poison" | "zeroinitializer" => {
                return Err(self.wrong_constant(ty));
            }
            _ => return self.constant_expression(word, ty),
        };
        self.advance();
        Ok(simple)
    }

    fn constant_expression(&mut self, word: &str, ty: TypeId) -> Parse<ConstantKind> {
        if let Some(op) = CastOp::of_word(word) {
            self.advance();
            self.flags();
            self.sign(b'(')?;
            let value = self.typed_constant()?;
            self.word("to")?;
            let to = self.ty()?;
            self.same_type(to, ty)?;
            self.check_cast(op, self.module.constants[value].ty, to)?;
            self.sign(b')')?;
            return Ok(ConstantKind::Expression(Expression::Cast { op, value }));
        }
        if let Some(op) = BinaryOp::of_word(word) {
            self.advance();
            let flags = self.binary_flags(op)?;
            self.sign(b'(')?;
            let left = self.typed_constant()?;
            self.sign(b',')?;
            let right = self.typed_constant()?;
            self.same_type(self.module.constants[left].ty, ty)?;
            self.same_type(self.module.constants[right].ty, ty)?;
            self.check_binary(op, ty)?;
            self.sign(b')')?;
            return Ok(ConstantKind::Expression(Expression::Binary { op, flags, left, right }));
        }
        match word {
            "getelementptr" => self.constant_element(ty),
            "icmp" => {
                self.advance();
                let predicate = self.int_predicate()?;
                self.sign(b'(')?;
                let left = self.typed_constant()?;
                self.sign(b',')?;
                let right = self.typed_constant()?;
                let operands = self.module.constants[left].ty;
                self.same_type(self.module.constants[right].ty, operands)?;
                self.check_compare(operands)?;
                let result = self.compare_type(operands)?;
                self.same_type(result, ty)?;
                self.sign(b')')?;
                Ok(ConstantKind::Expression(Expression::Compare { predicate, left, right }))
            }
            "select" => {
                self.advance();
                self.sign(b'(')?;
                let condition = self.typed_constant()?;
                self.sign(b',')?;
                let yes = self.typed_constant()?;
                self.sign(b',')?;
                let no = self.typed_constant()?;
                self.same_type(self.module.constants[yes].ty, ty)?;
                self.same_type(self.module.constants[no].ty, ty)?;
                self.check_condition(self.module.constants[condition].ty, ty)?;
                self.sign(b')')?;
                Ok(ConstantKind::Expression(Expression::Select { condition, yes, no }))
            }
            "splat" => {
                let Type::Vector { element, .. } = *self.module.types.get(ty) else {
                    return Err(self.wrong_constant(ty));
                };
                self.advance();
                self.sign(b'(')?;
                let value = self.typed_constant()?;
                self.same_type(self.module.constants[value].ty, element)?;
                self.sign(b')')?;
                Ok(ConstantKind::Splat(value))
            }
            "blockaddress" => self.block_address(ty),
            _ => Err(self.unsupported(format!("the constant `{word}`"))),
        }
    }

    /// `getelementptr inbounds (i32, ptr @x, i64 1)`
    fn constant_element(&mut self, ty: TypeId) -> Parse<ConstantKind> {
        self.advance();
        let mut flags = self.flags();
        if self.eat_word("inrange") {
            // A promise that the rest of the object is not accessed.
            self.skip_brackets()?;
            flags.add(self.flags());
        }
        self.sign(b'(')?;
        let source = self.ty()?;
        self.sign(b',')?;
        let base = self.typed_constant()?;
        let mut indices = Vec::new();
        while self.eat_sign(b',') {
            self.eat_word("inrange");
            indices.push(self.typed_constant()?);
        }
        let index_types: Vec<TypeId> = indices.iter().map(|&index| self.module.constants[index].ty).collect();
        let constants: Vec<Option<ConstantId>> = indices.iter().copied().map(Some).collect();
        let result =
            self.element_pointer(source, self.module.constants[base].ty, &index_types, &constants)?;
        self.same_type(result, ty)?;
        self.sign(b')')?;
        let indices = indices.into();
        Ok(ConstantKind::Expression(Expression::GetElementPtr { source, base, indices, flags }))
    }

    /// `blockaddress(@f, %block)`. Where the block is turns out at the end.
    fn block_address(&mut self, ty: TypeId) -> Parse<ConstantKind> {
        let span = self.current.span;
        if !self.module.types.is_pointer(ty) {
            return Err(self.wrong_constant(ty));
        }
        self.advance();
        self.sign(b'(')?;
        let Token::Global(name) = self.token() else {
            return Err(self.expected("a function", self.token()));
        };
        let function = self.symbol(name)?;
        self.advance();
        self.sign(b',')?;
        let Token::Local(name) = self.token() else {
            return Err(self.expected("a block", self.token()));
        };
        let block = self.name_text(name)?.into();
        self.advance();
        self.sign(b')')?;
        // The caller pushes the constant next.
        let constant = ConstantId(self.module.constants.len() as u32);
        self.block_addresses.push(BlockAddress { constant, function, block, span: self.since(span) });
        Ok(ConstantKind::Undef)
    }

    /// The id of `@name`, at its first mention a new one.
    pub(super) fn symbol(&mut self, name: Name<'a>) -> Parse<SymbolId> {
        let text = self.name_text(name)?;
        if let Some(id) = self.symbols.get(name, &text) {
            return Ok(id);
        }
        // What it is turns out at its definition. A module with a symbol that has none is never returned.
        let kind = SymbolKind::Alias(AliasId(u32::MAX));
        let id = self.module.symbols.push(Symbol { name: text.clone().into(), kind });
        self.symbol_mentions.push(Mention { defined: false, span: self.current.span });
        self.symbols.insert(name, &text, id);
        Ok(id)
    }

    /// Flags such as `nsw` and `inbounds`.
    pub(super) fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Token::Word(word) = self.token() {
            let Some(flag) = Flags::of_word(word) else { break };
            flags.add(flag);
            self.advance();
        }
        flags
    }

    /// The flags of arithmetic. A flag that does not belong to the operation is rejected.
    pub(super) fn binary_flags(&mut self, op: BinaryOp) -> Parse<Flags> {
        let start = self.current.span;
        let flags = self.flags();
        if !op.allows(flags) {
            let message = format!("`{}` with this flag is not understood", op.word());
            return Err(Box::new(Diagnostic::error("unsupported-ir", message).at(start, "")));
        }
        Ok(flags)
    }

    pub(super) fn int_predicate(&mut self) -> Parse<IntPredicate> {
        let found = match self.token() {
            Token::Word(word) => IntPredicate::of_word(word),
            _ => None,
        };
        let Some(predicate) = found else {
            return Err(self.unsupported(format!("the comparison {}", self.token())));
        };
        self.advance();
        Ok(predicate)
    }
}
