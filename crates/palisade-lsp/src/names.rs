//! Names: where they are declared and used, what they are, and renaming them.

use crate::documents::Document;
use lsp_types::{
    DocumentSymbol, Location, Position, PrepareRenameResponse, Range, SymbolKind as Kind, TextEdit, Uri,
    WorkspaceEdit,
};
use palisade::syntax::names::{RenameError, Symbol, SymbolKind, Symbols, rename, symbols};
use palisade::{CellValues, Language, Span};
use std::collections::HashMap;

/// More values are only counted.
const MAX_VALUES: usize = 24;

/// The names of a `.pal` file without errors.
fn names(document: &Document) -> Option<Symbols> {
    document.language.filter(|language| *language == Language::Pal)?;
    symbols(&document.source).ok()
}

fn byte(document: &Document, position: Position) -> usize {
    document.lines.byte(&document.text, position)
}

fn range(document: &Document, span: Span) -> Range {
    document.lines.range(&document.text, span)
}

/// What is named at a position, and where the name is.
pub(crate) fn named(document: &Document, position: Position) -> Option<(Symbol, Range)> {
    let names = names(document)?;
    let (symbol, place) = names.at(byte(document, position))?;
    Some((symbol.clone(), range(document, place)))
}

pub(crate) fn definition(document: &Document, position: Position) -> Option<Location> {
    let (symbol, _) = named(document, position)?;
    Some(document.places.location(&document.source, symbol.declared))
}

pub(crate) fn references(
    document: &Document,
    position: Position,
    with_declaration: bool,
) -> Option<Vec<Location>> {
    let (symbol, _) = named(document, position)?;
    let mentions =
        symbol.mentions().into_iter().filter(|place| with_declaration || *place != symbol.declared);
    Some(mentions.map(|place| document.places.location(&document.source, place)).collect())
}

pub(crate) fn prepare_rename(document: &Document, position: Position) -> Option<PrepareRenameResponse> {
    let (symbol, range) = named(document, position)?;
    Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder: symbol.name })
}

/// The changes that give a name another spelling, or why there are none.
#[allow(clippy::mutable_key_type, reason = "the type of the protocol's crate")]
pub(crate) fn renamed(document: &Document, position: Position, name: &str) -> Result<WorkspaceEdit, String> {
    if document.language.is_none_or(|language| language != Language::Pal) {
        return Err("names can be changed only in .pal files".to_owned());
    }
    let (places, spelling) =
        rename(&document.source, byte(document, position), name).map_err(|error| match error {
            RenameError::Wrong(_) => "the program has errors: correct them first".to_owned(),
            RenameError::Nothing => "there is no name here".to_owned(),
            RenameError::NotAName => format!("`{name}` is not a valid name"),
            RenameError::Taken => {
                format!("that would change what the program does: `{name}` is already used")
            }
        })?;
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for place in places {
        let place = document.places.location(&document.source, place);
        changes.entry(place.uri).or_default().push(TextEdit::new(place.range, spelling.clone()));
    }
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// The outline of a program: its declarations, and its properties.
pub(crate) fn outline(document: &Document) -> Option<Vec<DocumentSymbol>> {
    let names = names(document)?;
    let inner = |outer: &Symbol| {
        let inner = names.symbols.iter().filter(|symbol| symbol.within == Some(outer.declared));
        inner.map(|symbol| entry(document, symbol, Vec::new())).collect::<Vec<_>>()
    };
    let is_here = |span: Span| document.source.file_number(span) == 0;
    let outer = names.symbols.iter().filter(|symbol| symbol.within.is_none() && is_here(symbol.declared));
    let mut outline: Vec<DocumentSymbol> =
        outer.map(|symbol| entry(document, symbol, inner(symbol))).collect();
    for &property in names.properties.iter().filter(|property| is_here(**property)) {
        let words: Vec<&str> = document.text[property.range()].split_whitespace().collect();
        let whole = range(document, property);
        outline.push(symbol(words.join(" "), None, Kind::EVENT, (whole, whole), Vec::new()));
    }
    outline.sort_by_key(|symbol| (symbol.range.start.line, symbol.range.start.character));
    Some(outline)
}

fn entry(document: &Document, named: &Symbol, children: Vec<DocumentSymbol>) -> DocumentSymbol {
    let kind = match named.kind {
        SymbolKind::Constant => Kind::CONSTANT,
        SymbolKind::Shared | SymbolKind::Private => Kind::VARIABLE,
        SymbolKind::Procedure => Kind::FUNCTION,
        SymbolKind::Process => Kind::CLASS,
        SymbolKind::Parameter => Kind::TYPE_PARAMETER,
        SymbolKind::Register => Kind::FIELD,
        SymbolKind::Label => Kind::KEY,
        SymbolKind::Bound => Kind::VARIABLE,
        SymbolKind::Enum => Kind::ENUM,
        SymbolKind::EnumValue => Kind::ENUM_MEMBER,
        SymbolKind::Struct => Kind::STRUCT,
        SymbolKind::Field => Kind::FIELD,
    };
    // The place of the name has to be inside the whole.
    let ranges = (range(document, named.whole.to(named.declared)), range(document, named.declared));
    symbol(named.name.clone(), Some(named.detail.clone()), kind, ranges, children)
}

#[allow(deprecated, reason = "the protocol's crate wants all fields")]
fn symbol(
    name: String,
    detail: Option<String>,
    kind: Kind,
    (range, selection_range): (Range, Range),
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    let children = (!children.is_empty()).then_some(children);
    DocumentSymbol { name, detail, kind, tags: None, deprecated: None, range, selection_range, children }
}

/// What is shown about a name: what it is, and the values of a shared variable.
pub(crate) fn hover(symbol: &Symbol, values: Option<&Result<Vec<CellValues>, String>>) -> String {
    let mut text = format!("```pal\n{}\n```\n{}", symbol.detail, symbol.kind.describe());
    match values {
        None => {}
        Some(Err(why)) => text.push_str(&format!("\n\nThe values that it can take are not known: {why}")),
        Some(Ok(cells)) => {
            let is_cell = |cell: &&CellValues| {
                let rest = cell.cell.strip_prefix(symbol.name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
            };
            text.push_str("\n\nNo run, under any memory model, stores other values than these:\n");
            for cell in cells.iter().filter(is_cell).take(MAX_VALUES) {
                text.push_str(&format!("\n- `{}`: {}", cell.cell, listed(&cell.values)));
            }
            text.push_str("\n\nSome of them may not occur in any run.");
        }
    }
    text
}

fn listed(values: &[i64]) -> String {
    let shown: Vec<String> = values.iter().take(MAX_VALUES).map(i64::to_string).collect();
    let more = values.len().saturating_sub(MAX_VALUES);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
