//! Types in which values wrap around.
//!
//! The other languages have no such types, so every value is wrapped where it is assigned: `x % size` where that is the
//! same, and otherwise `wrap(x, lo, hi)`, a function or macro that is declared if it is used.
//!
//! *Invariant.* With `size = hi - lo + 1`, what `wrap` computes lies between `-2 * size` and `2 * size`, and the sum of a
//! cell and an operand that was reduced between `lo - size` and `hi + size`. Types for which this is too large for the
//! numbers of the other language are [refused](refuse).

use crate::expression::Width;
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::running::{Outside, System, Type};

/// The bounds of a type in which values wrap around, and its size; `None` for other types.
pub(crate) fn size(ty: Type) -> Option<(Value, Value, Value)> {
    let (lo, hi) = ty.domain.bounds().filter(|_| ty.outside == Outside::Wrap)?;
    Some((lo, hi, hi - lo + 1))
}

/// The values that those from `lo` to `hi` become in a type, as ranges; `None` if they stay the same or the type does
/// not wrap around.
pub(crate) fn images(ty: Type, lo: Value, hi: Value) -> Option<Vec<(Value, Value)>> {
    let (least, most, size) = size(ty)?;
    if least <= lo && hi <= most {
        return None;
    }
    let wrapped = |value: Value| ty.wrapped(value.into()).expect("the type wraps around");
    Some(match (wrapped(lo), wrapped(hi)) {
        _ if i128::from(hi) - i128::from(lo) >= i128::from(size) - 1 => vec![(least, most)],
        (first, last) if first <= last => vec![(first, last)],
        (first, last) => vec![(first, most), (least, last)],
    })
}

/// The types for which numbers of this width are too small.
pub(crate) fn refuse(system: &System, width: Width) -> Vec<Diagnostic> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut check = |ty: Type, span: Span| {
        let Some((lo, hi)) = ty.domain.bounds().filter(|_| ty.outside == Outside::Wrap) else { return };
        let (least, most) = width.bounds();
        let (lo, hi) = (i128::from(lo), i128::from(hi));
        let size = hi - lo + 1;
        let fits = |value: i128| least <= value && value <= most;
        if [lo - size, hi + size, -2 * size, 2 * size].into_iter().all(fits) {
            return;
        }
        let bits = if width == Width::Int { 32 } else { 64 };
        let message = format!("values that wrap around in {lo}..{hi} need numbers of more than {bits} bits");
        let problem = Diagnostic::error("number-too-large", message).at(span, "");
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    };
    system.cells.iter().for_each(|cell| check(cell.ty, cell.span));
    for code in &system.codes {
        code.registers.iter().for_each(|register| check(register.ty, Span::NONE));
        code.result.iter().for_each(|ty| check(*ty, Span::NONE));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The images are exactly the values that wrapping yields.
    #[test]
    fn images_are_exact() {
        for (least, most) in [(0, 3), (-2, 1), (5, 7), (0, 0)] {
            let ty = Type::wrapping(least, most);
            for lo in -9..9 {
                for hi in lo..9 {
                    let mut expected: Vec<Value> =
                        (lo..=hi).map(|value| ty.wrapped(value.into()).expect("it wraps")).collect();
                    expected.sort_unstable();
                    expected.dedup();
                    let ranges = images(ty, lo, hi).unwrap_or_else(|| vec![(lo, hi)]);
                    let mut found: Vec<Value> = ranges.into_iter().flat_map(|(from, to)| from..=to).collect();
                    found.sort_unstable();
                    assert_eq!(found, expected, "{lo}..{hi} in {least}..{most}");
                }
            }
        }
    }
}
