//! The symbols of an assembly file.

use super::expression::{Expression, SymbolId};
use super::layout::Position;
use palisade_base::Span;
use std::collections::BTreeMap;

/// What a symbol stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// Something in another file.
    Elsewhere,
    Label(Position),
    Equal(Expression),
    /// A variable that may be defined in several files: its size and its alignment.
    Common(u64, u64),
}

/// A symbol.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) meaning: Meaning,
    pub(super) global: bool,
    pub(super) weak: bool,
    /// `.local` was written.
    pub(super) local: bool,
    /// What `.type` says, if that was written.
    pub(super) function: Option<bool>,
    pub(super) size: Option<Expression>,
    /// Whether it is a name of the text alone, such as `.L3` and `1:`.
    pub(super) hidden: bool,
    /// Where it was first used.
    pub(super) span: Span,
}

/// All symbols, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    pub(super) all: Vec<Symbol>,
    names: BTreeMap<String, SymbolId>,
    /// How often each number was a label.
    numbers: BTreeMap<u64, u64>,
    /// The labels that are numbers, each by how many were before it.
    numbered: BTreeMap<(u64, u64), SymbolId>,
}

impl Symbols {
    pub(super) fn named(&mut self, name: &str, span: Span) -> SymbolId {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let id = self.add(name, name.starts_with(".L"), span);
        self.names.insert(name.to_owned(), id);
        id
    }

    fn add(&mut self, name: &str, hidden: bool, span: Span) -> SymbolId {
        self.all.push(Symbol {
            name: name.to_owned(),
            meaning: Meaning::Elsewhere,
            global: false,
            weak: false,
            local: false,
            function: None,
            size: None,
            hidden,
            span,
        });
        SymbolId(self.all.len() - 1)
    }

    /// A label without a name.
    pub(super) fn unnamed(&mut self, at: Position, span: Span) -> SymbolId {
        let id = self.add(".", true, span);
        self.all[id.0].meaning = Meaning::Label(at);
        id
    }

    /// The label that is a number: the last one, or the next one.
    pub(super) fn numbered(&mut self, number: u64, forwards: bool, span: Span) -> SymbolId {
        let count = self.numbers.get(&number).copied().unwrap_or(0) + u64::from(forwards);
        if let Some(known) = self.numbered.get(&(number, count)) {
            return *known;
        }
        let id = self.add(&number.to_string(), true, span);
        self.numbered.insert((number, count), id);
        id
    }

    /// Another label that is this number.
    pub(super) fn next_numbered(&mut self, number: u64, span: Span) -> SymbolId {
        let id = self.numbered(number, true, span);
        *self.numbers.entry(number).or_default() += 1;
        id
    }

    pub(super) fn get(&self, id: SymbolId) -> &Symbol {
        &self.all[id.0]
    }

    pub(super) fn get_mut(&mut self, id: SymbolId) -> &mut Symbol {
        &mut self.all[id.0]
    }

    /// Whether other files may put something else in its place.
    pub(super) fn is_replaceable(&self, id: SymbolId) -> bool {
        let symbol = self.get(id);
        symbol.global || symbol.weak
    }
}
