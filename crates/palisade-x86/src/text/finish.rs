//! From what was read to an image: everything gets its place, and expressions their values.

use super::Reader;
use super::expression::{Expression, SymbolId};
use super::instruction::{Field, Fix};
use super::layout::{Piece, Position, in_groups, nothing};
use super::symbols::Meaning;
use super::values::{MAX_DEPTH, Value, is_for_exceptions};
use crate::image::{self, COMMON, Image, MAX_SECTION, Section, SectionKind, SectionOffset, Symbol};
use crate::lines::Lines;
use palisade_base::{Diagnostic, Span};
use std::collections::BTreeMap;

/// After so many rounds, all jumps are long.
const MAX_ROUNDS: usize = 100;

/// Makes an image.
pub(super) fn image(mut reader: Reader, name: &str, text: &str) -> Result<Image, Vec<Diagnostic>> {
    undefined(&mut reader);
    let mut count = 0;
    for section in 0..reader.sections.len() {
        let root = match reader.sections[section].after {
            Some(before) => reader.roots[before],
            None => count,
        };
        if reader.sections[section].after.is_none() {
            reader.firsts.push(section);
            count += 1;
        }
        reader.roots.push(root);
    }
    if reader.errors.is_empty() {
        place(&mut reader);
    }
    if !reader.errors.is_empty() {
        return Err(reader.errors);
    }
    let common = common_places(&mut reader);
    let mut image = Image {
        name: name.to_owned(),
        sections: sections(&mut reader, &common),
        symbols: Vec::new(),
        lines: Lines::default(),
        unread: BTreeMap::new(),
        text: reader.rows.is_empty().then(|| text.to_owned()),
    };
    symbols(&mut reader, &common, &mut image);
    if !reader.errors.is_empty() {
        return Err(reader.errors);
    }
    let file = name.rsplit('/').next().unwrap_or_default();
    let at = |position: Position| reader.place(position);
    image.unread = reader.unread.iter().map(|(position, text)| (at(*position), text.clone())).collect();
    match reader.rows.is_empty() {
        true => reader
            .own_rows
            .iter()
            .for_each(|(position, line)| image.lines.add(at(*position), Some((file.to_owned(), *line)))),
        false => reader.rows.iter().for_each(|(position, row)| image.lines.add(at(*position), row.clone())),
    }
    image::has_functions(&image, "the assembly has no functions: `.type f, @function` is missing").map_err(
        |why| vec![Diagnostic::error("assembly-error", why).help("give assembly as `gcc -S` writes it")],
    )?;
    Ok(image)
}

/// Labels that are used and not there, and symbols whose visibility is not clear.
fn undefined(reader: &mut Reader) {
    let mut missing = Vec::new();
    for symbol in &reader.symbols.all {
        if symbol.hidden && symbol.meaning == Meaning::Elsewhere {
            missing.push((format!("the label `{}` is not defined", symbol.name), symbol.span));
        }
    }
    for symbol in &reader.symbols.all {
        let seen = symbol.global || symbol.weak;
        let is_odd = (symbol.local && seen)
            || (symbol.global && symbol.weak)
            || (symbol.hidden && seen)
            || (symbol.local && matches!(symbol.meaning, Meaning::Elsewhere | Meaning::Common(..)));
        if is_odd {
            let why =
                format!("not supported: contradicting `.globl`, `.weak` and `.local` of `{}`", symbol.name);
            missing.push((why, symbol.span));
        }
    }
    missing.into_iter().for_each(|(why, span)| reader.error(why, span));
}

/// Gives everything a place.
fn place(reader: &mut Reader) {
    let mut rounds = 0;
    loop {
        let mut ends = vec![0; reader.sections.len()];
        for index in 0..reader.sections.len() {
            let start = reader.sections[index].after.map_or(0, |before| ends[before]);
            ends[index] = reader.sections[index].place(start);
        }
        if let Some(index) = ends.iter().position(|end| *end > MAX_SECTION) {
            let (name, limit) = (&reader.sections[index].name, MAX_SECTION >> 20);
            let why = format!("the section `{name}` is larger than {limit} MiB");
            return reader.error(why, Span::NONE);
        }
        rounds += 1;
        let mut longer = Vec::new();
        for (section, of) in reader.sections.iter().enumerate() {
            for (piece, at) in of.pieces.iter().zip(0usize..) {
                let start = of.offsets[at];
                let length = match piece {
                    Piece::Jump { target, long: false, .. } => {
                        let near = reader.distance(target, section, start + 2);
                        let fits = near.is_some_and(|by| i8::try_from(by).is_ok());
                        if fits && rounds < MAX_ROUNDS { continue } else { 0 }
                    }
                    Piece::Number { value, signed, length, .. } => {
                        let Some(value) = reader.number(value) else { continue };
                        let needed = in_groups(value, *signed, *length).len();
                        if needed == *length { continue } else { needed }
                    }
                    _ => continue,
                };
                longer.push((section, at, length));
            }
        }
        if longer.is_empty() {
            return;
        }
        for (section, piece, needed) in longer {
            match &mut reader.sections[section].pieces[piece] {
                Piece::Jump { long, .. } => *long = true,
                Piece::Number { length, .. } => *length = needed,
                _ => unreachable!("only these become longer"),
            }
        }
    }
}

/// The places of the variables that may be defined in several files, in the section for them, and its size.
fn common_places(reader: &mut Reader) -> (BTreeMap<SymbolId, i64>, i64) {
    let (mut places, mut end) = (BTreeMap::new(), 0);
    for (index, symbol) in reader.symbols.all.iter().enumerate() {
        if let Meaning::Common(size, align) = symbol.meaning {
            let (at, next) = image::next_common(end, size as i64, align as i64);
            places.insert(SymbolId(index), at);
            end = next;
        }
    }
    if end > MAX_SECTION as i64 {
        reader.error("the common variables are too large", Span::NONE);
    }
    (places, end)
}

/// The sections, with their bytes and relocations.
fn sections(reader: &mut Reader, common: &(BTreeMap<SymbolId, i64>, i64)) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let common_section = reader.sections.iter().filter(|section| section.after.is_none()).count();
    let mut errors = Vec::new();
    for (index, of) in reader.sections.iter().enumerate() {
        let number = reader.root(index);
        if of.after.is_none() {
            let (name, kind, align) = (of.name.clone(), of.kind, of.align);
            found.push(Section { name, kind, bytes: Vec::new(), align, relocations: BTreeMap::new() });
        }
        let (mut bytes, mut relocations) = (Vec::new(), Vec::new());
        for (piece, &start) in of.pieces.iter().zip(&of.offsets) {
            let length = piece.length(start);
            match piece {
                Piece::Bytes(of, fixes) => {
                    let base = bytes.len();
                    bytes.extend(of);
                    for fix in fixes {
                        let fix = Fix { at: base + fix.at, ..fix.clone() };
                        let place = start as i64 + (fix.at - base) as i64;
                        relocations.push((fix, place));
                    }
                }
                Piece::Align { fill: None | Some(0x90), .. } if of.kind == SectionKind::Code => {
                    bytes.extend(nothing(length));
                }
                Piece::Align { fill, .. } => bytes.extend(vec![fill.unwrap_or(0); length as usize]),
                Piece::Jump { condition, target, long, span } => {
                    let opcode: &[u8] = match (condition, long) {
                        (None, false) => &[0xeb],
                        (None, true) => &[0xe9],
                        (Some(number), false) => &[0x70 + number],
                        (Some(number), true) => &[0x0f, 0x80 + number],
                    };
                    bytes.extend(opcode);
                    let by = reader.distance(target, index, start + length);
                    if let Err(why) = reader.is_exact() {
                        errors.push((format!("not supported: {why}"), *span));
                    }
                    if let (Some(by), true) = (by, *long) {
                        bytes.extend(&by.to_le_bytes()[..4]);
                    } else if *long {
                        let fix = Fix {
                            at: bytes.len(),
                            field: Field::Relative(4),
                            expression: target.clone(),
                            span: *span,
                        };
                        relocations.push((fix, start as i64 + opcode.len() as i64));
                        bytes.extend([0; 4]);
                    } else {
                        bytes.push(by.unwrap_or_default() as u8);
                    }
                }
                Piece::Number { value, span, .. }
                    if value.value().is_none() && !is_for_exceptions(&of.name) =>
                {
                    errors.push(("not supported: a distance in groups of 7 bits".to_owned(), *span));
                }
                Piece::Number { value, signed, length, span } => match reader.number(value) {
                    Some(value) => bytes.extend(in_groups(value, *signed, *length)),
                    None => {
                        errors.push(("not supported: a number that the linker decides".to_owned(), *span))
                    }
                },
            }
        }
        for (fix, place) in relocations {
            match reader.apply(&fix, number, place, &mut bytes, &common.0, common_section) {
                Ok(None) => {}
                Ok(Some(relocation)) => _ = found[number].relocations.insert(place, relocation),
                Err(why) => errors.push((format!("not supported: {why}"), fix.span)),
            }
        }
        let section = &mut found[number];
        section.align = section.align.max(of.align);
        section.bytes.extend(bytes);
    }
    if common.1 > 0 {
        let (name, bytes) = (COMMON.to_owned(), vec![0; common.1 as usize]);
        found.push(Section {
            name,
            kind: SectionKind::Data,
            bytes,
            align: 4096,
            relocations: BTreeMap::new(),
        });
    }
    errors.into_iter().for_each(|(why, span)| reader.error(why, span));
    found
}

/// The symbols that object files have, those that only this file sees first.
fn symbols(reader: &mut Reader, common: &(BTreeMap<SymbolId, i64>, i64), image: &mut Image) {
    let common_section = image.sections.len().saturating_sub(1);
    let mut errors = Vec::new();
    for global in [false, true] {
        for (index, symbol) in reader.symbols.all.iter().enumerate() {
            let id = SymbolId(index);
            let kept = symbol.name.starts_with(".L") && reader.kept_symbols.borrow().contains(&id);
            if (symbol.hidden && !kept) || global != (symbol.global || symbol.weak) {
                continue;
            }
            reader.begin();
            let place = match reader.value(id, 0) {
                Ok(Value::Place(section, offset)) => SectionOffset { section, offset: offset as i64 },
                Ok(Value::Elsewhere(of)) if of == id && common.0.contains_key(&id) => {
                    SectionOffset { section: common_section, offset: common.0[&id] }
                }
                Ok(_) => continue,
                Err(why) => {
                    errors.push((format!("not supported: {why}"), symbol.span));
                    continue;
                }
            };
            if image.sections[place.section].kind == SectionKind::Other {
                continue;
            }
            // A symbol that equals another one has its type and size.
            let mut like = symbol;
            for _ in 0..MAX_DEPTH {
                match &like.meaning {
                    Meaning::Equal(Expression { constant: 0, plus, minus, suffix: None })
                        if plus.len() == 1 && minus.is_empty() =>
                    {
                        like = reader.symbols.get(plus[0]);
                    }
                    _ => break,
                }
            }
            let is_code = image.sections[place.section].kind == SectionKind::Code;
            let size = match symbol.size.as_ref().or(like.size.as_ref()) {
                None => Some(0),
                Some(size) => size_of(reader, size, is_code.then_some(place)),
            };
            let Some(size) = size else {
                let why = match is_code {
                    true => format!("not supported: the size of `{0}` is not written `.-{0}`", symbol.name),
                    false => format!("the size of `{}` is not a positive number", symbol.name),
                };
                errors.push((why, symbol.span));
                continue;
            };
            let function = symbol.function.or(like.function).unwrap_or(false);
            let (name, weak) = (symbol.name.clone(), symbol.weak);
            image.symbols.push(Symbol { name, place, size, function, global, weak });
        }
    }
    errors.into_iter().for_each(|(why, span)| reader.error(why, span));
}

/// The size of a symbol. For a place in code, it has to be the distance from there to a label.
fn size_of(reader: &Reader, size: &Expression, code: Option<SectionOffset>) -> Option<i64> {
    let number = reader.number(size)?;
    if let Some(place) = code {
        let Expression { constant: 0, plus, minus, suffix: None } = size else { return None };
        let ([_], [start]) = (&plus[..], &minus[..]) else { return None };
        let start = reader.value(*start, 0).ok()?;
        if start != Value::Place(place.section, i128::from(place.offset)) {
            return None;
        }
    } else if reader.is_exact().is_err() {
        return None;
    }
    i64::try_from(number).ok().filter(|size| *size >= 0)
}
