//! The texts of the programs in `corpus/`.

/// All programs except those in C: the path below `corpus/`, and the text.
pub fn texts() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/texts.rs"))
}

/// The text of a program, by its path below `corpus/`.
pub fn text(file: &str) -> Option<&'static str> {
    let texts = texts();
    let index = texts.binary_search_by_key(&file, |(file, _)| *file).ok()?;
    Some(texts[index].1)
}

/// All C programs: the path below `corpus/`, and the text.
pub fn c_texts() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/c_texts.rs"))
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
