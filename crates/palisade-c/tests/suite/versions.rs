//! One program, written as clang 14, 17, 19 and 22 write it: all of them mean the same.

use crate::common::{threads, translated};

const TEXTS: [(&str, &str); 4] = [
    ("14", include_str!("texts/versions/14.ll")),
    ("17", include_str!("texts/versions/17.ll")),
    ("19", include_str!("texts/versions/19.ll")),
    ("22", include_str!("texts/versions/22.ll")),
];

#[test]
fn all_versions_mean_the_same() {
    let printed = |text| {
        let translation = translated(text, &threads(&["put", "get"]));
        palisade_program::print::print(&translation.program)
    };
    let expected = printed(TEXTS[0].1);
    for part in ["box = 7", "sfence", "flag = 2", "no_abort"] {
        assert!(expected.contains(part), "{part}\n{expected}");
    }
    for (version, text) in &TEXTS[1..] {
        assert_eq!(printed(text), expected, "version {version}");
    }
}
