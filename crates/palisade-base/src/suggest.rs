//! "Did you mean …?": the known word nearest to an unknown one.

use crate::limits;

/// The candidate nearest to `word`, if one is near enough for a likely typo: at most one edit per three
/// letters. An edit inserts, deletes or replaces a letter, or swaps two neighbours. The case of letters is
/// ignored.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if wanted.len() > LONGEST {
        return None;
    }
    let allowed = wanted.len().div_ceil(3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| {
            limits::checkpoint();
            (distance(&wanted, candidate), candidate)
        })
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Longer words are not compared, since the comparison takes quadratic time.
const LONGEST: usize = 40;

/// Edit distance with swaps of neighbours (optimal string alignment), by dynamic programming over three rows.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().take(LONGEST + 1).collect();
    if b.len() > LONGEST || a.len().abs_diff(b.len()) > LONGEST / 3 {
        return usize::MAX;
    }
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replaced.min(row[j] + 1).min(last[j + 1] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_typos_are_recognised() {
        let words = ["while", "await", "assert", "fence", "x"];
        let check = |word: &str, expected| assert_eq!(nearest(word, words), expected, "{word}");
        check("wihle", Some("while"));
        check("awiat", Some("await"));
        check("asser", Some("assert"));
        check("FENCE", Some("fence"));
        check("mfence", Some("fence"));
        check("y", None);
        check("unrelated", None);
        check("", None);
        check(&"w".repeat(1000), None);
    }
}
