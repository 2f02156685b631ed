//! The initial state: `{ int x = 1; uint64_t y; 0:RAX = x; int t[2] = {1, 2}; }`.

use super::heading::Arch;
use super::lexer::{Sign, TokenKind};
use super::parser::{MAX_ELEMENTS, Outcome, Parser, shown, thread_number};
use super::registers::Width;
use super::test::{InitItem, Ty, Word};
use crate::report::plural;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Span};

impl<'a> Parser<'a, '_> {
    /// Parses the initial state with its braces.
    pub(super) fn init(&mut self) -> Vec<InitItem<'a>> {
        let mut items = Vec::new();
        let open = self.span();
        if self.expect(Sign::LeftBrace).is_err() {
            return items;
        }
        loop {
            while self.eat(Sign::Semicolon) {}
            if self.eat(Sign::RightBrace) {
                return items;
            }
            if self.peek() == TokenKind::End {
                let diagnostic = Diagnostic::error("unexpected-end", "the initial state is not closed");
                let end = self.text.trim_end().len();
                self.report.push(diagnostic.at(Span::new(end..end), "").at(open, "it begins here"));
                return items;
            }
            if let Ok(item) = self.init_item() {
                items.push(item);
                if self.is(Sign::Semicolon) || self.is(Sign::RightBrace) {
                    continue;
                }
                let _: Outcome<()> = self.expected("`;`");
            }
            while !matches!(self.peek(), TokenKind::End | TokenKind::Sign(Sign::Semicolon | Sign::RightBrace))
            {
                self.advance();
            }
        }
    }

    fn init_item(&mut self) -> Outcome<InitItem<'a>> {
        let start = self.span();
        let ty = self.init_type()?;
        let location = self.location()?;
        let mut item = InitItem { location, ty, len: None, values: Vec::new(), span: start };
        if let super::test::Location::Variable { element, .. } = &mut item.location {
            item.len = element.take();
        }
        if self.eat(Sign::Equal) {
            if item.len.is_some() {
                self.expect(Sign::LeftBrace)?;
                loop {
                    item.values.push(self.constant()?);
                    if !self.eat(Sign::Comma) {
                        break;
                    }
                }
                self.expect(Sign::RightBrace)?;
            } else {
                item.values.push(self.constant()?);
            }
        }
        item.span = start.to(self.previous());
        self.check_array(&item)?;
        Ok(item)
    }

    fn check_array(&mut self, item: &InitItem<'a>) -> Outcome<()> {
        let Some(len) = item.len else { return Ok(()) };
        if len == 0 {
            return self.fail(
                Diagnostic::error("bad-array", "an array must have at least one element").at(item.span, ""),
            );
        }
        if !item.values.is_empty() && item.values.len() != len as usize {
            let message = format!(
                "the array has {}, but the list has {}",
                plural(len as usize, "element"),
                plural(item.values.len(), "value")
            );
            return self.fail(Diagnostic::error("bad-array", message).at(item.span, ""));
        }
        debug_assert!(len <= MAX_ELEMENTS, "the parser rejects longer arrays");
        Ok(())
    }

    /// Parses the type before a declaration, if there is one.
    fn init_type(&mut self) -> Outcome<Option<Ty>> {
        let start = self.span();
        let mut words: Vec<Word<'a>> = Vec::new();
        while self.peek() == TokenKind::Word && thread_number(self.here()).is_none() {
            let declares = match self.ahead(1) {
                TokenKind::Word | TokenKind::Sign(Sign::Star) => true,
                TokenKind::Number(_) => self.ahead(2) == TokenKind::Sign(Sign::Colon),
                TokenKind::Sign(Sign::LeftBracket) => self.ahead(2) == TokenKind::Word,
                _ => false,
            };
            if !declares {
                break;
            }
            words.push(Word { text: self.here(), span: self.span() });
            self.advance();
        }
        let mut pointer = false;
        while self.eat(Sign::Star) {
            pointer = true;
        }
        let span = start.to(self.previous());
        let arch_width = if self.arch == Arch::X86 { Width::LONG } else { Width::QUAD };
        if pointer {
            return Ok(Some(Ty { width: arch_width, span }));
        }
        let qualifiers = ["volatile", "const", "_Atomic", "static", "extern"];
        words.retain(|word| !qualifiers.contains(&word.text));
        if words.is_empty() {
            return Ok(None);
        }
        let mut long = false;
        let mut width = None;
        for word in &words {
            match word.text {
                "long" => long = true,
                "signed" | "unsigned" | "int" | "atomic_int" => width = width.or(Some(Width::LONG)),
                name => match type_width(name, arch_width) {
                    Some(found) => width = Some(found),
                    None => {
                        let message = format!("unknown type `{}`", shown(name));
                        let near = self.report.has_room().then(|| nearest(name, TYPES)).flatten();
                        let help = match near {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => "the types are int, int8_t to int64_t, uint8_t to uint64_t, char, short, long, and pointers".to_owned(),
                        };
                        let diagnostic =
                            Diagnostic::error("unknown-type", message).at(word.span, "").help(help);
                        return self.fail(diagnostic);
                    }
                },
            }
        }
        let long_width = if words.iter().filter(|word| word.text == "long").count() > 1 {
            Width::QUAD
        } else {
            arch_width
        };
        let width = if long { long_width } else { width.unwrap_or(Width::LONG) };
        Ok(Some(Ty { width, span }))
    }
}

const TYPES: [&str; 11] = [
    "int", "char", "short", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
    "uint64_t",
];

fn type_width(name: &str, arch_width: Width) -> Option<Width> {
    Some(match name {
        "char" | "int8_t" | "uint8_t" | "bool" | "_Bool" => Width::BYTE,
        "short" | "int16_t" | "uint16_t" => Width::WORD,
        "int32_t" | "uint32_t" => Width::LONG,
        "int64_t" | "uint64_t" => Width::QUAD,
        "size_t" | "ssize_t" | "intptr_t" | "uintptr_t" | "ptrdiff_t" | "intmax_t" => arch_width,
        _ => return None,
    })
}
