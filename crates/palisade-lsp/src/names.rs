//! Names: where they are declared and used, what they are, and renaming them.

use crate::documents::Document;
use crate::values::{CellText, CellTexts};
use lsp_types::{
    DocumentSymbol, Location, Position, PrepareRenameResponse, Range, SymbolKind as Kind, TextEdit, Uri,
    WorkspaceEdit,
};
use palisade::syntax::names::{
    RESERVED, RenameError, Symbol, SymbolKind, Symbols, is_legal_name, is_quotable_name, known_symbols,
    rename,
};
use palisade::{Language, Span};
use std::collections::HashMap;

/// More values are only counted.
const MAX_VALUES: usize = 24;

/// The names of a `.pal` file, as far as it can be read.
fn names(document: &Document) -> Option<Symbols> {
    document.language.filter(|language| *language == Language::Pal)?;
    known_symbols(&document.source)
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
    let name = spelled(name)?;
    if let Some(why) = confusing(document, position, name) {
        return Err(why);
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

/// A new name, without the backquotes that the user may have written.
fn spelled(name: &str) -> Result<&str, String> {
    let inner = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
    match inner {
        Some(inner) if is_quotable_name(inner) => Ok(inner),
        _ if is_legal_name(name) => Ok(name),
        _ if RESERVED.contains(&name) => Err(format!("`{name}` is a keyword, which cannot be a name")),
        _ => Err(format!(
            "`{name}` is not a valid name: names consist of letters, digits and `_`, and do not begin with a digit"
        )),
    }
}

/// Why a new name would confuse readers: something else outside of bodies has it.
fn confusing(document: &Document, position: Position, name: &str) -> Option<String> {
    let names = names(document)?;
    let (symbol, _) = names.at(byte(document, position))?;
    let is_apart = |kind: SymbolKind| matches!(kind, SymbolKind::Field | SymbolKind::Bound);
    let is_taken = |other: &&Symbol| {
        let is_value = other.kind == SymbolKind::EnumValue;
        let is_outside = is_value || (other.within.is_none() && !is_apart(other.kind));
        is_outside && other.name == name && other.declared != symbol.declared
    };
    let other = names.symbols.iter().find(is_taken).filter(|_| !is_apart(symbol.kind))?;
    let kind = other.kind.describe();
    let article = if kind.starts_with('e') { "an" } else { "a" };
    Some(format!("`{name}` is already used: it is {article} {kind}"))
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

/// What is shown about a name: what it is, the value of a constant if it was given, and the values of a shared variable.
pub(crate) fn hover(symbol: &Symbol, given: &[(String, i64)], values: Option<&CellTexts>) -> String {
    let given = given.iter().find(|(name, _)| symbol.kind == SymbolKind::Constant && *name == symbol.name);
    if let Some((_, value)) = given {
        let written = symbol.detail.split_once('=').map_or("", |(_, value)| value.trim());
        let value = match (written, value) {
            ("true" | "false", 0..=1) => (*value == 1).to_string(),
            _ => value.to_string(),
        };
        let name = symbol.name.as_str();
        return format!(
            "```pal\nconst {name} = {value}\n```\nconstant, set by the option `constants`; the file says `{written}`"
        );
    }
    let mut text = format!("```pal\n{}\n```\n{}", symbol.detail, symbol.kind.describe());
    if symbol.kind == SymbolKind::EnumValue {
        text.clone_from(&symbol.detail);
    }
    match values {
        None => {}
        Some(Err(why)) => text.push_str(&format!("\n\nThe values that it can take are not known: {why}")),
        Some(Ok(cells)) => {
            let is_cell = |cell: &&CellText| {
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

fn listed(values: &[String]) -> String {
    let shown = values.iter().take(MAX_VALUES).cloned().collect::<Vec<_>>().join(", ");
    let more = values.len().saturating_sub(MAX_VALUES);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
