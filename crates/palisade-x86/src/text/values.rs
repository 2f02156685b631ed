//! Values of expressions, and what is left to the linker.
//!
//! What is left follows the rules of assemblers: a place of the same section is known, unless other files may replace its
//! symbol. Nothing depends on how long instructions are, because one text has several encodings, and those that are not
//! read have no length at all: a number that is the distance of two places in code is refused, except for sizes of
//! functions and in tables of exceptions. A symbol that only this file sees is replaced by its section and the offset in it.

use super::Reader;
use super::expression::{Expression, Suffix, SymbolId};
use super::instruction::{Field, Fix};
use super::layout::{Position, Section};
use super::symbols::Meaning;
use crate::image::{How, Relocation, SectionKind, SectionOffset, Target};
use std::collections::BTreeMap;

/// How long symbols may be chains of other symbols.
pub(super) const MAX_DEPTH: usize = 50;

/// How many symbols the value of an expression may depend on.
const MAX_WORK: u32 = 1000;

/// What a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Number(i128),
    Place(usize, i128),
    Elsewhere(SymbolId),
}

/// What an expression comes to: a number, plus a symbol, minus a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) number: i128,
    pub(super) plus: Option<(SymbolId, Value)>,
    pub(super) minus: Option<(usize, i128)>,
}

/// Whether a section is one of those for exceptions, which nothing else looks at, and which hold distances in code.
pub(super) fn is_for_exceptions(name: &str) -> bool {
    [".gcc_except_table", ".eh_frame"].iter().any(|family| name.starts_with(family))
}

impl Reader {
    /// The section that a section is a part of, by its index among those of the image.
    pub(super) fn root(&self, section: usize) -> usize {
        self.roots[section]
    }

    pub(super) fn place(&self, position: Position) -> SectionOffset {
        let section = &self.sections[position.section];
        let start = section.offsets.get(position.piece).copied().unwrap_or_default();
        SectionOffset {
            section: self.root(position.section),
            offset: (start + position.offset as u64) as i64,
        }
    }

    /// What a section of the image is for.
    fn kind_of(&self, root: usize) -> SectionKind {
        self.section_of(root).kind
    }

    /// The first part of a section of the image.
    fn section_of(&self, root: usize) -> &Section {
        &self.sections[self.firsts[root]]
    }

    /// Begins to compute the value of an expression or a symbol.
    pub(super) fn begin(&self) {
        self.work.set(0);
        self.measured.set(false);
    }

    /// Refuses a value that depends on how long instructions are: they may have another length here.
    pub(super) fn is_exact(&self) -> Result<(), String> {
        match self.measured.get() {
            true => Err("a distance between places in code, or in a section that is not loaded".to_owned()),
            false => Ok(()),
        }
    }

    /// What a symbol stands for.
    pub(super) fn value(&self, id: SymbolId, depth: usize) -> Result<Value, String> {
        let symbol = self.symbols.get(id);
        match &symbol.meaning {
            Meaning::Elsewhere | Meaning::Common(..) => Ok(Value::Elsewhere(id)),
            Meaning::Label(position) => {
                let place = self.place(*position);
                Ok(Value::Place(place.section, i128::from(place.offset)))
            }
            Meaning::Equal(expression) => {
                let unknown = || format!("the value of the symbol `{}`", symbol.name);
                match self.evaluate(expression, depth + 1)? {
                    Outcome { number, plus: None, minus: None } => Ok(Value::Number(number)),
                    // Assemblers disagree about the size of a symbol that is so far after another one.
                    Outcome { number: 0, plus: Some((_, Value::Place(section, at))), minus: None } => {
                        Ok(Value::Place(section, at))
                    }
                    Outcome { number: 0, plus: Some((_, value)), minus: None } => Ok(value),
                    _ => Err(unknown()),
                }
            }
        }
    }

    pub(super) fn evaluate(&self, expression: &Expression, depth: usize) -> Result<Outcome, String> {
        if depth == 0 {
            self.begin();
        } else {
            self.work.set(self.work.get() + 1);
        }
        let work = self.work.get();
        if depth > MAX_DEPTH || work > MAX_WORK {
            return Err("symbols that stand for each other".to_owned());
        }
        let mut number = expression.constant;
        let (mut plus, mut minus) = (Vec::new(), Vec::new());
        for (&id, positive) in
            expression.plus.iter().map(|id| (id, true)).chain(expression.minus.iter().map(|id| (id, false)))
        {
            match (self.value(id, depth)?, positive) {
                (Value::Number(value), true) => number += value,
                (Value::Number(value), false) => number -= value,
                (value, true) => plus.push((id, value)),
                (Value::Place(section, at), false) => minus.push((section, at)),
                (Value::Elsewhere(_), false) => {
                    return Err(format!("a difference to `{}`", self.symbols.get(id).name));
                }
            }
        }
        // Two places of one section are a number apart.
        minus.retain(|(section, at)| {
            let same = |(_, value): &(SymbolId, Value)| matches!(value, Value::Place(of, _) if of == section);
            let Some(found) = plus.iter().position(same) else { return true };
            if let (_, Value::Place(_, from)) = plus.remove(found) {
                number += from - at;
            }
            if matches!(self.kind_of(*section), SectionKind::Code | SectionKind::Other) {
                self.measured.set(true);
            }
            false
        });
        if plus.len() > 1 || minus.len() > 1 {
            return Err("a sum of addresses".to_owned());
        }
        let is_in_code =
            |value: &Value| matches!(value, Value::Place(of, _) if self.kind_of(*of) == SectionKind::Code);
        if number != 0 && plus.iter().any(|(_, value)| is_in_code(value)) {
            self.measured.set(true);
        }
        Ok(Outcome { number, plus: plus.pop(), minus: minus.pop() })
    }

    /// The value of an expression that is a number.
    pub(super) fn number(&self, expression: &Expression) -> Option<i128> {
        match self.evaluate(expression, 0) {
            Ok(Outcome { number, plus: None, minus: None }) if expression.suffix.is_none() => Some(number),
            _ => None,
        }
    }

    /// How far the target of a jump is from a place in the same section, if nothing else can be its target.
    pub(super) fn distance(&self, target: &Expression, section: usize, from: u64) -> Option<i128> {
        match self.evaluate(target, 0) {
            Ok(Outcome { number, plus: Some((id, Value::Place(of, at))), minus: None })
                if target.suffix.is_none() && of == self.root(section) && !self.symbols.get(id).weak =>
            {
                Some(at + number - i128::from(from))
            }
            _ => None,
        }
    }

    /// Puts the value of an expression into the bytes, or says what the linker puts there.
    pub(super) fn apply(
        &self,
        fix: &Fix,
        section: usize,
        place: i64,
        bytes: &mut [u8],
        common: &BTreeMap<SymbolId, i64>,
        common_section: usize,
    ) -> Result<Option<Relocation>, String> {
        let Fix { at, field, expression, .. } = fix;
        let suffix = expression.suffix;
        let Outcome { number, plus, minus } = self.evaluate(expression, 0)?;
        let for_exceptions = |section: usize| is_for_exceptions(&self.section_of(section).name);
        if !for_exceptions(section) {
            self.is_exact()?;
            if let Some((_, Value::Place(of, _))) = plus {
                if for_exceptions(of) {
                    return Err("the address of something in a table of exceptions".to_owned());
                }
                if self.kind_of(of) == SectionKind::Other {
                    return Err("the address of something in a section that is not loaded".to_owned());
                }
            }
            let is_far = |(of, from): (usize, i128)| of == section && from != i128::from(place);
            if self.kind_of(section) == SectionKind::Code && minus.is_some_and(is_far) {
                return Err("a distance from a place in code".to_owned());
            }
        }
        let mut put = |value: i128| {
            let size = field.size();
            let bits = size as u32 * 8;
            let most = match field {
                Field::Relative(_) | Field::Signed32 => 1i128 << (bits - 1),
                Field::Unsigned32 | Field::Data(_) => 1i128 << bits,
            };
            if !(-(1i128 << (bits - 1))..most).contains(&value) {
                return Err(format!("a number that does not fit in {size} bytes"));
            }
            bytes[*at..*at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            Ok(None)
        };
        let Some((id, value)) = plus else {
            return match (minus, suffix, field) {
                (None, None, Field::Signed32 | Field::Unsigned32 | Field::Data(_)) => put(number),
                _ => Err("an address of such a form".to_owned()),
            };
        };
        let mut by = number;
        let how = match (field, minus, suffix) {
            // The distance from a place in this section.
            (Field::Data(4), Some((of, from)), None | Some(Suffix::Call)) if of == section => {
                by += i128::from(place) - from;
                How::Relative32
            }
            (Field::Data(size), Some((of, from)), None) if of == section => {
                by += i128::from(place) - from;
                How::Other(match size {
                    1 => 15,
                    2 => 13,
                    _ => 24,
                })
            }
            (_, Some(_), _) => return Err("a difference of two addresses".to_owned()),
            (Field::Relative(to_end), None, suffix) => {
                by -= i128::from(*to_end);
                match (suffix, value) {
                    (None, Value::Place(of, to)) if of == section && !self.symbols.is_replaceable(id) => {
                        return put(to + by - i128::from(place));
                    }
                    (None | Some(Suffix::Call), _) => How::Relative32,
                    (Some(Suffix::TableEntry), _) => How::TableEntry,
                    (Some(Suffix::ThreadTableEntry), _) => How::ThreadTableEntry,
                    (Some(Suffix::Shared(number)), _) => How::Other(number),
                    (Some(Suffix::ThreadPosition), _) => {
                        return Err("the position of a thread's variable, relative to a place".to_owned());
                    }
                }
            }
            (Field::Signed32, None, None) => How::Absolute32Signed,
            (Field::Unsigned32 | Field::Data(4), None, None) => How::Absolute32,
            (Field::Data(8), None, None) => How::Absolute64,
            (Field::Data(2), None, None) => How::Other(12),
            (Field::Data(1), None, None) => How::Other(14),
            (Field::Signed32 | Field::Unsigned32, None, Some(Suffix::ThreadPosition)) => {
                How::ThreadPosition32
            }
            (Field::Signed32 | Field::Unsigned32, None, Some(Suffix::Shared(21))) => How::Other(21),
            (Field::Data(4), None, Some(Suffix::Call)) => How::Relative32,
            _ => return Err("an address of such a form".to_owned()),
        };
        let (target, by) = self.target(id, value, how, [number, by], common, common_section);
        let how = match &target {
            Target::External(name) if name == "_GLOBAL_OFFSET_TABLE_" => How::Other(26),
            _ => how,
        };
        let addend = i64::try_from(by).map_err(|_| "an address that is too far away".to_owned())?;
        Ok(Some(Relocation { how, target, addend }))
    }

    /// What a relocation refers to, and how many bytes further on. Given is how many bytes further on the text says, and
    /// how many with what the form of the relocation adds.
    pub(super) fn target(
        &self,
        id: SymbolId,
        value: Value,
        how: How,
        [number, by]: [i128; 2],
        common: &BTreeMap<SymbolId, i64>,
        common_section: usize,
    ) -> (Target, i128) {
        let symbol = self.symbols.get(id);
        match value {
            Value::Elsewhere(of) => match common.get(&of) {
                Some(offset) => {
                    (Target::Symbol(SectionOffset { section: common_section, offset: *offset }), by)
                }
                None => (Target::External(self.symbols.get(of).name.clone()), by),
            },
            _ if symbol.weak => (Target::External(symbol.name.clone()), by),
            Value::Place(section, offset) => {
                // The linker may move parts of sections that it puts together.
                let moves = self.section_of(section).mergeable && (number != 0 || how == How::Relative32);
                let kept = symbol.global || how.is_of_thread() || how == How::TableEntry || moves;
                match kept {
                    true => {
                        self.kept_symbols.borrow_mut().insert(id);
                        (Target::Symbol(SectionOffset { section, offset: offset as i64 }), by)
                    }
                    false => (Target::Place(SectionOffset { section, offset: 0 }), by + offset),
                }
            }
            Value::Number(_) => unreachable!("numbers are not symbols of a sum"),
        }
    }
}
