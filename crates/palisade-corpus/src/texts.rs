//! The texts of the programs in `corpus/`.

/// All programs: the path below `corpus/`, and the text.
pub fn texts() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/texts.rs"))
}

/// The text of a program, by its path below `corpus/`.
pub fn text(file: &str) -> Option<&'static str> {
    let texts = texts();
    let index = texts.binary_search_by_key(&file, |(file, _)| *file).ok()?;
    Some(texts[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expectation_has_a_text() {
        for expectation in crate::expectations() {
            assert!(text(expectation.file).is_some_and(|text| !text.is_empty()), "{}", expectation.file);
        }
        assert!(texts().is_sorted());
        assert_eq!(text("no/such.pal"), None);
    }
}
