//! The domains that are machine words: `u8` is `0..255 wrap`.
//!
//! Their names are not reserved. They are domains only where a domain is expected.

use palisade_program::written::Type;

/// The domain with this name.
pub(super) fn word_type(name: &str) -> Option<Type> {
    Some(match name {
        "u8" => Type::wrapping(0, u8::MAX.into()),
        "u16" => Type::wrapping(0, u16::MAX.into()),
        "u32" => Type::wrapping(0, u32::MAX.into()),
        "i8" => Type::wrapping(i8::MIN.into(), i8::MAX.into()),
        "i16" => Type::wrapping(i16::MIN.into(), i16::MAX.into()),
        "i32" => Type::wrapping(i32::MIN.into(), i32::MAX.into()),
        _ => return None,
    })
}
