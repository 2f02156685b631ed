//! The texts of the programs in `corpus/`, which `build.rs` has packed.

use std::sync::LazyLock;

type Texts = &'static [(&'static str, &'static str)];

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    palisade_packed::unpack_static(include_bytes!(concat!(env!("OUT_DIR"), "/texts.packed")))
});

static C_TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    palisade_packed::unpack_static(include_bytes!(concat!(env!("OUT_DIR"), "/c_texts.packed")))
});

static TABLES: LazyLock<Texts> = LazyLock::new(|| {
    palisade_packed::unpack_static(include_bytes!(concat!(env!("OUT_DIR"), "/tables.packed")))
});

/// All programs except those in C: the path below `corpus/`, and the text.
pub fn texts() -> Texts {
    &TEXTS
}

/// The text of a program, by its path below `corpus/`.
pub fn text(file: &str) -> Option<&'static str> {
    named(texts(), file)
}

/// All C programs: the path below `corpus/`, and the text.
pub fn c_texts() -> Texts {
    &C_TEXTS
}

/// A table of expected verdicts, by its file name.
pub(crate) fn table(name: &str) -> &'static str {
    named(&TABLES, name).expect("build.rs packs all tables")
}

/// The texts are sorted by name.
fn named(texts: Texts, name: &str) -> Option<&'static str> {
    let index = texts.binary_search_by_key(&name, |(name, _)| *name).ok()?;
    Some(texts[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_c_expectation_has_a_text() {
        for expectation in crate::c_expectations() {
            assert!(c_texts().iter().any(|(file, _)| *file == expectation.file), "{}", expectation.file);
        }
    }

    #[test]
    fn every_expectation_has_a_text() {
        for expectation in crate::expectations() {
            assert!(text(expectation.file).is_some_and(|text| !text.is_empty()), "{}", expectation.file);
        }
        assert!(texts().is_sorted());
        assert_eq!(text("no/such.pal"), None);
    }
}
