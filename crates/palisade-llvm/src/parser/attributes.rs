//! Attributes: those that decide what is passed are kept, all others only annotate.

use super::constants::is_value_word;
use super::{Parse, Parser};
use crate::calls::{Attributes, Passing};
use crate::module::Attribute;
use crate::token::Token;
use crate::types::TypeId;

impl Parser<'_> {
    /// `attributes #0 = { noinline "key"="value" }`
    pub(super) fn attribute_group(&mut self) -> Parse<()> {
        self.advance();
        let Token::AttributeGroup(number) = self.token() else {
            return Err(self.expected("the number of a group", self.token()));
        };
        self.advance();
        self.sign(b'=')?;
        self.sign(b'{')?;
        let mut group = Vec::new();
        while !self.eat_sign(b'}') {
            group.push(self.attribute()?);
        }
        self.module.attribute_groups.entry(number).or_default().extend(group);
        Ok(())
    }

    /// One attribute of a group: `name`, `name(…)`, `name=5`, `"name"` or `"name"="value"`.
    fn attribute(&mut self) -> Parse<Attribute> {
        let quoted = matches!(self.token(), Token::Text(_));
        let name: Box<str> = match self.token() {
            Token::Word(word) => {
                self.advance();
                word.into()
            }
            Token::Text(_) => self.text("a name")?,
            token => return Err(self.expected("an attribute", token)),
        };
        let start = self.current.span;
        let value: Option<Box<str>> = if self.eat_sign(b'=') {
            match self.token() {
                Token::Text(_) => Some(self.text("a value")?),
                Token::Integer(text) => {
                    self.advance();
                    Some(text.into())
                }
                token => return Err(self.expected("a value", token)),
            }
        } else if self.at_sign(b'(') && !quoted {
            self.skip_brackets()?;
            Some(self.source.slice(self.since(start)).into())
        } else if &*name == "align" {
            Some(self.number::<u64>("an alignment")?.to_string().into())
        } else {
            None
        };
        Ok(Attribute { name, value })
    }

    /// `align 8` or `align(8)`, after the word.
    fn align_value(&mut self) -> Parse<u64> {
        match self.at_sign(b'(') {
            true => self.number_in_brackets("an alignment"),
            false => self.number("an alignment"),
        }
    }

    /// `align 8`
    pub(super) fn align(&mut self) -> Parse<u64> {
        self.word("align")?;
        self.align_value()
    }

    /// Skips an attribute whose meaning does not matter. The current token is its name.
    pub(super) fn skip_attribute(&mut self) -> Parse<()> {
        if matches!(self.token(), Token::Word("align" | "alignstack")) {
            self.advance();
            self.align_value()?;
            return Ok(());
        }
        let quoted = matches!(self.token(), Token::Text(_));
        self.advance();
        if quoted {
            if self.eat_sign(b'=') {
                self.text("a value")?;
            }
        } else if self.at_sign(b'(') {
            self.skip_brackets()?;
        }
        Ok(())
    }

    /// `(T)` after `byval` and the like.
    fn attribute_type(&mut self) -> Parse<TypeId> {
        self.advance();
        self.sign(b'(')?;
        let ty = self.ty()?;
        self.sign(b')')?;
        Ok(ty)
    }

    /// The attributes of a parameter or argument.
    pub(super) fn passing(&mut self) -> Parse<Passing> {
        let mut passing = Passing::default();
        loop {
            match self.token() {
                Token::Word(word) if is_value_word(word) => return Ok(passing),
                Token::Word("byval") => passing.by_value = Some(self.attribute_type()?),
                Token::Word("sret") => passing.struct_return = Some(self.attribute_type()?),
                Token::Word("elementtype") => passing.element = Some(self.attribute_type()?),
                Token::Word("align") => passing.align = Some(self.align()?),
                Token::Word("inalloca" | "preallocated" | "swifterror") => {
                    return Err(self.unsupported(format!("the attribute {}", self.token())));
                }
                Token::Word(word) => {
                    passing.non_null |= word == "nonnull";
                    passing.no_undef |= word == "noundef";
                    self.skip_attribute()?;
                }
                Token::Text(_) => self.skip_attribute()?,
                _ => return Ok(passing),
            }
        }
    }

    /// An attribute of a function or call. `false` if there is none here.
    pub(super) fn function_attribute(&mut self, found: &mut FoundAttributes) -> Parse<bool> {
        match self.token() {
            Token::AttributeGroup(number) => {
                self.group_mentions.push((number, self.current.span));
                found.groups.push(number);
                self.advance();
            }
            Token::Word(word) => {
                found.words.push(word.into());
                self.skip_attribute()?;
            }
            Token::Text(_) => {
                let attribute = self.attribute()?;
                found.words.push(attribute.name);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Attributes that were found so far.
#[derive(Default)]
pub(super) struct FoundAttributes {
    words: Vec<Box<str>>,
    groups: Vec<u32>,
}

impl From<FoundAttributes> for Attributes {
    fn from(found: FoundAttributes) -> Attributes {
        Attributes { words: found.words.into(), groups: found.groups.into() }
    }
}
