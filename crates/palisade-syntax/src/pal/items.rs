//! Parses items (constants, shared variables, procedures, processes, properties) and types.

use super::aggregates::{Common, Declared, ParsedKind};
use super::parser::{Failed, Parse, Parser};
use super::slips;
use super::token::{Sign, Symbol, TokenKind, Word};
use super::words;
use palisade_base::{Diagnostic, Origin, Span, limits};
use palisade_program::written::{
    Count, Domain, ExprKind, Init, InitValue, Observation, Outside, Param, Placement, Procedure, Progress,
    ProgressKind, Property, PropertyKind, Start, Template, Type,
};

/// Help where something else was expected to be a domain.
const DOMAINS: &str = "a domain is `bool`, `int`, a machine word such as `u8`, an enum, or a range such as `0..3`, both ends included";

impl Parser<'_> {
    /// `at 4096`, and for arrays `at 4096 step 4`
    fn placement(&mut self, is_array: bool) -> Parse<Placement> {
        self.advance();
        let address = self.constant()?;
        if !is_array || !self.at_name("step") {
            return Ok(Placement { address, step: 1 });
        }
        self.advance();
        Ok(Placement { address, step: self.constant()? })
    }

    /// Parses all items, with those of the imported files.
    pub fn items(&mut self) {
        loop {
            limits::checkpoint();
            if self.at_end() && !self.leave_file() {
                return;
            }
            self.unclosed = false;
            if !self.at_end() {
                self.item();
            }
        }
    }

    /// Parses one item. After an error, skips to the next item.
    pub fn item(&mut self) {
        let parsed = match self.current.kind {
            TokenKind::Word(Word::Const) => self.constant_item(),
            TokenKind::Word(Word::Enum) => self.enum_item(),
            TokenKind::Word(Word::Shared) => self.shared_item(),
            TokenKind::Word(Word::Private) => self.private_item(),
            TokenKind::Word(Word::Proc) => self.procedure_item(),
            TokenKind::Word(Word::Process) => self.process_item(),
            TokenKind::Word(Word::Forbid) => self.property_item(PropertyKind::Forbid),
            TokenKind::Word(Word::Final) => self.property_item(PropertyKind::Final),
            TokenKind::Name(_) if self.at_import() => self.import_item(),
            TokenKind::Name(_) if self.at_struct() => self.struct_item(),
            TokenKind::Name(symbol) if self.is_progress(symbol) => self.progress_item(),
            TokenKind::Sign(Sign::Semicolon) => {
                let warning =
                    Diagnostic::warning("stray-semicolon", "this `;` ends nothing").at(self.current.span, "");
                self.report.push(warning.help("remove it"));
                self.advance();
                return;
            }
            _ => Err(self.not_an_item()),
        };
        if let Err(Failed) = parsed {
            self.skip_item();
        }
    }

    fn not_an_item(&mut self) -> Failed {
        let span = self.current.span;
        let diagnostic = match self.current.kind {
            TokenKind::Sign(Sign::RightBrace) => {
                Diagnostic::error("unmatched-brace", "this `}` closes nothing").at(span, "")
            }
            TokenKind::Word(word @ (Word::Int | Word::Bool)) => {
                self.c_declaration(word, "shared", "shared variables")
            }
            kind => {
                let help = match kind {
                    TokenKind::Name(symbol) => slips::item_help(self.lexer.names.text(symbol)),
                    TokenKind::Word(word) => slips::item_help(word.text()),
                    _ => slips::item_help(""),
                };
                self.unexpected("an item").help(help)
            }
        };
        self.fail(diagnostic)
    }

    /// `const N = 3;`
    fn constant_item(&mut self) -> Parse<()> {
        self.advance();
        let (symbol, name) = self.name("the name of a constant")?;
        self.expect(Sign::Equal)?;
        // A constant without a valid value is still a constant. Reporting each of its uses would not help.
        let value = self.constant();
        self.declare_constant(symbol, *value.as_ref().unwrap_or(&1), name.span());
        value?;
        self.semicolon()
    }

    /// `shared x, a[4]: 0..3 = 1;`
    fn shared_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        let declared = self.declared("the name of a shared variable", "number of cells")?;
        let kind = match self.eat(Sign::Colon) {
            true => self.type_or_struct()?,
            false => ParsedKind::Type(Type::INT),
        };
        let init = match self.eat(Sign::Equal) {
            true => Some(self.init(&declared)?),
            false => None,
        };
        self.semicolon()?;
        let common = Common { kind, init, origin: Origin(self.since(start)) };
        declared.into_iter().try_for_each(|declared| self.add_shared(declared, &common))
    }

    /// `private x, a[3]: 0..3;`
    fn private_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        let declared = self.declared("the name of a private variable", "number of elements")?;
        let kind = match self.eat(Sign::Colon) {
            true => self.type_or_struct()?,
            false => ParsedKind::Type(Type::INT),
        };
        self.semicolon()?;
        let common = Common { kind, init: None, origin: Origin(self.since(start)) };
        declared.into_iter().try_for_each(|declared| self.add_private(declared, &common))
    }

    /// The names after `shared` or `private`, with their lengths.
    fn declared(&mut self, what: &str, length: &str) -> Parse<Vec<Declared>> {
        let is_shared = self.at_word(Word::Shared);
        self.advance();
        let mut declared = Vec::new();
        loop {
            self.grow(2)?;
            let (symbol, name) = self.name(what)?;
            let lengths = match is_shared && self.per_identity()? {
                true => vec![self.identity_array(&name)],
                false => self.lengths(length)?,
            };
            let at = match is_shared && self.at_name("at") {
                true => Some(self.placement(!lengths.is_empty())?),
                false => None,
            };
            declared.push(Declared { symbol, name, lengths, at });
            if !self.eat(Sign::Comma) {
                return Ok(declared);
            }
        }
    }

    /// Parses initial values, which are those of all these variables.
    fn init(&mut self, declared: &[Declared]) -> Parse<Init> {
        if !self.at(Sign::LeftBracket) {
            return Ok(Init::Every(self.init_value()?));
        }
        let mut values = Vec::new();
        let inner: Vec<u32> = declared[0].lengths.iter().skip(1).copied().collect();
        self.init_list(&inner, &mut values)?;
        // The list is copied for each variable. A small text must not become a large program.
        self.grow(values.len().saturating_mul(declared.len()))?;
        Ok(Init::Each(values))
    }

    /// Parses `[1, *, 3]`, or a list of such lists with these lengths. The limit on dimensions limits the recursion.
    fn init_list(&mut self, inner: &[u32], values: &mut Vec<InitValue>) -> Parse<()> {
        let opened = self.expect(Sign::LeftBracket)?;
        while !self.at(Sign::RightBracket) {
            match inner {
                [] => values.push(self.init_value()?),
                [length, rest @ ..] => {
                    let (start, before) = (self.current.span, values.len());
                    self.init_list(rest, values)?;
                    let wanted = rest.iter().fold(*length as usize, |all, length| all * *length as usize);
                    if values.len() - before != wanted {
                        let message = format!("this list has {} values, not {wanted}", values.len() - before);
                        let span = self.since(start);
                        return Err(self.fail(Diagnostic::error("bad-count", message).at(span, "")));
                    }
                }
            }
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(Sign::RightBracket, opened)
    }

    pub fn init_value(&mut self) -> Parse<InitValue> {
        let ends = matches!(
            self.next.kind,
            TokenKind::Sign(Sign::Semicolon | Sign::Comma | Sign::RightBracket | Sign::RightBrace)
                | TokenKind::End
        );
        if self.at(Sign::Star) && ends {
            self.advance();
            return Ok(InitValue::Any);
        }
        Ok(InitValue::Const(self.expr()?))
    }

    /// `proc f(a: 0..3, b) -> bool { … }`
    fn procedure_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        self.grow(2)?;
        let (symbol, name) = self.name("the name of a procedure")?;
        self.declare(symbol, name.span());
        self.forget_registers();
        let params = self.params();
        let result = match params.is_ok() && self.eat(Sign::Arrow) {
            true => self.ty().map(Some),
            false => Ok(None),
        };
        if params.is_err() || result.is_err() || !self.at(Sign::LeftBrace) {
            if params.is_ok() && result.is_ok() {
                let diagnostic = self.unexpected("`{`");
                self.report.push(diagnostic);
            }
            self.skip_to_block()?;
        }
        let origin = Origin(self.since(start));
        let mut body = self.block()?;
        self.finish_loops(&mut body, None);
        let (params, result) = (params.unwrap_or_default(), result.unwrap_or_default());
        self.program.procedures.push(Procedure { name, params, result, body, origin });
        Ok(())
    }

    /// `process P(i: 0..1)[3] on spawn { … }`
    fn process_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        self.grow(2)?;
        let (symbol, name) = self.name("the name of a process")?;
        self.declare(symbol, name.span());
        self.forget_registers();
        self.identity.in_heading = true;
        let mut heading = self.process_heading();
        self.identity.in_heading = false;
        if let Ok((params, count, start)) = &mut heading
            && self.identity_heading(&name, params, count, *start).is_err()
        {
            heading = Err(Failed);
        }
        if heading.is_err() || !self.at(Sign::LeftBrace) {
            if heading.is_ok() {
                let diagnostic = self.unexpected("`{`").help(
                    "a full heading is `process P(i: 0..1)[3] on spawn`; everything except the name is optional",
                );
                self.report.push(diagnostic);
            }
            self.skip_to_block()?;
        }
        let origin = Origin(self.since(start));
        let mut body = self.block()?;
        self.finish_loops(&mut body, Some(&name));
        self.identity.me = None;
        if let Ok((params, count, start)) = heading {
            self.program.templates.push(Template { name, params, count, start, body, origin });
        }
        Ok(())
    }

    fn process_heading(&mut self) -> Parse<(Vec<Param>, Count, Start)> {
        let params = if self.at(Sign::LeftParen) { self.params()? } else { Vec::new() };
        let count = match (self.at(Sign::LeftBracket), self.next.kind) {
            (true, TokenKind::Sign(Sign::Star)) => {
                let opened = self.current.span;
                self.advance();
                self.advance();
                self.close(Sign::RightBracket, opened)?;
                Count::Any
            }
            (true, _) => Count::Fixed(self.bracketed("number of processes")?),
            _ => Count::Fixed(1),
        };
        if !self.at_name("on") {
            return Ok((params, count, Start::Initially));
        }
        self.advance();
        if !self.at_word(Word::Spawn) {
            let diagnostic = self.unexpected("`spawn`");
            return Err(self.fail(diagnostic));
        }
        self.advance();
        Ok((params, count, Start::OnSpawn))
    }

    /// `forbid c;` or `final c;`
    fn property_item(&mut self, kind: PropertyKind) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        self.grow(2)?;
        let condition = self.condition()?;
        self.semicolon()?;
        let origin = Origin(self.since(start));
        self.program.properties.push(Property { kind, condition, origin });
        Ok(())
    }

    /// Whether an item that begins with this name is about progress. These words are not reserved: no other
    /// item begins with a name.
    fn is_progress(&self, first: Symbol) -> bool {
        match self.lexer.names.text(first) {
            "live" | "terminates" | "leaves" => true,
            "deadlock" => self.next_is(Sign::Minus),
            _ => false,
        }
    }

    /// `deadlock-free;`, `live end;`, `live c;`, `terminates;` or `leaves P@wait;`
    fn progress_item(&mut self) -> Parse<()> {
        let start = self.current.span;
        let (live, leaves) = (self.at_name("live"), self.at_name("leaves"));
        let terminates = self.at_name("terminates");
        self.advance();
        self.grow(2)?;
        let kind = if terminates {
            ProgressKind::Terminates
        } else if leaves {
            self.leaves()?
        } else if !live {
            self.advance();
            if !self.at_name("free") {
                let diagnostic = self.unexpected("`free`");
                return Err(self.fail(diagnostic));
            }
            self.advance();
            ProgressKind::DeadlockFree
        } else if self.at_name("end") && self.next_is(Sign::Semicolon) {
            self.advance();
            ProgressKind::LiveEnd
        } else {
            ProgressKind::Live(self.condition()?)
        };
        self.semicolon()?;
        let origin = Origin(self.since(start));
        self.program.progress.push(Progress { kind, origin });
        Ok(())
    }

    /// The process and the label of a `leaves`.
    fn leaves(&mut self) -> Parse<ProgressKind> {
        let written = self.condition()?;
        let span = written.span();
        if let ExprKind::Observe(Observation::At { process, label }) = written.kind {
            return Ok(ProgressKind::Leaves { process, label });
        }
        let diagnostic = Diagnostic::error("leaves-what", "`leaves` takes one process and one label")
            .at(span, "")
            .help("write `leaves P@wait;`");
        Err(self.fail(diagnostic))
    }

    /// `(a: 0..3, b)`
    fn params(&mut self) -> Parse<Vec<Param>> {
        let opened = self.expect(Sign::LeftParen)?;
        let mut params = Vec::new();
        while !self.at(Sign::RightParen) {
            self.grow(1)?;
            if let TokenKind::Word(word @ (Word::Int | Word::Bool)) = self.current.kind {
                let diagnostic = Diagnostic::error("foreign-syntax", "the type comes after the name")
                    .at(self.current.span, "")
                    .help(format!("write `name: {}`", word.text()));
                return Err(self.fail(diagnostic));
            }
            let (symbol, name) = self.name("a parameter")?;
            self.declare(symbol, name.span());
            let ty = if self.eat(Sign::Colon) { self.ty()? } else { Type::INT };
            if let Some((lo, hi)) = ty.domain.bounds() {
                self.note_bounds(&name, lo, hi);
            }
            params.push(Param { name, ty });
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(Sign::RightParen, opened)?;
        Ok(params)
    }

    /// `[3]`
    fn bracketed(&mut self, what: &str) -> Parse<u32> {
        let opened = self.current.span;
        self.advance();
        let count = self.constant_count(what)?;
        self.close(Sign::RightBracket, opened)?;
        Ok(count)
    }

    /// Parses `bool`, `int` or `lo..hi`, and an optional `blocking`.
    pub fn ty(&mut self) -> Parse<Type> {
        let start = self.current.span;
        if let Some(ty) = self.identity_type()? {
            return Ok(ty);
        }
        let domain = match self.current.kind {
            TokenKind::Name(symbol) if self.constants.enumeration(symbol).is_some() => {
                self.advance();
                self.constants.enumeration(symbol).expect("it is one")
            }
            TokenKind::Word(Word::Bool) => {
                self.advance();
                Domain::Bool
            }
            TokenKind::Word(Word::Int) => {
                self.advance();
                Domain::Int
            }
            TokenKind::Name(symbol)
                if !self.next_is(Sign::DotDot) && self.constants.value(symbol, start).is_none() =>
            {
                if let Some(ty) = words::word_type(self.lexer.names.text(symbol)) {
                    self.advance();
                    return Ok(ty);
                }
                let help = match self.lexer.names.text(symbol) {
                    "u64" | "i64" | "usize" | "isize" => {
                        "numbers have 64 bits and do not wrap around: write `int`; the operators `+%`, `-%` and `*%` wrap around"
                    }
                    "boolean" | "Bool" => "write `bool`",
                    _ if self.constants.structure(symbol).is_some() => {
                        "only shared and private variables can be structs"
                    }
                    _ => DOMAINS,
                };
                if self.imports.failed && help == DOMAINS {
                    // It may be declared in a file that could not be imported, which is reported.
                    self.advance();
                    return Ok(Type::INT);
                }
                let diagnostic = self.unexpected("a domain").help(help);
                return Err(self.fail(diagnostic));
            }
            _ => self.range(start)?,
        };
        let mut outside = Outside::Fault;
        if self.at_word(Word::Blocking) {
            self.advance();
            outside = Outside::Block;
        } else if self.at_name("wrap") {
            self.advance();
            outside = Outside::Wrap;
        }
        Ok(Type { domain, outside })
    }

    pub fn range(&mut self, start: Span) -> Parse<Domain> {
        let lo = self.constant()?;
        match self.current.kind {
            TokenKind::Sign(Sign::DotDot) => self.advance(),
            TokenKind::Sign(Sign::DotDotEqual) => {
                let diagnostic = Diagnostic::error("foreign-syntax", "`..` already includes both ends")
                    .at(self.current.span, "")
                    .help("write `..`");
                self.report.push(diagnostic);
                self.advance();
            }
            _ => {
                let diagnostic =
                    self.unexpected("`..`").at(start, "after the smallest value of the domain").help(DOMAINS);
                return Err(self.fail(diagnostic));
            }
        }
        let hi = self.constant()?;
        Ok(Domain::Range { lo, hi })
    }
}
