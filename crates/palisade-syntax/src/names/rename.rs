//! Giving a name another spelling.

use super::{Symbols, symbols};
use palisade_base::{Diagnostic, Source, Span};
use palisade_program::print::{is_legal_name, is_quotable_name};

/// Why a name was not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RenameError {
    /// The program has errors, so it is not known what its names mean.
    Wrong(Vec<Diagnostic>),
    /// There is no name at this place.
    Nothing,
    /// The new name cannot be a name.
    NotAName,
    /// With the new name, the program would be another one, or none at all.
    Taken,
}

/// The places of the name at a byte of a `.pal` text, and its new spelling.
///
/// *Guarantee*: the program with the changes has no errors, and each of its names refers to the same declaration
/// as before. Nothing is hidden by the new name.
pub fn rename(source: &Source, byte: usize, name: &str) -> Result<(Vec<Span>, String), RenameError> {
    let before = symbols(source).map_err(RenameError::Wrong)?;
    let (symbol, _) = before.at(byte).ok_or(RenameError::Nothing)?;
    let spelling = match name {
        _ if is_legal_name(name) => name.to_owned(),
        _ if is_quotable_name(name) => format!("`{name}`"),
        _ => return Err(RenameError::NotAName),
    };
    let places = symbol.mentions();
    let mut text = source.text().to_owned();
    places.iter().rev().for_each(|place| text.replace_range(place.range(), &spelling));
    let moved = |end: usize| {
        let before = places.iter().filter(|place| place.range().end <= end);
        before.fold(end, |moved, place| moved + spelling.len() - place.range().len())
    };
    let after = symbols(&source.with_changes(&text, moved)).map_err(|_| RenameError::Taken)?;
    if meaning(&before) != meaning(&after) {
        return Err(RenameError::Taken);
    }
    Ok((places, spelling))
}

/// For each mention of a name, in the order of the text, the number of its declaration.
fn meaning(symbols: &Symbols) -> Vec<usize> {
    let mentions = symbols
        .symbols
        .iter()
        .enumerate()
        .flat_map(|(index, symbol)| symbol.mentions().into_iter().map(move |span| (span, index)));
    let mut mentions: Vec<(Span, usize)> = mentions.collect();
    mentions.sort_unstable();
    mentions.into_iter().map(|(_, index)| index).collect()
}
