//! Names of programs and their arguments as text.
//!
//! An argument may have any bytes, but schedules and reports are text. A byte that is not part of valid UTF-8 becomes a
//! character of a private range: the last 256 characters of Unicode. If an argument has such a character itself, its
//! four bytes are written this way. So every argument has one text, and [`decoded`] gives back the bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The character for byte 0.
const FIRST: u32 = 0x10_ff00;

fn character(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).expect("the range ends with the last character")
}

fn byte(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST).and_then(|byte| u8::try_from(byte).ok())
}

/// An argument as text.
pub fn encoded(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte(c) {
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(character)),
                None => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(character));
    }
    text
}

/// The argument that a text stands for.
pub fn decoded(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// A text as people read it, with the usual sign for bytes that are not text.
pub fn shown(text: &str) -> String {
    decoded(text).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_has_one_text() {
        let check = |bytes: &[u8], is_text: bool| {
            let word = OsStr::from_bytes(bytes);
            let text = encoded(word);
            assert_eq!(decoded(&text), word, "{bytes:?}");
            assert_eq!(text.as_bytes() == bytes, is_text, "{bytes:?}");
        };
        check(b"", true);
        check("./größe 1".as_bytes(), true);
        check(b"n\xffon", false);
        check(b"\xe2\x82", false);
        check("\u{10ff41}".as_bytes(), false);
        assert_eq!(shown(&encoded(OsStr::from_bytes(b"n\xffon"))), "n\u{fffd}on");
    }
}
