//! What only the tokens of a program show: its constants, and where its blocks end.

use super::{Symbol, SymbolKind, Symbols};
use crate::bound::{Bound, BoundKind};
use crate::pal::{Lexer, Sign, TokenKind, Word};
use crate::report::Report;
use palisade_base::{Source, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<(TokenKind, Span)> {
    let (mut lexer, mut report) = (Lexer::new(text), Report::default());
    let mut found = Vec::new();
    loop {
        let token = lexer.next(&mut report);
        if token.kind == TokenKind::End {
            return found;
        }
        found.push((token.kind, token.span));
    }
}

/// The names that a `.pal` text declares with `const`. The text need not be a valid program.
pub fn declared_constants(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let declared = tokens.windows(2).filter_map(|pair| match pair {
        [(TokenKind::Word(Word::Const), _), (TokenKind::Name(_), span)] => Some(&text[span.range()]),
        _ => None,
    });
    declared.map(|name| name.trim_matches('`').to_owned()).collect()
}

/// Whether a `.pal` text declares a process. The text need not be a valid program.
pub fn declares_process(text: &str) -> bool {
    tokens(text).iter().any(|(kind, _)| *kind == TokenKind::Word(Word::Process))
}

/// Adds names that are not in the program: variables of quantifiers, structs and variables with parts.
pub(super) fn add_bound(found: &mut Symbols, bound: &[Bound], source: &Source) {
    for variable in bound {
        let until = source.slice(Span { end: variable.whole.end, ..variable.declared });
        let (kind, text) = match variable.kind {
            BoundKind::Quantifier => (SymbolKind::Bound, until.split([',', ':']).next().unwrap_or(until)),
            BoundKind::Struct => (SymbolKind::Struct, source.slice(variable.whole)),
            BoundKind::Field => (SymbolKind::Field, until),
            BoundKind::Shared => (SymbolKind::Shared, source.slice(variable.whole)),
            BoundKind::Private => (SymbolKind::Private, source.slice(variable.whole)),
        };
        found.symbols.push(Symbol {
            kind,
            name: source.slice(variable.declared).trim_matches('`').to_owned(),
            declared: variable.declared,
            whole: variable.whole,
            within: None,
            detail: text.trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" "),
            uses: variable.uses.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
        });
    }
}

/// Adds the constants, and the uses of enumerations. A name that is mentioned otherwise is not one.
pub(super) fn add_constants(found: &mut Symbols, text: &str) {
    let tokens = tokens(text);
    let taken: FxHashSet<Span> = found.symbols.iter().flat_map(Symbol::mentions).collect();
    let mut constants: FxHashMap<u32, usize> = FxHashMap::default();
    // Enumerations and their values are declared by the program, but their uses are not in it either.
    let enums: FxHashMap<Span, usize> = (found.symbols.iter().enumerate())
        .filter(|(_, symbol)| matches!(symbol.kind, SymbolKind::Enum | SymbolKind::EnumValue))
        .map(|(index, symbol)| (symbol.declared, index))
        .collect();
    // In the text, an imported file comes after the file that uses its constants.
    for (index, &(kind, span)) in tokens.iter().enumerate() {
        let TokenKind::Name(symbol) = kind else { continue };
        if let Some(&declared) = enums.get(&span) {
            constants.insert(symbol.0, declared);
        }
        let declares = index > 0 && tokens[index - 1].0 == TokenKind::Word(Word::Const);
        if declares {
            let start = tokens[index - 1].1;
            let is_end = |&&(kind, _): &&(TokenKind, Span)| kind == TokenKind::Sign(Sign::Semicolon);
            let whole = start.to(tokens[index..].iter().find(is_end).map_or(span, |&(_, end)| end));
            let words: Vec<&str> = text[whole.range()].split_whitespace().collect();
            constants.insert(symbol.0, found.symbols.len());
            found.symbols.push(Symbol {
                kind: SymbolKind::Constant,
                name: text[span.range()].trim_matches('`').to_owned(),
                declared: span,
                whole,
                within: None,
                detail: words.join(" ").trim_end_matches(';').to_owned(),
                uses: Vec::new(),
            });
        }
    }
    for &(kind, span) in &tokens {
        if let TokenKind::Name(symbol) = kind
            && let Some(&constant) = constants.get(&symbol.0)
            && found.symbols[constant].declared != span
            && !taken.contains(&span)
        {
            found.symbols[constant].uses.push(span);
        }
    }
}

/// Lets the declarations of processes and procedures reach to the end of their bodies.
pub(super) fn extend_to_blocks(found: &mut Symbols, text: &str) {
    let tokens = tokens(text);
    for symbol in &mut found.symbols {
        if !matches!(symbol.kind, SymbolKind::Process | SymbolKind::Procedure) {
            continue;
        }
        let first = tokens.partition_point(|(_, span)| span.start < symbol.whole.end);
        let mut depth = 0usize;
        for &(kind, span) in &tokens[first..] {
            match kind {
                TokenKind::Sign(Sign::LeftBrace) => depth += 1,
                TokenKind::Sign(Sign::RightBrace) => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                symbol.whole = symbol.whole.to(span);
                break;
            }
        }
    }
}
