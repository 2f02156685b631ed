//! Which lines differ between two texts, for edits and patches.
//!
//! The algorithm is called directly. `TextDiff` would bring all algorithms of its crate with it, and a quarter of a
//! megabyte.

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use std::fmt::Write;
use std::ops::Range;

/// How many lines around a change a patch shows.
const CONTEXT: usize = 3;

/// The lines of a text, with their ends.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn operations(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), before, after);
    match myers::diff(&mut found, before, 0..before.len(), after, 0..after.len()) {
        Ok(()) => found.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

/// The lines that are replaced, from 0, and those that replace them, in order.
pub fn changed_lines(before: &str, after: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let found = operations(&lines(before), &lines(after));
    let changed = found.iter().filter(|operation| !matches!(operation, DiffOp::Equal { .. }));
    changed.map(|operation| (operation.old_range(), operation.new_range())).collect()
}

/// The difference between two texts as a unified diff, with these names. Empty if there is none.
pub fn unified_diff(before: &str, after: &str, names: (&str, &str)) -> String {
    let (old, new) = (lines(before), lines(after));
    let mut text = String::new();
    for hunk in similar::group_diff_ops(operations(&old, &new), CONTEXT) {
        if text.is_empty() {
            writeln!(text, "--- {}\n+++ {}", names.0, names.1).expect("writing to a string");
        }
        writeln!(text, "{}", UnifiedHunkHeader::new(&hunk)).expect("writing to a string");
        for operation in hunk {
            let is_equal = matches!(operation, DiffOp::Equal { .. });
            let removed =
                old[operation.old_range()].iter().map(|line| (if is_equal { ' ' } else { '-' }, line));
            let added = new[operation.new_range()].iter().filter(|_| !is_equal).map(|line| ('+', line));
            for (sign, line) in removed.chain(added) {
                let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
                write!(text, "{sign}{line}{end}").expect("writing to a string");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str, changed: &[(Range<usize>, Range<usize>)], patch: &str) {
        assert_eq!(changed_lines(before, after), changed, "{before:?} {after:?}");
        assert_eq!(unified_diff(before, after, ("a/x", "b/x")), patch, "{before:?} {after:?}");
    }

    #[test]
    fn lines_and_patches() {
        check("a\nb\n", "a\nb\n", &[], "");
        check(
            "1\n2\n3\n4\n5\n",
            "1\n2\n3\n4\nfence;\n5\n",
            &[(4..4, 4..5)],
            "--- a/x\n+++ b/x\n@@ -2,4 +2,5 @@\n 2\n 3\n 4\n+fence;\n 5\n",
        );
        check(
            "a\nb",
            "a\nc",
            &[(1..2, 1..2)],
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
        );
        check("", "x\n", &[(0..0, 0..1)], "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn distant_changes_are_separate() {
        let before: String = (0..30).map(|line| format!("{line}\n")).collect();
        let after = before.replace("\n5\n", "\nfive\n").replace("\n25\n", "\n");
        let patch = unified_diff(&before, &after, ("a", "b"));
        assert_eq!(changed_lines(&before, &after), [(5..6, 5..6), (25..26, 25..25)]);
        assert!(patch.contains("@@ -3,7 +3,7 @@\n") && patch.contains("@@ -23,7 +23,6 @@\n"), "{patch}");
    }
}
