//! Types.

use super::{Mention, Parse, Parser};
use crate::module::SymbolId;
use crate::token::{Name, Token};
use crate::types::{BadType, FloatKind, NamedType, NamedTypeId, Type, TypeId, Types};
use palisade_base::Diagnostic;

/// Whether a type starts with this word.
pub(super) fn is_type_word(word: &str) -> bool {
    matches!(
        word,
        "void" | "label" | "token" | "metadata" | "ptr" | "opaque" | "target" | "x86_mmx" | "x86_amx"
    ) || integer_width(word).is_some()
        || FloatKind::ALL.iter().any(|kind| kind.name() == word)
}

/// The digits of `i32`.
fn integer_width(word: &str) -> Option<&str> {
    let digits = word.strip_prefix('i')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

impl<'a> Parser<'a> {
    /// `%name = type { … }`
    pub(super) fn named_type(&mut self, name: Name<'a>) -> Parse<()> {
        let span = self.current.span;
        let id = self.named_type_id(name)?;
        self.advance();
        self.sign(b'=')?;
        self.word("type")?;
        if self.named_mentions[id].defined {
            let message = format!("the type `%{name}` is defined twice");
            return Err(Box::new(Diagnostic::error("duplicate-name", message).at(span, "")));
        }
        self.named_mentions[id].defined = true;
        if self.eat_word("opaque") {
            return Ok(());
        }
        let body = self.ty()?;
        if !matches!(self.module.types.get(body), Type::Struct { .. }) {
            let found = self.module.types.display(body);
            let message = format!("a name for the type `{found}`, which is not a struct, is not understood");
            return Err(Box::new(Diagnostic::error("unsupported-ir", message).at(self.since(span), "")));
        }
        self.module.types.named[id].body = Some(body);
        Ok(())
    }

    fn named_type_id(&mut self, name: Name<'a>) -> Parse<NamedTypeId> {
        let text = self.name_text(name)?;
        if let Some(id) = self.named_types.get(name, &text) {
            return Ok(id);
        }
        let id = self.module.types.named.push(NamedType { name: text.clone().into(), body: None });
        self.named_mentions.push(Mention { defined: false, span: self.current.span });
        self.named_types.insert(name, &text, id);
        Ok(id)
    }

    /// A name without escapes.
    pub(super) fn name_text(&self, name: Name<'a>) -> Parse<std::borrow::Cow<'a, str>> {
        name.text().ok_or_else(|| self.unsupported("a name that is not UTF-8"))
    }

    /// The id of a type.
    pub(super) fn type_id(&mut self, ty: Type) -> Parse<TypeId> {
        self.module.types.id(ty).map_err(|error| match error {
            BadType::TooDeep => self.too_deep(),
            BadType::Width => {
                let message = "integer types have 1 to 8388608 bits";
                Box::new(Diagnostic::error("ir-number", message).at(self.last_span(), ""))
            }
        })
    }

    /// The type of an address of something of this type.
    pub(super) fn pointer_to(&mut self, ty: TypeId) -> Parse<TypeId> {
        match self.opaque_pointers {
            true => Ok(Types::PTR),
            false => self.type_id(Type::Pointer { pointee: Some(ty), address_space: 0 }),
        }
    }

    /// The same in another address space.
    pub(super) fn pointer_in(&mut self, ty: TypeId, address_space: u32) -> Parse<TypeId> {
        let pointee = (!self.opaque_pointers).then_some(ty);
        self.type_id(Type::Pointer { pointee, address_space })
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Parse<TypeId> {
        self.nested(|parser| {
            let mut ty = parser.simple_type()?;
            loop {
                ty = match parser.token() {
                    Token::Sign(b'*') => {
                        parser.advance();
                        parser.type_id(Type::Pointer { pointee: Some(ty), address_space: 0 })?
                    }
                    Token::Word("addrspace")
                        if !parser.module.types.is_pointer(ty) || !parser.opaque_pointers =>
                    {
                        let address_space = parser.address_space()?;
                        parser.sign(b'*')?;
                        parser.type_id(Type::Pointer { pointee: Some(ty), address_space })?
                    }
                    Token::Sign(b'(') => parser.function_type(ty)?,
                    _ => return Ok(ty),
                }
            }
        })
    }

    /// `addrspace(1)`
    pub(super) fn address_space(&mut self) -> Parse<u32> {
        self.word("addrspace")?;
        self.number_in_brackets("the number of an address space")
    }

    /// A type without `*` and parameters after it.
    fn simple_type(&mut self) -> Parse<TypeId> {
        let token = self.token();
        let fixed = match token {
            Token::Word("void") => Some(Types::VOID),
            Token::Word("label") => Some(Types::LABEL),
            Token::Word("metadata") => Some(Types::METADATA),
            Token::Word("token") => Some(Types::TOKEN),
            _ => None,
        };
        if let Some(fixed) = fixed {
            self.advance();
            return Ok(fixed);
        }
        match token {
            Token::Word("ptr") => {
                self.advance();
                match self.token() {
                    Token::Word("addrspace") => {
                        let address_space = self.address_space()?;
                        self.type_id(Type::Pointer { pointee: None, address_space })
                    }
                    _ => Ok(Types::PTR),
                }
            }
            Token::Word(word) => {
                if let Some(width) = integer_width(word) {
                    self.advance();
                    return self.type_id(Type::Integer(width.parse().unwrap_or(u32::MAX)));
                }
                let Some(kind) = FloatKind::ALL.into_iter().find(|kind| kind.name() == word) else {
                    return Err(self.unsupported(format!("the type {token}")));
                };
                self.advance();
                self.type_id(Type::Float(kind))
            }
            Token::Local(name) => {
                let id = self.named_type_id(name)?;
                self.advance();
                self.type_id(Type::Named(id))
            }
            Token::Sign(b'[') => {
                self.advance();
                let length = self.number("a number of elements")?;
                self.word("x")?;
                let element = self.ty()?;
                self.sign(b']')?;
                self.type_id(Type::Array { element, length })
            }
            Token::Sign(b'{') => {
                let fields = self.fields()?;
                self.type_id(Type::Struct { fields, packed: false })
            }
            Token::Sign(b'<') => {
                self.advance();
                if self.at_sign(b'{') {
                    let fields = self.fields()?;
                    self.sign(b'>')?;
                    return self.type_id(Type::Struct { fields, packed: true });
                }
                let scalable = self.eat_word("vscale");
                if scalable {
                    self.word("x")?;
                }
                let length = self.number("a number of elements")?;
                self.word("x")?;
                let element = self.ty()?;
                self.sign(b'>')?;
                self.type_id(Type::Vector { element, length, scalable })
            }
            token => Err(self.expected("a type", token)),
        }
    }

    /// `{ i32, ptr }`
    fn fields(&mut self) -> Parse<Box<[TypeId]>> {
        self.sign(b'{')?;
        let mut fields = Vec::new();
        if !self.at_sign(b'}') {
            loop {
                fields.push(self.ty()?);
                if !self.eat_sign(b',') {
                    break;
                }
            }
        }
        self.sign(b'}')?;
        Ok(fields.into())
    }

    /// `(i32, ...)` after the type of the result.
    fn function_type(&mut self, result: TypeId) -> Parse<TypeId> {
        self.sign(b'(')?;
        let mut parameters = Vec::new();
        let mut variadic = false;
        while !self.at_sign(b')') {
            if self.token() == Token::Ellipsis {
                self.advance();
                variadic = true;
                break;
            }
            parameters.push(self.ty()?);
            if !self.eat_sign(b',') {
                break;
            }
        }
        self.sign(b')')?;
        self.type_id(Type::Function { result, parameters: parameters.into(), variadic })
    }

    /// The type at which a symbol is used must be that of its definition.
    pub(super) fn note_symbol_use(&mut self, symbol: SymbolId, ty: TypeId) {
        if matches!(self.module.types.get(ty), Type::Pointer { pointee: Some(_), .. }) {
            self.typed_uses.push((symbol, ty, self.current.span));
        }
    }
}
