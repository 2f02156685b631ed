//! `enum State { Idle, Want, Busy }`
//!
//! The values are constants, and the name is a domain. The program keeps the names, so that runs show them.

use super::constants::Use;
use super::parser::{Parse, Parser};
use super::token::Sign;
use palisade_base::{Diagnostic, Origin};
use palisade_program::Value;
use palisade_program::written::{Domain, Enum, Name};

impl Parser<'_> {
    pub fn enum_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        let (symbol, name) = self.name("the name of an enumeration")?;
        let opened = self.expect(Sign::LeftBrace)?;
        let mut values: Vec<Name> = Vec::new();
        while !self.at(Sign::RightBrace) {
            self.grow(2)?;
            let (symbol, value) = self.name("the name of a value")?;
            if self.at(Sign::Equal) {
                let diagnostic = self
                    .unexpected("`,`")
                    .help("the values are 0, 1, 2, … in this order; use `const` for other numbers");
                return Err(self.fail(diagnostic));
            }
            let number = values.len() as Value;
            self.declare_value(symbol, Use::Constant(number, value.span()), value.span());
            values.push(value);
            if !self.eat_separator("values") {
                break;
            }
        }
        self.close(Sign::RightBrace, opened)?;
        if values.is_empty() {
            let message = format!("the enumeration `{name}` has no values");
            let help = format!("write `enum {name} {{ First, Second }}`");
            let diagnostic = Diagnostic::error("empty-domain", message).at(name.span(), "").help(help);
            return Err(self.fail(diagnostic));
        }
        let which = self.program.enums.len() as u32;
        let domain = Domain::Enum { which, last: values.len() as Value - 1 };
        self.declare_value(symbol, Use::Enumeration(domain, name.span()), name.span());
        let origin = Origin(self.since(start));
        self.program.enums.push(Enum { name, values, origin });
        Ok(())
    }
}
