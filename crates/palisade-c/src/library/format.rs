//! The conversions of a format of `printf`.

use std::iter::{Copied, Map, Peekable};
use std::slice::Iter;

/// A part of a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// This many characters as they are.
    Text(i64),
    Conversion(Conversion),
}

/// A conversion, such as `%-8.3ld`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Conversion {
    /// The letter at its end.
    pub(super) letter: char,
    pub(super) width: Option<Size>,
    pub(super) precision: Option<Size>,
    /// The letters before the last one that say how wide the argument is.
    pub(super) length: String,
    /// Whether other flags change what is printed.
    pub(super) flags: bool,
}

/// A width or a precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    Known(i64),
    /// An argument, written as `*`.
    Argument,
}

type Rest<'a> = Peekable<Map<Copied<Iter<'a, u8>>, fn(u8) -> char>>;

/// The number that follows, if one does.
fn number(rest: &mut Rest<'_>) -> Option<i64> {
    let mut found = None;
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        let digit = i64::from(digit.to_digit(10).unwrap_or(0));
        found = Some(found.unwrap_or(0i64).saturating_mul(10).saturating_add(digit));
    }
    found
}

/// The width or precision that follows, if one does.
fn size(rest: &mut Rest<'_>) -> Option<Size> {
    match rest.next_if_eq(&'*') {
        Some(_) => Some(Size::Argument),
        None => number(rest).map(Size::Known),
    }
}

/// The parts of a format. Positions of arguments, as in `%2$d`, are not understood.
pub(super) fn parse(format: &[u8]) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let as_char: fn(u8) -> char = char::from;
    let mut rest: Rest<'_> = format.iter().copied().map(as_char).peekable();
    while let Some(first) = rest.next() {
        if first != '%' || rest.next_if_eq(&'%').is_some() {
            match parts.last_mut() {
                Some(Part::Text(length)) => *length += 1,
                _ => parts.push(Part::Text(1)),
            }
            continue;
        }
        let mut flags = false;
        while rest.next_if(|flag| "-+ #0'I".contains(*flag)).is_some() {
            flags = true;
        }
        let width = size(&mut rest);
        let precision = rest.next_if_eq(&'.').map(|_| size(&mut rest).unwrap_or(Size::Known(0)));
        let mut length = String::new();
        while let Some(letter) = rest.next_if(|letter| "hljztLq".contains(*letter)) {
            length.push(letter);
        }
        let Some(letter) = rest.next() else { return Err("a format that ends with `%`".to_owned()) };
        if !"diouxXcsnpmfFeEgGaA".contains(letter) {
            return Err(format!("the conversion `%{letter}` of a format"));
        }
        parts.push(Part::Conversion(Conversion { letter, width, precision, length, flags }));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_split_into_conversions() {
        let conversion = |letter, width, precision, length: &str, flags| {
            Part::Conversion(Conversion { letter, width, precision, length: length.to_owned(), flags })
        };
        let check = |format: &str, expected: &[Part]| {
            assert_eq!(parse(format.as_bytes()).expect("it is understood"), expected, "{format}");
        };
        check("", &[]);
        check("a%%b", &[Part::Text(3)]);
        check("%d", &[conversion('d', None, None, "", false)]);
        check(
            "x%-8.3ldy%.*s",
            &[
                Part::Text(1),
                conversion('d', Some(Size::Known(8)), Some(Size::Known(3)), "l", true),
                Part::Text(1),
                conversion('s', None, Some(Size::Argument), "", false),
            ],
        );
        check("%*hhn", &[conversion('n', Some(Size::Argument), None, "hh", false)]);
        check("%.s", &[conversion('s', None, Some(Size::Known(0)), "", false)]);
        assert!(parse(b"100%").is_err_and(|error| error.contains("ends")));
        assert!(parse(b"%2$d").is_err_and(|error| error.contains("`%$`")));
        assert!(parse(b"%y").is_err_and(|error| error.contains("`%y`")));
    }
}
