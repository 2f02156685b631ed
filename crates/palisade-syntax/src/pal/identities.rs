//! Identities: `process P(me: id)[*]`, `shared flag[id]`, `id or none`, `for other in others`.
//!
//! They are read as what they stand for with [`WRITTEN_NUMBER`] processes, and the program remembers what
//! depends on that number (`palisade_program::written::Identities`). With a number in the heading
//! (`process P(me: id)[3]`), the result is the ordinary program for it.
//!
//! `id`, `none` and `others` are not reserved. `none` is a constant only after an identity was mentioned.

use super::aggregates::{Common, ParsedKind};
use super::parser::{Parse, Parser};
use super::token::{Sign, Symbol, TokenKind, Word};
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::validate::{limits, too_many_processes};
use palisade_program::written::{
    Count, Domain, Identities, Init, Name, Param, Start, Template, Type, WRITTEN_NUMBER, identity_enum,
};
use std::sync::Arc;

/// What the parser knows about identities.
#[derive(Default)]
pub(super) struct Identity {
    /// The parameter of the process that is being parsed, if it is an identity.
    pub me: Option<Name>,
    /// Whether the parameters of a process are being parsed.
    pub in_heading: bool,
    /// Where identities are mentioned first.
    first: Option<Span>,
    /// The number of processes and the name of their template, if the number is fixed.
    number: Option<(u32, Span)>,
}

impl Parser<'_> {
    /// Whether the current token is the word for identities, and not something that the program declares.
    fn at_identity(&mut self) -> bool {
        let TokenKind::Name(symbol) = self.current.kind else { return false };
        self.lexer.names.text(symbol) == "id" && self.constants.is_undeclared(symbol)
    }

    /// Notes that the program has identities.
    fn identities(&mut self, span: Span) -> &mut Identities {
        self.identity.first.get_or_insert(span);
        let enums = &mut self.program.enums;
        self.program.identities.get_or_insert_with(|| {
            enums.push(identity_enum(WRITTEN_NUMBER, ""));
            let which = enums.len() as u32 - 1;
            Identities { which, number: WRITTEN_NUMBER, process: Arc::from(""), arrays: Vec::new() }
        })
    }

    /// `id or none`, and `id` as the parameter of a process.
    pub fn identity_type(&mut self) -> Parse<Option<Type>> {
        if self.next_is(Sign::DotDot) || !self.at_identity() {
            return Ok(None);
        }
        let span = self.current.span;
        self.advance();
        if self.at_word(Word::Or) {
            self.advance();
            if !self.at_name("none") {
                let diagnostic = self.unexpected("`none`").help("write `id or none`");
                return Err(self.fail(diagnostic));
            }
            self.advance();
        } else if !self.identity.in_heading {
            let message = "a variable does not always hold an identity";
            let diagnostic = Diagnostic::error("bad-identity", message).at(span, "");
            return Err(self.fail(diagnostic.help("write `id or none`")));
        }
        let domain = self.identities(span).domain();
        Ok(Some(Type { domain, ..Type::INT }))
    }

    /// `[id]` after the name of a shared variable.
    pub fn per_identity(&mut self) -> Parse<bool> {
        let TokenKind::Name(symbol) = self.next.kind else { return Ok(false) };
        let is_identity = self.lexer.names.text(symbol) == "id" && self.constants.is_undeclared(symbol);
        if !self.at(Sign::LeftBracket) || !is_identity {
            return Ok(false);
        }
        let opened = self.current.span;
        self.advance();
        self.advance();
        self.close(Sign::RightBracket, opened)?;
        if self.at(Sign::LeftBracket) {
            let message = "an array with one cell per process has no other dimension";
            return Err(self.fail(Diagnostic::error("bad-identity", message).at(self.current.span, "")));
        }
        Ok(true)
    }

    /// Reports a variable with one cell per process that is not a plain array with one initial value.
    pub fn check_identity_array(&mut self, name: &Name, common: &Common) -> Parse<()> {
        let identities = self.program.identities.as_ref();
        let plain = matches!(common.kind, ParsedKind::Type(_)) && !matches!(common.init, Some(Init::Each(_)));
        if plain || !identities.is_some_and(|identities| identities.arrays.contains(&name.text)) {
            return Ok(());
        }
        let message = format!("all cells of `{name}` have the same domain and the same initial value");
        Err(self.fail(Diagnostic::error("bad-identity", message).at(name.span(), "")))
    }

    /// Notes an array with one cell per identity. Returns its length.
    pub fn identity_array(&mut self, name: &Name) -> u32 {
        let identities = self.identities(name.span());
        identities.arrays.push(name.text.clone());
        identities.number + 1
    }

    /// Whether `others` comes next, in a process with an identity.
    pub fn next_is_others(&mut self) -> bool {
        let TokenKind::Name(symbol) = self.next.kind else { return false };
        let is_free = self.constants.is_undeclared(symbol);
        self.identity.me.is_some() && is_free && self.lexer.names.text(symbol) == "others"
    }

    /// Whether a name is `none`.
    pub fn is_none(&mut self, symbol: Symbol) -> bool {
        self.program.identities.is_some()
            && self.lexer.names.text(symbol) == "none"
            && self.constants.is_undeclared(symbol)
    }

    /// Whether a domain is that of identities.
    pub fn is_identity(&self, domain: Domain) -> bool {
        self.program.identities.as_ref().is_some_and(|identities| identities.is_identity(domain))
    }

    /// After the heading of a process: whether it has an identity.
    pub fn identity_heading(
        &mut self,
        name: &Name,
        params: &mut [Param],
        count: &mut Count,
        start: Start,
    ) -> Parse<()> {
        self.identity.me = None;
        if !params.iter().any(|param| self.is_identity(param.ty.domain)) {
            return Ok(());
        }
        let span = name.span();
        let bad = |message: &str| Diagnostic::error("bad-identity", message.to_owned()).at(span, "");
        let [param] = params else {
            return Err(self.fail(bad("a process with an identity has no other parameters")));
        };
        if start == Start::OnSpawn {
            return Err(self.fail(bad("a process with an identity is there from the start")));
        }
        let identities = self.identities(span);
        if !identities.process.is_empty() {
            let message =
                format!("only one process can have identities, and `{}` has them", identities.process);
            return Err(self.fail(Diagnostic::error("bad-identity", message).at(span, "")));
        }
        identities.process = name.text.clone();
        let (number, which) = (identities.number, identities.which);
        self.program.enums[which as usize] = identity_enum(number, name.as_str());
        param.ty = Type::range(1, Value::from(number));
        self.identity.me = Some(param.name.clone());
        match *count {
            Count::Any => {}
            Count::Fixed(0) => return Err(self.fail(bad("there is at least one process with an identity"))),
            Count::Fixed(fixed) => {
                self.identity.number = Some((fixed, span));
                *count = Count::Any;
            }
        }
        Ok(())
    }

    /// At the end of the program: identities belong to a process. If their number is fixed, the program is the
    /// ordinary one with that number.
    pub fn finish_identities(&mut self) {
        let Some(identities) = &self.program.identities else { return };
        if identities.process.is_empty() && !self.report.has_errors() {
            let message = "no process has an identity";
            let diagnostic = Diagnostic::error("bad-identity", message)
                .at(self.identity.first.unwrap_or(Span::NONE), "identities are used here")
                .help("write `process P(me: id)[*]`");
            self.report.push(diagnostic);
        } else if let Some((number, span)) = self.identity.number {
            // Each of them becomes a process of its own, so the number is checked first.
            if u64::from(number) > limits::MAX_INSTANCES {
                let others = self.program.templates.iter().filter(|other| other.start == Start::Initially);
                let count = |other: &Template| match other.count {
                    Count::Fixed(count) => u64::from(count),
                    Count::Any => 0,
                };
                let total = others.map(count).fold(u64::from(number), u64::saturating_add);
                self.report.push(too_many_processes(total, number.into(), span));
                return;
            }
            self.program = self.program.with_identities(number);
        }
    }
}
